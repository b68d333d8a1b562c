//! Why reading from a database failed, told apart by what the caller should do.
//!
//! Promises: an error says whether it is the database's or the row's, and what to fix. Knows no database.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::{StatementError, WriteError};

/// Why a query has no rows to show, or a key was not read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::ReadError;
///
/// let database = Sqlite::open(path)?;
/// let answer = database.query("SELECT 'Ada'", ()).await?;
/// assert!(matches!(answer.one::<u64>(), Err(ReadError::Row { .. })));
/// assert!(matches!(database.query("SELECT", ()).await, Err(ReadError::Statement(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The database refused the query or failed on it. Mend the query, its parameters, or what the message names.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// A row does not fit the type that it is read into. Mend the type or the query's columns.
    #[error("a row cannot be read: {cause}")]
    Row {
        /// What does not fit, and in which column if that is known.
        cause: String,
    },
    /// Another process held the database's lock for longer than the busy timeout. Try again later.
    #[error("the database is locked by another process (waited {} ms)", waited.as_millis())]
    Busy {
        /// How long was waited.
        waited: Duration,
    },
    /// The database could not be reached or does not take this user, or was lost, for as long as is tried. Try again later.
    #[error("the database cannot be used: {cause}")]
    Unavailable {
        /// What was tried, and what it said last.
        cause: String,
    },
    /// This statement is no query, or not one that is taken here; the message says what to use instead.
    #[error("{reason}")]
    Refused {
        /// What was refused, and what to use instead.
        reason: String,
    },
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// A defect in Forebay, or a function of the caller's that reads rows panicked.
    #[error("internal error while reading: {cause}")]
    Internal {
        /// The panic's message.
        cause: String,
    },
}

/// Databases are read by the same connections that write. What only a write can meet becomes [`ReadError::Internal`]: not for the
/// errors of writes of your own.
impl From<WriteError> for ReadError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Statement(error) => Self::Statement(error),
            WriteError::Busy { waited } => Self::Busy { waited },
            WriteError::Unavailable { cause } => Self::Unavailable { cause },
            WriteError::Refused { reason } => Self::Refused { reason },
            WriteError::Closed => Self::Closed,
            WriteError::Internal { cause } => Self::Internal { cause },
            // What only a write or a transaction can meet.
            WriteError::SchemaChanged
            | WriteError::Cancelled
            | WriteError::TimedOut
            | WriteError::TransactionLost
            | WriteError::OutcomeUnknown { .. } => Self::Internal {
                cause: error.to_string(),
            },
        }
    }
}

/// What a fetch over a database answers with: an outcome a key, or an error that all of them share.
pub type Answered<V> = Result<Vec<Result<Option<V>, ReadError>>, ReadError>;

/// A running fetch over a database.
pub type Read<V> = Pin<Box<dyn Future<Output = Answered<V>> + Send>>;
