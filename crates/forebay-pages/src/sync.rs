//! Where the page's word and the sweeper's bell take their atomics from: std in the product, loom under `--cfg forebay_loom`.
//!
//! Knows nothing of pages.

#[cfg(forebay_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(forebay_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
