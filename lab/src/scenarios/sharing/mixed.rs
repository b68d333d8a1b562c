//! Clients of whose statements one in a hundred is not like the others: it takes long, or is refused.
//!
//! Promises: each answer is looked at, that of a row and that of an error; what was told to be there is there in the end, and nothing else.
//! pgbench goes where a statement fails, so that these clients are the lab's own.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::super::proxy::system::System;
use crate::closed_loop::LATENCY_P99;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{Stage, Trial};
use crate::stopwatch::THROUGHPUT;

/// More than go alone.
const CLIENTS: i64 = 50;
/// One of so many is not like the others.
const ONE_IN: u64 = 100;
const ROWS: i64 = 100_000;
/// So many of each client that are like most, however short the time is.
const LEAST: usize = 3;

/// What they ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mix {
    /// Rows by their keys, and now and then a read that takes 100 ms.
    SlowReads,
    /// Rows into a table.
    CleanRows,
    /// The same, and now and then one whose key is there.
    FailingRows,
}

impl Mix {
    pub(super) const ALL: [Self; 3] = [Self::SlowReads, Self::CleanRows, Self::FailingRows];

    pub(super) const fn case(self) -> &'static str {
        match self {
            Self::SlowReads => "reads by key, one in 100 takes 100 ms, 50 clients",
            Self::CleanRows => "INSERT, none is refused, 50 clients",
            Self::FailingRows => "INSERT, one in 100 is refused, 50 clients",
        }
    }
}

pub(super) struct MixedTrial {
    pub(super) system: Rc<System>,
    pub(super) server: Rc<testbed::Postgres>,
    pub(super) mix: Mix,
}

/// What one client was told.
#[derive(Debug, Default)]
struct Told {
    done: u64,
    refused: u64,
    /// Of those that are like most.
    latencies: Vec<Duration>,
}

impl Trial for MixedTrial {
    fn system(&self) -> &str {
        self.system.name
    }

    fn case(&self) -> &str {
        self.mix.case()
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(Failure::system("start clients"))?.block_on(async {
            let admin = connect(&self.server.url()).await?;
            for statement in [
                "DROP TABLE IF EXISTS mixed".to_owned(),
                "CREATE TABLE mixed (id bigint PRIMARY KEY, value int NOT NULL)".to_owned(),
                format!("INSERT INTO mixed SELECT -n, 0 FROM generate_series(1, {ROWS}) n"),
                "VACUUM ANALYZE mixed".to_owned(),
                "CHECKPOINT".to_owned(),
            ] {
                admin.batch_execute(&statement).await?;
            }
            let next = Arc::new(AtomicI64::new(1));
            let mut clients = Vec::new();
            for number in 0..CLIENTS {
                clients.push((number, connect(&self.system.url).await?));
            }
            let begun = Instant::now();
            let until = begun + stage.effort.duration;
            let mix = self.mix;
            let tasks: Vec<_> = clients
                .into_iter()
                .map(|(number, client)| tokio::spawn(live(mix, number, client, Arc::clone(&next), until)))
                .collect();
            let mut all = Told::default();
            for task in tasks {
                let told = task
                    .await
                    .map_err(|error| Failure::Wrong(format!("a client has ended: {error}")))??;
                all.done += told.done;
                all.refused += told.refused;
                all.latencies.extend(told.latencies);
            }
            let seconds = begun.elapsed().as_secs_f64();
            if self.mix != Mix::SlowReads {
                let rows: i64 = admin
                    .query_one("SELECT count(*) FROM mixed WHERE id > 0", &[])
                    .await?
                    .get(0);
                if u64::try_from(rows) != Ok(all.done) {
                    return Err(Failure::Wrong(format!("{rows} rows are there, {} were told", all.done)));
                }
            }
            all.latencies.sort_unstable();
            let last = all.latencies.len().saturating_sub(1);
            let p99 = all.latencies.get(last * 99 / 100).copied().unwrap_or_default();
            let rate = Reading::new(THROUGHPUT, "transactions/s", (all.done + all.refused) as f64 / seconds);
            let p99 = Reading::new(LATENCY_P99, "µs", p99.as_secs_f64() * 1e6);
            Ok(match self.mix {
                Mix::SlowReads => vec![p99, rate],
                Mix::CleanRows | Mix::FailingRows => vec![rate, p99],
            })
        })
    }
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn live(mix: Mix, number: i64, client: Client, next: Arc<AtomicI64>, until: Instant) -> Result<Told, Failure> {
    let read = client.prepare("SELECT id, value FROM mixed WHERE id = $1").await?;
    let slow = client.prepare("SELECT pg_sleep(0.1)").await?;
    let insert = client.prepare("INSERT INTO mixed (id, value) VALUES ($1, $2)").await?;
    let mut told = Told::default();
    let mut random = StdRng::seed_from_u64(number.unsigned_abs());
    while Instant::now() < until || told.latencies.len() < LEAST {
        let is_odd = random.random_range(0..ONE_IN) == 0;
        let begun = Instant::now();
        match mix {
            Mix::SlowReads if is_odd => drop(client.query(&slow, &[]).await?),
            Mix::SlowReads => {
                let id = -random.random_range(1..=ROWS);
                let row = client.query_one(&read, &[&id]).await?;
                if row.get::<_, i64>(0) != id {
                    return Err(Failure::Wrong(format!("asked for {id}, told {row:?}")));
                }
                told.latencies.push(begun.elapsed());
                told.done += 1;
            }
            Mix::FailingRows if is_odd => {
                // Its own: nobody else asks for it.
                let id = -1 - number;
                let refused = client.execute(&insert, &[&id, &0_i32]).await;
                let error = refused.err().and_then(|error| error.as_db_error().cloned());
                let is_own = error.as_ref().is_some_and(|error| {
                    *error.code() == SqlState::UNIQUE_VIOLATION
                        && error.detail() == Some(&format!("Key (id)=({id}) already exists."))
                });
                if !is_own {
                    return Err(Failure::Wrong(format!("of {id} was told {error:?}")));
                }
                told.refused += 1;
            }
            Mix::CleanRows | Mix::FailingRows => {
                let id = next.fetch_add(1, Ordering::Relaxed);
                if client.execute(&insert, &[&id, &1_i32]).await? != 1 {
                    return Err(Failure::Wrong(format!("{id} was told not to be one row")));
                }
                told.latencies.push(begun.elapsed());
                told.done += 1;
            }
        }
    }
    Ok(told)
}
