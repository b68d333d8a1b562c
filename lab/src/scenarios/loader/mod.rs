//! `loader`: many keys, one fetch: how fast loads are by themselves, how many fetches they take, and what a window costs.
//!
//! Promises: every system has the same callers, keys and batch sizes, loads really, and every caller checks every value.
//! Knows which systems and cases there are; how each is spoken to is in `ours` and `peers`, how loads come in `burst` and
//! `stream`.

mod burst;
mod ours;
mod peers;
mod stream;

use std::rc::Rc;
use std::time::Duration;

use crate::closed_loop::{ALLOCATIONS, Ask, Batches, LATENCY_P50, SHARED, Yielding, run, two_workers};
use crate::failure::Failure;
use crate::go::{self, Go};
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;
use burst::{FETCHES, WORDS};
use ours::{Forebay, Limits, NoBatching, Source};
use peers::{AsyncGraphql, Dataloader, UltraBatch};
use stream::Stream;

const NO_BATCHING: &str = "no batching";
const DATALOADGEN: &str = "Go, dataloadgen";
const GRAPH_GOPHERS: &str = "Go, graph-gophers";
const ASYNC_GRAPHQL: &str = "async-graphql";
const DATALOADER: &str = "dataloader";
const ULTRA_BATCH: &str = "ultra-batch";
const PEERS: [&str; 5] = [DATALOADGEN, GRAPH_GOPHERS, ASYNC_GRAPHQL, DATALOADER, ULTRA_BATCH];

const DATALOADGEN_MODULE: &str = "github.com/vikstrous/dataloadgen";
const GRAPH_GOPHERS_MODULE: &str = "github.com/graph-gophers/dataloader/v7";
/// Of 10 µs, 100 µs, 1 ms and their default, 16 ms, those that gave most loads a second.
const DATALOADGEN_WAIT: &str = "10us";
const GRAPH_GOPHERS_WAIT: &str = "100us";

/// A turn takes this part of the usual: memory alone is steady sooner than a disk.
const SHARE_OF_DURATION: u32 = 3;
/// An upper bound that is not met: batches go because they are full.
const LONG_WINDOW: Duration = Duration::from_secs(20);

/// Callers that each load one key after the other.
#[derive(Debug, Clone, Copy)]
struct Loop {
    case: &'static str,
    callers: u32,
    max_items: usize,
}

const LOOPS: [Loop; 5] = [
    Loop {
        case: "1,000 callers, batch 100",
        callers: 1_000,
        max_items: 100,
    },
    Loop {
        case: "1,000 callers, batch 1,000",
        callers: 1_000,
        max_items: 1_000,
    },
    Loop {
        case: "10,000 callers, batch 100",
        callers: 10_000,
        max_items: 100,
    },
    Loop {
        case: "10,000 callers, batch 1,000",
        callers: 10_000,
        max_items: 1_000,
    },
    Loop {
        case: "100,000 callers, batch 1,000",
        callers: 100_000,
        max_items: 1_000,
    },
];

/// Loads that all begin at once, each of a key of its own.
#[derive(Debug, Clone, Copy)]
struct Burst {
    case: &'static str,
    system: &'static str,
    loads: u32,
    max_items: usize,
    source_takes: Duration,
    /// Not one more or less; none where that is the peer's affair.
    fetches: Option<u64>,
}

impl Burst {
    const fn new(case: &'static str, loads: u32, max_items: usize, fetches: u64) -> Self {
        Self {
            case,
            system: FOREBAY,
            loads,
            max_items,
            source_takes: Duration::ZERO,
            fetches: Some(fetches),
        }
    }

    const fn slow(self) -> Self {
        Self {
            source_takes: Duration::from_millis(50),
            ..self
        }
    }

    /// Each load is a fetch.
    const fn unbatched(self) -> Self {
        Self {
            system: NO_BATCHING,
            max_items: 1,
            fetches: Some(self.loads as u64),
            ..self
        }
    }

    const fn of(self, peer: &'static str) -> Self {
        Self {
            system: peer,
            fetches: None,
            ..self
        }
    }
}

const MANY_AT_ONCE: Burst = Burst::new("100,000 loads at once, batch 100", 100_000, 100, 1_000);
const SLOW_SOURCE: Burst = Burst::new("500 loads at once, batch 50, source takes 50 ms", 500, 50, 10).slow();
const THOUSAND: Burst = Burst::new("1,000 loads at once, batch 100", 1_000, 100, 10);
const BURSTS: [Burst; 11] = [
    MANY_AT_ONCE.unbatched(),
    MANY_AT_ONCE,
    SLOW_SOURCE.unbatched(),
    SLOW_SOURCE,
    Burst::new("100 loads at once, batch 1", 100, 1, 100),
    Burst::new("100 loads at once, batch 100", 100, 100, 1),
    Burst::new("1,000 loads at once, batch 50", 1_000, 50, 20),
    THOUSAND.of(ASYNC_GRAPHQL),
    THOUSAND.of(DATALOADER),
    THOUSAND.of(ULTRA_BATCH),
    THOUSAND,
];

/// 20,000 loads a second: more than the source could serve without batches.
const BUSY: Stream = Stream {
    case: "20 loads each 1 ms, source takes 10 ms",
    burst: 20,
    every: Duration::from_millis(1),
    source_takes: Duration::from_millis(10),
};
/// The source has nothing to do most of the time.
const IDLE: Stream = Stream {
    case: "20 loads each 20 ms, source takes 1 ms",
    burst: 20,
    every: Duration::from_millis(20),
    source_takes: Duration::from_millis(1),
};
/// Natural batching, then windows.
const WINDOWS: [(&str, Duration); 4] = [
    (FOREBAY, Duration::ZERO),
    ("forebay, window 2 ms", Duration::from_millis(2)),
    ("forebay, window 5 ms", Duration::from_millis(5)),
    ("forebay, window 10 ms", Duration::from_millis(10)),
];

/// The scenario.
#[derive(Debug)]
pub(crate) struct Loader;

impl Scenario for Loader {
    fn name(&self) -> String {
        "loader".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "Callers are tasks, or goroutines, on 2 worker threads. Each loads a key that nobody has loaded before, checks the \
             value, and loads\nthe next; the fetch does nothing but answer. A turn takes a third of a measurement; one load in \
             64 is timed; what the heap is\nasked for is counted apart from what is timed. limit: tasks that only yield to one \
             another.\nEach peer has its memory off where it can be, the batch size of the case, and the waiting time that \
             was fastest here for a batch\nthat is not full: dataloadgen {DATALOADGEN_WAIT}, graph-gophers \
             {GRAPH_GOPHERS_WAIT}, async-graphql 1 ms, dataloader 3 yields, ultra-batch 1 ms (it remembers\nall it loads). \
             forebay: no window, one fetch at a time.\nLoads at once: each in a task of its own, which is in the figures too; \
             batches go when they are full, and another number of\nfetches than that fails the run; the peers' own number is \
             shown. Loads that come by the clock: one fetch at a time, up to 1,000\nkeys."
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        let mut versions = vec![("Go".to_owned(), go::version())];
        for module in [DATALOADGEN_MODULE, GRAPH_GOPHERS_MODULE] {
            versions.push((module.to_owned(), go::module_version(module)));
        }
        for package in [ASYNC_GRAPHQL, DATALOADER, ULTRA_BATCH] {
            versions.push((package.to_owned(), locked_version(package)));
        }
        versions
    }

    fn prepare(&self, _: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let go = Go::build_or_note(absent)?;
        Ok(trials(go.as_ref()))
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        for Loop { case, .. } in LOOPS {
            let mut goal = |text: &str, metric, beside, wanted| {
                goals.push(Goal {
                    text: format!("{case}: {text}"),
                    metric,
                    ours: Key::new(FOREBAY, case),
                    beside,
                    wanted,
                });
            };
            let peers = || Beside::Ratio(PEERS.iter().map(|peer| Key::new(*peer, case)).collect());
            goal("loads/s ÷ the fastest peer", THROUGHPUT, peers(), Wanted::AtLeast(5.0));
            goal("allocations a load", ALLOCATIONS, Beside::Nothing, Wanted::AtMost(0.2));
            goal("allocations ÷ each peer's", ALLOCATIONS, peers(), Wanted::AtMost(0.1));
        }
        for burst in BURSTS.iter().filter(|burst| burst.system == FOREBAY) {
            let Some(fetches) = burst.fetches else { continue };
            goals.push(Goal {
                text: format!("{}: fetches", burst.case),
                metric: FETCHES,
                ours: Key::new(FOREBAY, burst.case),
                beside: Beside::Nothing,
                wanted: Wanted::AtMost(fetches as f64),
            });
        }
        goals.push(Goal {
            text: format!("{}: loads/s ÷ no batching", SLOW_SOURCE.case),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, SLOW_SOURCE.case),
            beside: Beside::Ratio(vec![Key::new(NO_BATCHING, SLOW_SOURCE.case)]),
            wanted: Wanted::AtLeast(1.0),
        });
        let windows = |case| {
            let windows = WINDOWS.iter().filter(|(_, window)| !window.is_zero());
            Beside::Ratio(windows.map(|(system, _)| Key::new(*system, case)).collect())
        };
        goals.push(Goal {
            text: format!("{}: keys a fetch ÷ each window's", BUSY.case),
            metric: SHARED,
            ours: Key::new(FOREBAY, BUSY.case),
            beside: windows(BUSY.case),
            wanted: Wanted::AtLeast(1.0),
        });
        goals.push(Goal {
            text: format!("{}: median latency ÷ each window's", IDLE.case),
            metric: LATENCY_P50,
            ours: Key::new(FOREBAY, IDLE.case),
            beside: windows(IDLE.case),
            wanted: Wanted::AtMost(1.0),
        });
        goals
    }
}

/// Everything that takes part; without Go, what is not written in it.
fn trials(go: Option<&Rc<Go>>) -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    let mut add = |system, case, kind| trials.push(Box::new(LoaderTrial { system, case, kind }));
    for of in LOOPS {
        let mut add = |system, looping| add(system, of.case, Kind::Loop(of, looping));
        add(LIMIT, Looping::Yielding);
        if let Some(go) = go {
            for (system, wait) in [(DATALOADGEN, DATALOADGEN_WAIT), (GRAPH_GOPHERS, GRAPH_GOPHERS_WAIT)] {
                add(
                    system,
                    Looping::Go {
                        go: Rc::clone(go),
                        wait,
                    },
                );
            }
        }
        add(ASYNC_GRAPHQL, Looping::AsyncGraphql);
        add(DATALOADER, Looping::Dataloader);
        add(ULTRA_BATCH, Looping::UltraBatch);
        add(FOREBAY, Looping::Forebay);
    }
    for burst in BURSTS {
        add(burst.system, burst.case, Kind::Burst(burst));
    }
    for stream in [BUSY, IDLE] {
        for (system, window) in WINDOWS {
            add(system, stream.case, Kind::Stream(stream, window));
        }
    }
    trials
}

enum Kind {
    Loop(Loop, Looping),
    Burst(Burst),
    Stream(Stream, Duration),
}

enum Looping {
    Yielding,
    Go { go: Rc<Go>, wait: &'static str },
    AsyncGraphql,
    Dataloader,
    UltraBatch,
    Forebay,
}

struct LoaderTrial {
    system: &'static str,
    case: &'static str,
    kind: Kind,
}

impl Trial for LoaderTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let duration = stage.effort.duration / SHARE_OF_DURATION;
        match &self.kind {
            Kind::Loop(of, looping) => of.measure(self.system, looping, duration),
            Kind::Burst(burst) => burst.measure(duration),
            Kind::Stream(stream, window) => {
                let source = Source {
                    takes: stream.source_takes,
                    ..Source::default()
                };
                let limits = Limits {
                    max_items: 1_000,
                    max_wait: *window,
                    max_in_flight: 1,
                };
                let fetches = source.fetches.clone();
                let runtime = two_workers()?;
                stream::run(&runtime, &Forebay::new(limits, source), &fetches, *stream, duration)
            }
        }
    }
}

impl Loop {
    fn measure(self, system: &str, looping: &Looping, duration: Duration) -> Result<Vec<Reading>, Failure> {
        let fetches = Batches::default();
        let max_items = self.max_items;
        match looping {
            Looping::Yielding => self.run(|| Yielding, None, duration),
            Looping::AsyncGraphql => self.run(
                || AsyncGraphql::new(max_items, fetches.clone()),
                Some(&fetches),
                duration,
            ),
            Looping::Dataloader => self.run(|| Dataloader::new(max_items, fetches.clone()), Some(&fetches), duration),
            Looping::UltraBatch => self.run(|| UltraBatch::new(max_items, fetches.clone()), Some(&fetches), duration),
            Looping::Forebay => {
                let limits = Limits {
                    max_items,
                    max_wait: Duration::ZERO,
                    max_in_flight: 1,
                };
                let source = Source {
                    fetches: fetches.clone(),
                    ..Source::default()
                };
                self.run(|| Forebay::new(limits, source), Some(&fetches), duration)
            }
            Looping::Go { go, wait } => {
                let peer = system.rsplit(' ').next().unwrap_or(system);
                let arguments = [
                    "loader".to_owned(),
                    format!("-peer={peer}"),
                    format!("-max-items={max_items}"),
                    format!("-wait={wait}"),
                ];
                Ok(go.run(self.callers, &arguments, duration)?.readings(&WORDS))
            }
        }
    }

    /// A turn of a system in a runtime of its own, in which it is also made.
    fn run<S: Ask>(
        self,
        make: impl FnOnce() -> S,
        fetches: Option<&Batches>,
        duration: Duration,
    ) -> Result<Vec<Reading>, Failure> {
        let runtime = two_workers()?;
        let system = {
            let _inside = runtime.enter();
            make()
        };
        Ok(run(&runtime, &system, self.callers, fetches, duration)?.readings(&WORDS))
    }
}

impl Burst {
    fn measure(&self, duration: Duration) -> Result<Vec<Reading>, Failure> {
        let max_items = self.max_items;
        match self.system {
            NO_BATCHING => self.run(|source| NoBatching { source }, duration),
            ASYNC_GRAPHQL => self.run(|source| AsyncGraphql::new(max_items, source.fetches), duration),
            DATALOADER => self.run(|source| Dataloader::new(max_items, source.fetches), duration),
            ULTRA_BATCH => self.run(|source| UltraBatch::new(max_items, source.fetches), duration),
            _ => {
                let limits = Limits {
                    max_items,
                    max_wait: LONG_WINDOW,
                    // A source that is slow is asked for all at once, as it is without batching.
                    max_in_flight: if self.source_takes.is_zero() {
                        1
                    } else {
                        self.loads as usize / max_items
                    },
                };
                self.run(|source| Forebay::new(limits, source), duration)
            }
        }
    }

    /// A turn of a system in a runtime of its own, in which it is also made.
    fn run<S: Ask>(&self, make: impl FnOnce(Source) -> S, duration: Duration) -> Result<Vec<Reading>, Failure> {
        let source = Source {
            takes: self.source_takes,
            ..Source::default()
        };
        let fetches = source.fetches.clone();
        let runtime = two_workers()?;
        let system = {
            let _inside = runtime.enter();
            make(source)
        };
        burst::run(&runtime, &system, &fetches, self.loads, self.fetches, duration)
    }
}

/// The version of a package that this program was built with.
pub(crate) fn locked_version(package: &str) -> String {
    const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
    version_in(LOCK, package).unwrap_or("unknown").to_owned()
}

fn version_in<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(after.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_names_something_that_is_measured() {
        let trials = trials(None);
        let goals = Loader.goals();
        let named = goals.iter().flat_map(Goal::keys);
        let in_go = |key: &&Key| key.system == DATALOADGEN || key.system == GRAPH_GOPHERS;
        for key in named.filter(|key| !in_go(key)) {
            let measured = trials
                .iter()
                .any(|trial| trial.system() == key.system && trial.case() == key.case);
            assert!(measured, "{key:?}");
        }
    }

    #[test]
    fn batches_that_go_when_full_are_all_filled() {
        for burst in BURSTS {
            let Some(fetches) = burst.fetches else {
                assert!(PEERS.contains(&burst.system), "{burst:?}");
                continue;
            };
            assert_eq!(fetches * burst.max_items as u64, u64::from(burst.loads), "{burst:?}");
        }
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        for package in [ASYNC_GRAPHQL, DATALOADER, ULTRA_BATCH] {
            let version = locked_version(package);
            assert!(version.split('.').count() >= 3, "{package} {version}");
        }
        assert_eq!(version_in("name = \"a-b\"\nversion = \"1.2.3\"\n", "b"), None);
    }
}
