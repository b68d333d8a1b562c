//! A value in its stored form, borrowed or owned. Knows no types: the same text may be a date or a number.

/// A stored value that somebody else owns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Datum<'a> {
    /// NULL, of any type.
    Null,
    /// A whole number, or a truth value.
    Integer(i64),
    /// A float.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

/// A stored value.
#[derive(Debug, Clone, PartialEq)]
pub enum Owned {
    /// NULL, of any type.
    Null,
    /// A whole number, or a truth value.
    Integer(i64),
    /// A float.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Owned {
    /// The same value, borrowed.
    pub fn as_datum(&self) -> Datum<'_> {
        match self {
            Self::Null => Datum::Null,
            Self::Integer(integer) => Datum::Integer(*integer),
            Self::Real(real) => Datum::Real(*real),
            Self::Text(text) => Datum::Text(text),
            Self::Blob(bytes) => Datum::Blob(bytes),
        }
    }
}

impl From<Datum<'_>> for Owned {
    fn from(datum: Datum<'_>) -> Self {
        match datum {
            Datum::Null => Self::Null,
            Datum::Integer(integer) => Self::Integer(integer),
            Datum::Real(real) => Self::Real(real),
            Datum::Text(text) => Self::Text(text.to_owned()),
            Datum::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl From<bool> for Owned {
    fn from(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }
}

impl From<i64> for Owned {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<f64> for Owned {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<String> for Owned {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Owned {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for Owned {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl<T: Into<Self>> From<Option<T>> for Owned {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
