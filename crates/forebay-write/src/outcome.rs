//! What a statement's own caller is told when it has succeeded.

use serde::de::DeserializeOwned;

use crate::rows::{self, Column};
use crate::{ReadError, Value};

/// The outcome of one statement: its own, never a neighbour's or the batch's.
///
/// Its rows are read by serde into what is asked for: a struct or a map takes the columns by name, a tuple takes them in order, and
/// a single value takes the only column.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use forebay::sqlite::Sqlite;
/// use forebay::write::Writer;
///
/// let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)", ()).await?;
/// let done = writer.execute("INSERT INTO users (name) VALUES (?1) RETURNING id", "Ada").await?;
/// assert_eq!(done.rows_affected, 1);
/// assert_eq!(done.one::<u64>()?, 1);
///
/// let done = writer.execute("UPDATE users SET name = upper(name) RETURNING id, name", ()).await?;
/// assert_eq!(done.all::<(u64, String)>()?, [(1, "ADA".to_owned())]);
/// # Ok(())
/// # }
/// ```
///
/// One value at a time is taken by `TryFrom`, which knows types that serde does not, such as moments:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("app.db");
/// use std::time::SystemTime;
/// # use forebay::sqlite::Sqlite;
/// # use forebay::write::Writer;
///
/// # let writer = Writer::new(Sqlite::open(path)?);
/// writer.execute("CREATE TABLE hits (at TEXT)", ()).await?;
/// let now = SystemTime::now();
/// let done = writer.execute("INSERT INTO hits VALUES (?1) RETURNING at", now).await?;
/// let at: SystemTime = done.rows[0][0].clone().try_into()?;
/// assert_eq!(at, now);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Rows that this statement inserted, updated or deleted, as the database counted them; rows that triggers or
    /// foreign-key actions changed are not counted. 0 for statements that change no rows.
    pub rows_affected: u64,
    /// The id that the database tells of this statement's INSERT: SQLite's is the last row's, MariaDB's and MySQL's the first
    /// row's that it numbered, PostgreSQL has none (use RETURNING). None if no row was inserted, or it has no such id.
    pub last_insert_id: Option<i64>,
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// The rows of RETURNING, in the database's order.
    pub rows: Vec<Vec<Value>>,
}

impl Outcome {
    /// Of a statement that returned no rows.
    pub fn counted(rows_affected: u64, last_insert_id: Option<i64>) -> Self {
        Self {
            rows_affected,
            last_insert_id,
            ..Self::default()
        }
    }

    /// The same, with rows.
    #[must_use]
    pub fn returning(self, columns: Vec<String>, rows: Vec<Vec<Value>>) -> Self {
        Self { columns, rows, ..self }
    }

    /// The only row.
    ///
    /// # Errors
    /// [`ReadError::Row`]: there is none, or there are more, or it is not what is asked for.
    pub fn one<V: DeserializeOwned>(self) -> Result<V, ReadError> {
        match self.rows.len() {
            1 => self.all().map(|mut all| all.remove(0)),
            rows => Err(ReadError::Row {
                cause: format!("one row is asked for, and there are {rows}"),
            }),
        }
    }

    /// The first row, if there is one.
    ///
    /// # Errors
    /// [`ReadError::Row`]: it is not what is asked for.
    pub fn first<V: DeserializeOwned>(mut self) -> Result<Option<V>, ReadError> {
        self.rows.truncate(1);
        self.all().map(|mut all| all.pop())
    }

    /// All rows.
    ///
    /// # Errors
    /// [`ReadError::Row`]: one of them is not what is asked for.
    pub fn all<V: DeserializeOwned>(self) -> Result<Vec<V>, ReadError> {
        let columns: Vec<Column> = self
            .columns
            .into_iter()
            .map(|name| Column { name, is_json: false })
            .collect();
        self.rows
            .into_iter()
            .map(|row| rows::deserialize(&columns, row))
            .collect()
    }
}
