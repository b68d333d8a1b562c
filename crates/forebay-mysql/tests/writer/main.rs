//! The Writer over MariaDB (and MySQL, if one is named), held to its contract: an acknowledged write is there, an error has no
//! effect, a statement that fails fails alone, and every count, id and row is its caller's own.
//!
//! Each file is one part of the contract. All tests share one server, each in a database of its own, but for those that kill
//! theirs or count what it does. Nothing here sleeps and hopes.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test through and through, also where clippy sees no #[test]"
)]

mod alone;
mod broken;
mod failing_alone;
mod locks;
mod many;
mod numbering;
mod opening;
mod order;
mod outcomes;
mod transaction;
mod values;

use std::sync::OnceLock;
use std::time::Duration;

use forebay_mysql::{MySql, MySqlBuilder};
use forebay_write::{Outcome, StatementErrorKind, Value, Write, WriteError, Writer};
use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row};
use testbed::{ForTests, MariaDb};
use tokio::sync::OnceCell;

/// What this binary's databases are called after.
const SUITE: &str = "writer_mysql";

type Answer = Result<Outcome, WriteError>;

/// The server that the tests share; it ends with this process, unless `FOREBAY_TEST_MYSQL` names it.
async fn server_url() -> String {
    static SERVER: OnceLock<ForTests<MariaDb>> = OnceLock::new();
    static SWEPT: OnceCell<()> = OnceCell::const_new();
    let url = SERVER.get_or_init(|| MariaDb::for_tests().unwrap()).url();
    SWEPT.get_or_init(|| sweep(&url)).await;
    url
}

/// Drops what runs before have left on the server.
async fn sweep(server: &str) {
    let mut conn = Conn::from_url(server).await.unwrap();
    for name in rows_of(&mut conn, "SHOW DATABASES").await {
        if testbed::is_left_over(SUITE, &name) {
            conn.query_drop(format!("DROP DATABASE IF EXISTS {name}"))
                .await
                .unwrap();
        }
    }
}

/// A database of one test's own.
struct Database {
    url: String,
}

impl Database {
    /// With that schema, statements parted by `;`.
    async fn new(schema: &str) -> Self {
        Self::on(&server_url().await, schema).await
    }

    /// On a server of the test's own.
    async fn on(server: &str, schema: &str) -> Self {
        let name = testbed::scratch_name(SUITE);
        let mut conn = Conn::from_url(server).await.unwrap();
        conn.query_drop(format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))
            .await
            .unwrap();
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        let database = Self { url };
        if !schema.is_empty() {
            database.run(schema).await;
        }
        database
    }

    fn builder(&self) -> MySqlBuilder {
        MySql::builder(&self.url).unwrap()
    }

    async fn open(&self) -> MySql {
        self.builder().connect().await.unwrap()
    }

    /// Another program's connection.
    async fn plain(&self) -> Conn {
        let options = Opts::from_url(&self.url).unwrap();
        Conn::new(OptsBuilder::from_opts(options).prefer_socket(false))
            .await
            .unwrap()
    }

    /// Statements parted by `;`, on another program's connection.
    async fn run(&self, sql: &str) {
        self.plain().await.query_drop(sql).await.unwrap();
    }

    /// What another program reads now, a row a line, columns parted by `|`.
    async fn read(&self, sql: &str) -> Vec<String> {
        rows_of(&mut self.plain().await, sql).await
    }
}

async fn rows_of(conn: &mut Conn, sql: &str) -> Vec<String> {
    let rows: Vec<Row> = conn.query(sql).await.unwrap();
    rows.into_iter()
        .map(|row| {
            let texts = row.unwrap().into_iter().map(|value| match value {
                mysql_async::Value::NULL => "NULL".to_owned(),
                mysql_async::Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                other => other.as_sql(true),
            });
            texts.collect::<Vec<_>>().join("|")
        })
        .collect()
}

/// Waits until a connection of that database waits for a lock; its number.
async fn lock_waiter(database: &Database) -> u64 {
    let mut conn = database.plain().await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let here = format!("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{name}'");
    loop {
        let ids = rows_of(&mut conn, &here).await;
        // Not INNODB_TRX, which is not brought up to date while it is looked at.
        let status = rows_of(&mut conn, "SHOW ENGINE INNODB STATUS").await;
        let waiting = status[0]
            .split("---TRANSACTION")
            .filter(|transaction| transaction.contains("LOCK WAIT"));
        for transaction in waiting {
            let id = transaction
                .split("thread id ")
                .nth(1)
                .and_then(|rest| rest.split(',').next());
            if let Some(id) = id.filter(|id| ids.iter().any(|here| here == id)) {
                return id.parse().unwrap();
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Writes all of it as one batch, in this order.
async fn together(mysql: &MySql, writes: Vec<Write>) -> Vec<Answer> {
    // One lane, and the batch goes because it is full: the window is never waited for.
    let writer = Writer::builder()
        .max_in_flight(1)
        .max_items(writes.len())
        .max_wait(Duration::from_secs(600))
        .build(mysql.clone());
    let answers = join_all(writes.into_iter().map(|write| writer.submit(write))).await;
    assert_eq!(writer.stats().batches, 1, "the statements were meant to share a batch");
    answers
}

/// As `together`, of statements without parameters.
async fn together_plainly(mysql: &MySql, statements: &[&'static str]) -> Vec<Answer> {
    together(mysql, statements.iter().map(|sql| Write::new(*sql, ())).collect()).await
}

/// What kind of statement error it was.
#[track_caller]
fn kind(answer: &Answer) -> StatementErrorKind {
    match answer {
        Err(WriteError::Statement(error)) => error.kind,
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

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
