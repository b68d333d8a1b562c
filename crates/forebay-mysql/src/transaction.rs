//! A transaction of its caller's own, on a connection of its own.
//!
//! Promises: nothing of it is seen before [`commit`](Transaction::commit) has returned `Ok`; dropped, it rolls back. Isolation is
//! the server's default. Statements that would commit what was done before (CREATE, ALTER, …) are refused.

use std::sync::Arc;

use super::Inner;
use super::error::Failure;
use super::pool::Lent;
use forebay_remote::retry::Backoff;
use forebay_sql::Role;
use forebay_write::{Outcome, Parameters, Sql, WriteError};

/// An open transaction. Roll back by dropping it.
pub struct Transaction {
    inner: Arc<Inner>,
    /// None once the transaction has ended.
    lent: Option<Lent>,
    is_lost: bool,
}

impl Transaction {
    pub(super) async fn begin(inner: Arc<Inner>) -> Result<Self, WriteError> {
        let permit = inner.links.permit_to_write().await?;
        let mut backoff = Backoff::new(inner.retry_for);
        loop {
            let mut lent = inner.links.take(&permit, &mut backoff).await?;
            match lent.link.begin().await {
                Ok(()) => {
                    return Ok(Self {
                        inner,
                        lent: Some(lent),
                        is_lost: false,
                    });
                }
                // Nothing has happened yet.
                Err(Failure::Lost { cause, .. }) => {
                    inner.links.note_loss();
                    match backoff.next_delay() {
                        Some(delay) => tokio::time::sleep(delay).await,
                        None => return Err(WriteError::Unavailable { cause }),
                    }
                }
                Err(failure) => return Err(failure.into_write_error()),
            }
        }
    }

    /// Executes one statement. One that fails undoes only itself; the transaction goes on, unless
    /// [`is_lost`](Self::is_lost).
    ///
    /// # Errors
    /// The statement's own; [`WriteError::TransactionLost`] if the database has rolled back before, or is gone.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the transaction is lost.
    pub async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        parameters: impl Into<Parameters>,
    ) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into());
        let plan = self.inner.plans.of(&sql);
        if let Role::Refused(reason) = &plan.role {
            return Err(WriteError::Refused { reason: reason.clone() });
        }
        if plan.commits_before {
            let reason = "the statement would commit what was done before it; execute it outside of the transaction";
            return Err(WriteError::Refused {
                reason: reason.to_owned(),
            });
        }
        let link = self.link()?;
        if plan.changes_session {
            link.mark_changed();
        }
        let result = link.execute(&sql, &parameters).await;
        let still_open = match &result {
            Ok(_) => link.has_open_transaction() || plan.role == Role::Shares,
            Err(failure) if failure.leaves_transaction() => true,
            Err(Failure::Lost { .. }) => false,
            Err(failure) if failure.is_deadlock() => false,
            Err(Failure::TooMuch(_)) => false,
            Err(_) => link.is_in_transaction().await.unwrap_or(false),
        };
        if !still_open {
            self.is_lost = true;
        }
        result.map_err(|failure| match failure {
            Failure::Lost { .. } => {
                self.inner.links.note_loss();
                WriteError::TransactionLost
            }
            failure => failure.into_write_error(),
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

    /// Whether the database has rolled the transaction back by itself (a deadlock, a lost connection), or it cannot be told.
    /// Only dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.is_lost || self.lent.as_ref().is_none_or(|lent| lent.link.is_broken())
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(format!("SAVEPOINT {}", quoted(name))).await
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(format!("ROLLBACK TO SAVEPOINT {}", quoted(name))).await
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(format!("RELEASE SAVEPOINT {}", quoted(name))).await
    }

    async fn mark(&mut self, command: String) -> Result<(), WriteError> {
        let done = self.link()?.command(&command, false).await;
        done.map(drop).map_err(Failure::into_write_error)
    }

    /// Commits. Acknowledged means durable.
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`]; [`WriteError::OutcomeUnknown`] if the connection was lost meanwhile.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whether it was committed is not told.
    pub async fn commit(mut self) -> Result<(), WriteError> {
        self.link()?;
        let mut lent = self.lent.take().ok_or(WriteError::TransactionLost)?;
        match lent.link.commit().await {
            Ok(()) => {
                lent.link.tidy_up().await;
                Ok(())
            }
            Err(failure) if failure.leaves_commit_unknown() => {
                self.inner.links.end(lent).await;
                Err(WriteError::OutcomeUnknown {
                    cause: failure.into_write_error().to_string(),
                })
            }
            // It was refused; what is left of it goes with the connection.
            Err(failure) => Err(failure.into_write_error()),
        }
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// None: a connection that is lost has rolled back, too.
    pub async fn rollback(mut self) -> Result<(), WriteError> {
        if let Some(mut lent) = self.lent.take() {
            // What fails here is closed, and rolled back by the server.
            let _ = lent.link.rollback().await;
            lent.link.tidy_up().await;
        }
        Ok(())
    }

    fn link(&mut self) -> Result<&mut super::link::Link, WriteError> {
        if self.is_lost() {
            return Err(WriteError::TransactionLost);
        }
        match &mut self.lent {
            Some(lent) => Ok(&mut lent.link),
            None => Err(WriteError::TransactionLost),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut lent) = self.lent.take() else { return };
        // Without a runtime it is closed, which rolls back as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !lent.link.is_broken()
        {
            runtime.spawn(async move {
                let _ = lent.link.rollback().await;
                lent.link.tidy_up().await;
            });
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
