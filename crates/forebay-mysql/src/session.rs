//! Session: what every connection is set up with.

use std::time::Duration;

/// The settings of sessions, and what is taken from them.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// How many prepared statements a connection keeps.
    pub(super) statements: usize,
    pub(super) rows_bytes_max: usize,
    /// How long a statement waits for a lock, in whole seconds.
    pub(super) lock_timeout: Duration,
    /// How long the server may take to answer.
    pub(super) answer_timeout: Duration,
}

impl Session {
    /// What is said to a new connection, and to one that was reset.
    pub(super) fn setup(&self) -> String {
        let seconds = self.lock_timeout.as_secs().max(1);
        // Times of the type TIMESTAMP are UTC, whatever zone the server is in. A commit ends a transaction and begins none, and
        // `id IS NULL` asks for NULLs, whatever the server's defaults are.
        format!(
            "SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}, \
             autocommit = 1, completion_type = 'NO_CHAIN', sql_auto_is_null = 0"
        )
    }
}
