//! `proxy`: pgbench straight at a PostgreSQL, and through what stands in front of it.
//!
//! Promises: one PostgreSQL behind all, the same pool for each proxy, the same script, clients and protocol mode; no transaction
//! failed, and the table has exactly the rows that pgbench reported. What a proxy costs is its process's own time on processors.

mod idle;
mod process;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use self::idle::{IDLE, IdleTrial, MEMORY};
use super::server::pgbench::{Load, Mode, Pgbench, Work};
use super::server::{build, check, postgres_version};
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

const PGBOUNCER: &str = "PgBouncer";
/// The server connections of each proxy.
const POOL: usize = 20;
/// Of what pgbench reads: 100,000 rows.
const SCALE: u32 = 1;
const PROCESSOR_TIME: &str = "processor time a transaction";
const LATENCY: &str = "latency mean";

const LOADS: [Load; 12] = [
    Load::new("SELECT, 1 client", 1, Mode::Simple).selecting(),
    Load::new("SELECT, 10 clients", 10, Mode::Simple).selecting(),
    Load::new("SELECT, 50 clients", 50, Mode::Simple).selecting(),
    Load::new("SELECT, 500 clients", 500, Mode::Simple).selecting(),
    Load::new("INSERT, 1 client", 1, Mode::Simple),
    Load::new("INSERT, 10 clients", 10, Mode::Simple),
    Load::new("INSERT, 50 clients", 50, Mode::Simple),
    Load::new("INSERT, 500 clients", 500, Mode::Simple),
    Load::new("SELECT, 50 clients, extended", 50, Mode::Extended).selecting(),
    Load::new("INSERT, 50 clients, extended", 50, Mode::Extended),
    PREPARED[0],
    PREPARED[1],
];
/// What a PgBouncer before 1.21 cannot do by transaction.
const PREPARED: [Load; 2] = [
    Load::new("SELECT, 50 clients, prepared", 50, Mode::Prepared).selecting(),
    Load::new("INSERT, 50 clients, prepared", 50, Mode::Prepared),
];

/// The scenario.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// The program to measure; none: the one that cargo builds.
    forebay: Option<PathBuf>,
}

impl Proxy {
    pub(crate) fn new(forebay: Option<PathBuf>) -> Self {
        Self { forebay }
    }
}

impl Scenario for Proxy {
    fn name(&self) -> String {
        "proxy".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "pgbench over loopback TCP, 2 pgbench threads, {POOL} server connections; clients, proxy and server share the machine.\n\
             SELECT: a row of 100,000 by its key (-S). INSERT: a row of a random value; the server's synchronous_commit is off, so that\n\
             the proxy is measured and not the disk; a checkpoint after each turn.\n\
             limit: PostgreSQL itself, a connection a client (at 500 clients that is not what anybody should have).\n\
             {PROCESSOR_TIME}: of the proxy's process alone, user and system. {IDLE}: resident memory of the proxy beyond what it has\n\
             without, for each of them, after each has had a statement answered."
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
        let pgbench = Rc::new(Pgbench::find(stage.folder)?);
        let program = match &self.forebay {
            Some(program) => program.clone(),
            None => build()?,
        };
        let server = testbed::Postgres::builder()
            .folder_in(stage.folder)
            .setting("max_connections", "600")
            .setting("synchronous_commit", "off")
            .start()?;
        let server = Rc::new(server);
        pgbench.fill(&server.url(), SCALE)?;
        let mut systems = vec![
            System::forebay(&program, &server)?,
            System {
                name: LIMIT,
                url: server.url(),
                process: None,
                _running: None,
            },
        ];
        match System::pgbouncer(server.address()) {
            Ok(system) => systems.push(system),
            Err(missed @ Failure::Absent { .. }) => absent.push(missed),
            Err(failure) => return Err(failure),
        }
        let systems: Vec<Rc<System>> = systems.into_iter().map(Rc::new).collect();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for load in LOADS {
            let is_prepared = PREPARED.iter().any(|prepared| prepared.case == load.case);
            for system in systems
                .iter()
                .filter(|system| !(is_prepared && system.name == PGBOUNCER))
            {
                trials.push(Box::new(LoadTrial {
                    system: Rc::clone(system),
                    server: Rc::clone(&server),
                    pgbench: Rc::clone(&pgbench),
                    load,
                }));
            }
        }
        for system in &systems {
            if let Some(process) = system.process {
                trials.push(Box::new(IdleTrial::new(system.name, &system.url, process)));
            }
        }
        Ok(trials)
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |text: String, metric, case: &str, beside, wanted| Goal {
            text,
            metric,
            ours: Key::new(FOREBAY, case),
            beside,
            wanted,
        };
        let beside = |case: &str| Beside::Ratio(vec![Key::new(PGBOUNCER, case)]);
        let mut goals = Vec::new();
        for load in &LOADS[..8] {
            let ratio_min = if load.clients == 1 { 1.0 } else { 1.1 };
            let text = format!("{}: transactions/s ÷ {PGBOUNCER}", load.case);
            goals.push(goal(
                text,
                THROUGHPUT,
                load.case,
                beside(load.case),
                Wanted::AtLeast(ratio_min),
            ));
        }
        for load in [LOADS[2], LOADS[6]] {
            let text = format!("{}: {PROCESSOR_TIME} ÷ {PGBOUNCER}", load.case);
            goals.push(goal(
                text,
                PROCESSOR_TIME,
                load.case,
                beside(load.case),
                Wanted::AtMost(1.0),
            ));
        }
        let one = LOADS[0].case;
        let text = format!("{one}: {LATENCY} ÷ {PGBOUNCER}");
        goals.push(goal(text, LATENCY, one, beside(one), Wanted::AtMost(1.0)));
        goals.push(goal(
            format!("{IDLE}: memory of each"),
            MEMORY,
            IDLE,
            Beside::Nothing,
            Wanted::AtMost(12.0),
        ));
        goals
    }
}

/// What pgbench is pointed at.
struct System {
    name: &'static str,
    url: String,
    /// The proxy's.
    process: Option<u32>,
    _running: Option<Running>,
}

/// Kept for its drop.
#[allow(dead_code, reason = "kept for its drop, which stops the proxy")]
enum Running {
    Forebay(testbed::Forebay),
    PgBouncer(testbed::PgBouncer),
}

impl System {
    fn forebay(program: &Path, server: &testbed::Postgres) -> Result<Self, Failure> {
        let proxy = testbed::Forebay::builder(program)
            .upstream(server.url())
            .arguments(["--max-server-connections", &POOL.to_string()])
            .start()?;
        Ok(Self {
            name: FOREBAY,
            // As the server's own user.
            url: format!("postgresql://postgres@{}/postgres", proxy.address()),
            process: Some(proxy.process_id()),
            _running: Some(Running::Forebay(proxy)),
        })
    }

    fn pgbouncer(server: SocketAddr) -> Result<Self, Failure> {
        let proxy = testbed::PgBouncer::start(server, POOL).map_err(|error| match error {
            testbed::Error::NotInstalled { .. } => Failure::Absent {
                what: PGBOUNCER.to_owned(),
                cause: error.to_string(),
                remedy: "measured without it".to_owned(),
            },
            error => error.into(),
        })?;
        Ok(Self {
            name: PGBOUNCER,
            url: proxy.url(),
            process: Some(proxy.process_id()),
            _running: Some(Running::PgBouncer(proxy)),
        })
    }
}

struct LoadTrial {
    system: Rc<System>,
    server: Rc<testbed::Postgres>,
    pgbench: Rc<Pgbench>,
    load: Load,
}

impl Trial for LoadTrial {
    fn system(&self) -> &str {
        self.system.name
    }

    fn case(&self) -> &str {
        self.load.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let straight = self.server.url();
        let psql = |statement: &str| self.pgbench.psql(&straight, statement);
        psql("DROP TABLE IF EXISTS entry")?;
        psql(
            "CREATE TABLE entry (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, value INT, created_at BIGINT)",
        )?;
        let before = self.system.process.map(process::processor_time).transpose()?;
        let summary = self.pgbench.run(&self.system.url, self.load, stage.effort.duration)?;
        let after = self.system.process.map(process::processor_time).transpose()?;
        let rows = match self.load.work {
            Work::Insert => psql("SELECT count(*) FROM entry")?,
            Work::Select => summary.processed.to_string(),
        };
        check(&summary, &rows)?;
        psql("CHECKPOINT")?;
        let mut readings = vec![
            Reading::new(THROUGHPUT, "transactions/s", summary.transactions_a_second),
            Reading::new(LATENCY, "ms", summary.latency_mean_ms),
        ];
        if let (Some(before), Some(after)) = (before, after) {
            let each = (after - before).as_secs_f64() * 1e6 / summary.processed as f64;
            readings.push(Reading::new(PROCESSOR_TIME, "µs", each));
        }
        Ok(readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_name_cases_that_are_measured() {
        for goal in Proxy::new(None).goals() {
            for key in goal.keys() {
                assert!(key.case == IDLE || LOADS.iter().any(|load| load.case == key.case));
            }
        }
        assert!(LOADS[2].clients == 50 && LOADS[2].work == Work::Select);
        assert!(LOADS[6].clients == 50 && LOADS[6].work == Work::Insert);
        assert!(
            LOADS[..8]
                .iter()
                .all(|load| !load.case.contains(',') || load.case.matches(',').count() == 1)
        );
    }
}
