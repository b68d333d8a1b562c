//! Inner: what the handles of one database share.

use std::sync::Arc;

use super::connector::Connections;
use super::plan::{Plan, Plans};
use forebay_remote::lock_waiters::LockWaiters;

/// One database.
pub(crate) struct Inner {
    pub(crate) connections: Arc<Connections>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) lock_waiters: LockWaiters,
}

impl Inner {
    pub(crate) fn new(connections: Connections) -> Self {
        Self {
            lock_waiters: LockWaiters::new(connections.max_connections(), connections.retry_for()),
            connections: Arc::new(connections),
            plans: Arc::new(Plans::new(Plan::of)),
        }
    }
}
