//! Values between SQLite's functions and PostgreSQL's, in their stored forms.
//!
//! Promises: a value that SQLite cannot hold (NaN) is an error, never another value.

use forebay_pg_values::{Datum, Environment, Owned, Type, ValueError};
use jiff::tz::TimeZone;
use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};

use super::error::raised;

/// An argument in its stored form.
pub(super) fn datum(value: ValueRef<'_>) -> rusqlite::Result<Datum<'_>> {
    Ok(match value {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(integer) => Datum::Integer(integer),
        ValueRef::Real(real) => Datum::Real(real),
        ValueRef::Text(bytes) => Datum::Text(
            std::str::from_utf8(bytes)
                .map_err(|_| raised(ValueError::new("22021", "invalid byte sequence for encoding \"UTF8\"")))?,
        ),
        ValueRef::Blob(bytes) => Datum::Blob(bytes),
    })
}

pub(super) fn value(owned: Owned) -> rusqlite::Result<Value> {
    Ok(match owned {
        Owned::Null => Value::Null,
        Owned::Integer(integer) => Value::Integer(integer),
        // SQLite would make it NULL.
        Owned::Real(real) if real.is_nan() => {
            return Err(raised(ValueError::unsupported("NaN of type double precision is")));
        }
        Owned::Real(real) => Value::Real(real),
        Owned::Text(text) => Value::Text(text),
        Owned::Blob(bytes) => Value::Blob(bytes),
    })
}

/// All arguments of a call.
pub(super) fn data<'a>(context: &'a Context<'_>, count: usize) -> rusqlite::Result<Vec<Datum<'a>>> {
    (0..count).map(|index| datum(context.get_raw(index))).collect()
}

pub(super) fn types(labels: &str) -> Vec<Type> {
    labels.split(',').filter_map(Type::from_name).collect()
}

pub(super) fn utc() -> &'static Environment {
    use std::sync::OnceLock;
    static UTC: OnceLock<Environment> = OnceLock::new();
    UTC.get_or_init(|| Environment::new(TimeZone::UTC, 0))
}

/// An argument that is a text, because the compiler has written one.
pub(super) fn text_at<'a>(context: &'a Context<'_>, index: usize) -> rusqlite::Result<&'a str> {
    match datum(context.get_raw(index))? {
        Datum::Text(text) => Ok(text),
        _ => Err(raised(ValueError::new(
            "XX000",
            "a compiled statement is not as it should be",
        ))),
    }
}

/// An argument that names a type.
pub(super) fn type_at(context: &Context<'_>, index: usize) -> rusqlite::Result<Type> {
    Type::from_name(text_at(context, index)?)
        .ok_or_else(|| raised(ValueError::new("XX000", "a compiled statement names no type")))
}
