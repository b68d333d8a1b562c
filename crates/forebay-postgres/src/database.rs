//! PostgreSQL as its users see it, and as the Writer does: a handle that reads, writes and begins transactions.

use std::fmt;
use std::sync::Arc;

use super::batch;
use super::inner::Inner;
use super::statement;
use super::transaction::Transaction;
use forebay_remote::connections::Purpose;
use forebay_sql::Role;
use forebay_write::database::{Answer, Database, InFlight, Running, Sharing};
use forebay_write::{IntoParameters, Outcome, ReadError, Sql, Write, WriteError, open_transaction};

/// A PostgreSQL database and the connections to it. Clones are handles to the same ones; the last one dropped closes them.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::postgres::Postgres;
/// use forebay::write::Writer;
///
/// let database = Postgres::connect("postgresql://app@127.0.0.1/app").await?;
/// let writer = Writer::new(database.clone());
/// writer.execute("UPDATE users SET seen = seen + 1 WHERE id = $1", 7).await?;
/// let seen: Option<u64> = database.query("SELECT seen FROM users WHERE id = $1", 7).await?.first()?;
/// # drop(seen);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Postgres {
    pub(crate) inner: Arc<Inner>,
}

impl Postgres {
    /// Reads all rows of a query. It sees every write acknowledged before.
    ///
    /// # Errors
    /// The statement's own, which is of kind [`ReadOnly`](forebay_write::StatementErrorKind::ReadOnly) if it writes;
    /// [`ReadError::Unavailable`]; [`ReadError::Refused`] if it would change the connection.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the query may go on at the server.
    pub async fn query(&self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, ReadError> {
        let (sql, parameters) = (sql.into(), parameters.into_parameters());
        let plan = self.inner.plans.of(&sql);
        if let Role::Refused(reason) = &plan.role {
            return Err(ReadError::Refused { reason: reason.clone() });
        }
        let connections = &self.inner.connections;
        let mut permit = connections.permit(Purpose::Read).await?;
        let mut backoff = connections.backoff();
        loop {
            let mut lease = connections.take_with(permit, &mut backoff).await?;
            let result = statement::query(&mut lease, &sql, &parameters).await;
            if plan.changes_session {
                lease.reset_session().await;
            }
            // The connection was lost. It reads: to do it again does no harm.
            let Err(WriteError::Unavailable { cause }) = result else {
                return result.map_err(ReadError::from);
            };
            permit = lease.into_permit();
            match backoff.next_delay() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(connections.unavailable(cause).into()),
            }
        }
    }

    /// Begins a transaction of the caller's own, on a connection of its own, with the server's default isolation.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        let connections = &self.inner.connections;
        let mut backoff = connections.backoff();
        loop {
            let lease = connections.take(Purpose::Write, &mut backoff).await?;
            match Transaction::begin(connections, &self.inner.plans, lease).await {
                // The connection had ended unnoticed. Nothing has happened yet.
                Err(WriteError::TransactionLost) => match backoff.next_delay() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(connections.unavailable("the connection was lost")),
                },
                begun => return begun,
            }
        }
    }

    /// Takes no more work: what waits or comes gets [`WriteError::Closed`]. Waits for what runs, then closes the connections.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }
}

impl Database for Postgres {
    fn write(&self, batch: Vec<Write>) -> Running<'_, Vec<Answer>> {
        Box::pin(batch::run(&self.inner, batch))
    }

    fn begin(&self) -> Running<'_, Result<forebay_write::Transaction, WriteError>> {
        Box::pin(async move { self.begin().await.map(forebay_write::Transaction::new) })
    }

    fn in_flight(&self) -> InFlight {
        let most = self.inner.connections.each_max();
        InFlight {
            sharing: most.min(4),
            most,
        }
    }

    /// Soon, as a batch is sent without waiting for answers between.
    fn sharing(&self, sql: &Sql) -> Option<Sharing> {
        let plan = self.inner.plans.of(sql);
        let is_one_row = plan.role == Role::Shares && plan.insert.is_some();
        is_one_row.then_some(Sharing {
            few: 4,
            few_alike: 4,
            many: 512,
        })
    }
}

open_transaction!(Transaction);

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("max_connections", &self.inner.connections.max_connections())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server;

    /// The future of a batch is moved once to where it stays, whatever it will need.
    #[tokio::test]
    async fn what_runs_a_batch_has_no_room_for_what_is_seldom_done() {
        let (_connection, server) = test_server::connection().await;
        let postgres = Postgres::connect(&server.url()).await.unwrap();
        let size = size_of_val(&batch::run(&postgres.inner, Vec::new()));
        assert!(size <= 2048, "{size} bytes");
    }
}
