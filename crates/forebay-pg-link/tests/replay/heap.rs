//! Heap: the largest piece of memory that a thread has asked for at once.
//!
//! Promises: what other threads ask for is theirs, as those of other tests are.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watched;

#[global_allocator]
static WATCHED: Watched = Watched;

thread_local! {
    // Made without an allocation, and never dropped.
    static LARGEST_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Of this thread, since it began.
pub(crate) fn largest_bytes() -> usize {
    LARGEST_BYTES.get()
}

fn note(bytes: usize) {
    LARGEST_BYTES.set(LARGEST_BYTES.get().max(bytes));
}

// SAFETY: every method hands its arguments to the system's allocator as they are and its answer back; `note` neither allocates nor
// panics.
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
        // SAFETY: as above; the place is the system's, since all of ours are.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}
