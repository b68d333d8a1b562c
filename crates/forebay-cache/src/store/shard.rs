//! The shards: parts of the store that each have a lock for writers and a table that readers use without one.
//!
//! Promises:
//! - A read finds the entry that the last finished write of its key left, or a later one; it takes no lock, and the entry lives
//!   until the read's section ends.
//! - What writers take out is dropped once no reader can see it, outside of all locks. Until then it waits in limbo, of which there
//!   is a bounded amount: a writer that finds more waits for the readers, unless it is inside a read itself.
//! - No thread waits for readers while it holds a lock, and none holds two shards' locks.
//! - A key's `Eq` that panics changes nothing.
//!
//! Does not know capacities, nor which shard an eviction should hit. The store's unsafe code is here, in `slab`, `segment` and `slots`.

use std::borrow::Borrow;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::ghosts::Memory;
use super::limbo::Limbo;
use super::node::{NONE, Tick};
use super::policy::Policy;
use super::readers::{Readers, is_reading};
use super::segment::Address;
use super::slab::{Directory, Entry, Slab};
use super::slots::{Loads, Room, Slots};
use super::sync::OwnCacheLine;
use super::trials::Trials;

/// So many entries wait before a writer looks whether they can go: looking takes a cache line from each of the readers.
const LOOK_AT_ENTRIES: usize = 16;
/// With more than so many a writer waits for the readers.
const ENTRIES_MAX: usize = 256;
/// The same for replaced tables and for what a clear left.
const RETIRED_MAX: usize = 3;
/// Looks before a waiting writer lets other threads go first.
const LOOKS_BEFORE_YIELD: usize = 32;

/// The upper half of a hash is the tag, which the table works by; the shard comes from the lower bits.
#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

pub(super) struct Shards<K, T> {
    /// A power of two of them.
    shards: Box<[Shard<K, T>]>,
    readers: Readers,
    /// They say which rule the policies follow.
    trials: Trials,
    /// A shard's limbo is looked at when it weighs more than this.
    look_at_weight: u64,
    /// A writer that finds more weight than this in limbo waits.
    weight_max: u64,
}

#[repr(align(128))]
struct Shard<K, T> {
    /// From `Box::into_raw`; never null. On a line that changes only when the table has doubled, and with the clock.
    table: AtomicPtr<Table<K, T>>,
    /// The policy's clock, for readers. It ticks once in many misses.
    now: AtomicU32,
    writer: OwnCacheLine<Mutex<Writer<K, T>>>,
}

/// What readers see of a shard: numbers, and where the chunks of the numbered entries are.
struct Table<K, T> {
    slots: Slots,
    /// The slab's, which outlives the table.
    entries: NonNull<Directory<K, T>>,
}

/// What only writers see.
struct Writer<K, T> {
    loads: Loads,
    slab: Slab<K, T>,
    policy: Policy,
    limbo: Limbo<Retired<K, T>>,
    /// Entries that had to go so far.
    evicted: u64,
}

/// What is freed once no reader can see it.
enum Retired<K, T> {
    /// A table whose segments are another one's now.
    Table {
        _freed: Unpublished<K, T>,
    },
    Segment {
        _freed: UnusedSegment,
    },
    /// All that a `clear` left: the table is freed with its segments, and every entry dropped with its slab.
    House {
        _freed: Segments<K, T>,
        _dropped: Slab<K, T>,
    },
}

/// A table that was replaced. A pointer, not a box: readers may still hold references into it.
struct Unpublished<K, T>(*mut Table<K, T>);

/// A segment that was replaced.
struct UnusedSegment(Address);

/// A table that was replaced, and the segments that are in no other.
struct Segments<K, T>(Unpublished<K, T>);

// SAFETY: it owns the table, which is numbers and pointers to entries of K and T.
unsafe impl<K: Send, T: Send> Send for Unpublished<K, T> {}
// SAFETY: numbers.
unsafe impl Send for UnusedSegment {}

impl<K, T> Drop for Unpublished<K, T> {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw` in `Table::publishable`, taken out of `Shard::table` exactly once. It is dropped when a
        // limbo batch has settled, so that no reader has it any more, or with the whole store.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Drop for UnusedSegment {
    fn drop(&mut self) {
        // SAFETY: replaced in the table that readers find; the tables of before, in which it still is, are used only by readers who
        // were there before. It is dropped when a limbo batch has settled, so that none of those is left, or with the whole store.
        unsafe { self.0.free() };
    }
}

impl<K, T> Drop for Segments<K, T> {
    fn drop(&mut self) {
        // SAFETY: the table lives until its own drop, after this. It is dropped as those are, and its segments are in no table that
        // readers find.
        unsafe { (*self.0.0).slots.free() };
    }
}

// SAFETY: a shard owns keys and records; the raw pointers in it are to its own chunks and tables, which are reached through the
// lock or, by `&K` and `&T` only, by readers on any thread. Keys and records are dropped by whichever thread writes.
unsafe impl<K: Send, T: Send> Send for Shards<K, T> {}
// SAFETY: as above; `Sync` is needed of both since readers of several threads share them.
unsafe impl<K: Send + Sync, T: Send + Sync> Sync for Shards<K, T> {}

impl<K, T> Table<K, T> {
    fn publishable(slots: Slots, entries: NonNull<Directory<K, T>>) -> *mut Self {
        Box::into_raw(Box::new(Self { slots, entries }))
    }

    /// Before the first entry, and after a clear.
    fn empty(slab: &Slab<K, T>) -> (*mut Self, Loads) {
        let (slots, loads) = Slots::new(0);
        (Self::publishable(slots, slab.directory()), loads)
    }

    /// # Safety
    ///
    /// As for [`Directory::entry`]: the number was read from these slots. The slab lives as long as the reference.
    #[inline]
    unsafe fn entry(&self, number: u32) -> &Entry<K, T> {
        // SAFETY: says the caller.
        unsafe { self.entries.as_ref().entry(number) }
    }
}

impl<K, T> Shard<K, T> {
    fn new(share: u64) -> Self {
        let slab = Slab::new();
        let (table, loads) = Table::empty(&slab);
        Self {
            table: AtomicPtr::new(table),
            now: AtomicU32::new(0),
            writer: OwnCacheLine(Mutex::new(Writer {
                loads,
                slab,
                policy: Policy::new(share),
                limbo: Limbo::new(),
                evicted: 0,
            })),
        }
    }
}

impl<K, T> Drop for Shard<K, T> {
    fn drop(&mut self) {
        drop(Segments(Unpublished(*self.table.get_mut())));
    }
}

impl<K, T> Shards<K, T> {
    /// `shards` is rounded up to a power of two; `capacity` only says which weight is a lot, and what the policies go by.
    pub(super) fn new(shards: usize, stripes: usize, capacity: u64) -> Self {
        let shards = shards.max(1).next_power_of_two();
        let share = capacity / shards as u64;
        Self {
            shards: (0..shards).map(|_| Shard::new(share)).collect(),
            readers: Readers::new(stripes),
            trials: Trials::new(capacity),
            look_at_weight: share / 64,
            weight_max: share / 8,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.shards.len()
    }

    #[inline]
    pub(super) fn index_of(&self, hash: u64) -> usize {
        hash as usize & (self.shards.len() - 1)
    }

    pub(super) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Looks a key up. `visit` may do what it likes with the record while it runs; the bool it returns says whether to count this
    /// read as a hit. `MARKS`: the policy hears of it.
    #[inline]
    pub(super) fn read<Q, R, const MARKS: bool>(
        &self,
        hash: u64,
        key: &Q,
        visit: impl FnOnce(&T) -> (R, bool),
    ) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut section = self.readers.enter();
        let shard = &self.shards[self.index_of(hash)];
        // SAFETY: a replaced table is freed only after this section, which was entered before the load (sequentially consistent,
        // as `readers` asks) and is left after the last use of what is found.
        let table = unsafe { &*shard.table.load(Ordering::SeqCst) };
        let (number, entry) = table.slots.find(tag_of(hash), move |number| {
            // SAFETY: the number is from this table's slots, loaded by at least an acquire; the slab of a table that is published
            // or in limbo lives.
            let entry = unsafe { table.entry(number) };
            // SAFETY: filled before its number was published, and taken out only after every section in which the number could be
            // found, such as this one.
            (unsafe { entry.key() }.borrow() == key).then_some((number, entry))
        })?;
        let is_first = MARKS && entry.uses.mark_used(shard.now.load(Ordering::Relaxed));
        // SAFETY: as for the entry.
        let weight = is_first.then(|| unsafe { table.entries.as_ref().links(number) }.weight());
        // SAFETY: as for the key.
        let (outcome, counts) = visit(unsafe { entry.record() });
        if counts {
            section.count();
        }
        drop(section);
        if let Some(weight) = weight {
            self.trials.see(tag_of(hash), hash, weight, true);
        }
        Some(outcome)
    }

    /// A key that was not there was asked for, and is put in.
    #[inline]
    pub(super) fn missed(&self, hash: u64, weight: u32) {
        self.trials.see(tag_of(hash), hash, weight, false);
    }

    /// Calls `visit` with each entry that is there when its shard's turn comes. No lock is held during it.
    #[cfg(test)]
    pub(super) fn for_each(&self, mut visit: impl FnMut(&K, &T)) {
        for index in 0..self.shards.len() {
            let _section = self.readers.enter();
            let mut numbers = Vec::new();
            let locked = self.lock(index);
            numbers.reserve_exact(locked.len());
            locked.table().slots.for_each(|_, number| numbers.push(number));
            let table = locked.table.load(Ordering::SeqCst);
            drop(locked);
            // SAFETY: the section was entered before the load, and is left after the last use.
            let table = unsafe { &*table };
            for number in numbers {
                // SAFETY: the number was in this table, with its chunk in the directory, while the lock was held, after this
                // section was entered; so neither slab nor entry is freed before it is left.
                let entry = unsafe { table.entry(number) };
                // SAFETY: as above.
                let (key, record) = unsafe { (entry.key(), entry.record()) };
                visit(key, record);
            }
        }
    }

    #[inline]
    pub(super) fn lock(&self, index: usize) -> Locked<'_, K, T> {
        let shard = &self.shards[index];
        Locked {
            writer: shard.writer.0.lock(),
            table: &shard.table,
            now: &shard.now,
            shards: self,
        }
    }

    /// Ends a write of the shard: drops what can be dropped, without the lock, and waits for readers if too much cannot.
    pub(super) fn finish<'a>(&'a self, index: usize, mut locked: Locked<'a, K, T>, settle: Settle) {
        let mut looks = 0;
        loop {
            let garbage = locked.settle(settle != Settle::Later || looks > 0);
            let waits = locked.must_wait(settle) && !is_reading();
            drop(locked);
            drop(garbage);
            if !waits {
                return;
            }
            looks += 1;
            if looks < LOOKS_BEFORE_YIELD {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            locked = self.lock(index);
        }
    }
}

/// How soon what was taken out is to be dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Settle {
    /// When enough waits.
    Later,
    /// Now, unless a reader can see it.
    Now,
    /// Before the write returns, unless the writer is itself a reader.
    All,
}

/// A shard whose lock is held.
pub(super) struct Locked<'a, K, T> {
    writer: MutexGuard<'a, Writer<K, T>>,
    table: &'a AtomicPtr<Table<K, T>>,
    now: &'a AtomicU32,
    shards: &'a Shards<K, T>,
}

/// What no reader can see any more; dropped when no lock is held.
pub(super) struct Garbage<K, T> {
    _entries: Vec<(K, T)>,
    _retired: Vec<Retired<K, T>>,
}

impl<K, T> Locked<'_, K, T> {
    #[inline]
    fn table(&self) -> &Table<K, T> {
        // SAFETY: never null; replaced only by who holds the lock, as this does, and only through `&mut self`.
        unsafe { &*self.table.load(Ordering::Relaxed) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.writer.policy.len()
    }

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.writer.policy.weight()
    }

    #[inline]
    pub(super) fn weight_of(&self, number: u32) -> u64 {
        self.writer.slab.node(number).weight()
    }

    /// Asks the processor for what a write of the key will look at.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        self.table().slots.prefetch(tag_of(hash));
        self.writer.policy.prefetch(tag_of(hash));
    }

    /// Makes sure of a number for one more entry, while nothing has been changed that a panic would leave half done.
    #[inline]
    pub(super) fn reserve(&mut self) {
        self.writer.slab.reserve();
    }

    /// The number of the key's entry. Runs the key's `Eq`.
    #[inline]
    pub(super) fn find<Q>(&self, hash: u64, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let slab = &self.writer.slab;
        let matches = |number| {
            // SAFETY: it is in the table, so it is filled; what is in the table is taken out by nobody who does not hold the lock.
            unsafe { slab.entry(number).key() }.borrow() == key
        };
        let (_, number) = self.table().slots.locate(tag_of(hash), matches)?;
        Some(number)
    }

    /// What the policy knows of a key that is not there; it forgets it with the answer.
    #[inline]
    pub(super) fn recall(&mut self, hash: u64) -> Option<Memory> {
        self.writer.policy.recall(tag_of(hash))
    }

    /// Keeps an entry that is to be replaced from being evicted: until it is replaced or let go.
    pub(super) fn hold(&mut self, number: u32) {
        let writer = &mut *self.writer;
        writer.policy.remove(&writer.slab, number);
    }

    pub(super) fn let_go(&mut self, number: u32) {
        let writer = &mut *self.writer;
        writer.policy.put_back(&writer.slab, number, number);
    }

    /// Makes the first entry of its key readable. `filling`: nothing had to go for it.
    #[inline(always)]
    pub(super) fn link(&mut self, hash: u64, weight: u32, key: K, record: T, memory: Option<Memory>, filling: bool) {
        let number = self.fill(hash, weight, key, record);
        let writer = &mut *self.writer;
        let rule = self.shards.trials.rule();
        writer.policy.admit(&writer.slab, number, memory, filling, rule);
        let now: Tick = writer.policy.now();
        if self.now.load(Ordering::Relaxed) != now {
            self.now.store(now, Ordering::Relaxed);
        }
        // SAFETY: as in `table`.
        let table = unsafe { &*self.table.load(Ordering::Relaxed) };
        table.slots.insert(&mut self.writer.loads, tag_of(hash), number);
    }

    /// Makes an entry readable in place of the key's old one, which is on hold.
    pub(super) fn replace(&mut self, old: u32, hash: u64, weight: u32, key: K, record: T) {
        let number = self.fill(hash, weight, key, record);
        let writer = &mut *self.writer;
        writer.policy.put_back(&writer.slab, number, old);
        writer.slab.node(number).remember_as(writer.slab.node(old));
        let slots = &self.table().slots;
        slots.replace(tag_of(hash), slots.position_of(tag_of(hash), old), number);
        let writer = &mut *self.writer;
        writer.limbo.add(&writer.slab, old);
    }

    /// A number for the entry, and room for it in the table.
    #[inline(always)]
    fn fill(&mut self, hash: u64, weight: u32, key: K, record: T) -> u32 {
        self.writer.slab.reserve();
        loop {
            // SAFETY: as in `table`.
            let table = unsafe { &*self.table.load(Ordering::Relaxed) };
            match table.slots.make_room(&mut self.writer.loads, tag_of(hash)) {
                Room::Enough => break,
                Room::Replaced(segment) => self.writer.limbo.retire(Retired::Segment {
                    _freed: UnusedSegment(segment),
                }),
                Room::TooFewPlaces => {
                    let slots = table.slots.doubled(&mut self.writer.loads);
                    self.publish(Table::publishable(slots, table.entries), |freed| Retired::Table {
                        _freed: freed,
                    });
                }
            }
        }
        self.writer.slab.fill(tag_of(hash), weight, key, record)
    }

    fn publish(&mut self, table: *mut Table<K, T>, retired: impl FnOnce(Unpublished<K, T>) -> Retired<K, T>) {
        let old = self.table.swap(table, Ordering::SeqCst);
        self.writer.limbo.retire(retired(Unpublished(old)));
    }

    /// Takes an entry out of the table and the policy; it waits for its readers from now on.
    #[inline]
    fn unlink(&mut self, number: u32) -> u64 {
        let writer = &mut *self.writer;
        let node = writer.slab.node(number);
        let (tag, weight) = (node.tag(), node.weight());
        // SAFETY: as in `table`.
        let slots = unsafe { &(*self.table.load(Ordering::Relaxed)).slots };
        slots.remove(&mut writer.loads, tag, slots.position_of(tag, number));
        writer.limbo.add(&writer.slab, number);
        weight
    }

    /// Takes an entry out and says what it weighed.
    pub(super) fn remove(&mut self, number: u32) -> u64 {
        let writer = &mut *self.writer;
        writer.policy.remove(&writer.slab, number);
        self.unlink(number)
    }

    /// Evictions follow, for want of room.
    #[inline]
    pub(super) fn store_is_full(&mut self) {
        self.writer.policy.store_is_full();
    }

    /// Takes out the entry that the policy can spare most, tells its key, and says what it weighed.
    #[inline]
    pub(super) fn evict(&mut self, evicted: impl FnOnce(&K)) -> Option<u64> {
        let writer = &mut *self.writer;
        let number = writer.policy.evict(&writer.slab, self.shards.trials.rule())?;
        writer.evicted += 1;
        // SAFETY: the policy has only entries that are linked, which are filled; they are emptied under the lock, which is held.
        evicted(unsafe { writer.slab.entry(number).key() });
        let weight = self.unlink(number);
        self.look_ahead();
        Some(weight)
    }

    /// Asks the processor for what the next eviction here will look at, which it has fetched when that comes.
    #[inline]
    fn look_ahead(&self) {
        let Writer { slab, policy, .. } = &*self.writer;
        if let Some(next) = policy.likely_next() {
            let node = slab.node(next);
            self.table().slots.prefetch(node.tag());
            policy.prefetch(node.tag());
            if node.next() != NONE {
                slab.prefetch(node.next());
            }
        }
    }

    /// Entries that had to go so far.
    pub(super) fn evicted(&self) -> u64 {
        self.writer.evicted
    }

    /// Takes out everything and gives the memory back once no reader is left: how many entries, and what they weighed.
    pub(super) fn clear(&mut self) -> (u64, u64) {
        let gone = (self.len() as u64, self.weight());
        if self.writer.slab.room() > 0 {
            self.writer.policy = Policy::new(self.writer.policy.share());
            self.now.store(0, Ordering::Relaxed);
            self.writer.limbo.forget_entries();
            let slab = std::mem::replace(&mut self.writer.slab, Slab::new());
            let (table, loads) = Table::empty(&self.writer.slab);
            self.writer.loads = loads;
            self.publish(table, |freed| Retired::House {
                _freed: Segments(freed),
                _dropped: slab,
            });
        }
        gone
    }

    /// Whether enough waits in limbo for a look to be worth it.
    #[inline]
    pub(super) fn settles(&self) -> bool {
        let waiting = self.writer.limbo.backlog();
        let enough = waiting.entries >= LOOK_AT_ENTRIES || waiting.weight > self.shards.look_at_weight;
        enough || waiting.retired > 0
    }

    /// Takes out of limbo what no reader can see any more, if enough waits for a look to be worth it.
    fn settle(&mut self, at_once: bool) -> Garbage<K, T> {
        let mut garbage = Garbage {
            _entries: Vec::new(),
            _retired: Vec::new(),
        };
        if !(at_once || self.settles()) {
            return garbage;
        }
        while let Some(mut batch) = self.writer.limbo.settle(&self.shards.readers) {
            garbage._entries.reserve(batch.entries());
            batch.drain(&mut self.writer.slab, |slab, number| {
                // SAFETY: in limbo, so filled and out of the table; settled, so every section in which its number could be found is
                // over.
                garbage._entries.push(unsafe { slab.take(number) });
            });
            garbage._retired.append(&mut batch.retired);
        }
        garbage
    }

    fn must_wait(&self, settle: Settle) -> bool {
        let waiting = self.writer.limbo.backlog();
        let too_much =
            waiting.entries > ENTRIES_MAX || waiting.weight > self.shards.weight_max || waiting.retired > RETIRED_MAX;
        too_much || (settle == Settle::All && waiting.entries + waiting.retired > 0)
    }

    /// Room for entries and buckets: what the memory of a shard goes by.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> (usize, usize) {
        (self.writer.slab.room(), self.table().slots.buckets())
    }

    /// What waits for readers.
    #[cfg(test)]
    pub(super) fn backlog(&self) -> super::limbo::Backlog {
        self.writer.limbo.backlog()
    }

    /// All that must hold between writes.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        let Writer {
            loads,
            slab,
            policy,
            limbo,
            ..
        } = &*self.writer;
        policy.validate(slab);
        let slots = &self.table().slots;
        let mut linked = 0;
        slots.for_each(|tag, number| {
            linked += 1;
            let node = slab.node(number);
            assert_eq!(node.tag(), tag, "a slot has its entry's tag");
            assert!(
                node.place() > super::node::WAITING,
                "what is in the table is in a queue"
            );
        });
        slots.validate(loads);
        assert_eq!(linked, policy.len(), "what is in a queue is in the table");
        let waiting = limbo.backlog().entries;
        assert_eq!(
            linked + waiting + slab.free_numbers(),
            slab.used_numbers(),
            "every number is somewhere"
        );
    }
}
