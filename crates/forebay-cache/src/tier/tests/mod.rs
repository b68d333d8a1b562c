//! Tests of the tiers together: each line of the contract, on a tier in memory that errs, hangs, panics and delays as it is told,
//! with tokio's stopped clock; then on a real Redis.
#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod changing;
mod clearing;
mod endings;
mod reading;
mod redis;
mod schedule;
mod tags;
mod times;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Abilities, Kept, Put, Tier, TierError, TierSettings, TierStats, Tiers};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What a fake does with the calls of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Works,
    Fails,
    Hangs,
    Panics,
    Miscounts,
}

/// A tier in memory.
struct Fake {
    name: &'static str,
    kept: Mutex<HashMap<u64, Kept<u64>>>,
    reads: Mutex<Mood>,
    puts: Mutex<Mood>,
    deletes: Mutex<Mood>,
    /// Each call takes one permit, when it is there, before it does anything, and another after; none are needed unless
    /// `is_gated`.
    gate: Semaphore,
    is_gated: Mutex<bool>,
    /// How long it takes for each.
    per_key: Mutex<Duration>,
    /// Each call's name, size and moment.
    calls: Mutex<Vec<(&'static str, usize, Instant)>>,
    kept_for: Mutex<HashMap<u64, Duration>>,
    changing: AtomicUsize,
    /// The tags of each call, if it keeps any. It only notes them.
    keeps_tags: AtomicBool,
    is_shared: AtomicBool,
    tags: Mutex<Vec<Vec<Arc<str>>>>,
}

impl Fake {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            kept: Mutex::default(),
            reads: Mutex::new(Mood::Works),
            puts: Mutex::new(Mood::Works),
            deletes: Mutex::new(Mood::Works),
            gate: Semaphore::new(0),
            is_gated: Mutex::new(false),
            per_key: Mutex::default(),
            calls: Mutex::default(),
            kept_for: Mutex::default(),
            changing: AtomicUsize::new(0),
            keeps_tags: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            tags: Mutex::default(),
        })
    }

    /// One that other processes change too.
    fn shared(name: &'static str) -> Arc<Self> {
        let fake = Self::new(name);
        fake.is_shared.store(true, SeqCst);
        fake
    }

    fn all(&self, mood: Mood) {
        *self.reads.lock() = mood;
        self.changes(mood);
    }

    fn changes(&self, mood: Mood) {
        *self.puts.lock() = mood;
        *self.deletes.lock() = mood;
    }

    fn keep(&self, key: u64, kept: Kept<u64>) {
        self.kept.lock().insert(key, kept);
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.kept.lock().get(&key).and_then(|kept| kept.value)
    }

    fn calls(&self, name: &str) -> Vec<(usize, Instant)> {
        let calls = self.calls.lock();
        let named = calls.iter().filter(|(call, ..)| *call == name);
        named.map(|(_, size, at)| (*size, *at)).collect()
    }

    async fn step(&self) {
        let is_gated = *self.is_gated.lock();
        if is_gated {
            self.gate.acquire().await.unwrap().forget();
        }
    }

    async fn call<T>(
        &self,
        name: &'static str,
        size: usize,
        mood: &Mutex<Mood>,
        work: impl FnOnce(Mood) -> T,
    ) -> Result<T, TierError> {
        self.calls.lock().push((name, size, Instant::now()));
        self.step().await;
        let takes = *self.per_key.lock() * u32::try_from(size).unwrap();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let mood = *mood.lock();
        let done = match mood {
            Mood::Works | Mood::Miscounts => work(mood),
            Mood::Fails => return Err(TierError::failed("do as told", "told to fail")),
            Mood::Hangs => std::future::pending().await,
            Mood::Panics => panic!("told to panic"),
        };
        self.step().await;
        Ok(done)
    }

    async fn change<T>(
        &self,
        name: &'static str,
        size: usize,
        mood: &Mutex<Mood>,
        work: impl FnOnce(Mood) -> T,
    ) -> Result<T, TierError> {
        struct Changing<'a>(&'a AtomicUsize);
        impl Drop for Changing<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, SeqCst);
            }
        }
        assert_eq!(
            self.changing.fetch_add(1, SeqCst),
            0,
            "two batches of changes at a time"
        );
        let _changing = Changing(&self.changing);
        assert!(size <= 512, "a batch of {size}");
        self.call(name, size, mood, work).await
    }
}

impl Tier<u64, u64> for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        Box::pin(self.call("get", keys.len(), &self.reads, move |mood| {
            let kept = self.kept.lock();
            let short = usize::from(mood == Mood::Miscounts);
            keys.iter().skip(short).map(|key| kept.get(key).cloned()).collect()
        }))
    }

    fn put_many<'a>(&'a self, entries: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.change("put", entries.len(), &self.puts, move |_| {
            for put in entries {
                self.keep(put.key, put.kept.clone());
                self.kept_for.lock().insert(put.key, put.keep_for);
            }
        }))
    }

    fn delete_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.change("delete", keys.len(), &self.deletes, move |_| {
            self.kept.lock().retain(|key, _| !keys.contains(key));
        }))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.change("clear", 0, &self.deletes, |_| self.kept.lock().clear()))
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            tags: self.keeps_tags.load(SeqCst),
            shared: self.is_shared.load(SeqCst),
            ..Abilities::default()
        }
    }

    fn invalidate_tags<'a>(&'a self, tags: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.change("tags", tags.len(), &self.deletes, |_| {
            self.tags.lock().push(tags.to_vec());
        }))
    }
}

/// The wall clock begins here and goes with tokio's.
fn epoch() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// The default settings, with a wall clock that goes with tokio's: it stands at [`epoch`] now.
fn settings() -> TierSettings {
    let begun = Instant::now();
    TierSettings::default().wall_clock(move || epoch() + begun.elapsed())
}

/// Changes in one go, as no lock of the core is held here.
impl<V: Clone + Send + Sync + 'static> Tiers<u64, V> {
    fn fill_with(&self, put: Put<u64, V>) {
        self.fill_replacing(put, false);
    }

    fn fill_replacing(&self, put: Put<u64, V>, replaces: bool) {
        let prepared = self.prepare(put.key, put.kept, put.keep_for, &self.before());
        drop(self.fill(prepared, None, replaces, || true));
    }

    fn insert_with(&self, put: Put<u64, V>) {
        drop(self.insert(self.prepare(put.key, put.kept, put.keep_for, &self.before())));
    }
}

fn tiers_with(fakes: &[&Arc<Fake>], settings: TierSettings) -> Tiers<u64, u64> {
    let tiers = fakes.iter().map(|fake| Arc::clone(fake) as Arc<dyn Tier<u64, u64>>);
    Tiers::new(tiers.collect(), settings, None, Arc::new(|| Handle::try_current().ok()))
}

fn tiers(fakes: &[&Arc<Fake>]) -> Tiers<u64, u64> {
    tiers_with(fakes, settings())
}

fn kept(value: u64, fetched_at: SystemTime) -> Kept<u64> {
    let value = Some(value);
    Kept::new(value, fetched_at)
}

/// To be kept for an hour.
fn put(key: u64, value: u64, fetched_at: SystemTime) -> Put<u64, u64> {
    Put::new(key, kept(value, fetched_at), Duration::from_secs(3600))
}

async fn read(tiers: &Tiers<u64, u64>, keys: &[u64]) -> Vec<Option<u64>> {
    let found = tiers.get_many(keys, &|_, _, _| true).await;
    found
        .into_iter()
        .map(|found| found.and_then(|found| found.kept.value))
        .collect()
}

fn stats(tiers: &Tiers<u64, u64>) -> TierStats {
    tiers.stats().remove(0)
}

/// Lets every task run until it waits for time or for the test.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
