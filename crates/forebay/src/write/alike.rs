//! Alike: values as they are compared to guess which rows of a batch would be in each other's way.
//!
//! Promises: equal here is equal on every database. The reverse does not hold (collations, numbers of other types), so that it is
//! good for a hint only.

use super::Value;

/// A value that can be looked up. NULL is like nothing, so it is none.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alike<'a> {
    Integer(i64),
    Real(u64),
    Text(&'a str),
    Blob(&'a [u8]),
    Array(Vec<Option<Self>>),
}

impl<'a> Alike<'a> {
    pub(crate) fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Integer(integer) => Self::Integer(*integer),
            Value::Real(real) => Self::Real(real.to_bits()),
            Value::Text(text) => Self::Text(text),
            Value::Blob(bytes) => Self::Blob(bytes),
            Value::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
        })
    }

    /// Of the values in these places; none if one of them is NULL.
    pub(crate) fn key(values: &'a [Value], places: &[usize]) -> Option<Vec<Self>> {
        places.iter().map(|&place| Self::of(values.get(place)?)).collect()
    }
}
