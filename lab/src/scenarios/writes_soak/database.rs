//! The databases that are killed: how each is started, made a table in, and read.
//!
//! Promises: their own defaults for all that durability costs. What is read is read by a plain driver.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use forebay::mysql::MySql;
use forebay::postgres::Postgres;
use forebay::write::Writer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use tokio_postgres::NoTls;

use crate::failure::Failure;
use crate::machine::first_line_of;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Killed {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
}

/// `tag` is the call's own, and no constraint keeps it from being there twice; `number` is not there twice.
const POSTGRES_TABLE: &str = "CREATE TABLE entry (id bigserial PRIMARY KEY, tag bigint NOT NULL, number bigint UNIQUE, \
    lane bigint, place bigint CHECK (place >= 0)); INSERT INTO entry (tag, number) VALUES (-1, 0)";
const MARIADB_TABLE: &str = "CREATE TABLE entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, tag BIGINT NOT NULL, \
    number BIGINT UNIQUE, lane BIGINT, place BIGINT CHECK (place >= 0)); INSERT INTO entry (tag, number) VALUES (-1, 0)";
/// In the order in which they were numbered, without the row that was there from the beginning.
const ROWS: &str = "SELECT id, tag, lane, place FROM entry WHERE tag >= 0 ORDER BY id";
/// A server recovers meanwhile.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) tag: i64,
    /// What it is ordered by, and where it stands in that order.
    pub(super) ordered: Option<(i64, i64)>,
}

pub(super) enum Database {
    Postgres(testbed::Postgres),
    MariaDb(testbed::MariaDb),
}

impl Database {
    pub(super) fn start(killed: Killed, folder: &Path) -> Result<Self, Failure> {
        Ok(match killed {
            Killed::Postgres => Self::Postgres(testbed::Postgres::builder().folder_in(folder).start()?),
            Killed::Mariadb => {
                let builder = testbed::MariaDb::builder().survives_kills();
                Self::MariaDb(builder.folder_in(folder).start()?)
            }
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Postgres(server) => server.address(),
            Self::MariaDb(server) => server.address(),
        }
    }

    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        let killed = match self {
            Self::Postgres(server) => server.kill9().map_err(|error| (error, server.output())),
            Self::MariaDb(server) => server.kill9().map_err(|error| (error, server.output())),
        };
        // It has ended by itself: its last words say why.
        let ended = |(error, output): (testbed::Error, String)| {
            let lines: Vec<&str> = output.lines().collect();
            let last = lines[lines.len().saturating_sub(80)..].join("\n");
            Failure::Wrong(format!("{error}; it said:\n{last}"))
        };
        killed.map(drop).map_err(ended)
    }

    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        match self {
            Self::Postgres(server) => server.restart()?,
            Self::MariaDb(server) => server.restart()?,
        }
        Ok(())
    }

    pub(super) async fn make_table(&self) -> Result<(), Failure> {
        match self {
            Self::Postgres(server) => postgres(server).await?.batch_execute(POSTGRES_TABLE).await?,
            Self::MariaDb(server) => mariadb(server).await?.query_drop(MARIADB_TABLE).await?,
        }
        Ok(())
    }

    /// What the server itself finds wrong with the table, whoever wrote to it.
    pub(super) async fn own_check(&self) -> Result<Option<String>, Failure> {
        let Self::MariaDb(server) = self else { return Ok(None) };
        let said: Vec<(String, String, String, String)> =
            mariadb(server).await?.query("CHECK TABLE entry EXTENDED").await?;
        let is_sound = said.iter().all(|(_, _, kind, text)| kind == "status" && text == "OK");
        let found = said.into_iter().map(|(_, _, kind, text)| format!("{kind}: {text}"));
        Ok((!is_sound).then(|| found.collect::<Vec<_>>().join("; ")))
    }

    /// Every row that a caller has written.
    pub(super) async fn rows(&self) -> Result<Vec<Row>, Failure> {
        let row = |(id, tag, lane, place): (i64, i64, Option<i64>, Option<i64>)| Row {
            id,
            tag,
            ordered: lane.zip(place),
        };
        Ok(match self {
            Self::Postgres(server) => {
                let rows = postgres(server).await?.query(ROWS, &[]).await?;
                let row = |told: &tokio_postgres::Row| row((told.get(0), told.get(1), told.get(2), told.get(3)));
                rows.iter().map(row).collect()
            }
            Self::MariaDb(server) => mariadb(server).await?.query_map(ROWS, row).await?,
        })
    }
}

async fn postgres(server: &testbed::Postgres) -> Result<tokio_postgres::Client, Failure> {
    let (client, driver) = tokio_postgres::connect(&server.url(), NoTls).await?;
    tokio::spawn(driver);
    Ok(client)
}

async fn mariadb(server: &testbed::MariaDb) -> Result<Conn, Failure> {
    let options = Opts::from_url(&server.url()).map_err(mysql_async::Error::from)?;
    Ok(Conn::new(OptsBuilder::from_opts(options).prefer_socket(false)).await?)
}

pub(super) fn version(killed: Killed) -> String {
    match killed {
        Killed::Postgres => first_line_of("pg_config", &["--version"]),
        Killed::Mariadb => first_line_of("mariadbd", &["--version"]),
    }
}

/// The statement of one row; PostgreSQL tells an id only to who asks for it.
pub(super) fn insert(killed: Killed, asks_for_id: bool) -> &'static str {
    match (killed, asks_for_id) {
        (Killed::Postgres, true) => "INSERT INTO entry (tag, number, lane, place) VALUES ($1, $2, $3, $4) RETURNING id",
        (Killed::Postgres, false) => "INSERT INTO entry (tag, number, lane, place) VALUES ($1, $2, $3, $4)",
        (Killed::Mariadb, true) => "INSERT INTO entry (tag, number, lane, place) VALUES (?, ?, ?, ?) RETURNING id",
        (Killed::Mariadb, false) => "INSERT INTO entry (tag, number, lane, place) VALUES (?, ?, ?, ?)",
    }
}

/// As a user would set it up, behind that address.
pub(super) async fn writer(killed: Killed, address: SocketAddr) -> Result<Writer, Failure> {
    let wrong =
        |error: forebay::postgres::ConnectError| Failure::Wrong(format!("a server that runs is not reached: {error}"));
    Ok(match killed {
        Killed::Postgres => {
            let url = format!("postgresql://postgres@{address}/postgres");
            let builder = Postgres::builder(&url).map_err(wrong)?.retry_for(RETRY_FOR);
            Writer::new(builder.connect().await.map_err(wrong)?)
        }
        Killed::Mariadb => {
            let url = format!("mysql://root@{address}/test");
            let builder = MySql::builder(&url).map_err(wrong)?.retry_for(RETRY_FOR);
            Writer::new(builder.connect().await.map_err(wrong)?)
        }
    })
}
