//! Threads that each get one key after the other from a cache that holds them all.
//!
//! Promises: every value is checked; one miss, or one wrong value, fails the measurement. The clock is read once a batch of
//! gets; what one get takes is seen in a part of its own, where one in 16 is timed. The peers in Go do the same. Knows no
//! system: what is asked is behind [`Cached`].

use std::sync::Barrier;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::sequence::Sequence;
use crate::failure::Failure;
use crate::latency::Latencies;

/// In the part that is for latency.
const TIMED_ONE_IN: usize = 16;

/// What the caches hold, shared.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) key: u32,
}

/// What was wrong with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Missing(u32),
    Other { key: u32, got: u32 },
    Refused { key: u32, error: String },
}

impl Wrong {
    /// Whether the right value was got.
    pub(crate) fn check(key: u32, got: Option<&Held>) -> Result<(), Self> {
        match got {
            Some(held) if held.key == key => Ok(()),
            Some(held) => Err(Self::Other { key, got: held.key }),
            None => Err(Self::Missing(key)),
        }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(match wrong {
            Wrong::Missing(key) => format!("{key} is not there"),
            Wrong::Refused { key, error } => format!("{key} was refused: {error}"),
            Wrong::Other { key, got } => format!("{key} was answered with {got}"),
        })
    }
}

/// A cache that holds all keys.
pub(crate) trait Cached: Sync {
    /// Gets and checks each of the keys, in their order, each between the watch's `begin` and `end`.
    fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> impl Future<Output = Result<(), Wrong>>;
}

/// Sees gets begin and end.
pub(crate) trait Watch {
    fn begin(&mut self, index: usize);
    fn end(&mut self, index: usize);
}

/// Sees nothing, and costs nothing.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn begin(&mut self, _: usize) {}

    #[inline]
    fn end(&mut self, _: usize) {}
}

/// Times one in a few.
struct Timing {
    begun: Instant,
    took: Latencies,
}

impl Timing {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            took: Latencies::new(),
        }
    }
}

impl Watch for Timing {
    #[inline]
    fn begin(&mut self, index: usize) {
        if index.is_multiple_of(TIMED_ONE_IN) {
            self.begun = Instant::now();
        }
    }

    #[inline]
    fn end(&mut self, index: usize) {
        if index.is_multiple_of(TIMED_ONE_IN) {
            self.took.note(self.begun.elapsed());
        }
    }
}

/// What a turn has shown.
#[derive(Debug)]
pub(crate) struct Hits {
    pub(crate) gets: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// What reading the clock and the next time take, which is in both.
    pub(crate) clock_ns: f64,
}

/// Warms up for an eighth of the time, counts gets for all of it, and then times some for a quarter of it.
pub(crate) fn run(cache: &impl Cached, sequence: &Sequence, threads: u32, duration: Duration) -> Result<Hits, Failure> {
    let together = Barrier::new(threads as usize);
    let ended = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let together = &together;
                scope.spawn(move || {
                    Getter {
                        cache,
                        sequence,
                        thread,
                        threads,
                    }
                    .run(together, duration)
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Failure::Wrong("a thread panicked".to_owned())))
        };
        running.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut hits = Hits {
        gets: 0,
        seconds: 0.0,
        p50_ns: 0.0,
        p99_ns: 0.0,
        clock_ns: clock_ns(),
    };
    let mut took = Latencies::new();
    for getter in ended {
        let (gets, seconds, latencies) = getter?;
        hits.gets += gets;
        hits.seconds = hits.seconds.max(seconds);
        took.add(&latencies);
    }
    (hits.p50_ns, hits.p99_ns) = (took.quantile_ns(0.50), took.quantile_ns(0.99));
    Ok(hits)
}

struct Getter<'a, C> {
    cache: &'a C,
    sequence: &'a Sequence,
    thread: u32,
    threads: u32,
}

impl<C: Cached> Getter<'_, C> {
    /// One thread's life: gets counted, how long that took, and the latencies of those that were timed.
    fn run(&self, together: &Barrier, duration: Duration) -> Result<(u64, f64, Latencies), Failure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::system("start a runtime"));
        // Whoever cannot run still comes here, where the others wait.
        together.wait();
        let runtime = runtime?;
        runtime.block_on(async {
            self.until(duration / 8, &mut Unwatched).await?;
            let (gets, seconds) = self.until(duration, &mut Unwatched).await?;
            let mut timing = Timing::new();
            self.until(duration / 4, &mut timing).await?;
            Ok((gets, seconds, timing.took))
        })
    }

    async fn until(&self, duration: Duration, watch: &mut impl Watch) -> Result<(u64, f64), Failure> {
        let begun = Instant::now();
        let mut gets = 0;
        for batch in self.sequence.batches(self.thread, self.threads) {
            self.cache.batch(batch, watch).await?;
            gets += batch.len() as u64;
            if begun.elapsed() >= duration {
                break;
            }
        }
        Ok((gets, begun.elapsed().as_secs_f64()))
    }
}

/// Of half of the readings.
fn clock_ns() -> f64 {
    let mut timing = Timing::new();
    for _ in 0..10_000 {
        timing.begin(0);
        timing.end(0);
    }
    timing.took.quantile_ns(0.50)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds all keys but one, and another's value for another.
    struct Odd {
        missing: u32,
        other: u32,
    }

    impl Cached for Odd {
        async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
            for (index, &key) in keys.iter().enumerate() {
                watch.begin(index);
                let held = Held {
                    key: key + u32::from(key == self.other),
                };
                watch.end(index);
                Wrong::check(key, (key != self.missing).then_some(&held))?;
            }
            Ok(())
        }
    }

    fn hits(missing: u32, other: u32) -> Result<Hits, Failure> {
        let sequence = Sequence::zipf(100, 0.99);
        run(&Odd { missing, other }, &sequence, 2, Duration::from_millis(8))
    }

    #[test]
    fn gets_of_all_threads_are_counted_and_some_are_timed() {
        let hits = hits(u32::MAX, u32::MAX).unwrap();
        assert!(hits.gets >= 2 * 1_024 && hits.gets.is_multiple_of(1_024), "{hits:?}");
        assert!(hits.seconds >= 0.008, "{hits:?}");
        assert!(
            hits.p50_ns > 0.0 && hits.p50_ns <= hits.p99_ns && hits.clock_ns > 0.0,
            "{hits:?}"
        );
    }

    #[test]
    fn one_miss_or_one_wrong_value_fails_all() {
        let said = |missing, other| hits(missing, other).unwrap_err().to_string();
        assert!(said(99, u32::MAX).contains("99 is not there"));
        assert!(said(u32::MAX, 99).contains("99 was answered with 100"));
    }
}
