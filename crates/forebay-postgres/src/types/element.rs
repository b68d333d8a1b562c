//! The types whose values are written here in PostgreSQL's binary form.
//!
//! Promises: what is written is the value that the server would have read from the same value's text, bit for bit; what is
//! not sure to be is not written at all. [`Element::fits`] says beforehand whether a value will be.

use std::str::FromStr;

use bytes::{BufMut, BytesMut};
use postgres_types::Type;

use super::{literal, moment, numeric};
use forebay_write::Value;

/// A built-in type with a binary form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Json,
    Jsonb,
    Bytea,
    Uuid,
    Date,
    Time,
    Timestamp,
    Timestamptz,
}

/// The first byte of a binary jsonb.
const JSONB_VERSION: u8 = 1;

impl Element {
    /// Which it is, if it is one of them. A domain is not.
    pub(super) fn of(element: &Type) -> Option<Self> {
        Some(match *element {
            Type::BOOL => Self::Bool,
            Type::INT2 => Self::Int2,
            Type::INT4 => Self::Int4,
            Type::INT8 => Self::Int8,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float4,
            Type::FLOAT8 => Self::Float8,
            Type::NUMERIC => Self::Numeric,
            // Not name: the binary form refuses what the text form cuts off.
            Type::TEXT | Type::VARCHAR | Type::BPCHAR => Self::Text,
            Type::JSON => Self::Json,
            Type::JSONB => Self::Jsonb,
            Type::BYTEA => Self::Bytea,
            Type::UUID => Self::Uuid,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::Timestamptz,
            _ => return None,
        })
    }

    /// Whether [`payload`](Self::payload) will write it. NULL has no payload and fits everywhere.
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            _ if matches!(value, Value::Null) => true,
            Self::Bool => boolean(value).is_some(),
            Self::Int2 => integer::<i16>(value).is_some(),
            Self::Int4 => integer::<i32>(value).is_some(),
            Self::Int8 => integer::<i64>(value).is_some(),
            Self::Oid => oid(value).is_some(),
            Self::Float4 => float4(value).is_some(),
            Self::Float8 => float8(value).is_some(),
            Self::Numeric => numeric::fits(value),
            Self::Text => match value {
                Value::Text(text) => !has_nul(text),
                Value::Integer(_) | Value::Unsigned(_) | Value::Real(_) | Value::Timestamp(_) => true,
                _ => false,
            },
            Self::Json | Self::Jsonb => match value {
                Value::Text(text) => !has_nul(text),
                Value::Integer(_) | Value::Unsigned(_) => true,
                // JSON has no words for the others.
                Value::Real(real) => real.is_finite(),
                _ => false,
            },
            Self::Bytea => matches!(value, Value::Blob(_)),
            Self::Uuid => uuid(value).is_some(),
            Self::Date => text(value).and_then(moment::date).is_some(),
            Self::Time => text(value).and_then(moment::time).is_some(),
            Self::Timestamp => moment_of(value, moment::timestamp).is_some(),
            Self::Timestamptz => moment_of(value, moment::timestamptz).is_some(),
        }
    }

    /// Writes the value's binary form, without its length; `None` if it does not fit.
    #[inline]
    pub(super) fn payload(self, value: &Value, out: &mut BytesMut) -> Option<()> {
        match self {
            Self::Bool => out.put_u8(u8::from(boolean(value)?)),
            Self::Int2 => out.put_i16(integer(value)?),
            Self::Int4 => out.put_i32(integer(value)?),
            Self::Int8 => out.put_i64(integer(value)?),
            Self::Oid => out.put_u32(oid(value)?),
            Self::Float4 => out.put_f32(float4(value)?),
            Self::Float8 => out.put_f64(float8(value)?),
            Self::Numeric => numeric::write(value, out)?,
            Self::Text => words(value, out)?,
            Self::Json => json(value, out)?,
            Self::Jsonb => {
                out.put_u8(JSONB_VERSION);
                json(value, out)?;
            }
            Self::Bytea => match value {
                Value::Blob(bytes) => out.put_slice(bytes),
                _ => return None,
            },
            Self::Uuid => out.put_slice(&uuid(value)?),
            Self::Date => out.put_i32(moment::date(text(value)?)?),
            Self::Time => out.put_i64(moment::time(text(value)?)?),
            Self::Timestamp => out.put_i64(moment_of(value, moment::timestamp)?),
            Self::Timestamptz => out.put_i64(moment_of(value, moment::timestamptz)?),
        }
        Some(())
    }

    /// Writes the value with its length before it, as arrays hold it; `None`, with rubbish written, if it does not fit.
    #[inline]
    pub(super) fn field(self, value: &Value, out: &mut BytesMut) -> Option<()> {
        if matches!(value, Value::Null) {
            out.put_i32(-1);
            return Some(());
        }
        let start = out.len();
        out.put_i32(0);
        self.payload(value, out)?;
        let length = i32::try_from(out.len() - start - size_of::<i32>()).ok()?;
        out[start..start + size_of::<i32>()].copy_from_slice(&length.to_be_bytes());
        Some(())
    }

    /// Writes a value that fits, and is no text, as the server reads it in text.
    pub(super) fn spell(self, value: &Value, out: &mut BytesMut) {
        match (self, value) {
            (Self::Int2 | Self::Int4 | Self::Int8 | Self::Oid, _) => {
                if let Some(integer) = integer::<i64>(value) {
                    literal::integer(integer, out);
                }
            }
            (Self::Float4, Value::Real(_)) => {
                if let Some(real) = float4(value) {
                    literal::real(real, out);
                }
            }
            (_, Value::Integer(integer)) => literal::integer(*integer, out),
            (_, Value::Unsigned(integer)) => literal::unsigned(*integer, out),
            (_, Value::Timestamp(moment)) => literal::moment(*moment, out),
            (_, Value::Real(real)) => literal::real(*real, out),
            (Self::Uuid, Value::Blob(bytes)) => literal::hex(bytes, out),
            (_, Value::Blob(bytes)) => {
                out.put_slice(b"\\x");
                literal::hex(bytes, out);
            }
            (_, Value::Null | Value::Text(_) | Value::Array(_)) => {}
        }
    }
}

/// No text of PostgreSQL's holds it.
pub(super) fn has_nul(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

fn text(value: &Value) -> Option<&str> {
    value.as_text()
}

/// Microseconds from the year 2000.
fn moment_of(value: &Value, read: fn(&str) -> Option<i64>) -> Option<i64> {
    match value {
        Value::Timestamp(moment) => moment::microseconds(*moment),
        _ => read(text(value)?),
    }
}

fn words(value: &Value, out: &mut BytesMut) -> Option<()> {
    match value {
        Value::Text(text) if !has_nul(text) => out.put_slice(text.as_bytes()),
        Value::Integer(integer) => literal::integer(*integer, out),
        Value::Unsigned(integer) => literal::unsigned(*integer, out),
        Value::Timestamp(moment) => literal::moment(*moment, out),
        Value::Real(real) => literal::real(*real, out),
        _ => return None,
    }
    Some(())
}

fn json(value: &Value, out: &mut BytesMut) -> Option<()> {
    match value {
        Value::Real(real) if !real.is_finite() => None,
        Value::Timestamp(_) => None,
        _ => words(value, out),
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Integer(0) => Some(false),
        Value::Integer(1) => Some(true),
        Value::Text(text) => match text.as_str() {
            "f" | "false" | "0" => Some(false),
            "t" | "true" | "1" => Some(true),
            _ => None,
        },
        _ => None,
    }
}

/// Texts are read by Rust's rules, all of which are PostgreSQL's too: a sign or none, then decimal digits.
#[inline]
fn integer<T: TryFrom<i64> + FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::Integer(integer) => T::try_from(*integer).ok(),
        Value::Unsigned(integer) => T::try_from(i64::try_from(*integer).ok()?).ok(),
        Value::Real(real) => T::try_from(whole(*real)?).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// As [`integer`], but for texts that begin with a zero: to servers from version 16 on those are octal.
fn oid(value: &Value) -> Option<u32> {
    let is_octal = |text: &str| {
        let digits = text.strip_prefix('+').unwrap_or(text);
        digits.len() > 1 && digits.starts_with('0')
    };
    integer(value).filter(|_| !value.as_text().is_some_and(is_octal))
}

fn whole(real: f64) -> Option<i64> {
    /// The first float past the largest integer; its negative is the smallest integer.
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[allow(clippy::cast_possible_truncation, reason = "checked: whole, and within the range")]
    let integer = real as i64;
    (real.fract() == 0.0 && (-END..END).contains(&real)).then_some(integer)
}

fn float8(value: &Value) -> Option<f64> {
    match value {
        Value::Real(real) => Some(*real),
        Value::Integer(integer) => {
            let real = *integer as f64;
            (real as i128 == i128::from(*integer)).then_some(real)
        }
        Value::Unsigned(integer) => {
            let real = *integer as f64;
            (real as i128 == i128::from(*integer)).then_some(real)
        }
        Value::Text(text) => plain_number(text)?
            .parse()
            .ok()
            .filter(|real: &f64| real.is_finite() && (*real != 0.0 || is_zero(text))),
        _ => None,
    }
}

fn float4(value: &Value) -> Option<f32> {
    match value {
        Value::Real(real) => {
            let single = *real as f32;
            // As the server's own cast: what overflows or vanishes is an error.
            let lost = (single.is_infinite() && real.is_finite()) || (single == 0.0 && *real != 0.0);
            (!lost).then_some(single)
        }
        Value::Integer(integer) => {
            let single = *integer as f32;
            (single as i128 == i128::from(*integer)).then_some(single)
        }
        Value::Unsigned(integer) => {
            let single = *integer as f32;
            (single as i128 == i128::from(*integer)).then_some(single)
        }
        Value::Text(text) => plain_number(text)?
            .parse()
            .ok()
            .filter(|single: &f32| single.is_finite() && (*single != 0.0 || is_zero(text))),
        _ => None,
    }
}

/// The text, if all of it is digits and their marks: words such as `inf` are left to the server.
fn plain_number(text: &str) -> Option<&str> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'))
        .then_some(text)
}

/// Whether a number is zero as it is written, not for being too small.
fn is_zero(number: &str) -> bool {
    number
        .bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .all(|byte| !matches!(byte, b'1'..=b'9'))
}

fn uuid(value: &Value) -> Option<[u8; 16]> {
    match value {
        Value::Blob(bytes) => bytes.as_slice().try_into().ok(),
        Value::Text(text) => uuid_of(text.as_bytes()),
        _ => None,
    }
}

/// 32 hexadecimal digits, bare or with the usual hyphens.
fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let hyphened = match text.len() {
        36 if HYPHENS.iter().all(|&at| text[at] == b'-') => true,
        32 => false,
        _ => return None,
    };
    let mut uuid = [0; 16];
    let mut at = 0;
    for byte in &mut uuid {
        if hyphened && HYPHENS.contains(&at) {
            at += 1;
        }
        *byte = hex_digit(text[at])? << 4 | hex_digit(text[at + 1])?;
        at += 2;
    }
    Some(uuid)
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
