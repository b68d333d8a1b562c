//! Users by their number: a Cache over a Loader over a query, whichever database that is.

use std::error::Error;
use std::time::Duration;

use forebay::cache::Cache;
use forebay::load::{LoadError, Loader};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// How many there are in a new database.
pub(crate) const USERS: i64 = 1_000;

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// Where they can be asked for.
pub(crate) trait Users: Send + Sync {
    /// None: there is no such user.
    fn user(&self, id: i64) -> BoxFuture<'_, Result<Option<User>, Failure>>;
}

impl<E: Error + Send + Sync + 'static> Users for Cache<i64, User, E> {
    fn user(&self, id: i64) -> BoxFuture<'_, Result<Option<User>, Failure>> {
        async move { Ok(self.get(&id).await?) }.boxed()
    }
}

/// A cache over that loader: what misses while a query runs shares the next one.
pub(crate) fn cached<E: Error + Send + Sync + 'static>(loader: Loader<i64, User, E>) -> Box<dyn Users> {
    let users: Cache<i64, User, LoadError<E>> = Cache::builder(loader)
        .name("users")
        .capacity(100_000)
        .fresh_for(Duration::from_secs(5))
        .stale_for(Duration::from_secs(600))
        .missing_fresh_for(Duration::from_secs(1))
        .missing_stale_for(Duration::ZERO)
        .fetch_timeout(Duration::from_secs(2))
        .max_fetches(4)
        .build();
    Box::new(users)
}
