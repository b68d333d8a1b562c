//! The atomics of a page's word and of the frames: std's in the product, loom's under `--cfg forebay_loom`.
//!
//! Knows nothing of pages.

#[cfg(forebay_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(forebay_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
