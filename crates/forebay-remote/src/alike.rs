//! Alike: values as they are compared to guess which rows of a batch would conflict.
//!
//! Promises: equal here is equal on every database. The reverse does not hold (collations, numbers of other types), so that it is
//! good for a hint only.

use std::time::SystemTime;

use forebay_write::Value;

/// A value that can be looked up. NULL is like nothing, so it is none.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Alike<'a> {
    /// An integer.
    Integer(i64),
    /// An integer that may be above `i64::MAX`.
    Unsigned(u64),
    /// The bits of a float.
    Real(u64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
    /// A moment.
    Timestamp(SystemTime),
    /// A list.
    Array(Vec<Option<Self>>),
}

impl<'a> Alike<'a> {
    /// Of a value; none if it is NULL.
    pub fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Integer(integer) => Self::Integer(*integer),
            Value::Unsigned(integer) => Self::Unsigned(*integer),
            Value::Timestamp(moment) => Self::Timestamp(*moment),
            Value::Real(real) => Self::Real(real.to_bits()),
            Value::Text(text) => Self::Text(text),
            Value::Blob(bytes) => Self::Blob(bytes),
            Value::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
        })
    }

    /// Of these of the values, by their numbers from 0; none if one of them is NULL.
    pub fn key(values: &'a [Value], numbers: &[usize]) -> Option<Vec<Self>> {
        numbers.iter().map(|&number| Self::of(values.get(number)?)).collect()
    }
}
