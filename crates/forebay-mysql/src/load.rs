//! Fetches that read MariaDB and MySQL: a query for one key makes a loader for many.
//!
//! Promises:
//! - A key's outcome is what its query gives alone: collations, `LIMIT`, `ORDER BY` and aggregates mean what they say. Where a
//!   parser shows that it can be, and key and column are whole numbers, the query runs once for all keys (`column IN (?, ?, …)`),
//!   and a row says by that column which key it is of. Otherwise it runs once a key, one after the other.
//! - All keys of a fetch are read in one snapshot, in which nothing can be written. Tables without transactions (MyISAM, Aria)
//!   have no snapshots.
//! - An error of one key's execution or rows is that key's; an error of the text, or a table that stays locked, is the whole
//!   fetch's.
//! - A fetch that was dropped, at its time limit for one, is killed at the server, with its connection.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use forebay::load::Loader;
//! use forebay::mysql::ReadError;
//! use forebay::mysql::MySql;
//!
//! #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
//! struct User {
//!     id: i64,
//!     name: String,
//!     email: Option<String>,
//! }
//!
//! let database = MySql::connect("mysql://app@127.0.0.1/app").await?;
//! let users: Loader<i64, User, ReadError> =
//!     database.loader("SELECT id, name, email FROM users WHERE id = ?");
//!
//! let (ada, grace, nobody) = tokio::join!(users.load(1), users.load(2), users.load(3));
//! assert_eq!(users.stats().fetches, 1); // here: on several threads a fetch may leave before the last key comes
//! # Ok(())
//! # }
//! ```
//!
//! `IN (?)` and `= ?` mean the same here. A key of several parts is the `?`s in order. What runs once for all keys is a SELECT with
//! joins, further conditions and `ORDER BY`, but without `LIMIT`, `DISTINCT`, groups, aggregates and functions of your own. It
//! never is for text, whose equality is for collations to say: there each key costs a round trip.
//!
//! Values are read by serde: numbers, text, booleans and bytes as what they are; what has no place in Rust's own types (decimals,
//! dates and times, numbers over `i64::MAX`) as text. A struct, a map or a list asked of a column of text is read from it as JSON;
//! where anything may be asked for (`serde_json::Value`), MySQL's JSON is what it says, and MariaDB's, which is text to the
//! server, is text.

mod plan;

use serde::de::DeserializeOwned;

use self::plan::Query;
use crate::database::MySql;
use forebay_batch::load::{Key, Loader};
use forebay_write::{Read, ReadError, Sql, SqlKey};

/// The server works on one fetch while the callers of the other go on (measured; `docs/decisions/0006-databases-over-the-network.md`).
const IN_FLIGHT: usize = 2;

impl MySql {
    /// A loader with the default limits that runs `sql` for a key: `?` is the key, or the `?`s its parts in order, and the first
    /// row is its value, read into `V` by the names of its columns. No row: the key is missing. See [`one_row`].
    pub fn loader<K, V>(&self, sql: impl Into<Sql>) -> Loader<K, V, ReadError>
    where
        K: Key + SqlKey,
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        Loader::builder().max_in_flight(IN_FLIGHT).build(one_row(self, sql))
    }

    /// As [`loader`](Self::loader), with all rows of a key, in the query's order. No row: an empty vector. See [`all_rows`].
    pub fn loader_many<K, V>(&self, sql: impl Into<Sql>) -> Loader<K, Vec<V>, ReadError>
    where
        K: Key + SqlKey,
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        Loader::builder().max_in_flight(IN_FLIGHT).build(all_rows(self, sql))
    }
}

/// A fetch, for a loader with limits of its own: the first row of `sql` for each key.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::{load::Loader, mysql::{self, MySql}};
///
/// let database = MySql::connect("mysql://app@127.0.0.1/app").await?;
/// let names: Loader<i64, String, mysql::ReadError> = Loader::builder()
///     .max_items(200)
///     .build(mysql::one_row(&database, "SELECT name FROM users WHERE id = ?"));
/// # Ok(())
/// # }
/// ```
///
/// A struct or a map takes the columns by name, a tuple takes them in order, and a single value takes the only column.
pub fn one_row<K, V>(database: &MySql, sql: impl Into<Sql>) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static
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
/// use forebay::{load::Loader, mysql::{self, MySql}};
///
/// let database = MySql::connect("mysql://app@127.0.0.1/app").await?;
/// let posts: Loader<i64, Vec<String>, mysql::ReadError> = Loader::builder()
///     .max_items(200)
///     .build(mysql::all_rows(&database, "SELECT title FROM posts WHERE author = ?"));
/// # drop(posts);
/// # Ok(())
/// # }
/// ```
pub fn all_rows<K, V>(database: &MySql, sql: impl Into<Sql>) -> impl Fn(Vec<K>) -> Read<Vec<V>> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    forebay_remote::load::all_rows(Query::new(database, sql.into()))
}
