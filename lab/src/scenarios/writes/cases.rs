//! What the databases have in common: the names of their cases, how what has no callers is counted, and the runtime.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::runtime::{Builder, Runtime};

use crate::callers::Callers;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::FOREBAY;
use crate::stopwatch::{THROUGHPUT, Took};

pub(super) const ONE: &str = "1 caller";
pub(super) const MANY: &str = "10,000 callers";
pub(super) const MANY_UNIQUE: &str = "10,000 callers, unique column";
pub(super) const MANY_BAD: &str = "10,000 callers, unique column, 1 % bad";

/// As many callers as [`MANY`] says.
pub(super) const MANY_COUNT: u32 = 10_000;

/// How many rows a commit had.
pub(super) const SHARED: &str = "shared by a commit";

pub(super) const BY_HAND: &str = "by hand";

/// Those of [`MANY`].
pub(super) fn many(ids: bool) -> Callers {
    callers(MANY_COUNT, ids)
}

/// Those of [`MANY_BAD`], and their bad rows.
pub(super) fn many_bad(ids: bool) -> Callers {
    Callers {
        bad_rows: true,
        ..many(ids)
    }
}

pub(super) fn callers(count: u32, ids: bool) -> Callers {
    Callers {
        count,
        bad_rows: false,
        ids,
    }
}

/// That our rows a second are a multiple of theirs; where several are named, of the best.
pub(super) fn at_least(text: &str, ours: &str, theirs: Vec<Key>, ratio_min: f64) -> Goal {
    Goal {
        text: text.to_owned(),
        metric: THROUGHPUT,
        ours: Key::new(FOREBAY, ours),
        beside: Beside::Ratio(theirs),
        wanted: Wanted::AtLeast(ratio_min),
    }
}

/// That bad rows cost no more than so much of the clean rate.
pub(super) fn with_bad_rows() -> Goal {
    let text = "1 % bad rows ÷ the same table without";
    at_least(text, MANY_BAD, vec![Key::new(FOREBAY, MANY_UNIQUE)], 0.5)
}

pub(super) fn two_workers() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::system("start a runtime"))
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).expect("before the year 292,000,000")
}

/// What a system without callers has written, of values 0, 1, 2, …
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) rows: u32,
    pub(super) took: Took,
}

impl Written {
    /// Holds it against the count and the sum of the values that are in the table.
    pub(super) fn verify(&self, found: (i64, i64)) -> Result<Vec<Reading>, Failure> {
        let rows = i64::from(self.rows);
        let expected = (rows, rows * (rows - 1) / 2);
        if found != expected {
            return Err(Failure::Wrong(format!(
                "count and sum are {found:?} where {expected:?} were acknowledged"
            )));
        }
        let mut readings = vec![self.took.throughput(self.rows)];
        readings.extend(self.took.processor(self.rows));
        Ok(readings)
    }
}

/// Whether every goal and yardstick names something that takes part.
#[cfg(test)]
pub(super) fn check_names(
    trials: &[Box<dyn crate::scenario::Trial>],
    goals: &[Goal],
    yardsticks: &crate::scenario::Yardsticks,
) {
    let named = goals.iter().flat_map(Goal::keys);
    let named = named.chain(&yardsticks.limit).chain(&yardsticks.forebay);
    for key in named {
        let measured = trials
            .iter()
            .any(|trial| trial.system() == key.system && trial.case() == key.case);
        assert!(measured, "{key:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_or_not_told_is_seen() {
        let took = Took {
            seconds: 1.5,
            processor_seconds: Some(3e-6),
        };
        let verified = |rows, found| Written { rows, took }.verify(found);
        let values: Vec<f64> = verified(3, (3, 3))
            .unwrap()
            .iter()
            .map(|reading| reading.value)
            .collect();
        assert_eq!(values, [2.0, 1.0]);
        assert!(verified(2, (3, 3)).is_err());
        assert!(verified(4, (3, 3)).is_err());
        assert!(verified(3, (3, 6)).is_err(), "another value");
    }
}
