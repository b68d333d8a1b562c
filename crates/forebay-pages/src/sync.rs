//! The atomics of a page's word, of the frames and of the notes: std's in the product, loom's under `--cfg forebay_loom`.
//!
//! Knows nothing of pages.

#[cfg(forebay_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(forebay_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
