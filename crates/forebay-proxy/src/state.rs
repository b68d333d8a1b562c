//! State: what is a client's own, wherever it runs, and what it takes for true of the server connection that it has.
//!
//! Promises: what is taken for true and hangs on an answer is noted with what was asked, and taken back when that fails or is passed
//! over. Knows no message's bytes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::beginning::Beginning;
use crate::client::Client;
use crate::clients::{Doing, Registration};
use crate::copying::Copying;
use crate::effects::{self, Due, Row};
use crate::frames;
use crate::last_answer::LastAnswer;
use crate::leaves::{Leaves, of_what_it_makes};
use crate::leftovers::{self, Leftovers};
use crate::lent::Lent;
use crate::memory::watch::Watch;
use crate::numbers::Numbers;
use crate::plans::HangOn;
use crate::pool::{Pool, PoolMode};
use crate::reading::InForce;
use crate::replies::Asked;
use crate::server::{Note, Server};
use crate::settings::{CLIENT_ENCODING, ROLE, Settings};
use crate::sharing::company::Company;
use crate::statements::{Described, Named, Names, Prepared, Shape, Statement};
use crate::unknown_settings::UnknownSettings;
use crate::welcome::Reported;

/// What is left is asked again so often, where the asking was cancelled.
const IN_VAIN_MAX: usize = 3;

/// What calls functions is asked so often again, where something of it is locked and nothing is known of before.
const CALLERS_REFUSED_MAX: usize = 5;

/// The setting that ends a session which asks nothing for so long.
pub(crate) const IDLE_TIMEOUT: &str = "idle_session_timeout";

/// `currval` and `lastval` are undefined behind it, as in a new session.
const FORGET_NUMBERS: &str = "DISCARD SEQUENCES;";

/// So many portals are known.
const BOUND_MAX: usize = 64;

/// A portal, and of what it is.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) portal: Bytes,
    /// The statement.
    pub(crate) of: Described,
}

/// A portal of a statement that does more than read and change rows.
#[derive(Debug)]
pub(crate) struct Upsetting {
    pub(crate) portal: Bytes,
    /// It may discard what is prepared, or change the tables that it is of.
    pub(crate) is_of_prepared: bool,
    /// It resets all that is set.
    pub(crate) resets_all: bool,
    /// Texts may be read otherwise behind it.
    pub(crate) sets_reading: bool,
    /// Plans that hang on this may be of something else behind it.
    pub(crate) changes_plans: Option<HangOn>,
}

/// What is the client's own, wherever it runs.
#[derive(Debug)]
pub(crate) struct State {
    /// How often his [role](crate::role) was another when he came.
    pub(crate) role_changes: u64,
    pub(crate) pool: Arc<Pool>,
    /// For how long it has a connection.
    pub(crate) mode: PoolMode,
    /// The longest text that it may send.
    pub(crate) max_message_bytes: usize,
    pub(crate) beginning: Beginning,
    pub(crate) registration: Registration,
    pub(crate) names: Names,
    /// What the client's session began with, and begins with again when it discards all.
    pub(crate) base: Settings,
    pub(crate) settings: Arc<Settings>,
    /// The connection that it had last, and how often that had been lent by then.
    pub(crate) last: Option<Lent>,
    /// How many times it has been lent a connection.
    pub(crate) lease: u64,
    /// What the client was told of its settings.
    pub(crate) told: Arc<Reported>,
    /// Its user is one of those whom the console obeys.
    pub(crate) gives_commands: bool,
    /// What the client asks next is a command, and nothing is under way before it.
    pub(crate) has_command: bool,
    /// What has run may have left something.
    pub(crate) is_suspect: bool,
    /// Settings of the user's own that the client has named.
    pub(crate) named: BTreeSet<String>,
    /// Others, whose names nobody knows.
    pub(crate) unknown_settings: UnknownSettings,
    /// What is left was asked, and the answer is coming.
    pub(crate) is_asking: bool,
    /// What the client asks next waits for that, as memory may have the answer.
    pub(crate) is_for_memory: bool,
    pub(crate) leftovers: Leftovers,
    /// A row of what texts are read by, and those before it.
    pub(crate) shown: Option<String>,
    pub(crate) read_by: Settings,
    /// How often there was no answer, one after the other.
    pub(crate) asked_in_vain: usize,
    /// The session stays on its server connection.
    pub(crate) is_pinned: bool,
    /// It may have prepared something by SQL, on the connection that it has.
    pub(crate) has_prepared_by_sql: bool,
    /// What of the database's own leaves something was asked, and the answer is coming.
    pub(crate) is_learning: bool,
    /// The answer; none where it was refused.
    pub(crate) learnt: Option<Vec<Row>>,
    /// The functions are among it.
    pub(crate) knows_functions: bool,
    /// How often what calls them was refused.
    pub(crate) callers_refused: usize,
    /// It was the last time.
    pub(crate) are_callers_refused: bool,
    /// Only what roles are was asked.
    pub(crate) learns_roles: bool,
    /// Tags of commands of this transaction that change what of the database's own leaves something.
    pub(crate) changed: Vec<Bytes>,
    /// Those of sequences that it has drawn.
    pub(crate) numbers: Numbers,
    /// The last numbers of sequences on the connection that it has, if there are any, are its own.
    pub(crate) has_own_numbers: bool,
    /// Something of the client's was taken since it has the connection.
    pub(crate) has_taken: bool,
    /// It had cancelled what it asks before it had the connection.
    pub(crate) has_cancelled: bool,
    /// It has cancelled what it has asked, which the server is to be told once it has that.
    pub(crate) owes_cancel: bool,
    /// Bytes of a message that is passing through to the server.
    pub(crate) passing_in: usize,
    /// The same, to the client, and whether it is the client's to see.
    pub(crate) passing_out: usize,
    pub(crate) is_passing_visible: bool,
    pub(crate) undone: Vec<Note>,
    /// Names that the server was given so that it would refuse them a second time, and is to forget.
    pub(crate) lent_names: Vec<Bytes>,
    /// Portals of statements that deallocate a name, and which.
    pub(crate) deallocating: Vec<(Bytes, Bytes)>,
    /// Portals of what may change what is prepared, or how texts are read: nothing that is of that is asked before they are answered.
    pub(crate) upsetting: Vec<Upsetting>,
    /// Of which statements portals are, the last ones.
    pub(crate) bound: VecDeque<Bound>,
    /// The statement that was looked at for what is asked next, on the connection that it has.
    pub(crate) proven: Option<u64>,
    /// What was prepared last, by its name, as long as nothing was asked behind it.
    pub(crate) undescribed: Option<Bytes>,
    /// Where what was prepared before is described.
    pub(crate) described_at: u64,
    pub(crate) copying: Copying,
    /// What it asks may be carried by others.
    pub(crate) may_share: bool,
    /// How long the server may be at a statement of it.
    pub(crate) statement_timeout: Option<Duration>,
    /// Those it may travel with, as long as its settings are these.
    pub(crate) company: Option<(Arc<Settings>, Arc<Company>)>,
    /// When it had its last answer, where reads join others by that.
    pub(crate) answered: Option<Instant>,
    /// Where it had that. What the proxy itself says is no answer.
    pub(crate) last_answer: LastAnswer,
    /// When the first thing that was asked on the connection that it has was answered.
    pub(crate) first_answered: Option<Instant>,
    /// Where a text was asked that may discard what is prepared, or change the tables that it is of.
    pub(crate) upsetting_at: Option<u64>,
    /// What its transaction does to rows.
    pub(crate) watch: Watch,
    /// When the server last heard of it, where answers are remembered.
    pub(crate) spoke: Option<Instant>,
}

impl State {
    /// Brings a server connection to what the client has set. It may have cancelled what it asks already.
    pub(crate) fn settle_in(&mut self, server: &mut Server, is_cancelled: bool) {
        self.has_cancelled = is_cancelled;
        self.owes_cancel = false;
        self.registration.entry.set_doing(match self.mode {
            PoolMode::Transaction => Doing::Active,
            PoolMode::Session => Doing::Pinned,
        });
        server.shown.lend_to(self.registration.entry.process_id);
        self.lease += 1;
        // All that is asked on it.
        self.last_answer = LastAnswer::Database;
        self.first_answered = None;
        self.has_taken = false;
        self.has_prepared_by_sql = false;
        self.upsetting_at = None;
        self.unknown_settings.begins();
        self.deallocating.clear();
        self.upsetting.clear();
        self.bound.clear();
        self.proven = None;
        self.undescribed = None;
        self.described_at = 0;
        self.copying = Copying::default();
        let due = self.pool.effects.due();
        if due != Due::Nothing {
            self.is_learning = true;
            self.learnt = Some(Vec::new());
            self.knows_functions = false;
            self.callers_refused = 0;
            self.are_callers_refused = false;
            self.learns_roles = due == Due::Roles;
            let asked = if self.learns_roles {
                &effects::ASK_ROLES
            } else {
                &effects::ASK_SOURCES
            };
            server.ask(asked, Note::Effects);
        }
        let mut before = String::new();
        if !server.lent.follows(self.last) {
            self.has_own_numbers = server.lent.is_first();
            if !self.has_own_numbers && (self.numbers.are_heeded() || self.pool.asks_for_numbers()) {
                before.push_str(FORGET_NUMBERS);
                self.has_own_numbers = true;
            }
        }
        before += server.begin_plans(self.pool.effects.grounds(), &self.settings);
        let is_unchanged = before.is_empty() && Arc::ptr_eq(&server.settings, &self.settings);
        let change = match is_unchanged {
            true => String::new(),
            false => server.settings.change_to(&self.settings, &before),
        };
        if !change.is_empty() {
            server.ask(&change, Note::Set);
        } else if !self.is_learning {
            self.is_reached_by_cancels(server);
        }
        if !change.is_empty() || self.is_learning {
            // Nothing runs for the client before that is done: a cancel is not to hit it, and is kept.
            self.registration.entry.travels();
        }
        server.settings = Arc::clone(&self.settings);
        server.in_force = InForce::Settled;
    }

    /// What runs on the connection is the client's from now on, and may be cancelled.
    pub(crate) fn is_reached_by_cancels(&mut self, server: &Server) {
        let entry = &self.registration.entry;
        entry.set_running(Some(server.cancel.clone()));
        self.owes_cancel |= entry.has_travelled() | std::mem::take(&mut self.has_cancelled);
    }

    /// A text may ask for the last number of a sequence. Where they may be somebody else's there are none from now on, but inside of a
    /// transaction: the numbers that it asks for are most probably those that were drawn in it.
    pub(crate) fn ask_for_numbers(&mut self, server: &mut Server) {
        self.pool.ask_for_numbers();
        let is_outside = server.status == b'I' && server.replies.is_told_all();
        if !self.has_own_numbers && is_outside && server.replies.is_ready_for_next() {
            server.ask(FORGET_NUMBERS, Note::Set);
            self.has_own_numbers = true;
        }
    }

    /// Whether it is told in a moment if a text that asks for the last number of a sequence is inside of a transaction, and that matters.
    pub(crate) fn waits_for_numbers(&self, server: &Server) -> bool {
        !self.has_own_numbers && server.replies.is_telling()
    }

    /// Whether the server was asked what may change what is prepared on it, or the tables that it is of, and has not answered.
    pub(crate) fn is_upsetting(&self, server: &Server) -> bool {
        self.upsetting_at.is_some_and(|place| server.replies.is_awaited(place))
    }

    /// Whether the server connection may go back.
    pub(crate) fn is_free(&mut self, client: &Client, server: &mut Server) -> bool {
        if self.passing_in > 0 || self.passing_out > 0 || server.status != b'I' || !server.replies.is_empty() {
            return false;
        }
        if self.mode == PoolMode::Session {
            return false;
        }
        if self.is_suspect {
            self.is_suspect = false;
            self.is_asking = true;
            self.leftovers = Leftovers::default();
            let is_once_more = self.asked_in_vain > 0;
            let may_begin_as = self.beginning.may_set(ROLE);
            server.ask(
                &leftovers::ask(&self.named, is_once_more, may_begin_as),
                Note::Leftovers,
            );
            server.has_moved = false;
            return false;
        }
        if self.is_pinned || self.numbers.are_kept() || self.is_asking || !server.is_settled() {
            return false;
        }
        // Whoever goes on at once goes on here, unless memory may have the answer, or others wait. Nobody goes before he was served: with what each has to set first, those
        // who wait would hand the connection round for ever.
        !frames::has_message(&client.input)
            || std::mem::take(&mut self.is_for_memory)
            || self.has_command
            || (self.has_taken && self.pool.is_waited_for())
    }

    /// Whether nothing is under way on the connection that the session keeps, and no transaction is open.
    pub(crate) fn rests(&self, server: &Server) -> bool {
        self.passing_in == 0 && self.passing_out == 0 && server.status == b'I' && server.replies.is_empty()
    }

    /// What is asked at this place may leave something that is to be looked for.
    pub(crate) fn suspect(&mut self, leaves: &Leaves, place: u64) {
        self.is_suspect = true;
        match &leaves.named {
            Some(named) => self.named.extend(named.iter().map(|name| name.to_ascii_lowercase())),
            None => self.unknown_settings.may_be_set(place, leaves.is_broken),
        }
    }

    /// What is asked makes functions, if it does: they may be called before anybody looks at them.
    pub(crate) fn heed_what_it_makes(&mut self, text: &[u8]) {
        if let Some(named) = of_what_it_makes(text) {
            self.pool.effects.makes(&named);
            self.named.extend(named.iter().map(|name| name.to_ascii_lowercase()));
        }
    }

    /// Whether what the name stands for is not known before the server has answered.
    pub(crate) fn is_undecided(&self, name: &[u8], server: &Server) -> bool {
        let named = self.names.place(name, self.lease);
        let prepared = self
            .names
            .statement(name)
            .and_then(|statement| server.prepared.place(statement.number()));
        let unnamed = name.is_empty().then(|| server.prepared.unnamed_place());
        [named, prepared, unnamed]
            .into_iter()
            .flatten()
            .any(|place| server.replies.is_undecided(place))
    }

    /// Lets a name stand for a statement, or for none, as what is asked now has it; what to note of that.
    pub(crate) fn name(
        &mut self,
        name: Bytes,
        statement: Option<Arc<Statement>>,
        number: Option<u64>,
        server: &Server,
    ) -> Note {
        let (lease, place) = (self.lease, server.replies.next_place());
        let told = self.names.told_of(&name, statement.as_ref());
        let before = self.names.set(
            name.clone(),
            Some(Named {
                statement,
                told,
                lease,
                place,
            }),
        );
        Note::Named {
            name,
            place,
            before,
            number,
        }
    }

    /// A statement that the client has failed where it was used: if it is not what it was taken for, it is not taken for that again.
    pub(crate) fn heal(&self, name: &[u8], number: u64, error: &[u8], prepared: &mut Prepared) {
        let Some(statement) = self.names.statement(name) else {
            return;
        };
        match frames::field(error, b'C') {
            // It is not there any more.
            Some(b"26000") => prepared.remove(number),
            // What it reads has other columns now: it fails as it would straight. Who prepares the same text from now on prepares another.
            Some(b"0A000") => {
                self.pool.statements.retire(statement);
                // Who has prepared it before a change that was seen is refused from then on, as straight; others are not to be for what was not.
                if statement.is_of(self.pool.effects.schema_changes()) {
                    prepared.set_shape(number, Shape::Changed);
                }
            }
            _ => {}
        }
    }

    /// The server tells the client that the parameters of what it calls so are of these types. Where others were told of others before, the tables have changed,
    /// past the proxy maybe: then it is another statement to the client from now on, and there it is prepared anew for those.
    pub(crate) fn is_told_types(&mut self, described: &Described, types: &[u8], server: &mut Server) {
        let (statement, is_unnamed) = (&described.statement, described.is_unnamed);
        let number = statement.number();
        if statement.learn_types(types) {
            if !is_unnamed {
                server.prepared.is_typed(number);
            }
            return;
        }
        let other = self.pool.statements.of_other_types(statement, types);
        self.names.replace(described, &other);
        // Under our name it is not of the types that were told, which is known: it is prepared anew for the first who was told.
        if is_unnamed {
            server
                .prepared
                .rename_unnamed((number, described.since.1), other.number());
        }
    }

    /// A portal is of this statement from now on, which has this name; of none that is known, if it is none.
    pub(crate) fn binds(&mut self, portal: &[u8], of: Option<Described>) {
        self.bound.retain(|bound| bound.portal != portal);
        let Some(of) = of else { return };
        if self.bound.len() == BOUND_MAX {
            self.bound.pop_front();
        }
        let portal = Bytes::copy_from_slice(portal);
        self.bound.push_back(Bound { portal, of });
    }

    /// Whether it is of interest how the server describes what the client has prepared by this name: as long as the client does not know, or nobody knows
    /// that it is the same there.
    pub(crate) fn heeds_description(&self, name: &[u8], statement: &Statement, server: &Server) -> bool {
        let has = |told| server.prepared.is_as_told(statement, told);
        statement.has_shape()
            && !statement.stands_for_another()
            && (name.is_empty() || !self.names.told(name).is_some_and(has))
    }

    pub(crate) fn ask(&mut self, server: &mut Server, asked: Asked, is_ours: bool, note: Option<Note>) {
        let refused = server.replies.ask(asked, is_ours, note);
        self.undo(refused, server);
    }

    /// What was noted did not come about.
    pub(crate) fn undo(&mut self, note: Option<Note>, server: &mut Server) {
        match note {
            Some(Note::Named {
                name,
                place,
                before,
                number,
            }) => {
                self.names.undo(name, (self.lease, place), before);
                if let Some(number) = number {
                    server.prepared.remove(number);
                }
            }
            Some(Note::Queried {
                place,
                unnamed,
                deallocated,
            }) => {
                let at = (self.lease, place);
                self.names.undo(Bytes::new(), at, unnamed);
                if let Some((name, before)) = deallocated {
                    self.names.undo(name, at, before);
                }
            }
            Some(Note::Prepared { number }) => server.prepared.remove(number),
            Some(Note::Evicted { number }) => server.prepared.put_back(number),
            Some(Note::Reading { .. } | Note::Read) => server.in_force = InForce::Moved,
            Some(Note::Proves { statement, .. }) => server.prepared.set_shape(statement.number(), Shape::Unknown),
            Some(
                Note::Set
                | Note::Discarded
                | Note::Leftovers
                | Note::Effects
                | Note::Uses { .. }
                | Note::Describes(_)
                | Note::Changed { .. },
            )
            | None => {}
        }
    }

    /// Tells the client what the server reports otherwise than it was told.
    pub(crate) fn tell(&mut self, client: &mut Client, server: &Server) {
        if self.told == server.reported {
            return;
        }
        for (name, value) in server.reported.iter() {
            if self.told.get(name) != Some(value) {
                frames::put(&mut client.output, b'S', &[name, &[0], value, &[0]]);
            }
        }
        self.told = Arc::clone(&server.reported);
    }

    /// What is left on the server is known.
    pub(crate) fn settle_up(&mut self, server: &mut Server) {
        self.is_asking = false;
        let mut left = std::mem::take(&mut self.leftovers);
        if left.is_refused && self.asked_in_vain < IN_VAIN_MAX {
            self.asked_in_vain += 1;
            self.is_suspect = true;
            return;
        }
        if left.is_refused {
            left.pins.push("what cannot be asked".to_owned());
        }
        self.asked_in_vain = 0;
        if self.unknown_settings.are_any() {
            left.pins.push("settings of unknown names".to_owned());
        }
        // By it the server would end whoever has the connection next.
        if left.settings.get(IDLE_TIMEOUT).is_some_and(|timeout| timeout != "0") {
            left.pins.push(IDLE_TIMEOUT.to_owned());
        }
        let is_pinned = !left.pins.is_empty() || self.beginning.may_set(IDLE_TIMEOUT);
        if is_pinned != self.is_pinned {
            tracing::debug!(keeps = ?left.pins, is_pinned, "a session stays on its server connection, or does no more");
            self.is_pinned = is_pinned;
            self.registration
                .entry
                .set_doing(if is_pinned { Doing::Pinned } else { Doing::Active });
        }
        let mut settings = self.base.clone();
        settings.extend(&left.settings);
        if !left.is_refused {
            server.settle();
        }
        server.settings = Arc::new(left.settings);
        server.plans.are_under(&server.settings);
        if *self.settings != settings {
            let encoding = |settings: &Settings| settings.get(CLIENT_ENCODING).map(str::to_owned);
            if encoding(&self.settings) != encoding(&settings) {
                // Names of columns are in it.
                self.names.forget_told();
            }
            self.settings = Arc::new(settings);
        }
    }

    /// What of the database's own leaves something is known.
    pub(crate) fn learn(&mut self, server: &mut Server) {
        let functions = self.learnt.as_ref().filter(|_| !self.knows_functions);
        if !self.learns_roles && functions.is_some_and(|functions| effects::have_source(functions)) {
            self.knows_functions = true;
            server.ask(&effects::ASK_CALLERS, Note::Effects);
            return;
        }
        let asks_again = std::mem::take(&mut self.are_callers_refused);
        if asks_again && self.callers_refused <= CALLERS_REFUSED_MAX && !self.pool.effects.knows_callers() {
            server.ask(&effects::ASK_CALLERS, Note::Effects);
            return;
        }
        self.is_learning = false;
        let learnt = self.learnt.take();
        // Of another database, perhaps, if the way there has changed meanwhile: the next who comes asks again.
        if self.pool.is_of_now(server) {
            match self.learns_roles {
                true => self.pool.effects.learn_roles(&learnt.unwrap_or_default()),
                false => self.pool.effects.learn(learnt, asks_again),
            }
        }
        // By what is known now, plans of before may be of others.
        let discards = server.begin_plans(self.pool.effects.grounds(), &self.settings);
        if !discards.is_empty() {
            server.ask(discards, Note::Set);
        }
        if server.replies.is_empty() {
            self.is_reached_by_cancels(server);
        }
    }

    /// What is asked of the catalog was refused.
    pub(crate) fn learns_nothing(&mut self) {
        match &mut self.learnt {
            // Something that may call functions is locked.
            Some(learnt) if self.knows_functions => {
                learnt.retain(|row| !row.is_of_a_caller());
                self.callers_refused += 1;
                self.are_callers_refused = true;
            }
            learnt => *learnt = None,
        }
    }

    /// The transaction is over: what it has changed is seen by all.
    pub(crate) fn tell_changes(&mut self) {
        for tag in std::mem::take(&mut self.changed) {
            self.pool.effects.has_changed(&tag);
            // It may have set it off already, if it has made something that can be.
            self.is_suspect |= !effects::only_drops(&tag);
        }
    }

    /// The server knows no prepared statement any more.
    pub(crate) fn discarded(&mut self, server: &mut Server) {
        self.names.keep_the_unnamed();
        server.prepared.keep_the_unnamed();
    }
}
