//! PostgreSQL's types: values in as parameters, values out of rows.
//!
//! Promises: a value is never read differently from how the server reads it, in or out; what cannot be sent is known before
//! anything is sent, and [`check`] and [`fits_column`] say so with exactly the outcome that encoding has; a column that
//! cannot be read is known before the statement runs ([`returnable`]). What comes out of a row, sent back as a parameter of
//! the same type, is the same value (but for `int2vector` and `oidvector`, which only come out).
//!
//! Does not know: connections, transactions, the statement's text.
//!
//! | values | types |
//! |---|---|
//! | `Integer` | bool (0 and 1), int2, int4, int8, oid, float4 and float8 (if exact), numeric, all that is text |
//! | `Real` | float4, float8, numeric (its shortest decimal form), integers (if whole), all that is text |
//! | `Text` | every type: the server reads it as it reads a literal |
//! | `Blob` | bytea; uuid (16 bytes) |
//! | `Array` | arrays, nested for dimensions, with NULLs |
//!
//! A number for a column of text becomes its digits, because PostgreSQL takes any parameter as text.

mod column;
mod element;
mod kind;
mod list;
mod literal;
mod moment;
mod network;
mod numeric;
mod parameter;
mod read;
mod scratch;
#[cfg(test)]
mod tests;

pub(crate) use column::{Column, array_of, fits_column};
pub(crate) use kind::Misfit;
#[cfg(test)]
pub(crate) use parameter::{PARAMETERS_BYTES_MAX, takes};
pub(crate) use parameter::{Parameter, check};
pub(crate) use read::{returnable, row, unreturnable};
