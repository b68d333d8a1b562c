//! Starts and stops real servers for tests and the lab.
//!
//! Promises, for every server here: it listens on loopback only, on a free port; it keeps its files in a folder of its own that
//! is removed with it (a database path that the caller gives is the caller's); `start` returns once the server answers, or
//! fails within a bound and shows what the server said; dropping it stops it; and it dies with this process, however this
//! process ends.
//!
//! Does not know: any client library or async runtime, nor what tests do with a server. A server is reached by its `url()`, as
//! a user would reach it.
//!
//! Between a client and a server a [`Proxy`] may stand, which cuts, stalls, delays, slows, merges, splits and garbles, also at a
//! moment that it tells by the bytes.
//!
//! Tests that need a PostgreSQL or a MySQL of any make ask for `for_tests()`: it starts one, unless `FOREBAY_TEST_POSTGRES` or
//! `FOREBAY_TEST_MYSQL` names another by its URL, as a user who may create databases. There they keep to databases or schemas
//! with a [`scratch_name`], and drop those that are [left over](is_left_over) from runs before. Tests that kill or configure
//! their server always start their own.
//!
//! Tests of one binary share a server by [`Shared`].
//!
//! A further server is one more file beside `postgres.rs`: find the program, prepare a [`Folder`], run a [`Process`], wait
//! for it to answer; what such files share is in `start.rs`.
//!
//! ```no_run
//! let postgres = testbed::Postgres::start()?;
//! println!("{}", postgres.url());
//! let forebay = testbed::Forebay::builder("target/debug/forebay").start()?;
//! println!("{}", forebay.metrics()?);
//! # Ok::<(), testbed::Error>(())
//! ```

mod account;
mod error;
mod folder;
mod for_tests;
mod forebay;
mod http;
mod launcher;
mod mariadb;
mod output;
mod pgbouncer;
mod pgpool;
mod port;
mod postgres;
mod process;
mod proxy;
mod redis;
mod scratch;
mod shared;
mod start;

pub use account::Account;
pub use error::Error;
pub use folder::Folder;
pub use for_tests::ForTests;
pub use forebay::{Forebay, ForebayBuilder};
pub use http::{Response, http_get};
pub use mariadb::{MariaDb, MariaDbBuilder};
pub use pgbouncer::{Asking, PgBouncer};
pub use pgpool::Pgpool;
pub use port::FreePort;
pub use postgres::{Postgres, PostgresBuilder};
pub use process::{Ended, Process, Program};
pub use proxy::{Behaviour, Deed, Ending, Moment, Proxy, Side};
pub use redis::{Redis, RedisBuilder};
pub use scratch::{is_left_over, scratch_name};
pub use shared::Shared;
