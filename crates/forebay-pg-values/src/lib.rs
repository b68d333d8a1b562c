//! What PostgreSQL's values are: its types, how their values are stored here and written as text, and what PostgreSQL's functions,
//! operators and casts make of them.
//!
//! Promises:
//! - Equal to PostgreSQL 15 or an error, never different. Where PostgreSQL gives an error this gives one with the same SQLSTATE; where
//!   this cannot give PostgreSQL's answer it gives [`ValueError::unsupported`], which names what is missing.
//! - Functions are found by their *symbol* ([`function()`]): the name of PostgreSQL's own internal function (`pg_proc.prosrc`), or, for
//!   those that PostgreSQL writes in SQL, `name(argument types)`. They depend on nothing but their arguments and the [`Environment`].
//! - Every value given is in the stored form of its type, and so is every value that is given back:
//!
//! | type | stored as | order, equality |
//! |---|---|---|
//! | bool | Integer 0, 1 | of integers |
//! | int2 int4 int8 oid | Integer | of integers |
//! | float4 float8 | Real, never NaN (SQLite has none); a float4 is a float widened to a double | of reals |
//! | numeric | Text as PostgreSQL writes it: `-12.50`, `NaN`, `Infinity` | [`numeric::compare`] |
//! | text varchar name "char" unknown | Text without a zero byte | of bytes |
//! | bpchar | Text, padded as PostgreSQL pads it | of bytes without trailing spaces |
//! | bytea | Blob | of bytes |
//! | date | Text `YYYY-MM-DD`, years 0001 to 9999, `infinity`, `-infinity` | of bytes |
//! | time | Text `HH:MM:SS[.ffffff]`, no zeros at the end of a fraction | of bytes |
//! | timetz | Text as PostgreSQL writes it | none |
//! | timestamp | Text `YYYY-MM-DD HH:MM:SS[.ffffff]`, no zeros at the end of a fraction; `infinity`, `-infinity` | of bytes |
//! | timestamptz | as timestamp, in UTC, without an offset | of bytes |
//! | interval | Text as PostgreSQL writes it (IntervalStyle postgres): one text for each (months, days, microseconds) | [`interval::compare`] |
//! | uuid | Text, 36 characters, lower case | of bytes |
//! | json | Text as it was given | none |
//! | jsonb | Text as PostgreSQL writes it | [`json::jsonb::compare`] |
//! | arrays | Text: a JSON array of the elements: integers and floats as numbers, bool as `true`/`false`, NULL as `null`, all else as strings of the stored form; arrays of arrays nested | none |
//!
//! Knows nothing of statements, SQLite, or the wire.

pub mod aggregate;
pub mod array;
mod boolean;
pub mod bytea;
mod datum;
mod environment;
mod error;
mod float;
mod function;
mod functions;
pub mod identifier;
mod integer;
pub mod interruption;
pub mod interval;
pub mod json;
mod kind;
mod number_format;
pub mod numeric;
#[cfg(test)]
mod recorded;
pub mod temporal;
pub mod text;
pub mod text_form;
pub mod uuid;

pub use datum::{Datum, Owned};
pub use environment::Environment;
pub use error::ValueError;
pub use function::{Arguments, Body, Function};
pub use functions::{function, functions};
pub use kind::{Kind, Type};

/// The result of anything here.
pub type Result<T, E = ValueError> = std::result::Result<T, E>;
