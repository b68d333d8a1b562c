//! Who is reading: lets a writer know when nobody can still see what it took out of the table, and counts the reads that hit.
//!
//! Promises:
//! - A [`Section`] is entered and left with one atomic operation each, on a cache line that few threads share, and never waits.
//!   Leaving counts a hit in the same operation.
//! - Once a [`Watch`] that was begun after an unlink is [over](Readers::look), no section that could have seen the unlinked thing
//!   is still open, and everything those sections did happened before.
//! - A section ends however its user leaves it, also by a panic; sections nest.
//! - [`is_reading`] tells whether this thread is inside a section of any store: such a thread must not wait for readers, of
//!   whom it is one itself (or of whom one may be waiting for it).
//!
//! Knows nothing of entries and tables: what is read and unlinked is its users' business, in the order stated below.
//!
//! # Why it holds
//!
//! Each stripe's word holds the number of open sections (low 16 bits) and of counted hits (the rest), and is only ever changed
//! by read-modify-write operations. So, at any point of the word's modification order, the low bits are the sections entered
//! before that point and not left before it. Let a writer unlink U (any store), then come to the fence F in `look`, then load L
//! the word and see no open section. Take a reader with entrance E on that stripe (sequentially consistent) and a load R of what
//! U changed, sequenced after E, also sequentially consistent:
//!
//! - E stands before L's value in the word's modification order: then the section's exit does too. The exit is a release, the
//!   later read-modify-writes continue its release sequence, and L is an acquire: all that the section did happened before L.
//! - E stands after it: L is coherence-ordered before E, so F precedes E in the single order S of sequentially consistent
//!   operations (C++20 \[atomics.order\] 4.3), and E precedes R in S. If R saw what was before U, R would be coherence-ordered
//!   before U, which happens before F, so that R would precede F in S (4.2): a cycle. So R sees U or something later.
//!
//! The stripes need not be without readers at the same time: the argument is made for each stripe, and so for each reader, alone.

use std::cell::Cell;
use std::marker::PhantomData;

use super::sync::{AtomicU64, Ordering, OwnCacheLine, entrance_before_reads, fence, thread_local};

/// The part of a stripe's word that counts open sections; the rest counts hits.
const OPEN: u64 = 0xFFFF;
const HIT: u64 = OPEN + 1;
/// Half of what the low bits can count: so many threads inside one stripe are a bug, or an attack on the count.
const TOO_MANY: u64 = 0x8000;
/// A watch marks the stripes in a `u128`.
const STRIPES_MAX: usize = 128;

/// What a thread knows of itself.
struct Thread {
    /// Given round robin from 1; 0: not yet.
    number: Cell<usize>,
    /// Open sections of this thread, in all stores.
    depth: Cell<usize>,
}

#[cfg(not(forebay_loom))]
thread_local! {
    static THREAD: Thread = const { Thread { number: Cell::new(0), depth: Cell::new(0) } };
}
#[cfg(forebay_loom)]
thread_local! {
    static THREAD: Thread = Thread { number: Cell::new(0), depth: Cell::new(0) };
}

/// Numbers the threads. Outside the model: that two threads meet on a stripe costs time, nothing else.
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

impl Thread {
    #[cold]
    fn numbered(&self) -> usize {
        let number = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        self.number.set(number);
        number
    }
}

/// This thread's number: small, and its own.
#[inline]
pub(in super::super) fn thread_number() -> usize {
    THREAD.with(|thread| match thread.number.get() {
        0 => thread.numbered(),
        number => number,
    })
}

/// Whether this thread is inside a [`Section`] of any store.
pub(super) fn is_reading() -> bool {
    THREAD.with(|thread| thread.depth.get() > 0)
}

/// The open sections and counted hits of one store.
pub(super) struct Readers {
    /// A power of two of them.
    stripes: Box<[OwnCacheLine<AtomicU64>]>,
}

/// While it lives, nothing that was reachable when it began is freed. Belongs to its thread.
pub(super) struct Section<'a> {
    word: &'a AtomicU64,
    /// What to add to the word at the end: one open section less, and the hit, if it was one.
    leave: u64,
    thread_bound: PhantomData<*const ()>,
}

/// Waits for the sections that were open when it began. Not `Copy`: `Readers::look` uses it up bit by bit.
pub(super) struct Watch {
    /// A bit for each stripe that was not yet seen without an open section.
    unseen: u128,
}

impl Readers {
    /// With about `stripes` cache lines.
    pub(super) fn new(stripes: usize) -> Self {
        let stripes = stripes.clamp(1, STRIPES_MAX).next_power_of_two();
        let stripes = (0..stripes).map(|_| OwnCacheLine(AtomicU64::new(0))).collect();
        Self { stripes }
    }

    /// Loads of what writers unlink must be sequentially consistent, and come after this.
    #[inline]
    pub(super) fn enter(&self) -> Section<'_> {
        let number = THREAD.with(|thread| match thread.number.get() {
            0 => thread.numbered(),
            number => number,
        });
        self.enter_stripe(number & (self.stripes.len() - 1))
    }

    /// As [`enter`](Self::enter), on a stripe that a model names.
    #[inline]
    pub(super) fn enter_stripe(&self, stripe: usize) -> Section<'_> {
        THREAD.with(|thread| thread.depth.set(thread.depth.get() + 1));
        let word = &self.stripes[stripe].0;
        let before = word.fetch_add(1, Ordering::SeqCst);
        if before & TOO_MANY != 0 {
            // As for `Arc`'s count: past it the count would spill, and entries would be freed under their readers.
            std::process::abort();
        }
        entrance_before_reads();
        Section {
            word,
            leave: 1_u64.wrapping_neg(),
            thread_bound: PhantomData,
        }
    }

    /// Begins to wait for the sections that are open now, or were at any unlink before now.
    pub(super) fn watch(&self) -> Watch {
        Watch {
            unseen: u128::MAX >> (STRIPES_MAX - self.stripes.len()),
        }
    }

    /// Looks once at the stripes that are still to be seen without readers; true once all of them were. What was unlinked must
    /// have happened before this watch's first look.
    pub(super) fn look(&self, watch: &mut Watch) -> bool {
        // Between the unlinks and the loads: F of the argument above.
        fence(Ordering::SeqCst);
        let mut remaining = watch.unseen;
        while remaining != 0 {
            let stripe = remaining.trailing_zeros() as usize;
            remaining &= remaining - 1;
            if self.stripes[stripe].0.load(Ordering::Acquire) & OPEN == 0 {
                watch.unseen &= !(1 << stripe);
            }
        }
        watch.unseen == 0
    }

    /// The hits counted so far, modulo 2^48 for each stripe.
    pub(super) fn counted(&self) -> u64 {
        let hits = |stripe: &OwnCacheLine<AtomicU64>| stripe.0.load(Ordering::Relaxed) / HIT;
        self.stripes.iter().map(hits).sum()
    }

    /// The sections open now, for tests at rest.
    #[cfg(test)]
    pub(super) fn open(&self) -> u64 {
        let open = |stripe: &OwnCacheLine<AtomicU64>| stripe.0.load(Ordering::Relaxed) & OPEN;
        self.stripes.iter().map(open).sum()
    }
}

impl Section<'_> {
    /// This read is a hit: counted when the section ends.
    #[inline]
    pub(super) fn count(&mut self) {
        self.leave = HIT - 1;
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        self.word.fetch_add(self.leave, Ordering::Release);
        THREAD.with(|thread| thread.depth.set(thread.depth.get() - 1));
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_when_the_sections_do() {
        let readers = Readers::new(4);
        assert!(readers.look(&mut readers.watch()), "nobody is there");
        let outer = readers.enter();
        let inner = readers.enter();
        let mut watch = readers.watch();
        assert!(is_reading() && !readers.look(&mut watch));
        drop(inner);
        assert!(is_reading() && !readers.look(&mut watch), "the outer one is open");
        drop(outer);
        assert!(!is_reading() && readers.look(&mut watch));
        assert_eq!((readers.counted(), readers.open()), (0, 0));
    }

    #[test]
    fn stripes_need_not_be_empty_at_the_same_time() {
        let readers = Readers::new(2);
        let first = readers.enter_stripe(0);
        let mut watch = readers.watch();
        assert!(!readers.look(&mut watch));
        let second = readers.enter_stripe(1);
        drop(first);
        assert!(readers.look(&mut watch), "the second one was empty at the first look");
        drop(second);
    }

    #[test]
    fn counts_hits_beside_open_sections() {
        let readers = Readers::new(1);
        let _open = readers.enter();
        for hit in 0..1_000 {
            let mut section = readers.enter();
            if hit % 4 != 0 {
                section.count();
                section.count();
            }
        }
        assert_eq!((readers.counted(), readers.open()), (750, 1));
    }

    #[test]
    fn many_stripes_are_all_watched() {
        let readers = Readers::new(usize::MAX);
        assert_eq!(readers.stripes.len(), STRIPES_MAX);
        for stripe in [0, 63, 64, STRIPES_MAX - 1] {
            let section = readers.enter_stripe(stripe);
            let mut watch = readers.watch();
            assert!(!readers.look(&mut watch));
            drop(section);
            assert!(readers.look(&mut watch));
        }
    }
}
