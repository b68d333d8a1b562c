//! Session: what every connection is set up with.

use std::time::Duration;

/// The settings of sessions, and what is taken from them.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// How many prepared statements a connection keeps.
    pub(super) statements: usize,
    pub(super) rows_bytes_max: usize,
    /// How long a statement waits for a lock.
    pub(super) lock_timeout: Duration,
    /// How long the server may take to answer.
    pub(super) answer_timeout: Duration,
}

impl Session {
    /// What is said to a new connection, and to one that was reset.
    pub(super) fn setup(&self) -> String {
        format!("SET lock_timeout = {}", milliseconds(self.lock_timeout))
    }
}

/// A time as the server's timeouts take it: 0 would be for ever, and what is longer than it can count is refused.
pub(super) fn milliseconds(time: Duration) -> u32 {
    let most = i32::MAX.unsigned_abs();
    u32::try_from(time.as_millis()).unwrap_or(most).clamp(1, most)
}
