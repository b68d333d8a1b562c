//! Inside: what is asked inside of a transaction and answered from memory.
//!
//! Promises:
//! - Only where a rule says so, under READ COMMITTED, and as long as nothing was asked in the transaction but to read. Nor does memory answer a session that has, or
//!   may have, what is its own on its connection alone.
//! - Who is not answered from memory asks the server as ever, on the connection that he has. He waits for no other: who has one and waits for
//!   another could wait for himself. What he asks is asked beside him once more, for those who come.
//! - A server that waits for a transaction's next statement hears of it at least every [`SILENT_FOR`], if anything is asked: it does not take it for idle.

use std::time::{Duration, Instant};

use bytes::Buf;

use super::asked::Asked;
use super::carrier::learn_beside;
use super::offer::PARSE_COMPLETE;
use super::plan::Kind;
use super::unit::unit;
use crate::client::Client;
use crate::frames;
use crate::last_answer::LastAnswer;
use crate::memory::Told;
use crate::memory::watch::Course;
use crate::server::Server;
use crate::state::State;

/// PostgreSQL's `idle_in_transaction_session_timeout` is longer, where there is one.
const SILENT_FOR: Duration = Duration::from_millis(500);

impl State {
    /// Answers from memory what the client asks next, inside of its transaction. False: the server is to be asked.
    pub(crate) fn tell_inside(&mut self, client: &mut Client, server: &Server) -> bool {
        let is_between = server.status == b'T'
            && server.output.is_empty()
            && server.replies.is_empty()
            && self.passing_in == 0
            && self.passing_out == 0
            && !self.is_learning
            && !self.is_asking;
        if self.watch.course != Course::Reads
            || !is_between
            || !self.may_share
            || self.is_pinned
            || self.is_suspect
            || client.input.is_empty()
            || client.is_behind()
            || self.spoke.is_none_or(|spoke| spoke.elapsed() > SILENT_FOR)
        {
            return false;
        }
        let Some(company) = self.company().filter(|company| company.is_told_inside) else {
            return false;
        };
        let Some(asked) = unit(&client.input) else { return false };
        let Some(known) = self.known(&company, &asked).filter(|known| known.may_travel) else {
            return false;
        };
        let plan = &known.plan;
        if plan.kind() != Some(Kind::Read) || !plan.ruled.in_transactions || known.hints.after.is_some() {
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
        let asked = Asked::of(&asked, &client.input, || known.statement.clone());
        client.input.advance(asked.length);
        if asked.is_parsed {
            client.output.extend_from_slice(&PARSE_COMPLETE);
        }
        client.tell(&said);
        frames::put(&mut client.output, b'Z', &[b"T"]);
        self.keep_unnamed(asked);
        self.last_answer = LastAnswer::Memory(remembrance);
        true
    }

    /// The server hears of the client.
    pub(crate) fn speaks(&mut self) {
        if self.pool.remembers() {
            self.spoke = Some(Instant::now());
        }
    }
}
