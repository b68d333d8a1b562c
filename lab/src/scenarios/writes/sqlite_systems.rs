//! How each system writes rows to SQLite: a connection used plainly, the batching one writes by hand, and Forebay.
//!
//! All set WAL and synchronous=FULL, prepare their statement once, and answer only after the commit.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay::sqlite::Sqlite;
use forebay::write::Writer;
use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::mpsc;

use super::by_hand::{ByHand, ROWS_A_TRANSACTION, Waiting};
use super::cases::Written;
use crate::callers::Refused;
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

/// What every system executes for a row.
pub(super) const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES (?1, ?2)";

/// One connection that nobody waits for: the machine's own cost of the rows.
pub(super) struct OneConnection {
    connection: Connection,
}

impl OneConnection {
    pub(super) fn open(path: PathBuf) -> Result<Self, Failure> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self { connection })
    }

    /// 1,000 rows a transaction.
    pub(super) fn transactions(
        &mut self,
        duration: Duration,
        created_at: i64,
        savepoints: bool,
    ) -> Result<Written, Failure> {
        let prepare = |sql| self.connection.prepare(sql);
        let (mut begin, mut commit) = (prepare("BEGIN IMMEDIATE")?, prepare("COMMIT")?);
        let mut insert = prepare(INSERT)?;
        let (stopwatch, until) = (Stopwatch::start(), Instant::now() + duration);
        let mut rows = 0;
        if savepoints {
            let (mut save, mut release) = (prepare("SAVEPOINT a_row")?, prepare("RELEASE a_row")?);
            while Instant::now() < until {
                begin.execute(())?;
                for _ in 0..ROWS_A_TRANSACTION {
                    save.execute(())?;
                    insert.execute((rows, created_at))?;
                    release.execute(())?;
                    rows += 1;
                }
                commit.execute(())?;
            }
        } else {
            while Instant::now() < until {
                begin.execute(())?;
                for _ in 0..ROWS_A_TRANSACTION {
                    insert.execute((rows, created_at))?;
                    rows += 1;
                }
                commit.execute(())?;
            }
        }
        Ok(Written {
            rows,
            took: stopwatch.stop(),
        })
    }

    /// A commit a row.
    pub(super) fn one_by_one(&mut self, duration: Duration, created_at: i64) -> Result<Written, Failure> {
        let mut insert = self.connection.prepare(INSERT)?;
        let (stopwatch, until) = (Stopwatch::start(), Instant::now() + duration);
        let mut rows = 0;
        while Instant::now() < until {
            insert.execute((rows, created_at))?;
            rows += 1;
        }
        Ok(Written {
            rows,
            took: stopwatch.stop(),
        })
    }
}

/// What one writes by hand: a thread that takes what waits, commits it, and answers each caller.
pub(super) fn by_hand(path: PathBuf) -> Result<ByHand, Failure> {
    let OneConnection { connection } = OneConnection::open(path)?;
    let (by_hand, waiting) = ByHand::new();
    let _: JoinHandle<()> = std::thread::Builder::new()
        .name("by-hand".to_owned())
        .spawn(move || {
            if let Err(error) = write_what_waits(&connection, waiting) {
                // Callers whose answers are dropped see it too.
                eprintln!("by hand: {error}");
            }
        })
        .map_err(Failure::system("start a thread"))?;
    Ok(by_hand)
}

fn write_what_waits(connection: &Connection, mut waiting: mpsc::Receiver<Waiting>) -> rusqlite::Result<()> {
    let (mut begin, mut commit) = (connection.prepare("BEGIN IMMEDIATE")?, connection.prepare("COMMIT")?);
    let mut insert = connection.prepare(INSERT)?;
    let mut batch = Vec::with_capacity(ROWS_A_TRANSACTION);
    let mut outcomes = Vec::with_capacity(ROWS_A_TRANSACTION);
    while waiting.blocking_recv_many(&mut batch, ROWS_A_TRANSACTION) > 0 {
        begin.execute(())?;
        for Waiting { row, .. } in &batch {
            // A row that breaks a constraint undoes only itself.
            outcomes.push(match insert.execute((row.value, row.created_at)) {
                Ok(1) => Ok(Some(connection.last_insert_rowid())),
                Ok(count) => Err(Refused::Otherwise(format!("{count} rows"))),
                Err(error) if is_unique(&error) => Err(Refused::NotUnique),
                Err(error) => Err(Refused::Otherwise(error.to_string())),
            });
        }
        commit.execute(())?;
        for (waiting, outcome) in batch.drain(..).zip(outcomes.drain(..)) {
            waiting.answer(outcome);
        }
    }
    Ok(())
}

fn is_unique(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(failure, _)
        if failure.code == ErrorCode::ConstraintViolation && failure.extended_code == ffi::SQLITE_CONSTRAINT_UNIQUE)
}

/// A writer with all limits at their defaults.
pub(super) fn writer(path: PathBuf) -> Result<Writer, Failure> {
    let sqlite = Sqlite::open(path).map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(Writer::new(sqlite))
}
