//! The Writer's PostgreSQL: a pool of connections, on each of which a batch is one transaction.
//!
//! Promises: an acknowledged write is committed, with the durability that the server is set to (`synchronous_commit`, `fsync`);
//! what was lost before its commit was asked for is written again on another connection, what was lost while it was asked for
//! is [`OutcomeUnknown`](forebay_write::WriteError::OutcomeUnknown). Reading and writing share the connections and neither starves
//! the other.
//!
//! What a batch changes for a statement, and when not to batch: `guide/src/guarantees.md`.
//!
//! `batch` decides what is committed, `set` writes many INSERTs as one, `facts` says where that is safe,
//! `connection` sends and waits, `types` turns values into PostgreSQL's and back.

mod batch;
mod connection;
mod database;
mod error;
mod facts;
mod load;
mod plan;
mod reading;
mod set;
#[cfg(test)]
mod test_server;
mod transaction;
mod types;

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::managed::{Object, Pool, PoolError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use self::connection::{Manager, Unconnected};
use self::error::Fate;
use self::plan::Plans;
use forebay_remote::address;
use forebay_remote::retry::Backoff;
use forebay_remote::silence::Silence;
use forebay_sql::Role;
use forebay_write::{Outcome, Parameters, Sql, WriteError};

pub use self::load::{Answered, Read, ReadError, SqlKey, all_rows, one_row};
pub use self::transaction::Transaction;
/// For [`PostgresBuilder::tls`]: the rustls that is spoken here.
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;

/// How long a connection that was lost is waited for to end at the server, and another one for it.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// A PostgreSQL database and the connections to it. Clones are handles to the same ones; the last one dropped closes them.
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool<Manager>,
    plans: Plans,
    /// One connection fewer than there are, so that one is always left for the other kind; all of them if there is only one.
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
    /// Statements that wait for a lock on a connection of their own.
    patient: Semaphore,
    connections: usize,
    retry_for: Duration,
    lock_timeout: Duration,
    /// How long a connection is waited for that others have.
    busy_for: Duration,
    /// For messages: who is asked, never with a password.
    server: String,
}

/// Settings of connections that are to be made.
pub struct PostgresBuilder {
    config: Config,
    connections: usize,
    statement_cache: usize,
    lock_timeout: Duration,
    answer_timeout: Duration,
    rows_bytes_max: usize,
    retry_for: Duration,
    #[cfg(feature = "tls")]
    tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
}

/// A connection that was taken from the pool, and the right to it.
struct Taken {
    connection: Object<Manager>,
    permit: OwnedSemaphorePermit,
}

impl Postgres {
    /// Connects with the defaults of the [`builder`](Self::builder). The URL is as for libpq:
    /// `postgresql://user:password@host:5432/database`, or `host=/run/postgresql user=app dbname=app`. Whatever user or password
    /// has of `@ / : # ?` is percent-encoded in the first form.
    ///
    /// # Errors
    /// [`WriteError::InvalidUrl`]; [`WriteError::Unavailable`] if the server cannot be reached or refuses the user.
    pub async fn connect(url: &str) -> Result<Self, WriteError> {
        Self::builder(url)?.connect().await
    }

    /// Settings other than the defaults.
    ///
    /// # Errors
    /// [`WriteError::InvalidUrl`].
    pub fn builder(url: &str) -> Result<PostgresBuilder, WriteError> {
        let mut config = Config::from_str(url).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            address::invalid(url, cause)
        })?;
        address::check(url, hosts(&config).chain(config.get_dbname()))?;
        if config.get_application_name().is_none() {
            config.application_name("forebay");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        Ok(PostgresBuilder {
            config,
            connections: 16,
            statement_cache: 256,
            lock_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(60),
            rows_bytes_max: 64 << 20,
            retry_for: Duration::from_secs(10),
            #[cfg(feature = "tls")]
            tls: None,
        })
    }

    /// Reads all rows of a query. It sees every write acknowledged before.
    ///
    /// # Errors
    /// The statement's own, which is of kind [`ReadOnly`](forebay_write::StatementErrorKind::ReadOnly) if it writes;
    /// [`WriteError::Unavailable`]; [`WriteError::Refused`] if it would change the connection.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the query may go on at the server.
    pub async fn query(&self, sql: impl Into<Sql>, parameters: impl Into<Parameters>) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into());
        let plan = self.inner.plans.of(&sql);
        if let Role::Refused(reason) = &plan.role {
            return Err(WriteError::Refused { reason: reason.clone() });
        }
        let until = self.inner.deadline();
        let mut backoff = Backoff::new(self.inner.retry_for);
        loop {
            let mut taken = self.inner.take(&self.inner.reading, until).await?;
            let told = batch::query(&mut taken.connection, &sql, &parameters).await;
            if plan.changes_session {
                taken.connection.restore().await;
            }
            // The connection was lost. It reads: to do it again does no harm.
            let Err(WriteError::Unavailable { cause }) = told else {
                return told;
            };
            drop(taken);
            match backoff.next_delay() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(self.inner.unavailable(&cause)),
            }
        }
    }

    /// Begins a transaction of the caller's own, on a connection of its own, with the server's default isolation.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        let until = self.inner.deadline();
        let mut backoff = Backoff::new(self.inner.retry_for);
        loop {
            let taken = self.inner.take(&self.inner.writing, until).await?;
            match Transaction::begin(Arc::clone(&self.inner), taken).await {
                // The connection had ended unnoticed. Nothing has happened yet.
                Err(WriteError::TransactionLost) => match backoff.next_delay() {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => return Err(self.inner.unavailable("the connection was lost")),
                },
                begun => return begun,
            }
        }
    }

    /// Takes no more work: what waits or comes gets [`WriteError::Closed`]. Waits for what runs, then closes the connections.
    pub async fn close(&self) {
        let all = u32::try_from(self.inner.shared()).unwrap_or(u32::MAX);
        let _reading = self.inner.reading.acquire_many(all).await;
        let _writing = self.inner.writing.acquire_many(all).await;
        self.inner.reading.close();
        self.inner.writing.close();
        self.inner.pool.close();
    }
}

impl Inner {
    /// Connections that one kind of work may hold.
    fn shared(&self) -> usize {
        (self.connections - 1).max(1)
    }

    /// Takes a connection, in turn; tries until then to reach the server.
    async fn take(&self, kind: &Arc<Semaphore>, until: Instant) -> Result<Taken, WriteError> {
        let turn = tokio::time::timeout(self.busy_for, Arc::clone(kind).acquire_owned());
        let permit = turn.await.map_err(|_| self.busy())?.map_err(|_| WriteError::Closed)?;
        let mut backoff = Backoff::new(until.saturating_duration_since(Instant::now()));
        loop {
            let cause = match self.pool.get().await {
                Ok(connection) => {
                    return Ok(Taken { connection, permit });
                }
                Err(PoolError::Closed) => return Err(WriteError::Closed),
                Err(PoolError::Timeout(_)) => return Err(self.busy()),
                Err(PoolError::Backend(error)) if refuses(&error) => return Err(self.unavailable(&cause_of(&error))),
                Err(PoolError::Backend(error)) => cause_of(&error),
                Err(other) => other.to_string(),
            };
            match backoff.next_delay() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(self.unavailable(&cause)),
            }
        }
    }

    /// A connection was lost. What it was at is ended at the server, by word of another one, before this returns: what was
    /// done by then was done, and nothing more will be. Where no other connection is to be had, nothing is ended: mostly the
    /// server has ended itself.
    async fn end(&self, lost: Taken) {
        let Taken { connection, permit } = lost;
        if connection.is_silent() {
            // Idle ones are not asked, each for as long as there is time for this.
            self.pool.manager().silence.note();
        }
        let name = connection.name_at_server().cloned();
        // Its place is the other one's.
        drop(connection);
        let Some(name) = name else { return };
        let ending = async {
            // Others may have been lost with it, and not know it yet.
            for _ in 0..=self.connections {
                let other = self.pool.get().await.map_err(|error| error.to_string())?;
                match other.end_other(&name).await {
                    Err(Fate::Lost(_)) => {}
                    ended => return ended.map_err(|fate| format!("{fate:?}")),
                }
            }
            Err("every other connection was lost, too".to_owned())
        };
        match tokio::time::timeout(ENDED_WITHIN, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => tracing::debug!(cause, "a connection that was lost could not be ended at the server"),
            Err(_) => tracing::debug!("a connection that was lost did not end at the server in time"),
        }
        drop(permit);
    }

    /// Until when it is tried.
    fn deadline(&self) -> Instant {
        let now = Instant::now();
        // A time too far to be counted is as good as one that never comes.
        now.checked_add(self.retry_for)
            .unwrap_or_else(|| now + Duration::from_secs(86_400 * 365))
    }

    fn busy(&self) -> WriteError {
        self.unavailable(&format!(
            "all {} connections were in use for {} s (answer_timeout)",
            self.connections,
            self.busy_for.as_secs_f32()
        ))
    }

    fn unavailable(&self, cause: &str) -> WriteError {
        WriteError::Unavailable {
            cause: format!("{}: {cause}", self.server),
        }
    }
}

/// A time as the server's timeouts take it: 0 would be for ever, and what is longer than it can count is refused.
fn milliseconds(time: Duration) -> u32 {
    let most = i32::MAX.unsigned_abs();
    u32::try_from(time.as_millis()).unwrap_or(most).clamp(1, most)
}

/// Whether the server is there and does not want us: trying again would change nothing.
fn refuses(error: &Unconnected) -> bool {
    let Unconnected::Told(error) = error else { return false };
    // Invalid authorization; invalid catalog name; insufficient privilege.
    let refusals = ["28", "3D", "42"];
    error
        .code()
        .is_some_and(|state| refusals.iter().any(|class| state.code().starts_with(class)))
}

/// The error and what is behind it, which tokio-postgres keeps to itself.
fn cause_of(error: &Unconnected) -> String {
    // Also through what is transparent.
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The hosts that are reached over a network.
fn hosts(config: &Config) -> impl Iterator<Item = &str> {
    config.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(name) => Some(name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    })
}

#[cfg(feature = "tls")]
fn is_local(config: &Config) -> bool {
    hosts(config).all(address::is_this_machine) && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

/// Who is asked, and what for; never with a password.
fn name_of(config: &Config) -> String {
    let port = |at: usize| {
        config
            .get_ports()
            .get(at)
            .or(config.get_ports().first())
            .copied()
            .unwrap_or(5432)
    };
    let named = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(folder) => format!("{}:{}", folder.display(), port(at)),
    });
    let numbered = config.get_hostaddrs().iter().enumerate();
    let numbered = numbered.map(|(at, address)| format!("{address}:{}", port(at)));
    let mut places: Vec<String> = named.collect();
    if places.is_empty() {
        places = numbered.collect();
    }
    let user = config.get_user().unwrap_or("(none)");
    let database = config.get_dbname().unwrap_or(user);
    format!("PostgreSQL {user}@{}/{database}", places.join(","))
}

impl PostgresBuilder {
    /// The most connections. Default: 16.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        assert!(connections > 0, "without a connection nothing can be written");
        self.connections = connections;
        self
    }

    /// How many prepared statements each connection keeps. Default: 256.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn statement_cache(mut self, statements: usize) -> Self {
        assert!(statements > 0, "a statement is prepared before it is executed");
        self.statement_cache = statements;
        self
    }

    /// How long a statement waits inside a batch for a lock that another transaction holds. One that waits for longer leaves
    /// the batch and waits on a connection of its own, so that its neighbours need not. Default: 1 s.
    #[must_use]
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// How long the server may take to answer; after that the connection counts as lost. For as long a connection is waited
    /// for that others have, before it is [`WriteError::Unavailable`]. Default: 60 s.
    #[must_use]
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.answer_timeout = answer_timeout;
        self
    }

    /// How long a new connection to one host may take, as `connect_timeout` in the URL says it. Default: 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.config.connect_timeout(connect_timeout);
        self
    }

    /// The most memory that the rows of one statement may take, in bytes, as they are received. One that returns more fails with
    /// [`TooLarge`](forebay_write::StatementErrorKind::TooLarge), without effect; or, where it was alone in its batch and is
    /// committed, with [`WriteError::OutcomeUnknown`]. Default: 64 MiB.
    #[must_use]
    pub fn rows_bytes_max(mut self, bytes: usize) -> Self {
        self.rows_bytes_max = bytes;
        self
    }

    /// For how long a write is tried again that had no effect: the server was away, a deadlock, a serialization failure, a
    /// lock. Default: 10 s.
    #[must_use]
    pub fn retry_for(mut self, retry_for: Duration) -> Self {
        self.retry_for = retry_for;
        self
    }

    /// Speaks TLS, as `sslmode` in the URL says: `require` to insist, while a server that has none is spoken to in clear if it is
    /// left out. Without this call no TLS is spoken.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(tokio_postgres_rustls::MakeRustlsConnect::new(config));
        self
    }

    /// Connects, to see that the server is there and takes the user.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], at once.
    pub async fn connect(self) -> Result<Postgres, WriteError> {
        let server = name_of(&self.config);
        #[cfg(feature = "tls")]
        if self.tls.is_none() && !is_local(&self.config) {
            address::warn_of_listeners(&server, "PostgresBuilder::tls, with sslmode=require in the URL,");
        }
        let manager = Manager {
            config: self.config,
            #[cfg(feature = "tls")]
            tls: self.tls,
            greeting: format!("SET lock_timeout = {}", milliseconds(self.lock_timeout)).into(),
            rows_bytes_max: self.rows_bytes_max,
            silence: Silence::default(),
            statement_cache: self.statement_cache,
            answer_timeout: self.answer_timeout,
        };
        let pool = Pool::builder(manager)
            .max_size(self.connections)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(Some(self.answer_timeout))
            .build()
            .expect("the runtime that a timeout wants is set");
        let shared = (self.connections - 1).max(1);
        let inner = Inner {
            pool,
            plans: Plans::default(),
            reading: Arc::new(Semaphore::new(shared)),
            writing: Arc::new(Semaphore::new(shared)),
            patient: Semaphore::new((self.connections / 4).max(1)),
            connections: self.connections,
            retry_for: self.retry_for,
            lock_timeout: self.lock_timeout,
            busy_for: self.answer_timeout,
            server,
        };
        inner.take(&inner.reading, Instant::now()).await?;
        Ok(Postgres { inner: Arc::new(inner) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_by_who_is_asked_where_and_for_what() {
        for (url, name) in [
            ("postgresql://app:pw@h:5433/d", "PostgreSQL app@h:5433/d"),
            ("postgresql://app:pw@h,i:1/d", "PostgreSQL app@h:5432,i:1/d"),
            ("postgresql://app@h", "PostgreSQL app@h:5432/app"),
            ("host=/run/pg user=app password=pw", "PostgreSQL app@/run/pg:5432/app"),
            ("hostaddr=10.0.0.1 user=app dbname=d", "PostgreSQL app@10.0.0.1:5432/d"),
        ] {
            assert_eq!(name_of(&url.parse().unwrap()), name);
        }
    }

    #[test]
    #[cfg(feature = "tls")]
    fn what_leaves_this_machine_is_known() {
        let is_local = |url: &str| is_local(&url.parse().unwrap());
        assert!(is_local("postgresql://app@localhost,127.0.0.1/d"));
        assert!(is_local("host=/run/pg user=app"));
        for url in ["postgresql://app@localhost,h/d", "hostaddr=10.0.0.1 user=app"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
