//! pgbench and psql: PostgreSQL's own load generator and client, run as a user runs them.
//!
//! Promises: figures are read by their names in pgbench's report; a report without one of them is a failure, not a zero.
//! Knows no server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::Program;

use crate::failure::Failure;
use crate::machine::first_line_of;

/// One row of a random value.
const INSERT: &str =
    "\\set value random(1, 1000000000)\nINSERT INTO entry (value, created_at) VALUES (:value, 1700000000000);\n";
/// pgbench's own reading script, but for the distribution of its keys; 1.001 is the flattest that it has.
const SELECT_ZIPF: &str =
    "\\set aid random_zipfian(1, 100000, 1.001)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
const UPDATE: &str = "\\set id random(1, 100000)\nUPDATE counter SET count = count + 1 WHERE id = :id;\n";
/// What a turn may take beyond its duration before it is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// In turns too short for pgbench's clock of seconds.
const TRANSACTIONS_A_CLIENT: u32 = 10;

/// Which messages of the protocol carry a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scenarios) enum Mode {
    /// Text with the values in it.
    Simple,
    /// Parsed, bound and executed each time.
    Extended,
    /// Parsed once, bound and executed each time.
    Prepared,
}

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scenarios) enum Work {
    /// Inserts a row into `entry`.
    Insert,
    /// Reads a row of `pgbench_accounts` by its key: pgbench's own script.
    Select,
    /// The same, with keys by Zipf's law.
    SelectZipf,
    /// Counts in a row of `counter`, of 100,000, by its key.
    Update,
    /// pgbench's own transaction, in the manner of TPC-B.
    TpcB,
}

/// How pgbench is to load a server.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenarios) struct Load {
    /// Its name in results.
    pub(in crate::scenarios) case: &'static str,
    pub(in crate::scenarios) clients: u32,
    mode: Mode,
    pub(in crate::scenarios) work: Work,
}

impl Load {
    pub(in crate::scenarios) const fn new(case: &'static str, clients: u32, mode: Mode) -> Self {
        Self {
            case,
            clients,
            mode,
            work: Work::Insert,
        }
    }

    /// The same, of reading.
    pub(in crate::scenarios) const fn selecting(self) -> Self {
        self.of(Work::Select)
    }

    /// The same, of other work.
    pub(in crate::scenarios) const fn of(self, work: Work) -> Self {
        Self { work, ..self }
    }
}

/// What pgbench reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::scenarios) struct Summary {
    pub(in crate::scenarios) processed: u64,
    pub(in crate::scenarios) failed: u64,
    pub(in crate::scenarios) transactions_a_second: f64,
    pub(in crate::scenarios) latency_mean_ms: f64,
}

/// The installed programs, and the scripts.
pub(in crate::scenarios) struct Pgbench {
    insert: PathBuf,
    select_zipf: PathBuf,
    update: PathBuf,
}

impl Pgbench {
    /// Finds them, and puts the scripts into `folder`.
    pub(in crate::scenarios) fn find(folder: &Path) -> Result<Self, Failure> {
        for program in ["pgbench", "psql"] {
            let version = first_line_of(program, &["--version"]);
            if !version.contains("PostgreSQL") {
                return Err(Failure::Absent {
                    what: program.to_owned(),
                    cause: version,
                    remedy: "install PostgreSQL with its client programs".to_owned(),
                });
            }
        }
        let script = |name: &str, text: &str| {
            let script = folder.join(name);
            std::fs::write(&script, text).map_err(Failure::system("write pgbench's script"))?;
            Ok::<_, Failure>(script)
        };
        Ok(Self {
            insert: script("insert.sql", INSERT)?,
            select_zipf: script("select-zipf.sql", SELECT_ZIPF)?,
            update: script("update.sql", UPDATE)?,
        })
    }

    /// Executes one statement and gives what it returns, unaligned.
    pub(in crate::scenarios) fn psql(&self, url: &str, statement: &str) -> Result<String, Failure> {
        let arguments = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command"];
        let arguments = arguments.into_iter().chain([statement, url]);
        let mut psql = Program::new("psql", arguments);
        // A notice that a table is not there yet is no row.
        psql.environment
            .push(("PGOPTIONS".into(), "-c client_min_messages=warning".into()));
        Ok(psql.run(PATIENCE)?)
    }

    /// Fills the tables that pgbench reads, with so many times 100,000 rows.
    pub(in crate::scenarios) fn fill(&self, url: &str, scale: u32) -> Result<(), Failure> {
        let scale = scale.to_string();
        Program::new("pgbench", ["--initialize", "--quiet", "--scale", &scale, url]).run(PATIENCE)?;
        Ok(())
    }

    /// Loads the server for that long.
    pub(in crate::scenarios) fn run(&self, url: &str, load: Load, duration: Duration) -> Result<Summary, Failure> {
        let mode = match load.mode {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        };
        let mut arguments: Vec<String> = ["-n", "-M", mode, "-j", "2", "-c"].map(str::to_owned).into();
        arguments.push(load.clients.to_string());
        if duration < Duration::from_millis(500) {
            arguments.extend(["-t".to_owned(), TRANSACTIONS_A_CLIENT.to_string()]);
        } else {
            arguments.extend(["-T".to_owned(), duration.as_secs().max(1).to_string()]);
        }
        let script = match load.work {
            Work::Insert => Some(&self.insert),
            Work::SelectZipf => Some(&self.select_zipf),
            Work::Update => Some(&self.update),
            Work::Select => {
                arguments.push("-S".to_owned());
                None
            }
            Work::TpcB => None,
        };
        if let Some(script) = script {
            arguments.extend(["-f".to_owned(), script.display().to_string()]);
        }
        arguments.push(url.to_owned());
        let report = Program::new("pgbench", arguments).run(duration + PATIENCE)?;
        read(&report).ok_or_else(|| Failure::Wrong(format!("pgbench did not report what it should:\n{report}")))
    }
}

fn read(report: &str) -> Option<Summary> {
    let number = |name: &str| -> Option<&str> {
        let line = report.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches([':', '=', ' ']).split([' ', '/']).next()
    };
    Some(Summary {
        processed: number("number of transactions actually processed")?.parse().ok()?,
        failed: number("number of failed transactions")?.parse().ok()?,
        transactions_a_second: number("tps")?.parse().ok()?,
        latency_mean_ms: number("latency average")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMED: &str = "\
pgbench (15.18)
transaction type: /x/insert.sql
scaling factor: 1
query mode: prepared
number of clients: 50
number of threads: 2
maximum number of tries: 1
duration: 1 s
number of transactions actually processed: 27731
number of failed transactions: 3 (0.011%)
latency average = 1.801 ms
initial connection time = 41.520 ms
tps = 27759.123456 (without initial connection time)
";

    #[test]
    fn a_report_is_read_by_its_names() {
        let summary = read(TIMED).unwrap();
        assert_eq!(
            summary,
            Summary {
                processed: 27_731,
                failed: 3,
                transactions_a_second: 27_759.123_456,
                latency_mean_ms: 1.801,
            }
        );
        let counted = TIMED.replace("processed: 27731", "processed: 500/500");
        assert_eq!(read(&counted).unwrap().processed, 500);
    }

    #[test]
    fn a_report_that_misses_a_figure_is_refused() {
        for name in [
            "tps",
            "latency average",
            "number of failed",
            "number of transactions actually",
        ] {
            let missing: String = TIMED
                .lines()
                .filter(|line| !line.starts_with(name))
                .map(|line| format!("{line}\n"))
                .collect();
            assert_eq!(read(&missing), None, "{name}");
        }
    }
}
