//! lab: measures Forebay beside its peers and beside the limit.
//!
//! Promises: every figure shown is one of a run in which all outcomes were checked and right; a run with a wrong or missing
//! outcome ends with a failure. Systems take turns within a run, so that what disturbs the machine disturbs all of them.
//!
//! The only crate that knows the peers. A new scenario is one more folder in `scenarios` and one more subcommand here;
//! `report` and `figures`, the subcommands that measure nothing, make a page and pictures of the last results.

mod allocation;
mod bench;
mod callers;
mod closed_loop;
mod effort;
mod failure;
mod figure;
mod go;
mod goal;
mod judged;
mod latency;
mod machine;
mod measurement;
mod places;
mod record;
mod report;
mod scenario;
mod scenarios;
mod stopwatch;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use bench::Bench;
use effort::Effort;
use failure::Failure;
use report::pictures;
use scenario::Scenario;
use scenarios::batcher::Batcher;
use scenarios::cache::Cache;
use scenarios::cache_soak::{self, CacheSoak};
use scenarios::cold_start::{self, ColdStart};
use scenarios::fleet::Fleet;
use scenarios::http_writes::HttpWrites;
use scenarios::loader::Loader;
use scenarios::loads::{self, Loads};
use scenarios::page_policy::PagePolicy;
use scenarios::pages::Pages;
use scenarios::proxy::Proxy;
use scenarios::query_cache::QueryCache;
use scenarios::server::Server;
use scenarios::sharing::Sharing;
use scenarios::writes::{self, Database, Writes};
use scenarios::writes_soak::{self, Killed, WritesSoak};

/// Measures Forebay beside its peers and beside the limit.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
struct Command {
    #[command(subcommand)]
    scenario: Chosen,
}

#[derive(Debug, Subcommand)]
enum Chosen {
    /// Many callers of a processor that does nothing: what sharing a call costs by itself.
    Batcher {
        #[command(flatten)]
        options: Options,
    },
    /// Callers that each want a key, and the fetches that they share, beside the loaders of others.
    Loader {
        #[command(flatten)]
        options: Options,
    },
    /// Hits, beside the caches of others.
    Cache {
        #[command(flatten)]
        options: Options,
    },
    /// Everything at once on a cache whose database and tiers fail, and every answer judged: none may be wrong.
    CacheSoak {
        /// Makes the same choices as the run that told this seed.
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
    /// Caches of several processes: how soon they hear of one another's changes, and what a cold key costs them all.
    Fleet {
        #[command(flatten)]
        options: Options,
    },
    /// A product search that begins with an empty cache, over a database that can do little.
    ColdStart {
        #[command(flatten)]
        options: Options,
    },
    /// Which page goes when a pool of pages needs room, beside other rules.
    PagePolicy {
        #[command(flatten)]
        options: Options,
    },
    /// Ranges of a large file, read by many at once, beside fio, the kernel's own ways, and foyer.
    Pages {
        #[command(flatten)]
        options: Options,
    },
    /// Rows by key out of a real database, beside pools of plain connections.
    Loads {
        /// The database read from. Default: each of them, one after another.
        #[arg(long, value_enum)]
        database: Option<loads::Database>,
        #[command(flatten)]
        options: Options,
    },
    /// Rows into a real database; every caller waits for its own durable outcome.
    Writes {
        /// The database written to. Default: each of them, one after another.
        #[arg(long, value_enum)]
        database: Option<Database>,
        #[command(flatten)]
        options: Options,
    },
    /// Rows into a real database that is killed again and again: none may be lost or doubled.
    WritesSoak {
        /// The database that is killed. Default: each of them, one after another.
        #[arg(long, value_enum)]
        database: Option<Killed>,
        /// Makes the same choices as the run that told this seed.
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
    /// The server under pgbench, beside itself without batching and beside PostgreSQL.
    Server {
        /// The program to measure, instead of the one that cargo builds now.
        #[arg(long, value_name = "FILE")]
        forebay: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// What stands in front of a PostgreSQL, under pgbench, beside another proxy and PostgreSQL itself.
    Proxy {
        /// The program to measure, instead of the one that cargo builds now.
        #[arg(long, value_name = "FILE")]
        forebay: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// A proxy whose clients share, under pgbench, beside itself without sharing, another proxy and PostgreSQL itself.
    Sharing {
        /// The program to measure, instead of the one that cargo builds now.
        #[arg(long, value_name = "FILE")]
        forebay: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// Reads through a proxy that remembers their answers, beside itself without memory, another one with its own, and PostgreSQL itself.
    QueryCache {
        /// The program to measure, instead of the one that cargo builds now.
        #[arg(long, value_name = "FILE")]
        forebay: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// A web service that writes a row a request, under ApacheBench, beside itself without Forebay.
    HttpWrites {
        /// The service to measure, instead of the one that cargo builds now.
        #[arg(long, value_name = "FILE")]
        web: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// One HTML page, with plots, from the last results of all scenarios.
    Report(report::Options),
    /// The pictures of the guide, from the last results of a few scenarios.
    Figures(pictures::Options),
}

#[derive(Debug, Args)]
struct Options {
    /// Fewer and shorter rounds: ends within a minute on 2 cores.
    #[arg(long, conflicts_with = "tiny")]
    quick: bool,
    /// One round of a moment, to see that the scenario works; its figures mean nothing.
    #[arg(long)]
    tiny: bool,
    /// Writes the results there too, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the databases go, on the disk to be measured. Default: `target/lab`.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Rounds, instead of the 5 (quick: 3) that are usual.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Seconds that each measurement takes in each round, instead of the usual.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// Runs only what has this text in "SYSTEM, CASE", for example to profile it. The last results stay as they were.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// What a quick measurement takes, instead of the usual.
    #[arg(skip)]
    quickly: Option<Duration>,
}

impl Options {
    fn effort(&self) -> Effort {
        let usual = match (self.quick, self.tiny) {
            (_, true) => Effort::tiny(),
            (true, _) => Effort {
                duration: self.quickly.unwrap_or(Effort::quick().duration),
                ..Effort::quick()
            },
            _ => Effort::full(),
        };
        usual.with(self.rounds, self.seconds)
    }

    /// A full measurement takes that many seconds, unless the user wants otherwise.
    fn usually_for(self, seconds: u32) -> Self {
        let is_full = !self.quick && !self.tiny;
        Self {
            seconds: self.seconds.or(is_full.then_some(seconds)),
            ..self
        }
    }

    /// A quick measurement takes that long, unless the user wants otherwise.
    fn quickly_for(self, duration: Duration) -> Self {
        Self {
            quickly: Some(duration),
            ..self
        }
    }

    /// One round of that many seconds, quick or not, unless the user wants otherwise or it is to be tiny.
    fn usually_once_for(self, seconds: u32) -> Self {
        Self {
            rounds: self.rounds.or(Some(1)),
            seconds: self.seconds.or((!self.tiny).then_some(seconds)),
            ..self
        }
    }
}

fn run(command: Command) -> Result<bool, Failure> {
    let (scenarios, options): (Vec<Box<dyn Scenario>>, Options) = match command.scenario {
        Chosen::Batcher { options } => (vec![Box::new(Batcher)], options),
        Chosen::Loader { options } => (vec![Box::new(Loader)], options),
        Chosen::Cache { options } => (vec![Box::new(Cache)], options),
        Chosen::Fleet { options } => (vec![Box::new(Fleet)], options),
        Chosen::PagePolicy { options } => (vec![Box::new(PagePolicy)], options),
        Chosen::ColdStart { options } => {
            let options = options.usually_for(cold_start::SECONDS);
            (vec![Box::new(ColdStart::new(options.quick))], options)
        }
        Chosen::Pages { options } => (vec![Box::new(Pages::new(options.quick))], options),
        Chosen::CacheSoak { seed, options } => {
            let seconds = if options.quick {
                cache_soak::QUICK_SECONDS
            } else {
                cache_soak::SECONDS
            };
            (vec![Box::new(CacheSoak::new(seed))], options.usually_once_for(seconds))
        }
        Chosen::Loads { database, options } => (Loads::on(database), options.quickly_for(writes::QUICKLY)),
        Chosen::Writes { database, options } => (
            Writes::on(database, options.quick),
            options.quickly_for(writes::QUICKLY),
        ),
        Chosen::WritesSoak {
            database,
            seed,
            options,
        } => {
            let seconds = if options.quick {
                writes_soak::QUICK_SECONDS
            } else {
                writes_soak::SECONDS
            };
            (WritesSoak::on(database, seed), options.usually_once_for(seconds))
        }
        Chosen::Server { forebay, options } => (vec![Box::new(Server::new(forebay))], options),
        Chosen::Proxy { forebay, options } => (vec![Box::new(Proxy::new(forebay))], options),
        Chosen::Sharing { forebay, options } => (vec![Box::new(Sharing::new(forebay))], options),
        Chosen::QueryCache { forebay, options } => (vec![Box::new(QueryCache::new(forebay))], options),
        Chosen::HttpWrites { web, options } => (vec![Box::new(HttpWrites::new(web, options.quick))], options),
        Chosen::Report(options) => return report::run(options).map(|()| true),
        Chosen::Figures(options) => return pictures::run(options).map(|()| true),
    };
    let bench = Bench {
        effort: options.effort(),
        folder: options.folder.unwrap_or_else(places::default_folder),
        only: options.only,
        json: options.json,
    };
    bench.run(&scenarios)
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        // What was wrong stands in the output already.
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("lab: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn quick_and_tiny_lower_the_effort_and_a_user_may_override_both() {
        let effort = |line: &str| {
            let command = Command::try_parse_from(line.split(' ')).unwrap();
            let (Chosen::Batcher { options }
            | Chosen::Loader { options }
            | Chosen::Cache { options }
            | Chosen::Fleet { options }
            | Chosen::ColdStart { options }
            | Chosen::PagePolicy { options }
            | Chosen::Pages { options }
            | Chosen::CacheSoak { options, .. }
            | Chosen::Loads { options, .. }
            | Chosen::Writes { options, .. }
            | Chosen::WritesSoak { options, .. }
            | Chosen::Server { options, .. }
            | Chosen::Proxy { options, .. }
            | Chosen::Sharing { options, .. }
            | Chosen::QueryCache { options, .. }
            | Chosen::HttpWrites { options, .. }) = command.scenario
            else {
                panic!("{line} measures nothing");
            };
            options.effort()
        };
        assert_eq!(effort("lab writes"), Effort::full());
        assert_eq!(effort("lab writes --database sqlite --quick"), Effort::quick());
        assert_eq!(effort("lab server --tiny"), Effort::tiny());
        assert_eq!(effort("lab writes --tiny"), Effort::tiny());
        let own = effort("lab server --quick --rounds 9 --seconds 2");
        assert_eq!((own.rounds, own.duration.as_secs()), (9, 2));
    }

    #[test]
    fn a_scenario_may_usually_take_longer_but_not_when_it_is_to_be_quick() {
        let seconds = |line: &str| {
            let Chosen::ColdStart { options } = Command::try_parse_from(line.split(' ')).unwrap().scenario else {
                panic!("{line} is another scenario");
            };
            options.usually_for(10).effort().duration.as_secs_f64()
        };
        assert_eq!(seconds("lab cold-start"), 10.0);
        assert_eq!(seconds("lab cold-start --seconds 4"), 4.0);
        assert_eq!(
            seconds("lab cold-start --quick"),
            Effort::quick().duration.as_secs_f64()
        );
        assert_eq!(seconds("lab cold-start --tiny"), Effort::tiny().duration.as_secs_f64());
    }

    #[test]
    fn writes_are_quicker_than_others_and_go_to_every_database_unless_one_is_named() {
        let writes = |line: &str| {
            let Chosen::Writes { database, options } = Command::try_parse_from(line.split(' ')).unwrap().scenario
            else {
                panic!("{line} is another scenario");
            };
            let names: Vec<String> = Writes::on(database, options.quick)
                .iter()
                .map(|scenario| scenario.name())
                .collect();
            (names.join(" "), options.quickly_for(writes::QUICKLY).effort().duration)
        };
        let all = "writes-sqlite writes-postgres writes-mariadb".to_owned();
        assert_eq!(writes("lab writes"), (all.clone(), Effort::full().duration));
        assert_eq!(writes("lab writes --quick"), (all, writes::QUICKLY));
        let one = writes("lab writes --database mariadb --quick --seconds 2");
        assert_eq!(one, ("writes-mariadb".to_owned(), Duration::from_secs(2)));
    }

    #[test]
    fn a_soak_is_one_round_unless_the_user_wants_more() {
        let effort = |line: &str| {
            let Chosen::CacheSoak { options, .. } = Command::try_parse_from(line.split(' ')).unwrap().scenario else {
                panic!("{line} is another scenario");
            };
            let effort = options.usually_once_for(60).effort();
            (effort.rounds, effort.duration.as_millis())
        };
        assert_eq!(effort("lab cache-soak"), (1, 60_000));
        assert_eq!(effort("lab cache-soak --quick"), (1, 60_000));
        assert_eq!(effort("lab cache-soak --seed 7 --seconds 9 --rounds 2"), (2, 9_000));
        assert_eq!(
            effort("lab cache-soak --tiny"),
            (1, Effort::tiny().duration.as_millis())
        );
    }
}
