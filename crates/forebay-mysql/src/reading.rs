//! Reading on a connection: what parameters and columns a text has, and its rows, for one list of parameters after the other.
//!
//! Promises: in a [snapshot](Reading::snapshot) nothing is written and all is read as it was at one moment, of the tables that have
//! transactions; should the server have ended it in between, that is told. A read whose future is dropped is killed at the server,
//! with its connection, which is nobody else's. Knows nothing of keys.

use std::sync::Arc;

use super::answer::ResultSet;
use super::connection::Read;
use super::connector::{Connections, Lease};
use super::error::{Failure, NEEDS_PREPARING, found_here};
use super::plan::Plan;
use forebay_mysql_link::{self as mysql_link, ColumnType};
use forebay_remote::connections::Purpose;
use forebay_remote::load::Unread;
use forebay_sql::{Role, locks_what_it_reads, uses_its_session};
use forebay_write::{Parameters, StatementError, StatementErrorKind as Kind, Value, WriteError};

/// A connection to read from.
pub(crate) struct Reading {
    connections: Arc<Connections>,
    /// None once it was dropped.
    lease: Option<Lease>,
    /// What the rows of a snapshot may take.
    bytes_max: usize,
    /// The columns of the last answer.
    columns: Option<Known>,
}

/// Columns as they came, and what is read off them.
type Known = (Arc<[mysql_link::Column]>, Arc<[Column]>);

/// What the server says of a text.
pub(crate) struct Described {
    pub(crate) parameters: usize,
    pub(crate) columns: Arc<[Column]>,
}

/// A column of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether the server says that its text is JSON. MariaDB does not: its type JSON is text.
    pub(crate) is_json: bool,
    /// Whether it is of one of the types that hold whole numbers and nothing else.
    pub(crate) is_whole_number: bool,
}

/// What was read for one list of parameters.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) columns: Arc<[Column]>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A table's definition is not the one of the snapshot.
const DEFINITION_CHANGED: u16 = 1412;

/// Why nothing was read, of a command or a statement that failed.
fn unread(failure: Failure) -> Unread {
    let is_passing = failure.is_deadlock() || failure.is(DEFINITION_CHANGED) || failure.is(NEEDS_PREPARING);
    match failure {
        Failure::Lost { cause, .. } => Unread::Lost(cause),
        Failure::Server(error) if is_passing => Unread::Outdated(error),
        failure => Unread::Failed(failure.into_write_error()),
    }
}

/// Why a text cannot be read from a shared connection in one snapshot, if so.
pub(crate) fn refusal(plan: &Plan, sql: &str) -> Option<String> {
    if let Some(reason) = plan.refusal() {
        return Some(reason);
    }
    let reason = if plan.role != Role::Shares || !plan.reads {
        "a loader runs queries, and this is another statement; use the writer"
    } else if uses_its_session(sql) {
        "the query uses a variable or a lock of its session, which is not its own; use a transaction of Writer::begin"
    } else if locks_what_it_reads(sql) {
        "a query that locks rows reads past the snapshot; use a transaction of Writer::begin"
    } else {
        return None;
    };
    Some(reason.to_owned())
}

impl Reading {
    /// A connection to read from.
    pub(crate) async fn open(connections: &Arc<Connections>) -> Result<Self, WriteError> {
        let permit = connections.permit(Purpose::Read).await?;
        // Its tries begin now, not when it began to wait for its turn.
        let lease = connections.take_with(permit, &mut connections.backoff()).await?;
        let bytes_max = lease.max_rows_bytes();
        Ok(Self {
            connections: Arc::clone(connections),
            lease: Some(lease),
            bytes_max,
            columns: None,
        })
    }

    fn lease(&mut self) -> &mut Lease {
        self.lease.as_mut().expect("it is there until it is dropped")
    }

    /// Whether a query gives all rows for many keys as it does for one: no limit of the session's own cuts them.
    pub(crate) fn selects_are_whole(&mut self) -> bool {
        self.lease().server().selects_are_whole
    }

    /// Asks what parameters and columns a text has.
    pub(crate) async fn describe(&mut self, sql: &str) -> Result<Described, Unread> {
        let prepared = self.lease().prepare(sql).await;
        let prepared = prepared.map_err(|failure| self.unread(failure))?;
        Ok(Described {
            parameters: prepared.placeholders(),
            columns: self.columns_of(&prepared.columns()),
        })
    }

    /// The rows for one list of parameters after the other, all in one snapshot that begins now.
    pub(crate) async fn snapshot(
        &mut self,
        sql: &str,
        lists: &[Parameters],
    ) -> Result<Vec<Result<Rows, Unread>>, Unread> {
        let bytes_max = self.bytes_max;
        let connection = &mut **self.lease();
        let read = match connection.prepare(sql).await {
            Ok(prepared) => connection.read_in_snapshot(sql, &prepared, lists, bytes_max).await,
            Err(failure) => Err(failure),
        };
        let read = read.map_err(|failure| self.unread(failure))?;
        Ok(read.into_iter().map(|read| self.rows(sql, read)).collect())
    }

    fn rows(&mut self, sql: &str, Read { answer, is_in_snapshot }: Read) -> Result<Rows, Unread> {
        match answer {
            Ok(ResultSet { columns, rows, .. }) if is_in_snapshot => Ok(Rows {
                columns: self.columns_of(&columns),
                rows,
            }),
            Ok(_) => {
                let message = "the transaction that reads was ended by the database";
                Err(Unread::Outdated(StatementError::new(Kind::Conflict, 0, message)))
            }
            Err(Failure::TooMuch(_)) => {
                let most = self.bytes_max;
                let message =
                    format!("its rows take more than {most} bytes, with those of its neighbours (max_rows_bytes)");
                Err(Unread::Failed(found_here(Kind::TooLarge, message)))
            }
            Err(failure) => {
                if failure.is(NEEDS_PREPARING) {
                    self.lease().forget(sql);
                }
                Err(self.unread(failure))
            }
        }
    }

    fn unread(&self, failure: Failure) -> Unread {
        if matches!(failure, Failure::Lost { .. }) {
            self.connections.note_loss();
        }
        unread(failure)
    }

    fn columns_of(&mut self, wire: &Arc<[mysql_link::Column]>) -> Arc<[Column]> {
        if let Some((known, columns)) = &self.columns
            && known == wire
        {
            return Arc::clone(columns);
        }
        let columns: Arc<[Column]> = wire.iter().map(Column::of).collect();
        self.columns = Some((Arc::clone(wire), Arc::clone(&columns)));
        columns
    }
}

impl Column {
    fn of(column: &mysql_link::Column) -> Self {
        let kind = column.column_type();
        Self {
            name: column.name_str().into_owned(),
            is_json: kind == ColumnType::MYSQL_TYPE_JSON,
            is_whole_number: matches!(
                kind,
                ColumnType::MYSQL_TYPE_TINY
                    | ColumnType::MYSQL_TYPE_SHORT
                    | ColumnType::MYSQL_TYPE_INT24
                    | ColumnType::MYSQL_TYPE_LONG
                    | ColumnType::MYSQL_TYPE_LONGLONG
            ),
        }
    }
}

impl Drop for Reading {
    /// Half-way, the server is told that nobody waits any more.
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if lease.is_open() {
            runtime.spawn(async move {
                // What fails here is not handed out again.
                let _ = lease.rollback().await;
            });
        } else if lease.is_unanswered() {
            let connections = Arc::clone(&self.connections);
            // The killing connection takes the killed one's place, so its permit is kept until that is over.
            runtime.spawn(async move { drop(connections.kill(lease).await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use testbed::MariaDb;

    use super::*;
    use crate::MySql;
    use crate::connection::ConnectionId;

    #[tokio::test]
    async fn only_the_connection_of_that_number_and_address_is_killed() {
        let server = tokio::task::spawn_blocking(MariaDb::start).await.unwrap().unwrap();
        let mysql = MySql::connect(&server.url()).await.unwrap();
        let mut reading = Reading::open(&mysql.inner.connections).await.unwrap();
        let id = reading.lease().id().unwrap().clone();
        let of_another_server = ConnectionId {
            number: id.number,
            host: "127.0.0.1:1".to_owned(),
        };
        let mut other = Reading::open(&mysql.inner.connections).await.unwrap();
        let other = other.lease();
        let one = [Parameters::from([1_i64])];
        other.kill(&of_another_server).await.unwrap();
        let before = reading.snapshot("SELECT ? + 1", &one).await.unwrap();
        assert!(before[0].is_ok(), "{before:?}");
        other.kill(&id).await.unwrap();
        let after = reading.snapshot("SELECT ? + 1", &one).await;
        assert!(matches!(after, Err(Unread::Lost(_))), "{after:?}");
    }
}
