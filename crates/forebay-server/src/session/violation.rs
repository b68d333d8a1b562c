//! What a violated constraint is told as: its name as the table was declared, and the key that was there already.
//!
//! Contract: what is told is true, and what cannot be told for certain is left out: an expression that may give another value the
//! second time is not evaluated again.

use forebay::write::sqlite::Session as Connection;
use forebay::write::{CancelToken, Parameters, StatementErrorKind, Value, WriteError};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Session;
use super::prepared::Prepared;
use crate::sql::{self, Definition, Plan};
use crate::wire::error::WireError;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Adds to the error of a statement what the schema and the statement's own values tell.
    pub(super) async fn explained(
        &mut self,
        answer: WireError,
        violation: Violation,
        prepared: &Prepared,
        parameters: Parameters,
        token: &CancelToken,
    ) -> WireError {
        let Some(plan) = prepared.shape.plan.clone() else {
            return answer;
        };
        let Violation { table, columns } = violation;
        let Ok(source) = self.source(token).await else {
            return answer;
        };
        let told = self.told();
        let job = move |connection: &mut Connection| {
            let connection = connection.connection();
            let name = constraint_name(connection, &table, &columns);
            let key = key_of(connection, &plan, &columns, &parameters, &told);
            (table, columns, name, key)
        };
        let Ok((table, columns, name, key)) = self.on_source(&source, token, job).await else {
            return answer;
        };
        let mut answer = answer.with_table(sql::shown(&table));
        answer.column = None;
        answer.detail = None;
        if let Some(name) = name {
            answer.message = format!("duplicate key value violates unique constraint \"{name}\"");
            answer = answer.with_constraint(name);
        }
        match key {
            Some(values) => answer.with_detail(format!(
                "Key ({})=({}) already exists.",
                columns.join(", "),
                values.join(", ")
            )),
            None => answer,
        }
    }
}

/// A UNIQUE constraint that a statement has violated.
pub(super) struct Violation {
    table: String,
    columns: Vec<String>,
}

impl Violation {
    /// From SQLite's words: `UNIQUE constraint failed: t.a, t.b`.
    pub(super) fn of(error: &WriteError) -> Option<Self> {
        let WriteError::Statement(error) = error else {
            return None;
        };
        if error.kind != StatementErrorKind::Unique {
            return None;
        }
        let (_, what) = error.message.split_once("constraint failed: ")?;
        let mut table = None;
        let mut columns = Vec::new();
        for column in what.split(", ") {
            let (owner, column) = column.split_once('.')?;
            table = Some(owner.to_owned());
            columns.push(column.to_owned());
        }
        Some(Self { table: table?, columns })
    }
}

fn index_columns(connection: &rusqlite::Connection, index: &str) -> Option<Vec<String>> {
    let mut statement = connection
        .prepare_cached("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")
        .ok()?;
    let columns: rusqlite::Result<Vec<Option<String>>> = statement.query_map([index], |row| row.get(0)).ok()?.collect();
    columns.ok()?.into_iter().collect()
}

/// The name of the key of these columns: as declared, or that of the index.
fn constraint_name(connection: &rusqlite::Connection, table: &str, columns: &[String]) -> Option<String> {
    let text: String = connection
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE name = ?1 AND type = 'table'",
            [table],
            |row| row.get(0),
        )
        .ok()?;
    let definition = Definition::read(&text)?;
    if let Some(key) = definition
        .primary_key
        .iter()
        .chain(&definition.uniques)
        .find(|key| key.columns == columns)
    {
        return Some(key.name.clone());
    }
    let mut statement = connection
        .prepare_cached("SELECT name FROM pragma_index_list(?1) WHERE \"unique\" = 1")
        .ok()?;
    let names: Vec<String> = statement
        .query_map([table], |row| row.get(0))
        .ok()?
        .collect::<rusqlite::Result<_>>()
        .ok()?;
    names
        .into_iter()
        .find(|name| index_columns(connection, name).as_deref() == Some(columns))
        .map(|name| sql::shown(&name).to_owned())
}

/// The texts of the values that the statement wanted to store in these columns.
fn key_of(
    connection: &rusqlite::Connection,
    plan: &Plan,
    columns: &[String],
    parameters: &Parameters,
    told: &str,
) -> Option<Vec<String>> {
    let number = plan.parameters.len() + 1;
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        let inserted = plan.inserted.iter().find(|inserted| inserted.column == *column)?;
        if inserted.sql.contains("forebay_nextval")
            || inserted.sql.contains("forebay_random")
            || inserted.sql.contains("forebay_uuid")
            || inserted.sql.contains("forebay_clock")
        {
            return None;
        }
        parts.push(format!(
            "\"forebay_write\"({}, '{}', ?{number})",
            inserted.sql, inserted.label
        ));
    }
    let mut statement = connection.prepare(&format!("SELECT {}", parts.join(", "))).ok()?;
    for index in 1..=statement.parameter_count() {
        // A number that no value asks for has no name.
        let Some(name) = statement.parameter_name(index) else {
            continue;
        };
        let place: usize = name.get(1..)?.parse().ok()?;
        let value = if place == number {
            rusqlite::types::Value::Text(told.to_owned())
        } else {
            match parameters.values().get(place - 1)? {
                Value::Null => rusqlite::types::Value::Null,
                Value::Integer(integer) => rusqlite::types::Value::Integer(*integer),
                Value::Real(real) => rusqlite::types::Value::Real(*real),
                Value::Text(text) => rusqlite::types::Value::Text(text.clone()),
                Value::Blob(bytes) => rusqlite::types::Value::Blob(bytes.clone()),
                Value::Array(_) => return None,
            }
        };
        statement.raw_bind_parameter(index, value).ok()?;
    }
    let count = columns.len();
    let mut rows = statement.raw_query();
    let row = rows.next().ok()??;
    (0..count)
        .map(|column| {
            row.get::<_, Option<String>>(column)
                .ok()
                .map(|text| text.unwrap_or_else(|| "null".to_owned()))
        })
        .collect()
}
