//! Values between PostgreSQL's text and binary formats and their stored forms, by PostgreSQL type.
//!
//! Promises: a parameter is stored exactly or refused ([`decode_parameter`]); a stored value is sent exactly as its declared type or
//! refused ([`encode_column`]): SQLite keeps any value in any column, and a wrong value is worse than an error. What is sent is what
//! PostgreSQL would send for that value. Neither ever panics. int8, text and bool are written without an allocation.
//!
//! What a parameter is stored as is the table of [`forebay_pg_values`]; a column's value is taken in that form, and in these, which
//! only other writers of the file leave there:
//!
//! | type | column may also hold |
//! |---|---|
//! | bool | text `true` `false` `t` `f` |
//! | int2 int4 int8 oid | an integral Real; text of an integer |
//! | float4 float8 | an Integer that is exact as a float; text of a number |
//! | numeric | Integer, Real (its shortest digits), any text of a number |
//! | text varchar bpchar name unknown "char" | numbers, as SQLite prints them; a Blob that is UTF-8 |
//! | bytea | the bytes of a Text |
//! | date, time | text in SQLite's usual forms |
//! | timestamp, timestamptz | the same, also with `T`, `Z` or an offset (then taken to UTC, as SQLite does) |
//! | interval | any text of an interval |
//! | json jsonb | other JSON text, Integer, finite Real |
//! | uuid | other text of a UUID; a Blob of 16 bytes |
//! | arrays | an array literal, `{1,2}` |
//!
//! Types that [`forebay_pg_values`] does not know pass as text and have no binary format; those under which OIDs have names are numbers
//! in binary format and text otherwise. NULL is NULL of every type. A float4 column rounds a stored double to a float, as its declared
//! type says. A timestamptz is written as the clocks of the environment's zone show it.
//!
//! Does not know: statements, columns' names, which type a column has (the catalog does), type modifiers.

mod array;
mod binary;
mod form;
mod numeric;
mod refusal;
mod stored;
#[cfg(test)]
mod tests;
mod text;

use bytes::{BufMut, BytesMut};
use forebay_pg_values::{Datum, Environment, Kind, Owned, bytea, text_form};
use forebay_write::Value;
use postgres_types::Type;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use forebay_pg_wire::error::{WireError, sqlstate};
use form::{Form, form};
use refusal::{refused, unknown_format};
use stored::{
    integer_range, put_as_text, put_integer, stored_bool, stored_bytes, stored_float, stored_float4, stored_integer,
    stored_text, stored_uuid,
};
use text::{decode_scalar_text, valid_text};

/// The value to store for a parameter of type `kind`, sent in `format` (0 text, 1 binary); `None` is NULL.
///
/// # Errors
///
/// PostgreSQL's own for text or bytes that are no value of the type (22P02, 22P03, 22007, 22008, 22003, ...), 22021 (not UTF-8, or a
/// NUL in a text), 0A000 (a value that cannot be stored; types whose binary format is not known), 22003 (NaN of a float type), 22023
/// (no such format).
pub fn decode_parameter(
    kind: &Type,
    format: i16,
    bytes: Option<&[u8]>,
    environment: &Environment,
) -> Result<Value, WireError> {
    let Some(bytes) = bytes else {
        return Ok(Value::Null);
    };
    match format {
        0 => decode_text(form(kind), valid_text(bytes)?, environment),
        1 => match form(kind) {
            Form::Array(element) => array::decode(kind, element, bytes, environment),
            form => binary::decode(kind, form, bytes, environment).map(value),
        },
        other => Err(unknown_format(other)),
    }
}

fn decode_text(form: Form, text: &str, environment: &Environment) -> Result<Value, WireError> {
    match form {
        Form::Scalar(Kind::Text | Kind::Varchar | Kind::Bpchar | Kind::Unknown) | Form::OidAlias | Form::Other => {
            Ok(Value::from(text))
        }
        Form::Scalar(scalar) => decode_scalar_text(scalar, text, environment).map(value),
        Form::Array(element) => forebay_pg_values::array::parse(element, -1, text, environment)
            .map(Value::Text)
            .map_err(|error| refused(error, text)),
        Form::Void => Ok(Value::Null),
    }
}

fn value(owned: Owned) -> Value {
    match owned {
        Owned::Null => Value::Null,
        Owned::Integer(integer) => Value::Integer(integer),
        Owned::Real(real) => Value::Real(real),
        Owned::Text(text) => Value::Text(text),
        Owned::Blob(bytes) => Value::Blob(bytes),
    }
}

/// Appends a column's value: a 32-bit length (-1 for NULL), then the value in `format` (0 text, 1 binary).
///
/// # Errors
///
/// 22P02 or 22003 when the stored value is no value of the declared type, 22021 when a text cannot be sent, 0A000 when the type's
/// binary format is not known or a timestamptz leaves the years 0001 to 9999 in the environment's zone, 22023 for no such format. Then
/// `out` is as it was.
pub fn encode_column(
    kind: &Type,
    format: i16,
    value: ValueRef<'_>,
    environment: &Environment,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    if value == ValueRef::Null {
        out.put_i32(-1);
        return Ok(());
    }
    let start = out.len();
    out.put_i32(0);
    let written = match (format, form(kind)) {
        (0, form) => encode_text(kind, form, value, environment, out),
        (1, Form::Array(element)) => array::encode_binary(kind, element, value, environment, out),
        (1, form) => binary::encode(kind, form, value, out),
        (other, _) => Err(unknown_format(other)),
    };
    let length = written.and_then(|()| {
        i32::try_from(out.len() - start - 4).map_err(|_| {
            WireError::new(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                "a value longer than 2 GiB cannot be sent",
            )
        })
    });
    match length {
        Ok(length) => {
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

fn encode_text(
    kind: &Type,
    form: Form,
    value: ValueRef<'_>,
    environment: &Environment,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    let scalar = match form {
        Form::Scalar(scalar) => scalar,
        Form::Array(element) => return array::encode_text(kind, element, value, environment, out),
        Form::OidAlias | Form::Other => return put_as_text(kind, value, out),
        Form::Void => return Ok(()),
    };
    match scalar {
        Kind::Int8 | Kind::Int4 | Kind::Int2 | Kind::Oid => {
            put_integer(out, stored_integer(kind, value, integer_range(scalar))?);
        }
        Kind::Text | Kind::Varchar | Kind::Bpchar | Kind::Name | Kind::Unknown | Kind::Char => {
            put_as_text(kind, value, out)?;
        }
        Kind::Bool => out.put_u8(if stored_bool(kind, value)? { b't' } else { b'f' }),
        Kind::Float8 => put_written(scalar, Datum::Real(stored_float(kind, value)?), environment, out)?,
        Kind::Float4 => {
            let single = f64::from(stored_float4(kind, value)?);
            put_written(scalar, Datum::Real(single), environment, out)?;
        }
        Kind::Bytea => put_bytea(stored_bytes(kind, value)?, out),
        Kind::Uuid => out.put_slice(
            stored_uuid(kind, value)?
                .hyphenated()
                .encode_lower(&mut Uuid::encode_buffer())
                .as_bytes(),
        ),
        Kind::Timestamptz => {
            let stored = stored_text(kind, scalar, value)?;
            put_written(scalar, Datum::Text(&stored), environment, out)?;
        }
        // Stored as they are written.
        Kind::Numeric
        | Kind::Date
        | Kind::Time
        | Kind::Timetz
        | Kind::Timestamp
        | Kind::Interval
        | Kind::Json
        | Kind::Jsonb => out.put_slice(stored_text(kind, scalar, value)?.as_bytes()),
    }
    Ok(())
}

fn put_written(scalar: Kind, datum: Datum<'_>, environment: &Environment, out: &mut BytesMut) -> Result<(), WireError> {
    let mut text = String::with_capacity(40);
    text_form::write(scalar, datum, environment, &mut text)?;
    out.put_slice(text.as_bytes());
    Ok(())
}

/// In pieces: a blob may be large, and its digits are twice as many.
fn put_bytea(bytes: &[u8], out: &mut BytesMut) {
    const PIECE_BYTES: usize = 4096;
    out.reserve(2 + 2 * bytes.len());
    out.put_slice(b"\\x");
    let mut digits = String::new();
    for piece in bytes.chunks(PIECE_BYTES) {
        digits.clear();
        bytea::write_hex(piece, &mut digits);
        out.put_slice(digits.as_bytes());
    }
}
