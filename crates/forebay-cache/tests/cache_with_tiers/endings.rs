//! Ends: of a runtime, of the last handle, and of the wait for what was written.

use std::pin::pin;
use std::task::Poll;

use futures_util::poll;
use testbed::{Behaviour, Proxy, Redis};
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};

use super::*;

fn runtime() -> Runtime {
    RuntimeBuilder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn settled_waits_for_the_acknowledgement_of_all_tiers() {
    let (well, ill) = (Fake::new("well"), Fake::new("ill"));
    let cache = Database::open().cache(well.clone()).tier(ill.clone()).build();
    ill.changes(Mood::Fails);
    let mut settled = pin!(cache.invalidate(&1));
    for _ in 0..100 {
        tokio::time::advance(ms(50)).await;
        settle().await;
        assert_eq!(
            poll!(settled.as_mut()),
            Poll::Pending,
            "not all tiers have acknowledged"
        );
    }
    assert_eq!(well.calls("delete").len(), 1);
    assert!(ill.calls("delete").len() > 1);
    ill.changes(Mood::Works);
    settled.await;
    assert_eq!(tier_stats(&cache).owed, 0);
}

#[tokio::test(start_paused = true)]
async fn settled_is_not_resolved_by_the_end_of_the_cache_either() {
    let tier = Fake::new("ill");
    let cache = Database::open().cache(tier.clone()).build();
    tier.keep(1, aged(Some(10), secs(1)));
    tier.changes(Mood::Fails);
    let mut settled = pin!(cache.invalidate(&1));
    drop(cache);
    for _ in 0..10 {
        tokio::time::advance(ms(50)).await;
        settle().await;
        assert_eq!(poll!(settled.as_mut()), Poll::Pending, "nobody has acknowledged it");
    }
    tier.changes(Mood::Works);
    settled.await;
    assert_eq!(tier.kept(1), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_owed_when_the_last_handle_goes_is_tried_once_more_and_all_is_let_go() {
    for works in [true, false] {
        let tier = Fake::new("tier");
        let cache = Database::open().cache(tier.clone()).build();
        tier.keep(1, aged(Some(10), secs(1)));
        tier.changes(Mood::Fails);
        drop(cache.invalidate(&1));
        settle().await;
        let tried = tier.calls("delete").len();
        if works {
            tier.changes(Mood::Works);
        }
        drop(cache);
        settle().await;
        assert_eq!((tier.calls("delete").len(), tier.kept(1).is_none()), (tried + 1, works));
        assert_eq!(tier.handles(), 1, "something still holds the tier");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_when_the_last_handle_goes_is_delivered() {
    let tier = Fake::new("tier");
    let cache = Database::open().cache(tier.clone()).build();
    drop(cache.insert(1, 10));
    drop(cache);
    settle().await;
    assert_eq!(tier.kept(1).unwrap().value, Some(10));
    assert_eq!(tier.handles(), 1);
}

#[test]
fn a_write_outside_of_any_runtime_is_made_up_for_by_the_next_reader() {
    let tier = Fake::new("tier");
    tier.keep(1, aged(Some(10), secs(1)));
    let database = Database::open().with(1, 11);
    let cache = database.cache(tier.clone()).build();
    drop(cache.invalidate(&1));
    assert_eq!(tier_stats(&cache).owed, 1);
    runtime().block_on(async {
        assert_eq!(value(&cache, 1).await, Some(11));
        settled(&cache).await;
    });
    assert_eq!(tier_stats(&cache).owed, 0);
}

#[test]
fn a_dropped_runtime_leaves_a_cache_that_the_next_one_uses() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let database = Database::open().with(1, 10).with(2, 20).with(3, 30);
    let tier = redis_tier(&format!("redis://{}/", proxy.address()));
    let cache = database.cache(tier).capacity(0).build();
    runtime().block_on(async {
        assert_eq!(value(&cache, 1).await, Some(10));
        settled(&cache).await;
    });
    // The connection's task is gone with the first; the second ends while a connection is being made, a read waits for an
    // answer, and a deletion is owed.
    runtime().block_on(async {
        proxy.set(Behaviour::Stall);
        proxy.cut();
        database.set(1, 11);
        drop(cache.invalidate(&1));
        let (reader, begun) = (cache.clone(), tier_stats(&cache).gets);
        tokio::spawn(async move { value(&reader, 2).await });
        until("the read is on its way", async || tier_stats(&cache).gets > begun).await;
    });
    proxy.set(Behaviour::Pass);
    runtime().block_on(async {
        assert_eq!((value(&cache, 1).await, value(&cache, 3).await), (Some(11), Some(30)));
        settled(&cache).await;
        until("the tier is used again", async || {
            let hits = tier_stats(&cache).hits;
            assert_eq!(value(&cache, 1).await, Some(11));
            tier_stats(&cache).hits > hits
        })
        .await;
    });
}

/// It is not over, and nobody drives it.
#[test]
fn a_connection_that_is_made_where_nothing_runs_any_more_is_made_anew() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let database = Database::open().with(1, 10).with(2, 20);
    let cache = database
        .cache(redis_tier(&format!("redis://{}/", proxy.address())))
        .capacity(0)
        .build();
    proxy.set(Behaviour::Stall);
    let first = runtime();
    first.block_on(async {
        let reader = cache.clone();
        tokio::spawn(async move { value(&reader, 1).await });
        until("it is being made", async || proxy.connections() > 0).await;
    });
    proxy.set(Behaviour::Pass);
    runtime().block_on(async {
        until("the tier is used", async || {
            let hits = tier_stats(&cache).hits;
            assert_eq!(value(&cache, 2).await, Some(20));
            tier_stats(&cache).hits > hits
        })
        .await;
    });
    drop(first);
}

/// The task that is to ask the tiers is dropped before it has run at all.
#[test]
fn a_flight_whose_runtime_ends_before_it_has_asked_the_tiers_ends_with_it() {
    let database = Database::open().with(1, 10);
    let cache = database.cache(Fake::new("tier")).build();
    runtime().block_on(async {
        assert!(poll!(pin!(cache.get(&1))).is_pending());
    });
    assert_eq!(cache.stats().in_flight, 0);
    runtime().block_on(async {
        let got = tokio::time::timeout(SOON, cache.get(&1)).await;
        assert_eq!(got.expect("it waits for a flight of before").unwrap(), Some(10));
    });
    // One that has shut down takes no task.
    let gone = runtime();
    let cache = database.cache(Fake::new("tier")).runtime(gone.handle().clone()).build();
    drop(gone);
    let got = runtime().block_on(async { tokio::time::timeout(SOON, cache.get(&1)).await });
    assert!(matches!(got.expect("it waits for ever"), Err(CacheError::Stopped)));
    assert_eq!(cache.stats().in_flight, 0);
}
