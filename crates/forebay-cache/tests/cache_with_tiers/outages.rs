//! A Redis that is down, paused, slow, garbled or full: readers get the source's values, in time and without an error; the counts
//! tell; and when it is well again it is used again, by itself.

use forebay_cache::tier::BreakerState;
use testbed::{Behaviour, Proxy, Redis};

use super::*;

/// Of any read: the tier's timeout, and the rest for a busy machine.
const IN_TIME: Duration = ms(250 + 1_500);

/// A Redis behind a proxy, and a cache over it; each get is of a new key.
struct Site {
    redis: Redis,
    proxy: Proxy,
    cache: Tested,
    /// The next key.
    next: u64,
}

impl Site {
    async fn new() -> Self {
        let redis = Redis::start().unwrap();
        let proxy = Proxy::start(redis.address()).unwrap();
        let source = |key: u64| async move { Ok::<_, String>(Some(key * 10)) };
        let cache = Cache::builder(source)
            .tier(redis_tier(&format!("redis://{}/", proxy.address())))
            .tier_settings(impatient())
            .build();
        let mut site = Self {
            redis,
            proxy,
            cache,
            next: 1,
        };
        site.is_used().await;
        site
    }

    /// Reads keys that only the source knows, until the tier's counts say what they should.
    async fn readers_are_served_until(&mut self, told: impl Fn(&TierStats) -> bool) {
        let begun = std::time::Instant::now();
        loop {
            let key = self.next;
            self.next += 1;
            let got = self.cache.get_within(&key, IN_TIME).await;
            assert_eq!(got.unwrap(), Some(key * 10));
            let stats = tier_stats(&self.cache);
            if told(&stats) {
                return;
            }
            assert!(begun.elapsed() < SOON, "{stats:?}");
        }
    }

    /// Another process's values are read from the tier, whatever was before.
    async fn is_used(&mut self) {
        let tier = redis_tier(&self.redis.url());
        let begun = std::time::Instant::now();
        loop {
            let key = self.next;
            self.next += 1;
            // Not the source's value.
            tier.put_many(&[put(key, Some(7), secs(1))]).await.unwrap();
            match value(&self.cache, key).await {
                Some(7) => break,
                other => assert_eq!(other, Some(key * 10)),
            }
            assert!(begun.elapsed() < SOON, "{:?}", tier_stats(&self.cache));
            tokio::time::sleep(ms(10)).await;
        }
        assert_eq!(tier_stats(&self.cache).breaker, BreakerState::Closed);
    }

    /// And so are those of this process kept there.
    async fn is_filled(&mut self) {
        let begun = std::time::Instant::now();
        loop {
            let (key, puts) = (self.next, tier_stats(&self.cache).puts);
            self.next += 1;
            assert_eq!(value(&self.cache, key).await, Some(key * 10));
            settled(&self.cache).await;
            if tier_stats(&self.cache).puts > puts {
                return;
            }
            assert!(begun.elapsed() < SOON, "{:?}", tier_stats(&self.cache));
            tokio::time::sleep(ms(10)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_down() {
    let mut site = Site::new().await;
    site.redis.kill9().unwrap();
    site.readers_are_served_until(|stats| stats.errors >= 5 && stats.skipped > 0)
        .await;
    assert_ne!(tier_stats(&site.cache).breaker, BreakerState::Closed);
    site.redis.restart().unwrap();
    site.is_used().await;
    site.is_filled().await;
}

#[tokio::test]
async fn a_server_that_is_paused() {
    let mut site = Site::new().await;
    site.redis.pause().unwrap();
    site.readers_are_served_until(|stats| stats.timeouts >= 5 && stats.skipped > 0)
        .await;
    site.redis.resume().unwrap();
    site.is_used().await;
    site.is_filled().await;
}

#[tokio::test]
async fn a_server_that_is_slow() {
    let mut site = Site::new().await;
    site.proxy.set(Behaviour::Delay(ms(400)));
    site.readers_are_served_until(|stats| stats.timeouts >= 5 && stats.skipped > 0)
        .await;
    site.proxy.set(Behaviour::Pass);
    site.is_used().await;
    site.is_filled().await;
}

#[tokio::test]
async fn a_server_that_answers_garbage() {
    let mut site = Site::new().await;
    site.proxy.set(Behaviour::Garbage);
    site.readers_are_served_until(|stats| stats.errors >= 5 && stats.skipped > 0)
        .await;
    site.proxy.set(Behaviour::Pass);
    site.is_used().await;
    site.is_filled().await;
}

#[tokio::test]
async fn values_that_are_garbage() {
    let mut site = Site::new().await;
    for key in site.next..site.next + 3 {
        site.redis.command(&["SET", &format!("test:{key}"), "garbage"]).unwrap();
    }
    site.readers_are_served_until(|stats| stats.undecodable == 3).await;
    assert_eq!(tier_stats(&site.cache).breaker, BreakerState::Closed);
    site.is_used().await;
}

#[tokio::test]
async fn a_server_that_is_full() {
    let mut site = Site::new().await;
    site.redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    site.readers_are_served_until(|stats| stats.errors > 0 && stats.dropped > 0)
        .await;
    // It is read, and deletions go on.
    let hits = tier_stats(&site.cache).hits;
    let read_before = 1;
    let deleted = tokio::time::timeout(SOON, site.cache.invalidate(&read_before)).await;
    deleted.expect("a full server takes deletions");
    assert_eq!(
        (tier_stats(&site.cache).hits, tier_stats(&site.cache).breaker),
        (hits, BreakerState::Closed)
    );
    site.redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    site.is_used().await;
    site.is_filled().await;
}

#[tokio::test]
async fn a_server_that_was_never_there_keeps_nothing_from_starting() {
    let mut redis = Redis::start().unwrap();
    redis.kill9().unwrap();
    let database = Database::open().with(1, 10);
    let cache = database.cache(redis_tier(&redis.url())).build();
    assert_eq!(value(&cache, 1).await, Some(10));
    assert!(tier_stats(&cache).errors > 0);
}
