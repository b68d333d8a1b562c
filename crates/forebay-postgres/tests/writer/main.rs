//! The Writer over PostgreSQL, held to its contract: an acknowledged write is there, an error has no effect, a statement that
//! fails fails alone, and every count and row is its caller's own.
//!
//! One real server for all, which `FOREBAY_TEST_POSTGRES` may name; each test has a schema of its own. Batches are made by their size, never by waiting.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod alone;
mod faults;
mod order;
mod outcomes;
mod session;
mod sets;
mod transaction;

use std::sync::OnceLock;
use std::time::Duration;

use forebay_postgres::Postgres;
use forebay_write::{Outcome, ReadError, StatementErrorKind, Value, Write, WriteError, Writer};
use futures_util::future::join_all;
use testbed::ForTests;
use tokio::sync::OnceCell;

/// What this binary's schemas are called after.
const SUITE: &str = "writer_postgres";

type Answer = Result<Outcome, WriteError>;

/// A schema of one test's own on the server that all share.
struct Database {
    /// By which everything of the test's finds the schema.
    url: String,
    /// The test's own way to it, not through a writer.
    plain: tokio_postgres::Client,
}

impl Database {
    async fn new(schema: &str) -> Self {
        static SERVER: OnceLock<ForTests<testbed::Postgres>> = OnceLock::new();
        static SWEPT: OnceCell<()> = OnceCell::const_new();
        let server = SERVER.get_or_init(|| testbed::Postgres::for_tests().unwrap()).url();
        SWEPT.get_or_init(|| sweep(&server)).await;
        Self::on(&server, schema).await
    }

    async fn on(server: &str, schema: &str) -> Self {
        let name = testbed::scratch_name(SUITE);
        let options = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{options}options=-c%20search_path%3D{name}");
        let plain = plain(&url).await;
        plain
            .batch_execute(&format!("CREATE SCHEMA {name}; {schema}"))
            .await
            .unwrap();
        Self { url, plain }
    }

    async fn open(&self) -> Postgres {
        Postgres::connect(&self.url).await.unwrap()
    }

    /// What a stranger reads, a row a line, columns parted by `|`.
    async fn read(&self, sql: &str) -> Vec<String> {
        let sql = format!("SELECT concat_ws('|', {}) FROM {}", split(sql).0, split(sql).1);
        let rows = self.plain.query(&sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

async fn plain(url: &str) -> tokio_postgres::Client {
    let (plain, driver) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(driver);
    plain
}

/// Drops what runs before have left on the server.
async fn sweep(server: &str) {
    let plain = plain(server).await;
    let schemas = plain
        .query("SELECT nspname::text FROM pg_namespace", &[])
        .await
        .unwrap();
    for name in schemas.iter().map(|row| row.get::<_, String>(0)) {
        if testbed::is_left_over(SUITE, &name) {
            let drop = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
            plain.batch_execute(&drop).await.unwrap();
        }
    }
}

/// `columns FROM rest`.
fn split(sql: &str) -> (&str, &str) {
    sql.split_once(" FROM ").unwrap()
}

/// Writes all of it as one batch, in this order.
async fn together(database: &Postgres, writes: Vec<Write>) -> Vec<Answer> {
    // The batch goes because it is full: the window is never waited for.
    let writer = Writer::builder()
        .max_items(writes.len())
        .max_in_flight(1)
        .max_wait(Duration::from_secs(600))
        .build(database.clone());
    let answers = join_all(writes.into_iter().map(|write| writer.submit(write))).await;
    assert_eq!(writer.stats().batches, 1, "the statements were meant to share a batch");
    answers
}

#[track_caller]
fn kind(answer: &Answer) -> StatementErrorKind {
    match answer {
        Err(WriteError::Statement(error)) => error.kind,
        other => panic!("not the statement's own error: {other:?}"),
    }
}

/// What kind of statement error a query had.
#[track_caller]
fn kind_of_read(answer: &Result<Outcome, ReadError>) -> StatementErrorKind {
    match answer {
        Err(ReadError::Statement(error)) => error.kind,
        other => panic!("not the statement's own error: {other:?}"),
    }
}

#[track_caller]
fn assert_ok(answer: &Answer) -> &Outcome {
    match answer {
        Ok(outcome) => outcome,
        Err(error) => panic!("not acknowledged: {error:?}"),
    }
}

fn integers(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Integer).collect()
}
