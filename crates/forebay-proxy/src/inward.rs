//! Inward: from the client to the server, message by message.
//!
//! Promises: what the server gets is what the client sent, but for the names of statements, and for what we ask beside it. A message that
//! stands on what is not decided yet waits. Long messages pass in pieces.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use forebay_sql::plans_nothing;

use crate::client::Client;
use crate::columns::Columns;
use crate::console::Command;
use crate::end::End;
use crate::frames::{self, HEADER_BYTES};
use crate::leaves::{Leaves, may_prepare, may_take_back, resets_all};
use crate::plans::HangOn;
use crate::pool::PoolMode;
use crate::position;
use crate::reading::{InForce, Reading};
use crate::replies::Asked;
use crate::server::{Note, Server};
use crate::state::{State, Upsetting};
use crate::statements::{
    Shape, Statement, Unnamed, asks_for_numbers, changed_name, deallocated, executed, is_read_by_settings,
    may_change_tables, may_end_a_transaction, may_set_reading, server_name, text_of,
};

/// No types of parameters, as a Parse has them at its end, and a ParameterDescription.
const NO_TYPES: [u8; 2] = [0; 2];

/// Numbers below are PostgreSQL's own (`FirstNormalObjectId` in `transam.h`).
const FIRST_OF_USERS: u32 = 16_384;

/// The number that `set_config` has in every PostgreSQL.
const SET_CONFIG: [u8; 4] = 2078_u32.to_be_bytes();

/// Whether a function that is called by its number is PostgreSQL's own.
fn is_of_the_server(call: &[u8]) -> bool {
    let number = call.first_chunk().map(|number| u32::from_be_bytes(*number));
    number.is_some_and(|number| number < FIRST_OF_USERS)
}

impl State {
    /// Takes what came from the client, as far as it is whole.
    pub(crate) fn pass_in(&mut self, client: &mut Client, server: &mut Server) -> Result<(), End> {
        self.has_command = false;
        loop {
            if self.tell_inside(client, server) {
                continue;
            }
            if self.waits_for_memory(client, server) {
                return Ok(());
            }
            let input = &mut client.input;
            if self.passing_in > 0 {
                let here = self.passing_in.min(input.len());
                server.output.extend_from_slice(&input[..here]);
                input.advance(here);
                self.passing_in -= here;
                if self.passing_in > 0 {
                    return Ok(());
                }
            }
            let frame = match frames::frame(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                // What was asked before is answered first, as far as it is answered by itself.
                Err(_) if !server.output.is_empty() || server.replies.awaits_ready() => return Ok(()),
                Err(broken) => return Err(broken.into()),
            };
            if frame.has_text() && frame.length > self.max_message_bytes {
                return Err(End::TooLong {
                    length: frame.length,
                    max: self.max_message_bytes,
                });
            }
            if !frame.can_be_taken(input.len()) {
                return Ok(());
            }
            let here = frame.length.min(input.len());
            if !self.take(frame.tag, &input[..here], server)? {
                return Ok(());
            }
            self.has_taken = true;
            self.speaks();
            if matches!(frame.tag, b'Q' | b'E') {
                self.registration.counters().went_alone();
            }
            input.advance(here);
            self.passing_in = frame.length - here;
        }
    }

    /// Takes one message of the client's, or the beginning of a long one. False if it has to wait.
    fn take(&mut self, tag: u8, message: &[u8], server: &mut Server) -> Result<bool, End> {
        let body = &message[HEADER_BYTES..];
        // What is known of the database's functions decides what is to be looked for behind it; what we ask of them goes first.
        if self.is_learning || (matches!(tag, b'P' | b'B' | b'D' | b'C') && self.is_upsetting(server)) {
            return Ok(false);
        }
        self.describe_prepared(tag, body, server);
        // Also where the client says that it goes: its rows are not to be waited for.
        if self.copying.breaks(tag, server.replies.is_owed_rows()) {
            server.output.extend_from_slice(message);
            return Ok(true);
        }
        if let Some(place) = self.copying.executed_at() {
            if server.replies.is_copying_in_at(place) {
                if !self.copying.pass(tag) {
                    return Ok(true);
                }
            } else if server.replies.is_awaited(place) {
                return Ok(false);
            } else {
                self.copying.end();
            }
        }
        match tag {
            // What was asked before is answered first, as far as it is answered by itself.
            b'X' if !server.output.is_empty() || server.replies.awaits_ready() => return Ok(false),
            b'X' => return Err(End::Client),
            b'Q' => {
                let message = position::in_place_of(message).unwrap_or(message);
                let body = &message[HEADER_BYTES..];
                let text = body.strip_suffix(&[0]).unwrap_or(body);
                if self.gives_commands && Command::of_message(message).is_some() {
                    // What was asked before is answered first.
                    if !server.output.is_empty() || server.replies.awaits_ready() {
                        return Ok(false);
                    }
                    if self.rests(server) {
                        self.has_command = true;
                        return Ok(false);
                    }
                }
                let executed = executed(text);
                let lent = executed.as_ref().and_then(|name| self.names.statement(name));
                let is_read_by_settings = lent.is_some_and(|statement| statement.is_read_by_settings());
                if self.query_waits_for_plans(Some(text), server)
                    || self.query_waits_for_reading(is_read_by_settings, server)
                {
                    return Ok(false);
                }
                if executed.as_ref().is_some_and(|name| self.is_undecided(name, server))
                    || (executed.is_some() && server.replies.is_telling())
                    || (asks_for_numbers(text) && self.waits_for_numbers(server))
                {
                    return Ok(false);
                }
                let leaves = Leaves::of(text);
                self.has_prepared_by_sql |= leaves.is_some() && may_prepare(text);
                let mut changes_plans = HangOn::changed_behind(text, leaves.as_ref());
                // What it sets for its transaction alone it does not leave.
                let mut sets_reading = changes_plans.is_some() && may_set_reading(text);
                sets_reading |= !server.in_force.is_settled() && may_end_a_transaction(text);
                if let Some(leaves) = leaves {
                    if let Some(name) = deallocated(text)
                        && let Some(passed) = self.deallocate(&name, message, server)
                    {
                        return Ok(passed);
                    }
                    let place = server.replies.next_place();
                    self.suspect(&leaves, place);
                    // What is prepared by SQL may set others yet.
                    if self.unknown_settings.are_any() && !self.has_prepared_by_sql && resets_all(text) {
                        self.unknown_settings.text_resets(place);
                    }
                    // What the server passes over is not answered, either.
                    if !server.replies.is_skipping() {
                        self.upsetting_at = Some(place);
                    }
                }
                if may_change_tables(text) && !server.replies.is_skipping() {
                    self.upsetting_at = Some(server.replies.next_place());
                }
                if asks_for_numbers(text) {
                    self.ask_for_numbers(server);
                }
                self.heed_what_it_makes(text);
                self.numbers.asked(text);
                self.is_suspect |= (self.is_pinned || self.is_asking) && may_take_back(text);
                let suspects = self.pool.effects.suspects();
                if let Some(leaves) = suspects.and_then(|suspects| suspects.set_off_by(text)) {
                    self.suspect(&leaves, server.replies.next_place());
                    sets_reading = true;
                    let also = Some(HangOn::changed_with(&leaves));
                    changes_plans = changes_plans.into_iter().chain(also).min();
                }
                match frames::is_whole(message) {
                    true => self.watch_text(text),
                    false => self.watch_anything(),
                }
                let is_lent = executed.is_some_and(|name| self.lend_statement(name, server));
                if sets_reading {
                    server.may_read_otherwise();
                }
                server.may_change_plans(changes_plans);
                self.query(None, message, server);
                if is_lent {
                    self.take_names_back(server);
                }
            }
            b'F' => {
                if self.query_waits_for_plans(None, server) {
                    return Ok(false);
                }
                self.watch_anything();
                self.is_suspect = true;
                if body.starts_with(&SET_CONFIG) {
                    self.unknown_settings.may_be_set(server.replies.next_place(), false);
                }
                // Of the user's own functions it may be any.
                let suspects = self.pool.effects.suspects().filter(|_| !is_of_the_server(body));
                if let Some(leaves) = suspects.and_then(|suspects| suspects.set_off_by_anything()) {
                    self.suspect(&leaves, server.replies.next_place());
                }
                server.may_read_otherwise();
                server.may_change_plans(Some(HangOn::Folding));
                self.ask(server, Asked::Query, false, None);
                server.output.extend_from_slice(message);
            }
            b'P' => {
                let Some((name, definition)) = frames::zero_terminated(body) else {
                    self.ask(server, Asked::Parse, false, None);
                    server.output.extend_from_slice(message);
                    return Ok(true);
                };
                // What is prepared behind a SET is prepared under what that has set, which is told in a moment.
                if self.is_asking && !name.is_empty() {
                    return Ok(false);
                }
                let is_read_by_settings = !server.in_force.is_settled() && is_read_by_settings(text_of(definition));
                let waits_for_plans = name.is_empty() && self.waits_for_plans(Some(text_of(definition)), server);
                if waits_for_plans || self.waits_for_reading(is_read_by_settings, server) {
                    return Ok(false);
                }
                let reading = match &server.in_force {
                    InForce::Known(reading) if is_read_by_settings => Some(reading.clone()),
                    _ => None,
                };
                let changes = self.pool.effects.schema_changes();
                let statement = (self.pool.statements).read_by(definition, &self.settings, reading, changes);
                let prepared = server.prepared.place(statement.number());
                if self.is_undecided(name, server) || prepared.is_some_and(|at| server.replies.is_undecided(at)) {
                    return Ok(false);
                }
                if statement.asks_for_numbers() {
                    if self.waits_for_numbers(server) {
                        return Ok(false);
                    }
                    self.ask_for_numbers(server);
                }
                self.parse(name, statement, message, server);
            }
            b'B' => return self.bind(message, server),
            b'D' | b'C' => {
                if let [b'S', rest @ ..] = body
                    && let Some((name, _)) = frames::zero_terminated(rest)
                {
                    if self.is_undecided(name, server) {
                        return Ok(false);
                    }
                    if tag == b'D' {
                        return Ok(self.describe(name, message, server));
                    }
                    self.close(name, message, server);
                } else {
                    let asked = if tag == b'D' { Asked::Describe } else { Asked::Close };
                    // It may be the cursor that has kept him.
                    let is_named = matches!(body, [b'P', _, _, ..]);
                    self.is_suspect |= tag == b'C' && is_named && (self.is_pinned || self.is_asking);
                    let portal = match body {
                        [b'P', portal @ .., 0] if tag == b'D' => Some(portal),
                        _ => None,
                    };
                    let bound = portal.and_then(|portal| self.bound.iter().rfind(|bound| bound.portal == portal));
                    let note = bound
                        .filter(|bound| self.heeds_description(&bound.of.name, &bound.of.statement, server))
                        .map(|bound| Note::Describes(bound.of.clone()));
                    self.ask(server, asked, false, note);
                    server.output.extend_from_slice(message);
                }
            }
            _ => {
                let asked = match tag {
                    b'E' => Some(Asked::Execute),
                    b'S' => Some(Asked::Sync),
                    b'c' | b'f' => Some(Asked::CopyEnd),
                    // Rows that are copied in.
                    b'd' => None,
                    b'H' if body.is_empty() => None,
                    // The connection is nobody else's before the server has said so.
                    _ => Some(Asked::Refused),
                };
                let note = match tag {
                    b'E' => match self.deallocated_by(body, server) {
                        Some(note) => note,
                        None => return Ok(false),
                    },
                    _ => None,
                };
                let place = server.replies.next_place();
                if let Some(asked) = asked {
                    self.ask(server, asked, false, note);
                }
                server.output.extend_from_slice(message);
                if tag == b'E'
                    && server.replies.is_awaited(place)
                    && !server.replies.is_skipping()
                    && let Some((portal, _)) = frames::zero_terminated(body)
                {
                    let upsetting = self.upsetting.iter().find(|upsetting| upsetting.portal == portal);
                    // Of what others are read by it is the end of a transaction, perhaps.
                    let is_end = upsetting.is_some() && !server.in_force.is_settled();
                    let sets_reading = is_end || upsetting.is_some_and(|upsetting| upsetting.sets_reading);
                    if sets_reading {
                        server.may_read_otherwise();
                    }
                    server.may_change_plans(upsetting.and_then(|upsetting| upsetting.changes_plans));
                    if upsetting.is_some_and(|upsetting| upsetting.resets_all) {
                        self.unknown_settings.execute_resets(place);
                    }
                    let upsets = sets_reading || upsetting.is_some_and(|upsetting| upsetting.is_of_prepared);
                    if upsets {
                        self.upsetting_at = Some(place);
                    }
                    if self.copying.execute(portal, place) || upsets {
                        // Whatever it does is told at once.
                        server.hasten(place);
                    }
                }
                if tag == b'S' && !self.lent_names.is_empty() {
                    self.take_names_back(server);
                }
            }
        }
        Ok(true)
    }

    fn query(&mut self, deallocated: Option<Bytes>, message: &[u8], server: &mut Server) {
        let place = server.replies.next_place();
        let mut before = |name: Bytes| match self.name(name, None, None, server) {
            Note::Named { before, .. } => before,
            _ => None,
        };
        let note = Note::Queried {
            place,
            unnamed: before(Bytes::new()),
            deallocated: deallocated.map(|name| (name.clone(), before(name))),
        };
        server.set_unnamed(None);
        self.ask(server, Asked::Query, false, Some(note));
        server.output.extend_from_slice(message);
    }

    /// A query that deallocates what the client has prepared by the protocol, under a name that the server does not know: it is lent the
    /// name for as long as that takes. None if it is not such a query; false if it has to wait.
    fn deallocate(&mut self, name: &Bytes, message: &[u8], server: &mut Server) -> Option<bool> {
        if self.is_undecided(name, server) {
            return Some(false);
        }
        // Behind what may be passed over, a Sync of ours would end that.
        if name.is_empty() || self.names.statement(name).is_none() || !server.replies.is_ready_for_next() {
            return None;
        }
        self.lend_name(name, &NO_TYPES, server);
        self.query(Some(name.clone()), message, server);
        self.take_names_back(server);
        Some(true)
    }

    /// The server knows the name from now on, until it is taken back: of a statement that can be prepared whatever the transaction is like.
    fn lend_name(&mut self, name: &Bytes, types: &[u8], server: &mut Server) {
        frames::put(&mut server.output, b'P', &[name, &[0, 0], types]);
        self.ask(server, Asked::Parse, true, None);
        self.lent_names.push(name.clone());
    }

    /// The server knows what the client has prepared by its name from now on, until it is taken back. False if the client has not prepared it,
    /// or what is asked before may be passed over: a Sync of ours would end that.
    fn lend_statement(&mut self, name: Bytes, server: &mut Server) -> bool {
        // In a transaction that has failed it is refused whatever its name is.
        if name.is_empty() || server.status == b'E' || !server.replies.is_ready_for_next() {
            return false;
        }
        let Some(statement) = self.names.statement(&name).cloned() else {
            return false;
        };
        self.heed(&statement, server);
        let back = server.read_as(&statement);
        frames::put(&mut server.output, b'P', &[&name, &[0], statement.definition()]);
        self.ask(server, Asked::Parse, true, None);
        server.read_again(back);
        self.lent_names.push(name);
        true
    }

    /// A statement is about to run: what of it is to be looked for behind it. What may be left by what it sets off.
    fn heed(&mut self, statement: &Statement, server: &mut Server) -> Option<Arc<Leaves>> {
        if statement.asks_for_numbers() {
            self.ask_for_numbers(server);
        }
        self.numbers.asked(text_of(statement.definition()));
        if statement.may_change_tables() {
            self.heed_what_it_makes(text_of(statement.definition()));
        }
        if let Some(leaves) = statement.leaves() {
            self.suspect(leaves, server.replies.next_place());
            self.has_prepared_by_sql |= may_prepare(text_of(statement.definition()));
        }
        self.is_suspect |= (self.is_pinned || self.is_asking) && may_take_back(text_of(statement.definition()));
        let suspects = self.pool.effects.suspects();
        let set_off = suspects.and_then(|suspects| statement.set_off(&suspects));
        if let Some(leaves) = &set_off {
            self.suspect(leaves, server.replies.next_place());
        }
        set_off
    }

    /// Behind the Sync that the server stopped at.
    fn take_names_back(&mut self, server: &mut Server) {
        for name in std::mem::take(&mut self.lent_names) {
            frames::put(&mut server.output, b'C', &[b"S", &name, &[0]]);
            self.ask(server, Asked::Close, true, None);
        }
        server.sync();
    }

    /// What to note of an Execute, whose portal may deallocate what the client has prepared by the protocol: the server is lent the name for
    /// that. None if it has to wait.
    fn deallocated_by(&mut self, body: &[u8], server: &mut Server) -> Option<Option<Note>> {
        let named = frames::zero_terminated(body).and_then(|(portal, _)| {
            let mut all = self.deallocating.iter();
            all.find(|(deallocating, _)| deallocating == portal)
        });
        let Some((_, name)) = named else { return Some(None) };
        let name = name.clone();
        if self.is_undecided(&name, server) {
            return None;
        }
        if name.is_empty() || self.names.statement(&name).is_none() {
            return Some(None);
        }
        self.lend_name(&name, &NO_TYPES, server);
        Some(Some(self.name(name, None, None, server)))
    }

    fn parse(&mut self, name: &[u8], statement: Arc<Statement>, message: &[u8], server: &mut Server) {
        let owned = Bytes::copy_from_slice(name);
        if name.is_empty() {
            server.set_unnamed(Some(statement.number()));
            let note = self.name(owned, Some(statement), None, server);
            self.ask(server, Asked::Parse, false, Some(note));
            server.output.extend_from_slice(message);
            return;
        }
        if self.names.statement(name).is_some() {
            // So that the server refuses it in its own words: it knows the name for as long as that takes.
            self.lend_name(&owned, &NO_TYPES, server);
            server.output.extend_from_slice(message);
            self.ask(server, Asked::Parse, false, None);
            return;
        }
        let number = statement.number();
        let as_name = if server.prepared.touch(number) {
            // It is there; whether it can be prepared now is for the server to say.
            server.set_unnamed(Some(number));
            String::new()
        } else {
            server.make_room(&statement)
        };
        let noted = (!as_name.is_empty()).then_some(number);
        frames::put(
            &mut server.output,
            b'P',
            &[as_name.as_bytes(), &[0], statement.definition()],
        );
        self.undescribed = statement.has_shape().then(|| owned.clone());
        let note = self.name(owned, Some(statement), noted, server);
        self.ask(server, Asked::Parse, false, Some(note));
    }

    /// What a client prepares has the parameters and columns that it has then, wherever it is executed: so it is asked at once which those are, if the client
    /// does not ask that itself.
    fn describe_prepared(&mut self, tag: u8, body: &[u8], server: &mut Server) {
        let Some(name) = self.undescribed.take().filter(|_| tag != b'X') else {
            return;
        };
        let described = body.strip_prefix(b"S").and_then(|rest| rest.strip_suffix(&[0]));
        if tag == b'D' && described == Some(&*name) {
            return;
        }
        let Some(statement) = self.names.statement(&name).cloned() else {
            return;
        };
        let is_unnamed = self.is_unnamed_here(&name, &statement, server);
        let as_name = match is_unnamed {
            true => String::new(),
            false => server_name(statement.number()),
        };
        frames::put(&mut server.output, b'D', &[b"S", as_name.as_bytes(), &[0]]);
        self.described_at = server.replies.next_place();
        let note = self.names.described(&name, &statement, is_unnamed);
        self.ask(server, Asked::Describe, true, note.map(Note::Describes));
    }

    /// Whether what the client has prepared by this name is the server's unnamed statement, as it was just looked at whether it can be prepared.
    fn is_unnamed_here(&self, name: &[u8], statement: &Statement, server: &Server) -> bool {
        let since = self.names.place(name, self.lease);
        server.prepared.unnamed() == Unnamed::Known(Some(statement.number()))
            && since == Some(server.prepared.unnamed_place())
    }

    /// Whether what the client has prepared by this name is what is prepared here under this number.
    fn is_own_here(&self, name: &[u8], number: u64, server: &Server) -> bool {
        let since = self.names.place(name, self.lease);
        since.is_some() && since == server.prepared.place(number)
    }

    /// Whether what is asked of a statement has to wait until it is known which columns it had where the client prepared it, and that it has them here.
    fn waits_for_columns(&mut self, name: &[u8], statement: &Arc<Statement>, server: &mut Server) -> bool {
        self.waits_for_description(name, statement, server) || self.waits_for_proof(name, statement, server)
    }

    /// Whether it is about to be told which columns a statement had where the client prepared it: what is on the connection under our name may be of before.
    fn waits_for_description(&self, name: &[u8], statement: &Statement, server: &mut Server) -> bool {
        if self.names.place(name, self.lease).is_none()
            || self.is_own_here(name, statement.number(), server)
            || self.names.told(name).is_some()
            || !server.replies.is_awaited(self.described_at)
        {
            return false;
        }
        server.hasten(self.described_at);
        true
    }

    fn bind(&mut self, message: &[u8], server: &mut Server) -> Result<bool, End> {
        let body = &message[HEADER_BYTES..];
        let names = frames::zero_terminated(body)
            .and_then(|(portal, rest)| frames::zero_terminated(rest).map(|(name, rest)| (portal, name, rest)));
        let Some((portal, name, rest)) = names else {
            self.ask(server, Asked::Bind, false, None);
            server.output.extend_from_slice(message);
            return Ok(true);
        };
        if self.is_undecided(name, server) {
            return Ok(false);
        }
        let named = self.names.statement(name).cloned();
        let asks_for_numbers = named.as_ref().is_some_and(|statement| statement.asks_for_numbers());
        if asks_for_numbers && self.waits_for_numbers(server) {
            return Ok(false);
        }
        let mut statement = None;
        if let Some(named) = named {
            let is_unnamed = name.is_empty() && self.is_unnamed_here(name, &named, server);
            let Some(executed) = self.executed(named, is_unnamed, server) else {
                return Ok(false);
            };
            statement = Some(executed);
        }
        let text = statement.as_ref().map(|statement| text_of(statement.definition()));
        // What has no name was read when it was prepared, and is to stay so.
        if !name.is_empty() && self.waits_for_plans(text, server) {
            return Ok(false);
        }
        if let Some(statement) = statement.as_ref().filter(|_| !name.is_empty())
            && self.waits_for_columns(name, statement, server)
        {
            return Ok(false);
        }
        self.watch_statement(statement.as_deref(), rest);
        self.deallocating.retain(|(deallocating, _)| deallocating != portal);
        self.upsetting.retain(|upsetting| upsetting.portal != portal);
        if let Some(statement) = &statement {
            let set_off = self.heed(statement, server);
            let changes_plans = set_off.as_ref().map(|leaves| HangOn::changed_with(leaves));
            let upsetting = Upsetting {
                portal: Bytes::copy_from_slice(portal),
                is_of_prepared: statement.leaves().is_some() || statement.may_change_tables(),
                resets_all: statement.leaves().is_some()
                    && self.unknown_settings.are_any()
                    && !self.has_prepared_by_sql
                    && resets_all(text_of(statement.definition())),
                sets_reading: set_off.is_some() || statement.may_set_reading(),
                changes_plans: changes_plans.into_iter().chain(statement.may_set_plans()).min(),
            };
            if upsetting.is_of_prepared
                || upsetting.sets_reading
                || upsetting.changes_plans.is_some()
                || statement.may_end_a_transaction()
            {
                self.upsetting.push(upsetting);
            }
        }
        let of = statement.as_ref();
        let of = of.and_then(|statement| self.names.described(name, statement, name.is_empty()));
        self.binds(portal, of);
        let may_copy_in = statement.as_ref().is_some_and(|statement| statement.may_copy_in());
        self.copying.bind(portal, may_copy_in);
        if let Some(target) = statement.as_ref().and_then(|statement| statement.deallocates()) {
            self.deallocating.push((Bytes::copy_from_slice(portal), target.clone()));
        }
        match (name.is_empty(), statement) {
            (true, statement) => {
                let refused = server.prepare_unnamed(statement.as_deref());
                self.undo(refused, server);
            }
            (false, None) => {}
            (false, Some(statement)) => {
                let (as_name, note) = self.use_statement(name, &statement, server);
                // The length of the whole, of which the end may not be here yet.
                let length = u32::from_be_bytes(*message[1..].first_chunk().expect("a header")) as usize;
                frames::put_header(&mut server.output, b'B', length - name.len() + as_name.len());
                for part in [portal, &[0], as_name.as_bytes(), &[0], rest] {
                    server.output.extend_from_slice(part);
                }
                self.ask(server, Asked::Bind, false, note);
                return Ok(true);
            }
        }
        server.output.extend_from_slice(message);
        self.ask(server, Asked::Bind, false, None);
        Ok(true)
    }

    /// What is executed here for what a client has prepared; none where it has to wait until that is known. The unnamed statement is its own.
    fn executed(&self, statement: Arc<Statement>, is_unnamed: bool, server: &mut Server) -> Option<Arc<Statement>> {
        if is_unnamed {
            return Some(statement);
        }
        if self.waits_for_reading(statement.is_read_by_settings(), server) {
            return None;
        }
        if statement.is_read_alike(&server.settings, &server.in_force) {
            return Some(statement);
        }
        let Some(now) = Reading::now(&server.settings, &server.in_force) else {
            return Some(statement);
        };
        let executed = self.pool.statements.executed_by(&statement, now);
        let prepared = server.prepared.place(executed.number());
        let is_undecided = prepared.is_some_and(|place| server.replies.is_undecided(place));
        (!is_undecided).then_some(executed)
    }

    fn close(&mut self, name: &[u8], message: &[u8], server: &mut Server) {
        let note = self.name(Bytes::copy_from_slice(name), None, None, server);
        if name.is_empty() {
            server.set_unnamed(None);
        }
        self.ask(server, Asked::Close, false, Some(note));
        server.output.extend_from_slice(message);
    }

    /// False if it has to wait.
    fn describe(&mut self, name: &[u8], message: &[u8], server: &mut Server) -> bool {
        let mut statement = None;
        if let Some(named) = self.names.statement(name).cloned() {
            let is_unnamed = self.is_unnamed_here(name, &named, server);
            let Some(executed) = self.executed(named, is_unnamed, server) else {
                return false;
            };
            // It has yet to be prepared here, and the transaction may have failed by then.
            let may_fail_before = server.replies.awaits_ready() && !server.prepared.is_as_it_was(&executed);
            let has_our_name = !name.is_empty() && !is_unnamed;
            if has_our_name && (may_fail_before || self.waits_for_columns(name, &executed, server)) {
                return false;
            }
            statement = Some(executed);
        }
        self.describe_as(name, statement, message, server);
        true
    }

    /// A client describes what it has prepared by this name, for which this is executed here.
    fn describe_as(&mut self, name: &[u8], statement: Option<Arc<Statement>>, message: &[u8], server: &mut Server) {
        match (name.is_empty(), statement) {
            (true, statement) => {
                let stands_in = statement.as_ref().zip(self.stand_in(name, server));
                let refused = match stands_in {
                    Some((statement, types)) => server.stand_in_for_unnamed(statement, &types),
                    None => server.prepare_unnamed(statement.as_deref()),
                };
                self.undo(refused, server);
                server.output.extend_from_slice(message);
                let note = statement.and_then(|statement| self.names.described(name, &statement, true));
                self.ask(server, Asked::Describe, false, note.map(Note::Describes));
                return;
            }
            (false, Some(statement)) if self.is_unnamed_here(name, &statement, server) => {
                frames::put(&mut server.output, b'D', &[b"S\0"]);
                self.described_at = server.replies.next_place();
                let note = self.names.described(name, &statement, true);
                self.ask(server, Asked::Describe, false, note.map(Note::Describes));
                return;
            }
            (false, None) => server.output.extend_from_slice(message),
            (false, Some(statement)) => {
                if let Some(types) = self.stand_in(name, server) {
                    if !self.lent_names.iter().any(|lent| lent == name) {
                        self.lend_name(&Bytes::copy_from_slice(name), &types, server);
                    }
                    server.output.extend_from_slice(message);
                    self.ask(server, Asked::Describe, false, None);
                    return;
                }
                let (as_name, note) = self.use_statement(name, &statement, server);
                frames::put(&mut server.output, b'D', &[b"S", as_name.as_bytes(), &[0]]);
                let note = match note {
                    Some(Note::Uses { name, .. }) if self.heeds_description(&name, &statement, server) => {
                        let described = self.names.described(&name, &statement, false);
                        described.map(Note::Describes)
                    }
                    Some(Note::Changed { name, number, .. }) => Some(Note::Changed {
                        name,
                        number,
                        described: Some(statement),
                    }),
                    note => note,
                };
                self.ask(server, Asked::Describe, false, note);
                return;
            }
        }
        self.ask(server, Asked::Describe, false, None);
    }

    /// The types of an empty text that is described as what the client has prepared by this name is, where that has no result and the transaction has failed:
    /// there it is described all the same, and cannot be prepared.
    fn stand_in(&self, name: &[u8], server: &Server) -> Option<Bytes> {
        let statement = self.names.statement(name).filter(|_| server.status == b'E')?;
        if statement.describes_nothing() {
            return Some(Bytes::from_static(&NO_TYPES));
        }
        let types = statement.types_described().map(Bytes::copy_from_slice);
        types.filter(|_| self.names.told(name) == Some(Columns::NONE))
    }

    /// Whether a text that is read by settings has to wait until it is known which ones are in force.
    fn waits_for_reading(&self, is_read_by_settings: bool, server: &mut Server) -> bool {
        if !is_read_by_settings || server.replies.is_skipping() {
            return false;
        }
        match server.in_force {
            InForce::Settled | InForce::Known(_) => return false,
            InForce::Asked(place) if server.replies.is_awaited(place) => return true,
            InForce::Asked(_) | InForce::Moved => {}
        }
        if server.replies.awaits_ready() {
            return true;
        }
        // What is prepared where that has failed is refused, whatever it says.
        let has_failed = server.status == b'E';
        if !has_failed {
            server.ask_what_is_in_force();
        }
        !has_failed
    }

    /// The same for a query, behind what is asked beside it there is a Sync: where that fails the server would pass over the query.
    fn query_waits_for_reading(&self, is_read_by_settings: bool, server: &mut Server) -> bool {
        let is_first = server.replies.is_empty();
        let waits = self.waits_for_reading(is_read_by_settings, server);
        if waits && is_first && !server.replies.is_empty() {
            server.sync();
        }
        waits
    }

    /// Whether a query has to wait until plans of before are discarded, as something has been set since. Behind what is asked beside it there is a Sync: where that
    /// fails the server would pass over the query.
    fn query_waits_for_plans(&self, text: Option<&[u8]>, server: &mut Server) -> bool {
        if server.discards_at().is_none() {
            if !self.needs_other_plans(text, server) {
                return false;
            }
            let is_first = server.replies.is_empty();
            if !is_first && server.replies.awaits_ready() {
                return true;
            }
            server.discard_plans();
            // Behind what has no Sync the server passes over the query where something fails, straight too.
            if is_first {
                server.sync();
            }
        }
        if let Some(place) = server.discards_at() {
            server.hasten(place);
        }
        true
    }

    /// Whether what is planned next has to wait until it can be asked that plans of before are discarded: until it is known whether the transaction has failed.
    fn waits_for_plans(&self, text: Option<&[u8]>, server: &mut Server) -> bool {
        // What failed before may have had it passed over, and not what stands behind the Sync.
        if server
            .discards_at()
            .is_some_and(|place| server.replies.is_undecided(place))
        {
            return true;
        }
        if !self.needs_other_plans(text, server) {
            return false;
        }
        if server.replies.awaits_ready() {
            return true;
        }
        server.discard_plans();
        false
    }

    /// Whether plans that are there may be of what was set before, and it makes a difference to this text.
    fn needs_other_plans(&self, text: Option<&[u8]>, server: &Server) -> bool {
        // Who has a connection to himself has his own plans there, as straight.
        let are_own = self.mode == PoolMode::Session || self.is_pinned || self.has_prepared_by_sql;
        if are_own || !server.has_stale_plans() || server.replies.is_skipping() {
            return false;
        }
        // Where that has failed nothing is planned.
        let has_failed = server.status == b'E' && !server.replies.awaits_ready();
        let text = text.map(std::str::from_utf8).and_then(Result::ok);
        !has_failed && !text.is_some_and(plans_nothing)
    }

    /// Whether what is asked of a statement has to wait until it is known which columns it has here.
    ///
    /// A statement that is prepared anew behind a change of its tables could have other columns than its client was told, which straight is an error. So they
    /// are looked at once on each connection, and the server looks by itself from then on.
    fn waits_for_proof(&mut self, name: &[u8], statement: &Arc<Statement>, server: &mut Server) -> bool {
        let number = statement.number();
        let told = self.names.told(name).filter(|told| *told != Columns::NONE);
        // In a transaction that has failed nothing can be prepared, and what was seen before it failed is of no use behind it.
        let has_failed = server.status == b'E' && server.replies.is_told_all();
        let (Some(told), false, false) = (told, server.replies.is_skipping(), has_failed) else {
            self.proven = None;
            return false;
        };
        if let Shape::Asked(place) = server.prepared.shape(number)
            && server.replies.is_awaited(place)
        {
            return true;
        }
        // What it has instead may be so for a moment only, or under what is set now: it is looked at each time.
        if server.prepared.is_as_told(statement, told) || self.proven == Some(number) {
            return false;
        }
        let refused = server.prove(statement);
        refused.into_iter().for_each(|note| self.undo(note, server));
        true
    }

    /// Sees to it that the server knows what the client has prepared by this name: its own name for it, and what to note of what is asked of it.
    fn use_statement(
        &mut self,
        name: &[u8],
        statement: &Arc<Statement>,
        server: &mut Server,
    ) -> (String, Option<Note>) {
        let (number, kept) = (statement.number(), self.names.kept(name));
        let told = self.names.told(name).filter(|told| *told != Columns::NONE);
        let was_looked_at = self.proven.take() == Some(number);
        if was_looked_at && told.is_some_and(|told| !server.prepared.is_as_told(statement, told)) {
            let changed = |name| Note::Changed {
                name,
                number,
                described: None,
            };
            return (changed_name(number), kept.map(changed));
        }
        // What he has prepared here himself is as he has prepared it.
        if !self.is_own_here(name, number, server) {
            let refused = server.prepare(statement);
            self.undo(refused, server);
        }
        (server_name(number), kept.map(|name| Note::Uses { name, number }))
    }
}
