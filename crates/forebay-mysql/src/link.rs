//! Link: one connection, with what belongs to it: its prepared statements, what the server is like, and whether another caller
//! may have it.
//!
//! Promises: a statement is prepared before it is executed, its parameters are counted and measured before they are sent, and
//! what it did is told as the server tells it. A link whose future was dropped half-way, that lost its connection, or that has
//! a transaction open, says that it cannot be had again. Knows nothing of batches or of who waits.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, Params, Row, Value as Wire};

use super::error::{Failure, NEEDS_PREPARING, NOT_PREPARABLE, NOT_ROLLED_BACK, found_here, named_parameters};
use super::server::Server;
use super::statements::{Prepared, Statements};
use super::value;
use forebay_remote::patience::Patience;
use forebay_write::{Outcome, Parameters, StatementErrorKind as Kind, Value};

/// A connection that was idle for longer is asked whether it still is one, before a statement is entrusted to it.
const TRUSTED_FOR: Duration = Duration::from_millis(100);
/// What a command takes in a packet beside its parameters.
const COMMAND_BYTES: usize = 64;

/// What every connection is set up with.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) statements: usize,
    pub(super) rows_bytes_max: usize,
    /// How long a statement waits for a lock, in whole seconds.
    pub(super) lock_timeout: Duration,
    /// How long the server may take to answer.
    pub(super) answer_timeout: Duration,
}

/// Who may have it next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Anybody: nothing is open, and the session is as it was set up.
    Idle,
    /// Anybody, once its session is set up anew.
    Changed,
    /// Nobody: a transaction is open.
    Open,
    /// Nobody ever: a command has not come to its end.
    Broken,
}

/// The driver's connection. One that is dropped in the middle of a command is closed at once.
///
/// The driver would first read what is still to come, and only then say good-bye, in a task that nobody waits for: from a server
/// that says nothing, for ever, and what is open at the server stays open as long.
struct Line {
    /// None only when it is dropped.
    conn: Option<Conn>,
    is_cut_off: bool,
}

impl Deref for Line {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        self.conn.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut Conn {
        self.conn.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_cut_off
            && let Some(conn) = self.conn.take()
        {
            // Where there is no runtime the driver has nothing to begin that task with. Without a thread it is the driver's to
            // close, as ever.
            let _ = std::thread::Builder::new()
                .name("forebay-closer".to_owned())
                .spawn(move || drop(conn));
        }
    }
}

/// One connection.
pub(super) struct Link {
    conn: Line,
    statements: Statements,
    session: Session,
    patience: Arc<Patience>,
    server: Arc<Server>,
    state: State,
    /// Whether the session's state may have been changed since it was set up.
    is_changed: bool,
    used: Instant,
    /// Connections that were made before the last loss are asked whether they still are some.
    losses_seen: u64,
    /// A command was sent, perhaps, and its answer will not be waited for.
    is_unanswered: bool,
    name_at_server: Option<NameAtServer>,
}

/// What tells a connection from all others, at its server and at any other: numbers alone begin anew with each server, and
/// count up alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameAtServer {
    pub(super) id: i64,
    /// The address that the server sees it come from.
    pub(super) host: String,
}

impl NameAtServer {
    async fn read(conn: &mut Conn) -> mysql_async::Result<Option<Self>> {
        let asked = "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        match conn.query_first(asked).await {
            // Over a socket all have the same address, and after a restart the same numbers.
            Ok(found) => Ok(found
                .map(|(id, host)| Self { id, host })
                .filter(|name| name.host.contains(':'))),
            // A server that has no such table: nobody can be told then.
            Err(mysql_async::Error::Server(_)) => Ok(None),
            Err(lost) => Err(lost),
        }
    }
}

impl Link {
    pub(super) async fn open(options: Opts, session: Session, losses_seen: u64) -> mysql_async::Result<Self> {
        let mut conn = Conn::new(options).await?;
        conn.query_drop(set_up(&session)).await?;
        let server = Server::read(&mut conn).await?;
        let name_at_server = NameAtServer::read(&mut conn).await?;
        Ok(Self {
            conn: Line {
                conn: Some(conn),
                is_cut_off: false,
            },
            statements: Statements::new(session.statements),
            patience: Arc::new(Patience::new(session.answer_timeout)),
            session,
            server: Arc::new(server),
            state: State::Idle,
            is_changed: false,
            used: Instant::now(),
            losses_seen,
            is_unanswered: false,
            name_at_server,
        })
    }

    /// What the server, and this session on it, are like.
    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Whether no statement can be sent on it any more.
    pub(super) fn is_broken(&self) -> bool {
        self.state == State::Broken
    }

    /// From now on its session may differ from how it was set up.
    pub(super) fn mark_changed(&mut self) {
        self.is_changed = true;
        if self.state == State::Idle {
            self.state = State::Changed;
        }
    }

    /// Whether the server may still be at work for it, and nobody will hear of it.
    pub(super) fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// The most bytes that the rows of one statement may take.
    pub(super) fn rows_bytes_max(&self) -> usize {
        self.session.rows_bytes_max
    }

    /// Whether a transaction is open on it.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What the server calls it, if it tells.
    pub(super) fn name_at_server(&self) -> Option<&NameAtServer> {
        self.name_at_server.as_ref()
    }

    /// Has the server end another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    pub(super) async fn end_other(&mut self, name: &NameAtServer) -> Result<(), Failure> {
        // Another server behind the same address would have another connection by that number.
        let look = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID = ? AND HOST = ?";
        let name = Parameters::from((name.id, name.host.as_str()));
        let mut delay = Duration::from_millis(1);
        let mut was_killed = false;
        while let Some([Value::Integer(id), ..]) = self.execute(look, &name).await?.rows.first().map(Vec::as_slice) {
            if !was_killed {
                match self.command(&format!("KILL {id}"), false).await {
                    Err(lost @ Failure::Lost { .. }) => return Err(lost),
                    // It has ended meanwhile, at worst.
                    _ => was_killed = true,
                }
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether its session is as it was set up, and nothing is open.
    pub(super) fn is_as_set_up(&self) -> bool {
        self.state == State::Idle
    }

    /// Nobody has it again; what is open on it goes with it.
    pub(super) fn break_off(&mut self) {
        self.state = State::Broken;
    }

    /// Makes it fit for another caller; false if it never will be.
    pub(super) async fn is_fit_again(&mut self, losses: u64) -> bool {
        let fit = match self.state {
            State::Broken | State::Open => false,
            State::Changed => self.set_up_again().await,
            State::Idle if losses != self.losses_seen || self.used.elapsed() > TRUSTED_FOR => self.answers().await,
            State::Idle => true,
        };
        self.losses_seen = losses;
        fit
    }

    /// Sets its session up anew, if that may have been changed: what is locked by name in it is free then. Where that fails,
    /// nobody has it again.
    pub(super) async fn tidy_up(&mut self) {
        if self.state == State::Changed && !self.set_up_again().await {
            self.break_off();
        }
    }

    async fn answers(&mut self) -> bool {
        self.guarded(async |link| link.conn.ping().await.map_err(|error| Failure::of(error, false)))
            .await
            .is_ok()
    }

    async fn set_up_again(&mut self) -> bool {
        let set_up = set_up(&self.session);
        self.statements.clear();
        let done = self
            .guarded(async |link| {
                let was_reset = link.conn.reset().await.map_err(|error| Failure::of(error, false))?;
                if was_reset {
                    link.conn
                        .query_drop(set_up)
                        .await
                        .map_err(|error| Failure::of(error, false))?;
                }
                Ok(was_reset)
            })
            .await;
        let fit = matches!(done, Ok(true));
        if fit {
            self.is_changed = false;
            self.state = State::Idle;
        }
        fit
    }

    /// Runs commands so that the link is broken for as long as they have not come to their end.
    async fn guarded<T>(&mut self, work: impl AsyncFnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.state == State::Broken {
            return Err(Failure::Lost {
                cause: "the connection is lost".to_owned(),
                was_sent: false,
            });
        }
        let before = std::mem::replace(&mut self.state, State::Broken);
        self.is_unanswered = true;
        self.conn.is_cut_off = true;
        let patience = Arc::clone(&self.patience);
        let result = match patience.wait_for(work(self)).await {
            Some(result) => {
                self.is_unanswered = false;
                result
            }
            None => Err(Failure::Lost {
                cause: format!(
                    "the server did not answer within {} ms",
                    self.session.answer_timeout.as_millis()
                ),
                was_sent: true,
            }),
        };
        if !matches!(result, Err(Failure::Lost { .. })) && !self.conn.is_disconnected() {
            self.state = before;
            self.conn.is_cut_off = false;
        }
        self.used = Instant::now();
        result
    }

    /// Begins a transaction. None must be open.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        self.command("START TRANSACTION", false).await?;
        self.state = State::Open;
        Ok(())
    }

    /// Waits for no lock any more, until it is set up anew on its way through the pool.
    pub(super) async fn hurry(&mut self) -> Result<(), Failure> {
        self.mark_changed();
        // MySQL takes no less than one second, and says so.
        match self.command("SET SESSION innodb_lock_wait_timeout = 0", false).await {
            Err(lost @ Failure::Lost { .. }) => Err(lost),
            _ => Ok(()),
        }
    }

    /// Begins a transaction that reads one snapshot, from this moment, and in which nothing can be written. None must be open.
    pub(super) async fn begin_reading(&mut self) -> Result<(), Failure> {
        // A snapshot for all statements is there only at this isolation, whatever the server's default is.
        let begin =
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
        if let Err(failure) = self.command(begin, false).await {
            // The first of the two is for the next transaction, whoever's that is.
            self.mark_changed();
            return Err(failure);
        }
        self.state = State::Open;
        Ok(())
    }

    /// Commits. Lost meanwhile: whether it was committed is not known.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.command("COMMIT", true).await?;
        self.ended();
        Ok(())
    }

    /// Rolls back; false if something of it stays, because it was done to tables without transactions.
    pub(super) async fn rollback(&mut self) -> Result<bool, Failure> {
        let undone = self.undo("ROLLBACK").await?;
        self.ended();
        Ok(undone)
    }

    /// Ends a transaction that the server may have rolled back itself; false if something of it stays.
    pub(super) async fn abandon(&mut self) -> Result<bool, Failure> {
        // First: the warning stands with the statement that took the transaction down, until the next one.
        let stays = self.warns_of_what_stays().await?;
        Ok(self.rollback().await? && !stays)
    }

    /// Rolls back to a savepoint, or all; false if something stays.
    pub(super) async fn undo(&mut self, command: &str) -> Result<bool, Failure> {
        let warnings = self.command(command, false).await?;
        Ok(warnings == 0 || !self.warns_of_what_stays().await?)
    }

    /// Whether the last statement has warned that what was done to tables without transactions stays.
    pub(super) async fn warns_of_what_stays(&mut self) -> Result<bool, Failure> {
        let warnings: Vec<Row> = self.rows("SHOW WARNINGS").await?;
        let codes = warnings.iter().map(|row| row.get::<u16, _>(1));
        Ok(codes.into_iter().any(|code| code == Some(NOT_ROLLED_BACK)))
    }

    /// Whether there are tables in which nothing can be undone, as far as this user sees.
    pub(super) async fn has_tables_without_transactions(&mut self) -> Result<bool, Failure> {
        let found = self
            .rows(
                "SELECT 1 FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA NOT IN ('mysql', \
                 'information_schema', 'performance_schema', 'sys') AND ENGINE NOT IN (SELECT ENGINE FROM \
                 information_schema.ENGINES WHERE TRANSACTIONS = 'YES') LIMIT 1",
            )
            .await?;
        Ok(!found.is_empty())
    }

    /// The row of an INSERT of many rows that has just failed, the first is 1; none if the server does not tell.
    pub(super) async fn row_of_error(&mut self) -> Result<Option<usize>, Failure> {
        if !self.server.tells_row_of_error() {
            return Ok(None);
        }
        self.guarded(async |link| {
            let failed = |error| Failure::of(error, false);
            let asked = "GET DIAGNOSTICS CONDITION 1 @forebay_row = ROW_NUMBER; SELECT @forebay_row";
            let mut result = link.conn.query_iter(asked).await.map_err(failed)?;
            // The first of the two has no rows.
            result.collect::<Row>().await.map_err(failed)?;
            let rows: Vec<Row> = result.collect_and_drop().await.map_err(failed)?;
            // NULL, if the server has not failed on anything: what failed was not sent to it.
            Ok(rows.first().and_then(|row| row.get_opt(0)?.ok()))
        })
        .await
    }

    /// There is no transaction any more.
    pub(super) fn ended(&mut self) {
        if self.state != State::Broken {
            self.state = if self.is_changed { State::Changed } else { State::Idle };
        }
    }

    /// Sends one of the transaction's own commands; tells its warnings.
    pub(super) async fn command(&mut self, command: &str, commits: bool) -> Result<u16, Failure> {
        self.guarded(async |link| {
            link.conn
                .query_drop(command)
                .await
                .map_err(|error| match Failure::of(error, commits) {
                    // It may have answered, with the connection's end: what became of a commit is not said by that.
                    Failure::Lost { cause, .. } => Failure::Lost {
                        cause,
                        was_sent: commits,
                    },
                    other => other,
                })?;
            Ok(link.conn.get_warnings())
        })
        .await
    }

    /// Reads what the server says of itself.
    pub(super) async fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.guarded(async |link| link.conn.query(sql).await.map_err(|error| Failure::of(error, false)))
            .await
    }

    /// Whether the transaction that was begun is still open, as far as the server tells.
    pub(super) async fn is_in_transaction(&mut self) -> Result<bool, Failure> {
        if !self.server.is_mariadb {
            // There is nothing to ask by. It is rolled back, to be sure.
            return Ok(false);
        }
        let rows = self.rows("SELECT @@in_transaction").await?;
        Ok(rows.first().and_then(|row| row.get::<u8, _>(0)) == Some(1))
    }

    /// Whether the last statement has left a transaction open.
    pub(super) fn has_open_transaction(&self) -> bool {
        self.conn
            .last_ok_packet()
            .is_some_and(|ok| ok.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS))
    }

    /// Executes one statement, and tells what it did.
    pub(super) async fn execute(&mut self, sql: &str, parameters: &Parameters) -> Result<Outcome, Failure> {
        let statement = self.prepare(sql).await?;
        self.execute_prepared(sql, &statement, parameters).await
    }

    /// Executes what was prepared; never lost before it was sent.
    pub(super) async fn execute_prepared(
        &mut self,
        sql: &str,
        statement: &Prepared,
        parameters: &Parameters,
    ) -> Result<Outcome, Failure> {
        let wire = self.wire(statement.placeholders(), parameters)?;
        match self.run(sql, statement, wire).await {
            // The table changed again and again while it was prepared anew by the server: once more, by us.
            Err(failure) if failure.is(NEEDS_PREPARING) => {
                self.forget(sql).await?;
                let statement = self.prepare(sql).await?;
                let wire = self.wire(statement.placeholders(), parameters)?;
                self.run(sql, &statement, wire).await
            }
            result => result,
        }
    }

    /// The parameters as they are sent.
    fn wire(&self, placeholders: usize, parameters: &Parameters) -> Result<Vec<Wire>, Failure> {
        let values = parameters.values();
        if values.len() != placeholders {
            return Err(Failure::Caller(found_here(
                Kind::ParameterCount,
                format!(
                    "the statement takes {placeholders} parameters, {} were given",
                    values.len()
                ),
            )));
        }
        self.measured(COMMAND_BYTES + value::packet_bytes(values), "its parameters")?;
        values
            .iter()
            .zip(1..)
            .map(|(given, number)| value::parameter(given, number).map_err(Failure::Caller))
            .collect()
    }

    /// Whether so much fits into a packet of the server's.
    fn measured(&self, bytes: usize, what: &str) -> Result<(), Failure> {
        let limit = self.server.max_allowed_packet;
        if bytes < limit {
            return Ok(());
        }
        Err(Failure::Caller(found_here(
            Kind::TooLarge,
            format!("{what} are {bytes} bytes, and the server takes packets of {limit} (max_allowed_packet)"),
        )))
    }

    /// The statement, from those that are kept if it is there.
    pub(super) async fn prepare(&mut self, sql: &str) -> Result<Prepared, Failure> {
        if let Some(statement) = self.statements.find(sql) {
            return Ok(statement);
        }
        self.measured(COMMAND_BYTES + sql.len(), "the statement's text")?;
        let prepared = self
            .guarded(async |link| link.conn.prep(sql).await.map_err(|error| Failure::of(error, false)))
            .await;
        let statement = match prepared {
            Ok(statement) => statement,
            // The server has parsed it, and it is one statement.
            Err(failure) if failure.is(NOT_PREPARABLE) => return Ok(Prepared::new(sql, None)),
            Err(failure) => return Err(failure),
        };
        let prepared = Prepared::new(sql, Some(statement));
        if prepared.placeholders() > 0 && !forebay_sql::has_parameters(sql) {
            // The driver has made placeholders of what the text does not call so.
            self.close(prepared).await?;
            return Err(Failure::Caller(named_parameters()));
        }
        while let Some(old) = self.statements.make_room(prepared.placeholders()) {
            self.close(old).await?;
        }
        self.statements.keep(sql, prepared.clone());
        Ok(prepared)
    }

    async fn forget(&mut self, sql: &str) -> Result<(), Failure> {
        match self.statements.remove(sql) {
            Some(statement) => self.close(statement).await,
            None => Ok(()),
        }
    }

    async fn close(&mut self, prepared: Prepared) -> Result<(), Failure> {
        let Some(statement) = prepared.statement else {
            return Ok(());
        };
        self.guarded(async |link| {
            link.conn
                .close(statement)
                .await
                .map_err(|error| Failure::of(error, false))
        })
        .await
    }

    /// Executes with parameters as they are sent, and gathers what comes back.
    pub(super) async fn run(&mut self, sql: &str, statement: &Prepared, wire: Vec<Wire>) -> Result<Outcome, Failure> {
        let Answered { columns, rows } = self.answer(sql, statement, wire, self.session.rows_bytes_max).await?;
        let conn = &self.conn;
        Ok(if columns.is_empty() {
            // 0 says that there is none; one beyond i64 cannot be told.
            let id = conn.last_insert_id().filter(|id| *id != 0);
            Outcome::counted(conn.affected_rows(), id.and_then(|id| i64::try_from(id).ok()))
        } else {
            // With rows the server tells no count and no id.
            let count = if statement.changes_rows { rows.len() as u64 } else { 0 };
            let columns = columns.iter().map(|column| column.name_str().into_owned()).collect();
            Outcome::counted(count, None).returning(columns, rows)
        })
    }

    /// Executes what was prepared, and tells its columns and rows, if they take no more than so many bytes.
    pub(super) async fn read_prepared(
        &mut self,
        sql: &str,
        statement: &Prepared,
        parameters: &Parameters,
        bytes_max: usize,
    ) -> Result<Answered, Failure> {
        let wire = self.wire(statement.placeholders(), parameters)?;
        let answer = self.answer(sql, statement, wire, bytes_max).await;
        if matches!(&answer, Err(failure) if failure.is(NEEDS_PREPARING)) {
            self.forget(sql).await?;
        }
        answer
    }

    async fn answer(
        &mut self,
        sql: &str,
        statement: &Prepared,
        wire: Vec<Wire>,
        bytes_max: usize,
    ) -> Result<Answered, Failure> {
        self.guarded(async |link| {
            let conn = &mut *link.conn;
            match &statement.statement {
                Some(statement) => {
                    let params = if wire.is_empty() {
                        Params::Empty
                    } else {
                        Params::Positional(wire)
                    };
                    let result = conn.exec_iter(statement, params).await;
                    gather(result.map_err(|error| Failure::of(error, true))?, bytes_max).await
                }
                None => {
                    let result = conn.query_iter(sql).await;
                    gather(result.map_err(|error| Failure::of(error, true))?, bytes_max).await
                }
            }
        })
        .await
    }
}

/// What a statement was answered; no columns if it has no rows.
pub(super) struct Answered {
    pub(super) columns: Arc<[Column]>,
    pub(super) rows: Vec<Vec<Value>>,
}

/// The first result's columns and rows; those of a procedure's further results are read and left.
async fn gather<P: mysql_async::prelude::Protocol>(
    mut result: mysql_async::QueryResult<'_, '_, P>,
    bytes_max: usize,
) -> Result<Answered, Failure> {
    let lost = |error| Failure::of(error, true);
    let columns = result.columns().unwrap_or_default();
    let mut rows = Vec::new();
    let mut bytes = 0;
    if !columns.is_empty() {
        while let Some(row) = result.next().await.map_err(lost)? {
            let values: Vec<Value> = row
                .unwrap()
                .into_iter()
                .zip(columns.iter())
                .map(|(wire, column)| value::value(wire, column))
                .collect();
            bytes += values
                .iter()
                .map(|value| size_of::<Value>() + value.heap_bytes())
                .sum::<usize>();
            if bytes <= bytes_max {
                rows.push(values);
            } else {
                rows = Vec::new();
            }
        }
    }
    result.drop_result().await.map_err(lost)?;
    if bytes > bytes_max {
        return Err(Failure::TooMuch(found_here(
            Kind::TooLarge,
            format!("its rows take {bytes} bytes, and at most {bytes_max} are taken (rows_bytes_max)"),
        )));
    }
    Ok(Answered { columns, rows })
}

/// What is said to a new connection, and to one that was reset.
fn set_up(session: &Session) -> String {
    let seconds = session.lock_timeout.as_secs().max(1);
    // Times of the type TIMESTAMP are UTC, whatever zone the server is in. A commit ends a transaction and begins none, and
    // `id IS NULL` asks for NULLs, whatever the server's defaults are.
    format!(
        "SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}, \
         autocommit = 1, completion_type = 'NO_CHAIN', sql_auto_is_null = 0"
    )
}
