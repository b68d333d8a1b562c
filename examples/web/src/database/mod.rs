//! The database by its URL: the tables, Forebay's handles on it, and what they are held against.
//!
//! Promises: whichever database it is, the same tables, the same statement, a row's own id. Knows nothing of HTTP; what each
//! database has of its own is in a file of its own. No error repeats a URL: there may be a password in it.

mod mysql;
mod postgres;
mod sqlite;

use std::time::{SystemTime, UNIX_EPOCH};

use forebay::write::{Outcome, Writer};

use crate::failure::Failure;
use crate::unbatched::Unbatched;
use crate::users::Users;

/// A row to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) value: i32,
    /// Milliseconds since 1970.
    pub(crate) created_at: i64,
}

impl Entry {
    pub(crate) fn now(value: i32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            value,
            created_at: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

/// Why there is no database to serve from.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("what was given is none of sqlite:PATH, postgresql://…, mysql://… and mariadb://…")]
    Unknown,
    #[error("{0}")]
    Failed(String),
}

/// A database that is open, in all the ways that it is written to and read.
pub(crate) struct Database {
    name: String,
    writer: Writer,
    insert: &'static str,
    users: Box<dyn Users>,
    unbatched: Box<dyn Unbatched>,
}

impl Database {
    /// Opens it and makes its tables where they are not there.
    pub(crate) async fn open(url: &str, pool: Option<usize>) -> Result<Self, OpenError> {
        let opened = match url.split_once(':') {
            Some(("sqlite", path)) => sqlite::open(path.strip_prefix("//").unwrap_or(path), pool).await,
            Some(("postgresql" | "postgres", _)) => postgres::open(url, pool).await,
            Some(("mysql" | "mariadb", rest)) => mysql::open(&format!("mysql:{rest}"), pool).await,
            _ => return Err(OpenError::Unknown),
        };
        opened.map_err(|cause| OpenError::Failed(cause.to_string()))
    }

    /// What it is, for the first line that is printed.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where users are found.
    pub(crate) fn users(&self) -> &dyn Users {
        &*self.users
    }

    /// How to write without Forebay.
    pub(crate) fn unbatched(&self) -> &dyn Unbatched {
        &*self.unbatched
    }

    /// Writes a row by a commit that it shares with whoever writes at the time. Returns the row's id.
    pub(crate) async fn batched(&self, Entry { value, created_at }: Entry) -> Result<i64, Failure> {
        let outcome = self.writer.execute(self.insert, (value, created_at)).await?;
        own_id(&outcome).ok_or_else(|| Failure::broken("the database told no id for the row, which is written"))
    }

    /// Ends when what was taken in is written. Says how.
    pub(crate) async fn drain(&self) -> String {
        self.writer.drain().await;
        let stats = self.writer.stats();
        format!("{} writes shared {} commits", stats.calls, stats.batches)
    }
}

/// Told with the outcome, or by RETURNING where the database tells ids no other way.
fn own_id(outcome: &Outcome) -> Option<i64> {
    let returned = || outcome.rows.first()?.first()?.as_integer();
    outcome.last_insert_id.or_else(returned)
}
