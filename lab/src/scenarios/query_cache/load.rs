//! Clients that ask for what is known, each looking at each answer.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Statement};

use super::super::proxy::system::System;
use crate::closed_loop::LATENCY_P99;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};
use crate::stopwatch::THROUGHPUT;

const ROWS: i32 = 1_000;
/// Rows of another table, of which the slow ones are sums: enough for the slowest.
const MANY: i64 = 2_000_000;
/// The same in a turn that only shows that it works.
const FEW: i64 = 20_000;
/// Those that are asked.
const SUMS: i32 = 10;
/// Asked so often before it counts: enough for all to be known.
const WARM_UP: usize = 5;
/// Of one client, however short the time is.
const LEAST: usize = 3;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Point,
    Slow,
    Empty,
}

impl Ask {
    pub(super) const ALL: [Self; 3] = [Self::Point, Self::Slow, Self::Empty];

    pub(super) const fn case(self) -> &'static str {
        match self {
            Self::Point => "point read, 50 clients, prepared",
            Self::Slow => "10 ms query, 100 clients",
            Self::Empty => "empty query, 50 clients",
        }
    }

    const fn clients(self) -> usize {
        match self {
            Self::Point | Self::Empty => 50,
            Self::Slow => 100,
        }
    }
}

pub(super) struct LoadTrial {
    pub(super) system: Rc<System>,
    pub(super) server: Rc<testbed::Postgres>,
    pub(super) ask: Ask,
    /// Rows that are summed up in about ten milliseconds.
    pub(super) slow: Option<i64>,
}

pub(super) async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The tables, as they are wanted, unless they are there.
pub(super) async fn fill(admin: &Client, is_meaningful: bool) -> Result<(), Failure> {
    let there: bool = admin
        .query_one("SELECT to_regclass('ware_sold') IS NOT NULL", &[])
        .await?
        .get(0);
    if there {
        return Ok(());
    }
    let many = if is_meaningful { MANY } else { FEW };
    for statement in [
        "CREATE EXTENSION pg_stat_statements".to_owned(),
        "CREATE TABLE ware (id int PRIMARY KEY, price bigint NOT NULL)".to_owned(),
        format!("INSERT INTO ware SELECT n, n * 7 FROM generate_series(1, {ROWS}) n"),
        "CREATE TABLE ware_sold (id bigint PRIMARY KEY, price bigint NOT NULL)".to_owned(),
        format!("INSERT INTO ware_sold SELECT n, 1 FROM generate_series(1, {many}) n"),
        "VACUUM ANALYZE ware".to_owned(),
        "VACUUM ANALYZE ware_sold".to_owned(),
    ] {
        admin.batch_execute(&statement).await?;
    }
    Ok(())
}

/// So many rows that their sum takes the server so long, about.
pub(super) async fn rows_for(admin: &Client, time: Duration) -> Result<i64, Failure> {
    let mut rows = 1_000_i64;
    let most: i64 = admin.query_one("SELECT max(id) FROM ware_sold", &[]).await?.get(0);
    loop {
        let begun = Instant::now();
        for _ in 0..3 {
            admin.query_one(SUM, &[&rows, &0_i32]).await?;
        }
        if begun.elapsed() / 3 >= time || rows >= most {
            return Ok(rows);
        }
        rows = (rows * 5 / 4).min(most);
    }
}

/// One that names a table of which the proxy is told; the second number makes several of one.
pub(super) const SUM: &str =
    "SELECT CAST(sum(s.price) AS int8) + CAST($2 AS int4) FROM ware_sold s JOIN ware w ON w.id = 1 WHERE s.id <= $1";

impl Trial for LoadTrial {
    fn system(&self) -> &str {
        self.system.name
    }

    fn case(&self) -> &str {
        self.ask.case()
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = crate::closed_loop::two_workers()?;
        runtime.block_on(async {
            let admin = connect(&self.server.url()).await?;
            fill(&admin, stage.effort.meaningful).await?;
            let slow = match (self.ask, self.slow) {
                (Ask::Slow, None) => rows_for(&admin, Duration::from_millis(10)).await?,
                (_, slow) => slow.unwrap_or(0),
            };
            self.slow = Some(slow);
            let mut clients = Vec::new();
            for number in 0..self.ask.clients() {
                clients.push((number as u64, connect(&self.system.url).await?));
            }
            warm_up(self.ask, &clients[0].1, slow).await?;
            let begun = Instant::now();
            let (until, ask) = (begun + stage.effort.duration, self.ask);
            let tasks: Vec<_> = clients
                .into_iter()
                .map(|(number, client)| tokio::spawn(live(ask, number, client, slow, until)))
                .collect();
            let mut latencies = Vec::new();
            for task in tasks {
                let told = task
                    .await
                    .map_err(|error| Failure::Wrong(format!("a client has ended: {error}")))?;
                latencies.extend(told?);
            }
            let seconds = begun.elapsed().as_secs_f64();
            latencies.sort_unstable();
            let p99 = latencies[(latencies.len() - 1) * 99 / 100];
            Ok(vec![
                Reading::new(THROUGHPUT, "queries/s", latencies.len() as f64 / seconds),
                Reading::new(LATENCY_P99, "µs", p99.as_secs_f64() * 1e6),
            ])
        })
    }
}

async fn warm_up(ask: Ask, client: &Client, slow: i64) -> Result<(), Failure> {
    let statement = prepared(ask, client).await?;
    for _ in 0..WARM_UP {
        for number in 0..match ask {
            Ask::Point => ROWS,
            Ask::Slow => SUMS,
            Ask::Empty => 1,
        } {
            once(ask, client, &statement, number, slow).await?;
        }
    }
    Ok(())
}

async fn prepared(ask: Ask, client: &Client) -> Result<Option<Statement>, Failure> {
    Ok(match ask {
        Ask::Point => Some(client.prepare("SELECT id, price FROM ware WHERE id = $1").await?),
        Ask::Slow => Some(client.prepare(SUM).await?),
        Ask::Empty => None,
    })
}

/// Asks one, of that number from 0 on, and looks at what is told.
async fn once(ask: Ask, client: &Client, statement: &Option<Statement>, number: i32, slow: i64) -> Result<(), Failure> {
    let wrong = |told: &dyn std::fmt::Debug| Failure::Wrong(format!("{ask:?} {number} was told {told:?}"));
    match (ask, statement) {
        (Ask::Point, Some(statement)) => {
            let row = client.query_one(statement, &[&(number + 1)]).await?;
            let told = (row.get::<_, i32>(0), row.get::<_, i64>(1));
            (told == (number + 1, i64::from(number + 1) * 7))
                .then_some(())
                .ok_or_else(|| wrong(&told))
        }
        (Ask::Slow, Some(statement)) => {
            let row = client.query_one(statement, &[&slow, &number]).await?;
            let told: i64 = row.get(0);
            (told == slow + i64::from(number))
                .then_some(())
                .ok_or_else(|| wrong(&told))
        }
        (Ask::Empty, _) => {
            let told = client.simple_query("").await?;
            let is_right = told
                .iter()
                .all(|message| matches!(message, SimpleQueryMessage::CommandComplete(0)));
            is_right.then_some(()).ok_or_else(|| wrong(&told))
        }
        _ => unreachable!("what has parameters is prepared"),
    }
}

/// How long each took.
async fn live(ask: Ask, client: u64, connection: Client, slow: i64, until: Instant) -> Result<Vec<Duration>, Failure> {
    let statement = prepared(ask, &connection).await?;
    let mut random = StdRng::seed_from_u64(client);
    let most = if ask == Ask::Slow { SUMS } else { ROWS };
    let mut latencies = Vec::new();
    while Instant::now() < until || latencies.len() < LEAST {
        let begun = Instant::now();
        once(ask, &connection, &statement, random.random_range(0..most), slow).await?;
        latencies.push(begun.elapsed());
    }
    Ok(latencies)
}
