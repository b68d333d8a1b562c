//! The database by its URL: opened, with its tables.
//!
//! Promises: whichever database it is, the same tables and the same statement. Knows nothing of HTTP; what each database has of
//! its own is in a file of its own. No error repeats a URL: there may be a password in it.

mod handles;
mod mysql;
mod postgres;
mod sqlite;

pub(crate) use self::handles::Database;

/// Why there is no database to serve from.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("what was given is none of sqlite:PATH, postgresql://…, mysql://… and mariadb://…")]
    Unknown,
    #[error("{0}")]
    Failed(String),
}

/// Opens the database and makes its tables where they are not there.
pub(crate) async fn open(url: &str, pool: Option<usize>) -> Result<Database, OpenError> {
    let opened = match url.split_once(':') {
        Some(("sqlite", path)) => sqlite::open(path.strip_prefix("//").unwrap_or(path), pool).await,
        Some(("postgresql" | "postgres", _)) => postgres::open(url, pool).await,
        Some(("mysql" | "mariadb", rest)) => mysql::open(&format!("mysql:{rest}"), pool).await,
        _ => return Err(OpenError::Unknown),
    };
    opened.map_err(|cause| OpenError::Failed(cause.to_string()))
}
