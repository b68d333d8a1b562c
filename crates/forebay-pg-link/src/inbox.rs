//! Inbox: bytes that came, cut into messages.
//!
//! Promises: a message is lent out where it lies; memory is that of the longest message that was taken, and goes back when the
//! inbox is empty; a message longer than is taken is discarded as it comes. Knows no socket.

use bytes::{Buf, BytesMut};

use crate::error::LinkError;
use crate::message::{HEADER_BYTES, Message, Tag};

/// So much is read at once.
const READ_BYTES: usize = 8 * 1024;
/// An empty inbox keeps no more than this.
const KEPT_BYTES: usize = 64 * 1024;

/// What came and was not taken yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: BytesMut,
    /// Of the message lent out last, or what is left to discard of a long one.
    consumed: usize,
    discarding: Option<Discarding>,
    message_bytes_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Discarding {
    tag: Tag,
    length: usize,
    left: usize,
}

/// What is at the beginning of the inbox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Front {
    /// A message of so many bytes.
    Message(usize),
    /// The end of one that was discarded.
    Discarded(Tag, usize),
}

/// Whether it has a row in it, which may be of any length: of an answer, or of a COPY or a stream of replication.
fn is_row(tag: Tag) -> bool {
    matches!(tag, Tag::DATA_ROW | Tag::COPY_DATA)
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            consumed: 0,
            discarding: None,
            message_bytes_max: usize::MAX,
        }
    }

    /// Messages longer than this are discarded, but for errors, whose length is the server's concern.
    pub(crate) fn take_at_most(&mut self, message_bytes_max: usize) {
        self.message_bytes_max = message_bytes_max;
    }

    /// Whether nothing is left of what came.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == self.consumed && self.discarding.is_none()
    }

    /// What came and was not taken.
    pub(crate) fn into_unread(mut self) -> BytesMut {
        self.bytes.advance(self.consumed);
        self.bytes
    }

    /// Where more is to be put.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        self.bytes.reserve(READ_BYTES);
        &mut self.bytes
    }

    /// What is at the beginning, when it is whole. The message before it is over.
    pub(crate) fn front(&mut self) -> Result<Option<Front>, LinkError> {
        self.bytes.advance(std::mem::take(&mut self.consumed));
        if let Some(discarding) = &mut self.discarding {
            let here = discarding.left.min(self.bytes.len());
            discarding.left -= here;
            self.bytes.advance(here);
            let Discarding { tag, length, left } = *discarding;
            if left > 0 {
                return Ok(None);
            }
            self.discarding = None;
            return Ok(Some(Front::Discarded(tag, length)));
        }
        let Some(header) = self.bytes.first_chunk::<HEADER_BYTES>() else {
            if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
                self.bytes = BytesMut::new();
            }
            return Ok(None);
        };
        let tag = Tag(header[0]);
        let counted = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        // The length counts itself. No message has 2 GiB.
        if !(4..=0x7fff_ffff).contains(&counted) {
            return Err(LinkError::Protocol(format!(
                "a message {tag} says that it is {counted} bytes long"
            )));
        }
        let length = 1 + usize::try_from(counted).expect("32 bits fit into a word");
        if self.bytes.len() >= length {
            return Ok(Some(Front::Message(length)));
        }
        if length > self.message_bytes_max && is_row(tag) {
            self.discarding = Some(Discarding {
                tag,
                length,
                left: length,
            });
            return self.front();
        }
        // As it comes, not at once: a length may be a lie.
        self.bytes.reserve((length - self.bytes.len()).min(1 << 20));
        Ok(None)
    }

    /// The message that [`front`](Self::front) told of.
    pub(crate) fn lend(&mut self, front: Front) -> Message<'_> {
        match front {
            Front::Message(length) if length > self.message_bytes_max && is_row(Tag(self.bytes[0])) => {
                self.consumed = length;
                Message::discarded(Tag(self.bytes[0]), length)
            }
            Front::Message(length) => {
                self.consumed = length;
                Message::whole(&self.bytes[..length])
            }
            Front::Discarded(tag, length) => Message::discarded(tag, length),
        }
    }

    /// The message that [`front`](Self::front) told of, without taking it.
    pub(crate) fn peek(&self, front: Front) -> Option<Message<'_>> {
        match front {
            Front::Message(length) => Some(Message::whole(&self.bytes[..length])),
            Front::Discarded(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of the server's: tag, body, length where it was discarded.
    type Taken = (u8, Vec<u8>, Option<usize>);

    fn encode(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, body) in messages {
            bytes.push(*tag);
            bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            bytes.extend(body);
        }
        bytes
    }

    fn take_all(inbox: &mut Inbox, taken: &mut Vec<Taken>) {
        while let Some(front) = inbox.front().unwrap() {
            let message = inbox.lend(front);
            let discarded = message.is_discarded().then(|| message.length());
            taken.push((message.tag().0, message.body().to_vec(), discarded));
        }
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_they_come(
            messages in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..300)), 0..20),
            cuts in proptest::collection::vec(1_usize..40, 1..20),
            most in 1_usize..400,
        ) {
            let bytes = encode(&messages);
            let expected: Vec<Taken> = messages
                .iter()
                .map(|(tag, body)| {
                    let length = body.len() + HEADER_BYTES;
                    match matches!(*tag, b'D' | b'd') && length > most {
                        true => (*tag, Vec::new(), Some(length)),
                        false => (*tag, body.clone(), None),
                    }
                })
                .collect();
            let mut inbox = Inbox::new();
            inbox.take_at_most(most);
            let (mut taken, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (part, behind) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                inbox.room().extend_from_slice(part);
                rest = behind;
                take_all(&mut inbox, &mut taken);
            }
            prop_assert_eq!(taken, expected);
            prop_assert!(inbox.is_empty());
        }

        #[test]
        fn no_bytes_are_too_odd_to_be_cut(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut inbox = Inbox::new();
            inbox.room().extend_from_slice(&bytes);
            while let Ok(Some(front)) = inbox.front() {
                inbox.lend(front);
            }
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for counted in [0_u32, 3, 0x8000_0000, u32::MAX] {
            let mut inbox = Inbox::new();
            inbox
                .room()
                .extend_from_slice(&[&b"C"[..], &counted.to_be_bytes()[..]].concat());
            assert!(matches!(inbox.front(), Err(LinkError::Protocol(_))), "{counted}");
        }
    }

    #[test]
    fn memory_of_a_long_message_goes_back_and_a_lie_takes_none() {
        let mut inbox = Inbox::new();
        inbox.room().extend_from_slice(&encode(&[(b'd', vec![7; 300_000])]));
        let front = inbox.front().unwrap().unwrap();
        inbox.lend(front);
        assert!(inbox.front().unwrap().is_none());
        assert!(inbox.bytes.capacity() <= KEPT_BYTES);
        inbox.room().extend_from_slice(&[b'd', 0x7f, 0xff, 0xff, 0xff]);
        assert!(inbox.front().unwrap().is_none());
        assert!(inbox.bytes.capacity() <= 2 << 20);
    }

    #[test]
    fn a_long_row_is_discarded_while_it_comes() {
        let mut inbox = Inbox::new();
        inbox.take_at_most(1_000);
        let bytes = encode(&[(b'D', vec![7; 10_000_000]), (b'C', vec![0])]);
        let mut taken = Vec::new();
        for part in bytes.chunks(5_000) {
            inbox.room().extend_from_slice(part);
            take_all(&mut inbox, &mut taken);
            assert!(inbox.bytes.capacity() <= KEPT_BYTES);
        }
        assert_eq!(taken, [(b'D', Vec::new(), Some(10_000_005)), (b'C', vec![0], None)]);
    }
}
