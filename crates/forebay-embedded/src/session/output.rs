//! What is to be sent to the client, and the bound on how long the client may take none of it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::cancel::Running;

/// Sent as soon as this much has gathered, whatever comes behind.
const GATHER_BYTES: usize = 64 * 1024;

/// How long a client that was told why it must go may go on sending.
const LET_FINISH_MAX: Duration = Duration::from_secs(10);

/// Gathers messages, and sends them.
pub(super) struct Output {
    /// Messages not sent yet that come before `pending`.
    before: BytesMut,
    /// Messages not sent yet.
    pub(super) pending: BytesMut,
    stall_timeout: Duration,
    /// Is told while messages are being sent.
    running: Arc<Running>,
}

impl Output {
    pub(super) fn new(pending: BytesMut, stall_timeout: Duration, running: Arc<Running>) -> Self {
        Self {
            before: BytesMut::new(),
            pending,
            stall_timeout,
            running,
        }
    }

    /// Appends what was encoded elsewhere.
    pub(super) fn append(&mut self, bytes: BytesMut) {
        if self.pending.is_empty() {
            self.pending = bytes;
        } else if self.before.is_empty() && bytes.len() > self.pending.len() {
            // A large value is not copied for the sake of a few words before it.
            self.before = std::mem::replace(&mut self.pending, bytes);
        } else {
            self.pending.extend_from_slice(&bytes);
        }
    }

    /// Takes the last CommandComplete back, if it has not been sent.
    pub(super) fn take_back_completion(&mut self) {
        let (mut at, mut last) = (0, None);
        while let Some(&[kind, a, b, c, d]) = self.pending.get(at..).and_then(|rest| rest.first_chunk()) {
            let end = at + 1 + u32::from_be_bytes([a, b, c, d]) as usize;
            if kind == b'C' {
                last = Some((at, end));
            }
            at = end;
        }
        if let Some((start, end)) = last {
            let behind = self.pending.split_off(end);
            self.pending.truncate(start);
            self.pending.unsplit(behind);
        }
    }

    /// Whether so much has gathered that it is to be sent, whatever comes behind.
    pub(super) fn is_large(&self) -> bool {
        self.before.len() + self.pending.len() >= GATHER_BYTES
    }

    /// Sends all. A client that takes nothing for the stall timeout is given up.
    pub(super) async fn flush(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if self.before.is_empty() && self.pending.is_empty() {
            return Ok(());
        }
        let _sending = self.running.sending();
        let stalled = || io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing");
        for messages in [&mut self.before, &mut self.pending] {
            while !messages.is_empty() {
                match tokio::time::timeout(self.stall_timeout, stream.write(messages)).await {
                    Err(_) => return Err(stalled()),
                    Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(Ok(count)) => messages.advance(count),
                    Ok(Err(error)) => return Err(error),
                }
            }
            // A large result's memory is given back.
            if messages.capacity() > GATHER_BYTES {
                *messages = BytesMut::new();
            }
        }
        // TLS keeps what was written until it is told.
        match tokio::time::timeout(self.stall_timeout, stream.flush()).await {
            Ok(flushed) => flushed,
            Err(_) => Err(stalled()),
        }
    }

    /// Sends all, and says that nothing more comes.
    pub(super) async fn close(&mut self, stream: &mut (impl AsyncWrite + Unpin)) {
        let flushed = self.flush(stream).await;
        if flushed.is_ok() {
            // Nothing is left to say to a client that does not answer.
            let _ = tokio::time::timeout(self.stall_timeout, stream.shutdown()).await;
        }
    }
}

/// Reads and forgets what a client still sends, until it has sent all, for a bounded time. A socket that is closed with bytes
/// unread is reset, and the reset may overtake the last words that the client has not read yet.
pub(super) async fn let_finish(stream: &mut (impl AsyncRead + Unpin)) {
    let mut forgotten = vec![0; 64 * 1024];
    let reading = async { while matches!(stream.read(&mut forgotten).await, Ok(count) if count > 0) {} };
    let _ = tokio::time::timeout(LET_FINISH_MAX, reading).await;
}
