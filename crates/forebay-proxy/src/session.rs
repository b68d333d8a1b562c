//! Session: one client, from its login to its end.
//!
//! Promises: what the crate promises. Whoever waits for an answer drives both sockets: there is no task and no channel between.

use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::gate::Replication;
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::Connection;
use forebay_pg_wire::verifier::Proof;
use forebay_stream::Socket;

use crate::asking::Lost;
use crate::beginning::{self, Beginning};
use crate::client::Client;
use crate::clients::{Bounds, Clients, Doing, Registration, Who};
use crate::console::{self, Command, Console, Outcome};
use crate::copying::Copying;
use crate::credentials::secret_of;
use crate::databases::Databases;
use crate::deadlines::{At, Deadlines, Passed};
use crate::end::{End, last_word, put_cancelled, put_refusal, too_many};
use crate::frames::{self, Frame, HEADER_BYTES, WHOLE_BYTES_MAX};
use crate::intake::{poll_read, poll_take};
use crate::last_answer::LastAnswer;
use crate::leftovers::Leftovers;
use crate::memory::watch::Watch;
use crate::numbers::Numbers;
use crate::plans::Plans;
use crate::pool::PoolMode;
use crate::reading::InForce;
use crate::refusal::Refusal;
use crate::relay::{Relayed, has_failed, poll_relay};
use crate::server::{Note, Server};
use crate::settings::Settings;
use crate::sharing::ask::Answer;
use crate::sharing::asked::Asked;
use crate::sharing::offer::{Alone, Offer, PARSE_COMPLETE, Travelling};
use crate::sharing::plan::Kind;
use crate::sharing::recourse::Got;
use crate::state::{IDLE_TIMEOUT, State};
use crate::statements::Names;
use crate::unknown_settings::UnknownSettings;
use crate::upstream::Upstream;

/// What a server is at is cancelled when its client is told to go, and the answer waited for so long,
const STOPPED_WITHIN: Duration = Duration::from_secs(1);
/// and held, where it is no longer than this.
const STOPPED_BYTES_MAX: usize = 4 << 20;
/// What was cancelled is refused so.
const WAS_CANCELLED: &str = "57014";
/// What a session has left is forgotten within this time, or its connection is closed.
const DISCARDED_WITHIN: Duration = Duration::from_secs(5);

/// `ERRCODE_OBJECT_IN_USE`.
const OBJECT_IN_USE: &str = "55006";

/// What a session says of itself when it begins.
#[derive(Debug)]
pub struct Identity {
    /// Who the client is.
    pub user: String,
    /// Where it wants to.
    pub database: String,
    /// What else it sent.
    pub parameters: Vec<(String, String)>,
    /// Whether it has come to [replicate](crate::replicate()).
    pub replication: Replication,
    /// What the client has shown of its password, if that convinces others.
    pub proof: Option<Proof>,
    /// How many bytes of a secret it has room for.
    pub secret_bytes: usize,
    /// Where it comes from.
    pub address: Option<SocketAddr>,
    /// It may look, and pause, and end others.
    pub is_admin: bool,
}

impl Identity {
    /// The parameter that names what runs there.
    fn application(&self) -> Option<&(String, String)> {
        self.parameters.iter().find(|(name, _)| name == "application_name")
    }
}

impl Who {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            user: identity.user.clone(),
            database: identity.database.clone(),
            address: identity.address,
            application: identity
                .application()
                .map_or_else(String::new, |(_, name)| name.clone()),
        }
    }
}

/// One client.
#[derive(Debug)]
pub struct Session {
    client: Client,
    state: State,
    deadlines: Option<Box<Deadlines>>,
    /// Of those who may use it.
    console: Option<Box<Console>>,
}

/// What a client wants.
enum Wanted {
    /// A server.
    Server,
    /// Something of the console.
    Command(Command),
    /// To go.
    Nothing,
}

impl Session {
    /// Begins a session for a client that has logged in: `output` is what is due to it before its settings.
    ///
    /// # Errors
    /// Why there is none to be had, for the log: the client has been told.
    pub async fn begin(
        stream: Connection<Socket>,
        input: BytesMut,
        output: BytesMut,
        identity: &Identity,
        databases: &Arc<Databases>,
        clients: &Arc<Clients>,
    ) -> Result<Self, WireError> {
        let mut client = Client::new(stream, input, output);
        let upstream = match databases.of(&identity.database) {
            Ok(upstream) => upstream,
            Err(error) => return Err(refused(client, error.into()).await),
        };
        // Whose password is known needs no proof; it would be of a verifier of our own.
        if let Some(proof) = &identity.proof
            && upstream.settings().own_verifier(&identity.user).is_none()
        {
            upstream.credentials.prove_by(&identity.user, secret_of(proof));
        }
        let registration = match registered(clients, identity, &upstream) {
            Ok(registration) => registration,
            Err(error) => return Err(refused(client, error.into()).await),
        };
        registration.entry.set_doing(Doing::Waiting);
        let beginning = Beginning::of(&identity.parameters);
        let first = match upstream.pool(&identity.user, &identity.database) {
            Ok(pool) => pool.welcome(&beginning).await.map(|welcome| (pool, welcome)),
            Err(error) => Err(error.into()),
        };
        let (pool, welcome) = match first {
            Ok(first) => first,
            Err(error) => {
                let refusal = Refusal::of(&error, &identity.user, identity.proof.is_some(), &upstream.settings());
                return Err(refused(client, refusal).await);
            }
        };
        let mut told = welcome.reported;
        let mut settings = Settings::default();
        // Of another one the server has told what it has made of it.
        if let Some((name, value)) = identity.application().filter(|(_, value)| beginning::is_plain(value)) {
            settings.set(name, value);
            let value = Bytes::copy_from_slice(value.as_bytes());
            Arc::make_mut(&mut told).insert(Bytes::from_static(b"application_name"), value);
        }
        client.output.extend_from_slice(&welcome.notices);
        for (name, value) in told.iter() {
            frames::put(&mut client.output, b'S', &[name, &[0], value, &[0]]);
        }
        let process_id = registration.entry.process_id.to_be_bytes();
        frames::put(&mut client.output, b'K', &[&process_id, &registration.entry.secret]);
        frames::put(&mut client.output, b'Z', &[b"I"]);
        let limits = pool.limits();
        // The server would end whoever has the connection next.
        let is_pinned = beginning.may_set(IDLE_TIMEOUT);
        let mut state = State {
            mode: limits.mode,
            role_changes: pool.role.changes(),
            max_message_bytes: limits.max_message_bytes,
            pool,
            beginning,
            registration,
            names: Names::default(),
            settings: Arc::new(settings.clone()),
            base: settings,
            last: None,
            lease: 0,
            told,
            is_suspect: false,
            named: BTreeSet::new(),
            unknown_settings: UnknownSettings::default(),
            is_asking: false,
            is_for_memory: false,
            leftovers: Leftovers::default(),
            asked_in_vain: 0,
            is_pinned,
            has_prepared_by_sql: false,
            numbers: Numbers::of(limits.session_functions),
            has_own_numbers: false,
            has_taken: false,
            has_cancelled: false,
            owes_cancel: false,
            gives_commands: identity.is_admin,
            has_command: false,
            is_learning: false,
            learnt: None,
            knows_functions: false,
            callers_refused: 0,
            are_callers_refused: false,
            learns_roles: false,
            changed: Vec::new(),
            passing_in: 0,
            passing_out: 0,
            is_passing_visible: false,
            undone: Vec::new(),
            lent_names: Vec::new(),
            deallocating: Vec::new(),
            upsetting: Vec::new(),
            shown: None,
            read_by: Settings::default(),
            bound: VecDeque::new(),
            proven: None,
            undescribed: None,
            described_at: 0,
            copying: Copying::default(),
            may_share: limits.mode == PoolMode::Transaction,
            statement_timeout: limits.timeouts.statement,
            company: None,
            answered: None,
            last_answer: LastAnswer::default(),
            first_answered: None,
            upsetting_at: None,
            watch: Watch::default(),
            spoke: None,
        };
        state.begins_anew();
        state.is_answered();
        let console = identity.is_admin.then(|| {
            Box::new(Console {
                databases: Arc::clone(databases),
                clients: Arc::clone(clients),
            })
        });
        Ok(Self {
            deadlines: Deadlines::of(&limits.timeouts),
            client,
            state,
            console,
        })
    }

    /// Serves the client until it goes, nothing more can be done for it, or it is [told](Clients::tell) to go.
    ///
    /// # Cancel safety
    /// Dropped, the client is hung up on, and so is the server if something runs for it.
    pub async fn run(mut self) {
        let ended = self.serve().await;
        self.state.registration.entry.set_running(None);
        match &ended {
            End::Client => {}
            ended => {
                tracing::debug!(%ended, "a session has ended");
                if let Some(error) = last_word(ended) {
                    self.state.registration.counters().told(error.sqlstate);
                    put_refusal(&mut self.client.output, &error);
                }
            }
        }
        self.client.end().await;
    }

    async fn serve(&mut self) -> End {
        let entry = Arc::clone(&self.state.registration.entry);
        loop {
            entry.set_doing(Doing::Idle);
            let wanted = poll_fn(|context| match self.poll_wanted(context) {
                Poll::Pending if entry.poll_phase(context) > Phase::Serving => Poll::Ready(Err(End::Stopped)),
                Poll::Pending => match poll_deadlines(&mut self.deadlines, At::Idle, context) {
                    Poll::Ready(_) => Poll::Ready(Err(End::Idle)),
                    Poll::Pending => Poll::Pending,
                },
                polled => polled,
            });
            let wanted = wanted.await;
            if let Some(deadlines) = &mut self.deadlines {
                deadlines.begins();
            }
            match wanted {
                // What he had was another's.
                Ok(Wanted::Server) if self.state.pool.role.changes() != self.state.role_changes => {
                    return End::AnotherRole;
                }
                Ok(Wanted::Server) => {}
                Ok(Wanted::Command(command)) => {
                    // A command cannot be cancelled, nor is it what comes behind it.
                    entry.has_travelled();
                    match self.command(&command).await {
                        Ok(()) => continue,
                        Err(end) => return end,
                    }
                }
                Ok(Wanted::Nothing) => return End::Client,
                Err(end) => return end,
            }
            let mut alone = match self.state.offer(&self.client.input) {
                None => None,
                Some(Offer::Alone(alone)) => Some(alone),
                Some(Offer::Known(asked, said, remembrance)) => {
                    self.is_told(Kind::Read, asked, &said);
                    self.state.last_answer = LastAnswer::Memory(remembrance);
                    self.state.registration.counters().was_remembered();
                    self.state.is_answered();
                    continue;
                }
                Some(Offer::Travels(travelling)) => match self.travel(travelling).await {
                    Ok(None) => continue,
                    Ok(alone) => alone,
                    Err(end) => return end,
                },
            };
            // Looked up when it is first wanted: most have a connection at once.
            let mut asked = None;
            entry.set_doing(Doing::Waiting);
            let acquired = {
                let recourse = alone.as_ref().and_then(|alone| alone.recourse.as_ref());
                let waited = alone.as_ref().map_or(Duration::ZERO, |alone| alone.waited);
                let mut acquired = pin!(self.state.acquire(recourse, waited));
                poll_fn(|context| {
                    if let Poll::Ready(acquired) = acquired.as_mut().poll(context) {
                        return Poll::Ready(acquired.map(Some).map_err(End::from));
                    }
                    // Of more than one statement the server is told which they are.
                    let asked = asked.get_or_insert_with(|| self.state.asked(&self.client.input));
                    entry.travels();
                    // Who drains is still to answer what was asked before.
                    if entry.poll_phase(context) == Phase::Stopping {
                        return Poll::Ready(Err(End::Stopped));
                    }
                    match asked.is_some() && entry.is_cancelled() {
                        true => Poll::Ready(Ok(None)),
                        false => Poll::Pending,
                    }
                })
                .await
            };
            let is_cancelled = entry.has_travelled();
            let acquired = match acquired {
                Ok(Some(Got::Server(server))) => Some(server),
                Ok(Some(Got::Told(said, remembrance))) => {
                    self.is_told_while_away(alone, &said);
                    self.state.last_answer = LastAnswer::Memory(remembrance);
                    continue;
                }
                Ok(None) => None,
                Err(end) => return end,
            };
            let asked_in_vain = is_cancelled
                .then(|| asked.flatten().or_else(|| self.state.asked(&self.client.input)))
                .flatten();
            let mut server = match (acquired, asked_in_vain) {
                (Some(server), None) => server,
                (acquired, asked) => {
                    if let Some(mut server) = acquired {
                        server.lent.not_at_all();
                        self.state.pool.release(server);
                    }
                    if let Some(asked) = asked {
                        self.is_cancelled(asked);
                    }
                    continue;
                }
            };
            let sent_before = self.client.sent_bytes;
            if let Some(alone) = &mut alone {
                alone.begins();
            }
            self.state.settle_in(&mut server, is_cancelled);
            if let (Some(deadlines), Some(alone)) = (&mut self.deadlines, &alone)
                && !alone.before.is_zero()
            {
                deadlines.has_begun(server.replies.next_place(), alone.before);
            }
            let relayed = poll_fn(|context| {
                loop {
                    match poll_relay(&mut self.client, &mut self.state, &mut server, context) {
                        Poll::Ready(Ok(Relayed::Command)) => self.obey_beside(),
                        Poll::Ready(Ok(Relayed::Free)) => return Poll::Ready(Ok(())),
                        Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
                        Poll::Pending => break,
                    }
                }
                match entry.poll_phase(context) {
                    Phase::Serving => {}
                    Phase::Draining if !self.state.rests(&server) => {}
                    Phase::Draining | Phase::Stopping => return Poll::Ready(Err(End::Stopped)),
                }
                loop {
                    let end = match ready!(poll_deadlines(&mut self.deadlines, server.at(), context)) {
                        Passed::Statement => {
                            server.interrupt();
                            continue;
                        }
                        Passed::Idle => End::Idle,
                        Passed::IdleInTransaction => End::IdleInTransaction,
                        Passed::Cancelled => End::Unanswered,
                    };
                    return Poll::Ready(Err(end));
                }
            });
            let relayed = relayed.await;
            entry.set_running(None);
            entry.has_travelled();
            self.state.is_answered();
            if relayed.is_err() {
                // What was asked may be done, and nobody is told.
                self.state.has_done();
            }
            match relayed {
                Ok(()) => {
                    self.state.last = Some(server.lent);
                    self.state.pool.answered();
                    if let Some(mut alone) = alone {
                        let answered = self.state.first_answered.unwrap_or_else(Instant::now);
                        alone.is_answered(self.client.sent_bytes - sent_before, answered);
                        // Its statement is answered, whatever becomes of that.
                        if alone.is_to_learn() && self.state.may_learn(&server) {
                            match self.learn(&mut alone, &mut server).await {
                                Ok(false) => {}
                                Ok(true) => self.state.pool.catalog_is_another(),
                                Err(_) => continue,
                            }
                        }
                    }
                    self.state.pool.release(server);
                }
                Err(End::Client) if self.state.mode == PoolMode::Session && self.state.rests(&server) => {
                    if self.discard(&mut server).await {
                        self.state.pool.release(server);
                    }
                    return End::Client;
                }
                Err(End::Stopped) => return self.stopped_at_work(server).await,
                Err(end) => {
                    server.give_up();
                    return end;
                }
            }
        }
    }

    /// Asks the catalog about what was answered; whether it says something else than before. What the client asks meanwhile waits, and can be cancelled.
    async fn learn(&mut self, alone: &mut Alone, server: &mut Server) -> Result<bool, Lost> {
        let entry = &self.state.registration.entry;
        let client = &mut self.client;
        let mut learning = pin!(alone.learn(server));
        poll_fn(|context| {
            if let Poll::Ready(learnt) = learning.as_mut().poll(context) {
                return Poll::Ready(learnt);
            }
            // Who goes is noticed behind this.
            while client.input.len() < WHOLE_BYTES_MAX && matches!(poll_read(client, context), Poll::Ready(Ok(1..))) {}
            if !client.input.is_empty() {
                entry.travels();
            }
            Poll::Pending
        })
        .await
    }

    /// The client is told to go while a server works for it: what it is at is cancelled, and what came of that is told, as far as it is
    /// there in time.
    async fn stopped_at_work(&mut self, mut server: Box<Server>) -> End {
        if !server.replies.awaits_ready() {
            // Nothing of it can be committed.
            server.give_up();
            return End::Stopped;
        }
        server.interrupt();
        let said_before = self.client.output.len();
        let is_between = self.state.passing_out == 0;
        let answered = poll_fn(|context| {
            while server.replies.awaits_ready() {
                if self.client.output.len() - said_before > STOPPED_BYTES_MAX {
                    return Poll::Ready(Err(End::Unknown));
                }
                ready!(server.poll_send(context))?;
                match ready!(poll_take(&mut server, context))? {
                    0 => return Poll::Ready(Err(End::Unknown)),
                    _ => self.state.pass_out(&mut self.client, &mut server)?,
                }
            }
            Poll::Ready(Ok(()))
        });
        let answered = tokio::time::timeout(STOPPED_WITHIN, answered).await;
        match answered {
            Ok(Ok(())) => {
                let said = &self.client.output[said_before..];
                if is_between && let Some(at) = frames::last_refusal(said, WAS_CANCELLED.as_bytes()) {
                    // What ended it is the end of the session, as the client sees it.
                    self.client.output.truncate(said_before + at);
                }
                End::Stopped
            }
            Ok(Err(end @ End::LastWord)) => end,
            Ok(Err(_)) | Err(_) => {
                server.give_up();
                End::Unknown
            }
        }
    }

    /// Waits for what others carry. None where it was answered; else it goes alone.
    async fn travel(&mut self, mut travelling: Travelling) -> Result<Option<Alone>, End> {
        let entry = Arc::clone(&self.state.registration.entry);
        entry.set_doing(Doing::Waiting);
        entry.travels();
        let length = travelling.asked.length;
        let client = &mut self.client;
        let deadlines = &mut self.deadlines;
        let answer = {
            poll_fn(|context| {
                if let Poll::Ready(answer) = pin!(travelling.answer()).poll(context) {
                    return Poll::Ready(Ok(answer));
                }
                if let Some(deadlines) = deadlines.as_deref_mut()
                    && deadlines
                        .poll_carried(travelling.sent().map(Into::into), context)
                        .is_ready()
                    // A change that is on its way is cancelled there, and what came of it is waited for.
                    && travelling.withdraw()
                {
                    return Poll::Ready(Ok(Answer::Cancelled));
                }
                if entry.poll_phase(context) == Phase::Stopping {
                    return Poll::Ready(Err(match travelling.withdraw() {
                        true => End::Stopped,
                        // It may be done.
                        false => End::Unknown,
                    }));
                }
                // A change that is on its way is done, or not, as where a cancel comes late: that is waited for.
                if entry.is_cancelled() && travelling.withdraw() {
                    return Poll::Ready(Ok(Answer::Cancelled));
                }
                while client.input.len() < length + WHOLE_BYTES_MAX {
                    match ready!(poll_read(client, context)) {
                        Ok(1..) => {}
                        // What it asked before it said that it goes is done first.
                        Ok(0) if frames::says_farewell(&client.input[length..]) => break,
                        Ok(0) | Err(_) => return Poll::Ready(Err(End::Client)),
                    }
                }
                Poll::Pending
            })
            .await
        };
        let said = match answer? {
            Answer::Done(said) => said,
            // A cancel finds it on its way to a connection, too.
            Answer::Alone(was_held_up) => return Ok(Some(travelling.alone(was_held_up))),
            Answer::Unknown => return Err(End::Unknown),
            Answer::Cancelled => {
                entry.has_travelled();
                self.is_cancelled(travelling.asked);
                return Ok(None);
            }
        };
        // A cancel that has come is late.
        entry.has_travelled();
        self.is_told(travelling.kind, travelling.asked, &said);
        self.state.last_answer = LastAnswer::Database;
        let counters = self.state.registration.counters();
        match travelling.is_for_memory {
            true => counters.was_fetched(),
            false => counters.was_shared(),
        }
        Ok(None)
    }

    /// What the client has asked is answered, and not by a server of its own.
    fn is_told(&mut self, kind: Kind, asked: Asked, said: &Bytes) {
        self.client.input.advance(asked.length);
        if asked.is_parsed {
            self.client.output.extend_from_slice(&PARSE_COMPLETE);
        }
        self.client.tell(said);
        self.state.is_told(&asked, said);
        frames::put(&mut self.client.output, b'Z', &[b"I"]);
        self.state.has_travelled(kind, asked);
    }

    /// The same by what was remembered, as there is no server.
    fn is_told_while_away(&mut self, alone: Option<Alone>, said: &Bytes) {
        let Some(alone) = alone else { return };
        alone.is_told();
        let recourse = alone.recourse.as_ref().expect("it is what was told");
        self.is_told(Kind::Read, recourse.asked.clone(), said);
        self.state.registration.counters().was_remembered();
    }

    /// Nothing of it was done, but for a Parse, which is done before what is cancelled.
    fn is_cancelled(&mut self, asked: Asked) {
        self.client.input.advance(asked.length);
        put_cancelled(&mut self.client.output);
        self.state.registration.counters().told(WAS_CANCELLED);
        frames::put(&mut self.client.output, b'Z', &[b"I"]);
        self.state.last_answer = LastAnswer::Nowhere;
        self.state.keep_unnamed(asked);
    }

    /// Has the server forget all that the session has left. False if it did not, in the time that is given it.
    async fn discard(&mut self, server: &mut Server) -> bool {
        server.ask("DISCARD ALL", Note::Set);
        let discarded = poll_fn(|context| {
            loop {
                ready!(server.poll_send(context))?;
                match ready!(poll_take(server, context))? {
                    0 => return Poll::Ready(Err(End::Client)),
                    _ => self.state.pass_out(&mut self.client, server)?,
                }
                if server.is_settled() {
                    return Poll::Ready(Ok(()));
                }
            }
        });
        let is_done = matches!(tokio::time::timeout(DISCARDED_WITHIN, discarded).await, Ok(Ok(())));
        server.settings = Arc::default();
        server.in_force = InForce::Settled;
        server.plans = Plans::default();
        server.prepared.keep_the_unnamed();
        is_done
    }

    /// Does what is asked of the console. A client that goes meanwhile, or is told to, waits for nothing.
    async fn command(&mut self, command: &Command) -> Result<(), End> {
        let console = self.console.as_ref().expect("there is no command without it");
        let notice = console.notice(command);
        let outcome = console.run(command, self.state.last_answer);
        self.log(command, &outcome);
        let outcome = match outcome {
            Outcome::Emptying(pools) => {
                let entry = Arc::clone(&self.state.registration.entry);
                let mut emptied = pin!(async {
                    for pool in pools {
                        pool.emptied().await;
                    }
                });
                let client = &mut self.client;
                poll_fn(|context| {
                    if emptied.as_mut().poll(context).is_ready() {
                        return Poll::Ready(Ok(()));
                    }
                    if entry.poll_phase(context) > Phase::Serving {
                        return Poll::Ready(Err(End::Stopped));
                    }
                    while client.input.len() < WHOLE_BYTES_MAX {
                        match ready!(poll_read(client, context)) {
                            Ok(1..) => {}
                            Ok(0) | Err(_) => return Poll::Ready(Err(End::Client)),
                        }
                    }
                    Poll::Pending
                })
                .await?;
                Outcome::Done("PAUSE")
            }
            outcome => outcome,
        };
        self.answer(notice.as_ref(), &outcome);
        Ok(())
    }

    /// Does what is asked of the console next, of a session that keeps its connection.
    fn obey_beside(&mut self) {
        let frame = frames::frame(&self.client.input).ok().flatten();
        let command = frame.and_then(|frame| self.take_command(frame));
        let (Some(console), Some(command)) = (&self.console, command) else {
            return;
        };
        let outcome = match command {
            Command::Pause(_) => Outcome::Refused(
                WireError::new(
                    OBJECT_IN_USE,
                    "this session keeps a connection, and a pause waits for all",
                )
                .with_hint("A session that has just begun keeps none."),
            ),
            ref command => console.run(command, self.state.last_answer),
        };
        let notice = console.notice(&command);
        self.log(&command, &outcome);
        self.answer(notice.as_ref(), &outcome);
    }

    /// Logs what a command changes, from when on it does: a pause may wait for long.
    fn log(&self, command: &Command, outcome: &Outcome) {
        let Some(change) = command.change() else { return };
        let who = &self.state.registration.entry.who;
        let by = format!("{}@{}", who.user, who.database);
        let address = who.address.map(tracing::field::display);
        match outcome {
            Outcome::Refused(error) => {
                tracing::info!(
                    by,
                    address,
                    sqlstate = error.sqlstate,
                    "refused on the console: {change}"
                );
            }
            _ => tracing::info!(by, address, "on the console: {change}"),
        }
    }

    /// Answers a command.
    fn answer(&mut self, notice: Option<&WireError>, outcome: &Outcome) {
        let out = &mut self.client.output;
        if let (Some(notice), false) = (notice, matches!(outcome, Outcome::Refused(_))) {
            notice.encode(out);
        }
        match outcome {
            Outcome::Rows(rows) => rows.put(out),
            Outcome::Done(tag) => console::put_done(out, tag),
            Outcome::Refused(error) => {
                self.state.registration.counters().told(error.sqlstate);
                error.encode(out);
            }
            Outcome::Emptying(_) => unreachable!("it was waited for"),
        }
        frames::put(out, b'Z', &[b"I"]);
    }

    /// Waits, without a server, for a message that needs one.
    fn poll_wanted(&mut self, context: &mut Context<'_>) -> Poll<Result<Wanted, End>> {
        loop {
            if has_failed(&self.client.poll_send(context)) {
                return Poll::Ready(Ok(Wanted::Nothing));
            }
            // Who takes nothing of what he was told is told nothing more.
            if self.client.is_behind() {
                return Poll::Pending;
            }
            if self.state.passing_in > 0 {
                let here = self.state.passing_in.min(self.client.input.len());
                self.client.input.advance(here);
                self.state.passing_in -= here;
            }
            match frames::frame(&self.client.input) {
                Err(error) => return Poll::Ready(Err(error.into())),
                Ok(Some(Frame { tag: b'X', .. })) => return Poll::Ready(Ok(Wanted::Nothing)),
                // What comes late of a copy that failed, and what asks for nothing.
                Ok(Some(Frame { tag, length }))
                    if matches!(tag, b'd' | b'c' | b'f') || (tag == b'H' && length == HEADER_BYTES) =>
                {
                    let here = length.min(self.client.input.len());
                    if here < length && self.client.input.len() < WHOLE_BYTES_MAX {
                        // Read on below.
                    } else {
                        self.client.input.advance(here);
                        self.state.passing_in = length - here;
                        continue;
                    }
                }
                Ok(Some(frame)) if frame.has_text() && frame.length > self.state.max_message_bytes => {
                    return Poll::Ready(Err(End::TooLong {
                        length: frame.length,
                        max: self.state.max_message_bytes,
                    }));
                }
                // One that is still coming holds no server: it may come slowly, or never.
                Ok(Some(frame)) if frame.can_be_taken(self.client.input.len()) => {
                    let wanted = self.take_command(frame).map_or(Wanted::Server, Wanted::Command);
                    return Poll::Ready(Ok(wanted));
                }
                Ok(_) => {}
            }
            match poll_read(&mut self.client, context) {
                Poll::Pending => {
                    self.client.rest();
                    return Poll::Pending;
                }
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ok(Wanted::Nothing)),
            }
        }
    }

    /// The command that the input begins with, if it does and the client may give any.
    fn take_command(&mut self, frame: Frame) -> Option<Command> {
        self.console.as_ref()?;
        let command = Command::of_message(self.client.input.get(..frame.length)?)?;
        self.client.input.advance(frame.length);
        Some(command)
    }
}

/// Tells a client that there is no session for it; what is to be logged of that.
async fn refused(mut client: Client, refusal: Refusal) -> WireError {
    put_refusal(&mut client.output, &refusal.told);
    client.end().await;
    refusal.logged
}

/// Ready once the client has been at this for too long.
fn poll_deadlines(deadlines: &mut Option<Box<Deadlines>>, at: At, context: &mut Context<'_>) -> Poll<Passed> {
    match deadlines {
        Some(deadlines) => deadlines.poll(at, context),
        None => Poll::Pending,
    }
}

/// A client that has been let in, if there are not too many. Who looks after all this finds room at any time.
pub(crate) fn registered(
    clients: &Arc<Clients>,
    identity: &Identity,
    upstream: &Upstream,
) -> Result<Registration, WireError> {
    let bounds = match identity.is_admin {
        true => Bounds::default(),
        false => upstream.settings().bounds_of(&identity.user),
    };
    let registered = clients.register(Who::of(identity), identity.secret_bytes, bounds);
    registered.map_err(|reason| too_many(reason, &identity.user, &identity.database))
}
