//! A transaction of its caller's own, on whichever database the writer stands on.
//!
//! Promises: nothing of it is seen before [`commit`](Transaction::commit) has returned `Ok`; dropped, it rolls back. What each
//! database adds (who waits meanwhile, isolation) its own module says.

#[cfg(feature = "postgres")]
use super::postgres;
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::{Outcome, Parameters, Sql, WriteError};

/// An open transaction. Roll back by dropping it.
pub struct Transaction {
    of: Database,
}

/// Whose it is.
enum Database {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::Transaction),
    #[cfg(feature = "postgres")]
    Postgres(postgres::Transaction),
}

#[cfg(feature = "sqlite")]
impl From<sqlite::Transaction> for Transaction {
    fn from(transaction: sqlite::Transaction) -> Self {
        Self {
            of: Database::Sqlite(transaction),
        }
    }
}

#[cfg(feature = "postgres")]
impl From<postgres::Transaction> for Transaction {
    fn from(transaction: postgres::Transaction) -> Self {
        Self {
            of: Database::Postgres(transaction),
        }
    }
}

/// Does the same with each database's own transaction.
macro_rules! each {
    ($database:expr, $transaction:ident => $do:expr) => {
        match $database {
            #[cfg(feature = "sqlite")]
            Database::Sqlite($transaction) => $do,
            #[cfg(feature = "postgres")]
            Database::Postgres($transaction) => $do,
        }
    };
}

impl Transaction {
    /// Executes one statement, which sees what this transaction has written. One that fails undoes only itself; the
    /// transaction goes on, unless [`is_lost`](Self::is_lost).
    ///
    /// # Errors
    /// The statement's own; [`WriteError::TransactionLost`] if the database has rolled back before.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whether the statement had finished is not told, so roll back.
    pub async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        parameters: impl Into<Parameters>,
    ) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into());
        each!(&mut self.of, transaction => transaction.execute(sql, parameters).await)
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

    /// Whether the database has rolled the transaction back by itself. Only dropping it is left.
    pub fn is_lost(&self) -> bool {
        each!(&self.of, transaction => transaction.is_lost())
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        each!(&mut self.of, transaction => transaction.savepoint(name).await)
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        each!(&mut self.of, transaction => transaction.rollback_to(name).await)
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        each!(&mut self.of, transaction => transaction.release(name).await)
    }

    /// Commits. Acknowledged means durable.
    ///
    /// # Errors
    /// A deferred constraint's (the transaction is rolled back then), [`WriteError::TransactionLost`],
    /// [`WriteError::OutcomeUnknown`] if the disk or the connection failed meanwhile.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whether it was committed is not told.
    pub async fn commit(self) -> Result<(), WriteError> {
        each!(self.of, transaction => transaction.commit().await)
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    pub async fn rollback(self) -> Result<(), WriteError> {
        each!(self.of, transaction => transaction.rollback().await)
    }
}
