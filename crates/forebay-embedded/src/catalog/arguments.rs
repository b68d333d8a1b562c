//! Arguments and results of the catalog's functions, between SQLite's values and Rust's.
//!
//! Promises: what is no value of the type asked for is PostgreSQL's error; no text goes beyond what one value of the catalog may hold. Knows
//! no function.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::error::RuntimeError;

pub(super) const PURE: FunctionFlags = FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC);

/// A strict function of its arguments alone.
pub(super) fn pure(connection: &Connection, name: &str, function: fn(&Context<'_>) -> Result<Value>) -> Result<()> {
    connection.create_scalar_function(name, -1, PURE, move |context| {
        if (0..context.len()).any(|index| matches!(context.get_raw(index), ValueRef::Null)) {
            return Ok(Value::Null);
        }
        function(context)
    })
}

pub(super) fn string(context: &Context<'_>, index: usize) -> Result<String> {
    Ok(match context.get_raw(index) {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Null => String::new(),
    })
}

pub(super) fn integer(context: &Context<'_>, index: usize) -> Result<i64> {
    match context.get_raw(index) {
        ValueRef::Integer(number) => Ok(number),
        _ => {
            let text = string(context, index)?;
            text.trim()
                .parse()
                .map_err(|_| RuntimeError::raise("22P02", format!("invalid input syntax for type integer: \"{text}\"")))
        }
    }
}

pub(super) fn oid(context: &Context<'_>, index: usize) -> Result<u32> {
    let number = integer(context, index)?;
    // PostgreSQL casts an int4 to oid bit by bit.
    let wrapped = i32::try_from(number).map(i32::cast_unsigned);
    wrapped
        .or_else(|_| u32::try_from(number))
        .map_err(|_| RuntimeError::raise("22003", format!("OID out of range: {number}")))
}

pub(super) fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, |value| Value::Integer(i64::from(value)))
}

pub(super) fn number(value: Option<u32>) -> Value {
    value.map_or(Value::Null, |value| Value::Integer(i64::from(value)))
}

pub(super) fn text(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::Text)
}

/// Refuses a text beyond what one catalog value may hold.
pub(super) fn bounded(text: String) -> Result<String> {
    const BYTES_MAX: usize = 8 << 20;
    if text.len() > BYTES_MAX {
        return Err(RuntimeError::raise(
            "54000",
            format!(
                "a catalog value of {} bytes is over the limit of {BYTES_MAX}",
                text.len()
            ),
        ));
    }
    Ok(text)
}

pub(super) fn bounded_value(text: String) -> Result<Value> {
    bounded(text).map(Value::Text)
}
