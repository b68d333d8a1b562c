//! Fetches that read PostgreSQL: a query for one key makes a loader for many.
//!
//! Promises:
//! - A key's outcome is what its query gives alone: collations, `LIMIT`, `ORDER BY` and aggregates mean what they say. Where a
//!   parser shows that it can be, the query runs once for all keys, each of which it is joined to laterally; a row says which key
//!   it is of by the key's number, never by a value. Otherwise it runs once a key, all of them sent together.
//! - All keys of a fetch are read in one snapshot, in which nothing can be written.
//! - An error of one key's execution or rows is that key's; an error of the text is the whole fetch's.
//! - A fetch that was dropped, at its time limit for one, is cancelled at the server.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use forebay::load::Loader;
//! use forebay::postgres::ReadError;
//! use forebay::postgres::Postgres;
//!
//! #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
//! struct User {
//!     id: i64,
//!     name: String,
//!     email: Option<String>,
//! }
//!
//! let database = Postgres::connect("postgresql://app@127.0.0.1/app").await?;
//! let users: Loader<i64, User, ReadError> =
//!     database.loader("SELECT id, name, email FROM users WHERE id = ANY($1)");
//!
//! let (ada, grace, nobody) = tokio::join!(users.load(1), users.load(2), users.load(3));
//! assert_eq!(users.stats().fetches, 1); // here: on several threads a fetch may leave before the last key comes
//! # Ok(())
//! # }
//! ```
//!
//! `= ANY($1)` and `= $1` mean the same here: where the query wants a list, it gets a list of the one key. A key of several parts
//! is `$1`, `$2` and so on. Keys that are numbers, text, bytes, UUIDs (as text or 16 bytes), dates and times can be read by one
//! query; of other types (enums, networks, types of your own) once a key.
//!
//! Values are read by serde: numbers, text, booleans, bytes and arrays as what they are; what has no place in Rust's own types
//! (numeric, uuid, dates and times) as text; json and jsonb as what the JSON says, or as its text into a `String`.

mod plan;

use serde::de::DeserializeOwned;

use self::plan::Query;
use crate::database::Postgres;
use forebay_batch::load::{Key, Loader};
use forebay_write::{Read, ReadError, Sql, SqlKey};

impl Postgres {
    /// A loader with the default limits that runs `sql` for a key: `$1` is the key, or its parts in order, and the first row is
    /// its value, read into `V` by the names of its columns. No row: the key is missing. See [`one_row`].
    pub fn loader<K, V>(&self, sql: impl Into<Sql>) -> Loader<K, V, ReadError>
    where
        K: Key + SqlKey,
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        Loader::new(one_row(self, sql))
    }

    /// As [`loader`](Self::loader), with all rows of a key, in the query's order. No row: an empty vector. See [`all_rows`].
    pub fn loader_many<K, V>(&self, sql: impl Into<Sql>) -> Loader<K, Vec<V>, ReadError>
    where
        K: Key + SqlKey,
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        Loader::new(all_rows(self, sql))
    }
}

/// A fetch, for a loader with limits of its own: the first row of `sql` for each key.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::{load::Loader, postgres::{self, Postgres}};
///
/// let database = Postgres::connect("postgresql://app@127.0.0.1/app").await?;
/// let names: Loader<i64, String, postgres::ReadError> = Loader::builder()
///     .max_items(200)
///     .build(postgres::one_row(&database, "SELECT name FROM users WHERE id = $1"));
/// # Ok(())
/// # }
/// ```
///
/// A struct or a map takes the columns by name, a tuple takes them in order, and a single value takes the only column.
pub fn one_row<K, V>(database: &Postgres, sql: impl Into<Sql>) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    forebay_remote::load::one_row(Query::new(database, sql.into()))
}

/// As [`one_row`], with all rows of each key.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::{load::Loader, postgres::{self, Postgres}};
///
/// let database = Postgres::connect("postgresql://app@127.0.0.1/app").await?;
/// let posts: Loader<i64, Vec<String>, postgres::ReadError> = Loader::builder()
///     .max_items(200)
///     .build(postgres::all_rows(&database, "SELECT title FROM posts WHERE author = $1"));
/// # drop(posts);
/// # Ok(())
/// # }
/// ```
pub fn all_rows<K, V>(
    database: &Postgres,
    sql: impl Into<Sql>,
) -> impl Fn(Vec<K>) -> Read<Vec<V>> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    forebay_remote::load::all_rows(Query::new(database, sql.into()))
}
