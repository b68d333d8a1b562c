//! Errors of writing, told apart by what the caller should do.

use std::time::Duration;

/// Why a statement has no outcome.
///
/// Every variant but [`OutcomeUnknown`](Self::OutcomeUnknown) promises that the statement had **no effect**.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{StatementErrorKind, WriteError, Writer};
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE users (name TEXT UNIQUE)", ()).await?;
/// writer.execute("INSERT INTO users VALUES (?1)", "Ada").await?;
/// match writer.execute("INSERT INTO users VALUES (?1)", "Ada").await {
///     Ok(_) => unreachable!("the name is taken"),
///     Err(WriteError::Statement(error)) => assert_eq!(error.kind, StatementErrorKind::Unique),
///     Err(WriteError::OutcomeUnknown { cause }) => println!("look whether it is there: {cause}"),
///     Err(error) => println!("it is not there: {error}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The database refused this statement or failed on it. Mend the statement, its parameters, or what the message names.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// Another process held the database's lock for longer than the busy timeout. Try again later.
    #[error("the database is locked by another process (waited {} ms)", waited.as_millis())]
    Busy {
        /// How long was waited.
        waited: Duration,
    },
    /// The database could not be reached or does not take this user, or was lost before the commit, for as long as is tried.
    /// Nothing was written. Try again later, or mend the URL.
    #[error("the database cannot be used: {cause}")]
    Unavailable {
        /// What was tried, and what it said last.
        cause: String,
    },
    /// This statement is not taken here; the message says what to use instead.
    #[error("{reason}")]
    Refused {
        /// What was refused, and what to use instead.
        reason: String,
    },
    /// The schema is not the one that the statement was [written for](super::Write::under_schema). Write it anew.
    #[error("the schema has changed since the statement was written")]
    SchemaChanged,
    /// The caller's token was cancelled.
    #[error("the statement was cancelled")]
    Cancelled,
    /// The caller's deadline passed.
    #[error("the statement did not finish before its deadline")]
    TimedOut,
    /// The transaction that the statement belonged to was rolled back by the database. Begin again.
    #[error("the transaction was rolled back by the database; begin again")]
    TransactionLost,
    /// The connection or the disk failed while committing: the write may or may not be there. Look before trying again.
    #[error("the commit failed half-way, its outcome is unknown: {cause}")]
    OutcomeUnknown {
        /// What the database said.
        cause: String,
    },
    /// The writer was drained or closed. Nothing more is taken.
    #[error("the writer is closed")]
    Closed,
    /// A defect in Forebay: the batch's code panicked. Its transaction was rolled back.
    #[error("internal error while writing: {cause}")]
    Internal {
        /// The panic's message.
        cause: String,
    },
}

/// What the database said about one statement.
///
/// ```
/// use forebay::write::{StatementError, StatementErrorKind};
///
/// let error = StatementError::new(StatementErrorKind::Unique, 2067, "UNIQUE constraint failed: users.name");
/// assert_eq!(error.to_string(), "UNIQUE constraint failed: users.name");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct StatementError {
    /// What kind of failure, in words that hold for every database.
    pub kind: StatementErrorKind,
    /// The database's own code: SQLite's extended result code, MariaDB's error number; 0 where it has no numbers (PostgreSQL).
    pub code: i32,
    /// The five characters that SQL calls its state, where the database tells them (PostgreSQL, MariaDB).
    pub sqlstate: Option<Box<str>>,
    /// The name of the constraint that was violated, where the database tells it (PostgreSQL).
    pub constraint: Option<Box<str>>,
    /// The database's own message.
    pub message: String,
    /// Where in the statement's text, in bytes from its start, if the database said so.
    pub offset: Option<usize>,
}

impl StatementError {
    /// An error of that kind.
    pub fn new(kind: StatementErrorKind, code: i32, message: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            sqlstate: None,
            constraint: None,
            message: message.into(),
            offset: None,
        }
    }
}

/// Kinds of failure of one statement.
///
/// ```
/// use forebay::write::StatementErrorKind as Kind;
///
/// fn is_the_callers_fault(kind: Kind) -> bool {
///     matches!(kind, Kind::Unique | Kind::NotNull | Kind::ForeignKey | Kind::Check | Kind::Type)
/// }
/// assert!(is_the_callers_fault(Kind::Unique) && !is_the_callers_fault(Kind::Full));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatementErrorKind {
    /// A UNIQUE or PRIMARY KEY constraint.
    Unique,
    /// A NOT NULL constraint.
    NotNull,
    /// A foreign key.
    ForeignKey,
    /// A CHECK constraint.
    Check,
    /// Another constraint, or an error that a trigger raised.
    OtherConstraint,
    /// A value that its column's type does not take.
    Type,
    /// The statement's text: syntax, a table, column or function that is not there.
    Text,
    /// The number of parameters given is not the number the statement has.
    ParameterCount,
    /// The database cannot be written to.
    ReadOnly,
    /// No space is left: on the disk, or under the database's own limit.
    Full,
    /// A value, row or statement is larger than a limit.
    TooLarge,
    /// Memory ran out.
    OutOfMemory,
    /// The disk failed.
    Io,
    /// The file is damaged, or is no database.
    Corrupt,
    /// Another transaction held a lock for longer than is waited for one.
    LockTimeout,
    /// It ran for longer than the database lets statements run.
    Timeout,
    /// The user that the connection was made for may not do this.
    Permission,
    /// A concurrent transaction was there first; the transaction can be tried again.
    Conflict,
    /// Anything else; the message says what.
    Other,
}
