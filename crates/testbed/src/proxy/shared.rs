//! What a proxy's acceptor and pumps share: how it behaves, and the connections there are.
//!
//! Promises: one lock over all of it; whoever changes what others wait for wakes them by `changed`. Moves no bytes.

use std::{
    net::{Shutdown, SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::trap::{Ending, Trap};

/// What the proxy does with bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Hands everything on.
    Pass,
    /// Hands nothing on, either way, and keeps what it has until another behaviour is set. Connections are taken.
    Stall,
    /// Hands everything on so much later, each way.
    Delay(Duration),
    /// Hands on so many bytes a second, each way of each connection.
    Slow(u32),
    /// Hands on in one write what one side sends within that time, up to 16 KiB: what were several writes comes in one piece.
    Merge(Duration),
    /// Hands on a few bytes at a time, 1 to 8, each piece in a write of its own and a moment behind the one before.
    Split,
    /// Ends the connections there are and every new one at once.
    Refuse,
    /// Hands the client, instead of each byte of the server's, one that is no text.
    Garbage,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) server: SocketAddr,
    pub(super) behaviour: Behaviour,
    /// Both ends of each connection, by its number.
    pub(super) connections: Vec<(u64, TcpStream, TcpStream)>,
    pub(super) accepted: u64,
    /// Connections up to this number are stalled, whatever the behaviour.
    pub(super) held_to: u64,
    /// These are, too.
    pub(super) held: Vec<u64>,
    pub(super) trap: Option<Trap>,
    pub(super) sprung: u64,
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn cut(&mut self, ending: Ending) {
        for (_, client, server) in self.connections.drain(..) {
            end(&client, ending);
            end(&server, ending);
        }
    }

    /// Whether the connection of this number has not ended.
    pub(super) fn has(&self, number: u64) -> bool {
        self.connections.iter().any(|(other, ..)| *other == number)
    }

    pub(super) fn is_held(&self, number: u64) -> bool {
        number <= self.held_to || self.held.contains(&number)
    }
}

/// Ends one end of a connection. A reset goes out when the pumps, which wake up by this, have let go of it.
pub(super) fn end(stream: &TcpStream, ending: Ending) {
    // One that has ended already is ended.
    let _ = match ending {
        Ending::Close => stream.shutdown(Shutdown::Both),
        Ending::Reset => {
            linger_not(stream);
            stream.shutdown(Shutdown::Read)
        }
    };
}

/// From now on the stream is reset when it is closed.
fn linger_not(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let length = libc::socklen_t::try_from(size_of_val(&linger)).expect("a few bytes");
    // SAFETY: the descriptor is the stream's, which is open; the option is read from a value of its own type and length. A
    // failure leaves the stream as it was.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            length,
        );
    }
}
