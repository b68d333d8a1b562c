//! Inner: what the handles of one database share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::connector::Connections;
use super::plan::{Plan, Plans};
use forebay_remote::lock_waiters::LockWaiters;

/// One database.
pub(crate) struct Inner {
    pub(crate) connections: Arc<Connections>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) lock_waiters: LockWaiters,
    /// There are tables in which nothing can be undone. Only ever set.
    keeps_what_is_lost: AtomicBool,
}

impl Inner {
    pub(crate) fn new(connections: Connections, keeps_what_is_lost: bool) -> Self {
        Self {
            lock_waiters: LockWaiters::new(connections.max_connections(), connections.retry_for()),
            connections: Arc::new(connections),
            plans: Arc::new(Plans::new(Plan::of)),
            keeps_what_is_lost: AtomicBool::new(keeps_what_is_lost),
        }
    }

    /// Whether what was lost before its commit may be there all the same.
    pub(crate) fn keeps_what_is_lost(&self) -> bool {
        self.keeps_what_is_lost.load(Ordering::Relaxed)
    }

    /// Somebody has made a table in which nothing can be undone.
    pub(crate) fn note_that_it_keeps_what_is_lost(&self) {
        self.keeps_what_is_lost.store(true, Ordering::Relaxed);
    }
}
