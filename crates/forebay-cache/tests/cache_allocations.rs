//! What hits allocate: nothing, but for the few that are sampled where hot keys are watched.
//!
//! Knows only the public interface; counts every allocation of the thread that asks, on which the cache does all of its work here. The
//! test harness allocates on another one, at any moment.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use forebay_cache::Cache;

struct Counting;

thread_local! {
    /// Of this thread. Needs neither memory to begin with nor a destructor.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to `System` unchanged; counting touches no memory of the allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const HITS: u64 = 50_000;

/// What that many hits allocate, of a present key and of a missing one in turns.
async fn allocations(tracked_hot_keys: usize) -> u64 {
    let cache = Cache::builder(|_: String| async { Ok::<Option<u64>, Infallible>(None) })
        .fresh_for(Duration::from_secs(3_600))
        .hot_keys(tracked_hot_keys, Duration::from_secs(60))
        .build();
    cache.insert("penstock".to_owned(), 7).await;
    cache.insert_missing("spillway".to_owned()).await;
    let before = ALLOCATIONS.get();
    for _ in 0..HITS / 2 {
        assert_eq!(cache.get("penstock").await.unwrap(), Some(7));
        assert_eq!(cache.get("spillway").await.unwrap(), None);
    }
    let allocations = ALLOCATIONS.get() - before;
    assert_eq!(cache.stats().hits_fresh, HITS);
    allocations
}

#[tokio::test]
async fn hits_allocate_nothing_but_for_the_one_in_two_hundred_fifty_six_that_is_sampled() {
    assert_eq!(allocations(0).await, 0);
    let sampled = allocations(100).await;
    assert!(sampled > 0, "without a sample there are no hot keys");
    assert!(sampled <= HITS / 32, "{sampled} allocations by {HITS} hits");
}
