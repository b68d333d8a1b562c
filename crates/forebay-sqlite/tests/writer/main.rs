//! The Writer over SQLite, held to its contract: an acknowledged write is there, an error has no effect, a statement that
//! fails fails alone, and every count, id and row is its caller's own.
//!
//! Each file is one part of the contract. Nothing here sleeps and hopes: batches are made by their size, and what runs is
//! known by what it has done.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod alone;
mod cancel;
mod closing;
mod durable;
mod failing_alone;
mod gone;
mod in_place;
mod kill;
mod many;
mod model;
mod opening;
mod outcomes;
mod reader;
mod schema;
mod taking_all_down;
mod transaction;
mod undone;

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forebay_sqlite::{ReadError, Sqlite, SqliteBuilder, connection};
use forebay_write::{Outcome, StatementErrorKind, Value, Write, WriteError, Writer};
use futures_util::future::join_all;
use rusqlite::Connection;

type Answer = Result<Outcome, WriteError>;

/// A database file of one test's own, and the commits that its writing connections have made.
struct Database {
    /// Removed with its files when it is dropped.
    _folder: tempfile::TempDir,
    path: PathBuf,
    commits: Arc<AtomicUsize>,
}

impl Database {
    /// A file with that schema.
    fn new(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let database = Self {
            _folder: folder,
            path,
            commits: Arc::default(),
        };
        let connection = Connection::open(&database.path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch(schema).unwrap();
        database
    }

    /// Forebay's handle, which counts commits.
    fn open(&self) -> Sqlite {
        self.open_with(|_| Ok(()))
    }

    /// As `open`, with connections prepared for the test.
    fn open_with(&self, prepare: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static) -> Sqlite {
        self.builder(prepare).open().unwrap()
    }

    fn builder(&self, prepare: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static) -> SqliteBuilder {
        let commits = Arc::clone(&self.commits);
        connection::prepare(Sqlite::builder(&self.path), move |connection| {
            count_commits(connection, Arc::clone(&commits));
            prepare(connection)
        })
    }

    /// Commits made since the last call.
    fn take_commits(&self) -> usize {
        self.commits.swap(0, Ordering::SeqCst)
    }

    /// Another connection, as another process would have.
    fn plain(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    /// What another connection reads now, a row a line, columns parted by `|`.
    fn read(&self, sql: &str) -> Vec<String> {
        rows_of(&self.plain(), sql)
    }
}

/// Adds each commit of a transaction that writes to `commits`. By SQLite's own interface: that of rusqlite wants the
/// connection for itself.
fn count_commits(connection: &Connection, commits: Arc<AtomicUsize>) {
    unsafe extern "C" fn committed(commits: *mut c_void) -> c_int {
        // SAFETY: the pointer is to a counter that was leaked below, and so lives as long as the process.
        let commits = unsafe { &*commits.cast::<AtomicUsize>() };
        commits.fetch_add(1, Ordering::SeqCst);
        0
    }
    let leaked = Arc::into_raw(commits).cast_mut().cast();
    // SAFETY: the handle is that of an open connection on this thread, and `committed` fits what it is given.
    unsafe { rusqlite::ffi::sqlite3_commit_hook(connection.handle(), Some(committed), leaked) };
}

fn rows_of(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map((), |row| {
        let texts: rusqlite::Result<Vec<String>> = (0..columns)
            .map(|column| {
                row.get::<_, rusqlite::types::Value>(column)
                    .map(|value| text_of(&value))
            })
            .collect();
        Ok(texts?.join("|"))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn text_of(value: &rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => text.clone(),
        Value::Blob(blob) => format!(
            "x'{}'",
            blob.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        ),
    }
}

/// Writes all of it as one batch, in this order.
async fn together(sqlite: &Sqlite, writes: Vec<Write>) -> Vec<Answer> {
    // The batch goes because it is full: the window is never waited for.
    let writer = Writer::builder()
        .max_items(writes.len())
        .max_wait(Duration::from_secs(600))
        .build(sqlite.clone());
    let answers = join_all(writes.into_iter().map(|write| writer.submit(write))).await;
    assert_eq!(writer.stats().batches, 1, "the statements were meant to share a batch");
    answers
}

/// As `together`, of statements without parameters.
async fn together_plainly(sqlite: &Sqlite, statements: &[&'static str]) -> Vec<Answer> {
    together(sqlite, statements.iter().map(|sql| Write::new(*sql, ())).collect()).await
}

/// What kind of statement error it was.
#[track_caller]
fn kind(answer: &Answer) -> StatementErrorKind {
    match answer {
        Err(WriteError::Statement(error)) => error.kind,
        other => panic!("not the statement's own error: {other:?}"),
    }
}

/// What kind of statement error a query had.
#[track_caller]
fn kind_of_read(answer: &Result<Outcome, ReadError>) -> StatementErrorKind {
    match answer {
        Err(ReadError::Statement(error)) => error.kind,
        other => panic!("not the statement's own error: {other:?}"),
    }
}

#[track_caller]
fn assert_ok(answer: &Answer) -> &Outcome {
    match answer {
        Ok(outcome) => outcome,
        Err(error) => panic!("not acknowledged: {error:?}"),
    }
}

/// Its drop panics.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

fn integers(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Integer).collect()
}
