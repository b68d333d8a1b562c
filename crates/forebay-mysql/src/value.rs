//! Values in and out of the binary protocol.
//!
//! Promises: a value is never changed to fit: what [`Value`] cannot hold exactly is text, as the server itself would write it.
//! Knows types of columns; knows no table.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::SystemTime;

use bytes::{BufMut, BytesMut};

use super::error::found_here;
use forebay_mysql_link::{Column, ColumnFlags, ColumnType, Malformed, Parameter, put_length_encoded};
use forebay_write::moment::Utc;
use forebay_write::{StatementErrorKind as Kind, Value, WriteError};

/// The character set that says "these are bytes".
const BINARY: u16 = 63;
/// What a header and a length take, of a parameter, at most.
const OVERHEAD: usize = 2 + 9;
/// More digits than a second can have: as many as there are.
const DIGITS: u8 = 6;

/// Those that a date can be of.
const YEARS: RangeInclusive<i64> = 1..=9999;

/// Whether a parameter can be sent; `number` counts from 1.
pub(super) fn check(value: &Value, number: usize) -> Result<(), WriteError> {
    match value {
        Value::Null | Value::Integer(_) | Value::Unsigned(_) | Value::Text(_) | Value::Blob(_) => Ok(()),
        Value::Timestamp(moment) => {
            let year = Utc::of(*moment).year;
            if YEARS.contains(&year) {
                return Ok(());
            }
            Err(found_here(
                Kind::Type,
                format!("parameter {number} is a moment of the year {year}, and the database has {YEARS:?}"),
            ))
        }
        Value::Real(real) if real.is_finite() => Ok(()),
        Value::Real(real) => Err(found_here(
            Kind::Type,
            format!("parameter {number} is {real}, and the database has only finite numbers"),
        )),
        Value::Array(_) => Err(found_here(
            Kind::Type,
            format!("parameter {number} is a list, and the database has no arrays: give it as JSON text"),
        )),
    }
}

/// Writes a parameter that was [checked](check) as it is sent.
pub(super) fn encode(value: &Value, bytes: &mut BytesMut) -> Parameter {
    match value {
        Value::Null | Value::Array(_) => Parameter::Null,
        Value::Integer(integer) => {
            bytes.put_i64_le(*integer);
            Parameter::Of(ColumnType::MYSQL_TYPE_LONGLONG, false)
        }
        Value::Unsigned(integer) => {
            bytes.put_u64_le(*integer);
            Parameter::Of(ColumnType::MYSQL_TYPE_LONGLONG, true)
        }
        Value::Timestamp(moment) => match moment_bytes(*moment) {
            Some(moment) => {
                bytes.put_slice(&moment);
                Parameter::Of(ColumnType::MYSQL_TYPE_DATETIME, false)
            }
            None => Parameter::Null,
        },
        Value::Real(real) => {
            bytes.put_f64_le(*real);
            Parameter::Of(ColumnType::MYSQL_TYPE_DOUBLE, false)
        }
        Value::Text(text) => {
            put_length_encoded(bytes, text.as_bytes());
            Parameter::Of(ColumnType::MYSQL_TYPE_VAR_STRING, false)
        }
        Value::Blob(blob) => {
            put_length_encoded(bytes, blob);
            Parameter::Of(ColumnType::MYSQL_TYPE_VAR_STRING, false)
        }
    }
}

/// The clock that the session has, which is UTC's, with its length; none if it was not [checked](check).
fn moment_bytes(moment: SystemTime) -> Option<[u8; 12]> {
    let utc = Utc::of(moment);
    let [y, ear] = u16::try_from(utc.year).ok()?.to_le_bytes();
    let [m, i, cr, o] = utc.microsecond().to_le_bytes();
    Some([
        11, y, ear, utc.month, utc.day, utc.hour, utc.minute, utc.second, m, i, cr, o,
    ])
}

/// The most bytes that these take in a packet.
pub(super) fn packet_bytes(values: &[Value]) -> usize {
    values.iter().map(|value| OVERHEAD + value.heap_bytes()).sum::<usize>()
}

/// A value of a row of a prepared statement.
pub(super) fn value(bytes: Option<&[u8]>, column: &Column) -> Result<Value, Malformed> {
    use ColumnType as T;
    let Some(bytes) = bytes else {
        return Ok(Value::Null);
    };
    let is_unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
    Ok(match column.column_type() {
        T::MYSQL_TYPE_NULL => Value::Null,
        T::MYSQL_TYPE_TINY if is_unsigned => Value::Integer(u8::from_le_bytes(whole(bytes)?).into()),
        T::MYSQL_TYPE_TINY => Value::Integer(i8::from_le_bytes(whole(bytes)?).into()),
        T::MYSQL_TYPE_SHORT | T::MYSQL_TYPE_YEAR if is_unsigned => {
            Value::Integer(u16::from_le_bytes(whole(bytes)?).into())
        }
        T::MYSQL_TYPE_SHORT | T::MYSQL_TYPE_YEAR => Value::Integer(i16::from_le_bytes(whole(bytes)?).into()),
        T::MYSQL_TYPE_LONG | T::MYSQL_TYPE_INT24 if is_unsigned => {
            Value::Integer(u32::from_le_bytes(whole(bytes)?).into())
        }
        T::MYSQL_TYPE_LONG | T::MYSQL_TYPE_INT24 => Value::Integer(i32::from_le_bytes(whole(bytes)?).into()),
        T::MYSQL_TYPE_LONGLONG if is_unsigned => {
            let integer = u64::from_le_bytes(whole(bytes)?);
            i64::try_from(integer).map_or(Value::Unsigned(integer), Value::Integer)
        }
        T::MYSQL_TYPE_LONGLONG => Value::Integer(i64::from_le_bytes(whole(bytes)?)),
        T::MYSQL_TYPE_FLOAT => Value::Real(f32::from_le_bytes(whole(bytes)?).into()),
        T::MYSQL_TYPE_DOUBLE => Value::Real(f64::from_le_bytes(whole(bytes)?)),
        T::MYSQL_TYPE_DATE | T::MYSQL_TYPE_DATETIME | T::MYSQL_TYPE_TIMESTAMP => date(bytes, column)?,
        T::MYSQL_TYPE_TIME => time(bytes, column)?,
        _ => text(Some(bytes), column),
    })
}

/// A value of a row that was asked for in text.
pub(super) fn text(bytes: Option<&[u8]>, column: &Column) -> Value {
    let Some(bytes) = bytes else {
        return Value::Null;
    };
    if !is_text(column) {
        return Value::Blob(bytes.to_vec());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Blob(bytes.to_vec()),
    }
}

fn whole<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed)
}

/// So many bytes, and zeros where the server has left them out.
fn padded<const N: usize>(bytes: &[u8], lengths: &[usize]) -> Result<[u8; N], Malformed> {
    if !lengths.contains(&bytes.len()) {
        return Err(Malformed);
    }
    let mut all = [0; N];
    all[..bytes.len()].copy_from_slice(bytes);
    Ok(all)
}

fn date(bytes: &[u8], column: &Column) -> Result<Value, Malformed> {
    let [y, ear, month, day, hour, minute, second, micros @ ..] = padded::<11>(bytes, &[0, 4, 7, 11])?;
    let year = u16::from_le_bytes([y, ear]);
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if column.column_type() != ColumnType::MYSQL_TYPE_DATE {
        // Writing into a String never fails.
        let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
        push_fraction(&mut text, u32::from_le_bytes(micros), column.decimals());
    }
    Ok(Value::Text(text))
}

fn time(bytes: &[u8], column: &Column) -> Result<Value, Malformed> {
    let [is_negative, d, a, y, s, hours, minutes, seconds, micros @ ..] = padded::<12>(bytes, &[0, 8, 12])?;
    let hours = u64::from(u32::from_le_bytes([d, a, y, s])) * 24 + u64::from(hours);
    let sign = if is_negative == 1 { "-" } else { "" };
    let mut text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    push_fraction(&mut text, u32::from_le_bytes(micros), column.decimals());
    Ok(Value::Text(text))
}

/// As many digits as the column has.
fn push_fraction(text: &mut String, micros: u32, decimals: u8) {
    let digits = match decimals {
        0..=DIGITS => decimals,
        _ if micros == 0 => 0,
        _ => DIGITS,
    };
    if digits > 0 {
        let fraction = format!("{micros:06}");
        text.push('.');
        text.push_str(&fraction[..usize::from(digits)]);
    }
}

/// Whether the bytes of such a column are text, in the connection's character set, which is UTF-8.
fn is_text(column: &Column) -> bool {
    match column.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL | ColumnType::MYSQL_TYPE_JSON => true,
        ColumnType::MYSQL_TYPE_BIT | ColumnType::MYSQL_TYPE_GEOMETRY => false,
        _ => column.character_set() != BINARY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnType, decimals: u8) -> Column {
        Column::new(kind).with_decimals(decimals).with_character_set(BINARY)
    }

    fn of(bytes: &[u8], kind: ColumnType, decimals: u8) -> Value {
        value(Some(bytes), &column(kind, decimals)).unwrap()
    }

    #[test]
    fn times_are_written_as_the_server_writes_them() {
        let [a, b, c, d] = 45_600_u32.to_le_bytes();
        let at = [0xe8, 0x07, 2, 29, 1, 2, 3, a, b, c, d];
        for (kind, decimals, expected) in [
            (ColumnType::MYSQL_TYPE_DATE, 0, "2024-02-29"),
            (ColumnType::MYSQL_TYPE_DATETIME, 0, "2024-02-29 01:02:03"),
            (ColumnType::MYSQL_TYPE_DATETIME, 3, "2024-02-29 01:02:03.045"),
            (ColumnType::MYSQL_TYPE_TIMESTAMP, 6, "2024-02-29 01:02:03.045600"),
            (ColumnType::MYSQL_TYPE_TIMESTAMP, 39, "2024-02-29 01:02:03.045600"),
        ] {
            assert_eq!(of(&at, kind, decimals), Value::Text(expected.to_owned()));
        }
        for (bytes, expected) in [
            (&at[..7], "2024-02-29 01:02:03.000"),
            (&at[..4], "2024-02-29 00:00:00.000"),
            (&at[..0], "0000-00-00 00:00:00.000"),
        ] {
            let read = of(bytes, ColumnType::MYSQL_TYPE_DATETIME, 3);
            assert_eq!(read, Value::Text(expected.to_owned()));
        }
        let time = [1, 34, 0, 0, 0, 22, 59, 59, 0, 0, 0, 0];
        for (bytes, expected) in [(&time[..], "-838:59:59"), (&time[..8], "-838:59:59"), (&[], "00:00:00")] {
            assert_eq!(
                of(bytes, ColumnType::MYSQL_TYPE_TIME, 0),
                Value::Text(expected.to_owned())
            );
        }
        for odd in [&at[..3], &at[..8]] {
            assert!(value(Some(odd), &column(ColumnType::MYSQL_TYPE_DATETIME, 0)).is_err());
            assert!(value(Some(odd), &column(ColumnType::MYSQL_TYPE_LONG, 0)).is_err());
        }
    }

    #[test]
    fn an_unsigned_integer_is_itself() {
        let unsigned = column(ColumnType::MYSQL_TYPE_LONGLONG, 0).with_flags(ColumnFlags::UNSIGNED_FLAG);
        let read = |number: u64, column: &Column| value(Some(&number.to_le_bytes()), column).unwrap();
        assert_eq!(read(5, &unsigned), Value::Integer(5));
        assert_eq!(read(u64::MAX, &unsigned), Value::Unsigned(u64::MAX));
        assert_eq!(
            read(u64::MAX, &column(ColumnType::MYSQL_TYPE_LONGLONG, 0)),
            Value::Integer(-1)
        );
    }

    #[test]
    fn what_the_database_has_not_is_refused_by_its_number() {
        for bad in [
            Value::Real(f64::NAN),
            Value::Real(f64::INFINITY),
            Value::Array(Vec::new()),
        ] {
            let error = check(&bad, 7).unwrap_err();
            assert!(error.to_string().contains("parameter 7"), "{error}");
        }
    }
}
