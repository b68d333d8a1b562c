//! The parameters of a statement, and what can be them.
//!
//! Promises: they are what was given, in that order. Knows nothing of texts.

use std::sync::Arc;

use crate::{IntoValue, Value};

/// The parameters of one statement, in the order of their numbers: `?1` and `$1` are the first. A clone shares them.
///
/// ```
/// use forebay::write::{IntoParameters, Parameters, Value};
///
/// let parameters = ("Ada", Some(1815), None::<bool>).into_parameters();
/// assert_eq!(parameters.values(), ["Ada".into(), 1815.into(), Value::Null]);
///
/// // As many as there happen to be.
/// let parameters: Parameters = ["Ada", "Grace"].into_iter().collect();
/// assert_eq!(parameters.len(), 2);
/// ```
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

/// What can be all the parameters of a statement, or a key.
///
/// `()` is none, a [value](IntoValue) the only one, a tuple of up to 12 one each; so are the elements of an array, but for `[u8; N]`, which
/// is bytes, and of a `Vec<Value>`; other vectors and slices are one list. A type of your own that is one value implements
/// [`IntoValue`]; one that is several implements this:
///
/// ```
/// use forebay::write::{IntoParameters, Parameters};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Seat {
///     train: u32,
///     number: u16,
/// }
///
/// impl IntoParameters for Seat {
///     fn into_parameters(self) -> Parameters {
///         (self.train, self.number).into_parameters()
///     }
/// }
///
/// let seat = Seat { train: 7, number: 61 };
/// assert_eq!(seat.into_parameters().values(), [7.into(), 61.into()]);
/// assert_eq!("Ada".into_parameters().values(), ["Ada".into()]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be among the parameters of a statement, nor a key",
    note = "give one value as it is, several as a tuple of at most 12, more as a `Vec<Value>`, none as `()`",
    note = "values are numbers, text, bytes, `SystemTime`, `Option`s and lists of them; types of `jiff`, `chrono`, `uuid` and `serde_json` with \
            Forebay's feature of that name",
    note = "a type of your own is one with `impl IntoValue for …`, whose `into_value` gives what it is made of: `self.0.into_value()`; and several \
            with `impl IntoParameters for …`, whose `into_parameters` gives `(self.name, self.age).into_parameters()`"
)]
pub trait IntoParameters {
    /// The parameters, first parameter first.
    fn into_parameters(self) -> Parameters;
}

impl<T: IntoValue> IntoParameters for T {
    fn into_parameters(self) -> Parameters {
        Parameters(self.into_values())
    }
}

impl IntoParameters for Parameters {
    fn into_parameters(self) -> Parameters {
        self
    }
}

impl IntoParameters for &Parameters {
    fn into_parameters(self) -> Parameters {
        self.clone()
    }
}

impl IntoParameters for () {
    fn into_parameters(self) -> Parameters {
        Parameters::default()
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

impl<T: IntoValue, const N: usize> From<[T; N]> for Parameters {
    fn from(values: [T; N]) -> Self {
        Self(values.into_values())
    }
}

impl<T: IntoValue> FromIterator<T> for Parameters {
    /// One a value.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().map(T::into_value).collect())
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: IntoValue),+> IntoParameters for ($($name,)+) {
            #[allow(non_snake_case, reason = "the type parameters name the fields")]
            fn into_parameters(self) -> Parameters {
                let ($($name,)+) = self;
                Parameters(Arc::new([$($name.into_value()),+]))
            }
        }

        impl<$($name: IntoValue),+> From<($($name,)+)> for Parameters {
            fn from(values: ($($name,)+)) -> Self {
                values.into_parameters()
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

/// What can be a key of a query: what can be its [parameters](IntoParameters), `?1`, `?2` for SQLite, `$1`, `$2` for PostgreSQL, the `?`s of
/// MariaDB and MySQL. There is nothing to implement: a type of your own is [one value](IntoValue) or
/// [several parameters](IntoParameters), and then a key as well.
///
/// A text key is compared as the query says: by the collation of its column, for one. Two keys that differ for Rust and
/// are equal for the column (`"ABC"` and `"abc"` under a collation without case) both get the row.
///
/// ```
/// use forebay::load::{Key, Loader};
/// use forebay::sqlite::Sqlite;
/// use forebay::write::{ReadError, SqlKey};
///
/// /// Of any table with a name.
/// fn names<K: Key + SqlKey>(database: &Sqlite, table: &str) -> Loader<K, String, ReadError> {
///     database.loader(format!("SELECT name FROM {table} WHERE id = ?1"))
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key of a query",
    label = "no value, and no list of parameters",
    note = "what can be a parameter can be a key: numbers, text, bytes, `SystemTime`, `Option`s of them; several as a tuple; types of `jiff`, \
            `chrono`, `uuid` and `serde_json` with Forebay's feature of that name",
    note = "for a type of your own write `impl IntoValue for {Self} {{ fn into_value(self) -> Value {{ self.0.into_value() }} }}`"
)]
pub trait SqlKey: IntoParameters + Send + 'static {}

impl<T: IntoParameters + Send + 'static> SqlKey for T {}
