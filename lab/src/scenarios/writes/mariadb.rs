//! The cases on MariaDB: its server and the table.
//!
//! Promises: MariaDB's own defaults for all that durability costs; only the number of connections is raised. Who writes is in
//! `mariadb_systems`.

use std::rc::Rc;

use forebay::write::Writer;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::by_hand::ByHand;
use super::cases::Written;
use super::forebay::{Id, Statement};
use super::mariadb_systems::{self, INSERT, Pool, connect};
use super::served::{self, Bulk, CONNECTIONS_MAX, Served};
use crate::callers::TAKEN;
use crate::effort::Effort;
use crate::failure::Failure;
use crate::goal::Goal;
use crate::machine::first_line_of;
use crate::scenario::{LIMIT, Stage, Trial, Yardsticks};

pub(super) const ABOUT: &str = "Rows into MariaDB with its own durability (innodb_flush_log_at_trx_commit 1, no binary log), over \
    loopback TCP, server and\ncallers on the same machine; the table is new in each turn. Callers are tokio tasks on 2 worker \
    threads; each inserts a row,\nwaits for its own durable outcome (rows affected, its id), and inserts the next. Every row is \
    found again under the id that its\ncaller was told. Processor time is that of the callers' side alone.\n\
    limit: one connection, a prepared INSERT of 1,000 rows, a commit each, nobody to answer. text: the same with the values \
    in the text.\n\
    unbatched: a prepared INSERT a row, each caller with a connection of its own. pool of 10, 20, 50, 100: as many connections, \
    each\nfor the same share of the callers, who wait for it in turn.\n\
    by hand: an mpsc channel to a task that writes what waits, up to 1,000 rows, statement by statement in one transaction, \
    a oneshot a\ncaller.";

/// The server.
pub(super) struct MariaDb {
    server: testbed::MariaDb,
}

pub(super) fn versions() -> Vec<(String, String)> {
    vec![("server".to_owned(), first_line_of("mariadbd", &["--version"]))]
}

/// Everything that takes part, on a server in the stage's folder.
pub(super) fn trials(stage: &Stage<'_>) -> Result<Vec<Box<dyn Trial>>, Failure> {
    let server = testbed::MariaDb::builder()
        .folder_in(stage.folder)
        .setting("max_connections", CONNECTIONS_MAX)
        .start();
    let server = server.map_err(served::absent("MariaDB"))?;
    Ok(served::trials(&Rc::new(MariaDb { server })))
}

pub(super) fn yardsticks() -> Yardsticks {
    served::yardsticks::<MariaDb>()
}

pub(super) fn goals() -> Vec<Goal> {
    served::goals::<MariaDb>(&[])
}

impl MariaDb {
    async fn connect(&self) -> Result<Conn, Failure> {
        connect(&self.server.url()).await
    }
}

impl Served for MariaDb {
    const BULKS: &'static [Bulk] = &[
        Bulk {
            system: LIMIT,
            case: "1,000 rows a statement",
        },
        Bulk {
            system: "text",
            case: "1,000 rows a statement",
        },
    ];
    const OF_LIMIT: f64 = 0.55;
    const INSERT: Statement = Statement {
        sql: INSERT,
        id: Id::Last,
    };
    const INSERT_RETURNING: Option<Statement> = None;

    type Pool = Pool;

    async fn renew(&self, unique: bool) -> Result<(), Failure> {
        let mut connection = self.connect().await?;
        connection.query_drop("DROP TABLE IF EXISTS entry").await?;
        let constraint = if unique { " UNIQUE" } else { "" };
        connection
            .query_drop(format!(
                "CREATE TABLE entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, value INT{constraint}, created_at BIGINT)"
            ))
            .await?;
        if unique {
            connection.exec_drop(INSERT, (TAKEN, 0)).await?;
        }
        Ok(connection.disconnect().await?)
    }

    async fn rows(&self) -> Result<Vec<(i64, i64, i64)>, Failure> {
        let mut connection = self.connect().await?;
        let rows = connection.exec("SELECT id, value, created_at FROM entry", ()).await?;
        connection.disconnect().await?;
        Ok(rows)
    }

    async fn sum(&self) -> Result<(i64, i64), Failure> {
        let mut connection = self.connect().await?;
        let read = "SELECT count(*), CAST(coalesce(sum(value), 0) AS SIGNED) FROM entry";
        let found = connection.exec_first(read, ()).await?;
        connection.disconnect().await?;
        found.ok_or_else(|| Failure::Wrong("an aggregate gave no row".to_owned()))
    }

    async fn bulk(&self, bulk: &Bulk, effort: Effort, created_at: i64) -> Result<Written, Failure> {
        let mut connection = self.connect().await?;
        let written = if bulk.system == LIMIT {
            mariadb_systems::prepared(&mut connection, effort, created_at).await?
        } else {
            mariadb_systems::text(&mut connection, effort, created_at).await?
        };
        connection.disconnect().await?;
        Ok(written)
    }

    async fn pool(&self, connections: u32) -> Result<Pool, Failure> {
        Pool::connect(&self.server.url(), connections).await
    }

    async fn by_hand(&self) -> Result<ByHand, Failure> {
        mariadb_systems::by_hand(self.connect().await?).await
    }

    async fn writer(&self) -> Result<Writer, Failure> {
        mariadb_systems::writer(&self.server.url()).await
    }
}
