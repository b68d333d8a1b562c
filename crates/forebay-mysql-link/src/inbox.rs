//! Inbox: bytes that came, cut into packets.
//!
//! Promises: a packet is lent out where it lies, one that came in several joined; each has the place in its exchange that it must
//! have; memory is that of the longest packet that was taken, and goes back when the inbox is empty; a row longer than is taken is
//! discarded as it comes. Knows no socket, and no packet's meaning.

use bytes::{Buf, BytesMut};

use crate::error::LinkError;
use crate::outbox::{HEADER_BYTES, PACKET_BYTES_MAX};
use crate::server_error::ServerError;

/// So much is read at once.
const READ_BYTES: usize = 8 * 1024;
/// An empty inbox keeps no more than this.
const KEPT_BYTES: usize = 64 * 1024;

/// What came and was not taken yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: BytesMut,
    /// Of the packet lent out last.
    consumed: usize,
    /// The parts of a packet that came in several, but for the last one.
    joined: BytesMut,
    /// What is left to come of a part, and how long all was so far, of a row that is discarded.
    discarding: Option<Discarding>,
    /// The place in the exchange of the next packet.
    sequence: u8,
}

#[derive(Debug, Clone, Copy)]
struct Discarding {
    /// Of the part that comes now.
    left: usize,
    /// All parts, those that are to come not.
    length: usize,
    /// Whether another part comes after this one.
    is_followed: bool,
}

/// What is at the beginning of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Front {
    /// A packet whose body is of so many bytes.
    Packet(usize),
    /// One that came in several, joined.
    Joined,
    /// The end of a row of so many bytes that was discarded.
    Discarded(usize),
}

/// Which packets are too long to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// None is.
    All,
    /// Rows of more bytes than this are. What is no row here begins as no row does.
    RowsUpTo(usize),
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            consumed: 0,
            joined: BytesMut::new(),
            discarding: None,
            sequence: 0,
        }
    }

    /// The next packet has this place in its exchange.
    pub(crate) fn expect_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The place that the next packet has, whoever sends it.
    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Whether nothing is left of what came.
    pub(crate) fn is_empty(&self) -> bool {
        let is_joined = self.joined.is_empty() || self.consumed > 0;
        self.bytes.len() == self.consumed && is_joined && self.discarding.is_none()
    }

    /// Where more is to be put.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        self.bytes.reserve(READ_BYTES);
        &mut self.bytes
    }

    /// The packet before is over.
    fn advance(&mut self) {
        if self.consumed > 0 {
            self.bytes.advance(std::mem::take(&mut self.consumed));
            if !self.joined.is_empty() {
                self.joined = BytesMut::new();
            }
        }
    }

    /// What is at the beginning, when it is whole. The packet before it is over. Whoever is told of one takes it.
    pub(crate) fn front(&mut self, taken: Taken) -> Result<Option<Front>, LinkError> {
        self.advance();
        loop {
            if let Some(discarding) = self.discarding {
                match self.discard(discarding)? {
                    Some(front) => return Ok(Some(front)),
                    None if self
                        .discarding
                        .is_some_and(|next| next.left > 0 && !self.bytes.is_empty()) =>
                    {
                        continue;
                    }
                    None => return Ok(None),
                }
            }
            let Some((length, sequence)) = self.header() else {
                if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
                    self.bytes = BytesMut::new();
                }
                return Ok(None);
            };
            if !self.is_in_place(length, sequence)? {
                return Ok(None);
            }
            let all = length + self.joined.len();
            let first = self.joined.first().or(self.bytes.get(HEADER_BYTES)).copied();
            if let (Taken::RowsUpTo(most), Some(first)) = (taken, first)
                && all > most
                && is_row(first, all)
            {
                self.sequence = sequence.wrapping_add(1);
                self.bytes.advance(HEADER_BYTES);
                self.joined = BytesMut::new();
                self.discarding = Some(Discarding {
                    left: length,
                    length: all,
                    is_followed: length == PACKET_BYTES_MAX,
                });
                continue;
            }
            let whole = HEADER_BYTES + length;
            if self.bytes.len() < whole {
                // As it comes, not at once: a length may be a lie.
                self.bytes.reserve((whole - self.bytes.len()).min(1 << 20));
                return Ok(None);
            }
            self.sequence = sequence.wrapping_add(1);
            let is_followed = length == PACKET_BYTES_MAX;
            if !is_followed && self.joined.is_empty() {
                return Ok(Some(Front::Packet(length)));
            }
            self.joined.extend_from_slice(&self.bytes[HEADER_BYTES..whole]);
            if !is_followed {
                self.consumed = whole;
                return Ok(Some(Front::Joined));
            }
            self.bytes.advance(whole);
        }
    }

    /// Length and place of the packet at the beginning.
    fn header(&self) -> Option<(usize, u8)> {
        let &[a, b, c, sequence] = self.bytes.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        Some((length, sequence))
    }

    /// Goes on with a row that is discarded; none while it has not come to its end.
    fn discard(&mut self, mut row: Discarding) -> Result<Option<Front>, LinkError> {
        let here = row.left.min(self.bytes.len());
        row.left -= here;
        self.bytes.advance(here);
        if row.left == 0 && !row.is_followed {
            self.discarding = None;
            return Ok(Some(Front::Discarded(row.length)));
        }
        if row.left == 0
            && let Some((length, sequence)) = self.header()
            && self.is_in_place(length, sequence)?
        {
            self.sequence = sequence.wrapping_add(1);
            self.bytes.advance(HEADER_BYTES);
            row = Discarding {
                left: length,
                length: row.length + length,
                is_followed: length == PACKET_BYTES_MAX,
            };
            if length == 0 {
                self.discarding = None;
                return Ok(Some(Front::Discarded(row.length)));
            }
        }
        self.discarding = Some(row);
        Ok(None)
    }

    /// Sees, as soon as its header is there, whether a packet is in its place.
    fn is_in_place(&self, length: usize, sequence: u8) -> Result<bool, LinkError> {
        let first = self.bytes.get(HEADER_BYTES);
        if sequence == self.sequence {
            return Ok(true);
        }
        if sequence != 0 || length == 0 || first.is_some_and(|&first| first != 0xff) {
            return Err(LinkError::Protocol(format!(
                "a packet has place {sequence} in its exchange, and not {}",
                self.sequence
            )));
        }
        // A server that ends a connection by itself says so out of any exchange.
        match self.bytes.get(HEADER_BYTES..HEADER_BYTES + length) {
            None => Ok(false),
            Some(body) => Err(match ServerError::read(body) {
                Ok(error) => LinkError::Ended(Box::new(error)),
                Err(malformed) => malformed.into(),
            }),
        }
    }

    /// The body of the packet that [`front`](Self::front) told of; none if it was discarded.
    pub(crate) fn lend(&mut self, front: Front) -> &[u8] {
        match front {
            Front::Packet(length) => {
                self.consumed = HEADER_BYTES + length;
                &self.bytes[HEADER_BYTES..self.consumed]
            }
            Front::Joined => &self.joined,
            Front::Discarded(_) => &[],
        }
    }
}

/// Whether what begins so among rows is one: not an error, and not their end, which is in one packet.
fn is_row(first: u8, length: usize) -> bool {
    first != 0xff && (first != 0xfe || length >= PACKET_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet's body, and how long it was if it was discarded.
    type Received = (Vec<u8>, Option<usize>);

    /// In as many packets as it takes.
    fn encode(bodies: &[Vec<u8>]) -> Vec<u8> {
        let (mut bytes, mut sequence) = (Vec::new(), 0_u8);
        for body in bodies {
            let mut left = &body[..];
            loop {
                let part = left.len().min(PACKET_BYTES_MAX);
                bytes.extend(&part.to_le_bytes()[..3]);
                bytes.push(sequence);
                bytes.extend(&left[..part]);
                left = &left[part..];
                sequence = sequence.wrapping_add(1);
                if part < PACKET_BYTES_MAX {
                    break;
                }
            }
        }
        bytes
    }

    fn take_all(inbox: &mut Inbox, taken: Taken, received: &mut Vec<Received>) {
        while let Some(front) = inbox.front(taken).unwrap() {
            let discarded = match front {
                Front::Discarded(length) => Some(length),
                _ => None,
            };
            received.push((inbox.lend(front).to_vec(), discarded));
        }
    }

    fn expected(bodies: &[Vec<u8>], most: usize) -> Vec<Received> {
        let is_too_long = |body: &Vec<u8>| body.len() > most && is_row(body[0], body.len());
        let received = bodies.iter().map(|body| match is_too_long(body) {
            true => (Vec::new(), Some(body.len())),
            false => (body.clone(), None),
        });
        received.collect()
    }

    proptest! {
        #[test]
        fn packets_are_the_same_however_they_come(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
            cuts in proptest::collection::vec(1_usize..40, 1..20),
            most in 1_usize..400,
        ) {
            let bytes = encode(&bodies);
            let mut inbox = Inbox::new();
            let (mut received, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (part, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                inbox.room().extend_from_slice(part);
                rest = behind;
                take_all(&mut inbox, Taken::RowsUpTo(most), &mut received);
            }
            prop_assert_eq!(received, expected(&bodies, most));
            prop_assert!(inbox.is_empty());
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_cut(bytes in proptest::collection::vec(any::<u8>(), 0..400), most in 0_usize..400) {
            let mut inbox = Inbox::new();
            inbox.room().extend_from_slice(&bytes);
            while let Ok(Some(front)) = inbox.front(Taken::RowsUpTo(most)) {
                inbox.lend(front);
            }
        }
    }

    #[test]
    fn what_came_in_several_packets_is_joined_or_discarded_whole() {
        for length in [
            PACKET_BYTES_MAX - 1,
            PACKET_BYTES_MAX,
            PACKET_BYTES_MAX + 1,
            2 * PACKET_BYTES_MAX,
        ] {
            let body: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let bodies = [vec![1, 2], body, vec![3]];
            let bytes = encode(&bodies);
            for most in [usize::MAX, length - 1, 1_000] {
                let (mut inbox, mut received) = (Inbox::new(), Vec::new());
                for part in bytes.chunks(1 << 20) {
                    inbox.room().extend_from_slice(part);
                    take_all(&mut inbox, Taken::RowsUpTo(most), &mut received);
                    assert!(most > 1_000 || inbox.bytes.capacity() <= 4 << 20);
                }
                assert!(received == expected(&bodies, most), "{length} {most}");
                assert!(inbox.is_empty() && inbox.bytes.capacity() <= KEPT_BYTES);
            }
        }
    }

    #[test]
    fn a_packet_out_of_its_place_is_refused_and_a_farewell_is_heard() {
        let told = |bytes: &[u8]| {
            let mut inbox = Inbox::new();
            inbox.expect_sequence(1);
            inbox.room().extend_from_slice(bytes);
            inbox.front(Taken::All)
        };
        assert!(matches!(told(&[1, 0, 0, 1, 7]), Ok(Some(Front::Packet(1)))));
        assert!(matches!(told(&[1, 0, 0, 0, 7]), Err(LinkError::Protocol(_))));
        assert!(matches!(told(&[1, 0, 0, 2, 7]), Err(LinkError::Protocol(_))));
        let farewell = b"\x0f\0\0\0\xff\x87\x07#70100killed";
        assert!(matches!(told(farewell), Err(LinkError::Ended(error)) if error.code == 1927));
    }

    #[test]
    fn memory_of_a_long_packet_goes_back_and_a_lie_takes_none() {
        let mut inbox = Inbox::new();
        inbox.room().extend_from_slice(&encode(&[vec![7; 300_000]]));
        let front = inbox.front(Taken::All).unwrap().unwrap();
        inbox.lend(front);
        assert!(inbox.front(Taken::All).unwrap().is_none());
        assert!(inbox.bytes.capacity() <= KEPT_BYTES);
        inbox.room().extend_from_slice(&[0xfe, 0xff, 0xff, 1]);
        assert!(inbox.front(Taken::All).unwrap().is_none());
        assert!(inbox.bytes.capacity() <= 2 << 20);
    }
}
