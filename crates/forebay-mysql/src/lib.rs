//! The Writer's MariaDB and MySQL: a pool of connections, on each of which a batch is one transaction. Tested on MariaDB only.
//!
//! Promises: an acknowledged write is committed, with the durability that the server is set to
//! (`innodb_flush_log_at_trx_commit = 1`, its default, puts it on the disk first; at anything else a warning is logged when
//! connecting). A write whose connection is lost before COMMIT was sent is written again on another; one whose connection is lost
//! while COMMIT is in flight is [`OutcomeUnknown`](forebay_write::WriteError::OutcomeUnknown). Reading and writing share the connections, and
//! neither starves the other.
//!
//! What a caller is told: rows affected are those that were *changed*, as the server counts them (an UPDATE that leaves a row as
//! it was counts 0, an upsert that updates counts 2); the id is the one the server would tell that statement alone. A statement
//! with RETURNING is told neither by the server: its count is the number of its rows, and its id is in them if it asks for it.
//!
//! What a batch changes: statements share one snapshot and the locks until the commit; `NOW()` may be the same for neighbours;
//! a statement that waits for somebody's lock for longer than the lock timeout leaves its place to those behind it, unless it
//! is [ordered](forebay_write::Write::ordered_by). Tables without transactions (MyISAM, Aria) are written as they are; what a
//! lost batch has done to them is `OutcomeUnknown`.
//!
//! `batch` decides what is committed, `set` writes many INSERTs as one, `facts` says where that is safe, `connection` sends and
//! waits, `connector` makes connections, `plan` reads texts, `value` turns values into the server's and back.

mod answer;
mod batch;
mod builder;
mod connection;
mod connector;
mod database;
mod error;
mod facts;
mod inner;
mod load;
mod plan;
mod prepared;
mod reading;
mod server;
mod session;
mod set;
mod transaction;
mod value;

pub use self::builder::MySqlBuilder;
pub use self::database::MySql;
pub use self::load::{all_rows, one_row};
pub use self::transaction::Transaction;
/// For [`MySqlBuilder::tls`].
#[cfg(feature = "tls")]
pub use forebay_mysql_link::config::{Certificates, TlsOptions};
pub use forebay_remote::connect_error::ConnectError;
pub use forebay_write::{Answered, Read, ReadError, SqlKey};
