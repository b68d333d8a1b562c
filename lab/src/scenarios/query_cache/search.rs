//! A product search that begins with an empty cache, through the wire: few connections lead to a database that is far away.
//!
//! Promises: the same traffic for both, that of `cold-start`; every answer is looked at. Straight, clients share as many connections as the proxy has.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_postgres::{Client, Statement};

use super::super::cold_start::{Traffic, product_id};
use super::super::proxy::system::System;
use super::load::connect;
use crate::closed_loop::{LATENCY_P50, LATENCY_P99};
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, LIMIT, Stage, Trial};
use crate::stopwatch::THROUGHPUT;

pub(super) const SEARCH: &str = "product search, cold, 8 connections, 190 ms away";

/// What the proxy is told, beside where the database is: the windows of the published test.
pub(super) const RULES: &str = "max_server_connections = 8\nmin_server_connections = 8\ncache_memory = \"64MiB\"\n\
                                [[rule]]\nname = \"search\"\ntable = \"product\"\nfresh = \"20s\"\nstale = \"24h\"\nmissing = \"10s\"\n";

const CONNECTIONS: usize = 8;
const CLIENTS: u32 = 100;
const PRODUCTS: u32 = 10_000;
/// To the database and back.
const AWAY: Duration = Duration::from_millis(190);
/// As long as the published turns, where a usual one takes three seconds.
const TURNS: u32 = 10;
const USUAL_TURNS: u32 = 3;
const SEARCHED: &str = "SELECT id, price FROM product WHERE id = $1";

/// The database, and the way to it.
pub(super) struct Far {
    server: testbed::Postgres,
    way: testbed::Proxy,
}

impl Far {
    pub(super) fn start(stage: &Stage<'_>) -> Result<Self, Failure> {
        let server = testbed::Postgres::builder().folder_in(stage.folder).start()?;
        let way = testbed::Proxy::start(server.address())?;
        Ok(Self { server, way })
    }

    /// The database at the end of the way.
    pub(super) fn url(&self) -> String {
        self.server
            .url()
            .replace(&self.server.address().to_string(), &self.way.address().to_string())
    }

    async fn fill(&self) -> Result<(), Failure> {
        let admin = connect(&self.server.url()).await?;
        let known = product_id(0);
        let name = known.trim_end_matches('0');
        let text = format!(
            "CREATE TABLE IF NOT EXISTS product (id text PRIMARY KEY, price int NOT NULL); \
             INSERT INTO product SELECT '{name}' || n, n FROM generate_series(1, {PRODUCTS}) n ON CONFLICT DO NOTHING; ANALYZE product"
        );
        Ok(admin.batch_execute(&text).await?)
    }
}

pub(super) struct SearchTrial {
    pub(super) far: Rc<Far>,
    /// The program and its configuration; none: straight.
    pub(super) proxy: Option<(PathBuf, PathBuf)>,
}

/// What is asked by whoever has the right to, of as many connections as there are.
struct Asked {
    connections: Vec<(Client, Statement)>,
    free: Semaphore,
    idle: RefCell<Vec<usize>>,
}

impl Asked {
    async fn connect(url: &str, count: usize) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let client = connect(url).await?;
            let statement = client.prepare(SEARCHED).await?;
            connections.push((client, statement));
        }
        Ok(Self {
            connections,
            free: Semaphore::new(count),
            idle: RefCell::new((0..count).collect()),
        })
    }

    /// Searches one, and looks at what is told.
    async fn search(&self, id: &str, exists: bool) -> Result<(), Failure> {
        let _permit = self.free.acquire().await.expect("it is never closed");
        let at = self.idle.borrow_mut().pop().expect("there is one for each permit");
        let (client, statement) = &self.connections[at];
        let told = client.query_opt(statement, &[&id]).await;
        self.idle.borrow_mut().push(at);
        let told = told?.map(|row| (row.get::<_, String>(0), row.get::<_, i32>(1)));
        let is_right = match &told {
            Some((told, price)) => exists && told == id && id.ends_with(&price.to_string()),
            None => !exists,
        };
        is_right
            .then_some(())
            .ok_or_else(|| Failure::Wrong(format!("{id} was told {told:?}")))
    }
}

impl Trial for SearchTrial {
    fn system(&self) -> &str {
        if self.proxy.is_some() { FOREBAY } else { LIMIT }
    }

    fn case(&self) -> &str {
        SEARCH
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = crate::closed_loop::two_workers()?;
        self.far.way.set(testbed::Behaviour::Pass);
        runtime.block_on(self.far.fill())?;
        self.far.way.set(testbed::Behaviour::Delay(AWAY / 2));
        // Each time anew: it begins with an empty cache.
        let running = match &self.proxy {
            Some((program, config)) => Some(System::forebay_told(FOREBAY, program, config)?),
            None => None,
        };
        let url = running
            .as_ref()
            .map_or_else(|| self.far.url(), |running| running.url.clone());
        let turn = match stage.effort.meaningful {
            true => stage.effort.duration * TURNS / USUAL_TURNS,
            false => stage.effort.duration,
        };
        runtime.block_on(async {
            let count = if running.is_some() {
                CLIENTS as usize
            } else {
                CONNECTIONS
            };
            let asked = Rc::new(Asked::connect(&url, count).await?);
            let traffic = Traffic::new();
            let begun = Instant::now();
            let callers = (0..CLIENTS).map(|caller| {
                let (asked, mut traffic) = (Rc::clone(&asked), traffic.of(caller));
                async move {
                    let mut latencies = Vec::new();
                    while begun.elapsed() < turn || latencies.is_empty() {
                        let since = Instant::now();
                        let (id, exists) = traffic.next();
                        asked.search(id, exists).await?;
                        latencies.push(since.elapsed());
                    }
                    Ok::<_, Failure>(latencies)
                }
            });
            let mut latencies: Vec<Duration> = futures_util::future::try_join_all(callers).await?.concat();
            let seconds = begun.elapsed().as_secs_f64();
            latencies.sort_unstable();
            let ms = |part: usize| latencies[(latencies.len() - 1) * part / 100].as_secs_f64() * 1e3;
            Ok(vec![
                Reading::new(THROUGHPUT, "searches/s", latencies.len() as f64 / seconds),
                Reading::new(LATENCY_P50, "ms", ms(50)),
                Reading::new(LATENCY_P99, "ms", ms(99)),
            ])
        })
    }
}
