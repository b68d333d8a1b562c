//! Where a key's entry is: an open-addressed table from 32-bit tags to 32-bit entry numbers, read without a lock.
//!
//! Promises:
//! - [`find`](Slots::find) takes no lock and writes nothing when it finds what it looks for, and waits for no writer then.
//! - It finds what was in the table all the time of the search, also while writers insert, remove and move neighbours.
//! - What it finds was in the table at some moment of the search.
//! - Tags that are equal are told apart by `matches`, which is asked about each candidate.
//!
//! Writers come one at a time: the caller holds a lock. Does not know keys or entries, nor when an entry's memory may be reused;
//! a reader that looks at an entry is inside a section (`readers`).
//!
//! # How
//!
//! A slot is `number + 1 << 32 | tag`, or zero when empty; four of them, half a cache line, are a bucket. A tag's home is the bucket
//! that follows from its upper bits (so a larger table is filled without a key being hashed again, and needs no size that is a
//! power of two); an entry is in its home, or in the next bucket with room when that was full. So a search looks at whole buckets,
//! from the home to the first that is not full; its branches predict well, since nearly always that is one bucket.
//!
//! Removing from a full bucket moves a later entry back into the gap, so there are no tombstones and searches stay short. A
//! search that such a move overtakes may miss what it looks for: `sequence` is odd during a move and different after it, and a
//! search that found nothing is made again if that was so. (Whoever sees a slot that a move has written sees, by its release, the
//! odd sequence written before it.)

use super::sync::{AtomicU64, Ordering, OwnCacheLine};

/// Slots of a bucket; few in the model, where every load is a step.
const WAYS: usize = if cfg!(forebay_loom) { 2 } else { 4 };
/// Of a bucket's slots so many are filled on average before the table grows.
const FILLED_MAX: usize = WAYS - 1;
/// Searches that were overtaken before the reader lets other threads go first.
#[cfg(not(forebay_loom))]
const SEARCHES_BEFORE_YIELD: usize = 64;

#[repr(align(32))]
struct Bucket([AtomicU64; WAYS]);

pub(super) struct Slots {
    buckets: Box<[Bucket]>,
    /// Written at moves, off the line that every search reads.
    sequence: OwnCacheLine<AtomicU64>,
}

/// A slot, found under the lock and good as long as the lock is held and nothing else is removed.
#[derive(Clone, Copy)]
pub(super) struct Position {
    bucket: usize,
    way: usize,
}

fn packed(tag: u32, number: u32) -> u64 {
    (u64::from(number) + 1) << 32 | u64::from(tag)
}

#[inline]
fn tag_of(slot: u64) -> u32 {
    slot as u32
}

#[inline]
fn number_of(slot: u64) -> u32 {
    ((slot >> 32) as u32).wrapping_sub(1)
}

impl Bucket {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn empty_way(&self) -> Option<usize> {
        self.0.iter().position(|slot| slot.load(Ordering::Relaxed) == 0)
    }
}

impl Slots {
    /// The number of buckets that is right for `entries` now: room for a quarter more.
    pub(super) fn room_for(entries: usize) -> usize {
        (entries + entries / 4).div_ceil(FILLED_MAX)
    }

    pub(super) fn new(buckets: usize) -> Self {
        Self {
            buckets: (0..buckets.max(1)).map(|_| Bucket::new()).collect(),
            sequence: OwnCacheLine(AtomicU64::new(0)),
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The most entries that it may hold; so there is always a bucket that is not full, which ends each search.
    pub(super) fn entries_max(&self) -> usize {
        self.buckets.len() * FILLED_MAX
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() {
            0
        } else {
            bucket + 1
        }
    }

    /// How many steps a search takes from one bucket to the other.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.buckets.len() - from
        }
    }

    fn slot(&self, position: Position) -> &AtomicU64 {
        &self.buckets[position.bucket].0[position.way]
    }

    /// Looks at every slot from the home to the first bucket that is not full.
    #[inline]
    fn search(&self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<(Position, u32)> {
        let mut bucket = self.home(tag);
        loop {
            let mut has_empty = false;
            for (way, slot) in self.buckets[bucket].0.iter().enumerate() {
                // Sequentially consistent, here and in `find`: comes after the reader's entrance, see `readers`.
                let slot = slot.load(Ordering::SeqCst);
                if slot == 0 {
                    has_empty = true;
                } else if tag_of(slot) == tag && matches(number_of(slot)) {
                    return Some((Position { bucket, way }, number_of(slot)));
                }
            }
            if has_empty {
                return None;
            }
            bucket = self.after(bucket);
        }
    }

    /// For readers: the number of the entry with this tag that matches.
    #[inline]
    pub(super) fn find(&self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        // Nearly always it is in its home, and alone there with its tag: to pick it takes no branch that could be foreseen wrongly.
        let mut candidate = 0;
        for slot in &self.buckets[self.home(tag)].0 {
            let slot = slot.load(Ordering::SeqCst);
            if tag_of(slot) == tag {
                candidate = slot;
            }
        }
        if candidate != 0 && matches(number_of(candidate)) {
            return Some(number_of(candidate));
        }
        self.find_undisturbed(tag, matches)
    }

    /// The search of one that found nothing: hits do not read the sequence, which writers write.
    #[inline(never)]
    fn find_undisturbed(&self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut searches = 0;
        loop {
            let sequence = self.sequence.0.load(Ordering::Acquire);
            if let Some((_, number)) = self.search(tag, &mut matches) {
                return Some(number);
            }
            if sequence.is_multiple_of(2) && self.sequence.0.load(Ordering::Acquire) == sequence {
                return None;
            }
            searches += 1;
            pause(searches);
        }
    }

    /// For writers: as [`find`](Self::find), with the place.
    pub(super) fn locate(&self, tag: u32, matches: impl FnMut(u32) -> bool) -> Option<(Position, u32)> {
        self.search(tag, matches)
    }

    /// Where the entry of this number is; it must be in the table.
    pub(super) fn position_of(&self, tag: u32, number: u32) -> Position {
        let (position, _) = self
            .search(tag, |candidate| candidate == number)
            .expect("an entry that is linked is in the table");
        position
    }

    /// The caller has made sure that there is room and that nothing that matches is there.
    pub(super) fn insert(&self, tag: u32, number: u32) {
        let mut bucket = self.home(tag);
        let way = loop {
            match self.buckets[bucket].empty_way() {
                Some(way) => break way,
                None => bucket = self.after(bucket),
            }
        };
        // Release: who finds the number finds the entry filled.
        self.buckets[bucket].0[way].store(packed(tag, number), Ordering::Release);
    }

    /// In one step: who searches finds the old number or the new one.
    pub(super) fn replace(&self, position: Position, number: u32) {
        let slot = self.slot(position);
        let tag = tag_of(slot.load(Ordering::Relaxed));
        slot.store(packed(tag, number), Ordering::Release);
    }

    pub(super) fn remove(&self, position: Position) {
        let sequence = self.sequence.0.load(Ordering::Relaxed);
        let mut moves = false;
        let mut gap = position;
        let mut bucket = position.bucket;
        // Where there is room no entry of an earlier home was driven past.
        while self.buckets[bucket].empty_way().is_none() {
            bucket = self.after(bucket);
            let misplaced = |slot: &AtomicU64| {
                let slot = slot.load(Ordering::Relaxed);
                // One whose home is after the gap stays where it is.
                slot != 0 && self.distance(self.home(tag_of(slot)), bucket) >= self.distance(gap.bucket, bucket)
            };
            if bucket == gap.bucket {
                break;
            }
            if let Some(way) = self.buckets[bucket].0.iter().position(misplaced) {
                let next = Position { bucket, way };
                if !moves {
                    moves = true;
                    self.sequence.0.store(sequence + 1, Ordering::Relaxed);
                }
                self.slot(gap)
                    .store(self.slot(next).load(Ordering::Relaxed), Ordering::Release);
                gap = next;
            }
        }
        self.slot(gap).store(0, Ordering::Release);
        if moves {
            self.sequence.0.store(sequence + 2, Ordering::Release);
        }
    }

    /// Puts all that is in `other` into this one, which nobody sees yet.
    pub(super) fn fill_from(&self, other: &Self) {
        other.for_each(|tag, number| self.insert(tag, number));
    }

    /// Calls `each` with tag and number of all that is there; under the lock.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, u32)) {
        for slot in self.buckets.iter().flat_map(|bucket| &bucket.0) {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                each(tag_of(slot), number_of(slot));
            }
        }
    }

    /// Asserts that every entry can be found from its home.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        let mut entries = 0;
        self.for_each(|tag, number| {
            entries += 1;
            self.position_of(tag, number);
        });
        assert!(entries <= self.entries_max(), "a search ends");
    }
}

/// Between searches that were overtaken.
#[cfg(not(forebay_loom))]
fn pause(searches: usize) {
    if searches < SEARCHES_BEFORE_YIELD {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(forebay_loom)]
fn pause(_searches: usize) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// Tags crowd at the last home, so that entries are driven on, over the end, and moved back.
        #[test]
        fn agrees_with_a_map(buckets in 1_usize..9, steps in prop::collection::vec((any::<bool>(), 0_u32..64), 1..300)) {
            let slots = Slots::new(buckets);
            let tag = |number: u32| if number.is_multiple_of(2) { u32::MAX - number } else { number.wrapping_mul(0x0800_0001) };
            let mut model = HashMap::new();
            for (adds, number) in steps {
                if adds && model.len() < slots.entries_max() && !model.contains_key(&number) {
                    slots.insert(tag(number), number);
                    model.insert(number, tag(number));
                } else if model.remove(&number).is_some() {
                    slots.remove(slots.position_of(tag(number), number));
                }
                for number in 0..64 {
                    let found = slots.find(tag(number), |candidate| candidate == number);
                    prop_assert_eq!(found, model.contains_key(&number).then_some(number));
                }
                slots.validate();
            }
            let larger = Slots::new(Slots::room_for(model.len() + 1));
            larger.fill_from(&slots);
            let mut seen = HashMap::new();
            larger.for_each(|tag, number| {
                seen.insert(number, tag);
            });
            prop_assert_eq!(seen, model);
        }
    }

    #[test]
    fn a_tag_of_zero_is_no_empty_slot() {
        let slots = Slots::new(2);
        assert_eq!(slots.find(0, |_| true), None);
        slots.insert(0, 0);
        slots.insert(0, u32::MAX - 1);
        assert_eq!(
            slots.find(0, |number| number == 0),
            Some(0),
            "found beside another of its tag"
        );
        assert_eq!(slots.find(0, |number| number == u32::MAX - 1), Some(u32::MAX - 1));
        assert_eq!(slots.find(0, |_| false), None);
    }

    #[test]
    fn there_is_room_for_what_is_asked() {
        for entries in 0..10_000 {
            let slots = Slots::room_for(entries);
            assert!(slots * FILLED_MAX >= entries);
            assert!(slots * WAYS <= entries * 2 + WAYS, "eight to sixteen bytes an entry");
        }
    }
}
