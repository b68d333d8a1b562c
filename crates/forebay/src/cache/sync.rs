//! The one place where the modelled part of the cache takes its locks and atomics from: `parking_lot` and std in the product,
//! loom under `--cfg forebay_loom`.
//!
//! Knows nothing of caches.

#[cfg(not(forebay_loom))]
pub(super) use parking_lot::Mutex;
#[cfg(not(forebay_loom))]
pub(super) use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

#[cfg(forebay_loom)]
pub(super) use loom::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
