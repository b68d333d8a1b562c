//! Settings, clocks and sources at their limits and beyond.

use super::*;
use forebay_cache::Entry;

#[tokio::test(start_paused = true)]
async fn a_cache_of_no_capacity_keeps_nothing_and_shares_flights() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).capacity(0).weigher(|_, _| 0).build();
    let readers = [begin_get(&cache, 1).await, begin_get(&cache, 1).await];
    database.let_through(1);
    for reader in readers {
        assert_eq!(reader.await.unwrap().unwrap(), Some(10));
    }
    assert_eq!(database.fetches(), 1);
    drop(cache.insert(1, 7));
    drop(cache.insert_missing(2));
    assert_eq!((cache.get_if_fresh(&1), cache.stats().entries), (None, 0));
    database.let_through(1);
    assert_eq!(cache.get(&1).await.unwrap(), Some(10));
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_one_entry_keeps_one() {
    let database = Database::open();
    let cache = lasting(&database).capacity(1).build();
    for key in 0..100 {
        cache.get(&key).await.unwrap();
        drop(cache.insert(1_000 + key, key));
        assert_eq!(cache.stats().entries, 1);
        let kept = (0..2_000).filter(|key| cache.get_if_fresh(key).is_some()).count();
        assert_eq!(kept, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn with_zero_windows_flights_are_shared_and_nothing_is_served_again() {
    let database = Database::open().with(1, 10);
    let cache = Cache::builder(database.source()).fresh_for(ms(0)).build();
    for fetched in 1..10 {
        assert_eq!(cache.lookup(&1).await.unwrap().state, State::Fetched);
        assert_eq!(cache.get_if_fresh(&1), None);
        assert_eq!(database.fetches(), fetched);
    }
    drop(cache.insert(1, 7));
    assert_eq!(cache.get(&1).await.unwrap(), Some(10));
}

#[tokio::test(start_paused = true)]
async fn windows_and_timeouts_may_be_for_ever() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = Cache::builder(database.source())
        .clock(ticks.clock())
        .fresh_for(Duration::MAX)
        .stale_for(Duration::MAX)
        .stale_if_error_for(Duration::MAX)
        .soft_timeout(Duration::MAX)
        .fetch_timeout(Duration::MAX)
        .retry_after(Duration::MAX, Duration::MAX)
        .hot_keys(10, Duration::MAX)
        .jitter(0.5)
        .build();
    cache.get(&1).await.unwrap();
    ticks.turn(1 << 46);
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
    drop(cache.mark_stale(&1));
    database.fail(true);
    for _ in 0..3 {
        assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
        settle().await;
    }
    assert_eq!(database.fetches(), 2, "it backs off for ever");
    // Stale for ever, and fresh never.
    let cache = Cache::builder(database.source())
        .clock(ticks.clock())
        .fresh_for(ms(0))
        .stale_for(Duration::MAX)
        .build();
    drop(cache.insert(1, 7));
    ticks.turn(1 << 46);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
}

#[tokio::test(start_paused = true)]
async fn a_value_heavier_than_the_cache_is_not_kept_and_what_it_replaces_goes() {
    let database = Database::open().with(1, 5);
    let cache = lasting(&database)
        .capacity(100)
        .weigher(|_, value| value.copied().unwrap_or(1) as u32)
        .build();
    cache.get(&1).await.unwrap();
    drop(cache.insert(2, 50));
    database.set(1, 101);
    assert_eq!(cache.refresh(&1).await.unwrap(), Some(101));
    assert_eq!(cache.get_if_fresh(&1), None, "the old value is not the value any more");
    drop(cache.insert(2, u64::from(u32::MAX)));
    assert_eq!(cache.get_if_fresh(&2), None);
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.weight, stats.too_heavy), (0, 0, 2));
    drop(cache.insert(3, 100));
    assert_eq!(cache.get_if_fresh(&3), Some(Entry::Present(100)), "just as heavy");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_steps_back_keeps_no_entry_for_longer_and_nobody_hangs() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).retry_after(ms(10), ms(10)).build();
    ticks.turn(500);
    cache.get(&1).await.unwrap();
    ticks.turn(40);
    ticks.turn_back(400);
    assert_eq!(
        cache.lookup(&1).await.unwrap(),
        answer(10, State::Fresh, 0),
        "40 ms that were not seen"
    );
    ticks.turn(59);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 59));
    ticks.turn_back(59);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 59));
    // Back-off goes on as time does.
    ticks.turn(41);
    database.fail(true);
    cache.get(&1).await.unwrap();
    settle().await;
    database.fail(false);
    ticks.turn_back(500_000);
    drop(cache.mark_stale(&1));
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    assert_eq!(database.fetches(), 3);
    for step in 0..200_u64 {
        if step % 3 == 0 {
            ticks.turn_back(step * 37 % 450);
        } else {
            ticks.turn(step * 41 % 300);
        }
        assert_eq!(cache.get(&1).await.unwrap(), Some(10));
        settle().await;
    }
    assert_eq!(cache.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_failed_in_what_is_now_the_future_does_not_hold_back_for_longer_than_the_back_off() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks)
        .fresh_for(ms(0))
        .stale_for(HOUR)
        .fetch_timeout(ms(50))
        .retry_after(ms(100), ms(100))
        .build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    ticks.turn(200_000);
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(database.fetches(), 2);
    ticks.turn_back(150_000);
    for (further, fetches) in [(0, 2), (99, 2), (1, 3)] {
        ticks.turn(further);
        cache.get(&1).await.unwrap();
        settle().await;
        assert_eq!(
            database.fetches(),
            fetches,
            "150 s of waiting are not due to a back-off of 100 ms"
        );
    }
}
