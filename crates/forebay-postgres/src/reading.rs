//! Reading on a connection: what a text is, and its rows, for one list of parameters or for many.
//!
//! Promises: nothing is written; what is read in one call is read in one snapshot; a read whose future is dropped is cancelled
//! at the server, and its connection is nobody else's. Knows nothing of keys.

use deadpool::managed::Object;
use tokio_postgres::NoTls;
use tokio_postgres::types::Type;

use super::connection::{Answered, Connection, Message, Prepared, Whose, answer, flight};
use super::error::{Fate, fate};
use super::types;
use super::{Postgres, Taken};
use forebay_write::{StatementError, StatementErrorKind, Value, WriteError};

/// One snapshot, in which nothing can be written.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const SAVE: &str = "SAVEPOINT forebay_read";
const UNDO: &str = "ROLLBACK TO forebay_read";
const COMMIT: &str = "COMMIT";
/// Statements that are sent together: what waits for its answer in memory is bounded by this.
const FLIGHT: usize = 256;
/// Bytes of rows that one call takes.
const ROWS_BYTES_MAX: usize = 256 << 20;

/// A connection to read from.
pub(crate) struct Reading {
    /// None once it was dropped.
    taken: Option<Taken>,
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

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unread {
    /// The connection was lost; another may be had.
    Lost(String),
    /// What the server described before is no longer so.
    Outdated(StatementError),
    /// Its own.
    Failed(StatementError),
}

impl Unread {
    /// What the caller is told, where nothing else is done about it.
    pub(crate) fn into_error(self) -> WriteError {
        match self {
            Self::Lost(cause) => WriteError::Unavailable { cause },
            Self::Outdated(error) | Self::Failed(error) => error.into(),
        }
    }
}

impl From<Fate> for Unread {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Lost(cause) => Self::Lost(cause),
            Fate::Replan(error) => Self::Outdated(error),
            other => Self::Failed(other.statement()),
        }
    }
}

impl Postgres {
    /// A connection to read from.
    pub(crate) async fn reading(&self) -> Result<Reading, WriteError> {
        let taken = self.inner.take(&self.inner.reading, self.inner.deadline()).await?;
        Ok(Reading { taken: Some(taken) })
    }
}

impl Reading {
    fn connection(&mut self) -> &mut Connection {
        let taken = self.taken.as_mut().expect("it is there until it is dropped");
        &mut taken.connection
    }

    /// Asks what parameters and columns a text has.
    pub(crate) async fn describe(&mut self, sql: &str) -> Result<Described, Unread> {
        let prepared = self.connection().prepare(sql, &[]).await?;
        let columns = prepared.statement.columns().iter().map(|column| Column {
            name: column.name().to_owned(),
            kind: column.type_().clone(),
        });
        Ok(Described {
            parameters: prepared.statement.params().into(),
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
        let checks = lists
            .iter()
            .map(|values| types::check(prepared.statement.params(), values));
        let mut told: Vec<Result<Rows, Unread>> = Vec::with_capacity(lists.len());
        let mut sound: Vec<usize> = Vec::with_capacity(lists.len());
        for (place, check) in checks.enumerate() {
            if check.is_ok() {
                sound.push(place);
            }
            told.push(check.map(|()| Rows::new()).map_err(Unread::Failed));
        }
        let connection = self.connection();
        connection.begins();
        let read = Transaction {
            connection,
            prepared: &prepared,
            sql,
            lists,
            bytes_left: ROWS_BYTES_MAX,
        }
        .run(&sound, &mut told)
        .await;
        match read {
            Ok(()) => connection.ended(),
            Err(lost) => return Err(lost),
        }
        let outdated = told.iter().any(|told| matches!(told, Err(Unread::Outdated(_))));
        if outdated {
            self.connection().forget_statements();
        }
        Ok(told)
    }

    /// The statement, if its columns can be read.
    async fn ready(&mut self, sql: &str) -> Result<Prepared, Unread> {
        let prepared = self.connection().prepare(sql, &[]).await?;
        let columns = prepared.statement.columns();
        match columns.iter().find(|column| !types::returnable(column.type_())) {
            Some(column) => Err(Unread::Failed(types::unreturnable(column.name(), column.type_()))),
            None => Ok(prepared),
        }
    }
}

impl Drop for Reading {
    /// Half-way, the server is told that nobody waits any more, and the connection is closed.
    fn drop(&mut self) {
        let Some(taken) = self.taken.take() else {
            return;
        };
        if taken.connection.is_usable() {
            return;
        }
        #[cfg(feature = "tls")]
        let tls = Object::pool(&taken.connection).and_then(|pool| pool.manager().tls.clone());
        let connection = Object::take(taken.connection);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let token = connection.client().cancel_token();
        runtime.spawn(async move {
            // Closed only afterwards: the server looks whether its client is there only when it has something to say. If it
            // cannot be told to stop, it will stop then.
            #[cfg(feature = "tls")]
            let told = match tls {
                Some(tls) => token.cancel_query(tls).await,
                None => token.cancel_query(NoTls).await,
            };
            #[cfg(not(feature = "tls"))]
            let told = token.cancel_query(NoTls).await;
            if let Err(error) = told {
                tracing::debug!(%error, "a read could not be cancelled");
            }
            drop(connection);
        });
    }
}

/// A transaction that reads.
struct Transaction<'a> {
    connection: &'a Connection,
    prepared: &'a Prepared,
    sql: &'a str,
    lists: &'a [&'a [Value]],
    bytes_left: usize,
}

impl<'a> Transaction<'a> {
    /// Executes for these places. An error is of the connection: then nobody knows where the transaction is.
    async fn run(mut self, places: &[usize], told: &mut [Result<Rows, Unread>]) -> Result<(), Unread> {
        if let [only] = places {
            // Alone there is nothing to be kept from an error, and everything goes in one flight.
            let mut answers = self.fly(&[Say(BEGIN), Execute(*only), Say(COMMIT)]).await?;
            answers.pop().expect("an answer a message")?;
            let answer = answers.pop().expect("an answer a message");
            answers.pop().expect("an answer a message")?;
            told[*only] = self.rows(answer)?;
            return Ok(());
        }
        let mut waiting = places;
        let mut is_hopeful = true;
        let mut first = vec![Say(BEGIN), Say(SAVE)];
        while !waiting.is_empty() {
            let (now, later) = waiting.split_at(waiting.len().min(FLIGHT));
            let mut messages = std::mem::take(&mut first);
            for place in now {
                // After an error the server skips everything up to the savepoint.
                if !is_hopeful {
                    messages.push(Say(UNDO));
                }
                messages.push(Execute(*place));
            }
            let answers = self.fly(&messages).await?;
            waiting = later;
            for (message, answer) in messages.iter().zip(answers) {
                let Execute(place) = message else {
                    answer?;
                    continue;
                };
                told[*place] = self.rows(answer)?;
                if is_hopeful && told[*place].is_err() {
                    is_hopeful = false;
                    let at = places
                        .iter()
                        .position(|other| other == place)
                        .expect("it is one of them");
                    waiting = &places[at + 1..];
                    break;
                }
            }
        }
        for answer in self.fly(&[Say(COMMIT)]).await? {
            answer?;
        }
        Ok(())
    }

    async fn fly(&self, messages: &[Do]) -> Result<Vec<Result<Answered, Fate>>, Unread> {
        let client = self.connection.client();
        let messages = messages
            .iter()
            .map(|message| -> Message<'_, Result<Answered, Fate>> {
                match *message {
                    Say(command) => Box::pin(async move {
                        let said = client.batch_execute(command).await;
                        said.map(|()| Answered::nothing())
                            .map_err(|error| fate(&error, command))
                    }),
                    Execute(place) => {
                        let parameters: Vec<types::Parameter<'_>> =
                            self.lists[place].iter().map(types::Parameter).collect();
                        Box::pin(async move {
                            answer(Whose::Callers, self.connection, &self.prepared.statement, parameters)
                                .await
                                .map_err(|error| fate(&error, self.sql))
                        })
                    }
                }
            })
            .collect();
        Ok(self.connection.all(flight(messages)).await?)
    }

    /// The rows of one execution. The outer error is of the connection.
    fn rows(&mut self, answer: Result<Answered, Fate>) -> Result<Result<Rows, Unread>, Unread> {
        let answered = match answer.map_err(Unread::from) {
            Ok(answered) => answered,
            Err(lost @ Unread::Lost(_)) => return Err(lost),
            Err(own) => return Ok(Err(own)),
        };
        if let Some(too_many) = answered.too_many {
            return Ok(Err(Unread::Failed(too_many.into())));
        }
        let columns = self.prepared.columns.len();
        let mut rows = Rows::with_capacity(answered.rows.len());
        for row in &answered.rows {
            let values: Result<Vec<Value>, StatementError> =
                (0..columns).map(|column| types::value(row, column)).collect();
            let values = match values {
                Ok(values) => values,
                Err(error) => return Ok(Err(Unread::Failed(error))),
            };
            let bytes: usize = values.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum();
            let Some(left) = self.bytes_left.checked_sub(bytes) else {
                let message = format!("its rows take more than {ROWS_BYTES_MAX} bytes, with those of its neighbours");
                return Ok(Err(Unread::Failed(StatementError::new(
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
enum Do {
    Say(&'static str),
    /// For the list of parameters at that place.
    Execute(usize),
}
use Do::{Execute, Say};
