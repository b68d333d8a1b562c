//! Pump: hands one side's bytes of one connection on to the other side.
//!
//! Promises: what was read is handed on in pieces, in order; before each piece the behaviour, the holds and the trap of that
//! moment are asked. Holds at most one chunk, which what was sent later is merged into only as long as it fits.

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
/// Lengths of what is split, one after the other, again and again.
const SPLIT_BYTES: [usize; 8] = [1, 3, 8, 2, 5, 1, 7, 4];
/// Between two pieces of it, so that who reads has read the one before.
const SPLIT_PAUSE: Duration = Duration::from_micros(20);
/// A look at what has come takes as long if nothing has.
const LOOK: Duration = Duration::from_millis(1);

pub(super) fn run(mut from: TcpStream, to: TcpStream, side: Side, number: u64, shared: &Shared) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut pump = Pump {
        to,
        side,
        number,
        shared,
        before: Vec::with_capacity(2 * SEQUENCE_BYTES_MAX),
        pieces: 0,
    };
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        let length = pump.gather(&mut from, &mut chunk, length);
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
    /// So many were split off so far.
    pieces: usize,
}

impl Pump<'_> {
    /// Puts behind these bytes of the chunk what comes while bytes are merged. Returns how many there are now.
    fn gather(&self, from: &mut TcpStream, chunk: &mut [u8], length: usize) -> usize {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        loop {
            let Behaviour::Merge(time) = state.behaviour else {
                return length;
            };
            if length == chunk.len() || !state.has(self.number) {
                return length;
            }
            let wait = time.saturating_sub(begun.elapsed());
            if wait.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // What has come meanwhile is in the system's buffer, all of it. Whether it has ended is seen by the next read, too.
        let more = from
            .set_read_timeout(Some(LOOK))
            .and_then(|()| from.read(&mut chunk[length..]));
        let unbounded = from.set_read_timeout(None);
        debug_assert!(unbounded.is_ok(), "no time is a time that can be set");
        length + more.unwrap_or(0)
    }

    /// Hands on what was read; none when the connection has ended.
    fn hand_on(&mut self, chunk: &mut [u8]) -> Option<()> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let behaviour = self.wait()?;
            let length = match behaviour {
                Behaviour::Slow(bytes) => (bytes / SLOW_PIECES).max(1) as usize,
                Behaviour::Split => {
                    self.pieces += 1;
                    SPLIT_BYTES[self.pieces % SPLIT_BYTES.len()]
                }
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
            if !state.has(self.number) {
                return None;
            }
            let delay = match state.behaviour {
                _ if state.is_held(self.number) => None,
                Behaviour::Stall => None,
                Behaviour::Delay(delay) => Some(delay),
                Behaviour::Slow(_) => Some(Duration::from_secs(1) / SLOW_PIECES),
                Behaviour::Split => Some(SPLIT_PAUSE),
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
