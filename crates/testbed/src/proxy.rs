//! A TCP proxy on loopback between a client and a server, which does to their connection what networks do.
//!
//! Promises: bytes pass unchanged and in order unless [`Behaviour`] says otherwise; a behaviour holds from the moment
//! [`Proxy::set`] returns, for the connections there are and for new ones; [`Proxy::cut`] ends all there are;
//! [`Proxy::trap`] does something to one connection at a [`Moment`] of its own, such as when it asks to commit. Dropping it
//! ends everything. At most 1,024 connections; one over that is reset. It holds 16 KiB each way of each connection.
//!
//! Does not know any protocol.

mod pump;
mod shared;
#[cfg(test)]
mod tests;
mod trap;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

pub use self::shared::Behaviour;
pub use self::trap::{Deed, Ending, Moment, Side};
use self::{
    shared::{Shared, State},
    trap::Trap,
};
use crate::Error;

const CONNECTIONS_MAX: usize = 1024;

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port and hands on to this server, which need not run yet.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(server: SocketAddr) -> Result<Self, Error> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::system("listen on 127.0.0.1 for the proxy"))?;
        let address = listener
            .local_addr()
            .map_err(Error::system("ask for the proxy's port"))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                server,
                behaviour: Behaviour::Pass,
                connections: Vec::new(),
                accepted: 0,
                held_to: 0,
                held: Vec::new(),
                trap: None,
                sprung: 0,
                is_closed: false,
            }),
            changed: Condvar::new(),
        });
        let acceptor = spawn("proxy", {
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        })
        .map_err(Error::system("start the proxy's thread"))?;
        Ok(Self {
            shared,
            address,
            acceptor: Some(acceptor),
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hands new connections on to this server: one that was started again listens elsewhere.
    pub fn lead_to(&self, server: SocketAddr) {
        self.shared.lock().server = server;
    }

    /// Connections taken so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// Behaves so from now on.
    pub fn set(&self, behaviour: Behaviour) {
        let mut state = self.shared.lock();
        state.behaviour = behaviour;
        if behaviour == Behaviour::Refuse {
            state.cut(Ending::Close);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Connections there are now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// Stalls the connections there are, until [`Proxy::release`]; new ones are not concerned.
    pub fn hold(&self) {
        let mut state = self.shared.lock();
        state.held_to = state.accepted;
    }

    /// Hands on what [`Proxy::hold`] or a trap held back, also of a client that has gone meanwhile.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        state.held_to = 0;
        state.held.clear();
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Ends all connections there are, in order; new ones are taken.
    pub fn cut(&self) {
        self.cut_with(Ending::Close);
    }

    /// Ends all connections there are; new ones are taken.
    pub fn cut_with(&self, ending: Ending) {
        self.shared.lock().cut(ending);
        self.shared.changed.notify_all();
    }

    /// Does this to the connections that come to that moment, so many times in all. It takes the place of the trap before.
    ///
    /// # Panics
    /// If the sequence to look for is empty or longer than 256 bytes.
    pub fn trap(&self, moment: Moment, deed: Deed, times: u64) {
        let trap = Trap::new(moment, deed, times);
        let mut state = self.shared.lock();
        state.trap = Some(trap);
        state.sprung = 0;
    }

    /// How often the trap that was set last has been sprung.
    #[must_use]
    pub fn sprung(&self) -> u64 {
        self.shared.lock().sprung
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.cut(Ending::Close);
        drop(state);
        self.shared.changed.notify_all();
        // The acceptor looks at `is_closed` after each connection: this is the last.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            // It panics at nothing; and a drop has nobody to tell.
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let mut state = shared.lock();
        if state.is_closed {
            return;
        }
        state.accepted += 1;
        let is_refused = state.behaviour == Behaviour::Refuse || state.connections.len() >= CONNECTIONS_MAX;
        let (number, server) = (state.accepted, state.server);
        drop(state);
        if is_refused {
            continue;
        }
        // A client or server that went away meanwhile has no connection; the next one may.
        let _ = client.and_then(|client| connect(client, server, number, shared));
    }
}

fn connect(client: TcpStream, server: SocketAddr, number: u64, shared: &Arc<Shared>) -> std::io::Result<()> {
    let server = TcpStream::connect_timeout(&server, Duration::from_secs(1))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let pumps = [
        (client.try_clone()?, server.try_clone()?, Side::Client),
        (server.try_clone()?, client.try_clone()?, Side::Server),
    ];
    shared.lock().connections.push((number, client, server));
    for (from, to, side) in pumps {
        let shared = Arc::clone(shared);
        spawn("proxy pump", move || pump::run(from, to, side, number, &shared))?;
    }
    Ok(())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(work)
}
