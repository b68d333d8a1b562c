//! What calls allocate: about one allocation a batch, not one a call.
//!
//! Knows only the public interface; counts every allocation of this program, which therefore has a single test.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_batch::batch::Batcher;
use futures_util::future::join_all;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to `System` unchanged; counting touches no memory of the allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
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

#[tokio::test]
async fn a_call_costs_a_tenth_of_an_allocation_at_most() {
    const CALLERS: u64 = 1000;
    const ROUNDS: u64 = 20;
    // Answers in the vector it was given, so that what is counted is the batcher's own.
    let batcher = Batcher::new(|items: Vec<u64>| async move { Ok::<_, Infallible>(items) });
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let batcher = batcher.clone();
        callers.push(async move {
            for round in 0..ROUNDS {
                assert_eq!(batcher.call(caller + round).await.unwrap(), caller + round);
            }
        });
    }
    let callers = join_all(callers);
    let before = ALLOCATIONS.load(Relaxed);
    callers.await;
    let allocations = ALLOCATIONS.load(Relaxed) - before;
    let stats = batcher.stats();
    assert_eq!(stats.calls, CALLERS * ROUNDS);
    let a_call = allocations as f64 / stats.calls as f64;
    println!(
        "{allocations} allocations, {a_call:.4} a call, {} batches",
        stats.batches
    );
    assert!(a_call <= 0.1, "{a_call} allocations a call");
}
