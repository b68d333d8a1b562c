//! PostgreSQL's aggregates that SQLite does not have.
//!
//! Promises: PostgreSQL's result for the rows of a group, and over a window; the values that an aggregate keeps have a bound.
//! SQLite takes DISTINCT before one argument alone: those that keep values have a twin that looks itself. All have one that can forget
//! rows again: it keeps what it was given, and begins anew from what is left.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;

use forebay_pg_values::aggregate::{Accumulator, Start};
use forebay_pg_values::{Arguments, Datum, Environment, Owned, Type, ValueError};
use rusqlite::functions::{Aggregate, Context, WindowAggregate};
use rusqlite::types::Value;

use super::collation::compare_collated;
use super::error::raised;
use super::session_context::session_context;
use super::value::{data, datum, types, utc, value};

/// An aggregate of PostgreSQL's that is no aggregate of SQLite's.
#[derive(Clone)]
pub(crate) struct KnownAggregate {
    /// Its symbol: the name with the declared types of its arguments.
    pub(crate) name: String,
    /// Wants to know the types of its arguments.
    pub(crate) typed: bool,
    /// Depends on the session.
    pub(crate) in_session: bool,
    /// Keeps all values it is given.
    pub(crate) gathers: bool,
    /// Passes over what is equal to what came just before. Its last argument is the collation that says what is equal.
    distinct: bool,
    /// Is asked to forget the first rows again.
    moves: bool,
    start: Start,
}

pub(super) struct Group {
    accumulator: AssertUnwindSafe<Box<dyn Accumulator>>,
    /// What it keeps, in bytes.
    gathered: i64,
    /// The last first argument, of one that passes over what is equal.
    last: Option<Owned>,
    /// The arguments of the rows that it has not forgotten, of one that is asked to.
    kept: VecDeque<Vec<Owned>>,
    /// The types of the arguments, and the text of the session, as the last row told them.
    kinds: Vec<Type>,
    session: Option<String>,
    /// Rows that the accumulator has seen are forgotten.
    is_stale: bool,
}

impl KnownAggregate {
    fn group(&self) -> Group {
        Group {
            accumulator: AssertUnwindSafe((self.start)()),
            gathered: 0,
            last: None,
            kept: VecDeque::new(),
            kinds: Vec::new(),
            session: None,
            is_stale: false,
        }
    }

    fn add(&self, context: &Context<'_>, group: &mut Group) -> rusqlite::Result<()> {
        let mut count = context.len();
        let (mut session, mut told) = (None, None);
        let mut kinds = Vec::new();
        if self.distinct && count > 1 {
            count -= 1;
            let first = datum(context.get_raw(0))?;
            if let Datum::Text(collation) = datum(context.get_raw(count))? {
                if group
                    .last
                    .as_ref()
                    .is_some_and(|last| is_equal(&last.as_datum(), &first, collation))
                {
                    return Ok(());
                }
                group.last = Some(first.into());
            }
        }
        if self.in_session && count > 0 {
            count -= 1;
            if let Datum::Text(text) = datum(context.get_raw(count))? {
                session = Some(session_context(text)?);
                told = Some(text);
            }
        }
        if self.typed && count > 0 {
            count -= 1;
            if let Datum::Text(labels) = datum(context.get_raw(count))? {
                kinds = types(labels);
            }
        }
        let arguments = data(context, count)?;
        let environment: &Environment = match &session {
            Some(session) => &session.values,
            None => utc(),
        };
        if self.gathers || self.moves {
            group.gathered = group.gathered.saturating_add(size(&arguments));
            forebay_pg_values::text::check_length(group.gathered).map_err(raised)?;
        }
        if self.moves {
            group
                .kept
                .push_back(arguments.iter().map(|argument| (*argument).into()).collect());
            if group.session.as_deref() != told {
                group.session = told.map(str::to_owned);
            }
            group.kinds.clone_from(&kinds);
            if group.is_stale {
                return Ok(());
            }
        }
        group
            .accumulator
            .add(Arguments {
                values: &arguments,
                types: &kinds,
                environment,
            })
            .map_err(raised)
    }

    /// Forgets the first row.
    fn forget(group: &mut Group) {
        if let Some(row) = group.kept.pop_front() {
            let data: Vec<Datum<'_>> = row.iter().map(Owned::as_datum).collect();
            group.gathered -= size(&data);
            group.is_stale = true;
        }
    }

    /// Has the accumulator see the rows that are left, and no others.
    fn freshen(&self, group: &mut Group) -> rusqlite::Result<()> {
        if !std::mem::take(&mut group.is_stale) {
            return Ok(());
        }
        let session = group.session.as_deref().map(session_context).transpose()?;
        let environment: &Environment = match &session {
            Some(session) => &session.values,
            None => utc(),
        };
        group.accumulator = AssertUnwindSafe((self.start)());
        for row in &group.kept {
            let data: Vec<Datum<'_>> = row.iter().map(Owned::as_datum).collect();
            let arguments = Arguments {
                values: &data,
                types: &group.kinds,
                environment,
            };
            group.accumulator.add(arguments).map_err(raised)?;
        }
        Ok(())
    }

    fn result(&self, group: Option<&Group>) -> rusqlite::Result<Value> {
        let finished = match group {
            Some(group) => group.accumulator.finish(),
            None => (self.start)().finish(),
        };
        finished.map_err(raised).and_then(value)
    }
}

impl Aggregate<Group, Value> for KnownAggregate {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Group> {
        Ok(self.group())
    }

    fn step(&self, context: &mut Context<'_>, group: &mut Group) -> rusqlite::Result<()> {
        self.add(context, group)
    }

    fn finalize(&self, _: &mut Context<'_>, mut group: Option<Group>) -> rusqlite::Result<Value> {
        if let Some(group) = &mut group {
            self.freshen(group)?;
        }
        self.result(group.as_ref())
    }
}

impl WindowAggregate<Group, Value> for KnownAggregate {
    fn value(&self, mut group: Option<&mut Group>) -> rusqlite::Result<Value> {
        if let Some(group) = &mut group {
            self.freshen(group)?;
        }
        self.result(group.as_deref())
    }

    fn inverse(&self, _: &mut Context<'_>, group: &mut Group) -> rusqlite::Result<()> {
        if self.moves {
            Self::forget(group);
            return Ok(());
        }
        Err(raised(ValueError::unsupported(
            "a window whose start moves over this aggregate is",
        )))
    }
}

pub(super) fn aggregates() -> impl Iterator<Item = KnownAggregate> {
    forebay_pg_values::aggregate::symbols().flat_map(|(symbol, start)| {
        let polymorphic = symbol.contains("any");
        let known = KnownAggregate {
            name: symbol.to_owned(),
            typed: polymorphic,
            in_session: polymorphic,
            gathers: symbol.contains("_agg("),
            distinct: false,
            moves: false,
            start,
        };
        let moving = KnownAggregate {
            name: moving(symbol),
            moves: true,
            ..known.clone()
        };
        let once = known.gathers.then(|| KnownAggregate {
            name: distinct(symbol),
            distinct: true,
            ..known.clone()
        });
        [Some(known), Some(moving), once].into_iter().flatten()
    })
}

/// The symbol of an aggregate's twin that takes what is equal once, where its rows come in the order of its first argument.
pub(crate) fn distinct(symbol: &str) -> String {
    format!("{symbol} DISTINCT")
}

/// The symbol of an aggregate's twin for windows whose start moves.
pub(crate) fn moving(symbol: &str) -> String {
    format!("{symbol} MOVING")
}

fn is_equal(left: &Datum<'_>, right: &Datum<'_>, collation: &str) -> bool {
    match (left, right) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Integer(left), Datum::Integer(right)) => left == right,
        (Datum::Real(left), Datum::Real(right)) => left == right,
        (Datum::Text(left), Datum::Text(right)) => compare_collated(collation, left, right).is_eq(),
        (Datum::Blob(left), Datum::Blob(right)) => left == right,
        _ => false,
    }
}

/// The aggregate of that symbol.
pub(crate) fn aggregate(symbol: &str) -> Option<KnownAggregate> {
    aggregates().find(|known| known.name == symbol)
}

fn size(arguments: &[Datum<'_>]) -> i64 {
    let bytes: usize = arguments.iter().map(gathered_bytes).sum();
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What an aggregate that keeps this value keeps, about.
fn gathered_bytes(value: &Datum<'_>) -> usize {
    match value {
        Datum::Null => 4,
        Datum::Integer(_) | Datum::Real(_) => 8,
        Datum::Text(text) => text.len() + 2,
        Datum::Blob(bytes) => bytes.len() + 2,
    }
}
