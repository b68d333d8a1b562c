//! The one place where the modelled parts of the store (`readers`, `segment`, `slots`) take their atomics and thread-locals from: std in
//! the product, loom under `--cfg forebay_loom`.
//!
//! Knows nothing of caches. What loom does not see (entries, policy, capacity) takes its atomics from std, where it needs any.

#[cfg(forebay_loom)]
pub(super) use loom::{
    sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence},
    thread_local,
};
#[cfg(not(forebay_loom))]
pub(super) use std::{
    sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence},
    thread_local,
};

/// Keeps what is written all the time off the cache lines of its neighbours (lines are fetched in pairs: 128 bytes).
#[repr(align(128))]
pub(super) struct OwnCacheLine<T>(pub(super) T);

/// Between a reader's entrance and its first look at the table. Nothing in the product: both are sequentially consistent there.
/// Loom takes sequentially consistent loads and stores for weaker than they are and knows the order of fences only.
#[inline(always)]
pub(super) fn entrance_before_reads() {
    #[cfg(forebay_loom)]
    fence(Ordering::SeqCst);
}
