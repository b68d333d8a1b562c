//! Values between PostgreSQL's text and binary formats and SQLite's storage classes, by PostgreSQL type.
//!
//! Promises: a parameter is stored exactly or refused ([`decode_parameter`]); a stored value is sent exactly as its declared type or
//! refused ([`encode_column`]): SQLite keeps any value in any column, and a wrong value is worse than an error. What is sent is what
//! PostgreSQL would send for that value. Neither ever panics. int8 and text are written without an allocation.
//!
//! | type | parameter is stored as | column may hold |
//! |---|---|---|
//! | bool | Integer 0 or 1 | 0, 1, text `true` `false` `t` `f` |
//! | int2 int4 int8 oid | Integer | Integer in range; an integral Real; text of an integer |
//! | float4 float8 | Real; NaN is refused, for SQLite would make it NULL | Real; an Integer that is exact as a float; text of a number |
//! | numeric | Integer, or Real of at most 15 significant digits; anything else would be rounded and is refused | Integer, Real, text of a number |
//! | text varchar bpchar name unknown "char" | Text | anything; a Blob only if it is UTF-8 |
//! | bytea | Blob | Blob; the bytes of a Text |
//! | date, time | Text `YYYY-MM-DD`, `HH:MM:SS[.ffffff]` | text in SQLite's usual forms |
//! | timestamp, timestamptz | Text `YYYY-MM-DD HH:MM:SS[.ffffff]`, in UTC, no offset | the same, also with `T`, `Z` or an offset (then taken to UTC) |
//! | json jsonb | Text as given, if it is JSON | JSON text, Integer, finite Real |
//! | uuid | Text, lower case with hyphens | text of a UUID; a Blob of 16 bytes |
//! | arrays | refused | text format: as stored |
//! | any other | text format: Text as given; binary: refused | text format: as stored |
//!
//! NULL is NULL of every type. A float4 column rounds a stored double to a float, as its declared type says. A timestamp parameter
//! with an offset drops the offset, as PostgreSQL does; a stored timestamp with an offset is taken to UTC, as SQLite does.
//!
//! Does not know: statements, columns' names, which type a column has (the catalog does).

mod bytea;
mod float;
mod numeric;
mod temporal;
#[cfg(test)]
mod tests;

use bytes::{BufMut, BytesMut};
use forebay::write::Value;
use postgres_types::{Kind, Type};
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::error::{WireError, sqlstate};
use super::frontend::invalid_utf8;
use numeric::Number;

/// How a type's values look on the wire; several types share one form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bool,
    Bytea,
    Integer {
        min: i64,
        max: i64,
        bytes: u8,
    },
    /// An OID under a name of its own: a number in binary format, a number or a name in text format.
    OidAlias,
    Float4,
    Float8,
    Text,
    Char,
    Numeric,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Json,
    Jsonb,
    Uuid,
    Void,
    Array,
    Other,
}

fn form(kind: &Type) -> Form {
    match *kind {
        Type::INT8 => Form::Integer {
            min: i64::MIN,
            max: i64::MAX,
            bytes: 8,
        },
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => Form::Text,
        Type::INT4 => Form::Integer {
            min: i32::MIN as i64,
            max: i32::MAX as i64,
            bytes: 4,
        },
        Type::INT2 => Form::Integer {
            min: i16::MIN as i64,
            max: i16::MAX as i64,
            bytes: 2,
        },
        Type::OID => Form::Integer {
            min: 0,
            max: u32::MAX as i64,
            bytes: 4,
        },
        Type::FLOAT8 => Form::Float8,
        Type::FLOAT4 => Form::Float4,
        Type::BOOL => Form::Bool,
        Type::BYTEA => Form::Bytea,
        Type::NUMERIC => Form::Numeric,
        Type::DATE => Form::Date,
        Type::TIME => Form::Time,
        Type::TIMESTAMP => Form::Timestamp,
        Type::TIMESTAMPTZ => Form::Timestamptz,
        Type::JSON => Form::Json,
        Type::JSONB => Form::Jsonb,
        Type::UUID => Form::Uuid,
        Type::CHAR => Form::Char,
        Type::VOID => Form::Void,
        Type::REGPROC
        | Type::REGCLASS
        | Type::REGTYPE
        | Type::REGNAMESPACE
        | Type::REGROLE
        | Type::XID
        | Type::CID => Form::OidAlias,
        _ if matches!(kind.kind(), Kind::Array(_)) => Form::Array,
        _ => Form::Other,
    }
}

/// The value to store for a parameter of type `kind`, sent in `format` (0 text, 1 binary); `None` is NULL.
///
/// # Errors
///
/// 22P02 (text that is no such value), 22P03 (bytes that are none), 22021 (not UTF-8, or a NUL in a text), 22003 (out of range, or not
/// storable exactly), 22007 and 22008 (dates and times), 0A000 (arrays; types whose binary format is not known), 22023 (no such format).
pub fn decode_parameter(
    kind: &Type,
    format: i16,
    bytes: Option<&[u8]>,
) -> Result<Value, WireError> {
    let Some(bytes) = bytes else {
        return Ok(Value::Null);
    };
    let form = form(kind);
    if form == Form::Array {
        return Err(WireError::unsupported(format!(
            "parameters of type {} (an array) are not supported",
            display_name(kind)
        ))
        .with_hint("Send one parameter a value, or a JSON array and json_each()."));
    }
    match format {
        0 => decode_text(kind, form, valid_text(bytes)?),
        1 => decode_binary(kind, form, bytes),
        other => Err(unknown_format(other)),
    }
}

fn decode_text(kind: &Type, form: Form, text: &str) -> Result<Value, WireError> {
    let syntax = || invalid_text(kind, text);
    Ok(match form {
        Form::Bool => Value::from(bool_from_input(text).ok_or_else(syntax)?),
        Form::Bytea => Value::Blob(bytea::parse(text).ok_or_else(syntax)?),
        Form::Integer { min, max, .. } => {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            match text.trim_ascii().parse::<i64>() {
                Ok(integer) if (min..=max).contains(&integer) => Value::Integer(integer),
                Ok(_) => return Err(out_of_range(kind, text)),
                Err(error) if matches!(error.kind(), PosOverflow | NegOverflow) => {
                    return Err(out_of_range(kind, text));
                }
                Err(_) => return Err(syntax()),
            }
        }
        Form::Float8 | Form::Float4 => {
            let parsed = if form == Form::Float4 {
                float::parse_float4(text).map(f64::from)
            } else {
                float::parse_float8(text)
            };
            match parsed {
                Ok(number) => real(number)?,
                Err(float::NotAFloat::Syntax) => return Err(syntax()),
                Err(float::NotAFloat::Range) => return Err(out_of_range(kind, text)),
            }
        }
        Form::Numeric => Number::parse(text)
            .map_err(|error| error.for_parameter(kind, text))?
            .to_value()?,
        Form::Char if text.len() > 1 || !text.is_ascii() => return Err(syntax()),
        Form::Date => temporal::date_text(
            temporal::parse_date(text).map_err(|error| error.for_parameter(kind, text))?,
        ),
        Form::Time => temporal::time_text(
            temporal::parse_time(text)
                .map_err(|error| error.for_parameter(kind, text))?
                .micros,
        ),
        Form::Timestamp | Form::Timestamptz => {
            let moment =
                temporal::parse_timestamp(text).map_err(|error| error.for_parameter(kind, text))?;
            let micros = if form == Form::Timestamp {
                moment.local()
            } else {
                moment.utc()
            };
            temporal::timestamp_text(micros.map_err(|error| error.for_parameter(kind, text))?)
        }
        Form::Json | Form::Jsonb => {
            check_json(text).map_err(|error| invalid_json(kind, &error))?;
            Value::from(text)
        }
        Form::Uuid => Value::from(uuid_from_text(text).ok_or_else(syntax)?.to_string()),
        Form::Void => Value::Null,
        Form::Text | Form::Char | Form::OidAlias | Form::Other | Form::Array => Value::from(text),
    })
}

fn decode_binary(kind: &Type, form: Form, bytes: &[u8]) -> Result<Value, WireError> {
    Ok(match form {
        Form::Bool => Value::from(fixed::<1>(kind, bytes)?[0] != 0),
        Form::Bytea => Value::from(bytes),
        Form::Integer { bytes: 8, .. } => Value::Integer(i64::from_be_bytes(fixed(kind, bytes)?)),
        Form::Integer {
            bytes: 4, min: 0, ..
        }
        | Form::OidAlias => Value::from(u32::from_be_bytes(fixed(kind, bytes)?)),
        Form::Integer { bytes: 4, .. } => Value::from(i32::from_be_bytes(fixed(kind, bytes)?)),
        Form::Integer { .. } => Value::from(i16::from_be_bytes(fixed(kind, bytes)?)),
        Form::Float4 => real(f64::from(f32::from_be_bytes(fixed(kind, bytes)?)))?,
        Form::Float8 => real(f64::from_be_bytes(fixed(kind, bytes)?))?,
        Form::Text => Value::from(valid_text(bytes)?),
        Form::Char => match fixed::<1>(kind, bytes)?[0] {
            // PostgreSQL's empty "char" is a zero byte in binary format and an empty string in text format.
            0 => Value::from(""),
            byte if byte.is_ascii() => Value::from(char::from(byte).to_string()),
            _ => return Err(invalid_binary(kind, "a byte that is not ASCII")),
        },
        Form::Numeric => Number::from_binary(bytes)
            .map_err(|what| invalid_binary(kind, what))?
            .to_value()?,
        Form::Date => {
            let days = i32::from_be_bytes(fixed(kind, bytes)?);
            temporal::date_text(
                temporal::check_days(days)
                    .map_err(|error| error.for_parameter(kind, &days.to_string()))?,
            )
        }
        Form::Time => {
            let micros = i64::from_be_bytes(fixed(kind, bytes)?);
            temporal::time_text(
                temporal::check_time(micros)
                    .map_err(|error| error.for_parameter(kind, &micros.to_string()))?,
            )
        }
        Form::Timestamp | Form::Timestamptz => {
            let micros = i64::from_be_bytes(fixed(kind, bytes)?);
            temporal::timestamp_text(
                temporal::check_timestamp(micros)
                    .map_err(|error| error.for_parameter(kind, &micros.to_string()))?,
            )
        }
        Form::Json => decode_text(kind, form, valid_text(bytes)?)?,
        Form::Jsonb => match bytes.split_first() {
            Some((1, text)) => decode_text(kind, form, valid_text(text)?)?,
            Some((version, _)) => {
                return Err(invalid_binary(
                    kind,
                    &format!("unsupported jsonb version number {version}"),
                ));
            }
            None => return Err(invalid_binary(kind, "no version number")),
        },
        Form::Uuid => Value::from(Uuid::from_bytes(fixed(kind, bytes)?).to_string()),
        Form::Void if bytes.is_empty() => Value::Null,
        Form::Void => return Err(invalid_binary(kind, "expected no bytes")),
        Form::Array | Form::Other => return Err(no_binary_format(kind)),
    })
}

/// Appends a column's value: a 32-bit length (-1 for NULL), then the value in `format` (0 text, 1 binary).
///
/// # Errors
///
/// 22P02 or 22003 when the stored value is no value of the declared type, 22021 when a text cannot be sent, 0A000 when the type's
/// binary format is not known, 22023 for no such format. Then `out` is as it was.
pub fn encode_column(
    kind: &Type,
    format: i16,
    value: ValueRef<'_>,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    if value == ValueRef::Null {
        out.put_i32(-1);
        return Ok(());
    }
    let start = out.len();
    out.put_i32(0);
    let written = match format {
        0 => encode_text(kind, value, out),
        1 => encode_binary(kind, value, out),
        other => Err(unknown_format(other)),
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

fn encode_text(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
    match form(kind) {
        Form::Text | Form::Char | Form::OidAlias | Form::Array | Form::Other => {
            put_as_text(kind, value, out)?;
        }
        Form::Integer { min, max, .. } => put_integer(out, stored_integer(kind, value, min, max)?),
        Form::Bool => out.put_u8(if stored_bool(kind, value)? {
            b't'
        } else {
            b'f'
        }),
        Form::Bytea => bytea::put(out, stored_bytes(kind, value)?),
        Form::Float8 => float::put_float8(out, stored_float(kind, value)?),
        Form::Float4 => float::put_float4(out, stored_float4(kind, value)?),
        Form::Numeric => stored_numeric(kind, value)?.put_text(out),
        Form::Date => temporal::put_date(out, stored_date(kind, value)?),
        Form::Time => temporal::put_time(out, stored_time(kind, value)?),
        Form::Timestamp => temporal::put_timestamp(out, stored_timestamp(kind, value)?),
        Form::Timestamptz => {
            temporal::put_timestamp(out, stored_timestamp(kind, value)?);
            out.put_slice(b"+00");
        }
        Form::Json | Form::Jsonb => put_json(kind, value, out)?,
        Form::Uuid => out.put_slice(
            stored_uuid(kind, value)?
                .hyphenated()
                .encode_lower(&mut Uuid::encode_buffer())
                .as_bytes(),
        ),
        Form::Void => {}
    }
    Ok(())
}

fn encode_binary(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
    match form(kind) {
        Form::Text => put_as_text(kind, value, out)?,
        Form::Integer { min, max, bytes } => {
            out.put_int(stored_integer(kind, value, min, max)?, usize::from(bytes));
        }
        Form::OidAlias => match value {
            ValueRef::Integer(_) => {
                out.put_int(stored_integer(kind, value, 0, i64::from(u32::MAX))?, 4);
            }
            _ => return Err(no_binary_format(kind)),
        },
        Form::Bool => out.put_u8(u8::from(stored_bool(kind, value)?)),
        Form::Bytea => out.put_slice(stored_bytes(kind, value)?),
        Form::Float8 => out.put_f64(stored_float(kind, value)?),
        Form::Float4 => out.put_f32(stored_float4(kind, value)?),
        Form::Char => {
            let start = out.len();
            put_as_text(kind, value, out)?;
            match out.len() - start {
                0 => out.put_u8(0),
                1 => {}
                _ => return Err(unfit(kind, value)),
            }
        }
        Form::Numeric => stored_numeric(kind, value)?
            .put_binary(out)
            .map_err(|()| unfit(kind, value))?,
        Form::Date => out.put_i32(stored_date(kind, value)?),
        Form::Time => out.put_i64(stored_time(kind, value)?),
        Form::Timestamp | Form::Timestamptz => out.put_i64(stored_timestamp(kind, value)?),
        Form::Json => put_json(kind, value, out)?,
        Form::Jsonb => {
            out.put_u8(1);
            put_json(kind, value, out)?;
        }
        Form::Uuid => out.put_slice(stored_uuid(kind, value)?.as_bytes()),
        Form::Void => {}
        Form::Array | Form::Other => return Err(no_binary_format(kind)),
    }
    Ok(())
}

// What a stored value is, as a value of the declared type; NULL was answered before.

fn stored_integer(kind: &Type, value: ValueRef<'_>, min: i64, max: i64) -> Result<i64, WireError> {
    let integer = match value {
        ValueRef::Integer(integer) => integer,
        ValueRef::Real(real) => exact_integer(real).ok_or_else(|| unfit(kind, value))?,
        ValueRef::Text(text) => parse_ascii(text).ok_or_else(|| unfit(kind, value))?,
        ValueRef::Blob(_) | ValueRef::Null => return Err(unfit(kind, value)),
    };
    if (min..=max).contains(&integer) {
        Ok(integer)
    } else {
        let mut error = unfit(kind, value);
        error.sqlstate = sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;
        Err(error)
    }
}

/// The integer that a float is, if it is one exactly.
fn exact_integer(real: f64) -> Option<i64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    (real.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&real)).then_some(real as i64)
}

fn parse_ascii<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim_ascii().parse().ok()
}

fn stored_bool(kind: &Type, value: ValueRef<'_>) -> Result<bool, WireError> {
    match value {
        ValueRef::Integer(0) => Ok(false),
        ValueRef::Integer(1) => Ok(true),
        ValueRef::Text(text)
            if text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"t") =>
        {
            Ok(true)
        }
        ValueRef::Text(text)
            if text.eq_ignore_ascii_case(b"false") || text.eq_ignore_ascii_case(b"f") =>
        {
            Ok(false)
        }
        _ => Err(unfit(kind, value)),
    }
}

fn stored_bytes<'a>(kind: &Type, value: ValueRef<'a>) -> Result<&'a [u8], WireError> {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes),
        _ => Err(unfit(kind, value)),
    }
}

fn stored_float(kind: &Type, value: ValueRef<'_>) -> Result<f64, WireError> {
    match value {
        ValueRef::Real(real) => Some(real),
        ValueRef::Integer(integer) => {
            let real = integer as f64;
            (exact_integer(real) == Some(integer)).then_some(real)
        }
        ValueRef::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| float::parse_float8(text).ok()),
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

fn stored_float4(kind: &Type, value: ValueRef<'_>) -> Result<f32, WireError> {
    let double = stored_float(kind, value)?;
    let single = double as f32;
    if single.is_infinite() && double.is_finite() || single == 0.0 && double != 0.0 {
        let mut error = unfit(kind, value);
        error.sqlstate = sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;
        return Err(error);
    }
    Ok(single)
}

fn stored_numeric(kind: &Type, value: ValueRef<'_>) -> Result<Number, WireError> {
    match value {
        ValueRef::Integer(integer) => Some(Number::from_integer(integer)),
        ValueRef::Real(real) => Some(Number::from_real(real)),
        ValueRef::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| Number::parse(text).ok()),
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

fn stored_date(kind: &Type, value: ValueRef<'_>) -> Result<i32, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    temporal::parse_date(text).map_err(|error| unfit(kind, value).with_detail(error.why()))
}

fn stored_time(kind: &Type, value: ValueRef<'_>) -> Result<i64, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    match temporal::parse_time(text) {
        Ok(time) if time.offset.is_none() => Ok(time.micros),
        Ok(_) => Err(unfit(kind, value).with_detail("a time of day has no offset")),
        Err(error) => Err(unfit(kind, value).with_detail(error.why())),
    }
}

fn stored_timestamp(kind: &Type, value: ValueRef<'_>) -> Result<i64, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    temporal::parse_timestamp(text)
        .and_then(|moment| moment.utc())
        .map_err(|error| unfit(kind, value).with_detail(error.why()))
}

fn stored_uuid(kind: &Type, value: ValueRef<'_>) -> Result<Uuid, WireError> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(uuid_from_text),
        ValueRef::Blob(bytes) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

fn stored_plain_text(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

fn put_json(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
    match value {
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|error| invalid_utf8(text, error))?;
            check_json(text).map_err(|error| unfit(kind, value).with_detail(error.to_string()))?;
            out.put_slice(text.as_bytes());
        }
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Real(real) if real.is_finite() => float::put_float8(out, real),
        _ => return Err(unfit(kind, value)),
    }
    Ok(())
}

/// The value as a text column shows it: text as it is, numbers as SQLite prints them, blobs only if they are text.
fn put_as_text(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
    match value {
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Real(real) => float::put_real(out, real),
        ValueRef::Text(text) => out.put_slice(
            valid_text(text)
                .map_err(|error| error.with_hint(AS_BLOB))?
                .as_bytes(),
        ),
        ValueRef::Blob(bytes) => {
            let text = valid_text(bytes).map_err(|_| unfit(kind, value).with_hint(AS_BLOB))?;
            out.put_slice(text.as_bytes());
        }
        ValueRef::Null => {}
    }
    Ok(())
}

const AS_BLOB: &str = "Cast the column to blob, CAST(column AS BLOB), to get its bytes.";

fn put_integer(out: &mut BytesMut, integer: i64) {
    out.put_slice(itoa::Buffer::new().format(integer).as_bytes());
}

fn real(number: f64) -> Result<Value, WireError> {
    if number.is_nan() {
        Err(not_a_number())
    } else {
        Ok(Value::Real(number))
    }
}

fn not_a_number() -> WireError {
    WireError::new(
        sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
        "NaN cannot be stored: SQLite would make it NULL",
    )
}

/// PostgreSQL takes any unique prefix of these words.
fn bool_from_input(text: &str) -> Option<bool> {
    const WORDS: [(&str, usize, bool); 8] = [
        ("true", 1, true),
        ("false", 1, false),
        ("yes", 1, true),
        ("no", 1, false),
        ("on", 2, true),
        ("off", 2, false),
        ("1", 1, true),
        ("0", 1, false),
    ];
    let text = text.trim_ascii().to_ascii_lowercase();
    WORDS
        .iter()
        .find(|(word, shortest, _)| text.len() >= *shortest && word.starts_with(&text))
        .map(|(_, _, value)| *value)
}

fn uuid_from_text(text: &str) -> Option<Uuid> {
    let text = text.trim_ascii();
    if text.starts_with("urn:") {
        None
    } else {
        Uuid::try_parse(text).ok()
    }
}

fn check_json(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(|_| ())
}

fn fixed<const N: usize>(kind: &Type, bytes: &[u8]) -> Result<[u8; N], WireError> {
    bytes
        .try_into()
        .map_err(|_| invalid_binary(kind, &format!("expected {N} bytes, got {}", bytes.len())))
}

/// UTF-8 without NUL: what PostgreSQL calls text.
fn valid_text(bytes: &[u8]) -> Result<&str, WireError> {
    if bytes.contains(&0) {
        return Err(WireError::new(
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error))
}

// Errors.

fn invalid_text(kind: &Type, text: &str) -> WireError {
    let message = format!(
        "invalid input syntax for type {}: \"{}\"",
        display_name(kind),
        excerpt(text)
    );
    WireError::new(sqlstate::INVALID_TEXT_REPRESENTATION, message)
}

fn invalid_json(kind: &Type, error: &serde_json::Error) -> WireError {
    let message = format!("invalid input syntax for type {}", display_name(kind));
    WireError::new(sqlstate::INVALID_TEXT_REPRESENTATION, message).with_detail(error.to_string())
}

fn invalid_binary(kind: &Type, what: &str) -> WireError {
    let message = format!(
        "incorrect binary data format for type {}: {what}",
        display_name(kind)
    );
    WireError::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
}

fn out_of_range(kind: &Type, text: &str) -> WireError {
    let message = format!(
        "value \"{}\" is out of range for type {}",
        excerpt(text),
        display_name(kind)
    );
    WireError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

fn unknown_format(format: i16) -> WireError {
    WireError::new(
        sqlstate::INVALID_PARAMETER_VALUE,
        format!("unsupported format code: {format}"),
    )
}

fn no_binary_format(kind: &Type) -> WireError {
    WireError::unsupported(format!(
        "the binary format of type {} (OID {}) is not supported",
        display_name(kind),
        kind.oid()
    ))
    .with_hint("Use the text format, or cast to text.")
}

/// 22P02: what is stored is no value of the type that the column declares.
fn unfit(kind: &Type, value: ValueRef<'_>) -> WireError {
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
    WireError::new(sqlstate::INVALID_TEXT_REPRESENTATION, message)
        .with_hint("SQLite keeps any value in any column. Cast the column to text, CAST(column AS TEXT), to see what is stored.")
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
