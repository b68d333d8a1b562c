//! A transaction of its caller's own, on the one writing connection.
//!
//! While it is open nobody else writes: SQLite has one writer. Batches and other transactions wait their turn in the
//! order they came. Dropped, it rolls back.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::error::is_disk_failure;
use super::readers::CancelOnDrop;
use super::session::Session;
use super::Inner;
use crate::write::{CancelToken, Outcome, Parameters, Sql, WriteError};

/// An open transaction that may write. Roll back by dropping it.
pub struct Transaction {
    sqlite: Arc<Inner>,
    /// The right to write; none once the transaction has ended.
    permit: Option<OwnedSemaphorePermit>,
    lost: bool,
}

impl Transaction {
    /// Waits its turn to write, then begins.
    pub(super) async fn begin(sqlite: Arc<Inner>) -> Result<Self, WriteError> {
        let permit = sqlite.permit_to_write().await?;
        // From here on dropped means rolled back, also when this future is dropped half-way.
        let transaction = Self {
            sqlite,
            permit: Some(permit),
            lost: false,
        };
        transaction
            .sqlite
            .writer
            .run(|session| {
                session.trusted("BEGIN IMMEDIATE").map_err(|failure| failure.error)?;
                let checked = session.check_schema();
                checked.map_err(|error| session.explain(&error))
            })
            .await??;
        Ok(transaction)
    }

    /// Executes one statement. One that fails undoes only itself; the transaction goes on, unless
    /// [`is_lost`](Self::is_lost).
    ///
    /// # Errors
    /// The statement's own; [`WriteError::TransactionLost`] if the database has rolled back before.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the statement is interrupted; whether it had finished is not told, so roll back.
    pub async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        parameters: impl Into<Parameters>,
    ) -> Result<Outcome, WriteError> {
        self.execute_with(sql.into(), parameters.into(), CancelToken::new()).await
    }

    /// As [`execute`](Self::execute), with a token that cancels it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn execute_with(
        &mut self,
        sql: Sql,
        parameters: Parameters,
        token: CancelToken,
    ) -> Result<Outcome, WriteError> {
        if self.lost {
            return Err(WriteError::TransactionLost);
        }
        let watched = token.clone();
        let result = self
            .run(&watched, move |session| {
                session
                    .execute_in_own_transaction(&sql, &parameters, Some(&token))
                    .map_err(|failure| (failure.error, session.is_autocommit()))
            })
            .await?;
        result.map_err(|(error, rolled_back)| {
            self.lost |= rolled_back;
            error
        })
    }

    /// Reads all rows of a query, which sees what this transaction has written.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query(
        &mut self,
        sql: impl Into<Sql>,
        parameters: impl Into<Parameters>,
    ) -> Result<Outcome, WriteError> {
        self.execute(sql, parameters).await
    }

    /// Does `job` on the writing connection, inside this transaction: cursors, looking at the schema.
    ///
    /// # Errors
    /// [`WriteError::Closed`], or [`WriteError::Internal`] if the job panicked.
    ///
    /// # Cancel safety
    /// Dropped before it completes, `token` is cancelled, so that what runs is interrupted.
    pub async fn run<R: Send + 'static>(
        &self,
        token: &CancelToken,
        job: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, WriteError> {
        let running = CancelOnDrop(Some(token));
        let result = self.sqlite.writer.run(job).await;
        running.completed();
        result
    }

    /// Whether the database has rolled the transaction back by itself (a full disk, an I/O error, an interrupt). Only
    /// dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark("SAVEPOINT", name).await
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark("ROLLBACK TO", name).await
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark("RELEASE", name).await
    }

    async fn mark(&mut self, verb: &str, name: &str) -> Result<(), WriteError> {
        if self.lost {
            return Err(WriteError::TransactionLost);
        }
        let sql = format!("{verb} \"{}\"", name.replace('"', "\"\""));
        self.sqlite
            .writer
            .run(move |session| {
                let marked = session.control(&sql);
                marked.map_err(|error| session.explain(&error))
            })
            .await?
    }

    /// Commits. Acknowledged means durable.
    ///
    /// # Errors
    /// A deferred constraint's (the transaction is rolled back then), [`WriteError::TransactionLost`],
    /// [`WriteError::OutcomeUnknown`] if the disk failed meanwhile.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whether it was committed is not told.
    pub async fn commit(mut self) -> Result<(), WriteError> {
        if self.lost {
            return Err(WriteError::TransactionLost);
        }
        let permit = self.permit.take();
        self.sqlite
            .writer
            .run(move |session| {
                // Held until the end of the job, also when nobody waits for it any more.
                let _permit = permit;
                session.close_cursors();
                let committed = session.control("COMMIT");
                committed.map_err(|error| {
                    let explained = session.explain(&error);
                    session.rollback();
                    if is_disk_failure(&error) {
                        WriteError::OutcomeUnknown {
                            cause: explained.to_string(),
                        }
                    } else {
                        explained
                    }
                })
            })
            .await?
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    pub async fn rollback(mut self) -> Result<(), WriteError> {
        let permit = self.permit.take();
        self.sqlite.writer.run(move |session| end(session, permit)).await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.sqlite.writer.post(move |session| end(session, Some(permit)));
        }
    }
}

/// The permit is given back only when nothing of the transaction is left.
fn end(session: &mut Session, permit: Option<OwnedSemaphorePermit>) {
    session.close_cursors();
    session.rollback();
    drop(permit);
}
