//! How flights go by the tiers: what they take from there, what they leave there, and what a write meanwhile does to them.

use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;

use forebay_batch::load::Loader;
use forebay_cache::tier::TierError;
use forebay_cache::tier::sqlite::SqliteTier;
use forebay_cache::{Entry, State};
use futures_util::future::join_all;
use testbed::Redis;
use tokio::task::JoinHandle;

use super::*;

/// A get that is waiting when this returns.
async fn begin_get(cache: &Tested, key: u64) -> JoinHandle<Option<u64>> {
    let cache = cache.clone();
    let get = tokio::spawn(async move { value(&cache, key).await });
    settle().await;
    assert!(!get.is_finished(), "it is to wait");
    get
}

/// A cache whose entries are fresh for 100 s and stale for 100 s more, missing ones for 10 s and 5 s.
fn timed(database: &Database, tier: &Fake, ticks: &Ticks) -> Tested {
    let builder = database.cache(tier.clone()).clock(ticks.clock());
    let builder = builder.fresh_for(secs(100)).stale_for(secs(100));
    builder.missing_fresh_for(secs(10)).missing_stale_for(secs(5)).build()
}

#[tokio::test(start_paused = true)]
async fn a_fetch_is_asked_for_after_the_tier_and_is_kept_there() {
    let (database, tier) = (Database::open().with(1, 10), Fake::new("tier"));
    let cache = database.cache(tier.clone()).build();
    assert_eq!(value(&cache, 1).await, Some(10));
    cache.settled().await;
    assert_eq!((tier.calls("get"), tier.calls("put")), (vec![vec![1]], vec![vec![1]]));
    assert_eq!(tier.kept(1).unwrap().value, Some(10));
    // A hit in memory asks nobody.
    assert_eq!(value(&cache, 1).await, Some(10));
    assert_eq!((tier.calls("get").len(), database.fetched().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_began_before_an_invalidation_leaves_nothing_anywhere() {
    let (database, tier) = (Database::shut().with(1, 10), Fake::new("tier"));
    let cache = database.cache(tier.clone()).build();
    let get = begin_get(&cache, 1).await;
    assert_eq!(database.fetched(), [1]);
    database.set(1, 11);
    cache.invalidate(&1).await;
    database.let_through(1);
    assert_eq!(get.await.unwrap(), Some(10), "who waited before may have the old value");
    cache.settled().await;
    settle().await;
    assert_eq!((cache.get_if_fresh(&1), tier.kept(1)), (None, None));
    assert!(tier.calls("put").is_empty());
    assert_eq!(cache.stats().late_dropped, 1);
    database.let_through(1);
    assert_eq!(value(&cache, 1).await, Some(11));
}

#[tokio::test(start_paused = true)]
async fn what_a_tier_was_read_for_before_an_invalidation_is_neither_answered_nor_kept() {
    for clears in [false, true] {
        let (database, tier) = (Database::open().with(1, 11), Fake::new("tier"));
        tier.keep(1, aged(Some(10), secs(1)));
        let cache = database.cache(tier.clone()).build();
        tier.shut();
        let get = begin_get(&cache, 1).await;
        assert_eq!(tier.calls("get").len(), 1);
        let _settled = if clears { cache.clear() } else { cache.invalidate(&1) };
        tier.let_through(2);
        assert_eq!(get.await.unwrap(), Some(11), "the source was asked");
        cache.settled().await;
        settle().await;
        assert_eq!((cache.get_if_fresh(&1), tier.kept(1)), (None, None));
        assert_eq!(value(&cache, 1).await, Some(11));
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_during_the_tiers_read_wins_everywhere() {
    let (database, tier) = (Database::open().with(1, 12), Fake::new("tier"));
    tier.keep(1, aged(Some(10), secs(1)));
    let cache = database.cache(tier.clone()).build();
    tier.shut();
    let get = begin_get(&cache, 1).await;
    let inserted = cache.insert(1, 12);
    tier.let_through(1);
    assert_ne!(get.await.unwrap(), Some(10), "the old value after it was replaced");
    inserted.await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(12)));
    assert_eq!(tier.kept(1).unwrap().value, Some(12));
}

#[tokio::test(start_paused = true)]
async fn a_background_refresh_takes_a_fresher_copy_from_the_tier() {
    let (database, tier, ticks) = (Database::open().with(1, 10), Fake::new("tier"), Ticks::new());
    let cache = timed(&database, &tier, &ticks);
    assert_eq!(value(&cache, 1).await, Some(10));
    cache.settled().await;
    ticks.turn(secs(150));
    // Another process has refreshed it.
    tier.keep(1, aged(Some(12), secs(20)));
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    let answer = cache.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(12), State::Fresh));
    assert!(answer.age >= secs(20), "{:?}", answer.age);
    assert_eq!(database.fetched(), [1], "the source was asked for what the tier has");
}

#[tokio::test(start_paused = true)]
async fn a_background_refresh_asks_the_source_where_the_tier_has_nothing_fresher() {
    for age in [secs(150), secs(120)] {
        let (database, tier, ticks) = (Database::open().with(1, 10), Fake::new("tier"), Ticks::new());
        let cache = timed(&database, &tier, &ticks);
        assert_eq!(value(&cache, 1).await, Some(10));
        cache.settled().await;
        ticks.turn(secs(150));
        // No fresher than memory's, or fresher but stale as well.
        tier.keep(1, aged(Some(10), age));
        database.set(1, 11);
        assert_eq!(value(&cache, 1).await, Some(10));
        settle().await;
        assert_eq!(
            (cache.get_if_fresh(&1), database.fetched()),
            (Some(Entry::Present(11)), vec![1, 1])
        );
        cache.settled().await;
        assert_eq!(tier.kept(1).unwrap().value, Some(11));
    }
}

/// With the real clocks: they tick differently, so that the same copy's age seems to be now this, now that.
#[tokio::test]
async fn a_background_refresh_is_not_content_with_the_copy_that_memory_has() {
    let (database, tier) = (Database::open().with(1, 10), Fake::new("tier"));
    let cache = database.cache(tier.clone()).refresh_ahead(0.0).build();
    for times in 1..=30 {
        assert_eq!(value(&cache, 1).await, Some(10));
        until("the flight", async || cache.stats().in_flight == 0).await;
        settled(&cache).await;
        assert_eq!(database.fetched().len(), times);
        // So that the clocks go on by something in between.
        tokio::time::sleep(ms(3)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_asked_for_never_takes_the_tiers_word() {
    let (database, tier) = (Database::open().with(1, 10), Fake::new("tier"));
    let cache = database.cache(tier.clone()).build();
    tier.keep(1, aged(Some(99), secs(0)));
    assert_eq!(cache.refresh(&1).await.unwrap(), Some(10));
    assert!(tier.calls("get").is_empty());
    cache.settled().await;
    assert_eq!(tier.kept(1).unwrap().value, Some(10), "others find the refreshed value");
}

#[tokio::test(start_paused = true)]
async fn a_missing_entry_is_kept_in_tiers_with_its_own_windows() {
    let (database, tier, ticks) = (Database::open().with(1, 10), Fake::new("tier"), Ticks::new());
    let cache = timed(&database, &tier, &ticks);
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(10), None));
    cache.settled().await;
    assert_eq!(tier.kept(2).unwrap().value, None);
    let about = |key, expected: u64| tier.kept_for(key).as_secs_f64().round() as u64 == expected;
    assert!(about(1, 200) && about(2, 15), "{:?}", tier.kept_for(2));
    tier.keep(3, aged(None, secs(8)));
    tier.keep(4, aged(None, secs(12)));
    tier.keep(5, aged(None, secs(16)));
    let mut states = Vec::new();
    for key in [3, 4, 5] {
        states.push(cache.lookup(&key).await.unwrap().state);
    }
    assert_eq!(states, [State::Fetched, State::Stale, State::Fetched]);
    settle().await;
    // The fresh one needed no source; the stale one was refreshed, the expired one fetched.
    let mut fetched = database.fetched();
    fetched.sort_unstable();
    assert_eq!(fetched, [1, 2, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn many_keys_are_asked_of_a_tier_at_once() {
    let (database, tier) = (Database::open().with(2, 20).with(3, 30), Fake::new("tier"));
    tier.keep(1, aged(Some(10), secs(1)));
    let cache = database.cache(tier.clone()).build();
    cache.insert(9, 90).await;
    let values: Vec<_> = cache.get_many([9, 3, 1, 2, 1, 4]).await;
    let values: Vec<_> = values.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, [Some(90), Some(30), Some(10), Some(20), Some(10), None]);
    assert_eq!(tier.calls("get"), [[3, 1, 2, 4]]);
    let mut fetched = database.fetched();
    fetched.sort_unstable();
    assert_eq!(fetched, [2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn tiers_are_asked_in_order_and_what_a_lower_one_has_is_carried_up() {
    let (database, upper, lower) = (Database::open(), Fake::new("upper"), Fake::new("lower"));
    let cache = database.cache(upper.clone()).tier(lower.clone()).build();
    let kept = aged(Some(10), secs(7));
    lower.keep(1, kept.clone());
    upper.keep(2, aged(Some(20), secs(1)));
    lower.keep(2, aged(Some(22), secs(1)));
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(10), Some(20)));
    cache.settled().await;
    assert_eq!(upper.kept(1), Some(kept.clone()), "carried up, and as old as it was");
    let left = upper.kept_for(1);
    assert!(left > HOUR - secs(10) && left <= HOUR - secs(7), "{left:?}");
    assert_eq!(lower.calls("get"), [[1]], "asked for what the upper one had");
    assert!(database.fetched().is_empty());
    // A lower one's answer holds also where the upper one fails.
    upper.all(Mood::Fails);
    lower.keep(3, kept.clone());
    assert_eq!(value(&cache, 3).await, Some(10));
}

#[tokio::test]
async fn sqlite_above_redis_keeps_what_redis_had() {
    let (mut redis, folder) = (Redis::start().unwrap(), tempfile::tempdir().unwrap());
    let sqlite = SqliteTier::builder(folder.path().join("tier"), form()).open().unwrap();
    redis_tier(&redis.url())
        .put_many(&[put(1, Some(10), secs(1))])
        .await
        .unwrap();
    let database = Database::open();
    // Memory keeps nothing, so that each get goes down.
    let cache = database
        .cache(sqlite)
        .tier(redis_tier(&redis.url()))
        .capacity(0)
        .build();
    assert_eq!(value(&cache, 1).await, Some(10));
    settled(&cache).await;
    redis.kill9().unwrap();
    assert_eq!(value(&cache, 1).await, Some(10));
    let stats = cache.stats();
    assert_eq!((stats.tiers[0].hits, stats.tiers[1].hits, stats.fetches), (1, 1, 0));
}

/// A key whose drop panics once it is told to.
#[derive(Debug)]
struct Bomb(u64, Arc<AtomicBool>);

impl Clone for Bomb {
    fn clone(&self) -> Self {
        Self(self.0, Arc::clone(&self.1))
    }
}

impl PartialEq for Bomb {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Bomb {}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.1.swap(false, SeqCst), "told to panic");
    }
}

/// It has nothing, and who has asked it drops a bomb.
struct Arms;

impl Tier<Bomb, u64> for Arms {
    fn name(&self) -> &str {
        "arms"
    }

    fn get_many<'a>(&'a self, keys: &'a [Bomb]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        Box::pin(async move {
            keys[0].1.store(true, SeqCst);
            Ok(keys.iter().map(|_| None).collect())
        })
    }

    fn put_many<'a>(&'a self, _: &'a [Put<Bomb, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async { Ok(()) })
    }

    fn delete_many<'a>(&'a self, _: &'a [Bomb]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async { Ok(()) })
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_flight_ends_though_a_keys_drop_panics() {
    let source = |key: Bomb| async move { Ok::<_, String>(Some(key.0)) };
    let cache: Cache<Bomb, u64, String> = Cache::builder(source).tier(Arms).build();
    for key in 0..3 {
        let key = Bomb(key, Arc::default());
        let got = tokio::time::timeout(HOUR, cache.get(&key)).await;
        assert_eq!(got.expect("it ends").unwrap(), Some(key.0));
        assert!(!key.1.load(SeqCst), "it has panicked");
        assert_eq!(cache.stats().in_flight, 0);
    }
}

/// Nobody waits for it when it gets in line; who comes then is not overtaken for ever.
#[tokio::test(start_paused = true)]
async fn what_is_in_line_without_anybody_who_waits_is_whoever_s_who_comes() {
    let (database, tier) = (Database::shut(), Fake::new("slow"));
    overtaken_by_none(Cache::builder(database.source()), &database, &tier, 1).await;
    for keys in [1, 3] {
        let (database, tier) = (Database::shut(), Fake::new("slow"));
        let source = database.source();
        let many = move |keys: Vec<u64>| {
            let fetches = keys.into_iter().map(|key| {
                let fetch = source(key);
                async move { Ok::<_, String>((key, fetch.await?)) }
            });
            let fetched = join_all(fetches);
            async move {
                let found: Vec<(u64, Option<u64>)> = fetched.await.into_iter().collect::<Result<_, _>>()?;
                let found = found.into_iter().filter_map(|(key, value)| Some((key, value?)));
                Ok::<_, String>(found.collect::<HashMap<_, _>>())
            }
        };
        let loader = Loader::builder().build(many);
        overtaken_by_none(Cache::builder(loader), &database, &tier, keys).await;
    }
}

async fn overtaken_by_none<E: Send + Sync + 'static>(
    builder: CacheBuilder<u64, u64, E>,
    database: &Database,
    tier: &Fake,
    keys: u64,
) {
    let cache = builder.fresh_for(HOUR).tier(tier.clone()).max_fetches(1).build();
    let get = |keys: Vec<u64>| {
        let cache = cache.clone();
        tokio::spawn(async move { drop(cache.get_many(keys).await) })
    };
    let _holds_the_turn = get(vec![90]);
    settle().await;
    tier.shut();
    let gone = get((1..=keys).collect());
    settle().await;
    gone.abort();
    settle().await;
    tier.let_through(1_000);
    settle().await;
    let _two = get(vec![20]);
    settle().await;
    let reader = get(vec![keys]);
    settle().await;
    let _three = get(vec![30]);
    settle().await;
    assert_eq!(cache.stats().in_line, 3);
    while !database.fetched().contains(&30) {
        database.let_through(1);
        settle().await;
    }
    assert!(reader.is_finished(), "{keys}: {:?}", database.fetched());
}
