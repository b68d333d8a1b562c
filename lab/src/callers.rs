//! Concurrent callers: tasks that each insert a row, wait for its own outcome, and insert the next, until time is up.
//!
//! Promises: every call is timed and its outcome noted, the id that each row was given and each refusal. `verify` then holds
//! what the callers were told against what the table has: each acknowledged row is there under the id its caller was given
//! and with the value that this caller wrote, no id was given twice, nothing else is there, and exactly the rows that break
//! the constraint were refused.
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

/// What inserts a row for a caller.
pub(crate) trait Insert: Clone + Send + 'static {
    /// Inserts a row and gives its id, once it is durable.
    fn insert(&self, value: i64, created_at: i64) -> impl Future<Output = Result<i64, Refused>> + Send;
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
}

/// One call's outcome.
#[derive(Debug, Clone, Copy)]
struct Noted {
    /// 0: refused.
    id: u32,
    took_us: u32,
}

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
            let outcome = insert.insert(self.value(caller, call), created_at).await;
            let now = Instant::now();
            let id = match outcome {
                Ok(id) if !self.is_bad(caller, call) => u32::try_from(id)
                    .ok()
                    .filter(|id| *id > 0)
                    .ok_or_else(|| Failure::Wrong(format!("a row was given the id {id}")))?,
                Err(Refused::NotUnique) if self.is_bad(caller, call) => 0,
                Ok(id) => return Err(Failure::Wrong(format!("a bad row was taken, as {id}"))),
                Err(refused) => return Err(Failure::Wrong(format!("a good row was refused: {refused}"))),
            };
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
        let highest = self.noted.iter().flatten().map(|noted| noted.id).max().unwrap_or(0);
        // By id: the value that the caller who was given the id has written.
        let mut written: Vec<Option<i64>> = vec![None; highest as usize + 1];
        for (caller, calls) in (0..).zip(&self.noted) {
            for (call, noted) in (0..).zip(calls) {
                if noted.id == 0 {
                    continue;
                }
                let value = self.callers.value(caller, call);
                if written[noted.id as usize].replace(value).is_some() {
                    return Err(Failure::Wrong(format!("two callers were given the id {}", noted.id)));
                }
            }
        }
        for row in rows {
            let (id, value, created_at) = row?;
            if value == TAKEN {
                // It was there before.
                continue;
            }
            let told = usize::try_from(id).ok().and_then(|id| written.get_mut(id)?.take());
            if told != Some(value) || created_at != self.created_at {
                return Err(Failure::Wrong(format!(
                    "the row {id} has the value {value} of {created_at}; its caller wrote {told:?} of {}",
                    self.created_at
                )));
            }
        }
        match written.iter().flatten().count() {
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
            acknowledged += u32::from(noted.id > 0);
        }
        let quantile_ms = |quantile| took_us.value_at_quantile(quantile) as f64 / 1000.0;
        let mut readings = vec![
            self.took.throughput(acknowledged),
            Reading::new("latency p50", "ms", quantile_ms(0.50)),
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
    }

    impl Insert for Memory {
        async fn insert(&self, value: i64, _: i64) -> Result<i64, Refused> {
            tokio::task::yield_now().await;
            if value == TAKEN && !self.takes_bad_rows {
                return Err(Refused::NotUnique);
            }
            let mut rows = self.rows.lock().unwrap();
            rows.push(value);
            Ok(i64::try_from(rows.len()).unwrap() - self.ids_shifted)
        }
    }

    fn told(memory: &Memory, bad_rows: bool) -> Result<Told, Failure> {
        let runtime = Runtime::new().unwrap();
        let callers = Callers { count: 7, bad_rows };
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
        let refused = told.noted.iter().flatten().filter(|noted| noted.id == 0).count();
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

    #[test]
    fn an_id_given_twice_is_seen() {
        let noted = vec![vec![Noted { id: 1, took_us: 1 }]; 2];
        let told = Told {
            callers: Callers {
                count: 2,
                bad_rows: false,
            },
            created_at: 5,
            noted,
            took: Took {
                seconds: 1.0,
                processor_seconds: None,
            },
        };
        let error = told.verify([Ok((1, 0, 5)), Ok((2, 1, 5))].into_iter()).unwrap_err();
        assert!(error.to_string().contains("two callers"), "{error}");
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
