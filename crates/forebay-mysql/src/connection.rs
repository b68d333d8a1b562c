//! Connection: one of them, with what belongs to it: its prepared statements, what the server is like, and whether another caller
//! may have it.
//!
//! Promises: a statement is prepared before it is executed, its parameters are counted and measured before they are sent, and
//! what it did is told as the server tells it. A connection whose future was dropped half-way, that lost its connection, or that has
//! a transaction open, says that it cannot be had again. Knows nothing of batches or of who waits.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, Params, Row, Value as Wire};

use super::driver::Driver;
use super::error::{Failure, NEEDS_PREPARING, NOT_PREPARABLE, NOT_ROLLED_BACK, found_here, named_parameters};
use super::prepared::Prepared;
use super::server::Server;
use super::session::setup;
use super::value;
use forebay_remote::answer_timeout::AnswerTimeout;
use forebay_remote::connections::Readiness;
use forebay_remote::settings::Settings;
use forebay_remote::statements::Statements;
use forebay_write::{Outcome, Parameters, StatementErrorKind as Kind, Value};

/// What a command takes in a packet beside its parameters.
const COMMAND_BYTES: usize = 64;
/// Placeholders of all statements that one connection keeps: the server describes each, and the library keeps what it says.
const PLACEHOLDERS_MAX: usize = 65_536;

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

/// One connection.
pub(super) struct Connection {
    conn: Driver,
    statements: Statements<Prepared>,
    settings: Settings,
    answer_timeout: Arc<AnswerTimeout>,
    server: Arc<Server>,
    state: State,
    /// Whether the session's state may have been changed since it was set up.
    is_changed: bool,
    /// A command was sent, perhaps, and its answer will not be waited for.
    is_unanswered: bool,
    /// The server did not answer in time.
    is_silent: bool,
    id: Option<ConnectionId>,
}

/// What tells a connection from all others, at its server and at any other: numbers alone begin anew with each server, and
/// count up alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionId {
    pub(super) number: i64,
    /// The address that the server sees it come from.
    pub(super) host: String,
}

impl ConnectionId {
    async fn read(conn: &mut Conn) -> mysql_async::Result<Option<Self>> {
        let asked = "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        match conn.query_first(asked).await {
            // Over a socket all have the same address, and after a restart the same numbers.
            Ok(found) => Ok(found
                .map(|(number, host)| Self { number, host })
                .filter(|id| id.host.contains(':'))),
            // A server that has no such table: nobody can be told then.
            Err(mysql_async::Error::Server(_)) => Ok(None),
            Err(lost) => Err(lost),
        }
    }
}

impl Connection {
    pub(super) async fn open(options: Opts, settings: Settings) -> mysql_async::Result<Self> {
        let mut conn = Conn::new(options).await?;
        conn.query_drop(setup(&settings)).await?;
        let server = Server::read(&mut conn).await?;
        let id = ConnectionId::read(&mut conn).await?;
        Ok(Self {
            conn: Driver::new(conn),
            statements: Statements::new(settings.statement_cache, PLACEHOLDERS_MAX),
            answer_timeout: Arc::new(AnswerTimeout::new(settings.answer_timeout)),
            settings,
            server: Arc::new(server),
            state: State::Idle,
            is_changed: false,
            is_unanswered: false,
            is_silent: false,
            id,
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

    /// Whether it was lost because the server did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Who may have it next.
    pub(super) fn readiness(&self) -> Readiness {
        match self.state {
            State::Idle => Readiness::Ready,
            State::Changed => Readiness::Changed,
            State::Open | State::Broken => Readiness::Unusable,
        }
    }

    /// The most bytes that the rows of one statement may take.
    pub(super) fn max_rows_bytes(&self) -> usize {
        self.settings.max_rows_bytes
    }

    /// Whether a transaction is open on it.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What the server calls it, if it tells.
    pub(super) fn id(&self) -> Option<&ConnectionId> {
        self.id.as_ref()
    }

    /// Has the server kill another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    pub(super) async fn kill(&mut self, other: &ConnectionId) -> Result<(), Failure> {
        // Another server behind the same address would have another connection by that number.
        let look = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID = ? AND HOST = ?";
        let other = Parameters::from((other.number, other.host.as_str()));
        let mut delay = Duration::from_millis(1);
        let mut was_killed = false;
        while let Some([Value::Integer(number), ..]) = self.execute(look, &other).await?.rows.first().map(Vec::as_slice)
        {
            if !was_killed {
                match self.command(&format!("KILL {number}"), false).await {
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

    /// Resets its session, if that may have been changed: what is locked by name in it is free then. Where that fails, nobody
    /// has it again.
    pub(super) async fn reset_if_changed(&mut self) {
        if self.state == State::Changed && !self.reset_session().await {
            self.break_off();
        }
    }

    /// Whether the server answers on it.
    pub(super) async fn answers(&mut self) -> bool {
        self.guarded(async |connection| connection.conn.ping().await.map_err(|error| Failure::of(error, false)))
            .await
            .is_ok()
    }

    /// Makes its session what it was when it was new; whether that was done.
    pub(super) async fn reset_session(&mut self) -> bool {
        let setup = setup(&self.settings);
        self.statements.clear();
        let done = self
            .guarded(async |connection| {
                let was_reset = connection
                    .conn
                    .reset()
                    .await
                    .map_err(|error| Failure::of(error, false))?;
                if was_reset {
                    connection
                        .conn
                        .query_drop(setup)
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

    /// Runs commands so that the connection is broken for as long as they have not come to their end.
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
        let answer_timeout = Arc::clone(&self.answer_timeout);
        let result = match answer_timeout.wait_for(work(self)).await {
            Some(result) => {
                self.is_unanswered = false;
                result
            }
            None => {
                self.is_silent = true;
                Err(Failure::Lost {
                    cause: format!(
                        "the server did not answer within {} ms",
                        self.settings.answer_timeout.as_millis()
                    ),
                    was_sent: true,
                })
            }
        };
        if !matches!(result, Err(Failure::Lost { .. })) && !self.conn.is_disconnected() {
            self.state = before;
            self.conn.is_cut_off = false;
        }
        result
    }

    /// Begins a transaction. None must be open.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        self.command("START TRANSACTION", false).await?;
        self.state = State::Open;
        Ok(())
    }

    /// Waits for no lock any more, until its session is reset on its way through the pool.
    pub(super) async fn wait_for_no_lock(&mut self) -> Result<(), Failure> {
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
        self.guarded(async |connection| {
            let failed = |error| Failure::of(error, false);
            let asked = "GET DIAGNOSTICS CONDITION 1 @forebay_row = ROW_NUMBER; SELECT @forebay_row";
            let mut result = connection.conn.query_iter(asked).await.map_err(failed)?;
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
        self.guarded(async |connection| {
            connection
                .conn
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
            Ok(connection.conn.get_warnings())
        })
        .await
    }

    /// Reads what the server says of itself.
    pub(super) async fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        self.guarded(async |connection| {
            connection
                .conn
                .query(sql)
                .await
                .map_err(|error| Failure::of(error, false))
        })
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
            .guarded(async |connection| {
                connection
                    .conn
                    .prep(sql)
                    .await
                    .map_err(|error| Failure::of(error, false))
            })
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
        self.statements.keep(sql, prepared.placeholders(), prepared.clone());
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
        self.guarded(async |connection| {
            connection
                .conn
                .close(statement)
                .await
                .map_err(|error| Failure::of(error, false))
        })
        .await
    }

    /// Executes with parameters as they are sent, and gathers what comes back.
    pub(super) async fn run(&mut self, sql: &str, statement: &Prepared, wire: Vec<Wire>) -> Result<Outcome, Failure> {
        let Answered { columns, rows } = self.answer(sql, statement, wire, self.settings.max_rows_bytes).await?;
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
        self.guarded(async |connection| {
            let conn = &mut *connection.conn;
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
            format!("its rows take {bytes} bytes, and at most {bytes_max} are taken (max_rows_bytes)"),
        )));
    }
    Ok(Answered { columns, rows })
}
