//! Why reading keys from a database failed.
//!
//! Promises: an error says whether it is the database's or the row's, and what to fix. Knows no database.

use std::future::Future;
use std::pin::Pin;

use crate::WriteError;

/// Why a key was not read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The database refused the query or failed on it; the error says what to do.
    #[error(transparent)]
    Database(#[from] WriteError),
    /// A row does not fit the type that it is read into. Mend the type or the query's columns.
    #[error("a row cannot be read: {cause}")]
    Row {
        /// What does not fit, and in which column if that is known.
        cause: String,
    },
}

/// What a fetch over a database answers with: an outcome a key, or an error that all of them share.
pub type Answered<V> = Result<Vec<Result<Option<V>, ReadError>>, ReadError>;

/// A running fetch over a database.
pub type Read<V> = Pin<Box<dyn Future<Output = Answered<V>> + Send>>;
