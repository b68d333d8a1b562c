//! A program that ends and starts again: what the last one fetched is there, and as old as it is.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use forebay_cache::tier::sqlite::SqliteTier;
use forebay_cache::{Entry, State};

use super::*;

async fn open(path: &Path) -> SqliteTier<u64, u64> {
    // The one before closes its file a moment after it was dropped.
    let mut opened = None;
    until("the file is closed", async || {
        opened = SqliteTier::builder(path, form()).open().ok();
        opened.is_some()
    })
    .await;
    opened.unwrap()
}

/// A tier that was kept by a program that has ended, with these entries.
async fn left_behind(path: &Path, entries: &[Put<u64, u64>]) -> SqliteTier<u64, u64> {
    let tier = open(path).await;
    tier.put_many(entries).await.unwrap();
    tier.close().await;
    open(path).await
}

#[tokio::test]
async fn a_restart_starts_warm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tier");
    let database = Database::open().with(1, 10);
    let cache = database.cache(open(&path).await).build();
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(10), None));
    settled(&cache).await;
    drop(cache);
    let cache = database.cache(open(&path).await).build();
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(10), None));
    assert_eq!(database.fetched(), [1, 2], "the source was asked again");
    let stats = cache.stats();
    assert_eq!((stats.flights_by_tier, stats.fetches), (2, 0));
    assert_eq!((stats.tiers[0].hits, &*stats.tiers[0].name), (2, "sqlite"));
    // It is in memory now.
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
}

#[tokio::test]
async fn what_was_invalidated_before_the_end_is_not_there_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tier");
    let database = Database::open().with(1, 10).with(2, 20);
    let cache = database.cache(open(&path).await).build();
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(10), Some(20)));
    settled(&cache).await;
    database.set(1, 11);
    cache.invalidate(&1).await;
    drop(cache);
    let cache = database.cache(open(&path).await).build();
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(11), Some(20)));
    assert_eq!(database.fetched(), [1, 2, 1]);
}

#[tokio::test]
async fn the_age_goes_on_and_the_window_is_counted_from_the_first_fetch() {
    let (folder, ticks) = (tempfile::tempdir().unwrap(), Ticks::new());
    let tier = left_behind(&folder.path().join("tier"), &[put(1, Some(10), secs(40))]).await;
    let cache = Database::open()
        .cache(tier)
        .clock(ticks.clock())
        .fresh_for(secs(100))
        .stale_for(secs(100))
        .build();
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(10), State::Fetched));
    assert!(answer.age >= secs(40) && answer.age < secs(60), "{:?}", answer.age);
    ticks.turn(secs(39));
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Fresh);
    // 100 s after the first fetch, though only 61 s after it was read here.
    ticks.turn(secs(22));
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(10), State::Stale));
    assert!(answer.age >= secs(101), "{:?}", answer.age);
}

#[tokio::test]
async fn a_stale_entry_is_served_and_refreshed() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [put(1, Some(10), secs(150)), put(2, Some(20), secs(250))];
    let tier = left_behind(&folder.path().join("tier"), &entries).await;
    let database = Database::open().with(1, 11).with(2, 21);
    let cache = database.cache(tier).fresh_for(secs(100)).stale_for(secs(100)).build();
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(10), State::Stale));
    until("the refresh", async || value(&cache, 1).await == Some(11)).await;
    // What has expired is no answer.
    let answer = cache.lookup(&2).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(21), State::Fetched));
    assert_eq!(database.fetched(), [1, 2]);
}

/// Also where it is too old to be served otherwise.
#[tokio::test]
async fn what_the_last_one_fetched_rescues_from_a_source_that_fails() {
    let (folder, ticks) = (tempfile::tempdir().unwrap(), Ticks::new());
    let old = [put(1, Some(10), secs(200)), put(2, Some(20), secs(4_000))];
    let tier = left_behind(&folder.path().join("tier"), &old).await;
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let cache: Tested = Cache::builder(move |key: u64| {
        let fails = failing.load(SeqCst);
        async move { if fails { Err("down".to_owned()) } else { Ok(Some(key)) } }
    })
    .clock(ticks.clock())
    .fresh_for(secs(100))
    .stale_if_error_for(HOUR)
    .tier(tier)
    .build();
    for _ in 0..2 {
        let answer = cache.lookup(&1).await.unwrap();
        assert_eq!((answer.value, answer.state), (Some(10), State::Rescued));
    }
    assert!(cache.lookup(&2).await.is_err(), "it is too old for that, too");
    fails.store(false, SeqCst);
    ticks.turn(secs(60));
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(1), State::Fetched));
}

/// What somebody has said of the key meanwhile holds.
#[tokio::test(start_paused = true)]
async fn what_is_too_old_does_not_come_back_behind_an_invalidation() {
    let tier = Fake::new("a tier");
    let (answer, answered) = tokio::sync::oneshot::channel::<Result<Option<u64>, String>>();
    let answered = Mutex::new(Some(answered));
    let cache: Tested = Cache::builder(move |_: u64| {
        let answered = answered.lock().take();
        async move { answered.expect("asked once").await.unwrap() }
    })
    .fresh_for(secs(100))
    .stale_if_error_for(HOUR)
    .tier(tier.clone())
    .build();
    tier.keep(1, aged(Some(10), secs(200)));
    tier.shut();
    let get = tokio::spawn({
        let cache = cache.clone();
        async move { cache.lookup(&1).await }
    });
    settle().await;
    let _not_awaited = cache.invalidate(&1);
    tier.let_through(1_000);
    settle().await;
    answer.send(Err("down".to_owned())).unwrap();
    assert!(get.await.unwrap().is_err());
}

/// Whoever has a copy that rescues, also the first who asks, and whatever worse memory has.
#[tokio::test(start_paused = true)]
async fn a_copy_that_rescues_is_told_when_it_is_time_and_in_place_of_an_older_entry() {
    let (tier, ticks) = (Fake::shared("shared"), Ticks::new());
    let database = Database::open().with(1, 10);
    let cache = database
        .cache(tier.clone())
        .clock(ticks.clock())
        .fresh_for(ms(100))
        .stale_if_error_for(HOUR)
        .soft_timeout(ms(50))
        .build();
    assert_eq!(value(&cache, 1).await, Some(10));
    settled(&cache).await;
    ticks.turn(2 * HOUR);
    // Another process has fetched it since.
    tier.keep(1, aged(Some(11), secs(60)));
    database.0.permits.forget_permits(usize::MAX);
    let began = tokio::time::Instant::now();
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(11), State::Rescued));
    assert_eq!(began.elapsed(), ms(50), "it was the first to ask");
}

/// Whatever it is that brings something to tell, after the time at which he would have been told.
#[tokio::test(start_paused = true)]
async fn who_has_waited_long_enough_is_told_as_soon_as_there_is_something_to_tell() {
    for way in ["a copy", "another flight", "an insert"] {
        let tier = Fake::shared("shared");
        let is_first = AtomicBool::new(true);
        let source = move |_: u64| {
            let hangs = is_first.swap(false, SeqCst) || way != "another flight";
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(ms(30)).await;
                Ok::<_, String>(Some(12))
            }
        };
        let cache = Cache::builder(source)
            .fresh_for(ms(100))
            .stale_if_error_for(HOUR)
            .soft_timeout(ms(50));
        let cache = cache.max_fetches_per_key(2).tier(tier.clone()).build();
        if way == "a copy" {
            tier.keep(1, aged(Some(11), secs(60)));
            tier.shut();
        }
        let reader = tokio::spawn({
            let cache = cache.clone();
            async move { (cache.lookup(&1).await.unwrap(), tokio::time::Instant::now()) }
        });
        let began = tokio::time::Instant::now();
        tokio::time::sleep(ms(80)).await;
        assert!(!reader.is_finished(), "{way}: there is nothing to tell yet");
        let expected = match way {
            "a copy" => {
                tier.let_through(1);
                (Some(11), State::Rescued, ms(80))
            }
            "another flight" => {
                assert_eq!(value(&cache, 1).await, Some(12));
                (Some(12), State::Fresh, ms(110))
            }
            _ => {
                drop(cache.insert(1, 13));
                (Some(13), State::Fresh, ms(80))
            }
        };
        let (answer, at) = reader.await.unwrap();
        assert_eq!((answer.value, answer.state, at - began), expected, "{way}");
    }
}
