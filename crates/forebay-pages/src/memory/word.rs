//! The word of a page: its state, how many hold it, and how much it was used.
//!
//! Promises: whoever holds a pin on a page and has seen it *resident* may read its bytes until the pin is released: they neither
//! change nor leave. A page is loaded by one load at a time, and leaves only when nobody holds it. A pin costs one atomic addition,
//! and one compare-and-swap more while the page is not yet known to be used much.
//!
//! ```text
//!            begin_load            finish_load
//!   absent ─────────────▶ loading ─────────────▶ resident
//!     ▲ ▲                    │                      │ take: no pins
//!     │ └───── fail_load ────┘                      ▼
//!     └─────────────── finish_leaving ─────────── leaving
//! ```
//!
//! Pins may be taken in every state: on a page that is not resident they protect nothing yet, but a page that becomes resident under
//! a pin is held from that moment on. `begin_load`, `finish_load` and `fail_load` are called under the lock of the file's loads; `take`
//! and `finish_leaving` by the evictor. While a page is absent its word remembers when it was evicted: it is the policy's ghost entry.
//!
//! Knows nothing of files and queues, and of memory only where the words themselves are.

use std::io;
use std::ops::Deref;
#[cfg(not(forebay_loom))]
use std::slice;

#[cfg(not(forebay_loom))]
use super::region::Region;
use crate::sync::{AtomicU64, Ordering};

/// One pin. Pins are the lowest 27 bits.
const PIN: u64 = 1;
const PINS: u64 = (1 << 27) - 1;
/// More pins than this are a leak. To count on would overflow into the other fields.
const PINS_MAX: u64 = PINS / 2;
/// The page's name is in a queue of the policy.
const QUEUED: u64 = 1 << 27;
/// How often the page was found resident, up to three times.
const USE: u64 = 1 << 28;
const USES: u64 = 3 * USE;
const STATE: u64 = 3 << 30;
const ABSENT: u64 = 0;
const LOADING: u64 = 1 << 30;
const RESIDENT: u64 = 2 << 30;
const LEAVING: u64 = 3 << 30;
/// The stamp of its last eviction: only while the page is absent, and zero if there is none.
const STAMP_SHIFT: u32 = 32;

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Loading,
    Resident,
    Leaving,
}

/// What came of an attempt to take a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is leaving now: the caller must discard its memory, and then call `finish_leaving`.
    Taken,
    /// It was used since it was asked about last.
    Used,
    /// Someone holds it.
    Pinned,
    /// It is being loaded, with what the file had when the load began, or later.
    Loading,
    /// It is absent, or leaving.
    Gone,
}

/// The word of one page.
pub(crate) struct Word(AtomicU64);

/// The words of a file's pages. Memory is taken only for those that are touched; a file may be so large that there is not enough
/// for all of them.
#[cfg(not(forebay_loom))]
pub(crate) struct Words {
    memory: Region,
    count: usize,
}

#[cfg(not(forebay_loom))]
impl Words {
    /// All absent. An error: there is no address space for so many.
    pub(crate) fn absent(count: usize) -> io::Result<Self> {
        let memory = Region::reserve(count.saturating_mul(size_of::<Word>()))?;
        Ok(Self { memory, count })
    }
}

#[cfg(not(forebay_loom))]
impl Deref for Words {
    type Target = [Word];

    #[inline]
    fn deref(&self) -> &[Word] {
        // SAFETY: the region is zero but for what was stored through these words, begins at a page of the system's, and is long
        // enough; a `Word` is an `AtomicU64`, which has the size and the bit patterns of `u64`; all zero is absent.
        unsafe { slice::from_raw_parts(self.memory.at(0).cast::<Word>().as_ptr(), self.count) }
    }
}

#[cfg(forebay_loom)]
pub(crate) struct Words(Box<[Word]>);

#[cfg(forebay_loom)]
impl Words {
    pub(crate) fn absent(count: usize) -> io::Result<Self> {
        Ok(Self((0..count).map(|_| Word(AtomicU64::new(ABSENT))).collect()))
    }
}

#[cfg(forebay_loom)]
impl Deref for Words {
    type Target = [Word];

    fn deref(&self) -> &[Word] {
        &self.0
    }
}

#[cfg(not(forebay_loom))]
const _: () = assert!(align_of::<Word>() == align_of::<u64>() && size_of::<Word>() == size_of::<u64>());

impl Word {
    /// Holds the page. Returns whether it is resident: then its bytes may be read.
    ///
    /// Acquire: whoever sees the page resident sees what was loaded.
    #[inline]
    pub(crate) fn pin(&self) -> bool {
        let before = self.0.fetch_add(PIN, Ordering::Acquire);
        if before & PINS > PINS_MAX {
            too_many_pins();
        }
        if before & STATE != RESIDENT {
            return false;
        }
        if before & USES != USES {
            let pinned = before + PIN;
            // A use may be lost when another comes between: it is an estimate.
            let _ = self
                .0
                .compare_exchange(pinned, pinned + USE, Ordering::Relaxed, Ordering::Relaxed);
        }
        true
    }

    /// Holds the page once more. The caller holds it already, so this does not count as a use.
    pub(crate) fn pin_again(&self) {
        let before = self.0.fetch_add(PIN, Ordering::Relaxed);
        debug_assert!(before & PINS > 0, "pinned by who asks");
        if before & PINS > PINS_MAX {
            too_many_pins();
        }
    }

    /// Releases one pin.
    ///
    /// Release: what was read under the pin was read before the page is taken.
    #[inline]
    pub(crate) fn unpin(&self) {
        let before = self.0.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PINS > 0, "a pin is released once");
    }

    /// The page's state. Acquire, as in `pin`.
    pub(crate) fn state(&self) -> State {
        match self.0.load(Ordering::Acquire) & STATE {
            ABSENT => State::Absent,
            LOADING => State::Loading,
            RESIDENT => State::Resident,
            _ => State::Leaving,
        }
    }

    /// Whether somebody holds the page.
    pub(crate) fn is_pinned(&self) -> bool {
        self.0.load(Ordering::Acquire) & PINS > 0
    }

    /// The absent page is being loaded from now on, by the caller. Returns the stamp of its last eviction, if there is one.
    ///
    /// Acquire: the discard of what was there before is over.
    pub(crate) fn begin_load(&self) -> Option<u32> {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            assert!(seen & STATE == ABSENT, "only an absent page is loaded");
            let loading = (seen & (PINS | QUEUED)) | LOADING;
            match self
                .0
                .compare_exchange_weak(seen, loading, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => {
                    let stamp = (seen >> STAMP_SHIFT) as u32;
                    return (stamp != 0).then_some(stamp);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// The page that was being loaded is resident.
    ///
    /// Release: whoever sees it resident sees its bytes.
    pub(crate) fn finish_load(&self) {
        let before = self.0.fetch_add(RESIDENT - LOADING, Ordering::Release);
        debug_assert!(before & STATE == LOADING, "finished by who began it");
    }

    /// The page that was being loaded is absent again.
    ///
    /// Release: its memory was discarded before.
    pub(crate) fn fail_load(&self) {
        let before = self.0.fetch_sub(LOADING, Ordering::Release);
        debug_assert!(before & STATE == LOADING, "failed by who began it");
    }

    /// Takes the page if nobody holds it and it has no uses left; otherwise it has one use less.
    ///
    /// Acquire: whoever held it has finished reading.
    pub(crate) fn judge(&self) -> Judgement {
        self.judge_by(false)
    }

    /// Takes the page if nobody holds it, used or not.
    pub(crate) fn take(&self) -> Judgement {
        self.judge_by(true)
    }

    fn judge_by(&self, uses_do_not_count: bool) -> Judgement {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            match seen & STATE {
                RESIDENT => {}
                LOADING => return Judgement::Loading,
                _ => return Judgement::Gone,
            }
            if seen & PINS > 0 {
                return Judgement::Pinned;
            }
            let (then, judgement) = if uses_do_not_count || seen & USES == 0 {
                ((seen & QUEUED) | LEAVING, Judgement::Taken)
            } else {
                (seen - USE, Judgement::Used)
            };
            match self
                .0
                .compare_exchange_weak(seen, then, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return judgement,
                Err(now) => seen = now,
            }
        }
    }

    /// The page that was leaving is absent. Its word remembers the stamp of this eviction, unless that is zero.
    ///
    /// Release: its memory was discarded before.
    pub(crate) fn finish_leaving(&self, stamp: u32) {
        let before = self.0.fetch_add(
            (u64::from(stamp) << STAMP_SHIFT).wrapping_sub(LEAVING),
            Ordering::Release,
        );
        debug_assert!(before & STATE == LEAVING, "finished by who took it");
    }

    /// Notes that the page's name is in a queue of the policy. Returns whether it was not before. Under the policy's lock.
    pub(crate) fn enqueue(&self) -> bool {
        self.0.fetch_or(QUEUED, Ordering::Relaxed) & QUEUED == 0
    }

    /// Notes that the page's name is in no queue of the policy any more. Under the policy's lock.
    pub(crate) fn dequeue(&self) {
        self.0.fetch_and(!QUEUED, Ordering::Relaxed);
    }
}

/// As with `Arc`: a count that overflows would free what is in use.
#[cold]
fn too_many_pins() -> ! {
    std::process::abort()
}
