//! MariaDB and MySQL, with the durability that the server is set to.

use std::error::Error;

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use forebay::mysql::MySql;
use forebay::write::Writer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Statement};

use super::handles::Database;
use crate::entry::Entry;
use crate::unbatched::{Driver, unbatched};
use crate::users::{USERS, cached};

const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES (?, ?)";
const USER: &str = "SELECT id, name FROM users WHERE id = ?";
/// Commits of that many sessions share a flush in the server; more take turns on the processors.
const CONNECTIONS: usize = 32;

pub(super) async fn open(url: &str, pool: Option<usize>) -> Result<Database, Box<dyn Error>> {
    if Opts::from_url(url).is_ok_and(|options| options.db_name().is_none()) {
        return Err("the URL names no database: mysql://user:password@host:3306/DATABASE".into());
    }
    let mysql = MySql::connect(url).await?;
    let writer = Writer::new(mysql.clone());
    for table in [
        "CREATE TABLE IF NOT EXISTS entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, value INT NOT NULL, created_at BIGINT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS users (id BIGINT PRIMARY KEY, name TEXT NOT NULL)",
    ] {
        writer.execute(table, ()).await?;
    }
    let is_empty = mysql.query("SELECT id FROM users LIMIT 1", ()).await?.rows.is_empty();
    if is_empty {
        let rows: Vec<String> = (1..=USERS).map(|id| format!("({id}, 'User {id}')")).collect();
        let users = format!("INSERT INTO users (id, name) VALUES {}", rows.join(", "));
        writer.execute(users, ()).await?;
    }
    let version = mysql.query("SELECT version()", ()).await?;
    let version = version
        .rows
        .first()
        .and_then(|row| row.first()?.as_text())
        .unwrap_or_default();
    Ok(Database {
        name: format!("MariaDB or MySQL {version}"),
        writer,
        insert: INSERT,
        users: cached(mysql.loader(USER)),
        unbatched: unbatched(Alone::new(url)?, pool.unwrap_or(CONNECTIONS)),
    })
}

/// MariaDB or MySQL by its driver.
struct Alone {
    options: Opts,
}

impl Alone {
    fn new(url: &str) -> Result<Self, mysql_async::UrlError> {
        Ok(Self {
            options: Opts::from_url(url)?,
        })
    }
}

/// A connection, and the statement that is prepared on it.
struct Connection {
    link: Conn,
    insert: Statement,
    /// Set while an answer is owed: a visitor who leaves then must not leave the answer to the next.
    is_busy: bool,
}

impl Manager for Alone {
    type Type = Connection;
    type Error = mysql_async::Error;

    async fn create(&self) -> Result<Connection, mysql_async::Error> {
        let mut link = Conn::new(self.options.clone()).await?;
        let insert = link.prep(INSERT).await?;
        Ok(Connection {
            link,
            insert,
            is_busy: false,
        })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<mysql_async::Error> {
        if connection.is_busy {
            return Err(RecycleError::message(
                "the connection was lost, or left in the middle of something",
            ));
        }
        Ok(())
    }
}

impl Driver for Alone {
    async fn insert(&self, connection: &mut Connection, entry: Entry) -> Result<i64, mysql_async::Error> {
        connection.is_busy = true;
        let Connection { link, insert, .. } = connection;
        link.exec_drop(&*insert, (entry.value, entry.created_at)).await?;
        let id = link.last_insert_id().unwrap_or_default();
        connection.is_busy = false;
        Ok(id.cast_signed())
    }

    async fn close(&self, connection: Connection) {
        // The row is written; that a good-bye fails changes nothing.
        let _ = connection.link.disconnect().await;
    }
}
