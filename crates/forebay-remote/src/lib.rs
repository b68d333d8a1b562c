//! What the databases over a network share: their settings and connections, plans of texts, fetches of keys, how a URL is read
//! without giving a password away, which values may be equal, pauses between tries, and how long a server may be silent.
//!
//! Promises: what each module promises. Knows what a write is; knows no database.
//!
//! The crates for PostgreSQL, and for MariaDB and MySQL, call the same things by the same names: ARCHITECTURE.md lists them, under *Words*.

pub mod address;
pub mod alike;
pub mod answer_timeout;
pub mod backoff;
pub mod connect_error;
pub mod connections;
pub mod latest;
pub mod load;
pub mod lock_waiters;
pub mod plans;

pub mod settings;
pub mod settled;
pub mod statements;
