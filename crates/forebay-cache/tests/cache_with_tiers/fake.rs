//! A tier in memory that errs, hangs and waits as it is told, and tells what it was asked.

use super::*;
use forebay_cache::tier::{Abilities, TierError};
use std::sync::atomic::AtomicBool;

/// What it does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Works,
    Fails,
    Hangs,
    /// Waits for a permit, and then works.
    Waits,
}

/// A handle to one; what one handle is told holds for all.
#[derive(Clone)]
pub(super) struct Fake(Arc<Inside>);

struct Inside {
    name: &'static str,
    kept: Mutex<HashMap<u64, Kept<u64>>>,
    kept_for: Mutex<HashMap<u64, Duration>>,
    reads: Mutex<Mood>,
    changes: Mutex<Mood>,
    is_shared: AtomicBool,
    /// Keys of each call, by its name.
    calls: Mutex<Vec<(&'static str, Vec<u64>)>>,
    /// Reads have looked, and wait for a permit before they answer, if it is shut.
    is_shut: Mutex<bool>,
    permits: Semaphore,
}

impl Fake {
    pub(super) fn new(name: &'static str) -> Self {
        Self(Arc::new(Inside {
            name,
            kept: Mutex::default(),
            kept_for: Mutex::default(),
            reads: Mutex::new(Mood::Works),
            changes: Mutex::new(Mood::Works),
            is_shared: AtomicBool::new(false),
            calls: Mutex::default(),
            is_shut: Mutex::new(false),
            permits: Semaphore::new(0),
        }))
    }

    /// One that other processes change too.
    pub(super) fn shared(name: &'static str) -> Self {
        let fake = Self::new(name);
        fake.0.is_shared.store(true, SeqCst);
        fake
    }

    pub(super) fn all(&self, mood: Mood) {
        *self.0.reads.lock() = mood;
        self.changes(mood);
    }

    pub(super) fn changes(&self, mood: Mood) {
        *self.0.changes.lock() = mood;
    }

    /// From now on reads wait for [`let_through`](Self::let_through), with what they found.
    pub(super) fn shut(&self) {
        *self.0.is_shut.lock() = true;
    }

    pub(super) fn let_through(&self, calls: usize) {
        self.0.permits.add_permits(calls);
    }

    pub(super) fn keep(&self, key: u64, kept: Kept<u64>) {
        self.0.kept.lock().insert(key, kept);
    }

    pub(super) fn kept(&self, key: u64) -> Option<Kept<u64>> {
        self.0.kept.lock().get(&key).cloned()
    }

    pub(super) fn kept_for(&self, key: u64) -> Duration {
        self.0.kept_for.lock()[&key]
    }

    /// The keys of each call of that name so far.
    pub(super) fn calls(&self, name: &str) -> Vec<Vec<u64>> {
        let calls = self.0.calls.lock();
        let named = calls.iter().filter(|(call, _)| *call == name);
        named.map(|(_, keys)| keys.clone()).collect()
    }

    /// How many hold it, the caller's handle included.
    pub(super) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    async fn call<T>(
        &self,
        name: &'static str,
        keys: Vec<u64>,
        mood: &Mutex<Mood>,
        work: impl FnOnce() -> T,
    ) -> Result<T, TierError> {
        self.0.calls.lock().push((name, keys));
        let mood = *mood.lock();
        match mood {
            Mood::Works => {}
            Mood::Fails => return Err(TierError::failed("do as told", "told to fail")),
            Mood::Hangs => std::future::pending().await,
            Mood::Waits => self.0.permits.acquire().await.unwrap().forget(),
        }
        let done = work();
        let waits = name == "get" && *self.0.is_shut.lock();
        if waits {
            self.0.permits.acquire().await.unwrap().forget();
        }
        Ok(done)
    }
}

impl Tier<u64, u64> for Fake {
    fn name(&self) -> &str {
        self.0.name
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        let work = move || keys.iter().map(|key| self.kept(*key)).collect();
        Box::pin(self.call("get", keys.to_vec(), &self.0.reads, work))
    }

    fn abilities(&self) -> Abilities {
        let mut abilities = Abilities::default();
        abilities.shared = self.0.is_shared.load(SeqCst);
        abilities
    }

    fn put_many<'a>(&'a self, entries: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        let keys = entries.iter().map(|put| put.key).collect();
        Box::pin(self.call("put", keys, &self.0.changes, move || {
            for put in entries {
                self.keep(put.key, put.kept.clone());
                self.0.kept_for.lock().insert(put.key, put.keep_for);
            }
        }))
    }

    fn delete_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.call("delete", keys.to_vec(), &self.0.changes, move || {
            self.0.kept.lock().retain(|key, _| !keys.contains(key));
        }))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.call("clear", Vec::new(), &self.0.changes, || self.0.kept.lock().clear()))
    }
}
