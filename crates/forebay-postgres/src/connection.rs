//! One connection to PostgreSQL: its driver, the statements that are prepared on it, and pipelines of messages.
//!
//! Promises: what is sent in one [`pipeline`] is sent in that order and without waiting for answers between; an answer that
//! does not come within the answer timeout counts as a lost connection; a connection on which a transaction may be open is
//! never used by somebody else. Knows no batch and no outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use tokio::task::JoinHandle;
use tokio_postgres::types::{BorrowToSql, ToSql, Type};
use tokio_postgres::{Client, NoTls, Row, SimpleQueryMessage, Statement};

use super::error::{Failure, failure};
use super::session::setup;
use forebay_remote::answer_timeout::AnswerTimeout;
use forebay_remote::settings::Settings;
use forebay_remote::statements::Statements;
use forebay_write::{StatementError, StatementErrorKind};

/// A connection, and what is prepared on it.
pub(super) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    statements: Statements<Prepared>,
    /// Set before a transaction begins, cleared when its end was answered.
    in_transaction: bool,
    answer_timeout: AnswerTimeout,
    /// The server did not answer in time.
    is_silent: AtomicBool,
    settings: Settings,
    id: Option<ConnectionId>,
    /// To cancel what it is at.
    #[cfg(feature = "tls")]
    tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
}

/// What tells a connection from all others at its server, and at that server started again.
#[derive(Debug, Clone)]
pub(super) struct ConnectionId {
    process_id: i32,
    /// In seconds, as the server writes them.
    began: String,
}

impl ConnectionId {
    async fn read(client: &Client) -> Result<Option<Self>, tokio_postgres::Error> {
        let asked = "SELECT pid, EXTRACT(epoch FROM backend_start)::text AS began \
             FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";
        let messages = match client.simple_query(asked).await {
            Ok(messages) => messages,
            // What speaks as PostgreSQL does and has no such function: nobody can be told then.
            Err(error) if error.as_db_error().is_some() => return Ok(None),
            Err(lost) => return Err(lost),
        };
        Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(Self {
                process_id: row.get("pid")?.parse().ok()?,
                began: row.get("began")?.to_owned(),
            }),
            _ => None,
        }))
    }
}

/// A statement that the server knows. Clones are the same one.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) statement: Statement,
    /// The names of the columns that it returns.
    pub(super) columns: Arc<[String]>,
}

/// What one statement was answered.
pub(super) struct Answered {
    /// None if they took more than is taken.
    pub(super) rows: Vec<Row>,
    /// So many bytes they were, if that was too many.
    pub(super) too_many: Option<TooMany>,
    /// The count in the server's command tag.
    pub(super) count: u64,
}

/// Rows that were received and not kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooMany {
    bytes: usize,
    most: usize,
}

impl From<TooMany> for StatementError {
    fn from(TooMany { bytes, most }: TooMany) -> Self {
        let message = format!("its rows take {bytes} bytes, and at most {most} are taken (max_rows_bytes)");
        Self::new(StatementErrorKind::TooLarge, 0, message)
    }
}

impl Answered {
    /// Of what has neither rows nor a count.
    pub(super) fn nothing() -> Self {
        Self {
            rows: Vec::new(),
            too_many: None,
            count: 0,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server that does not answer would keep the driver for ever. The server rolls back what is open.
        self.driver.abort();
    }
}

impl Connection {
    /// A connection that was made. It is to be [set up](Self::set_up).
    pub(super) fn new(
        client: Client,
        driver: JoinHandle<()>,
        settings: Settings,
        #[cfg(feature = "tls")] tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
    ) -> Self {
        Self {
            client,
            driver,
            // They weigh nothing: there is no bound but their number.
            statements: Statements::new(settings.statement_cache, usize::MAX),
            in_transaction: false,
            answer_timeout: AnswerTimeout::new(settings.answer_timeout),
            is_silent: AtomicBool::new(false),
            settings,
            id: None,
            #[cfg(feature = "tls")]
            tls,
        }
    }

    /// Sets its session up.
    pub(super) async fn set_up(mut self) -> Result<Self, tokio_postgres::Error> {
        self.client.batch_execute(&setup(&self.settings)).await?;
        self.id = ConnectionId::read(&self.client).await?;
        Ok(self)
    }

    /// Whether it was lost because the server did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// What the server calls it, if it tells.
    pub(super) fn id(&self) -> Option<&ConnectionId> {
        self.id.as_ref()
    }

    /// Has the server kill another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    pub(super) async fn kill(&self, other: &ConnectionId) -> Result<(), Failure> {
        let kill = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE pid = $1 AND EXTRACT(epoch FROM backend_start)::text = $2";
        let mut delay = Duration::from_millis(1);
        loop {
            let parameters: [&(dyn ToSql + Sync); 2] = [&other.process_id, &other.began];
            if self
                .within(self.client.query(kill, &parameters), kill)
                .await?
                .is_empty()
            {
                return Ok(());
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(Duration::from_millis(50));
        }
    }

    /// Whether it can be handed to somebody else.
    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.in_transaction && !self.is_silent()
    }

    /// From here on it is nobody else's until [`ended`](Self::ended).
    pub(super) fn begins(&mut self) {
        self.in_transaction = true;
    }

    /// No transaction is open any more.
    pub(super) fn ended(&mut self) {
        self.in_transaction = false;
    }

    /// Makes the session what it was when it was new, after a statement that may have changed it; where that fails, nobody
    /// uses the connection again. What is prepared stays.
    pub(super) async fn reset_session(&mut self) {
        if self.is_usable() {
            self.begins();
            let reset = format!(
                "RESET SESSION AUTHORIZATION; RESET ALL; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; UNLISTEN *; \
                 CLOSE ALL; SELECT pg_catalog.setseed(pg_catalog.sin((EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1e6)::float8)); \
                 {}",
                setup(&self.settings)
            );
            if self.command(&reset).await.is_ok() {
                self.ended();
            }
        }
    }

    /// The statement, prepared now if it was not before. `types` are those of the first parameters; the server chooses the rest.
    pub(super) async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Prepared, Failure> {
        if let Some(prepared) = self.statements.find(sql) {
            return Ok(prepared);
        }
        let statement = self.within(self.client.prepare_typed(sql, types), sql).await?;
        let columns = statement
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let prepared = Prepared { statement, columns };
        // The library closes what is dropped.
        while let Some(old) = self.statements.make_room(0) {
            drop(old);
        }
        self.statements.keep(sql, 0, prepared.clone());
        Ok(prepared)
    }

    /// Forgets one statement; whether it was prepared.
    pub(super) fn forget(&mut self, sql: &str) -> bool {
        self.statements.remove(sql).is_some()
    }

    /// Forgets all that is prepared here: the schema has changed.
    pub(super) fn forget_statements(&mut self) {
        self.statements.clear();
        self.client.clear_type_cache();
    }

    /// Sends a command, or several, without parameters and rows.
    pub(super) async fn command(&self, sql: &str) -> Result<(), Failure> {
        self.within(self.client.batch_execute(sql), sql).await
    }

    /// Executes one statement.
    pub(super) async fn execute<P>(&self, prepared: &Prepared, parameters: P, sql: &str) -> Result<Answered, Failure>
    where
        P: IntoIterator + Send,
        P::Item: ToSql + Sync + Send,
        P::IntoIter: ExactSizeIterator + Send,
    {
        self.within(answer(Whose::Callers, self, &prepared.statement, parameters), sql)
            .await
    }

    /// The client, for the messages of a [`pipeline`].
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for the answer, for as long as is waited for one.
    pub(super) async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        sql: &str,
    ) -> Result<T, Failure> {
        match self.answer_timeout.wait_for(answer).await {
            Some(answer) => answer.map_err(|error| failure(&error, sql)),
            None => Err(self.silent()),
        }
    }

    /// Waits for all answers of a pipeline.
    pub(super) async fn all<T>(&self, pipeline: impl Future<Output = T>) -> Result<T, Failure> {
        self.answer_timeout
            .wait_for(pipeline)
            .await
            .ok_or_else(|| self.silent())
    }

    /// Tells the server that nobody waits any more for what it is at, then closes the connection.
    pub(super) async fn cancel(self) {
        let token = self.client.cancel_token();
        // Closed only afterwards: the server looks whether its client is there only when it has something to say. If it cannot be
        // told to stop, it will stop then.
        #[cfg(feature = "tls")]
        let cancelled = match &self.tls {
            Some(tls) => token.cancel_query(tls.clone()).await,
            None => token.cancel_query(NoTls).await,
        };
        #[cfg(not(feature = "tls"))]
        let cancelled = token.cancel_query(NoTls).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "a statement could not be cancelled");
        }
    }

    /// The server says nothing: whatever it does, nobody will hear of it on this connection.
    fn silent(&self) -> Failure {
        self.is_silent.store(true, Ordering::Relaxed);
        self.driver.abort();
        Failure::Lost(format!(
            "no answer within {} s",
            self.settings.answer_timeout.as_secs_f32()
        ))
    }
}

/// Whose statement is executed.
#[derive(Clone, Copy)]
pub(super) enum Whose {
    /// Its rows may take so much memory and no more.
    Callers,
    /// Its answer is as long as it has to be.
    Ours,
}

/// Executes a statement and takes what it returns.
pub(super) async fn answer<P>(
    whose: Whose,
    connection: &Connection,
    statement: &Statement,
    parameters: P,
) -> Result<Answered, tokio_postgres::Error>
where
    P: IntoIterator,
    P::Item: BorrowToSql,
    P::IntoIter: ExactSizeIterator,
{
    let most = match whose {
        Whose::Callers => connection.settings.max_rows_bytes,
        Whose::Ours => usize::MAX,
    };
    let stream = connection.client.query_raw(statement, parameters).await?;
    pin_mut!(stream);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = stream.next().await {
        let row = row?;
        bytes += size_of::<Row>() + row.raw_size_bytes();
        if bytes <= most {
            rows.push(row);
        } else {
            rows = Vec::new();
        }
    }
    Ok(Answered {
        rows,
        too_many: (bytes > most).then_some(TooMany { bytes, most }),
        count: stream.rows_affected().unwrap_or(0),
    })
}

/// A message that is part of a pipeline, and its answer.
pub(super) type Message<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends all messages in their order, then waits for all answers, which are in the same order.
///
/// A client sends when its future is first polled. That must happen in order: what joins futures elsewhere promises no order.
pub(super) async fn pipeline<T>(mut messages: Vec<Message<'_, T>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = Vec::with_capacity(messages.len());
    std::future::poll_fn(|context| {
        for message in &mut messages {
            answers.push(match message.as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            });
        }
        Poll::Ready(())
    })
    .await;
    // Answers come in the order of the questions too, so waiting for one after the other misses nothing.
    let mut told = Vec::with_capacity(messages.len());
    for (message, answer) in messages.into_iter().zip(answers) {
        told.push(match answer {
            Some(answer) => answer,
            None => message.await,
        });
    }
    told
}
