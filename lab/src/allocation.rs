//! Allocation: what a piece of work asks of the heap, counted by the program's own allocator.
//!
//! Promises: between the start and the stop of a count every allocation and every growth in any thread is counted once, with
//! the bytes asked for, and what is given back is known too. Outside of counts it costs an allocation, or giving one back, one relaxed load and nothing is written, so that what is
//! timed runs as with the system's allocator. Counts are of the whole program, so that one waits for another. Knows nothing of what is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, which can be watched.
struct Watched;

#[global_allocator]
static WATCHED: Watched = Watched;

// Relaxed all of them: figures of many thousand calls, between which nothing is ordered by them.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static BYTES_GIVEN_BACK: AtomicU64 = AtomicU64::new(0);
/// Held while counting.
static ONE_COUNT_AT_A_TIME: Mutex<()> = Mutex::new(());

fn note(bytes: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn note_given_back(bytes: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        BYTES_GIVEN_BACK.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments to the system's allocator as they are and its answer back; `note` and
// `note_given_back` neither allocate nor panic.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        note_given_back(layout.size());
        // SAFETY: as above; the place is the system's, since all of ours are.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note_given_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What was asked of the heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    /// Of these or of earlier ones.
    pub(crate) bytes_given_back: u64,
}

impl Allocated {
    /// What all threads ask for while this runs.
    pub(crate) fn during<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let _alone = ONE_COUNT_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self::during_alone(work)
    }

    fn during_alone<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let before = Self::so_far();
        IS_COUNTING.store(true, Ordering::Relaxed);
        let result = work();
        IS_COUNTING.store(false, Ordering::Relaxed);
        let after = Self::so_far();
        let allocated = Self {
            allocations: after.allocations - before.allocations,
            bytes: after.bytes - before.bytes,
            bytes_given_back: after.bytes_given_back - before.bytes_given_back,
        };
        (result, allocated)
    }

    fn so_far() -> Self {
        Self {
            allocations: ALLOCATIONS.load(Ordering::Relaxed),
            bytes: BYTES.load(Ordering::Relaxed),
            bytes_given_back: BYTES_GIVEN_BACK.load(Ordering::Relaxed),
        }
    }

    /// What the work has asked for and not given back; of what was there before it gives back nothing.
    pub(crate) fn bytes_kept(&self) -> u64 {
        self.bytes.saturating_sub(self.bytes_given_back)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn every_allocation_is_counted_with_its_bytes_in_any_thread() {
        let ((), allocated) = Allocated::during(|| {
            for _ in 0..1_000 {
                black_box(Box::new([0_u8; 100]));
            }
            let other = std::thread::spawn(|| black_box(vec![0_u8; 1 << 20]).len());
            assert_eq!(other.join().unwrap(), 1 << 20);
        });
        // Other tests of this program may allocate meanwhile.
        assert!(allocated.allocations > 1_000, "{allocated:?}");
        assert!(allocated.bytes >= 100_000 + (1 << 20), "{allocated:?}");
    }

    #[test]
    fn growing_is_counted_and_outside_of_a_count_nothing_is() {
        let _alone = ONE_COUNT_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut grown: Vec<u8> = Vec::with_capacity(8);
        let before = Allocated::so_far();
        for _ in 0..1_000 {
            black_box(Box::new([0_u8; 100]));
        }
        assert_eq!(Allocated::so_far(), before);
        let ((), allocated) = Allocated::during_alone(|| grown.reserve_exact(1 << 20));
        assert!(
            allocated.allocations >= 1 && allocated.bytes >= 1 << 20,
            "{allocated:?}"
        );
        black_box(grown);
    }

    #[test]
    fn what_is_given_back_is_not_kept() {
        let _alone = ONE_COUNT_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Large enough that what other tests of this program do meanwhile hardly matters.
        const LARGE: u64 = 64 << 20;
        let (kept, allocated) = Allocated::during_alone(|| {
            let mut kept: Vec<u8> = Vec::with_capacity(LARGE as usize / 2);
            drop(black_box(Vec::<u8>::with_capacity(LARGE as usize)));
            kept.reserve_exact(LARGE as usize);
            kept
        });
        assert!(allocated.bytes >= LARGE * 5 / 2, "{allocated:?}");
        assert!(allocated.bytes_kept() >= LARGE - LARGE / 4, "{allocated:?}");
        assert!(allocated.bytes_kept() <= LARGE + LARGE / 4, "{allocated:?}");
        black_box(kept);
    }
}
