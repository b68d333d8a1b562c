//! Client: a client's stream, what came from it and what is to be sent to it.
//!
//! Promises: memory is what is under way; a client that is idle holds no buffer.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use forebay_pg_wire::startup::Connection;
use forebay_stream::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Of what one side has not taken yet no more is read from the other.
const UNSENT_BYTES_MAX: usize = 256 * 1024;
/// What is longer is not copied for each who is told it.
const SHARED_BYTES_MIN: usize = 16 * 1024;

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Connection<Socket>,
    /// What came and was not taken yet.
    pub(crate) input: BytesMut,
    /// What is to be sent.
    pub(crate) output: BytesMut,
    /// What is to be sent before that, and is others' too.
    shared: VecDeque<Bytes>,
    needs_flush: bool,
    /// So many bytes were sent to it.
    pub(crate) sent_bytes: u64,
}

impl Client {
    pub(crate) fn new(stream: Connection<Socket>, input: BytesMut, output: BytesMut) -> Self {
        Self {
            stream,
            input,
            output,
            shared: VecDeque::new(),
            needs_flush: false,
            sent_bytes: 0,
        }
    }

    /// Reads what is there behind the input: how many bytes, 0 when the client has hung up.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
        self.input.extend_from_slice(room.filled());
        Poll::Ready(Ok(room.filled().len()))
    }

    /// What others are told too is to be sent next; a long one is not copied.
    pub(crate) fn tell(&mut self, said: &Bytes) {
        if said.len() < SHARED_BYTES_MIN {
            self.output.extend_from_slice(said);
            return;
        }
        if !self.output.is_empty() {
            self.shared.push_back(self.output.split().freeze());
        }
        self.shared.push_back(said.clone());
    }

    /// Whether so much is to be sent that nothing is to be added.
    pub(crate) fn is_behind(&self) -> bool {
        let shared = self.shared.iter().map(Bytes::len).sum::<usize>();
        shared + self.output.len() >= UNSENT_BYTES_MAX
    }

    /// Ready when all is sent.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let first: &[u8] = match self.shared.front() {
                Some(shared) => shared,
                None if self.output.is_empty() => break,
                None => &self.output,
            };
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, first))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            match self.shared.front_mut() {
                Some(shared) => {
                    shared.advance(count);
                    if shared.is_empty() {
                        self.shared.pop_front();
                    }
                }
                None => self.output.advance(count),
            }
            self.sent_bytes += count as u64;
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Gives back buffers that hold nothing.
    pub(crate) fn rest(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        if self.output.is_empty() {
            self.output = BytesMut::new();
        }
        if self.shared.is_empty() {
            self.shared = VecDeque::new();
        }
    }

    /// Sends what is left and says that no more comes.
    pub(crate) async fn end(mut self) {
        let sent = std::future::poll_fn(|context| self.poll_send(context)).await;
        if sent.is_ok() {
            drop(tokio::io::AsyncWriteExt::shutdown(&mut self.stream).await);
        }
    }
}
