//! Tests of the store as a whole. Records tell whether they are alive, and count how many were dropped.

mod capacity;
mod contents;
mod stress;
mod user_code;

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Store;
use super::limbo::Backlog;

const ALIVE: u64 = 0xA11C_E0A1_1CE0_A11C;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// How many records there are.
#[derive(Clone, Default)]
struct Census {
    made: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

/// A record that poisons itself when it is dropped.
struct Canary {
    alive: Box<AtomicU64>,
    key: u64,
    version: u64,
    census: Census,
}

impl Census {
    fn canary(&self, key: u64, version: u64) -> Canary {
        self.made.fetch_add(1, Relaxed);
        Canary {
            alive: Box::new(AtomicU64::new(ALIVE)),
            key,
            version,
            census: self.clone(),
        }
    }

    fn living(&self) -> u64 {
        self.made.load(Relaxed) - self.dropped.load(Relaxed)
    }
}

impl Canary {
    /// The version, after making sure that this is the living record of the key.
    fn version_for(&self, key: u64) -> u64 {
        assert_eq!(self.alive.load(Relaxed), ALIVE, "no record is dropped while it is read");
        assert_eq!(self.key, key, "a record belongs to its key");
        self.version
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        assert_eq!(self.alive.swap(DEAD, Relaxed), ALIVE, "a record is dropped once");
        self.census.dropped.fetch_add(1, Relaxed);
    }
}

/// Writes with their second halves.
impl<K: Hash + Eq, T> Store<K, T> {
    fn insert_and_tidy(&self, hash: u64, key: K, weight: u32, record: T) -> super::Inserted {
        let inserted = self.insert(hash, key, weight, record);
        self.tidy(hash, inserted);
        inserted
    }

    fn remove_and_tidy<Q>(&self, hash: u64, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let removed = self.remove(hash, key);
        self.tidy_removed(hash);
        removed
    }

    fn clear_and_tidy(&self) -> u64 {
        let cleared = self.clear();
        self.tidy_cleared();
        cleared
    }
}

impl<T> Store<u64, T> {
    fn put(&self, key: u64, weight: u32, record: T) -> super::Inserted {
        self.insert_and_tidy(self.hash(&key), key, weight, record)
    }

    fn take_out(&self, key: u64) -> bool {
        self.remove_and_tidy(self.hash(&key), &key)
    }

    /// The record, copied out by a counted read.
    fn copied(&self, key: u64) -> Option<T>
    where
        T: Clone,
    {
        self.read(self.hash(&key), &key, |record| (record.clone(), true))
    }

    fn has(&self, key: u64) -> bool {
        self.peek(self.hash(&key), &key, |_| ()).is_some()
    }

    fn footprint(&self) -> (usize, usize) {
        (0..self.shards.count())
            .map(|shard| self.shards.lock(shard).footprint())
            .fold((0, 0), |(room, buckets), shard| (room + shard.0, buckets + shard.1))
    }

    fn backlogs(&self) -> Vec<Backlog> {
        (0..self.shards.count())
            .map(|shard| self.shards.lock(shard).backlog())
            .collect()
    }
}

/// A small generator whose seed is printed: what fails can be run again.
struct Schedule(u64);

impl Schedule {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
