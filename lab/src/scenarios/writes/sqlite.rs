//! The cases on SQLite, what they are held against, and the table that all write to.
//!
//! Every turn has a database file of its own, in WAL mode with synchronous=FULL, so that each commit ends with an fdatasync.
//! Afterwards a connection of the lab's own reads the table back.

use std::cell::OnceCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::cases::{
    BY_HAND, MANY, MANY_BAD, MANY_COUNT, MANY_UNIQUE, ONE, SHARED, at_least, callers, many, many_bad, now_ms,
    two_workers, with_bad_rows,
};
use super::forebay::{Forebay, Id, Statement};
use super::sqlite_systems::{INSERT, OneConnection, by_hand, writer};
use crate::callers::{Callers, TAKEN, Told};
use crate::failure::Failure;
use crate::goal::{Goal, Key};
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial, Yardsticks};

pub(super) const ABOUT: &str = "Rows into SQLite, WAL, synchronous=FULL, a new file each turn. Callers are tokio tasks on 2 worker \
    threads; each inserts\na row, waits for its own durable outcome (rows affected, its id), and inserts the next. Every row is \
    found again afterwards\nunder the id that its caller was told.\n\
    limit: one connection, a prepared statement, 1,000 rows a transaction, nobody to answer. \
    savepoints: the same with a savepoint a row.\none by one: one connection, a commit a row. \
    by hand: an mpsc channel to a thread that commits what waits, up to 1,000 rows, a oneshot a caller.\n\
    large table: the same beside 50,000,000 rows that are there (quick: 500,000), in one file for all turns, of which each deletes its own.";

const BULK: &str = "1,000 rows a transaction";
const ONE_BY_ONE: &str = "one by one";
const SAVEPOINTS: &str = "savepoints";
const BULK_LARGE: &str = "1,000 rows a transaction, large table";
const ONE_LARGE: &str = "1 caller, large table";
const MANY_LARGE: &str = "10,000 callers, large table";

/// What a large table has, and what it has where it must not take long to make.
const LARGE_ROWS: i64 = 50_000_000;
const QUICK_ROWS: i64 = 500_000;
const TINY_ROWS: i64 = 10_000;

/// So many callers of Forebay on a plain table.
const COUNTS: [(&str, u32); 5] = [
    (ONE, 1),
    ("10 callers", 10),
    ("100 callers", 100),
    ("1,000 callers", 1_000),
    (MANY, MANY_COUNT),
];

/// Everything that takes part.
pub(super) fn trials(is_quick: bool) -> Vec<Box<dyn Trial>> {
    let trial_on = |table, system, case, kind| -> Box<dyn Trial> {
        Box::new(SqliteTrial {
            system,
            case,
            table,
            kind,
        })
    };
    let trial = |system, case, unique, kind| trial_on(On::ANew { unique }, system, case, kind);
    let mut trials = vec![
        trial(LIMIT, BULK, false, Kind::Limit { savepoints: false }),
        trial(SAVEPOINTS, BULK, false, Kind::Limit { savepoints: true }),
        trial(ONE_BY_ONE, ONE, false, Kind::OneByOne),
    ];
    for (case, count) in COUNTS {
        trials.push(trial(FOREBAY, case, false, Kind::Forebay(callers(count, true))));
    }
    let (many, many_bad) = (many(true), many_bad(true));
    trials.push(trial(BY_HAND, MANY, false, Kind::ByHand(many)));
    for (case, callers) in [(MANY_UNIQUE, many), (MANY_BAD, many_bad)] {
        trials.push(trial(BY_HAND, case, true, Kind::ByHand(callers)));
        trials.push(trial(FOREBAY, case, true, Kind::Forebay(callers)));
    }
    let large = Rc::new(Large::of(is_quick));
    for (system, case, kind) in [
        (LIMIT, BULK_LARGE, Kind::Limit { savepoints: false }),
        (FOREBAY, ONE_LARGE, Kind::Forebay(callers(1, true))),
        (BY_HAND, MANY_LARGE, Kind::ByHand(many)),
        (FOREBAY, MANY_LARGE, Kind::Forebay(many)),
    ] {
        trials.push(trial_on(On::Large(Rc::clone(&large)), system, case, kind));
    }
    trials
}

pub(super) fn yardsticks() -> Yardsticks {
    Yardsticks {
        limit: Some(Key::new(LIMIT, BULK)),
        forebay: Some(Key::new(FOREBAY, MANY)),
    }
}

pub(super) fn goals() -> Vec<Goal> {
    let one_by_one = vec![Key::new(ONE_BY_ONE, ONE)];
    vec![
        at_least("10,000 callers ÷ limit", MANY, vec![Key::new(LIMIT, BULK)], 0.6),
        at_least("10,000 callers ÷ one by one", MANY, one_by_one, 100.0),
        with_bad_rows(),
        at_least(
            "10,000 callers ÷ limit, large table",
            MANY_LARGE,
            vec![Key::new(LIMIT, BULK_LARGE)],
            0.6,
        ),
        at_least(
            "10,000 callers, large table ÷ new table",
            MANY_LARGE,
            vec![Key::new(FOREBAY, MANY)],
            0.9,
        ),
    ]
}

/// Which table a trial writes to.
enum On {
    /// One of its own; whether its values must differ.
    ANew {
        unique: bool,
    },
    Large(Rc<Large>),
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
    table: On,
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
        match &self.table {
            On::ANew { unique } => self.write_to(&Table::create(stage.folder, *unique)?, stage),
            On::Large(large) => {
                let table = large.table(stage)?;
                let readings = self.write_to(table, stage)?;
                table.forget_new_rows()?;
                Ok(readings)
            }
        }
    }
}

impl SqliteTrial {
    fn write_to(&self, table: &Table, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let duration = stage.effort.duration;
        let created_at = now_ms();
        match self.kind {
            Kind::Limit { savepoints } => {
                let mut connection = OneConnection::open(table.path())?;
                let written = connection.transactions(duration, created_at, savepoints)?;
                written.verify(table.sum()?)
            }
            Kind::OneByOne => {
                let mut connection = OneConnection::open(table.path())?;
                let written = connection.one_by_one(duration, created_at)?;
                written.verify(table.sum()?)
            }
            Kind::ByHand(callers) => {
                let runtime = two_workers()?;
                let by_hand = by_hand(table.path())?;
                let told = callers.run(&runtime, &by_hand, created_at, duration)?;
                drop(by_hand);
                table.verify(&told)
            }
            Kind::Forebay(callers) => {
                let runtime = two_workers()?;
                let forebay = {
                    let _inside = runtime.enter();
                    Forebay {
                        writer: writer(table.path())?,
                        statement: Statement {
                            sql: INSERT,
                            id: Id::Last,
                        },
                        by_caller: false,
                    }
                };
                let told = callers.run(&runtime, &forebay, created_at, duration)?;
                let rows_a_commit = forebay.rows_a_commit();
                drop(forebay);
                let mut readings = table.verify(&told)?;
                readings.push(Reading::new(SHARED, "rows", rows_a_commit));
                Ok(readings)
            }
        }
    }
}

/// A table that has many rows, made by the first turn that wants it, and gone with the last.
struct Large {
    rows: i64,
    table: OnceCell<Table>,
}

impl Large {
    fn of(is_quick: bool) -> Self {
        Self {
            rows: if is_quick { QUICK_ROWS } else { LARGE_ROWS },
            table: OnceCell::new(),
        }
    }

    fn table(&self, stage: &Stage<'_>) -> Result<&Table, Failure> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let rows = if stage.effort.meaningful { self.rows } else { TINY_ROWS };
        let table = Table::with_rows(stage.folder, rows)?;
        Ok(self.table.get_or_init(|| table))
    }
}

/// A new database with the table, in a folder of its own that goes with it.
struct Table {
    folder: TempDir,
    /// So many rows are of nobody here, with the ids from 1 on.
    rows_before: i64,
}

impl Table {
    fn create(folder: &Path, unique: bool) -> Result<Self, Failure> {
        let folder = tempfile::tempdir_in(folder).map_err(Failure::system("make a folder"))?;
        let table = Self { folder, rows_before: 0 };
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

    /// One that has rows, which are on the disk.
    fn with_rows(folder: &Path, rows: i64) -> Result<Self, Failure> {
        let mut table = Self::create(folder, false)?;
        let connection = Connection::open(table.path())?;
        // Without a journal it takes a third of the time, and no more space than the table.
        for (pragma, value) in [("journal_mode", "OFF"), ("synchronous", "OFF")] {
            connection.pragma_update(None, pragma, value)?;
        }
        connection.execute(
            "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1) \
             INSERT INTO entry (value, created_at) SELECT n * 7919 % 1000003, n FROM number",
            (rows,),
        )?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        drop(connection);
        File::open(table.path())
            .and_then(|file| file.sync_all())
            .map_err(Failure::system("sync the table"))?;
        table.rows_before = rows;
        Ok(table)
    }

    /// Deletes what a turn has written.
    fn forget_new_rows(&self) -> Result<(), Failure> {
        let connection = Connection::open(self.path())?;
        connection.execute("DELETE FROM entry WHERE id > ?1", (self.rows_before,))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        Ok(())
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
        let mut select = connection.prepare("SELECT id, value, created_at FROM entry WHERE id > ?1")?;
        let rows = select.query_map((self.rows_before,), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        told.verify(rows.map(|row| row.map_err(Failure::from)))?;
        Ok(told.readings())
    }

    fn sum(&self) -> Result<(i64, i64), Failure> {
        let read = "SELECT count(*), coalesce(sum(value), 0) FROM entry WHERE id > ?1";
        Ok(self
            .open()?
            .query_row(read, (self.rows_before,), |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::writes::cases::check_names;

    #[test]
    fn count_and_sum_are_those_of_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let table = Table::create(folder.path(), false).unwrap();
        let connection = Connection::open(table.path()).unwrap();
        assert_eq!(table.sum().unwrap(), (0, 0));
        for value in 0..3 {
            connection.execute(INSERT, (value, 7)).unwrap();
        }
        assert_eq!(table.sum().unwrap(), (3, 3));
    }

    #[test]
    fn what_was_there_before_is_not_counted_and_what_was_written_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let table = Table::with_rows(folder.path(), 1_000).unwrap();
        let all = || -> (i64, i64) {
            let read = "SELECT count(*), max(id) FROM entry";
            let connection = table.open().unwrap();
            connection
                .query_row(read, (), |row| Ok((row.get(0)?, row.get(1)?)))
                .unwrap()
        };
        assert_eq!((all(), table.sum().unwrap()), ((1_000, 1_000), (0, 0)));
        Connection::open(table.path()).unwrap().execute(INSERT, (5, 7)).unwrap();
        assert_eq!((all(), table.sum().unwrap()), ((1_001, 1_001), (1, 5)));
        table.forget_new_rows().unwrap();
        assert_eq!((all(), table.sum().unwrap()), ((1_000, 1_000), (0, 0)));
    }

    #[test]
    fn every_yardstick_and_goal_names_something_that_is_measured() {
        check_names(&trials(false), &goals(), &yardsticks());
    }
}
