//! Cancelling what connections run: by request (a process id and its secret), and for clients that have gone.
//!
//! While a statement runs nobody reads from its client, so nobody would see that it has gone: one task looks at the sockets of all connections
//! every [`LOOK_EVERY`]. A socket that was reset has lost its client. A client that has closed its sending side may still read its answers, as
//! `printf … | nc` does: it is sent a ParameterStatus that tells it nothing new, and a client that is gone answers with a reset. What waits to
//! be read is not touched.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use forebay_write::CancelToken;
use parking_lot::Mutex;
use rand::RngCore;

use forebay_pg_wire::backend;

/// All connections that can be cancelled.
#[derive(Debug, Default)]
pub struct Cancels {
    connections: Mutex<HashMap<i32, Entry>>,
    last_process: AtomicI32,
}

#[derive(Debug)]
struct Entry {
    secret: Vec<u8>,
    running: Arc<Running>,
}

/// How often statements that run are looked at for clients that have gone.
pub const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What one connection runs: the tokens of its statements, while there are any.
#[derive(Debug, Default)]
pub struct Running(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Of the statement, and of what is compiled for it while it runs, as COPY's INSERT is.
    tokens: Vec<CancelToken>,
    socket: Option<Socket>,
    /// Whether the statement ran already when its connection was last looked at: most are done before.
    seen: bool,
    /// Part of a message may have been sent: nothing may be put behind it.
    sending: bool,
    probed: bool,
    gone: bool,
}

/// The connection's socket. Open for as long as the connection runs a statement: to be used only then, under the lock.
#[derive(Debug, Clone, Copy)]
struct Socket {
    descriptor: RawFd,
    /// What is sent in the clear would break it.
    encrypted: bool,
}

/// What a socket says of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    There,
    /// Sends no more; whether it reads is not known.
    Silent,
    Gone,
}

impl Running {
    /// What `token` cancels runs until the guard is dropped, inside what runs already. Guards are dropped last first.
    pub fn start(self: &Arc<Self>, token: CancelToken) -> RunningGuard {
        let mut state = self.0.lock();
        if state.gone {
            token.cancel();
        }
        state.tokens.push(token);
        state.seen = false;
        drop(state);
        RunningGuard(Arc::clone(self))
    }

    /// Cancels the statement that runs, if one does.
    pub fn cancel(&self) {
        self.0.lock().cancel();
    }

    /// Whether its client was found gone.
    pub fn is_gone(&self) -> bool {
        self.0.lock().gone
    }

    /// Until the guard is dropped, messages are being sent.
    pub fn sending(&self) -> SendingGuard<'_> {
        self.0.lock().sending = true;
        SendingGuard(self)
    }

    /// Cancels the statement that runs if its client has gone.
    fn look(&self) {
        let mut state = self.0.lock();
        if state.tokens.is_empty() {
            return;
        }
        if !std::mem::replace(&mut state.seen, true) {
            return;
        }
        let Some(socket) = state.socket else { return };
        let gone = match socket.peer() {
            Peer::There => false,
            Peer::Gone => true,
            Peer::Silent if socket.encrypted => true,
            Peer::Silent if state.sending || state.probed => false,
            Peer::Silent => {
                state.probed = true;
                !socket.probe()
            }
        };
        if gone {
            tracing::debug!("client gone while its statement runs");
            state.cancel();
            state.gone = true;
        }
    }
}

impl State {
    fn cancel(&self) {
        for token in &self.tokens {
            token.cancel();
        }
    }
}

impl Socket {
    fn peer(self) -> Peer {
        let mut asked = libc::pollfd {
            fd: self.descriptor,
            events: libc::POLLRDHUP,
            revents: 0,
        };
        // SAFETY: the pointer is to one live struct of the type that the call reads and fills.
        let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
        match asked.revents {
            _ if ready <= 0 => Peer::There,
            events if events & (libc::POLLERR | libc::POLLHUP) != 0 => Peer::Gone,
            events if events & libc::POLLRDHUP != 0 => Peer::Silent,
            _ => Peer::There,
        }
    }

    /// Sends what no client minds and none that is gone takes; false if it could not be sent whole.
    fn probe(self) -> bool {
        let mut message = BytesMut::new();
        backend::parameter_status(&mut message, "server_encoding", "UTF8");
        // SAFETY: the pointer and length are those of a live buffer.
        let sent = unsafe {
            libc::send(
                self.descriptor,
                message.as_ptr().cast(),
                message.len(),
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        usize::try_from(sent) == Ok(message.len())
    }
}

/// While it lives, its connection's statement can be cancelled.
#[derive(Debug)]
pub struct RunningGuard(Arc<Running>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.0.lock().tokens.pop();
    }
}

/// While it lives, its connection sends messages.
#[derive(Debug)]
pub struct SendingGuard<'a>(&'a Running);

impl Drop for SendingGuard<'_> {
    fn drop(&mut self) {
        self.0.0.lock().sending = false;
    }
}

/// A connection's place in [`Cancels`]; given up when it is dropped.
#[derive(Debug)]
pub struct Registration {
    cancels: Arc<Cancels>,
    /// The number that BackendKeyData calls the process id.
    pub process: i32,
    /// What must come with a cancel request.
    pub secret: Vec<u8>,
    /// Where the connection says what it runs.
    pub running: Arc<Running>,
}

impl Cancels {
    /// Registers a connection whose secret has `secret_bytes` bytes (4 in protocol 3.0).
    pub fn register(self: &Arc<Self>, secret_bytes: usize) -> Registration {
        let mut secret = vec![0; secret_bytes];
        rand::rng().fill_bytes(&mut secret);
        let running = Arc::new(Running::default());
        let mut connections = self.connections.lock();
        let process = loop {
            // Wraps after two billion connections; numbers in use are passed over.
            let process = self.last_process.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
            if process != 0 && !connections.contains_key(&process) {
                break process;
            }
        };
        let entry = Entry {
            secret: secret.clone(),
            running: Arc::clone(&running),
        };
        connections.insert(process, entry);
        drop(connections);
        Registration {
            cancels: Arc::clone(self),
            process,
            secret,
            running,
        }
    }

    /// Cancels what that connection runs. Says nothing about whether there was one: strangers may ask.
    pub fn cancel(&self, process: i32, secret: &[u8]) {
        let running = {
            let connections = self.connections.lock();
            match connections.get(&process) {
                Some(entry) if equal_in_constant_time(&entry.secret, secret) => Arc::clone(&entry.running),
                _ => return,
            }
        };
        running.cancel();
    }

    /// Cancels whatever any connection runs.
    pub fn cancel_all(&self) {
        for running in self.all() {
            running.cancel();
        }
    }

    /// Cancels what runs for clients that have gone.
    pub fn cancel_for_the_gone(&self) {
        for running in self.all() {
            running.look();
        }
    }

    fn all(&self) -> Vec<Arc<Running>> {
        let connections = self.connections.lock();
        connections.values().map(|entry| Arc::clone(&entry.running)).collect()
    }
}

impl Registration {
    /// The socket that the client is asked for by. It must stay open for as long as a statement of the connection runs.
    pub fn attach(&self, socket: &impl AsRawFd, encrypted: bool) {
        self.running.0.lock().socket = Some(Socket {
            descriptor: socket.as_raw_fd(),
            encrypted,
        });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cancels.connections.lock().remove(&self.process);
    }
}

/// Takes as long for a wrong secret whichever byte is wrong.
fn equal_in_constant_time(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && one.iter().zip(two).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_cancels() {
        let cancels = Arc::new(Cancels::default());
        let registration = cancels.register(4);
        let token = CancelToken::new();
        let _running = registration.running.start(token.clone());
        let mut wrong = registration.secret.clone();
        wrong[3] ^= 1;
        cancels.cancel(registration.process, &wrong);
        cancels.cancel(registration.process, &registration.secret[..3]);
        cancels.cancel(registration.process + 1, &registration.secret);
        assert!(!token.is_cancelled());
        cancels.cancel(registration.process, &registration.secret);
        assert!(token.is_cancelled());
    }

    #[test]
    fn what_runs_inside_a_statement_leaves_it_to_be_cancelled() {
        let running = Arc::new(Running::default());
        let [whole, part] = [CancelToken::new(), CancelToken::new()];
        let _whole = running.start(whole.clone());
        let inside = running.start(part.clone());
        drop(inside);
        running.cancel();
        assert!(whole.is_cancelled() && !part.is_cancelled());

        let running = Arc::new(Running::default());
        let [whole, part] = [CancelToken::new(), CancelToken::new()];
        let _whole = running.start(whole.clone());
        let _inside = running.start(part.clone());
        running.cancel();
        assert!(whole.is_cancelled() && part.is_cancelled());
    }

    #[test]
    fn a_finished_statement_and_a_gone_connection_are_not_cancelled() {
        let cancels = Arc::new(Cancels::default());
        let registration = cancels.register(4);
        let token = CancelToken::new();
        drop(registration.running.start(token.clone()));
        cancels.cancel(registration.process, &registration.secret);
        assert!(!token.is_cancelled());
        let (process, secret) = (registration.process, registration.secret.clone());
        drop(registration);
        cancels.cancel(process, &secret);
        assert!(cancels.connections.lock().is_empty());
    }
}
