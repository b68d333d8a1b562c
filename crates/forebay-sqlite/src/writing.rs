//! The one writing connection, and whose turn it is to use it.
//!
//! Promises: it is used by one at a time, in order of arrival; those who wait are counted; one that must not wait for a
//! transaction is told when there is one. Knows nothing of what is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};

use super::thread::SqliteThread;
use forebay_write::WriteError;

pub(super) struct WritingConnection {
    pub(super) thread: SqliteThread,
    /// One permit: the right to use the connection.
    permit: Arc<Semaphore>,
    /// Whether a transaction has it, and no batch.
    in_transaction: Arc<watch::Sender<bool>>,
    /// How many wait for it.
    waiting: AtomicUsize,
}

impl WritingConnection {
    pub(super) fn new(thread: SqliteThread) -> Self {
        Self {
            thread,
            permit: Arc::new(Semaphore::new(1)),
            in_transaction: Arc::new(watch::Sender::new(false)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// The right to write, if nobody has it or waits for it.
    pub(super) fn turn_at_once(&self) -> Option<SemaphorePermit<'_>> {
        self.permit.try_acquire().ok()
    }

    /// Waits for the right to write.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, WriteError> {
        if let Ok(permit) = Arc::clone(&self.permit).try_acquire_owned() {
            return Ok(permit);
        }
        let _counted = Counted::one(&self.waiting);
        Arc::clone(&self.permit)
            .acquire_owned()
            .await
            .map_err(|_| WriteError::Closed)
    }

    /// Waits for the right to write for a transaction.
    pub(super) async fn transaction_turn(&self) -> Result<TransactionTurn, WriteError> {
        Ok(TransactionTurn::new(self.turn().await?, &self.in_transaction))
    }

    /// As [`transaction_turn`](Self::transaction_turn); none if another transaction is open, or its turn comes first.
    pub(super) async fn transaction_turn_unless_another(&self) -> Result<Option<TransactionTurn>, WriteError> {
        let mut another = self.in_transaction.subscribe();
        let permit = tokio::select! {
            biased;
            permit = self.turn() => permit?,
            _ = another.wait_for(|open| *open) => return Ok(None),
        };
        Ok(Some(TransactionTurn::new(permit, &self.in_transaction)))
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Nobody gets a turn any more.
    pub(super) fn close(&self) {
        self.permit.close();
    }
}

/// The right to write of a transaction, which others are told of as long as it has it.
pub(super) struct TransactionTurn {
    in_transaction: Arc<watch::Sender<bool>>,
    /// Given back after they were told.
    _permit: OwnedSemaphorePermit,
}

impl TransactionTurn {
    fn new(permit: OwnedSemaphorePermit, in_transaction: &Arc<watch::Sender<bool>>) -> Self {
        in_transaction.send_replace(true);
        Self {
            in_transaction: Arc::clone(in_transaction),
            _permit: permit,
        }
    }
}

impl Drop for TransactionTurn {
    fn drop(&mut self) {
        self.in_transaction.send_replace(false);
    }
}

/// Counts one while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
