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
mod reading;
mod rows;
mod serve;
mod session_functions;
mod setting_values;
pub mod settings;
pub mod shared;
mod stop;
mod timeouts;
mod violation;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Instant;

use bytes::BytesMut;
use foldhash::HashMap;
use forebay_pg_values::Environment;
use forebay_stream::Socket;
use forebay_write::CancelToken;

use self::advisory::Held;
use self::block::Block;
use self::cancel::{Registration, RunningGuard};
use self::notifications::Ears;
use self::output::Output;
use self::prepared::{Portal, Prepared};
use self::settings::Settings;
use self::shared::Shared;
use crate::sql::Drawn;
use forebay_pg_wire::frontend::FrameReader;
use forebay_pg_wire::startup::Connection;

/// What `version()` answers.
const VERSION: &str = concat!("PostgreSQL 15.0 (Forebay ", env!("CARGO_PKG_VERSION"), " on SQLite)");

/// One client's session. Over one type of stream and no parameter, so that this crate has its machine code, and not whoever serves.
pub struct Session {
    /// Reads from the stream that the output is written to; never both at a time.
    input: FrameReader<Connection<Socket>>,
    output: Output,
    shared: Arc<Shared>,
    registration: Registration,
    identity: Identity,
    settings: Settings,
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    /// The name of the portal that is being executed, which is not among those meanwhile.
    executing: Option<String>,
    block: Option<Block>,
    next_cursor: u64,
    locks: Held,
    ears: Ears,
    drawn: Drawn,
    /// Looked up once: it is counted at every statement.
    statements_total: metrics::Counter,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
    /// Between the first message of a group of the extended protocol and its Sync: what is acknowledged in it ends in ReadyForQuery.
    in_group: bool,
    /// When the message came that is being answered; 0 until that is wanted.
    asked_micros: AtomicI64,
}

/// Who the client is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The user it has proved to be, or says it is where nobody is asked.
    pub user: String,
    /// The database it named; there is only one, under any name.
    pub database: String,
}

impl Session {
    /// A session; `unsent` is what the start-up left to be sent.
    pub fn new(
        mut input: FrameReader<Connection<Socket>>,
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
            drawn: Drawn::new(
                Arc::clone(&shared.sequences),
                registration.process.unsigned_abs().into(),
            ),
            shared,
            registration,
            identity,
            statements_total: metrics::counter!("forebay_statements_total"),
            statements: HashMap::default(),
            portals: HashMap::default(),
            executing: None,
            block: None,
            next_cursor: 0,
            skipping: false,
            in_group: false,
            asked_micros: AtomicI64::new(0),
        }
    }

    /// What values' text may depend on, as the session is now.
    fn value_environment(&self) -> Environment {
        Environment::new(self.settings.zone(), self.now_micros())
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
