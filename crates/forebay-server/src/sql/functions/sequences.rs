//! Sequences: nextval, currval, setval, lastval.
//!
//! Contract: a number is given once, whoever asks and whatever becomes of the transaction it was asked in; after a crash some numbers
//! may be left out, none is given again. `currval` and `lastval` are the session's own.
//!
//! The next number is in memory. The file says up to where numbers may have been given: it is raised, some numbers ahead, inside the
//! transaction that asks, so that a number is never durable before the file knows of it. As long as that transaction is not known
//! to be committed, each call looks whether the file still says so: a savepoint may have taken it back.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_pg_values::{Datum, ValueError};
use parking_lot::Mutex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use super::{datum, raised, told};
use crate::sql::compile::namespace::parted;
use crate::sql::compile::sequence_name;

/// How many numbers the file is ahead of memory, as PostgreSQL's log is.
const AHEAD: i64 = 32;

/// The sequences of one database, and what its sessions have seen of them.
#[derive(Debug, Default)]
pub struct Sequences {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sequences: HashMap<String, Sequence>,
    /// By session: the last number of each sequence, and the sequence that was asked last.
    sessions: HashMap<u64, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    numbers: HashMap<String, i64>,
    last: Option<String>,
}

#[derive(Debug, Clone)]
struct Sequence {
    increment: i64,
    minimum: i64,
    maximum: i64,
    cycle: bool,
    last: i64,
    called: bool,
    /// What the file says, as far as is known here.
    logged: Option<i64>,
}

impl Sequences {
    /// Forgets what a session has seen.
    pub fn forget_session(&self, session: u64) {
        self.state.lock().sessions.remove(&session);
    }
}

pub(super) fn register(connection: &Connection, sequences: &Arc<Sequences>) -> rusqlite::Result<()> {
    type Body = fn(&Context<'_>, &Sequences) -> rusqlite::Result<Value>;
    let bodies: [(&str, Body); 6] = [
        ("forebay_nextval", nextval),
        ("forebay_currval", currval),
        ("forebay_lastval", lastval),
        ("forebay_setval", setval),
        ("forebay_forget_sequence", forget),
        ("forebay_sequence_name", name),
    ];
    for (name, body) in bodies {
        let sequences = Arc::clone(sequences);
        connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
            body(context, &sequences)
        })?;
    }
    Ok(())
}

fn text<'a>(context: &'a Context<'_>, index: usize) -> rusqlite::Result<&'a str> {
    match datum(context.get_raw(index))? {
        Datum::Text(text) => Ok(text),
        _ => Err(raised(ValueError::new(
            "XX000",
            "a sequence's function was called wrongly",
        ))),
    }
}

fn integer(context: &Context<'_>, index: usize) -> rusqlite::Result<Option<i64>> {
    match datum(context.get_raw(index))? {
        Datum::Integer(integer) => Ok(Some(integer)),
        Datum::Null => Ok(None),
        _ => Err(raised(ValueError::new(
            "XX000",
            "a sequence's function was called wrongly",
        ))),
    }
}

fn missing(name: &str) -> rusqlite::Error {
    let name = match parted(name) {
        ("public", name) => name.to_owned(),
        (schema, name) => format!("{schema}.{name}"),
    };
    raised(ValueError::new("42P01", format!("relation \"{name}\" does not exist")))
}

/// Does something with the connection that the function was called on.
fn with_connection<T>(
    context: &Context<'_>,
    job: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // SAFETY: the connection is used within the call only, on its own thread, and is not closed.
    let connection = unsafe { context.get_connection() }?;
    job(&connection)
}

fn from_file(connection: &Connection, name: &str) -> rusqlite::Result<Sequence> {
    let there: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence')")?
        .query_row([], |row| row.get(0))?;
    if !there {
        return Err(missing(name));
    }
    connection
        .prepare_cached(
            "SELECT increment, minimum, maximum, cycle, last, called FROM forebay_sequence WHERE name = ?1",
        )?
        .query_row([name], |row| {
            Ok(Sequence {
                increment: row.get(0)?,
                minimum: row.get(1)?,
                maximum: row.get(2)?,
                cycle: row.get(3)?,
                last: row.get(4)?,
                called: row.get(5)?,
                logged: None,
            })
        })
        .optional()?
        .ok_or_else(|| missing(name))
}

/// Has the file say that numbers up to this one may have been given.
fn log(connection: &Connection, name: &str, last: i64, called: bool) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE forebay_sequence SET last = ?2, called = ?3 WHERE name = ?1")?
        .execute((name, last, called))
        .map(|_| ())
}

fn logged(connection: &Connection, name: &str) -> rusqlite::Result<Option<(i64, bool)>> {
    connection
        .prepare_cached("SELECT last, called FROM forebay_sequence WHERE name = ?1")?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn nextval(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let told = told(text(context, 0)?)?;
    let name = text(context, 1)?;
    let mut state = sequences.state.lock();
    let next = with_connection(context, |connection| {
        if !state.sequences.contains_key(name) {
            let read = from_file(connection, name)?;
            state.sequences.insert(name.to_owned(), read);
        }
        let Some(sequence) = state.sequences.get_mut(name) else {
            return Err(missing(name));
        };
        let next = if sequence.called {
            let up = sequence.increment > 0;
            match sequence.last.checked_add(sequence.increment) {
                Some(next) if (sequence.minimum..=sequence.maximum).contains(&next) => next,
                _ if sequence.cycle => {
                    sequence.logged = None;
                    if up { sequence.minimum } else { sequence.maximum }
                }
                _ => {
                    let (word, bound) = if up {
                        ("maximum", sequence.maximum)
                    } else {
                        ("minimum", sequence.minimum)
                    };
                    return Err(raised(ValueError::new(
                        "2200H",
                        format!(
                            "nextval: reached {word} value of sequence \"{}\" ({bound})",
                            parted(name).1
                        ),
                    )));
                }
            }
        } else {
            sequence.last
        };
        let beyond = |bound: i64| {
            if sequence.increment > 0 {
                next > bound
            } else {
                next < bound
            }
        };
        // What this transaction has raised may have been taken back by a savepoint, or by its end.
        let holds = match sequence.logged {
            Some(bound) if !beyond(bound) => {
                logged(connection, name)?.is_some_and(|(last, called)| called && !beyond(last))
            }
            _ => false,
        };
        if !holds {
            let ahead = sequence
                .increment
                .saturating_mul(AHEAD)
                .saturating_add(next)
                .clamp(sequence.minimum, sequence.maximum);
            log(connection, name, ahead, true)?;
            sequence.logged = Some(ahead);
        }
        sequence.last = next;
        sequence.called = true;
        Ok(next)
    })?;
    let seen = state.sessions.entry(told.session).or_default();
    seen.numbers.insert(name.to_owned(), next);
    seen.last = Some(name.to_owned());
    Ok(Value::Integer(next))
}

fn currval(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let told = told(text(context, 0)?)?;
    let name = text(context, 1)?;
    let state = sequences.state.lock();
    match state
        .sessions
        .get(&told.session)
        .and_then(|seen| seen.numbers.get(name))
    {
        Some(number) => Ok(Value::Integer(*number)),
        None => {
            with_connection(context, |connection| from_file(connection, name))?;
            Err(raised(ValueError::new(
                "55000",
                format!(
                    "currval of sequence \"{}\" is not yet defined in this session",
                    parted(name).1
                ),
            )))
        }
    }
}

fn lastval(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let told = told(text(context, 0)?)?;
    let state = sequences.state.lock();
    state
        .sessions
        .get(&told.session)
        .and_then(|seen| seen.numbers.get(seen.last.as_ref()?))
        .map(|number| Value::Integer(*number))
        .ok_or_else(|| raised(ValueError::new("55000", "lastval is not yet defined in this session")))
}

fn setval(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let told = told(text(context, 0)?)?;
    let name = text(context, 1)?;
    let Some(number) = integer(context, 2)? else {
        return Ok(Value::Null);
    };
    let called = if context.len() > 3 {
        integer(context, 3)?.unwrap_or(1) != 0
    } else {
        true
    };
    let mut state = sequences.state.lock();
    with_connection(context, |connection| {
        let mut sequence = from_file(connection, name)?;
        if !(sequence.minimum..=sequence.maximum).contains(&number) {
            return Err(raised(ValueError::new(
                "22003",
                format!(
                    "setval: value {number} is out of bounds for sequence \"{}\" ({}..{})",
                    parted(name).1,
                    sequence.minimum,
                    sequence.maximum
                ),
            )));
        }
        log(connection, name, number, called)?;
        sequence.last = number;
        sequence.called = called;
        sequence.logged = None;
        state.sequences.insert(name.to_owned(), sequence);
        Ok(())
    })?;
    if called {
        let seen = state.sessions.entry(told.session).or_default();
        seen.numbers.insert(name.to_owned(), number);
    }
    Ok(Value::Integer(number))
}

/// The sequence has changed in the file: it is read again.
fn forget(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    sequences.state.lock().sequences.remove(text(context, 0)?);
    Ok(Value::Null)
}

fn name(context: &Context<'_>, _: &Sequences) -> rusqlite::Result<Value> {
    match datum(context.get_raw(0))? {
        Datum::Text(text) => sequence_name(text).map(Value::Text).map_err(raised),
        _ => Ok(Value::Null),
    }
}
