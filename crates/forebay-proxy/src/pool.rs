//! Pool: the server connections of one user to one database, lent for a transaction each.
//!
//! Promises: there are never more than the pool's size; who waits longest is served next; whoever waits too long, or where too
//! many wait, is told so. A connection that the server has closed meanwhile is not lent, nor one that was made before the pool was
//! changed to another server or renewed. Knows no client.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use forebay_pg_link::{Config, ConnectError, Connector, Link};
use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use crate::asking::ask;
use crate::away::{Away, Found, says_away};
use crate::beginning::Beginning;
use crate::cap::{Cap, Holder, Permit};
use crate::credentials::Credentials;
pub use crate::deadlines::Timeouts;
use crate::effects::Effects;
use crate::figures::Tops;
use crate::hearing::Listener;
use crate::lent::Lent;
use crate::memory::Memory;
use crate::memory::does::Does;
use crate::places::{Claim, Grant, Place, Places, Room};
use crate::reach::Reach;
use crate::role::{self, Role};
use crate::server::{Server, Shown};
use crate::settings::AT_ONCE;
use crate::sharing::company::Companies;
pub use crate::sharing::met::{Asks, Met};
use crate::sharing::rules::Rules;
pub use crate::sharing::rules::{Doubt, Rule, StatementForm, TableName};
pub use crate::sharing::terms::Sharing;
use crate::statements::Statements;
use crate::welcome::{Welcome, Welcomes};
use crate::whose::Whose;

/// For how long a client has a server connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolMode {
    /// A transaction, or longer where something is left that cannot be carried to another connection.
    #[default]
    Transaction,
    /// Its session; behind it all is discarded that it has left.
    Session,
}

/// What `currval` and `lastval` know of a client whose transactions run on several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionFunctions {
    /// What was drawn on the connection that it has; nothing, once another client had it in between.
    #[default]
    Refuse,
    /// All: a client that may have drawn a number has its connection until it discards all, or goes.
    Pin,
}

/// How many connections there may be, and who may wait for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// For how long each is lent.
    pub mode: PoolMode,
    /// Of what clients ask at the same time.
    pub sharing: Sharing,
    /// What is known of numbers that were drawn.
    pub session_functions: SessionFunctions,
    /// Server connections of a pool.
    pub max_connections: usize,
    /// So many of them are there while there are clients, whether they are used or not.
    pub min_connections: usize,
    /// So many more there may be for clients that have waited for [`reserve_after`](Self::reserve_after).
    pub reserve_connections: usize,
    /// How long that is.
    pub reserve_after: Duration,
    /// Clients that wait for one.
    pub max_waiting: usize,
    /// How long each may.
    pub max_wait: Duration,
    /// The longest text of a client, with what comes with it: the whole of it is held.
    pub max_message_bytes: usize,
    /// How long a server connection is kept that nobody uses.
    pub idle_timeout: Duration,
    /// How long one is kept all in all: its server's memory of it grows.
    pub lifetime: Duration,
    /// Of clients.
    pub timeouts: Timeouts,
    /// A client gets any connection rather than the one that it had last: the worst that a pool may do, for tests of what goes with a client.
    pub strays: bool,
}

impl Limits {
    /// The option by which nothing that clients ask travels together, if there is one.
    #[must_use]
    pub fn shares_nothing_by(&self) -> Option<&'static str> {
        match (self.sharing.is_on, self.mode) {
            (false, _) => Some("sharing = false"),
            (true, PoolMode::Session) => Some("pool_mode = \"session\""),
            (true, PoolMode::Transaction) => None,
        }
    }

    /// The option by which nothing travels that a client asks once it has written, if there is one.
    #[must_use]
    pub fn shares_little_by(&self) -> Option<&'static str> {
        let keeps = self.session_functions == SessionFunctions::Pin;
        keeps.then_some("session_functions = \"pin\"")
    }

    fn room(&self) -> Room {
        Room {
            max: self.max_connections,
            max_waiting: self.max_waiting,
            reserve: self.reserve_connections,
            reserve_after: self.reserve_after,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mode: PoolMode::default(),
            sharing: Sharing::default(),
            session_functions: SessionFunctions::default(),
            max_connections: 20,
            min_connections: 0,
            reserve_connections: 0,
            reserve_after: Duration::from_secs(5),
            max_waiting: 10_000,
            max_wait: Duration::from_secs(30),
            max_message_bytes: 64 << 20,
            idle_timeout: Duration::from_secs(600),
            lifetime: Duration::from_secs(3600),
            timeouts: Timeouts::default(),
            strays: false,
        }
    }
}

/// How many connections there are, and who waits for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Server connections, and those that are being made.
    pub open: usize,
    /// Of these, the ones that nobody has.
    pub idle: usize,
    /// Clients that wait for one.
    pub waiting: usize,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("no server connection became free within {waited:?}: {open} are in use, {waiting} clients wait")]
    Waited {
        waited: Duration,
        open: usize,
        waiting: usize,
    },
    #[error("{waiting} clients wait for a server connection already, for {longest:?} the first of them")]
    Crowded { waiting: usize, longest: Duration },
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// The connections of one user to one database.
#[derive(Debug)]
pub(crate) struct Pool {
    /// What tells it from all others.
    number: u64,
    whose: Whose,
    credentials: Arc<Credentials>,
    terms: RwLock<Terms>,
    /// How often what is lent was to be made anew.
    generation: AtomicU64,
    places: Arc<Places<Box<Server>>>,
    pub(crate) statements: Statements,
    /// Of its sessions, those that may travel together.
    pub(crate) companies: Companies,
    shares: AtomicBool,
    remembers: AtomicBool,
    /// Of the database, which other users' pools may be of, too.
    pub(crate) effects: Arc<Effects>,
    asks_for_numbers: AtomicBool,
    /// Of its connections.
    shown: Mutex<Vec<Weak<Shown>>>,
    welcomes: Welcomes,
    pub(crate) role: Role,
    /// Of the server, which other pools are of, too.
    reach: Arc<Reach>,
    /// Of all databases.
    pub(crate) tops: Arc<Tops>,
    away: Arc<Away>,
}

/// What somebody gets who has a place for a connection.
enum Right {
    /// The right to make one.
    Permit(Permit),
    /// One that is there.
    Lent(Box<Server>),
}

/// How connections are made and kept.
#[derive(Debug)]
struct Terms {
    connector: Arc<Connector>,
    limits: Limits,
    /// Of the server, which other pools are of, too.
    cap: Arc<Cap>,
    /// Of all databases; none where nothing is remembered.
    memory: Option<Memory>,
    /// Who listens to the database; none where nobody is to.
    listener: Option<Arc<Listener>>,
    /// Where the database is, whatever clients call it.
    place: Arc<str>,
}

/// What is said of a pool, and may be said anew.
pub(crate) struct Said {
    /// What clients call the database.
    pub(crate) database: String,
    pub(crate) connector: Connector,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) cap: Arc<Cap>,
    pub(crate) memory: Option<Memory>,
    pub(crate) listener: Option<Arc<Listener>>,
}

/// Where a database is.
pub(crate) fn place_of(config: &Config) -> Arc<str> {
    let hosts: Vec<String> = config.hosts.iter().map(ToString::to_string).collect();
    format!("{}/{}", hosts.join(","), config.dbname.as_deref().unwrap_or_default()).into()
}

impl Pool {
    pub(crate) fn new(
        said: Said,
        credentials: Arc<Credentials>,
        effects: Arc<Effects>,
        (reach, away): (Arc<Reach>, Arc<Away>),
        tops: Arc<Tops>,
    ) -> Self {
        let Said {
            database,
            connector,
            limits,
            rules,
            cap,
            memory,
            listener,
        } = said;
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            whose: Whose {
                user: connector.user().into(),
                database: database.into(),
            },
            credentials,
            places: Places::new(limits.room()),
            generation: AtomicU64::new(0),
            statements: Statements::default(),
            companies: Companies::new(limits.sharing, rules, Arc::clone(&tops.statements)),
            shares: AtomicBool::new(limits.sharing.is_on),
            remembers: AtomicBool::new(memory.is_some()),
            terms: RwLock::new(Terms {
                place: place_of(connector.config()),
                connector: Arc::new(connector),
                limits,
                cap,
                memory,
                listener,
            }),
            effects,
            asks_for_numbers: AtomicBool::new(false),
            shown: Mutex::default(),
            welcomes: Welcomes::default(),
            role: Role::default(),
            reach,
            tops,
            away,
        }
    }

    /// From now on connections are made like this, and there are so many.
    pub(crate) fn change(&self, said: Said) {
        let room = said.limits.room();
        self.shares.store(said.limits.sharing.is_on, Ordering::Relaxed);
        let is_known = self.is_known_by(&said);
        self.companies.change(said.rules);
        if !is_known {
            // What is known is of where it was, or nobody may have heard what has happened since.
            self.has_changed(&Does::Anything);
        }
        self.remembers.store(said.memory.is_some(), Ordering::Release);
        *self.terms.write() = Terms {
            place: place_of(said.connector.config()),
            connector: Arc::new(said.connector),
            limits: said.limits,
            cap: said.cap,
            memory: said.memory,
            listener: said.listener,
        };
        for server in self.places.resize(room) {
            server.say_farewell();
        }
    }

    /// Whether its database is where that says, and the same one listens to it.
    fn is_known_by(&self, said: &Said) -> bool {
        let terms = self.terms.read();
        let is_same_listener = match (&terms.listener, &said.listener) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_same_listener && terms.memory == said.memory && terms.connector.config() == said.connector.config()
    }

    /// No connection that there is now is lent again.
    pub(crate) fn renew(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.effects.doubt();
        self.has_changed(&Does::Anything);
        self.sweep(true);
    }

    /// Lends nothing, from now until it is to [go on](Self::resume); what is lent is closed when it comes back.
    pub(crate) fn pause(&self) {
        for server in self.places.close() {
            server.say_farewell();
        }
    }

    /// Waits until nothing is lent.
    ///
    /// # Cancel safety
    /// Dropped, nothing else changes.
    pub(crate) async fn emptied(&self) {
        self.places.emptied().await;
    }

    /// Lends again.
    pub(crate) fn resume(&self) {
        self.places.open();
    }

    /// Whether it lends nothing.
    pub(crate) fn is_paused(&self) -> bool {
        self.places.is_closed()
    }

    /// For sessions that begin now.
    pub(crate) fn limits(&self) -> Limits {
        self.terms.read().limits.clone()
    }

    /// Whether it is as connections are made now.
    pub(crate) fn is_of_now(&self, server: &Server) -> bool {
        server.generation == self.generation.load(Ordering::Acquire)
    }

    /// Whether some client asks for last numbers of sequences: then nobody is to find another's.
    pub(crate) fn asks_for_numbers(&self) -> bool {
        self.asks_for_numbers.load(Ordering::Relaxed)
    }

    /// A client does.
    pub(crate) fn ask_for_numbers(&self) {
        self.asks_for_numbers.store(true, Ordering::Relaxed);
    }

    /// Whether what its clients ask may travel together.
    pub(crate) fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed)
    }

    /// Whether answers are remembered.
    pub(crate) fn remembers(&self) -> bool {
        self.remembers.load(Ordering::Acquire)
    }

    /// Where they are, and where its database is.
    pub(crate) fn memory(&self) -> Option<(Memory, Arc<str>)> {
        if !self.remembers() {
            return None;
        }
        let terms = self.terms.read();
        terms.memory.clone().zip(Some(Arc::clone(&terms.place)))
    }

    /// Who listens to its database, if anybody does.
    pub(crate) fn listener(&self) -> Option<Arc<Listener>> {
        self.terms.read().listener.clone()
    }

    /// Whether nobody is to listen to the database, or somebody hears all that happens to these tables, so late at the most, or as late as for all.
    pub(crate) fn hears(&self, tables: &[Arc<str>], max_lag: Option<Duration>) -> bool {
        let listener = &self.terms.read().listener;
        listener.as_ref().is_none_or(|listener| listener.hears(tables, max_lag))
    }

    /// Rows were changed, or may have been; to be said before its client is told.
    pub(crate) fn has_changed(&self, does: &Does) {
        if let Some((memory, place)) = self.memory() {
            memory.has_changed(&place, does);
        }
    }

    /// The catalog is another one than it was, and nobody has said so: what was remembered may be of other tables than is known.
    pub(crate) fn catalog_is_another(&self) {
        self.effects.was_changed_elsewhere();
        self.has_changed(&Does::Anything);
    }

    /// As whom it connects.
    pub(crate) fn user(&self) -> &str {
        &self.whose.user
    }

    /// The same, and where.
    pub(crate) fn whose(&self) -> &Whose {
        &self.whose
    }

    /// A connection that is nobody's and began like this: the one that the caller had last, if nobody has had it since.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whoever waits next is served.
    pub(crate) async fn acquire(&self, beginning: &Beginning, last: Option<Lent>) -> Result<Box<Server>, Unavailable> {
        let strays = self.terms.read().limits.strays;
        let is_preferred = |server: &Server| match strays {
            false => Some(server.lent) == last,
            true => server.beginning == *beginning && !server.lent.is_of(last),
        };
        loop {
            let grant = match self.places.claim(beginning.clone(), |server| is_preferred(server)) {
                Claim::Granted(grant) => grant,
                Claim::Crowded(waiting, longest) => return Err(Unavailable::Crowded { waiting, longest }),
                Claim::Wait(granted) => match self.wait(granted).await? {
                    Some(grant) => grant,
                    None => continue,
                },
            };
            match grant {
                Grant::Lent(server) => {
                    if let Some(server) = self.lend(server).await {
                        return Ok(server);
                    }
                }
                Grant::Place(place) => {
                    // What it is made by is that of this number, or newer.
                    let generation = self.generation.load(Ordering::Acquire);
                    let permit = match self.permit(beginning).await? {
                        Right::Permit(permit) => permit,
                        // What somebody else has given back meanwhile does as well.
                        Right::Lent(server) => {
                            drop(place);
                            if let Some(server) = self.lend(server).await {
                                return Ok(server);
                            }
                            continue;
                        }
                    };
                    return self.make(beginning, generation, (place, permit)).await;
                }
            }
        }
    }

    /// One that was given back, if it can be lent again.
    async fn lend(&self, mut server: Box<Server>) -> Option<Box<Server>> {
        server.look();
        if !server.is_clean() || !self.is_of_now(&server) {
            return None;
        }
        if self.role.is_due() {
            let rows = ask(&mut server, &format!("{AT_ONCE}{}", role::ASK)).await.ok()?;
            let role = rows.as_deref().and_then(<[_]>::first).and_then(|row| role::told(row));
            if self.role.learn(role, self.user()) {
                self.renew();
                return None;
            }
        }
        server.lent.again();
        Some(server)
    }

    /// The same for somebody who would rather have none than wait for what is not there: none where a connection to the server cannot be made, as
    /// was found a moment ago or is found meanwhile, by whomever.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub(crate) async fn acquire_unless_away(
        &self,
        beginning: &Beginning,
        last: Option<Lent>,
    ) -> Option<Result<Box<Server>, Unavailable>> {
        let mut news = pin!(self.away.news());
        let _trial = match self.away.find() {
            Found::Away => return None,
            Found::There => None,
            Found::Tries(trial) => Some(trial),
        };
        let acquired = tokio::select! {
            biased;
            () = &mut news => return None,
            acquired = self.acquire(beginning, last) => acquired,
        };
        match acquired {
            Err(Unavailable::Connect(error)) if says_away(&error) => None,
            acquired => Some(acquired),
        }
    }

    /// Whether a connection to the server could not be made a moment ago, and cannot be told to be made now.
    pub(crate) fn is_away(&self) -> bool {
        self.away.is_away()
    }

    /// Somebody was answered by the server.
    pub(crate) fn answered(&self) {
        self.away.answered();
    }

    /// Waits for what is granted; none if the one who would have granted it has gone.
    async fn wait(
        &self,
        mut granted: oneshot::Receiver<Grant<Box<Server>>>,
    ) -> Result<Option<Grant<Box<Server>>>, Unavailable> {
        let (max_wait, reserve_after) = {
            let limits = &self.terms.read().limits;
            let has_reserve = limits.reserve_connections > 0;
            (limits.max_wait, has_reserve.then_some(limits.reserve_after))
        };
        let mut left = max_wait;
        if let Some(reserve_after) = reserve_after.filter(|after| *after < max_wait) {
            if let Ok(grant) = tokio::time::timeout(reserve_after, &mut granted).await {
                return Ok(grant.ok());
            }
            self.places.fill();
            left -= reserve_after;
        }
        match tokio::time::timeout(left, granted).await {
            Ok(grant) => Ok(grant.ok()),
            Err(_) => Err(self.has_waited()),
        }
    }

    /// What is told to who has waited for as long as he may.
    pub(crate) fn has_waited(&self) -> Unavailable {
        let Stats { open, waiting, .. } = self.stats();
        Unavailable::Waited {
            waited: self.limits().max_wait,
            open,
            waiting,
        }
    }

    async fn make(
        &self,
        beginning: &Beginning,
        generation: u64,
        taken: (Place<Box<Server>>, Permit),
    ) -> Result<Box<Server>, Unavailable> {
        let link = self.connect(beginning).await?;
        let server = Box::new(Server::new(link, beginning.clone(), generation, taken));
        self.note(&server);
        Ok(server)
    }

    /// Makes connections until there are as many as are to be there, as clients began last; takes none from anybody. They are as idle as
    /// others.
    ///
    /// # Cancel safety
    /// Dropped, there are fewer.
    pub(crate) async fn warm_up(&self) -> Result<(), Unavailable> {
        let Some(beginning) = self.welcomes.last() else {
            return Ok(());
        };
        loop {
            let (min, cap) = {
                let terms = self.terms.read();
                (terms.limits.min_connections, Arc::clone(&terms.cap))
            };
            let generation = self.generation.load(Ordering::Acquire);
            let Some(place) = self.places.claim_below(min) else {
                return Ok(());
            };
            let Some(permit) = cap.claim_free() else {
                return Ok(());
            };
            let server = self.make(&beginning, generation, (place, permit)).await?;
            self.release(server);
        }
    }

    /// Whether there are fewer than are to be there.
    pub(crate) fn is_cold(&self) -> bool {
        let (open, ..) = self.places.counts();
        open < self.terms.read().limits.min_connections && !self.is_paused()
    }

    /// The right to one more connection of the server, or a connection that somebody gives back before there is one.
    async fn permit(&self, beginning: &Beginning) -> Result<Right, Unavailable> {
        let (cap, max_wait) = {
            let terms = self.terms.read();
            (Arc::clone(&terms.cap), terms.limits.max_wait)
        };
        // Most have one at once.
        if let Some(permit) = cap.claim_free() {
            return Ok(Right::Permit(permit));
        }
        let mut lent = self.places.wait_for_lent(beginning.clone());
        // Before room is made: what has been given back meanwhile would be closed for it.
        if let Ok(Grant::Lent(server)) = lent.try_recv() {
            return Ok(Right::Lent(server));
        }
        let permit = cap.acquire(self.number);
        let either = async {
            tokio::select! {
                biased;
                Ok(Grant::Lent(server)) = &mut lent => Right::Lent(server),
                permit = permit => Right::Permit(permit),
            }
        };
        tokio::time::timeout(max_wait, either).await.map_err(|_| {
            let Stats { open, waiting, .. } = self.stats();
            Unavailable::Waited {
                waited: max_wait,
                open,
                waiting,
            }
        })
    }

    /// A connection is made.
    fn note(&self, server: &Server) {
        let mut shown = self.shown.lock();
        shown.retain(|shown| shown.strong_count() > 0);
        shown.push(Arc::downgrade(&server.shown));
        drop(shown);
        self.welcomes.learn(&server.beginning, &server.welcome);
    }

    /// What a client is told that begins like this: as a server tells it that lets the user in now. Where that would have to be waited
    /// for, as all connections are in use, it is as one said before: nobody stands at the door because others are at work.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whoever waits next is served.
    pub(crate) async fn welcome(&self, beginning: &Beginning) -> Result<Welcome, Unavailable> {
        self.role.logs_in();
        let mut news = pin!(self.welcomes.news());
        news.as_mut().enable();
        if self.would_wait(beginning)
            && let Some(welcome) = self.welcomes.of(beginning)
        {
            return Ok(welcome);
        }
        let mut acquired = pin!(self.acquire(beginning, None));
        loop {
            tokio::select! {
                biased;
                acquired = &mut acquired => {
                    let server = acquired?;
                    let welcome = server.welcome.clone();
                    self.release(server);
                    return Ok(welcome);
                }
                () = &mut news => {
                    news.set(self.welcomes.news());
                    news.as_mut().enable();
                    if let Some(welcome) = self.welcomes.of(beginning) {
                        return Ok(welcome);
                    }
                }
            }
        }
    }

    /// Whether a connection of this beginning is there only when somebody has given one back.
    fn would_wait(&self, beginning: &Beginning) -> bool {
        self.places.would_wait(beginning) || (!self.places.has_idle(beginning) && self.terms.read().cap.is_exhausted())
    }

    /// What is shown of its connections.
    pub(crate) fn servers(&self) -> Vec<Arc<Shown>> {
        self.shown.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// How long the first of those who wait has waited.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.places.longest_wait(|_| true).unwrap_or_default()
    }

    /// Connects as the user that the pool is of, by what proves it now.
    async fn connect(&self, beginning: &Beginning) -> Result<Link, ConnectError> {
        let user = self.user();
        let secret = self.credentials.secret(user);
        let connector = Arc::clone(&self.terms.read().connector);
        let connected = connector.beginning(beginning.settings(), secret).connect().await;
        self.reach.connected(connector.hosts(), &connected);
        self.away.connected(&connected);
        if let Err(ConnectError::Server(error)) = &connected
            && error.code.starts_with("28")
        {
            // Changed, or taken away: the next who comes is asked again.
            self.credentials.forget(user);
        }
        connected
    }

    /// Takes a connection back; one that is not clean is closed.
    pub(crate) fn release(&self, mut server: Box<Server>) {
        server.shown.give_back(server.prepared.count());
        let terms = self.terms.read();
        // A client of another pool has waited for the server's next connection, and for longer than any of this one.
        let is_wanted_elsewhere = || {
            let elsewhere = terms.cap.longest_wait_beside(self.number);
            elsewhere.is_some_and(|longest| longest >= self.longest_wait())
        };
        let is_good = server.is_clean() && !server.is_used_up && self.is_of_now(&server) && !terms.cap.is_over();
        if is_good && server.since.elapsed() < terms.limits.lifetime && !is_wanted_elsewhere() {
            server.idle_since = Instant::now();
            self.places.give_back(server);
            // Who has come to wait meanwhile has not seen it idle.
            if is_wanted_elsewhere() {
                self.close_idle();
            }
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let (open, idle, waiting) = self.places.counts();
        Stats { open, idle, waiting }
    }

    /// Closes what is too old, what the server has closed, and what has been idle for too long, but for those that are to be there while
    /// there are clients.
    pub(crate) fn sweep(&self, has_clients: bool) {
        let Limits {
            idle_timeout,
            lifetime,
            min_connections,
            ..
        } = self.limits();
        let kept = if has_clients { min_connections } else { 0 };
        let (open, ..) = self.places.counts();
        let mut spare = open.saturating_sub(kept);
        let gone = self.places.take_idle(|server| {
            server.look();
            let is_of_no_use = !server.is_clean() || !self.is_of_now(server) || server.since.elapsed() >= lifetime;
            let is_gone = is_of_no_use || (spare > 0 && server.idle_since.elapsed() >= idle_timeout);
            spare -= usize::from(is_gone && spare > 0);
            is_gone
        });
        for server in gone {
            server.say_farewell();
        }
    }

    /// Whether a connection that is lent for longer than a transaction is to come back: others wait, it is too old, or nothing is lent.
    pub(crate) fn wants_back(&self, server: &Server) -> bool {
        self.is_waited_for()
            || self.is_paused()
            || !self.is_of_now(server)
            || server.since.elapsed() >= self.terms.read().limits.lifetime
    }

    /// Whether somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.places.is_waited_for()
    }
}

impl Holder for Pool {
    fn idle_for(&self) -> Option<Duration> {
        self.places.longest_idle(|server| server.idle_since.elapsed())
    }

    fn close_idle(&self) {
        if let Some(server) = self.places.take_longest_idle() {
            server.say_farewell();
        }
    }
}
