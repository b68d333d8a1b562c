//! Values out of rows, which the server sends in binary.
//!
//! Promises: every type that [`returnable`] agrees to is read exactly; what has no kind of value of its own is the text that
//! the server would print under its default settings, except moments (timestamptz), which are RFC 3339 in UTC whatever the
//! session's zone. Lost: the lower bounds of arrays that do not begin at 1. A domain's values are its base type's.

use postgres_types::{Kind, Type};

use super::kind::{base_of, is_text, member_of, name_of};
use super::{moment, network, numeric};
use forebay_write::{StatementError, StatementErrorKind, Value};

/// The server's own limit of an array's dimensions.
const DIMENSIONS_MAX: i32 = 6;

/// Whether [`value`] reads columns of that type.
pub(crate) fn returnable(column: &Type) -> bool {
    let base = base_of(column);
    match member_of(base) {
        Some(member) => readable(base_of(member)),
        None => readable(base),
    }
}

fn readable(base: &Type) -> bool {
    is_text(base)
        || matches!(
            *base,
            Type::BOOL
                | Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::OID
                | Type::XID
                | Type::CID
                | Type::FLOAT4
                | Type::FLOAT8
                | Type::NUMERIC
                | Type::BYTEA
                | Type::UUID
                | Type::JSON
                | Type::JSONB
                | Type::DATE
                | Type::TIME
                | Type::TIMETZ
                | Type::TIMESTAMP
                | Type::TIMESTAMPTZ
                | Type::INTERVAL
                | Type::INET
                | Type::CIDR
                | Type::MACADDR
                | Type::MACADDR8
                | Type::CHAR
                | Type::BIT
                | Type::VARBIT
                | Type::PG_LSN
                | Type::VOID
        )
}

/// Why a statement that would return such a column is not run.
pub(crate) fn unreturnable(name: &str, column: &Type) -> StatementError {
    let message = format!(
        "the column \"{name}\" is of type {}, whose values cannot be returned here: cast it to text",
        name_of(column)
    );
    StatementError::new(StatementErrorKind::Type, 0, message)
}

/// The values of a row: of each column its type and what came, none for NULL.
///
/// # Errors
/// When a column is not [`returnable`], or holds text that is not UTF-8, which a database without an encoding (SQL_ASCII)
/// may. The row has been made by then: whoever wants no effect must roll back.
pub(crate) fn row<'r>(
    columns: impl Iterator<Item = (&'r Type, Option<&'r [u8]>)>,
) -> Result<Vec<Value>, StatementError> {
    columns
        .enumerate()
        .map(|(index, (column, raw))| value(index, column, raw))
        .collect()
}

/// One value of a row.
fn value(index: usize, column: &Type, raw: Option<&[u8]>) -> Result<Value, StatementError> {
    let Some(raw) = raw else { return Ok(Value::Null) };
    decode(column, raw).map_err(|cause| {
        let message = format!("column {} of a returned row: {cause}", index + 1);
        StatementError::new(StatementErrorKind::Type, 0, message)
    })
}

/// Why a value was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is of type {0}, whose values cannot be returned here: cast it to text")]
    Type(String),
    #[error("a text is not UTF-8: cast it to bytea")]
    NotUtf8,
    #[error("what the server sent is no value of type {0}")]
    Malformed(String),
}

/// The value of a binary form.
pub(super) fn decode(column: &Type, raw: &[u8]) -> Result<Value, Unreadable> {
    let base = base_of(column);
    match member_of(base) {
        Some(member) => array(member, raw),
        None => single(base, raw),
    }
}

fn single(base: &Type, raw: &[u8]) -> Result<Value, Unreadable> {
    if is_text(base) {
        return text(raw);
    }
    let read = match *base {
        Type::BOOL => fixed(raw).map(|[byte]| Value::Integer(i64::from(byte != 0))),
        Type::INT2 => fixed(raw).map(|bytes| Value::from(i16::from_be_bytes(bytes))),
        Type::INT4 => fixed(raw).map(|bytes| Value::from(i32::from_be_bytes(bytes))),
        Type::INT8 => fixed(raw).map(|bytes| Value::from(i64::from_be_bytes(bytes))),
        Type::OID | Type::XID | Type::CID => fixed(raw).map(|bytes| Value::from(u32::from_be_bytes(bytes))),
        Type::FLOAT4 => fixed(raw).map(|bytes| Value::from(f32::from_be_bytes(bytes))),
        Type::FLOAT8 => fixed(raw).map(|bytes| Value::from(f64::from_be_bytes(bytes))),
        Type::NUMERIC => numeric::read(raw).map(Value::Text),
        Type::BYTEA => Some(Value::Blob(raw.to_vec())),
        Type::UUID => fixed(raw).map(|bytes| Value::Text(uuid(bytes))),
        Type::JSON => return text(raw),
        Type::JSONB => match raw.split_first() {
            Some((1, json)) => return text(json),
            _ => None,
        },
        Type::DATE => fixed(raw).map(|bytes| Value::Text(moment::print_date(i32::from_be_bytes(bytes)))),
        Type::TIME => fixed(raw).map(|bytes| Value::Text(moment::print_time(i64::from_be_bytes(bytes)))),
        Type::TIMETZ => timetz(raw).map(Value::Text),
        Type::TIMESTAMP => fixed(raw).map(|bytes| Value::Text(moment::print_timestamp(i64::from_be_bytes(bytes)))),
        Type::TIMESTAMPTZ => fixed(raw).map(|bytes| Value::Text(moment::print_timestamptz(i64::from_be_bytes(bytes)))),
        Type::INTERVAL => interval(raw).map(Value::Text),
        Type::INET => network::read_address(raw, false).map(Value::Text),
        Type::CIDR => network::read_address(raw, true).map(Value::Text),
        Type::MACADDR | Type::MACADDR8 => Some(Value::Text(network::read_hardware(raw))),
        Type::CHAR => fixed(raw).map(|[byte]| Value::Text(single_character(byte))),
        Type::BIT | Type::VARBIT => bits(raw).map(Value::Text),
        Type::PG_LSN => fixed(raw).map(|[a, b, c, d, e, f, g, h]| {
            let (high, low) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            Value::Text(format!("{high:X}/{low:X}"))
        }),
        Type::VOID => Some(Value::Null),
        _ => return Err(Unreadable::Type(name_of(base))),
    };
    read.ok_or_else(|| Unreadable::Malformed(name_of(base)))
}

fn fixed<const N: usize>(raw: &[u8]) -> Option<[u8; N]> {
    raw.try_into().ok()
}

fn text(raw: &[u8]) -> Result<Value, Unreadable> {
    std::str::from_utf8(raw)
        .map(Value::from)
        .map_err(|_| Unreadable::NotUtf8)
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).expect("four bits"));
        }
    }
    text
}

fn timetz(raw: &[u8]) -> Option<String> {
    let (time, west) = raw.split_first_chunk()?;
    Some(moment::print_timetz(
        i64::from_be_bytes(*time),
        i32::from_be_bytes(fixed(west)?),
    ))
}

fn interval(raw: &[u8]) -> Option<String> {
    let (microseconds, rest) = raw.split_first_chunk()?;
    let (days, months) = rest.split_first_chunk()?;
    Some(moment::print_interval(
        i32::from_be_bytes(fixed(months)?),
        i32::from_be_bytes(*days),
        i64::from_be_bytes(*microseconds),
    ))
}

/// `"char"`, one byte: as PostgreSQL 16 and later print those that are no ASCII, which is text whatever the encoding.
fn single_character(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..128 => char::from(byte).to_string(),
        128.. => format!("\\{byte:03o}"),
    }
}

fn bits(raw: &[u8]) -> Option<String> {
    let (count, bytes) = raw.split_first_chunk()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    if bytes.len() != count.div_ceil(8) {
        return None;
    }
    let bit = |index: usize| {
        if bytes[index / 8] << (index % 8) & 0x80 == 0 {
            '0'
        } else {
            '1'
        }
    };
    Some((0..count).map(bit).collect())
}

fn array(member: &Type, raw: &[u8]) -> Result<Value, Unreadable> {
    let malformed = || Unreadable::Malformed(format!("{}[]", name_of(member)));
    let mut rest = raw;
    let dimensions = word(&mut rest).ok_or_else(malformed)?;
    // Whether there are NULLs, and the elements' type, which the column's type told.
    word(&mut rest).ok_or_else(malformed)?;
    word(&mut rest).ok_or_else(malformed)?;
    if !(0..=DIMENSIONS_MAX).contains(&dimensions) {
        return Err(malformed());
    }
    let mut lengths = Vec::with_capacity(DIMENSIONS_MAX.unsigned_abs() as usize);
    for _ in 0..dimensions {
        // None is 0, which would be an array of no dimensions: so every list ends in elements, and is no longer than the bytes.
        let length = word(&mut rest).and_then(|length| usize::try_from(length).ok());
        lengths.push(length.filter(|length| *length > 0).ok_or_else(malformed)?);
        // The lower bound.
        word(&mut rest).ok_or_else(malformed)?;
    }
    let values = match lengths.split_first() {
        Some((length, inner)) => list(member, *length, inner, &mut rest)?,
        None => Vec::new(),
    };
    if rest.is_empty() {
        Ok(Value::Array(values))
    } else {
        Err(malformed())
    }
}

fn list(member: &Type, length: usize, inner: &[usize], rest: &mut &[u8]) -> Result<Vec<Value>, Unreadable> {
    // Every element takes four bytes at least: what the server says of the length is not believed beyond that.
    let mut values = Vec::with_capacity(length.min(rest.len() / size_of::<i32>()));
    for _ in 0..length {
        values.push(match inner.split_first() {
            Some((length, inner)) => Value::Array(list(member, *length, inner, rest)?),
            None => element(member, rest)?,
        });
    }
    Ok(values)
}

fn element(member: &Type, rest: &mut &[u8]) -> Result<Value, Unreadable> {
    let malformed = || Unreadable::Malformed(name_of(member));
    match word(rest).ok_or_else(malformed)? {
        -1 => Ok(Value::Null),
        length => {
            let length = usize::try_from(length).map_err(|_| malformed())?;
            let (raw, after) = rest.split_at_checked(length).ok_or_else(malformed)?;
            *rest = after;
            match member.kind() {
                // A domain over an array, in an array.
                Kind::Domain(_) => decode(member, raw),
                _ => single(member, raw),
            }
        }
    }
}

fn word(rest: &mut &[u8]) -> Option<i32> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(i32::from_be_bytes(*word))
}
