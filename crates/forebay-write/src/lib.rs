//! Writer: concurrent writes share a commit; each caller gets its own true outcome.
//!
//! Promises: an acknowledged write is committed with the database's full durability; an error means no effect (except
//! [`WriteError::OutcomeUnknown`], which says so, and what a procedure had committed before it failed); a statement that fails
//! fails alone, and its neighbours commit; writes of one key ([`Write::ordered_by`]) commit in the order of their arrival;
//! counts, ids and RETURNING rows are the caller's own, told by the database.
//!
//! Knows statements, values, outcomes, and what a [`database`] is; no database itself. Stands on the Batcher.
//!
//! What of Rust's types is which value say [`IntoValue`] and `TryFrom<Value>`; a moment's text and calendar is in [`moment`].
//!
//! Also what loaders that read a database share: keys as parameters ([`SqlKey`]), why a key was not read ([`ReadError`]), and rows
//! as what callers ask for ([`rows`]).
//!
//! Users have it as `forebay::write`.

mod cancel;
pub mod database;
mod error;
mod from_value;
mod into_value;
mod lanes;
pub mod moment;
mod outcome;
mod parameters;
mod read;
pub mod rows;
mod running;
mod statement;
mod transaction;
mod types;
mod value;
mod writer;

pub use cancel::CancelToken;
pub use database::Database;
pub use error::{StatementError, StatementErrorKind, WriteError};
pub use into_value::IntoValue;
pub use outcome::Outcome;
pub use parameters::{IntoParameters, Parameters, SqlKey};
pub use read::{Answered, Read, ReadError};
pub use statement::{Acceptance, Sql, Write};
pub use transaction::Transaction;
pub use value::Value;
pub use writer::{Writer, WriterBuilder};
