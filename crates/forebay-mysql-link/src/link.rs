//! Link: one connection, driven by whoever waits for an answer.
//!
//! Promises: commands are put into the [outbox](Link::outbox) and sent, all in one write where the system takes them, when the next
//! packet is waited for; answers come in the order of the commands, and nothing is lost where a wait for one is dropped; while the
//! server does not take what is sent, what it sends is read, so that neither waits for the other for ever. There is no task and no
//! channel behind it. It knows where in an answer it is, how many are to come, and how the session stands: it may be given to
//! another caller when it [is idle](Link::is_idle), and never before.
//!
//! Knows no statement's meaning, and no value.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use forebay_stream::Stream;
use mysql_common::constants::StatusFlags;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::io::poll_read_buf;

use crate::answer::{Agreed, Answer};
use crate::error::LinkError;
use crate::greeting::Greeting;
use crate::inbox::{Front, Inbox, Taken};
use crate::outbox::Outbox;
use crate::packet::Packet;

/// A connection to MariaDB or MySQL, past its handshake. Dropped while it is [idle](Link::is_idle), it takes its leave if that
/// needs no waiting; otherwise it is closed without a word.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    inbox: Inbox,
    outbox: Outbox,
    answer: Answer,
    row_bytes_max: usize,
    /// Whether the stream may hold back some of what it was given (TLS).
    needs_flush: bool,
    /// Why no more can be sent: what the server had said before is read all the same.
    unsendable: Option<io::Error>,
    is_over: bool,
    connection_id: u32,
    version: (u16, u16, u16),
}

impl Link {
    pub(crate) fn new(stream: Stream, greeting: &Greeting, agreed: Agreed) -> Self {
        Self {
            stream,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            answer: Answer::new(agreed, greeting.status),
            row_bytes_max: usize::MAX,
            needs_flush: false,
            unsendable: None,
            is_over: false,
            connection_id: greeting.connection_id,
            version: greeting.version,
        }
    }

    /// Where commands are put that are to be sent.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Rows longer than this many bytes are [discarded](Packet::DiscardedRow) as they come.
    pub fn discard_rows_beyond(&mut self, row_bytes_max: usize) {
        self.row_bytes_max = row_bytes_max;
    }

    /// Sends what is in the outbox and waits for the next packet of the answer to the first command that is not answered yet.
    ///
    /// # Errors
    /// [`LinkError`]: the link has ended, and says so from now on.
    ///
    /// # Panics
    /// If nothing was asked.
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing is lost: some of the outbox may have been sent, and the next call goes on from there.
    pub async fn next(&mut self) -> Result<Packet<'_>, LinkError> {
        if self.answer.is_over() {
            let question = self.outbox.question().expect("something was asked");
            self.answer.begin(question.kind);
            self.inbox.expect_sequence(question.sequence);
        }
        let front = poll_fn(|context| self.poll_front(context)).await?;
        if let Front::Discarded(length) = front {
            return Ok(Packet::DiscardedRow(length));
        }
        let packet = self.answer.read(self.inbox.lend(front));
        if self.answer.is_over() {
            self.outbox.answered();
        }
        self.is_over |= packet.is_err();
        packet
    }

    /// Sends what is in the outbox, and waits until all of it has gone. What comes meanwhile is kept for [`next`](Self::next).
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// As [`next`](Self::next).
    pub async fn send(&mut self) -> Result<(), LinkError> {
        poll_fn(|context| {
            self.check()?;
            loop {
                if self.poll_send(context).is_ready() {
                    let unsendable = self.unsendable.take();
                    return Poll::Ready(unsendable.map_or(Ok(()), |error| Err(self.ended(error))));
                }
                // It may wait for us to read.
                let read = poll_read_buf(Pin::new(&mut self.stream), context, self.inbox.room());
                if ready!(read).map_err(|error| self.ended(error))? == 0 {
                    return Poll::Ready(Err(self.hung_up()));
                }
            }
        })
        .await
    }

    /// How many commands are not answered yet, or not whole.
    pub fn expected(&self) -> usize {
        self.outbox.unanswered()
    }

    /// Whether the next packet belongs to the same answer as the last one.
    pub fn is_in_answer(&self) -> bool {
        !self.answer.is_over()
    }

    /// How its session stood when the server last said so.
    pub fn status(&self) -> StatusFlags {
        self.answer.status()
    }

    /// Whether a transaction was open when the server last said how its session stands. What fails says nothing of that.
    pub fn is_in_transaction(&self) -> bool {
        self.status().contains(StatusFlags::SERVER_STATUS_IN_TRANS)
    }

    /// Whether all was answered, and no transaction is open: whoever has it next finds nothing of the one before but the
    /// session's state. What is to be sent and is answered by nothing may wait for what is sent next.
    pub fn is_idle(&self) -> bool {
        !self.is_over && !self.is_in_transaction() && self.expected() == 0 && self.inbox.is_empty()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Looks, without waiting, whether the server has hung up while nobody asked: it says nothing then that is not the end.
    pub fn look(&mut self) {
        if self.is_idle() {
            let mut context = Context::from_waker(Waker::noop());
            let read = poll_read_buf(Pin::new(&mut self.stream), &mut context, self.inbox.room());
            self.is_over = read.is_ready();
        }
    }

    /// What the server calls the connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The server's version.
    pub fn version(&self) -> (u16, u16, u16) {
        self.version
    }

    /// Ends the session in good order. What is in the outbox is sent before.
    pub async fn close(mut self) {
        if !self.is_over {
            self.outbox.quit();
            if self.send().await.is_ok() {
                drop(self.stream.shutdown().await);
            }
            self.is_over = true;
        }
    }

    /// Says something of the handshake, and waits for the packet that comes next.
    pub(crate) async fn exchange(&mut self, said: &[u8]) -> Result<&[u8], LinkError> {
        let sequence = self.inbox.sequence();
        self.outbox.put(sequence, said);
        self.inbox.expect_sequence(sequence.wrapping_add(1));
        self.listen().await
    }

    /// Waits for the next packet of the handshake.
    pub(crate) async fn listen(&mut self) -> Result<&[u8], LinkError> {
        let front = poll_fn(|context| self.poll_front(context)).await?;
        Ok(self.inbox.lend(front))
    }

    /// Packets of the handshake have been exchanged up to this place.
    pub(crate) fn go_on_from(&mut self, sequence: u8) {
        self.inbox.expect_sequence(sequence);
    }

    fn poll_front(&mut self, context: &mut Context<'_>) -> Poll<Result<Front, LinkError>> {
        self.check()?;
        let taken = match self.answer.has_rows() {
            true => Taken::RowsUpTo(self.row_bytes_max),
            false => Taken::All,
        };
        loop {
            if let Some(front) = self.inbox.front(taken).inspect_err(|_| self.is_over = true)? {
                return Poll::Ready(Ok(front));
            }
            // Sent or not: what comes is read all the same.
            let _ = self.poll_send(context);
            let read = poll_read_buf(Pin::new(&mut self.stream), context, self.inbox.room());
            match (ready!(read), self.unsendable.take()) {
                (Ok(1..), unsendable) => self.unsendable = unsendable,
                (_, Some(error)) | (Err(error), None) => return Poll::Ready(Err(self.ended(error))),
                (Ok(0), None) => return Poll::Ready(Err(self.hung_up())),
            }
        }
    }

    /// Ready when all was sent, or no more can be.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.unsendable.is_some() || (self.outbox.is_empty() && !self.needs_flush) {
            return Poll::Ready(());
        }
        self.unsendable = ready!(self.poll_write(context)).err();
        Poll::Ready(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outbox.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, self.outbox.unsent()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outbox.sent(count);
            self.needs_flush = true;
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.needs_flush = false;
        Poll::Ready(Ok(()))
    }

    fn ended(&mut self, error: io::Error) -> LinkError {
        self.is_over = true;
        LinkError::Lost(error)
    }

    fn hung_up(&mut self) -> LinkError {
        self.is_over = true;
        LinkError::hung_up()
    }

    fn check(&self) -> Result<(), LinkError> {
        if self.is_over {
            return Err(LinkError::Lost(io::Error::new(
                io::ErrorKind::NotConnected,
                "the link had ended before",
            )));
        }
        Ok(())
    }
}

impl Drop for Link {
    /// The server counts, and logs, who goes without a word.
    fn drop(&mut self) {
        if self.is_idle() {
            self.outbox.quit();
            let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
        }
    }
}
