//! Many keys at a time; a cache over a loader, and over another cache.

use super::*;
use forebay_cache::Entry;

fn values(outcomes: Vec<Outcome>) -> Vec<Option<u64>> {
    outcomes.into_iter().map(Result::unwrap).collect()
}

/// A loader's cache, with the windows of `timed`.
fn gathering(database: &Database, ticks: &Ticks) -> Cache<u64, u64, forebay_batch::load::LoadError<String>> {
    Cache::builder(database.loader())
        .clock(ticks.clock())
        .fresh_for(ms(100))
        .stale_for(ms(100))
        .missing_fresh_for(ms(10))
        .build()
}

#[tokio::test(start_paused = true)]
async fn all_that_is_not_there_is_one_fetch_of_the_loader() {
    let database = Database::open();
    (0..50).for_each(|key| database.set(key, key * 10));
    let cache = gathering(&database, &Ticks::new());
    let outcomes = cache.get_many(0..100).await;
    for (key, outcome) in (0..100).zip(outcomes) {
        assert_eq!(outcome.unwrap(), (key < 50).then_some(key * 10));
    }
    assert_eq!(database.batches(), [(0..100).collect::<Vec<_>>()]);
    let stats = cache.stats();
    assert_eq!((stats.fetches, stats.keys_fetched, stats.flights), (1, 100, 100));
}

#[tokio::test(start_paused = true)]
async fn answers_come_in_the_order_asked_for_duplicates_and_all() {
    let database = Database::open();
    (0..10).for_each(|key| database.set(key, key * 10));
    let cache = gathering(&database, &Ticks::new());
    let keys = [7, 3, 3, 99, 7, 0, 99];
    let outcomes = cache.get_many(keys).await.into_iter().map(Result::unwrap);
    assert!(outcomes.eq([Some(70), Some(30), Some(30), None, Some(70), Some(0), None]));
    assert_eq!(database.batches(), [[7, 3, 99, 0]]);
    assert!(cache.get_many([]).await.is_empty());
    assert_eq!(database.batches().len(), 1);
    // One by one over an async function, with the same outcomes.
    let cache = lasting(&database).build();
    assert_eq!(
        values(cache.get_many(keys).await),
        [Some(70), Some(30), Some(30), None, Some(70), Some(0), None]
    );
    assert_eq!(cache.stats().fetches, 4);
}

#[tokio::test(start_paused = true)]
async fn of_a_mixture_only_what_is_needed_is_fetched() {
    let (database, ticks) = (Database::open().with(1, 10).with(2, 20).with(3, 30), Ticks::new());
    let cache = gathering(&database, &ticks);
    cache.get(&1).await.unwrap();
    ticks.turn(50);
    cache.get(&2).await.unwrap();
    cache.get(&5).await.unwrap();
    ticks.turn(50);
    database.set(1, 11);
    let states: Vec<_> = cache
        .lookup_many([1, 2, 3, 5, 1])
        .await
        .into_iter()
        .map(|outcome| outcome.map(|answer| (answer.value, answer.state)).unwrap())
        .collect();
    let expected = [
        (Some(10), State::Stale),
        (Some(20), State::Fresh),
        (Some(30), State::Fetched),
        (None, State::Stale),
        (Some(10), State::Stale),
    ];
    assert_eq!(states, expected);
    settle().await;
    let batches = database.batches();
    let mut asked: Vec<u64> = batches[3..].concat();
    asked.sort_unstable();
    assert_eq!(asked, [1, 3, 5], "{batches:?}");
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
}

/// Whose outcome is there does not wait for another key's, nor fail with it: over a loader of several fetches, and over a cache.
#[tokio::test(start_paused = true)]
async fn a_key_that_hangs_ends_nobody_but_itself() {
    let limit = ms(500);
    let below = Loader::builder()
        .max_items(10)
        .max_in_flight(4)
        .build(|keys: Vec<u64>| async move {
            if keys.contains(&15) {
                std::future::pending::<()>().await;
            }
            // One is there at once, the others one after the other.
            tokio::time::sleep(ms(10) * (keys[0] / 10) as u32).await;
            Ok::<_, String>(keys.into_iter().map(|key| (key, key)).collect::<HashMap<_, _>>())
        });
    let cache = Cache::builder(below).fetch_timeout(limit).build();
    let began = tokio::time::Instant::now();
    let many = tokio::spawn({
        let cache = cache.clone();
        async move { cache.get_many(0..40).await }
    });
    settle().await;
    assert_eq!(cache.get(&3).await.unwrap(), Some(3));
    assert_eq!(began.elapsed(), Duration::ZERO, "who joins has what has come");
    let outcomes = many.await.unwrap();
    let ended: Vec<u64> = (0..40).filter(|key| outcomes[*key as usize].is_err()).collect();
    assert_eq!(ended, (10..20).collect::<Vec<_>>(), "those of its own fetch");
    assert!(outcomes.iter().flatten().all(Option::is_some));
    assert_eq!((cache.stats().entries, cache.stats().in_flight), (30, 0));
    // The same over a cache, of which each key has a flight of its own.
    let one_hangs = |key: u64| async move {
        if key == 15 {
            std::future::pending::<()>().await;
        }
        Ok::<_, String>(Some(key))
    };
    let inner = Cache::builder(one_hangs).fetch_timeout(limit).build();
    let outer = Cache::builder(inner).fetch_timeout(limit).build();
    let outcomes = outer.get_many([15, 0, 1, 15, 16]).await;
    let is_there: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(is_there, [false, true, true, false, true]);
    assert!(matches!(
        outcomes[0],
        Err(CacheError::TimedOut(_) | CacheError::Source(_))
    ));
}

/// Nor where the cache below has no room for all of them: what is in its memory is told, and room that strangers leave is made use of.
#[tokio::test(start_paused = true)]
async fn what_waits_for_room_below_holds_up_nobody() {
    let source = |key: u64| async move {
        match key {
            0 => tokio::time::sleep(ms(3_000)).await,
            9 => tokio::time::sleep(ms(100)).await,
            _ => {}
        }
        Ok::<_, String>(Some(key))
    };
    let inner = Cache::builder(source).max_flights(2).build();
    inner.get(&7).await.unwrap();
    let outer = Cache::builder(inner.clone()).fetch_timeout(ms(2_000)).build();
    let stranger = tokio::spawn(async move { inner.get(&9).await });
    settle().await;
    let began = tokio::time::Instant::now();
    let many = tokio::spawn({
        let outer = outer.clone();
        async move { outer.get_many([0, 1, 7, 2]).await }
    });
    settle().await;
    assert_eq!(outer.get(&7).await.unwrap(), Some(7));
    assert_eq!(began.elapsed(), Duration::ZERO, "it was there");
    assert_eq!(outer.get(&1).await.unwrap(), Some(1));
    assert_eq!(outer.get(&2).await.unwrap(), Some(2));
    assert!(
        began.elapsed() <= ms(101),
        "the stranger has ended: {:?}",
        began.elapsed()
    );
    let is_there: Vec<bool> = many.await.unwrap().iter().map(Result::is_ok).collect();
    assert_eq!(is_there, [false, true, true, true]);
    stranger.await.unwrap().unwrap();
}

/// A caller's own keys that wait for room go as soon as any of those before them has landed, also where the first hangs.
#[tokio::test(start_paused = true)]
async fn room_that_any_key_leaves_is_the_next_ones() {
    let hangs = |key: u64| async move {
        if key == 0 {
            std::future::pending::<()>().await;
        }
        Ok::<_, String>(Some(key))
    };
    let cache = Cache::builder(hangs).max_flights(2).fetch_timeout(ms(500)).build();
    let many = tokio::spawn({
        let cache = cache.clone();
        async move { cache.get_many(0..20).await }
    });
    settle().await;
    assert_eq!((cache.stats().entries, cache.stats().in_flight), (19, 1));
    assert!(many.await.unwrap()[1..].iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn refreshes_in_the_background_of_many_keys_are_gathered() {
    let (database, ticks) = (Database::open(), Ticks::new());
    (0..1_000).for_each(|key| database.set(key, 1));
    let cache = gathering(&database, &ticks);
    cache.get_many(0..1_000).await;
    ticks.turn(100);
    (0..1_000).for_each(|key| database.set(key, 2));
    // Readers of one key each, who know nothing of one another.
    for key in 0..1_000 {
        assert_eq!(cache.lookup(&key).await.unwrap().state, State::Stale);
    }
    settle().await;
    let fetches = database.batches().len() - 1;
    assert!(fetches <= 20, "1,000 refreshes were {fetches} fetches");
    assert!((0..1_000).all(|key| cache.get_if_fresh(&key) == Some(Entry::Present(2))));
}

#[tokio::test(start_paused = true)]
async fn misses_of_many_readers_are_gathered() {
    let database = Database::open();
    let cache = gathering(&database, &Ticks::new());
    let readers: Vec<_> = (0..1_000_u64)
        .map(|key| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&key).await })
        })
        .collect();
    for reader in readers {
        reader.await.unwrap().unwrap();
    }
    let fetches = database.batches().len();
    assert!(fetches <= 20, "1,000 misses were {fetches} fetches");
}

/// Else a read from before the write would be kept as if it came from after it.
#[tokio::test(start_paused = true)]
async fn a_get_after_an_invalidation_does_not_join_an_older_fetch_of_the_loader() {
    type Tell = fn(&Cache<u64, u64, forebay_batch::load::LoadError<String>>);
    let tells: [Tell; 3] = [
        |cache| drop(cache.invalidate(&1)),
        |cache| drop(cache.clear()),
        |cache| drop(cache.mark_stale(&1)),
    ];
    for tell in tells {
        let database = Database::shut().with(1, 10);
        let cache = Cache::builder(database.loader_of(Loader::builder().max_in_flight(4))).build();
        let get = || {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&1).await })
        };
        let before = get();
        settle().await;
        database.set(1, 11);
        tell(&cache);
        let after = get();
        settle().await;
        assert_eq!(database.batches().len(), 2);
        database.let_through(2);
        assert_eq!(before.await.unwrap().unwrap(), Some(10));
        assert_eq!(after.await.unwrap().unwrap(), Some(11));
        assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_does_not_join_an_older_fetch_of_the_loader() {
    let database = Database::shut().with(1, 10);
    let loader = database.loader_of(Loader::builder().max_in_flight(4));
    let cache = Cache::builder(loader.clone()).build();
    let direct = tokio::spawn(async move { loader.load(1).await });
    settle().await;
    database.set(1, 11);
    let refresh = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.refresh(&1).await })
    };
    settle().await;
    database.let_through(2);
    assert_eq!(direct.await.unwrap().unwrap(), Some(10));
    assert_eq!(refresh.await.unwrap().unwrap(), Some(11));
}

/// Also not one that somebody else began, of whom the cache knows nothing.
#[tokio::test(start_paused = true)]
async fn a_get_after_a_clear_does_not_join_an_older_fetch_of_the_loader() {
    let database = Database::shut().with(1, 10);
    let loader = database.loader_of(Loader::builder().max_in_flight(4));
    let cache = Cache::builder(loader.clone()).build();
    let direct = tokio::spawn(async move { loader.load(1).await });
    settle().await;
    database.set(1, 11);
    drop(cache.clear());
    let after = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.get(&1).await })
    };
    settle().await;
    database.let_through(2);
    assert_eq!(direct.await.unwrap().unwrap(), Some(10));
    assert_eq!(after.await.unwrap().unwrap(), Some(11));
}

#[tokio::test(start_paused = true)]
async fn one_keys_error_is_its_own_and_a_fetchs_error_is_of_all_its_keys() {
    let loader: Loader<u64, u64, String> = Loader::builder().build(|keys: Vec<u64>| async move {
        let each = |key: &u64| {
            if *key == 2 {
                Err("as asked".to_owned())
            } else {
                Ok(Some(*key))
            }
        };
        Ok(keys.iter().map(each).collect::<Vec<_>>())
    });
    let cache = Cache::builder(loader).build();
    let outcomes = cache.get_many([1, 2, 3]).await;
    assert_eq!(
        (outcomes[0].as_ref().unwrap(), outcomes[2].as_ref().unwrap()),
        (&Some(1), &Some(3))
    );
    let error = outcomes[1].as_ref().unwrap_err().source_error().unwrap();
    assert_eq!(error.source_error().unwrap(), "as asked");
    assert_eq!(cache.stats().entries, 2);

    let database = Database::open();
    database.fail(true);
    let cache = gathering(&database, &Ticks::new());
    assert!(cache.get_many([1, 2]).await.iter().all(Result::is_err));
    assert_eq!((cache.stats().entries, cache.stats().failures), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_get_of_many_harms_no_reader_of_one_of_them() {
    let database = Database::shut().with(2, 20);
    let cache = Cache::builder(database.loader()).build();
    let many = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.get_many([1, 2, 3]).await })
    };
    settle().await;
    let one = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.get(&2).await })
    };
    settle().await;
    many.abort();
    settle().await;
    database.let_through(1);
    assert_eq!(one.await.unwrap().unwrap(), Some(20));
    assert_eq!(cache.stats().entries, 3, "all three have landed");
}

/// Two caches, the lower fresh for 100 ms and stale for 100 more, the upper fresh for 30 ms.
fn two_storeys(database: &Database, ticks: &Ticks) -> (Tested, Cache<u64, u64, CacheError<String>>) {
    let lower = timed(database, ticks).build();
    let upper = Cache::builder(lower.clone())
        .clock(ticks.clock())
        .fresh_for(ms(30))
        .build();
    (lower, upper)
}

#[tokio::test(start_paused = true)]
async fn a_cache_over_a_cache_carries_ages() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let (lower, upper) = two_storeys(&database, &ticks);
    lower.get(&1).await.unwrap();
    ticks.turn(20);
    assert_eq!(upper.lookup(&1).await.unwrap(), answer(10, State::Fetched, 20));
    ticks.turn(9);
    assert_eq!(upper.lookup(&1).await.unwrap(), answer(10, State::Fresh, 29));
    ticks.turn(1);
    assert_eq!(
        upper.get_if_fresh(&1),
        None,
        "30 ms after the fetch, not after it was handed up"
    );
    assert_eq!(database.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_the_upper_cache_the_lower_hears() {
    let (database, ticks) = (Database::open().with(1, 10).with(2, 20), Ticks::new());
    let (lower, upper) = two_storeys(&database, &ticks);
    let fill = || async {
        assert_eq!(upper.get_many([1, 2]).await.len(), 2);
        assert_eq!(lower.get_if_fresh(&1), Some(Entry::Present(10)));
    };
    fill().await;
    drop(upper.invalidate(&1));
    assert_eq!(lower.get_if_fresh(&1), None);
    fill().await;
    drop(upper.insert(1, 10));
    assert_eq!(lower.get_if_fresh(&1), None, "it has the value from before");
    drop(upper.mark_stale(&1));
    database.set(1, 11);
    assert_eq!(upper.refresh(&1).await.unwrap(), Some(11));
    assert_eq!(lower.get_if_fresh(&1), Some(Entry::Present(11)));
    drop(upper.clear());
    assert_eq!((upper.stats().entries, lower.stats().entries), (0, 0));
    database.set(1, 12);
    assert_eq!(upper.get(&1).await.unwrap(), Some(12));
}

#[tokio::test(start_paused = true)]
async fn many_keys_through_two_caches_are_one_fetch_of_the_loader() {
    let database = Database::open();
    let lower = Cache::builder(database.loader()).build();
    let upper = Cache::builder(lower).build();
    assert_eq!(upper.get_many(0..50).await.len(), 50);
    assert_eq!(database.batches().len(), 1);
}
