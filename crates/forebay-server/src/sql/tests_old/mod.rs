//! What the front end promises, tried on a real SQLite.

mod corpus;
mod describing;
mod scripts;
mod spellings;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::{Environment, SqlError, Statement, parse_script, register};

/// What the tests' session answers.
pub(super) fn environment<'a>() -> Environment<'a> {
    Environment {
        user: "o'brien",
        database: "forebay",
        pid: 4711,
        version: "PostgreSQL 15.0 (Forebay)",
        settings: &|name| (name == "server_version").then(|| "15.0".to_owned()),
    }
}

/// An empty database with the functions.
pub(super) fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    register(&connection).unwrap();
    connection
}

/// The statements of a script.
pub(super) fn parse(script: &str) -> Result<Vec<Statement>, SqlError> {
    parse_script(script, &environment())
}

/// The only statement of a script.
pub(super) fn one(script: &str) -> Statement {
    let mut statements = parse(script).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!(statements.len(), 1, "{script}");
    statements.pop().unwrap()
}

/// Runs every statement of a script, 7 for each parameter; the rows of the last one.
pub(super) fn run(connection: &Connection, script: &str) -> Result<Vec<Vec<Value>>, String> {
    let mut rows = Vec::new();
    for statement in parse(script).map_err(|error| error.to_string())? {
        rows = query(connection, &statement.sql).map_err(|error| error.to_string())?;
    }
    Ok(rows)
}

fn query(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut prepared = connection.prepare(sql)?;
    let width = prepared.column_count();
    for index in 1..=prepared.parameter_count() {
        prepared.raw_bind_parameter(index, 7)?;
    }
    let mut rows = prepared.raw_query();
    let mut result = Vec::new();
    while let Some(row) = rows.next()? {
        result.push(
            (0..width)
                .map(|column| row.get(column))
                .collect::<rusqlite::Result<_>>()?,
        );
    }
    Ok(result)
}

/// The one value of the one row.
pub(super) fn value(connection: &Connection, script: &str) -> Value {
    let rows = run(connection, script).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{script}: {rows:?}");
    rows[0][0].clone()
}

/// Text, as a value.
pub(super) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
