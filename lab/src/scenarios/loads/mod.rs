//! `loads`: single rows by key out of a real database, every caller waiting for its own, beside pools of plain connections.
//!
//! Promises: every system asks the same query of the same filled table for keys drawn alike, and every value is checked. Nothing
//! remembers an answer: each load is read by the database, if together with others. Knows which cases there are; how each
//! database is spoken to is in a file of its own, behind [`Source`], which with the keys and values stands in `source`.

mod mariadb;
mod postgres;
mod source;

use std::rc::Rc;

use clap::ValueEnum;

use crate::closed_loop::{Words, run, two_workers};
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;
use source::Source;

/// A connection a caller: the pool that nobody ever waits for.
const UNBATCHED: &str = "unbatched";

const WORDS: Words = Words {
    a_second: "loads/s",
    of_each: "a load",
    bytes_of_each: "bytes/load",
    of_a_batch: "keys/fetch",
};

/// So many callers, and the pools beside Forebay.
struct Count {
    case: &'static str,
    callers: u32,
    /// What Forebay is to load at least, as a multiple of the best pool's.
    ratio_min: f64,
    /// Each by its name and its connections.
    pools: &'static [(&'static str, u32)],
}

const COUNTS: [Count; 4] = [
    Count {
        case: "1 caller",
        callers: 1,
        ratio_min: 0.97,
        pools: &[(UNBATCHED, 1)],
    },
    Count {
        case: "10 callers",
        callers: 10,
        ratio_min: 0.97,
        pools: &[(POOL_OF_4, 4), (UNBATCHED, 10)],
    },
    Count {
        case: "100 callers",
        callers: 100,
        ratio_min: 0.97,
        pools: &[(POOL_OF_4, 4), (POOL_OF_16, 16), (POOL_OF_50, 50)],
    },
    Count {
        case: MANY,
        callers: 1_000,
        ratio_min: 5.0,
        pools: &[(POOL_OF_4, 4), (POOL_OF_16, 16), (POOL_OF_50, 50)],
    },
];
const MANY: &str = "1,000 callers";
const POOL_OF_4: &str = "pool of 4";
const POOL_OF_16: &str = "pool of 16";
const POOL_OF_50: &str = "pool of 50";

/// The databases read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
}

/// The scenario, on one database.
#[derive(Debug)]
pub(crate) struct Loads {
    database: Database,
}

impl Loads {
    /// The scenario on that database; without one on each of them, one after another.
    pub(crate) fn on(database: Option<Database>) -> Vec<Box<dyn Scenario>> {
        let all = Database::value_variants();
        let databases = database.as_ref().map_or(all, std::slice::from_ref);
        let on = |database: &Database| -> Box<dyn Scenario> { Box::new(Self { database: *database }) };
        databases.iter().map(on).collect()
    }
}

impl Scenario for Loads {
    fn name(&self) -> String {
        let database = match self.database {
            Database::Postgres => "postgres",
            Database::Mariadb => "mariadb",
        };
        format!("loads-{database}")
    }

    fn about(&self) -> String {
        "Rows by primary key out of a table of 100,000, in memory, over loopback TCP, server and callers on the same machine. Callers \
         are tokio\ntasks on 2 worker threads; each loads the row of a key that is drawn anew, checks its value, and loads the next. \
         Forebay: a Loader with\nall limits at their defaults.\nunbatched: a prepared SELECT a row, each caller with a connection of \
         its own. pool of 4, 16, 50: as many connections, each for the\nsame share of the callers, who wait for it in turn."
            .to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        let server = match self.database {
            Database::Postgres => first_line_of("pg_config", &["--version"]),
            Database::Mariadb => first_line_of("mariadbd", &["--version"]),
        };
        vec![("server".to_owned(), server)]
    }

    fn prepare(&self, stage: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        match self.database {
            Database::Postgres => Ok(trials(&Rc::new(postgres::Server::start(stage)?))),
            Database::Mariadb => Ok(trials(&Rc::new(mariadb::Server::start(stage)?))),
        }
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks {
            limit: None,
            forebay: Some(Key::new(FOREBAY, MANY)),
        }
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |count: &Count| Goal {
            text: format!("{} ÷ the best pool", count.case),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, count.case),
            beside: Beside::Ratio(
                count
                    .pools
                    .iter()
                    .map(|(name, _)| Key::new(*name, count.case))
                    .collect(),
            ),
            wanted: Wanted::AtLeast(count.ratio_min),
        };
        COUNTS.iter().map(goal).collect()
    }
}

/// What reads in a trial.
#[derive(Clone, Copy)]
enum Reader {
    Forebay,
    Pool(u32),
}

fn trials<S: Source>(source: &Rc<S>) -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for count in &COUNTS {
        let pools = count.pools.iter().map(|&(name, size)| (name, Reader::Pool(size)));
        for (system, reader) in pools.chain([(FOREBAY, Reader::Forebay)]) {
            trials.push(Box::new(LoadsTrial {
                source: Rc::clone(source),
                system,
                count,
                reader,
            }));
        }
    }
    trials
}

struct LoadsTrial<S> {
    source: Rc<S>,
    system: &'static str,
    count: &'static Count,
    reader: Reader,
}

impl<S: Source> Trial for LoadsTrial<S> {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.count.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = two_workers()?;
        // What is dropped here may have to tell its server.
        let _inside = runtime.enter();
        let (callers, duration) = (self.count.callers, stage.effort.duration);
        let seen = match self.reader {
            Reader::Forebay => {
                let forebay = runtime.block_on(self.source.loader())?;
                let seen = run(&runtime, &forebay, callers, None, duration)?;
                let stats = forebay.stats();
                let shared = stats.loads as f64 / stats.fetches as f64;
                return Ok([
                    seen.readings(&WORDS),
                    vec![Reading::new("shared by a fetch", "keys", shared)],
                ]
                .concat());
            }
            Reader::Pool(connections) => {
                let pool = runtime.block_on(self.source.pool(connections))?;
                run(&runtime, &pool, callers, None, duration)?
            }
        };
        Ok(seen.readings(&WORDS))
    }
}
