//! Link: one connection, driven by whoever waits for an answer.
//!
//! Promises: messages are put into the [outbox](Link::outbox) and sent, all in one write where the system takes them, when the
//! next answer is waited for; answers come in the order of the questions, and nothing is lost where a wait for one is dropped;
//! while the server does not take what is sent, what it sends is read, so that neither waits for the other for ever. There is no
//! task and no channel behind it. It knows how the server's transaction stands and how many answers are to come: it may be given
//! to another caller when it [is idle](Link::is_idle), and never before.
//!
//! Knows no statement's meaning, and no value.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use forebay_stream::Stream;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::io::poll_read_buf;

use crate::cancel::{BackendKey, CancelToken};
use crate::error::LinkError;
use crate::inbox::{Front, Inbox};
use crate::message::{Message, Tag};
use crate::outbox::Outbox;
use crate::secret::Challenge;
use crate::server_error::ServerError;

/// How the server's transaction stood when it last said that it was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// There is none.
    Idle,
    /// There is one.
    Open,
    /// There is one, it has failed, and it can only be rolled back.
    Failed,
}

/// A connection to PostgreSQL, past its handshake. Dropped, it is closed without a word.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    inbox: Inbox,
    outbox: Outbox,
    /// Whether the stream may hold back some of what it was given (TLS).
    needs_flush: bool,
    /// How often the server has said that it is ready. `<= outbox.synced()`
    readied: u64,
    status: TransactionStatus,
    /// What the server reports of its settings, in the session's encoding.
    parameters: HashMap<String, Vec<u8>>,
    cancel: CancelToken,
    challenge: Challenge,
    /// Notices of before it was ready for the first time, as they came.
    greeting: BytesMut,
    /// Why no more can be sent: what the server had said before is read all the same.
    unsendable: Option<io::Error>,
    is_over: bool,
}

/// What a link was made of.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parts {
    /// The bytes' way to the server.
    pub stream: Stream,
    /// What came and was not taken: what answers nothing, as a notice.
    pub unread: BytesMut,
    /// What the server reports of its settings, in the session's encoding.
    pub parameters: HashMap<String, Vec<u8>>,
    /// What the server said beside its welcome: messages of notices.
    pub greeting: BytesMut,
    /// To cancel what runs on it.
    pub cancel: CancelToken,
}

impl Link {
    pub(crate) fn new(stream: Stream, cancel: CancelToken) -> Self {
        Self {
            stream,
            inbox: Inbox::new(),
            outbox: Outbox::default(),
            needs_flush: false,
            readied: 0,
            status: TransactionStatus::Idle,
            parameters: HashMap::new(),
            cancel,
            challenge: Challenge::None,
            greeting: BytesMut::new(),
            unsendable: None,
            is_over: false,
        }
    }

    /// Where messages are put that are to be sent.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Rows longer than this many bytes are [discarded](Message::is_discarded) as they come.
    pub fn discard_rows_beyond(&mut self, row_bytes_max: usize) {
        self.inbox.take_at_most(row_bytes_max);
    }

    /// Sends what is in the outbox and waits for the next message, whatever it is.
    ///
    /// # Errors
    /// [`LinkError`]: the link has ended, and says so from now on.
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing is lost: some of the outbox may have been sent, and the next call goes on from there.
    pub async fn next(&mut self) -> Result<Message<'_>, LinkError> {
        let front = poll_fn(|context| self.poll_front(context)).await?;
        self.note(front)?;
        Ok(self.inbox.lend(front))
    }

    /// As [`next`](Self::next), but skips what answers nothing: notices, notifications, and settings, which are
    /// [remembered](Self::parameter).
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// As [`next`](Self::next).
    pub async fn answer(&mut self) -> Result<Message<'_>, LinkError> {
        loop {
            let front = poll_fn(|context| self.poll_front(context)).await?;
            self.note(front)?;
            match self.inbox.peek(front).map(|message| message.tag()) {
                Some(tag) if tag.is_asynchronous() => {
                    let is_greeted = self.readied > 0;
                    let message = self.inbox.lend(front);
                    if tag == Tag::NOTICE_RESPONSE && !is_greeted {
                        keep_notice(&mut self.greeting, message.body());
                    }
                    if tag == Tag::NOTICE_RESPONSE
                        && let Ok(notice) = ServerError::read(&message)
                    {
                        tracing::debug!(code = notice.code, "PostgreSQL: {}", notice.message);
                    }
                }
                _ => return Ok(self.inbox.lend(front)),
            }
        }
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

    /// How often the server has yet to say that it is ready.
    pub fn expected(&self) -> u64 {
        self.outbox.synced() - self.readied
    }

    /// How its transaction stood when it last said so.
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Whether all was sent and answered, and no transaction is open: whoever has it next finds nothing of the one before but
    /// the session's state.
    pub fn is_idle(&self) -> bool {
        !self.is_over
            && self.status == TransactionStatus::Idle
            && self.expected() == 0
            && self.outbox.is_empty()
            && self.inbox.is_empty()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Looks, without waiting, whether the server has hung up while nobody asked. What answers nothing is skipped, as by
    /// [`answer`](Self::answer); anything else is kept, and the link is not [idle](Self::is_idle) then.
    pub fn look(&mut self) {
        let mut context = Context::from_waker(std::task::Waker::noop());
        while !self.is_over {
            match self.inbox.front() {
                Err(_) => self.is_over = true,
                Ok(Some(front)) => match self.inbox.peek(front).map(|message| message.tag()) {
                    Some(tag) if tag.is_asynchronous() => {
                        self.is_over |= self.note(front).is_err();
                        self.inbox.lend(front);
                    }
                    _ => return,
                },
                Ok(None) => match poll_read_buf(Pin::new(&mut self.stream), &mut context, self.inbox.room()) {
                    Poll::Pending => return,
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(Ok(0) | Err(_)) => self.is_over = true,
                },
            }
        }
    }

    /// A setting that the server reports, as `server_version` or `TimeZone`. None also for one that is not UTF-8, as a role's name
    /// can be where another encoding was asked for.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.parameters.get(name)?).ok()
    }

    /// To cancel what it is at, from elsewhere.
    pub fn cancel_token(&self) -> CancelToken {
        self.cancel.clone()
    }

    /// The server's process at its other end.
    pub fn process_id(&self) -> Option<i32> {
        self.cancel.process_id()
    }

    /// Ends the session in good order. What is in the outbox is sent before.
    pub async fn close(mut self) {
        if !self.is_over {
            self.outbox.terminate();
            if self.send().await.is_ok() {
                drop(self.stream.shutdown().await);
            }
        }
    }

    /// Takes it apart, for one who relays its bytes. Nothing may be asked of it and unanswered.
    pub fn into_parts(self) -> Parts {
        Parts {
            unread: self.inbox.into_unread(),
            stream: self.stream,
            parameters: self.parameters,
            greeting: self.greeting,
            cancel: self.cancel,
        }
    }

    /// The handshake ends as a Sync does.
    pub(crate) fn expect_ready(&mut self) {
        self.outbox.pass_on(&[], 1);
    }

    pub(crate) fn keep_key(&mut self, key: BackendKey) {
        self.cancel.keep(key);
    }

    /// How the server asked who the user is.
    pub fn challenge(&self) -> &Challenge {
        &self.challenge
    }

    pub(crate) fn keep_challenge(&mut self, challenge: Challenge) {
        self.challenge = challenge;
    }

    fn poll_front(&mut self, context: &mut Context<'_>) -> Poll<Result<Front, LinkError>> {
        self.check()?;
        loop {
            if let Some(front) = self.inbox.front().inspect_err(|_| self.is_over = true)? {
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

    /// What a message says of the link itself. Seen once: a message is lent as soon as it is noted.
    fn note(&mut self, front: Front) -> Result<(), LinkError> {
        let Some(message) = self.inbox.peek(front) else {
            return Ok(());
        };
        match message.tag() {
            Tag::READY_FOR_QUERY => {
                self.status = match message.body() {
                    b"I" => TransactionStatus::Idle,
                    b"T" => TransactionStatus::Open,
                    b"E" => TransactionStatus::Failed,
                    _ => return Err(self.broke("a ReadyForQuery of an unknown kind")),
                };
                if self.expected() == 0 {
                    return Err(self.broke("a ReadyForQuery that nobody asked for"));
                }
                self.readied += 1;
            }
            Tag::PARAMETER_STATUS => {
                let (name, value) = match message.parameter_status() {
                    Ok(setting) => setting,
                    Err(malformed) => return Err(self.broke(&malformed.to_string())),
                };
                match self.parameters.get_mut(name) {
                    Some(kept) => value.clone_into(kept),
                    None => drop(self.parameters.insert(name.to_owned(), value.to_vec())),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn broke(&mut self, how: &str) -> LinkError {
        self.is_over = true;
        LinkError::Protocol(how.to_owned())
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

/// The message of this body, as it came.
fn keep_notice(kept: &mut BytesMut, body: &[u8]) {
    kept.put_u8(b'N');
    kept.put_u32(u32::try_from(4 + body.len()).expect("what came had a length"));
    kept.put_slice(body);
}
