//! SQLite's own connections, for who does more on them than queries and writes: registers functions, looks at the schema, keeps
//! cursors open, reads rows by hand.
//!
//! Promises: what a connection is given to do here runs on the connection's own thread. All that names a type of rusqlite is here, so
//! that nobody else depends on its version; the facade does not show it.

use rusqlite::Connection;

pub use crate::error::statement_error;
pub use crate::load::{all_rows_with, one_row_with};
pub use crate::readers::Reader;
pub use crate::session::beside::{is_interrupted, meet_row};
pub use crate::session::{Progress, SchemaEdit, Session};

use crate::{Sqlite, SqliteBuilder, Transaction};
use forebay_write::{CancelToken, WriteError};

/// Calls `prepare` once on every new connection of the database that is to be opened, to register functions and collations.
pub fn prepare(
    builder: SqliteBuilder,
    prepare: impl Fn(&mut Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
) -> SqliteBuilder {
    builder.prepare_connections(prepare)
}

/// Takes a reading connection; waits if all are in use.
///
/// # Errors
/// [`WriteError::Closed`], or SQLite's if a new connection cannot be opened.
pub async fn reader(database: &Sqlite) -> Result<Reader, WriteError> {
    database.reader().await
}

/// Does `job` on the writing connection, inside this transaction: cursors, looking at the schema.
///
/// # Errors
/// [`WriteError::TransactionLost`] if the database has rolled back before; [`WriteError::Closed`]; or
/// [`WriteError::Internal`] if the job panicked, and then the transaction is rolled back.
///
/// # Cancel safety
/// Dropped before it completes, `token` is cancelled, so that what runs is interrupted.
pub async fn run<R: Send + 'static>(
    transaction: &Transaction,
    token: &CancelToken,
    job: impl FnOnce(&mut Session) -> R + Send + 'static,
) -> Result<R, WriteError> {
    transaction.run(token, job).await
}
