//! What all sessions of a server share: the database, the limits, and the server's phase.

use std::sync::Arc;
use std::time::Duration;

use forebay_sqlite::Sqlite;
use forebay_write::Writer;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::advisory::AdvisoryLocks;
use super::cancel::Cancels;
use super::notifications::Channels;
use super::plans::Plans;
use crate::catalog::Catalog;
use crate::sql::Sequences;
use forebay_pg_wire::budget::InputBudget;
use forebay_pg_wire::phase::Phase;

/// See the module.
pub struct Shared {
    /// The database, to read from.
    pub sqlite: Sqlite,
    /// Where autocommit writes go to share commits.
    pub writer: Writer,
    /// PostgreSQL's catalog, as far as it is emulated; rebuilt when the schema has changed.
    pub catalog: Mutex<Catalog>,
    /// What texts were compiled to.
    pub plans: Arc<Plans>,
    /// Advisory locks.
    pub advisory: Arc<AdvisoryLocks>,
    /// Who listens to what.
    pub channels: Arc<Channels>,
    /// The sequences.
    pub sequences: Arc<Sequences>,
    /// Who can be cancelled.
    pub cancels: Arc<Cancels>,
    /// Room for the long messages of all of them.
    pub input: Arc<InputBudget>,
    /// Bounds of every session.
    pub limits: Limits,
    /// What is to become of the sessions.
    pub phase: watch::Receiver<Phase>,
}

/// Bounds of every session.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The longest message of a client that is authenticated, in bytes.
    pub max_message_bytes: usize,
    /// The most memory a result may take that is gathered before its client reads it, in bytes.
    pub max_result_bytes: usize,
    /// The longest a statement may take; none: as long as it takes.
    pub statement_timeout: Option<Duration>,
    /// How long a session may be idle while it holds what others wait for; none: for ever.
    pub idle_transaction_timeout: Option<Duration>,
    /// How long a snapshot may wait for its client, all in all; none: for ever.
    pub idle_snapshot_timeout: Option<Duration>,
    /// How long a client may take none of what is sent to it.
    pub stall_timeout: Duration,
    /// How long a server that stops waits for the Sync behind what it has acknowledged.
    pub sync_grace: Duration,
    /// Prepared statements one session may have.
    pub max_statements: usize,
    /// Portals one session may have open.
    pub max_portals: usize,
}
