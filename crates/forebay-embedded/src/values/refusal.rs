//! The errors that refuse a value, in PostgreSQL's words where it has words for them.
//!
//! Promises: a message quotes no more than the start of a value. Knows no conversion.

use forebay_pg_values::ValueError;
use postgres_types::Type;
use rusqlite::types::ValueRef;

use forebay_pg_wire::error::{WireError, sqlstate};

/// What [`forebay_pg_values`] says of a text, which may be huge.
pub(super) fn refused(mut error: ValueError, text: &str) -> WireError {
    let start = excerpt(text);
    if start.len() < text.len() {
        error.message = error.message.replace(text, start);
        error.detail = error.detail.map(|detail| detail.replace(text, start));
    }
    error.into()
}

pub(super) fn invalid_binary(kind: &Type, what: &str) -> WireError {
    let message = format!("incorrect binary data format for type {}: {what}", display_name(kind));
    WireError::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
}

pub(super) fn unknown_format(format: i16) -> WireError {
    WireError::new(
        sqlstate::INVALID_PARAMETER_VALUE,
        format!("unsupported format code: {format}"),
    )
}

pub(super) fn no_binary_format(kind: &Type) -> WireError {
    WireError::unsupported(format!(
        "the binary format of type {} (OID {}) is not supported",
        display_name(kind),
        kind.oid()
    ))
    .with_hint("Use the text format, or cast to text.")
}

/// 22P02: what is stored is no value of the type that the column declares.
pub(super) fn unfit(kind: &Type, value: ValueRef<'_>) -> WireError {
    let stored = match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(integer) => format!("integer {integer}"),
        ValueRef::Real(real) => format!("real {real:?}"),
        ValueRef::Text(text) => {
            // Cut before it is decoded: a stored text may be huge.
            let start = String::from_utf8_lossy(&text[..text.len().min(4 * EXCERPT_CHARACTERS)]);
            format!("text \"{}\"", excerpt(&start))
        }
        ValueRef::Blob(bytes) => format!("blob of {} bytes", bytes.len()),
    };
    let message = format!(
        "column value does not fit its declared type {}: {stored}",
        display_name(kind)
    );
    WireError::new(sqlstate::INVALID_TEXT_REPRESENTATION, message).with_hint(
        "SQLite keeps any value in any column. Cast the column to text, CAST(column AS TEXT), to see what is stored.",
    )
}

const EXCERPT_CHARACTERS: usize = 100;

/// The start of a text, for a message.
fn excerpt(text: &str) -> &str {
    text.char_indices()
        .nth(EXCERPT_CHARACTERS)
        .map_or(text, |(end, _)| &text[..end])
}

/// A type's name as PostgreSQL's messages have it.
fn display_name(kind: &Type) -> &str {
    match *kind {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::CHAR => "\"char\"",
        _ => kind.name(),
    }
}

pub(super) fn not_a_number() -> WireError {
    WireError::new(
        sqlstate::FEATURE_NOT_SUPPORTED,
        "NaN of a floating-point type is not supported: SQLite would make it NULL",
    )
}
