//! What a statement can do, read from the program SQLite compiled it to, before it runs.
//!
//! SQLite decides per statement how an error is undone, and says so only in its bytecode: a program that may stop with
//! ON CONFLICT FAIL keeps what it had changed, so it needs a savepoint; VACUUM must run alone; a program that counts
//! foreign keys may leave one open that alone it would have been refused for. Errors that SQLite does not foresee are
//! not in it: those are learned when they happen. `EXPLAIN` lists the program with those of
//! its triggers, so nothing is guessed from the text. The listing is of the SQLite that is built in; the tests below hold
//! it to what is assumed here.

use std::cell::Cell;

use rusqlite::Connection;

/// What the executor must know of a statement. Valid for one state of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// May run inside a transaction that other statements share.
    pub(super) shares: bool,
    /// May fail half-way and keep what it did: only a savepoint undoes it. Set from the program where that says so, and
    /// when the statement was seen to fail in a way that SQLite does not undo.
    pub(super) fails_half_way: Cell<bool>,
    /// Adds rows whose id `last_insert_rowid` tells.
    pub(super) inserts: bool,
    /// Changes the schema, and so other statements' programs.
    pub(super) changes_schema: bool,
    /// Counts foreign keys that are not satisfied yet.
    pub(super) counts_foreign_keys: bool,
    /// For each of SQLite's parameter indices, the number of the parameter it stands for, from 1.
    pub(super) parameters: Box<[usize]>,
}

/// `OE_Fail` of SQLite's `ON CONFLICT` clause: stop, and keep what was changed.
const ON_ERROR_FAIL: i64 = 3;
/// `OPFLAG_LASTROWID`: this insertion sets the last rowid.
const SETS_LAST_ROWID: i64 = 0x20;
/// `PAGER_JOURNALMODE_QUERY`: the mode is asked for, not set.
const JOURNAL_MODE_QUERY: i64 = -1;

impl Program {
    /// Reads the program of a statement that has just been prepared on `connection`.
    pub(super) fn read(
        connection: &Connection,
        sql: &str,
        statement: &rusqlite::Statement<'_>,
    ) -> rusqlite::Result<Self> {
        let mut program = Self {
            shares: true,
            fails_half_way: Cell::new(false),
            inserts: false,
            changes_schema: false,
            counts_foreign_keys: false,
            parameters: parameters(statement)?,
        };
        if statement.is_explain() != 0 {
            return Ok(program);
        }
        let mut listing = connection.prepare(&format!("EXPLAIN {sql}"))?;
        let mut rows = listing.raw_query();
        while let Some(row) = rows.next()? {
            let opcode: String = row.get(1)?;
            let (p1, p2, p3, p5): (i64, i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?, row.get(6)?);
            match opcode.as_str() {
                "Halt" | "HaltIfNull" if p1 != 0 && p2 == ON_ERROR_FAIL => program.fails_half_way.set(true),
                "Insert" if p5 & SETS_LAST_ROWID != 0 => program.inserts = true,
                "VUpdate" => program.inserts = true,
                "SetCookie" | "ParseSchema" | "DropTable" | "DropIndex" | "DropTrigger" => {
                    program.changes_schema = true;
                }
                "FkCounter" => program.counts_foreign_keys = true,
                // With this operand it only asks: CREATE … IF NOT EXISTS of what is there does, to count as writing.
                "JournalMode" if p3 == JOURNAL_MODE_QUERY => {}
                "Vacuum" | "JournalMode" | "Checkpoint" | "AutoCommit" | "Savepoint" | "IncrVacuum" => {
                    program.shares = false;
                }
                _ => {}
            }
        }
        Ok(program)
    }

    /// How many parameters the statement takes: the highest number.
    pub(super) fn parameter_count(&self) -> usize {
        self.parameters.iter().copied().max().unwrap_or(0)
    }
}

/// SQLite numbers `$2` and `$1` in the order they stand in; their names say which they are.
fn parameters(statement: &rusqlite::Statement<'_>) -> rusqlite::Result<Box<[usize]>> {
    (1..=statement.parameter_count())
        .map(|index| match statement.parameter_name(index) {
            None => Ok(index),
            Some(name) => name[1..]
                .parse()
                .ok()
                .filter(|number| *number > 0 && (name.starts_with('?') || name.starts_with('$')))
                .ok_or_else(|| rusqlite::Error::InvalidParameterName(name.to_owned())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(schema: &str, sql: &str) -> Program {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(schema).unwrap();
        let statement = connection.prepare(sql).unwrap();
        Program::read(&connection, sql, &statement).unwrap()
    }

    const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER UNIQUE NOT NULL CHECK (v > 0))";

    #[test]
    fn a_plain_insert_shares_and_needs_no_savepoint() {
        let program = program(TABLE, "INSERT INTO t (v) VALUES (?1)");
        assert!(program.shares && program.inserts);
        assert!(!program.fails_half_way.get() && !program.changes_schema && !program.counts_foreign_keys);
    }

    #[test]
    fn what_exists_already_shares() {
        assert!(program(TABLE, "CREATE TABLE IF NOT EXISTS t (x)").shares);
        assert!(!program(TABLE, "PRAGMA journal_mode = DELETE").shares);
    }

    #[test]
    fn or_fail_is_seen_in_the_statement_the_table_and_the_trigger() {
        assert!(
            program(TABLE, "INSERT OR FAIL INTO t (v) VALUES (1), (2)")
                .fails_half_way
                .get()
        );
        assert!(program(TABLE, "UPDATE OR FAIL t SET v = v + 1").fails_half_way.get());
        assert!(
            !program(TABLE, "INSERT OR ROLLBACK INTO t (v) VALUES (1), (2)")
                .fails_half_way
                .get()
        );
        let table = "CREATE TABLE t (v INTEGER UNIQUE ON CONFLICT FAIL)";
        assert!(program(table, "INSERT INTO t SELECT 1").fails_half_way.get());
        let not_null = "CREATE TABLE t (v INTEGER NOT NULL ON CONFLICT FAIL)";
        assert!(program(not_null, "INSERT INTO t VALUES (?1)").fails_half_way.get());
        let trigger = "CREATE TABLE t (v); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT RAISE(FAIL, 'no') WHERE NEW.v = 2; END";
        assert!(program(trigger, "INSERT INTO t VALUES (1), (2)").fails_half_way.get());
        let inner = "CREATE TABLE t (v); CREATE TABLE u (v UNIQUE); CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT OR FAIL INTO u VALUES (NEW.v); END";
        assert!(program(inner, "INSERT INTO t VALUES (1), (1)").fails_half_way.get());
    }

    #[test]
    fn what_cannot_share_is_seen() {
        for sql in [
            "VACUUM",
            "PRAGMA journal_mode = WAL",
            "PRAGMA wal_checkpoint",
            "BEGIN",
            "COMMIT",
            "SAVEPOINT a",
        ] {
            assert!(!program(TABLE, sql).shares, "{sql}");
        }
    }

    #[test]
    fn schema_changes_are_seen() {
        for sql in [
            "CREATE TABLE u (v)",
            "CREATE INDEX i ON t (v)",
            "DROP TABLE t",
            "ALTER TABLE t ADD COLUMN w",
            "CREATE VIEW w AS SELECT 1",
            "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
        ] {
            assert!(program(TABLE, sql).changes_schema, "{sql}");
        }
    }

    #[test]
    fn deferred_foreign_keys_are_seen() {
        let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
        assert!(program(schema, "INSERT INTO c VALUES (1)").counts_foreign_keys);
        assert!(program(schema, "DELETE FROM p").counts_foreign_keys);
    }

    #[test]
    fn parameters_keep_their_numbers() {
        assert_eq!(*program(TABLE, "SELECT $2, $1, $2").parameters, [2, 1]);
        assert_eq!(*program(TABLE, "SELECT ?, ?").parameters, [1, 2]);
        let gap = program(TABLE, "SELECT ?3, ?1");
        assert_eq!((gap.parameter_count(), gap.parameters[2]), (3, 3));
    }

    #[test]
    fn named_parameters_are_refused() {
        let connection = Connection::open_in_memory().unwrap();
        for sql in ["SELECT :a", "SELECT @a", "SELECT $a", "SELECT $0"] {
            let statement = connection.prepare(sql).unwrap();
            assert!(Program::read(&connection, sql, &statement).is_err(), "{sql}");
        }
    }
}
