//! PostgreSQL's functions as functions of SQLite: what compiled statements call.
//!
//! Contract: a function of PostgreSQL's is known as `pg:` and its symbol; what the compiler needs beside them is in [`special`], under
//! names that begin with `forebay_`. Values come and go in their stored forms. A failure's text carries PostgreSQL's SQLSTATE,
//! message, detail and hint, which [`marked_error`] takes apart.
//!
//! What depends on the session is told by a text of its own ([`Told`]): SQLite's functions know no session.

mod sequence_change;
mod sequences;
mod special;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use forebay_pg_values::aggregate::{Accumulator, Start};
use forebay_pg_values::{Arguments, Datum, Environment, Function, Kind, Owned, Type, ValueError};
use jiff::tz::TimeZone;
use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::{Value, ValueRef};

use super::compile::types::ARRAY_COLLATIONS;
pub(crate) use sequence_change::SequenceChange;
pub use sequences::{GIVE_BACK, Sequences};
pub(crate) use special::clock_micros;

/// How the text of an error from these functions begins; the five characters of the code and `: ` follow.
const MARKER: &str = "SQLSTATE ";
/// Between message, detail, hint, and what it is about.
const SEPARATOR: char = '\u{1f}';

/// An error that one of these functions raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Five characters.
    pub sqlstate: String,
    /// PostgreSQL's message.
    pub message: String,
    /// More about this case.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// What it is about.
    pub about: About,
}

/// What an error is about, where PostgreSQL tells programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The table.
    pub table: Option<String>,
    /// Its column.
    pub column: Option<String>,
    /// Its constraint.
    pub constraint: Option<String>,
}

/// The error behind a text that SQLite reports, if one of these functions raised it.
pub fn marked_error(text: &str) -> Option<Marked> {
    let rest = text.strip_prefix(MARKER)?;
    let (code, rest) = rest.split_at_checked(5)?;
    let mut parts = rest.strip_prefix(": ")?.split(SEPARATOR).map(str::to_owned);
    let message = parts.next()?;
    let mut other = || parts.next().filter(|part| !part.is_empty());
    Some(Marked {
        sqlstate: code.to_owned(),
        message,
        detail: other(),
        hint: other(),
        about: About {
            table: other(),
            column: other(),
            constraint: other(),
        },
    })
}

#[derive(Debug)]
struct Carried(ValueError, About);

impl fmt::Display for Carried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.0;
        write!(formatter, "{MARKER}{}: {}", error.sqlstate, error.message)?;
        let About {
            table,
            column,
            constraint,
        } = &self.1;
        let parts = [&error.detail, &error.hint, table, column, constraint];
        let told = parts.iter().rposition(|part| part.is_some()).map_or(0, |last| last + 1);
        for part in &parts[..told] {
            write!(formatter, "{SEPARATOR}{}", part.as_deref().unwrap_or(""))?;
        }
        Ok(())
    }
}

impl std::error::Error for Carried {}

fn raised(error: ValueError) -> rusqlite::Error {
    raised_about(error, About::default())
}

fn raised_about(error: ValueError, about: About) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(Box::new(Carried(error, about)))
}

/// What a statement is told of its session, as the text of one parameter: the moment its transaction began in microseconds, the
/// session's number, its time zone.
#[derive(Debug, Clone)]
pub struct Told {
    /// For functions of values.
    pub values: Environment,
    /// Whose sequences' values are asked for.
    pub session: u64,
}

impl Told {
    /// The text of the parameter.
    pub fn text(now_micros: i64, session: u64, zone: &str) -> String {
        let (mut now, mut number) = (itoa::Buffer::new(), itoa::Buffer::new());
        [now.format(now_micros), " ", number.format(session), " ", zone].concat()
    }

    /// Only the number of the session that the text tells of.
    fn session(text: &str) -> rusqlite::Result<u64> {
        let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
        number.ok_or_else(untold)
    }

    /// `last` is one that was read before: most are of the same zone.
    fn read(text: &str, last: Option<&(String, Arc<Self>)>) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let now_micros = parts.next()?.parse().ok()?;
        let session = parts.next()?.parse().ok()?;
        let name = parts.next()?;
        let zone = match last {
            Some((before, told)) if before.splitn(3, ' ').nth(2) == Some(name) => told.values.zone.clone(),
            _ => zone(name),
        };
        Some(Self {
            values: Environment::new(zone, now_micros),
            session,
        })
    }
}

/// The time zone of a session, by the name that its setting has.
pub fn zone(name: &str) -> TimeZone {
    forebay_pg_values::temporal::parse_zone(name).unwrap_or(TimeZone::UTC)
}

thread_local! {
    /// The text that was told last, with what it says: the same for all rows of a statement.
    static LAST_TOLD: RefCell<Option<(String, Arc<Told>)>> = const { RefCell::new(None) };
}

fn told(text: &str) -> rusqlite::Result<Arc<Told>> {
    LAST_TOLD.with_borrow_mut(|last| {
        if let Some((known, told)) = last
            && known == text
        {
            return Ok(Arc::clone(told));
        }
        let read = Arc::new(Told::read(text, last.as_ref()).ok_or_else(untold)?);
        *last = Some((text.to_owned(), Arc::clone(&read)));
        Ok(read)
    })
}

fn untold() -> rusqlite::Error {
    raised(ValueError::new("XX000", "the statement was not told of its session"))
}

/// Adds all functions and collations to a connection.
pub fn register(connection: &mut Connection, sequences: &Arc<Sequences>) -> rusqlite::Result<()> {
    for function in forebay_pg_values::functions() {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let name = format!("pg:{}", function.symbol);
        connection.create_scalar_function(name.as_str(), -1, flags, move |context| call(function, context))?;
    }
    for aggregate in aggregates() {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let name = format!("pg:{}", aggregate.name);
        connection.create_window_function(name.as_str(), -1, flags, aggregate)?;
    }
    for (name, comparison) in COMPARISONS {
        connection.create_collation(name, comparison)?;
    }
    for (kind, name) in ARRAY_COLLATIONS {
        connection.create_collation(name, move |left, right| compare_arrays(kind, left, right))?;
    }
    special::register(connection)?;
    sequences::register(connection, sequences)
}

type Comparison = fn(&str, &str) -> Ordering;

/// The collations of our own that are not of arrays.
const COMPARISONS: [(&str, Comparison); 3] = [
    ("pg_numeric", forebay_pg_values::numeric::compare),
    ("pg_interval", forebay_pg_values::interval::compare),
    ("pg_jsonb", forebay_pg_values::json::jsonb::compare),
];

fn compare_arrays(kind: Kind, left: &str, right: &str) -> Ordering {
    forebay_pg_values::array::compare(kind, left, right).unwrap_or_else(|_| left.cmp(right))
}

/// What a collation, SQLite's own or one of ours, says of two texts.
fn compare_collated(collation: &str, left: &str, right: &str) -> Ordering {
    if collation == "RTRIM" {
        return left.trim_end_matches(' ').cmp(right.trim_end_matches(' '));
    }
    if let Some((_, comparison)) = COMPARISONS.iter().find(|(name, _)| *name == collation) {
        return comparison(left, right);
    }
    match ARRAY_COLLATIONS.iter().find(|(_, name)| *name == collation) {
        Some((kind, _)) => compare_arrays(*kind, left, right),
        None => left.cmp(right),
    }
}

/// An argument in its stored form.
fn datum(value: ValueRef<'_>) -> rusqlite::Result<Datum<'_>> {
    Ok(match value {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(integer) => Datum::Integer(integer),
        ValueRef::Real(real) => Datum::Real(real),
        ValueRef::Text(bytes) => Datum::Text(
            std::str::from_utf8(bytes)
                .map_err(|_| raised(ValueError::new("22021", "invalid byte sequence for encoding \"UTF8\"")))?,
        ),
        ValueRef::Blob(bytes) => Datum::Blob(bytes),
    })
}

fn value(owned: Owned) -> rusqlite::Result<Value> {
    Ok(match owned {
        Owned::Null => Value::Null,
        Owned::Integer(integer) => Value::Integer(integer),
        // SQLite would make it NULL.
        Owned::Real(real) if real.is_nan() => {
            return Err(raised(ValueError::unsupported("NaN of type double precision is")));
        }
        Owned::Real(real) => Value::Real(real),
        Owned::Text(text) => Value::Text(text),
        Owned::Blob(bytes) => Value::Blob(bytes),
    })
}

fn types(labels: &str) -> Vec<Type> {
    labels.split(',').filter_map(Type::from_name).collect()
}

/// All arguments of a call.
fn data<'a>(context: &'a Context<'_>, count: usize) -> rusqlite::Result<Vec<Datum<'a>>> {
    (0..count).map(|index| datum(context.get_raw(index))).collect()
}

fn utc() -> &'static Environment {
    use std::sync::OnceLock;
    static UTC: OnceLock<Environment> = OnceLock::new();
    UTC.get_or_init(|| Environment::new(TimeZone::UTC, 0))
}

/// Calls a function of PostgreSQL's; behind its own arguments stand their types and what is told of the session, if it asked for them.
fn call(function: &'static Function, context: &Context<'_>) -> rusqlite::Result<Value> {
    let mut count = context.len();
    let mut session = None;
    if function.in_session && count > 0 {
        count -= 1;
        let last = context.get_raw(count);
        if let Datum::Text(text) = datum(last)? {
            session = Some(told(text)?);
        }
    }
    let mut kinds = Vec::new();
    if function.typed && count > 0 {
        count -= 1;
        let last = context.get_raw(count);
        if let Datum::Text(labels) = datum(last)? {
            kinds = types(labels);
        }
    }
    let arguments = data(context, count)?;
    let environment: &Environment = match &session {
        Some(told) => &told.values,
        None => utc(),
    };
    function
        .call(Arguments {
            values: &arguments,
            types: &kinds,
            environment,
        })
        .map_err(raised)
        .and_then(value)
}

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

fn aggregates() -> impl Iterator<Item = KnownAggregate> {
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

struct Group {
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
                session = Some(told(text)?);
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
            Some(told) => &told.values,
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

/// What an aggregate that keeps this value keeps, about.
fn gathered_bytes(value: &Datum<'_>) -> usize {
    match value {
        Datum::Null => 4,
        Datum::Integer(_) | Datum::Real(_) => 8,
        Datum::Text(text) => text.len() + 2,
        Datum::Blob(bytes) => bytes.len() + 2,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_read_alone_is_the_one_that_is_told() {
        for (now_micros, session) in [(-5, 7), (i64::MIN, u64::MAX), (i64::MAX, 0)] {
            let text = Told::text(now_micros, session, "Europe/Berlin");
            let read = Told::read(&text, None).unwrap();
            assert_eq!((read.values.now_micros, read.session), (now_micros, session));
            assert_eq!(Told::session(&text).unwrap(), session);
        }
        assert!(Told::session("7").is_err());
        assert!(Told::session("0 one UTC").is_err());
    }
}
