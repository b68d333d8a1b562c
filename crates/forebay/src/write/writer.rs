//! The Writer itself: a [`Batcher`] whose batches are transactions.

use std::time::Duration;

use super::sqlite::{Sqlite, Transaction};
use super::{Outcome, Parameters, Sql, Write, WriteError};
use crate::batch::{self, Batcher, CallError};

/// Writes for many callers at once. Clones are handles to the same writer.
///
/// Statements that wait while a commit runs share the next one; an idle database is written to at once. No caller sees
/// anything of it but the speed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::write::{Writer, sqlite::Sqlite};
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE hits (page TEXT, at INTEGER)", ()).await?;
/// let done = writer.execute("INSERT INTO hits (page, at) VALUES (?1, ?2)", ("/", 1_700_000_000)).await?;
/// assert_eq!(done.rows_affected, 1); // durable now, and this caller's own outcome
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Writer {
    batcher: Batcher<Write, Result<Outcome, WriteError>>,
    backend: Backend,
}

/// The databases a writer can stand on.
#[derive(Clone)]
#[non_exhaustive]
pub enum Backend {
    /// SQLite, embedded.
    Sqlite(Sqlite),
}

impl From<Sqlite> for Backend {
    fn from(sqlite: Sqlite) -> Self {
        Self::Sqlite(sqlite)
    }
}

/// Limits of a writer that is to be made.
#[derive(Debug, Clone)]
pub struct Builder {
    max_items: usize,
    max_weight: usize,
    max_wait: Duration,
    max_queued: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            max_items: 4096,
            max_weight: 16 << 20,
            max_wait: Duration::ZERO,
            max_queued: 100_000,
        }
    }
}

impl Builder {
    /// The most statements that share a commit. Default: 4096.
    #[must_use]
    pub fn max_items(mut self, max_items: usize) -> Self {
        self.max_items = max_items;
        self
    }

    /// The most bytes that share a commit: of parameters, and of statements made at run time. Default: 16 MiB.
    #[must_use]
    pub fn max_weight(mut self, bytes: usize) -> Self {
        self.max_weight = bytes;
        self
    }

    /// The window: how long a statement may wait for others, counted from the first. Default: zero, which gathers while
    /// a commit runs and makes nobody wait on an idle database.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// The most statements that wait; what is over waits outside, in order. Default: 100,000.
    #[must_use]
    pub fn max_queued(mut self, max_queued: usize) -> Self {
        self.max_queued = max_queued;
        self
    }

    /// A writer on that database.
    ///
    /// # Panics
    /// Outside a tokio runtime, or if a limit is 0 that must not be.
    pub fn build(self, backend: impl Into<Backend>) -> Writer {
        let backend = backend.into();
        let writing = backend.clone();
        let mut batcher = Batcher::<Write, Result<Outcome, WriteError>>::builder()
            .max_items(self.max_items)
            .max_weight(self.max_weight, Write::weight)
            .max_queued(self.max_queued)
            .max_in_flight(1);
        if !self.max_wait.is_zero() {
            batcher = batcher.max_wait(self.max_wait);
        }
        let batcher = batcher.build(move |batch: Vec<Write>| {
            let backend = writing.clone();
            async move {
                match backend {
                    Backend::Sqlite(sqlite) => Ok(sqlite.write(batch).await),
                }
            }
        });
        Writer { batcher, backend }
    }
}

impl Writer {
    /// A writer with the default limits.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(backend: impl Into<Backend>) -> Self {
        Builder::default().build(backend)
    }

    /// Limits other than the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Executes one statement. When this returns `Ok`, it is committed, with the database's full durability.
    ///
    /// # Errors
    /// [`WriteError`]; all but [`WriteError::OutcomeUnknown`] mean that the statement had no effect.
    ///
    /// # Cancel safety
    /// Dropped before its batch began, the statement has no effect. Dropped later, it is executed and its outcome lost.
    pub async fn execute(&self, sql: impl Into<Sql>, parameters: impl Into<Parameters>) -> Result<Outcome, WriteError> {
        self.submit(Write::new(sql, parameters)).await
    }

    /// As [`execute`](Self::execute), with a window of its own or a token that cancels it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn submit(&self, write: Write) -> Result<Outcome, WriteError> {
        let token = write.cancel.clone();
        let call = match write.max_wait {
            None => self.batcher.call(write),
            Some(max_wait) => self.batcher.call_within(write, max_wait),
        };
        let answer = match token {
            None => call.await,
            Some(token) => tokio::select! {
                biased;
                answer = call => answer,
                // It has no effect and never will: the token is asked before the statement is executed.
                () = token.withdrawn() => return Err(token.reason()),
            },
        };
        match answer {
            Ok(outcome) => outcome,
            Err(CallError::Closed) => Err(WriteError::Closed),
            // The batch may have been on its way to the database when its task ended.
            Err(error) => Err(WriteError::OutcomeUnknown {
                cause: error.to_string(),
            }),
        }
    }

    /// As [`submit`](Self::submit), sharing the commit with nobody.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    /// As [`execute`](Self::execute).
    pub async fn submit_alone(&self, write: Write) -> Result<Outcome, WriteError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => {
                let token = write.cancel.clone().unwrap_or_default();
                tokio::select! {
                    biased;
                    mut outcomes = sqlite.write(vec![write]) => outcomes.pop().expect("one outcome a write"),
                    () = token.withdrawn() => Err(token.reason()),
                }
            }
        }
    }

    /// Begins a transaction of the caller's own. Nobody else writes while it is open, so keep it short.
    ///
    /// # Errors
    /// [`WriteError::Busy`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.begin().await,
        }
    }

    /// Takes no more statements, writes those that wait, and returns when the last is answered. Later calls get
    /// [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, the writer stays closed and goes on emptying its queue.
    pub async fn drain(&self) {
        self.batcher.drain().await;
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> batch::Stats {
        self.batcher.stats()
    }
}
