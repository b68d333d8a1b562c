//! Values between the Writer's and SQLite's: parameters in, rows out.
//!
//! Promises: a value is bound and read as what it is; rows are bounded in bytes. Knows nothing of what statements do.

use std::ops::RangeInclusive;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Statement, ffi};

use crate::error::statement_error;
use crate::program::Program;
use forebay_write::moment::Utc;
use forebay_write::{Parameters, StatementError, StatementErrorKind, Value, WriteError};

/// Those that SQLite's own functions read, and whose texts are ordered as they are.
const YEARS: RangeInclusive<i64> = 1..=9999;

/// Gathers all rows; false if they take more than `bytes_max`.
pub(super) fn gather(
    statement: &mut Statement<'_>,
    bytes_max: usize,
    gathered: &mut Vec<Vec<Value>>,
) -> rusqlite::Result<bool> {
    let mut bytes = 0;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        // Known only once it has been stepped: the schema may have changed since it was compiled.
        let column_count = row.as_ref().column_count();
        let mut values = Vec::with_capacity(column_count);
        for column in 0..column_count {
            let value = value(row.get_ref(column)?)?;
            bytes += size_of::<Value>() + value.heap_bytes();
            values.push(value);
        }
        if bytes > bytes_max {
            return Ok(false);
        }
        gathered.push(values);
    }
    Ok(true)
}

fn value(value: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(error) => return Err(rusqlite::Error::Utf8Error(0, error)),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

/// Binds the parameters by their numbers.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    program: &Program,
    parameters: &Parameters,
) -> Result<(), WriteError> {
    if parameters.len() != program.parameter_count() {
        return Err(WriteError::Statement(StatementError::new(
            StatementErrorKind::ParameterCount,
            ffi::SQLITE_RANGE,
            format!(
                "the statement takes {} parameters, {} were given",
                program.parameter_count(),
                parameters.len()
            ),
        )));
    }
    for (index, number) in program.parameters.iter().enumerate() {
        let misfit = |is_what: &str| {
            Err(WriteError::Statement(StatementError::new(
                StatementErrorKind::Type,
                ffi::SQLITE_MISMATCH,
                format!("parameter {number} is {is_what}"),
            )))
        };
        let value = ToSqlOutput::Borrowed(match &parameters.values()[number - 1] {
            Value::Null => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(*integer),
            Value::Unsigned(integer) => match i64::try_from(*integer) {
                Ok(integer) => ValueRef::Integer(integer),
                Err(_) => {
                    return misfit(&format!(
                        "{integer}, and SQLite has no integers above {}: give it as text or bytes",
                        i64::MAX
                    ));
                }
            },
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
            Value::Timestamp(moment) => {
                let utc = Utc::of(*moment);
                if !YEARS.contains(&utc.year) {
                    return misfit(&format!("a moment of the year {}, and SQLite has {YEARS:?}", utc.year));
                }
                statement
                    .raw_bind_parameter(index + 1, utc.to_string())
                    .map_err(|error| WriteError::Statement(statement_error(&error)))?;
                continue;
            }
            Value::Array(_) => return misfit("a list, and SQLite has no arrays: give it as JSON text"),
        });
        statement
            .raw_bind_parameter(index + 1, value)
            .map_err(|error| WriteError::Statement(statement_error(&error)))?;
    }
    Ok(())
}
