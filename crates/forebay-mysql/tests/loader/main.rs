//! Loaders that read MariaDB (and MySQL, if one is named), as their user sees them: a key's outcome is what its query gives alone.
//!
//! One server for all tests, a database for each. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod beside_writes;
mod endings;
mod errors;
mod outcomes;
mod same_as_alone;
mod snapshot;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use forebay_batch::load::{Key, LoadError, Loader};
use forebay_mysql::MySql;
use forebay_mysql::{ReadError, SqlKey, one_row};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use serde::de::DeserializeOwned;
use testbed::{ForTests, MariaDb};

/// A database of a test's own.
struct Database {
    mysql: MySql,
    url: String,
    name: String,
}

fn server_url() -> String {
    static SERVER: OnceLock<ForTests<MariaDb>> = OnceLock::new();
    SERVER.get_or_init(|| MariaDb::for_tests().unwrap()).url()
}

/// A server whose sessions begin otherwise than those of most.
fn odd_server_url() -> String {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    let start = || {
        MariaDb::builder()
            .setting("transaction-isolation", "READ-COMMITTED")
            .start()
            .unwrap()
    };
    SERVER.get_or_init(start).url()
}

impl Database {
    /// With that schema, statements parted by `;`.
    async fn new(schema: &str) -> Self {
        Self::on(server_url, schema).await
    }

    async fn on(server: fn() -> String, schema: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = tokio::task::spawn_blocking(server).await.unwrap();
        let name = format!(
            "loader_{}_{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut admin = connection(&server).await;
        admin
            .query_drop(format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))
            .await
            .unwrap();
        let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        if !schema.is_empty() {
            connection(&url).await.query_drop(schema).await.unwrap();
        }
        let mysql = MySql::builder(&url)
            .unwrap()
            .max_connections(4)
            .connect()
            .await
            .unwrap();
        Self { mysql, url, name }
    }

    /// Another program's connection.
    async fn connection(&self) -> Conn {
        connection(&self.url).await
    }

    /// Statements parted by `;`, on another program's connection.
    async fn say(&self, sql: &str) {
        self.connection().await.query_drop(sql).await.unwrap();
    }
}

async fn connection(url: &str) -> Conn {
    let options = Opts::from_url(url).unwrap();
    Conn::new(OptsBuilder::from_opts(options).prefer_socket(false))
        .await
        .unwrap()
}

/// What a loader over that query gives for these keys, which must be one fetch.
async fn load<K: Key + SqlKey, V>(
    database: &Database,
    sql: &'static str,
    keys: Vec<K>,
) -> Vec<Result<Option<V>, LoadError<ReadError>>>
where
    V: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let loader: Loader<K, V, ReadError> = Loader::builder().max_items(10_000).build(one_row(&database.mysql, sql));
    let outcomes = loader.load_many(keys).await;
    assert!(loader.stats().fetches <= 1);
    outcomes
}

async fn values<K: Key + SqlKey, V>(database: &Database, sql: &'static str, keys: Vec<K>) -> Vec<Option<V>>
where
    V: DeserializeOwned + Clone + Send + Sync + 'static,
{
    load(database, sql, keys)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// The rows of each key.
async fn lists<K: Key + SqlKey, V>(database: &Database, sql: &'static str, keys: Vec<K>) -> Vec<Vec<V>>
where
    V: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let loader: Loader<K, Vec<V>, ReadError> = database.mysql.loader_many(sql);
    let outcomes = loader.load_many(keys).await;
    outcomes.into_iter().map(|rows| rows.unwrap().unwrap()).collect()
}

/// Whether the server runs that query once for many keys. `EXECUTION` in its text stands for what tells: the number of the
/// execution in its session.
async fn is_one_query<K: Key + SqlKey>(database: &Database, sql: &str, keys: Vec<K>) -> bool {
    let version: Option<String> = database
        .connection()
        .await
        .query_first("SELECT version()")
        .await
        .unwrap();
    let status = if version.unwrap().contains("MariaDB") {
        "information_schema.SESSION_STATUS"
    } else {
        "performance_schema.session_status"
    };
    let told = format!("(SELECT VARIABLE_VALUE FROM {status} WHERE VARIABLE_NAME = 'Com_stmt_execute') AS execution");
    let sql: &'static str = Box::leak(sql.replace("EXECUTION", &told).into_boxed_str());
    let found: Vec<Option<String>> = values(database, sql, keys).await;
    let mut found: Vec<String> = found.into_iter().flatten().collect();
    assert!(found.len() > 1, "{sql}");
    let rows = found.len();
    found.sort();
    found.dedup();
    assert!(found.len() == 1 || found.len() == rows, "{sql}: {found:?}");
    found.len() == 1
}
