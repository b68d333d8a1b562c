//! Offer: what a client asks next, offered to others that carry it.
//!
//! Promises: nothing of the client's messages is taken before it is answered. A client has one thing on its way at a time, so that its own
//! order holds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_sql::Hints;
use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::asked::Asked;
use super::carrier::carry;
use super::company::Company;
use super::filler::carry_one;
use super::flight::Boarding;
use super::job::{Claim, Job};
use super::known::Known;
use super::learning::learn;
use super::line::{Entry, Line};
use super::plan::{Kind, Plan};
use super::recourse::Recourse;
use super::sent::Sent;
use super::unit::{Unit, unit};
use super::warming::warm;
use crate::asking::Lost;
use crate::columns::{Columns, types_told_in};
use crate::figures::Counting;
use crate::last_answer::Remembrance;
use crate::memory::question::Question;
use crate::memory::{Memory, Told, Windows};
use crate::server::Server;
use crate::state::State;
use crate::statements::{Described, Named, Statement};

/// However late the database is listened to, as long as it is.
const ANY_LAG: Option<Duration> = Some(Duration::MAX);

/// What is answered to a Parse.
pub(crate) const PARSE_COMPLETE: [u8; 5] = [b'1', 0, 0, 0, 4];

/// What becomes of what a client asks.
#[derive(Debug)]
pub(crate) enum Offer {
    /// It goes alone, and is timed.
    Alone(Alone),
    /// It travels.
    Travels(Travelling),
    /// It is known what is said to it.
    Known(Asked, Bytes, Remembrance),
}

/// Something that is asked alone.
#[derive(Debug)]
pub(crate) struct Alone {
    plan: Arc<Plan>,
    caller: Option<Arc<Counting>>,
    /// Where how long it takes is of interest: of what may never travel it is not.
    line: Option<Arc<Line>>,
    /// It is counted among those that are on their way.
    is_counted: bool,
    since: Instant,
    /// It was held up in company, or has held others up.
    was_held_up: bool,
    /// The server was at it for so long already.
    pub(crate) before: Duration,
    /// So long it was waited for in company.
    pub(crate) waited: Duration,
    /// Whose it is, where the catalog is to be asked about it.
    learns_for: Option<Arc<Company>>,
    /// What is told of it where there is no connection.
    pub(crate) recourse: Option<Recourse>,
}

impl Alone {
    /// It has a connection now.
    pub(crate) fn begins(&mut self) {
        self.since = Instant::now();
    }

    /// It was answered without a server.
    pub(crate) fn is_told(&self) {
        self.plan.was_remembered();
    }

    /// Whether the catalog is to be asked about it once it is answered.
    pub(crate) fn is_to_learn(&self) -> bool {
        self.learns_for.is_some()
    }

    /// Asks the catalog about it, on a connection that is as free as one that is given back. Whether it says something else than before.
    pub(crate) async fn learn(&mut self, server: &mut Server) -> Result<bool, Lost> {
        let Some(company) = &self.learns_for else {
            return Ok(false);
        };
        let is_another = learn(company, &self.plan, server).await?;
        self.learns_for = None;
        Ok(is_another)
    }

    /// It was answered, in so many bytes, at that moment, whatever was asked behind it.
    pub(crate) fn is_answered(&self, bytes: u64, answered: Instant) {
        self.plan.was_alone();
        let at_database = answered.saturating_duration_since(self.since);
        self.plan.was_at_database(at_database);
        if let Some(caller) = &self.caller {
            caller.was_at_database(at_database);
        }
        let Some(line) = &self.line else { return };
        let elapsed = self.since.elapsed();
        let is_quick = line.pace.took(elapsed);
        self.plan.took(elapsed, is_quick, self.was_held_up);
        self.plan.was_answered_in(bytes);
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.learns_for.is_some() {
            self.plan.learn(None, 0);
        }
        if self.is_counted
            && let Some(line) = &self.line
        {
            line.leave();
        }
    }
}

/// Something that is asked in company.
#[derive(Debug)]
pub(crate) struct Travelling {
    plan: Arc<Plan>,
    caller: Option<Arc<Counting>>,
    line: Arc<Line>,
    told: oneshot::Receiver<Answer>,
    claim: Claim,
    since: Instant,
    sent: Sent,
    pub(crate) kind: Kind,
    pub(crate) asked: Asked,
    /// Memory asks it, once for all who wait for it.
    pub(crate) is_for_memory: bool,
    /// What is told of it where it comes to nothing, and there is no connection.
    recourse: Option<Recourse>,
}

impl Travelling {
    /// It is not to be done any more. Whether it may be: what came of it is told then, or is of no matter.
    pub(crate) fn withdraw(&self) -> bool {
        self.claim.withdraw() || self.kind == Kind::Read
    }

    /// Since when the server is at it for this client, if it is.
    pub(crate) fn sent(&self) -> Option<Instant> {
        self.sent.at().map(|sent| sent.max(self.since))
    }

    /// What came of it.
    ///
    /// # Cancel safety
    /// Dropped, it is left out if it was not sent yet.
    pub(crate) async fn answer(&mut self) -> Answer {
        match (&mut self.told).await {
            Ok(answer) => answer,
            // Who carried it is gone without a word: it had not been sent, or was only to read.
            Err(_) => Answer::Alone(false),
        }
    }

    /// It goes alone instead.
    pub(crate) fn alone(self, was_held_up: bool) -> Alone {
        self.line.enter_alone();
        let before = self.sent().map_or(Duration::ZERO, |sent| sent.elapsed());
        Alone {
            before,
            waited: self.since.elapsed(),
            plan: self.plan,
            caller: self.caller,
            line: Some(self.line),
            is_counted: true,
            since: Instant::now(),
            was_held_up,
            learns_for: None,
            recourse: self.recourse,
        }
    }
}

impl State {
    /// Offers what the client has sent to others; none if it is nothing that could be carried.
    pub(crate) fn offer(&mut self, input: &[u8]) -> Option<Offer> {
        if !self.may_share || !(self.pool.shares() || self.pool.remembers()) {
            return None;
        }
        let asked = unit(input)?;
        let company = self.company()?;
        let known = self.known(&company, &asked)?;
        let Known {
            plan,
            statement,
            hints,
            caller,
            may_travel,
            told,
        } = known.clone();
        let is_missed = || known.is_missed();
        let is_for_some = matches!(&asked, Unit::Extended(extended) if extended.steps.rows_max() > 0);
        // A portal that stops behind some rows ends no command: who changes the same row behind it in one transaction would not see the change.
        let may_travel = may_travel && !(is_for_some && plan.kind() == Some(Kind::Change));
        let Some(kind) = plan.kind().filter(|_| may_travel) else {
            is_missed();
            return Some(Offer::Alone(Alone {
                plan,
                caller,
                line: None,
                is_counted: false,
                since: Instant::now(),
                was_held_up: false,
                before: Duration::ZERO,
                waited: Duration::ZERO,
                learns_for: None,
                recourse: None,
            }));
        };
        let line = company.line(kind);
        let windows = self.windows(&hints, &plan);
        let is_asked_about = windows.is_some() || plan.times_alone() >= company.min_asked;
        let is_due = is_asked_about && plan.is_due(self.pool.effects.schema_changes());
        let keeps_numbers = self.numbers.are_heeded() || self.pool.asks_for_numbers();
        // What is told while the database is away is not known to have seen a position of its log.
        let is_away_told = |windows: &Windows| !windows.away.is_zero() && hints.after.is_none();
        let question = |windows: Windows| self.question(&company, &asked, &known, windows);
        let asked_here = || {
            let describes = self.described_by(&asked, statement.as_ref());
            Asked::of(&asked, input, || statement.clone()).describing(describes)
        };
        let alone = |plan: Arc<Plan>, caller, is_counted, recourse| {
            Some(Offer::Alone(Alone {
                plan,
                caller,
                line: Some(Arc::clone(line)),
                is_counted,
                since: Instant::now(),
                was_held_up: false,
                before: Duration::ZERO,
                waited: Duration::ZERO,
                learns_for: is_due.then(|| Arc::clone(&company)),
                recourse,
            }))
        };
        let batch = hints.batch.or(plan.ruled.batch);
        let may_be_carried = !is_due && company.may_share(kind);
        // What was told up to there is known only of a database that is listened to.
        let listener = hints.after.and_then(|_| self.pool.listener());
        let may_ask_memory = hints.after.is_none() || listener.is_some();
        if let Some(windows) = windows.filter(|_| may_be_carried && may_ask_memory)
            && let Some(of) = plan.may_be_remembered(keeps_numbers)
            && let Some(is_heard) = self.is_heard(&of.tables, &windows)
            && let Some((memory, question)) = question(windows)
        {
            let asked = asked_here();
            // Who comes while somebody tries waits for nothing.
            let while_away = || match is_heard {
                true => memory.tell_if_away_only(&question),
                false => memory.tell_while_away(&question),
            };
            let may_be_away = is_away_told(&windows) && self.pool.is_away();
            let told = match (may_be_away.then(while_away).flatten(), is_heard) {
                (Some((said, remembrance)), _) => Told::Known(said, remembrance),
                (None, true) => match (hints.after, listener) {
                    (Some(after), Some(listener)) => memory.ask_behind(question.clone(), listener.has_told(after)),
                    _ => memory.ask(question.clone()),
                },
                (None, false) => Told::Asked(memory.ask_anew(question.clone())),
            };
            return Some(match told {
                Told::Known(said, remembrance) => {
                    known.was_remembered();
                    Offer::Known(asked, said, remembrance)
                }
                Told::Asked(told) => {
                    is_missed();
                    let sent = Sent::default();
                    // Whoever has asked it has done so already, or does so now.
                    sent.now();
                    Offer::Travels(Travelling {
                        line: Arc::clone(line),
                        told,
                        claim: Claim::default(),
                        since: Instant::now(),
                        sent,
                        kind,
                        is_for_memory: true,
                        recourse: is_away_told(&windows)
                            .then(|| Recourse::of(memory, question, asked.clone()))
                            .flatten(),
                        asked,
                        caller,
                        plan,
                    })
                }
            });
        }
        is_missed();
        // What was remembered may be told whatever is known by now.
        let may_be_away = windows.filter(is_away_told);
        let recourse = may_be_away
            .and_then(question)
            .and_then(|(memory, question)| Recourse::of(memory, question, asked_here()));
        let may_be_carried = may_be_carried && self.pool.shares() && batch != Some(Duration::ZERO);
        let mut may_share = may_be_carried && plan.may_share(keeps_numbers);
        if let Unit::Extended(extended) = &asked {
            may_share &= !plan.may_change_by_the_time(extended.bound);
        }
        let mark = plan.mark();
        // It may have been learnt anew between the two.
        may_share &= kind == Kind::Read || mark.is_some();
        let joins = kind == Kind::Read && plan.ruled.joins && may_be_carried;
        let joins = joins && plan.is_steady() && plan.may_be_carried(keeps_numbers) && hints.after.is_none();
        if !may_share && !joins {
            return alone(plan, caller, false, recourse);
        }
        let ask = || ask_of(&asked, statement.as_deref(), told);
        let travels = |plan, caller, told, claim, sent, recourse| {
            Some(Offer::Travels(Travelling {
                line: Arc::clone(line),
                told,
                claim,
                since: Instant::now(),
                sent,
                kind,
                is_for_memory: false,
                asked: asked_here(),
                caller,
                recourse,
                plan,
            }))
        };
        let mut flight = None;
        if joins {
            match company.flights.board(&ask(), self.answered, self.statement_timeout) {
                Boarding::Joined(told, sent) => return travels(plan, caller, told, Claim::default(), sent, recourse),
                Boarding::First(ticket) => flight = Some(ticket),
            }
        }
        let until = batch.map(|batch| Instant::now() + batch);
        let mut told = None;
        let is_joined = flight.is_some();
        let mut make = || {
            let (mut job, receiver) = Job::new(Arc::clone(&plan), ask(), statement.clone(), mark.clone(), until);
            job.flight = flight.take();
            job.time = self.statement_timeout;
            job.caller.clone_from(&caller);
            // Who has others with him does not take it back from them.
            let claim = if is_joined { Claim::default() } else { job.claim.clone() };
            told = Some((receiver, claim, job.sent.clone()));
            job
        };
        if !may_share {
            carry_one(Arc::clone(&self.pool), Arc::clone(&company), make());
            let (told, claim, sent) = told.expect("it was made");
            return travels(plan, caller, told, claim, sent, recourse);
        }
        let entry = line.enter(until.is_some() || is_joined, make);
        let is_wanted = match entry {
            Entry::Alone => return alone(plan, caller, true, recourse),
            Entry::Waits(is_wanted) => is_wanted,
        };
        if is_wanted {
            carry(Arc::clone(&self.pool), Arc::clone(&company), kind);
        }
        let (told, claim, sent) = told.expect("it was made when it had to wait");
        travels(plan, caller, told, claim, sent, recourse)
    }

    /// What is known of what is asked; none where that is nothing.
    pub(super) fn known(&self, company: &Arc<Company>, asked: &Unit<'_>) -> Option<Known> {
        match asked {
            Unit::Simple(text) => Known::of_text(text, &self.pool, company),
            Unit::Extended(extended) => {
                let changes = self.pool.effects.schema_changes();
                let own = self.names.statement(extended.name);
                let told = self.names.told(extended.name);
                let (statement, told) = match extended.definition {
                    None => (Arc::clone(own?), told),
                    Some(_) if extended.steps.tell_columns() => (self.statement_of(extended.definition?), None),
                    // What it has described before it is told by the columns of then.
                    Some(definition) => {
                        let is_same = |own: &&Arc<Statement>| {
                            own.definition() == definition
                                && own.is_of(changes)
                                && own.was_prepared_under(&self.settings)
                        };
                        match own.filter(is_same) {
                            Some(own) => (Arc::clone(own), told),
                            None => (self.statement_of(definition), None),
                        }
                    }
                };
                Known::of_statement(statement, told, &self.settings, &self.pool, company)
            }
        }
    }

    /// What a Parse with this body behind the name prepares now.
    fn statement_of(&self, definition: &[u8]) -> Arc<Statement> {
        let changes = self.pool.effects.schema_changes();
        self.pool.statements.of(definition, &self.settings, changes)
    }

    /// What memory is asked; none where there is nothing that it could have.
    pub(super) fn question(
        &self,
        company: &Arc<Company>,
        asked: &Unit<'_>,
        known: &Known,
        windows: Windows,
    ) -> Option<(Memory, Question)> {
        known.question(asked, windows, self.statement_timeout, &self.pool, company)
    }

    /// Whether what is known of these tables may be told; none where nothing is to be remembered, either. Who may be told something while the database is
    /// away has it asked and remembered however late the database is listened to.
    pub(super) fn is_heard(&self, tables: &[Arc<str>], windows: &Windows) -> Option<bool> {
        if self.pool.hears(tables, windows.max_lag) {
            return Some(true);
        }
        (!windows.away.is_zero() && self.pool.hears(tables, ANY_LAG)).then_some(false)
    }

    /// How old its answer may be; none where it is not to be remembered.
    pub(super) fn windows(&self, hints: &Hints, plan: &Plan) -> Option<Windows> {
        let windows = self.pool.remembers().then(|| plan.windows(hints)).flatten();
        if windows.is_some() {
            plan.note_windows();
        }
        windows
    }

    /// The client was answered just now, all that it has asked.
    pub(crate) fn is_answered(&mut self) {
        self.answered = self.pool.companies.join().then(Instant::now);
    }

    /// Whether the connection is set as the client's company is.
    pub(crate) fn may_learn(&self, server: &Server) -> bool {
        let settings = self.company.as_ref().map(|(settings, _)| settings);
        settings
            .is_some_and(|settings| Arc::ptr_eq(settings, &self.settings) && Arc::ptr_eq(settings, &server.settings))
    }

    /// What the client asks next, if it is one statement by itself, that is not offered to others.
    pub(crate) fn asked(&self, input: &[u8]) -> Option<Asked> {
        let asked = unit(input)?;
        Some(Asked::of(&asked, input, || match &asked {
            Unit::Simple(_) => None,
            Unit::Extended(extended) => extended.definition.map(|definition| self.statement_of(definition)),
        }))
    }

    /// What the client has prepared, and is described to it by the answer to this.
    pub(super) fn described_by(&self, asked: &Unit<'_>, statement: Option<&Arc<Statement>>) -> Option<Described> {
        match asked {
            Unit::Extended(extended) if extended.definition.is_none() && extended.steps.tell_columns() => self
                .names
                .described(extended.name, statement?, extended.name.is_empty()),
            _ => None,
        }
    }

    /// The client is told this for what it has asked.
    pub(crate) fn is_told(&mut self, asked: &Asked, said: &[u8]) {
        let Some(described) = &asked.describes else {
            return;
        };
        if let Some(types) = types_told_in(said)
            && !described.statement.learn_types(types)
        {
            let other = self.pool.statements.of_other_types(&described.statement, types);
            self.names.replace(described, &other);
        }
        if let Some(columns) = Columns::told_in(said) {
            self.names.is_told(described, columns);
        }
    }

    /// What was asked was answered, by no connection of the client's own.
    pub(crate) fn has_travelled(&mut self, kind: Kind, asked: Asked) {
        self.is_answered();
        if kind == Kind::Change {
            // Numbers that were drawn are on a connection that is nobody's.
            self.last = None;
        }
        self.keep_unnamed(asked);
    }

    /// The unnamed statement is the one that a Parse of it makes.
    pub(crate) fn keep_unnamed(&mut self, asked: Asked) {
        if let Some(statement) = asked.unnamed {
            let told = self.names.told_of(&[], statement.as_ref());
            let named = statement.map(|statement| Named {
                statement: Some(statement),
                told,
                // Of an answer that is there.
                lease: self.lease,
                place: 0,
            });
            self.names.set(Bytes::new(), named);
        }
    }

    /// Those that the client may travel with.
    pub(crate) fn company(&mut self) -> Option<Arc<Company>> {
        if let Some((settings, company)) = &self.company
            && Arc::ptr_eq(settings, &self.settings)
            && company.generation == self.pool.companies.generation()
        {
            return Some(Arc::clone(company));
        }
        let company = self.pool.companies.of(&self.beginning, &self.settings)?;
        warm(&self.pool, &company, self.statement_timeout);
        self.company = Some((Arc::clone(&self.settings), Arc::clone(&company)));
        Some(company)
    }
}

/// What is asked, as it is asked for others.
fn ask_of(asked: &Unit<'_>, statement: Option<&Statement>, told: Option<Columns>) -> Ask {
    match asked {
        Unit::Simple(text) => Ask::Simple(Bytes::copy_from_slice(text)),
        Unit::Extended(extended) => Ask::Extended {
            number: statement.map_or(0, Statement::number),
            bound: Bytes::copy_from_slice(extended.bound),
            steps: extended.steps,
            told,
        },
    }
}
