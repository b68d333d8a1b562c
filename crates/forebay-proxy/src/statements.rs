//! Statements: what clients have prepared by name, and what of it each server connection knows under which name.
//!
//! Promises: a statement is known by all of its bytes, its parameters' types and the settings it was prepared under, and by
//! what changes of tables had been seen; two that differ in any are two. Names are the client's own affair: the server's are made from a number that no other statement has.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use bytes::Bytes;
use forebay_sql::{
    Caller, Dialect, Hints, Verb, deallocates, describes_nothing, executes, hints_and_caller, may_make_tables,
    mentions_a_moment, names_a_moment, plans_nothing, verb, without_comments,
};
use parking_lot::Mutex;

use crate::columns::Columns;
use crate::effects::Suspects;
use crate::figures::{Counting, Top};
use crate::frames::zero_terminated;
use crate::leaves::{Leaves, has_word};
use crate::plans::HangOn;
use crate::reading::{self, InForce, Reading, are_alike};
use crate::settings::Settings;
use crate::sharing::plan::Plan;

/// So much is shown of a text.
const SHOWN_CHARS_MAX: usize = 1000;

/// What makes a prepared statement: the body of its Parse behind the name, and what it was prepared under.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Identity {
    /// Text, zero, count of types, types.
    definition: Box<[u8]>,
    settings: Arc<Settings>,
    /// By what else its text is read, where that matters and is not what the session has set.
    reading: Option<Reading>,
    /// What is in force where it is executed, where it is read by something else.
    executed_by: Option<Reading>,
    /// Of the database, as far as the proxy has seen them.
    schema_changes: u64,
}

/// A statement as it was prepared.
#[derive(Debug)]
pub(crate) struct Statement {
    identity: Arc<Identity>,
    number: u64,
    leaves: Option<Leaves>,
    /// What it may leave by what it sets off, as far as that was known last.
    set_off: Mutex<Option<(u64, Option<Arc<Leaves>>)>>,
    deallocates: Option<Bytes>,
    describes_nothing: bool,
    asks_for_numbers: bool,
    may_copy_in: bool,
    is_read_by_settings: bool,
    /// Texts may be read otherwise behind it.
    may_set_reading: bool,
    /// What plans hang on that it may set.
    may_set_plans: Option<HangOn>,
    may_change_tables: bool,
    may_make_tables: bool,
    /// The server looks whether it has other columns than it was prepared with; what calls another statement by its name, or a cursor, may have any.
    keeps_columns: bool,
    hints: Hints,
    /// Who asks it, as its comments say it, and what is counted of that.
    caller: Option<(Box<str>, OnceLock<Arc<Counting>>)>,
    names_a_moment: bool,
    /// What is known of it in the company that asked last.
    plan: Mutex<Option<(u64, Arc<Plan>)>>,
    told_apart_by: OnceLock<Option<ToldApart>>,
    /// The body of the ParameterDescription that was told first, to whoever asked.
    types_described: OnceLock<Box<[u8]>>,
    /// Those that are executed for it where something else is in force than it is read by, the latest last.
    elsewhere: Mutex<Vec<Arc<Statement>>>,
}

/// So many are kept of one.
const ELSEWHERE_MAX: usize = 8;
/// So many are known by one identity.
const OF_OTHER_TYPES_MAX: usize = 8;

/// By what statements are told apart that ask something else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToldApart {
    /// Without comments.
    pub(crate) text: Box<str>,
    /// Of parameters, as they were given.
    pub(crate) types: Box<[u8]>,
    /// Of both.
    pub(crate) hash: u64,
}

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The name of the prepared statement that the text deallocates.
pub(crate) fn deallocated(text: &[u8]) -> Option<Bytes> {
    deallocates(std::str::from_utf8(text).ok()?).map(Bytes::from)
}

/// The name of the prepared statement that the text executes.
pub(crate) fn executed(text: &[u8]) -> Option<Bytes> {
    executes(std::str::from_utf8(text).ok()?).map(Bytes::from)
}

/// Whether the text may ask for the last number of a sequence: it has the name of one of the functions that do.
pub(crate) fn asks_for_numbers(text: &[u8]) -> bool {
    text.windows(b"currval".len())
        .any(|part| part.eq_ignore_ascii_case(b"currval") || part.eq_ignore_ascii_case(b"lastval"))
}

/// Whether the text may copy in what the client sends behind it: it has the words that do.
fn may_copy_in(text: &[u8]) -> bool {
    has_word(text, b"copy") && has_word(text, b"stdin")
}

/// Whether the text may change tables that are there.
pub(crate) fn may_change_tables(text: &[u8]) -> bool {
    std::str::from_utf8(text).map_or(true, forebay_sql::may_change_tables)
}

/// Whether the text may end its transaction, or have begun one: it does something else than to read and change rows, or more than one thing.
pub(crate) fn may_end_a_transaction(text: &[u8]) -> bool {
    text.contains(&b';') || std::str::from_utf8(text).map_or(true, |text| verb(Dialect::Postgres, text) == Verb::Other)
}

/// Whether by what settings a text is prepared makes a difference. What is not planned has its constants read when it is executed.
pub(crate) fn is_read_by_settings(text: &[u8]) -> bool {
    let is_nothing_but_words = || !text.contains(&b'\\') && std::str::from_utf8(text).is_ok_and(plans_nothing);
    forebay_sql::is_read_by_settings(text) && !is_nothing_but_words()
}

/// Whether texts may be read otherwise behind this one.
pub(crate) fn may_set_reading(text: &[u8]) -> bool {
    std::str::from_utf8(text).map_or(true, forebay_sql::may_set_reading)
}

/// What the comments of a text ask, and who asks it, if that is said.
pub(crate) fn hints_of(text: &[u8]) -> (Hints, Option<Caller<'_>>) {
    std::str::from_utf8(text).map_or_else(|_| Default::default(), hints_and_caller)
}

/// What a caller is counted by: its file, a colon, and its line, if that is known.
pub(crate) fn name_of(caller: Caller<'_>) -> String {
    let line = caller.line.map(|line| line.to_string());
    [caller.file, ":", &line.unwrap_or_default()].concat()
}

/// Whether a text has a string for the moment at which it is parsed.
pub(crate) fn tells_a_moment(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(names_a_moment)
}

/// Whether among what is bound there may be a word for the moment at which it is read.
pub(crate) fn tells_a_moment_by_value(bound: &[u8]) -> bool {
    const WORDS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];
    // What is within quotes of its own, of a range or an array, may have some inside of it, as `[n\ow,)`.
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\\');
    let unquoted: Vec<u8>;
    let bound = match bound.iter().any(is_quote) {
        true => {
            unquoted = bound.iter().copied().filter(|byte| !is_quote(byte)).collect();
            &unquoted
        }
        false => bound,
    };
    let begins = |at: usize| {
        let rest = &bound[at..];
        WORDS.iter().any(|word| {
            rest.get(..word.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        })
    };
    (0..bound.len()).any(begins)
}

/// Whether parameters of these types, as in a Parse, have an offset and no date, `timetz` (1266), or may get one, `time` (1083); and arrays of them.
fn hang_on_the_day(text: &str, types: &[u8]) -> bool {
    let mut types = types.get(2..).unwrap_or_default().chunks_exact(4);
    types.any(|oid| match u32::from_be_bytes(*oid.first_chunk().expect("four")) {
        1266 | 1270 => true,
        1083 | 1183 => {
            let text = text.to_ascii_lowercase();
            ["zone", "local"].iter().any(|word| text.contains(word))
        }
        _ => false,
    })
}

impl Statement {
    /// The text without its comments, and the types of parameters that were given, by which it is told apart from those that ask something else;
    /// none where it may have a word for the moment at which it is read, or parameters that hang on the day.
    pub(crate) fn told_apart_by(&self) -> Option<&ToldApart> {
        let told = self.told_apart_by.get_or_init(|| {
            let (text, types) = zero_terminated(&self.identity.definition)?;
            let text = without_comments(std::str::from_utf8(text).ok()?)?;
            if hang_on_the_day(&text, types) {
                return None;
            }
            let hash = HASHER.hash_one((&text, types));
            let told = || ToldApart {
                hash,
                types: types.into(),
                text: text.as_str().into(),
            };
            (!mentions_a_moment(&text)).then(told)
        });
        told.as_ref()
    }

    /// The body of its Parse behind the name.
    pub(crate) fn definition(&self) -> &[u8] {
        &self.identity.definition
    }

    /// What of what it does may outlive its transaction.
    pub(crate) fn leaves(&self) -> Option<&Leaves> {
        self.leaves.as_ref()
    }

    /// What it may leave by what of the database's own it sets off.
    pub(crate) fn set_off(&self, suspects: &Suspects) -> Option<Arc<Leaves>> {
        let mut set_off = self.set_off.lock();
        match &*set_off {
            Some((generation, leaves)) if *generation == suspects.generation() => leaves.clone(),
            _ => {
                let text = text_of(&self.identity.definition);
                let leaves = suspects.set_off_by(text).map(Arc::new);
                *set_off = Some((suspects.generation(), leaves.clone()));
                leaves
            }
        }
    }

    /// The name of the prepared statement that it deallocates.
    pub(crate) fn deallocates(&self) -> Option<&Bytes> {
        self.deallocates.as_ref()
    }

    /// Whether the server describes it by no parameter and no column.
    pub(crate) fn describes_nothing(&self) -> bool {
        self.describes_nothing
    }

    /// Whether it may ask for the last number of a sequence.
    pub(crate) fn asks_for_numbers(&self) -> bool {
        self.asks_for_numbers
    }

    /// Whether it may copy in what the client sends behind its Execute.
    pub(crate) fn may_copy_in(&self) -> bool {
        self.may_copy_in
    }

    /// Whether the server takes it by no other columns than it was prepared with.
    pub(crate) fn keeps_columns(&self) -> bool {
        self.keeps_columns
    }

    /// Whether there is something to be kept of how it is described: columns, or the types of parameters.
    pub(crate) fn has_shape(&self) -> bool {
        self.keeps_columns || text_of(self.definition()).contains(&b'$')
    }

    /// Whether it may change the tables that others are of.
    pub(crate) fn may_change_tables(&self) -> bool {
        self.may_change_tables
    }

    /// Whether it may make a table without its tag saying so.
    pub(crate) fn may_make_tables(&self) -> bool {
        self.may_make_tables
    }

    /// What its comments ask.
    pub(crate) fn hints(&self) -> Hints {
        self.hints
    }

    /// What is counted of who asks it, as long as the statement is there; none where its comments do not say who that is.
    pub(crate) fn caller(&self, callers: &Top) -> Option<&Arc<Counting>> {
        let (name, counting) = self.caller.as_ref()?;
        Some(counting.get_or_init(|| callers.of(name)))
    }

    /// Whether its text has a string for the moment at which it is parsed: prepared once for all, it would be that of the first.
    pub(crate) fn names_a_moment(&self) -> bool {
        self.names_a_moment
    }

    /// Whether it was prepared under these settings.
    pub(crate) fn was_prepared_under(&self, settings: &Arc<Settings>) -> bool {
        let own = &self.identity.settings;
        self.identity.reading.is_none() && (Arc::ptr_eq(own, settings) || own == settings)
    }

    /// Whether it would be prepared now on a connection as it was then, where this is set on it and that in force.
    pub(crate) fn is_read_alike(&self, settings: &Settings, in_force: &InForce) -> bool {
        !self.is_read_by_settings
            || match (&self.identity.reading, in_force) {
                (None, InForce::Settled) => are_alike(&self.identity.settings, settings),
                (Some(reading), InForce::Known(now)) => reading == now,
                _ => false,
            }
    }

    /// The text that has it read as it was when it was prepared.
    pub(crate) fn set_reading(&self) -> String {
        match &self.identity.reading {
            Some(reading) => reading.set(),
            None => reading::set(&self.identity.settings),
        }
    }

    /// Whether it is executed for another, which its clients know.
    pub(crate) fn stands_for_another(&self) -> bool {
        self.identity.executed_by.is_some()
    }

    /// Whether by what settings it is prepared makes a difference.
    pub(crate) fn is_read_by_settings(&self) -> bool {
        self.is_read_by_settings
    }

    /// Whether it may end its transaction, with what was set in it.
    pub(crate) fn may_end_a_transaction(&self) -> bool {
        !self.keeps_columns
    }

    /// Whether texts may be read otherwise behind it.
    pub(crate) fn may_set_reading(&self) -> bool {
        self.may_set_reading
    }

    /// What plans hang on that it may set.
    pub(crate) fn may_set_plans(&self) -> Option<HangOn> {
        self.may_set_plans
    }

    /// Whether it was prepared after so many changes of tables.
    pub(crate) fn is_of(&self, schema_changes: u64) -> bool {
        self.identity.schema_changes == schema_changes
    }

    /// The server tells whom it was prepared for by this ParameterDescription of which types its parameters are. What was told first is kept; false if that
    /// was something else.
    pub(crate) fn learn_types(&self, body: &[u8]) -> bool {
        **self.types_described.get_or_init(|| body.into()) == *body
    }

    /// The body of its ParameterDescription, if one was told.
    pub(crate) fn types_described(&self) -> Option<&[u8]> {
        self.types_described.get().map(|types| &**types)
    }

    /// The body of a Parse behind the name that prepares the same once more, with the parameters' types as they were then.
    pub(crate) fn definition_as_described(&self) -> Cow<'_, [u8]> {
        match self.types_described() {
            Some(types) => [text_of(self.definition()), &[0], types].concat().into(),
            None => self.definition().into(),
        }
    }

    /// What is known of it in the company of this number; made where that is not known yet.
    pub(crate) fn plan(&self, company: u64, make: impl FnOnce() -> Option<Arc<Plan>>) -> Option<Arc<Plan>> {
        let mut plan = self.plan.lock();
        if let Some((of, known)) = &*plan
            && *of == company
        {
            return Some(Arc::clone(known));
        }
        let made = make()?;
        *plan = Some((company, Arc::clone(&made)));
        Some(made)
    }

    /// What tells it from all others.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// All statements that some client of one pool has.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Whoever prepares one prepares the last of these; those before it have parameters of other types.
    by_identity: HashMap<Arc<Identity>, Vec<Weak<Statement>>, foldhash::fast::RandomState>,
    last: u64,
    /// Of those that nobody has any more the table is cleared when it is as long as this.
    swept_at: usize,
}

impl Table {
    fn make(&mut self, identity: &Arc<Identity>) -> Arc<Statement> {
        self.last += 1;
        let text = text_of(&identity.definition);
        let (hints, caller) = hints_of(text);
        let leaves = Leaves::of(text);
        Arc::new(Statement {
            identity: Arc::clone(identity),
            number: self.last,
            may_set_plans: HangOn::changed_behind(text, leaves.as_ref()),
            leaves,
            set_off: Mutex::new(None),
            deallocates: deallocated(text),
            describes_nothing: zero_terminated(&identity.definition).is_some_and(|(_, types)| types == [0, 0])
                && std::str::from_utf8(text).is_ok_and(describes_nothing),
            asks_for_numbers: asks_for_numbers(text),
            may_copy_in: may_copy_in(text),
            is_read_by_settings: is_read_by_settings(text),
            may_set_reading: may_set_reading(text),
            may_change_tables: may_change_tables(text),
            may_make_tables: std::str::from_utf8(text).is_ok_and(may_make_tables),
            keeps_columns: std::str::from_utf8(text).is_ok_and(|text| verb(Dialect::Postgres, text) != Verb::Other),
            hints,
            caller: caller.map(|caller| (name_of(caller).into(), OnceLock::new())),
            names_a_moment: tells_a_moment(text),
            plan: Mutex::new(None),
            told_apart_by: OnceLock::new(),
            types_described: OnceLock::new(),
            elsewhere: Mutex::default(),
        })
    }
}

impl Statements {
    /// The one statement of this definition under these settings, after so many changes of the database's tables.
    pub(crate) fn of(&self, definition: &[u8], settings: &Arc<Settings>, schema_changes: u64) -> Arc<Statement> {
        self.read_by(definition, settings, None, schema_changes)
    }

    /// The same where its text is read otherwise than these settings say.
    pub(crate) fn read_by(
        &self,
        definition: &[u8],
        settings: &Arc<Settings>,
        reading: Option<Reading>,
        schema_changes: u64,
    ) -> Arc<Statement> {
        let identity = Arc::new(Identity {
            definition: definition.into(),
            settings: Arc::clone(settings),
            reading,
            executed_by: None,
            schema_changes,
        });
        let mut table = self.table.lock();
        let last = table.by_identity.get(&identity).and_then(|known| known.last());
        if let Some(known) = last.and_then(Weak::upgrade) {
            return known;
        }
        if table.by_identity.len() >= table.swept_at.max(1024) {
            let has_any = |known: &mut Vec<Weak<Statement>>| known.iter().any(|one| one.strong_count() > 0);
            table.by_identity.retain(|_, known| has_any(known));
            table.swept_at = table.by_identity.len() * 2;
        }
        let statement = table.make(&identity);
        table.by_identity.insert(identity, vec![Arc::downgrade(&statement)]);
        statement
    }

    /// A statement of the proxy's own, which stands for this one.
    pub(crate) fn beside(&self, statement: &Statement, text: &str) -> Arc<Statement> {
        self.ours(text, &[], &statement.identity.settings, 0)
    }

    /// The same with parameters of these types, as a client was told, where others were told of others before: whoever prepares it from now on prepares
    /// this one.
    pub(crate) fn of_other_types(&self, statement: &Statement, types: &[u8]) -> Arc<Statement> {
        let identity = &statement.identity;
        let mut table = self.table.lock();
        let mut known = table.by_identity.remove(identity).unwrap_or_default();
        known.retain(|one| one.strong_count() > 0);
        let has_them =
            |other: Arc<Statement>| (other.number != statement.number && other.learn_types(types)).then_some(other);
        let found = (0..known.len())
            .rev()
            .find_map(|at| known[at].upgrade().and_then(has_them).map(|other| (at, other)));
        let other = match found {
            Some((at, other)) => {
                known.remove(at);
                other
            }
            None => {
                let other = table.make(identity);
                other.learn_types(types);
                other
            }
        };
        if known.len() == OF_OTHER_TYPES_MAX {
            known.remove(0);
        }
        known.push(Arc::downgrade(&other));
        table.by_identity.insert(Arc::clone(identity), known);
        other
    }

    /// What is executed for this one where this is in force. The server reads a text once more behind any change of its tables (`RevalidateCachedQuery` in its
    /// `plancache.c`), by what is in force for whoever executes it then: so who reads otherwise than it was read executes another, as nobody else does who reads
    /// as it was.
    pub(crate) fn executed_by(&self, statement: &Statement, now: Reading) -> Arc<Statement> {
        let mut elsewhere = statement.elsewhere.lock();
        let is_it = |other: &Arc<Statement>| other.identity.executed_by.as_ref() == Some(&now);
        let learn = |other: &Statement| statement.types_described().map(|types| other.learn_types(types));
        if let Some(known) = elsewhere.iter().find(|other| is_it(other)) {
            learn(known);
            return Arc::clone(known);
        }
        let own = &statement.identity;
        let identity = Arc::new(Identity {
            definition: own.definition.clone(),
            settings: Arc::clone(&own.settings),
            reading: own.reading.clone(),
            executed_by: Some(now),
            schema_changes: own.schema_changes,
        });
        let other = self.table.lock().make(&identity);
        learn(&other);
        if elsewhere.len() == ELSEWHERE_MAX {
            elsewhere.remove(0);
        }
        elsewhere.push(Arc::clone(&other));
        other
    }

    /// The same once more, which no connection has prepared.
    pub(crate) fn anew(&self, statement: &Statement) -> Arc<Statement> {
        self.table.lock().make(&statement.identity)
    }

    /// A statement of the proxy's own, which is no client's, with parameters of these types.
    pub(crate) fn ours(
        &self,
        text: &str,
        types: &[u32],
        settings: &Arc<Settings>,
        schema_changes: u64,
    ) -> Arc<Statement> {
        let count = u16::try_from(types.len()).expect("a text has no more").to_be_bytes();
        let types: Vec<u8> = types.iter().flat_map(|number| number.to_be_bytes()).collect();
        let identity = Arc::new(Identity {
            definition: [text.as_bytes(), &[0], &count, &types].concat().into(),
            settings: Arc::clone(settings),
            reading: None,
            executed_by: None,
            schema_changes,
        });
        self.table.lock().make(&identity)
    }
}

/// The text that a definition begins with.
pub(crate) fn text_of(definition: &[u8]) -> &[u8] {
    zero_terminated(definition).map_or(definition, |(text, _)| text)
}

impl Statements {
    /// The number, who has it, and the text of each that somebody has, in the order of their numbers.
    pub(crate) fn all(&self) -> Vec<(u64, usize, String)> {
        let known: Vec<Arc<Statement>> = {
            let table = self.table.lock();
            table.by_identity.values().flatten().filter_map(Weak::upgrade).collect()
        };
        let mut all: Vec<_> = known
            .iter()
            .map(|statement| {
                let text = String::from_utf8_lossy(text_of(statement.definition()));
                // But for the one that is looked at here.
                let clients = Arc::strong_count(statement) - 1;
                (statement.number, clients, text.chars().take(SHOWN_CHARS_MAX).collect())
            })
            .collect();
        all.sort_unstable_by_key(|(number, ..)| *number);
        all
    }

    /// Whoever prepares the same from now on prepares another one.
    pub(crate) fn retire(&self, statement: &Statement) {
        let mut table = self.table.lock();
        let known = table.by_identity.get(&statement.identity);
        let last = known.and_then(|known| known.last()).and_then(Weak::upgrade);
        if last.is_some_and(|last| last.number == statement.number) {
            table.by_identity.remove(&statement.identity);
        }
    }
}

/// What a name stands for, since what was asked at a place in the order of a server connection's answers.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) statement: Option<Arc<Statement>>,
    /// The columns that the client was told it has.
    pub(crate) told: Option<Columns>,
    /// How many server connections the client had had by then; what was asked of an earlier one is answered.
    pub(crate) lease: u64,
    pub(crate) place: u64,
}

/// What a client has prepared by a name, and is described to it.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) name: Bytes,
    /// The lease and the place since which the name stands for it: by the time of the answer it may stand for the same text, prepared once more.
    pub(crate) since: (u64, u64),
    pub(crate) statement: Arc<Statement>,
    /// It is the server's unnamed statement there, and has not our name.
    pub(crate) is_unnamed: bool,
}

/// What one client has prepared, by its names; the empty one is the unnamed statement.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_name: HashMap<Bytes, Named, foldhash::fast::RandomState>,
}

impl Names {
    pub(crate) fn statement(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        self.by_name.get(name)?.statement.as_ref()
    }

    /// The name as it is kept.
    pub(crate) fn kept(&self, name: &[u8]) -> Option<Bytes> {
        self.by_name.get_key_value(name).map(|(name, _)| name.clone())
    }

    /// Since what the name stands for what it does, if that was asked of the connection that the client has now.
    pub(crate) fn place(&self, name: &[u8], lease: u64) -> Option<u64> {
        let named = self.by_name.get(name)?;
        (named.lease == lease).then_some(named.place)
    }

    /// What it stood for before.
    pub(crate) fn set(&mut self, name: Bytes, named: Option<Named>) -> Option<Named> {
        match named {
            Some(named) => self.by_name.insert(name, named),
            None => self.by_name.remove(&name),
        }
    }

    /// The columns that the client was told are those of what it has prepared by this name.
    pub(crate) fn told(&self, name: &[u8]) -> Option<Columns> {
        self.by_name.get(name)?.told
    }

    /// The same where what it prepares by it now is the same text once more.
    pub(crate) fn told_of(&self, name: &[u8], statement: Option<&Arc<Statement>>) -> Option<Columns> {
        let named = self.by_name.get(name)?;
        let is_same = named.statement.as_ref()?.definition() == statement?.definition();
        named.told.filter(|_| is_same)
    }

    /// What it is described, for which this is executed; none where it has no such name.
    pub(crate) fn described(&self, name: &[u8], statement: &Arc<Statement>, is_unnamed: bool) -> Option<Described> {
        let (name, named) = self.by_name.get_key_value(name)?;
        Some(Described {
            name: name.clone(),
            since: (named.lease, named.place),
            statement: Arc::clone(statement),
            is_unnamed,
        })
    }

    /// What was described, if the name stands for that still.
    fn still(&mut self, described: &Described) -> Option<&mut Named> {
        let named = self.by_name.get_mut(&described.name)?;
        ((named.lease, named.place) == described.since).then_some(named)
    }

    /// It is told these.
    pub(crate) fn is_told(&mut self, described: &Described, columns: Columns) {
        if let Some(named) = self.still(described).filter(|_| described.statement.keeps_columns()) {
            named.told = Some(columns);
        }
    }

    /// What was described is this one from now on.
    pub(crate) fn replace(&mut self, described: &Described, by: &Arc<Statement>) {
        if let Some(named) = self.still(described) {
            named.statement = Some(Arc::clone(by));
        }
    }

    /// What it was told is said otherwise from now on.
    pub(crate) fn forget_told(&mut self) {
        self.by_name.values_mut().for_each(|named| named.told = None);
    }

    /// That the name stands for what it does since this place is certain: one that stands for nothing need not be kept.
    pub(crate) fn decided(&mut self, name: &[u8], at: (u64, u64)) {
        let is_it = |named: &Named| named.statement.is_none() && (named.lease, named.place) == at;
        if self.by_name.get(name).is_some_and(is_it) {
            self.by_name.remove(name);
        }
    }

    /// What the name stands for since this place it does not: it stands for what it did before. Another may have it by now.
    pub(crate) fn undo(&mut self, name: Bytes, at: (u64, u64), before: Option<Named>) {
        let is_it = |named: &Named| (named.lease, named.place) == at;
        if self.by_name.get(&name).is_some_and(is_it) {
            self.set(name, before);
        }
    }

    /// Those with a name are gone.
    pub(crate) fn keep_the_unnamed(&mut self) {
        self.by_name.retain(|name, _| name.is_empty());
    }
}

/// Which statement is the server's unnamed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// The one of this number, or none.
    Known(Option<u64>),
    /// What was sent for it may have been passed over.
    Unknown,
}

/// What one server connection has prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    by_number: HashMap<u64, Use, foldhash::fast::RandomState>,
    clock: u64,
    unnamed: Unnamed,
    /// Where in the order of answers it became that.
    unnamed_place: u64,
}

#[derive(Debug)]
struct Use {
    /// When it was asked for last.
    used: u64,
    /// Where in the order of answers it was prepared.
    place: u64,
    /// It is executed for another.
    stands_in: bool,
    /// Its parameters are of the types that were told.
    is_typed: bool,
    shape: Shape,
}

impl Use {
    fn new(used: u64, place: u64, stands_in: bool) -> Self {
        Self {
            used,
            place,
            stands_in,
            is_typed: false,
            shape: Shape::Unknown,
        }
    }
}

/// Which columns a statement has on a server connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Nobody has looked.
    Unknown,
    /// Others than it was prepared with: the server does not take it any more.
    Changed,
    /// That is asked at this place.
    Asked(u64),
    /// These: the server takes it by no others from then on.
    Known(Columns),
}

impl Default for Prepared {
    fn default() -> Self {
        Self {
            by_number: HashMap::default(),
            clock: 0,
            unnamed: Unnamed::Known(None),
            unnamed_place: 0,
        }
    }
}

impl Prepared {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn unnamed(&self) -> Unnamed {
        self.unnamed
    }

    /// Since what the unnamed statement is what it is.
    pub(crate) fn unnamed_place(&self) -> u64 {
        self.unnamed_place
    }

    /// What is asked at this place makes this one the unnamed statement, or may be passed over.
    pub(crate) fn set_unnamed(&mut self, unnamed: Unnamed, place: u64) {
        self.unnamed = unnamed;
        self.unnamed_place = place;
    }

    /// What is the one of these, if it is the unnamed statement since then, is the other.
    pub(crate) fn rename_unnamed(&mut self, (number, place): (u64, u64), other: u64) {
        if self.unnamed == Unnamed::Known(Some(number)) && self.unnamed_place == place {
            self.unnamed = Unnamed::Known(Some(other));
        }
    }

    /// There is none from now on, for certain.
    pub(crate) fn drop_unnamed(&mut self) {
        self.set_unnamed(Unnamed::Known(None), 0);
    }

    /// What was asked at this place has failed, and what follows is passed over.
    pub(crate) fn failed_at(&mut self, place: u64) {
        if self.unnamed_place >= place {
            self.unnamed = Unnamed::Unknown;
        }
    }

    /// Since what it is there; none where it is not.
    pub(crate) fn place(&self, number: u64) -> Option<u64> {
        self.by_number.get(&number).map(|known| known.place)
    }

    /// It is prepared at this place.
    pub(crate) fn set_place(&mut self, number: u64, place: u64) {
        if let Some(known) = self.by_number.get_mut(&number) {
            known.place = place;
        }
    }

    pub(crate) fn shape(&self, number: u64) -> Shape {
        self.by_number.get(&number).map_or(Shape::Unknown, |known| known.shape)
    }

    pub(crate) fn set_shape(&mut self, number: u64, shape: Shape) {
        if let Some(known) = self.by_number.get_mut(&number) {
            known.shape = shape;
        }
    }

    /// Its parameters are of the types there that were told.
    pub(crate) fn is_typed(&mut self, number: u64) {
        if let Some(known) = self.by_number.get_mut(&number) {
            known.is_typed = true;
        }
    }

    /// Whether its parameters may be of others there than those that somebody was told.
    pub(crate) fn may_have_other_types(&self, statement: &Statement) -> bool {
        let known = self.by_number.get(&statement.number);
        known.is_some_and(|known| !known.is_typed) && statement.types_described().is_some()
    }

    /// Whether it is known to have the columns there that somebody was told, and its parameters the types.
    pub(crate) fn is_as_told(&self, statement: &Statement, told: Columns) -> bool {
        matches!(self.shape(statement.number), Shape::Known(columns) if columns == told)
            && !self.may_have_other_types(statement)
    }

    /// Whether it is there and has not to be prepared anew.
    pub(crate) fn is_as_it_was(&self, statement: &Statement) -> bool {
        let is_changed = matches!(self.shape(statement.number), Shape::Changed);
        self.has(statement.number) && !is_changed && !self.may_have_other_types(statement)
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Whether it is there; from now on it is the one that was asked for last.
    pub(crate) fn touch(&mut self, number: u64) -> bool {
        self.clock += 1;
        match self.by_number.get_mut(&number) {
            Some(known) => {
                known.used = self.clock;
                true
            }
            None => false,
        }
    }

    /// It is being prepared. The number of one that has to go, where there are more than `max`.
    pub(crate) fn add(&mut self, statement: &Statement, place: u64, max: usize) -> Option<u64> {
        self.clock += 1;
        let used = Use::new(self.clock, place, statement.stands_for_another());
        self.by_number.insert(statement.number, used);
        if self.by_number.len() <= max {
            return None;
        }
        let oldest = self
            .by_number
            .iter()
            .min_by_key(|(_, known)| known.used)
            .map(|(number, _)| *number)?;
        self.by_number.remove(&oldest);
        Some(oldest)
    }

    /// It is there after all.
    pub(crate) fn put_back(&mut self, number: u64) {
        self.by_number.insert(number, Use::new(0, 0, true));
    }

    /// Those that are executed for another, or may be.
    pub(crate) fn stand_ins(&self) -> Vec<u64> {
        let stand_ins = self.by_number.iter().filter(|(_, known)| known.stands_in);
        stand_ins.map(|(number, _)| *number).collect()
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.by_number.remove(&number);
    }

    /// Those with a name are gone.
    pub(crate) fn keep_the_unnamed(&mut self) {
        self.by_number.clear();
    }
}

/// What the server's names begin with: nobody's guess, for a client may name what it likes, also what it never prepared.
static PREFIX: LazyLock<String> = LazyLock::new(|| format!("forebay:{:016x}:", rand::random::<u64>()));

/// The server's name of a statement.
pub(crate) fn server_name(number: u64) -> String {
    format!("{}{number}", *PREFIX)
}

/// The server's name of what is the proxy's own, for a moment.
pub(crate) fn own_name() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| format!("{}own", *PREFIX));
    &NAME
}

/// A name that the server does not know: of what has other columns now, and fails therefore.
pub(crate) fn changed_name(number: u64) -> String {
    format!("{}{number}:changed", *PREFIX)
}

/// What the server says of a statement, by the client's name for it; none where it names none.
pub(crate) fn in_the_clients_words(said: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let prefix = PREFIX.as_bytes();
    let begin = said.windows(prefix.len()).position(|part| part == prefix)?;
    let digits = said[begin + prefix.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    Some([&said[..begin], name, &said[begin + prefix.len() + digits..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_parameters_hang_on_the_day_is_not_told_apart() {
        let statements = Statements::default();
        let is_told = |text: &str, oid: u32| {
            let definition = [text.as_bytes(), &[0, 0, 1], &oid.to_be_bytes()].concat();
            let statement = statements.of(&definition, &Arc::default(), 0);
            statement.told_apart_by().is_some()
        };
        for (oid, is_of_the_day) in [(1266, true), (1270, true), (1083, false), (1183, false), (1184, false)] {
            assert_eq!(is_told("SELECT $1", oid), !is_of_the_day, "{oid}");
        }
        assert!(!is_told("SELECT $1 AT TIME ZONE 'UTC'", 1083) && is_told("SELECT $1 AT TIME ZONE 'UTC'", 1184));
    }

    #[test]
    fn who_is_told_other_types_in_turns_finds_what_he_was_told_before() {
        let (statements, settings) = (Statements::default(), Arc::default());
        let of = || statements.of(b"SELECT $1\0\0\0", &settings, 0);
        let one = of();
        assert!(one.learn_types(b"one"));
        let other = statements.of_other_types(&one, b"other");
        assert_ne!(one.number(), other.number());
        assert_eq!(of().number(), other.number());
        for _ in 0..3 {
            assert_eq!(statements.of_other_types(&other, b"one").number(), one.number());
            assert_eq!(of().number(), one.number());
            assert_eq!(statements.of_other_types(&one, b"other").number(), other.number());
            assert_eq!(of().number(), other.number());
        }
        let others: Vec<_> = (0..2 * OF_OTHER_TYPES_MAX)
            .map(|number| statements.of_other_types(&one, &number.to_be_bytes()))
            .collect();
        assert_eq!(statements.all().len(), OF_OTHER_TYPES_MAX, "so many are known");
        assert_eq!(of().number(), others.last().unwrap().number());
        statements.retire(others.last().unwrap());
        assert!(statements.all().is_empty(), "whoever comes prepares another");
    }
}
