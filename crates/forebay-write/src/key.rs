//! Keys as parameters of a statement.
//!
//! Promises: a key is bound as what it is, and never becomes part of a text. Knows nothing of queries.

use std::sync::Arc;

use crate::{Parameters, Value};

/// What can be a key of a query: integers, text, bytes (also as an array, for a UUID), and tuples of values, whose parts are the
/// query's parameters in order: `?1`, `?2` for SQLite, `$1`, `$2` for PostgreSQL, the `?`s of MariaDB and MySQL. A type of your
/// own says here which parameters it is:
///
/// ```
/// use forebay::{sqlite::SqlKey, write::Parameters};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct UserId(i64);
///
/// impl SqlKey for UserId {
///     fn into_parameters(self) -> Parameters {
///         [self.0].into()
///     }
/// }
/// ```
///
/// A text key is compared as the query says: by the collation of its column, for one. Two keys that differ for Rust and
/// are equal for the column (`"ABC"` and `"abc"` under a collation without case) both get the row.
pub trait SqlKey: Send + 'static {
    /// The key's parameters, first parameter first.
    fn into_parameters(self) -> Parameters;
}

macro_rules! single {
    ($($kind:ty),*) => {$(
        impl SqlKey for $kind {
            fn into_parameters(self) -> Parameters {
                [self].into()
            }
        }
    )*};
}
single!(i8, i16, i32, i64, u8, u16, u32, bool, String, &'static str, Vec<u8>);

impl SqlKey for Arc<str> {
    fn into_parameters(self) -> Parameters {
        [&*self].into()
    }
}

impl<const N: usize> SqlKey for [u8; N] {
    fn into_parameters(self) -> Parameters {
        [self.as_slice()].into()
    }
}

macro_rules! several {
    ($($name:ident)+) => {
        impl<$($name: Into<Value> + Send + 'static),+> SqlKey for ($($name,)+) {
            fn into_parameters(self) -> Parameters {
                self.into()
            }
        }
    };
}
several!(A);
several!(A B);
several!(A B C);
several!(A B C D);
