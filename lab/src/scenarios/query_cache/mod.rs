//! `query-cache`: the same reads through a proxy that remembers their answers, beside PostgreSQL itself, the same proxy without memory,
//! PgBouncer, which has none, and pgpool-II with its own; and a proxy that is told of changes by the database, how soon, and at what cost to those who write.
//!
//! Promises: every answer is looked at. Of a stampede it is the server's own count that says how often it was asked.

mod entries;
mod load;
mod search;
mod stampede;
mod stream;

use std::path::PathBuf;
use std::rc::Rc;

use self::entries::{BESIDE, ENTRIES, EntriesTrial};
use self::load::{Ask, LoadTrial};
use self::search::{Far, SEARCH, SearchTrial};
use self::stampede::{LONGEST_WAIT, QUERIES, STAMPEDE, StampedeTrial};
use self::stream::{
    Ears, FOREIGN, FreshTrial, LISTENS, OLD_P50, OLD_P99, RECEIVER, Told, UNHEARD, WRITERS, WritersTrial,
};
use super::proxy::system::{PGBOUNCER_BY_SESSION, PGPOOL_REMEMBERS, System, present};
use super::server::{build, postgres_version};
use crate::closed_loop::LATENCY_P99;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::machine::first_line_of;
use crate::scenario::{FOREBAY, LIMIT, Scenario, Stage, Trial, Yardsticks};
use crate::stopwatch::THROUGHPUT;

/// The server connections of each proxy.
const POOL: usize = 100;
const FORGETS: &str = "forebay, no memory";
/// What the proxy is told of these tables.
const RULES: &str = "cache_memory = \"64MiB\"\n\
                     [[rule]]\nname = \"all\"\ntable = \"ware\"\nfresh = \"1h\"\n";

/// The scenario.
#[derive(Debug)]
pub(crate) struct QueryCache {
    /// The program to measure; none: the one that cargo builds.
    forebay: Option<PathBuf>,
}

impl QueryCache {
    pub(crate) fn new(forebay: Option<PathBuf>) -> Self {
        Self { forebay }
    }
}

impl Scenario for QueryCache {
    fn name(&self) -> String {
        "query-cache".to_owned()
    }

    fn about(&self) -> String {
        format!(
            "tokio-postgres over loopback TCP, two threads of the lab's; clients, proxy and server share the machine, {POOL} server connections.\n\
             point read: a row of 1,000 by its key, prepared. 10 ms query: one of ten sums over a table, sized to take the server about that.\n\
             empty query: a text with nothing in it, which each proxy sends to the server. All answers are known before a turn begins.\n\
             {STAMPEDE}: a query of about 100 ms that nobody has asked; how often the server was asked, and the longest wait beside one alone; and beside\n\
             that the longest wait of the same clients for the same key once it is known: what all of them cost whoever has the answer.\n\
             {FOREIGN}: until when a reader who asks on and on is told what was before it, from its acknowledgement; all of the way is in it.\n\
             {SEARCH}: the traffic of cold-start over 10,000 rows, 100 callers for ten seconds; straight they share eight connections.\n\
             {ENTRIES}: the proxy's resident memory before and behind that, by what these take beyond what answers and parameters are long.\n\
             {WRITERS}: pgbench straight at a server whose four tables a proxy listens to, beside servers like it: one that tells PostgreSQL's own\n\
             receiver the same, which throws it away ({RECEIVER}), and one that tells nobody ({UNHEARD}).\n\
             limit: PostgreSQL itself. {FORGETS}: the same program without --cache-memory. {PGPOOL_REMEMBERS}: memory_cache_enabled, shmem.\n\
             {PGBOUNCER_BY_SESSION}: before 1.21 it knows no prepared statements by transaction. By session, a thousand clients would wait for the first hundred."
        )
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![
            ("server".to_owned(), postgres_version()),
            ("peer".to_owned(), first_line_of("/usr/sbin/pgbouncer", &["--version"])),
            ("peer".to_owned(), first_line_of("/usr/sbin/pgpool", &["--version"])),
        ]
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        super::proxy::process::allow_files();
        let program = match &self.forebay {
            Some(program) => program.clone(),
            None => build()?,
        };
        let server = testbed::Postgres::builder()
            .folder_in(stage.folder)
            .setting("max_connections", "1500")
            .setting("shared_preload_libraries", "pg_stat_statements")
            .start()?;
        let server = Rc::new(server);
        let config = stage.folder.join("query-cache.toml");
        let text = format!(
            "upstream = \"{}\"\nmax_server_connections = {POOL}\n{RULES}",
            server.url()
        );
        std::fs::write(&config, text).map_err(Failure::system("place the proxy's configuration"))?;
        let mut systems = vec![
            System::forebay_told(FOREBAY, &program, &config)?,
            System::forebay_of(FORGETS, &program, &server, POOL, &[])?,
            System::straight(&server),
        ];
        systems.extend(present(System::pgbouncer_by_session(server.address(), POOL), absent)?);
        systems.extend(present(System::pgpool_remembering(server.address()), absent)?);
        let systems: Vec<Rc<System>> = systems.into_iter().map(Rc::new).collect();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for ask in Ask::ALL {
            for system in &systems {
                trials.push(Box::new(LoadTrial {
                    system: Rc::clone(system),
                    server: Rc::clone(&server),
                    ask,
                    slow: None,
                }));
            }
        }
        // Where nothing is remembered a thousand clients wait for a hundred connections, as straight.
        let is_asked = |name: &str| ![FORGETS, PGBOUNCER_BY_SESSION].contains(&name);
        for system in systems.iter().filter(|system| is_asked(system.name)) {
            trials.push(Box::new(StampedeTrial {
                system: Rc::clone(system),
                server: Rc::clone(&server),
                asked: 0,
            }));
        }
        let config = stage.folder.join("entries.toml");
        let text = format!("upstream = \"{}\"\n{}", server.url(), entries::RULES);
        std::fs::write(&config, text).map_err(Failure::system("place the proxy's configuration"))?;
        trials.push(Box::new(EntriesTrial {
            server: Rc::clone(&server),
            program: program.clone(),
            config,
        }));
        let far = Rc::new(Far::start(stage)?);
        let config = stage.folder.join("search.toml");
        let text = format!("upstream = \"{}\"\n{}", far.url(), search::RULES);
        std::fs::write(&config, text).map_err(Failure::system("place the proxy's configuration"))?;
        for proxy in [Some((program.clone(), config)), None] {
            let far = Rc::clone(&far);
            trials.push(Box::new(SearchTrial { far, proxy }));
        }
        let logging = || {
            let builder = testbed::Postgres::builder().folder_in(stage.folder);
            builder.setting("wal_level", "logical").start()
        };
        let server = logging()?;
        let config = stage.folder.join("stream.toml");
        let text = format!(
            "upstream = \"{}\"\nadmin_users = [\"postgres\"]\n{LISTENS}",
            server.url()
        );
        std::fs::write(&config, text).map_err(Failure::system("place the proxy's configuration"))?;
        let proxy = System::forebay_told(FOREBAY, &program, &config)?;
        let told = Rc::new(Told { server, proxy });
        trials.push(Box::new(FreshTrial { told: Rc::clone(&told) }));
        for ears in [
            Ears::Proxy(told),
            Ears::Receiver(logging()?, None),
            Ears::None(logging()?),
        ] {
            trials.push(Box::new(WritersTrial { ears, is_filled: false }));
        }
        Ok(trials)
    }

    fn yardsticks(&self) -> Yardsticks {
        Yardsticks::default()
    }

    fn goals(&self) -> Vec<Goal> {
        let beside = |ask: Ask, theirs: Key, least: f64| Goal {
            text: format!("{}: queries/s ÷ {} ({})", ask.case(), theirs.system, theirs.case),
            metric: THROUGHPUT,
            ours: Key::new(FOREBAY, ask.case()),
            beside: Beside::Ratio(vec![theirs]),
            wanted: Wanted::AtLeast(least),
        };
        let of = |system: &'static str, ask: Ask| Key::new(system, ask.case());
        let alone = |case: &'static str, metric, most: f64| Goal {
            text: format!("{case}: {metric}"),
            metric,
            ours: Key::new(FOREBAY, case),
            beside: Beside::Nothing,
            wanted: Wanted::AtMost(most),
        };
        vec![
            beside(Ask::Point, of(LIMIT, Ask::Point), 1.5),
            beside(Ask::Slow, of(LIMIT, Ask::Slow), 100.0),
            beside(Ask::Slow, of(PGPOOL_REMEMBERS, Ask::Slow), 1.5),
            beside(Ask::Point, of(FORGETS, Ask::Empty), 0.95),
            alone(STAMPEDE, QUERIES, 1.0),
            alone(STAMPEDE, LONGEST_WAIT, 1.2),
            alone(FOREIGN, OLD_P50, 2.0),
            alone(FOREIGN, OLD_P99, 20.0),
            Goal {
                text: format!("{SEARCH}: searches/s ÷ straight"),
                metric: THROUGHPUT,
                ours: Key::new(FOREBAY, SEARCH),
                beside: Beside::Ratio(vec![Key::new(LIMIT, SEARCH)]),
                wanted: Wanted::AtLeast(10.0),
            },
            Goal {
                text: format!("{SEARCH}: P99 ÷ straight's"),
                metric: LATENCY_P99,
                ours: Key::new(FOREBAY, SEARCH),
                beside: Beside::Ratio(vec![Key::new(LIMIT, SEARCH)]),
                wanted: Wanted::AtMost(0.1),
            },
            alone(ENTRIES, BESIDE, 120.0),
            Goal {
                text: format!("{WRITERS}: transactions/s ÷ {UNHEARD}"),
                metric: THROUGHPUT,
                ours: Key::new(FOREBAY, WRITERS),
                beside: Beside::Ratio(vec![Key::new(UNHEARD, WRITERS)]),
                wanted: Wanted::AtLeast(0.95),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_name_cases_that_are_measured() {
        for goal in QueryCache::new(None).goals() {
            for key in goal.keys() {
                let mut cases = Ask::ALL
                    .map(Ask::case)
                    .into_iter()
                    .chain([STAMPEDE, FOREIGN, SEARCH, ENTRIES, WRITERS]);
                assert!(cases.any(|case| case == key.case));
            }
        }
    }
}
