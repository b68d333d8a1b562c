//! How each system writes rows to PostgreSQL: in bulk, row by row, and by hand.
//!
//! All prepare their statement before the clock starts, and answer only after the commit.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use forebay::write::Writer;
use futures_util::future::{join, join_all};
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Statement};

use super::by_hand::{Answer, ByHand, ROWS_A_TRANSACTION, Waiting};
use super::cases::Written;
use crate::callers::{Insert, Refused, Row};
use crate::effort::Effort;
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

/// What every system executes for a row.
pub(super) const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES ($1, $2)";

/// A connection, whose other half is driven by a task until the client is dropped.
pub(super) async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Whoever asks the client sees why the connection ended.
    tokio::spawn(connection);
    Ok(client)
}

/// COPY in binary, statement after statement.
pub(super) async fn copy(client: &Client, effort: Effort, created_at: i64) -> Result<Written, Failure> {
    let rows_a_copy = if effort.meaningful { 500_000 } else { 5_000 };
    let (stopwatch, until) = (Stopwatch::start(), Instant::now() + effort.duration);
    let mut rows = 0_u32;
    while Instant::now() < until {
        let sink = client
            .copy_in("COPY entry (value, created_at) FROM STDIN (FORMAT binary)")
            .await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT4, Type::INT8]));
        for _ in 0..rows_a_copy {
            writer.as_mut().write(&[&value(rows.into()), &created_at]).await?;
            rows += 1;
        }
        writer.finish().await?;
    }
    Ok(Written {
        rows,
        took: stopwatch.stop(),
    })
}

/// Lists as parameters, a statement and a commit for 1,000 rows.
pub(super) async fn unnest(client: &Client, effort: Effort, created_at: i64) -> Result<Written, Failure> {
    let insert = "INSERT INTO entry (value, created_at) SELECT * FROM unnest($1::INT[], $2::BIGINT[])";
    let insert = client.prepare(insert).await?;
    let (stopwatch, until) = (Stopwatch::start(), Instant::now() + effort.duration);
    let mut rows = 0_u32;
    let all_created_at = vec![created_at; ROWS_A_TRANSACTION];
    while Instant::now() < until {
        let values: Vec<i32> = (i64::from(rows)..).take(ROWS_A_TRANSACTION).map(value).collect();
        let inserted = client.execute(&insert, &[&values, &all_created_at]).await?;
        rows += u32::try_from(inserted).expect("at most the rows of a statement");
    }
    Ok(Written {
        rows,
        took: stopwatch.stop(),
    })
}

/// The column is an INT.
fn value(value: i64) -> i32 {
    i32::try_from(value).expect("no turn writes two thousand million rows")
}

/// A prepared INSERT a row on one of so many connections, each caller always on the same.
#[derive(Clone)]
pub(super) struct Pool {
    connections: Arc<[Mutex<(Client, Statement)>]>,
}

impl Pool {
    pub(super) async fn connect(url: &str, count: u32) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let client = connect(url).await?;
            let insert = client.prepare(INSERT).await?;
            connections.push(Mutex::new((client, insert)));
        }
        Ok(Self {
            connections: connections.into(),
        })
    }
}

impl Insert for Pool {
    async fn insert(&self, row: Row) -> Answer {
        let connection = &self.connections[row.caller as usize % self.connections.len()];
        let (client, insert) = &*connection.lock().await;
        told(client.execute(insert, &[&value(row.value), &row.created_at]).await)
    }
}

fn told(inserted: Result<u64, tokio_postgres::Error>) -> Answer {
    match inserted {
        Ok(1) => Ok(None),
        Ok(count) => Err(Refused::Otherwise(format!("{count} rows"))),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Err(Refused::NotUnique),
        Err(error) => Err(Refused::Otherwise(error.to_string())),
    }
}

/// What one writes by hand: a task that takes what waits, sends it as one transaction, and answers each caller.
pub(super) async fn by_hand(client: Client) -> Result<ByHand, Failure> {
    let insert = client.prepare(INSERT).await?;
    let (by_hand, waiting) = ByHand::new();
    tokio::spawn(async move {
        if let Err(error) = write_what_waits(&client, &insert, waiting).await {
            // Callers whose answers are dropped see it too.
            eprintln!("by hand: {error}");
        }
    });
    Ok(by_hand)
}

async fn write_what_waits(
    client: &Client,
    insert: &Statement,
    mut waiting: mpsc::Receiver<Waiting>,
) -> Result<(), tokio_postgres::Error> {
    let mut batch = Vec::with_capacity(ROWS_A_TRANSACTION);
    while waiting.recv_many(&mut batch, ROWS_A_TRANSACTION).await > 0 {
        // A row that fails takes the transaction with it: the others are sent again without it.
        while let Some((place, answer)) = transaction(client, insert, &batch).await? {
            batch.remove(place).answer(answer);
        }
        for waiting in batch.drain(..) {
            waiting.answer(Ok(None));
        }
    }
    Ok(())
}

/// Sends the rows without waiting for one another. If one fails, nothing is written, and it is told which and why.
async fn transaction(
    client: &Client,
    insert: &Statement,
    batch: &[Waiting],
) -> Result<Option<(usize, Answer)>, tokio_postgres::Error> {
    let rows = batch.iter().map(|Waiting { row, .. }| async move {
        told(client.execute(insert, &[&value(row.value), &row.created_at]).await)
    });
    // Polled in this order, and so sent in it.
    let (begun, answers) = join(client.batch_execute("BEGIN"), join_all(rows)).await;
    begun?;
    // Those after it fail because it has.
    let failed = answers.into_iter().enumerate().find(|(_, answer)| answer.is_err());
    let end = if failed.is_none() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await?;
    Ok(failed)
}

/// Forebay, connected, with all limits at their defaults.
pub(super) async fn writer(url: &str) -> Result<Writer, Failure> {
    let postgres = forebay::postgres::Postgres::connect(url)
        .await
        .map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(Writer::new(postgres))
}
