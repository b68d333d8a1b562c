//! How each system writes rows to MariaDB: in bulk, row by row, and by hand; and Forebay's handle.
//!
//! All prepare their statement before the clock starts, and answer only after the commit.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use forebay::write::Writer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Params, Statement, Value};
use tokio::sync::{Mutex, mpsc};

use super::by_hand::{Answer, ByHand, ROWS_A_TRANSACTION, Waiting};
use super::cases::Written;
use crate::callers::{Insert, Refused, Row};
use crate::effort::Effort;
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

/// What every system executes for a row.
pub(super) const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES (?, ?)";
/// ER_DUP_ENTRY.
const NOT_UNIQUE: u16 = 1062;

/// A connection over TCP, as all systems have it.
pub(super) async fn connect(url: &str) -> Result<Conn, Failure> {
    let options = mysql_async::Opts::from_url(url).map_err(mysql_async::Error::from)?;
    Ok(Conn::new(OptsBuilder::from_opts(options).prefer_socket(false)).await?)
}

/// A prepared statement and a commit for 1,000 rows.
pub(super) async fn prepared(connection: &mut Conn, effort: Effort, created_at: i64) -> Result<Written, Failure> {
    let places = vec!["(?, ?)"; ROWS_A_TRANSACTION].join(", ");
    let insert = format!("INSERT INTO entry (value, created_at) VALUES {places}");
    let insert = connection.prep(insert).await?;
    let (stopwatch, until) = (Stopwatch::start(), Instant::now() + effort.duration);
    let mut rows = 0_u32;
    while Instant::now() < until {
        let values = (i64::from(rows)..).take(ROWS_A_TRANSACTION);
        let values: Vec<Value> = values.flat_map(|value| [value.into(), created_at.into()]).collect();
        connection.exec_drop(&insert, Params::Positional(values)).await?;
        rows += written(connection)?;
    }
    Ok(Written {
        rows,
        took: stopwatch.stop(),
    })
}

/// The same with the values in the text.
pub(super) async fn text(connection: &mut Conn, effort: Effort, created_at: i64) -> Result<Written, Failure> {
    let (stopwatch, until) = (Stopwatch::start(), Instant::now() + effort.duration);
    let mut rows = 0_u32;
    while Instant::now() < until {
        let mut insert = "INSERT INTO entry (value, created_at) VALUES ".to_owned();
        for (place, value) in (i64::from(rows)..).take(ROWS_A_TRANSACTION).enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(insert, "{comma}({value},{created_at})").expect("a string takes all text");
        }
        connection.query_drop(insert).await?;
        rows += written(connection)?;
    }
    Ok(Written {
        rows,
        took: stopwatch.stop(),
    })
}

fn written(connection: &Conn) -> Result<u32, Failure> {
    let count = connection.affected_rows();
    u32::try_from(count).map_err(|_| Failure::Wrong(format!("{count} rows by a statement")))
}

/// A prepared INSERT a row on one of so many connections, each caller always on the same.
#[derive(Clone)]
pub(super) struct Pool {
    connections: Arc<[Mutex<(Conn, Statement)>]>,
}

impl Pool {
    pub(super) async fn connect(url: &str, count: u32) -> Result<Self, Failure> {
        let mut connections = Vec::new();
        for _ in 0..count {
            let mut connection = connect(url).await?;
            let insert = connection.prep(INSERT).await?;
            connections.push(Mutex::new((connection, insert)));
        }
        Ok(Self {
            connections: connections.into(),
        })
    }
}

impl Insert for Pool {
    async fn insert(&self, row: Row) -> Answer {
        let connection = &self.connections[row.caller as usize % self.connections.len()];
        let (connection, insert) = &mut *connection.lock().await;
        execute(connection, insert, row).await
    }
}

async fn execute(connection: &mut Conn, insert: &Statement, row: Row) -> Answer {
    match connection.exec_drop(insert, (row.value, row.created_at)).await {
        Ok(()) if connection.affected_rows() == 1 => {
            let id = connection.last_insert_id().and_then(|id| i64::try_from(id).ok());
            id.map(Some).ok_or_else(|| Refused::Otherwise("no id".to_owned()))
        }
        Ok(()) => Err(Refused::Otherwise(format!("{} rows", connection.affected_rows()))),
        Err(mysql_async::Error::Server(error)) if error.code == NOT_UNIQUE => Err(Refused::NotUnique),
        Err(error) => Err(Refused::Otherwise(error.to_string())),
    }
}

/// What one writes by hand: a task that takes what waits, commits it, and answers each caller.
pub(super) async fn by_hand(mut connection: Conn) -> Result<ByHand, Failure> {
    let insert = connection.prep(INSERT).await?;
    let (by_hand, waiting) = ByHand::new();
    tokio::spawn(async move {
        if let Err(error) = write_what_waits(&mut connection, &insert, waiting).await {
            // Callers whose answers are dropped see it too.
            eprintln!("by hand: {error}");
        }
    });
    Ok(by_hand)
}

async fn write_what_waits(
    connection: &mut Conn,
    insert: &Statement,
    mut waiting: mpsc::Receiver<Waiting>,
) -> mysql_async::Result<()> {
    let mut batch = Vec::with_capacity(ROWS_A_TRANSACTION);
    let mut answers = Vec::with_capacity(ROWS_A_TRANSACTION);
    while waiting.recv_many(&mut batch, ROWS_A_TRANSACTION).await > 0 {
        connection.query_drop("BEGIN").await?;
        for Waiting { row, .. } in &batch {
            // A row that breaks a constraint undoes only itself.
            answers.push(execute(connection, insert, *row).await);
        }
        connection.query_drop("COMMIT").await?;
        for (waiting, answer) in batch.drain(..).zip(answers.drain(..)) {
            waiting.answer(answer);
        }
    }
    Ok(())
}

/// A writer with all limits at their defaults.
pub(super) async fn writer(url: &str) -> Result<Writer, Failure> {
    let mysql = forebay::mysql::MySql::connect(url)
        .await
        .map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(Writer::new(mysql))
}
