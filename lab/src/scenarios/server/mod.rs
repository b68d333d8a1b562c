//! `server`: programs in any language, unchanged: pgbench inserts a row a transaction through the PostgreSQL protocol.
//!
//! Promises: the same script, clients and protocol mode for every system, on the same disk, each with its default
//! durability; no transaction failed, and the table has exactly the rows that pgbench reported. Knows which systems and
//! cases there are; how pgbench is run and read is in `pgbench`.

pub(super) mod pgbench;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use pgbench::{Load, Mode, Pgbench, Summary};

use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::measurement::Reading;
use crate::places::workspace;
use crate::scenario::{FOREBAY, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

const UNBATCHED: &str = "forebay, one a batch";
const POSTGRES: &str = "PostgreSQL";

/// Cases: 50 clients in the order of the report, then one.
const LOADS: [Load; 4] = [
    Load::new("50 clients, prepared", 50, Mode::Prepared),
    Load::new("50 clients, simple", 50, Mode::Simple),
    Load::new("50 clients, extended", 50, Mode::Extended),
    Load::new("1 client, prepared", 1, Mode::Prepared),
];

/// The scenario.
#[derive(Debug)]
pub(crate) struct Server {
    /// The program to measure; none: the one that cargo builds.
    forebay: Option<PathBuf>,
}

impl Server {
    pub(crate) fn new(forebay: Option<PathBuf>) -> Self {
        Self { forebay }
    }
}

impl Scenario for Server {
    fn name(&self) -> String {
        "server".to_owned()
    }

    fn about(&self) -> String {
        "pgbench over loopback TCP, one INSERT of a random value a transaction, 2 pgbench threads; clients share the machine \
         with the server.\nforebay: as it starts, on embedded SQLite, WAL, synchronous=FULL. \
         forebay, one a batch: the same program with --batch-max-items 1.\nPostgreSQL: its own defaults (fsync and \
         synchronous_commit on), a checkpoint after each turn so that its\nwriting does not reach into the turns of others. \
         The table is new in each turn; no transaction may fail, and the rows must be\nas many as pgbench reports."
            .to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![
            ("server".to_owned(), postgres_version()),
            ("driver".to_owned(), first_line_of("pgbench", &["--version"])),
        ]
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        let pgbench = Rc::new(Pgbench::find(stage.folder)?);
        let program = match &self.forebay {
            Some(program) => program.clone(),
            None => build()?,
        };
        let mut systems = vec![
            System::forebay(FOREBAY, &program, stage.folder, &[])?,
            System::forebay(UNBATCHED, &program, stage.folder, &["--batch-max-items", "1"])?,
        ];
        match System::postgres(stage.folder) {
            Ok(system) => systems.push(system),
            Err(missed @ Failure::Absent { .. }) => absent.push(missed),
            Err(failure) => return Err(failure),
        }
        let systems: Vec<Rc<System>> = systems.into_iter().map(Rc::new).collect();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for load in LOADS {
            for system in &systems {
                trials.push(Box::new(ServerTrial {
                    system: Rc::clone(system),
                    pgbench: Rc::clone(&pgbench),
                    load,
                }));
            }
        }
        Ok(trials)
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let held_against = |text: &str, theirs: Key, case: &str, ratio_min| Goal {
            text: text.to_owned(),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, case),
            beside: Beside::Ratio(vec![theirs]),
            wanted: Wanted::AtLeast(ratio_min),
        };
        let goal = |text: &str, theirs: &str, case: &str, ratio_min| {
            held_against(text, Key::new(theirs, case), case, ratio_min)
        };
        let [fifty, simple, extended, one] = LOADS.map(|load| load.case);
        let prepared = || Key::new(FOREBAY, fifty);
        vec![
            goal("50 clients ÷ one a batch", UNBATCHED, fifty, 5.0),
            goal("50 clients ÷ PostgreSQL", POSTGRES, fifty, 1.0),
            held_against("50 clients, simple ÷ prepared", prepared(), simple, 0.8),
            held_against("50 clients, extended ÷ prepared", prepared(), extended, 0.8),
            goal("1 client ÷ one a batch", UNBATCHED, one, 1.0 / 1.1),
            goal("1 client ÷ PostgreSQL", POSTGRES, one, 0.9),
        ]
    }
}

/// Builds the program as the lab itself was built, so that what is measured is what the header says.
pub(super) fn build() -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace())
        .args(["build", "--quiet", "--package", "forebay-server"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let status = command.status().map_err(Failure::system("run cargo"))?;
    if !status.success() {
        return Err(Failure::Wrong(
            "forebay-server does not build; cargo says why above".to_owned(),
        ));
    }
    let lab = std::env::current_exe().map_err(Failure::system("find the lab's own program"))?;
    Ok(lab.with_file_name("forebay"))
}

pub(super) fn postgres_version() -> String {
    first_line_of("pg_config", &["--version"])
}

/// A running server and what is its own about it.
struct System {
    name: &'static str,
    url: String,
    /// The id column as it would be written for this server.
    id: &'static str,
    /// Executed when a turn is over, unmeasured.
    afterwards: Option<&'static str>,
    /// Stopped when dropped.
    _server: Running,
}

/// Kept for its drop.
#[allow(dead_code, reason = "kept for its drop, which stops the server")]
enum Running {
    Forebay(testbed::Forebay),
    Postgres(testbed::Postgres),
}

impl System {
    fn forebay(name: &'static str, program: &Path, folder: &Path, arguments: &[&str]) -> Result<Self, Failure> {
        let database = folder.join(format!("{}.db", name.replace([' ', ','], "-")));
        let server = testbed::Forebay::builder(program)
            .database(database)
            .arguments(arguments)
            .start()?;
        Ok(Self {
            name,
            url: server.url(),
            id: "id bigserial PRIMARY KEY",
            afterwards: None,
            _server: Running::Forebay(server),
        })
    }

    fn postgres(folder: &Path) -> Result<Self, Failure> {
        let server = testbed::Postgres::builder().folder_in(folder).start();
        let server = server.map_err(|error| match error {
            testbed::Error::NotInstalled { .. } => Failure::Absent {
                what: POSTGRES.to_owned(),
                cause: error.to_string(),
                remedy: "measured without it".to_owned(),
            },
            error => error.into(),
        })?;
        Ok(Self {
            name: POSTGRES,
            url: server.url(),
            id: "id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            afterwards: Some("CHECKPOINT"),
            _server: Running::Postgres(server),
        })
    }
}

struct ServerTrial {
    system: Rc<System>,
    pgbench: Rc<Pgbench>,
    load: Load,
}

impl Trial for ServerTrial {
    fn system(&self) -> &str {
        self.system.name
    }

    fn case(&self) -> &str {
        self.load.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let System { url, id, .. } = &*self.system;
        self.pgbench.psql(url, "DROP TABLE IF EXISTS entry")?;
        self.pgbench
            .psql(url, &format!("CREATE TABLE entry ({id}, value INT, created_at BIGINT)"))?;
        let summary = self.pgbench.run(url, self.load, stage.effort.duration)?;
        let rows = self.pgbench.psql(url, "SELECT count(*) FROM entry")?;
        check(&summary, &rows)?;
        if let Some(afterwards) = self.system.afterwards {
            self.pgbench.psql(url, afterwards)?;
        }
        Ok(vec![
            Reading::new(THROUGHPUT, "transactions/s", summary.transactions_a_second),
            Reading::new("latency mean", "ms", summary.latency_mean_ms),
        ])
    }
}

/// Holds what pgbench was told against what the table has.
pub(super) fn check(summary: &Summary, rows: &str) -> Result<(), Failure> {
    let Summary { processed, failed, .. } = *summary;
    if failed != 0 || processed == 0 {
        return Err(Failure::Wrong(format!(
            "{failed} transactions failed, {processed} did not"
        )));
    }
    if rows.trim().parse() != Ok(processed) {
        return Err(Failure::Wrong(format!(
            "pgbench was told of {processed} rows, the table has {rows}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_lost_and_surplus_rows_are_seen() {
        let summary = |processed, failed| Summary {
            processed,
            failed,
            transactions_a_second: 1.0,
            latency_mean_ms: 1.0,
        };
        check(&summary(7, 0), "7\n").unwrap();
        assert!(check(&summary(7, 0), "6").is_err());
        assert!(check(&summary(7, 0), "8").is_err());
        assert!(check(&summary(7, 0), "").is_err());
        assert!(check(&summary(7, 1), "7").is_err());
        assert!(check(&summary(0, 0), "0").is_err(), "nothing was measured");
    }

    #[test]
    fn goals_name_cases_that_are_measured() {
        for goal in Server::new(None).goals() {
            for key in goal.keys() {
                assert!(LOADS.iter().any(|load| load.case == key.case));
                assert!(
                    key.case == goal.ours.case || key.system == goal.ours.system,
                    "{}",
                    goal.text
                );
            }
        }
        assert_eq!((LOADS[0].clients, LOADS[3].clients), (50, 1));
    }
}
