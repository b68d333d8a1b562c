//! PostgreSQL's aggregates that SQLite does not have.
//!
//! Promises: PostgreSQL's result for the rows of a group, and over a window that only grows; the values that an aggregate keeps have a bound.

use std::panic::AssertUnwindSafe;

use forebay_pg_values::aggregate::{Accumulator, Start};
use forebay_pg_values::{Arguments, Datum, Environment, ValueError};
use rusqlite::functions::{Aggregate, Context, WindowAggregate};
use rusqlite::types::Value;

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
    gathers: bool,
    start: Start,
}

pub(super) struct Group {
    accumulator: AssertUnwindSafe<Box<dyn Accumulator>>,
    /// What it keeps, in bytes.
    gathered: i64,
}

impl KnownAggregate {
    fn group(&self) -> Group {
        Group {
            accumulator: AssertUnwindSafe((self.start)()),
            gathered: 0,
        }
    }

    fn add(&self, context: &Context<'_>, group: &mut Group) -> rusqlite::Result<()> {
        let mut count = context.len();
        let mut session = None;
        let mut kinds = Vec::new();
        if self.in_session && count > 0 {
            count -= 1;
            if let Datum::Text(text) = datum(context.get_raw(count))? {
                session = Some(session_context(text)?);
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
        if self.gathers {
            let bytes: usize = arguments.iter().map(gathered_bytes).sum();
            group.gathered = group.gathered.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
            forebay_pg_values::text::check_length(group.gathered).map_err(raised)?;
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

    fn finalize(&self, _: &mut Context<'_>, group: Option<Group>) -> rusqlite::Result<Value> {
        self.result(group.as_ref())
    }
}

impl WindowAggregate<Group, Value> for KnownAggregate {
    fn value(&self, group: Option<&mut Group>) -> rusqlite::Result<Value> {
        self.result(group.as_deref())
    }

    fn inverse(&self, _: &mut Context<'_>, _: &mut Group) -> rusqlite::Result<()> {
        Err(raised(ValueError::unsupported(
            "a window whose start moves over this aggregate is",
        )))
    }
}

pub(super) fn aggregates() -> impl Iterator<Item = KnownAggregate> {
    forebay_pg_values::aggregate::symbols().map(|(symbol, start)| {
        let polymorphic = symbol.contains("any");
        KnownAggregate {
            name: symbol.to_owned(),
            typed: polymorphic,
            in_session: polymorphic,
            gathers: symbol.contains("_agg("),
            start,
        }
    })
}

/// The aggregate of that symbol.
pub(crate) fn aggregate(symbol: &str) -> Option<KnownAggregate> {
    aggregates().find(|known| known.name == symbol)
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
