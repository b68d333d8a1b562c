//! Waiting for the client: for its next message, or until it has taken what it was sent; what may end that, and what a session gives up
//! meanwhile.
//!
//! Promises: a session that waits holds nothing for long that others need. A transaction or a cursor that somebody waits for ends with it after
//! the idle time-out; a snapshot, which keeps the write-ahead log from being emptied, is given up after the snapshot time-out; a reading
//! connection whose client takes nothing does not count as in use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_sqlite::Sqlite;
use forebay_write::CancelToken;
use tokio::sync::watch;

use super::Session;
use super::block::Block;
use super::prepared::{OpenCursor, Portal, PortalState, Source};
use super::stop::{Stop, shut_down};
use super::timeouts::{elapsed, too_old};
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::frontend::{FrameError, Frontend};
use forebay_pg_wire::phase::Phase;

/// How often a session that has waited for too long looks whether somebody waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A client that has taken nothing for this long is not waited for with a reading connection in use.
const STALLED_AFTER: Duration = Duration::from_millis(100);

/// How long such a client is borne where its reading connection cannot be put aside and others wait for one.
const CROWDED_MAX: Duration = Duration::from_secs(1);

/// What woke a session that waited.
pub(super) enum Event {
    Message(Result<Option<Frontend>, FrameError>),
    End(WireError),
}

impl Session {
    /// The next message; or, while there is none, the reason to end. `patience` is how long it is waited for at all.
    pub(super) async fn next_event(&mut self, patience: Option<Duration>) -> Event {
        if self.input.buffered().is_some() && self.is_serving() {
            // Nothing of the below can come before it.
            tokio::task::coop::consume_budget().await;
            return Event::Message(self.input.next().await);
        }
        loop {
            let (mut sent_away, left) = (self.sent_away(), self.snapshots_may_wait());
            sent_away.patience = patience;
            let begun = left.map(|_| Instant::now());
            let inbox = Arc::clone(&self.ears.inbox);
            let may_be_told = self.block.is_none() && !self.in_group && self.ears.is_listening();
            let event = tokio::select! {
                biased;
                error = sent_away.by_the_server() => Some(Event::End(error)),
                message = self.input.next() => Some(Event::Message(message)),
                error = sent_away.by_idling() => Some(Event::End(error)),
                () = elapsed(left) => None,
                () = inbox.arrived.notified(), if may_be_told => {
                    self.ears.hear(&mut self.output.pending);
                    match self.send().await {
                        Ok(()) => None,
                        Err(Stop::Error(error)) => Some(Event::End(error)),
                        Err(Stop::Gone(error)) => Some(Event::Message(Err(FrameError::Lost(error)))),
                    }
                }
            };
            self.snapshots_waited(begun);
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// The kind of the next message, which stays where it is. Waits no longer than for the message itself.
    pub(super) async fn next_kind(&mut self) -> Result<u8, Stop> {
        if let Some(kind) = self.input.buffered().filter(|_| self.is_serving()) {
            return Ok(kind);
        }
        loop {
            let (sent_away, left) = (self.sent_away(), self.snapshots_may_wait());
            let begun = left.map(|_| Instant::now());
            let kind = tokio::select! {
                biased;
                error = sent_away.by_the_server() => return Err(Stop::Error(error)),
                kind = self.input.next_kind() => Some(kind?),
                error = sent_away.by_idling() => return Err(Stop::Error(error)),
                () = elapsed(left) => None,
            };
            self.snapshots_waited(begun);
            if let Some(kind) = kind {
                return kind.ok_or_else(|| Stop::Gone(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends all that has gathered.
    pub(super) async fn send(&mut self) -> Result<(), Stop> {
        if !self.holds_what_others_need() {
            return Ok(self.output.flush(self.input.stream_mut()).await?);
        }
        let sent_away = self.sent_away();
        tokio::select! {
            biased;
            sent = self.output.flush(self.input.stream_mut()) => Ok(sent?),
            error = sent_away.by_idling() => Err(Stop::Error(error)),
        }
    }

    /// Sends all, if a good deal has gathered.
    pub(super) async fn send_if_large(&mut self) -> Result<(), Stop> {
        if self.output.is_large() {
            self.send().await
        } else {
            Ok(())
        }
    }

    /// Sends all while a cursor is open, before more is read from it. A reading connection stands aside meanwhile.
    pub(super) async fn send_before_reading_on(
        &mut self,
        cursor: &mut OpenCursor,
        token: &CancelToken,
    ) -> Result<(), Stop> {
        let begun = Instant::now();
        let sent_away = self.sent_away();
        let reader = match (&mut cursor.source, &mut self.block) {
            (Source::Own(reader), _) => Some(reader),
            (Source::Block, Some(block)) => block.snapshot_mut(),
            (Source::Block, None) => None,
        };
        let sending = self.output.flush(self.input.stream_mut());
        tokio::pin!(sending);
        tokio::select! {
            biased;
            sent = &mut sending => return Ok(sent?),
            () = tokio::time::sleep(STALLED_AFTER) => {}
        }
        let Some(reader) = reader else {
            // The right to write cannot be put aside.
            return tokio::select! {
                biased;
                sent = &mut sending => Ok(sent?),
                error = sent_away.by_idling() => Err(Stop::Error(error)),
            };
        };
        if reader.step_aside() {
            sending.await?;
        } else {
            tokio::select! {
                biased;
                sent = &mut sending => sent?,
                error = crowded_out(&sent_away.sqlite) => return Err(Stop::Error(error)),
            }
        }
        cursor.waited += begun.elapsed();
        if self
            .shared
            .limits
            .idle_snapshot_timeout
            .is_some_and(|longest| cursor.waited >= longest)
        {
            return Err(Stop::Error(too_old()));
        }
        tokio::select! {
            biased;
            back = reader.step_back() => Ok(back?),
            error = token.fired() => Err(error.into()),
        }
    }

    /// How long the client may leave its transaction idle by its own `idle_in_transaction_session_timeout`. Between the messages of a
    /// group a transaction is not idle.
    pub(super) fn patience(&self) -> Option<Duration> {
        let idle = self.block.is_some() && !self.in_group;
        idle.then(|| self.settings.idle_in_transaction_session_timeout())
            .flatten()
    }

    /// Whether the server goes on: then nothing of it ends this session.
    fn is_serving(&self) -> bool {
        *self.shared.phase.borrow() == Phase::Serving
    }

    fn holds_what_others_need(&self) -> bool {
        self.portals.values().any(Portal::holds_reader) || self.block.as_ref().is_some_and(Block::holds_something)
    }

    /// What ends the session while it waits for its client, as things are now.
    fn sent_away(&self) -> SentAway {
        let holds = self.holds_what_others_need();
        SentAway {
            phase: self.shared.phase.clone(),
            inside: self.block.is_some(),
            grace: self.in_group.then_some(self.shared.limits.sync_grace),
            patience: None,
            idle_timeout: self.shared.limits.idle_transaction_timeout.filter(|_| holds),
            sqlite: self.shared.sqlite.clone(),
        }
    }

    /// How long it may still wait with all the snapshots that it holds; none if it may for ever.
    fn snapshots_may_wait(&mut self) -> Option<Duration> {
        let longest = self.shared.limits.idle_snapshot_timeout?;
        let held = self
            .block
            .as_mut()
            .and_then(Block::snapshot_waited)
            .map(|waited| *waited);
        let oldest = self.portals.values().filter_map(Portal::waited).chain(held).max()?;
        Some(longest.saturating_sub(oldest))
    }

    /// Counts what was waited since, and gives up the snapshots that have waited for too long.
    fn snapshots_waited(&mut self, begun: Option<Instant>) {
        let (Some(begun), Some(longest)) = (begun, self.shared.limits.idle_snapshot_timeout) else {
            return;
        };
        let elapsed = begun.elapsed();
        for portal in self.portals.values_mut() {
            if !portal.holds_reader() {
                continue;
            }
            let PortalState::Open(cursor) = &mut portal.state else {
                continue;
            };
            cursor.waited += elapsed;
            if cursor.waited >= longest {
                portal.state = PortalState::Expired;
            }
        }
        if let Some(block) = &mut self.block
            && let Some(waited) = block.snapshot_waited()
        {
            *waited += elapsed;
            if *waited >= longest {
                block.expire();
            }
        }
    }
}

impl Portal {
    /// How long its snapshot has waited for the client; none if it holds no snapshot of its own.
    fn waited(&self) -> Option<Duration> {
        match &self.state {
            PortalState::Open(OpenCursor {
                source: Source::Own(_),
                waited,
                ..
            }) => Some(*waited),
            _ => None,
        }
    }
}

/// Completes when a client that takes nothing keeps a reading connection that others wait for.
async fn crowded_out(sqlite: &Sqlite) -> WireError {
    tokio::time::sleep(CROWDED_MAX).await;
    while !sqlite.is_waited_for() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    WireError::fatal(
        "53000",
        "terminating connection that takes no results while others wait for its reading connection",
    )
    .with_hint("Read results as they come, or raise --readers.")
}

/// What ends a session that waits for its client.
struct SentAway {
    phase: watch::Receiver<Phase>,
    /// Inside a transaction, which it may finish.
    inside: bool,
    /// Inside a group of messages, whose Sync may come within this time.
    grace: Option<Duration>,
    /// How long it may wait at all.
    patience: Option<Duration>,
    /// How long it may wait, if it holds what others may wait for.
    idle_timeout: Option<Duration>,
    /// Knows whether somebody does.
    sqlite: Sqlite,
}

impl SentAway {
    async fn by_the_server(&self) -> WireError {
        let must_leave = |phase: &Phase| match phase {
            Phase::Serving => false,
            Phase::Draining => !self.inside,
            Phase::Stopping => true,
        };
        // A server that is gone (the channel is closed) has stopped too.
        let _ = self.phase.clone().wait_for(must_leave).await;
        if let Some(grace) = self.grace {
            // What was acknowledged is to end in ReadyForQuery: else its client takes it for failed.
            tokio::time::sleep(grace).await;
        }
        shut_down()
    }

    async fn by_idling(&self) -> WireError {
        let ended = || WireError::fatal("25P03", "terminating connection due to idle-in-transaction timeout");
        let in_the_way = async {
            elapsed(self.idle_timeout).await;
            while !self.sqlite.is_waited_for() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            biased;
            () = elapsed(self.patience) => ended(),
            () = in_the_way => {
                ended().with_hint("An open transaction or cursor holds what others wait for; end it sooner.")
            }
        }
    }
}
