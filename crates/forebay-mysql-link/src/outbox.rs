//! Outbox: commands to the server, on their way to the next write.
//!
//! Promises: commands are sent in the order in which they were put here, and none in part; a long one goes in as many packets as it
//! takes. It keeps, in that order, what will answer each of those that are not answered yet. Knows no socket.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, BytesMut};
use mysql_common::constants::{ColumnType, Command};

/// An empty outbox keeps no more memory than this.
const KEPT_BYTES: usize = 64 * 1024;
/// Length in three bytes, and the packet's place in the exchange.
pub(crate) const HEADER_BYTES: usize = 4;
/// A packet of this length is followed by another one of the same command or row.
pub(crate) const PACKET_BYTES_MAX: usize = 0xff_ff_ff;

/// A command is longer than any server takes; nothing of it is in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a command of {0} bytes is longer than a server takes")]
pub struct TooLong(pub usize);

/// No server takes more in one command, whatever it is set to.
const COMMAND_BYTES_MAX: usize = 1 << 30;

/// What will answer a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) kind: Kind,
    /// The place in the exchange of the answer's first packet.
    pub(crate) sequence: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Results, in text or in binary.
    Results,
    /// What a statement is called, takes and returns.
    Prepare,
}

/// How a parameter was encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Nothing was written.
    Null,
    /// What was written is of this type, unsigned or not.
    Of(ColumnType, bool),
}

/// Commands to the server. A link sends them when its next answer is waited for.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: BytesMut,
    /// What is not answered yet, or not whole.
    questions: VecDeque<Question>,
}

impl Outbox {
    /// Whether all was sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes wait to be sent.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One or more statements in text, whose rows come in text.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn query(&mut self, sql: &str) -> Result<(), TooLong> {
        self.command(Command::COM_QUERY, Some(Kind::Results), |bytes| {
            bytes.put_slice(sql.as_bytes());
        })
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn prepare(&mut self, sql: &str) -> Result<(), TooLong> {
        self.command(Command::COM_STMT_PREPARE, Some(Kind::Prepare), |bytes| {
            bytes.put_slice(sql.as_bytes());
        })
    }

    /// Executes what was prepared, whose rows come in binary. There must be as many parameters as it takes; `encode` writes one, as
    /// its type is written: numbers lowest byte first, text and bytes [behind their length](put_length_encoded).
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn execute<P>(
        &mut self,
        statement: u32,
        parameters: impl ExactSizeIterator<Item = P>,
        mut encode: impl FnMut(P, &mut BytesMut) -> Parameter,
    ) -> Result<(), TooLong> {
        self.command(Command::COM_STMT_EXECUTE, Some(Kind::Results), |bytes| {
            bytes.put_u32_le(statement);
            // No cursor.
            bytes.put_u8(0);
            // As often as once.
            bytes.put_u32_le(1);
            let count = parameters.len();
            if count == 0 {
                return;
            }
            let nulls = bytes.len();
            bytes.put_bytes(0, count.div_ceil(8));
            // Types are told: they may be other ones than last time.
            bytes.put_u8(1);
            let types = bytes.len();
            bytes.put_bytes(0, 2 * count);
            for (at, parameter) in parameters.enumerate() {
                let (kind, is_unsigned) = match encode(parameter, bytes) {
                    Parameter::Null => {
                        bytes[nulls + at / 8] |= 1 << (at % 8);
                        (ColumnType::MYSQL_TYPE_NULL, false)
                    }
                    Parameter::Of(kind, is_unsigned) => (kind, is_unsigned),
                };
                bytes[types + 2 * at] = kind as u8;
                bytes[types + 2 * at + 1] = if is_unsigned { 0x80 } else { 0 };
            }
        })
    }

    /// Forgets what was prepared. The server does not answer.
    pub fn close(&mut self, statement: u32) {
        let put = self.command(Command::COM_STMT_CLOSE, None, |bytes| bytes.put_u32_le(statement));
        put.expect("it is short");
    }

    /// Whether the server is there.
    pub fn ping(&mut self) {
        let put = self.command(Command::COM_PING, Some(Kind::Results), |_| {});
        put.expect("it is short");
    }

    /// Makes the session what it was when it was new; what is prepared is forgotten.
    pub fn reset_connection(&mut self) {
        let put = self.command(Command::COM_RESET_CONNECTION, Some(Kind::Results), |_| {});
        put.expect("it is short");
    }

    /// The session ends. The server does not answer.
    pub(crate) fn quit(&mut self) {
        let put = self.command(Command::COM_QUIT, None, |_| {});
        put.expect("it is short");
    }

    /// What belongs to the handshake: a packet at this place of the exchange, which counts nothing.
    pub(crate) fn put(&mut self, sequence: u8, body: &[u8]) {
        let length = u32::try_from(body.len()).expect("what is said in a handshake is short");
        let [a, b, c, _] = length.to_le_bytes();
        self.bytes.put_slice(&[a, b, c, sequence]);
        self.bytes.put_slice(body);
    }

    fn command(
        &mut self,
        command: Command,
        kind: Option<Kind>,
        write: impl FnOnce(&mut BytesMut),
    ) -> Result<(), TooLong> {
        let header = self.bytes.len();
        self.bytes.put_bytes(0, HEADER_BYTES);
        self.bytes.put_u8(command as u8);
        write(&mut self.bytes);
        let length = self.bytes.len() - header - HEADER_BYTES;
        if length > COMMAND_BYTES_MAX {
            self.bytes.truncate(header);
            self.forget_memory();
            return Err(TooLong(length));
        }
        let mut packets = 1;
        if length < PACKET_BYTES_MAX {
            self.head(header, length, 0);
        } else {
            let long = self.bytes.split_off(header + HEADER_BYTES);
            self.bytes.truncate(header);
            self.bytes
                .reserve(length + (length / PACKET_BYTES_MAX + 1) * HEADER_BYTES);
            packets = 0;
            // The last one is shorter than the others, if need be empty.
            let mut left = &long[..];
            loop {
                let part = left.len().min(PACKET_BYTES_MAX);
                let at = self.bytes.len();
                self.bytes.put_bytes(0, HEADER_BYTES);
                self.head(at, part, packets);
                self.bytes.put_slice(&left[..part]);
                left = &left[part..];
                packets += 1;
                if part < PACKET_BYTES_MAX {
                    break;
                }
            }
        }
        if let Some(kind) = kind {
            self.questions.push_back(Question {
                kind,
                sequence: packets,
            });
        }
        Ok(())
    }

    fn head(&mut self, at: usize, length: usize, sequence: u8) {
        let [a, b, c, ..] = length.to_le_bytes();
        self.bytes[at..at + HEADER_BYTES].copy_from_slice(&[a, b, c, sequence]);
    }

    /// What is answered next.
    pub(crate) fn question(&self) -> Option<Question> {
        self.questions.front().copied()
    }

    /// It was answered.
    pub(crate) fn answered(&mut self) {
        self.questions.pop_front();
    }

    /// How much is not answered yet.
    pub(crate) fn unanswered(&self) -> usize {
        self.questions.len()
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn sent(&mut self, count: usize) {
        self.bytes.advance(count);
        self.forget_memory();
    }

    fn forget_memory(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = BytesMut::new();
        }
    }
}

/// Writes text or bytes behind their length, as a parameter of theirs is written.
pub fn put_length_encoded(bytes: &mut BytesMut, value: &[u8]) {
    use mysql_common::io::BufMutExt;
    bytes.put_lenenc_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_goes_in_packets_of_which_the_last_one_is_shorter() {
        // The command's own byte is one of them.
        for (length, packets) in [
            (PACKET_BYTES_MAX - 2, 1),
            (PACKET_BYTES_MAX - 1, 2),
            (PACKET_BYTES_MAX, 2),
            (2 * PACKET_BYTES_MAX - 1, 3),
        ] {
            let mut outbox = Outbox::default();
            outbox.ping();
            outbox.sent(outbox.bytes());
            outbox.answered();
            let sql = "x".repeat(length);
            outbox.query(&sql).unwrap();
            assert_eq!(outbox.question().map(|question| question.sequence), Some(packets));
            let (mut rest, mut joined, mut sequence, mut last) = (outbox.unsent(), Vec::new(), 0, PACKET_BYTES_MAX);
            while !rest.is_empty() {
                assert_eq!(last, PACKET_BYTES_MAX);
                last = usize::from(rest[0]) | usize::from(rest[1]) << 8 | usize::from(rest[2]) << 16;
                assert_eq!(rest[3], sequence);
                joined.extend_from_slice(&rest[4..4 + last]);
                rest = &rest[4 + last..];
                sequence += 1;
            }
            assert!(last < PACKET_BYTES_MAX);
            assert_eq!(sequence, packets);
            assert!(joined[0] == Command::COM_QUERY as u8 && joined[1..] == *sql.as_bytes());
        }
    }

    #[test]
    fn a_command_that_is_too_long_leaves_nothing() {
        let mut outbox = Outbox::default();
        outbox.ping();
        let before = outbox.unsent().to_vec();
        let long = "x".repeat(COMMAND_BYTES_MAX);
        assert_eq!(outbox.query(&long), Err(TooLong(COMMAND_BYTES_MAX + 1)));
        assert_eq!((outbox.unsent(), outbox.unanswered()), (&*before, 1));
    }

    #[test]
    fn parameters_are_told_with_their_types_and_nulls_without_bytes() {
        let mut outbox = Outbox::default();
        let values = [Some(7_i64), None, Some(-1)];
        let encode = |value: Option<i64>, bytes: &mut BytesMut| match value {
            None => Parameter::Null,
            Some(value) => {
                bytes.put_i64_le(value);
                Parameter::Of(ColumnType::MYSQL_TYPE_LONGLONG, value > 0)
            }
        };
        outbox.execute(9, values.into_iter(), encode).unwrap();
        let expected = [
            &[34, 0, 0, 0, 23, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b010, 1][..],
            &[8, 0x80, 6, 0, 8, 0],
            &7_i64.to_le_bytes(),
            &(-1_i64).to_le_bytes(),
        ];
        assert_eq!(outbox.unsent(), expected.concat());
    }

    #[test]
    fn memory_goes_back_when_all_was_sent() {
        let mut outbox = Outbox::default();
        outbox.query(&"x".repeat(300_000)).unwrap();
        outbox.sent(100_000);
        assert_eq!(outbox.bytes(), 200_005);
        outbox.sent(200_005);
        assert!(outbox.is_empty() && outbox.bytes.capacity() <= KEPT_BYTES);
    }
}
