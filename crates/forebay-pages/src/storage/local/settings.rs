//! The settings of an engine.
//!
//! Knows nothing of engines.

use std::sync::Arc;

use crate::storage::faults::Faults;

/// Which backend is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// io_uring where the kernel has it and allows it, else threads.
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Threads.
    Threads,
}

/// The settings.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// How many transfers run at once, 1 to 4096.
    pub(crate) depth: usize,
    /// How many of those that were submitted together run at once.
    pub(crate) depth_per_read: usize,
    /// The most threads, where threads run transfers; each runs one at a time.
    pub(crate) max_threads: usize,
    /// What goes wrong, in tests.
    pub(crate) faults: Option<Arc<dyn Faults>>,
    /// Behave as if the kernel forbade io_uring, in tests.
    pub(crate) uring_is_forbidden: bool,
    /// How many requests the ring takes at once, in tests; otherwise as many as can run.
    pub(crate) ring_entries: Option<u32>,
    /// The ring fails after so many calls, in tests.
    pub(crate) ring_fails_after_calls: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Auto,
            depth: 64,
            depth_per_read: 32,
            max_threads: 64,
            faults: None,
            uring_is_forbidden: false,
            ring_entries: None,
            ring_fails_after_calls: None,
        }
    }
}
