//! `writes-soak`: is any write lost or doubled when the database is killed again and again?
//!
//! Promises: every call's answer is held against the table in the end (see `judge`); one that is wrong fails the run. The
//! database is a real one with its own durability, killed with SIGKILL every few seconds and started again on the same data.
//!
//! How it is built: `database` starts, kills and reads it, `door` keeps one address for it, `traffic` writes.

mod database;
mod door;
mod judge;
mod traffic;

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::closed_loop::two_workers;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;
use database::Database;
pub(crate) use database::Killed;
use door::Door;
use judge::Verdict;

const CASE: &str = "300 callers, killed";
const WRONG: &str = "wrong outcomes";
const ACKNOWLEDGED: &str = "acknowledged";
const FAILED: &str = "failed";
const UNKNOWN: &str = "unknown";
const KILLS: &str = "kills";
const CUTS: &str = "cuts";
/// The longest that one caller was without an acknowledged write.
const OUTAGE: &str = "longest outage";

/// A full run, unless a user wants otherwise; and a quick one.
pub(crate) const SECONDS: u32 = 120;
pub(crate) const QUICK_SECONDS: u32 = 10;

/// It runs for so long between a start and a kill.
const CALM_MS: std::ops::Range<u64> = 500..5_000;
/// While it runs, all connections are cut after so long, again and again.
const CUT_AFTER_MS: std::ops::Range<u64> = 50..1_000;

/// The scenario, on one database.
#[derive(Debug)]
pub(crate) struct WritesSoak {
    killed: Killed,
    seed: u64,
}

impl WritesSoak {
    /// On this database, or on each; with that seed, or any.
    pub(crate) fn on(killed: Option<Killed>, seed: Option<u64>) -> Vec<Box<dyn Scenario>> {
        let seed = seed.unwrap_or_else(rand::random);
        let all = killed.map_or_else(|| vec![Killed::Postgres, Killed::Mariadb], |one| vec![one]);
        all.into_iter()
            .map(|killed| -> Box<dyn Scenario> { Box::new(Self { killed, seed }) })
            .collect()
    }
}

impl Scenario for WritesSoak {
    fn name(&self) -> String {
        match self.killed {
            Killed::Postgres => "writes-soak-postgres".to_owned(),
            Killed::Mariadb => "writes-soak-mariadb".to_owned(),
        }
    }

    fn about(&self) -> String {
        format!(
            "Seed {}. 300 callers on 2 worker threads write rows through one Writer and wait for each one's outcome; the server is \
             killed\n(SIGKILL) after {} to {} s each time, and started again on the same data; \
             all connections\nare cut now and then, and before half of the kills. One call in four is of \
             8 rows at once that keep their order by\na key; one row in ten is bad (a number that is there, a \
             place below 0). In the end the table is read: every acknowledged row must be in it once,\nunder the id \
             that its caller was told, every failed one not, one of unknown outcome once at most, rows of a key in their order.",
            self.seed,
            CALM_MS.start as f64 / 1e3,
            CALM_MS.end as f64 / 1e3,
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("server".to_owned(), database::version(self.killed))]
    }

    fn prepare(&self, stage: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        // So that what is missing is told before anything runs.
        drop(Database::start(self.killed, stage.folder)?);
        Ok(vec![Box::new(SoakTrial {
            killed: self.killed,
            seed: self.seed,
            turn: 0,
        })])
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        vec![Goal {
            text: format!("{}: {WRONG}", self.name()),
            metric: WRONG,
            ours: Key::new(FOREBAY, CASE),
            beside: Beside::Nothing,
            wanted: Wanted::AtMost(0.0),
        }]
    }
}

struct SoakTrial {
    killed: Killed,
    seed: u64,
    turn: u64,
}

impl Trial for SoakTrial {
    fn system(&self) -> &str {
        FOREBAY
    }

    fn case(&self) -> &str {
        CASE
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let seed = self.seed.wrapping_add(self.turn);
        self.turn += 1;
        let runtime = two_workers()?;
        let mut database = Database::start(self.killed, stage.folder)?;
        let door = runtime.block_on(Door::open(database.address()))?;
        runtime.block_on(database.make_table())?;
        let writer = runtime.block_on(database::writer(self.killed, door.address()))?;
        let until = Instant::now() + stage.effort.duration;
        let (written, ended) = std::thread::scope(|scope| {
            let killing = scope.spawn(|| kill_until(until, stage.effort.duration, seed, &mut database, &door));
            let written = runtime.block_on(traffic::write_until(until, &writer, self.killed, seed));
            let ended = killing.join().expect("it panics at nothing");
            ended.map(|ended| (written, ended))
        })?;
        if let Some(found) = runtime.block_on(database.own_check())? {
            return Err(Failure::Wrong(format!(
                "after {} kills the server's own check finds its table broken, and who broke it is not the writer: {found}",
                ended.kills
            )));
        }
        let rows = runtime.block_on(database.rows())?;
        let verdict = judge::judge(&written.calls, &rows);
        readings(&verdict, ended, written.outage, written.seconds)
    }
}

/// What was done to the server.
#[derive(Debug, Clone, Copy, Default)]
struct Ended {
    kills: u64,
    /// All connections at once.
    cuts: u64,
}

/// Kills the server and starts it again until the time is over, at least once.
fn kill_until(
    until: Instant,
    duration: Duration,
    seed: u64,
    database: &mut Database,
    door: &Door,
) -> Result<Ended, Failure> {
    let mut random = StdRng::seed_from_u64(seed);
    // Nobody ever sends on it: to wait on it is to sleep.
    let (_never, never) = std::sync::mpsc::channel::<()>();
    let mut ended = Ended::default();
    loop {
        let calm = Duration::from_millis(random.random_range(CALM_MS)).min(duration / 2);
        if ended.kills > 0 && Instant::now() + calm >= until {
            return Ok(ended);
        }
        let calm_until = Instant::now() + calm;
        loop {
            let wait = Duration::from_millis(random.random_range(CUT_AFTER_MS));
            let left = calm_until.saturating_duration_since(Instant::now());
            let _ = never.recv_timeout(wait.min(left));
            if wait >= left {
                break;
            }
            door.cut();
            ended.cuts += 1;
        }
        // PostgreSQL's processes end what they are at when the first of them is killed. Whose answers are cut off cannot know.
        if random.random_ratio(1, 2) {
            door.cut();
        }
        database.kill()?;
        ended.kills += 1;
        database.restart()?;
        door.lead_to(database.address());
    }
}

fn readings(verdict: &Verdict, ended: Ended, outage: Duration, seconds: f64) -> Result<Vec<Reading>, Failure> {
    if let Some(first) = verdict.wrong.first() {
        return Err(Failure::Wrong(format!(
            "{} outcomes of {} are wrong after {} kills and {} cuts; the first: {first}",
            verdict.wrong.len(),
            verdict.acknowledged + verdict.failed + verdict.unknown,
            ended.kills,
            ended.cuts,
        )));
    }
    Ok(vec![
        Reading::new(THROUGHPUT, "rows/s", verdict.acknowledged as f64 / seconds),
        Reading::new(WRONG, "rows", 0.0),
        Reading::new(ACKNOWLEDGED, "rows", verdict.acknowledged as f64),
        Reading::new(FAILED, "rows", verdict.failed as f64),
        Reading::new(UNKNOWN, "rows", verdict.unknown as f64),
        Reading::new(KILLS, "times", ended.kills as f64),
        Reading::new(CUTS, "times", ended.cuts as f64),
        Reading::new(OUTAGE, "s", outage.as_secs_f64()),
    ])
}
