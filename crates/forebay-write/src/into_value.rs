//! What of Rust's types becomes which value.
//!
//! Promises: a value is what was given, never one near it: an integer that no database holds is an error of its statement, not
//! another integer. Types of other crates are beside this, one file a crate, each by a feature.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use crate::Value;

/// What can be one parameter of a statement, a part of a key, or a key.
///
/// Numbers, booleans, text of any kind, bytes (`Vec<u8>`, `&[u8]`, `[u8; N]`), [`SystemTime`], an `Option` (`None` is NULL), a list (a
/// vector, a slice) where the database has arrays; references to all of them. By features `jiff`, `chrono`, `uuid` and `serde_json`
/// of those crates, too. A type of your own says here which value it is, and is then a parameter and a key as well:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{IntoValue, Value, Writer};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct UserId(i64);
///
/// impl IntoValue for UserId {
///     fn into_value(self) -> Value {
///         self.0.into_value()
///     }
/// }
///
/// let database = Sqlite::open(path)?;
/// let writer = Writer::new(database.clone());
/// writer.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)", ()).await?;
/// writer.execute("INSERT INTO users VALUES (?1, ?2)", (UserId(1), "Ada")).await?;
///
/// let names = database.loader::<UserId, String>("SELECT name FROM users WHERE id = ?1");
/// assert_eq!(names.load(UserId(1)).await?.as_deref(), Some("Ada"));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be among the parameters of a statement, nor a key",
    label = "no value, and no list of parameters",
    note = "what can be: numbers, text, bytes, `SystemTime`, `Option`s and lists of them; several as a tuple of at most 12, more as a \
            `Vec<Value>`; none as `()`; a type of another crate as what it becomes: seconds of a `Duration`, text of a `u128`",
    note = "types of `jiff`, `chrono`, `uuid` and `serde_json` can be with Forebay's feature of that name",
    note = "for a type of your own write `impl IntoValue for {Self} {{ fn into_value(self) -> Value {{ self.0.into_value() }} }}`"
)]
pub trait IntoValue: Sized {
    /// The value that it is.
    fn into_value(self) -> Value;

    /// Many of them as one value: a list, but for `u8`, whose lists are bytes.
    #[doc(hidden)]
    fn list(values: Vec<Self>) -> Value {
        Value::Array(values.into_iter().map(Self::into_value).collect())
    }

    /// It as all the parameters of a statement: the only one, unless it is an array, whose elements are one each.
    #[doc(hidden)]
    fn into_values(self) -> Arc<[Value]> {
        Arc::new([self.into_value()])
    }

    /// Whether a vector of them is the parameters of a statement, and no list.
    #[doc(hidden)]
    const IS_VALUE: bool = false;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }

    const IS_VALUE: bool = true;
}

/// What becomes the same whether by `into_value` or by `into`.
macro_rules! values {
    ($($kind:ty: $value:ident => $as_value:expr;)*) => {$(
        impl IntoValue for $kind {
            fn into_value(self) -> Value {
                let $value = self;
                $as_value
            }
        }

        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                value.into_value()
            }
        }
    )*};
}

values! {
    bool: value => Value::Integer(value.into());
    i8: value => Value::Integer(value.into());
    i16: value => Value::Integer(value.into());
    i32: value => Value::Integer(value.into());
    i64: value => Value::Integer(value);
    isize: value => Value::Integer(i64::try_from(value).expect("no machine has more than 64 bits"));
    u16: value => Value::Integer(value.into());
    u32: value => Value::Integer(value.into());
    u64: value => i64::try_from(value).map_or(Value::Unsigned(value), Value::Integer);
    usize: value => u64::try_from(value).expect("no machine has more than 64 bits").into_value();
    f32: value => Value::Real(value.into());
    f64: value => Value::Real(value);
    char: value => Value::Text(value.into());
    &str: value => Value::Text(value.to_owned());
    String: value => Value::Text(value);
    Cow<'_, str>: value => Value::Text(value.into_owned());
    Box<str>: value => Value::Text(value.into());
    Arc<str>: value => Value::Text((*value).to_owned());
    Rc<str>: value => Value::Text((*value).to_owned());
    Arc<String>: value => Value::Text(Arc::unwrap_or_clone(value));
    Cow<'_, [u8]>: value => Value::Blob(value.into_owned());
    Box<[u8]>: value => Value::Blob(value.into());
    Arc<[u8]>: value => Value::Blob(value.to_vec());
    SystemTime: value => Value::Timestamp(value);
}

impl IntoValue for u8 {
    fn into_value(self) -> Value {
        Value::Integer(self.into())
    }

    fn list(values: Vec<Self>) -> Value {
        Value::Blob(values)
    }
}

impl<T: IntoValue + Clone> IntoValue for &T {
    fn into_value(self) -> Value {
        self.clone().into_value()
    }

    fn into_values(self) -> Arc<[Value]> {
        self.clone().into_values()
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, T::into_value)
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Value {
        T::list(self)
    }

    fn into_values(self) -> Arc<[Value]> {
        if T::IS_VALUE {
            self.into_iter().map(T::into_value).collect()
        } else {
            Arc::new([self.into_value()])
        }
    }
}

impl<T: IntoValue + Clone> IntoValue for &[T] {
    fn into_value(self) -> Value {
        T::list(self.to_vec())
    }

    fn into_values(self) -> Arc<[Value]> {
        self.to_vec().into_values()
    }
}

impl<T: IntoValue, const N: usize> IntoValue for [T; N] {
    fn into_value(self) -> Value {
        T::list(self.into())
    }

    fn into_values(self) -> Arc<[Value]> {
        match self.into_value() {
            Value::Array(values) => values.into(),
            bytes => Arc::new([bytes]),
        }
    }
}

macro_rules! from {
    ($([$($generics:tt)*] $kind:ty;)*) => {$(
        impl<$($generics)*> From<$kind> for Value {
            fn from(value: $kind) -> Self {
                value.into_value()
            }
        }
    )*};
}

from! {
    [] u8;
    [T: IntoValue] Option<T>;
    [T: IntoValue] Vec<T>;
    [T: IntoValue + Clone] &[T];
    [T: IntoValue, const N: usize] [T; N];
}

impl<T: IntoValue> FromIterator<T> for Value {
    /// A list.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Array(values.into_iter().map(T::into_value).collect())
    }
}

#[cfg(test)]
mod tests;
