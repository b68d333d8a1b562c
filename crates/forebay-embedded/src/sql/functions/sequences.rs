//! Sequences: nextval, currval, setval, lastval.
//!
//! Promises: a number is given once, whoever asks and whatever becomes of the transaction it was asked in; after a crash some numbers
//! may be left out, none is given again. `currval` and `lastval` are the session's own.
//!
//! The next number is in memory. The file says up to where numbers may have been given: it is raised, some numbers ahead, inside the
//! transaction that asks, so that a number is never durable before the file knows of it. Within that transaction each call looks
//! whether the file still says so, for a savepoint may have taken it back; once a later transaction has seen it there, it stays.
//! A sequence that begins anew begins another life: the file tells whose bound it has, so that one that was taken back is not
//! mistaken for the one before it. What ALTER SEQUENCE has changed and a rollback has put back goes on where it stood. Where a new
//! beginning was taken back otherwise, numbers that only transactions had that were rolled back may be given again.

#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use foldhash::HashMap;
use forebay_pg_values::{Datum, ValueError};
use parking_lot::Mutex;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use super::error::raised;
use super::sequence_change::{Described, SequenceChange};
use super::session_context::SessionContext;
use super::special::clock_micros;
use super::value::{data, datum, text_at};
use crate::sql::compile::namespace::{parted, sequence_name};
use crate::sql::identifier::quote_identifier;

/// For how many transactions like the last one the file is ahead of memory. PostgreSQL's log is that many numbers ahead.
const AHEAD: i64 = 32;
/// The file is never more numbers ahead than this.
const AHEAD_MAX: i64 = 1024;

/// The sequences of one database, and what its sessions have seen of them.
#[derive(Debug, Default)]
pub struct Sequences {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sequences: HashMap<String, Sequence>,
    /// What they were before ALTER SEQUENCE, which may be taken back.
    altered: HashMap<String, Sequence>,
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
    /// Since it was read from the file: its number, and what the file said then.
    life: i64,
    origin: Row,
    /// The lives, each with its origin, that setval has ended since the last commit: a rollback brings them back into the file, and takes
    /// nothing back of setval.
    ended: Vec<(i64, Row)>,
    /// The transaction that setval began this life in.
    set_in: u64,
    /// What the file says, as far as is known here.
    logged: Option<Logged>,
    /// The transaction that a number was given in last, how many were given in it, and how many in the one before.
    given: (u64, i64, i64),
}

/// Up to where the file says that numbers were given, and in which life: 0 or less before the first one is.
type Row = (i64, i64);

/// Up to where the file says that numbers may have been given.
#[derive(Debug, Clone, Copy)]
struct Logged {
    bound: i64,
    /// The transaction that wrote it, until another one has found it in the file.
    by: Option<u64>,
}

impl Seen {
    fn see(&mut self, name: &str, number: i64) {
        match self.numbers.get_mut(name) {
            Some(last) => *last = number,
            None => {
                self.numbers.insert(name.to_owned(), number);
            }
        }
        if self.last.as_deref() != Some(name) {
            self.last = Some(name.to_owned());
        }
    }
}

/// Writes the last numbers that were given into the file, so that after an orderly end none is left out.
pub const GIVE_BACK: &str =
    "UPDATE forebay_sequence SET last = forebay_sequence_given(name, last, called) WHERE called > 0";

/// What a session has drawn; forgotten when it ends.
#[derive(Debug)]
pub struct Drawn {
    sequences: Arc<Sequences>,
    session: u64,
}

impl Drawn {
    /// By the number that [`SessionContext`] tells.
    pub fn new(sequences: Arc<Sequences>, session: u64) -> Self {
        Self { sequences, session }
    }

    /// The session's number.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// `currval` and `lastval` are as in a new session.
    pub fn forget(&self) {
        self.sequences.state.lock().sessions.remove(&self.session);
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.forget();
    }
}

pub(super) fn register(connection: &mut Connection, sequences: &Arc<Sequences>) -> rusqlite::Result<()> {
    // Counts the commits of this connection: as long as it stays the same, what was written may still be taken back.
    let transaction = Arc::new(AtomicU64::new(0));
    let committing = Arc::clone(&transaction);
    connection.commit_hook(Some(move || {
        committing.fetch_add(1, Ordering::Relaxed);
        false
    }))?;
    type InTransaction = fn(&Context<'_>, &Sequences, u64) -> rusqlite::Result<Value>;
    let bodies: [(&str, InTransaction); 3] = [
        ("forebay_nextval", nextval),
        ("forebay_setval", setval),
        ("forebay_sequence_given", given),
    ];
    for (name, body) in bodies {
        let (sequences, transaction) = (Arc::clone(sequences), Arc::clone(&transaction));
        connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
            body(context, &sequences, transaction.load(Ordering::Relaxed))
        })?;
    }
    type Body = fn(&Context<'_>, &Sequences) -> rusqlite::Result<Value>;
    let bodies: [(&str, Body); 6] = [
        ("forebay_currval", currval),
        ("forebay_lastval", lastval),
        ("forebay_forget_sequence", forget),
        ("forebay_alter_sequence", alter),
        ("forebay_sequence_name", name),
        ("forebay_serial_sequence", serial_sequence),
    ];
    for (name, body) in bodies {
        let sequences = Arc::clone(sequences);
        connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
            body(context, &sequences)
        })?;
    }
    Ok(())
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

/// Whether there has been a sequence.
fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence')")?
        .query_row([], |row| row.get(0))
}

fn from_file(connection: &Connection, name: &str) -> rusqlite::Result<Sequence> {
    if !is_there(connection)? {
        return Err(missing(name));
    }
    connection
        .prepare_cached(
            "SELECT increment, minimum, maximum, cycle, last, called FROM forebay_sequence WHERE name = ?1",
        )?
        .query_row([name], |row| {
            let origin: Row = (row.get(4)?, row.get(5)?);
            Ok(Sequence {
                increment: row.get(0)?,
                minimum: row.get(1)?,
                maximum: row.get(2)?,
                cycle: row.get(3)?,
                last: origin.0,
                called: origin.1 > 0,
                life: new_life(),
                origin,
                ended: Vec::new(),
                set_in: 0,
                logged: None,
                given: (0, 0, 0),
            })
        })
        .optional()?
        .ok_or_else(|| missing(name))
}

/// A number that no other life has, in this process or one before it.
fn new_life() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = clock_micros();
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
    now.max(last.unwrap_or(0) + 1)
}

/// Has the file say that numbers up to this one may have been given, in that life.
fn log(connection: &Connection, name: &str, (last, life): Row) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE forebay_sequence SET last = ?2, called = ?3 WHERE name = ?1")?
        .execute((name, last, life))
        .map(|_| ())
}

fn logged(connection: &Connection, name: &str) -> rusqlite::Result<Option<Row>> {
    connection
        .prepare_cached("SELECT last, called FROM forebay_sequence WHERE name = ?1")?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn nextval(context: &Context<'_>, sequences: &Sequences, transaction: u64) -> rusqlite::Result<Value> {
    let session = SessionContext::session(text_at(context, 0)?)?;
    if datum(context.get_raw(1))? == Datum::Null {
        return Ok(Value::Null);
    }
    let name = text_at(context, 1)?;
    let mut state = sequences.state.lock();
    let next = loop {
        let sequence = match state.sequences.get_mut(name) {
            Some(sequence) => sequence,
            None => {
                let read = with_connection(context, |connection| from_file(connection, name))?;
                let current = match state.altered.entry(name.to_owned()) {
                    // Taken, not copied: from here on it falls behind.
                    Entry::Occupied(before) if before.get().is_told_of(read.origin) => before.remove(),
                    _ => read,
                };
                state.sequences.entry(name.to_owned()).or_insert(current)
            }
        };
        let next = sequence.next(name);
        let known = match &next {
            Ok(next) => sequence.is_known_to_be_logged(*next),
            Err(_) => Some(false),
        };
        let logged = match known {
            Some(true) => Some(true),
            // Numbers must not go on, nor come to their end, in a life that was taken back.
            Some(false) => {
                let there = with_connection(context, |connection| logged(connection, name))?;
                there.is_some_and(|there| sequence.is_told_of(there)).then_some(false)
            }
            None => with_connection(context, |connection| sequence.is_logged(connection, name, transaction))?,
        };
        let Some(logged) = logged else {
            state.sequences.remove(name);
            continue;
        };
        let next = next?;
        if !logged {
            with_connection(context, |connection| {
                sequence.log_ahead(connection, name, next, transaction)
            })?;
        }
        sequence.give(next, transaction);
        break next;
    };
    let seen = state.sessions.entry(session).or_default();
    seen.see(name, next);
    Ok(Value::Integer(next))
}

impl Sequence {
    /// Whether that is what the file says of this one, as far as it has come by now.
    fn is_told_of(&self, row: Row) -> bool {
        let is_of = |life: i64, origin: Row| row.1.saturating_abs() == life || row == origin;
        is_of(self.life, self.origin) || self.ended.iter().any(|(life, origin)| is_of(*life, *origin))
    }

    /// The number that is given next.
    fn next(&mut self, name: &str) -> rusqlite::Result<i64> {
        if !self.called {
            return Ok(self.last);
        }
        let up = self.increment > 0;
        match self.last.checked_add(self.increment) {
            Some(next) if (self.minimum..=self.maximum).contains(&next) => Ok(next),
            _ if self.cycle => {
                self.logged = None;
                Ok(if up { self.minimum } else { self.maximum })
            }
            _ => {
                let (word, bound) = if up {
                    ("maximum", self.maximum)
                } else {
                    ("minimum", self.minimum)
                };
                Err(raised(ValueError::new(
                    "2200H",
                    format!(
                        "nextval: reached {word} value of sequence \"{}\" ({bound})",
                        parted(name).1
                    ),
                )))
            }
        }
    }

    /// Whether a number lies behind this one.
    fn is_beyond(&self, number: i64, bound: i64) -> bool {
        if self.increment > 0 {
            number > bound
        } else {
            number < bound
        }
    }

    /// Whether the file says that this number may have been given, if that is known without a look at it.
    fn is_known_to_be_logged(&self, next: i64) -> Option<bool> {
        match self.logged {
            None => Some(false),
            Some(Logged { bound, .. }) if self.is_beyond(next, bound) => Some(false),
            Some(Logged { by: None, .. }) => Some(true),
            Some(Logged { by: Some(_), .. }) => None,
        }
    }

    /// Whether the file says that numbers up to the bound, of which this is one, may have been given. Nothing if it tells of another life
    /// of the sequence: a new beginning was taken back.
    fn is_logged(&mut self, connection: &Connection, name: &str, transaction: u64) -> rusqlite::Result<Option<bool>> {
        let Some(Logged { bound, by }) = self.logged else {
            return Ok(Some(false));
        };
        let there = logged(connection, name)?;
        Ok(if there == Some((bound, self.life)) {
            if by != Some(transaction) {
                self.logged = Some(Logged { bound, by: None });
            }
            Some(true)
        } else if there.is_some_and(|there| self.is_told_of(there)) {
            Some(false)
        } else {
            None
        })
    }

    /// Has the file say that this number, and some more, may have been given.
    fn log_ahead(&mut self, connection: &Connection, name: &str, next: i64, transaction: u64) -> rusqlite::Result<()> {
        let (last, count, before) = self.given;
        let like_the_last = if last == transaction { before.max(count) } else { count };
        let ahead = like_the_last.max(1).saturating_mul(AHEAD).min(AHEAD_MAX);
        let bound = self
            .increment
            .saturating_mul(ahead)
            .saturating_add(next)
            .clamp(self.minimum, self.maximum);
        log(connection, name, (bound, self.life))?;
        self.logged = Some(Logged {
            bound,
            by: Some(transaction),
        });
        Ok(())
    }

    fn give(&mut self, number: i64, transaction: u64) {
        let (last, count, before) = self.given;
        self.given = if last == transaction {
            (last, count + 1, before)
        } else {
            (transaction, 1, count)
        };
        self.last = number;
        self.called = true;
    }
}

/// What the file is to say of a sequence before it is closed: the last number that was given, for nobody asks for more.
fn given(context: &Context<'_>, sequences: &Sequences, transaction: u64) -> rusqlite::Result<Value> {
    let Some(there) = integer(context, 1)? else {
        return Ok(Value::Null);
    };
    let life = integer(context, 2)?;
    let mut state = sequences.state.lock();
    Ok(Value::Integer(match state.sequences.get_mut(text_at(context, 0)?) {
        // Of that life, or of one that setval has ended in vain: another one was taken back.
        Some(sequence)
            if sequence.called
                && match sequence.logged {
                    Some(logged) => logged.bound == there && life == Some(sequence.life),
                    None => life.is_some_and(|life| sequence.is_told_of((there, life))),
                } =>
        {
            sequence.logged = Some(Logged {
                bound: sequence.last,
                by: Some(transaction),
            });
            sequence.last
        }
        _ => there,
    }))
}

fn currval(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let session = SessionContext::session(text_at(context, 0)?)?;
    if datum(context.get_raw(1))? == Datum::Null {
        return Ok(Value::Null);
    }
    let name = text_at(context, 1)?;
    let state = sequences.state.lock();
    match state.sessions.get(&session).and_then(|seen| seen.numbers.get(name)) {
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
    let session = SessionContext::session(text_at(context, 0)?)?;
    let state = sequences.state.lock();
    state
        .sessions
        .get(&session)
        .and_then(|seen| seen.numbers.get(seen.last.as_ref()?))
        .map(|number| Value::Integer(*number))
        .ok_or_else(|| raised(ValueError::new("55000", "lastval is not yet defined in this session")))
}

fn setval(context: &Context<'_>, sequences: &Sequences, transaction: u64) -> rusqlite::Result<Value> {
    let session = SessionContext::session(text_at(context, 0)?)?;
    if data(context, context.len())?.contains(&Datum::Null) {
        return Ok(Value::Null);
    }
    let name = text_at(context, 1)?;
    let number = integer(context, 2)?.unwrap_or_default();
    let called = context.len() < 4 || integer(context, 3)? == Some(1);
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
        log(
            connection,
            name,
            (number, if called { sequence.life } else { -sequence.life }),
        )?;
        if let Some(before) = state.sequences.get_mut(name)
            && before.is_told_of(sequence.origin)
        {
            if before.set_in == transaction {
                sequence.ended.append(&mut before.ended);
            }
            sequence.ended.push((before.life, before.origin));
        }
        sequence.set_in = transaction;
        sequence.last = number;
        sequence.called = called;
        state.sequences.insert(name.to_owned(), sequence);
        Ok(())
    })?;
    if called {
        let seen = state.sessions.entry(session).or_default();
        seen.numbers.insert(name.to_owned(), number);
    }
    Ok(Value::Integer(number))
}

/// The sequence has changed in the file: it is read again.
fn forget(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let mut state = sequences.state.lock();
    let name = text_at(context, 0)?;
    state.sequences.remove(name);
    state.altered.remove(name);
    Ok(Value::Null)
}

/// `(name, change)`: ALTER SEQUENCE, in the transaction. The file has the last number itself then, in a life of its own.
fn alter(context: &Context<'_>, sequences: &Sequences) -> rusqlite::Result<Value> {
    let name = text_at(context, 0)?;
    let change: SequenceChange = serde_json::from_str(text_at(context, 1)?).map_err(|error| {
        raised(ValueError::new(
            "XX000",
            format!("a change of a sequence cannot be read: {error}"),
        ))
    })?;
    let mut state = sequences.state.lock();
    let known = [state.sequences.get(name), state.altered.get(name)];
    let altered = with_connection(context, |connection| {
        let mut read = from_file(connection, name)?;
        let current = known
            .into_iter()
            .flatten()
            .find(|known| known.is_told_of(read.origin))
            .cloned();
        if let Some(current) = &current {
            (read.last, read.called) = (current.last, current.called);
        }
        let (kind, start) = connection
            .prepare_cached("SELECT kind, start FROM forebay_sequence WHERE name = ?1")?
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let old = Described {
            kind,
            start,
            increment: read.increment,
            minimum: read.minimum,
            maximum: read.maximum,
            cycle: read.cycle,
            last: read.last,
            called: read.called,
        };
        let new = change.of(&old).map_err(raised)?;
        let life = if new.called { read.life } else { -read.life };
        connection
            .prepare_cached(
                "UPDATE forebay_sequence SET kind = ?2, start = ?3, increment = ?4, minimum = ?5, maximum = ?6, cycle = ?7, \
                 last = ?8, called = ?9 WHERE name = ?1",
            )?
            .execute((
                name, &new.kind, new.start, new.increment, new.minimum, new.maximum, new.cycle, new.last, life,
            ))?;
        if let Some(owner) = &change.owner {
            let (table, column) = owner.clone().unzip();
            connection
                .prepare_cached("UPDATE forebay_sequence SET owner_table = ?2, owner_column = ?3 WHERE name = ?1")?
                .execute((name, table, column))?;
        }
        Ok(current)
    })?;
    state.sequences.remove(name);
    if let Some(before) = altered {
        state.altered.insert(name.to_owned(), before);
    }
    Ok(Value::Null)
}

fn name(context: &Context<'_>, _: &Sequences) -> rusqlite::Result<Value> {
    match datum(context.get_raw(0))? {
        Datum::Text(text) => sequence_name(text)
            .map(Value::Text)
            .map_err(|fault| raised(ValueError::new(fault.sqlstate, fault.message))),
        _ => Ok(Value::Null),
    }
}

/// `(table, column)`: the sequence that goes with the column, as PostgreSQL writes its name.
fn serial_sequence(context: &Context<'_>, _: &Sequences) -> rusqlite::Result<Value> {
    let (table, column) = (text_at(context, 0)?, text_at(context, 1)?);
    let owned: Option<String> = with_connection(context, |connection| {
        if !is_there(connection)? {
            return Ok(None);
        }
        connection
            .prepare_cached("SELECT name FROM forebay_sequence WHERE owner_table = ?1 AND owner_column = ?2")?
            .query_row([table, column], |row| row.get(0))
            .optional()
    })?;
    Ok(owned.map_or(Value::Null, |owned| {
        let (schema, name) = parted(&owned);
        Value::Text(format!("{}.{}", quote_identifier(schema), quote_identifier(name)))
    }))
}
