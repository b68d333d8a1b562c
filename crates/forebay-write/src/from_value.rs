//! What of Rust's types a value can be taken as: `TryFrom<Value>`.
//!
//! Promises: what does not fit is an error, never a guess: digits in a text are text, a float is no integer, and a number that the
//! type does not hold is an error. What `into_value` makes of a value is taken as that again, also after a database had it.
//! Types of other crates are beside this, one file a crate.

use std::sync::Arc;
use std::time::SystemTime;

use crate::moment;
use crate::rows::real::{exact, narrow};
use crate::{ReadError, Value};

/// It is not what was asked for.
pub(crate) fn misfit(wanted: &str, value: &Value) -> ReadError {
    ReadError::Row {
        cause: format!("{wanted} is asked for, and there is {}", kind(value)),
    }
}

/// What a message calls a value; texts, bytes and lists may be long or secret and are not shown.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "NULL: ask for an Option".to_owned(),
        Value::Integer(integer) => format!("the integer {integer}"),
        Value::Unsigned(integer) => format!("the integer {integer}"),
        Value::Real(real) => format!("the real number {real:?}"),
        Value::Text(_) => "text".to_owned(),
        Value::Blob(bytes) => format!("a blob of {} bytes", bytes.len()),
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Timestamp(_) => "a moment".to_owned(),
    }
}

/// The type and an `Option` of it, NULL being `None`.
macro_rules! taken {
    ($($kind:ty, $wanted:literal: $($pattern:pat $(if $condition:expr)? => $taken:expr),+;)*) => {$(
        impl TryFrom<$crate::Value> for $kind {
            type Error = $crate::ReadError;

            fn try_from(value: $crate::Value) -> Result<Self, $crate::ReadError> {
                let taken: Option<Self> = match &value {
                    $($pattern $(if $condition)? => $taken,)+
                    _ => None,
                };
                taken.ok_or_else(|| $crate::from_value::misfit($wanted, &value))
            }
        }

        impl TryFrom<$crate::Value> for Option<$kind> {
            type Error = $crate::ReadError;

            fn try_from(value: $crate::Value) -> Result<Self, $crate::ReadError> {
                match value {
                    $crate::Value::Null => Ok(None),
                    value => value.try_into().map(Some),
                }
            }
        }
    )*};
}
#[cfg(any(feature = "chrono", feature = "jiff", feature = "serde_json", feature = "uuid"))]
pub(crate) use taken;

macro_rules! integers {
    ($($kind:ident),*) => {
        taken! {$(
            $kind, "an integer of this size": Value::Integer(integer) => (*integer).try_into().ok(),
                Value::Unsigned(integer) => (*integer).try_into().ok();
        )*}
    };
}
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

taken! {
    bool, "0 or 1": Value::Integer(0) => Some(false), Value::Integer(1) => Some(true);
    f64, "a real number": Value::Real(real) => Some(*real), Value::Integer(integer) => exact(*integer),
        Value::Unsigned(integer) => exact(*integer);
    f32, "a real number of this size": Value::Real(real) => narrow(*real),
        Value::Integer(integer) => exact(*integer).and_then(narrow),
        Value::Unsigned(integer) => exact(*integer).and_then(narrow);
    String, "text": Value::Text(text) => Some(text.clone());
    Box<str>, "text": Value::Text(text) => Some(text.as_str().into());
    Arc<str>, "text": Value::Text(text) => Some(text.as_str().into());
    char, "text of one character": Value::Text(text) => only(text);
    Vec<u8>, "a blob": Value::Blob(bytes) => Some(bytes.clone());
    SystemTime, "a moment": Value::Text(text) => moment::parse(text), Value::Timestamp(moment) => Some(*moment);
}

impl<const N: usize> TryFrom<Value> for [u8; N] {
    type Error = ReadError;

    fn try_from(value: Value) -> Result<Self, ReadError> {
        match &value {
            Value::Blob(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        }
        .ok_or_else(|| misfit(&format!("a blob of {N} bytes"), &value))
    }
}

macro_rules! lists {
    ($($kind:ty),*) => {$(
        impl TryFrom<Value> for Vec<$kind> {
            type Error = ReadError;

            fn try_from(value: Value) -> Result<Self, ReadError> {
                match value {
                    Value::Array(values) => values.into_iter().map(TryInto::try_into).collect(),
                    value => Err(misfit("a list", &value)),
                }
            }
        }
    )*};
}
lists!(
    i16,
    i32,
    i64,
    f32,
    f64,
    bool,
    String,
    Vec<u8>,
    Option<i64>,
    Option<f64>,
    Option<String>
);

fn only(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.as_str().is_empty())
}
