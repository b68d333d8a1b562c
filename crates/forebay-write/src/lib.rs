//! Writer: concurrent writes share a commit; each caller gets its own true outcome.
//!
//! Promises: an acknowledged write is committed with the database's full durability; an error means no effect (except
//! [`WriteError::OutcomeUnknown`], which says so, and what a procedure had committed before it failed); a statement that fails
//! fails alone, and its neighbours commit; writes of one key ([`Write::ordered_by`]) commit in the order of their arrival;
//! counts, ids and RETURNING rows are the caller's own, told by the database.
//!
//! Knows statements, values, outcomes, and what a [`database`] is; no database itself. Stands on the Batcher.
//!
//! Also what loaders that read a database share: keys as parameters ([`SqlKey`]), why a key was not read ([`ReadError`]), and rows
//! as what callers ask for ([`rows`]).
//!
//! Users have it as `forebay::write`.

mod cancel;
pub mod database;
mod error;
mod key;
mod lanes;
mod outcome;
mod read;
pub mod rows;
mod running;
mod statement;
mod transaction;
mod value;
mod writer;

pub use cancel::CancelToken;
pub use database::Database;
pub use error::{StatementError, StatementErrorKind, WriteError};
pub use key::SqlKey;
pub use outcome::Outcome;
pub use read::{Answered, Read, ReadError};
pub use statement::{Acceptance, Sql, Write};
pub use transaction::Transaction;
pub use value::{Parameters, Value};
pub use writer::{Writer, WriterBuilder};
