//! How many fetches run at a time and who goes first; how many flights there may be.

use super::*;
use forebay_cache::{Entry, Fetched, Source};

/// The keys fetched, one after the other, as one turn after the other is given back.
async fn one_by_one(database: &Database, fetches: usize) -> Vec<u64> {
    for _ in 0..fetches {
        database.let_through(1);
        settle().await;
    }
    database.fetched()
}

#[tokio::test(start_paused = true)]
async fn the_key_with_the_most_readers_goes_first_and_refreshes_last() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_fetches(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(100);
    database.0.permits.forget_permits(usize::MAX);
    database.0.fetched.lock().clear();
    let _holds_the_turn = begin_get(&cache, 9).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    let mut readers = Vec::new();
    for key in [2, 3, 4, 4, 5, 3, 4] {
        readers.push(begin_get(&cache, key).await);
    }
    assert_eq!(cache.stats().in_line, 5);
    assert_eq!(one_by_one(&database, 6).await, [9, 4, 3, 2, 5, 1]);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_line_takes_its_weight_with_it() {
    let database = Database::shut();
    let cache = lasting(&database).max_fetches(1).build();
    let _holds_the_turn = begin_get(&cache, 9).await;
    let _two = begin_get(&cache, 2).await;
    let three = [
        begin_get(&cache, 3).await,
        begin_get(&cache, 3).await,
        begin_get(&cache, 3).await,
    ];
    let _four = [begin_get(&cache, 4).await, begin_get(&cache, 4).await];
    three[0].abort();
    three[1].abort();
    settle().await;
    assert_eq!(one_by_one(&database, 4).await, [9, 4, 2, 3]);
}

/// Fetches the keys of a trip together: a permit for all.
struct Together(Database);

impl Source<u64> for Together {
    type Value = u64;
    type Error = String;

    const GATHERS: bool = true;

    async fn fetch(&self, key: u64) -> Result<Fetched<u64>, String> {
        self.fetch_many(vec![key]).await.remove(0)
    }

    async fn fetch_many(&self, keys: Vec<u64>) -> Vec<Result<Fetched<u64>, String>> {
        let rows = &self.0.0;
        rows.batches.lock().push(keys.clone());
        rows.permits.acquire().await.unwrap().forget();
        keys.into_iter().map(|key| Ok(Fetched::of(key))).collect()
    }
}

/// A database that lets nothing through yet, and a cache over it that fetches one trip after the other.
fn together() -> (Database, Tested) {
    let database = Database::shut();
    let cache = Cache::builder(Together(database.clone())).fresh_for(HOUR);
    (database, cache.max_fetches(1).build())
}

async fn begin_get_many(cache: &Tested, keys: impl IntoIterator<Item = u64>) -> JoinHandle<Vec<Outcome>> {
    let (cache, keys) = (cache.clone(), keys.into_iter().collect::<Vec<_>>());
    let get = tokio::spawn(async move { cache.get_many(keys).await });
    settle().await;
    assert!(!get.is_finished(), "it is to wait");
    get
}

/// The batches fetched, one after the other, each in the order of its keys.
async fn batches(database: &Database, fetches: usize) -> Vec<Vec<u64>> {
    one_by_one(database, fetches).await;
    let mut batches = database.batches();
    batches.iter_mut().for_each(|batch| batch.sort_unstable());
    batches
}

#[tokio::test(start_paused = true)]
async fn of_many_keys_in_line_nobody_fetches_those_that_all_have_left() {
    let (database, cache) = together();
    let _holds_the_turn = begin_get(&cache, 9).await;
    let all = begin_get_many(&cache, 20..40).await;
    let some = [
        begin_get_many(&cache, 21..24).await,
        begin_get_many(&cache, [23, 38]).await,
    ];
    let none = begin_get_many(&cache, 40..50).await;
    assert_eq!(cache.stats().in_line, 30, "keys, not trips");
    all.abort();
    none.abort();
    settle().await;
    assert_eq!((cache.stats().in_line, cache.stats().in_flight), (4, 5));
    assert_eq!(cache.stats().called_off, 26);
    some[0].abort();
    settle().await;
    let later = begin_get(&cache, 38).await;
    some[1].abort();
    settle().await;
    assert_eq!((cache.stats().in_line, cache.stats().in_flight), (1, 2));
    assert_eq!(batches(&database, 2).await, [vec![9], vec![38]]);
    later.await.unwrap().unwrap();
    assert_eq!((cache.stats().in_line, cache.stats().in_flight), (0, 0));
    assert_eq!(cache.stats().called_off, 29);
}

/// One reader of many keys is one reader.
#[tokio::test(start_paused = true)]
async fn many_keys_in_line_are_wanted_as_much_as_the_one_that_most_wait_for() {
    let (database, cache) = together();
    let _holds_the_turn = begin_get(&cache, 9).await;
    let mut readers = vec![begin_get_many(&cache, 100..200).await];
    readers.push(begin_get_many(&cache, 200..300).await);
    for key in [1, 1, 2] {
        readers.push(begin_get_many(&cache, [key]).await);
    }
    // Two for one of its keys, one for others; and two for another, who leave.
    readers.push(begin_get_many(&cache, [250, 251]).await);
    readers.push(begin_get_many(&cache, [251, 252]).await);
    let leave = [
        begin_get_many(&cache, 120..130).await,
        begin_get_many(&cache, 125..135).await,
    ];
    leave.iter().for_each(JoinHandle::abort);
    settle().await;
    let fetched = batches(&database, 5).await;
    assert_eq!(
        fetched,
        [vec![9], (200..300).collect(), vec![1], (100..200).collect(), vec![2]]
    );
    // In the line from the beginning, whoever comes and goes.
    for reader in readers {
        assert!(reader.await.unwrap().into_iter().all(|outcome| outcome.is_ok()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_somebody_joins_moves_up() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_fetches(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(199);
    database.0.permits.forget_permits(usize::MAX);
    database.0.fetched.lock().clear();
    let _holds_the_turn = begin_get(&cache, 9).await;
    cache.get(&1).await.unwrap();
    settle().await;
    let _two = begin_get(&cache, 2).await;
    // It expires in line, and two readers want it.
    ticks.turn(1);
    let readers = [begin_get(&cache, 1).await, begin_get(&cache, 1).await];
    assert_eq!(one_by_one(&database, 3).await, [9, 1, 2]);
    for reader in readers {
        assert_eq!(reader.await.unwrap().unwrap(), Some(10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_in_line_stays_there_when_all_who_joined_it_leave() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_fetches(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(199);
    database.0.permits.forget_permits(usize::MAX);
    let _holds_the_turn = begin_get(&cache, 9).await;
    cache.get(&1).await.unwrap();
    ticks.turn(1);
    begin_get(&cache, 1).await.abort();
    settle().await;
    let stats = cache.stats();
    assert_eq!((stats.in_line, stats.called_off), (1, 0));
    one_by_one(&database, 2).await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
}

#[tokio::test(start_paused = true)]
async fn never_more_fetches_run_than_may() {
    let database = Database::shut();
    let cache = lasting(&database).max_fetches(3).build();
    let readers: Vec<_> = (0..50).map(|key| spawn_get(&cache, key)).collect();
    settle().await;
    assert_eq!(database.fetches(), 3);
    assert_eq!((cache.stats().in_flight, cache.stats().in_line), (50, 47));
    for fetched in 4..=50 {
        database.let_through(1);
        settle().await;
        assert_eq!(database.fetches(), fetched, "a turn that is free is used");
    }
    database.let_through(3);
    for reader in readers {
        reader.await.unwrap().unwrap();
    }
    assert_eq!(database.most_running(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_given_back_however_its_fetch_ends() {
    let cache: Tested = Cache::builder(|key: u64| async move {
        match key % 3 {
            0 => std::future::pending().await,
            1 => Err("as asked".to_owned()),
            _ => Ok(Some(key)),
        }
    })
    .max_fetches(2)
    .fetch_timeout(ms(10))
    .build();
    for outcome in cache.get_many(0..30).await {
        assert!(!matches!(outcome, Err(CacheError::Stopped)));
    }
    let stats = cache.stats();
    assert_eq!(
        (stats.in_line, stats.in_flight, stats.failures, stats.timeouts),
        (0, 0, 20, 10)
    );
}

#[tokio::test(start_paused = true)]
async fn time_in_line_is_not_the_fetchs() {
    let database = Database::shut().with(2, 20);
    let cache = lasting(&database).max_fetches(1).fetch_timeout(ms(50)).build();
    let hanging = begin_get(&cache, 1).await;
    let waiting = begin_get(&cache, 2).await;
    tokio::time::advance(ms(51)).await;
    settle().await;
    assert!(matches!(hanging.await.unwrap(), Err(CacheError::TimedOut(_))));
    tokio::time::advance(ms(40)).await;
    settle().await;
    assert!(!waiting.is_finished(), "91 ms in all, 40 of its own");
    database.let_through(1);
    assert_eq!(waiting.await.unwrap().unwrap(), Some(20));
}

#[tokio::test(start_paused = true)]
async fn one_flight_too_many_is_refused_and_a_reader_may_still_join() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).max_flights(2).build();
    let flying = [begin_get(&cache, 1).await, begin_get(&cache, 2).await];
    assert!(matches!(cache.get(&3).await, Err(CacheError::Overloaded)));
    assert!(matches!(cache.refresh(&3).await, Err(CacheError::Overloaded)));
    let outcomes = cache.get_many([3, 4]).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Err(CacheError::Overloaded)))
    );
    let joined = begin_get(&cache, 1).await;
    let stats = cache.stats();
    assert_eq!((stats.flights, stats.in_flight), (2, 2));
    assert_eq!(
        (stats.misses, stats.joined),
        (6, 1),
        "a lookup that is refused is a miss as well"
    );
    database.let_through(3);
    for reader in flying.into_iter().chain([joined]) {
        reader.await.unwrap().unwrap();
    }
    assert_eq!(cache.get(&3).await.unwrap(), None, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn one_flight_too_many_is_rescued_by_an_expired_entry() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).stale_if_error_for(HOUR).max_flights(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(200);
    database.0.permits.forget_permits(usize::MAX);
    let _flying = begin_get(&cache, 2).await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Rescued, 200));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_for_which_there_is_no_flight_is_tried_by_the_next_stale_hit() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_flights(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(100);
    database.0.permits.forget_permits(usize::MAX);
    let flying = begin_get(&cache, 2).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    assert_eq!(cache.stats().refreshes, 0);
    database.let_through(2);
    flying.await.unwrap().unwrap();
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(10, State::Fresh, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_refused_changes_nothing() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_flights(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(100);
    database.0.permits.forget_permits(usize::MAX);
    database.set(1, 11);
    cache.get(&1).await.unwrap();
    settle().await;
    assert_eq!(cache.stats().in_flight, 1);
    assert!(matches!(cache.refresh(&1).await, Err(CacheError::Overloaded)));
    database.let_through(1);
    settle().await;
    assert_eq!(
        cache.get_if_fresh(&1),
        Some(Entry::Present(11)),
        "the flight that was in the air still lands"
    );
}

#[test]
fn limits_that_let_nothing_through_are_refused_where_they_are_set() {
    fn builder() -> CacheBuilder<u64, u64, String> {
        Cache::builder(|_: u64| async { Ok(None) })
    }
    let refused: [fn(); 6] = [
        || drop(builder().max_fetches(0)),
        || drop(builder().max_fetches_per_key(0)),
        || drop(builder().max_flights(0)),
        || drop(builder().jitter(1.1)),
        || drop(builder().jitter(f64::NAN)),
        || drop(builder().refresh_ahead(-0.1)),
    ];
    for set in refused {
        assert!(std::panic::catch_unwind(set).is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_many_keys_wait_for_one_another_and_not_for_strangers() {
    let database = Database::open();
    for key in 0..1_000 {
        database.set(key, key + 1);
    }
    let cache = lasting(&database).max_flights(7).max_fetches(3).build();
    let answers = cache.get_many(0..1_000).await;
    for (key, answer) in (0..).zip(answers) {
        assert_eq!(answer.unwrap(), Some(key + 1));
    }
    assert_eq!((cache.stats().in_flight, database.fetches()), (0, 1_000));
    // Where others have all flights there is nothing of one's own to wait for.
    let shut = Database::shut();
    let cache = lasting(&shut).max_flights(1).build();
    let other = begin_get(&cache, 1).await;
    assert!(
        cache
            .get_many([2, 3])
            .await
            .iter()
            .all(|answer| matches!(answer, Err(CacheError::Overloaded)))
    );
    shut.let_through(1);
    other.await.unwrap().unwrap();
}

/// Each look at whether there is room was a miss, and one of an expired entry was answered by it though the source was well.
#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_room_among_its_callers_own_is_one_lookup_and_is_fetched() {
    let (database, ticks) = (Database::open(), Ticks::new());
    let cache = timed(&database, &ticks).stale_if_error_for(HOUR).max_flights(7).build();
    for round in 1..=2 {
        (0..100).for_each(|key| database.set(key, key + round));
        let answers = cache.lookup_many(0..100).await;
        for (key, outcome) in (0..).zip(answers) {
            assert_eq!(outcome.unwrap(), answer(key + round, State::Fetched, 0));
        }
        let stats = cache.stats();
        assert_eq!(
            (stats.misses, stats.flights, stats.rescued),
            (100 * round, 100 * round, 0)
        );
        ticks.turn(200);
    }
}

/// Of those who come later it is overtaken by none.
#[tokio::test(start_paused = true)]
async fn a_refresh_in_line_that_a_single_reader_joins_is_not_the_last_any_more() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_fetches(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(199);
    database.0.permits.forget_permits(usize::MAX);
    database.0.fetched.lock().clear();
    let _holds_the_turn = begin_get(&cache, 9).await;
    cache.get(&1).await.unwrap();
    settle().await;
    let _two = begin_get(&cache, 2).await;
    ticks.turn(1);
    let reader = begin_get(&cache, 1).await;
    let _three = begin_get(&cache, 3).await;
    assert_eq!(one_by_one(&database, 4).await, [9, 1, 2, 3]);
    assert_eq!(reader.await.unwrap().unwrap(), Some(10));
}

/// Each who comes would be the first, and what they wait for be fetched never.
#[tokio::test(start_paused = true)]
async fn who_waits_no_longer_than_the_soft_timeout_leaves_his_place_in_line_to_those_who_come() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks)
        .stale_if_error_for(HOUR)
        .soft_timeout(ms(50))
        .max_fetches(1)
        .build();
    cache.get(&1).await.unwrap();
    ticks.turn(300);
    database.0.permits.forget_permits(usize::MAX);
    database.0.fetched.lock().clear();
    let _holds_the_turn = begin_get(&cache, 9).await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Rescued);
    let _two = begin_get(&cache, 2).await;
    assert_eq!(one_by_one(&database, 3).await, [9, 1, 2]);
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
}
