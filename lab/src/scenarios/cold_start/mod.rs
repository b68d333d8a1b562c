//! `cold-start`: a product search that begins with an empty cache, over a database that can do little.
//!
//! Promises: the same callers, traffic, database and windows for every system; every answer is checked. Knows which systems
//! and cases there are; the database is in `database`, what is asked in `traffic`, how it is asked in `search`.

mod caches;
mod database;
mod pacer;
mod search;
mod setting;
mod traffic;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay::cache::Cache;
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::closed_loop::{LATENCY_P50, LATENCY_P99, two_workers};
use crate::effort::Effort;
use crate::failure::Failure;
use crate::go::{self, Go};
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Scenario, Stage, Trial, Yardsticks};
use crate::scenarios::cache::{CACHEX, CACHEX_MODULE};
use crate::stopwatch::THROUGHPUT;
pub(in crate::scenarios) use database::product_id;
use database::{Database, Product};
use setting::{CONSTRAINED, PAUSE, SETTINGS, Setting};
pub(in crate::scenarios) use traffic::Traffic;

const GATHERED: &str = "forebay, gathered";
const WARM: &str = "forebay, warm";
const GATHERED_WARM: &str = "forebay, gathered, warm";

/// Requests for which no key had to be fetched.
const HIT_RATE: &str = "hit rate";
const LATENCY_P95: &str = "latency p95";
/// Requests that ended without an error.
const ANSWERED: &str = "answered";
/// Connections' time in queries.
const DATABASE_USE: &str = "database use";
/// Requests a second as a multiple of the queries a second that the database can do.
const AMPLIFICATION: &str = "amplification";
const WARM_UP: &str = "warm-up";

/// As published for cachex on the machine of its makers.
const PUBLISHED_CONSTRAINED: f64 = 695.0;
/// Requests that the cache had seen whose hot keys are saved: enough for nearly all keys to be in its sample.
const REQUESTS_BEFORE: u32 = 10_000_000;
/// As long as the published ones, unless a user wants another or it is to be quick.
pub(crate) const SECONDS: u32 = 10;

/// The scenario.
#[derive(Debug)]
pub(crate) struct ColdStart {
    /// Only what begins cold, without pauses.
    is_quick: bool,
}

impl ColdStart {
    pub(crate) fn new(is_quick: bool) -> Self {
        Self { is_quick }
    }
}

impl Scenario for ColdStart {
    fn name(&self) -> String {
        "cold-start".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "Callers, tasks on 2 worker threads or goroutines on 2 processors, search one of 10,000 products after the other: 80 % of \
             requests are\nfor 20 of them, 15 % for 180, 4 % for 800, 1 % for 50 that do not exist. The database is simulated: a \
             semaphore of connections and a\nfixed time a query. Traffic, settings and, with pauses of 1 ms after each request, \
             callers are those of a published benchmark of\ncachex, and cachex is set up as there (tasks' pauses end by a thread of \
             the lab's, as tokio's timer rounds them up). Without pauses the next\nrequest follows at once. Every request is timed; reading the clock twice is in it. Keys are texts. A run \
             ends when the\nlast request has.\nforebay: one key a query, as cachex. gathered: up to 100 keys a query, which takes 0.1 ms longer for \
             each. warm: after the {} hot\nkeys, saved by a cache that had seen such traffic, were fetched, which is not in the \
             figures.\nHit rate: requests less keys fetched. Amplification: requests/s ÷ queries of one key that the database can \
             answer a second (published:\n÷ those that it did answer). --quick: without pauses and warm starts, far shorter than \
             the published 10 s; single rows need those.",
            caches::HOT_KEYS
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![
            ("Go".to_owned(), go::version()),
            (CACHEX_MODULE.to_owned(), go::module_version(CACHEX_MODULE)),
        ]
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let go = Go::build_or_note(absent)?;
        Ok(trials(go.as_ref(), self.is_quick, stage.effort.meaningful))
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        goals()
    }
}

/// Without Go, what is not written in it.
fn trials(go: Option<&Rc<Go>>, is_quick: bool, is_meaningful: bool) -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for setting in SETTINGS {
        for pause in [None, Some(PAUSE)] {
            if is_quick && pause.is_some() {
                continue;
            }
            let mut add = |system, kind| {
                trials.push(Box::new(StartTrial {
                    system,
                    case: if pause.is_some() { setting.paused } else { setting.name },
                    setting: if is_meaningful { setting } else { setting.tiny() },
                    pause,
                    is_quick,
                    kind,
                }));
            };
            if let Some(go) = go {
                add(CACHEX, Kind::Go(Rc::clone(go)));
            }
            add(FOREBAY, Kind::Single { is_warm: false });
            if pause.is_some() {
                continue;
            }
            add(GATHERED, Kind::Gathered { is_warm: false });
            if !is_quick {
                add(WARM, Kind::Single { is_warm: true });
                add(GATHERED_WARM, Kind::Gathered { is_warm: true });
            }
        }
    }
    trials
}

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for case in SETTINGS.iter().flat_map(|setting| [setting.paused, setting.name]) {
        let mut ahead = |text: &str, metric, wanted| {
            goals.push(Goal {
                text: format!("{case}: {text} ÷ cachex's"),
                metric,
                ours: Key::new(FOREBAY, case),
                beside: Beside::Ratio(vec![Key::new(CACHEX, case)]),
                wanted,
            });
        };
        // Amplification is requests/s by another unit.
        ahead("requests/s", THROUGHPUT, Wanted::AtLeast(1.0));
        ahead("hit rate", HIT_RATE, Wanted::AtLeast(1.0));
        ahead("P50", LATENCY_P50, Wanted::AtMost(1.0));
        ahead("P95", LATENCY_P95, Wanted::AtMost(1.0));
        ahead("P99", LATENCY_P99, Wanted::AtMost(1.0));
        goals.push(alone(
            format!("{case}: answered"),
            ANSWERED,
            FOREBAY,
            case,
            Wanted::AtLeast(100.0),
        ));
    }
    let mut gathered = |text: &str, metric, wanted| {
        for system in [GATHERED, GATHERED_WARM] {
            let text = format!("{}, {system}: {text}", CONSTRAINED.name);
            goals.push(alone(text, metric, system, CONSTRAINED.name, wanted));
        }
    };
    gathered(
        "requests/s",
        THROUGHPUT,
        Wanted::AtLeast(1_000.0 * PUBLISHED_CONSTRAINED),
    );
    gathered("hit rate", HIT_RATE, Wanted::AtLeast(99.9));
    gathered("P99", LATENCY_P99, Wanted::AtMost(1_000.0));
    gathered("answered", ANSWERED, Wanted::AtLeast(100.0));
    goals
}

fn alone(text: String, metric: &'static str, system: &str, case: &str, wanted: Wanted) -> Goal {
    Goal {
        text,
        metric,
        ours: Key::new(system, case),
        beside: Beside::Nothing,
        wanted,
    }
}

enum Kind {
    Go(Rc<Go>),
    Single { is_warm: bool },
    Gathered { is_warm: bool },
}

struct StartTrial {
    system: &'static str,
    case: &'static str,
    setting: Setting,
    pause: Option<Duration>,
    is_quick: bool,
    kind: Kind,
}

impl Trial for StartTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let stage = &Stage {
            effort: Effort {
                duration: self.duration(stage.effort.duration),
                ..stage.effort
            },
            ..*stage
        };
        let setting = &self.setting;
        let (started, warm_up) = match &self.kind {
            Kind::Go(go) => {
                let arguments = setting.arguments(self.pause);
                (go.figures(2, setting.callers, &arguments, stage.effort.duration)?, None)
            }
            Kind::Single { is_warm } => self.start(*is_warm, stage, caches::single)?,
            Kind::Gathered { is_warm } => self.start(*is_warm, stage, caches::gathered)?,
        };
        readings(&started, setting, warm_up)
    }
}

impl StartTrial {
    /// Where few connections take long, the last requests take as long again as a quick turn.
    fn duration(&self, usual: Duration) -> Duration {
        if self.is_quick { usual * 2 / 3 } else { usual }
    }

    /// A turn in a runtime of its own, and how long warming took, if the start is to be warm.
    fn start<E: fmt::Display + Send + Sync + 'static>(
        &self,
        is_warm: bool,
        stage: &Stage<'_>,
        build: impl FnOnce(&Setting, &Arc<Database>) -> Cache<String, Arc<Product>, E>,
    ) -> Result<(Started, Option<Duration>), Failure> {
        let runtime: Runtime = two_workers()?;
        let setting = &self.setting;
        runtime.block_on(async {
            let traffic = Traffic::new();
            let database = Arc::new(Database::new(setting.connections, setting.latency));
            let cache = build(setting, &database);
            let mut warm_up = None;
            if is_warm {
                let requests = if stage.effort.meaningful {
                    REQUESTS_BEFORE
                } else {
                    REQUESTS_BEFORE / 100
                };
                let hot = caches::hot_keys(&traffic, requests, stage.folder).await?;
                let begun = Instant::now();
                let warmed = cache.warm(hot, |_| {}).await;
                warm_up = Some(begun.elapsed());
                if warmed.failed > 0 || warmed.done < warmed.keys {
                    return Err(Failure::Wrong(format!("not all hot keys were fetched: {warmed:?}")));
                }
            }
            let before = database.work();
            let searched = search::run(&cache, &traffic, setting.callers, self.pause, stage.effort.duration).await?;
            let work = database.work().since(before);
            let started = Started {
                requests: searched.requests,
                seconds: searched.seconds,
                errors: searched.errors,
                queries: work.queries,
                keys: work.keys,
                busy_seconds: work.busy.as_secs_f64(),
                p50_ns: searched.took.quantile_ns(0.50),
                p95_ns: searched.took.quantile_ns(0.95),
                p99_ns: searched.took.quantile_ns(0.99),
            };
            Ok((started, warm_up))
        })
    }
}

/// What a turn has shown; and what the peer in Go prints.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Started {
    requests: u64,
    seconds: f64,
    errors: u64,
    queries: u64,
    /// That the queries asked for.
    keys: u64,
    busy_seconds: f64,
    p50_ns: f64,
    p95_ns: f64,
    p99_ns: f64,
}

fn readings(started: &Started, setting: &Setting, warm_up: Option<Duration>) -> Result<Vec<Reading>, Failure> {
    if started.requests == 0 || started.keys < started.queries {
        return Err(Failure::Wrong(format!("these figures cannot be: {started:?}")));
    }
    let requests = started.requests as f64;
    let a_second = requests / started.seconds;
    let percent = |part: f64| part * 100.0;
    let mut readings = vec![
        Reading::new(THROUGHPUT, "requests/s", a_second),
        // Each fetch of a key is some request's, or was begun by one.
        Reading::new(HIT_RATE, "%", percent(1.0 - started.keys as f64 / requests)),
        Reading::new(LATENCY_P50, "µs", started.p50_ns / 1_000.0),
        Reading::new(LATENCY_P95, "µs", started.p95_ns / 1_000.0),
        Reading::new(LATENCY_P99, "µs", started.p99_ns / 1_000.0),
        Reading::new(ANSWERED, "%", percent(1.0 - started.errors as f64 / requests)),
        Reading::new(
            DATABASE_USE,
            "%",
            percent(started.busy_seconds / (f64::from(setting.connections) * started.seconds)),
        ),
        Reading::new(AMPLIFICATION, "×", a_second / setting.queries_a_second()),
    ];
    readings.extend(warm_up.map(|took| Reading::new(WARM_UP, "s", took.as_secs_f64())));
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_names_something_that_is_measured() {
        let trials = trials(None, false, true);
        for goal in goals() {
            // The peer in Go takes part only where Go is.
            for key in goal.keys().into_iter().filter(|key| key.system != CACHEX) {
                let measured = trials
                    .iter()
                    .any(|trial| trial.system() == key.system && trial.case() == key.case);
                assert!(measured, "{key:?}");
            }
        }
    }

    #[test]
    fn a_quick_run_has_every_setting() {
        let trials = trials(None, true, true);
        for setting in SETTINGS {
            let of = trials.iter().filter(|trial| trial.case() == setting.name);
            assert_eq!(
                of.map(|trial| trial.system().to_owned()).collect::<Vec<_>>(),
                [FOREBAY, GATHERED]
            );
        }
        assert_eq!(trials.len(), 2 * SETTINGS.len());
    }

    #[test]
    fn figures_are_what_they_are_called() {
        let started = Started {
            requests: 10_000,
            seconds: 10.0,
            errors: 100,
            queries: 50,
            keys: 500,
            busy_seconds: 40.0,
            p50_ns: 50.0,
            p95_ns: 500.0,
            p99_ns: 5_000.0,
        };
        let readings = |started: &Started| readings(started, &CONSTRAINED, Some(Duration::from_secs(2)));
        let figures: Vec<_> = readings(&started)
            .unwrap()
            .iter()
            .map(|reading| (reading.metric, (reading.value * 1_000.0).round() / 1_000.0))
            .collect();
        assert_eq!(
            figures,
            [
                (THROUGHPUT, 1_000.0),
                (HIT_RATE, 95.0),
                (LATENCY_P50, 0.05),
                (LATENCY_P95, 0.5),
                (LATENCY_P99, 5.0),
                (ANSWERED, 99.0),
                (DATABASE_USE, 50.0),
                (AMPLIFICATION, 23.75),
                (WARM_UP, 2.0),
            ]
        );
        assert!(readings(&Started { requests: 0, ..started }).is_err());
        assert!(readings(&Started { keys: 49, ..started }).is_err());
    }
}
