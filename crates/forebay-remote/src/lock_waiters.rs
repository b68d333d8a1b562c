//! Lock waiters: writes that wait for another transaction's lock until their retry deadline, each on a connection of its own.
//!
//! Promises: bounded in number, so that other writes keep connections. Knows no lock.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::backoff::Backoff;
use forebay_write::{StatementError, StatementErrorKind as Kind, WriteError};

/// Those of one database.
#[derive(Debug)]
pub struct LockWaiters {
    turns: Semaphore,
    retry_for: Duration,
}

impl LockWaiters {
    /// For a database with so many connections, on which it is tried for so long.
    pub fn new(connections: usize, retry_for: Duration) -> Self {
        Self {
            turns: Semaphore::new((connections / 4).max(1)),
            retry_for,
        }
    }

    /// Waits for a turn, and says for how long it may be tried then.
    ///
    /// # Errors
    /// The statement's, of kind `LockTimeout`, if the others took all the time.
    pub async fn turn(&self) -> Result<(SemaphorePermit<'_>, Backoff), WriteError> {
        let backoff = Backoff::new(self.retry_for);
        match tokio::time::timeout(self.retry_for, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok((turn, backoff)),
            Ok(Err(_)) => Err(WriteError::Closed),
            Err(_) => Err(WriteError::Statement(StatementError::new(
                Kind::LockTimeout,
                0,
                "another transaction's lock was in the way for as long as is tried (retry_for)",
            ))),
        }
    }
}
