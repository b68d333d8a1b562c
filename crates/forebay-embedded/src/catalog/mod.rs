//! The emulated `pg_catalog` and `information_schema`: what `psql`, drivers and ORMs ask about the schema.
//!
//! What it promises:
//! - The relations are PostgreSQL 15's, column by column; they show the SQLite file's tables, views, indexes and triggers in the
//!   schemas that their names tell, with OIDs that stay the same from one [`Catalog::refresh`] to the next as long as the name stays the same.
//! - A query is either translated to SQLite's SQL with the same meaning, or refused with a [`CatalogError`] that names what was not
//!   understood. There is no third way: nothing is passed on by guessing.
//! - [`Catalog::refresh`] costs one `PRAGMA schema_version` when the schema has not changed.
//!
//! What is knowingly different from a real server: a primary key counts as not null although SQLite lets NULL into most of
//! them; sizes and row counts are unknown (NULL, or -1 in `reltuples`); an identity column has no sequence of its own.
//!
//! What it does not know: sockets, messages, and the user's data. It reads the schema only, and of the session that asks what it is told
//! ([`OwnSession`]).

mod arguments;
mod array_functions;
mod arrays;
mod database;
mod definition;
mod directory;
mod error;
mod fill;
mod functions;
mod oids;
mod own;
mod own_session;
mod relations;
mod rewrite;
mod schema;
mod source;
mod types;

#[cfg(test)]
mod tests;

pub use database::{Catalog, Identity};
pub use error::{CatalogError, runtime_error};
pub(crate) use oids::relation_oid;
pub use own_session::{Cursor, OwnSession, PreparedStatement};
pub use rewrite::{ResultColumn, Translation};

/// Whether the catalog has a relation of that name.
pub(crate) fn has_relation(schema: Option<&str>, name: &str) -> bool {
    relations::find(schema, name).is_some()
}
