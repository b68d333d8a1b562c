//! Concurrent callers: tasks that each insert a row, wait for its own outcome, and insert the next, until time is up.
//!
//! Promises: every call is timed and its outcome noted, the id that each row was given and each refusal. `verify` then holds
//! what the callers were told against what the table has: each acknowledged row is there once, with the value that this
//! caller wrote and under the id its caller was given, nothing else is there, and exactly the rows that break the constraint
//! were refused. Whether callers are told ids is known beforehand: an id too many is as wrong as one that is missing.
//!
//! Knows no system: what inserts is behind [`Insert`]. Noting costs each call a clock reading and eight bytes, the same for
//! every system.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::measurement::Reading;
use crate::stopwatch::{Stopwatch, Took};

/// In a case with bad rows, every this many-th call tries to insert the value that is there already.
pub(crate) const ONE_BAD_ROW_IN: u32 = 100;
/// What bad rows try to insert; no good row has it.
pub(crate) const TAKEN: i64 = -1;

/// How long half of the calls took at most.
pub(crate) const LATENCY_P50: &str = "latency p50";

/// What inserts a row for a caller.
pub(crate) trait Insert: Clone + Send + 'static {
    /// Inserts a row and returns once it is durable, with its id if the system tells it.
    fn insert(&self, row: Row) -> impl Future<Output = Result<Option<i64>, Refused>> + Send;
}

/// A row to insert, and for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// Callers are numbered from 0.
    pub(crate) caller: u32,
    pub(crate) value: i64,
    pub(crate) created_at: i64,
}

/// Why there is no row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Its value is there already.
    #[error("the value is there already")]
    NotUnique,
    /// Anything else, which must not happen.
    #[error("{0}")]
    Otherwise(String),
}

/// Who calls, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Callers {
    pub(crate) count: u32,
    /// Whether one row in [`ONE_BAD_ROW_IN`] breaks a constraint.
    pub(crate) bad_rows: bool,
    /// Whether each is told the id of its row.
    pub(crate) ids: bool,
}

/// One call's outcome.
#[derive(Debug, Clone, Copy)]
struct Noted {
    /// [`REFUSED`], [`UNTOLD`] or the row's own.
    id: u32,
    took_us: u32,
}

/// In place of an id: there is no row.
const REFUSED: u32 = 0;
/// In place of an id: there is a row, and its id was not told.
const UNTOLD: u32 = u32::MAX;

/// What all callers were told.
#[derive(Debug)]
pub(crate) struct Told {
    callers: Callers,
    created_at: i64,
    /// Of each caller, in the order of its calls.
    noted: Vec<Vec<Noted>>,
    took: Took,
}

impl Callers {
    /// The value that a caller's call inserts: its own, unless the row is to be refused.
    fn value(self, caller: u32, call: u32) -> i64 {
        if self.is_bad(caller, call) {
            TAKEN
        } else {
            i64::from(call) * i64::from(self.count) + i64::from(caller)
        }
    }

    /// Whose call it is that inserts this value.
    fn writer_of(self, value: i64) -> Option<(usize, usize)> {
        let value = usize::try_from(value).ok()?;
        let count = self.count as usize;
        Some((value % count, value / count))
    }

    fn is_bad(self, caller: u32, call: u32) -> bool {
        self.bad_rows && caller.wrapping_add(call) % ONE_BAD_ROW_IN == ONE_BAD_ROW_IN - 1
    }

    /// Lets all of them call for that long.
    pub(crate) fn run(
        self,
        runtime: &Runtime,
        insert: &impl Insert,
        created_at: i64,
        duration: Duration,
    ) -> Result<Told, Failure> {
        let (noted, took) = runtime.block_on(async {
            let stopwatch = Stopwatch::start();
            let until = Instant::now() + duration;
            let tasks: Vec<_> = (0..self.count)
                .map(|caller| tokio::spawn(self.call(caller, insert.clone(), created_at, until)))
                .collect();
            let mut noted = Vec::with_capacity(tasks.len());
            for task in tasks {
                let ended = task.await.map_err(|error| Failure::Wrong(error.to_string()))?;
                noted.push(ended?);
            }
            Ok::<_, Failure>((noted, stopwatch.stop()))
        })?;
        Ok(Told {
            callers: self,
            created_at,
            noted,
            took,
        })
    }

    /// What is noted of an outcome, if it is what the row deserves.
    fn note(self, outcome: Result<Option<i64>, Refused>, is_bad: bool) -> Result<u32, Failure> {
        let id = match outcome {
            Err(Refused::NotUnique) if is_bad => return Ok(REFUSED),
            Err(refused) if is_bad => Err(format!("a bad row was refused for another reason: {refused}")),
            Err(refused) => Err(format!("a good row was refused: {refused}")),
            Ok(id) if is_bad => Err(format!("a bad row was taken, as {id:?}")),
            Ok(None) if !self.ids => Ok(UNTOLD),
            Ok(Some(id)) if self.ids => u32::try_from(id)
                .ok()
                .filter(|id| ![REFUSED, UNTOLD].contains(id))
                .ok_or_else(|| format!("a row was given the id {id}")),
            Ok(id) => Err(format!(
                "a row was given the id {id:?}, where ids are told: {}",
                self.ids
            )),
        };
        id.map_err(Failure::Wrong)
    }

    /// One caller's life.
    async fn call(
        self,
        caller: u32,
        insert: impl Insert,
        created_at: i64,
        until: Instant,
    ) -> Result<Vec<Noted>, Failure> {
        let mut noted = Vec::new();
        let mut before = Instant::now();
        for call in 0.. {
            let row = Row {
                caller,
                value: self.value(caller, call),
                created_at,
            };
            let outcome = insert.insert(row).await;
            let now = Instant::now();
            let id = self.note(outcome, self.is_bad(caller, call))?;
            let took_us = u32::try_from((now - before).as_micros()).unwrap_or(u32::MAX);
            noted.push(Noted { id, took_us });
            if now >= until {
                break;
            }
            before = now;
        }
        Ok(noted)
    }
}

impl Told {
    /// Holds what callers were told against the table's rows, given as (id, value, created_at) in any order.
    pub(crate) fn verify(&self, rows: impl Iterator<Item = Result<(i64, i64, i64), Failure>>) -> Result<(), Failure> {
        let mut found: Vec<Vec<bool>> = self.noted.iter().map(|calls| vec![false; calls.len()]).collect();
        for row in rows {
            let (id, value, created_at) = row?;
            if value == TAKEN {
                // It was there before.
                continue;
            }
            let call = self.callers.writer_of(value);
            let noted = call.and_then(|(caller, call)| {
                let noted = self.noted.get(caller)?.get(call)?;
                Some((noted.id, &mut found[caller][call]))
            });
            let Some((told, found)) = noted.filter(|(told, _)| *told != REFUSED) else {
                return Err(Failure::Wrong(format!(
                    "the row {id} has the value {value}, which nobody was told is there"
                )));
            };
            if told != UNTOLD && i64::from(told) != id {
                return Err(Failure::Wrong(format!(
                    "the caller who wrote {value} was given the id {told}; its row is {id}"
                )));
            }
            if created_at != self.created_at {
                return Err(Failure::Wrong(format!(
                    "the row {id} is of {created_at}; its caller wrote {}",
                    self.created_at
                )));
            }
            if std::mem::replace(found, true) {
                return Err(Failure::Wrong(format!(
                    "the value {value} is there twice, also as {id}"
                )));
            }
        }
        let acknowledged = self.noted.iter().flatten().filter(|noted| noted.id != REFUSED).count();
        match acknowledged - found.iter().flatten().filter(|found| **found).count() {
            0 => Ok(()),
            lost => Err(Failure::Wrong(format!("{lost} acknowledged rows are not there"))),
        }
    }

    /// Acknowledged rows a second, how long calls took, and what a row cost the processors.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        // Three digits; up to an hour.
        let mut took_us = Histogram::<u64>::new_with_max(3_600_000_000, 3).expect("a valid range and precision");
        let mut acknowledged = 0_u32;
        for noted in self.noted.iter().flatten() {
            took_us.saturating_record(noted.took_us.into());
            acknowledged += u32::from(noted.id != REFUSED);
        }
        let quantile_ms = |quantile| took_us.value_at_quantile(quantile) as f64 / 1000.0;
        let mut readings = vec![
            self.took.throughput(acknowledged),
            Reading::new(LATENCY_P50, "ms", quantile_ms(0.50)),
            Reading::new("latency p99", "ms", quantile_ms(0.99)),
        ];
        readings.extend(self.took.processor(acknowledged));
        readings
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A table in memory that can be told to misbehave.
    #[derive(Clone, Default)]
    struct Memory {
        rows: Arc<Mutex<Vec<i64>>>,
        takes_bad_rows: bool,
        /// Tells every caller the id before its own.
        ids_shifted: i64,
        tells_no_ids: bool,
    }

    impl Insert for Memory {
        async fn insert(&self, row: Row) -> Result<Option<i64>, Refused> {
            tokio::task::yield_now().await;
            if row.value == TAKEN && !self.takes_bad_rows {
                return Err(Refused::NotUnique);
            }
            let mut rows = self.rows.lock().unwrap();
            rows.push(row.value);
            Ok((!self.tells_no_ids).then(|| i64::try_from(rows.len()).unwrap() - self.ids_shifted))
        }
    }

    fn told(memory: &Memory, bad_rows: bool) -> Result<Told, Failure> {
        let runtime = Runtime::new().unwrap();
        let callers = Callers {
            count: 7,
            bad_rows,
            ids: !memory.tells_no_ids,
        };
        callers.run(&runtime, memory, 5, Duration::from_millis(20))
    }

    fn verify(told: &Told, memory: &Memory) -> Result<(), Failure> {
        let rows = memory.rows.lock().unwrap().clone();
        told.verify((1..).zip(rows).map(|(id, value)| Ok((id, value, 5))))
    }

    #[test]
    fn callers_whose_outcomes_are_right_pass_and_are_counted() {
        let memory = Memory::default();
        let told = told(&memory, true).unwrap();
        verify(&told, &memory).unwrap();
        let refused = told.noted.iter().flatten().filter(|noted| noted.id == REFUSED).count();
        let rows = memory.rows.lock().unwrap().len();
        assert!(refused > 0 && refused <= rows / 50, "{refused} of {rows}");
        let throughput = told.readings()[0];
        assert_eq!(throughput.value, rows as f64 / told.took.seconds);
    }

    #[test]
    fn a_lost_a_foreign_and_a_changed_row_are_seen() {
        let memory = Memory::default();
        let told = told(&memory, false).unwrap();
        let lost = memory.rows.lock().unwrap().pop().unwrap();
        assert!(
            verify(&told, &memory)
                .unwrap_err()
                .to_string()
                .contains("1 acknowledged")
        );
        memory.rows.lock().unwrap().push(lost + 1);
        assert!(verify(&told, &memory).is_err(), "another value under the id");
        memory.rows.lock().unwrap().pop();
        memory.rows.lock().unwrap().extend([lost, 77]);
        assert!(verify(&told, &memory).is_err(), "a row that nobody wrote");
        memory.rows.lock().unwrap().pop();
        verify(&told, &memory).unwrap();
        assert!(told.verify([Ok((1, 0, 6))].into_iter()).is_err(), "another time");
    }

    #[test]
    fn neighbours_ids_are_seen() {
        let memory = Memory {
            ids_shifted: -1,
            ..Memory::default()
        };
        let told = told(&memory, false).unwrap();
        assert!(verify(&told, &memory).is_err());
    }

    fn of_two(id: u32) -> Told {
        Told {
            callers: Callers {
                count: 2,
                bad_rows: false,
                ids: id != UNTOLD,
            },
            created_at: 5,
            noted: vec![vec![Noted { id, took_us: 1 }]; 2],
            took: Took {
                seconds: 1.0,
                processor_seconds: None,
            },
        }
    }

    #[test]
    fn an_id_given_twice_is_seen() {
        let error = of_two(1).verify([Ok((1, 0, 5)), Ok((2, 1, 5))].into_iter());
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("was given the id 1; its row is 2")
        );
    }

    #[test]
    fn rows_are_held_against_what_was_told_also_without_ids() {
        let verify = |rows: &[(i64, i64, i64)]| of_two(UNTOLD).verify(rows.iter().copied().map(Ok));
        verify(&[(8, 1, 5), (9, 0, 5)]).unwrap();
        for (wrong, rows) in [
            ("lost", &[(8, 1, 5)][..]),
            ("twice", &[(8, 1, 5), (9, 0, 5), (10, 1, 5)]),
            ("never written", &[(8, 1, 5), (9, 0, 5), (10, 2, 5)]),
            ("of another time", &[(8, 1, 5), (9, 0, 6)]),
        ] {
            assert!(verify(rows).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_refused_row_that_is_there_is_seen() {
        assert!(of_two(REFUSED).verify([Ok((1, 0, 5))].into_iter()).is_err());
        of_two(REFUSED).verify([].into_iter()).unwrap();
    }

    #[test]
    fn callers_that_are_told_no_ids_pass_and_an_id_too_many_or_too_few_is_seen() {
        let memory = Memory {
            tells_no_ids: true,
            ..Memory::default()
        };
        verify(&told(&memory, true).unwrap(), &memory).unwrap();
        let note = |ids, id| {
            let callers = Callers {
                count: 1,
                bad_rows: false,
                ids,
            };
            callers.note(Ok(id), false)
        };
        assert_eq!((note(true, Some(3)).unwrap(), note(false, None).unwrap()), (3, UNTOLD));
        assert!(note(true, None).is_err() && note(false, Some(3)).is_err());
        assert!(note(true, Some(0)).is_err() && note(true, Some(UNTOLD.into())).is_err());
    }

    #[test]
    fn a_refusal_for_another_reason_is_no_right_outcome() {
        let callers = Callers {
            count: 1,
            bad_rows: true,
            ids: true,
        };
        let note = |refused, is_bad| callers.note(Err(refused), is_bad);
        assert_eq!(note(Refused::NotUnique, true).unwrap(), REFUSED);
        assert!(note(Refused::Otherwise("no table".into()), true).is_err());
        assert!(note(Refused::NotUnique, false).is_err());
    }

    #[test]
    fn a_bad_row_that_is_taken_is_seen() {
        let memory = Memory {
            takes_bad_rows: true,
            ..Memory::default()
        };
        assert!(told(&memory, true).unwrap_err().to_string().contains("was taken"));
    }
}
