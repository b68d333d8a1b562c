//! `http-writes`: a web service that writes a row a request, under ApacheBench: the whole way of a write as a visitor sees it.
//!
//! Promises: one service, one table, one disk; only the way to the database differs. Nothing counts that was not acknowledged
//! and then found in the database: each answered request is there exactly once. Knows which systems and cases there are; how
//! ab is run and read is in `apache_bench`, the service is `examples/web`.

mod apache_bench;
mod database;
mod service;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use apache_bench::{ApacheBench, FAILED, Load, MEDIAN, P99, SLOWEST, Summary};
use database::{Database, Kind};
use service::Service;

use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

const POOL: &str = "pool";
const UNPOOLED: &str = "a connection a request";

/// Systems, and the service's routes to them.
const SYSTEMS: [(&str, &str); 4] = [
    (LIMIT, "/unwritten"),
    (FOREBAY, "/batched"),
    (POOL, "/unbatched"),
    (UNPOOLED, "/unpooled"),
];

const HUNDRED: Load = Load {
    name: "100 concurrent",
    concurrent: 100,
    keep_alive: false,
};
const FIVE_HUNDRED: Load = Load {
    name: "500 concurrent",
    concurrent: 500,
    keep_alive: false,
};
const KEPT: Load = Load {
    name: "100 concurrent, keep-alive",
    concurrent: 100,
    keep_alive: true,
};
const LOADS: [Load; 3] = [HUNDRED, FIVE_HUNDRED, KEPT];

/// Requests in a turn: as published, unless the run is quick or tiny.
const REQUESTS: u32 = 10_000;
const REQUESTS_QUICK: u32 = 1_000;
const REQUESTS_TINY: u32 = 120;
/// Answers from which on a service counts as collapsed: the published one failed 18 % of its requests.
const COLLAPSED_FAILED_PERCENT: f64 = 1.0;

/// The scenario.
#[derive(Debug)]
pub(crate) struct HttpWrites {
    /// The service to measure; none: the one that cargo builds.
    web: Option<PathBuf>,
    is_quick: bool,
}

impl HttpWrites {
    pub(crate) fn new(web: Option<PathBuf>, is_quick: bool) -> Self {
        Self { web, is_quick }
    }
}

fn case(kind: Kind, load: Load) -> String {
    format!("{}, {}", kind.name(), load.name)
}

impl Scenario for HttpWrites {
    fn name(&self) -> String {
        "http-writes".to_owned()
    }

    fn about(&self) -> String {
        "ApacheBench over loopback TCP, an INSERT of one row a request into a new table; ab and the database share the machine \
         with the service.\nA connection a request, as in the published figures; keep-alive is a case of its own. \
         The database has its own default durability.\nforebay: the example's /batched, requests share commits. \
         pool: the same service's /unbatched, a commit a request, prepared statements on connections that stay open. \
         a connection a request: its /unpooled, which opens and closes one. \
         limit: its /unwritten, which does all but write.\nEach request that was answered with 200 must be in the table exactly once."
            .to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        let databases = Kind::ALL.map(|kind| (kind.name().to_owned(), kind.version()));
        [("driver".to_owned(), apache_bench::version())]
            .into_iter()
            .chain(databases)
            .collect()
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let ab = Rc::new(ApacheBench::find(stage.folder)?);
        let program = match &self.web {
            Some(program) => program.clone(),
            None => service::build()?,
        };
        let requests = match (stage.effort.meaningful, self.is_quick) {
            (false, _) => REQUESTS_TINY,
            (true, true) => REQUESTS_QUICK,
            (true, false) => REQUESTS,
        };
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for kind in Kind::ALL {
            let database = match Database::start(kind, stage.folder) {
                Ok(database) => database,
                Err(missed @ Failure::Absent { .. }) => {
                    absent.push(missed);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let served = Rc::new(Served {
                service: Service::start(&program, &database.url())?,
                database,
                turns: Cell::new(0),
            });
            for load in LOADS {
                for (system, route) in SYSTEMS {
                    trials.push(Box::new(WebTrial {
                        system,
                        route,
                        case: case(kind, load),
                        load,
                        requests,
                        served: Rc::clone(&served),
                        ab: Rc::clone(&ab),
                    }));
                }
            }
        }
        Ok(trials)
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        Kind::ALL.into_iter().flat_map(goals_on).collect()
    }
}

fn goals_on(kind: Kind) -> Vec<Goal> {
    let goal = |what: &str, load, metric, beside, wanted| Goal {
        text: format!("{}: {what}", case(kind, load)),
        metric,
        ours: Key::new(FOREBAY, case(kind, load)),
        beside,
        wanted,
    };
    let key = |system, load| Key::new(system, case(kind, load));
    let mut goals = Vec::new();
    for load in [HUNDRED, FIVE_HUNDRED] {
        for system in [POOL, UNPOOLED] {
            goals.push(goal(
                &format!("requests/s ÷ {system}"),
                load,
                THROUGHPUT,
                Beside::Ratio(vec![key(system, load)]),
                Wanted::AtLeast(3.0),
            ));
        }
        goals.push(goal("failed", load, FAILED, Beside::Nothing, Wanted::AtMost(0.0)));
    }
    goals.push(goal(
        "requests/s ÷ a service that fails requests",
        FIVE_HUNDRED,
        THROUGHPUT,
        Beside::RatioWhere {
            metric: FAILED,
            at_least: COLLAPSED_FAILED_PERCENT,
            theirs: vec![key(POOL, FIVE_HUNDRED), key(UNPOOLED, FIVE_HUNDRED)],
        },
        Wanted::AtLeast(15.0),
    ));
    goals.push(goal(
        "P99 ÷ the pool's P50",
        HUNDRED,
        P99,
        Beside::RatioToMetric(MEDIAN, key(POOL, HUNDRED)),
        Wanted::AtMost(1.0),
    ));
    goals.push(goal(
        "slowest ÷ median",
        FIVE_HUNDRED,
        SLOWEST,
        Beside::Nothing,
        Wanted::AtMost(5.0),
    ));
    goals
}

/// The service on one of the databases.
struct Served {
    // Stopped before its database: fields are dropped in this order.
    service: Service,
    database: Database,
    turns: Cell<u32>,
}

struct WebTrial {
    system: &'static str,
    route: &'static str,
    case: String,
    load: Load,
    requests: u32,
    served: Rc<Served>,
    ab: Rc<ApacheBench>,
}

impl Trial for WebTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        &self.case
    }

    fn measure(&mut self, _: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let Served {
            service,
            database,
            turns,
        } = &*self.served;
        // A value of its own in each turn, so that a row of a request that was given up before is not taken for one of this.
        let turn = turns.get() + 1;
        turns.set(turn);
        database.empty()?;
        database.settle()?;
        let address = service.address(self.route, turn);
        let summary = self.ab.run(&address, self.requests, self.load)?;
        let rows = database.count(turn)?;
        check(self.system, &summary, u64::from(self.requests), rows)?;
        Ok(summary.readings())
    }
}

/// Holds what ab was told against what the table has.
fn check(system: &str, summary: &Summary, requests: u64, (all, of_this_turn): (u64, u64)) -> Result<(), Failure> {
    let answered = summary.answered();
    let is_right = match system {
        LIMIT => answered == requests && all == 0,
        // A request that failed may have been written or not, and ab does not tell what its error said.
        _ => (answered..=requests).contains(&of_this_turn) && all == of_this_turn && answered > 0,
    };
    if is_right {
        return Ok(());
    }
    Err(Failure::Wrong(format!(
        "of {requests} requests {answered} were answered, {} failed; the table has {all} rows, {of_this_turn} of this turn",
        summary.failed(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_surplus_rows_are_seen() {
        let summary = |complete, refused| Summary::of(complete, refused);
        let is_right = |system, summary, rows| check(system, &summary, 10, rows).is_ok();
        assert!(is_right(FOREBAY, summary(10, 0), (10, 10)));
        assert!(!is_right(FOREBAY, summary(10, 0), (9, 9)), "a row was lost");
        assert!(!is_right(FOREBAY, summary(10, 0), (11, 11)), "a row is there twice");
        assert!(!is_right(FOREBAY, summary(10, 0), (11, 10)), "a row is of another turn");
        assert!(is_right(POOL, summary(10, 2), (8, 8)));
        assert!(
            is_right(POOL, summary(10, 2), (10, 10)),
            "an error may have been written"
        );
        assert!(!is_right(POOL, summary(10, 2), (7, 7)));
        assert!(!is_right(POOL, summary(10, 10), (0, 0)), "nothing was measured");
        assert!(is_right(LIMIT, summary(10, 0), (0, 0)));
        assert!(!is_right(LIMIT, summary(10, 0), (1, 1)));
        assert!(!is_right(LIMIT, summary(10, 1), (0, 0)));
    }

    #[test]
    fn goals_name_cases_that_are_measured() {
        let cases: Vec<String> = Kind::ALL
            .iter()
            .flat_map(|kind| LOADS.map(|load| case(*kind, load)))
            .collect();
        for goal in HttpWrites::new(None, false).goals() {
            for key in goal.keys() {
                assert!(cases.contains(&key.case), "{}", key.case);
                assert!(
                    SYSTEMS.iter().any(|(system, _)| *system == key.system),
                    "{}",
                    key.system
                );
            }
        }
    }
}
