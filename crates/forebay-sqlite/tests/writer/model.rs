//! The Writer against a model: the same statements executed one at a time on a plain connection. Every outcome and every
//! table must be the same, however the statements were batched.

use std::time::Duration;

use forebay_sqlite::Synchronous;
use forebay_sqlite::connection::statement_error;
use forebay_write::{CancelToken, Outcome, StatementError, Value, Write, WriteError, Writer};
use futures_util::future::join_all;
use proptest::prelude::*;
use rusqlite::Connection;

use crate::{Database, rows_of};

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER UNIQUE, v INTEGER CHECK (v < 90), note TEXT NOT NULL DEFAULT '');
    CREATE TABLE s (n INTEGER) STRICT;
    CREATE TABLE f (k INTEGER UNIQUE ON CONFLICT FAIL);
    CREATE TABLE r (k INTEGER UNIQUE ON CONFLICT ROLLBACK);
    CREATE TABLE p (id INTEGER PRIMARY KEY);
    CREATE TABLE c (p INTEGER REFERENCES p ON DELETE CASCADE, d INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE w (k INTEGER PRIMARY KEY, n) WITHOUT ROWID;
    CREATE TABLE log (at INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, n INTEGER);
    CREATE TRIGGER logs AFTER INSERT ON t BEGIN INSERT INTO log (what, n) VALUES ('t', NEW.k); END;
    CREATE TRIGGER guards AFTER INSERT ON f WHEN NEW.k % 7 = 3 BEGIN SELECT RAISE(FAIL, 'three'); END;
    CREATE TRIGGER rolls AFTER UPDATE ON w WHEN NEW.n = 5 BEGIN SELECT RAISE(ROLLBACK, 'five'); END;
";
const TABLES: [&str; 8] = ["t", "s", "f", "r", "p", "c", "w", "log"];

/// Statements with two parameters, small numbers both; each can succeed and most can fail.
const STATEMENTS: [&str; 34] = [
    "INSERT INTO t (k, v) VALUES (?1, ?2)",
    "INSERT INTO t (k, v) VALUES (?1, ?2), (?2, ?1), (?1 + ?2, 1)",
    "INSERT OR IGNORE INTO t (k, v) VALUES (?1, ?2), (?2, 3)",
    "INSERT OR FAIL INTO t (k, v) VALUES (?1, ?2), (?2, ?1)",
    "INSERT OR ROLLBACK INTO t (k, v) VALUES (?1, ?2), (?2, ?1)",
    "REPLACE INTO t (k, v) VALUES (?1, ?2) RETURNING id, k",
    "INSERT INTO t (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING id, v",
    "INSERT INTO t (id, k) VALUES (?1, ?2)",
    "INSERT INTO t (k, note) VALUES (?1, nullif(?2, 4))",
    "UPDATE t SET v = v + ?1 WHERE k > ?2",
    "UPDATE t SET k = k + ?1 - 3 WHERE k < ?2",
    "UPDATE OR FAIL t SET k = k + 1 WHERE k >= ?1 AND k <= ?2 + 5",
    "DELETE FROM t WHERE k = ?1 OR v = ?2 RETURNING k, v",
    "DELETE FROM t WHERE k + ?1 + ?2 > 20",
    "INSERT INTO s VALUES (?1), (CASE ?2 WHEN 2 THEN 'x' ELSE 1 END)",
    "UPDATE s SET n = CASE n WHEN ?1 THEN 'x' ELSE ?2 END",
    "DELETE FROM s WHERE n IN (?1, ?2)",
    "INSERT INTO s SELECT sum(v) FROM (SELECT ?1 AS g, 1 AS v UNION ALL SELECT ?2, 9223372036854775807) GROUP BY g",
    "INSERT INTO f VALUES (?1), (?2)",
    "DELETE FROM f WHERE k >= ?1 - ?2",
    "INSERT INTO r VALUES (?1), (?2)",
    "DELETE FROM r WHERE k < ?1 + ?2",
    "INSERT INTO p VALUES (?1), (?2)",
    "DELETE FROM p WHERE id = ?1 OR id = ?2",
    "INSERT INTO c VALUES (?1, NULL), (NULL, ?2)",
    "INSERT INTO c (d) VALUES (?2) RETURNING d, ?1 AS one",
    "DELETE FROM c WHERE p = ?1 OR d = ?2",
    "INSERT INTO w VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET n = excluded.n",
    "UPDATE w SET n = ?1 WHERE k <= ?2",
    "SELECT count(*), sum(k) + ?1, ?2 FROM t",
    "WITH few AS (SELECT k FROM t WHERE k < ?1) UPDATE t SET v = ?2 WHERE k IN (SELECT k FROM few)",
    "DELETE FROM log WHERE ?1 = ?2",
    "INSERT INTO absent VALUES (?1, ?2)",
    "INSERT INTO t (k) VALUES (?1)",
];

/// Statements without parameters, that change the schema or cannot share.
const RARE: [&str; 6] = [
    "CREATE TABLE IF NOT EXISTS absent (a, b UNIQUE)",
    "DROP TABLE absent",
    "VACUUM",
    "PRAGMA user_version",
    "CREATE TRIGGER IF NOT EXISTS extra AFTER INSERT ON s WHEN NEW.n = 6 BEGIN SELECT RAISE(FAIL, 'six'); END",
    "DROP TRIGGER IF EXISTS extra",
];

#[derive(Debug, Clone)]
struct Step {
    sql: &'static str,
    parameters: Vec<i64>,
    /// Cancelled before anything of it could run.
    cancelled: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let statement = prop_oneof![
        20 => (0..STATEMENTS.len(), 0..12_i64, 0..12_i64)
            .prop_map(|(statement, one, two)| (STATEMENTS[statement], vec![one, two])),
        1 => (0..RARE.len()).prop_map(|statement| (RARE[statement], Vec::new())),
    ];
    (statement, proptest::bool::weighted(0.05)).prop_map(|((sql, parameters), cancelled)| Step {
        sql,
        parameters,
        cancelled,
    })
}

/// What the statement does alone, with a plain connection in autocommit. ON CONFLICT FAIL is the one place where the
/// Writer promises more than SQLite: an error has no effect. A transaction of its own and ROLLBACK say that.
fn alone(connection: &Connection, step: &Step) -> Result<Outcome, StatementError> {
    let transaction = step.sql != "VACUUM";
    if transaction {
        connection.execute_batch("BEGIN").unwrap();
    }
    let ran = execute(connection, step);
    let ended = match (&ran, connection.is_autocommit()) {
        (_, true) => Ok(()),
        (Ok(_), false) => connection.execute_batch("COMMIT"),
        (Err(_), false) => connection.execute_batch("ROLLBACK"),
    };
    match ended {
        Ok(()) => ran,
        Err(error) => {
            connection.execute_batch("ROLLBACK").unwrap();
            Err(statement_error(&error))
        }
    }
}

fn execute(connection: &Connection, step: &Step) -> Result<Outcome, StatementError> {
    const NONE: i64 = i64::MIN;
    // SAFETY: the handle is that of an open connection on this thread; the call only sets an integer in it.
    unsafe { rusqlite::ffi::sqlite3_set_last_insert_rowid(connection.handle(), NONE) };
    let before = connection.total_changes();
    let run = || -> rusqlite::Result<(Vec<String>, Vec<Vec<Value>>)> {
        let mut statement = connection.prepare(step.sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(rusqlite::params_from_iter(&step.parameters))?;
        let mut gathered = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns.len()).map(|column| {
                Ok(match row.get::<_, rusqlite::types::Value>(column)? {
                    rusqlite::types::Value::Integer(integer) => Value::Integer(integer),
                    rusqlite::types::Value::Null => Value::Null,
                    rusqlite::types::Value::Text(text) => Value::Text(text),
                    other => panic!("no statement returns {other:?}"),
                })
            });
            gathered.push(values.collect::<rusqlite::Result<_>>()?);
        }
        Ok((columns, gathered))
    };
    let (columns, rows) = run().map_err(|error| statement_error(&error))?;
    let mut outcome = Outcome::default();
    if connection.total_changes() != before {
        outcome.rows_affected = connection.changes();
    }
    let id = connection.last_insert_rowid();
    outcome.last_insert_id = (id != NONE && outcome.rows_affected > 0).then_some(id);
    (outcome.columns, outcome.rows) = (columns, rows);
    Ok(outcome)
}

fn write(step: &Step) -> Write {
    let token = CancelToken::new();
    if step.cancelled {
        token.cancel();
    }
    let parameters: Vec<Value> = step.parameters.iter().copied().map(Value::Integer).collect();
    Write::new(step.sql, parameters).cancel(token)
}

fn compare(steps: &[Step], max_items: usize) -> Result<(), TestCaseError> {
    let (database, model) = (Database::new(SCHEMA), Connection::open_in_memory().unwrap());
    model.execute_batch(SCHEMA).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // Durability is shown elsewhere; here it would only cost time.
    let sqlite = database
        .builder(|_| Ok(()))
        .synchronous(Synchronous::Off)
        .open()
        .unwrap();
    let answers = runtime.block_on(async {
        // Full batches go at once, the last by the drain.
        let writer = Writer::builder()
            .max_items(max_items)
            .max_wait(Duration::from_secs(600))
            .build(sqlite);
        let calls = join_all(steps.iter().map(|step| writer.submit(write(step))));
        tokio::join!(calls, writer.drain()).0
    });
    for (position, (step, answer)) in steps.iter().zip(&answers).enumerate() {
        if step.cancelled {
            prop_assert_eq!(answer, &Err(WriteError::Cancelled), "statement {}", position);
            continue;
        }
        let parameter_count = step.sql.contains("(k) VALUES (?1)");
        match (alone(&model, step), answer) {
            (Ok(expected), Ok(outcome)) => prop_assert_eq!(outcome, &expected, "statement {}: {:?}", position, step),
            (Err(_), Err(WriteError::Statement(_))) if parameter_count => {}
            (Err(expected), Err(WriteError::Statement(error))) => {
                prop_assert_eq!(
                    (error.code, &error.message),
                    (expected.code, &expected.message),
                    "statement {}: {:?}",
                    position,
                    step
                );
            }
            (expected, answer) => {
                let reason = format!("statement {position}: {step:?}: {answer:?}, and alone {expected:?}");
                return Err(TestCaseError::fail(reason));
            }
        }
    }
    let written = database.plain();
    for table in TABLES {
        let sql = format!("SELECT * FROM {table} ORDER BY rowid");
        let sql = if table == "w" {
            "SELECT * FROM w".to_owned()
        } else {
            sql
        };
        prop_assert_eq!(rows_of(&written, &sql), rows_of(&model, &sql), "table {}", table);
    }
    let schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY name";
    prop_assert_eq!(rows_of(&written, schema), rows_of(&model, schema));
    prop_assert_eq!(rows_of(&written, "PRAGMA foreign_key_check"), [""; 0]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_outcome_and_every_table_is_as_if_each_had_been_alone(
        steps in proptest::collection::vec(step(), 1..120),
        max_items in 1..60_usize,
    ) {
        compare(&steps, max_items)?;
    }
}
