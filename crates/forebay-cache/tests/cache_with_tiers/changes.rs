//! Writes while the tier is away: the old value is never served again by whoever wrote, and the tier is told when it is back.

use std::sync::atomic::{AtomicBool, AtomicU32};

use forebay_cache::Fetched;
use forebay_cache::backplane::{Backplane, Change, Ear};
use forebay_cache::tier::TierError;
use testbed::Redis;
use tokio::sync::Notify;

use super::*;

/// A cache that keeps nothing in memory, so that each get shows what the tiers would answer.
fn without_memory(database: &Database, tier: impl Tier<u64, u64>) -> Tested {
    database.cache(tier).capacity(0).build()
}

/// A Redis that was killed and will come back with 1 to 3 as they were in `database` before: 10, 20, 30.
async fn killed(database: &Database) -> (Redis, Tested) {
    for key in 1..=3 {
        database.set(key, key * 10);
    }
    let mut redis = Redis::builder().durable().start().unwrap();
    let cache = without_memory(database, redis_tier(&redis.url()));
    for key in 1..=3 {
        assert_eq!(value(&cache, key).await, Some(key * 10));
        settled(&cache).await;
    }
    redis.kill9().unwrap();
    (redis, cache)
}

/// Reads on while the server comes back, until it has heard of all that was written.
async fn reads_on(redis: &mut Redis, cache: &Tested, expected: [u64; 3]) {
    let read = async || {
        for (key, expected) in (1..).zip(expected) {
            assert_eq!(value(cache, key).await, Some(expected), "{:?}", tier_stats(cache));
        }
    };
    read().await;
    redis.restart().unwrap();
    until("all is told", async || {
        read().await;
        tier_stats(cache).owed == 0
    })
    .await;
    // Now that nothing bars the tier, and it is asked again.
    until("the tier is asked", async || {
        let hits = tier_stats(cache).hits;
        read().await;
        tier_stats(cache).hits > hits
    })
    .await;
}

#[tokio::test]
async fn an_invalidated_value_does_not_come_back_with_the_server() {
    let database = Database::open();
    let (mut redis, cache) = killed(&database).await;
    database.set(1, 11);
    let _not_awaited = cache.invalidate(&1);
    assert_eq!(tier_stats(&cache).owed, 1);
    reads_on(&mut redis, &cache, [11, 20, 30]).await;
    let kept = redis_tier(&redis.url()).get_many(&[1]).await.unwrap().remove(0);
    assert_ne!(kept.and_then(|kept| kept.value), Some(10));
}

#[tokio::test]
async fn an_inserted_value_replaces_what_the_server_comes_back_with() {
    let database = Database::open();
    let (mut redis, cache) = killed(&database).await;
    database.set(1, 11);
    let _not_awaited = cache.insert(1, 11);
    reads_on(&mut redis, &cache, [11, 20, 30]).await;
    let kept = redis_tier(&redis.url()).get_many(&[1]).await.unwrap().remove(0);
    assert_ne!(kept.and_then(|kept| kept.value), Some(10));
}

#[tokio::test]
async fn what_was_cleared_does_not_come_back_with_the_server() {
    let database = Database::open();
    let (mut redis, cache) = killed(&database).await;
    for key in 1..=3 {
        database.set(key, key * 10 + 1);
    }
    let _not_awaited = cache.clear();
    reads_on(&mut redis, &cache, [11, 21, 31]).await;
}

#[tokio::test(start_paused = true)]
async fn a_tier_that_answers_but_cannot_be_changed_is_not_believed() {
    let (database, tier) = (Database::open().with(1, 11).with(2, 21), Fake::new("read-only"));
    tier.keep(1, aged(Some(10), secs(1)));
    tier.keep(2, aged(Some(20), secs(1)));
    tier.changes(Mood::Fails);
    let cache = without_memory(&database, tier.clone());
    let _not_awaited = cache.invalidate(&1);
    settle().await;
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(11), Some(20)));
    assert_eq!((tier_stats(&cache).owed, tier_stats(&cache).barred), (1, 1));
    let _not_awaited = cache.clear();
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(11), Some(21)));
    assert_eq!(tier_stats(&cache).owed, 1, "one clear stands for all");
    // Nothing is read until it is done, and then what another process fetched after it.
    let later = || Kept::new(Some(12), SystemTime::now() + ms(1));
    tier.keep(1, later());
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(11), Some(21)));
    tier.changes(Mood::Works);
    cache.settled().await;
    assert_eq!(tier_stats(&cache).owed, 0);
    tier.keep(1, later());
    assert_eq!(value(&cache, 1).await, Some(12));
    assert_eq!(tier.kept(2).filter(|kept| kept.value == Some(20)), None);
}

#[tokio::test(start_paused = true)]
async fn more_deletions_than_are_remembered_become_one_clear() {
    let (database, tier) = (Database::open(), Fake::new("full of debts"));
    for key in 1..=9 {
        tier.keep(key, aged(Some(key * 10), secs(1)));
        database.set(key, key * 10 + 1);
    }
    tier.changes(Mood::Hangs);
    let mut settings = impatient();
    settings.max_owed = 4;
    let cache = database.cache(tier.clone()).tier_settings(settings).capacity(0).build();
    for key in 1..=8 {
        let _not_awaited = cache.invalidate(&key);
    }
    assert!(tier_stats(&cache).overflows > 0 && tier_stats(&cache).owed <= 5);
    for key in 1..=9 {
        assert_eq!(value(&cache, key).await, Some(key * 10 + 1));
    }
    tier.changes(Mood::Works);
    cache.settled().await;
    assert!(!tier.calls("clear").is_empty());
    assert_eq!(tier.kept(9).filter(|kept| kept.value == Some(90)), None);
}

/// Others, of whom nothing is heard; when it is told, it is cut off and heard again.
struct Others(Arc<Notify>);

impl Backplane<u64> for Others {
    fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async { Ok(()) })
    }

    fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, _: Duration) -> BoxFuture<'a, TierError> {
        Box::pin(async move {
            ear.began();
            self.0.notified().await;
            TierError::failed("listen", "cut off")
        })
    }
}

/// The call itself may panic, before there is a future of it.
#[tokio::test(start_paused = true)]
async fn a_backplane_that_panics_is_listened_to_again() {
    struct Panics(Arc<AtomicU32>);

    impl Backplane<u64> for Panics {
        fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
            Box::pin(async { Ok(()) })
        }

        fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, _: Duration) -> BoxFuture<'a, TierError> {
            assert!(self.0.fetch_add(1, SeqCst) == 3, "as asked");
            Box::pin(async move {
                ear.began();
                std::future::pending().await
            })
        }
    }

    let (database, calls) = (Database::open().with(7, 70), Arc::<AtomicU32>::default());
    let cache = database.cache(Fake::shared("shared"));
    let cache = cache.backplane(Panics(Arc::clone(&calls)), 20 * HOUR).build();
    let begun = tokio::time::Instant::now();
    assert_eq!(value(&cache, 7).await, Some(70));
    assert!(
        begun.elapsed() < ms(250),
        "it is waited for as long as it may come to something"
    );
    tokio::time::sleep(secs(5)).await;
    assert_eq!(calls.load(SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_shared_tier_is_put_there_unless_others_were_not_heard_meanwhile() {
    for is_cut in [false, true] {
        let (database, tier, cut) = (Database::open(), Fake::shared("slow"), Arc::new(Notify::new()));
        tier.changes(Mood::Waits);
        let cache = database.cache(tier.clone());
        let cache = cache.backplane(Others(Arc::clone(&cut)), 20 * HOUR).build();
        // On its way before others are heard for the first time, of whom nothing was missed.
        let _not_awaited = cache.insert(1, 10);
        settle().await;
        let _not_awaited = cache.insert(2, 20);
        if is_cut {
            cut.notify_one();
            tokio::time::sleep(ms(20)).await;
        }
        let _not_awaited = cache.insert(3, 30);
        tier.changes(Mood::Works);
        tier.let_through(1);
        settled(&cache).await;
        let kept = [1, 2, 3].map(|key| tier.kept(key).and_then(|kept| kept.value));
        let before = [10, 20].map(|value| Some(value).filter(|_| !is_cut));
        assert_eq!(kept, [before[0], before[1], Some(30)]);
    }
}

/// What flies then may have read before a change that was not heard: what it had claimed is another's to fetch.
#[tokio::test(start_paused = true)]
async fn what_was_claimed_when_others_are_heard_anew_is_asked_for_all_the_same() {
    for has_failed in [false, true] {
        let (database, ticks, cut) = (Database::open().with(1, 10), Ticks::new(), Arc::new(Notify::new()));
        let fails = Arc::new(AtomicBool::new(false));
        let source = database.source();
        let failing = Arc::clone(&fails);
        let cache: Tested = Cache::builder(move |key| {
            let (fetched, fails) = (source(key), failing.load(SeqCst));
            async move { if fails { Err("down".to_owned()) } else { fetched.await } }
        })
        .clock(ticks.clock())
        .fresh_for(ms(50))
        .stale_for(HOUR)
        .stale_if_error_for(HOUR)
        .backplane(Others(Arc::clone(&cut)), 20 * HOUR)
        .build();
        settle().await;
        assert_eq!(value(&cache, 1).await, Some(10));
        ticks.turn(ms(100));
        if has_failed {
            fails.store(true, SeqCst);
            assert_eq!(value(&cache, 1).await, Some(10));
            settle().await;
            fails.store(false, SeqCst);
            ticks.turn(secs(40));
        }
        // On its way, and slow.
        database.0.permits.forget_permits(usize::MAX);
        assert_eq!(value(&cache, 1).await, Some(10));
        settle().await;
        let begun = database.fetched().len();
        database.set(1, 11);
        cut.notify_one();
        tokio::time::sleep(ms(20)).await;
        settle().await;
        // It may be of before what was not heard: nobody is told it, and nobody waits for what flew then.
        let reader = tokio::spawn({
            let cache = cache.clone();
            async move { value(&cache, 1).await }
        });
        settle().await;
        assert!(!reader.is_finished(), "{has_failed}");
        assert_eq!(database.fetched().len(), begun + 1);
        database.let_through(1_000_000);
        assert_eq!(reader.await.unwrap(), Some(11));
    }
}

/// They have what was invalidated in memory still.
#[test]
fn others_hear_of_what_was_changed_in_a_runtime_that_has_ended_or_in_none() {
    #[derive(Clone, Default)]
    struct Sent(Arc<Mutex<Vec<u64>>>);

    impl Backplane<u64> for Sent {
        fn send<'a>(&'a self, changes: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
            let keys = changes.iter().filter_map(|change| match change {
                Change::Key(key) => Some(*key),
                _ => None,
            });
            self.0.lock().extend(keys);
            Box::pin(async { Ok(()) })
        }

        fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, _: Duration) -> BoxFuture<'a, TierError> {
            Box::pin(async move {
                ear.began();
                std::future::pending().await
            })
        }
    }

    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    for (ends, only_hits) in [(false, false), (false, true), (true, false), (true, true)] {
        let (database, sent, tier) = (Database::open().with(7, 70), Sent::default(), Fake::shared("shared"));
        let home = runtime();
        let cache = home.block_on(async {
            let cache = database.cache(tier.clone()).backplane(sent.clone(), 20 * HOUR).build();
            value(&cache, 7).await;
            value(&cache, 7).await;
            settled(&cache).await;
            cache
        });
        tier.keep(1, aged(Some(10), secs(1)));
        match ends {
            true => runtime().block_on(async { drop(cache.invalidate(&1)) }),
            false => drop(cache.invalidate(&1)),
        }
        home.block_on(async {
            match only_hits {
                // Some are looked at, by chance.
                true => {
                    for _ in 0..10_000 {
                        value(&cache, 7).await;
                    }
                }
                false => drop(value(&cache, 100).await),
            }
            until("it is told", async || {
                sent.0.lock().contains(&1) && tier.kept(1).is_none()
            })
            .await;
        });
    }
}

/// A tier has what is older, and it does not come back.
#[tokio::test(start_paused = true)]
async fn what_is_to_be_kept_for_no_time_is_not_followed_by_what_was_before_it() {
    for missing in [false, true] {
        let (tier, ticks) = (Fake::new("file"), Ticks::new());
        let row = Arc::new(AtomicU64::new(1));
        let read = Arc::clone(&row);
        let cache: Tested = Cache::builder(move |_: u64| {
            let now = read.load(SeqCst);
            async move {
                Ok::<_, String>(match now {
                    1 => Fetched::of(1),
                    _ if missing => Fetched::missing(),
                    now => Fetched::of(now).fresh_for(Duration::ZERO).stale_for(Duration::ZERO),
                })
            }
        })
        .clock(ticks.clock())
        .fresh_for(HOUR)
        .stale_for(HOUR)
        .missing_fresh_for(Duration::ZERO)
        .missing_stale_for(Duration::ZERO)
        .tier(tier.clone())
        .tier_settings(impatient())
        .build();
        assert_eq!(value(&cache, 1).await, Some(1));
        settled(&cache).await;
        row.store(2, SeqCst);
        let now = (!missing).then_some(2);
        assert_eq!(cache.refresh(&1).await.unwrap(), now);
        for _ in 0..3 {
            assert_eq!(value(&cache, 1).await, now, "{missing}");
            settled(&cache).await;
            assert_eq!(tier.kept(1), None);
        }
        // Though it is there again, as another process's put that comes late may be.
        tier.keep(1, aged(Some(1), HOUR / 2));
        assert_eq!(value(&cache, 1).await, now, "{missing}");
    }
}
