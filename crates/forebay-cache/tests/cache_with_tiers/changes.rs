//! Writes while the tier is away: the old value is never served again by whoever wrote, and the tier is told when it is back.

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
    // What another process fetched after the clear may be read all the same.
    let later = Kept::new(Some(12), SystemTime::now() + ms(1));
    tier.keep(1, later);
    assert_eq!((value(&cache, 1).await, value(&cache, 2).await), (Some(12), Some(21)));
    tier.changes(Mood::Works);
    cache.settled().await;
    assert_eq!(tier_stats(&cache).owed, 0);
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
