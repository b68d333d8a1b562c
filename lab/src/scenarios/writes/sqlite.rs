//! The cases on SQLite, what they are held against, and the table that all write to.
//!
//! Every turn has a database file of its own, in WAL mode with synchronous=FULL, so that each commit ends with an fdatasync.
//! Afterwards a connection of the lab's own reads the table back.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::sqlite_systems::{ByHand, OneConnection, forebay};
use crate::callers::{Callers, TAKEN, Told};
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key, Wanted};
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial, Yardsticks};
use crate::stopwatch::{THROUGHPUT, Took};

pub(super) const ABOUT: &str = "Rows into SQLite, WAL, synchronous=FULL, a new file each turn. Callers are tokio tasks on 2 worker \
    threads; each inserts\na row, waits for its own durable outcome (rows affected, its id), and inserts the next. Every row is \
    found again afterwards\nunder the id that its caller was told.\n\
    limit: one connection, a prepared statement, 1,000 rows a transaction, nobody to answer. \
    savepoints: the same with a savepoint a row.\none by one: one connection, a commit a row. \
    by hand: an mpsc channel to a thread that commits what waits, up to 1,000 rows, a oneshot a caller.";

/// What every system executes for a row.
pub(super) const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES (?1, ?2)";

const BULK: &str = "1,000 rows a transaction";
const MANY: &str = "10,000 callers";
const MANY_UNIQUE: &str = "10,000 callers, unique column";
const MANY_BAD: &str = "10,000 callers, unique column, 1 % bad";
const ONE_BY_ONE: &str = "one by one";
const BY_HAND: &str = "by hand";
const SAVEPOINTS: &str = "savepoints";
const ONE: &str = "1 caller";

/// Everything that takes part.
pub(super) fn trials() -> Vec<Box<dyn Trial>> {
    let trial = |system, case, unique, kind| -> Box<dyn Trial> {
        Box::new(SqliteTrial {
            system,
            case,
            unique,
            kind,
        })
    };
    let callers = |count| Kind::Forebay(Callers { count, bad_rows: false });
    let many = Callers {
        count: 10_000,
        bad_rows: false,
    };
    let many_bad = Callers { bad_rows: true, ..many };
    vec![
        trial(LIMIT, BULK, false, Kind::Limit { savepoints: false }),
        trial(SAVEPOINTS, BULK, false, Kind::Limit { savepoints: true }),
        trial(ONE_BY_ONE, ONE, false, Kind::OneByOne),
        trial(FOREBAY, ONE, false, callers(1)),
        trial(FOREBAY, "10 callers", false, callers(10)),
        trial(FOREBAY, "100 callers", false, callers(100)),
        trial(FOREBAY, "1,000 callers", false, callers(1_000)),
        trial(BY_HAND, MANY, false, Kind::ByHand(many)),
        trial(FOREBAY, MANY, false, Kind::Forebay(many)),
        trial(BY_HAND, MANY_UNIQUE, true, Kind::ByHand(many)),
        trial(FOREBAY, MANY_UNIQUE, true, Kind::Forebay(many)),
        trial(BY_HAND, MANY_BAD, true, Kind::ByHand(many_bad)),
        trial(FOREBAY, MANY_BAD, true, Kind::Forebay(many_bad)),
    ]
}

pub(super) fn yardsticks() -> Yardsticks {
    Yardsticks {
        limit: Some(Key::new(LIMIT, BULK)),
        forebay: Some(Key::new(FOREBAY, MANY)),
    }
}

pub(super) fn goals() -> Vec<Goal> {
    let goal = |text: &str, ours, theirs, ratio_min| Goal {
        text: text.to_owned(),
        metric: THROUGHPUT,
        ours,
        beside: Beside::Ratio(vec![theirs]),
        wanted: Wanted::AtLeast(ratio_min),
    };
    let forebay = || Key::new(FOREBAY, MANY);
    vec![
        goal("10,000 callers ÷ limit", forebay(), Key::new(LIMIT, BULK), 0.6),
        goal(
            "10,000 callers ÷ one by one",
            forebay(),
            Key::new(ONE_BY_ONE, ONE),
            100.0,
        ),
        goal(
            "1 % bad rows ÷ the same table without",
            Key::new(FOREBAY, MANY_BAD),
            Key::new(FOREBAY, MANY_UNIQUE),
            0.5,
        ),
    ]
}

/// How a trial writes.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Limit { savepoints: bool },
    OneByOne,
    ByHand(Callers),
    Forebay(Callers),
}

struct SqliteTrial {
    system: &'static str,
    case: &'static str,
    /// Whether the table's values must differ.
    unique: bool,
    kind: Kind,
}

impl Trial for SqliteTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let table = Table::create(stage.folder, self.unique)?;
        let duration = stage.effort.duration;
        let created_at = now_ms();
        match self.kind {
            Kind::Limit { savepoints } => {
                let mut connection = OneConnection::open(table.path())?;
                let written = connection.transactions(duration, created_at, savepoints)?;
                table.verify_sum(written)
            }
            Kind::OneByOne => {
                let mut connection = OneConnection::open(table.path())?;
                let written = connection.one_by_one(duration, created_at)?;
                table.verify_sum(written)
            }
            Kind::ByHand(callers) => {
                let runtime = two_workers()?;
                let by_hand = ByHand::start(table.path())?;
                let told = callers.run(&runtime, &by_hand, created_at, duration)?;
                drop(by_hand);
                table.verify(&told)
            }
            Kind::Forebay(callers) => {
                let runtime = two_workers()?;
                let writer = {
                    let _inside = runtime.enter();
                    forebay(table.path())?
                };
                let told = callers.run(&runtime, &writer, created_at, duration)?;
                let stats = writer.stats();
                drop(writer);
                let mut readings = table.verify(&told)?;
                let rows_a_commit = stats.calls as f64 / stats.batches as f64;
                readings.push(Reading::new("shared by a commit", "rows", rows_a_commit));
                Ok(readings)
            }
        }
    }
}

fn two_workers() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::system("start a runtime"))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).expect("before the year 292,000,000")
}

/// What a system without callers has written, of values 0, 1, 2, …
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) rows: u32,
    pub(super) took: Took,
}

/// A new database with the table, in a folder of its own that goes with it.
struct Table {
    folder: TempDir,
}

impl Table {
    fn create(folder: &Path, unique: bool) -> Result<Self, Failure> {
        let folder = tempfile::tempdir_in(folder).map_err(Failure::system("make a folder"))?;
        let table = Self { folder };
        let connection = Connection::open(table.path())?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let unique = if unique { " UNIQUE" } else { "" };
        connection.execute_batch(&format!(
            "CREATE TABLE entry (id INTEGER PRIMARY KEY, value INT{unique}, created_at BIGINT)"
        ))?;
        if !unique.is_empty() {
            connection.execute(INSERT, (TAKEN, 0))?;
        }
        Ok(table)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lab.db")
    }

    /// To read what is there, as a stranger would.
    fn open(&self) -> Result<Connection, Failure> {
        let connection = Connection::open_with_flags(self.path(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
        if mode != "wal" {
            return Err(Failure::Wrong(format!("the database is in {mode} mode, not in WAL")));
        }
        Ok(connection)
    }

    fn verify(&self, told: &Told) -> Result<Vec<Reading>, Failure> {
        let connection = self.open()?;
        let mut select = connection.prepare("SELECT id, value, created_at FROM entry")?;
        let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        told.verify(rows.map(|row| row.map_err(Failure::from)))?;
        Ok(told.readings())
    }

    fn verify_sum(&self, written: Written) -> Result<Vec<Reading>, Failure> {
        let read = "SELECT count(*), coalesce(sum(value), 0), coalesce(max(id), 0) FROM entry";
        let found: (i64, i64, i64) = self
            .open()?
            .query_row(read, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let rows = i64::from(written.rows);
        let expected = (rows, rows * (rows - 1) / 2, rows);
        if found != expected {
            return Err(Failure::Wrong(format!(
                "count, sum and highest id are {found:?} where {expected:?} were acknowledged"
            )));
        }
        let mut readings = vec![written.took.throughput(written.rows)];
        readings.extend(written.took.processor(written.rows));
        Ok(readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_or_not_told_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let table = Table::create(folder.path(), false).unwrap();
        let connection = Connection::open(table.path()).unwrap();
        for value in 0..3 {
            connection.execute(INSERT, (value, 7)).unwrap();
        }
        let took = Took {
            seconds: 1.5,
            processor_seconds: Some(3e-6),
        };
        let verified = |rows| table.verify_sum(Written { rows, took });
        let values: Vec<f64> = verified(3).unwrap().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [2.0, 1.0]);
        assert!(verified(2).is_err());
        assert!(verified(4).is_err());
        connection
            .execute("UPDATE entry SET value = 5 WHERE id = 2", ())
            .unwrap();
        assert!(verified(3).is_err());
    }

    #[test]
    fn every_yardstick_and_goal_names_something_that_is_measured() {
        let trials = trials();
        let goals = goals();
        let named: Vec<Key> = goals
            .iter()
            .flat_map(|goal| goal.keys().into_iter().cloned())
            .chain(yardsticks().limit)
            .chain(yardsticks().forebay)
            .collect();
        for key in named {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
    }
}
