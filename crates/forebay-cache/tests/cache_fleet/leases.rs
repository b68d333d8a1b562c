//! One fetches for all.

use super::*;
use std::time::Instant;

fn fleet(redis: &Redis, database: &Database, count: usize, lease_for: Duration) -> Vec<Member> {
    let member = |_| {
        let builder = database.cache().tier(tier(redis.address()));
        builder.tier_settings(leasing(lease_for)).build()
    };
    (0..count).map(member).collect()
}

/// All ask for the key at once; how long the slowest took.
async fn all_get(members: &[Member], key: u64, expected: Option<u64>) -> Duration {
    let began = Instant::now();
    let gets = members.iter().cycle().take(members.len() * 5).map(|member| {
        let member = member.clone();
        tokio::spawn(async move { member.get(&key).await.unwrap() })
    });
    for get in gets.collect::<Vec<_>>() {
        assert_eq!(get.await.unwrap(), expected);
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cold_key_is_fetched_once_among_ten() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.take(ms(50));
    let members = fleet(&redis, &database, 10, 5 * SECOND);
    for key in 0..10 {
        database.write(key, key + 1);
        let took = all_get(&members, key, Some(key + 1)).await;
        assert_eq!(database.fetches(), key + 1);
        assert!(took < SECOND, "{took:?}");
    }
    // That there is none is brought too.
    all_get(&members, 99, None).await;
    assert_eq!(database.fetches(), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_it_and_dies_delays_nobody_beyond_its_time() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.take(HOUR);
    let members = fleet(&redis, &database, 4, ms(300));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let holder = members[0].clone();
    runtime.spawn(async move { holder.get(&1).await });
    until("it fetches", async || database.fetches() == 1).await;
    runtime.shutdown_background();
    database.take(Duration::ZERO);
    let took = all_get(&members[1..], 1, Some(10)).await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert!(database.fetches() <= 4, "{} fetches", database.fetches());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_fetched_before_an_invalidation_is_not_put_behind_it() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.take(ms(200));
    let members = fleet(&redis, &database, 3, 5 * SECOND);
    let late = members[0].clone();
    let late = tokio::spawn(async move { late.get(&1).await.unwrap() });
    until("it fetches", async || database.fetches() == 1).await;
    database.write(1, 20);
    // There is no backplane: the one that fetches does not hear of it.
    members[1].invalidate(&1).await;
    assert_eq!(late.await.unwrap(), Some(10), "it asked before");
    members[0].settled().await;
    assert_eq!(
        members[2].get(&1).await.unwrap(),
        Some(20),
        "the old value is not in the tier"
    );
    members[2].settled().await;
    let before = database.fetches();
    assert_eq!(members[1].get(&1).await.unwrap(), Some(20));
    assert_eq!(database.fetches(), before, "the new one is");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_fetches_now_and_what_it_brings_is_the_tiers() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let members = fleet(&redis, &database, 2, 5 * SECOND);
    all_get(&members, 1, Some(10)).await;
    members[0].settled().await;
    database.write(1, 20);
    assert_eq!(members[0].refresh(&1).await.unwrap(), Some(20));
    members[0].settled().await;
    let fresh = fleet(&redis, &database, 1, 5 * SECOND);
    let before = database.fetches();
    assert_eq!(fresh[0].get(&1).await.unwrap(), Some(20));
    assert_eq!(database.fetches(), before);
}

/// A source that fails for who holds the lease: the others do not wait for its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_gives_the_lease_back() {
    let redis = Redis::start().unwrap();
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let member = || {
        let fails = Arc::clone(&fails);
        let source = move |key: u64| {
            let fails = Arc::clone(&fails);
            async move {
                tokio::time::sleep(ms(20)).await;
                if fails.load(SeqCst) { Err("down") } else { Ok(Some(key)) }
            }
        };
        Cache::builder(source)
            .tier(tier(redis.address()))
            .tier_settings(leasing(HOUR))
            .build()
    };
    let members = [member(), member(), member()];
    let began = Instant::now();
    let gets = members.each_ref().map(|member| {
        let member = member.clone();
        tokio::spawn(async move { member.get(&1).await })
    });
    for get in gets {
        assert_eq!(get.await.unwrap().unwrap_err().source_error(), Some(&"down"));
    }
    fails.store(false, SeqCst);
    for member in &members {
        assert_eq!(member.get(&1).await.unwrap(), Some(1));
    }
    assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_server_each_fetches_for_himself() {
    let mut redis = Redis::start().unwrap();
    let database = Database::default();
    let members = fleet(&redis, &database, 3, 5 * SECOND);
    redis.kill9().unwrap();
    database.write(1, 10);
    let took = all_get(&members, 1, Some(10)).await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert_eq!(database.fetches(), 3);
}
