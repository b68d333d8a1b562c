//! What Forebay is held against: one INSERT and one commit a request, by the database's own driver.
//!
//! Promises: pooled requests wait their turn for one of a fixed number of connections, first come, first served, which stay
//! open with the statement prepared; an unpooled request opens and closes a connection of its own, as services do that were
//! never tuned. Knows no database: that is a [`Driver`].

use std::error::Error;

use deadpool::managed::{Manager, Pool, PoolError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::entry::Entry;
use crate::failure::Failure;

/// A database's own driver: how to connect, as a [`Manager`], and how to write.
pub(crate) trait Driver: Manager<Type: Send, Error: Error + Send> + 'static {
    /// One statement, prepared, in a transaction of its own. Returns the row's id.
    fn insert(
        &self,
        connection: &mut Self::Type,
        entry: Entry,
    ) -> impl Future<Output = Result<i64, Self::Error>> + Send;

    /// Says good-bye, where that is more than to hang up.
    fn close(&self, connection: Self::Type) -> impl Future<Output = ()> + Send;
}

/// Writes alone.
pub(crate) trait Unbatched: Send + Sync {
    /// By a connection that was open before.
    fn pooled(&self, entry: Entry) -> BoxFuture<'_, Result<i64, Failure>>;

    /// By a connection of its own.
    fn unpooled(&self, entry: Entry) -> BoxFuture<'_, Result<i64, Failure>>;
}

/// A pool of so many connections of that driver.
pub(crate) fn unbatched<D: Driver>(driver: D, connections: usize) -> Box<dyn Unbatched> {
    let pool = Pool::<D>::builder(driver).max_size(connections).build();
    Box::new(pool.expect("without timeouts, a pool needs no runtime to build"))
}

impl<D: Driver> Unbatched for Pool<D> {
    fn pooled(&self, entry: Entry) -> BoxFuture<'_, Result<i64, Failure>> {
        async move {
            let mut connection = self.get().await.map_err(|error| match error {
                PoolError::Backend(cause) => not_connected(cause),
                error => Failure::try_later(error),
            })?;
            self.manager().insert(&mut connection, entry).await.map_err(not_written)
        }
        .boxed()
    }

    fn unpooled(&self, entry: Entry) -> BoxFuture<'_, Result<i64, Failure>> {
        async move {
            let mut connection = self.manager().create().await.map_err(not_connected)?;
            let id = self.manager().insert(&mut connection, entry).await;
            self.manager().close(connection).await;
            id.map_err(not_written)
        }
        .boxed()
    }
}

fn not_connected(error: impl Error) -> Failure {
    let cause = in_full(&error);
    Failure::try_later(format_args!(
        "nothing was written, the database does not take a connection: {cause}"
    ))
}

fn not_written(error: impl Error) -> Failure {
    // Most drivers do not tell a refused statement from a commit that failed half-way.
    let cause = in_full(&error);
    Failure::broken(format_args!("the INSERT failed: {cause}"))
}

/// With what is behind it: some drivers say "db error" first, and only then which.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Others have said it already.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
