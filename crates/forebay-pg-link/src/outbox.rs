//! Outbox: messages to the server, on their way to the next write.
//!
//! Promises: messages are sent in the order in which they were put here, and none in part: one that cannot be encoded leaves
//! nothing behind. It counts how often the server will say that it is ready ([`Tag::READY_FOR_QUERY`](crate::Tag)). Knows no socket.

use std::error::Error;
use std::io;

use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};

/// An empty outbox keeps no more memory than this.
const KEPT_BYTES: usize = 64 * 1024;

/// Why a message was not put into the outbox; nothing of it is there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsendable {
    /// A text has a zero byte, or there are too many parameters, or they are too long.
    #[error(transparent)]
    Encoding(#[from] io::Error),
    /// A parameter cannot be encoded, for a reason of its own.
    #[error(transparent)]
    Parameter(Box<dyn Error + Send + Sync>),
}

/// What is known by a name at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'a> {
    /// A prepared statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

impl Named<'_> {
    fn parts(self) -> (u8, &'static str, String) {
        match self {
            Self::Statement(name) => (b'S', "statement", name.to_owned()),
            Self::Portal(name) => (b'P', "portal", name.to_owned()),
        }
    }
}

/// Messages to the server. A link sends them when its next answer is waited for.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: BytesMut,
    /// Messages put here since the beginning, or passed on, after which the server says that it is ready.
    synced: u64,
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

    /// Query: one or more statements in text, answered up to one ReadyForQuery.
    ///
    /// # Errors
    /// [`Unsendable`]; so for each of these.
    pub fn query(&mut self, sql: &str) -> Result<(), Unsendable> {
        self.put(|bytes| frontend::query(sql, bytes))?;
        self.synced += 1;
        Ok(())
    }

    /// Parse: prepares a statement. Types that are 0 or left out are the server's to choose.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn parse(&mut self, statement: &str, sql: &str, types: &[u32]) -> Result<(), Unsendable> {
        self.put(|bytes| frontend::parse(statement, sql, types.iter().copied(), bytes))
    }

    /// Bind: a portal of a statement, with its parameters. `formats` and `results` are 0 for text and 1 for binary: none for all
    /// text, one for all, or one each. `encode` writes a parameter.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn bind<P>(
        &mut self,
        portal: &str,
        statement: &str,
        formats: impl IntoIterator<Item = i16>,
        parameters: impl IntoIterator<Item = P>,
        encode: impl FnMut(P, &mut BytesMut) -> Result<IsNull, Box<dyn Error + Send + Sync>>,
        results: impl IntoIterator<Item = i16>,
    ) -> Result<(), Unsendable> {
        let before = self.bytes.len();
        let bound = frontend::bind(portal, statement, formats, parameters, encode, results, &mut self.bytes);
        bound.map_err(|error| {
            self.bytes.truncate(before);
            match error {
                // Also where there are too many parameters, or one is too long.
                BindError::Conversion(error) => match error.downcast::<io::Error>() {
                    Ok(error) => Unsendable::Encoding(*error),
                    Err(error) => Unsendable::Parameter(error),
                },
                BindError::Serialization(error) => Unsendable::Encoding(error),
            }
        })
    }

    /// Describe: what a statement takes and gives, or what a portal gives.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn describe(&mut self, named: Named<'_>) -> Result<(), Unsendable> {
        let (kind, _, name) = named.parts();
        self.put(|bytes| frontend::describe(kind, &name, bytes))
    }

    /// Execute: runs a portal, up to so many rows; 0 for all.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn execute(&mut self, portal: &str, rows_max: i32) -> Result<(), Unsendable> {
        self.put(|bytes| frontend::execute(portal, rows_max, bytes))
    }

    /// Close: forgets a statement or a portal.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn close(&mut self, named: Named<'_>) -> Result<(), Unsendable> {
        let (kind, _, name) = named.parts();
        self.put(|bytes| frontend::close(kind, &name, bytes))
    }

    /// Sync: ends what was begun since the last one, and a transaction that only these messages made; answered by ReadyForQuery.
    pub fn sync(&mut self) {
        frontend::sync(&mut self.bytes);
        self.synced += 1;
    }

    /// Flush: the server sends what it has answered so far.
    pub fn flush(&mut self) {
        frontend::flush(&mut self.bytes);
    }

    /// CopyData: a part of what COPY takes in.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn copy_data(&mut self, data: &[u8]) -> Result<(), Unsendable> {
        self.put(|bytes| {
            frontend::CopyData::new(data)?.write(bytes);
            Ok(())
        })
    }

    /// CopyDone: all was sent that COPY takes in.
    pub fn copy_done(&mut self) {
        frontend::copy_done(&mut self.bytes);
    }

    /// CopyFail: COPY takes nothing in, and fails for that reason.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub fn copy_fail(&mut self, reason: &str) -> Result<(), Unsendable> {
        self.put(|bytes| frontend::copy_fail(reason, bytes))
    }

    /// Terminate: the session ends.
    pub fn terminate(&mut self) {
        frontend::terminate(&mut self.bytes);
    }

    /// Messages as they are, whole ones, after `synced` of which the server will say that it is ready.
    pub fn pass_on(&mut self, messages: &[u8], synced: u64) {
        self.bytes.put_slice(messages);
        self.synced += synced;
    }

    /// What belongs to the handshake, which counts nothing.
    pub(crate) fn put(&mut self, message: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), Unsendable> {
        let before = self.bytes.len();
        message(&mut self.bytes).map_err(|error| {
            self.bytes.truncate(before);
            Unsendable::Encoding(error)
        })
    }

    /// How often the server will have said that it is ready when it has answered everything.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn sent(&mut self, count: usize) {
        self.bytes.advance(count);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_cannot_be_sent_leaves_nothing() {
        let mut outbox = Outbox::default();
        outbox.sync();
        let before = outbox.unsent().to_vec();
        assert!(outbox.query("SELECT\0").is_err());
        assert!(outbox.parse("s", "SELECT\0", &[]).is_err());
        assert!(outbox.close(Named::Portal("\0")).is_err());
        let refuse = |(), _: &mut BytesMut| Err("it cannot be".into());
        assert!(matches!(
            outbox.bind("", "s", [1], [()], refuse, [1]),
            Err(Unsendable::Parameter(_))
        ));
        let write = |(), bytes: &mut BytesMut| {
            bytes.put_u8(7);
            Ok(IsNull::No)
        };
        assert!(matches!(
            outbox.bind("", "s", [1], [(); 70_000], write, [1]),
            Err(Unsendable::Encoding(_))
        ));
        assert_eq!(outbox.unsent(), before);
        assert_eq!(outbox.synced(), 1);
    }

    #[test]
    fn memory_goes_back_when_all_was_sent() {
        let mut outbox = Outbox::default();
        outbox.copy_data(&[7; 300_000]).unwrap();
        outbox.sent(100_000);
        assert_eq!(outbox.bytes(), 200_005);
        outbox.sent(200_005);
        assert!(outbox.is_empty() && outbox.bytes.capacity() <= KEPT_BYTES);
    }
}
