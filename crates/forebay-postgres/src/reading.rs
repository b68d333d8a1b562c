//! Reading on a connection: what a text is, and its rows, for one list of parameters or for many.
//!
//! Promises: nothing is written; what is read in one call is read in one snapshot; a read whose future is dropped is cancelled
//! at the server, and its connection is nobody else's. Knows nothing of keys.

use std::sync::Arc;

use postgres_types::Type;

use super::answered::Answered;
use super::connection::Connection;
use super::connector::{Connections, Lease};
use super::error::{Failure, failure};
use super::pipeline::{Answer, Pipeline, Whose};
use super::prepared::Prepared;
use super::statement::returnable;
use super::types;
use forebay_remote::connections::Purpose;
use forebay_remote::load::Unread;
use forebay_write::{StatementError, StatementErrorKind, Value, WriteError};

/// One snapshot, in which nothing can be written.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const SAVE: &str = "SAVEPOINT forebay_read";
const UNDO: &str = "ROLLBACK TO forebay_read";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// Statements that are sent together: what waits for its answer in memory is bounded by this.
const PIPELINE_MAX: usize = 256;
/// Bytes of rows that one call takes.
const ROWS_BYTES_MAX: usize = 256 << 20;

/// A connection to read from.
pub(crate) struct Reading {
    /// None once it was dropped.
    lease: Option<Lease>,
}

/// What the server says of a text.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) parameters: Box<[Type]>,
    pub(crate) columns: Box<[Column]>,
}

/// A column of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Type,
}

/// Rows, each a value a column.
pub(crate) type Rows = Vec<Vec<Value>>;

/// Why nothing was read, of a command or a statement that failed.
fn unread(failure: Failure) -> Unread {
    match failure {
        Failure::Lost(cause) => Unread::Lost(cause),
        Failure::Replan(error) => Unread::Outdated(error),
        other => failed(other.statement()),
    }
}

/// The statement's own error.
fn failed(error: StatementError) -> Unread {
    Unread::Failed(error.into())
}

impl Reading {
    /// A connection to read from.
    pub(crate) async fn open(connections: &Arc<Connections>) -> Result<Self, WriteError> {
        let lease = connections.take(Purpose::Read, &mut connections.backoff()).await?;
        Ok(Self { lease: Some(lease) })
    }

    fn connection(&mut self) -> &mut Connection {
        self.lease.as_mut().expect("it is there until it is dropped")
    }

    /// Asks what parameters and columns a text has.
    pub(crate) async fn describe(&mut self, sql: &str) -> Result<Described, Unread> {
        let prepared = self.connection().prepare(sql, &[]).await.map_err(unread)?;
        let columns = prepared.column_names.iter().zip(&*prepared.columns);
        let columns = columns.map(|(name, kind)| Column {
            name: name.clone(),
            kind: kind.clone(),
        });
        Ok(Described {
            parameters: (*prepared.parameters).into(),
            columns: columns.collect(),
        })
    }

    /// The rows for one list of parameters.
    pub(crate) async fn once(&mut self, sql: &str, values: &[Value]) -> Result<Rows, Unread> {
        let mut all = self.each(sql, &[values]).await?;
        all.pop().expect("one list of parameters has one outcome")
    }

    /// The rows for each list of parameters; the error of one is that one's.
    pub(crate) async fn each(&mut self, sql: &str, lists: &[&[Value]]) -> Result<Vec<Result<Rows, Unread>>, Unread> {
        let prepared = self.ready(sql).await?;
        let checks = lists.iter().map(|values| types::check(&prepared.parameters, values));
        let mut outcomes: Vec<Result<Rows, Unread>> = Vec::with_capacity(lists.len());
        let mut sound: Vec<usize> = Vec::with_capacity(lists.len());
        for (index, check) in checks.enumerate() {
            if check.is_ok() {
                sound.push(index);
            }
            outcomes.push(check.map(|()| Rows::new()).map_err(failed));
        }
        let ran = Transaction {
            connection: self.connection(),
            prepared: &prepared,
            sql,
            lists,
            bytes_left: ROWS_BYTES_MAX,
        }
        .run(&sound, &mut outcomes)
        .await;
        let is_outdated = |unread: &Unread| matches!(unread, Unread::Outdated(_));
        if ran.as_ref().is_err_and(is_outdated) || outcomes.iter().any(|one| one.as_ref().is_err_and(is_outdated)) {
            self.connection().forget_statements();
        }
        ran?;
        Ok(outcomes)
    }

    /// The statement, if its columns can be read.
    async fn ready(&mut self, sql: &str) -> Result<Prepared, Unread> {
        let prepared = self.connection().prepare(sql, &[]).await.map_err(unread)?;
        returnable(&prepared).map_err(failed).map(|()| prepared)
    }
}

impl Drop for Reading {
    /// Half-way, the server is told that nobody waits any more, and the connection is closed.
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        if lease.is_usable() {
            return;
        }
        let connection = lease.detach();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(connection.cancel());
        }
    }
}

/// A transaction that reads.
struct Transaction<'a> {
    connection: &'a mut Connection,
    prepared: &'a Prepared,
    sql: &'a str,
    lists: &'a [&'a [Value]],
    bytes_left: usize,
}

impl Transaction<'_> {
    /// Executes for these indices. An error is of the connection: then nobody knows where the transaction is.
    async fn run(mut self, indices: &[usize], outcomes: &mut [Result<Rows, Unread>]) -> Result<(), Unread> {
        if let [only] = indices {
            outcomes[*only] = self.alone(self.lists[*only]).await?;
            return Ok(());
        }
        let mut waiting = indices;
        let mut is_hopeful = true;
        let mut first = vec![Command(BEGIN), Command(SAVE)];
        while !waiting.is_empty() {
            let (now, later) = waiting.split_at(waiting.len().min(PIPELINE_MAX));
            let mut messages = std::mem::take(&mut first);
            for index in now {
                // After an error the server skips everything up to the savepoint.
                if !is_hopeful {
                    messages.push(Command(UNDO));
                }
                messages.push(Execute(*index));
            }
            let answers = self.send(&messages).await?;
            waiting = later;
            for (message, answer) in messages.iter().zip(answers) {
                let Execute(index) = message else {
                    answer.map_err(unread)?;
                    continue;
                };
                outcomes[*index] = self.rows(answer)?;
                if is_hopeful && outcomes[*index].is_err() {
                    is_hopeful = false;
                    let at = indices
                        .iter()
                        .position(|other| other == index)
                        .expect("it is one of them");
                    waiting = &indices[at + 1..];
                    break;
                }
            }
        }
        for answer in self.send(&[Command(COMMIT)]).await? {
            answer.map_err(unread)?;
        }
        Ok(())
    }

    /// Executes once. There is nothing to be kept from an error, so everything goes in one flight and is answered at once.
    async fn alone(&mut self, values: &[Value]) -> Result<Result<Rows, Unread>, Unread> {
        let begin = self.connection.prepare(BEGIN, &[]).await.map_err(unread)?;
        let commit = self.connection.prepare(COMMIT, &[]).await.map_err(unread)?;
        let ask = |pipeline: &mut Pipeline<'_>| {
            pipeline.together(|together| {
                together.execute(Whose::Ours, &begin, [0_i32; 0]);
                together.execute(Whose::Callers, self.prepared, values.iter().map(types::Parameter));
                together.execute(Whose::Ours, &commit, [0_i32; 0]);
            });
        };
        let answers = self.connection.pipeline(ask).await.map_err(unread)?;
        let [begun, answer, committed] = <[Answer; 3]>::try_from(answers).expect("an answer a statement");
        begun.map_err(|refusal| unread(failure(refusal, BEGIN)))?;
        match answer {
            Ok(answered) => {
                committed.map_err(|refusal| unread(failure(refusal, COMMIT)))?;
                self.rows(Ok(answered))
            }
            Err(refusal) => {
                let read = self.rows(Err(failure(refusal, self.sql)))?;
                self.connection.command(ROLLBACK).await.map_err(unread)?;
                Ok(read)
            }
        }
    }

    async fn send(&mut self, messages: &[Step]) -> Result<Vec<Result<Answered, Failure>>, Unread> {
        let Self {
            connection,
            prepared,
            lists,
            ..
        } = self;
        let ask = |pipeline: &mut Pipeline<'_>| {
            for message in messages {
                match *message {
                    Command(command) => pipeline.command(command),
                    Execute(index) => {
                        let parameters = lists[index].iter().map(types::Parameter);
                        pipeline.execute(Whose::Callers, prepared, parameters);
                    }
                }
            }
        };
        let answers = connection.pipeline(ask).await.map_err(unread)?;
        let texts = messages.iter().map(|message| match message {
            Command(command) => command,
            Execute(_) => self.sql,
        });
        let answers = answers.into_iter().zip(texts);
        Ok(answers
            .map(|(answer, sql)| answer.map_err(|refusal| failure(refusal, sql)))
            .collect())
    }

    /// The rows of one execution. The outer error is of the connection.
    fn rows(&mut self, answer: Result<Answered, Failure>) -> Result<Result<Rows, Unread>, Unread> {
        let answered = match answer.map_err(unread) {
            Ok(answered) => answered,
            Err(lost @ Unread::Lost(_)) => return Err(lost),
            Err(own) => return Ok(Err(own)),
        };
        if let Some(too_many) = answered.too_many {
            return Ok(Err(failed(too_many.into())));
        }
        let mut rows = Rows::with_capacity(answered.row_count());
        for row in answered.rows() {
            let values = match types::row(row) {
                Ok(values) => values,
                Err(error) => return Ok(Err(failed(error))),
            };
            let bytes: usize = values.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum();
            let Some(left) = self.bytes_left.checked_sub(bytes) else {
                let message = format!("its rows take more than {ROWS_BYTES_MAX} bytes, with those of its neighbours");
                return Ok(Err(failed(StatementError::new(
                    StatementErrorKind::TooLarge,
                    0,
                    message,
                ))));
            };
            self.bytes_left = left;
            rows.push(values);
        }
        Ok(Ok(rows))
    }
}

/// A message to the server.
enum Step {
    Command(&'static str),
    /// For the list of parameters at that index.
    Execute(usize),
}
use Step::{Command, Execute};
