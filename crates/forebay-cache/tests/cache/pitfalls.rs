//! The traps that caches fall into, one test each, named after the trap.

use forebay_cache::{Entry, Fetched, Source};

use super::*;

/// A flight that has read the old row, and then: the write, and what the application tells the cache of it.
async fn outrun(tell: impl FnOnce(&Tested)) -> (Database, Tested) {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let reader = begin_get(&cache, 1).await;
    database.set(1, 11);
    tell(&cache);
    database.let_through(1);
    assert_eq!(
        reader.await.unwrap().unwrap(),
        Some(10),
        "who came before the write may have the old value"
    );
    assert_eq!(cache.stats().late_dropped, 1);
    (database, cache)
}

#[tokio::test(start_paused = true)]
async fn a_fill_older_than_an_invalidation_is_not_kept() {
    let (database, cache) = outrun(|cache| drop(cache.invalidate(&1))).await;
    assert_eq!(cache.get_if_fresh(&1), None);
    database.let_through(1);
    assert_eq!(cache.get(&1).await.unwrap(), Some(11));
}

#[tokio::test(start_paused = true)]
async fn a_fill_older_than_an_insert_is_not_kept() {
    let (_, cache) = outrun(|cache| drop(cache.insert(1, 11))).await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
    let (_, cache) = outrun(|cache| drop(cache.insert_missing(1))).await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Missing));
}

#[tokio::test(start_paused = true)]
async fn a_fill_older_than_a_mark_is_not_kept() {
    let (_, cache) = outrun(|cache| drop(cache.mark_stale(&1))).await;
    assert_eq!(cache.stats().entries, 0);
}

#[tokio::test(start_paused = true)]
async fn who_comes_after_an_invalidation_does_not_join_the_flight_from_before() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let before = begin_get(&cache, 1).await;
    database.set(1, 11);
    drop(cache.invalidate(&1));
    let after = begin_get(&cache, 1).await;
    assert_eq!(database.fetches(), 2);
    database.let_through(2);
    assert_eq!(before.await.unwrap().unwrap(), Some(10));
    assert_eq!(after.await.unwrap().unwrap(), Some(11));
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
}

#[tokio::test(start_paused = true)]
async fn a_late_missing_does_not_delete_a_value_just_written() {
    let database = Database::shut();
    let cache = lasting(&database).build();
    let reader = begin_get(&cache, 1).await;
    drop(cache.insert(1, 7));
    database.let_through(1);
    assert_eq!(reader.await.unwrap().unwrap(), None);
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(7)));
}

#[tokio::test(start_paused = true)]
async fn nothing_old_is_brought_back_after_clear() {
    let (database, ticks) = (Database::open(), Ticks::new());
    let cache = timed(&database, &ticks).build();
    for key in 0..50 {
        database.set(key, key);
        cache.get(&key).await.unwrap();
    }
    ticks.turn(150);
    // From now on all fetches wait: refreshes in the background and misses.
    database.0.permits.forget_permits(usize::MAX);
    for key in 0..50 {
        assert_eq!(cache.get(&key).await.unwrap(), Some(key));
    }
    let miss = begin_get(&cache, 99).await;
    assert_eq!(cache.stats().in_flight, 51);
    drop(cache.clear());
    assert_eq!(cache.stats().entries, 0);
    database.let_through(51);
    miss.await.unwrap().unwrap();
    settle().await;
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.in_flight, stats.late_dropped), (0, 0, 51));
}

#[tokio::test(start_paused = true)]
async fn the_first_callers_cancellation_is_not_taken_for_all() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let leader = begin_get(&cache, 1).await;
    let others: Vec<_> = (0..5).map(|_| spawn_get(&cache, 1)).collect();
    settle().await;
    leader.abort();
    settle().await;
    database.let_through(1);
    for other in others {
        assert_eq!(other.await.unwrap().unwrap(), Some(10));
    }
    assert_eq!(database.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn errors_are_remembered_for_nobody() {
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).build();
    for _ in 0..3 {
        database.fail(true);
        assert!(is_source_error(&cache.get(&1).await));
        assert!(is_source_error(&cache.get(&1).await));
        assert_eq!(cache.stats().entries, 0);
        database.fail(false);
        assert_eq!(cache.get(&1).await.unwrap(), Some(10), "not a moment later");
        drop(cache.invalidate(&1));
    }
    assert_eq!(database.fetches(), 9);
}

#[tokio::test(start_paused = true)]
async fn no_entry_lives_for_ever_however_often_it_is_used() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).stale_for(ms(0)).build();
    cache.get(&1).await.unwrap();
    database.set(1, 11);
    for _ in 0..99 {
        ticks.turn(1);
        assert_eq!(cache.get(&1).await.unwrap(), Some(10));
    }
    ticks.turn(1);
    assert_eq!(cache.get(&1).await.unwrap(), Some(11));
    // What was inserted ages too.
    drop(cache.insert(1, 12));
    ticks.turn(100);
    assert_eq!(cache.get(&1).await.unwrap(), Some(11));
}

#[tokio::test(start_paused = true)]
async fn a_key_flips_between_missing_and_present_and_is_one_entry() {
    let (database, ticks) = (Database::open(), Ticks::new());
    let cache = timed(&database, &ticks).build();
    for round in 0..20 {
        let value = (round % 2 == 1).then_some(round);
        match value {
            Some(value) => database.set(1, value),
            None => database.remove(1),
        }
        if round % 4 < 2 {
            ticks.turn(500);
            assert_eq!(cache.get(&1).await.unwrap(), value, "expired");
        } else {
            ticks.turn(12 + 100 * (round % 2));
            drop(cache.mark_stale(&1));
            cache.refresh(&1).await.unwrap();
        }
        assert_eq!(cache.get_if_fresh(&1), Some(value.into()));
        assert_eq!(cache.stats().entries, 1);
        drop(cache.insert_missing(1));
        assert_eq!(
            (cache.get_if_fresh(&1), cache.stats().entries),
            (Some(Entry::Missing), 1)
        );
        drop(cache.insert(1, 7));
        assert_eq!(
            (cache.get_if_fresh(&1), cache.stats().entries),
            (Some(Entry::Present(7)), 1)
        );
    }
}

/// Wake-ups are lost where many threads wait while a flight lands: here they do so many times, polled at odd moments too.
#[test]
fn no_wake_up_is_lost() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    let all = async {
        for round in 0..300_u64 {
            let cache = Cache::builder(move |key: u64| async move {
                for _ in 0..round % 5 {
                    yield_now().await;
                }
                Ok::<_, String>(Some(key))
            })
            .build();
            let readers: Vec<_> = (0..16)
                .map(|reader| {
                    let cache = cache.clone();
                    tokio::spawn(async move {
                        let mut get = Box::pin(cache.get(&1));
                        for _ in 0..reader % 3 {
                            if let Poll::Ready(outcome) = poll_once(&mut get) {
                                return outcome;
                            }
                            yield_now().await;
                        }
                        get.await
                    })
                })
                .collect();
            for reader in readers {
                assert_eq!(reader.await.unwrap().unwrap(), Some(1));
            }
            assert_eq!(cache.stats().fetches, 1);
        }
    };
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), all)
            .await
            .expect("a get hangs");
    });
}

/// Answers with that many more outcomes than keys.
struct Miscounting(isize);

impl Source<u64> for Miscounting {
    type Value = u64;
    type Error = String;

    const GATHERS: bool = true;

    async fn fetch(&self, key: u64) -> Result<Fetched<u64>, String> {
        Ok(Fetched::from(Some(key)))
    }

    async fn fetch_many(&self, keys: Vec<u64>) -> Vec<Result<Fetched<u64>, String>> {
        let returned = keys.len().checked_add_signed(self.0).unwrap();
        keys.iter()
            .cycle()
            .take(returned)
            .map(|key| Ok(Fetched::from(Some(*key))))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_returns_too_few_or_too_many_is_believed_in_nothing() {
    for more in [-3, -1, 1, 3] {
        let cache = Cache::builder(Miscounting(more)).build();
        let outcomes = cache.get_many([1, 2, 3]).await;
        let expected_returned = 3_usize.checked_add_signed(more).unwrap();
        for outcome in outcomes {
            let Err(CacheError::WrongCount { expected, returned }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!((expected, returned), (3, expected_returned));
        }
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.in_flight, stats.failures), (0, 0, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_answers_for_other_keys_too_is_heard_for_those_asked_for() {
    let loader: Loader<u64, u64, String> = Loader::builder().build(|keys: Vec<u64>| async move {
        Ok((0..10_u64)
            .filter(|key| !keys.contains(key) || key % 2 == 0)
            .map(|key| (key, key))
            .collect::<HashMap<_, _>>())
    });
    let cache = Cache::builder(loader.clone()).build();
    let outcomes: Vec<_> = cache.get_many([4, 5]).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [Some(4), None]);
    assert_eq!(cache.stats().entries, 2);
    assert_eq!(cache.get_if_fresh(&6), None, "nobody asked for it");
    assert_eq!(cache.get_if_fresh(&5), Some(Entry::Missing));
    assert_eq!(loader.stats().keys_ignored, 8);
}
