//! The Writer's PostgreSQL: a pool of connections, on each of which a batch is one transaction.
//!
//! Promises: an acknowledged write is committed, with the durability that the server is set to (`synchronous_commit`, `fsync`);
//! a write whose connection is lost before COMMIT was sent is written again on another; one whose connection is lost while COMMIT is
//! in flight is [`OutcomeUnknown`](forebay_write::WriteError::OutcomeUnknown). Reading and writing share the connections and neither starves
//! the other.
//!
//! What a batch changes for a statement, and when not to batch: `guide/src/guarantees.md`.
//!
//! `batch` decides what is committed, `set` writes many INSERTs as one, `facts` says where that is safe,
//! `pipeline` sends and takes answers, `connection` keeps what is prepared, `connector` makes connections, `types` turns values into PostgreSQL's and back.

mod answered;
mod batch;
mod builder;
mod connection;
mod connector;
mod database;
mod error;
mod facts;
mod inner;
mod load;
mod pipeline;
mod plan;
mod prepared;
mod reading;
mod session;
mod set;
mod statement;
#[cfg(test)]
mod test_server;
mod transaction;
mod type_catalog;
mod types;

pub use self::builder::PostgresBuilder;
pub use self::database::Postgres;
pub use self::load::{all_rows, one_row};
pub use self::transaction::Transaction;
/// For [`PostgresBuilder::tls`]: the rustls that is spoken here.
#[cfg(feature = "tls")]
pub use forebay_pg_link::rustls;
pub use forebay_remote::connect_error::ConnectError;
pub use forebay_write::{Answered, Read, ReadError, SqlKey};
