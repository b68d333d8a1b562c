//! Pool: the server connections of one user to one database, lent for a transaction each.
//!
//! Promises: there are never more than the pool's size; who waits longest is served next; whoever waits too long, or where too
//! many wait, is told so. A connection that the server has closed meanwhile is not lent. Knows no client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_pg_link::{ConnectError, Connector, Link};

use crate::beginning::Beginning;
use crate::credentials::Credentials;
use crate::effects::Effects;
use crate::lent::Lent;
use crate::places::{Claim, Grant, Places};
use crate::server::Server;
use crate::statements::Statements;

/// For how long a client has a server connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolMode {
    /// A transaction, or longer where something is left that cannot be carried to another connection.
    #[default]
    Transaction,
    /// Its session; behind it all is discarded that it has left.
    Session,
}

/// How many connections there may be, and who may wait for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// For how long each is lent.
    pub mode: PoolMode,
    /// Server connections of a pool.
    pub max_connections: usize,
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            mode: PoolMode::default(),
            max_connections: 20,
            max_waiting: 10_000,
            max_wait: Duration::from_secs(30),
            max_message_bytes: 64 << 20,
            idle_timeout: Duration::from_secs(600),
            lifetime: Duration::from_secs(3600),
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
    connector: Connector,
    credentials: Arc<Credentials>,
    limits: Limits,
    places: Arc<Places<Box<Server>>>,
    pub(crate) statements: Statements,
    /// Of the database, which other users' pools may be of, too.
    pub(crate) effects: Arc<Effects>,
    asks_for_numbers: AtomicBool,
}

impl Pool {
    pub(crate) fn new(
        connector: Connector,
        credentials: Arc<Credentials>,
        effects: Arc<Effects>,
        limits: &Limits,
    ) -> Self {
        Self {
            connector,
            credentials,
            limits: limits.clone(),
            places: Places::new(limits.max_connections, limits.max_waiting),
            statements: Statements::default(),
            effects,
            asks_for_numbers: AtomicBool::new(false),
        }
    }

    /// Whether a client has a connection for its session.
    pub(crate) fn lends_for_a_session(&self) -> bool {
        self.limits.mode == PoolMode::Session
    }

    /// The longest text of a client.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.limits.max_message_bytes
    }

    /// Whether some client asks for last numbers of sequences: then nobody is to find another's.
    pub(crate) fn asks_for_numbers(&self) -> bool {
        self.asks_for_numbers.load(Ordering::Relaxed)
    }

    /// A client does.
    pub(crate) fn ask_for_numbers(&self) {
        self.asks_for_numbers.store(true, Ordering::Relaxed);
    }

    /// As whom it connects.
    pub(crate) fn user(&self) -> &str {
        self.connector.user()
    }

    /// A connection that is nobody's and began like this: the one that the caller had last, if nobody has had it since.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whoever waits next is served.
    pub(crate) async fn acquire(&self, beginning: &Beginning, last: Option<Lent>) -> Result<Box<Server>, Unavailable> {
        loop {
            let grant = match self.places.claim(beginning.clone(), |server| Some(server.lent) == last) {
                Claim::Granted(grant) => grant,
                Claim::Crowded(waiting, longest) => return Err(Unavailable::Crowded { waiting, longest }),
                Claim::Wait(granted) => match tokio::time::timeout(self.limits.max_wait, granted).await {
                    Ok(Ok(grant)) => grant,
                    Ok(Err(_)) => continue,
                    Err(_) => {
                        let Stats { open, waiting, .. } = self.stats();
                        return Err(Unavailable::Waited {
                            waited: self.limits.max_wait,
                            open,
                            waiting,
                        });
                    }
                },
            };
            match grant {
                Grant::Lent(mut server) => {
                    server.look();
                    if server.is_clean() {
                        server.lent.again();
                        return Ok(server);
                    }
                }
                Grant::Place(place) => {
                    let link = self.connect(beginning).await?;
                    return Ok(Box::new(Server::new(link, beginning.clone(), place)));
                }
            }
        }
    }

    /// Connects as the user that the pool is of, by what proves it now.
    async fn connect(&self, beginning: &Beginning) -> Result<Link, ConnectError> {
        let user = self.connector.user();
        let secret = self.credentials.secret(user);
        let connected = self.connector.beginning(beginning.settings(), secret).connect().await;
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
        if server.is_clean() && !server.is_used_up && server.since.elapsed() < self.limits.lifetime {
            server.idle_since = Instant::now();
            self.places.give_back(server);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let (open, idle, waiting) = self.places.counts();
        Stats { open, idle, waiting }
    }

    /// Closes what has been idle for too long, what is too old, and what the server has closed.
    pub(crate) fn sweep(&self) {
        let gone = self.places.take_idle(|server| {
            server.look();
            !server.is_clean()
                || server.idle_since.elapsed() >= self.limits.idle_timeout
                || server.since.elapsed() >= self.limits.lifetime
        });
        for server in gone {
            server.say_farewell();
        }
    }

    /// Whether somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.places.is_waited_for()
    }
}
