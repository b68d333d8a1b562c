//! Fresh, stale and expired, to the millisecond; what moves these borders and what does not.

use forebay_cache::{Entry, Staleness};

use super::*;

/// A cache with that key in it, fetched when the ticks were at their beginning; the source has other values now.
async fn filled(
    build: impl FnOnce(CacheBuilder<u64, u64, String>) -> CacheBuilder<u64, u64, String>,
) -> (Database, Ticks, Tested) {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = build(timed(&database, &ticks)).build();
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fetched, 0));
    assert_eq!(cache.lookup(&2).await.unwrap(), missing(State::Fetched, 0));
    database.set(1, 11);
    database.set(2, 21);
    (database, ticks, cache)
}

#[tokio::test(start_paused = true)]
async fn a_value_is_fresh_then_stale_then_expired_to_the_millisecond() {
    for (age, expected) in [
        (0, answer(10, State::Fresh, 0)),
        (99, answer(10, State::Fresh, 99)),
        (100, answer(10, State::Stale, 100)),
        (199, answer(10, State::Stale, 199)),
        (200, answer(11, State::Fetched, 0)),
    ] {
        let (database, ticks, cache) = filled(|builder| builder).await;
        ticks.turn(age);
        assert_eq!(cache.get_if_fresh(&1).is_some(), age < 100, "{age} ms");
        let fresh = (age < 100).then(|| answer(10, State::Fresh, age));
        assert_eq!(cache.lookup_if_fresh(&1), fresh, "{age} ms");
        assert_eq!(cache.lookup(&1).await.unwrap(), expected, "{age} ms");
        settle().await;
        assert_eq!(database.fetches() == 3, age >= 100, "{age} ms: a stale hit refreshes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_entry_has_windows_of_its_own() {
    for (age, expected) in [
        (9, missing(State::Fresh, 9)),
        (10, missing(State::Stale, 10)),
        (19, missing(State::Stale, 19)),
        (20, answer(21, State::Fetched, 0)),
    ] {
        let (_, ticks, cache) = filled(|builder| builder).await;
        ticks.turn(age);
        assert_eq!(cache.lookup(&2).await.unwrap(), expected, "{age} ms");
    }
    // By default those of values.
    let (database, ticks) = (Database::open(), Ticks::new());
    let cache = Cache::builder(database.source())
        .clock(ticks.clock())
        .fresh_for(ms(50))
        .stale_for(ms(5))
        .build();
    cache.get(&1).await.unwrap();
    ticks.turn(49);
    assert_eq!(cache.lookup(&1).await.unwrap(), missing(State::Fresh, 49));
    ticks.turn(5);
    assert_eq!(cache.lookup(&1).await.unwrap(), missing(State::Stale, 54));
}

#[tokio::test(start_paused = true)]
async fn age_counts_from_the_beginning_of_the_fetch() {
    let (database, ticks) = (Database::shut().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).build();
    let reader = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.lookup(&1).await })
    };
    settle().await;
    ticks.turn(60);
    database.let_through(1);
    assert_eq!(reader.await.unwrap().unwrap(), answer(10, State::Fetched, 60));
    ticks.turn(39);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 99));
    ticks.turn(1);
    assert_eq!(cache.get_if_fresh(&1), None);
}

#[tokio::test(start_paused = true)]
async fn jitter_only_shortens_the_fresh_window_and_spreads_its_ends() {
    let ticks = Ticks::new();
    let cache = Cache::builder(|key: u64| async move { Ok::<_, String>(Some(key)) })
        .clock(ticks.clock())
        .fresh_for(ms(1_000))
        .stale_for(ms(1_000))
        .jitter(0.25)
        .build();
    let fresh = || (0..1_000_u64).filter(|key| cache.get_if_fresh(key).is_some()).count();
    for key in 0..1_000_u64 {
        drop(cache.insert(key, key));
    }
    ticks.turn(749);
    assert_eq!(fresh(), 1_000, "no more than the asked part is taken off");
    let mut before = 1_000;
    for quarter in 1..=4 {
        ticks.turn(if quarter == 4 { 64 } else { 63 });
        let now = fresh();
        let ended = before - now;
        assert!((150..350).contains(&ended), "{ended} ended in quarter {quarter}");
        before = now;
    }
    assert_eq!(before, 0, "nothing is fresh for longer than the window");
    // The end of the stale window is where it was.
    ticks.turn(1_999 - 749 - 63 * 3 - 64);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_ones_own_replaces_age() {
    let rule = |value: Option<&u64>, age: Duration| match value {
        Some(10) if age < ms(1_000) => Staleness::Fresh,
        Some(10) => Staleness::Expired,
        Some(_) => Staleness::Stale,
        None => Staleness::Expired,
    };
    let (database, ticks, cache) = filled(|builder| builder.staleness(rule)).await;
    ticks.turn(999);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 999));
    assert_eq!(
        cache.lookup(&2).await.unwrap(),
        answer(21, State::Fetched, 0),
        "missing is always expired"
    );
    ticks.turn(1);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Fetched, 0));
    database.set(1, 12);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Stale, 0));
    settle().await;
    assert_eq!(
        cache.lookup(&1).await.unwrap(),
        answer(12, State::Stale, 0),
        "a stale hit refreshes"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_marked_stale_is_served_once_more_and_refreshed() {
    let (database, ticks, cache) = filled(|builder| builder).await;
    ticks.turn(20);
    drop(cache.mark_stale(&1));
    assert_eq!(cache.get_if_fresh(&1), None);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Stale, 20));
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Fresh, 0));
    assert_eq!(database.fetched(), [1, 2, 1]);
    // What had expired does not come back by it, and what is not there is nothing.
    ticks.turn(200);
    drop(cache.mark_stale(&1));
    drop(cache.mark_stale(&77));
    database.set(1, 12);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(12, State::Fetched, 0));
    assert_eq!(cache.stats().entries, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_marked_stale_while_no_stale_window_was_asked_for_is_served_until_it_would_have_expired() {
    let (_, ticks, cache) = filled(|builder| builder.stale_for(ms(0))).await;
    drop(cache.mark_stale(&1));
    ticks.turn(99);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Stale, 99));
}

#[tokio::test(start_paused = true)]
async fn a_stale_hit_does_not_wait_and_ten_thousand_of_them_begin_one_fetch() {
    let (database, ticks, cache) = filled(|builder| builder).await;
    database.0.permits.forget_permits(usize::MAX);
    ticks.turn(100);
    for _ in 0..10_000 {
        assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Stale, 100));
    }
    settle().await;
    assert_eq!(database.fetched(), [1, 2, 1]);
    let stats = cache.stats();
    assert_eq!((stats.hits_stale, stats.refreshes, stats.in_flight), (10_000, 1, 1));
    database.let_through(1);
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Fresh, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hit_late_in_the_fresh_window_refreshes_ahead_by_one_flight() {
    let (database, ticks, cache) = filled(|builder| builder.refresh_ahead(0.75)).await;
    database.0.permits.forget_permits(usize::MAX);
    ticks.turn(74);
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(database.fetches(), 2, "not yet");
    ticks.turn(1);
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
    settle().await;
    assert_eq!(database.fetches(), 2, "get_if_fresh begins nothing");
    for _ in 0..1_000 {
        assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 75));
    }
    settle().await;
    assert_eq!(database.fetches(), 3);
    database.let_through(1);
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Fresh, 0));
    let stats = cache.stats();
    assert_eq!((stats.hits_stale, stats.refreshes), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_replaces_what_is_known_by_a_fetch_that_begins_now() {
    let (database, _, cache) = filled(|builder| builder).await;
    assert_eq!(cache.refresh(&1).await.unwrap(), Some(11));
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
    database.fail(true);
    assert!(is_source_error(&cache.refresh(&1).await));
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)), "what is known stays");
    database.fail(false);
    database.remove(1);
    assert_eq!(cache.refresh(&1).await.unwrap(), None);
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Missing));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_joins_no_older_flight_and_what_that_brings_is_not_kept() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let before = begin_get(&cache, 1).await;
    database.set(1, 11);
    let refresh = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.refresh(&1).await })
    };
    settle().await;
    assert_eq!(database.fetches(), 2);
    database.let_through(2);
    assert_eq!(before.await.unwrap().unwrap(), Some(10));
    assert_eq!(refresh.await.unwrap().unwrap(), Some(11));
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_call_the_cache() {
    let own: Arc<std::sync::OnceLock<Tested>> = Arc::default();
    let of_rule = Arc::clone(&own);
    let database = Database::open().with(1, 10);
    let cache = lasting(&database)
        .capacity(8)
        .staleness(move |value, _| {
            let cache = of_rule.get().unwrap();
            // Of the values from 10 on it asks about the one below.
            match value {
                Some(value) if *value >= 10 => {
                    for key in 100..200 {
                        drop(cache.insert(key, value - 10));
                    }
                    cache
                        .get_if_fresh(&199)
                        .map_or(Staleness::Expired, |_| Staleness::Fresh)
                }
                _ => Staleness::Fresh,
            }
        })
        .build();
    assert!(own.set(cache.clone()).is_ok());
    cache.get(&1).await.unwrap();
    for _ in 0..3 {
        drop(cache.insert(1, 10));
        assert_eq!(cache.lookup(&1).await.unwrap().state, State::Fresh);
    }
    assert!(cache.stats().entries <= 8);
}
