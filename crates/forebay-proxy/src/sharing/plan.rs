//! Plan: what is known of one statement: whether it may travel in company, and if not, why not.
//!
//! Promises: a statement is [shared](Plan::may_share) only once the catalog has been asked about it, within [`SEEN_FOR`] and since the last
//! change of a table through the proxy, and once it was seen to answer quickly by itself. Knows no connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_sql::{Effect, Hints, NotShown, Restricted, Touches, literals, restricted, touches, without_literals};
use parking_lot::Mutex;

use super::bound::Bound;
use super::facts::Found;
use super::followed::Needs;
use super::observed::{Observed, milliseconds, now_ms};
use super::restriction::{self, Given};
use super::reviewed::{is_of_the_catalog, is_of_the_time, is_of_the_version, unsteady};
use super::rules::{ANSWER_BYTES_MAX, Ruled, Rules, TableName};
use super::shape::Shape;
use super::tally::{Counted, Tally};
use super::together::{self, Together};
use crate::effects::Effects;
use crate::figures::{Counting, Top};
use crate::memory::Windows;
use crate::memory::does::{Does, does};
use crate::memory::key::Key;

/// What the catalog said is believed for so long, where no table was changed through the proxy meanwhile.
const SEEN_FOR: Duration = Duration::from_secs(60);
/// Where it could not be asked, it is asked again after so long.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// So many characters of a text are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Whether rows are read or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Change,
}

/// What is known of a statement.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What tells it from all others.
    pub(crate) number: u64,
    /// As it came first, without its literals.
    text: String,
    /// What it does, or why that is not shown, in words that follow "it".
    pub(crate) touches: Result<Touches, String>,
    /// What it does to rows, by its text alone.
    does: Does,
    /// What it calls, where that does nothing unless one of these is a function of the user's.
    called: Vec<String>,
    /// Whether one is that may change rows, and of [which](Effects::writers_number) of these that was asked.
    writes: AtomicU64,
    /// What rules say of it.
    pub(crate) ruled: Ruled,
    /// What it asks may be asked for many at once.
    many: Option<Many>,
    /// To which rows of one table, as far as its text tells.
    restricted: Option<Restricted>,
    learnt: Mutex<Learnt>,
    /// In milliseconds since the first look at a clock: until when what is learnt holds; 0 where nothing is.
    until_ms: AtomicU64,
    /// How often tables had been changed when it was asked.
    schema_changes: AtomicU64,
    /// Somebody is to ask the catalog.
    is_asked: AtomicBool,
    /// How often tables had been changed when he was told to.
    asked_at: AtomicU64,
    /// What tells the catalog's rows of then from others; 0: nothing is known.
    rows_hash: AtomicU64,
    /// How it was seen to answer.
    observed: Observed,
    /// How many of it are asked together for memory.
    together: Mutex<Together>,
    /// Somebody has said how old its answer may be.
    has_windows: AtomicBool,
    tally: Tally,
    /// Of all that are shown like it.
    counting: Arc<Counting>,
}

/// It is, behind an execution by itself, once it is asked for memory or was executed some times.
const NOT_ASKED: &str = "the catalog has not been asked about it: it has to be asked some times by itself, outside of transactions, pipelines and sessions that are pinned";

/// What may be asked for many at once, as its text was first.
#[derive(Debug)]
struct Many {
    shape: Shape,
    literals: Vec<Box<str>>,
    /// A text of this form is known to have none for many.
    is_vain: AtomicBool,
}

#[derive(Debug, Default)]
enum Learnt {
    #[default]
    Nothing,
    Harmless {
        mark: Option<Arc<str>>,
        draws: bool,
        tables: Arc<[Arc<str>]>,
        inherits: bool,
        key: Option<Arc<Key>>,
    },
    /// It is as in [`Found::Followed`].
    Followed {
        matter: String,
        needs: Needs,
        tables: Arc<[Arc<str>]>,
    },
    /// It is as in [`Found::Apart`].
    Apart {
        matter: String,
        inherits: bool,
        key: Option<Arc<Key>>,
    },
    Matter(String),
}

/// What an answer is of.
#[derive(Debug, Clone)]
pub(crate) struct Of {
    pub(crate) tables: Arc<[Arc<str>]>,
    /// Of the one that it is restricted to rows of.
    pub(crate) key: Option<Arc<Key>>,
    /// After so many changes of tables.
    pub(crate) schema_changes: u64,
}

/// Whether rows may be changed that are there already.
fn changes_what_is_there(touches: &Touches) -> bool {
    matches!(&touches.effect, Effect::Changes(change) if change.finds_rows)
}

/// What it names of the catalog, in words that follow "it"; none where that is nothing.
fn of_the_catalog(touches: &Touches) -> Option<String> {
    let name = touches.names.iter().find(|name| is_of_the_catalog(name))?;
    Some(match touches.called.contains(name) {
        true => format!("calls {name}, which is none of the functions that are known to be harmless"),
        false => format!("names {name}, which is of the catalog"),
    })
}

impl Plan {
    /// Of this text, and of what these rules say of it.
    pub(crate) fn of(text: &str, rules: &Rules) -> Self {
        let known = touches(text);
        let ruled = rules.ruled(text, known.as_ref().ok());
        let does = does(text, known.as_ref().ok());
        let called = (known.as_ref().ok()).filter(|_| does == Does::Nothing);
        let called = called.map(|touches| touches.called.clone()).unwrap_or_default();
        let touches = known.and_then(|touches| {
            // Who takes the time of a row's last change for its version would not see that there were two.
            if changes_what_is_there(&touches) && touches.names.iter().any(|name| is_of_the_time(name)) {
                return Err(NotShown("changes rows that are there by the time"));
            }
            Ok(touches)
        });
        let touches = touches.map_err(|NotShown(why)| why.to_owned());
        static LAST: AtomicU64 = AtomicU64::new(0);
        let plan = Self {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            text: without_literals(text).chars().take(SHOWN_CHARS_MAX).collect(),
            ruled,
            does,
            called,
            writes: AtomicU64::new(0),
            touches: touches.and_then(|touches| match of_the_catalog(&touches) {
                Some(why) => Err(why),
                None => Ok(touches),
            }),
            many: None,
            restricted: restricted(text),
            learnt: Mutex::default(),
            until_ms: AtomicU64::new(0),
            schema_changes: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            asked_at: AtomicU64::new(0),
            rows_hash: AtomicU64::new(0),
            observed: Observed::default(),
            together: Mutex::default(),
            has_windows: AtomicBool::new(false),
            tally: Tally::default(),
            counting: Arc::default(),
        };
        let shape = plan.is_steady().then(|| Shape::of(text)).flatten();
        Self {
            many: shape.and_then(|shape| {
                let literals = literals(text)?;
                Some(Many {
                    shape,
                    literals: literals.iter().map(|literal| literal.0.into()).collect(),
                    is_vain: AtomicBool::new(false),
                })
            }),
            ..plan
        }
    }

    /// The same, counted among these.
    pub(crate) fn counted_in(self, statements: &Top) -> Self {
        let counting = statements.of(&self.text);
        Self { counting, ..self }
    }

    /// Whether it may be asked for many at once, as far as its text tells.
    pub(crate) fn is_for_many(&self) -> bool {
        self.many.is_some()
    }

    /// A text of its form is known to have none for many.
    pub(crate) fn is_in_vain(&self) {
        if let Some(many) = &self.many {
            many.is_vain.store(true, Ordering::Relaxed);
        }
    }

    /// What is bound for a text of its form, where literals are parameters, and their types.
    pub(crate) fn bound_of_text<'a>(&self, text: &'a str) -> Option<(Bound<'a>, Vec<u32>)> {
        let can_be = |many: &&Many| !many.shape.literals().is_empty() && !many.is_vain.load(Ordering::Relaxed);
        let many = self.many.as_ref().filter(can_be)?;
        Bound::of_literals(&many.shape, &many.literals, &literals(text)?)
    }

    /// The text with parameters for that.
    pub(crate) fn text_for_many(&self) -> &str {
        self.many.as_ref().map_or("", |many| many.shape.text())
    }

    /// How often tables had been changed when the catalog was asked about it.
    pub(crate) fn schema_changes(&self) -> u64 {
        self.schema_changes.load(Ordering::Acquire)
    }

    /// Its text, without literals.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What it does, where that is shown.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.touches.as_ref().ok()?.effect {
            Effect::Reads => Some(Kind::Read),
            Effect::Changes(_) => Some(Kind::Change),
        }
    }

    /// Whether it changes rows that are there and what is bound may have a word for the time in it.
    pub(crate) fn may_change_by_the_time(&self, bound: &[u8]) -> bool {
        const NOW: &[u8] = b"now";
        let is_it = |word: &[u8]| word.eq_ignore_ascii_case(NOW);
        self.touches.as_ref().is_ok_and(changes_what_is_there) && bound.windows(NOW.len()).any(is_it)
    }

    /// The table whose rows it changes, as it stands in SQL.
    pub(crate) fn changed_table(&self) -> Option<&str> {
        match &self.touches.as_ref().ok()?.effect {
            Effect::Changes(change) => Some(&change.table),
            Effect::Reads => None,
        }
    }

    /// Whether it may tell rows.
    pub(crate) fn tells_rows(&self) -> bool {
        self.touches.as_ref().is_ok_and(|touches| {
            touches.effect == Effect::Reads || touches.names.iter().any(|name| name == "returning")
        })
    }

    /// Whether it answers the same at the same moment.
    pub(crate) fn is_steady(&self) -> bool {
        let of = |name: &String| unsteady().contains(&name.as_str());
        self.touches.as_ref().is_ok_and(|touches| !touches.names.iter().any(of))
    }

    /// Whether the catalog has shown, after so many changes of tables, that it reads and does nothing else: neither itself nor by a view.
    pub(crate) fn is_known_to_read(&self, schema_changes: u64) -> bool {
        let is_shown = || match &*self.learnt.lock() {
            Learnt::Harmless { .. } => true,
            Learnt::Followed { needs, .. } => self.lacks(needs).is_none(),
            Learnt::Nothing | Learnt::Apart { .. } | Learnt::Matter(_) => false,
        };
        self.kind() == Some(Kind::Read) && self.schema_changes() == schema_changes && is_shown()
    }

    /// Whether the catalog is to be asked now, after so many changes of tables: said to one of those who ask.
    pub(crate) fn is_due(&self, schema_changes: u64) -> bool {
        if self.touches.is_err() {
            return false;
        }
        if self.schema_changes.load(Ordering::Acquire) != schema_changes {
            // What is learnt is of before. Who has travelled already has done so before, too.
            *self.learnt.lock() = Learnt::Nothing;
            self.until_ms.store(0, Ordering::Release);
            if let Some(many) = &self.many {
                many.is_vain.store(false, Ordering::Relaxed);
            }
            self.rows_hash.store(0, Ordering::Release);
            self.schema_changes.store(schema_changes, Ordering::Release);
        }
        let is_due = now_ms() >= self.until_ms.load(Ordering::Acquire) && !self.is_asked.swap(true, Ordering::AcqRel);
        if is_due {
            self.asked_at.store(schema_changes, Ordering::Release);
        }
        is_due
    }

    /// Somebody asks the catalog about it.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// What the catalog has said, in rows of this hash; none where it could not be asked. Whether it said something else before, though nobody has changed it
    /// through the proxy.
    pub(crate) fn learn(&self, found: Option<Found>, rows_hash: u64) -> bool {
        let mut learnt = self.learnt.lock();
        if self.asked_at.load(Ordering::Acquire) != self.schema_changes() {
            // It was asked before the last change.
            *learnt = Learnt::Nothing;
            self.until_ms.store(0, Ordering::Release);
            self.is_asked.store(false, Ordering::Release);
            return false;
        }
        let before = match rows_hash {
            0 => 0,
            hash => self.rows_hash.swap(hash, Ordering::AcqRel),
        };
        let is_another = before != 0 && before != rows_hash;
        let holds_for = if found.is_some() { SEEN_FOR } else { FAILED_FOR };
        *learnt = match found {
            None => Learnt::Nothing,
            Some(Found::Harmless {
                mark,
                draws,
                tables,
                inherits,
                key,
            }) => Learnt::Harmless {
                mark: mark.map(Arc::from),
                draws,
                tables,
                inherits,
                // What it depends on may be another row of that table.
                key: key.filter(|_| self.depends_on().is_empty()).map(Arc::new),
            },
            Some(Found::Followed { matter, needs, tables }) => Learnt::Followed { matter, needs, tables },
            Some(Found::Apart { matter, inherits, key }) => Learnt::Apart {
                matter,
                inherits,
                key: key.map(Arc::new),
            },
            Some(Found::Matter(what)) => Learnt::Matter(what),
        };
        let until = now_ms() + milliseconds(holds_for);
        self.until_ms.store(until, Ordering::Release);
        self.is_asked.store(false, Ordering::Release);
        is_another
    }

    /// What was learnt is not true any more.
    pub(crate) fn doubt(&self) {
        *self.learnt.lock() = Learnt::Nothing;
        self.until_ms.store(0, Ordering::Release);
    }

    /// Whether it may travel in company now; `keeps_numbers`: somebody may ask for the last numbers that were drawn.
    pub(crate) fn may_share(&self, keeps_numbers: bool) -> bool {
        self.observed.is_quick() && !self.observed.is_banned() && self.may_be_carried(keeps_numbers)
    }

    /// Whether somebody else may carry it, if not in company.
    pub(crate) fn may_be_carried(&self, keeps_numbers: bool) -> bool {
        !self.is_long()
            && match &*self.learnt.lock() {
                Learnt::Harmless { draws, .. } => !(keeps_numbers && *draws),
                Learnt::Nothing | Learnt::Followed { .. } | Learnt::Apart { .. } | Learnt::Matter(_) => false,
            }
    }

    /// What its answer is of, where that may be told again later; `keeps_numbers`: as for [`may_share`](Self::may_share). What is learnt
    /// behind this changes nothing about it.
    pub(crate) fn may_be_remembered(&self, keeps_numbers: bool) -> Option<Of> {
        if self.kind() != Some(Kind::Read)
            || !self.is_steady()
            || self.hangs_on_the_time()
            || self.version_that_it_names().is_some()
        {
            return None;
        }
        if self.observed.answer_bytes() > self.remembered_bytes_max() {
            return None;
        }
        let (tables, key) = match &*self.learnt.lock() {
            Learnt::Harmless { draws, tables, key, .. } if !(keeps_numbers && *draws) => {
                (Arc::clone(tables), key.clone())
            }
            // A column of a view is none of its table's, and a policy may look at other rows.
            Learnt::Followed { needs, tables, .. } if self.lacks(needs).is_none() => (Arc::clone(tables), None),
            _ => return None,
        };
        Some(Of {
            tables,
            key,
            schema_changes: self.schema_changes(),
        })
    }

    /// What a rule says that it depends on, if it is a read, which is not known otherwise.
    pub(crate) fn depends_on(&self) -> &[Arc<str>] {
        match self.kind() {
            Some(Kind::Read) => &self.ruled.depends_on,
            _ => &[],
        }
    }

    /// What of this no rule allows, with the option that would, in words that follow "it names".
    fn lacks(&self, needs: &Needs) -> Option<String> {
        let lacking = [
            (&needs.stable_functions, self.ruled.stable_functions, "stable_functions"),
            (&needs.row_security, self.ruled.row_security, "row_security"),
        ];
        lacking.into_iter().find_map(|(need, is_allowed, option)| {
            let need = need.as_ref().filter(|_| !is_allowed)?;
            Some(format!("{need}, and no rule says {option}"))
        })
    }

    /// The table, without its schema, whose rows it is restricted to.
    pub(crate) fn restricted_to(&self) -> Option<&str> {
        self.restricted.as_ref().map(|restricted| &*restricted.table)
    }

    /// Whether a row of its answer shows that a row is there that it is restricted to.
    pub(crate) fn shows_row(&self) -> bool {
        self.restricted.as_ref().is_some_and(|restricted| restricted.shows_row)
    }

    /// The rows of that table that it is restricted to, by its key and by what it is given.
    pub(crate) fn rows(&self, key: &Key, given: &Given<'_>) -> Option<Vec<Arc<str>>> {
        restriction::rows(self.restricted.as_ref()?, key, given)
    }

    /// Whether its answer hangs on when it is asked, as far as its text tells, and no rule says that this is of no matter.
    fn hangs_on_the_time(&self) -> bool {
        let of = |name: &String| is_of_the_time(name);
        !self.ruled.stable_functions && self.touches.as_ref().is_ok_and(|touches| touches.names.iter().any(of))
    }

    /// What it names of the versions of rows.
    fn version_that_it_names(&self) -> Option<&str> {
        let touches = self.touches.as_ref().ok()?;
        let mut names = touches.names.iter().map(String::as_str);
        names.find(|name| is_of_the_version(name))
    }

    /// How late the database's stream may be by what rules say; none: as for all.
    pub(crate) fn max_lag(&self) -> Option<Duration> {
        self.ruled.windows?.max_lag
    }

    /// Whether it may call a function of the user's that changes rows, though one of PostgreSQL's own that does not is called the same.
    pub(crate) fn calls_what_writes(&self, effects: &Effects) -> bool {
        let number = effects.writers_number();
        if number == 0 || self.called.is_empty() {
            return false;
        }
        let known = self.writes.load(Ordering::Relaxed);
        if known >> 1 == number {
            return known & 1 == 1;
        }
        let writes = effects.may_write(&self.called);
        self.writes.store(number << 1 | u64::from(writes), Ordering::Relaxed);
        writes
    }

    /// What it does to rows with what it is given, after so many changes of tables, unless it [calls what writes](Self::calls_what_writes).
    pub(crate) fn does(&self, schema_changes: u64, given: Option<&Given<'_>>) -> Does {
        if self.schema_changes() != schema_changes {
            // What is learnt is of before.
            return self.does.clone();
        }
        match (&*self.learnt.lock(), self.kind()) {
            (Learnt::Harmless { .. }, Some(Kind::Read)) => Does::Nothing,
            // A rule believes that its functions are what they are declared to be.
            (Learnt::Followed { needs, .. }, Some(Kind::Read)) if self.lacks(needs).is_none() => Does::Nothing,
            (
                Learnt::Harmless {
                    inherits: false, key, ..
                }
                | Learnt::Apart {
                    inherits: false, key, ..
                },
                Some(Kind::Change),
            ) => match self.changed_table_alone() {
                Some(table) => {
                    let rows = key.as_ref().zip(given).and_then(|(key, given)| self.rows(key, given));
                    match rows {
                        Some(rows) => Does::changes_rows(table, rows),
                        None if self.leaves_rows() => Does::makes_rows(table),
                        None => Does::changes(table),
                    }
                }
                None => Does::Anything,
            },
            _ => self.does.clone(),
        }
    }

    /// Whether rows that are there already are left as they were.
    fn leaves_rows(&self) -> bool {
        let leaves = |touches: &Touches| matches!(&touches.effect, Effect::Changes(change) if change.leaves_rows);
        self.touches.as_ref().is_ok_and(leaves)
    }

    /// The table whose rows it changes, without its schema, as the catalog has it.
    fn changed_table_alone(&self) -> Option<Arc<str>> {
        let table: TableName = self.changed_table()?.parse().ok()?;
        table.last().map(Arc::from)
    }

    /// The mark of the table whose rows it changes.
    pub(crate) fn mark(&self) -> Option<Arc<str>> {
        match &*self.learnt.lock() {
            Learnt::Harmless { mark, .. } => mark.clone(),
            _ => None,
        }
    }

    /// Why it does not travel in company; none where it does.
    pub(crate) fn why_not(&self) -> Option<String> {
        if let Err(why) = &self.touches {
            return Some(format!("it {why}"));
        }
        match &*self.learnt.lock() {
            Learnt::Nothing => return Some(NOT_ASKED.to_owned()),
            Learnt::Matter(what) | Learnt::Followed { matter: what, .. } | Learnt::Apart { matter: what, .. } => {
                return Some(format!("it names {what}"));
            }
            Learnt::Harmless { .. } => {}
        }
        if self.observed.is_banned() {
            return Some("it has held others up, a moment ago".to_owned());
        }
        if self.is_long() {
            return Some(format!("its answers have more than {ANSWER_BYTES_MAX} bytes"));
        }
        let is_joined = self.ruled.joins && self.kind() == Some(Kind::Read) && self.is_steady();
        (!self.observed.is_quick()).then(|| match is_joined {
            true => "it has more to do than others should wait for, and is only joined".to_owned(),
            false => "it has more to do than others should wait for".to_owned(),
        })
    }

    /// Why its answer is not told again later, whatever the catalog says; none where it may be.
    pub(crate) fn why_never_remembered(&self) -> Option<String> {
        if let Err(why) = &self.touches {
            return Some(format!("it {why}"));
        }
        if self.kind() != Some(Kind::Read) {
            return Some("it changes rows".to_owned());
        }
        if !self.is_steady() {
            return Some("it answers anew each time".to_owned());
        }
        if self.hangs_on_the_time() {
            return Some("its answer hangs on the time, and no rule says stable_functions".to_owned());
        }
        if let Some(name) = self.version_that_it_names() {
            return Some(format!("it names {name}, which changes where no row does"));
        }
        if !self.has_windows.load(Ordering::Relaxed)
            && let Some(why) = self.ruled.why_no_windows()
        {
            return Some(why.to_owned());
        }
        None
    }

    /// Why its answer is not told again later, whoever would have it so; none where it may be.
    pub(crate) fn why_not_remembered(&self) -> Option<String> {
        if let Some(why) = self.why_never_remembered() {
            return Some(why);
        }
        match &*self.learnt.lock() {
            Learnt::Nothing => return Some(NOT_ASKED.to_owned()),
            Learnt::Matter(what) | Learnt::Apart { matter: what, .. } => return Some(format!("it names {what}")),
            Learnt::Followed { needs, .. } => {
                if let Some(lacking) = self.lacks(needs) {
                    return Some(format!("it names {lacking}"));
                }
            }
            Learnt::Harmless { .. } => {}
        }
        let most = self.remembered_bytes_max();
        (self.observed.answer_bytes() > most).then(|| {
            let of_rule = if self.ruled.max_answer.is_none() {
                ", and no rule says max_answer"
            } else {
                ""
            };
            format!("its answers have more than {most} bytes{of_rule}")
        })
    }

    /// How old its answer may be: as the statement itself says, or else a rule; none where it is not to be remembered.
    pub(crate) fn windows(&self, hints: &Hints) -> Option<Windows> {
        if self.kind() != Some(Kind::Read) {
            return None;
        }
        let by_hint = hints.ttl.map(|fresh| Windows {
            fresh,
            stale: hints.stale.unwrap_or_default(),
            missing: hints.missing,
            away: hints.away.unwrap_or_default(),
            ..Windows::default()
        });
        by_hint
            .or(self.ruled.windows)
            .filter(|windows| !windows.fresh.is_zero())
    }

    /// Somebody who asks it says how old its answer may be, or a rule does.
    pub(crate) fn note_windows(&self) {
        if !self.has_windows.load(Ordering::Relaxed) {
            self.has_windows.store(true, Ordering::Relaxed);
        }
    }

    /// An answer that is remembered has no more.
    pub(crate) fn remembered_bytes_max(&self) -> u64 {
        self.ruled.max_answer.unwrap_or(ANSWER_BYTES_MAX)
    }

    /// It was answered by itself.
    pub(crate) fn was_alone(&self) {
        self.tally.was_alone();
        self.ruled.was_asked(1);
    }

    /// How often it was answered by itself.
    pub(crate) fn times_alone(&self) -> u64 {
        self.tally.times_alone()
    }

    /// It was shared on a trip of so many, as one query with others or not.
    pub(crate) fn was_shared(&self, count: u64, is_joint: bool) {
        self.tally.was_shared(count, is_joint);
        self.ruled.was_asked(1);
        self.ruled.was_batched();
    }

    /// It is asked, and memory has no answer.
    pub(crate) fn is_missed(&self) {
        self.counting.was_missed();
    }

    /// The database was at it for so long.
    pub(crate) fn was_at_database(&self, elapsed: Duration) {
        self.counting.was_at_database(elapsed);
        self.ruled.was_at_database(elapsed);
    }

    /// Somebody had an answer that was remembered.
    pub(crate) fn was_remembered(&self) {
        self.counting.was_remembered();
        self.tally.was_remembered();
        self.ruled.was_asked(1);
        self.ruled.was_remembered();
    }

    /// So many had the answer to what another one had asked.
    pub(crate) fn was_joined(&self, count: u64) {
        self.tally.was_joined(count);
        self.ruled.was_asked(count);
        self.ruled.has_joined(count);
    }

    pub(crate) fn counted(&self) -> Counted {
        self.tally.counted()
    }

    /// Its answer alone had so many bytes. One that was long is forgotten after some that were not.
    pub(crate) fn was_answered_in(&self, bytes: u64) {
        self.observed.was_answered_in(bytes);
    }

    fn is_long(&self) -> bool {
        self.observed.answer_bytes() > ANSWER_BYTES_MAX
    }

    /// It was answered alone, within this time, which was quick or not; `was_held_up`: behind a trip that was given up.
    pub(crate) fn took(&self, elapsed: Duration, is_quick: bool, was_held_up: bool) {
        self.observed.took(elapsed, is_quick, was_held_up);
    }

    /// So many of it are asked together for memory, at most.
    pub(crate) fn most_together(&self) -> usize {
        match self.ruled.batch {
            // It has no company.
            Some(Duration::ZERO) => 1,
            // How long one takes is to be known.
            _ if self.observed.usual().is_zero() => 1,
            _ => self.together.lock().most(self.remembered_bytes_max(), Instant::now()),
        }
    }

    /// So many of it were asked together and took so long; `is_well`: none has failed.
    pub(crate) fn were_together(&self, count: usize, elapsed: Duration, is_well: bool) {
        let alone = self.observed.usual();
        let mut together = self.together.lock();
        together.took(count, elapsed, alone, is_well, Instant::now());
    }

    /// Some of it that were asked together took too long.
    pub(crate) fn is_not_asked_together(&self) {
        self.together.lock().alone(Instant::now());
    }

    /// How long they may be under way together.
    pub(crate) fn patience_together(&self) -> Duration {
        together::patience(self.observed.usual())
    }

    /// It is to show again that it is quick.
    pub(crate) fn is_to_show_that_it_is_quick(&self) {
        self.observed.is_to_show_that_it_is_quick();
    }

    /// It has held others up.
    pub(crate) fn ban(&self) {
        self.observed.ban();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sql: &str) -> Plan {
        Plan::of(sql, &Rules::default())
    }

    fn harmless(draws: bool) -> Option<Found> {
        Some(Found::Harmless {
            mark: Some("1".to_owned()),
            draws,
            tables: Arc::default(),
            inherits: false,
            key: None,
        })
    }

    /// What is forgotten while somebody asks must not make his answer one of no table.
    #[test]
    fn what_an_answer_is_of_is_known_when_it_is_found_that_it_may_be_remembered() {
        let plan = plan("SELECT a FROM t");
        assert!(plan.may_be_remembered(false).is_none(), "it was not asked about");
        plan.learn(
            Some(Found::Harmless {
                mark: None,
                draws: true,
                tables: ["t".into()].into(),
                inherits: false,
                key: Key::parse("23 a"),
            }),
            0,
        );
        let of = plan.may_be_remembered(false).unwrap();
        assert!(plan.may_be_remembered(true).is_none());
        plan.learn(None, 0);
        assert_eq!(
            (&*of.tables, of.key.as_deref()),
            (&["t".into()][..], Key::parse("23 a").as_ref())
        );
        assert!(plan.may_be_remembered(false).is_none());
    }

    #[test]
    fn nothing_is_shared_before_it_was_asked_about_and_seen_to_be_quick() {
        let plan = plan("INSERT INTO t VALUES (1)");
        assert!(!plan.may_share(false));
        assert!(plan.is_due(0) && !plan.is_due(0), "one asks");
        plan.learn(harmless(true), 0);
        assert!(!plan.may_share(false), "nobody has seen it");
        plan.took(Duration::from_micros(900), true, false);
        assert!(plan.may_share(false) && !plan.may_share(true));
        assert!(!plan.is_due(0), "it was asked about just now");
        plan.doubt();
        assert!(!plan.may_share(false) && plan.is_due(0));
        plan.learn(
            Some(Found::Followed {
                matter: "the relation v, which is no table".to_owned(),
                needs: Needs::default(),
                tables: Arc::default(),
            }),
            0,
        );
        assert!(!plan.may_share(false), "what is followed goes alone");
        plan.learn(Some(Found::Matter("the trigger audit".to_owned())), 0);
        assert!(!plan.may_share(false));
        assert_eq!(plan.why_not().as_deref(), Some("it names the trigger audit"));
        plan.learn(None, 0);
        assert!(!plan.may_share(false), "it could not be asked about");
        plan.learn(harmless(false), 0);
        assert!(
            plan.may_share(false) && !plan.is_due(0) && plan.is_due(1),
            "a table was changed"
        );
        assert!(!plan.may_share(false));
    }

    #[test]
    fn what_was_asked_before_a_change_is_not_known_behind_it() {
        let plan = plan("SELECT a FROM t");
        assert!(plan.is_due(1));
        // A table is changed while it is asked, and somebody else comes.
        assert!(!plan.is_due(2), "one asks already");
        plan.learn(harmless(false), 7);
        assert!(plan.may_be_remembered(false).is_none());
        assert!(plan.is_due(2), "it is asked again at once");
        plan.learn(harmless(false), 7);
        assert!(plan.may_be_remembered(false).is_some());
    }

    #[test]
    fn that_the_catalog_says_something_else_is_told_once() {
        let plan = plan("SELECT a FROM t");
        assert!(
            plan.is_due(1) && !plan.learn(harmless(false), 7),
            "it is the first time"
        );
        assert!(!plan.learn(harmless(false), 7) && !plan.learn(None, 0));
        assert!(plan.learn(harmless(false), 9) && !plan.learn(harmless(false), 9));
        // Where somebody has changed it through the proxy, nothing else has to be told.
        assert!(plan.is_due(2) && !plan.learn(harmless(false), 11));
    }

    #[test]
    fn how_many_go_together_hangs_on_how_long_one_takes() {
        let plan = plan("SELECT 1");
        assert_eq!(plan.most_together(), 1, "nobody knows");
        plan.took(Duration::from_millis(200), false, false);
        assert!(plan.most_together() > 1 && plan.patience_together() >= Duration::from_millis(800));
        plan.is_not_asked_together();
        assert_eq!(plan.most_together(), 1);
    }

    #[test]
    fn what_is_long_goes_alone_until_it_is_not() {
        let plan = plan("SELECT 1");
        plan.learn(harmless(false), 0);
        plan.took(Duration::ZERO, true, false);
        plan.was_answered_in(ANSWER_BYTES_MAX + 1);
        assert!(!plan.may_share(false));
        plan.was_answered_in(100);
        assert!(plan.may_share(false));
    }

    #[test]
    fn what_is_not_shown_is_asked_of_nobody() {
        let plan = plan("SELECT 1; SELECT 2");
        assert!(!plan.is_due(0) && plan.kind().is_none());
        assert_eq!(plan.why_not().as_deref(), Some("it is more than one statement"));
        for (sql, why) in [
            (
                "SELECT pg_sleep(0.002)",
                "it calls pg_sleep, which is none of the functions that are known to be harmless",
            ),
            ("SELECT * FROM pg_class", "it names pg_class, which is of the catalog"),
        ] {
            let of_the_catalog = Plan::of(sql, &Rules::default());
            assert!(!of_the_catalog.is_due(0) && of_the_catalog.kind().is_none());
            assert_eq!(of_the_catalog.why_not().as_deref(), Some(why));
        }
    }
}
