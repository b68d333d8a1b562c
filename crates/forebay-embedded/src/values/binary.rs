//! Scalars in PostgreSQL's binary format: what its `_send` functions write and its `_recv` functions read.
//!
//! Promises: what a peer sends is checked as PostgreSQL 15 checks it. Numbers are big-endian; dates and times count from 2000-01-01. Knows no
//! arrays.

use bytes::BufMut;
use forebay_pg_values::interval::Interval;
use forebay_pg_values::temporal::{
    date_from_days, date_to_days, time_from_micros, time_to_micros, timestamp_from_micros, timestamp_to_micros,
    timetz_from_parts, timetz_to_parts,
};
use forebay_pg_values::{Environment, Kind, Owned, ValueError};
use postgres_types::Type;
use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::form::Form;
use super::numeric;
use super::refusal::{invalid_binary, no_binary_format, not_a_number, unfit};
use super::stored::{
    integer_range, put_as_text, stored_bool, stored_bytes, stored_float, stored_float4, stored_integer, stored_text,
    stored_uuid,
};
use super::text::{decode_scalar_text, valid_text};
use forebay_pg_wire::error::WireError;

const DAY_MICROS: i64 = 86_400_000_000;
/// An offset is less than sixteen hours.
const OFFSET_SECONDS_END: i32 = 16 * 3_600;
/// A name has one byte less.
const NAME_BYTES: usize = 64;

/// The stored form of a value sent in binary format.
pub(super) fn decode(kind: &Type, form: Form, bytes: &[u8], environment: &Environment) -> Result<Owned, WireError> {
    let scalar = match form {
        Form::Scalar(scalar) => scalar,
        Form::OidAlias => return Ok(Owned::Integer(u32::from_be_bytes(fixed(kind, bytes)?).into())),
        Form::Void if bytes.is_empty() => return Ok(Owned::Null),
        Form::Void => return Err(invalid_binary(kind, "expected no bytes")),
        Form::Array(_) | Form::Other => return Err(no_binary_format(kind)),
    };
    Ok(match scalar {
        Kind::Bool => Owned::from(fixed::<1>(kind, bytes)?[0] != 0),
        Kind::Int8 => Owned::Integer(i64::from_be_bytes(fixed(kind, bytes)?)),
        Kind::Int4 => Owned::Integer(i32::from_be_bytes(fixed(kind, bytes)?).into()),
        Kind::Int2 => Owned::Integer(i16::from_be_bytes(fixed(kind, bytes)?).into()),
        Kind::Oid => Owned::Integer(u32::from_be_bytes(fixed(kind, bytes)?).into()),
        Kind::Float4 => real(f32::from_be_bytes(fixed(kind, bytes)?).into())?,
        Kind::Float8 => real(f64::from_be_bytes(fixed(kind, bytes)?))?,
        Kind::Numeric => Owned::Text(numeric::from_binary(bytes)?),
        Kind::Text | Kind::Varchar | Kind::Bpchar | Kind::Unknown => Owned::from(valid_text(bytes)?),
        Kind::Name => {
            let text = valid_text(bytes)?;
            if text.len() >= NAME_BYTES {
                return Err(WireError::new("42622", "identifier too long")
                    .with_detail(format!("Identifier must be less than {NAME_BYTES} characters.")));
            }
            Owned::from(text)
        }
        Kind::Char => match fixed::<1>(kind, bytes)?[0] {
            // PostgreSQL's empty "char" is a zero byte in binary format and an empty string in text format.
            0 => Owned::from(""),
            byte if byte.is_ascii() => Owned::Text(char::from(byte).into()),
            _ => return Err(ValueError::unsupported("values of type \"char\" above 127 are").into()),
        },
        Kind::Bytea => Owned::from(bytes.to_vec()),
        Kind::Date => Owned::Text(date_from_days(i32::from_be_bytes(fixed(kind, bytes)?))?),
        Kind::Time => {
            let micros = i64::from_be_bytes(fixed(kind, bytes)?);
            Owned::Text(time_from_micros(time_of_day(micros)?))
        }
        Kind::Timetz => {
            let parts: [u8; 12] = fixed(kind, bytes)?;
            let (micros, west) = split(&parts);
            let (micros, west) = (time_of_day(i64::from_be_bytes(micros))?, i32::from_be_bytes(west));
            if west <= -OFFSET_SECONDS_END || west >= OFFSET_SECONDS_END {
                return Err(WireError::new("22009", "time zone displacement out of range"));
            }
            Owned::Text(timetz_from_parts(micros, west))
        }
        Kind::Timestamp | Kind::Timestamptz => {
            Owned::Text(timestamp_from_micros(i64::from_be_bytes(fixed(kind, bytes)?))?)
        }
        Kind::Interval => {
            let parts: [u8; 16] = fixed(kind, bytes)?;
            let (micros, spans): ([u8; 8], [u8; 8]) = split(&parts);
            let (days, months) = split(&spans);
            let interval = Interval {
                micros: i64::from_be_bytes(micros),
                days: i32::from_be_bytes(days),
                months: i32::from_be_bytes(months),
            };
            Owned::Text(interval.to_stored())
        }
        Kind::Uuid => Owned::Text(Uuid::from_bytes(fixed(kind, bytes)?).to_string()),
        Kind::Json => decode_scalar_text(scalar, valid_text(bytes)?, environment)?,
        Kind::Jsonb => match bytes.split_first() {
            Some((1, text)) => decode_scalar_text(scalar, valid_text(text)?, environment)?,
            Some((version, _)) => {
                return Err(WireError::internal(format!(
                    "unsupported jsonb version number {version}"
                )));
            }
            None => return Err(invalid_binary(kind, "no version number")),
        },
    })
}

/// A vector of the catalog, which is held as it is written, `1 2`: in binary format an array whose first subscript is 0.
fn encode_vector(kind: &Type, text: &[u8], out: &mut impl BufMut) -> Result<(), WireError> {
    let (element, width) = if *kind == Type::INT2_VECTOR {
        (Type::INT2, 2)
    } else {
        (Type::OID, 4)
    };
    let parsed: Result<Vec<i64>, _> = String::from_utf8_lossy(text)
        .split_ascii_whitespace()
        .map(str::parse)
        .collect();
    let values = parsed.map_err(|_| no_binary_format(kind))?;
    let count = i32::try_from(values.len()).map_err(|_| no_binary_format(kind))?;
    out.put_i32(1);
    out.put_i32(0);
    out.put_u32(element.oid());
    out.put_i32(count);
    out.put_i32(0);
    for value in values {
        out.put_i32(width);
        out.put_int(value, if width == 2 { 2 } else { 4 });
    }
    Ok(())
}

/// Appends a stored value in binary format.
pub(super) fn encode(kind: &Type, form: Form, value: ValueRef<'_>, out: &mut impl BufMut) -> Result<(), WireError> {
    let scalar = match (form, value) {
        (Form::Scalar(scalar), _) => scalar,
        (Form::Other, ValueRef::Text(text)) if matches!(*kind, Type::INT2_VECTOR | Type::OID_VECTOR) => {
            return encode_vector(kind, text, out);
        }
        (Form::OidAlias, ValueRef::Integer(_)) => Kind::Oid,
        (Form::Void, _) => return Ok(()),
        (Form::OidAlias | Form::Array(_) | Form::Other, _) => return Err(no_binary_format(kind)),
    };
    match scalar {
        Kind::Int8 => out.put_i64(stored_integer(kind, value, integer_range(scalar))?),
        Kind::Int4 | Kind::Oid => out.put_int(stored_integer(kind, value, integer_range(scalar))?, 4),
        Kind::Int2 => out.put_int(stored_integer(kind, value, integer_range(scalar))?, 2),
        Kind::Text | Kind::Varchar | Kind::Bpchar | Kind::Name | Kind::Unknown => put_as_text(kind, value, out)?,
        Kind::Bool => out.put_u8(u8::from(stored_bool(kind, value)?)),
        Kind::Float8 => out.put_f64(stored_float(kind, value)?),
        Kind::Float4 => out.put_f32(stored_float4(kind, value)?),
        Kind::Char => {
            let mut text = Vec::new();
            put_as_text(kind, value, &mut text)?;
            match text[..] {
                [] => out.put_u8(0),
                [byte] => out.put_u8(byte),
                _ => return Err(unfit(kind, value)),
            }
        }
        Kind::Bytea => out.put_slice(stored_bytes(kind, value)?),
        Kind::Uuid => out.put_slice(stored_uuid(kind, value)?.as_bytes()),
        Kind::Numeric => numeric::put_binary(&stored_text(kind, scalar, value)?, out),
        Kind::Date => out.put_i32(date_to_days(&stored_text(kind, scalar, value)?)?),
        Kind::Time => out.put_i64(time_to_micros(&stored_text(kind, scalar, value)?)?),
        Kind::Timetz => {
            let (micros, west) = timetz_to_parts(&stored_text(kind, scalar, value)?)?;
            out.put_i64(micros);
            out.put_i32(west);
        }
        Kind::Timestamp | Kind::Timestamptz => {
            out.put_i64(timestamp_to_micros(&stored_text(kind, scalar, value)?)?);
        }
        Kind::Interval => {
            let interval = Interval::from_stored(&stored_text(kind, scalar, value)?)?;
            out.put_i64(interval.micros);
            out.put_i32(interval.days);
            out.put_i32(interval.months);
        }
        Kind::Json => out.put_slice(stored_text(kind, scalar, value)?.as_bytes()),
        Kind::Jsonb => {
            let text = stored_text(kind, scalar, value)?;
            out.put_u8(1);
            out.put_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn real(number: f64) -> Result<Owned, WireError> {
    if number.is_nan() {
        Err(not_a_number())
    } else {
        Ok(Owned::Real(number))
    }
}

/// From midnight to midnight.
fn time_of_day(micros: i64) -> Result<i64, WireError> {
    if (0..=DAY_MICROS).contains(&micros) {
        Ok(micros)
    } else {
        Err(ValueError::new("22008", "time out of range").into())
    }
}

fn fixed<const N: usize>(kind: &Type, bytes: &[u8]) -> Result<[u8; N], WireError> {
    bytes
        .try_into()
        .map_err(|_| invalid_binary(kind, &format!("expected {N} bytes, got {}", bytes.len())))
}

/// The first bytes and the rest.
fn split<const A: usize, const B: usize>(bytes: &[u8]) -> ([u8; A], [u8; B]) {
    let (first, rest) = bytes.split_at(A);
    (
        first.try_into().expect("split there"),
        rest.try_into().expect("the caller's parts are the whole"),
    )
}
