//! Rules: what the file says of statements and sessions of a proxy's clients without touching them: `[[rule]]` as often as there are some.
//!
//! Promises: a rule says something, of something that can be; no two have one name. Of what it says in vain there are `doubts`. Does not know
//! what comes of it.

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use forebay_proxy::pool::{Doubt, Rule, TableName};
use forebay_proxy::{Invalidation, Listening};
use serde::Deserialize;

use super::error::{OptionsError, value, value_in};
use super::quantity::{Share, Size, Span};

/// The stream's lag is not known any finer.
pub(super) const MAX_LAG_MIN: Duration = Duration::from_millis(20);

/// What a server says is held for so long as it takes to be whole.
const MAX_ANSWER_MAX: u64 = 16 << 20;

/// Nobody waits longer for company.
const BATCH_MAX: Duration = Duration::from_secs(1);

/// What is said of some statements, or of some sessions. The first rule that says something holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSettings {
    /// What it is called in messages.
    pub name: String,
    /// Only of this database, as clients call it.
    pub database: Option<String>,
    /// Only of this user's, as it is called at the database.
    pub user: Option<String>,
    /// Only of sessions whose application_name is this.
    pub application: Option<String>,
    /// Only of statements that name this table.
    pub table: Option<String>,
    /// Only of statements that call this function.
    pub function: Option<String>,
    /// Only of this statement, whatever its literals are.
    pub statement: Option<String>,
    /// How long they wait for company; with 0 they have none.
    pub batch: Option<Span>,
    /// Whether a read joins another one that asks the same and is on its way.
    pub join: Option<JoinOption>,
    /// Whether sessions share whose applications have other names.
    pub application_name: Option<ApplicationOption>,
    /// How old a read's answer may be; with 0 it is never an old one.
    pub fresh: Option<Span>,
    /// How much older, while it is asked again.
    pub stale: Option<Span>,
    /// How old it may be in place of both, where it has no rows.
    pub missing: Option<Span>,
    /// By which share of it the fresh window of an answer may be shorter, as it comes.
    pub jitter: Option<Share>,
    /// How late what the database tells of its changes may be, in place of what holds for all.
    pub max_lag: Option<Span>,
    /// How much older still, while the database is away.
    pub stale_if_away: Option<Span>,
    /// Memory for its answers alone, of what there is for all.
    pub capacity: Option<Size>,
    /// Answers are remembered of no more than this; 32 KiB unless it is said.
    pub max_answer: Option<Size>,
    /// Whether memory answers inside of transactions too, under READ COMMITTED and before they write.
    pub in_transactions: Option<bool>,
    /// Whether reads are remembered that call functions which are declared stable or immutable, or tell the time.
    pub stable_functions: Option<bool>,
    /// Whether reads of tables that have row security are remembered.
    pub row_security: Option<bool>,
    /// Tables on which answers hang beside those that statements name, as functions read them.
    pub depends_on: Option<Vec<String>>,
}

/// By what remembered answers are known to be old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum InvalidateOption {
    /// What passes this proxy
    #[default]
    Own,
    /// That, and what the database itself tells of its changes
    Stream,
    /// Nothing
    None,
}

impl InvalidateOption {
    /// The same, with how a database is listened to.
    pub(super) fn with(self, listening: Listening) -> Invalidation {
        match self {
            Self::Own => Invalidation::Own,
            Self::Stream => Invalidation::Stream(listening),
            Self::None => Invalidation::None,
        }
    }
}

/// Which reads a read joins that asks the very same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum JoinOption {
    /// Also one that was sent
    #[serde(rename = "in flight")]
    InFlight,
    /// One that was not sent yet
    #[serde(rename = "unsent")]
    Unsent,
}

/// What the name of its application is to a session that shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApplicationOption {
    /// Nothing
    Ignored,
    /// A setting as all others
    Heeded,
}

/// All of them, in their order, where answers are remembered in so many bytes, and known to be old by this.
pub(super) fn all(
    all: &[RuleSettings],
    cache_memory: u64,
    invalidation: &Invalidation,
) -> Result<Arc<[Rule]>, OptionsError> {
    let mut rest = cache_memory;
    let mut names = HashSet::new();
    let mut rules = Vec::new();
    for settings in all {
        let wrong = |option, why: &str| value_in("rule", &settings.name, option, why);
        if settings.name.is_empty() {
            return Err(wrong("name", "must not be empty"));
        }
        if !names.insert(&settings.name) {
            return Err(wrong("name", "is given twice"));
        }
        let depends_on = settings.depends_on.as_ref();
        let depends_on = depends_on.map(|tables| tables.iter().map(|table| table.parse()).collect());
        let depends_on: Result<Option<Vec<TableName>>, _> = depends_on.transpose();
        let rule = Rule {
            name: settings.name.clone(),
            database: settings.database.clone(),
            user: settings.user.clone(),
            application: settings.application.clone(),
            table: parsed(settings.table.as_deref()).map_err(|why| wrong("table", why))?,
            function: parsed(settings.function.as_deref()).map_err(|why| wrong("function", why))?,
            statement: parsed(settings.statement.as_deref()).map_err(|why| wrong("statement", why))?,
            batch: settings.batch.map(|Span(span)| span),
            joins: settings.join.map(|join| join == JoinOption::InFlight),
            ignores_application: settings
                .application_name
                .map(|application| application == ApplicationOption::Ignored),
            fresh: settings.fresh.map(|Span(span)| span),
            stale: settings.stale.map(|Span(span)| span),
            missing: settings.missing.map(|Span(span)| span),
            jitter: settings.jitter.map(|Share(millionths)| millionths),
            max_lag: settings.max_lag.map(|Span(span)| span),
            stale_if_away: settings.stale_if_away.map(|Span(span)| span),
            capacity: settings.capacity.map(|Size(bytes)| bytes as u64),
            max_answer: settings.max_answer.map(|Size(bytes)| bytes as u64),
            in_transactions: settings.in_transactions,
            stable_functions: settings.stable_functions,
            row_security: settings.row_security,
            depends_on: depends_on.map_err(|why| wrong("depends_on", why))?,
        };
        if rule.batch.is_some_and(|batch| batch > BATCH_MAX) {
            return Err(wrong("batch", "is longer than 1s: clients would wait for it"));
        }
        let is_of_statements = rule.table.is_some() || rule.function.is_some() || rule.statement.is_some();
        if rule.ignores_application.is_some() && (is_of_statements || rule.application.is_some()) {
            return Err(wrong("application_name", "is of sessions, not of statements"));
        }
        let of_fresh = [
            ("stale", rule.stale.is_some(), "is beyond fresh"),
            ("stale_if_away", rule.stale_if_away.is_some(), "is beyond fresh"),
            ("missing", rule.missing.is_some(), "is in place of fresh"),
            ("capacity", rule.capacity.is_some(), "is for what is fresh"),
            ("jitter", rule.jitter.is_some(), "is of fresh"),
            ("max_lag", rule.max_lag.is_some(), "is of what is fresh"),
        ];
        if rule.fresh.is_none_or(|fresh| fresh.is_zero())
            && let Some((option, _, why)) = of_fresh.into_iter().find(|(_, is_given, _)| *is_given)
        {
            let given = if rule.fresh.is_none() { "not given" } else { "\"0\"" };
            return Err(wrong(option, &format!("{why}, which is {given}")));
        }
        if rule.max_answer.is_some_and(|bytes| bytes > MAX_ANSWER_MAX) {
            return Err(wrong("max_answer", "must be 16MiB at most: each is gathered whole"));
        }
        match rule.capacity {
            None => {}
            Some(0) => return Err(wrong("capacity", "must not be 0: fresh = \"0\" remembers nothing")),
            // Without memory all that is remembered is in vain, and said to be.
            Some(_) if cache_memory == 0 => {}
            Some(bytes) if bytes >= rest => {
                return Err(wrong(
                    "capacity",
                    "leaves nothing of cache_memory to what has no capacity of its own",
                ));
            }
            Some(bytes) => rest -= bytes,
        }
        match (rule.max_lag, invalidation) {
            (None, _) => {}
            (Some(max_lag), _) if max_lag < MAX_LAG_MIN => return Err(wrong("max_lag", "must be 20ms at least")),
            (Some(_), Invalidation::Stream(_)) => {}
            (Some(_), _) => return Err(wrong("max_lag", "means something only with invalidate = \"stream\"")),
        }
        // What is beside a hint is said by itself.
        let says_something = rule.batch.is_some()
            || rule.joins.is_some()
            || rule.ignores_application.is_some()
            || rule.fresh.is_some()
            || rule.max_answer.is_some()
            || rule.in_transactions.is_some()
            || rule.stable_functions.is_some()
            || rule.row_security.is_some()
            || rule.depends_on.is_some();
        if !says_something {
            return Err(wrong(
                "name",
                "says nothing: neither batch, join, application_name nor fresh, or what is beside that",
            ));
        }
        rules.push(rule);
    }
    Ok(rules.into())
}

/// What is said in vain, by rules or of all that is remembered: each by its option, with the reason.
pub(super) fn doubts(all: &[Rule], remembers: bool, invalidation: &Invalidation) -> Vec<OptionsError> {
    let is_listened_for_nothing = !remembers && matches!(invalidation, Invalidation::Stream(_));
    let for_nothing = is_listened_for_nothing.then(|| {
        let why = "\"stream\" is of what is remembered, and there is no memory for it: cache_memory is 0";
        value("invalidate", why)
    });
    let in_vain = all.iter().filter_map(|rule| {
        let has_no_memory = !remembers && rule.fresh.is_some_and(|fresh| !fresh.is_zero());
        let why = "says what is remembered, and there is no memory for it: cache_memory is 0";
        has_no_memory.then(|| value_in("rule", &rule.name, "fresh", why))
    });
    let doubts = all.iter().filter_map(|rule| match rule.doubt()? {
        Doubt::GoesAlone(why) => Some(value_in(
            "rule",
            &rule.name,
            "statement",
            &format!("{why}: it goes alone"),
        )),
        Doubt::IsNotRemembered => {
            let why = "is of a statement that does not read: it is not remembered";
            Some(value_in("rule", &rule.name, "fresh", why))
        }
        Doubt::DoesNotRead => {
            let why = "is of a statement that does not read: it joins nothing";
            Some(value_in("rule", &rule.name, "join", why))
        }
    });
    let too_small = all.iter().filter_map(|rule| {
        let most = rule.answer_bytes_max();
        let why = format!("has no room for an answer of {most} bytes, which would be remembered");
        let is_too_small = rule.capacity.is_some_and(|bytes| bytes < most);
        is_too_small.then(|| value_in("rule", &rule.name, "capacity", &why))
    });
    let all = for_nothing.into_iter().chain(in_vain).chain(doubts).chain(too_small);
    all.collect()
}

fn parsed<T: FromStr>(text: Option<&str>) -> Result<Option<T>, T::Err> {
    text.map(str::parse).transpose()
}
