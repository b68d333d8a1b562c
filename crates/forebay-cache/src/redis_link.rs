//! One connection to the server, made when it is needed and made anew when it is broken.
//!
//! Promises:
//! - Made once for all who need it, in a task of its own: a caller who is gone before it is there breaks nothing. Where that task's runtime ends, or runs
//!   no more, it is made anew in the next caller's: nobody polls what belongs to another runtime.
//! - Dropped when it failed, when the server said it is no place to write to any more, or when several answers in a row did not
//!   come in time (a host that vanished says nothing for a quarter of an hour).
//! - What an old connection still had in the server's socket is not carried out after what the new one sends: the new one first
//!   asks the server to close the old one (`CLIENT KILL`), by its number and its address: a server that was started anew counts anew, and by the number
//!   alone somebody else's would be closed. A server or proxy that does not allow that command, or tells no address (`CLIENT INFO`, Redis 6.2), loses this
//!   promise.
//!
//! Does not know what is sent. The `redis` crate has a manager that reconnects; it keeps a silent connection, and the order of
//! changes across two connections is not its concern.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, ServerErrorKind, cmd};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How long a connection may take to be made, greeting included.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// So many answers in a row that did not come in time, and the connection is given up.
const ABANDONED_MAX: u32 = 3;
/// The server is asked to close at most so many connections of the past.
const OLD_MAX: usize = 16;

/// See the module.
#[derive(Clone)]
pub(crate) struct Link {
    client: Client,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The present connection's, counted from 1.
    number: u64,
    present: Option<Present>,
    /// Since when that is made; none: it was never.
    since: Option<Instant>,
    /// Connections that were given up, until the server has closed them.
    old: Vec<Peer>,
    /// Answers in a row that nobody waited for to the end.
    abandoned: u32,
}

/// A connection, or the making of one.
type Present = Shared<BoxFuture<'static, RedisResult<Connected>>>;

#[derive(Clone)]
struct Connected {
    connection: MultiplexedConnection,
    /// As the server calls it, where it tells.
    peer: Option<Peer>,
}

/// A connection as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Peer {
    id: i64,
    address: String,
}

/// Notes that a call was given up, unless told how it ended.
struct Watch<'a> {
    link: &'a Link,
    number: u64,
    /// It has a connection.
    is_connected: bool,
    is_over: bool,
}

impl Link {
    pub(crate) fn new(client: Client) -> Self {
        let state = Arc::default();
        Self { client, state }
    }

    /// Makes a call over the connection.
    ///
    /// # Cancel safety
    /// Dropped, what was sent may be carried out, and its answer is thrown away.
    pub(crate) async fn run<T>(
        &self,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let (number, present) = self.present();
        let mut watch = Watch {
            link: self,
            number,
            is_connected: false,
            is_over: false,
        };
        let mut connected = match present.await {
            Ok(connected) => connected,
            Err(error) => {
                watch.is_over = true;
                self.give_up(number);
                return Err(error);
            }
        };
        watch.is_connected = true;
        let outcome = call(&mut connected.connection).await;
        watch.is_over = true;
        match &outcome {
            Err(error) if is_broken(error) => self.give_up(number),
            // An error that the server sent is a sign of life too.
            _ => self.state.lock().abandoned = 0,
        }
        outcome
    }

    fn present(&self) -> (u64, Present) {
        let mut state = self.state.lock();
        if let Some(present) = &state.present {
            return (state.number, present.clone());
        }
        let making = connect(self.client.clone(), state.old.clone());
        let (is_made, made) = oneshot::channel();
        // Goes on when those who wait for it have given up: the next ones find it made.
        tokio::spawn(async move { drop(is_made.send(making.await)) });
        let ended = || RedisError::from(std::io::Error::other("the runtime has ended that made the connection"));
        let present = made
            .map(move |made| made.unwrap_or_else(|_| Err(ended())))
            .boxed()
            .shared();
        state.number += 1;
        state.abandoned = 0;
        state.since = Some(Instant::now());
        state.present = Some(present.clone());
        (state.number, present)
    }

    /// The connection of this number is of no more use.
    fn give_up(&self, number: u64) {
        let mut state = self.state.lock();
        if state.number != number {
            return;
        }
        let made = state.present.take();
        if let Some(Ok(connected)) = made.as_ref().and_then(Shared::peek) {
            // It asked the server to close those before it.
            state.old.clear();
            state.old.extend(connected.peer.clone());
        }
        state.old.truncate(OLD_MAX);
        drop(state);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.link.state.lock();
        if state.number != self.number {
            return;
        }
        if !self.is_connected {
            // Making it takes no longer, unless nobody is at it.
            let is_late = state.since.is_some_and(|since| since.elapsed() > CONNECT_WITHIN * 2);
            drop(state);
            if is_late {
                self.link.give_up(self.number);
            }
            return;
        }
        state.abandoned += 1;
        if state.abandoned >= ABANDONED_MAX {
            drop(state);
            self.link.give_up(self.number);
        }
    }
}

async fn connect(client: Client, old: Vec<Peer>) -> RedisResult<Connected> {
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_WITHIN))
        // Callers bring their own, shorter limit.
        .set_response_timeout(None);
    let made = async {
        let mut connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
        let told: Option<String> = allowed(cmd("CLIENT").arg("INFO").query_async(&mut connection).await)?;
        let peer = told.as_deref().and_then(Peer::read);
        for Peer { id, address } in old {
            let mut kill = cmd("CLIENT");
            kill.arg("KILL").arg("ID").arg(id).arg("ADDR").arg(address);
            allowed::<i64>(kill.query_async(&mut connection).await)?;
        }
        Ok(Connected { connection, peer })
    };
    match tokio::time::timeout(CONNECT_WITHIN, made).await {
        Ok(made) => made,
        Err(_) => Err(RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))),
    }
}

impl Peer {
    /// Of a line of `CLIENT INFO`: fields apart by spaces, each a name, `=` and a value.
    fn read(line: &str) -> Option<Self> {
        let field = |name| {
            let mut fields = line.split_whitespace().filter_map(|field| field.split_once('='));
            fields.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let (id, address) = (field("id")?.parse().ok()?, field("addr")?.to_owned());
        Some(Self { id, address })
    }
}

/// The answer, or none where the server does not allow the question.
fn allowed<T>(answer: RedisResult<T>) -> RedisResult<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // A server that still loads its data allows it a moment later.
        Err(error) if is_broken(&error) || error.kind() == ErrorKind::Server(ServerErrorKind::BusyLoading) => {
            Err(error)
        }
        Err(_) => Ok(None),
    }
}

/// Whether the connection is of no more use. A server that became read-only has handed its office to another, which the same
/// name may lead to.
fn is_broken(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(kind) => matches!(kind, ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown),
        ErrorKind::Extension => false,
        _ => true,
    }
}
