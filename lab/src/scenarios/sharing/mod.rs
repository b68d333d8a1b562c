//! `sharing`: pgbench through a proxy whose clients share round trips and commits, beside the same proxy without sharing, another one,
//! and PostgreSQL itself.
//!
//! Promises: one PostgreSQL behind all, durable as it comes; the same pool for each proxy, the same script, clients and protocol mode. No
//! transaction failed, and the table has exactly the rows, or the sum, that pgbench's report makes of it. What the database spends is its
//! processes' own time on processors.

mod mixed;
mod trial;

use std::path::PathBuf;
use std::rc::Rc;

use self::mixed::{Mix, MixedTrial};
use self::trial::{DATABASE_TIME, SharingTrial};
use super::proxy::process;
use super::proxy::system::{PGBOUNCER, POOL, System, present};
use super::server::pgbench::{Load, Mode, Pgbench, Work};
use super::server::{build, postgres_version};
use crate::closed_loop::LATENCY_P99;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

const OFF: &str = "forebay, sharing off";
/// Of what pgbench reads and changes: a million rows, and ten branches.
const SCALE: u32 = 10;

/// A load, and what its rate is to be: beside the best of the others, and beside itself without sharing.
struct Case {
    load: Load,
    beside_best: Option<f64>,
    beside_off: Option<f64>,
    /// What the database is to spend on a transaction at most, beside what it spends straight.
    database_time: Option<f64>,
    /// Whether a PgBouncer before 1.21 can do it.
    is_for_pgbouncer: bool,
}

impl Case {
    const fn new(load: Load) -> Self {
        Self {
            load,
            beside_best: None,
            beside_off: None,
            database_time: None,
            is_for_pgbouncer: true,
        }
    }

    const fn beside_best(self, ratio: f64) -> Self {
        Self {
            beside_best: Some(ratio),
            ..self
        }
    }

    const fn beside_off(self, ratio: f64) -> Self {
        Self {
            beside_off: Some(ratio),
            ..self
        }
    }

    const fn database_time(self, ratio: f64) -> Self {
        Self {
            database_time: Some(ratio),
            ..self
        }
    }

    const fn prepared(self) -> Self {
        Self {
            is_for_pgbouncer: false,
            ..self
        }
    }
}

/// Of connections, for reads of which some take long.
const WIDE_POOL: usize = 100;

const TPC_B: &str = "TPC-B, 50 clients";

const CASES: [Case; 19] = [
    Case::new(Load::new("INSERT, 1 client", 1, Mode::Simple)).beside_off(0.98),
    // Where those who go alone become those who go together.
    Case::new(Load::new("INSERT, 18 clients, prepared", 18, Mode::Prepared))
        .beside_off(0.98)
        .prepared(),
    Case::new(Load::new("INSERT, 30 clients, prepared", 30, Mode::Prepared))
        .beside_off(0.98)
        .prepared(),
    Case::new(Load::new("INSERT, 50 clients", 50, Mode::Simple)).beside_best(1.5),
    Case::new(Load::new("INSERT, 50 clients, extended", 50, Mode::Extended)).beside_best(1.5),
    Case::new(Load::new("INSERT, 50 clients, prepared", 50, Mode::Prepared))
        .beside_best(1.5)
        .database_time(0.25)
        .prepared(),
    Case::new(Load::new("INSERT, 500 clients", 500, Mode::Simple)).beside_best(3.0),
    Case::new(Load::new("INSERT, 500 clients, extended", 500, Mode::Extended)).beside_best(3.0),
    Case::new(Load::new("INSERT, 500 clients, prepared", 500, Mode::Prepared))
        .beside_best(3.0)
        .database_time(0.25)
        .prepared(),
    Case::new(Load::new("UPDATE, 50 clients, prepared", 50, Mode::Prepared).of(Work::Update))
        .beside_best(1.5)
        .prepared(),
    Case::new(Load::new("UPDATE, 500 clients, prepared", 500, Mode::Prepared).of(Work::Update))
        .beside_best(2.5)
        .prepared(),
    Case::new(Load::new(TPC_B, 50, Mode::Simple).of(Work::TpcB)),
    Case::new(Load::new("SELECT, 1 client", 1, Mode::Simple).selecting()).beside_off(0.98),
    Case::new(Load::new("SELECT, 14 clients, prepared", 14, Mode::Prepared).selecting())
        .beside_off(0.98)
        .prepared(),
    Case::new(Load::new("SELECT, 50 clients", 50, Mode::Simple).selecting()).beside_best(1.5),
    Case::new(Load::new("SELECT, 50 clients, prepared", 50, Mode::Prepared).selecting())
        .beside_best(1.5)
        .database_time(0.5)
        .prepared(),
    Case::new(Load::new("SELECT, 500 clients", 500, Mode::Simple).selecting()).beside_best(2.0),
    Case::new(Load::new("SELECT, 500 clients, prepared", 500, Mode::Prepared).selecting())
        .beside_best(2.0)
        .database_time(0.5)
        .prepared(),
    Case::new(Load::new("SELECT by Zipf, 500 clients, prepared", 500, Mode::Prepared).of(Work::SelectZipf))
        .beside_best(2.0)
        .prepared(),
];

/// The scenario.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// The program to measure; none: the one that cargo builds.
    forebay: Option<PathBuf>,
}

impl Sharing {
    pub(crate) fn new(forebay: Option<PathBuf>) -> Self {
        Self { forebay }
    }
}

impl Scenario for Sharing {
    fn name(&self) -> String {
        "sharing".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "pgbench over loopback TCP, 2 pgbench threads, {POOL} server connections; clients, proxy and server share the machine.\n\
             SELECT: a row of 100,000 by its key (-S), or with keys by Zipf's law, exponent 1.001. INSERT: a row of a random value. UPDATE:\n\
             counts in a row of 100,000 by its key. TPC-B: pgbench's own transaction, 10 branches. The server has its own durability; a\n\
             checkpoint after each turn.\n\
             reads by key, INSERT, of which one in 100 is slow or refused: the lab's own clients, who look at each answer.\n\
             limit: PostgreSQL itself, a connection a client. {OFF}: the same program with --sharing=false.\n\
             {DATABASE_TIME}: of all of PostgreSQL's processes, user and system. A PgBouncer before 1.21 knows no prepared statements."
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![
            ("server".to_owned(), postgres_version()),
            ("driver".to_owned(), first_line_of("pgbench", &["--version"])),
            ("peer".to_owned(), first_line_of("/usr/sbin/pgbouncer", &["--version"])),
        ]
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        // What is started here is allowed as many.
        process::allow_files();
        let pgbench = Rc::new(Pgbench::find(stage.folder)?);
        let program = match &self.forebay {
            Some(program) => program.clone(),
            None => build()?,
        };
        let server = testbed::Postgres::builder()
            .folder_in(stage.folder)
            .setting("max_connections", "700")
            .start()?;
        let server = Rc::new(server);
        pgbench.fill(&server.url(), SCALE)?;
        let mut systems = vec![
            System::forebay(&program, &server)?,
            System::forebay_with(OFF, &program, &server, &["--sharing=false"])?,
            System::straight(&server),
        ];
        systems.extend(present(System::pgbouncer(server.address()), absent)?);
        let systems: Vec<Rc<System>> = systems.into_iter().map(Rc::new).collect();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for case in CASES {
            for system in systems
                .iter()
                .filter(|system| case.is_for_pgbouncer || system.name != PGBOUNCER)
            {
                trials.push(Box::new(SharingTrial {
                    system: Rc::clone(system),
                    server: Rc::clone(&server),
                    pgbench: Rc::clone(&pgbench),
                    load: case.load,
                }));
            }
        }
        let wide = |name, arguments: &[&str]| System::forebay_of(name, &program, &server, WIDE_POOL, arguments);
        let wide = [
            wide(FOREBAY, &[])?,
            wide(OFF, &["--sharing=false"])?,
            System::straight(&server),
        ]
        .map(Rc::new);
        for mix in Mix::ALL {
            let of = match mix {
                Mix::SlowReads => &wide[..],
                Mix::CleanRows | Mix::FailingRows => &systems[..3],
            };
            for system in of {
                trials.push(Box::new(MixedTrial {
                    system: Rc::clone(system),
                    server: Rc::clone(&server),
                    mix,
                }));
            }
        }
        Ok(trials)
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = Vec::new();
        let mut goal = |text: String, metric, case: &str, theirs: &[&str], wanted| {
            goals.push(Goal {
                text,
                metric,
                ours: Key::new(FOREBAY, case),
                beside: Beside::Ratio(theirs.iter().map(|system| Key::new(*system, case)).collect()),
                wanted,
            });
        };
        for case in CASES {
            let name = case.load.case;
            if let Some(ratio) = case.beside_best {
                let text = format!("{name}: transactions/s ÷ the best of the others");
                goal(text, THROUGHPUT, name, &[LIMIT, OFF, PGBOUNCER], Wanted::AtLeast(ratio));
            }
            if let Some(ratio) = case.beside_off {
                let text = format!("{name}: transactions/s ÷ sharing off");
                goal(text, THROUGHPUT, name, &[OFF], Wanted::AtLeast(ratio));
            }
            if let Some(ratio) = case.database_time {
                let text = format!("{name}: {DATABASE_TIME} ÷ straight");
                goal(text, DATABASE_TIME, name, &[LIMIT], Wanted::AtMost(ratio));
            }
        }
        let text = format!("{TPC_B}: transactions/s ÷ {PGBOUNCER}");
        goal(text, THROUGHPUT, TPC_B, &[PGBOUNCER], Wanted::AtLeast(1.0));
        let slow = Mix::SlowReads.case();
        let text = format!("{slow}: {LATENCY_P99} of the others ÷ sharing off");
        goal(text, LATENCY_P99, slow, &[OFF], Wanted::AtMost(1.1));
        let (clean, failing) = (Mix::CleanRows.case(), Mix::FailingRows.case());
        goals.push(Goal {
            text: format!("{failing}: transactions/s ÷ none is refused"),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, failing),
            beside: Beside::Ratio(vec![Key::new(FOREBAY, clean)]),
            wanted: Wanted::AtLeast(0.6),
        });
        goals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_name_cases_that_are_measured() {
        for goal in Sharing::new(None).goals() {
            for key in goal.keys() {
                let mut cases = CASES.iter().map(|case| case.load.case).chain(Mix::ALL.map(Mix::case));
                assert!(cases.any(|case| case == key.case));
            }
        }
    }
}
