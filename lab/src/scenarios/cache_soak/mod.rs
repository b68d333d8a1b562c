//! `cache-soak`: does the cache ever answer wrong, whatever happens around it?
//!
//! Promises: every answer of every get is judged (see `judge`); one that is wrong fails the run, and is told with the seed by
//! which all choices can be made again. How many gets there are a second is told, and means little: readers pause.
//!
//! How it is built: `database` is what the caches fetch from, `arena` sets them up, `traffic` reads and writes, `disturbance`
//! plays with their tiers.

mod arena;
mod database;
mod disturbance;
mod judge;
mod stalls;
mod traffic;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use forebay::cache::tier::redis::RedisTier;
use forebay::cache::tier::sqlite::SqliteTier;
use forebay::cache::tier::{Form, KeyForm, OpenError, Postcard};
use testbed::{Proxy, Redis};

use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;
use arena::{Below, Soaked};
use database::Row;
use disturbance::Disturbance;
use traffic::Counts;

const WRONG: &str = "wrong answers";
const LATE: &str = "late answers";
const ERRORS: &str = "errors given";
const FAULTS: &str = "faults injected";
const INVALIDATIONS: &str = "invalidations";
const CANCELLED: &str = "cancelled";
/// Of the runtime's timers.
const STALL: &str = "longest stall";
/// Of a thread that does nothing else.
const STALLED: &str = "machine stalled";

/// A case in a full run, unless a user wants otherwise; and in a quick one.
pub(crate) const SECONDS: u32 = 60;
pub(crate) const QUICK_SECONDS: u32 = 5;

const CASES: [(&str, Kind); 4] = [
    ("single", Kind::Single),
    ("gathered", Kind::Gathered),
    ("with Redis", Kind::Redis),
    ("with SQLite", Kind::Sqlite),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Gathered,
    Redis,
    Sqlite,
}

/// The scenario.
#[derive(Debug)]
pub(crate) struct CacheSoak {
    seed: u64,
}

impl CacheSoak {
    /// With that seed, or any.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self {
            seed: seed.unwrap_or_else(rand::random),
        }
    }
}

impl Scenario for CacheSoak {
    fn name(&self) -> String {
        "cache-soak".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "Seed {}. Tasks on 2 worker threads read and write 400 keys through two caches at a time, each over a simulated database \
             of its own: one that\nhas room for a sixteenth of them, one that has room for all and lets 8 fetches run. Three in four \
             gets are for 12 keys; one version in\nfive is no row. Writers change a key, then invalidate or insert it, mark it stale, \
             clear the cache, or tell it nothing. For seconds the\ndatabase fails, hangs, panics or is slow for 70 % of fetches; one \
             get in 13 is dropped while it waits. gathered: over a Loader, up to 32\nkeys a fetch. with Redis: a real one below \
             memory, killed and restarted, paused, cut off, held up, answering garbage; with SQLite: a file below\nmemory, locked now and \
             then. These two are over a Loader where the seed (plus the rounds before) is even.\nWrong: older than what was acknowledged before the get began, \
             another key's, missing where it never was (or the reverse), older than the\nwindows allow, a rescue or an error \
             without trouble, an error where memory could answer, more than 1 s after its deadline, memory over\nits capacity. Late: \
             more than 50 ms after its deadline; see the longest stall, which is the machine's.",
            self.seed
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("Redis".to_owned(), first_line_of("redis-server", &["--version"]))]
    }

    fn prepare(&self, _: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let has_redis = match Redis::start() {
            Ok(_) => true,
            Err(error @ testbed::Error::NotInstalled { .. }) => {
                absent.push(Failure::Absent {
                    what: "Redis".to_owned(),
                    cause: error.to_string(),
                    remedy: "soaked without it".to_owned(),
                });
                false
            }
            Err(error) => return Err(error.into()),
        };
        let cases = CASES.into_iter().filter(|(_, kind)| has_redis || *kind != Kind::Redis);
        Ok(cases
            .map(|(case, kind)| -> Box<dyn Trial> {
                Box::new(SoakTrial {
                    case,
                    kind,
                    seed: self.seed,
                    turn: 0,
                })
            })
            .collect())
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        goals()
    }
}

fn goals() -> Vec<Goal> {
    let goal = |(case, _)| Goal {
        text: format!("{case}: {WRONG}"),
        metric: WRONG,
        ours: Key::new(FOREBAY, case),
        beside: Beside::Nothing,
        wanted: Wanted::AtMost(0.0),
    };
    CASES.into_iter().map(goal).collect()
}

struct SoakTrial {
    case: &'static str,
    kind: Kind,
    seed: u64,
    turn: u64,
}

impl Trial for SoakTrial {
    fn system(&self) -> &str {
        FOREBAY
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let seed = self.seed.wrapping_add(self.turn);
        self.turn += 1;
        let is_over = Arc::new(AtomicBool::new(false));
        let (below, disturbance) = self.below(stage, seed, &is_over)?;
        let gathers = match self.kind {
            Kind::Single => false,
            Kind::Gathered => true,
            Kind::Redis | Kind::Sqlite => seed.is_multiple_of(2),
        };
        let runtime = two_workers()?;
        let soaked = runtime.block_on(arena::soak(gathers, below, seed, stage.effort.duration, &is_over));
        let disturbances = disturbance.end()?;
        // What still flies or is owed to a tier goes with it.
        runtime.shutdown_background();
        readings(&soaked?, disturbances, seed)
    }
}

impl SoakTrial {
    /// What the two caches have below memory, and what happens to it.
    fn below(
        &self,
        stage: &Stage<'_>,
        seed: u64,
        is_over: &Arc<AtomicBool>,
    ) -> Result<([Below; 2], Disturbance), Failure> {
        let form = |namespace| Form::<u64, Row>::new(namespace, KeyForm::display(), Postcard);
        match self.kind {
            Kind::Single | Kind::Gathered => Ok(([Below::Nothing, Below::Nothing], Disturbance::none(is_over))),
            Kind::Redis => {
                // What it acknowledged is back after a kill: old rows too, if it was not told.
                let redis = Redis::builder().durable().start()?;
                let proxy = Proxy::start(redis.address())?;
                let address = format!("redis://{}/", proxy.address());
                let open = |namespace| {
                    Ok::<_, Failure>(Below::Redis(
                        RedisTier::open(&address, form(namespace)).map_err(|error| unopened(&error))?,
                    ))
                };
                let below = [open("tight")?, open("roomy")?];
                Ok((below, Disturbance::of_redis(redis, proxy, seed, is_over)?))
            }
            Kind::Sqlite => {
                let files: Vec<PathBuf> = ["tight", "roomy"]
                    .map(|name| stage.folder.join(format!("{name}-{}.db", self.turn)))
                    .into();
                let open = |at: usize| {
                    let tier = SqliteTier::builder(&files[at], form("soak")).open();
                    Ok::<_, Failure>(Below::Sqlite(tier.map_err(|error| unopened(&error))?))
                };
                let below = [open(0)?, open(1)?];
                Ok((below, Disturbance::of_files(&files, seed, is_over)?))
            }
        }
    }
}

fn unopened(error: &OpenError) -> Failure {
    Failure::Wrong(format!("a tier was not opened: {error}"))
}

fn readings(soaked: &Soaked, disturbances: u64, seed: u64) -> Result<Vec<Reading>, Failure> {
    let verdict = &soaked.verdict;
    if verdict.wrong > 0 {
        return Err(Failure::Wrong(format!(
            "{} of {} answers (seed {seed}; the machine stood still for {:?}): {}",
            verdict.wrong,
            verdict.answers,
            soaked.stalled,
            verdict.told.join("; ")
        )));
    }
    eprintln!("errors given (seed {seed}): {:?}", verdict.errors);
    let counted = |of: fn(&Counts) -> &AtomicU64| soaked.counts.iter().map(move |counts| of(counts).load(Relaxed));
    let sum = |of| counted(of).sum::<u64>() as f64;
    let invalidations = sum(|counts| &counts.invalidations) + sum(|counts| &counts.clears);
    let longest_us = counted(|counts| &counts.longest_stall_us).max().unwrap_or_default();
    Ok(vec![
        Reading::new(WRONG, "answers", verdict.wrong as f64),
        Reading::new(LATE, "answers", verdict.late as f64),
        Reading::new(THROUGHPUT, "gets/s", verdict.answers as f64 / soaked.seconds),
        Reading::new(ERRORS, "errors", verdict.errors.values().sum::<u64>() as f64),
        Reading::new(FAULTS, "faults", (soaked.faults + disturbances) as f64),
        Reading::new(INVALIDATIONS, "calls", invalidations),
        Reading::new(CANCELLED, "gets", sum(|counts| &counts.cancelled)),
        Reading::new(STALL, "ms", longest_us as f64 / 1_000.0),
        Reading::new(STALLED, "ms", soaked.stalled.as_secs_f64() * 1_000.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::judge::Verdict;
    use super::*;

    #[test]
    fn one_wrong_answer_fails_the_run_and_is_told_with_the_seed() {
        let mut soaked = Soaked {
            verdict: Verdict {
                answers: 10,
                ..Verdict::default()
            },
            faults: 3,
            counts: vec![Arc::default(), Arc::default()],
            seconds: 2.0,
            stalled: std::time::Duration::ZERO,
        };
        soaked.counts[0].clears.store(1, Relaxed);
        soaked.counts[1].invalidations.store(2, Relaxed);
        let of = |readings: Vec<Reading>, metric| {
            let found = readings.iter().find(|reading| reading.metric == metric);
            found.map(|reading| reading.value)
        };
        let all = readings(&soaked, 4, 77).unwrap();
        assert_eq!(of(all.clone(), WRONG), Some(0.0));
        assert_eq!(of(all.clone(), THROUGHPUT), Some(5.0));
        assert_eq!(of(all.clone(), FAULTS), Some(7.0));
        assert_eq!(of(all, INVALIDATIONS), Some(3.0));
        soaked.verdict.wrong = 1;
        soaked.verdict.told.push("key 5 was old".to_owned());
        let said = readings(&soaked, 4, 77).unwrap_err().to_string();
        assert!(
            said.contains("1 of 10") && said.contains("seed 77") && said.contains("key 5 was old"),
            "{said}"
        );
    }
}
