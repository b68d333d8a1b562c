//! Values that go into the Writer and come out of it: what a parameter may be, and what a RETURNING row holds.
//!
//! The five storage classes of SQLite, which every SQL database can map its own types onto, lists of them, and what is written
//! otherwise on every database: moments, and integers that are too large for one of them. Nothing here knows a dialect, nor which
//! of Rust's types become which value: `into_value` and `from_value` do.

use std::time::SystemTime;

/// One value of a parameter or of a returned row.
///
/// ```
/// use forebay::write::Value;
///
/// assert_eq!(Value::from(5), Value::Integer(5));
/// assert_eq!(Value::from(None::<&str>), Value::Null);
/// let name: String = Value::from("Ada").try_into()?;
/// assert_eq!(name, "Ada");
/// # Ok::<_, forebay::write::ReadError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// A 64-bit signed integer; booleans are 0 and 1.
    Integer(i64),
    /// An integer above [`i64::MAX`], on databases that have such; elsewhere the statement's error. Smaller ones are
    /// [`Integer`](Self::Integer).
    Unsigned(u64),
    /// A 64-bit float.
    Real(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A list, for databases that have arrays; of lists, if it has several dimensions.
    Array(Vec<Value>),
    /// A moment, as a parameter only: rows have the database's text of it. PostgreSQL and MariaDB keep its microseconds, and what is
    /// finer is cut off; SQLite keeps the text of all of it, `2026-11-28 01:30:00.5+00:00`.
    Timestamp(SystemTime),
}

impl Value {
    /// The bytes that this value holds on the heap; what a batch's weight is counted in.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Array(values) => values.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum(),
            Self::Null | Self::Integer(_) | Self::Unsigned(_) | Self::Real(_) | Self::Timestamp(_) => 0,
        }
    }

    /// The integer, if this is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}
