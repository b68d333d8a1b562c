//! The cache's store: a concurrent map that never holds more than its capacity and is read without a lock.
//!
//! Promises:
//! - [`insert`](Store::insert_telling), [`remove`](Store::remove) and [`read`](Store::read) of a key are linearizable: once a write has
//!   returned, every read sees it or a later one. One entry per key.
//! - [`weight`](Store::weight) never exceeds the capacity, at no instant. What does not fit pushes out what the policy can spare
//!   most; what could never fit is not admitted, and the key's old entry goes then too.
//! - A read takes no lock and allocates nothing; two atomic operations on a line of its own, one of which counts the hit. The entry
//!   lives while `visit` runs, whatever writers do, and `visit` may read and write this store and others.
//! - Memory follows the entries that are there, not the capacity; [`clear`](Store::clear) gives it back.
//! - A write neither drops anything nor waits for readers: its second half, [`tidy`](Store::tidy), does, when its caller holds
//!   no lock either.
//! - User code that panics (`Eq`, `Drop`, `visit`) leaves the store whole. Keys and records are dropped exactly once, while no lock is
//!   held. A record that was taken out may live on for a few writes, with a bounded number and weight of others.
//!
//! Asked of its users: a key's `Eq` and `Hash` must not write to the same store, since writes compare keys under a lock; a thread
//! that writes may wait for `visit`s that run elsewhere, so these must not wait for it.
//!
//! Knows nothing of freshness, sources, tiers or async: a record is what the core makes it.
//!
//! How it is built: `shard` (a lock for writers, a table for readers) stands on `slots` (where is a key's entry: in
//! which `segment`, and where there), `slab` (the entries' memory), `policy` (who has to go, by one of the rules of `rule`, which `trials` choose), `readers` (who may still be looking) and `limbo` (what waits for them). The
//! `budget` is the whole store's. All unsafe code is in `slab`, `segment`, `slots` and `shard`, and a
//! hint to the processor in `prefetch`.

mod budget;
mod ghosts;
mod limbo;
mod node;
mod policy;
mod prefetch;
mod queue;
mod readers;
mod rule;
mod segment;
mod shard;
mod slab;
mod slots;
mod sync;
mod trials;

#[cfg(all(test, forebay_loom))]
mod model;
#[cfg(all(test, not(forebay_loom)))]
mod tests;

pub(super) use readers::thread_number;

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use parking_lot::Mutex;

use budget::{Budget, Reservation};
use ghosts::Memory;
use shard::{Locked, Settle, Shards};
use sync::OwnCacheLine;

/// A shard is not made for less capacity than this.
const CAPACITY_OF_A_SHARD: u64 = 1_024;
/// Below this one shard is enough.
const CAPACITY_OF_SHARDS: u64 = 4 * CAPACITY_OF_A_SHARD;

/// See the module.
pub(super) struct Store<K, T> {
    shards: Shards<K, T>,
    /// Seeded at random: keys come from users, who must not be able to make them collide.
    hasher: foldhash::quality::RandomState,
    budget: OwnCacheLine<Budget>,
    /// Whose turn it is to push out entries of shards other than its own, so that two who need much never each wait for what the
    /// other has reserved. Taken before a shard's lock, never after.
    turn: Mutex<()>,
}

/// What an insert did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inserted {
    /// The key had an entry, which is gone.
    pub(super) replaced: bool,
    /// The new entry is there. Not so for what weighs more than the whole capacity.
    pub(super) admitted: bool,
    /// How many entries of other keys had to go.
    pub(super) evicted: u64,
    /// What those weighed.
    pub(super) evicted_weight: u64,
    /// They may have been in any shard.
    everywhere: bool,
    /// So much waits to be dropped that it is time to look whether it can be.
    settles: bool,
}

impl Inserted {
    /// Whether [`tidy`](Store::tidy) has something to do.
    #[inline]
    pub(super) fn settles(self) -> bool {
        self.settles
    }
}

impl<K: Hash + Eq, T> Store<K, T> {
    /// Keeps entries of a total weight up to `capacity`; nothing at all when that is zero.
    pub(super) fn new(capacity: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let shards = if capacity < CAPACITY_OF_SHARDS {
            1
        } else {
            let most = usize::try_from(capacity / CAPACITY_OF_A_SHARD).unwrap_or(usize::MAX);
            // Rounded down: a power of two is what the shards are.
            (4 * cores.next_power_of_two()).min(1 << most.ilog2())
        };
        Self::with(capacity, shards, 2 * cores)
    }

    fn with(capacity: u64, shards: usize, stripes: usize) -> Self {
        Self {
            shards: Shards::new(shards, stripes, capacity),
            hasher: foldhash::quality::RandomState::default(),
            budget: OwnCacheLine(Budget::new(capacity)),
            turn: Mutex::new(()),
        }
    }

    /// What the other methods want with a key.
    #[inline]
    pub(super) fn hash<Q>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.hasher.hash_one(key)
    }

    /// Looks a key up and marks its entry as used. The bool that `visit` returns says whether the read is counted.
    #[inline]
    pub(super) fn read<Q, R>(&self, hash: u64, key: &Q, visit: impl FnOnce(&T) -> (R, bool)) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.shards.read::<_, _, true>(hash, key, visit)
    }

    /// As [`read`](Self::read), without marking or counting.
    #[inline]
    pub(super) fn peek<Q, R>(&self, hash: u64, key: &Q, visit: impl FnOnce(&T) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.shards
            .read::<_, _, false>(hash, key, |record| (visit(record), false))
    }

    /// Puts in the key's only entry; [`tidy`](Self::tidy) must follow. A weight of zero counts as one: the number of entries is bounded too.
    #[cfg(test)]
    pub(super) fn insert(&self, hash: u64, key: K, weight: u32, record: T) -> Inserted {
        self.insert_telling(hash, key, weight, record, |_| {})
    }

    /// The same, and tells the keys of the entries that had to go, under the lock of their shard.
    #[inline]
    pub(super) fn insert_telling(
        &self,
        hash: u64,
        key: K,
        weight: u32,
        record: T,
        evicted: impl FnMut(&K),
    ) -> Inserted {
        let weight = weight.max(1);
        if u64::from(weight) > self.capacity() {
            let replaced = self.remove(hash, &key);
            return Inserted {
                replaced,
                settles: replaced,
                ..Inserted::default()
            };
        }
        let own = self.shards.index_of(hash);
        let mut write = Write::new(hash, weight, self.budget.0.reserve(), evicted);
        let mut locked = self.shards.lock(own);
        locked.prefetch(hash);
        let done = if let Ok(existing) = write.make_room(&mut locked, &key) {
            let done = write.link(&mut locked, existing, key, record);
            drop(locked);
            done
        } else {
            write.give_back(&self.budget.0);
            drop(locked);
            self.insert_in_turn(write, key, record)
        };
        if !done.replaced {
            self.shards.missed(hash, weight);
        }
        done
    }

    /// When the key's own shard has not enough to give.
    #[cold]
    fn insert_in_turn<'a>(&'a self, mut write: Write<'a, impl FnMut(&K)>, key: K, record: T) -> Inserted {
        let own = self.shards.index_of(write.hash);
        let turn = self.turn.lock();
        // Others hold reservations only while they are in their own shard and finish or give back without waiting for anybody. So
        // what this one holds only grows, and every round finds an entry to push out, or free weight, or others at work.
        let mut done = loop {
            let mut locked = self.shards.lock(own);
            let needed = match write.make_room(&mut locked, &key) {
                Ok(existing) => break write.link(&mut locked, existing, key, record),
                Err(needed) => needed,
            };
            drop(locked);
            let others = (own + 1..self.shards.count()).chain(0..own);
            if !others
                .into_iter()
                .any(|other| write.push_out(&mut self.shards.lock(other), needed))
            {
                std::thread::yield_now();
            }
        };
        drop(turn);
        (done.everywhere, done.settles) = (true, true);
        done
    }

    /// The second half of an [`insert`](Self::insert_telling), for when no lock is held: drops what was taken out and no reader can see
    /// any more, and waits for readers where too much is left.
    pub(super) fn tidy(&self, hash: u64, done: Inserted) {
        if !done.settles {
            return;
        }
        let own = self.shards.index_of(hash);
        let shards = if done.everywhere {
            0..self.shards.count()
        } else {
            own..own + 1
        };
        for shard in shards {
            self.shards.finish(shard, self.shards.lock(shard), Settle::Later);
        }
    }

    /// The same after [`remove`](Self::remove), and with more zeal: a value that was invalidated should go.
    pub(super) fn tidy_removed(&self, hash: u64) {
        let own = self.shards.index_of(hash);
        self.shards.finish(own, self.shards.lock(own), Settle::Now);
    }

    /// The same after [`clear`](Self::clear).
    pub(super) fn tidy_cleared(&self) {
        for shard in 0..self.shards.count() {
            self.shards.finish(shard, self.shards.lock(shard), Settle::All);
        }
    }

    /// Takes the key's entry out; [`tidy_removed`](Self::tidy_removed) must follow. False if it had none.
    pub(super) fn remove<Q>(&self, hash: u64, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let shard = self.shards.index_of(hash);
        let mut locked = self.shards.lock(shard);
        let Some(number) = locked.find(hash, key) else {
            return false;
        };
        self.budget.0.give_back(locked.remove(number));
        true
    }

    /// Takes everything out, shard by shard; [`tidy_cleared`](Self::tidy_cleared) must follow. Returns how many entries went.
    pub(super) fn clear(&self) -> u64 {
        let mut count = 0;
        for shard in 0..self.shards.count() {
            let mut locked = self.shards.lock(shard);
            let (entries, weight) = locked.clear();
            self.budget.0.give_back(weight);
            count += entries;
        }
        count
    }

    /// The reads that were counted.
    pub(super) fn counted(&self) -> u64 {
        self.shards.readers().counted()
    }

    /// The entries that made room for others, so far.
    pub(super) fn evicted(&self) -> u64 {
        (0..self.shards.count())
            .map(|shard| self.shards.lock(shard).evicted())
            .sum()
    }

    /// The entries that are there, shard by shard.
    pub(super) fn len(&self) -> u64 {
        (0..self.shards.count())
            .map(|shard| self.shards.lock(shard).len() as u64)
            .sum()
    }

    /// What the entries weigh that are there or about to be.
    pub(super) fn weight(&self) -> u64 {
        self.budget.0.taken()
    }

    pub(super) fn capacity(&self) -> u64 {
        self.budget.0.capacity()
    }

    /// Calls `visit` with every entry that is there throughout, and with some of those that come or go meanwhile. Holds no lock
    /// then.
    #[cfg(test)]
    pub(super) fn for_each(&self, visit: impl FnMut(&K, &T)) {
        self.shards.for_each(visit);
    }

    /// Asserts all that must hold while no other thread is at work.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        let mut weight = 0;
        for shard in 0..self.shards.count() {
            let locked = self.shards.lock(shard);
            locked.validate();
            weight += locked.weight();
        }
        assert_eq!(weight, self.weight(), "what is taken is linked");
        assert!(weight <= self.capacity(), "within capacity");
    }
}

/// One insert on its way.
struct Write<'a, F> {
    hash: u64,
    weight: u32,
    reservation: Reservation<'a>,
    /// What the policy knows of the key, once it was asked; it is asked once.
    memory: Option<Option<Memory>>,
    /// Is told the keys of the entries that go.
    evicted: F,
    done: Inserted,
}

impl<'a, F> Write<'a, F> {
    fn new(hash: u64, weight: u32, reservation: Reservation<'a>, evicted: F) -> Self {
        Self {
            hash,
            weight,
            reservation,
            memory: None,
            evicted,
            done: Inserted::default(),
        }
    }

    /// What it holds goes back, before others are waited for.
    #[inline]
    fn give_back(&mut self, budget: &'a Budget) {
        self.reservation = budget.reserve();
    }

    /// Reserves what the key's new entry needs beyond what its old one has, pushing out others of the shard. Returns the old entry,
    /// on hold; or how much is needed when the shard has no more to give.
    #[inline(always)]
    fn make_room<K: Eq, T>(&mut self, locked: &mut Locked<'_, K, T>, key: &K) -> Result<Option<u32>, u64>
    where
        F: FnMut(&K),
    {
        let weight = u64::from(self.weight);
        locked.reserve();
        let existing = locked.find(self.hash, key);
        if let Some(number) = existing {
            let needed = weight.saturating_sub(locked.weight_of(number));
            locked.hold(number);
            if self.push_out(locked, needed) {
                return Ok(existing);
            }
            locked.let_go(number);
            return Err(needed);
        }
        self.memory.get_or_insert_with(|| locked.recall(self.hash));
        if self.push_out(locked, weight) {
            Ok(None)
        } else {
            Err(weight)
        }
    }

    /// Whether the reservation came to hold `needed`, from what is free and what the shard's entries have.
    #[inline]
    fn push_out<K, T>(&mut self, locked: &mut Locked<'_, K, T>, needed: u64) -> bool
    where
        F: FnMut(&K),
    {
        if self.reservation.raise_to(needed) {
            return true;
        }
        locked.store_is_full();
        while let Some(freed) = locked.evict(&mut self.evicted) {
            self.reservation.inherit(freed);
            self.done.evicted += 1;
            self.done.evicted_weight += freed;
            if self.reservation.raise_to(needed) {
                return true;
            }
        }
        false
    }

    /// Links the new entry with what was reserved for it, and gives back what it does not need.
    #[inline(always)]
    fn link<K, T>(mut self, locked: &mut Locked<'_, K, T>, existing: Option<u32>, key: K, record: T) -> Inserted {
        if let Some(old) = existing {
            self.reservation.inherit(locked.weight_of(old));
            locked.replace(old, self.hash, self.weight, key, record);
        } else {
            let filling = self.done.evicted == 0;
            locked.link(self.hash, self.weight, key, record, self.memory.flatten(), filling);
        }
        self.reservation.spend(u64::from(self.weight));
        self.done.replaced = existing.is_some();
        self.done.admitted = true;
        self.done.settles = locked.settles();
        self.done
    }
}
