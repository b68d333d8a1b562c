//! A TCP proxy on loopback between a client and a server, which does to their connection what networks do.
//!
//! Promises: bytes pass unchanged and in order unless [`Behaviour`] says otherwise; a behaviour holds from the moment
//! [`Proxy::set`] returns, for the connections there are and for new ones; [`Proxy::cut`] ends all there are. Dropping it ends
//! everything. At most 1,024 connections; one over that is reset.
//!
//! Does not know any protocol.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::Error;

const CONNECTIONS_MAX: usize = 1024;
/// A pump reads so many bytes at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// What the proxy does with bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Hands everything on.
    Pass,
    /// Hands nothing on, either way, and keeps what it has until another behaviour is set. Connections are taken.
    Stall,
    /// Hands everything on so much later, each way.
    Delay(Duration),
    /// Resets the connections there are and every new one at once.
    Refuse,
    /// Hands the client, instead of each byte of the server's, one that is no text.
    Garbage,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    behaviour: Behaviour,
    /// Both ends of each connection, by its number.
    connections: Vec<(u64, TcpStream, TcpStream)>,
    accepted: u64,
    /// Connections up to this number are stalled, whatever the behaviour.
    held_to: u64,
    is_closed: bool,
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
            server,
            state: Mutex::new(State {
                behaviour: Behaviour::Pass,
                connections: Vec::new(),
                accepted: 0,
                held_to: 0,
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
            state.cut();
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

    /// Hands on what [`Proxy::hold`] held back, also of a client that has gone meanwhile.
    pub fn release(&self) {
        self.shared.lock().held_to = 0;
        self.shared.changed.notify_all();
    }

    /// Ends all connections there are; new ones are taken.
    pub fn cut(&self) {
        self.shared.lock().cut();
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.cut();
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for as long as the behaviour holds these bytes back. Returns what to do with them; none when the connection is cut.
    fn hold(&self, number: u64) -> Option<Behaviour> {
        let begun = Instant::now();
        let mut state = self.lock();
        loop {
            if !state.connections.iter().any(|(other, ..)| *other == number) {
                return None;
            }
            let wait = match state.behaviour {
                _ if number <= state.held_to => None,
                Behaviour::Stall => None,
                Behaviour::Delay(delay) if begun.elapsed() < delay => Some(delay - begun.elapsed()),
                behaviour => return Some(behaviour),
            };
            state = match wait {
                Some(wait) => {
                    self.changed
                        .wait_timeout(state, wait)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl State {
    fn cut(&mut self) {
        for (_, client, server) in self.connections.drain(..) {
            // One that has ended already is cut.
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
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
        let number = state.accepted;
        drop(state);
        if is_refused {
            continue;
        }
        // A client or server that went away meanwhile has no connection; the next one may.
        let _ = client.and_then(|client| connect(client, number, shared));
    }
}

fn connect(client: TcpStream, number: u64, shared: &Arc<Shared>) -> std::io::Result<()> {
    let server = TcpStream::connect_timeout(&shared.server, Duration::from_secs(1))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let pumps = [
        (client.try_clone()?, server.try_clone()?, false),
        (server.try_clone()?, client.try_clone()?, true),
    ];
    shared.lock().connections.push((number, client, server));
    for (from, to, is_to_client) in pumps {
        let shared = Arc::clone(shared);
        spawn("proxy pump", move || pump(from, to, is_to_client, number, &shared))?;
    }
    Ok(())
}

fn pump(mut from: TcpStream, mut to: TcpStream, is_to_client: bool, number: u64, shared: &Shared) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        let Some(behaviour) = shared.hold(number) else { break };
        let chunk = &mut chunk[..length];
        if behaviour == Behaviour::Garbage && is_to_client {
            chunk.fill(0xFF);
        }
        if to.write_all(chunk).is_err() {
            break;
        }
    }
    // Either side's end is the connection's: none of the protocols here speaks one way only.
    let mut state = shared.lock();
    state.connections.retain(|(other, client, server)| {
        if *other == number {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        *other != number
    });
    drop(state);
    shared.changed.notify_all();
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// A server that sends everything back, behind a proxy.
    fn echo() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
        // Ends with the test: its connections are cut with the proxy, and the process ends the wait for another.
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    std::io::copy(&mut &stream, &mut &stream)
                });
            }
        });
        let client = client(&proxy);
        (proxy, client)
    }

    fn client(proxy: &Proxy) -> TcpStream {
        let client = TcpStream::connect(proxy.address()).unwrap();
        client.set_read_timeout(Some(SOON)).unwrap();
        client
    }

    fn ask(client: &mut TcpStream, words: &[u8]) -> std::io::Result<Vec<u8>> {
        client.write_all(words)?;
        let mut answer = vec![0; words.len()];
        client.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn bytes_pass_unchanged() {
        let (proxy, mut client) = echo();
        assert!(proxy.address().ip().is_loopback());
        let words: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        // In pieces, because an echo that nobody reads stops reading.
        for piece in words.chunks(10_000) {
            assert_eq!(ask(&mut client, piece).unwrap(), piece);
        }
    }

    #[test]
    fn a_stall_holds_bytes_back_and_then_hands_them_on() {
        let (proxy, mut client) = echo();
        ask(&mut client, b"before").unwrap();
        proxy.set(Behaviour::Stall);
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        client.write_all(b"during").unwrap();
        let mut answer = [0; 6];
        assert!(client.read_exact(&mut answer).is_err(), "handed on during a stall");
        proxy.set(Behaviour::Pass);
        client.set_read_timeout(Some(SOON)).unwrap();
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"during");
    }

    #[test]
    fn held_connections_are_stalled_and_new_ones_are_not() {
        let (proxy, mut old) = echo();
        ask(&mut old, b"before").unwrap();
        proxy.hold();
        old.write_all(b"held").unwrap();
        let mut new = client(&proxy);
        assert_eq!(ask(&mut new, b"new").unwrap(), b"new");
        old.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut answer = [0; 4];
        assert!(old.read_exact(&mut answer).is_err(), "a held connection answers");
        assert_eq!(proxy.connections(), 2);
        proxy.release();
        old.set_read_timeout(Some(SOON)).unwrap();
        old.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"held");
    }

    #[test]
    fn a_delay_is_each_way() {
        let (proxy, mut client) = echo();
        proxy.set(Behaviour::Delay(Duration::from_millis(30)));
        let begun = Instant::now();
        assert_eq!(ask(&mut client, b"slow").unwrap(), b"slow");
        assert!(begun.elapsed() >= Duration::from_millis(60));
    }

    #[test]
    fn garbage_goes_to_the_client_only() {
        let (proxy, mut client) = echo();
        proxy.set(Behaviour::Garbage);
        // What comes back was garbled once: had the server got garbage, this would look the same, so look at its length too.
        assert_eq!(ask(&mut client, b"hello").unwrap(), [0xFF; 5]);
    }

    #[test]
    fn connections_are_cut_and_refused() {
        let (proxy, mut connected) = echo();
        ask(&mut connected, b"before").unwrap();
        proxy.cut();
        assert!(ask(&mut connected, b"after").is_err(), "a cut connection answers");
        let mut again = client(&proxy);
        ask(&mut again, b"again").unwrap();
        proxy.set(Behaviour::Refuse);
        assert!(ask(&mut again, b"after").is_err(), "a refused connection answers");
        assert!(ask(&mut client(&proxy), b"new").is_err(), "a new connection answers");
        proxy.set(Behaviour::Pass);
        ask(&mut client(&proxy), b"passes").unwrap();
        assert_eq!(proxy.accepted(), 4);
    }

    #[test]
    fn a_dropped_proxy_listens_no_more() {
        let (proxy, mut connected) = echo();
        ask(&mut connected, b"before").unwrap();
        let address = proxy.address();
        drop(proxy);
        assert!(ask(&mut connected, b"after").is_err());
        assert!(TcpStream::connect(address).is_err());
    }
}
