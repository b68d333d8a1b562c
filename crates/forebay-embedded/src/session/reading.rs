//! Reading portals on: their rows in pieces, and the connection that they read from.
//!
//! Promises: a portal goes on behind the last row that was sent; what is gathered of portals has a bound. A session that holds a reading
//! connection never waits long for another. Knows no messages but those that end a portal's rows.

use std::time::Duration;

use forebay_sqlite::connection::{self, Progress, Reader, Session as Connection};
use forebay_write::{CancelToken, WriteError};

use super::Session;
use super::prepared::{OpenCursor, Portal, PortalState, Source};
use super::rows::{self, Failed, Piece};
use super::stop::Stop;
use super::timeouts::too_old;
use crate::errors;
use crate::sql::Statement;
use forebay_pg_wire::backend;
use forebay_pg_wire::error::WireError;

/// The longest a session that holds a reading connection waits for another one.
const HOLDERS_WAIT_MAX: Duration = Duration::from_secs(1);

impl Session {
    pub(super) async fn go_on_reading(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        token: &CancelToken,
        rows_max: u64,
    ) -> Result<(), Stop> {
        let PortalState::Open(cursor) = std::mem::replace(&mut portal.state, PortalState::Done) else {
            unreachable!("the caller has looked");
        };
        let piece = self.fetch(portal, &cursor, token, rows_max).await?;
        self.send_pieces(portal, statement, cursor, piece, token, rows_max)
            .await
    }

    /// Sends piece after piece until the row limit or the end.
    pub(super) async fn send_pieces(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        mut cursor: OpenCursor,
        mut piece: Piece,
        token: &CancelToken,
        rows_max: u64,
    ) -> Result<(), Stop> {
        let mut sent = 0;
        loop {
            sent += piece.rows;
            self.output.append(piece.bytes);
            match piece.end {
                Err(Failed::Encoding(error)) => return Err(error.into()),
                Err(Failed::Statement(error)) => {
                    return Err(errors::write(error, statement, &portal.prepared.script).into());
                }
                Ok(Progress::Done) => {
                    portal.state = PortalState::Done;
                    let tag = if portal.prepared.shape.columns.is_empty() {
                        statement.tag.render(0)
                    } else {
                        statement.tag.render(sent)
                    };
                    backend::command_complete(&mut self.output.pending, &tag);
                    return Ok(());
                }
                Ok(Progress::Paused) if sent >= rows_max => {
                    portal.state = PortalState::Open(cursor);
                    backend::portal_suspended(&mut self.output.pending);
                    return Ok(());
                }
                Ok(Progress::Paused) => {
                    self.send_before_reading_on(&mut cursor, token).await?;
                    piece = self.fetch(portal, &cursor, token, rows_max - sent).await?;
                }
            }
        }
    }

    async fn fetch(
        &mut self,
        portal: &Portal,
        cursor: &OpenCursor,
        token: &CancelToken,
        rows_max: u64,
    ) -> Result<Piece, Stop> {
        let encoding = portal
            .prepared
            .shape
            .encoding(&portal.formats, self.value_environment());
        let (number, watched) = (cursor.number, token.clone());
        let job = move |connection: &mut Connection| rows::fetch(connection, number, &watched, &encoding, rows_max);
        self.on_source(&cursor.source, token, job).await
    }

    pub(super) async fn send_gathered(
        &mut self,
        portal: &mut Portal,
        statement: &Statement,
        rows_max: u64,
    ) -> Result<(), Stop> {
        let encoding = portal
            .prepared
            .shape
            .encoding(&portal.formats, self.value_environment());
        let PortalState::Gathered { rows } = &mut portal.state else {
            unreachable!("the caller has looked");
        };
        let mut sent = 0;
        while sent < rows_max {
            let Some(row) = rows.pop_front() else {
                let tag = statement.tag.render(sent);
                portal.state = PortalState::Done;
                backend::command_complete(&mut self.output.pending, &tag);
                return Ok(());
            };
            rows::encode_gathered(&row, &encoding, &mut self.output.pending)?;
            sent += 1;
            self.send_if_large().await?;
        }
        backend::portal_suspended(&mut self.output.pending);
        Ok(())
    }

    /// Where a statement that reads now reads from.
    pub(super) async fn source(&mut self, token: &CancelToken) -> Result<Source, Stop> {
        if let Some(block) = &mut self.block {
            if block.is_expired() && !block.failed {
                return Err(too_old().into());
            }
            if block.needs_one_state() && !block.failed {
                if !block.read_only {
                    let _wanting = self.locks.wanting_to_write();
                    block
                        .writing(&self.shared.sqlite, token, self.settings.lock_timeout())
                        .await?;
                } else if block.snapshot().is_none() {
                    let reader = reader(&self.shared.sqlite, token).await?;
                    reader.hold_snapshot().await?;
                    block.hold_snapshot(reader);
                }
            }
            if block.write().is_some() || block.snapshot().is_some() {
                return Ok(Source::Block);
            }
        }
        let taken = reader(&self.shared.sqlite, token);
        if !self.portals.values().any(Portal::holds_reader) {
            return Ok(Source::Own(taken.await?));
        }
        // Who holds and waits for more may wait for itself, or for one who waits for it.
        match tokio::time::timeout(HOLDERS_WAIT_MAX, taken).await {
            Ok(taken) => Ok(Source::Own(taken?)),
            Err(_) => Err(WireError::new(
                "53000",
                "all reading connections are in use, some of them by this session's portals",
            )
            .with_hint("Read portals to their end or close them; or raise --readers.")
            .into()),
        }
    }

    /// Reads what is left of the portals that read inside the block's transaction: what is written now is not theirs to see.
    pub(super) async fn settle_portals(&mut self, token: &CancelToken) -> Result<(), Stop> {
        if self.block.as_ref().is_none_or(|block| block.write().is_none()) {
            return Ok(());
        }
        let mut portals = std::mem::take(&mut self.portals);
        let mut settled = Ok(());
        for name in portals.keys().cloned().collect::<Vec<String>>() {
            let bytes_left = self.bytes_left(portals.values());
            let portal = portals.get_mut(&name).expect("it was there");
            let inside = matches!(
                portal.state,
                PortalState::Open(OpenCursor {
                    source: Source::Block,
                    ..
                })
            );
            if inside {
                settled = self.gather_rest(portal, bytes_left, token).await;
            }
            if settled.is_err() {
                break;
            }
        }
        self.portals = portals;
        settled
    }

    /// What these portals leave of the memory for rows that are gathered.
    pub(super) fn bytes_left<'a>(&self, portals: impl Iterator<Item = &'a Portal>) -> usize {
        let kept = portals.map(Portal::kept_bytes).sum::<usize>();
        self.shared.limits.max_result_bytes.saturating_sub(kept)
    }

    /// Reads what is left of an open portal, and gives back what it read from.
    pub(super) async fn gather_rest(
        &self,
        portal: &mut Portal,
        bytes_left: usize,
        token: &CancelToken,
    ) -> Result<(), Stop> {
        let PortalState::Open(OpenCursor { number, source, .. }) = &portal.state else {
            return Ok(());
        };
        let (number, watched) = (*number, token.clone());
        let gathered = self
            .on_source(source, token, move |connection| {
                rows::gather(connection, number, &watched, u64::MAX, Some(bytes_left))
            })
            .await?;
        let Some(gathered) = gathered? else {
            let bytes_max = self.shared.limits.max_result_bytes;
            let message = format!("what is left to read of the open portals takes more than {bytes_max} bytes");
            return Err(WireError::new("54000", message)
                .with_hint(
                    "Read them to their end before writing in the same transaction, and without SCROLL and WITH HOLD.",
                )
                .into());
        };
        portal.gathered_bytes = gathered.bytes;
        portal.state = PortalState::Gathered {
            rows: gathered.rows.into(),
        };
        Ok(())
    }

    /// Does a job on the connection a source names.
    pub(super) async fn on_source<T: Send + 'static>(
        &self,
        source: &Source,
        token: &CancelToken,
        job: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let block = self.block.as_ref();
        let result = match (
            source,
            block.and_then(|block| block.write()),
            block.and_then(|block| block.snapshot()),
        ) {
            (Source::Own(reader), ..) => reader.run(token, job).await,
            (Source::Block, Some(transaction), _) => connection::run(transaction, token, job).await,
            (Source::Block, None, Some(reader)) => reader.run(token, job).await,
            (Source::Block, None, None) => {
                let message = "the cursor's transaction has ended";
                return Err(WireError::new("34000", message).into());
            }
        };
        Ok(result?)
    }
}

async fn reader(sqlite: &forebay_sqlite::Sqlite, token: &CancelToken) -> Result<Reader, WriteError> {
    tokio::select! {
        biased;
        reader = connection::reader(sqlite) => reader,
        error = token.fired() => Err(error),
    }
}
