//! The pool in front of the database: concurrent requests that can share work share it.
//!
//! | concurrent callers want | they share | part |
//! |---|---|---|
//! | different keys at about the same time | one fetch | [`load`]: the `Loader` |
//! | the same key, now or a moment ago | one flight, then memory | [`cache`]: the `Cache` |
//! | to write at about the same time | one commit | [`write`](mod@write): the `Writer` |
//! | byte ranges that lie near each other | one I/O, then one copy in memory | `pages`: the `PagePool` (feature `pages`) |
//! | anything else that is cheaper together | one call | [`batch`]: the `Batcher` |
//!
//! Everyone gets their own, true outcome, as if they had been alone. An idle backend is called at once; callers gather while it
//! is busy. Every queue, batch and wait has a limit.
//!
//! | to begin with | see |
//! |---|---|
//! | a query of SQLite for one key, run for many at a time | [`load::sqlite`] |
//! | the same of PostgreSQL, of MariaDB or MySQL | `load::postgres`, `load::mysql` |
//! | an async function of many keys | [`Loader`](load::Loader) |
//! | memory in front of either, or of an async function of a key | [`Cache`](cache::Cache) |
//! | durable writes to SQLite, PostgreSQL, MariaDB or MySQL | [`Writer`](write::Writer) |
//! | ranges of large files, in memory | `pages::PagePool` |
//! | an async function of many items | [`Batcher`](batch::Batcher) |
//!
//! # Features
//!
//! - `sqlite` (default): [`write`](mod@write) with `write::sqlite`, and `load::sqlite`, with SQLite built in. Without this and the
//!   next two, `batch`, `load` and `cache` are left.
//! - `postgres`: `write::postgres` and `load::postgres`, over a pool of connections that both share.
//! - `mysql`: `write::mysql` and `load::mysql`, for MariaDB, likewise. For MySQL it is the same code, and not tested.
//! - `pages`: `pages`, the `PagePool`. For 64-bit Unix.
//! - `tls`: TLS to PostgreSQL and MariaDB, by rustls, where it is asked for: by `PostgresBuilder::tls`, by `require_ssl=true` in a
//!   URL of MariaDB's or by `MySqlBuilder::tls`. Otherwise connections are not encrypted.
//! - `serde` (with all of the others): [`cache::HotKeys`] can be saved and loaded.
//! - `tier-codec` (with each of the following): the form in which a tier keeps keys and values outside the process.
//! - `tier-sqlite`: a cache's tier in a SQLite file of its own: warm after a restart.
//! - `redis`: a cache's tier in Redis or Valkey, shared by many processes.
//! - `lz4`: fast compression of values in a tier.
//! - `zstd`: strong compression of values in a tier.
//!
//! # What it stands on
//!
//! A tokio runtime, with its timer where windows or timeouts are used (a cache has a timeout unless told otherwise). `load` and
//! `write` stand on `batch`, which knows of neither; `load::sqlite` reads through `write::sqlite`, and so with the other
//! databases; `cache` takes a `Loader` as a source; `pages` stands alone. No part knows of any wire protocol.

pub mod batch;
pub mod cache;
#[cfg(doctest)]
mod documents;
pub mod load;
#[cfg(all(feature = "pages", not(all(unix, target_pointer_width = "64"))))]
compile_error!("the feature `pages` needs a 64-bit Unix: a file's pages have their place in address space");
#[cfg(feature = "pages")]
pub mod pages;
mod panics;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub mod write;
