//! Soft, hard and own timeouts, by tokio's stopped clock.

use tokio::time::Instant;

use super::*;
use forebay_cache::Entry;

/// Entries expire after 100 ms and rescue for an hour; a reader who could be rescued waits 20 ms, a fetch runs for 50 ms.
fn impatient(database: &Database) -> CacheBuilder<u64, u64, String> {
    Cache::builder(database.source())
        .clock(tokio_clock())
        .fresh_for(ms(100))
        .stale_if_error_for(HOUR)
        .soft_timeout(ms(20))
        .fetch_timeout(ms(50))
}

/// With the keys 1 to `keys` in it, expired; all fetches from now on wait.
async fn expired(
    keys: u64,
    build: impl FnOnce(CacheBuilder<u64, u64, String>) -> CacheBuilder<u64, u64, String>,
) -> (Database, Tested) {
    let database = Database::open();
    let cache = build(impatient(&database)).build();
    for key in 1..=keys {
        database.set(key, key * 10);
        cache.get(&key).await.unwrap();
        database.set(key, key * 10 + 1);
    }
    database.0.permits.forget_permits(usize::MAX);
    database.0.fetched.lock().clear();
    tokio::time::advance(ms(100)).await;
    (database, cache)
}

#[tokio::test(start_paused = true)]
async fn the_soft_timeout_rescues_and_the_flight_goes_on_and_lands() {
    let (database, cache) = expired(1, |builder| builder).await;
    let began = Instant::now();
    let answered = cache.lookup(&1).await.unwrap();
    assert_eq!(began.elapsed(), ms(20));
    assert_eq!(answered, answer(10, State::Rescued, 120));
    assert_eq!(cache.stats().in_flight, 1);
    // The next one joins it.
    let began = Instant::now();
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Rescued);
    assert_eq!(began.elapsed(), ms(20));
    database.let_through(1);
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
    assert_eq!(database.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_soft_timeout_is_not_waited_for_where_the_flight_lands_before() {
    let (database, cache) = expired(1, |builder| builder).await;
    let reader = begin_get(&cache, 1).await;
    tokio::time::advance(ms(19)).await;
    database.let_through(1);
    assert_eq!(reader.await.unwrap().unwrap(), Some(11));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_could_rescue_the_soft_timeout_is_none() {
    let (_, cache) = expired(0, |builder| builder).await;
    let began = Instant::now();
    assert!(matches!(cache.get(&1).await, Err(CacheError::TimedOut(limit)) if limit == ms(50)));
    assert_eq!(began.elapsed(), ms(50));
}

#[tokio::test(start_paused = true)]
async fn many_keys_wait_one_soft_timeout_together() {
    let (_, cache) = expired(10, |builder| builder).await;
    let began = Instant::now();
    for (key, outcome) in (1..).zip(cache.get_many(1..=10).await) {
        assert_eq!(outcome.unwrap(), Some(key * 10));
    }
    assert_eq!(began.elapsed(), ms(20));
}

#[tokio::test(start_paused = true)]
async fn a_flight_in_line_goes_on_when_the_soft_timeout_has_rescued_its_last_reader() {
    let (database, cache) = expired(1, |builder| builder.max_fetches(1).no_fetch_timeout()).await;
    let other = begin_get(&cache, 99).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Rescued);
    let stats = cache.stats();
    assert_eq!((stats.in_line, stats.called_off), (1, 0));
    database.let_through(2);
    other.await.unwrap().unwrap();
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)), "it has landed");
}

#[tokio::test(start_paused = true)]
async fn the_hard_timeout_drops_the_fetch_and_is_an_error_to_all_who_wait() {
    let database = Database::shut().with(1, 10);
    let cache = impatient(&database).build();
    let began = Instant::now();
    let readers: Vec<_> = (0..10).map(|_| spawn_get(&cache, 1)).collect();
    for reader in readers {
        assert!(matches!(reader.await.unwrap(), Err(CacheError::TimedOut(limit)) if limit == ms(50)));
    }
    assert_eq!(began.elapsed(), ms(50));
    let stats = cache.stats();
    assert_eq!((stats.timeouts, stats.failures, stats.in_flight), (1, 1, 0));
    assert_eq!(database.0.running.load(SeqCst), 0, "it is dropped");
    database.let_through(1);
    assert_eq!(cache.get(&1).await.unwrap(), Some(10), "and remembered for nobody");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_hangs_nobody_with_the_default_timeout() {
    let cache = Cache::builder(|_: u64| std::future::pending::<Result<Option<u64>, String>>()).build();
    let began = Instant::now();
    assert!(matches!(cache.get(&1).await, Err(CacheError::TimedOut(_))));
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_refresh_times_out_and_the_stale_entry_backs_off() {
    let (database, cache) = expired(1, |builder| builder.stale_for(HOUR).retry_after(ms(10), ms(10))).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    tokio::time::advance(ms(51)).await;
    settle().await;
    assert_eq!((cache.stats().timeouts, database.fetches()), (1, 1));
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(database.fetches(), 1, "it backs off");
    tokio::time::advance(ms(10)).await;
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(database.fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_no_longer_than_it_is_willing_to_and_the_flight_goes_on() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let began = Instant::now();
    let outcome = cache.get_within(&1, ms(5)).await;
    assert!(matches!(outcome, Err(CacheError::WaitedTooLong(limit)) if limit == ms(5)));
    assert_eq!(began.elapsed(), ms(5));
    database.let_through(1);
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
    assert_eq!(cache.get_within(&1, ms(0)).await.unwrap(), Some(10));
    // No limit at all is a limit too.
    drop(cache.invalidate(&1));
    database.let_through(1);
    assert_eq!(cache.get_within(&1, Duration::MAX).await.unwrap(), Some(10));
}

#[tokio::test(start_paused = true)]
async fn who_waited_too_long_is_rescued_if_anything_can() {
    let (_, cache) = expired(1, |builder| builder).await;
    assert_eq!(cache.get_within(&1, ms(5)).await.unwrap(), Some(10));
    assert_eq!(cache.stats().rescued, 1);
}

#[tokio::test(start_paused = true)]
async fn one_readers_limit_is_no_others() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let patient = begin_get(&cache, 1).await;
    assert!(cache.get_within(&1, ms(5)).await.is_err());
    assert!(!patient.is_finished());
    database.let_through(1);
    assert_eq!(patient.await.unwrap().unwrap(), Some(10));
}
