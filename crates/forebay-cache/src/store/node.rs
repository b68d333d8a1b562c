//! What the store knows of an entry besides its key and record: tag, weight, place in a queue, how much it was used.
//!
//! Written under the shard's lock, except for the uses, which readers count too; all of it relaxed atomics, so that readers and
//! writers may look at it at any time without unsafe code. Knows no policy: what the places above [`WAITING`] mean, and in which
//! order the links run, is the policy's.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// The end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Holds no key and no record.
pub(super) const FREE: u8 = 0;
/// Out of the table; holds its key and record until no reader can see them.
pub(super) const WAITING: u8 = 1;

#[repr(C)]
pub(super) struct Node {
    /// First, next to the key and the record: what readers touch lies together.
    uses: AtomicU8,
    place: AtomicU8,
    tag: AtomicU32,
    weight: AtomicU32,
    previous: AtomicU32,
    next: AtomicU32,
}

impl Node {
    pub(super) fn free() -> Self {
        Self {
            tag: AtomicU32::new(0),
            weight: AtomicU32::new(0),
            previous: AtomicU32::new(NONE),
            next: AtomicU32::new(NONE),
            uses: AtomicU8::new(0),
            place: AtomicU8::new(FREE),
        }
    }

    pub(super) fn begin(&self, tag: u32, weight: u32) {
        self.tag.store(tag, Relaxed);
        self.weight.store(weight, Relaxed);
        self.previous.store(NONE, Relaxed);
        self.next.store(NONE, Relaxed);
        self.uses.store(0, Relaxed);
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Relaxed)
    }

    pub(super) fn weight(&self) -> u64 {
        u64::from(self.weight.load(Relaxed))
    }

    pub(super) fn previous(&self) -> u32 {
        self.previous.load(Relaxed)
    }

    pub(super) fn next(&self) -> u32 {
        self.next.load(Relaxed)
    }

    pub(super) fn set_previous(&self, number: u32) {
        self.previous.store(number, Relaxed);
    }

    pub(super) fn set_next(&self, number: u32) {
        self.next.store(number, Relaxed);
    }

    pub(super) fn place(&self) -> u8 {
        self.place.load(Relaxed)
    }

    pub(super) fn set_place(&self, place: u8) {
        self.place.store(place, Relaxed);
    }

    pub(super) fn uses(&self) -> u8 {
        self.uses.load(Relaxed)
    }

    pub(super) fn set_uses(&self, uses: u8) {
        self.uses.store(uses, Relaxed);
    }

    /// One use more, up to `most`: an entry that is used all the time is not written to. Of two uses at once one may be lost.
    #[inline]
    pub(super) fn mark_used(&self, most: u8) {
        let uses = self.uses.load(Relaxed);
        if uses < most {
            self.uses.store(uses + 1, Relaxed);
        }
    }
}
