//! What a hit costs: gets of keys that are all there, and what an entry costs in memory.
//!
//! Promises: every system is asked for the same keys in the same order, by as many threads, and every value is checked. Knows
//! which systems and cases there are; how each is spoken to is in `systems`, the loop in `getting`.

mod getting;
mod overhead;
mod sequence;
mod systems;

use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;

use super::peers::{CACHEX, CACHEX_MODULE, FOYER, MOKA, QUICK_CACHE};
use crate::closed_loop::{LATENCY_P50, LATENCY_P99};
use crate::failure::Failure;
use crate::go::Go;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial};
use crate::stopwatch::THROUGHPUT;
use getting::{Cached, Hits};
use overhead::OVERHEAD;
use sequence::Sequence;
use systems::{Bare, Forebay, Foyer, Moka, QuickCache};

const OTTER: &str = "Go, otter";
const STURDYC: &str = "Go, sturdyc";

/// Those in Go that take part, for their versions.
pub(crate) const MODULES: [&str; 3] = [
    "github.com/maypok86/otter/v2",
    "github.com/viccon/sturdyc",
    CACHEX_MODULE,
];

const KEYS: u32 = 10_000;
const SKEW: f64 = 0.99;
/// A turn takes this part of the usual: memory alone is steady soon.
const SHARE_OF_DURATION: u32 = 3;

/// By threads that get.
const CASES: [(&str, u32); 2] = [("1 thread", 1), ("2 threads", 2)];
const FILLED: &str = "100,000 entries of u64 by u64";
const ENTRIES: u64 = 100_000;

/// For a reader who has not read the code.
pub(crate) fn about() -> String {
    format!(
        "Hits: threads, or goroutines on as many processors, get {KEYS} keys (Zipf {SKEW}), all of them there, in the same drawn \
         order, and check each\nvalue; the clock is read once in {} gets. Latency is of one get in 16 in a part of its own; \
         reading the clock twice, the clock\nrow, is in it. limit: an array instead of a cache. forebay: `cache.get(&key).await` \
         in a task, with a window in which values are\nfresh; moka, otter, sturdyc and cachex have an hour to live, quick_cache and \
         foyer know no ages. Keys are numbers, values shared\npointers; sturdyc's and cachex's keys are texts, made beforehand. \
         otter and sturdyc are asked for what is present, cachex, which knows\nonly that, to get or fetch. cachex is set up as its \
         own benchmark does, sturdyc as in its documentation. Overhead: what the heap has\nkept for a full cache with room for \
         as many entries, less keys and values.",
        sequence::GETS_A_BATCH
    )
}

/// Everything that takes part; without Go, what is not written in it.
pub(crate) fn trials(go: Option<&Rc<Go>>) -> Vec<Box<dyn Trial>> {
    let sequence = Rc::new(Sequence::zipf(KEYS, SKEW));
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for (case, threads) in CASES {
        let mut add = |system, asked| {
            let sequence = Rc::clone(&sequence);
            trials.push(Box::new(HitTrial {
                system,
                case,
                threads,
                sequence,
                asked,
            }));
        };
        add(LIMIT, Asked::Bare);
        add(QUICK_CACHE, Asked::QuickCache);
        add(MOKA, Asked::Moka);
        add(FOYER, Asked::Foyer);
        for (system, peer) in [(OTTER, "otter"), (STURDYC, "sturdyc"), (CACHEX, "cachex")] {
            if let Some(go) = go {
                add(system, Asked::Go(Rc::clone(go), peer));
            }
        }
        add(FOREBAY, Asked::Forebay);
    }
    let fillings: [(&str, Filling); 4] = [
        (QUICK_CACHE, overhead::measure::<overhead::QuickCache>),
        (MOKA, overhead::measure::<overhead::Moka>),
        (FOYER, overhead::measure::<overhead::Foyer>),
        (FOREBAY, overhead::measure::<overhead::Forebay>),
    ];
    for (system, filling) in fillings {
        trials.push(Box::new(OverheadTrial { system, filling }));
    }
    trials
}

/// What is hoped for.
pub(crate) fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for (case, _) in CASES {
        for (peer, times) in [(QUICK_CACHE, 1.0), (MOKA, 5.0), (CACHEX, 8.0)] {
            goals.push(Goal {
                text: format!("{case}: gets/s ÷ {peer}"),
                metric: THROUGHPUT,
                ours: Key::new(FOREBAY, case),
                beside: Beside::Ratio(vec![Key::new(peer, case)]),
                wanted: Wanted::AtLeast(times),
            });
        }
    }
    goals.push(Goal {
        text: "overhead an entry ÷ the leaner of quick_cache and moka".to_owned(),
        metric: OVERHEAD,
        ours: Key::new(FOREBAY, FILLED),
        beside: Beside::Ratio([QUICK_CACHE, MOKA].map(|peer| Key::new(peer, FILLED)).into()),
        wanted: Wanted::AtMost(1.5),
    });
    goals
}

enum Asked {
    Bare,
    QuickCache,
    Moka,
    Foyer,
    Go(Rc<Go>, &'static str),
    Forebay,
}

struct HitTrial {
    system: &'static str,
    case: &'static str,
    threads: u32,
    sequence: Rc<Sequence>,
    asked: Asked,
}

impl Trial for HitTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let duration = stage.effort.duration / SHARE_OF_DURATION;
        let hits = match &self.asked {
            Asked::Bare => self.run(&Bare::new(KEYS), duration),
            Asked::QuickCache => self.run(&QuickCache::new(KEYS), duration),
            Asked::Moka => self.run(&Moka::new(KEYS), duration),
            Asked::Foyer => self.run(&Foyer::new(KEYS), duration),
            Asked::Forebay => {
                let runtime = crate::closed_loop::two_workers()?;
                let cache = {
                    let _inside = runtime.enter();
                    Forebay::new(KEYS)
                };
                self.run(&cache, duration)
            }
            Asked::Go(go, peer) => {
                let file = self.sequence.write(stage.folder)?;
                let arguments = [
                    "cache".to_owned(),
                    format!("-peer={peer}"),
                    format!("-keys={KEYS}"),
                    format!("-sequence={}", file.display()),
                ];
                let hits: InGo = go.figures(self.threads, self.threads, &arguments, duration)?;
                Ok(hits.into())
            }
        }?;
        readings(&hits)
    }
}

impl HitTrial {
    fn run(&self, cache: &impl Cached, duration: Duration) -> Result<Hits, Failure> {
        getting::run(cache, &self.sequence, self.threads, duration)
    }
}

fn readings(hits: &Hits) -> Result<Vec<Reading>, Failure> {
    if hits.gets == 0 {
        return Err(Failure::Wrong(format!("nothing was got: {hits:?}")));
    }
    Ok(vec![
        Reading::new(THROUGHPUT, "gets/s", hits.gets as f64 / hits.seconds),
        Reading::new(LATENCY_P50, "ns", hits.p50_ns),
        Reading::new(LATENCY_P99, "ns", hits.p99_ns),
        Reading::new("clock", "ns", hits.clock_ns),
    ])
}

/// What the peers in Go print.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InGo {
    gets: u64,
    seconds: f64,
    p50_ns: f64,
    p99_ns: f64,
    clock_ns: f64,
}

impl From<InGo> for Hits {
    fn from(seen: InGo) -> Self {
        Self {
            gets: seen.gets,
            seconds: seen.seconds,
            p50_ns: seen.p50_ns,
            p99_ns: seen.p99_ns,
            clock_ns: seen.clock_ns,
        }
    }
}

type Filling = fn(u64) -> Result<Vec<Reading>, Failure>;

struct OverheadTrial {
    system: &'static str,
    filling: Filling,
}

impl Trial for OverheadTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &'static str {
        FILLED
    }

    fn measure(&mut self, _: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = crate::closed_loop::two_workers()?;
        let _inside = runtime.enter();
        (self.filling)(ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_nothing_are_a_failure() {
        let hits = |gets| Hits {
            gets,
            seconds: 0.5,
            p50_ns: 1.0,
            p99_ns: 2.0,
            clock_ns: 3.0,
        };
        assert!(readings(&hits(0)).is_err());
        assert_eq!(readings(&hits(10)).unwrap()[0].value, 20.0);
    }
}
