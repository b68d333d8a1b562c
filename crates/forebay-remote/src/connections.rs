//! Connections: the pool of connections to one database, and who may have one.
//!
//! Promises: never more connections than asked for; waiters are served first come, first served; readers leave at least one
//! connection to writers and writers one to readers, where there are two; a connection that is handed out has no transaction
//! open, and its session is in the state of a new one. A server that is away is tried again for as long as the caller gives. Whatever a
//! lost connection was running is killed at the server before [`kill`](Connections::kill) returns. Knows no database: what one is
//! like, its [`Connector`] and [`Connection`] say.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::{self, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult, Timeouts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::backoff::Backoff;
use crate::latest::Latest;
use forebay_write::WriteError;

/// A connection that was handed out longer ago is asked whether it still is one, before a statement is entrusted to it.
const TRUSTED_FOR: Duration = Duration::from_millis(100);
/// How long a lost connection is waited for to end at the server, and before that for another one to kill it through.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// Waits for nobody who has a connection.
const AT_ONCE: Timeouts = Timeouts {
    wait: Some(Duration::ZERO),
    create: None,
    recycle: None,
};

/// How connections to one database are made.
pub trait Connector: Send + Sync + 'static {
    /// What it makes.
    type Connection: Connection + 'static;
    /// Why it made none.
    type Error: Send;

    /// Makes a connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;

    /// How long that may take, and the answer of a connection that was idle.
    fn connect_timeout(&self) -> Duration;

    /// It took longer.
    fn timed_out(&self) -> Self::Error;

    /// Whether the server may take a connection a moment later.
    fn is_passing(&self, error: &Self::Error) -> bool;

    /// Why there is no connection, in words for whoever wrote the URL; never with a password.
    fn explain(&self, error: &Self::Error) -> String;
}

/// What a connection says of itself between its leases.
pub trait Connection: Send {
    /// What tells it from all others, at its server and at that server started again.
    type Id: Clone + Send + Sync;

    /// Who may have it next.
    fn readiness(&mut self) -> Readiness;

    /// Makes its session what it was when it was new; whether that was done.
    fn reset_session(&mut self) -> impl Future<Output = bool> + Send;

    /// Whether the server answers on it.
    fn answers(&mut self) -> impl Future<Output = bool> + Send;

    /// Whether it was lost because the server did not answer in time.
    fn is_silent(&self) -> bool;

    /// What the server calls it, if it tells.
    fn id(&self) -> Option<&Self::Id>;

    /// Has the server kill another connection of this user's, and waits, for as long as it takes, until nothing of it is left
    /// there: neither locks, nor a statement that may yet be done.
    fn kill(&mut self, id: &Self::Id) -> impl Future<Output = Result<(), NotKilled>> + Send;
}

/// Who may have a connection next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Anybody.
    Ready,
    /// Anybody, once its session was reset.
    Changed,
    /// Nobody: it is lost, or in the middle of something.
    Unusable,
}

/// Why a connection was not killed.
#[derive(Debug)]
pub enum NotKilled {
    /// The one that was to do it was lost, too.
    Lost,
    /// The server would not.
    Refused(String),
}

/// What a connection is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read.
    Read,
    /// To write.
    Write,
}

/// The right to a connection, before and while it is used.
pub type Permit = OwnedSemaphorePermit;

/// A connection on loan. Dropped, it goes back; if it cannot be used again, it is closed.
pub struct Lease<C: Connector> {
    connection: Object<Manager<C>>,
    // After the connection: who waits for the permit finds the connection there.
    permit: Permit,
}

impl<C: Connector> Lease<C> {
    /// Gives the connection back, and keeps the right to one.
    pub fn into_permit(self) -> Permit {
        let Self { connection, permit } = self;
        drop(connection);
        permit
    }

    /// Takes the connection out for good; another one may be made in its place.
    pub fn detach(self) -> C::Connection {
        *Object::take(self.connection)
    }
}

impl<C: Connector> Deref for Lease<C> {
    type Target = C::Connection;

    fn deref(&self) -> &C::Connection {
        &self.connection
    }
}

impl<C: Connector> DerefMut for Lease<C> {
    fn deref_mut(&mut self) -> &mut C::Connection {
        &mut self.connection
    }
}

/// The pool's side of a [`Connector`].
struct Manager<C> {
    connector: C,
    /// When a connection was last lost: the others are looked at before they are trusted.
    loss: Latest,
    /// When one was last found dead though nobody had said so: a machine that is gone, a firewall that forgets. Idle ones that
    /// were made before are not asked, each for as long as an answer may take; they are replaced.
    silence: Latest,
}

impl<C: Connector> managed::Manager for Manager<C> {
    type Type = Box<C::Connection>;
    type Error = C::Error;

    async fn create(&self) -> Result<Self::Type, C::Error> {
        // Large and seldom wanted: whoever takes a connection has no room for it.
        let connecting = Box::pin(self.connector.connect());
        match tokio::time::timeout(self.connector.connect_timeout(), connecting).await {
            Ok(connected) => connected.map(Box::new),
            Err(_) => Err(self.connector.timed_out()),
        }
    }

    async fn recycle(&self, connection: &mut Self::Type, metrics: &Metrics) -> RecycleResult<C::Error> {
        let handed_out = metrics.recycled.unwrap_or(metrics.created);
        let is_trusted = handed_out.elapsed() <= TRUSTED_FOR && !self.loss.is_after(handed_out);
        let readiness = connection.readiness();
        match readiness {
            Readiness::Unusable => return Err(RecycleError::message("it is lost, or in the middle of something")),
            Readiness::Ready if is_trusted => return Ok(()),
            Readiness::Ready | Readiness::Changed => {}
        }
        if !is_trusted && self.silence.is_after(metrics.created) {
            return Err(RecycleError::message("it was made before one that died without a word"));
        }
        let making_fit = Box::pin(async {
            match readiness {
                Readiness::Changed => connection.reset_session().await,
                _ => connection.answers().await,
            }
        });
        match tokio::time::timeout(self.connector.connect_timeout(), making_fit).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(RecycleError::message("it cannot be used again")),
            Err(_) => {
                self.silence.note();
                Err(RecycleError::message("the server does not answer on it"))
            }
        }
    }
}

/// How many connections there are, and how long is waited for one.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections. Not 0.
    pub connections: usize,
    /// How long a connection is waited for that others have.
    pub busy_for: Duration,
    /// For how long it is tried again to reach the server.
    pub retry_for: Duration,
}

/// All connections to one database.
pub struct Connections<C: Connector> {
    pool: Pool<Manager<C>>,
    /// One permit fewer than there are connections, so that one is always left for the other kind; all of them if there is
    /// only one.
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    limits: Limits,
    /// Who is asked, for errors; never with a password.
    server: String,
}

impl<C: Connector> Connections<C> {
    /// None is made yet. `server` says who is asked, for errors.
    pub fn new(connector: C, limits: Limits, server: String) -> Self {
        let manager = Manager {
            connector,
            loss: Latest::never(),
            silence: Latest::never(),
        };
        let pool = Pool::builder(manager)
            .max_size(limits.connections)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(Some(limits.busy_for))
            // The one that was used last: its server's process and what it has planned are warm, and it is still trusted.
            .queue_mode(QueueMode::Lifo)
            .build()
            .expect("the runtime that a timeout wants is set");
        let connections = Self {
            pool,
            readers: Arc::new(Semaphore::new(0)),
            writers: Arc::new(Semaphore::new(0)),
            limits,
            server,
        };
        connections.readers.add_permits(connections.each_max());
        connections.writers.add_permits(connections.each_max());
        connections
    }

    /// The most that read at a time, or write.
    pub fn each_max(&self) -> usize {
        self.limits.connections.saturating_sub(1).max(1)
    }

    /// The most connections.
    pub fn max_connections(&self) -> usize {
        self.limits.connections
    }

    /// For how long it is tried again to reach the server.
    pub fn retry_for(&self) -> Duration {
        self.limits.retry_for
    }

    /// Waits for its turn.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`] if others have all connections for too long; [`WriteError::Closed`].
    pub async fn permit(&self, purpose: Purpose) -> Result<Permit, WriteError> {
        let semaphore = match purpose {
            Purpose::Read => &self.readers,
            Purpose::Write => &self.writers,
        };
        // Mostly there is one: no timer is made for that.
        match Arc::clone(semaphore).try_acquire_owned() {
            Ok(permit) => return Ok(permit),
            Err(TryAcquireError::Closed) => return Err(WriteError::Closed),
            Err(TryAcquireError::NoPermits) => {}
        }
        let turn = tokio::time::timeout(self.limits.busy_for, Arc::clone(semaphore).acquire_owned());
        // Here and below: whoever gets what he wants at once has no room for what waits.
        let permit = Box::pin(turn).await.map_err(|_| self.busy())?;
        permit.map_err(|_| WriteError::Closed)
    }

    /// A connection, in turn and as soon as there is one; the server is tried for as long as `backoff` gives.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`]; [`WriteError::Closed`].
    pub async fn take(&self, purpose: Purpose, backoff: &mut Backoff) -> Result<Lease<C>, WriteError> {
        let permit = self.permit(purpose).await?;
        self.take_with(permit, backoff).await
    }

    /// As [`take`](Self::take), by whoever has a permit.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub async fn take_with(&self, permit: Permit, backoff: &mut Backoff) -> Result<Lease<C>, WriteError> {
        let connector = &self.pool.manager().connector;
        loop {
            let got = match self.pool.timeout_get(&AT_ONCE).await {
                Err(PoolError::Timeout(_)) => Box::pin(self.pool.get()).await,
                got => got,
            };
            let cause = match got {
                Ok(connection) => return Ok(Lease { connection, permit }),
                Err(PoolError::Closed) => return Err(WriteError::Closed),
                Err(PoolError::Timeout(_)) => return Err(self.busy()),
                Err(PoolError::Backend(error)) if !connector.is_passing(&error) => {
                    return Err(self.unavailable(connector.explain(&error)));
                }
                Err(PoolError::Backend(error)) => connector.explain(&error),
                Err(PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_)) => {
                    unreachable!("the runtime is set, and there are no hooks")
                }
            };
            match backoff.next_delay() {
                Some(delay) => Box::pin(tokio::time::sleep(delay)).await,
                None => return Err(self.unavailable(cause)),
            }
        }
    }

    /// A connection was lost, and nothing is left to kill.
    pub fn note_loss(&self) {
        self.pool.manager().loss.note();
    }

    /// A connection was lost. What it was at is killed at the server, through another connection, before this returns: what was
    /// done by then was done, and nothing more will be. Where no other connection is to be had in time, nothing is killed: mostly
    /// the server has ended itself. The right to a connection is kept.
    pub async fn kill(&self, lost: Lease<C>) -> Permit {
        self.note_loss();
        if lost.is_silent() {
            // Idle ones are not asked, each for as long as there is time for this.
            self.pool.manager().silence.note();
        }
        let id = lost.id().cloned();
        // Its place is the other one's.
        let permit = lost.into_permit();
        let Some(id) = id else { return permit };
        let killing = self.kill_through_another(&id);
        match tokio::time::timeout(KILLED_WITHIN, killing).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => tracing::debug!(cause, "a lost connection could not be killed at the server"),
            Err(_) => tracing::debug!("a lost connection did not end at the server in time"),
        }
        permit
    }

    async fn kill_through_another(&self, id: &<C::Connection as Connection>::Id) -> Result<(), String> {
        let connector = &self.pool.manager().connector;
        let mut backoff = self.backoff();
        // Others may have been lost with it, and not know it yet.
        let mut unaware = self.limits.connections;
        loop {
            let cause = match self.pool.get().await {
                Ok(mut other) => match other.kill(id).await {
                    Ok(()) => return Ok(()),
                    Err(NotKilled::Refused(cause)) => return Err(cause),
                    Err(NotKilled::Lost) if unaware > 0 => {
                        unaware -= 1;
                        continue;
                    }
                    Err(NotKilled::Lost) => "every other connection was lost, too".to_owned(),
                },
                // As the server has as many as it takes, of which the lost one may be the last; or it is on its way up.
                Err(PoolError::Backend(error)) if connector.is_passing(&error) => connector.explain(&error),
                Err(_) => return Err("no other connection is to be had".to_owned()),
            };
            match backoff.next_delay() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(cause),
            }
        }
    }

    /// Waits for all that read or write, then hands out nothing more.
    pub async fn close(&self) {
        let all = u32::try_from(self.each_max()).unwrap_or(u32::MAX);
        let _reading = self.readers.acquire_many(all).await;
        let _writing = self.writers.acquire_many(all).await;
        self.readers.close();
        self.writers.close();
        self.pool.close();
    }

    /// The database cannot be used, for that reason.
    pub fn unavailable(&self, cause: impl std::fmt::Display) -> WriteError {
        WriteError::Unavailable {
            cause: format!("{}: {cause}", self.server),
        }
    }

    fn busy(&self) -> WriteError {
        self.unavailable(format_args!(
            "all {} connections were in use for {} s (answer_timeout)",
            self.limits.connections,
            self.limits.busy_for.as_secs_f32()
        ))
    }

    /// A backoff for as long as it is tried again to reach the server.
    pub fn backoff(&self) -> Backoff {
        Backoff::new(self.limits.retry_for)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Mutex;

    use super::*;

    /// A server that refuses some connections, and knows which of them were killed.
    #[derive(Default)]
    struct Server {
        made: AtomicUsize,
        refusals_left: AtomicUsize,
        refuses_for_good: bool,
        killed: Mutex<Vec<usize>>,
    }

    struct Numbered {
        id: usize,
        server: Arc<Server>,
    }

    impl Connector for Arc<Server> {
        type Connection = Numbered;
        type Error = ();

        async fn connect(&self) -> Result<Numbered, ()> {
            let left = |left: usize| left.checked_sub(1);
            if self
                .refusals_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_ok()
            {
                return Err(());
            }
            Ok(Numbered {
                id: self.made.fetch_add(1, Ordering::Relaxed),
                server: Self::clone(self),
            })
        }

        fn connect_timeout(&self) -> Duration {
            Duration::from_secs(5)
        }

        fn timed_out(&self) {}

        fn is_passing(&self, _error: &()) -> bool {
            !self.refuses_for_good
        }

        fn explain(&self, _error: &()) -> String {
            "too many connections".to_owned()
        }
    }

    impl Connection for Numbered {
        type Id = usize;

        fn readiness(&mut self) -> Readiness {
            Readiness::Unusable
        }

        async fn reset_session(&mut self) -> bool {
            true
        }

        async fn answers(&mut self) -> bool {
            true
        }

        fn is_silent(&self) -> bool {
            false
        }

        fn id(&self) -> Option<&usize> {
            Some(&self.id)
        }

        async fn kill(&mut self, id: &usize) -> Result<(), NotKilled> {
            self.server.killed.lock().push(*id);
            Ok(())
        }
    }

    /// The first connection is lost, and the server refuses so many of those that are to kill it. Which were killed.
    async fn lose_the_first(refusals: usize, refuses_for_good: bool, retry_for: Duration) -> Vec<usize> {
        let server = Arc::new(Server {
            refuses_for_good,
            ..Server::default()
        });
        let limits = Limits {
            connections: 2,
            busy_for: Duration::from_secs(1),
            retry_for,
        };
        let connections = Connections::new(Arc::clone(&server), limits, "a server".to_owned());
        let lost = connections
            .take(Purpose::Write, &mut connections.backoff())
            .await
            .unwrap();
        server.refusals_left.store(refusals, Ordering::Relaxed);
        drop(connections.kill(lost).await);
        std::mem::take(&mut *server.killed.lock())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_connection_is_killed_as_soon_as_the_server_takes_another() {
        let retry_for = Duration::from_secs(60);
        assert_eq!(lose_the_first(0, false, retry_for).await, [0]);
        assert_eq!(lose_the_first(5, false, retry_for).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn killing_is_given_up_in_time_and_at_once_where_the_server_does_not_want_us() {
        let long = Duration::from_secs(60);
        for (refusals, refuses_for_good, retry_for, limit) in [
            (usize::MAX, false, long, KILLED_WITHIN),
            (usize::MAX, false, Duration::ZERO, Duration::ZERO),
            (1, true, long, Duration::ZERO),
        ] {
            let begun = tokio::time::Instant::now();
            assert_eq!(lose_the_first(refusals, refuses_for_good, retry_for).await, [0; 0]);
            let took = begun.elapsed();
            assert!(took >= limit && took < limit + Duration::from_secs(1), "{took:?}");
        }
    }
}
