//! A source that fails: typed errors, values that rescue, and a back-off so that it is not hammered.

use super::*;

/// A cache over it whose entries expire at once after 100 ms, and rescue for a minute after; all time is tokio's.
fn rescuing(database: &Database) -> CacheBuilder<u64, u64, String> {
    Cache::builder(database.source())
        .clock(tokio_clock())
        .fresh_for(ms(100))
        .stale_if_error_for(Duration::from_secs(60))
        .retry_after(ms(100), ms(1_000))
}

#[tokio::test(start_paused = true)]
async fn the_sources_own_error_reaches_all_who_waited_and_nobody_else() {
    let database = Database::shut().with(1, 10);
    database.fail(true);
    let cache = lasting(&database).build();
    let readers: Vec<_> = (0..10).map(|_| spawn_get(&cache, 1)).collect();
    settle().await;
    database.fail(false);
    database.let_through(2);
    for reader in readers {
        let outcome = reader.await.unwrap();
        assert!(is_source_error(&outcome));
        assert_eq!(outcome.unwrap_err().source_error().unwrap(), "as asked");
    }
    assert_eq!(cache.get(&1).await.unwrap(), Some(10));
    assert_eq!(cache.stats().failures, 1);
}

/// Not to be cloned.
#[derive(Debug, PartialEq)]
struct Own(u32);

/// Often, so that whoever landed the flight is met while it still holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_waited_alone_gets_the_sources_error_itself() {
    let cache = Cache::new(|key: u32| async move { Err::<Option<u32>, Own>(Own(key)) });
    for key in 0..5_000 {
        let error = cache.get(&key).await.unwrap_err();
        assert_eq!(error.into_source_error().ok(), Some(Own(key)));
    }
}

#[tokio::test]
async fn of_those_who_waited_together_the_last_gets_it() {
    let cache = Cache::new(|key: u32| async move {
        yield_now().await;
        Err::<Option<u32>, Own>(Own(key))
    });
    let (one, other) = tokio::join!(cache.get(&1), cache.get(&1));
    assert_eq!(cache.stats().failures, 1);
    let one = one.unwrap_err().into_source_error().unwrap_err();
    assert_eq!(one.source_error(), Some(&Own(1)));
    drop(one);
    assert_eq!(other.unwrap_err().into_source_error().ok(), Some(Own(1)));

    let overloaded = CacheError::<Own>::Overloaded.into_source_error();
    assert!(matches!(overloaded, Err(CacheError::Overloaded)));
}

#[tokio::test(start_paused = true)]
async fn an_expired_entry_rescues_up_to_its_limit() {
    for (age_ms, rescued) in [(100, true), (60_099, true), (60_100, false)] {
        let database = Database::open().with(1, 10);
        let cache = rescuing(&database).build();
        cache.get(&1).await.unwrap();
        database.fail(true);
        tokio::time::advance(ms(age_ms)).await;
        let outcome = cache.lookup(&1).await;
        if rescued {
            assert_eq!(outcome.unwrap(), answer(10, State::Rescued, age_ms));
        } else {
            assert!(is_source_error(&outcome));
        }
        assert_eq!(cache.stats().rescued, u64::from(rescued));
        assert_eq!(database.fetches(), 2, "the source was asked first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_entry_rescues_too_as_missing() {
    let database = Database::open();
    let cache = rescuing(&database).build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    tokio::time::advance(ms(150)).await;
    assert_eq!(cache.lookup(&1).await.unwrap(), missing(State::Rescued, 150));
}

/// Asks every 10 ms for as long as that, and says when the source was asked: ms since the beginning.
async fn attempts(cache: &Tested, database: &Database, every_ms: u64, until_ms: u64) -> Vec<u64> {
    let mut attempts = Vec::new();
    for at_ms in (0..until_ms).step_by(every_ms as usize) {
        let before = database.fetches();
        assert_eq!(cache.get(&1).await.unwrap(), Some(10));
        settle().await;
        if database.fetches() > before {
            attempts.push(at_ms);
        }
        tokio::time::advance(ms(every_ms)).await;
    }
    attempts
}

#[tokio::test(start_paused = true)]
async fn after_failed_refreshes_a_stale_key_is_tried_again_after_a_back_off_that_doubles() {
    let database = Database::open().with(1, 10);
    let cache = rescuing(&database).stale_for(HOUR).build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    tokio::time::advance(ms(100)).await;
    let asked = attempts(&cache, &database, 10, 4_000).await;
    assert_eq!(asked, [0, 100, 300, 700, 1_500, 2_500, 3_500]);
    // It comes back: the next attempt succeeds, and the next failure begins anew.
    database.fail(false);
    tokio::time::advance(ms(1_000)).await;
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 0));
    database.fail(true);
    tokio::time::advance(ms(100)).await;
    assert_eq!(attempts(&cache, &database, 10, 320).await, [0, 100, 300]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_entry_that_rescues_is_served_between_attempts_without_asking() {
    let database = Database::open().with(1, 10);
    let cache = rescuing(&database).build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    tokio::time::advance(ms(100)).await;
    let asked = attempts(&cache, &database, 10, 1_600).await;
    assert_eq!(asked, [0, 100, 300, 700, 1_500]);
    assert_eq!(cache.stats().rescued, 160, "all of them");
}

#[tokio::test(start_paused = true)]
async fn a_key_of_which_nothing_is_known_is_asked_for_whenever_somebody_wants_it() {
    let database = Database::open();
    database.fail(true);
    let cache = rescuing(&database).build();
    for _ in 0..5 {
        assert!(is_source_error(&cache.get(&1).await));
    }
    assert_eq!(database.fetches(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_for_thirty_seconds_is_ridden_out_and_heard_when_it_is_back() {
    let database = Database::open().with(1, 10);
    let cache = rescuing(&database).build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    tokio::time::advance(ms(100)).await;
    let asked = attempts(&cache, &database, 50, 30_000).await;
    assert!(asked.len() <= 34, "{} attempts in 30 s: it is hammered", asked.len());
    database.fail(false);
    database.set(1, 11);
    // The longest back-off later at the latest.
    tokio::time::advance(ms(1_000)).await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(11, State::Fetched, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failure_leaves_a_stale_entry_and_its_age_as_they_were() {
    let database = Database::open().with(1, 10);
    let cache = rescuing(&database).stale_for(ms(100)).build();
    cache.get(&1).await.unwrap();
    database.fail(true);
    tokio::time::advance(ms(150)).await;
    for _ in 0..3 {
        assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Stale, 150));
        settle().await;
    }
    tokio::time::advance(ms(50)).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Rescued);
}

#[tokio::test(start_paused = true)]
async fn what_failed_before_it_was_written_does_not_hold_back_what_comes_after() {
    let database = Database::open().with(1, 10);
    let cache = rescuing(&database).stale_for(HOUR).retry_after(HOUR, HOUR).build();
    for forgive in [0, 1] {
        cache.refresh(&1).await.unwrap();
        database.fail(true);
        tokio::time::advance(ms(100)).await;
        cache.get(&1).await.unwrap();
        settle().await;
        database.fail(false);
        match forgive {
            0 => drop(cache.insert(1, 12)),
            _ => drop(cache.mark_stale(&1)),
        }
        tokio::time::advance(ms(100)).await;
        let before = database.fetches();
        assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
        settle().await;
        assert_eq!(database.fetches(), before + 1);
        assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn who_waited_for_a_flight_that_failed_gets_what_was_written_meanwhile_as_what_it_is() {
    let database = Database::shut();
    database.fail(true);
    let cache = rescuing(&database).build();
    let reader = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.lookup(&1).await })
    };
    settle().await;
    drop(cache.insert(1, 7));
    database.let_through(1);
    assert_eq!(reader.await.unwrap().unwrap(), answer(7, State::Fresh, 0));
    assert_eq!(cache.stats().rescued, 0);
}
