//! Inside: what is asked by a client that has a connection, and answered from memory: inside of a transaction, or behind what it has prepared and described with a
//! Flush, and not asked yet.
//!
//! Promises:
//! - Inside of a transaction only where a rule says so, under READ COMMITTED, and as long as nothing was asked in it but to read. Nor does memory answer a session
//!   that has, or may have, what is its own on its connection alone.
//! - Who is not answered from memory asks the server as ever, on the connection that he has. He waits for no other: who has one and waits for
//!   another could wait for himself. What he asks is asked beside him once more, for those who come.
//! - A server that waits for a transaction's next statement hears of it at least every [`SILENT_FOR`], if anything is asked: it does not take it for idle.

use std::time::{Duration, Instant};

use bytes::Buf;

use super::asked::Asked;
use super::carrier::learn_beside;
use super::offer::PARSE_COMPLETE;
use super::plan::Kind;
use super::unit::{Unit, unit};
use crate::client::Client;
use crate::frames::{self, HEADER_BYTES};
use crate::last_answer::LastAnswer;
use crate::memory::Told;
use crate::memory::watch::Course;
use crate::server::Server;
use crate::state::State;

/// PostgreSQL's `idle_in_transaction_session_timeout` is longer, where there is one.
const SILENT_FOR: Duration = Duration::from_millis(500);

/// Where a client is that has a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a transaction in which it has only read.
    Transaction,
    /// Behind what it has prepared, described, or closed, and nothing else; its Sync is still to come.
    Described,
}

impl State {
    /// Where memory may answer the client; none where the server is at something, or the client may have done what memory does not know of.
    fn place(&self, server: &Server) -> Option<Place> {
        match (server.status, self.watch.course) {
            (b'T', Course::Reads) if server.replies.is_empty() => Some(Place::Transaction),
            // Whatever is run has a course.
            (b'I', Course::Untouched) if server.replies.is_owed_sync() && self.watch.is_whole => Some(Place::Described),
            _ => None,
        }
    }

    /// Answers from memory what the client asks next on the connection that it has. False: the server is to be asked.
    pub(crate) fn tell_inside(&mut self, client: &mut Client, server: &Server) -> bool {
        let Some(place) = self.place(server) else { return false };
        let is_between = server.output.is_empty()
            && self.passing_in == 0
            && self.passing_out == 0
            && !self.is_learning
            && !self.is_asking;
        if !is_between
            || !self.may_share
            || self.is_pinned
            || self.is_suspect
            || client.input.is_empty()
            || client.is_behind()
        {
            return false;
        }
        let in_transaction = place == Place::Transaction;
        if in_transaction && self.spoke.is_none_or(|spoke| spoke.elapsed() > SILENT_FOR) {
            return false;
        }
        let company = self.company();
        let Some(company) = company.filter(|company| !in_transaction || company.is_told_inside) else {
            return false;
        };
        let Some(asked) = unit(&client.input) else { return false };
        let is_right_here = match &asked {
            Unit::Simple(_) => in_transaction,
            // What there is beyond some rows could be asked for as long as the transaction lasts.
            Unit::Extended(extended) => !in_transaction || extended.steps.rows_max() == 0,
        };
        if !is_right_here {
            return false;
        }
        let Some(known) = self.known(&company, &asked).filter(|known| known.may_travel) else {
            return false;
        };
        let plan = &known.plan;
        let may_be_told = !in_transaction || plan.ruled.in_transactions;
        if plan.kind() != Some(Kind::Read) || !may_be_told || known.hints.after.is_some() {
            return false;
        }
        let Some(windows) = self.windows(&known.hints, plan) else {
            return false;
        };
        if plan.is_due(self.pool.effects.schema_changes()) {
            learn_beside(self.pool.clone(), company, known.plan);
            return false;
        }
        let is_known_harmless = company.may_share(Kind::Read);
        let question = plan
            .may_be_remembered(true)
            .filter(|of| is_known_harmless && self.is_heard(&of.tables, &windows) == Some(true))
            .and_then(|_| self.question(&company, &asked, &known, windows));
        let Some((memory, question)) = question else {
            return false;
        };
        // Where others wait for a connection, nobody asks beside: there would be no end to what waits for one.
        let told = match self.pool.is_waited_for() {
            true => memory.told_if_fresh(&question),
            false => match memory.ask(question) {
                Told::Known(said, remembrance) => Some((said, remembrance)),
                Told::Asked(_) => None,
            },
        };
        let Some((said, remembrance)) = told else {
            known.is_missed();
            return false;
        };
        known.was_remembered();
        self.registration.counters().was_remembered();
        let describes = self.described_by(&asked, known.statement.as_ref());
        let asked = Asked::of(&asked, &client.input, || known.statement.clone()).describing(describes);
        // By the Sync the server ends what it has begun for the client.
        let is_left = if in_transaction { 0 } else { HEADER_BYTES };
        client.input.advance(asked.length - is_left);
        if asked.is_parsed {
            client.output.extend_from_slice(&PARSE_COMPLETE);
        }
        client.tell(&said);
        self.is_told(&asked, &said);
        if in_transaction {
            frames::put(&mut client.output, b'Z', &[b"T"]);
        }
        self.keep_unnamed(asked);
        self.last_answer = LastAnswer::Memory(remembrance);
        true
    }

    /// Whether what the client asks next waits until it is known what its session has set, by which memory may answer it: then the connection goes back.
    pub(crate) fn waits_for_memory(&mut self, client: &Client, server: &Server) -> bool {
        if self.is_asking && !self.is_for_memory {
            self.is_for_memory = self.may_be_in_memory(client, server);
        }
        self.is_for_memory &= self.is_asking;
        self.is_for_memory
    }

    /// Whether what the client asks next is a read that it wants to have from memory, whatever it has set.
    fn may_be_in_memory(&mut self, client: &Client, server: &Server) -> bool {
        let is_between = self.passing_in == 0 && self.passing_out == 0 && server.status == b'I';
        if !is_between || !self.may_share || self.is_pinned || !self.pool.remembers() {
            return false;
        }
        let Some(asked) = unit(&client.input) else { return false };
        let Some(company) = self.company() else { return false };
        self.known(&company, &asked).is_some_and(|known| {
            known.plan.kind() == Some(Kind::Read) && self.windows(&known.hints, &known.plan).is_some()
        })
    }

    /// The server hears of the client.
    pub(crate) fn speaks(&mut self) {
        if self.pool.remembers() {
            self.spoke = Some(Instant::now());
        }
    }
}
