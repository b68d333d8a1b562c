//! A transaction of its caller's own, on a connection of its own.
//!
//! Promises: nothing of it is seen before [`commit`](Transaction::commit) has returned `Ok`; dropped, it rolls back. Isolation is
//! the server's default. Statements that would commit what was done before (CREATE, ALTER, …) are refused.

use std::fmt;
use std::sync::Arc;

use super::connection::Connection;
use super::connector::{Connections, Lease};
use super::error::Failure;
use super::plan::Plans;
use forebay_remote::connections::Purpose;
use forebay_sql::Role;
use forebay_write::{IntoParameters, Outcome, Sql, WriteError};

/// An open transaction. Roll back by dropping it.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::mysql::MySql;
///
/// let database = MySql::connect("mysql://app@127.0.0.1/app").await?;
/// let mut transaction = database.begin().await?;
/// transaction.execute("UPDATE accounts SET amount = amount - 5 WHERE name = ?", "Ada").await?;
/// transaction.execute("UPDATE accounts SET amount = amount + 5 WHERE name = ?", "Grace").await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    connections: Arc<Connections>,
    plans: Arc<Plans>,
    /// None once the transaction has ended.
    lease: Option<Lease>,
    is_lost: bool,
}

impl Transaction {
    pub(super) async fn begin(connections: &Arc<Connections>, plans: &Arc<Plans>) -> Result<Self, WriteError> {
        let mut permit = connections.permit(Purpose::Write).await?;
        let mut backoff = connections.backoff();
        loop {
            let mut lease = connections.take_with(permit, &mut backoff).await?;
            match lease.begin().await {
                Ok(()) => {
                    return Ok(Self {
                        connections: Arc::clone(connections),
                        plans: Arc::clone(plans),
                        lease: Some(lease),
                        is_lost: false,
                    });
                }
                // Nothing has happened yet.
                Err(Failure::Lost { cause, .. }) => {
                    connections.note_loss();
                    permit = lease.into_permit();
                    match backoff.next_delay() {
                        Some(delay) => tokio::time::sleep(delay).await,
                        None => return Err(connections.unavailable(cause)),
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
        parameters: impl IntoParameters,
    ) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into_parameters());
        let plan = self.plans.of(&sql);
        if let Role::Refused(reason) = &plan.role {
            return Err(WriteError::Refused { reason: reason.clone() });
        }
        if plan.commits_before {
            let reason = "the statement would commit what was done before it; execute it outside of the transaction";
            return Err(WriteError::Refused {
                reason: reason.to_owned(),
            });
        }
        let connection = self.connection()?;
        if plan.changes_session {
            connection.mark_changed();
        }
        let result = connection.execute(&sql, &parameters).await;
        let still_open = match &result {
            Ok(_) => connection.has_open_transaction() || plan.role == Role::Shares,
            Err(failure) if failure.leaves_transaction() => true,
            Err(Failure::Lost { .. }) => false,
            Err(failure) if failure.is_deadlock() => false,
            Err(Failure::TooMuch(_)) => false,
            Err(_) => connection.is_in_transaction().await.unwrap_or(false),
        };
        if !still_open {
            self.is_lost = true;
        }
        result.map_err(|failure| match failure {
            Failure::Lost { .. } => {
                self.connections.note_loss();
                WriteError::TransactionLost
            }
            failure => failure.into_write_error(),
        })
    }

    /// Reads all rows of a query, which sees what this transaction has written.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query(&mut self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, WriteError> {
        self.execute(sql, parameters).await
    }

    /// Whether the database has rolled the transaction back by itself (a deadlock, a lost connection), or it cannot be told.
    /// Only dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.is_lost || self.lease.as_ref().is_none_or(|lease| lease.is_broken())
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
        let done = self.connection()?.command(&command, false).await;
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
        self.connection()?;
        let mut lease = self.lease.take().ok_or(WriteError::TransactionLost)?;
        match lease.commit().await {
            Ok(()) => {
                lease.reset_if_changed().await;
                Ok(())
            }
            Err(failure) if failure.leaves_commit_unknown() => {
                drop(self.connections.kill(lease).await);
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
        if let Some(mut lease) = self.lease.take() {
            // What fails here is closed, and rolled back by the server.
            let _ = lease.rollback().await;
            lease.reset_if_changed().await;
        }
        Ok(())
    }

    fn connection(&mut self) -> Result<&mut Connection, WriteError> {
        if self.is_lost() {
            return Err(WriteError::TransactionLost);
        }
        match &mut self.lease {
            Some(lease) => Ok(lease),
            None => Err(WriteError::TransactionLost),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else { return };
        // Without a runtime it is closed, which rolls back as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !lease.is_broken()
        {
            runtime.spawn(async move {
                let _ = lease.rollback().await;
                lease.reset_if_changed().await;
            });
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
