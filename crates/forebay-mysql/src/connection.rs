//! Connection: one connection to the server, with its prepared statements, what the server is like, and whether another caller
//! may have it next.
//!
//! Promises: a statement is prepared before it is executed, its parameters are counted and measured before they are sent, and
//! what it did is told as the server tells it. One whose future was dropped half-way, that was lost, or that has a transaction
//! open, says that nobody may have it again. Knows nothing of batches or of who waits.

use std::sync::Arc;
use std::time::Duration;

use super::answer::{ResultSet, Told, prepared, results, told};
use super::error::{Failure, NEEDS_PREPARING, NOT_PREPARABLE, NOT_ROLLED_BACK, Unanswered, found_here};
use super::prepared::Prepared;
use super::server::{self, Server};
use super::session::setup;
use super::value;
use forebay_mysql_link::{ColumnFlags, Link, LinkError, Outbox, TooLong};
use forebay_remote::answer_timeout::AnswerTimeout;
use forebay_remote::connections::Readiness;
use forebay_remote::settings::Settings;
use forebay_remote::statements::Statements;
use forebay_write::{Outcome, Parameters, StatementErrorKind as Kind, Value};

/// What a command takes in a packet beside its parameters.
const COMMAND_BYTES: usize = 64;
/// Placeholders of all statements that one connection keeps: the server describes each, and the library keeps what it says.
const PLACEHOLDERS_MAX: usize = 65_536;
/// Statements that are sent before the first of them is answered.
const READ_AHEAD_MAX: usize = 64;

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
    link: Link,
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
    /// A transaction's beginning was sent, and its answer is still to be read.
    owes_begin: bool,
    /// What was sent behind a transaction's beginning may have been done outside of one.
    is_astray: bool,
    id: Option<ConnectionId>,
}

/// What was read for one list of parameters.
pub(super) struct Read {
    pub(super) answer: Result<ResultSet, Failure>,
    /// Whether the snapshot was still there.
    pub(super) is_in_snapshot: bool,
}

/// What an INSERT of many rows did, as the server tells.
pub(super) struct Inserted {
    pub(super) outcome: Outcome,
    /// Whether all that it returns is the column that the server numbers now.
    pub(super) returns_numbered: bool,
    /// Whether it may have stored something else than it was given.
    pub(super) warns: bool,
}

/// What tells a connection from all others, at its server and at any other: numbers alone begin anew with each server, and
/// count up alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionId {
    pub(super) number: i64,
    /// The address that the server sees it come from.
    pub(super) host: String,
}

const BEGIN: &str = "START TRANSACTION";
const ROLLBACK: &str = "ROLLBACK";

/// What a server is asked for the id of the connection that asks.
const ID: &str = "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";

impl ConnectionId {
    /// Over a socket all have the same address, and after a restart the same numbers: nobody can be told then.
    fn read(row: &[Option<String>]) -> Option<Self> {
        let [Some(number), Some(host)] = row else { return None };
        Some(Self {
            number: number.parse().ok()?,
            host: host.clone(),
        })
        .filter(|id| id.host.contains(':'))
    }
}

impl Connection {
    /// A link's connection, set up.
    pub(super) async fn set_up(mut link: Link, settings: Settings) -> Result<Self, Unanswered> {
        for asked in [&setup(&settings), server::QUESTION, ID] {
            link.outbox().query(asked).expect("it is short");
        }
        let set_up = told(&mut link).await;
        let server = told(&mut link).await;
        let id = told(&mut link).await;
        set_up?;
        let row = server?.rows.pop();
        let row = row.ok_or_else(|| LinkError::Protocol("the server says nothing of itself".to_owned()))?;
        let server = Server::read(&row, link.version());
        let id = match id {
            Ok(Told { rows, .. }) => rows.first().and_then(|row| ConnectionId::read(row)),
            // A server that has no such table.
            Err(Unanswered::Server(_)) => None,
            Err(lost) => return Err(lost),
        };
        Ok(Self {
            link,
            statements: Statements::new(settings.statement_cache, PLACEHOLDERS_MAX),
            answer_timeout: Arc::new(AnswerTimeout::new(settings.answer_timeout)),
            settings,
            server: Arc::new(server),
            state: State::Idle,
            is_changed: false,
            is_unanswered: false,
            is_silent: false,
            owes_begin: false,
            is_astray: false,
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

    /// Who may have it next; looks whether the server has hung up meanwhile.
    pub(super) fn readiness(&mut self) -> Readiness {
        self.link.look();
        match self.state {
            _ if !self.link.is_idle() => Readiness::Unusable,
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
        if self.state == State::Changed && !Box::pin(self.reset_session()).await {
            self.break_off();
        }
    }

    /// Whether the server answers on it.
    pub(super) async fn answers(&mut self) -> bool {
        self.guarded(async |connection| {
            connection.link.outbox().ping();
            told(&mut connection.link)
                .await
                .map_err(|unanswered| Failure::of(unanswered, false))
        })
        .await
        .is_ok()
    }

    /// Makes its session what it was when it was new; whether that was done.
    pub(super) async fn reset_session(&mut self) -> bool {
        let setup = setup(&self.settings);
        self.statements.clear();
        let done = self
            .guarded(async |connection| {
                connection.link.outbox().reset_connection();
                connection.ask(|outbox| outbox.query(&setup))?;
                // Older servers cannot be reset, and say so.
                let reset = connection.told().await;
                let set_up = connection.told().await;
                reset.and(set_up)
            })
            .await;
        let fit = done.is_ok();
        if fit {
            self.is_changed = false;
            self.state = State::Idle;
        }
        fit
    }

    /// Puts a command to those that are sent next.
    fn ask(&mut self, put: impl FnOnce(&mut Outbox) -> Result<(), TooLong>) -> Result<(), Failure> {
        put(self.link.outbox()).map_err(|error| Failure::Caller(found_here(Kind::TooLarge, error.to_string())))
    }

    /// What one of our own commands was answered.
    async fn told(&mut self) -> Result<Told, Failure> {
        self.begun().await?;
        told(&mut self.link)
            .await
            .map_err(|unanswered| Failure::of(unanswered, false))
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
        if !matches!(result, Err(Failure::Lost { .. })) && !self.link.is_over() {
            self.state = before;
        }
        result
    }

    /// Begins a transaction. None must be open.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        self.command(BEGIN, false).await?;
        self.state = State::Open;
        Ok(())
    }

    /// Begins a transaction with what is asked next, in one write. None must be open. If the server does not begin it, the
    /// connection is lost with that, and what was asked next [may stand](Self::is_astray).
    pub(super) fn begin_ahead(&mut self) {
        if self.state != State::Broken {
            self.link.outbox().query(BEGIN).expect("it is short");
            self.owes_begin = true;
            self.state = State::Open;
        }
    }

    /// Whether what was sent behind a transaction's beginning may have been done outside of one.
    pub(super) fn is_astray(&self) -> bool {
        self.is_astray
    }

    /// Reads the answer to what was [begun ahead](Self::begin_ahead).
    async fn begun(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.owes_begin) {
            return Ok(());
        }
        match told(&mut self.link).await {
            Ok(_) => Ok(()),
            Err(Unanswered::Lost(error)) => Err(Failure::of(error.into(), false)),
            Err(Unanswered::Server(error)) => {
                self.is_astray = true;
                Err(Failure::Lost {
                    cause: error.to_string(),
                    was_sent: true,
                })
            }
        }
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

    /// Reads with one statement for one list of parameters after the other, in a transaction of their own that reads one snapshot
    /// and in which nothing can be written, with an answer for each list, up to one that a lock was in the way of. What is asked is
    /// sent without waiting for the answers between. Rows may take so many bytes, all together. No transaction must be open.
    pub(super) async fn read_in_snapshot(
        &mut self,
        sql: &str,
        statement: &Prepared,
        lists: &[Parameters],
        bytes_max: usize,
    ) -> Result<Vec<Read>, Failure> {
        // A snapshot for all statements is there only at this isolation, whatever the server's default is.
        let begin =
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
        let mut read = Vec::with_capacity(lists.len());
        if lists.is_empty() {
            return Ok(read);
        }
        let mut bytes_left = bytes_max;
        // The first goes by itself: what of its tables is locked it waits for, and the others find no longer locked, or do not
        // wait for as well.
        let (mut left, mut ahead_max) = (lists, 1);
        while !left.is_empty() {
            let is_first = read.is_empty();
            let (now, later) = left.split_at(ahead_max.min(left.len()));
            (left, ahead_max) = (later, READ_AHEAD_MAX);
            if is_first {
                self.ask(|outbox| outbox.query(begin))?;
            }
            let mut put = |list| {
                self.check(statement.placeholders(), list)?;
                self.put(sql, statement, list)
            };
            let asked: Vec<Result<(), Failure>> = now.iter().map(&mut put).collect();
            if left.is_empty() {
                self.ask(|outbox| outbox.query(ROLLBACK))?;
            }
            if is_first {
                // The first of the two is for the next transaction, whoever's that is; and what was sent behind is not read.
                let begun = self.guarded(async |connection| connection.told().await).await;
                begun.inspect_err(|_| self.break_off())?;
                self.state = State::Open;
            }
            for asked in asked {
                let answer = match asked {
                    Ok(()) => {
                        self.guarded(async |connection| results(&mut connection.link, statement, bytes_left).await)
                            .await
                    }
                    Err(unsent) => Err(unsent),
                };
                bytes_left -= answer.as_ref().map_or(0, |answer| answer.bytes);
                let is_locked = matches!(&answer, Err(failure) if failure.is_lock_timeout());
                read.push(Read {
                    answer,
                    is_in_snapshot: self.has_open_transaction(),
                });
                if is_locked && !left.is_empty() {
                    left = &[];
                    self.ask(|outbox| outbox.query(ROLLBACK))?;
                }
            }
        }
        // What fails here is not handed out again. What was read is right, however it ends.
        if self.guarded(async |connection| connection.told().await).await.is_ok() {
            self.ended();
        }
        Ok(read)
    }

    /// Commits. Lost meanwhile: whether it was committed is not known.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.command("COMMIT", true).await?;
        self.ended();
        Ok(())
    }

    /// Rolls back; false if something of it stays, because it was done to tables without transactions.
    pub(super) async fn rollback(&mut self) -> Result<bool, Failure> {
        let undone = self.undo(ROLLBACK).await?;
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
        let warnings = self.rows("SHOW WARNINGS").await?;
        let codes = warnings.iter().filter_map(|row| row.get(1)?.as_deref()?.parse().ok());
        Ok(codes.into_iter().any(|code: u16| code == NOT_ROLLED_BACK))
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
        let asked = "GET DIAGNOSTICS CONDITION 1 @forebay_row = ROW_NUMBER; SELECT @forebay_row";
        let rows = self.rows(asked).await?;
        // NULL, if the server has not failed on anything: what failed was not sent to it.
        Ok(rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()))
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
            connection.ask(|outbox| outbox.query(command))?;
            match connection.told().await {
                Ok(told) => Ok(told.ok.warnings),
                // It may have answered, with the connection's end: what became of a commit is not said by that.
                Err(Failure::Lost { cause, .. }) => Err(Failure::Lost {
                    cause,
                    was_sent: commits,
                }),
                Err(other) => Err(other),
            }
        })
        .await
    }

    /// Reads what the server says of itself.
    pub(super) async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.guarded(async |connection| {
            connection.ask(|outbox| outbox.query(sql))?;
            Ok(connection.told().await?.rows)
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
        Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("1"))
    }

    /// Whether the last statement has left a transaction open.
    pub(super) fn has_open_transaction(&self) -> bool {
        self.link.is_in_transaction()
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
        let answer = self.run(sql, statement, parameters).await?;
        Ok(outcome(statement.changes_rows, answer))
    }

    /// Executes an INSERT of many rows, and tells what it did and how much of that the server vouches for.
    pub(super) async fn insert_many(&mut self, sql: &str, parameters: &Parameters) -> Result<Inserted, Failure> {
        let statement = self.prepare(sql).await?;
        let answer = self.run(sql, &statement, parameters).await?;
        Ok(Inserted {
            returns_numbered: matches!(&*answer.columns, [column] if column.flags().contains(ColumnFlags::AUTO_INCREMENT_FLAG)),
            warns: answer.ok.warnings > 0,
            outcome: outcome(true, answer),
        })
    }

    /// Whether the parameters can be sent.
    fn check(&self, placeholders: usize, parameters: &Parameters) -> Result<(), Failure> {
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
            .try_for_each(|(given, number)| value::check(given, number).map_err(Failure::Caller))
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
        match self.statements.find(sql) {
            Some(statement) => Ok(statement),
            // Larger than what executes it, and seldom done.
            None => Box::pin(self.prepare_anew(sql)).await,
        }
    }

    async fn prepare_anew(&mut self, sql: &str) -> Result<Prepared, Failure> {
        self.measured(COMMAND_BYTES + sql.len(), "the statement's text")?;
        let answered = self
            .guarded(async |connection| {
                connection.ask(|outbox| outbox.prepare(sql))?;
                connection.begun().await?;
                prepared(&mut connection.link)
                    .await
                    .map_err(|unanswered| Failure::of(unanswered, false))
            })
            .await;
        let statement = match answered {
            Ok(statement) => statement,
            // The server has parsed it, and it is one statement.
            Err(failure) if failure.is(NOT_PREPARABLE) => return Ok(Prepared::new(sql, None)),
            Err(failure) => return Err(failure.of_text()),
        };
        let prepared = Prepared::new(sql, Some(statement));
        while let Some(old) = self.statements.make_room(prepared.placeholders()) {
            self.close(&old);
        }
        self.statements.keep(sql, prepared.placeholders(), prepared.clone());
        Ok(prepared)
    }

    /// What was prepared of a text is prepared anew when it is next wanted.
    pub(super) fn forget(&mut self, sql: &str) {
        if let Some(statement) = self.statements.remove(sql) {
            self.close(&statement);
        }
    }

    /// The server is told with the next command.
    fn close(&mut self, prepared: &Prepared) {
        if let Some(statement) = &prepared.statement {
            self.link.outbox().close(statement.id);
        }
    }

    /// Executes with these parameters, and gathers what comes back.
    async fn run(&mut self, sql: &str, statement: &Prepared, parameters: &Parameters) -> Result<ResultSet, Failure> {
        let bytes_max = self.settings.max_rows_bytes;
        match self.read_prepared(sql, statement, parameters, bytes_max).await {
            // The table changed again and again while it was prepared anew by the server: once more, by us.
            Err(failure) if failure.is(NEEDS_PREPARING) => {
                self.forget(sql);
                Box::pin(async {
                    let statement = self.prepare(sql).await?;
                    self.read_prepared(sql, &statement, parameters, bytes_max).await
                })
                .await
            }
            result => result,
        }
    }

    /// Executes what was prepared, and tells its columns and rows, if they take no more than so many bytes.
    pub(super) async fn read_prepared(
        &mut self,
        sql: &str,
        statement: &Prepared,
        parameters: &Parameters,
        bytes_max: usize,
    ) -> Result<ResultSet, Failure> {
        self.check(statement.placeholders(), parameters)?;
        self.guarded(async |connection| {
            connection.put(sql, statement, parameters)?;
            connection.begun().await?;
            results(&mut connection.link, statement, bytes_max).await
        })
        .await
    }

    /// Puts a statement to those that are sent next.
    fn put(&mut self, sql: &str, statement: &Prepared, parameters: &Parameters) -> Result<(), Failure> {
        self.ask(|outbox| match &statement.statement {
            Some(known) => outbox.execute(known.id, parameters.values().iter(), value::encode),
            None => outbox.query(sql),
        })
    }
}

/// What a statement did, as its caller is told.
fn outcome(changes_rows: bool, ResultSet { columns, rows, ok, .. }: ResultSet) -> Outcome {
    if columns.is_empty() {
        // 0 says that there is none; one beyond i64 cannot be told.
        let id = i64::try_from(ok.last_insert_id).ok().filter(|id| *id != 0);
        return Outcome::counted(ok.affected_rows, id);
    }
    // With rows the server tells no count and no id.
    let count = if changes_rows { rows.len() as u64 } else { 0 };
    let columns = columns.iter().map(|column| column.name_str().into_owned()).collect();
    Outcome::counted(count, None).returning(columns, rows)
}

#[cfg(test)]
mod tests {
    use testbed::MariaDb;

    use super::*;

    #[tokio::test]
    async fn what_follows_a_transaction_that_was_not_begun_may_stand_and_the_connection_is_lost() {
        let server = tokio::task::spawn_blocking(MariaDb::start).await.unwrap().unwrap();
        let config = server.url().parse().unwrap();
        let link = forebay_mysql_link::connect(&config).await.unwrap();
        let mut connection = Connection::set_up(link, Settings::default()).await.unwrap();
        connection.begin_ahead();
        connection.execute("SELECT 1", &().into()).await.unwrap();
        assert!(connection.has_open_transaction() && connection.is_open());
        connection.rollback().await.unwrap();
        // In one that is distributed none can be begun.
        connection.command("XA START 'a'", false).await.unwrap();
        connection.begin_ahead();
        let told = connection.execute("SELECT 1", &().into()).await;
        assert!(matches!(told, Err(Failure::Lost { .. })), "{told:?}");
        assert!(connection.is_astray() && connection.is_broken());
    }
}
