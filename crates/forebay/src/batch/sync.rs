//! The one place where the modelled core takes its lock from: `parking_lot` in the product, loom under `--cfg forebay_loom`.
//!
//! A private cfg rather than `--cfg loom`: tokio and others change shape under that one, and the model needs none of them.
//! Knows nothing of batches.

#[cfg(not(forebay_loom))]
pub(super) use parking_lot::Mutex;

#[cfg(forebay_loom)]
pub(super) use modelled::Mutex;

#[cfg(forebay_loom)]
mod modelled {
    /// Loom's lock with `parking_lot`'s interface.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0
                .lock()
                .expect("no code panics while it holds this lock")
        }
    }
}
