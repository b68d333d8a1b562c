//! A session: one authenticated client, from its first ReadyForQuery to its end.
//!
//! Promises what PostgreSQL's protocol promises: messages are answered in order; an error in the extended protocol skips to
//! Sync; the status byte is true; an autocommit write is acknowledged when it is durable; a group of statements between two
//! Syncs, or in one simple query, is one transaction. What a session gathers is bounded, and what it holds that others wait
//! for it holds for a bounded time.
//!
//! Knows messages and transactions. Does not know bytes ([`forebay_pg_wire`]), SQL ([`sql`](crate::sql)), or how writes
//! come to share commits ([`forebay_write`]).

mod advisory;
mod asked;
mod block;
pub mod cancel;
mod catalog;
mod compiled;
mod constraints;
mod control;
mod copy;
mod cursors;
mod execute;
mod extended;
mod notifications;
mod output;
pub mod plans;
mod prepared;
mod rows;
pub mod settings;
pub mod shared;
mod violation;
mod waiting;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use foldhash::HashMap;
use forebay_pg_values::Environment;
use forebay_write::CancelToken;
use tokio::io::{AsyncRead, AsyncWrite};

use self::advisory::Held;
use self::block::Block;
use self::cancel::{Registration, RunningGuard};
use self::notifications::Ears;
use self::output::Output;
use self::prepared::{Portal, Prepared};
use self::settings::Settings;
use self::shared::{Phase, Shared};
use self::waiting::Event;
use crate::sql::{Script, Statement};
use forebay_pg_wire::backend::{self, TransactionStatus};
use forebay_pg_wire::error::{Severity, WireError, sqlstate};
use forebay_pg_wire::frontend::{FrameError, FrameReader, Frontend};

/// Statements of one script that are understood before other sessions on the same thread have a turn: about a millisecond.
const CHECKED_AT_ONCE: usize = 64;

/// Errors of running a statement tell where in a text of that length at most.
const POSITIONED_BYTES_MAX: usize = 64 * 1024;

/// What `version()` answers.
const VERSION: &str = concat!("PostgreSQL 15.0 (Forebay ", env!("CARGO_PKG_VERSION"), " on SQLite)");

/// One client's session.
pub struct Session<S> {
    /// Reads from the stream that the output is written to; never both at a time.
    input: FrameReader<S>,
    output: Output,
    shared: Arc<Shared>,
    registration: Registration,
    identity: Identity,
    settings: Settings,
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    block: Option<Block>,
    next_cursor: u64,
    locks: Held,
    ears: Ears,
    /// Looked up once: it is counted at every statement.
    statements_total: metrics::Counter,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
    /// Between the first message of a group of the extended protocol and its Sync: what is acknowledged in it ends in ReadyForQuery.
    in_group: bool,
}

/// Who the client is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The user it has proved to be, or says it is where nobody is asked.
    pub user: String,
    /// The database it named; there is only one, under any name.
    pub database: String,
}

/// Why a message was not carried out.
#[derive(Debug)]
enum Stop {
    /// The client is told.
    Error(WireError),
    /// There is no client any more.
    Gone(io::Error),
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Self::Error(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<forebay_write::WriteError> for Stop {
    fn from(error: forebay_write::WriteError) -> Self {
        Self::Error(crate::errors::unplaced(error))
    }
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Refused { error, .. } => Self::Error(error),
            FrameError::Broken(error) => Self::Error(error.with_severity(Severity::Fatal)),
            FrameError::Lost(error) => Self::Gone(error),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// A session; `unsent` is what the start-up left to be sent.
    pub fn new(
        mut input: FrameReader<S>,
        unsent: BytesMut,
        shared: Arc<Shared>,
        registration: Registration,
        identity: Identity,
    ) -> Self {
        input.set_max_message_bytes(shared.limits.max_message_bytes);
        input.set_budget(Arc::clone(&shared.input));
        Self {
            input,
            output: Output::new(unsent, shared.limits.stall_timeout, Arc::clone(&registration.running)),
            settings: Settings::new(&identity.user),
            locks: Held::new(Arc::clone(&shared.advisory), registration.process),
            ears: Ears::new(Arc::clone(&shared.channels), registration.process),
            shared,
            registration,
            identity,
            statements_total: metrics::counter!("forebay_statements_total"),
            statements: HashMap::default(),
            portals: HashMap::default(),
            block: None,
            next_cursor: 0,
            skipping: false,
            in_group: false,
        }
    }

    /// Serves the client until it leaves, breaks the protocol, or is sent away. `parameters` are the settings it begins with.
    pub async fn run(mut self, parameters: &[(String, String)]) {
        let served = match self.greet(parameters) {
            Ok(()) => self.serve().await,
            Err(error) => Err(error.into()),
        };
        // Nobody waits for what it holds while its last words are on their way.
        self.portals.clear();
        drop(self.block.take());
        self.locks.end_transaction();
        self.locks.give_back_session();
        match served {
            // What was asked before the farewell is answered.
            Ok(()) => self.output.close(self.input.stream_mut()).await,
            Err(Stop::Error(error)) => {
                error.with_severity(Severity::Fatal).encode(&mut self.output.pending);
                self.output.close(self.input.stream_mut()).await;
                if self.input.is_inside_message() {
                    let mut phase = self.shared.phase.clone();
                    tokio::select! {
                        () = output::let_finish(self.input.stream_mut()) => {}
                        _ = phase.wait_for(|phase| *phase != Phase::Serving) => {}
                    }
                }
            }
            Err(Stop::Gone(error)) => tracing::debug!(%error, "client gone"),
        }
    }

    /// What values' text may depend on, as the session is now.
    fn value_environment(&self) -> Environment {
        Environment::new(self.settings.zone(), self.now_micros())
    }

    /// What a client is told before its first message.
    fn greet(&mut self, parameters: &[(String, String)]) -> Result<(), WireError> {
        control::set_at_start(&mut self.settings, parameters)?;
        for (name, value) in self.settings.reported() {
            backend::parameter_status(&mut self.output.pending, name, &value);
        }
        backend::backend_key_data(
            &mut self.output.pending,
            self.registration.process,
            &self.registration.secret,
        )?;
        self.ready();
        Ok(())
    }

    async fn serve(&mut self) -> Result<(), Stop> {
        loop {
            // What is pipelined is answered together.
            if self.input.buffered().is_none() {
                self.send().await?;
            } else {
                self.send_if_large().await?;
            }
            let message = match self.next_event(self.patience()).await {
                Event::End(error) => return Err(Stop::Error(error)),
                Event::Message(Ok(None | Some(Frontend::Terminate))) => return Ok(()),
                Event::Message(Ok(Some(message))) => message,
                Event::Message(Err(FrameError::Refused { error, kind })) => {
                    self.refuse(error, kind).await?;
                    continue;
                }
                Event::Message(Err(error)) => return Err(error.into()),
            };
            if self.skipping && !matches!(message, Frontend::Sync) {
                continue;
            }
            self.handle(message).await?;
        }
    }

    async fn handle(&mut self, message: Frontend) -> Result<(), Stop> {
        match message {
            Frontend::Query(script) => {
                let result = self.simple_query(script).await;
                self.answer(result).await?;
                self.ready();
                Ok(())
            }
            Frontend::Sync => self.sync().await,
            Frontend::Flush => self.send().await,
            Frontend::FunctionCall => {
                let refused = WireError::unsupported("function calls by message are not supported; use SELECT");
                self.answer(Err(refused.into())).await?;
                self.ready();
                Ok(())
            }
            // PostgreSQL ignores them too: they may be left over from a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Password(_) => Err(Stop::Error(
                WireError::protocol("a password after authentication").with_severity(Severity::Fatal),
            )),
            extended => {
                self.in_group = true;
                let result = self.extended(extended).await;
                self.skipping = matches!(result, Err(Stop::Error(_)));
                self.answer(result).await
            }
        }
    }

    /// A message that arrived whole and made no sense.
    async fn refuse(&mut self, error: WireError, kind: u8) -> Result<(), Stop> {
        if self.skipping && kind != b'S' {
            return Ok(());
        }
        self.answer(Err(Stop::Error(error))).await?;
        match kind {
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => (self.skipping, self.in_group) = (true, true),
            b'S' => self.sync().await?,
            _ => self.ready(),
        }
        Ok(())
    }

    /// Tells the client an error, and fails the transaction it happened in.
    async fn answer(&mut self, result: Result<(), Stop>) -> Result<(), Stop> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Error(error)) if error.is_fatal() => Err(Stop::Error(error)),
            // Nobody is left to be told, nor to be served what was sent behind it.
            Err(Stop::Error(_)) if self.registration.running.is_gone() => {
                Err(Stop::Gone(io::ErrorKind::ConnectionReset.into()))
            }
            // Not its client has cancelled it.
            Err(Stop::Error(error)) if error.sqlstate == sqlstate::QUERY_CANCELED && self.is_stopping() => {
                Err(Stop::Error(shut_down()))
            }
            Err(Stop::Error(error)) => {
                metrics::counter!("forebay_errors_total", "sqlstate" => error.sqlstate).increment(1);
                error.encode(&mut self.output.pending);
                self.fail().await
            }
            Err(gone) => Err(gone),
        }
    }

    /// Whether the server cancels whatever runs.
    fn is_stopping(&self) -> bool {
        *self.shared.phase.borrow() == Phase::Stopping
    }

    async fn fail(&mut self) -> Result<(), Stop> {
        match &mut self.block {
            Some(block) if block.implicit => {
                self.close_portals();
                self.ears.roll_back();
                self.locks.end_transaction();
                if let Some(block) = self.block.take() {
                    self.restore_settings(block.settings_before().clone());
                    block.rollback().await?;
                }
            }
            Some(block) => {
                block.fail();
                self.locks.fail();
                let whole = block.savepoint_count() == 0;
                if whole {
                    self.close_portals();
                }
            }
            None => {}
        }
        Ok(())
    }

    /// ReadyForQuery with the true status.
    fn ready(&mut self) {
        self.in_group = false;
        let status = match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::Open,
        };
        if self.block.is_none() {
            self.ears.hear(&mut self.output.pending);
        }
        backend::ready_for_query(&mut self.output.pending, status);
    }

    async fn simple_query(&mut self, script: String) -> Result<(), Stop> {
        if let Some((found, parameters)) = self.known_or_lifted(&script).await? {
            self.forget_unnamed();
            self.refuse_if_failed(&found.statement.kind)?;
            // Of a long one the parameters have what is long.
            let text = if script.len() > POSITIONED_BYTES_MAX {
                Arc::clone(&found.statement.sql)
            } else {
                script.as_str().into()
            };
            drop(script);
            self.execute_to_the_end(found, &text, parameters).await?;
            return self.end_implicit_block().await;
        }
        let mut script = self.understand(script.into()).await?;
        if script.statement_count() == 0 {
            backend::empty_query_response(&mut self.output.pending);
            return Ok(());
        }
        self.forget_unnamed();
        let several = script.statement_count() > 1;
        while let Some(statement) = self.next_statement(&mut script)? {
            if several && self.block.is_none() && !control::is_transaction_control(&statement.kind) {
                self.open_implicit_block();
            }
            self.execute_simple(statement, script.text(), !several).await?;
            self.send_if_large().await?;
        }
        self.end_implicit_block().await
    }

    /// The unnamed statement and portal do not outlive a simple query.
    fn forget_unnamed(&mut self) {
        self.statements.remove("");
        self.portals.remove("");
    }

    async fn sync(&mut self) -> Result<(), Stop> {
        self.skipping = false;
        let ended = self.end_implicit_block().await;
        self.answer(ended).await?;
        if self.block.is_none() {
            self.close_portals();
        }
        self.ready();
        Ok(())
    }

    fn open_implicit_block(&mut self) {
        let isolation = control::default_isolation(&self.settings);
        self.block = Some(Block::open(true, isolation, self.settings.read_only(), &self.settings));
    }

    /// Commits what a group of statements did together.
    async fn end_implicit_block(&mut self) -> Result<(), Stop> {
        if !self.block.as_ref().is_some_and(|block| block.implicit) {
            return Ok(());
        }
        self.keep_holdable().await?;
        match self.block.take() {
            Some(block) => {
                self.close_portals();
                self.commit(block).await
            }
            None => Ok(()),
        }
    }

    /// Understands all of a script. Other sessions on the same thread have their turn meanwhile.
    async fn understand(&self, script: Arc<str>) -> Result<Script, WireError> {
        let words = |error| crate::errors::understood(&error);
        let mut script = Script::new(script).map_err(words)?;
        while !script.check_some(CHECKED_AT_ONCE).map_err(words)? {
            tokio::task::yield_now().await;
        }
        Ok(script)
    }

    fn next_statement(&self, script: &mut Script) -> Result<Option<Statement>, WireError> {
        script
            .next_statement()
            .transpose()
            .map_err(|error| crate::errors::understood(&error))
    }

    /// A token for one statement: for its deadline, and for cancel requests while the guard lives.
    fn statement_token(&self) -> (CancelToken, RunningGuard) {
        let timeout = match (self.settings.statement_timeout(), self.shared.limits.statement_timeout) {
            (Some(own), Some(server)) => Some(own.min(server)),
            (own, server) => own.or(server),
        };
        let token = CancelToken::with_deadline(timeout.map(|timeout| Instant::now() + timeout));
        let running = self.registration.running.start(token.clone());
        (token, running)
    }
}

fn shut_down() -> WireError {
    WireError::fatal(
        sqlstate::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}
