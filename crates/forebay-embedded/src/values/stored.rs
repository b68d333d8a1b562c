//! What a stored value is, as a value of the type that its column declares.
//!
//! Promises: exactly that value, or the error that it is none ([`unfit`]). The stored form is taken as it is, once it is seen to be one;
//! other writers' forms are read. NULL was answered before. Knows no wire format, but for texts and numbers that are sent as they are.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use bytes::BufMut;
use forebay_pg_values::interval::Interval;
use forebay_pg_values::json::{jsonb, validate};
use forebay_pg_values::temporal::{date_to_days, timetz_from_parts, timetz_to_parts};
use forebay_pg_values::{Datum, Environment, Kind, Owned, text_form};
use jiff::tz::TimeZone;
use postgres_types::Type;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::numeric;
use super::refusal::unfit;
use super::text::valid_text;
use forebay_pg_wire::error::{WireError, sqlstate};
use forebay_pg_wire::frontend::invalid_utf8;

/// The integers of an integer type.
pub(super) const fn integer_range(scalar: Kind) -> RangeInclusive<i64> {
    match scalar {
        Kind::Int2 => i16::MIN as i64..=i16::MAX as i64,
        Kind::Int4 => i32::MIN as i64..=i32::MAX as i64,
        Kind::Oid => 0..=u32::MAX as i64,
        _ => i64::MIN..=i64::MAX,
    }
}

pub(super) fn stored_integer(kind: &Type, value: ValueRef<'_>, range: RangeInclusive<i64>) -> Result<i64, WireError> {
    let integer = match value {
        ValueRef::Integer(integer) => integer,
        ValueRef::Real(real) => exact_integer(real).ok_or_else(|| unfit(kind, value))?,
        ValueRef::Text(text) => parse_ascii(text).ok_or_else(|| unfit(kind, value))?,
        ValueRef::Blob(_) | ValueRef::Null => return Err(unfit(kind, value)),
    };
    if range.contains(&integer) {
        Ok(integer)
    } else {
        Err(out_of_range(kind, value))
    }
}

fn out_of_range(kind: &Type, value: ValueRef<'_>) -> WireError {
    let mut error = unfit(kind, value);
    error.sqlstate = sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;
    error
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
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok();
            match text.map(|text| text_form::parse(Kind::Float8, -1, text, &utc())) {
                Some(Ok(Owned::Real(real))) => Some(real),
                _ => None,
            }
        }
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

pub(super) fn stored_float4(kind: &Type, value: ValueRef<'_>) -> Result<f32, WireError> {
    let double = stored_float(kind, value)?;
    let single = double as f32;
    if single.is_infinite() && double.is_finite() || single == 0.0 && double != 0.0 {
        return Err(out_of_range(kind, value));
    }
    Ok(single)
}

pub(super) fn stored_uuid(kind: &Type, value: ValueRef<'_>) -> Result<Uuid, WireError> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text)
            .ok()
            .map(str::trim_ascii)
            .filter(|text| !text.starts_with("urn:"))
            .and_then(|text| Uuid::try_parse(text).ok()),
        ValueRef::Blob(bytes) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
    .ok_or_else(|| unfit(kind, value))
}

/// The stored form of a type that is stored as PostgreSQL writes it (a timestamptz: as its clocks in UTC).
pub(super) fn stored_text<'a>(kind: &Type, scalar: Kind, value: ValueRef<'a>) -> Result<Cow<'a, str>, WireError> {
    let text = match value {
        ValueRef::Text(text) => std::str::from_utf8(text).map_err(|error| match scalar {
            Kind::Json | Kind::Jsonb => invalid_utf8(text, error),
            _ => unfit(kind, value),
        })?,
        ValueRef::Integer(_) | ValueRef::Real(_) if matches!(scalar, Kind::Numeric | Kind::Json | Kind::Jsonb) => {
            return of_number(kind, scalar, value).map(Cow::Owned);
        }
        _ => return Err(unfit(kind, value)),
    };
    let read = match scalar {
        Kind::Json => {
            validate(text).map_err(|error| unfit(kind, value).with_detail(error.message))?;
            return Ok(Cow::Borrowed(text));
        }
        Kind::Jsonb => {
            let written = jsonb::input(text).map_err(|error| unfit(kind, value).with_detail(error.message))?;
            return Ok(Cow::Owned(written));
        }
        Kind::Interval => Interval::from_stored(text)
            .or_else(|_| Interval::parse(text, -1))
            .ok()
            .map(Interval::to_stored),
        _ if is_stored(scalar, text) => return Ok(Cow::Borrowed(text)),
        Kind::Numeric => parsed(scalar, text),
        Kind::Date => {
            other_timestamp(text).and_then(|timestamp| timestamp.strip_suffix(" 00:00:00").map(str::to_owned))
        }
        Kind::Timestamp | Kind::Timestamptz => other_timestamp(text),
        Kind::Time => other_time(text),
        _ => None,
    };
    read.map(Cow::Owned).ok_or_else(|| unfit(kind, value))
}

/// A number in a column of numeric or JSON: as its shortest digits.
fn of_number(kind: &Type, scalar: Kind, value: ValueRef<'_>) -> Result<String, WireError> {
    let mut text = String::new();
    match value {
        ValueRef::Integer(integer) => text.push_str(itoa::Buffer::new().format(integer)),
        ValueRef::Real(real) if scalar == Kind::Numeric || real.is_finite() => {
            text_form::write(Kind::Float8, Datum::Real(real), &utc(), &mut text)?;
        }
        _ => return Err(unfit(kind, value)),
    }
    if scalar == Kind::Json {
        return Ok(text);
    }
    parsed(scalar, &text).ok_or_else(|| unfit(kind, value))
}

/// Stored values mean the same in every session.
fn utc() -> Environment {
    Environment::new(TimeZone::UTC, 0)
}

/// What a text is that PostgreSQL reads as the type, though it would write it otherwise.
fn parsed(scalar: Kind, text: &str) -> Option<String> {
    match text_form::parse(scalar, -1, text, &utc()) {
        Ok(Owned::Text(text)) => Some(text),
        _ => None,
    }
}

/// Whether a number, a date or a time is as it is stored.
fn is_stored(scalar: Kind, text: &str) -> bool {
    match scalar {
        Kind::Numeric => numeric::is_written(text),
        Kind::Date => is_date(text),
        Kind::Time => is_time(text),
        Kind::Timetz => {
            // Its reader does not mind what no clock shows.
            text.get(..8).is_some_and(is_time)
                && timetz_to_parts(text).is_ok_and(|(micros, west)| timetz_from_parts(micros, west) == text)
        }
        Kind::Timestamp | Kind::Timestamptz => match text.split_at_checked(10) {
            Some((date, clock)) => is_date(date) && clock.strip_prefix(' ').is_some_and(is_clock),
            None => matches!(text, "infinity" | "-infinity"),
        },
        _ => false,
    }
}

fn is_date(text: &str) -> bool {
    // The stored years begin with 0001.
    !text.starts_with("0000") && date_to_days(text).is_ok()
}

fn is_time(text: &str) -> bool {
    text == "24:00:00" || is_clock(text)
}

/// `HH:MM:SS[.f]` within a day, without zeros at the end.
fn is_clock(text: &str) -> bool {
    let Some(([h, hh, b':', m, mm, b':', s, ss], fraction)) = text.as_bytes().split_first_chunk() else {
        return false;
    };
    let below = |tens: u8, units: u8, end: u8| {
        tens.is_ascii_digit() && units.is_ascii_digit() && (tens - b'0') * 10 + (units - b'0') < end
    };
    let is_fraction = match fraction {
        [] => true,
        [b'.', digits @ ..] => {
            (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) && !digits.ends_with(b"0")
        }
        _ => false,
    };
    is_fraction && below(*h, *hh, 24) && below(*m, *mm, 60) && below(*s, *ss, 60)
}

/// A date or timestamp of another writer, `YYYY-MM-DD` and what may follow; the stored timestamp, in UTC.
fn other_timestamp(text: &str) -> Option<String> {
    let text = text.trim_ascii();
    let (year, rest) = text.split_at_checked(4)?;
    if !year.bytes().all(|byte| byte.is_ascii_digit()) || !rest.starts_with('-') {
        return None;
    }
    parsed(Kind::Timestamptz, text)
}

/// A time of another writer: `HH:MM[:SS[.f]]`.
fn other_time(text: &str) -> Option<String> {
    let text = text.trim_ascii();
    let is_clock = text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    if is_clock { parsed(Kind::Time, text) } else { None }
}

/// The stored form of an element of an array.
pub(super) fn canonical(kind: &Type, scalar: Kind, value: ValueRef<'_>) -> Result<Owned, WireError> {
    Ok(match scalar {
        Kind::Bool => Owned::from(stored_bool(kind, value)?),
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => {
            Owned::Integer(stored_integer(kind, value, integer_range(scalar))?)
        }
        Kind::Float8 => Owned::Real(stored_float(kind, value)?),
        Kind::Float4 => Owned::Real(stored_float4(kind, value)?.into()),
        Kind::Bytea => Owned::Blob(stored_bytes(kind, value)?.to_vec()),
        Kind::Uuid => Owned::Text(stored_uuid(kind, value)?.to_string()),
        Kind::Text | Kind::Varchar | Kind::Bpchar | Kind::Name | Kind::Unknown | Kind::Char => {
            let mut text = Vec::new();
            put_as_text(kind, value, &mut text)?;
            Owned::Text(String::from_utf8(text).expect("only text is put"))
        }
        _ => Owned::Text(stored_text(kind, scalar, value)?.into_owned()),
    })
}

/// The value as a text column shows it: text as it is, numbers as SQLite prints them, blobs only if they are text.
pub(super) fn put_as_text(kind: &Type, value: ValueRef<'_>, out: &mut impl BufMut) -> Result<(), WireError> {
    match value {
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Real(real) => put_real(out, real),
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

pub(super) fn put_integer(out: &mut impl BufMut, integer: i64) {
    out.put_slice(itoa::Buffer::new().format(integer).as_bytes());
}

/// As SQLite prints a Real: the shortest digits, always with a point; with an exponent from 1e+17 on and below 1e-04.
fn put_real(out: &mut impl BufMut, real: f64) {
    if !real.is_finite() {
        out.put_slice(if real < 0.0 { b"-Inf" } else { b"Inf" });
        return;
    }
    let scientific = format!("{real:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("written with an exponent");
    let exponent: i32 = exponent.parse().expect("written as an integer");
    let text = match exponent {
        // So far Debug agrees.
        -4..16 => format!("{real:?}"),
        16 => {
            let (sign, digits) = mantissa
                .strip_prefix('-')
                .map_or(("", mantissa), |digits| ("-", digits));
            format!("{sign}{:0<17}.0", digits.replace('.', ""))
        }
        _ => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}{point}e{sign}{:02}", exponent.abs())
        }
    };
    out.put_slice(text.as_bytes());
}
