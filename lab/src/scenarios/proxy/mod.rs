//! `proxy`: pgbench straight at a PostgreSQL, and through what stands in front of it.
//!
//! Promises: one PostgreSQL behind all, the same pool for each proxy, the same script, clients and protocol mode; no transaction
//! failed, and the table has exactly the rows that pgbench reported. What a proxy costs is its process's own time on processors.

mod idle;
mod login;
mod password;
pub(super) mod process;
mod stream;
pub(super) mod system;

use std::path::PathBuf;
use std::rc::Rc;

use forebay_pg_link::config::SslMode;

use self::idle::{IDLE, IDLE_TLS, IdleTlsTrial, IdleTrial, MEMORY, Starts};
use self::login::{LOGIN, LoginTrial, RATE};
use self::password::Password;
use self::stream::{StreamTrial, Way};
use self::system::{PGBOUNCER, PGPOOL, PGPOOL_CLIENTS_MAX, POOL, System, present};
use super::server::pgbench::{Load, Mode, Pgbench, Work};
use super::server::{build, check, postgres_version};
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

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
             {PROCESSOR_TIME}: of the proxy's processes alone, user and system. {IDLE}: resident memory of the proxy beyond what it has\n\
             without, for each of them, after each has had a statement answered. {LOGIN}: by SCRAM-SHA-256, 64 at a time, all kept.\n\
             1 GB: rows of 1,000 bytes that are made as they go, or are passed over when they have come. {PGPOOL} lends no connection while\n\
             its client is there: it has one for each, of up to {PGPOOL_CLIENTS_MAX}, and is asked simple queries alone. A PgBouncer before 1.21 knows no prepared statements."
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![
            ("server".to_owned(), postgres_version()),
            ("driver".to_owned(), first_line_of("pgbench", &["--version"])),
            ("peer".to_owned(), first_line_of("/usr/sbin/pgbouncer", &["--version"])),
            ("peer".to_owned(), first_line_of("/usr/sbin/pgpool", &["--version"])),
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
            .setting("synchronous_commit", "off")
            .start()?;
        let server = Rc::new(server);
        pgbench.fill(&server.url(), SCALE)?;
        let mut systems = vec![System::forebay(&program, &server)?, System::straight(&server)];
        systems.extend(present(System::pgbouncer(server.address()), absent)?);
        systems.extend(present(System::pgpool(server.address()), absent)?);
        let systems: Vec<Rc<System>> = systems.into_iter().map(Rc::new).collect();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for load in LOADS {
            // With pgpool-II pgbench ends in the middle of INSERTs by the extended protocol: it is told of a transaction that is open.
            let is_simple = !load.case.contains("clients, ");
            let is_prepared = PREPARED.iter().any(|prepared| prepared.case == load.case);
            for system in systems
                .iter()
                .filter(|system| !(is_prepared && system.name == PGBOUNCER))
                .filter(|system| system.name != PGPOOL || (load.clients <= PGPOOL_CLIENTS_MAX && is_simple))
            {
                trials.push(Box::new(LoadTrial {
                    system: Rc::clone(system),
                    server: Rc::clone(&server),
                    pgbench: Rc::clone(&pgbench),
                    load,
                }));
            }
        }
        for way in Way::ALL {
            for system in systems.iter().filter(|system| system.name != PGPOOL) {
                trials.push(Box::new(StreamTrial {
                    system: system.name,
                    url: system.url.clone(),
                    way,
                }));
            }
        }
        let has_pgbouncer = systems.iter().any(|system| system.name == PGBOUNCER);
        let address = server.address();
        let mut idle = |system, starts: Starts| trials.push(Box::new(IdleTrial { system, starts }));
        let start = {
            let (program, server) = (program.clone(), Rc::clone(&server));
            move || System::forebay(&program, &server)
        };
        idle(FOREBAY, Box::new(start));
        if has_pgbouncer {
            idle(PGBOUNCER, Box::new(move || System::pgbouncer(address)));
        }
        let password = Rc::new(Password::new()?);
        let mut asking = vec![System::forebay_asking(&program, &server, stage.folder, &password)?];
        match System::pgbouncer_asking(server.address(), &password) {
            Ok(system) => asking.push(system),
            // It is named already.
            Err(Failure::Absent { .. }) => {}
            Err(failure) => return Err(failure),
        }
        let asking: Vec<Rc<System>> = asking.into_iter().map(Rc::new).collect();
        for (system, process) in asking.iter().filter_map(|system| Some((system, system.process?))) {
            let address = system.address()?;
            trials.push(Box::new(LoginTrial {
                system: system.name,
                connector: password.connector(address, SslMode::Disable)?,
                process,
                _running: Rc::clone(system),
            }));
        }
        let mut idle = |system, starts: Starts| {
            let password = Rc::clone(&password);
            trials.push(Box::new(IdleTlsTrial {
                system,
                starts,
                password,
            }));
        };
        let start = {
            let (server, folder, password) = (Rc::clone(&server), stage.folder.to_owned(), Rc::clone(&password));
            move || System::forebay_asking(&program, &server, &folder, &password)
        };
        idle(FOREBAY, Box::new(start));
        if has_pgbouncer {
            let password = Rc::clone(&password);
            idle(
                PGBOUNCER,
                Box::new(move || System::pgbouncer_asking(address, &password)),
            );
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
        for (case, most) in [(IDLE, 12.0), (IDLE_TLS, 30.0)] {
            goals.push(goal(
                format!("{case}: memory of each"),
                MEMORY,
                case,
                Beside::Nothing,
                Wanted::AtMost(most),
            ));
        }
        goals.push(goal(
            format!("{LOGIN}: logins/s ÷ {PGBOUNCER}"),
            RATE,
            LOGIN,
            beside(LOGIN),
            Wanted::AtLeast(2.0),
        ));
        for way in Way::ALL {
            goals.push(goal(
                format!("{}: MB/s ÷ straight", way.case()),
                THROUGHPUT,
                way.case(),
                Beside::Ratio(vec![Key::new(LIMIT, way.case())]),
                Wanted::AtLeast(0.9),
            ));
        }
        goals
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
            _ => summary.processed.to_string(),
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
                let besides = [IDLE, IDLE_TLS, LOGIN];
                let is_besides = besides.contains(&&*key.case) || Way::ALL.iter().any(|way| way.case() == key.case);
                assert!(is_besides || LOADS.iter().any(|load| load.case == key.case));
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
