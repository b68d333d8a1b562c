//! Why a database could not be opened, with the file's name.

use std::path::{Path, PathBuf};

use super::error::statement_error;
use super::thread::StartError;
use forebay_write::{StatementError, StatementErrorKind, WriteError};

/// Why a database could not be opened.
///
/// ```
/// use forebay::sqlite::Sqlite;
///
/// let Err(error) = Sqlite::open("/nowhere/app.db") else { unreachable!() };
/// assert!(error.to_string().starts_with("cannot open /nowhere/app.db: "));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot open {}: {cause}", path.display())]
pub struct OpenError {
    path: PathBuf,
    cause: StatementError,
}

impl OpenError {
    pub(super) fn new(path: &Path, error: StartError) -> Self {
        let cause = match error {
            StartError::Sqlite(error) => statement_error(&error),
            other => StatementError::new(StatementErrorKind::Other, 0, other.to_string()),
        };
        Self {
            path: path.to_owned(),
            cause,
        }
    }

    /// The file is none that many connections can share.
    pub(super) fn not_a_file(path: PathBuf) -> Self {
        Self {
            path,
            cause: StatementError::new(
                StatementErrorKind::Other,
                0,
                "a database in memory cannot be shared between connections; give a file",
            ),
        }
    }

    /// The database's own answer.
    pub fn cause(&self) -> &StatementError {
        &self.cause
    }
}

impl From<OpenError> for WriteError {
    fn from(error: OpenError) -> Self {
        let message = error.to_string();
        let mut cause = error.cause;
        cause.message = message;
        Self::Statement(cause)
    }
}
