//! PostgreSQL's protocol and SQL, carried out by embedded SQLite.
//!
//! Promises: a statement has either PostgreSQL's exact meaning or an error that names what is unsupported; autocommit writes of all sessions share
//! commits. Does not know sockets' addresses, users, options or signals: whoever serves hands over streams that have logged in.
//!
//! - [`session`]: the protocol's state: statements, portals, transactions, settings
//! - [`sql`]: PostgreSQL's SQL in, SQLite's out
//! - [`catalog`]: PostgreSQL's catalog as tables in memory
//! - [`values`]: parameters and columns between PostgreSQL's formats and SQLite's storage classes
//! - [`errors`]: the database's errors as PostgreSQL's

pub mod catalog;
pub mod errors;
pub mod session;
pub mod sql;
pub mod values;
