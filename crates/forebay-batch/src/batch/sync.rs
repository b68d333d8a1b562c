//! The one place where the modelled core takes its locks, atomics and cells from: `parking_lot` and std in the product, loom
//! under `--cfg forebay_loom`, and in unit tests `parking_lot` with a count of the locks a thread holds.
//!
//! A private cfg rather than `--cfg loom`: tokio and others change shape under that one, and the model needs none of them.
//! Knows nothing of batches.

#[cfg(not(any(test, forebay_loom)))]
pub(super) use parking_lot::Mutex;

#[cfg(all(test, not(forebay_loom)))]
pub(super) use counted::{Mutex, locks_held};

#[cfg(forebay_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};
#[cfg(forebay_loom)]
pub(super) use modelled::Mutex;
#[cfg(not(forebay_loom))]
pub(crate) use plain::UnsafeCell;
#[cfg(not(forebay_loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Keeps what is written all the time off the cache lines of its neighbours (lines are fetched in pairs: 128 bytes).
#[repr(align(128))]
pub(super) struct OwnCacheLine<T>(pub(super) T);

#[cfg(not(forebay_loom))]
mod plain {
    /// std's cell with loom's interface, by which loom sees who reads and who writes.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}

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

#[cfg(all(test, not(forebay_loom)))]
mod counted {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};

    thread_local!(static HELD: Cell<usize> = const { Cell::new(0) });

    /// How many of the batcher's locks this thread holds: zero whenever user code runs.
    pub(crate) fn locks_held() -> usize {
        HELD.get()
    }

    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    pub(crate) struct Guard<'a, T>(parking_lot::MutexGuard<'a, T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            let guard = self.0.lock();
            HELD.set(HELD.get() + 1);
            Guard(guard)
        }
    }

    impl<T> Drop for Guard<'_, T> {
        fn drop(&mut self) {
            HELD.set(HELD.get() - 1);
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }
}
