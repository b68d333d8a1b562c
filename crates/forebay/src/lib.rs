//! The pool in front of the database: concurrent requests that can share work share it.
//!
//! | concurrent callers want | they share | part |
//! |---|---|---|
//! | different keys at about the same time | one fetch | [`load`]: the `Loader` |
//! | the same key, now or a moment ago | one flight, then memory | [`cache`]: the `Cache` |
//! | to write at about the same time | one commit | `write`: the `Writer`, over `sqlite`, `postgres` or `mysql` |
//! | byte ranges that lie near each other | one I/O, then one copy in memory | `pages`: the `PagePool` |
//! | anything else that is cheaper together | one call | [`batch`]: the `Batcher` |
//!
//! Everyone gets their own, true outcome, as if they had been alone. An idle backend is called at once; callers gather while it
//! is busy. Every queue, batch and wait has a limit.
//!
//! | to begin with | see |
//! |---|---|
//! | a query of SQLite for one key, run for many at a time | `sqlite::Sqlite::loader` |
//! | the same of PostgreSQL, of MariaDB or MySQL | `postgres::Postgres::loader`, `mysql::MySql::loader` |
//! | an async function of many keys | [`Loader`](load::Loader) |
//! | memory in front of either, or of an async function of a key | [`Cache`](cache::Cache) |
//! | durable writes to SQLite, PostgreSQL, MariaDB or MySQL | `write::Writer` |
//! | ranges of large files, in memory | `pages::PagePool` |
//! | an async function of many items | [`Batcher`](batch::Batcher) |
//!
//! # Features
//!
//! Without any, [`batch`], [`load`] and [`cache`] are there, and no C is compiled.
//!
//! - `sqlite`: `sqlite`, with SQLite built in, and `write`.
//! - `postgres`: `postgres`, over a pool of connections that its writes and loads share, and `write`.
//! - `mysql`: `mysql`, for MariaDB, likewise. For MySQL it is the same code, and not tested.
//! - `write`: the Writer alone, for a database of your own.
//! - `pages`: `pages`, the `PagePool`. For 64-bit Unix.
//! - `tls`: TLS to PostgreSQL and MariaDB, by rustls, where it is asked for: by `PostgresBuilder::tls`, by `require_ssl=true` in a
//!   URL of MariaDB's or by `MySqlBuilder::tls`. Otherwise connections are not encrypted.
//! - `jiff`, `chrono`, `uuid`, `serde_json`: types of those crates are parameters and keys, and are read from rows: moments, dates,
//!   times, UUIDs, JSON.
//! - `serde` (with all databases and tiers): [`cache::HotKeys`] can be saved and loaded.
//! - `tier-codec` (with each of the following): the form in which a tier keeps keys and values outside the process.
//! - `tier-sqlite`: a cache's tier in a SQLite file of its own: warm after a restart.
//! - `redis`: a cache's tier in Redis or Valkey, shared by many processes.
//! - `lz4`: fast compression of values in a tier.
//! - `zstd`: strong compression of values in a tier.
//!
//! # What it stands on
//!
//! A tokio runtime, with its timer where windows or timeouts are used (a cache has a timeout unless told otherwise). Each part is a
//! crate of its own (`forebay-batch`, `forebay-cache`, …), and this one only their names in one place: those that are for users.

#[cfg(doctest)]
mod documents;

pub use forebay_batch::{batch, load};
pub use forebay_cache as cache;
#[cfg(feature = "mysql")]
pub use forebay_mysql as mysql;
#[cfg(feature = "pages")]
pub use forebay_pages as pages;
#[cfg(feature = "postgres")]
pub use forebay_postgres as postgres;

/// SQLite, in the process: one writing connection on a thread of its own, a pool of reading connections.
///
/// WAL, so that readers and the writer do not wait for each other; `synchronous=FULL` by default, so that a commit is on the disk before
/// it is acknowledged. Writes from other processes are waited for, up to the busy timeout.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    // Not `connection`, which names types of rusqlite: that is for who depends on the crate itself.
    #[doc(inline)]
    pub use forebay_sqlite::{
        Answered, OpenError, Read, ReadError, SqlKey, Sqlite, SqliteBuilder, Synchronous, Transaction, all_rows,
        one_row,
    };
}

/// Writer: concurrent writes share a commit; each caller gets its own true outcome.
///
/// Promises: an acknowledged write is committed with the database's full durability; an error means no effect (except
/// [`WriteError::OutcomeUnknown`](write::WriteError::OutcomeUnknown), which says so, and what a procedure had committed before it failed);
/// a statement that fails fails alone, and its neighbours commit; writes of one key ([`Write::ordered_by`](write::Write::ordered_by))
/// commit in the order of their arrival; counts, ids and RETURNING rows are the caller's own, told by the database.
///
/// Knows statements, values, outcomes, and what a [`database`](write::database) is; no database itself. Stands on the Batcher.
#[cfg(feature = "write")]
pub mod write {
    // Not `rows` and what else the crates of the databases share.
    #[doc(inline)]
    pub use forebay_write::{
        Acceptance, Answered, CancelToken, Database, IntoParameters, IntoValue, Outcome, Parameters, Read, ReadError,
        Sql, SqlKey, StatementError, StatementErrorKind, Transaction, Value, Write, WriteError, Writer, WriterBuilder,
        database, open_transaction,
    };
}
