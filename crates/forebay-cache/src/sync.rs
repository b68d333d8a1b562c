//! The one place where the modelled part of the cache (`flights`) takes its locks and atomics from: `parking_lot` and std in the
//! product, loom under `--cfg forebay_loom`.
//!
//! Knows nothing of caches. The store has a place of its own.

#[cfg(forebay_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(forebay_loom)]
pub(super) use modelled::Mutex;
#[cfg(not(forebay_loom))]
pub(super) use parking_lot::Mutex;
#[cfg(not(forebay_loom))]
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(forebay_loom)]
mod modelled {
    /// Loom's lock with `parking_lot`'s interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no code panics while it holds this lock")
        }
    }
}
