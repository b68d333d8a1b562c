//! A thousand clients who ask for the same at once, which nobody has asked before.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Statement};

use super::super::proxy::system::{PGPOOL_REMEMBERING_CLIENTS, PGPOOL_REMEMBERS, System};
use super::load::{SUM, connect, fill, rows_for};
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{LIMIT, Stage, Trial};

pub(super) const STAMPEDE: &str = "1,000 clients, one cold key of 100 ms";
pub(super) const QUERIES: &str = "queries";
pub(super) const LONGEST_WAIT: &str = "longest wait ÷ one alone";

/// The same once it is known.
const KNOWN_WAIT: &str = "longest wait, known key ÷ one alone";

const CLIENTS: usize = 1_000;
/// In a turn that only shows that it works.
const CLIENTS_OF_A_TINY_TURN: usize = 20;

pub(super) struct StampedeTrial {
    pub(super) system: Rc<System>,
    pub(super) server: Rc<testbed::Postgres>,
    /// What was asked before is not asked again.
    pub(super) asked: i32,
}

/// How often the server was asked.
async fn asked(admin: &Client) -> Result<i64, Failure> {
    let count = "SELECT CAST(coalesce(sum(calls), 0) AS int8) FROM pg_stat_statements WHERE query LIKE '%FROM ware_sold s JOIN ware%'";
    Ok(admin.query_one(count, &[]).await?.get(0))
}

type Clients = Vec<Arc<(Client, Statement)>>;

/// How long the last one waits when all ask this at once.
async fn longest_wait(clients: &Clients, rows: i64, number: i32) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let tasks: Vec<_> = clients
        .iter()
        .map(|client| {
            let client = Arc::clone(client);
            tokio::spawn(async move {
                let (client, statement) = &*client;
                let row = client.query_one(statement, &[&rows, &number]).await?;
                let told: i64 = row.get(0);
                let wait = begun.elapsed();
                let is_right = told == rows + i64::from(number);
                is_right
                    .then_some(wait)
                    .ok_or_else(|| Failure::Wrong(format!("{number} was told {told}")))
            })
        })
        .collect();
    let mut longest = Duration::ZERO;
    for task in tasks {
        let wait = task
            .await
            .map_err(|error| Failure::Wrong(format!("a client has ended: {error}")))?;
        longest = longest.max(wait?);
    }
    Ok(longest)
}

impl Trial for StampedeTrial {
    fn system(&self) -> &str {
        self.system.name
    }

    fn case(&self) -> &str {
        STAMPEDE
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let mut count = if stage.effort.meaningful {
            CLIENTS
        } else {
            CLIENTS_OF_A_TINY_TURN
        };
        if self.system.name == PGPOOL_REMEMBERS {
            count = count.min(PGPOOL_REMEMBERING_CLIENTS - 10);
        }
        let runtime = crate::closed_loop::two_workers()?;
        runtime.block_on(async {
            let admin = connect(&self.server.url()).await?;
            fill(&admin, stage.effort.meaningful).await?;
            let rows = rows_for(&admin, Duration::from_millis(100)).await?;
            let mut clients = Vec::new();
            for _ in 0..count {
                let client = connect(&self.system.url).await?;
                let statement = client.prepare(SUM).await?;
                clients.push((client, statement));
            }
            // The statement is known, and its answer is not.
            let mut alone = Duration::MAX;
            for _ in 0..5 {
                self.asked += 1;
                let (client, statement) = &clients[0];
                let begun = Instant::now();
                client.query_one(statement, &[&rows, &self.asked]).await?;
                alone = alone.min(begun.elapsed());
            }
            self.asked += 1;
            let before = asked(&admin).await?;
            let number = self.asked;
            let clients: Clients = clients.into_iter().map(Arc::new).collect();
            let longest = longest_wait(&clients, rows, number).await?;
            let queries = asked(&admin).await? - before;
            let of_one = |longest: Duration| longest.as_secs_f64() / alone.as_secs_f64();
            let mut readings = vec![
                Reading::new(LONGEST_WAIT, "times", of_one(longest)),
                Reading::new(QUERIES, "queries", queries as f64),
            ];
            if self.system.name != LIMIT {
                let known = longest_wait(&clients, rows, number).await?;
                readings.push(Reading::new(KNOWN_WAIT, "times", of_one(known)));
            }
            Ok(readings)
        })
    }
}
