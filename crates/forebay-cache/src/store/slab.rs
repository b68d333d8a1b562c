//! The memory of a shard's entries: slots in chunks that never move, so that readers can look at an entry while the slab grows.
//!
//! Promises:
//! - An entry stays at its address until the slab is dropped. Memory follows the most entries there ever were, by steps of a sixteenth
//!   of what is there; a step touches nothing of what it adds.
//! - A number is given out once until it is given back. Keys and records are dropped exactly once: taken out by
//!   [`take`](Slab::take), or with the slab; one whose drop panics does not keep the others from being dropped.
//! - Where the chunks are stands in a [`Directory`] of a fixed size, which stays in the processor's nearest cache however many entries
//!   there are, and at its address as long as the slab.
//!
//! Does not know when an entry may be taken out: its users see to it (`shard`), as the `unsafe` in the names says.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::node::{FREE, Links, NONE, Node, Uses};

/// A number is the chunk that its entry is in, and the entry's place there in so many lower bits: so a reader finds it by two shifts.
const PLACE_BITS: u32 = 23;
const CHUNKS: usize = 1 << (u32::BITS - PLACE_BITS);
/// The first chunks have so many entries, by the logarithm.
const FIRST_LOG: u32 = 2;
/// Of each length there are so many chunks, by the logarithm, and then they are twice as long, up to what a number can say.
const STEPS_LOG: u32 = 4;
/// A chunk begins on a cache line of its own, for entries that are as large as a line, or half of one, to be in one line each.
const LINE: usize = 64;

/// Where an entry is: its chunk, and its place there.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    (
        (number >> PLACE_BITS) as usize,
        (number & ((1 << PLACE_BITS) - 1)) as usize,
    )
}

/// How many entries a chunk has.
#[inline]
fn chunk_len(chunk: usize) -> usize {
    1 << (FIRST_LOG + (chunk >> STEPS_LOG) as u32).min(PLACE_BITS)
}

/// The number that is given out after this one. They ascend.
#[inline]
fn after(number: u32) -> u32 {
    let (chunk, place) = place_of(number);
    if place + 1 < chunk_len(chunk) {
        number + 1
    } else {
        ((chunk + 1) << PLACE_BITS) as u32
    }
}

#[repr(C)]
pub(super) struct Entry<K, T> {
    record: UnsafeCell<MaybeUninit<T>>,
    key: UnsafeCell<MaybeUninit<K>>,
    pub(super) uses: Uses,
}

impl<K, T> Entry<K, T> {
    fn free() -> Self {
        Self {
            record: UnsafeCell::new(MaybeUninit::uninit()),
            key: UnsafeCell::new(MaybeUninit::uninit()),
            uses: Uses::free(),
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
    /// From `Box::into_raw`, freed with the slab. A pointer, because readers hold references to it.
    directory: NonNull<Directory<K, T>>,
    /// So many chunks are there, the first ones.
    chunks: usize,
    /// Numbers that were given back, linked by `Node::next`.
    free: u32,
    /// The first number that was never given out: the nodes of those before it are initialized.
    unused: u32,
}

/// Where the chunks are, for readers too: of `chunk_len` entries each, behind which are as many [`Links`]; null as long as there is none.
pub(super) struct Directory<K, T>([AtomicPtr<Entry<K, T>>; CHUNKS]);

impl<K, T> Slab<K, T> {
    pub(super) fn new() -> Self {
        let empty = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];
        Self {
            directory: NonNull::from(Box::leak(Box::new(Directory(empty)))),
            chunks: 0,
            free: NONE,
            unused: 0,
        }
    }

    /// What readers find entries by; good until the slab is dropped.
    pub(super) fn directory(&self) -> NonNull<Directory<K, T>> {
        self.directory
    }

    #[inline]
    fn chunks_by_address(&self) -> &Directory<K, T> {
        // SAFETY: from a box that is freed only with the slab; never borrowed mutably.
        unsafe { self.directory.as_ref() }
    }

    /// The node of an entry; also of one that is free.
    #[inline]
    pub(super) fn node(&self, number: u32) -> Node<'_> {
        assert!(number < self.unused, "only numbers that were given out are asked for");
        // SAFETY: given out, so its chunk is there and its node initialized.
        let (entry, links) = unsafe {
            (
                self.chunks_by_address().entry(number),
                self.chunks_by_address().links(number),
            )
        };
        Node {
            uses: &entry.uses,
            links,
        }
    }

    #[inline]
    pub(super) fn entry(&self, number: u32) -> &Entry<K, T> {
        assert!(number < self.unused, "only numbers that were given out are asked for");
        // SAFETY: given out, so its chunk is there and its node initialized.
        unsafe { self.chunks_by_address().entry(number) }
    }

    /// Asks the processor for the memory of an entry.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        let node = self.node(number);
        super::prefetch::prefetch(node.uses);
        super::prefetch::prefetch(node.links);
    }

    /// Of a chunk's memory.
    fn layout_of(chunk: usize) -> Layout {
        let entries = Layout::array::<Entry<K, T>>(chunk_len(chunk)).and_then(|layout| layout.align_to(LINE));
        let links = Layout::array::<Links>(chunk_len(chunk));
        let both = entries.and_then(|entries| entries.extend(links?));
        both.expect("a chunk fits into memory").0
    }

    /// Makes sure that the next [`fill`](Self::fill) has a number and a chunk.
    ///
    /// # Panics
    ///
    /// When the numbers have come to an end, with 1.5 thousand million entries in one shard. So it comes before anything else is changed.
    #[inline]
    pub(super) fn reserve(&mut self) {
        assert!(
            self.free != NONE || self.unused < NONE,
            "a shard has no number for one entry more"
        );
        if self.free == NONE && place_of(self.unused).0 == self.chunks {
            let layout = Self::layout_of(self.chunks);
            // SAFETY: of some size, since an entry has a node.
            let chunk = unsafe { alloc(layout) };
            if chunk.is_null() {
                handle_alloc_error(layout);
            }
            // Relaxed: a number in the new chunk is published after this, by a release.
            self.chunks_by_address().0[self.chunks].store(chunk.cast(), Ordering::Relaxed);
            self.chunks += 1;
        }
    }

    /// Puts in a key and a record and gives them a number, after [`reserve`](Self::reserve). The place is the caller's to set
    /// at once: an entry whose place is `FREE` is not dropped with the slab.
    #[inline(always)]
    pub(super) fn fill(&mut self, tag: u32, weight: u32, key: K, record: T) -> u32 {
        let number = if self.free == NONE {
            let number = self.unused;
            // SAFETY: in a chunk that is there, as `reserve` has seen to; nobody has seen a number that was never given out.
            unsafe {
                let (entry, links) = self.chunks_by_address().addresses_of(number);
                entry.write(Entry::free());
                links.write(Links::free());
            }
            self.unused = after(number);
            number
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
        self.node(number).begin(tag, weight);
        number
    }

    /// Takes key and record out and makes the number free.
    ///
    /// # Safety
    ///
    /// The entry is filled; no reader can see it, and none will.
    #[inline]
    pub(super) unsafe fn take(&mut self, number: u32) -> (K, T) {
        let entry = self.entry(number);
        debug_assert_ne!(self.node(number).place(), FREE, "filled");
        // SAFETY: filled, and seen by nobody else, says the caller; its place tells that it was moved out from here on.
        let taken = unsafe {
            (
                (*entry.key.get()).assume_init_read(),
                (*entry.record.get()).assume_init_read(),
            )
        };
        self.node(number).set_place(FREE);
        self.node(number).set_next(self.free);
        self.free = number;
        taken
    }

    /// How many entries it has memory for.
    pub(super) fn room(&self) -> usize {
        (0..self.chunks).map(chunk_len).sum()
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
        let (chunk, place) = place_of(self.unused);
        (0..chunk).map(chunk_len).sum::<usize>() + place
    }
}

impl<K, T> Drop for Slab<K, T> {
    fn drop(&mut self) {
        /// Goes on with the next entry when one panics.
        struct Rest<'a, K, T>(&'a Slab<K, T>, u32);

        impl<K, T> Rest<'_, K, T> {
            fn run(&mut self) {
                while self.1 < self.0.unused {
                    let (entry, node) = (self.0.entry(self.1), self.0.node(self.1));
                    self.1 = after(self.1);
                    if node.place() != FREE {
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
                for (chunk, address) in self.0.chunks_by_address().0[..self.0.chunks].iter().enumerate() {
                    // SAFETY: allocated with this layout in `reserve`; nobody uses it any more. Entries have no drop of their
                    // own: what they held is gone.
                    unsafe { dealloc(address.load(Ordering::Relaxed).cast(), Slab::<K, T>::layout_of(chunk)) };
                }
                // SAFETY: from `Box::leak` in `new`; nobody uses it any more.
                drop(unsafe { Box::from_raw(self.0.directory.as_ptr()) });
            }
        }

        Rest(self, 0).run();
    }
}

impl<K, T> Directory<K, T> {
    /// # Safety
    ///
    /// The number was given out: read, by an acquire, from the slots that were published with this directory, or under the lock. The
    /// slab lives as long as the reference.
    #[inline]
    pub(super) unsafe fn entry(&self, number: u32) -> &Entry<K, T> {
        // SAFETY: says the caller. The writer put the chunk into the directory, and initialized the entry and its links, before it published
        // the number; the chunk is freed only with the slab. They are never borrowed mutably: all that changes is in cells and atomics.
        unsafe { &*self.addresses_of(number).0 }
    }

    /// # Safety
    ///
    /// As for [`entry`](Self::entry).
    #[inline]
    pub(super) unsafe fn links(&self, number: u32) -> &Links {
        // SAFETY: as in `entry`.
        unsafe { &*self.addresses_of(number).1 }
    }

    /// Where an entry is, and where its links are.
    ///
    /// # Safety
    ///
    /// The number's chunk is there.
    #[inline]
    unsafe fn addresses_of(&self, number: u32) -> (*mut Entry<K, T>, *mut Links) {
        let (chunk, offset) = place_of(number);
        let address = self.0[chunk].load(Ordering::Relaxed);
        debug_assert!(!address.is_null(), "the chunk is there");
        // What `layout_of` makes of the same: links need no more alignment than entries, which have `Uses`.
        const { assert!(align_of::<Links>() <= align_of::<Entry<K, T>>()) };
        // SAFETY: within the chunk, which has `chunk_len` of both.
        unsafe {
            (
                address.add(offset),
                address.add(chunk_len(chunk)).cast::<Links>().add(offset),
            )
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let (mut number, mut next) = (0, (0, 0));
        while next.0 < CHUNKS {
            assert_eq!(place_of(number), next);
            next.1 += 1;
            // The inner ones of a long chunk are left out.
            let leap = (chunk_len(next.0) - next.1).saturating_sub(10);
            if next.1 > 10 && leap > 0 {
                (number, next.1) = (number + leap as u32, next.1 + leap);
            }
            if next.1 == chunk_len(next.0) {
                next = (next.0 + 1, 0);
            }
            if next.0 < CHUNKS {
                assert!(after(number) > number);
                number = after(number);
            }
        }
        assert_eq!(number, NONE, "which is given to nobody");
    }

    /// Two of them fill a cache line.
    #[test]
    fn what_readers_look_at_is_small() {
        use super::super::super::record::Record;
        assert_eq!(size_of::<Entry<u64, Record<u64>>>(), 32);
        assert_eq!(size_of::<Links>(), 12);
    }

    #[test]
    fn memory_grows_by_a_sixteenth() {
        let mut slab: Slab<u64, u64> = Slab::new();
        let mut number = 0;
        for entries in 1..=5_000 {
            slab.reserve();
            assert_eq!(slab.fill(0, 1, 7, 7), number);
            slab.node(number).set_place(super::super::node::WAITING);
            assert_eq!(slab.used_numbers(), entries);
            number = after(number);
            assert!(
                (entries..=entries + entries / 16 + 4).contains(&slab.room()),
                "{entries}"
            );
        }
    }

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
