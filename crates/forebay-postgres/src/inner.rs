//! Inner: what the handles of one database have in common.

use std::sync::Arc;
use std::time::Duration;

use super::connector::Connections;
use super::plan::{Plan, Plans};
use forebay_remote::lock_waiters::LockWaiters;

/// One database.
pub(crate) struct Inner {
    pub(crate) connections: Arc<Connections>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) lock_waiters: LockWaiters,
    /// How long a statement of a batch waits for a lock.
    pub(crate) lock_timeout: Duration,
}

impl Inner {
    pub(crate) fn new(connections: Connections, lock_timeout: Duration) -> Self {
        Self {
            lock_waiters: LockWaiters::new(connections.max_connections(), connections.retry_for()),
            connections: Arc::new(connections),
            plans: Arc::new(Plans::new(Plan::of)),
            lock_timeout,
        }
    }
}
