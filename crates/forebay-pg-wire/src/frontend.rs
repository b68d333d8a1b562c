//! What clients send: frames of bounded length, decoded strictly into [`Frontend`].
//!
//! Promises, whatever the bytes:
//!
//! - The length field is checked before anything is allocated for it, and memory grows only with bytes that have arrived.
//! - A message is decoded from its own frame only, and must fill it: missing NULs, counts beyond what is there, bytes left over and
//!   text that is not UTF-8 are errors, never guesses and never panics.
//! - An error says whether the protocol can go on ([`FrameError::Refused`]: the frame is consumed) or not ([`FrameError::Broken`]).
//! - Every method that waits is cancel safe: dropping its future loses no byte.
//! - After a big message its memory is given back. With an [`InputBudget`], long messages of all connections together take no more
//!   than that.
//!
//! Does not know which message may come when (the session does), nor the untyped packets before it ([`super::startup`]).

use std::io;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::budget::{self, InputBudget, Taken};
use super::error::{WireError, sqlstate};

/// The longest message before a client is authenticated, and the longest of the kinds that carry next to nothing.
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;

/// A message longer than this has its memory given back as soon as it is consumed.
const BUFFER_BYTES_KEPT: usize = 16 * 1024;

/// How much room a read has at least.
const READ_BYTES: usize = 8 * 1024;

/// One message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frontend {
    /// Simple query: one or more statements.
    Query(String),
    /// Prepare a statement.
    Parse {
        /// Name of the statement; empty for the unnamed one.
        name: String,
        /// The statement.
        sql: String,
        /// Type OIDs of the first parameters; 0 where the server should find out.
        parameter_types: Vec<u32>,
    },
    /// Make a portal from a statement and parameters.
    Bind {
        /// Name of the portal; empty for the unnamed one.
        portal: String,
        /// Name of the statement; empty for the unnamed one.
        statement: String,
        /// None (all text), one for all, or one for each parameter; each 0 (text) or 1 (binary). See [`format_at`].
        parameter_formats: Vec<i16>,
        /// The parameters; `None` is NULL. They share the frame's memory: decode them, then drop them.
        parameters: Vec<Option<Bytes>>,
        /// None (all text), one for all, or one for each column; each 0 (text) or 1 (binary). See [`format_at`].
        result_formats: Vec<i16>,
    },
    /// Ask for the parameters and columns of a statement, or the columns of a portal.
    Describe {
        /// What the name names.
        target: Target,
        /// The name.
        name: String,
    },
    /// Run a portal.
    Execute {
        /// Name of the portal; empty for the unnamed one.
        portal: String,
        /// The most rows to return now; 0 for all.
        max_rows: u32,
    },
    /// Forget a statement or a portal.
    Close {
        /// What the name names.
        target: Target,
        /// The name.
        name: String,
    },
    /// Send what is there.
    Flush,
    /// End of a group of extended-protocol messages.
    Sync,
    /// Goodbye.
    Terminate,
    /// A password, or one step of SASL: the body undecoded, for only the authentication knows which.
    Password(Bytes),
    /// Data of COPY FROM STDIN.
    CopyData(Bytes),
    /// The end of that data.
    CopyDone,
    /// The client gives COPY up, and why.
    CopyFail(String),
    /// The old way to call a function; the body is not decoded, as no server needs it today.
    FunctionCall,
}

/// What a Describe or Close names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// The format of the parameter or column at `index`: a list of formats is empty (all text), of one (for all), or complete.
pub fn format_at(formats: &[i16], index: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        all => all.get(index).copied().unwrap_or(0),
    }
}

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The frame was consumed but its content is refused: answer with this error, and (in the extended protocol) skip to Sync.
    #[error("message refused: {error}")]
    Refused {
        /// For the client.
        error: WireError,
        /// The type byte of the message, for skipping to Sync is due after extended-protocol messages only.
        kind: u8,
    },
    /// Where the next message begins is unknown, or may not be asked for: send this (fatal) error and close.
    #[error("protocol broken: {0}")]
    Broken(WireError),
    /// The client is gone; nobody is left to answer.
    #[error("connection lost: {0}")]
    Lost(#[from] io::Error),
}

/// Reads messages from a stream. See the module for its promises.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    buffer: BytesMut,
    max_message_bytes: usize,
    budget: Option<Arc<InputBudget>>,
    /// Room for the message that is being received, if it is a long one.
    room: Option<Taken>,
}

/// A frame whose header is known and acceptable. `end` counts from the buffer's start, type byte included.
#[derive(Clone, Copy)]
struct Header {
    kind: u8,
    end: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from `reader` messages of at most `max_message_bytes` (as the length field counts: without the type byte).
    pub fn new(reader: R, max_message_bytes: usize) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            max_message_bytes,
            budget: None,
            room: None,
        }
    }

    /// From now on long messages take room in this budget.
    pub fn set_budget(&mut self, budget: Arc<InputBudget>) {
        self.budget = Some(budget);
    }

    /// Changes the limit: it is small until the client is authenticated.
    pub fn set_max_message_bytes(&mut self, max_message_bytes: usize) {
        self.max_message_bytes = max_message_bytes;
    }

    /// The stream below.
    pub fn stream(&self) -> &R {
        &self.reader
    }

    /// The stream below.
    pub fn stream_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// The stream below, and what was read from it and not consumed.
    pub fn into_parts(self) -> (R, BytesMut) {
        (self.reader, self.buffer)
    }

    /// The next message; `None` when the client closed the connection between two messages.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: bytes that arrived stay in the buffer.
    pub async fn next(&mut self) -> Result<Option<Frontend>, FrameError> {
        loop {
            let header = self.header()?;
            if let Some(header) = header
                && self.buffer.len() >= header.end
            {
                self.room = None;
                let mut frame = self.buffer.split_to(header.end).freeze();
                self.release(header.end);
                frame.advance(5);
                return match decode(header.kind, frame) {
                    Ok(message) => Ok(Some(message)),
                    Err(error) => Err(FrameError::Refused {
                        error,
                        kind: header.kind,
                    }),
                };
            }
            if let Some(header) = header
                && let Some(budget) = &self.budget
                && self.room.is_none()
                && header.end > budget::SMALL_BYTES_MAX
            {
                let taken = budget.take(header.end, self.buffer.len()).await;
                self.room = Some(taken.map_err(|_| no_room(header.end))?);
            }
            if !self.fill_in_time().await? {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(FrameError::Lost(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the client closed the connection in the middle of a message",
                    )))
                };
            }
        }
    }

    /// Whether the client has sent more than was understood: a message that is refused by its header, or one that is not finished.
    pub fn is_inside_message(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The type byte of the next message, if that message is complete in memory: [`Self::next`] would not wait.
    pub fn buffered(&self) -> Option<u8> {
        match self.header() {
            Ok(Some(header)) if self.buffer.len() >= header.end => Some(header.kind),
            _ => None,
        }
    }

    /// Waits until the next message's type byte is known, and leaves the message where it is. `None` when the client closed the
    /// connection. The byte may be of no known type: [`Self::next`] then says so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next_kind(&mut self) -> Result<Option<u8>, FrameError> {
        loop {
            if let Some(kind) = self.buffer.first() {
                return Ok(Some(*kind));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next frame's header, once its five bytes are there. A kind that does not exist is refused as soon as its byte is seen.
    fn header(&self) -> Result<Option<Header>, FrameError> {
        let Some(&kind) = self.buffer.first() else {
            return Ok(None);
        };
        let limit = match kind {
            b'Q' | b'P' | b'B' | b'F' | b'd' => self.max_message_bytes,
            b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'p' | b'c' | b'f' => {
                self.max_message_bytes.min(SMALL_MESSAGE_BYTES_MAX)
            }
            _ => {
                return Err(broken(
                    sqlstate::PROTOCOL_VIOLATION,
                    format!("invalid frontend message type {kind}"),
                ));
            }
        };
        let Some(length) = self.buffer.get(1..5) else {
            return Ok(None);
        };
        let length = i32::from_be_bytes(length.try_into().expect("a slice of four bytes"));
        let Some(bytes) = usize::try_from(length).ok().filter(|bytes| *bytes >= 4) else {
            return Err(broken(
                sqlstate::PROTOCOL_VIOLATION,
                format!("invalid message length {length}"),
            ));
        };
        if bytes > limit {
            let error = WireError::fatal(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                format!("message of {bytes} bytes is longer than the {limit} bytes allowed here"),
            );
            return Err(FrameError::Broken(
                error.with_hint("Send less at once, or raise max_message_bytes."),
            ));
        }
        Ok(Some(Header { kind, end: bytes + 1 }))
    }

    /// As [`fill`](Self::fill), but a client that has room for a message and does not send it must not keep others waiting.
    async fn fill_in_time(&mut self) -> Result<bool, FrameError> {
        loop {
            let Some(look_at) = self.room.as_ref().map(Taken::look_at) else {
                return self.fill().await;
            };
            if let Ok(filled) = tokio::time::timeout_at(look_at, self.fill()).await {
                return filled;
            }
            let arrived = self.buffer.len();
            if self.room.as_mut().is_some_and(|room| room.has_stalled(arrived)) {
                let message =
                    "terminating connection that does not send the message it has begun while others wait for its room";
                return Err(broken(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, message.to_owned()));
            }
        }
    }

    /// Reads what is there, at least a byte; false at the end of the stream.
    async fn fill(&mut self) -> Result<bool, FrameError> {
        let missing = self
            .header()?
            .map_or(0, |header| header.end.saturating_sub(self.buffer.len()));
        if self.buffer.capacity() == self.buffer.len() {
            // As much again as has arrived: doubling keeps copies linear, and a client that announces much but sends little gets little.
            self.buffer.reserve(missing.min(self.buffer.len()).max(READ_BYTES));
        }
        // Not much beyond the message at hand, so that little is left to move when a big message's memory is given back.
        let mut room = (&mut self.buffer).limit(missing.max(READ_BYTES));
        Ok(self.reader.read_buf(&mut room).await? > 0)
    }

    /// Gives a big message's memory back once it is consumed: what was read beyond it moves to a buffer of its own.
    fn release(&mut self, consumed: usize) {
        if consumed > BUFFER_BYTES_KEPT {
            let mut small = BytesMut::with_capacity(self.buffer.len().max(READ_BYTES));
            small.extend_from_slice(&self.buffer);
            self.buffer = small;
        }
    }
}

fn no_room(bytes: usize) -> FrameError {
    let message = format!("there was no room for a message of {bytes} bytes: messages of other clients take it all");
    let error = WireError::fatal(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, message);
    FrameError::Broken(error.with_hint("Try again later, send less at once, or raise --max-input-bytes."))
}

fn broken(sqlstate: &'static str, message: String) -> FrameError {
    FrameError::Broken(WireError::fatal(sqlstate, message))
}

/// Decodes one frame's body. Every error here is recoverable: the frame's end is known.
fn decode(kind: u8, body: Bytes) -> Result<Frontend, WireError> {
    let mut body = Body(body);
    let message = match kind {
        b'Q' => Frontend::Query(body.only_text()?),
        b'P' => Frontend::Parse {
            name: body.text()?,
            sql: body.text()?,
            parameter_types: body.list(Body::u32)?,
        },
        b'B' => {
            let portal = body.text()?;
            let statement = body.text()?;
            let parameter_formats = body.list(Body::format)?;
            let parameters = body.list(Body::parameter)?;
            if parameter_formats.len() > 1 && parameter_formats.len() != parameters.len() {
                return Err(WireError::protocol(format!(
                    "bind message has {} parameter formats but {} parameters",
                    parameter_formats.len(),
                    parameters.len()
                )));
            }
            let result_formats = body.list(Body::format)?;
            Frontend::Bind {
                portal,
                statement,
                parameter_formats,
                parameters,
                result_formats,
            }
        }
        b'D' => Frontend::Describe {
            target: body.target()?,
            name: body.text()?,
        },
        b'C' => Frontend::Close {
            target: body.target()?,
            name: body.text()?,
        },
        // A negative count means all, as zero does.
        b'E' => Frontend::Execute {
            portal: body.text()?,
            max_rows: u32::try_from(body.u32()?.cast_signed()).unwrap_or(0),
        },
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'X' => Frontend::Terminate,
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(body.text()?),
        b'p' => Frontend::Password(body.rest()),
        b'd' => Frontend::CopyData(body.rest()),
        b'F' => {
            body.rest();
            Frontend::FunctionCall
        }
        _ => {
            return Err(WireError::internal(
                "a frame of unknown type was not refused by its header",
            ));
        }
    };
    if body.0.is_empty() {
        Ok(message)
    } else {
        Err(WireError::protocol("invalid message format: bytes after its end"))
    }
}

/// What is left of a frame's body. Nothing is read past it.
struct Body(Bytes);

impl Body {
    fn take(&mut self, bytes: usize) -> Result<Bytes, WireError> {
        if bytes > self.0.len() {
            return Err(WireError::protocol("insufficient data left in message"));
        }
        Ok(self.0.split_to(bytes))
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        Ok(self.take(2)?.get_u16())
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(self.take(4)?.get_u32())
    }

    fn format(&mut self) -> Result<i16, WireError> {
        match self.u16()?.cast_signed() {
            format @ (0 | 1) => Ok(format),
            other => Err(WireError::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                format!("unsupported format code: {other}"),
            )),
        }
    }

    fn parameter(&mut self) -> Result<Option<Bytes>, WireError> {
        match self.u32()?.cast_signed() {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length).map(Some),
                Err(_) => Err(WireError::protocol(format!("invalid parameter length {length}"))),
            },
        }
    }

    /// A 16-bit count and as many items. A count beyond what is there ends in an error at the first item that is missing, and nothing
    /// is allocated for the rest: collecting results grows as they come.
    fn list<T>(&mut self, item: fn(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let count = self.u16()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn target(&mut self) -> Result<Target, WireError> {
        match self.take(1)?[0] {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            other => Err(WireError::protocol(format!("invalid message subtype {other}"))),
        }
    }

    /// A text that fills the message. It is not copied where the frame is nobody else's.
    fn only_text(&mut self) -> Result<String, WireError> {
        match self.0.iter().position(|byte| *byte == 0) {
            Some(end) if end + 1 == self.0.len() => {
                let mut text = std::mem::take(&mut self.0);
                text.truncate(end);
                String::from_utf8(text.into()).map_err(|error| invalid_utf8(error.as_bytes(), error.utf8_error()))
            }
            _ => self.text(),
        }
    }

    fn text(&mut self) -> Result<String, WireError> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(WireError::protocol("invalid string in message: no terminator"));
        };
        let text = self.0.split_to(end);
        self.0.advance(1);
        match std::str::from_utf8(&text) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(invalid_utf8(&text, error)),
        }
    }
}

/// 22021, naming the bytes at fault as PostgreSQL does.
pub fn invalid_utf8(text: &[u8], error: std::str::Utf8Error) -> WireError {
    use std::fmt::Write as _;
    let start = error.valid_up_to();
    let end = error.error_len().map_or(text.len(), |bytes| start + bytes);
    let mut message = String::from("invalid byte sequence for encoding \"UTF8\":");
    for byte in &text[start..end] {
        write!(message, " 0x{byte:02x}").expect("writing to a String never fails");
    }
    WireError::new(sqlstate::CHARACTER_NOT_IN_REPERTOIRE, message)
}

#[cfg(test)]
#[path = "frontend_tests.rs"]
mod tests;
