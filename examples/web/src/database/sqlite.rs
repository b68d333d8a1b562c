//! SQLite, embedded: WAL and synchronous=FULL for all who write.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadpool::managed::{Manager, Metrics, RecycleResult};
use forebay::sqlite::Sqlite;
use forebay::write::Writer;
use rusqlite::Connection;
use tokio::task::block_in_place;

use super::handles::Database;
use crate::entry::Entry;
use crate::unbatched::{Driver, unbatched};
use crate::users::{USERS, cached};

const INSERT: &str = "INSERT INTO entry (value, created_at) VALUES (?1, ?2)";
const USER: &str = "SELECT id, name FROM users WHERE id = ?1";
/// More than one would only stand in line for SQLite's one lock, and do so by sleeping.
const CONNECTIONS: usize = 1;
/// As Forebay waits for other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn open(path: &str, pool: Option<usize>) -> Result<Database, Box<dyn Error>> {
    let sqlite = Sqlite::open(path).map_err(|cause| format!("{path} cannot be opened: {cause}"))?;
    let writer = Writer::new(sqlite.clone());
    for table in [
        "CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, value INTEGER NOT NULL, created_at INTEGER NOT NULL)",
        "CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    ] {
        writer.execute(table, ()).await?;
    }
    let users = "INSERT INTO users
        WITH RECURSIVE user(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM user WHERE id < ?1)
        SELECT id, 'User ' || id FROM user WHERE NOT EXISTS (SELECT * FROM users)";
    writer.execute(users, (USERS,)).await?;
    Ok(Database {
        name: format!("SQLite {}, {path} (WAL, synchronous=FULL)", rusqlite::version()),
        writer,
        insert: INSERT,
        users: cached(sqlite.loader(USER)),
        unbatched: unbatched(Alone::new(path), pool.unwrap_or(CONNECTIONS)),
    })
}

/// SQLite by its driver. Its calls block, so the runtime is told.
struct Alone {
    path: PathBuf,
}

impl Alone {
    fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
        }
    }
}

impl Manager for Alone {
    type Type = Connection;
    type Error = rusqlite::Error;

    async fn create(&self) -> Result<Connection, rusqlite::Error> {
        block_in_place(|| {
            let connection = Connection::open(&self.path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // The file is in WAL mode already: Forebay has opened it first.
            connection.pragma_update(None, "synchronous", "FULL")?;
            Ok(connection)
        })
    }

    async fn recycle(&self, _: &mut Connection, _: &Metrics) -> RecycleResult<rusqlite::Error> {
        Ok(())
    }
}

impl Driver for Alone {
    async fn insert(&self, connection: &mut Connection, entry: Entry) -> Result<i64, rusqlite::Error> {
        block_in_place(|| {
            let mut insert = connection.prepare_cached(INSERT)?;
            insert.execute((entry.value, entry.created_at))?;
            Ok(connection.last_insert_rowid())
        })
    }

    async fn close(&self, connection: Connection) {
        block_in_place(|| drop(connection));
    }
}
