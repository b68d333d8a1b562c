//! The `Cache` with tiers below its memory, as its user sees it: tests for each line of what it promises of them, on a real Redis,
//! on real SQLite files, and on a tier in memory where the order of things is to be chosen.
//!
//! Ages follow a clock that a test turns by hand. Where nothing real takes part, time is tokio's stopped clock; where something
//! does, a test waits for the thing itself, with a bound. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod changes;
mod endings;
mod fake;
mod flights;
mod outages;
mod publishing;
mod restart;
mod sharing;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use forebay_cache::tier::redis::RedisTier;
use forebay_cache::tier::{Form, Kept, KeyForm, Postcard, Put, Tier, TierSettings, TierStats};
use forebay_cache::{Cache, CacheBuilder, CacheError, Clock};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use fake::{Fake, Mood};

type Tested = Cache<u64, u64, String>;

const HOUR: Duration = Duration::from_secs(3600);
/// What a slow machine may take; nothing here waits so long unless something is wrong.
const SOON: Duration = Duration::from_secs(20);

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock that stands still until it is turned.
#[derive(Clone)]
struct Ticks(Arc<AtomicU64>);

impl Ticks {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000_000)))
    }

    fn turn(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, SeqCst);
    }

    fn clock(&self) -> impl Clock {
        let ticks = Arc::clone(&self.0);
        move || ticks.load(SeqCst)
    }
}

/// What a cache stands in front of. A fetch reads its row when it begins, and waits for a permit before it answers.
#[derive(Clone)]
struct Database(Arc<Rows>);

struct Rows {
    rows: Mutex<HashMap<u64, u64>>,
    fetched: Mutex<Vec<u64>>,
    permits: Semaphore,
}

impl Database {
    /// Its fetches wait for [`let_through`](Self::let_through).
    fn shut() -> Self {
        Self(Arc::new(Rows {
            rows: Mutex::default(),
            fetched: Mutex::default(),
            permits: Semaphore::new(0),
        }))
    }

    /// Its fetches answer at once.
    fn open() -> Self {
        let database = Self::shut();
        database.let_through(1_000_000);
        database
    }

    fn with(self, key: u64, value: u64) -> Self {
        self.set(key, value);
        self
    }

    fn set(&self, key: u64, value: u64) {
        self.0.rows.lock().insert(key, value);
    }

    fn let_through(&self, fetches: usize) {
        self.0.permits.add_permits(fetches);
    }

    /// The keys fetched so far, in order.
    fn fetched(&self) -> Vec<u64> {
        self.0.fetched.lock().clone()
    }

    fn source(&self) -> impl Fn(u64) -> BoxFuture<'static, Result<Option<u64>, String>> + Send + Sync + 'static {
        let rows = Arc::clone(&self.0);
        move |key| {
            let rows = Arc::clone(&rows);
            Box::pin(async move {
                rows.fetched.lock().push(key);
                let value = rows.rows.lock().get(&key).copied();
                rows.permits.acquire().await.unwrap().forget();
                Ok(value)
            })
        }
    }

    /// A cache over it, and one tier.
    fn cache(&self, tier: impl Tier<u64, u64>) -> CacheBuilder<u64, u64, String> {
        Cache::builder(self.source())
            .fresh_for(HOUR)
            .tier(tier)
            .tier_settings(impatient())
    }
}

/// Settings under which what failed is tried again soon.
fn impatient() -> TierSettings {
    let mut settings = TierSettings::default();
    settings.pause = (ms(50), ms(200));
    settings.retry_after = (ms(20), ms(100));
    settings
}

fn form() -> Form<u64, u64> {
    Form::new("test", KeyForm::display(), Postcard)
}

fn redis_tier(address: &str) -> RedisTier<u64, u64> {
    RedisTier::open(address, form()).unwrap()
}

/// A value that was fetched so long ago by somebody.
fn aged(value: Option<u64>, age: Duration) -> Kept<u64> {
    let fetched_at = SystemTime::now() - age;
    Kept::new(value, fetched_at)
}

/// The same, to be kept for an hour.
fn put(key: u64, value: Option<u64>, age: Duration) -> Put<u64, u64> {
    Put::new(key, aged(value, age), HOUR)
}

/// The counts of the first tier.
fn tier_stats(cache: &Tested) -> TierStats {
    cache.stats().tiers.remove(0)
}

async fn value(cache: &Tested, key: u64) -> Option<u64> {
    cache.get(&key).await.unwrap()
}

/// Waits for a thing, in real time, with a bound.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = std::time::Instant::now();
    while !is_so().await {
        assert!(waited.elapsed() < SOON, "waited for long: {what}");
        tokio::time::sleep(ms(5)).await;
    }
}

/// The same for all that was written to have come to the tiers.
async fn settled(cache: &Tested) {
    tokio::time::timeout(SOON, cache.settled())
        .await
        .expect("what was written has not come to the tiers");
}

/// Lets every task that can run do so, on the single thread of a test with a stopped clock.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}
