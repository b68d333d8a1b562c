//! A transaction of its caller's own, on a connection of its own.
//!
//! Promises: one statement that fails undoes only itself; dropped, the transaction rolls back. It ends by
//! [`commit`](Transaction::commit) and [`rollback`](Transaction::rollback) alone, never by a statement. What its statements
//! change in the session (SET, locks, temporary tables) is undone when it has ended.

use std::fmt;
use std::sync::Arc;

use super::connector::{Connections, Lease};
use super::error::Failure;
use super::plan::Plans;
use super::statement;
use forebay_sql::Role;
use forebay_write::{IntoParameters, Outcome, Sql, WriteError};

const SAVE: &str = "SAVEPOINT forebay_statement";
const RELEASE: &str = "RELEASE forebay_statement";
const UNDO: &str = "ROLLBACK TO forebay_statement; RELEASE forebay_statement";

/// An open transaction. Roll back by dropping it.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::postgres::Postgres;
///
/// let database = Postgres::connect("postgresql://app@127.0.0.1/app").await?;
/// let mut transaction = database.begin().await?;
/// transaction.execute("UPDATE accounts SET amount = amount - 5 WHERE name = $1", "Ada").await?;
/// transaction.execute("UPDATE accounts SET amount = amount + 5 WHERE name = $1", "Grace").await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    connections: Arc<Connections>,
    plans: Arc<Plans>,
    lease: Lease,
    is_lost: bool,
    /// Whether the session may not be what it was.
    is_changed: bool,
}

impl Transaction {
    pub(super) async fn begin(
        connections: &Arc<Connections>,
        plans: &Arc<Plans>,
        mut lease: Lease,
    ) -> Result<Self, WriteError> {
        // It waits for locks as the server is set to: nobody waits behind it but its own caller.
        let begun = lease.command("BEGIN; SET LOCAL lock_timeout TO DEFAULT").await;
        let transaction = Self {
            connections: Arc::clone(connections),
            plans: Arc::clone(plans),
            lease,
            is_lost: false,
            is_changed: false,
        };
        begun.map_err(explained)?;
        Ok(transaction)
    }

    /// Executes one statement, which sees what this transaction has written. One that fails undoes only itself; the
    /// transaction goes on, unless [`is_lost`](Self::is_lost).
    ///
    /// # Errors
    /// The statement's own; [`WriteError::Refused`] if it would end the transaction; [`WriteError::TransactionLost`] if the
    /// database has rolled back before.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the transaction is lost.
    pub async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        parameters: impl IntoParameters,
    ) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into_parameters());
        if self.is_lost {
            return Err(WriteError::TransactionLost);
        }
        let plan = self.plans.of(&sql);
        match &plan.role {
            Role::Refused(_) if forebay_sql::belongs_to_a_transaction(&sql) => self.is_changed = true,
            Role::Refused(reason) => return Err(WriteError::Refused { reason: reason.clone() }),
            Role::Shares | Role::Alone => self.is_changed |= plan.changes_session,
        }
        // Dropped half-way, nobody knows what was executed.
        self.is_lost = true;
        self.command(SAVE).await?;
        let result = statement::execute(&mut self.lease, &plan, &parameters).await;
        match &result {
            Err(WriteError::Unavailable { .. }) => return Err(WriteError::TransactionLost),
            Err(_) => self.command(UNDO).await?,
            Ok(_) => self.command(RELEASE).await?,
        }
        self.is_lost = false;
        result
    }

    /// Whether the connection was lost, and with it the transaction. Only dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(&format!("SAVEPOINT {}", quoted(name))).await
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint; the transaction is lost then.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(&format!("ROLLBACK TO {}", quoted(name))).await
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint; the transaction is lost then.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        self.mark(&format!("RELEASE {}", quoted(name))).await
    }

    async fn mark(&mut self, sql: &str) -> Result<(), WriteError> {
        if self.is_lost {
            return Err(WriteError::TransactionLost);
        }
        self.is_lost = true;
        self.command(sql).await?;
        self.is_lost = false;
        Ok(())
    }

    /// Commits. Acknowledged means durable.
    ///
    /// # Errors
    /// A deferred constraint's (the transaction is rolled back then), [`WriteError::TransactionLost`],
    /// [`WriteError::OutcomeUnknown`] if the connection was lost meanwhile.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whether it was committed is not told.
    pub async fn commit(mut self) -> Result<(), WriteError> {
        if self.is_lost {
            return Err(WriteError::TransactionLost);
        }
        match self.lease.command("COMMIT").await {
            Ok(()) => {
                self.ended().await;
                Ok(())
            }
            Err(Failure::Lost(cause)) => {
                drop(self.connections.kill(self.lease).await);
                Err(WriteError::OutcomeUnknown { cause })
            }
            Err(refused) => {
                self.ended().await;
                Err(explained(refused))
            }
        }
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting, and costs the connection.
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`] if the connection was lost; nothing of the transaction is left then either.
    pub async fn rollback(mut self) -> Result<(), WriteError> {
        self.command("ROLLBACK").await?;
        self.ended().await;
        Ok(())
    }

    async fn ended(&mut self) {
        if self.is_changed {
            self.lease.reset_session().await;
        }
    }

    async fn command(&mut self, sql: &str) -> Result<(), WriteError> {
        self.lease.command(sql).await.map_err(explained)
    }
}

fn explained(failure: Failure) -> WriteError {
    match failure {
        Failure::Lost(_) => WriteError::TransactionLost,
        other => other.statement().into(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
