//! Types of other crates as values, each by the feature that is called like its crate.
//!
//! Promises: what was given comes back, to the precision that the database keeps. A moment becomes [`Value::Timestamp`](crate::Value::Timestamp),
//! which each database writes in its own way; a date or a time without a zone is text, as ISO 8601 and all databases have it.

#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "serde_json")]
mod serde_json;
#[cfg(feature = "uuid")]
mod uuid;

/// What becomes a value by `into_value` and by `into`.
#[cfg(any(feature = "chrono", feature = "jiff", feature = "serde_json", feature = "uuid"))]
macro_rules! given {
    ($([$($generics:tt)*] $kind:ty: $value:ident => $as_value:expr;)*) => {$(
        impl<$($generics)*> $crate::IntoValue for $kind {
            fn into_value(self) -> $crate::Value {
                let $value = self;
                $as_value
            }
        }

        impl<$($generics)*> From<$kind> for $crate::Value {
            fn from(value: $kind) -> Self {
                $crate::IntoValue::into_value(value)
            }
        }
    )*};
}
#[cfg(any(feature = "chrono", feature = "jiff", feature = "serde_json", feature = "uuid"))]
use given;
