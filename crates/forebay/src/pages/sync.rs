//! Where the page's word takes its atomics from: std in the product, loom under `--cfg forebay_loom`.
//!
//! Knows nothing of pages.

#[cfg(forebay_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(forebay_loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
