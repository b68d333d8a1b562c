//! The memory of a shard's entries: slots in chunks that never move, so that readers can look at an entry while the slab grows.
//!
//! Promises:
//! - An entry stays at its address until the slab is dropped. Memory follows the most entries there ever were, by small steps.
//! - A number is given out once until it is given back. Keys and records are dropped exactly once: taken out by
//!   [`take`](Slab::take), or with the slab; one whose drop panics does not keep the others from being dropped.
//!
//! Does not know when an entry may be taken out: its users see to it (`shard`), as the `unsafe` in the names says.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::node::{FREE, NONE, Node};

/// Entries in a chunk: small, for a cache with a few entries; large enough for the allocator's overhead not to matter.
const CHUNK: usize = 64;

#[repr(C)]
pub(super) struct Entry<K, T> {
    record: UnsafeCell<MaybeUninit<T>>,
    key: UnsafeCell<MaybeUninit<K>>,
    pub(super) node: Node,
}

impl<K, T> Entry<K, T> {
    fn free() -> Self {
        Self {
            record: UnsafeCell::new(MaybeUninit::uninit()),
            key: UnsafeCell::new(MaybeUninit::uninit()),
            node: Node::free(),
        }
    }

    /// # Safety
    ///
    /// The entry is filled, and is not taken out while the reference lives.
    #[inline]
    pub(super) unsafe fn key(&self) -> &K {
        // SAFETY: filled, says the caller; the cell is written only by `fill` and `take`, neither of which happens now.
        unsafe { (*self.key.get()).assume_init_ref() }
    }

    /// # Safety
    ///
    /// As for [`key`](Self::key).
    #[inline]
    pub(super) unsafe fn record(&self) -> &T {
        // SAFETY: as in `key`.
        unsafe { (*self.record.get()).assume_init_ref() }
    }
}

/// The writers' side; under the shard's lock.
pub(super) struct Slab<K, T> {
    /// Each from a `Box<[Entry; CHUNK]>`, freed with the slab. Pointers, because readers hold references into them.
    chunks: Vec<NonNull<Entry<K, T>>>,
    /// Numbers that were given back, linked by `Node::next`.
    free: u32,
    /// The first number that was never given out.
    unused: u32,
}

/// The readers' side: where the chunks are.
pub(super) struct Directory<K, T> {
    chunks: Box<[AtomicPtr<Entry<K, T>>]>,
}

impl<K, T> Slab<K, T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: NONE,
            unused: 0,
        }
    }

    /// The node of an entry; also of one that is free.
    #[inline]
    pub(super) fn node(&self, number: u32) -> &Node {
        &self.entry(number).node
    }

    #[inline]
    pub(super) fn entry(&self, number: u32) -> &Entry<K, T> {
        let chunk = self.chunks[number as usize / CHUNK];
        // SAFETY: a chunk has CHUNK entries, initialized when it was made, freed only with the slab, which is borrowed here. They
        // are never borrowed mutably: all that changes is in cells and atomics.
        unsafe { chunk.add(number as usize % CHUNK).as_ref() }
    }

    /// Makes sure that the next [`fill`](Self::fill) has a number and a chunk.
    ///
    /// # Panics
    ///
    /// When the numbers have come to an end, with 2^32 - 1 entries in one shard. So it comes before anything else is changed.
    pub(super) fn reserve(&mut self) {
        assert!(
            self.free != NONE || self.unused < NONE,
            "a shard has at most 2^32 - 1 entries"
        );
        if self.free == NONE && self.unused as usize == self.chunks.len() * CHUNK {
            let chunk: Box<[Entry<K, T>]> = (0..CHUNK).map(|_| Entry::free()).collect();
            self.chunks.push(NonNull::from(Box::leak(chunk)).cast());
        }
    }

    /// Puts in a key and a record and gives them a number, after [`reserve`](Self::reserve). The place is the caller's to set
    /// at once: an entry whose place is `FREE` is not dropped with the slab.
    pub(super) fn fill(&mut self, tag: u32, weight: u32, key: K, record: T) -> u32 {
        let number = if self.free == NONE {
            self.unused += 1;
            self.unused - 1
        } else {
            let number = self.free;
            self.free = self.node(number).next();
            number
        };
        let entry = self.entry(number);
        // SAFETY: the number was free: no reader can see this entry, and no writer but this one is in the shard. What the cells
        // held is uninitialized or was moved out.
        unsafe {
            (*entry.key.get()).write(key);
            (*entry.record.get()).write(record);
        }
        entry.node.begin(tag, weight);
        number
    }

    /// Takes key and record out and makes the number free.
    ///
    /// # Safety
    ///
    /// The entry is filled; no reader can see it, and none will.
    pub(super) unsafe fn take(&mut self, number: u32) -> (K, T) {
        let entry = self.entry(number);
        debug_assert_ne!(entry.node.place(), FREE, "filled");
        // SAFETY: filled, and seen by nobody else, says the caller; its place tells that it was moved out from here on.
        let taken = unsafe {
            (
                (*entry.key.get()).assume_init_read(),
                (*entry.record.get()).assume_init_read(),
            )
        };
        entry.node.set_place(FREE);
        entry.node.set_next(self.free);
        self.free = number;
        taken
    }

    /// Numbers that were given out at some time, and the chunks they need.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Numbers that wait to be given out again, for tests.
    #[cfg(test)]
    pub(super) fn free_numbers(&self) -> usize {
        let mut count = 0;
        let mut number = self.free;
        while number != NONE {
            assert_eq!(self.node(number).place(), FREE, "a free number has no entry");
            count += 1;
            number = self.node(number).next();
        }
        count
    }

    /// Numbers that were given out at some time.
    #[cfg(test)]
    pub(super) fn used_numbers(&self) -> usize {
        self.unused as usize
    }
}

impl<K, T> Drop for Slab<K, T> {
    fn drop(&mut self) {
        /// Goes on with the next entry when one panics.
        struct Rest<'a, K, T>(&'a Slab<K, T>, u32);

        impl<K, T> Rest<'_, K, T> {
            fn run(&mut self) {
                while self.1 < self.0.unused {
                    let entry = self.0.entry(self.1);
                    self.1 += 1;
                    if entry.node.place() != FREE {
                        // SAFETY: filled, by its place; the slab is being dropped, so no reader is there and nobody takes it
                        // again. The count is past it before it runs.
                        let _taken = unsafe {
                            (
                                (*entry.key.get()).assume_init_read(),
                                (*entry.record.get()).assume_init_read(),
                            )
                        };
                    }
                }
            }
        }

        impl<K, T> Drop for Rest<'_, K, T> {
            fn drop(&mut self) {
                self.run();
                for chunk in &self.0.chunks {
                    // SAFETY: from `Box::leak` of a slice of this length in `reserve`; nobody uses it any more. Entries have
                    // no drop of their own: what they held is gone.
                    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(chunk.as_ptr(), CHUNK)) });
                }
            }
        }

        Rest(self, 0).run();
    }
}

impl<K, T> Directory<K, T> {
    /// With room for `chunks`, at least all that the slab has.
    pub(super) fn of(slab: &Slab<K, T>, chunks: usize) -> Self {
        let known = |chunk: usize| {
            slab.chunks
                .get(chunk)
                .map_or(std::ptr::null_mut(), |chunk| chunk.as_ptr())
        };
        Self {
            chunks: (0..chunks.max(slab.chunks.len()))
                .map(|chunk| AtomicPtr::new(known(chunk)))
                .collect(),
        }
    }

    /// The number of chunks that entries numbered up to `entries` need, and some that wait to be freed.
    pub(super) fn room_for(entries: usize) -> usize {
        entries / CHUNK + 2
    }

    /// Takes up the slab's last chunk; false when there is no room for it.
    pub(super) fn follow(&self, slab: &Slab<K, T>) -> bool {
        match (slab.chunks.last(), self.chunks.get(slab.chunks.len().wrapping_sub(1))) {
            (Some(chunk), Some(place)) => {
                // Relaxed: a number in the new chunk is published after this, by a release.
                // Not again for each entry: readers have this line.
                if place.load(Ordering::Relaxed).is_null() {
                    place.store(chunk.as_ptr(), Ordering::Relaxed);
                }
                true
            }
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// # Safety
    ///
    /// The number was read, by an acquire, from the slots that were published with this directory, and the slab lives as long as
    /// the reference.
    #[inline]
    pub(super) unsafe fn entry(&self, number: u32) -> &Entry<K, T> {
        let chunk = self.chunks[number as usize / CHUNK].load(Ordering::Relaxed);
        // SAFETY: the writer put the chunk into the directory before it published the number; the chunk has CHUNK entries and is
        // freed only with the slab.
        unsafe { &*chunk.add(number as usize % CHUNK) }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn when_the_numbers_have_come_to_an_end_none_is_given_out_twice() {
        let mut slab: Slab<u64, u64> = Slab::new();
        slab.unused = NONE;
        let reserves = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slab.reserve()));
        assert!(reserves.is_err());
        slab.unused = 0;
        slab.reserve();
        assert_eq!(slab.fill(0, 1, 7, 7), 0);
        slab.node(0).set_place(super::super::node::WAITING);
    }
}
