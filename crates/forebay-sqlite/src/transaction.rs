//! A transaction of its caller's own, on the one writing connection.
//!
//! While it is open nobody else writes: SQLite has one writer. Batches and other transactions wait their turn in the
//! order they came; a batch has its turn within the time of a commit, but how long a transaction takes is its owner's affair, so
//! that one can ask not to wait for one. Dropped, it rolls back.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::readers::CancelOnDrop;
use super::session::{Session, Uncommitted};
use super::writing::{TransactionTurn, WritingConnection};
use forebay_write::{CancelToken, IntoParameters, Outcome, Parameters, Sql, WriteError};

/// An open transaction that may write. Roll back by dropping it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
///
/// let database = Sqlite::open(path)?;
/// let mut transaction = database.begin().await?;
/// transaction.execute("CREATE TABLE hits (page TEXT)", ()).await?;
/// transaction.savepoint("before").await?;
/// transaction.execute("INSERT INTO hits VALUES (?1)", "/").await?;
/// transaction.rollback_to("before").await?;
/// transaction.commit().await?;
/// assert_eq!(database.query("SELECT count(*) FROM hits", ()).await?.one::<u64>()?, 0);
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    connection: Arc<WritingConnection>,
    /// The right to write; none once the transaction has ended.
    turn: Option<TransactionTurn>,
    /// Only ever set, by whoever sees that the connection has no transaction open any more.
    lost: AtomicBool,
}

impl Transaction {
    /// Waits its turn to write, then begins.
    pub(super) async fn begin(connection: Arc<WritingConnection>) -> Result<Self, WriteError> {
        let turn = connection.transaction_turn().await?;
        Self::with(turn, connection).await
    }

    /// As [`begin`](Self::begin); none if another transaction is open, or its turn comes first.
    pub(super) async fn begin_unless_another(connection: Arc<WritingConnection>) -> Result<Option<Self>, WriteError> {
        match connection.transaction_turn_unless_another().await? {
            Some(turn) => Self::with(turn, connection).await.map(Some),
            None => Ok(None),
        }
    }

    async fn with(turn: TransactionTurn, connection: Arc<WritingConnection>) -> Result<Self, WriteError> {
        // From here on dropped means rolled back, also when this future is dropped half-way.
        let transaction = Self {
            connection,
            turn: Some(turn),
            lost: AtomicBool::new(false),
        };
        transaction
            .connection
            .thread
            .run(|session| session.begin().map_err(|failure| failure.error))
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
        parameters: impl IntoParameters,
    ) -> Result<Outcome, WriteError> {
        self.execute_with(sql.into(), parameters.into_parameters(), CancelToken::new())
            .await
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
        self.execute_under(None, sql, parameters, token).await
    }

    /// As [`execute_with`](Self::execute_with), if the schema has this version.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); [`WriteError::SchemaChanged`].
    pub async fn execute_under(
        &mut self,
        schema: Option<i64>,
        sql: Sql,
        parameters: Parameters,
        token: CancelToken,
    ) -> Result<Outcome, WriteError> {
        let watched = token.clone();
        self.run(&watched, move |session| {
            session.is_under(schema)?;
            session
                .execute_in_own_transaction(&sql, &parameters, Some(&token))
                .map_err(|failure| failure.error)
        })
        .await?
    }

    /// Reads all rows of a query, which sees what this transaction has written.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn query(&mut self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, WriteError> {
        self.execute(sql, parameters).await
    }

    /// Does `job` on the writing connection, inside this transaction; see [`connection::run`](crate::connection::run).
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        token: &CancelToken,
        job: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, WriteError> {
        let running = CancelOnDrop(Some(token));
        let result = self.inside(job).await;
        running.completed();
        result
    }

    /// Does `job` only if the transaction is still open when its turn comes: the job before it may have lost it, and its
    /// caller need not have waited to be told. Outside the transaction a statement would commit by itself.
    async fn inside<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, WriteError> {
        if self.is_lost() {
            return Err(WriteError::TransactionLost);
        }
        let ran = self
            .connection
            .thread
            .run(move |session| {
                if session.is_autocommit() {
                    return (Err(WriteError::TransactionLost), true);
                }
                let result = job(session);
                (Ok(result), session.is_autocommit())
            })
            .await;
        let (result, lost) = match ran {
            Ok(ran) => ran,
            // A panic, after which the thread has rolled back, or no thread any more.
            Err(error) => (Err(error), true),
        };
        if lost {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Whether the database has rolled the transaction back by itself (a full disk, an I/O error, an interrupt). Only
    /// dropping it is left.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Marks a point to [roll back to](Self::rollback_to).
    ///
    /// # Errors
    /// [`WriteError::TransactionLost`].
    pub async fn savepoint(&mut self, name: &str) -> Result<(), WriteError> {
        let sql = format!("SAVEPOINT {}", quoted(name));
        self.mark(move |session| session.control(&sql)).await
    }

    /// Undoes what was done since the savepoint, which stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn rollback_to(&mut self, name: &str) -> Result<(), WriteError> {
        let sql = format!("ROLLBACK TO {}", quoted(name));
        self.mark(move |session| session.rollback_to(&sql)).await
    }

    /// Forgets the savepoint; what was done since stays.
    ///
    /// # Errors
    /// The database's, if there is no such savepoint.
    pub async fn release(&mut self, name: &str) -> Result<(), WriteError> {
        let sql = format!("RELEASE {}", quoted(name));
        self.mark(move |session| session.control(&sql)).await
    }

    async fn mark(
        &self,
        mark: impl FnOnce(&mut Session) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), WriteError> {
        self.inside(move |session| {
            let marked = mark(session);
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
        if self.is_lost() {
            return Err(WriteError::TransactionLost);
        }
        let turn = self.turn.take();
        self.connection
            .thread
            .run(move |session| {
                // Held until the end of the job, also when nobody waits for it any more.
                let _turn = turn;
                session.close_cursors();
                if session.is_autocommit() {
                    session.rollback();
                    return Err(WriteError::TransactionLost);
                }
                session.commit().map_err(|uncommitted| match uncommitted {
                    Uncommitted::ByAll(error) | Uncommitted::BySome(error) => error,
                })
            })
            .await?
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    pub async fn rollback(mut self) -> Result<(), WriteError> {
        let turn = self.turn.take();
        self.connection.thread.run(move |session| end(session, turn)).await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.connection.thread.post(move |session| end(session, Some(turn)));
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The turn is over only when nothing of the transaction is left.
fn end(session: &mut Session, turn: Option<TransactionTurn>) {
    session.close_cursors();
    session.rollback();
    drop(turn);
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
