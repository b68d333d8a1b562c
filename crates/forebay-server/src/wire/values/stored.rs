//! What a stored value is, as a value of the type that its column declares.
//!
//! Promises: exactly that value, or the error that it is none ([`unfit`]). NULL was answered before. Knows no wire format, but for
//! texts and numbers that are sent as they are.

use bytes::{BufMut, BytesMut};
use postgres_types::Type;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::numeric::Number;
use super::refusal::unfit;
use super::{check_json, float, temporal, uuid_from_text, valid_text};
use crate::wire::error::{WireError, sqlstate};
use crate::wire::frontend::invalid_utf8;

pub(super) fn stored_integer(kind: &Type, value: ValueRef<'_>, min: i64, max: i64) -> Result<i64, WireError> {
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

pub(super) fn stored_bool(kind: &Type, value: ValueRef<'_>) -> Result<bool, WireError> {
    match value {
        ValueRef::Integer(0) => Ok(false),
        ValueRef::Integer(1) => Ok(true),
        ValueRef::Text(text) if text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"t") => Ok(true),
        ValueRef::Text(text) if text.eq_ignore_ascii_case(b"false") || text.eq_ignore_ascii_case(b"f") => Ok(false),
        _ => Err(unfit(kind, value)),
    }
}

pub(super) fn stored_bytes<'a>(kind: &Type, value: ValueRef<'a>) -> Result<&'a [u8], WireError> {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes),
        _ => Err(unfit(kind, value)),
    }
}

pub(super) fn stored_float(kind: &Type, value: ValueRef<'_>) -> Result<f64, WireError> {
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

pub(super) fn stored_float4(kind: &Type, value: ValueRef<'_>) -> Result<f32, WireError> {
    let double = stored_float(kind, value)?;
    let single = double as f32;
    if single.is_infinite() && double.is_finite() || single == 0.0 && double != 0.0 {
        let mut error = unfit(kind, value);
        error.sqlstate = sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;
        return Err(error);
    }
    Ok(single)
}

pub(super) fn stored_numeric(kind: &Type, value: ValueRef<'_>) -> Result<Number, WireError> {
    match value {
        ValueRef::Integer(integer) => Some(Number::from_integer(integer)),
        ValueRef::Real(real) => Some(Number::from_real(real)),
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| Number::parse(text).ok()),
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

pub(super) fn stored_date(kind: &Type, value: ValueRef<'_>) -> Result<i32, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    temporal::parse_date(text).map_err(|error| unfit(kind, value).with_detail(error.why()))
}

pub(super) fn stored_time(kind: &Type, value: ValueRef<'_>) -> Result<i64, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    match temporal::parse_time(text) {
        Ok(time) if time.offset.is_none() => Ok(time.micros),
        Ok(_) => Err(unfit(kind, value).with_detail("a time of day has no offset")),
        Err(error) => Err(unfit(kind, value).with_detail(error.why())),
    }
}

pub(super) fn stored_timestamp(kind: &Type, value: ValueRef<'_>) -> Result<i64, WireError> {
    let text = stored_plain_text(value).ok_or_else(|| unfit(kind, value))?;
    temporal::parse_timestamp(text)
        .and_then(|moment| moment.utc())
        .map_err(|error| unfit(kind, value).with_detail(error.why()))
}

pub(super) fn stored_uuid(kind: &Type, value: ValueRef<'_>) -> Result<Uuid, WireError> {
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

pub(super) fn put_json(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
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
pub(super) fn put_as_text(kind: &Type, value: ValueRef<'_>, out: &mut BytesMut) -> Result<(), WireError> {
    match value {
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Real(real) => float::put_real(out, real),
        ValueRef::Text(text) => out.put_slice(valid_text(text).map_err(|error| error.with_hint(AS_BLOB))?.as_bytes()),
        ValueRef::Blob(bytes) => {
            let text = valid_text(bytes).map_err(|_| unfit(kind, value).with_hint(AS_BLOB))?;
            out.put_slice(text.as_bytes());
        }
        ValueRef::Null => {}
    }
    Ok(())
}

const AS_BLOB: &str = "Cast the column to blob, CAST(column AS BLOB), to get its bytes.";

pub(super) fn put_integer(out: &mut BytesMut, integer: i64) {
    out.put_slice(itoa::Buffer::new().format(integer).as_bytes());
}
