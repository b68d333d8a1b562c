//! A stream of bursts: again and again a few loads begin at once, whatever has become of those before.
//!
//! Promises: bursts come by the clock and not when the system is ready, every value is checked, every load is timed. Knows no
//! system.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::time::{Instant, interval, timeout};

use crate::closed_loop::{Ask, Batches, LATENCY_P50, LATENCY_P99, SHARED, answer};
use crate::failure::Failure;
use crate::measurement::Reading;

/// Longer than any load may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How loads come, and what they come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) case: &'static str,
    /// Loads that begin at once.
    pub(super) burst: u64,
    pub(super) every: Duration,
    /// How long a fetch takes.
    pub(super) source_takes: Duration,
}

/// Lets them come for that long.
pub(super) fn run(
    runtime: &Runtime,
    system: &impl Ask,
    fetches: &Batches,
    stream: Stream,
    duration: Duration,
) -> Result<Vec<Reading>, Failure> {
    let system = system.clone();
    let bursts = async move {
        let mut loads = Vec::new();
        let mut clock = interval(stream.every);
        let until = Instant::now() + duration;
        while Instant::now() < until {
            clock.tick().await;
            let first_key = loads.len() as u64;
            for key in first_key..first_key + stream.burst {
                let system = system.clone();
                loads.push(tokio::spawn(async move {
                    let begun = Instant::now();
                    match system.ask(key).await {
                        Ok(value) if value == answer(key) => Ok(begun.elapsed()),
                        Ok(value) => Err(format!("{key} was answered with {value}")),
                        Err(error) => Err(error),
                    }
                }));
            }
        }
        let mut took_us = Histogram::<u64>::new_with_max(60_000_000, 3).expect("a valid range and precision");
        for load in loads {
            let load = timeout(PATIENCE, load)
                .await
                .map_err(|_| format!("a load had no value within {PATIENCE:?}"))?;
            let took = load.map_err(|error| error.to_string())??;
            took_us.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
        Ok::<_, String>(took_us)
    };
    let bursts = runtime.spawn(bursts);
    let took_us = runtime
        .block_on(bursts)
        .map_err(|error| Failure::Wrong(error.to_string()))?
        .map_err(Failure::Wrong)?;
    let quantile_ms = |quantile| took_us.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(vec![
        Reading::new(SHARED, "keys/fetch", took_us.len() as f64 / fetches.count() as f64),
        Reading::new(LATENCY_P50, "ms", quantile_ms(0.50)),
        Reading::new(LATENCY_P99, "ms", quantile_ms(0.99)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_loop::two_workers;

    /// Answers after a moment, and a fetch a load.
    #[derive(Clone, Default)]
    struct Slow {
        fetches: Batches,
        wrong: Option<u64>,
    }

    impl Ask for Slow {
        async fn ask(&self, key: u64) -> Result<u64, String> {
            self.fetches.note();
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(answer(key) + u64::from(self.wrong == Some(key)))
        }
    }

    fn readings(system: &Slow) -> Result<Vec<Reading>, Failure> {
        let stream = Stream {
            case: "test",
            burst: 3,
            every: Duration::from_millis(2),
            source_takes: Duration::ZERO,
        };
        let runtime = two_workers().unwrap();
        run(&runtime, system, &system.fetches, stream, Duration::from_millis(20))
    }

    #[test]
    fn loads_are_timed_and_counted_by_fetch() {
        let readings = readings(&Slow::default()).unwrap();
        assert_eq!(readings[0].value, 1.0);
        assert!(
            readings[1].value >= 10.0 && readings[1].value <= readings[2].value,
            "{readings:?}"
        );
    }

    #[test]
    fn a_wrong_value_is_seen() {
        let system = Slow {
            wrong: Some(2),
            ..Slow::default()
        };
        let error = readings(&system).unwrap_err().to_string();
        assert!(error.contains("2 was answered"), "{error}");
    }
}
