//! Values that go into the Writer and come out of it: what a parameter may be, and what a RETURNING row holds.
//!
//! The five storage classes of SQLite, which every SQL database can map its own types onto, and lists of them. Nothing here
//! knows a dialect.

use std::borrow::Cow;
use std::sync::Arc;

/// One value of a parameter or of a returned row.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// A 64-bit signed integer; booleans are 0 and 1.
    Integer(i64),
    /// A 64-bit float.
    Real(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A list, for databases that have arrays; of lists, if it has several dimensions.
    Array(Vec<Value>),
}

impl Value {
    /// The bytes that this value holds on the heap; what a batch's weight is counted in.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Array(values) => values.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum(),
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
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

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::Integer(i64::from(value))
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, bool);

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::Real(f64::from(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(value: Cow<'_, str>) -> Self {
        Self::Text(value.into_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Blob(value.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    /// A list.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

macro_rules! lists {
    ($($kind:ty),*) => {$(
        impl From<Vec<$kind>> for Value {
            fn from(values: Vec<$kind>) -> Self {
                values.into_iter().collect()
            }
        }
    )*};
}
// Not u8: its vectors are bytes.
lists!(
    i16,
    i32,
    i64,
    bool,
    f32,
    f64,
    &str,
    String,
    Vec<u8>,
    Option<i32>,
    Option<i64>,
    Option<f64>,
    Option<String>
);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of one statement, in the order of their numbers: `?1` and `$1` are the first. A clone shares them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters(Arc<[Value]>);

impl Parameters {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values, first parameter first.
    pub fn values(&self) -> &[Value] {
        &self.0
    }
}

impl From<()> for Parameters {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Vec<Value>> for Parameters {
    fn from(values: Vec<Value>) -> Self {
        Self(values.into())
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Parameters {
    fn from(values: [T; N]) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Into<Value>),+> From<($($name,)+)> for Parameters {
            #[allow(non_snake_case, reason = "the type parameters name the fields")]
            fn from(($($name,)+): ($($name,)+)) -> Self {
                Self(Arc::new([$($name.into()),+]))
            }
        }
    };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D F);
tuples!(A B C D F G);
tuples!(A B C D F G H);
tuples!(A B C D F G H I);
tuples!(A B C D F G H I J);
tuples!(A B C D F G H I J K);
tuples!(A B C D F G H I J K L);
tuples!(A B C D F G H I J K L M);
