//! Writer: many callers write at once, one commit, each caller its own true outcome.
//!
//! The contract: an acknowledged write is committed with the database's full durability; an error means no effect
//! (except [`WriteError::OutcomeUnknown`], which says so); a statement that fails fails alone, and its neighbours commit
//! in the order of their arrival; counts, ids and RETURNING rows are the caller's own, told by the database.
//!
//! The only part that knows SQL dialects, one folder each. Stands on [`batch`](crate::batch); knows nothing of keys or
//! caches.

#[cfg(any(feature = "postgres", feature = "mysql"))]
mod address;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod alike;
mod cancel;
mod error;
mod lanes;
#[cfg(feature = "mysql")]
pub mod mysql;
mod outcome;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod patience;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod retry;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) mod shape;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod silence;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod statement;
mod transaction;
mod value;
mod writer;

pub use cancel::CancelToken;
pub use error::{StatementError, StatementErrorKind, WriteError};
pub use outcome::Outcome;
pub use statement::{Sql, Write};
pub use transaction::Transaction;
pub use value::{Parameters, Value};
pub use writer::{Backend, Builder, Writer};
