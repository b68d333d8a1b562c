//! MariaDB and MySQL as their users see them, and as the Writer does: a handle that reads, writes and begins transactions.

use std::fmt;
use std::sync::Arc;

use super::batch;
use super::error::Failure;
use super::inner::Inner;
use super::transaction::Transaction;
use forebay_remote::connections::Purpose;
use forebay_sql::Role;
use forebay_write::database::{Answer, Database, InFlight, Running, Sharing};
use forebay_write::{IntoParameters, Outcome, ReadError, Sql, Write, WriteError, open_transaction};

/// A MariaDB or MySQL database and the connections to it. Clones are handles to the same ones; the last one dropped closes them.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::mysql::MySql;
/// use forebay::write::Writer;
///
/// let database = MySql::connect("mysql://app@127.0.0.1/app").await?;
/// let writer = Writer::new(database.clone());
/// writer.execute("UPDATE users SET seen = seen + 1 WHERE id = ?", 7).await?;
/// let seen: Option<u64> = database.query("SELECT seen FROM users WHERE id = ?", 7).await?.first()?;
/// # drop(seen);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MySql {
    pub(crate) inner: Arc<Inner>,
}

impl MySql {
    /// Reads all rows of a query. It sees every write acknowledged before.
    ///
    /// # Errors
    /// The statement's own; [`ReadError::Unavailable`]; [`ReadError::Refused`] if it is not a statement that reads.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the query may go on at the server.
    pub async fn query(&self, sql: impl Into<Sql>, parameters: impl IntoParameters) -> Result<Outcome, ReadError> {
        let (sql, parameters) = (sql.into(), parameters.into_parameters());
        let plan = self.inner.plans.of(&sql);
        if let Some(reason) = plan.refusal() {
            return Err(ReadError::Refused { reason });
        }
        if !plan.reads {
            let reason = "a query only reads; write with a Writer".to_owned();
            return Err(ReadError::Refused { reason });
        }
        let connections = &self.inner.connections;
        let mut permit = connections.permit(Purpose::Read).await?;
        let mut backoff = connections.backoff();
        loop {
            let mut lease = connections.take_with(permit, &mut backoff).await?;
            let result = lease.execute(&sql, &parameters).await;
            if plan.changes_session {
                lease.mark_changed();
                lease.reset_if_changed().await;
            }
            match result {
                Ok(outcome) => return Ok(outcome),
                // It reads: to do it again does no harm.
                Err(Failure::Lost { cause, .. }) => {
                    connections.note_loss();
                    permit = lease.into_permit();
                    match backoff.next_delay() {
                        Some(delay) => tokio::time::sleep(delay).await,
                        None => return Err(connections.unavailable(cause).into()),
                    }
                }
                Err(failure) => return Err(failure.into_write_error().into()),
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
        Transaction::begin(&self.inner.connections, &self.inner.plans).await
    }

    /// Takes no more work: what waits or comes gets [`WriteError::Closed`]. Waits for what runs, then closes the connections.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }
}

impl Database for MySql {
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

    /// Statements of a batch go one after the other here; alone they go on several connections, whose commits the server puts together.
    /// Those of one text go as one, unless their table is not fit for that.
    fn sharing(&self, sql: &Sql) -> Option<Sharing> {
        let plan = self.inner.plans.of(sql);
        let set = plan.set.as_ref().filter(|_| plan.role == Role::Shares)?;
        // Sets with rows in conflict wait for one another's locks.
        let many = if set.expects_conflicts() { usize::MAX } else { 512 };
        let few = 16;
        let few_alike = if set.is_one_by_one() { few } else { 0 };
        Some(Sharing { few, few_alike, many })
    }
}

open_transaction!(Transaction);

impl fmt::Debug for MySql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySql")
            .field("max_connections", &self.inner.connections.max_connections())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use testbed::MariaDb;

    use super::*;

    /// The future of a batch is moved once to where it stays, whatever it will need.
    #[tokio::test]
    async fn what_runs_a_batch_has_no_room_for_what_is_seldom_done() {
        let server = tokio::task::spawn_blocking(MariaDb::start).await.unwrap().unwrap();
        let mysql = MySql::connect(&server.url()).await.unwrap();
        let size = size_of_val(&batch::run(&mysql.inner, Vec::new()));
        assert!(size <= 2048, "{size} bytes");
    }
}
