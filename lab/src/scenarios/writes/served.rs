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
    BY_HAND, COUNTS, MANY, MANY_BAD, MANY_UNIQUE, ONE, SHARED, Written, at_least, callers, many, many_bad, now_ms,
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

/// Prepared single rows, a connection a caller: the pool of connections that nobody ever waits for.
const UNBATCHED: &str = "unbatched";
const MANY_RETURNING: &str = "10,000 callers, RETURNING id";
const MANY_BAD_RETURNING: &str = "10,000 callers, unique column, 1 % bad, RETURNING id";
const MANY_BY_CALLER: &str = "10,000 callers, ordered by caller";

/// How many connections may each have a caller that inserts row by row; the best of them is the peer.
const CONNECTIONS: [(&str, u32); 4] = [(ONE, 1), ("10 callers", 10), ("50 callers", 50), ("100 callers", 100)];

/// More than a turn opens while those of the turn before are still being closed.
pub(super) const CONNECTIONS_MAX: &str = "300";

/// A running server with the table of the scenario. All of it is called within a tokio runtime.
pub(super) trait Served: 'static {
    /// What writes in bulk with nobody to answer. The first is the limit, by its case; others are shown beside it.
    const BULKS: &'static [Bulk];
    /// How a row is inserted.
    const INSERT: Statement;
    /// How a row is inserted so that its caller is told its id, if `INSERT` does not tell it.
    const INSERT_RETURNING: Option<Statement>;

    /// A connection for each of so many callers, the statement prepared on it.
    type Unbatched: Insert;

    /// Makes the table anew, and leaves the server nothing to do for what was in it.
    async fn renew(&self, unique: bool) -> Result<(), Failure>;

    /// What is in the table: id, value, created_at.
    async fn rows(&self) -> Result<Vec<(i64, i64, i64)>, Failure>;

    /// How many rows are in the table, and the sum of their values.
    async fn sum(&self) -> Result<(i64, i64), Failure>;

    /// Writes in bulk for that long, values 0, 1, 2, …
    async fn bulk(&self, bulk: &Bulk, effort: Effort, created_at: i64) -> Result<Written, Failure>;

    async fn unbatched(&self, connections: u32) -> Result<Self::Unbatched, Failure>;

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
    for (case, count) in CONNECTIONS {
        trials.push(trial(UNBATCHED, case, false, Kind::Unbatched(callers(count, ids))));
    }
    trials.push(trial(BY_HAND, MANY, false, Kind::ByHand(many(ids))));
    trials.push(trial(BY_HAND, MANY_BAD, true, Kind::ByHand(many_bad(ids))));
    let forebay = |case, unique, callers| trial(FOREBAY, case, unique, Kind::Forebay(asked::<S>(callers)));
    for (case, count) in COUNTS {
        trials.push(forebay(case, false, callers(count, ids)));
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

/// What is hoped for; `others` insert row by row, too.
pub(super) fn goals<S: Served>(others: &[Key]) -> Vec<Goal> {
    let unbatched = CONNECTIONS.map(|(case, _)| Key::new(UNBATCHED, case));
    let unbatched = unbatched.into_iter().chain(others.iter().cloned()).collect();
    let limit = limit::<S>();
    let of_limit = format!("10,000 callers ÷ {}", limit.case);
    vec![
        at_least(&of_limit, MANY, vec![limit], 0.5),
        at_least("10,000 callers ÷ best unbatched", MANY, unbatched, 8.0),
        with_bad_rows(),
        Goal {
            text: "1 caller ÷ the same statement without Forebay, median latency".to_owned(),
            metric: LATENCY_P50,
            ours: Key::new(FOREBAY, ONE),
            beside: Beside::Ratio(vec![Key::new(UNBATCHED, ONE)]),
            wanted: Wanted::AtMost(1.1),
        },
    ]
}

/// How a trial writes.
enum Kind {
    Bulk(&'static Bulk),
    Unbatched(Callers),
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
            Kind::Unbatched(callers) => {
                let unbatched = runtime.block_on(server.unbatched(callers.count))?;
                call.checked(*callers, &unbatched, server)
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
