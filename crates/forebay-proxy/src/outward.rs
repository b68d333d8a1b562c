//! Outward: from the server to the client, message by message.
//!
//! Promises: the client gets what answers what it asked, as it came, and nothing of what answers us; of errors the names of statements are
//! its own. Long messages pass in pieces.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};

use crate::client::Client;
use crate::columns::Columns;
use crate::copying::Failed;
use crate::effects::{self, Row};
use crate::end::End;
use crate::frames::{self, HEADER_BYTES, WHOLE_BYTES_MAX};
use crate::leftovers;
use crate::reading::{InForce, Reading};
use crate::replies::{Asked, Unexpected};
use crate::server::{Note, Server};
use crate::state::State;
use crate::statements::{Shape, in_the_clients_words};

/// So much that is all the client's to see changes hands, where less is copied: the server's buffer for an empty one, which takes what is not
/// whole yet.
const SWAPPED_BYTES_MIN: usize = 16 * 1024;

/// What the server says of a prepared statement that has other columns now than when it was prepared (`RevalidateCachedQuery` in its `plancache.c`).
const RESULT_HAS_CHANGED: &[u8] = b"SERROR\0VERROR\0C0A000\0Mcached plan must not change result type\0\0";

/// An empty buffer keeps no more than this.
const KEPT_BYTES: usize = 64 * 1024;

const SYNTAX_ERROR: &[u8] = b"42601";

impl State {
    /// The client is told this error.
    fn count_error(&self, body: &[u8]) {
        let code = frames::field(body, b'C').and_then(|code| std::str::from_utf8(code).ok());
        self.registration.counters().told(code.unwrap_or_default());
    }

    /// Takes what came from the server, as far as it is whole.
    pub(crate) fn pass_out(&mut self, client: &mut Client, server: &mut Server) -> Result<(), End> {
        // Where what is to be passed on, and has not been yet, begins and ends.
        let mut from = 0;
        let mut at = 0;
        loop {
            if self.passing_out > 0 {
                let here = self.passing_out.min(server.input.len() - at);
                if !self.is_passing_visible {
                    client.output.extend_from_slice(&server.input[from..at]);
                    from = at + here;
                }
                at += here;
                self.passing_out -= here;
                if self.passing_out > 0 {
                    break;
                }
            }
            let bytes = &server.input[at..];
            let Some(frame) = frames::frame(bytes).map_err(|bad| Unexpected(bad.0))? else {
                break;
            };
            let here = frame.length.min(bytes.len());
            if here < frame.length
                && (here < WHOLE_BYTES_MAX
                    || matches!(frame.tag, b'S' | b'E')
                    || self.is_learning
                    || server.replies.is_at(Note::looks_at_shape))
            {
                break;
            }
            if frame.tag == b'E' && frames::ends_the_session(&bytes[HEADER_BYTES..here]) {
                // Whatever was asked last, and whoever asked it: it is the server's last word.
                server.is_over = true;
                self.count_error(&bytes[HEADER_BYTES..here]);
                client.output.extend_from_slice(&server.input[from..at + here]);
                return Err(End::LastWord);
            }
            let reply = server.replies.receive(frame.tag, &mut self.undone)?;
            let is_visible = reply.is_visible;
            let mut copying = Failed::Nothing;
            if frame.tag == b'C' && is_visible {
                let resets = bytes[HEADER_BYTES..here] == *b"RESET\0";
                self.unknown_settings.is_done(reply.place, resets);
                self.numbers.ended(&bytes[HEADER_BYTES..here]);
                self.watch.is_of_all_databases |= effects::is_of_all_databases(&bytes[HEADER_BYTES..here]);
                self.has_done();
            }
            match frame.tag {
                b'Z' => {
                    server.status = bytes[HEADER_BYTES];
                    if is_visible {
                        self.first_answered.get_or_insert_with(Instant::now);
                    }
                    if server.status == b'I' {
                        self.unknown_settings.are_as_they_are();
                        self.tell_changes();
                        self.has_done();
                        // What is sent already is of the next one.
                        server.may_be_set_back(server.replies.is_told_all());
                        if server.replies.is_empty() {
                            self.begins_anew();
                            if !self.is_suspect && !self.is_asking {
                                server.in_force = InForce::Settled;
                            }
                        }
                    }
                    // What comes for it now comes late.
                    self.owes_cancel &= !is_visible;
                }
                b'S' => {
                    client.output.extend_from_slice(&server.input[from..at]);
                    from = at;
                    let whole = server.input.split_to(at);
                    drop(whole);
                    server.report(here);
                    from -= at;
                    at = 0;
                    if is_visible {
                        self.told = Arc::clone(&server.reported);
                    }
                }
                b'D' if self.is_asking && !is_visible => {
                    self.leftovers.take(&bytes[..here], self.pool.user(), server.is_used_up);
                }
                b'D' if !is_visible && server.replies.is_at(|note| matches!(note, Note::Reading { .. })) => {
                    self.shown = leftovers::value(&bytes[HEADER_BYTES..here]).map(str::to_owned);
                }
                b'D' if !is_visible && server.replies.is_at(|note| matches!(note, Note::Effects)) => {
                    if let (Some(learnt), Some(row)) = (&mut self.learnt, Row::read(&bytes[..here])) {
                        learnt.push(row);
                    }
                }
                b'E' if !is_visible && server.replies.is_at(|note| matches!(note, Note::Effects)) => {
                    self.learns_nothing();
                }
                // Its own time limit, or a cancel that came late: what is left is not known.
                b'E' if self.is_asking && !is_visible => self.leftovers.is_refused = true,
                b'E' if !is_visible => return Err(End::Settings),
                b't' => {
                    if let Some(Note::Describes(described)) = server.replies.note() {
                        let described = described.clone();
                        let types = Bytes::copy_from_slice(&bytes[HEADER_BYTES..here]);
                        self.is_told_types(&described, &types, server);
                    }
                }
                b'E' => {
                    self.numbers.failed();
                    let is_no_sql = frames::field(&bytes[HEADER_BYTES..here], b'C') == Some(SYNTAX_ERROR);
                    let is_awaited = |place| server.replies.is_awaited(place);
                    self.unknown_settings.have_failed(reply.place, is_no_sql, is_awaited);
                    let is_unknown = |body| frames::field(body, b'C') == Some(b"26000");
                    let (body, name, is_changed) = match &reply.failed {
                        Some(Note::Changed { name, .. }) if is_unknown(&bytes[HEADER_BYTES..here]) => {
                            (RESULT_HAS_CHANGED, Some(name), true)
                        }
                        Some(Note::Named { name, .. }) => (&bytes[HEADER_BYTES..here], Some(name), false),
                        failed => {
                            let name = failed.as_ref().and_then(Note::used).map(|(name, _)| name);
                            (&bytes[HEADER_BYTES..here], name, false)
                        }
                    };
                    self.count_error(body);
                    copying = self
                        .copying
                        .fail(reply.place, frames::field(body, b'C').unwrap_or_default());
                    if let Some((name, number)) = reply.failed.as_ref().and_then(Note::used) {
                        self.heal(name, number, body, &mut server.prepared);
                    }
                    let said = match is_changed {
                        true => Some(body.to_vec()),
                        false => name.and_then(|name| in_the_clients_words(body, name)),
                    };
                    if let Some(said) = said {
                        client.output.extend_from_slice(&server.input[from..at]);
                        // Before the server looks at its columns, it tells the types of its parameters.
                        if let Some(Note::Changed { described, .. }) = &reply.failed
                            && let Some(types) = described.as_ref().and_then(|statement| statement.types_described())
                        {
                            frames::put(&mut client.output, b't', &[types]);
                        }
                        frames::put(&mut client.output, b'E', &[&said]);
                        from = at + here;
                    }
                }
                b'C' if is_visible && bytes[HEADER_BYTES..here] == *b"DISCARD ALL\0" => {
                    self.discarded(server);
                    server.is_used_up |= std::mem::take(&mut self.is_pinned);
                    self.unknown_settings.are_reset(reply.place);
                }
                // To a savepoint, perhaps.
                b'C' if is_visible && bytes[HEADER_BYTES..here] == *b"ROLLBACK\0" => self.unknown_settings.are_undone(),
                b'C' if is_visible && bytes[HEADER_BYTES..here] == *b"DEALLOCATE ALL\0" => self.discarded(server),
                // The next one may have begun.
                b'C' if is_visible && bytes[HEADER_BYTES..here] == *b"COMMIT\0" => self.tell_changes(),
                b'C' if is_visible && effects::may_change(&bytes[HEADER_BYTES..here]) => {
                    self.pool.effects.has_changed_tables(&bytes[HEADER_BYTES..here]);
                    self.changed.push(Bytes::copy_from_slice(&bytes[HEADER_BYTES..here]));
                }
                _ => {}
            }
            if !is_visible {
                client.output.extend_from_slice(&server.input[from..at]);
                from = at + here;
            }
            at += here;
            self.passing_out = frame.length - here;
            self.is_passing_visible = is_visible;
            if frame.tag == b'E' {
                server.prepared.failed_at(reply.place);
                server.may_be_set_back(false);
                for note in std::mem::take(&mut self.undone) {
                    self.undo(Some(note), server);
                }
                match reply.failed {
                    // The server drops the unnamed statement before it looks at the next.
                    Some(Note::Named { name, place, .. }) if name.is_empty() => {
                        self.names.undo(name, (self.lease, place), None);
                    }
                    failed => self.undo(failed, server),
                }
                if copying == Failed::SyncIsDue {
                    frames::put(&mut server.output, b'S', &[]);
                    self.ask(server, Asked::Sync, false, None);
                }
                if copying == Failed::Uncertain || server.replies.is_uncertain() {
                    client.output.extend_from_slice(&server.input[from..at]);
                    return Err(End::Uncertain);
                }
            }
            match reply.done {
                Some(Note::Set) => {
                    client.output.extend_from_slice(&server.input[from..at]);
                    from = at;
                    if !self.is_learning {
                        self.is_reached_by_cancels(server);
                    }
                    self.tell(client, server);
                }
                Some(Note::Leftovers) => self.settle_up(server),
                Some(Note::Effects) => self.learn(server),
                Some(Note::Reading { name }) => {
                    if let Some(value) = self.shown.take() {
                        self.read_by.set(name, &value);
                    }
                }
                Some(Note::Read) => {
                    let reading = Reading::of(std::mem::take(&mut self.read_by));
                    server.in_force = InForce::Known(reading);
                }
                Some(Note::Discarded) => server.plans.are_discarded(),
                Some(Note::Named { name, place, .. }) => self.names.decided(&name, (self.lease, place)),
                Some(Note::Queried { place, deallocated, .. }) => {
                    let at = (self.lease, place);
                    self.names.decided(&[], at);
                    if !reply.had_error {
                        self.unknown_settings.text_is_done(place);
                        if server.status == b'I' {
                            self.unknown_settings.are_as_they_are();
                        }
                    }
                    match deallocated {
                        Some((name, before)) if reply.had_error => self.names.undo(name, at, before),
                        Some((name, _)) => self.names.decided(&name, at),
                        None => {}
                    }
                }
                Some(Note::Describes(described)) => {
                    if let Some(columns) = Columns::by(frame.tag, &server.input[at - here + HEADER_BYTES..at]) {
                        self.names.is_told(&described, columns);
                        if !described.is_unnamed {
                            let number = described.statement.number();
                            server.prepared.set_shape(number, Shape::Known(columns));
                        }
                    }
                }
                Some(Note::Proves { statement }) => {
                    let description = &server.input[at - here + HEADER_BYTES..at];
                    // What cannot be told is not what anybody was told.
                    let columns = Columns::by(frame.tag, description).unwrap_or(Columns::NONE);
                    server.prepared.set_shape(statement.number(), Shape::Known(columns));
                    self.proven = Some(statement.number());
                }
                Some(Note::Prepared { .. } | Note::Evicted { .. } | Note::Uses { .. } | Note::Changed { .. })
                | None => {}
            }
        }
        if from == 0 && at >= SWAPPED_BYTES_MIN && client.output.is_empty() {
            client.output.extend_from_slice(&server.input[at..]);
            server.input.truncate(at);
            std::mem::swap(&mut client.output, &mut server.input);
        } else {
            client.output.extend_from_slice(&server.input[from..at]);
            server.input.advance(at);
        }
        if server.input.is_empty() && server.input.capacity() > KEPT_BYTES {
            server.input = BytesMut::new();
        }
        Ok(())
    }
}
