//! Fetches that read SQLite: a query for one key makes a loader for many.
//!
//! Promises:
//! - A key's outcome is what its query gives alone: the text is executed as it stands, once a key, so collation, affinity,
//!   `LIMIT`, `ORDER BY` and aggregates mean what they say, and nothing has to be matched to keys afterwards.
//! - All keys of a fetch are read in one snapshot, by one compiled statement, on one connection, in one go.
//! - An error of one key's execution or rows is that key's; an error of the text is the whole fetch's.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.db");
//! use forebay::load::Loader;
//! use forebay::sqlite::ReadError;
//! use forebay::write::Writer;
//! use forebay::sqlite::Sqlite;
//!
//! #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
//! struct User {
//!     id: i64,
//!     name: String,
//!     email: Option<String>,
//! }
//!
//! let database = Sqlite::open(path)?;
//! # let writer = Writer::new(database.clone());
//! # writer.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT)", ()).await?;
//! # writer.execute("INSERT INTO users VALUES (1, 'Ada', NULL), (2, 'Grace', 'grace@example.org')", ()).await?;
//! let users: Loader<i64, User, ReadError> =
//!     database.loader("SELECT id, name, email FROM users WHERE id = ?1");
//!
//! let (ada, grace, nobody) = tokio::join!(users.load(1), users.load(2), users.load(3));
//! assert_eq!(ada?.unwrap().name, "Ada");
//! assert_eq!(grace?.unwrap().email.as_deref(), Some("grace@example.org"));
//! assert_eq!(nobody?, None);
//! assert_eq!(users.stats().fetches, 1); // here: on several threads a fetch may leave before the last key comes
//! # Ok(())
//! # }
//! ```
//!
//! Why not `WHERE id IN (…)`? Because SQLite is in the process: its statements cross no network, and executing one again costs no
//! more than an element of a list (`docs/decisions/0004-loader.md` has figures). For a set-based query of your own give
//! [`Loader::new`] a function that binds the keys as JSON: `… JOIN json_each(?1) AS k ON users.id = k.value`.

mod row;

use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::Row;
use serde::de::DeserializeOwned;

use crate::Sqlite;
use crate::session::Session;
use forebay_batch::load::{Key, Loader};
use forebay_write::{Answered, CancelToken, IntoParameters, Parameters, Read, ReadError, Sql, SqlKey};

impl Sqlite {
    /// A loader with the default limits that runs `sql` for a key: `?1` is the key, or its parts in order, and the first
    /// row is its value, read into `V` by the names of its columns. No row: the key is missing. See [`one_row`].
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

/// A fetch, for a loader with limits of its own: the first row of `sql` for each key. Further rows are not read.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::{load::Loader, sqlite::{self, Sqlite}};
///
/// let database = Sqlite::open("app.db")?;
/// let names: Loader<i64, String, sqlite::ReadError> = Loader::builder()
///     .max_items(200)
///     .build(sqlite::one_row(&database, "SELECT name FROM users WHERE id = ?1"));
/// # Ok(())
/// # }
/// ```
///
/// A struct or a map takes the columns by name, a tuple takes them in order, and a single value takes the only column.
pub fn one_row<K, V>(database: &Sqlite, sql: impl Into<Sql>) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    fetch::<K, V, First<V>>(database, sql, row::deserialize)
}

/// As [`one_row`], with all rows of each key.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::load::Loader;
/// use forebay::sqlite::{ReadError, Sqlite, all_rows};
///
/// let database = Sqlite::open(path)?;
/// let divisors: Loader<u32, Vec<u32>, ReadError> = Loader::builder().max_items(100).build(all_rows(
///     &database,
///     "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) SELECT n FROM n WHERE ?1 % n = 0",
/// ));
/// assert_eq!(divisors.load(6).await?, Some(vec![1, 2, 3, 6]));
/// # Ok(())
/// # }
/// ```
pub fn all_rows<K, V>(database: &Sqlite, sql: impl Into<Sql>) -> impl Fn(Vec<K>) -> Read<Vec<V>> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    fetch::<K, V, All<V>>(database, sql, row::deserialize)
}

/// As [`one_row`], read by a function of your own. It runs on the database's thread, so it must be quick.
pub fn one_row_with<K, V>(
    database: &Sqlite,
    sql: impl Into<Sql>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<V> + Send + Sync + 'static,
) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static
where
    K: SqlKey,
    V: Send + 'static,
{
    fetch::<K, V, First<V>>(database, sql, by_function(read))
}

/// As [`all_rows`], read by a function of your own. It runs on the database's thread, so it must be quick.
pub fn all_rows_with<K, V>(
    database: &Sqlite,
    sql: impl Into<Sql>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<V> + Send + Sync + 'static,
) -> impl Fn(Vec<K>) -> Read<Vec<V>> + Send + Sync + 'static
where
    K: SqlKey,
    V: Send + 'static,
{
    fetch::<K, V, All<V>>(database, sql, by_function(read))
}

fn by_function<V>(
    read: impl Fn(&Row<'_>) -> rusqlite::Result<V> + Send + Sync + 'static,
) -> impl Fn(&Row<'_>) -> Result<V, ReadError> + Send + Sync + 'static {
    move |row| {
        read(row).map_err(|error| ReadError::Row {
            cause: error.to_string(),
        })
    }
}

/// Gathers the rows of one key.
trait Gather<V>: Default + Send + 'static {
    type Value: Send + 'static;

    /// Takes a row; a break says that no further one is wanted.
    fn take(&mut self, value: V) -> ControlFlow<()>;

    fn finish(self) -> Option<Self::Value>;
}

struct First<V>(Option<V>);

impl<V> Default for First<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V: Send + 'static> Gather<V> for First<V> {
    type Value = V;

    fn take(&mut self, value: V) -> ControlFlow<()> {
        self.0 = Some(value);
        ControlFlow::Break(())
    }

    fn finish(self) -> Option<V> {
        self.0
    }
}

struct All<V>(Vec<V>);

impl<V> Default for All<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V: Send + 'static> Gather<V> for All<V> {
    type Value = Vec<V>;

    fn take(&mut self, value: V) -> ControlFlow<()> {
        self.0.push(value);
        ControlFlow::Continue(())
    }

    fn finish(self) -> Option<Vec<V>> {
        Some(self.0)
    }
}

fn fetch<K, V, G>(
    database: &Sqlite,
    sql: impl Into<Sql>,
    read: impl Fn(&Row<'_>) -> Result<V, ReadError> + Send + Sync + 'static,
) -> impl Fn(Vec<K>) -> Read<G::Value> + Send + Sync + 'static
where
    K: SqlKey,
    G: Gather<V>,
{
    let (database, sql, read) = (database.clone(), sql.into(), Arc::new(read));
    move |keys| {
        let (database, sql, read) = (database.clone(), sql.clone(), Arc::clone(&read));
        let parameters: Vec<Parameters> = keys.into_iter().map(IntoParameters::into_parameters).collect();
        Box::pin(async move {
            let reader = database.reader().await?;
            let token = CancelToken::new();
            let watched = token.clone();
            reader
                .run(&token, move |session| {
                    gather::<V, G>(session, &sql, &parameters, &watched, &*read)
                })
                .await?
        })
    }
}

/// Reads on the database's thread, where rows live.
fn gather<V, G: Gather<V>>(
    session: &mut Session,
    sql: &Sql,
    parameters: &[Parameters],
    token: &CancelToken,
    read: &dyn Fn(&Row<'_>) -> Result<V, ReadError>,
) -> Answered<G::Value> {
    let mut gathered: Vec<Result<G, ReadError>> = parameters.iter().map(|_| Ok(G::default())).collect();
    let executed = session.query_each(sql, parameters, token, &mut |position, row| match (
        read(row),
        &mut gathered[position],
    ) {
        (Ok(value), Ok(rows)) => rows.take(value),
        (Err(error), of_key) => {
            *of_key = Err(error);
            ControlFlow::Break(())
        }
        (Ok(_), Err(_)) => ControlFlow::Break(()),
    })?;
    Ok(executed
        .into_iter()
        .zip(gathered)
        .map(|(executed, rows)| {
            executed?;
            Ok(rows?.finish())
        })
        .collect())
}
