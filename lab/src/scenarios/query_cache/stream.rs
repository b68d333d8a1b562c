//! A database that tells of its changes: how soon an answer that was remembered is known to be old, and what telling costs those who write.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::proxy::system::System;
use super::super::server::pgbench::{Load, Mode, Pgbench, Work};
use super::load::connect;
use crate::failure::Failure;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Stage, Trial};
use crate::stopwatch::THROUGHPUT;

pub(super) const FOREIGN: &str = "a commit past the proxy";
pub(super) const OLD_P50: &str = "last old answer, median";
pub(super) const OLD_P99: &str = "last old answer, 99th percentile";
pub(super) const WRITERS: &str = "TPC-B straight, 8 clients";
/// The same server, and nobody who listens.
pub(super) const UNHEARD: &str = "nobody listens";

/// The same server, where it is told to somebody who throws it away: what the server itself takes for that.
pub(super) const RECEIVER: &str = "pg_recvlogical";

/// What the proxy is told, behind its upstream.
pub(super) const LISTENS: &str = "cache_memory = \"64MiB\"\ninvalidate = \"stream\"\nmax_server_connections = 20\n";

/// Commits whose last old answer is looked for.
const COMMITS: usize = 1_000;
const COMMITS_OF_A_TINY_TURN: usize = 5;
/// Something is remembered of the database within this time, or not at all.
const REMEMBERED_WITHIN: Duration = Duration::from_secs(30);

/// A server that writes its log for subscribers, and a proxy that is one.
pub(super) struct Told {
    pub(super) server: testbed::Postgres,
    pub(super) proxy: System,
}

/// How soon it is known.
pub(super) struct FreshTrial {
    pub(super) told: Rc<Told>,
}

impl Trial for FreshTrial {
    fn system(&self) -> &str {
        FOREBAY
    }

    fn case(&self) -> &str {
        FOREIGN
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let commits = match stage.effort.meaningful {
            true => COMMITS,
            false => COMMITS_OF_A_TINY_TURN,
        };
        crate::closed_loop::two_workers()?.block_on(async {
            let writer = connect(&self.told.server.url()).await?;
            writer
                .batch_execute(
                    "CREATE TABLE IF NOT EXISTS told (id int PRIMARY KEY, n bigint NOT NULL); \
                     INSERT INTO told VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET n = 0",
                )
                .await?;
            let reader = connect(&self.told.proxy.url).await?;
            until_remembered(&reader, "SELECT n FROM told WHERE id = 1").await?;
            let is_over = Arc::new(AtomicBool::new(false));
            let reading = tokio::spawn(read_on(reader, Arc::clone(&is_over)));
            let update = writer.prepare("UPDATE told SET n = $1 WHERE id = 1").await?;
            let mut acknowledged = Vec::new();
            for number in 1..=commits {
                writer
                    .execute(&update, &[&i64::try_from(number).expect("a few")])
                    .await?;
                acknowledged.push(Instant::now());
                // The answer is remembered again before the next one.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            is_over.store(true, Ordering::Relaxed);
            let seen = reading
                .await
                .map_err(|error| Failure::Wrong(format!("the reader has ended: {error}")))??;
            // The last answer of before was there when this one was asked for.
            let mut waits: Vec<Duration> = (acknowledged.iter().enumerate())
                .map(|(at, acknowledged)| {
                    let first = seen.iter().find(|(_, told)| *told > at as i64);
                    first.map_or(Duration::MAX, |(asked, _)| {
                        asked.saturating_duration_since(*acknowledged)
                    })
                })
                .collect();
            waits.sort_unstable();
            let part = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_secs_f64() * 1e3;
            Ok(vec![
                Reading::new(OLD_P50, "ms", part(50)),
                Reading::new(OLD_P99, "ms", part(99)),
            ])
        })
    }
}

/// When each new number was asked for, by one who asks on and on.
async fn read_on(reader: tokio_postgres::Client, is_over: Arc<AtomicBool>) -> Result<Vec<(Instant, i64)>, Failure> {
    let statement = reader.prepare("/* ttl:3600 */ SELECT n FROM told WHERE id = 1").await?;
    let mut seen = vec![(Instant::now(), 0)];
    let mut is_last = false;
    while !is_last {
        // Once more behind the last commit.
        is_last = is_over.load(Ordering::Relaxed);
        let asked = Instant::now();
        let told: i64 = reader.query_one(&statement, &[]).await?.get(0);
        if seen.last().is_none_or(|(_, last)| *last != told) {
            seen.push((asked, told));
        }
    }
    Ok(seen)
}

/// Asks until the console says that it was answered from memory.
async fn until_remembered(client: &tokio_postgres::Client, text: &str) -> Result<(), Failure> {
    let begun = Instant::now();
    while begun.elapsed() < REMEMBERED_WITHIN {
        client.query(&format!("/* ttl:3600 */ {text}"), &[]).await?;
        let shown = client.simple_query("SHOW FOREBAY SHARING").await?;
        let is_remembered = shown.iter().any(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                let is_it = row.get("statement").is_some_and(|shown| shown.starts_with(&text[..12]));
                is_it && row.get("remembered") != Some("0")
            }
            _ => false,
        });
        if is_remembered {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Failure::Wrong(format!("{text} is not remembered")))
}

/// Who listens to a server while others write.
pub(super) enum Ears {
    /// The proxy.
    Proxy(Rc<Told>),
    /// PostgreSQL's own receiver, which throws away what it is told, from when the tables are there.
    Receiver(testbed::Postgres, Option<testbed::Process>),
    /// Nobody.
    None(testbed::Postgres),
}

/// What it costs those who write past the proxy.
pub(super) struct WritersTrial {
    pub(super) ears: Ears,
    pub(super) is_filled: bool,
}

/// PostgreSQL's own receiver of this server's stream, which has the same told as a proxy.
fn receiver(pgbench: &Pgbench, url: &str) -> Result<testbed::Process, Failure> {
    pgbench.psql(url, "CREATE PUBLICATION heard FOR ALL TABLES")?;
    let slot = "SELECT pg_create_logical_replication_slot('heard', 'pgoutput')";
    pgbench.psql(url, slot)?;
    let arguments = [
        "--dbname",
        url,
        "--slot=heard",
        "--start",
        "--file=/dev/null",
        "--option=proto_version=1",
        "--option=publication_names=heard",
    ];
    let receiver = testbed::Program::new("pg_recvlogical", arguments).start()?;
    let begun = Instant::now();
    while begun.elapsed() < REMEMBERED_WITHIN {
        if pgbench.psql(url, "SELECT active FROM pg_replication_slots")?.trim() == "t" {
            return Ok(receiver);
        }
    }
    Err(Failure::Wrong("pg_recvlogical does not listen".to_owned()))
}

impl Trial for WritersTrial {
    fn system(&self) -> &str {
        match self.ears {
            Ears::Proxy(_) => FOREBAY,
            Ears::Receiver(..) => RECEIVER,
            Ears::None(_) => UNHEARD,
        }
    }

    fn case(&self) -> &str {
        WRITERS
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let pgbench = Pgbench::find(stage.folder)?;
        let url = match &self.ears {
            Ears::Proxy(told) => told.server.url(),
            Ears::Receiver(server, _) | Ears::None(server) => server.url(),
        };
        if !self.is_filled {
            pgbench.fill(&url, if stage.effort.meaningful { 10 } else { 1 })?;
            // It has a key, so that all four tables are told.
            pgbench.psql(&url, "ALTER TABLE pgbench_history REPLICA IDENTITY FULL")?;
            self.is_filled = true;
        }
        if let Ears::Receiver(_, receiving @ None) = &mut self.ears {
            *receiving = Some(receiver(&pgbench, &url)?);
        }
        if let Ears::Proxy(told) = &self.ears {
            crate::closed_loop::two_workers()?.block_on(async {
                let reader = connect(&told.proxy.url).await?;
                for text in [
                    "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
                    "SELECT tbalance FROM pgbench_tellers WHERE tid = 1",
                    "SELECT bbalance FROM pgbench_branches WHERE bid = 1",
                    "SELECT count(*) FROM pgbench_history",
                ] {
                    until_remembered(&reader, text).await?;
                }
                Ok::<_, Failure>(())
            })?;
        }
        let load = Load::new(WRITERS, 8, Mode::Prepared).of(Work::TpcB);
        let summary = pgbench.run(&url, load, stage.effort.duration)?;
        if summary.failed > 0 {
            return Err(Failure::Wrong(format!("{} transactions have failed", summary.failed)));
        }
        Ok(vec![Reading::new(
            THROUGHPUT,
            "transactions/s",
            summary.transactions_a_second,
        )])
    }
}
