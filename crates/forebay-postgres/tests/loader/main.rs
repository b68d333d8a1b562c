//! Loaders that read PostgreSQL, as their user sees them: a key's outcome is what its query gives alone.
//!
//! One server for all tests, which `FOREBAY_TEST_POSTGRES` may name, and a database for each. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod beside_writes;
mod endings;
mod errors;
mod outcomes;
mod same_as_alone;
mod snapshot;

use std::sync::OnceLock;

use forebay_batch::load::{Key, LoadError, Loader};
use forebay_postgres::Postgres;
use forebay_postgres::{ReadError, SqlKey, one_row};
use serde::de::DeserializeOwned;
use testbed::ForTests;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

/// What this binary's databases are called after.
const SUITE: &str = "loader_postgres";

/// A database of a test's own.
struct Database {
    postgres: Postgres,
    /// A connection beside it.
    client: Client,
    url: String,
}

async fn client(url: &str) -> Client {
    let (client, driver) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(driver);
    client
}

/// Drops what runs before have left on the server.
async fn sweep(admin: &Client) {
    let databases = admin.query("SELECT datname::text FROM pg_database", &[]).await.unwrap();
    for name in databases.iter().map(|row| row.get::<_, String>(0)) {
        if testbed::is_left_over(SUITE, &name) {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            admin.batch_execute(&drop).await.unwrap();
        }
    }
}

impl Database {
    async fn new(schema: &str) -> Self {
        static SERVER: OnceLock<ForTests<testbed::Postgres>> = OnceLock::new();
        static SWEPT: OnceCell<()> = OnceCell::const_new();
        let server = tokio::task::spawn_blocking(|| SERVER.get_or_init(|| testbed::Postgres::for_tests().unwrap()))
            .await
            .unwrap();
        let name = testbed::scratch_name(SUITE);
        let admin = client(&server.url()).await;
        SWEPT.get_or_init(|| sweep(&admin)).await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (server_url, _) = server
            .url()
            .rsplit_once('/')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let url = format!("{server_url}/{name}");
        let client = client(&url).await;
        client.batch_execute(schema).await.unwrap();
        let postgres = Postgres::builder(&url)
            .unwrap()
            .max_connections(4)
            .connect()
            .await
            .unwrap();
        Self { postgres, client, url }
    }

    async fn say(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }
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
    let loader: Loader<K, V, ReadError> = Loader::builder()
        .max_items(10_000)
        .build(one_row(&database.postgres, sql));
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
    let loader: Loader<K, Vec<V>, ReadError> = database.postgres.loader_many(sql);
    let outcomes = loader.load_many(keys).await;
    outcomes.into_iter().map(|rows| rows.unwrap().unwrap()).collect()
}

/// Whether the server runs that query once for many keys. `NOW` in its text stands for what tells.
async fn is_one_query<K: Key + SqlKey>(database: &Database, sql: &str, keys: Vec<K>) -> bool {
    let sql: &'static str = Box::leak(sql.replace("NOW", "current_query() AS now").into_boxed_str());
    let texts: Vec<Option<String>> = values(database, sql, keys).await;
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    assert!(!texts.is_empty(), "{sql}");
    let lateral = texts.iter().filter(|text| text.contains("LATERAL")).count();
    assert!(lateral == 0 || lateral == texts.len());
    lateral > 0
}
