//! The cases on a database that is reached over the network, one server for a whole run, and how a turn of each goes.
//!
//! Promises: every turn has a new table; whoever writes has its connections, and its statement prepared, before the clock
//! starts; every row is read back over a connection of the lab's own and held against what its caller was told. Knows no
//! database: each is behind [`Served`].

use std::rc::Rc;
use std::time::Duration;

use forebay::write::Writer;
use tokio::runtime::Runtime;

use super::by_hand::ByHand;
use super::cases::{
    BY_HAND, MANY, MANY_BAD, MANY_COUNT, MANY_UNIQUE, ONE, SHARED, Written, at_least, callers, many, many_bad, now_ms,
    two_workers, with_bad_rows,
};
use super::forebay::{Forebay, Id, Statement};
use crate::callers::{Callers, Insert, LATENCY_P50};
use crate::effort::Effort;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial, Yardsticks};
use crate::stopwatch::PROCESSOR;

/// Prepared single rows, a connection a caller: the pool of connections that nobody ever waits for.
const UNBATCHED: &str = "unbatched";
const MANY_RETURNING: &str = "10,000 callers, RETURNING id";
const MANY_BAD_RETURNING: &str = "10,000 callers, unique column, 1 % bad, RETURNING id";
const MANY_BY_CALLER: &str = "10,000 callers, ordered by caller";

/// So many callers on a plain table, and what writes row by row beside Forebay.
struct Count {
    case: &'static str,
    callers: u32,
    /// What Forebay is to write at least, as a multiple of the best pool's rows.
    ratio_min: f64,
    /// Pools of so many connections. Where that is as many as there are callers, nobody waits.
    pools: &'static [u32],
}

const COUNTS: [Count; 9] = [
    Count::new(ONE, 1, 0.97, &[1]),
    Count::new("2 callers", 2, 0.97, &[2]),
    Count::new("4 callers", 4, 0.97, &[4]),
    Count::new("10 callers", 10, 0.97, &[10]),
    Count::new("20 callers", 20, 0.97, &[10, 20]),
    Count::new("50 callers", 50, 1.5, &[20, 50]),
    Count::new("100 callers", 100, 2.5, &[20, 50, 100]),
    Count::new("1,000 callers", 1_000, 2.5, &[20, 50, 100]),
    Count::new(MANY, MANY_COUNT, 2.5, &[50, 100]),
];

impl Count {
    const fn new(case: &'static str, callers: u32, ratio_min: f64, pools: &'static [u32]) -> Self {
        Self {
            case,
            callers,
            ratio_min,
            pools,
        }
    }

    /// What a pool of that size is called here.
    fn pool(&self, connections: u32) -> &'static str {
        match connections {
            _ if connections == self.callers => UNBATCHED,
            10 => "pool of 10",
            20 => "pool of 20",
            50 => "pool of 50",
            100 => "pool of 100",
            _ => unreachable!("no case has a pool of {connections}"),
        }
    }

    /// All that writes row by row.
    fn row_by_row(&self) -> Vec<Key> {
        let pools = self.pools.iter();
        pools
            .map(|&connections| Key::new(self.pool(connections), self.case))
            .collect()
    }
}

/// More than a turn opens while those of the turn before are still being closed.
pub(super) const CONNECTIONS_MAX: &str = "300";

/// A running server with the table of the scenario. All of it is called within a tokio runtime.
pub(super) trait Served: 'static {
    /// What writes in bulk with nobody to answer. The first is the limit, by its case; others are shown beside it.
    const BULKS: &'static [Bulk];
    /// What share of the limit's rows 10,000 callers are to write.
    const OF_LIMIT: f64;
    /// How a row is inserted.
    const INSERT: Statement;
    /// How a row is inserted so that its caller is told its id, if `INSERT` does not tell it.
    const INSERT_RETURNING: Option<Statement>;

    /// So many connections, the statement prepared on each, shared by all callers.
    type Pool: Insert;

    /// Makes the table anew, and leaves the server nothing to do for what was in it.
    async fn renew(&self, unique: bool) -> Result<(), Failure>;

    /// What is in the table: id, value, created_at.
    async fn rows(&self) -> Result<Vec<(i64, i64, i64)>, Failure>;

    /// How many rows are in the table, and the sum of their values.
    async fn sum(&self) -> Result<(i64, i64), Failure>;

    /// Writes in bulk for that long, values 0, 1, 2, …
    async fn bulk(&self, bulk: &Bulk, effort: Effort, created_at: i64) -> Result<Written, Failure>;

    async fn pool(&self, connections: u32) -> Result<Self::Pool, Failure>;

    /// A task that takes what waits, writes it statement by statement in one transaction, and answers each caller.
    async fn by_hand(&self) -> Result<ByHand, Failure>;

    /// Forebay, connected, with all limits at their defaults.
    async fn writer(&self) -> Result<Writer, Failure>;
}

/// A way to write in bulk.
#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) system: &'static str,
    pub(super) case: &'static str,
}

/// Everything that takes part.
pub(super) fn trials<S: Served>(server: &Rc<S>) -> Vec<Box<dyn Trial>> {
    let trial = |system, case, unique, kind| -> Box<dyn Trial> {
        Box::new(ServedTrial {
            server: Rc::clone(server),
            system,
            case,
            unique,
            kind,
        })
    };
    let ids = S::INSERT.id != Id::Untold;
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for bulk in S::BULKS {
        trials.push(trial(bulk.system, bulk.case, false, Kind::Bulk(bulk)));
    }
    for count in &COUNTS {
        for &connections in count.pools {
            let callers = callers(count.callers, ids);
            let kind = Kind::RowByRow { callers, connections };
            trials.push(trial(count.pool(connections), count.case, false, kind));
        }
    }
    trials.push(trial(BY_HAND, MANY, false, Kind::ByHand(many(ids))));
    trials.push(trial(BY_HAND, MANY_BAD, true, Kind::ByHand(many_bad(ids))));
    let forebay = |case, unique, callers| trial(FOREBAY, case, unique, Kind::Forebay(asked::<S>(callers)));
    for count in &COUNTS {
        trials.push(forebay(count.case, false, callers(count.callers, ids)));
    }
    let by_caller = Asked {
        by_caller: true,
        ..asked::<S>(many(ids))
    };
    trials.push(trial(FOREBAY, MANY_BY_CALLER, false, Kind::Forebay(by_caller)));
    trials.push(forebay(MANY_UNIQUE, true, many(ids)));
    trials.push(forebay(MANY_BAD, true, many_bad(ids)));
    if S::INSERT_RETURNING.is_some() {
        trials.push(forebay(MANY_RETURNING, false, many(true)));
        trials.push(forebay(MANY_BAD_RETURNING, true, many_bad(true)));
    }
    trials
}

fn asked<S: Served>(callers: Callers) -> Asked {
    let returning = S::INSERT_RETURNING.filter(|_| callers.ids);
    Asked {
        callers,
        statement: returning.unwrap_or(S::INSERT),
        by_caller: false,
    }
}

pub(super) fn yardsticks<S: Served>() -> Yardsticks {
    Yardsticks {
        limit: Some(limit::<S>()),
        forebay: Some(Key::new(FOREBAY, MANY)),
    }
}

fn limit<S: Served>() -> Key {
    let bulk = &S::BULKS[0];
    assert_eq!(bulk.system, LIMIT, "the first is the limit");
    Key::new(bulk.system, bulk.case)
}

/// For `map_err`: a server that is not installed is absent, all else is wrong.
pub(super) fn absent(what: &'static str) -> impl FnOnce(testbed::Error) -> Failure {
    move |error| match error {
        testbed::Error::NotInstalled { .. } => Failure::Absent {
            what: what.to_owned(),
            cause: error.to_string(),
            remedy: "the other databases can be measured without it".to_owned(),
        },
        error => error.into(),
    }
}

/// What is hoped for: sharing never costs, and pays where many share. `others` insert row by row, too.
pub(super) fn goals<S: Served>(others: &[Key]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for count in &COUNTS {
        let text = format!("{} ÷ the best pool", count.case);
        goals.push(at_least(&text, count.case, count.row_by_row(), count.ratio_min));
    }
    let limit = limit::<S>();
    let of_limit = format!("10,000 callers ÷ {}", limit.case);
    goals.push(at_least(&of_limit, MANY, vec![limit], S::OF_LIMIT));
    let pools = COUNTS.iter().flat_map(Count::row_by_row);
    let all = pools.chain(others.iter().cloned()).collect();
    goals.push(at_least(
        "10,000 callers ÷ the best row by row, of any number of callers",
        MANY,
        all,
        8.0,
    ));
    goals.push(with_bad_rows());
    let beside_the_client = |what: &str, metric, most| Goal {
        text: format!("1 caller ÷ the same statement without Forebay, {what}"),
        metric,
        ours: Key::new(FOREBAY, ONE),
        beside: Beside::Ratio(COUNTS[0].row_by_row()),
        wanted: Wanted::AtMost(most),
    };
    goals.push(beside_the_client("median latency", LATENCY_P50, 1.05));
    goals.push(beside_the_client("processor time a row", PROCESSOR, 1.1));
    goals
}

/// How a trial writes.
enum Kind {
    Bulk(&'static Bulk),
    /// By a pool of so many connections.
    RowByRow {
        callers: Callers,
        connections: u32,
    },
    ByHand(Callers),
    Forebay(Asked),
}

/// What Forebay is asked, and by whom.
#[derive(Clone, Copy)]
struct Asked {
    callers: Callers,
    statement: Statement,
    by_caller: bool,
}

struct ServedTrial<S> {
    server: Rc<S>,
    system: &'static str,
    case: &'static str,
    /// Whether the table's values must differ.
    unique: bool,
    kind: Kind,
}

impl<S: Served> Trial for ServedTrial<S> {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let server = &*self.server;
        let runtime = two_workers()?;
        // What is dropped here may have to tell its server.
        let _inside = runtime.enter();
        runtime.block_on(server.renew(self.unique))?;
        let created_at = now_ms();
        let call = Call {
            runtime: &runtime,
            created_at,
            duration: stage.effort.duration,
        };
        match &self.kind {
            Kind::Bulk(bulk) => runtime.block_on(async {
                let written = server.bulk(bulk, stage.effort, created_at).await?;
                written.verify(server.sum().await?)
            }),
            Kind::RowByRow { callers, connections } => {
                let pool = runtime.block_on(server.pool(*connections))?;
                call.checked(*callers, &pool, server)
            }
            Kind::ByHand(callers) => {
                let by_hand = runtime.block_on(server.by_hand())?;
                call.checked(*callers, &by_hand, server)
            }
            Kind::Forebay(asked) => {
                let forebay = Forebay {
                    writer: runtime.block_on(server.writer())?,
                    statement: asked.statement,
                    by_caller: asked.by_caller,
                };
                let mut readings = call.checked(asked.callers, &forebay, server)?;
                readings.push(Reading::new(SHARED, "rows", forebay.rows_a_commit()));
                Ok(readings)
            }
        }
    }
}

/// A turn in which callers call.
struct Call<'a> {
    runtime: &'a Runtime,
    created_at: i64,
    duration: Duration,
}

impl Call<'_> {
    /// Lets them call, and holds what they were told against the table.
    fn checked(&self, callers: Callers, system: &impl Insert, server: &impl Served) -> Result<Vec<Reading>, Failure> {
        let told = callers.run(self.runtime, system, self.created_at, self.duration)?;
        let rows = self.runtime.block_on(server.rows())?;
        told.verify(rows.into_iter().map(Ok))?;
        Ok(told.readings())
    }
}
