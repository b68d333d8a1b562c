//! Values in and out of the binary protocol.
//!
//! Promises: a value is never changed to fit: what [`Value`] cannot hold exactly is text, as the server itself would write it.
//! Knows types of columns; knows no table.

use std::fmt::Write as _;

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Value as Wire};

use super::error::found_here;
use forebay_write::{StatementErrorKind as Kind, Value, WriteError};

/// The character set that says "these are bytes".
const BINARY: u16 = 63;
/// What a header and a length take, of a parameter, at most.
const OVERHEAD: usize = 2 + 9;
/// More digits than a second can have: as many as there are.
const DIGITS: u8 = 6;

/// A parameter as it is sent; `number` counts from 1.
pub(super) fn parameter(value: &Value, number: usize) -> Result<Wire, WriteError> {
    Ok(match value {
        Value::Null => Wire::NULL,
        Value::Integer(integer) => Wire::Int(*integer),
        Value::Real(real) if real.is_finite() => Wire::Double(*real),
        Value::Real(real) => {
            return Err(found_here(
                Kind::Type,
                format!("parameter {number} is {real}, and the database has only finite numbers"),
            ));
        }
        Value::Text(text) => Wire::Bytes(text.as_bytes().to_vec()),
        Value::Blob(bytes) => Wire::Bytes(bytes.clone()),
        Value::Array(_) => {
            return Err(found_here(
                Kind::Type,
                format!("parameter {number} is a list, and the database has no arrays: give it as JSON text"),
            ));
        }
    })
}

/// The most bytes that these take in a packet.
pub(super) fn packet_bytes(values: &[Value]) -> usize {
    values.iter().map(|value| OVERHEAD + value.heap_bytes()).sum::<usize>()
}

/// A value of a row that was returned.
pub(super) fn value(wire: Wire, column: &Column) -> Value {
    match wire {
        Wire::NULL => Value::Null,
        Wire::Int(integer) => Value::Integer(integer),
        Wire::UInt(integer) => i64::try_from(integer).map_or_else(|_| Value::Text(integer.to_string()), Value::Integer),
        Wire::Float(real) => Value::Real(f64::from(real)),
        Wire::Double(real) => Value::Real(real),
        Wire::Bytes(bytes) if is_text(column) => {
            String::from_utf8(bytes).map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text)
        }
        Wire::Bytes(bytes) => Value::Blob(bytes),
        Wire::Date(year, month, day, hour, minute, second, micros) => {
            let mut text = format!("{year:04}-{month:02}-{day:02}");
            if column.column_type() != ColumnType::MYSQL_TYPE_DATE {
                // Writing into a String never fails.
                let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
                push_fraction(&mut text, micros, column.decimals());
            }
            Value::Text(text)
        }
        Wire::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let hours = days * 24 + u32::from(hours);
            let sign = if is_negative { "-" } else { "" };
            let mut text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
            push_fraction(&mut text, micros, column.decimals());
            Value::Text(text)
        }
    }
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

    #[test]
    fn times_are_written_as_the_server_writes_them() {
        let at = Wire::Date(2024, 2, 29, 1, 2, 3, 45_600);
        for (kind, decimals, expected) in [
            (ColumnType::MYSQL_TYPE_DATE, 0, "2024-02-29"),
            (ColumnType::MYSQL_TYPE_DATETIME, 0, "2024-02-29 01:02:03"),
            (ColumnType::MYSQL_TYPE_DATETIME, 3, "2024-02-29 01:02:03.045"),
            (ColumnType::MYSQL_TYPE_TIMESTAMP, 6, "2024-02-29 01:02:03.045600"),
            (ColumnType::MYSQL_TYPE_TIMESTAMP, 39, "2024-02-29 01:02:03.045600"),
        ] {
            assert_eq!(
                value(at.clone(), &column(kind, decimals)),
                Value::Text(expected.to_owned())
            );
        }
        let time = Wire::Time(true, 34, 22, 59, 59, 0);
        let expected = Value::Text("-838:59:59".to_owned());
        assert_eq!(value(time, &column(ColumnType::MYSQL_TYPE_TIME, 0)), expected);
    }

    #[test]
    fn what_does_not_fit_an_integer_is_text() {
        let column = column(ColumnType::MYSQL_TYPE_LONGLONG, 0);
        assert_eq!(value(Wire::UInt(5), &column), Value::Integer(5));
        assert_eq!(value(Wire::UInt(u64::MAX), &column), Value::Text(u64::MAX.to_string()));
    }

    #[test]
    fn what_the_database_has_not_is_refused_by_its_number() {
        for bad in [
            Value::Real(f64::NAN),
            Value::Real(f64::INFINITY),
            Value::Array(Vec::new()),
        ] {
            let error = parameter(&bad, 7).unwrap_err();
            assert!(error.to_string().contains("parameter 7"), "{error}");
        }
    }
}
