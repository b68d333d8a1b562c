//! A transaction of its caller's own, on whichever database the writer stands on, and what a database does for it.
//!
//! Promises: nothing of it is seen before [`commit`](Transaction::commit) has returned `Ok`; dropped, it rolls back. What each
//! database adds (who waits meanwhile, isolation) its own module says.

use super::running::Running;
use super::{IntoParameters, Outcome, Parameters, Sql, WriteError};
use std::fmt;

/// An open transaction. Roll back by dropping it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::Writer;
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE accounts (name TEXT, amount INTEGER)", ()).await?;
/// let mut transaction = writer.begin().await?;
/// transaction.execute("INSERT INTO accounts VALUES (?1, ?2)", ("Ada", 10)).await?;
/// let seen: i64 = transaction.query("SELECT sum(amount) FROM accounts", ()).await?.one()?;
/// assert_eq!(seen, 10);
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    open: Box<dyn OpenTransaction>,
}

impl Transaction {
    /// What a database has begun.
    pub fn new(open: impl OpenTransaction + 'static) -> Self {
        Self { open: Box::new(open) }
    }

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
        parameters: impl IntoParameters,
    ) -> Result<Outcome, WriteError> {
        self.open.execute(sql.into(), parameters.into_parameters()).await
    }

    /// Reads all rows of a query, which sees what this transaction has written.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query(&mut self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, WriteError> {
        self.execute(sql, parameters).await
    }

    /// Whether the database has rolled the transaction back by itself. Only dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.open.is_lost()
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        self.open.savepoint(name).await
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        self.open.rollback_to(name).await
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        self.open.release(name).await
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
        self.open.commit().await
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    pub async fn rollback(self) -> Result<(), WriteError> {
        self.open.rollback().await
    }
}

/// A transaction that is open on a database. What each method promises, [`Transaction`] says.
///
/// [`open_transaction!`](crate::open_transaction) implements it by async functions of the type's own. Each database's is one:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::IntoParameters;
/// use forebay::write::database::OpenTransaction;
///
/// let mut open: Box<dyn OpenTransaction> = Box::new(Sqlite::open(path)?.begin().await?);
/// open.execute("CREATE TABLE hits (page TEXT)".into(), ().into_parameters()).await?;
/// let done = open.execute("INSERT INTO hits VALUES (?1)".into(), "/".into_parameters()).await?;
/// assert_eq!(done.rows_affected, 1);
/// open.commit().await?;
/// # Ok(())
/// # }
/// ```
pub trait OpenTransaction: Send {
    /// Executes one statement.
    fn execute(&mut self, sql: Sql, parameters: Parameters) -> Running<'_, Result<Outcome, WriteError>>;

    /// Whether the database has rolled it back by itself.
    fn is_lost(&self) -> bool;

    /// Marks a point to roll back to.
    fn savepoint<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Undoes what was done since the savepoint, which stays.
    fn rollback_to<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Forgets the savepoint.
    fn release<'a>(&'a mut self, name: &'a str) -> Running<'a, Result<(), WriteError>>;

    /// Commits.
    fn commit(self: Box<Self>) -> Running<'static, Result<(), WriteError>>;

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    fn rollback(self: Box<Self>) -> Running<'static, Result<(), WriteError>>;
}

/// Implements [`OpenTransaction`] by a type's own methods of the same names, all of which it must have.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use forebay::write::{Outcome, Parameters, Sql, Transaction, WriteError, open_transaction};
///
/// /// On a journal: what is to be appended to it in one go.
/// struct Entries { journal: Arc<Mutex<Vec<String>>>, written: Vec<String>, marks: Vec<(String, usize)> }
///
/// impl Entries {
///     async fn execute(&mut self, sql: Sql, _: Parameters) -> Result<Outcome, WriteError> {
///         self.written.push(sql.to_string());
///         Ok(Outcome::counted(1, None))
///     }
///
///     fn is_lost(&self) -> bool {
///         false
///     }
///
///     async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
///         self.marks.push((name.to_owned(), self.written.len()));
///         Ok(())
///     }
///
///     async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
///         let mark = self.marks.iter().rposition(|(mark, _)| mark == name);
///         let mark = mark.ok_or_else(|| WriteError::Refused { reason: format!("there is no savepoint {name}") })?;
///         self.marks.truncate(mark + 1);
///         self.written.truncate(self.marks[mark].1);
///         Ok(())
///     }
///
///     async fn release(&mut self, name: &str) -> Result<(), WriteError> {
///         self.marks.retain(|(mark, _)| mark != name);
///         Ok(())
///     }
///
///     async fn commit(self) -> Result<(), WriteError> {
///         self.journal.lock().unwrap().extend(self.written);
///         Ok(())
///     }
///
///     async fn rollback(self) -> Result<(), WriteError> {
///         Ok(())
///     }
/// }
///
/// open_transaction!(Entries);
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = Arc::<Mutex<Vec<String>>>::default();
/// // What `Database::begin` answers.
/// let entries = Entries { journal: Arc::clone(&journal), written: Vec::new(), marks: Vec::new() };
/// let mut transaction = Transaction::new(entries);
/// transaction.execute("one", ()).await?;
/// transaction.savepoint("here").await?;
/// transaction.execute("two", ()).await?;
/// transaction.rollback_to("here").await?;
/// assert!(journal.lock().unwrap().is_empty());
/// transaction.commit().await?;
/// assert_eq!(*journal.lock().unwrap(), ["one"]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! open_transaction {
    ($transaction:ty) => {
        impl $crate::database::OpenTransaction for $transaction {
            fn execute(
                &mut self,
                sql: $crate::Sql,
                parameters: $crate::Parameters,
            ) -> $crate::database::Running<'_, Result<$crate::Outcome, $crate::WriteError>> {
                Box::pin(self.execute(sql, parameters))
            }

            fn is_lost(&self) -> bool {
                self.is_lost()
            }

            fn savepoint<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.savepoint(name))
            }

            fn rollback_to<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.rollback_to(name))
            }

            fn release<'a>(
                &'a mut self,
                name: &'a str,
            ) -> $crate::database::Running<'a, Result<(), $crate::WriteError>> {
                Box::pin(self.release(name))
            }

            fn commit(self: Box<Self>) -> $crate::database::Running<'static, Result<(), $crate::WriteError>> {
                Box::pin((*self).commit())
            }

            fn rollback(self: Box<Self>) -> $crate::database::Running<'static, Result<(), $crate::WriteError>> {
                Box::pin((*self).rollback())
            }
        }
    };
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
