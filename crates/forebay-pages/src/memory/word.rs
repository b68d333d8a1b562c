//! The word of a page: its state, how many hold it, and how much it was used.
//!
//! Promises: whoever holds a pin on a page and has seen it *resident* may read its bytes until the pin is released: they neither
//! change nor leave. A page is loaded by one load at a time, and leaves only when nobody holds it. A pin costs one atomic addition,
//! and one compare-and-swap more if it is the page's first for a moment.
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
//! and `finish_leaving` by the evictor. The word knows when the page was used last and how often, and goes on knowing it while the page is
//! absent: it is the policy's ghost entry.
//!
//! Knows nothing of files and queues, and of memory only where the words themselves are.

use std::io;
use std::ops::Deref;
#[cfg(not(forebay_loom))]
use std::slice;

#[cfg(not(forebay_loom))]
use super::region::Region;
use super::uses::{COUNT_MAX, Look, MOMENT, TICK_BITS, Tick, Uses};
use crate::sync::{AtomicU64, Ordering};

/// One pin. Pins are the lowest 27 bits.
const PIN: u64 = 1;
const PINS: u64 = (1 << 27) - 1;
/// More pins than this are a leak. To count on would overflow into the other fields.
const PINS_MAX: u64 = PINS / 2;
/// The page's name is in a queue of the policy.
const QUEUED: u64 = 1 << 27;
/// It was used since the evictor asked last: only while it is resident.
const AGAIN: u64 = 1 << 28;
const STATE: u64 = 3 << 30;
const ABSENT: u64 = 0;
const LOADING: u64 = 1 << 30;
const RESIDENT: u64 = 2 << 30;
const LEAVING: u64 = 3 << 30;
/// How often it was used.
const COUNT_SHIFT: u32 = 32;
/// When it was used last: the highest bits, up to the last.
const LAST_SHIFT: u32 = 64 - TICK_BITS;
const USES: u64 = u64::MAX << COUNT_SHIFT;
const _: () = assert!((COUNT_MAX as u64) << COUNT_SHIFT < 1 << LAST_SHIFT);

fn uses(bits: u64) -> Uses {
    Uses {
        last: (bits >> LAST_SHIFT) as Tick,
        count: (bits >> COUNT_SHIFT) as u8 & COUNT_MAX,
    }
}

/// The same, with one use more.
fn used(bits: u64, now: Tick) -> u64 {
    let uses = uses(bits).and_now(now);
    (bits & !USES) | u64::from(uses.last) << LAST_SHIFT | u64::from(uses.count) << COUNT_SHIFT
}

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Loading,
    Resident,
    Leaving,
}

/// What a pin has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pinned {
    /// The page is not resident: the pin protects nothing yet.
    Missing,
    /// Its bytes may be read.
    Resident,
    /// The same, and it is the page's first use for a moment.
    UsedAgain,
}

/// What came of an attempt to take a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is leaving now: the caller must discard its memory, and then call `finish_leaving`.
    Taken,
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
        Ok(Self((0..count).map(|_| Word::absent()).collect()))
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
    /// Of a page that is absent, and was never loaded.
    pub(crate) fn absent() -> Self {
        Self(AtomicU64::new(ABSENT))
    }

    /// Holds the page.
    ///
    /// Acquire: whoever sees the page resident sees what was loaded.
    #[inline]
    pub(crate) fn pin(&self, now: Tick) -> Pinned {
        let before = self.0.fetch_add(PIN, Ordering::Acquire);
        if before & PINS > PINS_MAX {
            too_many_pins();
        }
        if before & STATE != RESIDENT {
            return Pinned::Missing;
        }
        // All other bits of this end of the moment are set, so that they take nothing from the difference of the highest ones.
        let end_of_moment = u64::from(now) << LAST_SHIFT | ((1 << LAST_SHIFT) - 1);
        if end_of_moment.wrapping_sub(before) >= u64::from(MOMENT) << LAST_SHIFT && self.mark(before + PIN, now) {
            return Pinned::UsedAgain;
        }
        Pinned::Resident
    }

    /// Notes a use of the page that is held, and looked so. Returns whether that was done: it is left out when another comes between, and
    /// while the policy has not taken notice of the page's load.
    fn mark(&self, seen: u64, now: Tick) -> bool {
        let marked = used(seen, now) | AGAIN;
        seen & QUEUED != 0
            && self
                .0
                .compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
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

    /// The absent page is being loaded from now on, by the caller.
    ///
    /// Acquire: the discard of what was there before is over.
    pub(crate) fn begin_load(&self) {
        let before = self.0.fetch_add(LOADING - ABSENT, Ordering::Acquire);
        assert!(before & STATE == ABSENT, "only an absent page is loaded");
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

    /// What the evictor goes by. An estimate: it may be another the moment after.
    pub(crate) fn look(&self) -> Look {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & STATE != RESIDENT {
            Look::Gone
        } else if seen & PINS > 0 {
            Look::Held
        } else {
            Look::Free {
                uses: uses(seen),
                again: seen & AGAIN != 0,
            }
        }
    }

    /// That the page was used again has been taken into account.
    pub(crate) fn spend(&self) {
        self.0.fetch_and(!AGAIN, Ordering::Relaxed);
    }

    /// Takes the page if nobody holds it.
    ///
    /// Acquire: whoever held it has finished reading.
    pub(crate) fn take(&self) -> Judgement {
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
            let leaving = (seen & !(STATE | AGAIN)) | LEAVING;
            match self
                .0
                .compare_exchange_weak(seen, leaving, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Judgement::Taken,
                Err(now) => seen = now,
            }
        }
    }

    /// The page that was leaving is absent. Its word goes on knowing its uses.
    ///
    /// Release: its memory was discarded before.
    pub(crate) fn finish_leaving(&self) {
        let before = self.0.fetch_sub(LEAVING, Ordering::Release);
        debug_assert!(before & STATE == LEAVING, "finished by who took it");
    }

    /// The page was loaded, which is a use, and its name is in a queue of the policy. Returns whether that is so only from now on, and what was known
    /// of its uses before. Under the policy's lock.
    pub(crate) fn enter(&self, now: Tick) -> (bool, Uses) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let entered = (used(seen, now) & !AGAIN) | QUEUED;
            match self
                .0
                .compare_exchange_weak(seen, entered, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return (seen & QUEUED == 0, uses(seen)),
                Err(now) => seen = now,
            }
        }
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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    /// Of a page that was loaded and that the policy knows since this tick.
    fn entered(now: Tick) -> Word {
        let word = Word::absent();
        word.begin_load();
        word.finish_load();
        assert_eq!(word.enter(now), (true, Uses::default()));
        word
    }

    fn use_at(word: &Word, now: Tick) -> Pinned {
        let pinned = word.pin(now);
        word.unpin();
        pinned
    }

    fn free(word: &Word) -> (Uses, bool) {
        match word.look() {
            Look::Free { uses, again } => (uses, again),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn uses_within_a_moment_are_one() {
        let word = entered(100);
        for _piece in 0..16 {
            assert_eq!(use_at(&word, 100), Pinned::Resident);
            assert_eq!(use_at(&word, 100 + MOMENT - 1), Pinned::Resident);
        }
        assert_eq!(free(&word), (Uses { last: 100, count: 1 }, false));
        let later = 100 + MOMENT;
        assert_eq!(use_at(&word, later), Pinned::UsedAgain);
        assert_eq!(use_at(&word, later), Pinned::Resident);
        assert_eq!(free(&word), (Uses { last: later, count: 2 }, true));
        word.spend();
        assert_eq!(free(&word), (Uses { last: later, count: 2 }, false));
    }

    #[test]
    fn a_moment_may_lie_where_time_wraps() {
        let end = (1 << TICK_BITS) - 1;
        let word = entered(end);
        assert_eq!(use_at(&word, MOMENT - 2), Pinned::Resident);
        assert_eq!(use_at(&word, MOMENT - 1), Pinned::UsedAgain);
    }

    #[test]
    fn what_the_policy_does_not_know_has_no_uses() {
        let word = Word::absent();
        assert_eq!((use_at(&word, 100), word.look()), (Pinned::Missing, Look::Gone));
        word.begin_load();
        assert_eq!((use_at(&word, 100), word.look()), (Pinned::Missing, Look::Gone));
        word.finish_load();
        assert_eq!(use_at(&word, 100), Pinned::Resident);
        assert_eq!(word.enter(100), (true, Uses::default()));
    }

    #[test]
    fn uses_are_known_after_the_page_has_left() {
        let word = entered(5);
        for now in 10..30 {
            use_at(&word, now * MOMENT);
        }
        let before = Uses {
            last: 29 * MOMENT,
            count: COUNT_MAX,
        };
        assert_eq!(free(&word), (before, true));
        assert_eq!(word.take(), Judgement::Taken);
        word.dequeue();
        word.finish_leaving();
        assert_eq!(word.state(), State::Absent);
        word.begin_load();
        word.fail_load();
        word.begin_load();
        word.finish_load();
        assert_eq!(word.enter(70), (true, before));
        assert_eq!(
            free(&word),
            (
                Uses {
                    last: 70,
                    count: COUNT_MAX
                },
                false
            )
        );
    }

    #[test]
    fn what_is_held_is_not_taken() {
        let word = entered(1);
        word.pin(1);
        assert_eq!((word.look(), word.take()), (Look::Held, Judgement::Pinned));
        word.unpin();
        assert_eq!(word.take(), Judgement::Taken);
        assert_eq!((word.look(), word.take()), (Look::Gone, Judgement::Gone));
    }
}
