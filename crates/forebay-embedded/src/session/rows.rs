//! Rows on their way from SQLite to the wire: encoded on the thread that reads them, in pieces of bounded size.

use std::ops::ControlFlow;

use bytes::BytesMut;
use forebay_sqlite::connection::{Progress, Session as Connection};
use forebay_write::{CancelToken, Value, WriteError};
use rusqlite::types::ValueRef;

use super::prepared::Encoding;
use crate::values::encode_column;
use forebay_pg_wire::backend::Row;
use forebay_pg_wire::error::WireError;

/// A piece is handed over when it is this large: big enough to be cheap, small enough that nobody gathers a result.
const PIECE_BYTES: usize = 64 * 1024;

/// Some rows, encoded.
pub(super) struct Piece {
    pub(super) bytes: BytesMut,
    pub(super) rows: u64,
    /// Done, paused because it is large enough or the row limit is met, or failed behind the rows that are in it.
    pub(super) end: Result<Progress, Failed>,
}

/// Why no more rows come.
pub(super) enum Failed {
    /// The statement failed.
    Statement(WriteError),
    /// A value cannot be sent, or the result is not what was described.
    Encoding(WireError),
}

/// Reads the next piece from an open cursor, of at most `rows_max` rows.
pub(super) fn fetch(
    connection: &mut Connection,
    cursor: u64,
    token: &CancelToken,
    encoding: &Encoding,
    rows_max: u64,
) -> Piece {
    let mut bytes = BytesMut::with_capacity(1024);
    let mut rows = 0;
    let mut refused = None;
    let fetched = connection.fetch(cursor, Some(token), &mut |row| {
        match encode(row, encoding, &mut bytes) {
            Ok(()) => rows += 1,
            Err(error) => {
                refused = Some(error);
                return ControlFlow::Break(());
            }
        }
        if rows >= rows_max || bytes.len() >= PIECE_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let end = match (refused, fetched) {
        (Some(error), _) => {
            connection.close_cursor(cursor);
            Err(Failed::Encoding(error))
        }
        (None, Ok(progress)) => Ok(progress),
        (None, Err(error)) => Err(Failed::Statement(error)),
    };
    Piece { bytes, rows, end }
}

/// Whether a cursor that has begun to read does so under this version of the schema: else it is closed, and the answer is
/// [`WriteError::SchemaChanged`]. Versions only grow: one that holds behind the first step held in it.
pub(super) fn under_schema(connection: &mut Connection, cursor: u64, version: Option<i64>) -> Result<(), WriteError> {
    let Some(version) = version else { return Ok(()) };
    if connection.schema_version()? == version {
        return Ok(());
    }
    connection.close_cursor(cursor);
    Err(WriteError::SchemaChanged)
}

/// Rows that were read.
pub(super) struct Gathered {
    /// None if they were only counted.
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) count: u64,
    pub(super) bytes: usize,
    /// Whether these are the last ones.
    pub(super) is_end: bool,
}

/// Reads up to `rows_max` rows of an open cursor; nothing if they take more than `bytes_max`, and the cursor is closed then. Without
/// `bytes_max` they are only counted.
pub(super) fn gather(
    connection: &mut Connection,
    cursor: u64,
    token: &CancelToken,
    rows_max: u64,
    bytes_max: Option<usize>,
) -> Result<Option<Gathered>, WriteError> {
    let (mut rows, mut count, mut bytes) = (Vec::new(), 0, 0);
    let is_too_much = |bytes| bytes_max.is_some_and(|bytes_max| bytes > bytes_max);
    let progress = connection.fetch(cursor, Some(token), &mut |row| {
        count += 1;
        if bytes_max.is_some() {
            let columns = AsRef::<rusqlite::Statement<'_>>::as_ref(row).column_count();
            let values: Vec<Value> = (0..columns)
                .map(|index| row.get_ref(index).map_or(Value::Null, owned))
                .collect();
            bytes += values
                .iter()
                .map(|value| size_of::<Value>() + heap_bytes(value))
                .sum::<usize>();
            rows.push(values);
        }
        if is_too_much(bytes) || count >= rows_max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if is_too_much(bytes) {
        connection.close_cursor(cursor);
        return Ok(None);
    }
    Ok(Some(Gathered {
        rows,
        count,
        bytes,
        is_end: progress == Progress::Done,
    }))
}

fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        Value::Unsigned(_) | Value::Timestamp(_) | Value::Array(_) => unreachable!("SQLite has none in its rows"),
    }
}

fn encode(row: &rusqlite::Row<'_>, encoding: &Encoding, out: &mut BytesMut) -> Result<(), WireError> {
    let column_count = AsRef::<rusqlite::Statement<'_>>::as_ref(row).column_count();
    if column_count != encoding.columns.len() {
        return Err(changed());
    }
    let mut encoded = Row::begin(out, encoding.columns.len())?;
    for (index, (kind, format)) in encoding.columns.iter().enumerate() {
        let value = row.get_ref(index).map_err(|error| crate::errors::sqlite(&error).0)?;
        encoded
            .column(|out| encode_column(kind, *format, value, &encoding.environment, out))
            .map_err(|error| {
                let name = AsRef::<rusqlite::Statement<'_>>::as_ref(row)
                    .column_name(index)
                    .unwrap_or("?");
                error.with_column(name).with_detail(format!("In column \"{name}\"."))
            })?;
    }
    encoded.finish()
}

/// Encodes a row that is there already.
pub(super) fn encode_gathered(values: &[Value], encoding: &Encoding, out: &mut BytesMut) -> Result<(), WireError> {
    if values.len() != encoding.columns.len() {
        return Err(changed());
    }
    let mut encoded = Row::begin(out, encoding.columns.len())?;
    for ((kind, format), value) in encoding.columns.iter().zip(values) {
        encoded.column(|out| encode_column(kind, *format, reference(value), &encoding.environment, out))?;
    }
    encoded.finish()
}

pub(super) fn reference(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Integer(integer) => ValueRef::Integer(*integer),
        Value::Real(real) => ValueRef::Real(*real),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
        Value::Unsigned(_) | Value::Timestamp(_) | Value::Array(_) => unreachable!("SQLite has none in its rows"),
    }
}

pub(super) fn changed() -> WireError {
    WireError::unsupported("cached plan must not change result type").with_hint("Prepare the statement anew.")
}

pub(super) fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
