//! Rules: what is said of statements and of sessions without touching them.
//!
//! Promises: of each thing the first rule holds that says something of it and is of the statement. What a statement says itself goes before
//! that. What a rule calls a statement is one however it is [written](forebay_sql::form). Each rule counts what it was of, as long as it stays.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_sql::{Effect, NotShown, Touches, clip, touches};

use crate::memory::Windows;

/// Longer answers go to who is alone, as others' are held until all are there; nor are they remembered, unless a rule says so.
pub(super) const ANSWER_BYTES_MAX: u64 = 32 * 1024;

/// What is said of some statements, or of some sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// Only of this database, as clients call it.
    pub database: Option<String>,
    /// Only of this user's.
    pub user: Option<String>,
    /// Only of sessions whose program is called so.
    pub application: Option<String>,
    /// Only of statements that name this table.
    pub table: Option<TableName>,
    /// Only of statements that call this function.
    pub function: Option<TableName>,
    /// Only of this statement.
    pub statement: Option<StatementForm>,
    /// They wait so long for company; with zero they have none.
    pub batch: Option<Duration>,
    /// A read joins one that is on its way already, and asks the very same.
    pub joins: Option<bool>,
    /// Sessions share whatever their application is called.
    pub ignores_application: Option<bool>,
    /// A read may be answered with what was answered so long ago; with zero it may not.
    pub fresh: Option<Duration>,
    /// For so long beyond that also, while it is asked again.
    pub stale: Option<Duration>,
    /// In place of both, where an answer has no rows; with zero it is not remembered then.
    pub missing: Option<Duration>,
    /// The first of these is shorter for each answer, by up to this share of it, in millionths: those that are made together are not asked again together.
    pub jitter: Option<u32>,
    /// Where the database is listened to, it may be this late; none: as for all.
    pub max_lag: Option<Duration>,
    /// For so long beyond all of that also, while the database cannot be asked.
    pub stale_if_away: Option<Duration>,
    /// Room for answers of so many bytes, which is theirs alone; none: they are among all others.
    pub capacity: Option<u64>,
    /// Answers are remembered of no more bytes than this; none: of 32 KiB.
    pub max_answer: Option<u64>,
    /// A read may be answered from memory inside of a transaction too, under READ COMMITTED and as long as that has only read.
    pub in_transactions: Option<bool>,
    /// A read is remembered though it calls functions that are not known to hang on their arguments and the tables that it names alone, or tells the time:
    /// what is declared to change nothing.
    pub stable_functions: Option<bool>,
    /// A read of tables that have row security is remembered.
    pub row_security: Option<bool>,
    /// Tables on which answers hang beside those that are known.
    pub depends_on: Option<Vec<TableName>>,
}

/// A table, with its schema or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName(Vec<String>);

/// A statement, whatever its literals are and however it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementForm {
    form: String,
    shown: String,
    /// Whether it reads, or why it goes alone, in words that follow "it", as far as its text tells.
    reads: Result<bool, &'static str>,
}

/// What is said in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The statement goes alone, for this reason, in words that follow "it".
    GoesAlone(&'static str),
    /// Reads join others, and the statement is none.
    DoesNotRead,
    /// Answers of reads are remembered, and the statement is none.
    IsNotRemembered,
}

impl TableName {
    /// Without its schema.
    pub(crate) fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }
}

impl FromStr for TableName {
    type Err = &'static str;

    /// As in SQL: names without quotes are in lower case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut names = Vec::new();
        let mut rest = text.trim();
        loop {
            let end = match rest.strip_prefix('"') {
                Some(quoted) => quoted.find('"').ok_or("has a quote without its end")? + 2,
                None => rest.find('.').unwrap_or(rest.len()),
            };
            let (name, behind) = rest.split_at(end);
            let mut name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                Some(quoted) => quoted.to_owned(),
                None => name.to_lowercase(),
            };
            if name.is_empty() {
                return Err("has an empty name");
            }
            clip(&mut name);
            names.push(name);
            match behind.strip_prefix('.') {
                Some(next) => rest = next,
                None if behind.is_empty() => return Ok(Self(names)),
                None => return Err("is not names with dots between them"),
            }
        }
    }
}

impl FromStr for StatementForm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match forebay_sql::form(text) {
            Some(form) => Ok(Self {
                form,
                shown: forebay_sql::without_literals(text),
                reads: touches(text)
                    .map(|touches| touches.effect == Effect::Reads)
                    .map_err(|NotShown(why)| why),
            }),
            None => Err("has a backslash, a hint, or a quote without its end: such a statement does not travel"),
        }
    }
}

/// How often a rule was of something.
#[derive(Debug, Default)]
pub(crate) struct RuleCounts {
    /// Statements were asked that it is of.
    pub(crate) met: AtomicU64,
    /// Of these, those that travelled together, where it says how long they wait.
    pub(crate) batched: AtomicU64,
    /// Of these, those that joined another, where it says so.
    pub(crate) joined: AtomicU64,
    /// Of these, those that were answered from memory, where it says for how long.
    pub(crate) remembered: AtomicU64,
    /// How long the database was at them, in nanoseconds.
    pub(crate) database_ns: AtomicU64,
}

/// What holds of one statement.
#[derive(Debug, Default)]
pub(crate) struct Ruled {
    pub(crate) batch: Option<Duration>,
    pub(crate) joins: bool,
    /// How old an answer may be.
    pub(crate) windows: Option<Windows>,
    /// The rule that has room of its own for that.
    pub(crate) room: Option<Arc<str>>,
    /// An answer that is remembered may have so many bytes.
    pub(crate) max_answer: Option<u64>,
    /// Also inside of a transaction.
    pub(crate) in_transactions: bool,
    /// Also where it calls functions that are not reviewed, or tells the time.
    pub(crate) stable_functions: bool,
    /// Also where there is row security.
    pub(crate) row_security: bool,
    /// Tables that it does not name, without their schemas.
    pub(crate) depends_on: Arc<[Arc<str>]>,
    counts: Arc<[RuleCounts]>,
    /// The rules that are of it, by their places.
    own: Vec<usize>,
    /// The ones by which it waits, joins, and is remembered.
    batch_by: Option<usize>,
    joins_by: Option<usize>,
    fresh_by: Option<usize>,
}

impl Ruled {
    /// It was asked, so many times.
    pub(crate) fn was_asked(&self, times: u64) {
        for at in &self.own {
            self.counts[*at].met.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// The database was at it for so long.
    pub(crate) fn was_at_database(&self, elapsed: Duration) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        for at in &self.own {
            self.counts[*at].database_ns.fetch_add(elapsed_ns, Ordering::Relaxed);
        }
    }

    /// It has travelled together with others.
    pub(crate) fn was_batched(&self) {
        if let Some(at) = self.batch_by {
            self.counts[at].batched.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It was answered from memory.
    pub(crate) fn was_remembered(&self) {
        if let Some(at) = self.fresh_by {
            self.counts[at].remembered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Why nothing of it is remembered of which no hint says how old it may be; none where a rule says that.
    pub(crate) fn why_no_windows(&self) -> Option<&'static str> {
        match (self.fresh_by, self.windows) {
            (Some(_), Some(windows)) if !windows.fresh.is_zero() => None,
            (Some(_), _) => Some("a rule says fresh = \"0\""),
            (None, _) => Some(
                "nothing says how old its answer may be: no rule, and no hint outside of transactions and pipelines",
            ),
        }
    }

    /// It has joined another, so many times.
    pub(crate) fn has_joined(&self, times: u64) {
        if let Some(at) = self.joins_by {
            self.counts[at].joined.fetch_add(times, Ordering::Relaxed);
        }
    }
}

impl Rule {
    /// Whether it may be of a statement of this user at this database.
    pub(crate) fn is_of(&self, user: &str, database: &str) -> bool {
        self.user.as_ref().is_none_or(|own| own == user) && self.is_at(database)
    }

    /// Whether it may be of a statement at this database.
    pub(crate) fn is_at(&self, database: &str) -> bool {
        self.database.as_ref().is_none_or(|own| own == database)
    }

    /// How old an answer may be; none where it says nothing of that, or that it is not to be remembered.
    fn windows(&self) -> Option<Windows> {
        let fresh = self.fresh.filter(|fresh| !fresh.is_zero())?;
        Some(Windows {
            fresh,
            stale: self.stale.unwrap_or_default(),
            missing: self.missing,
            jitter: self.jitter.unwrap_or_default(),
            max_lag: self.max_lag,
            away: self.stale_if_away.unwrap_or_default(),
        })
    }

    /// Answers are remembered of no more bytes than this.
    #[must_use]
    pub fn answer_bytes_max(&self) -> u64 {
        self.max_answer.unwrap_or(ANSWER_BYTES_MAX)
    }

    /// What it says of its statement in vain, if there is something.
    #[must_use]
    pub fn doubt(&self) -> Option<Doubt> {
        match self.statement.as_ref()?.reads {
            Err(why) => Some(Doubt::GoesAlone(why)),
            Ok(true) => None,
            Ok(false) if self.joins == Some(true) => Some(Doubt::DoesNotRead),
            Ok(false) => self.fresh.map(|_| Doubt::IsNotRemembered),
        }
    }

    /// What it says, in words that follow what it is of.
    pub(crate) fn says(&self) -> Vec<String> {
        let Self {
            name: _,
            database: _,
            user: _,
            application: _,
            table: _,
            function: _,
            statement: _,
            batch,
            joins,
            ignores_application,
            fresh,
            stale: _,
            missing: _,
            jitter: _,
            max_lag: _,
            stale_if_away: _,
            capacity,
            max_answer,
            in_transactions,
            stable_functions,
            row_security,
            depends_on,
        } = self;
        let said = [
            batch.map(|batch| match batch.is_zero() {
                true => "go alone".to_owned(),
                false => format!("wait {batch:?} for company"),
            }),
            joins.map(|joins| match joins {
                true => "join what is on its way".to_owned(),
                false => "join nothing that is on its way".to_owned(),
            }),
            ignores_application.map(|ignores| match ignores {
                true => "share whatever their application is called".to_owned(),
                false => "share where their application is called the same".to_owned(),
            }),
            fresh.map(|_| match self.windows() {
                None => "are not remembered".to_owned(),
                Some(windows) => {
                    let room = capacity.map(|bytes| format!(", in {bytes} bytes of their own"));
                    format!("are remembered {windows}{}", room.unwrap_or_default())
                }
            }),
            max_answer.map(|bytes| format!("are remembered if they have up to {bytes} bytes")),
            in_transactions.map(|inside| match inside {
                true => "are answered from memory inside of transactions too".to_owned(),
                false => "are not answered from memory inside of transactions".to_owned(),
            }),
            stable_functions.map(|allowed| match allowed {
                true => "are remembered though they call stable functions or tell the time".to_owned(),
                false => "are not remembered if they call stable functions or tell the time".to_owned(),
            }),
            row_security.map(|allowed| match allowed {
                true => "are remembered under row security".to_owned(),
                false => "are not remembered under row security".to_owned(),
            }),
            depends_on.as_ref().map(|tables| {
                let tables: Vec<String> = tables.iter().map(|table| table.0.join(".")).collect();
                format!("hang on {} too", tables.join(" and "))
            }),
        ];
        said.into_iter().flatten().collect()
    }

    /// What it is of, and what it says of that.
    pub(crate) fn said(&self) -> String {
        let Self {
            database,
            user,
            application,
            table,
            function,
            statement,
            ..
        } = self;
        let of = [
            database.as_ref().map(|database| format!(" at {database}")),
            user.as_ref().map(|user| format!(" of {user}")),
            application.as_ref().map(|name| format!(" of the application {name}")),
            function
                .as_ref()
                .map(|function| format!(" that call {}", function.0.join("."))),
            table.as_ref().map(|table| format!(" that name {}", table.0.join("."))),
            statement.as_ref().map(|text| format!(" like {}", text.shown)),
        ];
        let of: String = of.into_iter().flatten().collect();
        let what = if self.ignores_application.is_some() {
            "sessions"
        } else {
            "statements"
        };
        format!("{what}{of} {}", self.says().join(", "))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.said())
    }
}

/// Those of one user at one database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    all: Arc<[Rule]>,
    counts: Arc<[RuleCounts]>,
    /// What its sessions' program is called.
    application: Option<Arc<str>>,
}

impl PartialEq for Rules {
    /// Whether they say the same, whatever they have counted.
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Rules {
    pub(crate) fn of(all: impl Iterator<Item = Rule>) -> Self {
        let all: Arc<[Rule]> = all.collect();
        let counts = all.iter().map(|_| RuleCounts::default()).collect();
        Self {
            all,
            counts,
            application: None,
        }
    }

    /// The same, for sessions whose program is called so.
    pub(crate) fn of_application(&self, application: Option<&str>) -> Self {
        Self {
            application: application.map(Arc::from),
            ..self.clone()
        }
    }

    /// What holds of a statement of this text, of which so much is known.
    pub(crate) fn ruled(&self, text: &str, touches: Option<&Touches>) -> Ruled {
        if self.all.is_empty() {
            return Ruled::default();
        }
        let form = forebay_sql::form(text);
        let (names, called) = touches.map_or((&[][..], &[][..]), |touches| (&touches.names, &touches.called));
        let tables = touches.map_or(&[][..], |touches| &touches.tables);
        let is_of = |rule: &Rule| {
            let is_read = |wanted: &TableName| tables.iter().any(|table| table.ends_with(&wanted.0));
            let is_named = |table: &TableName| table.0.iter().all(|part| names.contains(part));
            let calls = |function: &TableName| {
                is_named(function)
                    && function
                        .last()
                        .is_some_and(|last| called.iter().any(|name| name == last))
            };
            let is_called = |wanted: &StatementForm| form.as_ref() == Some(&wanted.form);
            let is_its = |wanted: &String| self.application.as_deref() == Some(wanted);
            rule.application.as_ref().is_none_or(is_its)
                && rule.table.as_ref().is_none_or(is_read)
                && rule.function.as_ref().is_none_or(calls)
                && rule.statement.as_ref().is_none_or(is_called)
        };
        let own: Vec<usize> = (0..self.all.len()).filter(|at| is_of(&self.all[*at])).collect();
        let first = |says: fn(&Rule) -> bool| own.iter().copied().find(|at| says(&self.all[*at]));
        let batch_by = first(|rule| rule.batch.is_some());
        let joins_by = first(|rule| rule.joins.is_some());
        let fresh_by = first(|rule| rule.fresh.is_some());
        let said = self.said_by(&own);
        let depends_on = said.depends_on.iter().flatten();
        Ruled {
            stable_functions: said.stable_functions == Some(true),
            // Of those who share whatever their application is called, a policy might ask for that.
            row_security: said.row_security == Some(true) && !self.ignore_applications(),
            depends_on: depends_on.filter_map(TableName::last).map(Arc::from).collect(),
            max_answer: said.max_answer,
            in_transactions: said.in_transactions == Some(true),
            windows: said.windows(),
            room: fresh_by
                .filter(|_| said.capacity.is_some())
                .map(|at| self.all[at].name.as_str().into()),
            fresh_by,
            batch: said.batch,
            joins: said.joins == Some(true),
            counts: Arc::clone(&self.counts),
            batch_by,
            joins_by,
            own,
        }
    }

    /// Of each thing what the first of these says, by their places.
    fn said_by(&self, own: &[usize]) -> Rule {
        fn first<T>(all: &[Rule], own: &[usize], of: impl Fn(&Rule) -> Option<T>) -> Option<T> {
            own.iter().find_map(|at| of(&all[*at]))
        }
        // What goes with a window is said with it.
        let of_fresh = first(&self.all, own, |rule| rule.fresh.map(|_| rule.clone()));
        Rule {
            batch: first(&self.all, own, |rule| rule.batch),
            joins: first(&self.all, own, |rule| rule.joins),
            max_answer: first(&self.all, own, |rule| rule.max_answer),
            in_transactions: first(&self.all, own, |rule| rule.in_transactions),
            stable_functions: first(&self.all, own, |rule| rule.stable_functions),
            row_security: first(&self.all, own, |rule| rule.row_security),
            depends_on: first(&self.all, own, |rule| rule.depends_on.clone()),
            name: String::new(),
            database: None,
            user: None,
            application: None,
            table: None,
            function: None,
            statement: None,
            // Of sessions.
            ignores_application: None,
            ..of_fresh.unwrap_or_default()
        }
    }

    /// Of each thing what holds of a statement of which these rules said so much.
    pub(crate) fn said(&self, ruled: &Ruled) -> Rule {
        self.said_by(&ruled.own)
    }

    /// Those that are of it.
    pub(crate) fn own(&self, ruled: &Ruled) -> impl Iterator<Item = &Rule> {
        ruled.own.iter().map(|at| &self.all[*at])
    }

    /// What the rule of this name has counted.
    pub(crate) fn counts(&self, name: &str) -> Option<&RuleCounts> {
        let at = self.all.iter().position(|rule| rule.name == name)?;
        Some(&self.counts[at])
    }

    /// Whether any read may join another.
    pub(crate) fn join(&self) -> bool {
        self.all.iter().any(|rule| rule.joins == Some(true))
    }

    /// Whether any read may be answered from memory inside of a transaction.
    pub(crate) fn tell_in_transactions(&self) -> bool {
        self.all.iter().any(|rule| rule.in_transactions == Some(true))
    }

    /// Whether sessions share whatever their application is called.
    pub(crate) fn ignore_applications(&self) -> bool {
        self.all
            .iter()
            .find_map(|rule| rule.ignores_application)
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn reading(text: &str) -> Touches {
        touches(text).unwrap()
    }

    #[test]
    fn what_is_remembered_and_for_how_long_the_first_rule_of_it_says() {
        let all = [
            Rule {
                fresh: Some(Duration::ZERO),
                function: Some("app.price".parse().unwrap()),
                ..Rule::default()
            },
            Rule {
                fresh: Some(5 * MS),
                stale: Some(7 * MS),
                missing: Some(MS),
                application: Some("shop".to_owned()),
                ..Rule::default()
            },
            Rule {
                fresh: Some(MS),
                table: Some("t".parse().unwrap()),
                ..Rule::default()
            },
        ];
        let rules = Rules::of(all.into_iter());
        let windows = |application: Option<&str>, touches: &Touches| {
            let ruled = rules.of_application(application).ruled("SELECT 1", Some(touches));
            ruled.was_remembered();
            ruled
                .windows
                .map(|windows| (windows.fresh, windows.stale, windows.missing))
        };
        let read = reading("SELECT app, price FROM t");
        assert_eq!(windows(None, &read), Some((MS, Duration::ZERO, None)), "no function");
        assert_eq!(windows(Some("shop"), &read), Some((5 * MS, 7 * MS, Some(MS))));
        assert_eq!(windows(Some("shop"), &reading("SELECT app.price()")), None);
        assert_eq!(windows(Some("other"), &reading("SELECT t.t AS t FROM u AS t")), None);
        let counted: Vec<u64> = rules
            .counts
            .iter()
            .map(|counts| counts.remembered.load(Ordering::Relaxed))
            .collect();
        assert_eq!(counted, [1, 1, 1]);
    }

    #[test]
    fn the_first_that_is_of_a_statement_holds() {
        let rule = |text: Option<&str>, table: Option<&str>| Rule {
            statement: text.map(|text| text.parse().unwrap()),
            table: table.map(|table| table.parse().unwrap()),
            ..Rule::default()
        };
        let all = [
            Rule {
                batch: Some(5 * MS),
                ..rule(Some("SELECT a FROM s.t WHERE id = 7 -- any"), None)
            },
            Rule {
                batch: Some(2 * MS),
                joins: Some(true),
                ..rule(None, Some("S.t"))
            },
            Rule {
                batch: Some(MS),
                user: Some("ann".to_owned()),
                ..rule(None, None)
            },
            Rule {
                joins: Some(false),
                database: Some("other".to_owned()),
                ..rule(None, None)
            },
        ];
        let of = |user: &str| Rules::of(all.iter().filter(|rule| rule.is_of(user, "app")).cloned());
        let told = |user: &str, text: &str| {
            let ruled = of(user).ruled(text, Some(&reading(text)));
            (ruled.batch, ruled.joins)
        };
        assert_eq!(told("bob", "select a FROM S.t WHERE id=$1;"), (Some(5 * MS), true));
        assert_eq!(told("bob", "SELECT b FROM s.t"), (Some(2 * MS), true));
        assert_eq!(
            told("bob", "SELECT 1 FROM u WHERE x IN (SELECT b FROM a.s.\"t\" x)"),
            (Some(2 * MS), true)
        );
        assert_eq!(told("bob", "UPDATE s.t SET a = 1"), (Some(2 * MS), true));
        assert_eq!(told("bob", "INSERT INTO s.t VALUES (1)"), (Some(2 * MS), true));
        for text in [
            "SELECT b FROM t",
            "SELECT s.t FROM u AS s",
            "SELECT b AS t FROM s.u",
            "SELECT b FROM s.\"T\"",
        ] {
            assert_eq!(told("bob", text), (None, false), "{text}");
        }
        assert_eq!(told("ann", "SELECT b FROM u"), (Some(MS), false));
        assert!(of("bob").join() && !Rules::default().join());
    }

    #[test]
    fn under_row_security_nothing_is_remembered_where_applications_are_ignored() {
        let secured = || Rule {
            row_security: Some(true),
            depends_on: Some(vec!["app.Rates".parse().unwrap()]),
            ..Rule::default()
        };
        let ignoring = Rule {
            ignores_application: Some(true),
            ..Rule::default()
        };
        for (all, is_allowed) in [(vec![secured()], true), (vec![secured(), ignoring], false)] {
            let ruled = Rules::of(all.into_iter()).ruled("SELECT 1", Some(&reading("SELECT 1")));
            assert_eq!(ruled.row_security, is_allowed);
            let depends_on: Vec<&str> = ruled.depends_on.iter().map(|table| &**table).collect();
            assert_eq!(depends_on, ["rates"], "without its schema");
        }
    }

    #[test]
    fn tables_are_called_as_in_sql() {
        for (text, names) in [
            ("Visits", &["visits"][..]),
            ("app.\"Vis.its\"", &["app", "Vis.its"]),
            (" \"A\".b ", &["A", "b"]),
        ] {
            assert_eq!(text.parse::<TableName>().unwrap().0, names, "{text}");
        }
        for text in ["", "a.", ".a", "\"a", "\"a\"b", "a..b"] {
            assert!(text.parse::<TableName>().is_err(), "{text}");
        }
        assert!("SELECT 'a\\'".parse::<StatementForm>().is_err());
    }

    #[test]
    fn each_rule_counts_what_it_was_of() {
        let rule = |name: &str, table: Option<&str>| Rule {
            name: name.to_owned(),
            table: table.map(|table| table.parse().unwrap()),
            ..Rule::default()
        };
        let all = [
            Rule {
                batch: Some(MS),
                ..rule("first", Some("t"))
            },
            Rule {
                batch: Some(MS),
                joins: Some(true),
                ..rule("all", None)
            },
        ];
        let rules = Rules::of(all.iter().cloned());
        for (text, times) in [("SELECT 1 FROM t", 3), ("SELECT 1 FROM u", 1)] {
            let ruled = rules.ruled(text, Some(&reading(text)));
            ruled.was_asked(times);
            ruled.was_batched();
            ruled.has_joined(2);
        }
        let counted = |name: &str| {
            let counts = rules.counts(name).unwrap();
            [&counts.met, &counts.batched, &counts.joined].map(|count| count.load(Ordering::Relaxed))
        };
        assert_eq!((counted("first"), counted("all")), ([3, 1, 0], [4, 1, 4]));
        assert!(rules == Rules::of(all.into_iter()), "they say the same");
    }
}
