//! The callers: what they write, and what they are told.
//!
//! Promises: a call has a tag of its own, and what it was told is noted before its caller goes on. Every random choice follows
//! from the seed; how tasks interleave is the machine's own.

use std::time::{Duration, Instant};

use forebay::write::{Outcome, StatementErrorKind as Kind, Value, Write, WriteError, Writer};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::database::{Killed, insert};

const CALLERS: u64 = 300;
/// Of a key, written without waiting between.
const AT_ONCE: usize = 8;
/// Calls of one caller: what is noted of them is kept.
const CALLS_MAX: usize = 50_000;

/// What a call was told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    /// With the row's id, where it was told.
    Acknowledged(Option<i64>),
    Failed,
    Unknown,
    /// What can never be.
    Wrong(String),
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tag: i64,
    pub(super) told: Told,
}

/// What a run has written.
pub(super) struct Written {
    pub(super) calls: Vec<Call>,
    pub(super) seconds: f64,
    /// The longest that a caller was without an acknowledged write.
    pub(super) outage: Duration,
}

/// How a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Nothing but its tag tells it from another.
    Plain,
    Numbered,
    /// Its number is there already.
    Taken,
    /// Below 0, where nothing may be.
    Misplaced,
}

impl Row {
    fn drawn(random: &mut StdRng) -> Self {
        match random.random_range(0..20) {
            0 => Self::Taken,
            1 => Self::Misplaced,
            2..11 => Self::Numbered,
            _ => Self::Plain,
        }
    }

    /// The only error of its own that it may be told.
    fn fails_as(self) -> Option<Kind> {
        match self {
            Self::Plain | Self::Numbered => None,
            Self::Taken => Some(Kind::Unique),
            Self::Misplaced => Some(Kind::Check),
        }
    }
}

/// All callers, until the time is over.
pub(super) async fn write_until(until: Instant, writer: &Writer, killed: Killed, seed: u64) -> Written {
    let begun = Instant::now();
    let callers = (0..CALLERS).map(|number| {
        let caller = Caller {
            number,
            writer: writer.clone(),
            killed,
            random: StdRng::seed_from_u64(seed ^ (number + 1) << 32),
            calls: Vec::new(),
            places: 0,
            acknowledged_at: Instant::now(),
            outage: Duration::ZERO,
        };
        tokio::spawn(caller.write_until(until))
    });
    let callers = join_all(callers).await;
    let mut written = Written {
        calls: Vec::new(),
        seconds: begun.elapsed().as_secs_f64(),
        outage: Duration::ZERO,
    };
    for caller in callers {
        let (calls, outage) = caller.expect("it panics at nothing");
        written.calls.extend(calls);
        written.outage = written.outage.max(outage);
    }
    written
}

struct Caller {
    number: u64,
    writer: Writer,
    killed: Killed,
    random: StdRng,
    calls: Vec<Call>,
    /// Of its own key.
    places: i64,
    acknowledged_at: Instant,
    outage: Duration,
}

impl Caller {
    async fn write_until(mut self, until: Instant) -> (Vec<Call>, Duration) {
        let writer = self.writer.clone();
        while Instant::now() < until && self.calls.len() < CALLS_MAX {
            let is_ordered = self.random.random_ratio(1, 4);
            let count = if is_ordered { AT_ONCE } else { 1 };
            let mut rows = Vec::with_capacity(count);
            let mut answers = Vec::with_capacity(count);
            for nth in 0..count {
                let tag = (self.number << 32) as i64 + (self.calls.len() + nth) as i64;
                let row = Row::drawn(&mut self.random);
                rows.push((tag, row));
                let write = self.write(tag, row, is_ordered);
                answers.push(writer.submit(write));
            }
            // They are handed over in this order.
            let answers = join_all(answers).await;
            for ((tag, row), answer) in rows.into_iter().zip(answers) {
                let told = told(row, answer);
                if let Told::Acknowledged(_) = told {
                    let now = Instant::now();
                    self.outage = self.outage.max(now - self.acknowledged_at);
                    self.acknowledged_at = now;
                }
                self.calls.push(Call { tag, told });
            }
        }
        (self.calls, self.outage)
    }

    fn write(&mut self, tag: i64, row: Row, is_ordered: bool) -> Write {
        let number = match row {
            Row::Plain | Row::Misplaced => Value::Null,
            Row::Numbered => Value::Integer(tag + 1),
            Row::Taken => Value::Integer(0),
        };
        let lane = match is_ordered {
            true => Value::Integer(self.number as i64),
            false => Value::Null,
        };
        self.places += 1;
        let place = Value::Integer(if row == Row::Misplaced { -1 } else { self.places });
        let asks_for_id = self.random.random_ratio(1, 8);
        let write = Write::new(
            insert(self.killed, asks_for_id),
            [Value::Integer(tag), number, lane, place],
        );
        if is_ordered {
            write.ordered_by(self.number)
        } else {
            write
        }
    }
}

fn told(row: Row, answer: Result<Outcome, WriteError>) -> Told {
    match (answer, row.fails_as()) {
        (Ok(outcome), None) if outcome.rows_affected == 1 => {
            let returned = outcome.rows.first().and_then(|row| row.first()?.as_integer());
            Told::Acknowledged(returned.or(outcome.last_insert_id))
        }
        (Ok(outcome), _) => Told::Wrong(format!("{row:?} was acknowledged: {outcome:?}")),
        (Err(WriteError::OutcomeUnknown { .. }), _) => Told::Unknown,
        // Tried for as long as is tried.
        (Err(WriteError::Unavailable { .. }), _) => Told::Failed,
        (Err(WriteError::Statement(error)), expected)
            if expected == Some(error.kind) || matches!(error.kind, Kind::Conflict | Kind::LockTimeout) =>
        {
            Told::Failed
        }
        (Err(error), _) => Told::Wrong(format!("{row:?}: {error:?}")),
    }
}
