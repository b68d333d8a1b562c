//! One connection to PostgreSQL: its driver, the statements that are prepared on it, and flights of messages.
//!
//! Promises: what is sent in one [`flight`] is sent in that order and without waiting for answers between; an answer that
//! does not come within the answer timeout counts as a lost connection; a connection on which a transaction may be open is
//! never used by somebody else. Knows no batch and no outcome.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use futures_util::{StreamExt, pin_mut};
use tokio::task::JoinHandle;
use tokio_postgres::types::{BorrowToSql, ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, SimpleQueryMessage, Statement};

use super::error::{Fate, fate};
use forebay_remote::patience::Patience;
use forebay_remote::silence::Silence;
use forebay_write::{StatementError, StatementErrorKind};

/// A connection that was idle for longer is asked whether it still is one, before a statement is entrusted to it.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// How connections are made.
pub(super) struct Manager {
    pub(super) config: Config,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
    /// Said once on every new connection.
    pub(super) greeting: Arc<str>,
    pub(super) statement_cache: usize,
    pub(super) answer_timeout: Duration,
    pub(super) rows_bytes_max: usize,
    pub(super) silence: Silence,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconnected {
    /// The server, or the system, said so.
    #[error(transparent)]
    Told(tokio_postgres::Error),
    /// It was not made in time: the server took the connection and then said nothing.
    #[error("no connection was made within {} s", .0.as_secs_f32())]
    Silent(Duration),
}

impl Manager {
    /// How long a connection may take until it can be used: the library counts only until the server is reached.
    fn made_within(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        let each = self.config.get_connect_timeout().copied();
        each.unwrap_or(self.answer_timeout).saturating_mul(hosts)
    }

    async fn open(&self) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let (client, driver) = self.config.connect(tls.clone()).await?;
            return Ok((client, tokio::spawn(drive(driver))));
        }
        let (client, driver) = self.config.connect(NoTls).await?;
        Ok((client, tokio::spawn(drive(driver))))
    }
}

/// Runs the connection until it ends. How it ended, whoever waits for an answer is told.
async fn drive<D: Future<Output = Result<(), tokio_postgres::Error>>>(driver: D) {
    if let Err(error) = driver.await {
        tracing::debug!(%error, "a connection to PostgreSQL ended");
    }
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = Unconnected;

    async fn create(&self) -> Result<Connection, Unconnected> {
        let making = async {
            let (client, driver) = self.open().await?;
            let mut connection = Connection {
                name_at_server: None,
                client,
                driver,
                statements: HashMap::new(),
                statements_max: self.statement_cache,
                uses: 0,
                in_transaction: false,
                answer_timeout: self.answer_timeout,
                patience: Patience::new(self.answer_timeout),
                is_silent: AtomicBool::new(false),
                rows_bytes_max: self.rows_bytes_max,
                greeting: Arc::clone(&self.greeting),
            };
            connection.client.batch_execute(&self.greeting).await?;
            connection.name_at_server = NameAtServer::read(&connection.client).await?;
            Ok(connection)
        };
        match tokio::time::timeout(self.made_within(), making).await {
            Ok(made) => made.map_err(Unconnected::Told),
            Err(_) => Err(Unconnected::Silent(self.made_within())),
        }
    }

    async fn recycle(&self, connection: &mut Connection, metrics: &Metrics) -> RecycleResult<Unconnected> {
        if !connection.is_usable() {
            return Err(RecycleError::message("it is closed, or in the middle of something"));
        }
        if metrics.last_used() <= TRUSTED_FOR {
            return Ok(());
        }
        if self.silence.is_after(metrics.created) {
            return Err(RecycleError::message("it was made before one that died without a word"));
        }
        match tokio::time::timeout(self.made_within(), connection.client.check_connection()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(RecycleError::message("it is closed")),
            Err(_) => {
                self.silence.note();
                Err(RecycleError::message("the server does not answer on it"))
            }
        }
    }
}

/// A connection, and what is prepared on it.
pub(super) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    statements: HashMap<Arc<str>, Kept>,
    statements_max: usize,
    /// Counts the uses of statements, to know the one that was used the longest ago.
    uses: u64,
    /// Set before a transaction begins, cleared when its end was answered.
    in_transaction: bool,
    answer_timeout: Duration,
    patience: Patience,
    is_silent: AtomicBool,
    rows_bytes_max: usize,
    /// What every new connection is told.
    greeting: Arc<str>,
    /// What the server calls it, if it tells.
    name_at_server: Option<NameAtServer>,
}

/// What tells a connection from all others at its server, and at that server started again.
#[derive(Debug, Clone)]
pub(super) struct NameAtServer {
    process_id: i32,
    /// In seconds, as the server writes them.
    began: String,
}

impl NameAtServer {
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

struct Kept {
    prepared: Prepared,
    used: u64,
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
        let message = format!("its rows take {bytes} bytes, and at most {most} are taken (rows_bytes_max)");
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
    /// Whether it was lost without a word.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// What the server calls it, if it tells.
    pub(super) fn name_at_server(&self) -> Option<&NameAtServer> {
        self.name_at_server.as_ref()
    }

    /// Has the server end another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    pub(super) async fn end_other(&self, name: &NameAtServer) -> Result<(), Fate> {
        let end = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE pid = $1 AND EXTRACT(epoch FROM backend_start)::text = $2";
        let mut delay = Duration::from_millis(1);
        loop {
            let parameters: [&(dyn ToSql + Sync); 2] = [&name.process_id, &name.began];
            if self.within(self.client.query(end, &parameters), end).await?.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(Duration::from_millis(50));
        }
    }

    /// Whether it can be handed to somebody else.
    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.in_transaction
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
    pub(super) async fn restore(&mut self) {
        if self.is_usable() {
            self.begins();
            let restored = format!(
                "RESET SESSION AUTHORIZATION; RESET ALL; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; UNLISTEN *; \
                 CLOSE ALL; SELECT pg_catalog.setseed(pg_catalog.sin((EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1e6)::float8)); \
                 {}",
                self.greeting
            );
            if self.say(&restored).await.is_ok() {
                self.ended();
            }
        }
    }

    /// The statement, prepared now if it was not before. `types` are those of the first parameters; the server chooses the rest.
    pub(super) async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Prepared, Fate> {
        self.uses += 1;
        if let Some(kept) = self.statements.get_mut(sql) {
            kept.used = self.uses;
            return Ok(kept.prepared.clone());
        }
        let statement = self.within(self.client.prepare_typed(sql, types), sql).await?;
        let columns = statement
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let prepared = Prepared { statement, columns };
        if self.statements.len() >= self.statements_max {
            let oldest = self.statements.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(oldest) = oldest.map(|(sql, _)| Arc::clone(sql)) {
                self.statements.remove(&oldest);
            }
        }
        let kept = Kept {
            prepared: prepared.clone(),
            used: self.uses,
        };
        self.statements.insert(sql.into(), kept);
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

    /// Says something that has no parameters and no rows.
    pub(super) async fn say(&self, sql: &str) -> Result<(), Fate> {
        self.within(self.client.batch_execute(sql), sql).await
    }

    /// Executes one statement.
    pub(super) async fn execute<P>(&self, prepared: &Prepared, parameters: P, sql: &str) -> Result<Answered, Fate>
    where
        P: IntoIterator + Send,
        P::Item: ToSql + Sync + Send,
        P::IntoIter: ExactSizeIterator + Send,
    {
        self.within(answer(Whose::Callers, self, &prepared.statement, parameters), sql)
            .await
    }

    /// The client, for the messages of a [`flight`].
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for the answer, for as long as is waited for one.
    pub(super) async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        sql: &str,
    ) -> Result<T, Fate> {
        match self.patience.wait_for(answer).await {
            Some(answer) => answer.map_err(|error| fate(&error, sql)),
            None => Err(self.silent()),
        }
    }

    /// Waits for all answers of a flight.
    pub(super) async fn all<T>(&self, flight: impl Future<Output = T>) -> Result<T, Fate> {
        self.patience.wait_for(flight).await.ok_or_else(|| self.silent())
    }

    /// The server says nothing: whatever it does, nobody will hear of it on this connection.
    fn silent(&self) -> Fate {
        self.is_silent.store(true, Ordering::Relaxed);
        self.driver.abort();
        Fate::Lost(format!("no answer within {} s", self.answer_timeout.as_secs_f32()))
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
        Whose::Callers => connection.rows_bytes_max,
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

/// A message that is part of a flight, and its answer.
pub(super) type Message<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends all messages in their order, then waits for all answers, which are in the same order.
///
/// A client sends when its future is first polled. That must happen in order: what joins futures elsewhere promises no order.
pub(super) async fn flight<T>(mut messages: Vec<Message<'_, T>>) -> Vec<T> {
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
