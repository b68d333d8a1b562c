//! A closed loop: tasks that each ask, await their own answer, check it, and ask again until time is up.
//!
//! Promises: every answer is checked, and one that is wrong, missing or never comes fails the measurement. A call takes a
//! clock reading only when it is sampled, one in 64, so that the clock does not decide what a call costs. Asking begins
//! before the time that is measured and ends after it; the heap is watched in a part of its own, which is not timed.
//!
//! Knows no system but the bare limit: what answers is behind [`Ask`].

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::{Builder, Runtime};

use crate::allocation::Allocated;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::stopwatch::THROUGHPUT;

/// How long one call takes from question to answer, of half of the calls.
pub(crate) const LATENCY_P50: &str = "latency p50";
/// The same, of all but one in a hundred.
pub(crate) const LATENCY_P99: &str = "latency p99";
/// Times that a call asks the heap for memory.
pub(crate) const ALLOCATIONS: &str = "allocations";
/// What it asks for.
pub(crate) const ALLOCATED: &str = "allocated";
/// Calls that shared a batch, a fetch, or whatever a system shares.
pub(crate) const SHARED: &str = "shared";
/// The time from a call to the next, of one caller alone.
pub(crate) const TIME: &str = "time a call";

const SAMPLED_ONE_IN: u32 = 64;
/// Longer than any system may take for an answer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 30 });

/// What answers a caller.
pub(crate) trait Ask: Clone + Send + 'static {
    /// Gives [`answer`] of the item, or says why not.
    fn ask(&self, item: u64) -> impl Future<Output = Result<u64, String>> + Send;
}

/// The right answer: never the item itself, never what an empty place would hold.
pub(crate) fn answer(item: u64) -> u64 {
    item.wrapping_mul(2).wrapping_add(1)
}

/// Wakes and nothing else: what tasks cost by themselves.
#[derive(Clone)]
pub(crate) struct Yielding;

impl Ask for Yielding {
    async fn ask(&self, item: u64) -> Result<u64, String> {
        tokio::task::yield_now().await;
        Ok(answer(item))
    }
}

/// Batches that a system has run; its processor counts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches(Arc<AtomicU64>);

impl Batches {
    /// One more.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A runtime as every system of these scenarios has it.
pub(crate) fn two_workers() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::system("start a runtime"))
}

/// The parts of a turn, in order.
const WARM_UP: u8 = 0;
const TIMED: u8 = 1;
const WATCHED: u8 = 2;
/// What ends here belongs to no part.
const BETWEEN: u8 = 3;
const OVER: u8 = 4;
const PARTS: usize = 5;

/// What all callers look at after each call.
#[derive(Debug, Default)]
struct Board {
    part: AtomicU8,
    /// By part: whether a call has ended in it.
    has_ended: [AtomicBool; PARTS],
    /// The first outcome that was wrong or missing; its caller has stopped.
    wrong: OnceLock<String>,
}

impl Board {
    /// Lasts this long, and until at least one call has ended in it. Gives how long that was: not less, so that whoever looks
    /// late sees a system as slower than it is and never as faster.
    fn run_part(&self, part: u8, duration: Duration) -> Result<Duration, Failure> {
        let begun = Instant::now();
        self.part.store(part, Ordering::Relaxed);
        pause(duration);
        while !self.has_ended[usize::from(part)].load(Ordering::Relaxed) {
            self.check()?;
            if begun.elapsed() > PATIENCE {
                return Err(Failure::Wrong(format!("no call ended within {PATIENCE:?}")));
            }
            pause(Duration::from_millis(1));
        }
        self.part.store(BETWEEN, Ordering::Relaxed);
        Ok(begun.elapsed())
    }

    /// Whether all outcomes were right so far.
    fn check(&self) -> Result<(), Failure> {
        self.wrong
            .get()
            .map_or(Ok(()), |wrong| Err(Failure::Wrong(wrong.clone())))
    }
}

/// Lets the callers run, from outside of their runtime.
#[allow(
    clippy::disallowed_methods,
    reason = "the time that a measurement takes; the thread has nothing else to do"
)]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// What one caller has seen.
#[derive(Debug, Default)]
struct Tally {
    /// By part of the turn.
    calls: [u64; PARTS],
    took_ns: Vec<u32>,
}

async fn call(board: Arc<Board>, system: impl Ask, caller: u32) -> Tally {
    let mut tally = Tally::default();
    let mut call = 0_u32;
    loop {
        let item = (u64::from(caller) << 32) | u64::from(call);
        // Callers are sampled in turns, so that it is not the same batch that is sampled whole.
        let begun = (caller.wrapping_add(call).is_multiple_of(SAMPLED_ONE_IN)).then(Instant::now);
        let wrong = match system.ask(item).await {
            Ok(got) if got == answer(item) => None,
            Ok(got) => Some(format!("{item} was answered with {got}")),
            Err(error) => Some(error),
        };
        if let Some(wrong) = wrong {
            // Another caller may have been first, which is enough.
            let _ = board.wrong.set(wrong);
            return tally;
        }
        let part = board.part.load(Ordering::Relaxed);
        let calls = &mut tally.calls[usize::from(part)];
        if *calls == 0 {
            board.has_ended[usize::from(part)].store(true, Ordering::Relaxed);
        }
        *calls += 1;
        if part == OVER {
            return tally;
        }
        if part == TIMED
            && let Some(begun) = begun
        {
            tally
                .took_ns
                .push(u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
        call = call.wrapping_add(1);
    }
}

/// What a whole turn has shown.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) callers: u32,
    /// Of the timed part.
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    /// Batches that began in the timed part; none where the system has no batches. In a moment of a tiny run none may begin,
    /// and calls of one that began before end.
    pub(crate) batches: Option<u64>,
    pub(crate) allocations_a_call: f64,
    pub(crate) bytes_a_call: f64,
    /// Median and 99th percentile of the calls that were sampled, if any was.
    pub(crate) latency_us: Option<(f64, f64)>,
}

/// Lets `callers` tasks ask for that long. `batches` are those that `system` counts, if it has any.
pub(crate) fn run(
    runtime: &Runtime,
    system: &impl Ask,
    callers: u32,
    batches: Option<&Batches>,
    duration: Duration,
) -> Result<Seen, Failure> {
    let board = Arc::new(Board::default());
    let tasks: Vec<_> = (0..callers)
        .map(|caller| runtime.spawn(call(Arc::clone(&board), system.clone(), caller)))
        .collect();
    board.run_part(WARM_UP, duration / 8)?;
    let counted = || batches.map_or(0, Batches::count);
    let before = counted();
    let took = board.run_part(TIMED, duration)?;
    let batches_timed = counted() - before;
    let (watched, allocated) = Allocated::during(|| board.run_part(WATCHED, duration / 8));
    watched?;
    board.part.store(OVER, Ordering::Relaxed);

    let mut took_ns = Histogram::<u64>::new_with_max(u32::MAX.into(), 3).expect("a valid range and precision");
    let mut calls = [0; PARTS];
    runtime.block_on(async {
        let join = async {
            for task in tasks {
                let tally = task.await.map_err(|error| Failure::Wrong(error.to_string()))?;
                for (sum, count) in calls.iter_mut().zip(tally.calls) {
                    *sum += count;
                }
                for took in tally.took_ns {
                    took_ns.saturating_record(took.into());
                }
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, join)
            .await
            .unwrap_or_else(|_| Err(Failure::Wrong(format!("a call had no answer within {PATIENCE:?}"))))
    })?;
    board.check()?;
    let calls_watched = calls[usize::from(WATCHED)] as f64;
    let quantile_us = |quantile| took_ns.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(Seen {
        callers,
        calls: calls[usize::from(TIMED)],
        seconds: took.as_secs_f64(),
        batches: batches.map(|_| batches_timed),
        allocations_a_call: allocated.allocations as f64 / calls_watched,
        bytes_a_call: allocated.bytes as f64 / calls_watched,
        latency_us: (!took_ns.is_empty()).then(|| (quantile_us(0.50), quantile_us(0.99))),
    })
}

impl Seen {
    /// In `words`: what a call is called here, as in "calls/s" and "allocations/call".
    pub(crate) fn readings(&self, words: &Words) -> Vec<Reading> {
        let mut readings = vec![Reading::new(
            THROUGHPUT,
            words.a_second,
            self.calls as f64 / self.seconds,
        )];
        if self.callers == 1 {
            readings.push(Reading::new(TIME, "µs", self.seconds * 1e6 / self.calls as f64));
        }
        if let Some((p50, p99)) = self.latency_us {
            readings.push(Reading::new(LATENCY_P50, "µs", p50));
            readings.push(Reading::new(LATENCY_P99, "µs", p99));
        }
        // What shares nothing and asks for nothing is the bare limit: no figure could be a multiple of it.
        if self.batches.is_some() || self.allocations_a_call > 0.0 {
            readings.push(Reading::new(ALLOCATIONS, words.of_each, self.allocations_a_call));
            readings.push(Reading::new(ALLOCATED, words.bytes_of_each, self.bytes_a_call));
        }
        if let Some(batches) = self.batches.filter(|batches| *batches > 0) {
            let shared = self.calls as f64 / batches as f64;
            readings.push(Reading::new(SHARED, words.of_a_batch, shared));
        }
        readings
    }
}

/// Units, in the words of a scenario.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) a_second: &'static str,
    pub(crate) of_each: &'static str,
    pub(crate) bytes_of_each: &'static str,
    pub(crate) of_a_batch: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words {
        a_second: "calls/s",
        of_each: "a call",
        bytes_of_each: "bytes/call",
        of_a_batch: "calls",
    };

    /// Yields and answers, but not always rightly.
    #[derive(Clone)]
    struct Odd {
        wrong_from: u64,
        silent_from: u64,
        batches: Batches,
    }

    impl Odd {
        fn new() -> Self {
            Self {
                wrong_from: u64::MAX,
                silent_from: u64::MAX,
                batches: Batches::default(),
            }
        }
    }

    impl Ask for Odd {
        async fn ask(&self, item: u64) -> Result<u64, String> {
            tokio::task::yield_now().await;
            self.batches.note();
            let call = item & u64::from(u32::MAX);
            if call >= self.silent_from {
                return Err("closed".to_owned());
            }
            Ok(answer(item) + u64::from(call >= self.wrong_from))
        }
    }

    fn seen(system: &Odd) -> Result<Seen, Failure> {
        let runtime = two_workers().unwrap();
        run(&runtime, system, 3, Some(&system.batches), Duration::from_millis(40))
    }

    #[test]
    fn calls_are_counted_and_a_second_is_one() {
        let seen = seen(&Odd::new()).unwrap();
        assert!(seen.seconds >= 0.040 && seen.calls > 0, "{seen:?}");
        // A batch a call, but for the one of each caller that the part's begin cuts in two; more when we look late.
        assert!(seen.batches.unwrap() + 3 >= seen.calls, "{seen:?}");
        // On a busy machine none of the few calls may be one that is sampled.
        if let Some((p50, p99)) = seen.latency_us {
            assert!(p50 > 0.0 && p50 <= p99, "{seen:?}");
        }
        let readings = seen.readings(&WORDS);
        assert_eq!(readings[0].value, seen.calls as f64 / seen.seconds);
        assert!(readings.iter().all(|reading| reading.metric != TIME), "not one caller");
    }

    #[test]
    fn what_has_batches_tells_what_it_asks_the_heap_for_even_if_that_is_nothing() {
        let told = |batches| {
            let seen = Seen {
                callers: 2,
                calls: 100,
                seconds: 1.0,
                batches,
                allocations_a_call: 0.0,
                bytes_a_call: 0.0,
                latency_us: None,
            };
            let readings = seen.readings(&WORDS);
            let value = |metric| {
                readings
                    .iter()
                    .find(|reading| reading.metric == metric)
                    .map(|reading| reading.value)
            };
            (value(ALLOCATIONS), value(SHARED))
        };
        assert_eq!(told(Some(10)), (Some(0.0), Some(10.0)));
        assert_eq!(told(Some(0)), (Some(0.0), None), "no batch began in that moment");
        assert_eq!(told(None), (None, None), "the bare limit");
    }

    #[test]
    fn one_wrong_answer_fails_all() {
        let system = Odd {
            // Some caller ends two calls: one ends in each part but the last, in which all end one more.
            wrong_from: 1,
            ..Odd::new()
        };
        let error = seen(&system).unwrap_err().to_string();
        assert!(error.contains("was answered with"), "{error}");
    }

    #[test]
    fn an_answer_that_never_comes_fails_all() {
        #[derive(Clone)]
        struct Never;
        impl Ask for Never {
            async fn ask(&self, _: u64) -> Result<u64, String> {
                std::future::pending().await
            }
        }
        let runtime = two_workers().unwrap();
        let error = run(&runtime, &Never, 3, None, Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("no call ended"), "{error}");
    }

    #[test]
    fn one_missing_answer_fails_all() {
        let system = Odd {
            silent_from: 1,
            ..Odd::new()
        };
        assert!(seen(&system).unwrap_err().to_string().contains("closed"));
    }
}
