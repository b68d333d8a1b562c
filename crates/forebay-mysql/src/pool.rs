//! Pool: the connections, and who may have one.
//!
//! Promises: never more connections than asked for; who waits is served in the order it came; readers leave at least one
//! connection to writers and writers one to readers, where there are two; a connection that is handed out has no transaction
//! open, and its session is as it was set up. A server that is away is tried again for as long as the caller gives.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Object, PoolError, RecycleError, RecycleResult};
use mysql_async::{Error, Opts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Failure, is_passing};
use super::link::{Link, Session};
use forebay_remote::retry::Backoff;
use forebay_remote::silence::Silence;
use forebay_write::WriteError;

/// How long a connection that was lost is waited for to end at the server, and another one for it.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// Makes connections, and looks at those that come back.
pub(super) struct Manager {
    options: Opts,
    session: Session,
    connect_timeout: Duration,
    losses: Arc<AtomicU64>,
    silence: Silence,
}

impl managed::Manager for Manager {
    type Type = Box<Link>;
    type Error = Error;

    async fn create(&self) -> Result<Box<Link>, Error> {
        let losses = self.losses.load(Ordering::Relaxed);
        let opening = Link::open(self.options.clone(), self.session.clone(), losses);
        match tokio::time::timeout(self.connect_timeout, opening).await {
            Ok(opened) => opened.map(Box::new),
            Err(_) => Err(Error::from(std::io::Error::from(std::io::ErrorKind::TimedOut))),
        }
    }

    async fn recycle(&self, link: &mut Box<Link>, metrics: &managed::Metrics) -> RecycleResult<Error> {
        if self.silence.is_after(metrics.created) {
            return Err(RecycleError::message("it was made before one that died without a word"));
        }
        let losses = self.losses.load(Ordering::Relaxed);
        match tokio::time::timeout(self.connect_timeout, link.is_fit_again(losses)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(RecycleError::message("the connection cannot be used again")),
            Err(_) => {
                self.silence.note();
                Err(RecycleError::message("the server does not answer on it"))
            }
        }
    }
}

/// A connection on loan. Dropped, it goes back; if it was in the middle of something, it is closed.
pub(super) struct Lent {
    pub(super) link: Object<Manager>,
    // After the link: who waits for the permit finds the connection there.
    permit: Permit,
}

/// The right to a connection, before and while it is used.
pub(super) type Permit = Arc<OwnedSemaphorePermit>;

/// All connections of one database.
pub(super) struct Links {
    pool: managed::Pool<Manager>,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    writers_max: usize,
    losses: Arc<AtomicU64>,
    connections: usize,
    /// How long a connection is waited for that others have.
    busy_for: Duration,
    /// Who asks whom, for errors; never with a password.
    whose: String,
}

impl Links {
    pub(super) fn new(options: Opts, session: Session, connections: usize, connect_timeout: Duration) -> Self {
        let losses = Arc::new(AtomicU64::new(0));
        let whose = format!(
            "MariaDB or MySQL, {}@{}:{}",
            options.user().unwrap_or_default(),
            options.ip_or_hostname(),
            options.tcp_port()
        );
        let busy_for = session.answer_timeout;
        let manager = Manager {
            options,
            session,
            connect_timeout,
            losses: Arc::clone(&losses),
            silence: Silence::default(),
        };
        let each = connections.saturating_sub(1).max(1);
        Self {
            pool: managed::Pool::builder(manager)
                .max_size(connections)
                .runtime(deadpool::Runtime::Tokio1)
                .wait_timeout(Some(busy_for))
                .build()
                .expect("the runtime that a timeout wants is set"),
            readers: Arc::new(Semaphore::new(each)),
            writers: Arc::new(Semaphore::new(each)),
            writers_max: each,
            losses,
            connections,
            busy_for,
            whose,
        }
    }

    /// The most that write at a time.
    pub(super) fn writers_max(&self) -> usize {
        self.writers_max
    }

    /// Waits for its turn to write.
    pub(super) async fn permit_to_write(&self) -> Result<Permit, WriteError> {
        self.permit(&self.writers).await
    }

    /// Waits for its turn to read.
    pub(super) async fn permit_to_read(&self) -> Result<Permit, WriteError> {
        self.permit(&self.readers).await
    }

    async fn permit(&self, semaphore: &Arc<Semaphore>) -> Result<Permit, WriteError> {
        let turn = tokio::time::timeout(self.busy_for, Arc::clone(semaphore).acquire_owned());
        let permit = turn.await.map_err(|_| self.busy())?;
        permit.map(Arc::new).map_err(|_| WriteError::Closed)
    }

    fn busy(&self) -> WriteError {
        WriteError::Unavailable {
            cause: format!(
                "{}: all {} connections were in use for {} s (answer_timeout)",
                self.whose,
                self.connections,
                self.busy_for.as_secs_f32()
            ),
        }
    }

    /// A connection, as soon as there is one; the server is tried for as long as `backoff` gives.
    pub(super) async fn take(&self, permit: &Permit, backoff: &mut Backoff) -> Result<Lent, WriteError> {
        loop {
            let cause = match self.try_take(permit).await {
                Ok(lent) => return Ok(lent),
                Err(Refusal::Closed) => return Err(WriteError::Closed),
                Err(Refusal::Busy) => return Err(self.busy()),
                Err(Refusal::Server(error)) if is_passing(&error) => error.to_string(),
                Err(Refusal::Server(error)) => return Err(self.refused(&error)),
            };
            match backoff.next_delay() {
                Some(delay) => tokio::time::sleep(delay).await,
                None => {
                    let cause = format!("{}: {cause}", self.whose);
                    return Err(WriteError::Unavailable { cause });
                }
            }
        }
    }

    /// A connection, or at once why there is none.
    pub(super) async fn try_take(&self, permit: &Permit) -> Result<Lent, Refusal> {
        match self.pool.get().await {
            Ok(link) => Ok(Lent {
                link,
                permit: Arc::clone(permit),
            }),
            Err(PoolError::Backend(error)) => Err(Refusal::Server(error)),
            Err(PoolError::Timeout(_)) => Err(Refusal::Busy),
            Err(_) => Err(Refusal::Closed),
        }
    }

    pub(super) fn refused(&self, error: &Error) -> WriteError {
        WriteError::Unavailable {
            cause: format!("{}: {error}", self.whose),
        }
    }

    /// A connection was lost: the others are looked at before they are trusted.
    pub(super) fn note_loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was lost without a word: idle ones are not asked, each for as long as an answer may take.
    pub(super) fn note_silence(&self) {
        self.pool.manager().silence.note();
    }

    /// A connection was lost. What it was at is ended at the server, by word of another one, before this returns: what was
    /// done by then was done, and nothing more will be. Where no other connection is to be had, nothing is ended: mostly the
    /// server has ended itself.
    pub(super) async fn end(&self, lost: Lent) {
        self.note_loss();
        let name = lost.link.name_at_server().cloned();
        let permit = Arc::clone(&lost.permit);
        // Its place is the other one's.
        drop(lost);
        let Some(name) = name else { return };
        let ending = async {
            match self.try_take(&permit).await {
                Ok(mut other) => {
                    let ended = other.link.end_other(&name).await;
                    ended.map_err(Failure::into_write_error)
                }
                Err(Refusal::Closed) => Err(WriteError::Closed),
                Err(Refusal::Busy) => Err(self.busy()),
                Err(Refusal::Server(error)) => Err(self.refused(&error)),
            }
        };
        match tokio::time::timeout(ENDED_WITHIN, ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection that was lost could not be ended at the server"),
            Err(_) => tracing::debug!("a connection that was lost did not end at the server in time"),
        }
    }

    /// Waits for all that read or write, then hands out nothing more.
    pub(super) async fn close(&self) {
        let all = u32::try_from(self.writers_max).unwrap_or(u32::MAX);
        let _reading = self.readers.acquire_many(all).await;
        let _writing = self.writers.acquire_many(all).await;
        self.readers.close();
        self.writers.close();
        self.pool.close();
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the options: they hold the password.
        formatter
            .debug_struct("Links")
            .field("whose", &self.whose)
            .finish_non_exhaustive()
    }
}

/// Why there is no connection.
pub(super) enum Refusal {
    Closed,
    /// Others have all of them, and had them for as long as is waited.
    Busy,
    Server(Error),
}
