//! Loaders: a query for one key becomes the fetch of a batch of keys.
//!
//! Promises: one outcome a key, in the order of the keys; a fetch that was lost with its connection, or found what it knew of
//! the query outdated, is begun again a few times before its error is told. Does not know how a query is run for many keys: its
//! database does.

use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use forebay_write::rows::Rows;
use forebay_write::{
    IntoParameters, Parameters, Read, ReadError, SqlKey, StatementError, StatementErrorKind as Kind, WriteError,
};

/// How often a fetch is begun before its error is told: a connection may be lost, a table changed.
const ATTEMPTS: usize = 3;

/// The outcomes of a batch of keys, in their order.
pub type Each = Vec<Result<Rows, ReadError>>;

/// A query for one key, of a database.
pub trait Query: Send + Sync + 'static {
    /// Why it is not run at all, if so.
    fn refusal(&self) -> Option<WriteError>;

    /// The rows of each key.
    fn read(&self, keys: &[Parameters]) -> impl Future<Output = Result<Each, Unread>> + Send;

    /// What was known of it may no longer be so.
    fn forget(&self);
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Unread {
    /// The connection was lost; another may be had.
    Lost(String),
    /// What was known of the query, or the snapshot that it was run in, is no longer so.
    Outdated(StatementError),
    /// Its own.
    Failed(WriteError),
}

impl Unread {
    /// What the caller is told, where nothing else is done about it.
    pub fn into_error(self) -> WriteError {
        match self {
            Self::Lost(cause) => WriteError::Unavailable { cause },
            Self::Outdated(error) => error.into(),
            Self::Failed(error) => error,
        }
    }
}

/// A fetch: the first row of each key.
pub fn one_row<K, V>(query: impl Query) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    fetch(query, Rows::first)
}

/// A fetch: all rows of each key.
pub fn all_rows<K, V>(query: impl Query) -> impl Fn(Vec<K>) -> Read<Vec<V>> + Send + Sync + 'static
where
    K: SqlKey,
    V: DeserializeOwned + Send + 'static,
{
    fetch(query, Rows::all)
}

fn fetch<K: SqlKey, V: Send + 'static>(
    query: impl Query,
    value: fn(Rows) -> Result<Option<V>, ReadError>,
) -> impl Fn(Vec<K>) -> Read<V> + Send + Sync + 'static {
    let query = Arc::new(query);
    move |keys| {
        let query = Arc::clone(&query);
        let keys: Vec<Parameters> = keys.into_iter().map(IntoParameters::into_parameters).collect();
        Box::pin(async move {
            let each = read(&*query, &keys).await?;
            Ok(each.into_iter().map(|rows| value(rows?)).collect())
        })
    }
}

async fn read(query: &impl Query, keys: &[Parameters]) -> Result<Each, WriteError> {
    if let Some(refusal) = query.refusal() {
        return Err(refusal);
    }
    let mut attempt = 1;
    loop {
        match query.read(keys).await {
            Err(Unread::Outdated(_) | Unread::Lost(_)) if attempt < ATTEMPTS => {
                query.forget();
                attempt += 1;
            }
            read => return read.map_err(Unread::into_error),
        }
    }
}

/// The keys have not as many parameters as the query.
pub fn parameter_count(of_query: usize, of_key: usize) -> Unread {
    let message = format!("the query has {of_query} parameters, and the key has {of_key}");
    Unread::Failed(StatementError::new(Kind::ParameterCount, 0, message).into())
}

/// The error that every key has, if it is about the text: a table is no longer there, the query writes.
pub fn error_of_the_text<T>(outcomes: &[Result<T, WriteError>]) -> Option<WriteError> {
    let is_about_the_text = |outcome: &Result<T, WriteError>| {
        matches!(outcome, Err(WriteError::Statement(error)) if matches!(
            error.kind,
            Kind::Text | Kind::ReadOnly | Kind::Permission
        ))
    };
    if !outcomes.iter().all(is_about_the_text) {
        return None;
    }
    outcomes.first().and_then(|outcome| outcome.as_ref().err().cloned())
}
