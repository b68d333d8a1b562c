//! CancelToken: cancels one statement, on request or at its deadline, without guessing whether it ran.
//!
//! A statement that waits can be withdrawn: once withdrawn it is never executed. A statement that has been claimed by
//! the thread that executes it can only be interrupted: its outcome then comes from the database. The claim and the
//! withdrawal race on one atomic, so exactly one of them wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use super::WriteError;

/// Nobody has claimed or cancelled it.
const WAITING: u8 = 0;
/// A database thread executes it, or has executed it.
const CLAIMED: u8 = 1;
/// Cancelled before it was claimed: it will never be executed.
const WITHDRAWN: u8 = 2;
/// Cancelled after it was claimed: the database is told to interrupt it.
const INTERRUPTED: u8 = 3;

/// Cancels the statement that carries it. Clones are handles to the same token. A token is for one statement: one that
/// comes later with the same token is cancelled too, but is told only when its turn comes.
///
/// A statement that still waits is withdrawn and has no effect. One that runs is interrupted on SQLite, and then has no effect
/// either, or had finished already: its own outcome tells. On PostgreSQL and MariaDB it runs to its end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use std::time::{Duration, Instant};
///
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{CancelToken, Write, WriteError, Writer};
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// let token = CancelToken::with_deadline(Some(Instant::now() + Duration::from_secs(5)));
/// token.cancel();
/// let write = Write::new("CREATE TABLE hits (page TEXT)", ()).cancel(token);
/// assert_eq!(writer.submit(write).await, Err(WriteError::Cancelled));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    deadline: Option<Instant>,
    cancelled: Notify,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// A token that only [`cancel`](Self::cancel) fires.
    pub fn new() -> Self {
        Self::with_deadline(None)
    }

    /// A token that also fires when the deadline has passed.
    pub fn with_deadline(deadline: Option<Instant>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: AtomicU8::new(WAITING),
                deadline,
                cancelled: Notify::new(),
            }),
        }
    }

    /// Cancels: withdraws what waits, interrupts what runs. Calling it again changes nothing.
    pub fn cancel(&self) {
        if !self.withdraw() {
            // Loses only against another cancel, which has done the same.
            let _ = self
                .shared
                .state
                .compare_exchange(CLAIMED, INTERRUPTED, Ordering::AcqRel, Ordering::Acquire);
        }
        self.shared.cancelled.notify_waiters();
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.shared.state.load(Ordering::Acquire), WITHDRAWN | INTERRUPTED)
    }

    /// Whether the deadline has passed; never true without one.
    pub fn is_late(&self) -> bool {
        self.shared.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Takes the right to execute, once or again by the same statement (a batch that is run again claims anew).
    pub fn claim(&self) -> Result<(), WriteError> {
        if self.is_late() {
            // Lost against a claim of before, which ran to its end or was rolled back: this one does not start.
            self.withdraw();
            return Err(WriteError::TimedOut);
        }
        match self
            .shared
            .state
            .compare_exchange(WAITING, CLAIMED, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) | Err(CLAIMED) => Ok(()),
            Err(_) => Err(self.reason()),
        }
    }

    /// Whether the statement that runs must stop now.
    pub fn interrupts(&self) -> bool {
        self.is_cancelled() || self.is_late()
    }

    /// What an interrupted or withdrawn statement is answered.
    pub fn reason(&self) -> WriteError {
        if self.is_late() {
            WriteError::TimedOut
        } else {
            WriteError::Cancelled
        }
    }

    /// Completes when the statement was withdrawn before it was claimed: it has no effect and never will.
    /// Never completes once it is claimed. Cancel safe.
    pub(crate) async fn withdrawn(&self) {
        loop {
            let cancelled = self.shared.cancelled.notified();
            tokio::pin!(cancelled);
            cancelled.as_mut().enable();
            if self.shared.state.load(Ordering::Acquire) == WITHDRAWN {
                return;
            }
            match self.shared.deadline {
                None => cancelled.await,
                Some(deadline) => {
                    tokio::select! {
                        () = cancelled => {}
                        () = tokio::time::sleep_until(deadline.into()) => {
                            if self.withdraw() {
                                return;
                            }
                            // Claimed: the thread that executes it watches the deadline.
                            std::future::pending::<()>().await;
                        }
                    }
                }
            }
        }
    }

    /// Completes with what to answer when the token is cancelled or late, whatever was claimed. For waiting that has no
    /// effect when it is given up. Cancel safe.
    pub async fn fired(&self) -> WriteError {
        loop {
            let cancelled = self.shared.cancelled.notified();
            tokio::pin!(cancelled);
            cancelled.as_mut().enable();
            if self.interrupts() {
                return self.reason();
            }
            match self.shared.deadline {
                None => cancelled.await,
                Some(deadline) => tokio::select! {
                    () = cancelled => {}
                    () = tokio::time::sleep_until(deadline.into()) => {}
                },
            }
        }
    }

    /// Withdraws what still waits: true if it has no effect and never will. What runs is left alone.
    pub fn withdraw(&self) -> bool {
        self.shared
            .state
            .compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_withdrawn_statement_is_never_claimed() {
        let token = CancelToken::new();
        token.cancel();
        assert!(matches!(token.claim(), Err(WriteError::Cancelled)));
    }

    #[test]
    fn a_claimed_statement_is_interrupted_not_withdrawn() {
        let token = CancelToken::new();
        token.claim().unwrap();
        assert!(!token.interrupts());
        token.cancel();
        assert!(token.interrupts());
        assert!(token.claim().is_err(), "a rerun does not execute a cancelled statement");
    }

    #[test]
    fn a_claimed_statement_may_be_claimed_again_for_a_rerun() {
        let token = CancelToken::new();
        token.claim().unwrap();
        token.claim().unwrap();
    }

    #[test]
    fn a_deadline_that_passed_withdraws() {
        let token = CancelToken::with_deadline(Some(Instant::now()));
        assert!(matches!(token.claim(), Err(WriteError::TimedOut)));
    }

    #[tokio::test]
    async fn withdrawn_completes_at_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(20);
        let token = CancelToken::with_deadline(Some(deadline));
        token.withdrawn().await;
        assert!(token.is_cancelled());
    }

    #[tokio::test]
    async fn withdrawn_completes_when_cancelled_from_elsewhere() {
        let token = CancelToken::new();
        let waiting = tokio::spawn({
            let token = token.clone();
            async move { token.withdrawn().await }
        });
        tokio::task::yield_now().await;
        token.cancel();
        waiting.await.unwrap();
    }
}
