//! Where a key's entry is: an open-addressed table from 32-bit tags to 32-bit entry numbers, read without a lock.
//!
//! Promises:
//! - [`find`](Slots::find) never waits for a writer that has what it looks for in reach: a hit takes no lock and writes nothing.
//! - It finds what was in the table all the time of the search, also while writers insert, remove and move neighbours.
//! - What it finds was in the table at some moment of the search.
//! - Tags that are equal are told apart by `matches`, which is asked about each candidate.
//!
//! Writers come one at a time: the caller holds a lock. Does not know keys or entries, nor when an entry's memory may be reused;
//! a reader that looks at an entry is inside a section (`readers`).
//!
//! # How
//!
//! A slot is `tag << 32 | number + 1`, or zero when empty. The search begins at the tag's home, which follows from the tag's
//! upper bits, and goes on slot by slot to the first empty one; so a larger table is filled without a key being hashed again, and
//! needs no size that is a power of two. Removing moves later neighbours back into the gap, so there are no gravestones and a
//! search stays short. A search that such a move overtakes may miss what it looks for: `sequence` is odd during a move and
//! different after it, and a search that found nothing is made again if that was so. (Whoever sees a slot that a move has
//! written sees, by its release, the odd sequence written before it.)

use super::sync::{AtomicU64, Ordering, OwnCacheLine};

/// Fewer than this are never allocated for entries.
const SLOTS_MIN: usize = 16;
/// Searches that were overtaken before the reader lets other threads go first.
const SEARCHES_BEFORE_YIELD: usize = 64;

pub(super) struct Slots {
    slots: Box<[AtomicU64]>,
    /// Written at moves, off the line that every search reads.
    sequence: OwnCacheLine<AtomicU64>,
}

/// A slot, found under the lock and good as long as the lock is held and nothing else is removed.
#[derive(Clone, Copy)]
pub(super) struct Position(usize);

fn packed(tag: u32, number: u32) -> u64 {
    (u64::from(tag) << 32) | (u64::from(number) + 1)
}

#[inline]
fn tag_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

#[inline]
fn number_of(slot: u64) -> u32 {
    (slot as u32).wrapping_sub(1)
}

impl Slots {
    /// The number of slots that is right for one entry more than `entries`: room for half as many again.
    pub(super) fn room_for(entries: usize) -> usize {
        (entries + entries / 2)
            .saturating_mul(4)
            .div_ceil(3)
            .saturating_add(2)
            .max(SLOTS_MIN)
    }

    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots.max(1)).map(|_| AtomicU64::new(0)).collect(),
            sequence: OwnCacheLine(AtomicU64::new(0)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The most entries that it may hold: three quarters, and always one slot less than there are, which ends each search.
    pub(super) fn entries_max(&self) -> usize {
        self.slots.len() / 4 * 3
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.slots.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, position: usize) -> usize {
        if position + 1 == self.slots.len() {
            0
        } else {
            position + 1
        }
    }

    /// How many steps a search takes from one slot to the other.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.slots.len() - from
        }
    }

    #[inline]
    fn search(&self, tag: u32, matches: &mut impl FnMut(u32) -> bool) -> Option<(usize, u32)> {
        let mut position = self.home(tag);
        loop {
            // Sequentially consistent: comes after the reader's entrance, see `readers`.
            let slot = self.slots[position].load(Ordering::SeqCst);
            if slot == 0 {
                return None;
            }
            if tag_of(slot) == tag {
                let number = number_of(slot);
                if matches(number) {
                    return Some((position, number));
                }
            }
            position = self.after(position);
        }
    }

    /// For readers: the number of the entry with this tag that matches.
    #[inline]
    pub(super) fn find(&self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        match self.search(tag, &mut matches) {
            Some((_, number)) => Some(number),
            None => self.find_undisturbed(tag, matches),
        }
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
    pub(super) fn locate(&self, tag: u32, mut matches: impl FnMut(u32) -> bool) -> Option<(Position, u32)> {
        let (position, number) = self.search(tag, &mut matches)?;
        Some((Position(position), number))
    }

    /// Where the entry of this number is; it must be in the table.
    pub(super) fn position_of(&self, tag: u32, number: u32) -> Position {
        let (position, _) = self
            .search(tag, &mut |candidate| candidate == number)
            .expect("an entry that is linked is in the table");
        Position(position)
    }

    /// The caller has made sure that there is room and that nothing that matches is there.
    pub(super) fn insert(&self, tag: u32, number: u32) {
        let mut position = self.home(tag);
        while self.slots[position].load(Ordering::Relaxed) != 0 {
            position = self.after(position);
        }
        // Release: who finds the number finds the entry filled.
        self.slots[position].store(packed(tag, number), Ordering::Release);
    }

    /// In one step: who searches finds the old number or the new one.
    pub(super) fn replace(&self, Position(position): Position, number: u32) {
        let tag = tag_of(self.slots[position].load(Ordering::Relaxed));
        self.slots[position].store(packed(tag, number), Ordering::Release);
    }

    pub(super) fn remove(&self, Position(position): Position) {
        let mut gap = position;
        let mut next = self.after(position);
        let sequence = self.sequence.0.load(Ordering::Relaxed);
        loop {
            let slot = self.slots[next].load(Ordering::Relaxed);
            if slot == 0 {
                break;
            }
            // One that the gap would not cut off from its home stays where it is.
            if self.distance(self.home(tag_of(slot)), next) >= self.distance(gap, next) {
                if gap == position {
                    self.sequence.0.store(sequence + 1, Ordering::Relaxed);
                }
                self.slots[gap].store(slot, Ordering::Release);
                gap = next;
            }
            next = self.after(next);
        }
        self.slots[gap].store(0, Ordering::Release);
        if gap != position {
            self.sequence.0.store(sequence + 2, Ordering::Release);
        }
    }

    /// Puts all that is in `other` into this one, which nobody sees yet.
    pub(super) fn fill_from(&self, other: &Self) {
        for slot in &other.slots {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                self.insert(tag_of(slot), number_of(slot));
            }
        }
    }

    /// Calls `each` with tag and number of all that is there; under the lock.
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, u32)) {
        for slot in &self.slots {
            let slot = slot.load(Ordering::Relaxed);
            if slot != 0 {
                each(tag_of(slot), number_of(slot));
            }
        }
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
