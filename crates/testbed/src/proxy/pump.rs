//! Pump: hands one side's bytes of one connection on to the other side.
//!
//! Promises: what was read is handed on in pieces, in order; before each piece the behaviour, the holds and the trap of that
//! moment are asked. Holds at most one chunk.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::PoisonError,
    time::{Duration, Instant},
};

use super::{
    shared::{Behaviour, Shared, end},
    trap::{Deed, Ending, SEQUENCE_BYTES_MAX, Side, Sprung},
};

/// A pump reads so many bytes at a time.
const CHUNK_BYTES: usize = 16 * 1024;
/// A slow connection hands on so many pieces a second.
const SLOW_PIECES: u32 = 50;

pub(super) fn run(mut from: TcpStream, to: TcpStream, side: Side, number: u64, shared: &Shared) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut pump = Pump {
        to,
        side,
        number,
        shared,
        before: Vec::with_capacity(2 * SEQUENCE_BYTES_MAX),
    };
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if pump.hand_on(&mut chunk[..length]).is_none() {
            break;
        }
    }
    // Either side's end is the connection's: none of the protocols here speaks one way only.
    let mut state = shared.lock();
    state.connections.retain(|(other, client, server)| {
        if *other == number {
            end(client, Ending::Close);
            end(server, Ending::Close);
        }
        *other != number
    });
    drop(state);
    shared.changed.notify_all();
}

struct Pump<'a> {
    to: TcpStream,
    side: Side,
    number: u64,
    shared: &'a Shared,
    /// The last bytes that were handed on, as a sequence may come in several pieces.
    before: Vec<u8>,
}

impl Pump<'_> {
    /// Hands on what was read; none when the connection has ended.
    fn hand_on(&mut self, chunk: &mut [u8]) -> Option<()> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let behaviour = self.wait()?;
            let length = match behaviour {
                Behaviour::Slow(bytes) => (bytes / SLOW_PIECES).max(1) as usize,
                _ => rest.len(),
            };
            let (piece, after) = rest.split_at_mut(length.min(rest.len()));
            rest = after;
            if let Some(Sprung { first, deed }) = self.spring(piece) {
                // Nothing goes the other way meanwhile.
                self.write(behaviour, &mut piece[..first])?;
                match deed {
                    Deed::End(ending) => {
                        self.end(ending);
                        return None;
                    }
                    Deed::Stall => {
                        let behaviour = self.wait()?;
                        self.write(behaviour, &mut piece[first..])?;
                    }
                }
            } else {
                self.write(behaviour, piece)?;
            }
        }
        Some(())
    }

    /// Waits for as long as bytes are held back. Returns what to do with them; none when the connection is cut.
    fn wait(&self) -> Option<Behaviour> {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if !state.connections.iter().any(|(other, ..)| *other == self.number) {
                return None;
            }
            let delay = match state.behaviour {
                _ if state.is_held(self.number) => None,
                Behaviour::Stall => None,
                Behaviour::Delay(delay) => Some(delay),
                Behaviour::Slow(_) => Some(Duration::from_secs(1) / SLOW_PIECES),
                behaviour => return Some(behaviour),
            };
            state = match delay.map(|delay| delay.saturating_sub(begun.elapsed())) {
                Some(Duration::ZERO) => return Some(state.behaviour),
                Some(wait) => {
                    let waited = self.shared.changed.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Whether this piece springs the trap. The connection is held from then on.
    fn spring(&mut self, piece: &[u8]) -> Option<Sprung> {
        let mut state = self.shared.lock();
        let (number, side) = (self.number, self.side);
        let trap = state.trap.as_mut();
        let sprung = trap.and_then(|trap| trap.look(number, side, &self.before, piece));
        if sprung.is_some() {
            state.sprung += 1;
            state.held.push(number);
        }
        drop(state);
        self.before
            .extend_from_slice(&piece[piece.len().saturating_sub(SEQUENCE_BYTES_MAX)..]);
        let surplus = self.before.len().saturating_sub(SEQUENCE_BYTES_MAX);
        self.before.drain(..surplus);
        sprung
    }

    fn write(&mut self, behaviour: Behaviour, piece: &mut [u8]) -> Option<()> {
        if behaviour == Behaviour::Garbage && self.side == Side::Server {
            piece.fill(0xFF);
        }
        self.to.write_all(piece).ok()
    }

    fn end(&self, ending: Ending) {
        let mut state = self.shared.lock();
        let mine = state.connections.iter().position(|(other, ..)| *other == self.number);
        if let Some(position) = mine {
            let (_, client, server) = state.connections.swap_remove(position);
            end(&client, ending);
            end(&server, ending);
        }
        state.held.retain(|held| *held != self.number);
        drop(state);
        self.shared.changed.notify_all();
    }
}
