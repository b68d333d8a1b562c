//! The Redis tier alone.

use std::sync::Arc;

use forebay_cache::Fetched;
use forebay_cache::tier::{OpenError, redis::RedisTier};
use testbed::Redis;

use super::*;

fn open(redis: &Redis, form: Form<u64, String>) -> RedisTier<u64, String> {
    RedisTier::open(&redis.url(), form).unwrap()
}

#[tokio::test]
async fn it_sees_to_what_a_tier_sees_to() {
    let redis = Redis::start().unwrap();
    keeps_the_contract(&open(&redis, limited())).await;
    assert_eq!(redis.command(&["UNLINK", "test;moment"]).unwrap(), ":1\r\n");
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), ":0\r\n", "something was left");
}

#[tokio::test]
async fn each_form_is_read_by_its_own_kind() {
    let redis = Redis::start().unwrap();
    keeps_forms_apart(async |form| open(&redis, form)).await;
}

#[tokio::test]
async fn a_panic_of_the_form_costs_its_own_key() {
    let redis = Redis::start().unwrap();
    panics_cost_their_own_key(&open(&redis, touchy())).await;
}

#[tokio::test]
async fn values_expire_in_the_server() {
    let redis = Redis::start().unwrap();
    let tier = open(&redis, form());
    let short = Put::new(1, some("short"), Duration::from_micros(300));
    let long = Put::new(2, some("long"), Duration::MAX);
    tier.put_many(&[short, long, put(3, some("an hour"))]).await.unwrap();
    let left = |key: &str| -> i64 {
        let answer = redis.command(&["PTTL", key]).unwrap();
        answer.trim_start_matches(':').trim().parse().unwrap()
    };
    assert!(left("test:1") <= 1, "less than a millisecond became more, or for ever");
    assert!(left("test:2") > 1_000_000_000_000);
    assert!((3_590_000..=3_600_000).contains(&left("test:3")));
}

#[tokio::test]
async fn a_tag_lives_as_long_as_what_carries_it() {
    let redis = Redis::start().unwrap();
    let tier = open(&redis, form());
    let most_ms = || -> i64 {
        let most = "local most = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                    most = math.max(most, redis.call('PTTL', key)) end return most";
        let answer = redis.command(&["EVAL", most, "0"]).unwrap();
        answer.trim_start_matches(':').trim().parse().unwrap()
    };
    let tagged = |key, seconds| {
        let mut put = Put::new(key, some("tagged"), Duration::from_secs(seconds));
        let said = Fetched::of("tagged".to_owned()).tag(format!("tag{key}"));
        put.kept.details = Some(Arc::new(said.details));
        put
    };
    tier.put_many(&[tagged(1, 60), tagged(2, 30)]).await.unwrap();
    let tags = ["tag1", "tag2", "carried by nothing"].map(Arc::from);
    for _ in 0..2 {
        tier.invalidate_tags(&tags).await.unwrap();
        assert!((50_000..=60_000).contains(&most_ms()), "{}", most_ms());
    }
    assert_eq!(values(&tier, &[1, 2]).await, [None, None]);
    // Two values, two tags, the moment and the table.
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), ":6\r\n");
}

#[tokio::test]
async fn a_clear_empties_the_namespace_and_nothing_else() {
    let redis = Redis::start().unwrap();
    let tier = open(&redis, form());
    let neighbour = open(&redis, Form::new("test2", KeyForm::display(), Postcard));
    redis.command(&["SET", "other", "1"]).unwrap();
    neighbour.put_many(&[put(1, some("neighbour"))]).await.unwrap();
    // More than one step of a scan finds.
    for batch in 0..10 {
        let entries: Vec<_> = (0..500).map(|key| put(batch * 500 + key, some("x"))).collect();
        tier.put_many(&entries).await.unwrap();
    }
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), ":5002\r\n");
    tier.clear().await.unwrap();
    assert_eq!(redis.command(&["DBSIZE"]).unwrap(), ":2\r\n");
    assert_eq!(values(&neighbour, &[1]).await, [Some("neighbour".into())]);
}

#[tokio::test]
async fn what_the_server_refuses_is_a_failure() {
    let redis = Redis::start().unwrap();
    let tier = open(&redis, form());
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let refused = tier.put_many(&[put(1, some("one"))]).await.unwrap_err();
    assert!(
        refused.to_string().contains("OOM") || refused.to_string().contains("maxmemory"),
        "{refused}"
    );
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    // Of a server that others' words make a replica nothing is deleted.
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert!(tier.delete_many(&[1]).await.is_err());
    assert!(tier.clear().await.is_ok(), "there is nothing to delete");
    redis.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    tier.put_many(&[put(1, some("one"))]).await.unwrap();
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    assert!(tier.clear().await.is_err());
}

#[tokio::test]
async fn an_address_or_namespace_that_cannot_be_used_is_said_so_without_the_password() {
    let error = RedisTier::open("http://:secret@127.0.0.1/", form()).unwrap_err();
    assert!(matches!(error, OpenError::Unusable { .. }));
    assert!(!error.to_string().contains("secret"), "{error}");
    let form: Form<u64, String> = Form::new("a:b", KeyForm::display(), Postcard);
    let error = RedisTier::open("redis://127.0.0.1/", form).unwrap_err();
    assert!(error.to_string().contains("a:b"), "{error}");
}
