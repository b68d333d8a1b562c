//! A burst: loads that all begin at once, each of a key of its own, and the fetches that they take.
//!
//! Promises: every value is checked. Where the number of fetches is certain, another number is a wrong outcome, in whichever
//! repetition it was. Knows no system.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::allocation::Allocated;
use crate::closed_loop::{ALLOCATED, ALLOCATIONS, Ask, Batches, Words, answer};
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::stopwatch::THROUGHPUT;

/// Fetches that one burst takes.
pub(super) const FETCHES: &str = "fetches";

/// Of loads in every case.
pub(super) const WORDS: Words = Words {
    a_second: "loads/s",
    of_each: "a load",
    bytes_of_each: "bytes/load",
    of_a_batch: "keys/fetch",
};

/// Longer than any burst may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lets `loads` tasks load a key each, on the runtime's workers. Gives how long that took.
fn once(runtime: &Runtime, system: &impl Ask, first_key: u64, loads: u32) -> Result<Duration, Failure> {
    let system = system.clone();
    let burst = async move {
        let begun = Instant::now();
        let tasks: Vec<_> = (first_key..first_key + u64::from(loads))
            .map(|key| {
                let system = system.clone();
                tokio::spawn(async move {
                    match system.ask(key).await {
                        Ok(value) if value == answer(key) => Ok(()),
                        Ok(value) => Err(format!("{key} was answered with {value}")),
                        Err(error) => Err(error),
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|error| error.to_string())??;
        }
        Ok::<_, String>(begun.elapsed())
    };
    let burst = runtime.spawn(burst);
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, burst).await })
        .map_err(|_| Failure::Wrong(format!("a load had no value within {PATIENCE:?}")))?
        .map_err(|error| Failure::Wrong(error.to_string()))?
        .map_err(Failure::Wrong)
}

/// Repeats the burst for that long, and at least twice: the last time is for what the heap is asked for, and not timed.
/// `expected` fetches, where that is certain.
pub(super) fn run(
    runtime: &Runtime,
    system: &impl Ask,
    fetches: &Batches,
    loads: u32,
    expected: Option<u64>,
    duration: Duration,
) -> Result<Vec<Reading>, Failure> {
    // New keys each time, for who remembers.
    let mut keys = (0_u64..).step_by(loads as usize);
    let mut counted = 0;
    let mut check = || {
        let of_this_burst = fetches.count() - counted;
        counted = fetches.count();
        match expected {
            Some(expected) if of_this_burst != expected => Err(Failure::Wrong(format!(
                "{loads} loads took {of_this_burst} fetches, not {expected}"
            ))),
            _ => Ok(of_this_burst),
        }
    };
    let begun = Instant::now();
    let (mut took, mut fetches_taken) = (Vec::new(), Vec::new());
    for first_key in keys.by_ref() {
        took.push(once(runtime, system, first_key, loads)?);
        fetches_taken.push(check()?);
        if begun.elapsed() >= duration {
            break;
        }
    }
    let first_key = keys.next().expect("keys do not end");
    let (watched, allocated) = Allocated::during(|| once(runtime, system, first_key, loads));
    watched?;
    check()?;
    took.sort();
    fetches_taken.sort_unstable();
    let loads = f64::from(loads);
    let median = took[took.len() / 2].as_secs_f64();
    Ok(vec![
        Reading::new(FETCHES, "a burst", fetches_taken[fetches_taken.len() / 2] as f64),
        Reading::new(THROUGHPUT, WORDS.a_second, loads / median),
        Reading::new(ALLOCATIONS, WORDS.of_each, allocated.allocations as f64 / loads),
        Reading::new(ALLOCATED, WORDS.bytes_of_each, allocated.bytes as f64 / loads),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_loop::two_workers;

    /// Answers one key a fetch, and one of them wrongly if told so.
    #[derive(Clone, Default)]
    struct Single {
        fetches: Batches,
        wrong: Option<u64>,
    }

    impl Ask for Single {
        async fn ask(&self, key: u64) -> Result<u64, String> {
            self.fetches.note();
            Ok(answer(key) + u64::from(self.wrong == Some(key)))
        }
    }

    fn readings(system: &Single, expected: u64) -> Result<Vec<Reading>, Failure> {
        let runtime = two_workers().unwrap();
        let duration = Duration::from_millis(5);
        run(&runtime, system, &system.fetches, 10, Some(expected), duration)
    }

    #[test]
    fn as_many_fetches_as_expected_are_figures_and_others_a_failure() {
        let readings_of_ten = readings(&Single::default(), 10).unwrap();
        assert_eq!(readings_of_ten[0].value, 10.0);
        let error = readings(&Single::default(), 9).unwrap_err().to_string();
        assert!(error.contains("10 fetches, not 9"), "{error}");
    }

    #[test]
    fn a_wrong_value_in_a_later_burst_is_seen() {
        let system = Single {
            wrong: Some(15),
            ..Single::default()
        };
        let error = readings(&system, 10).unwrap_err().to_string();
        assert!(error.contains("15 was answered"), "{error}");
    }
}
