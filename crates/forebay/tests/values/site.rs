//! A database to try values on.

use std::fmt;
use std::hash::Hash;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use forebay::load::Loader;
use forebay::mysql::MySql;
use forebay::postgres::Postgres;
use forebay::sqlite::Sqlite;
use forebay::write::{IntoParameters, IntoValue, Outcome, ReadError, SqlKey, Writer};
use serde::de::DeserializeOwned;

/// A column's type on each of them.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    sqlite: &'static str,
    postgres: &'static str,
    mariadb: &'static str,
}

impl Column {
    pub(crate) const fn new(sqlite: &'static str, postgres: &'static str, mariadb: &'static str) -> Self {
        Self {
            sqlite,
            postgres,
            mariadb,
        }
    }
}

enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
    MariaDb(MySql),
}

pub(crate) struct Site {
    database: Database,
    pub(crate) writer: Writer,
    tables: AtomicUsize,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.database {
            Database::Sqlite(_) => "SQLite",
            Database::Postgres(_) => "PostgreSQL",
            Database::MariaDb(_) => "MariaDB",
        })
    }
}

impl Site {
    fn new(database: Database, writer: Writer) -> Self {
        let tables = AtomicUsize::new(0);
        Self {
            database,
            writer,
            tables,
        }
    }

    pub(crate) fn sqlite(path: &Path) -> Self {
        let database = Sqlite::open(path).unwrap();
        let writer = Writer::new(database.clone());
        Self::new(Database::Sqlite(database), writer)
    }

    pub(crate) async fn postgres(url: &str) -> Self {
        let database = Postgres::connect(url).await.unwrap();
        let writer = Writer::new(database.clone());
        Self::new(Database::Postgres(database), writer)
    }

    pub(crate) async fn mariadb(url: &str) -> Self {
        let database = MySql::connect(url).await.unwrap();
        let writer = Writer::new(database.clone());
        Self::new(Database::MariaDb(database), writer)
    }

    /// Whether it has integers above `i64::MAX`.
    pub(crate) fn has_unsigned(&self) -> bool {
        matches!(self.database, Database::MariaDb(_))
    }

    /// Whether it has years above 9999.
    pub(crate) fn has_far_years(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// Whether the text of a moment has an offset.
    pub(crate) fn tells_offsets(&self) -> bool {
        !matches!(self.database, Database::MariaDb(_))
    }

    /// What it keeps of a moment.
    pub(crate) fn kept(&self, moment: SystemTime) -> SystemTime {
        if matches!(self.database, Database::Sqlite(_)) {
            return moment;
        }
        let finer = match moment.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => after.subsec_nanos() % 1000,
            Err(before) => (1000 - before.duration().subsec_nanos() % 1000) % 1000,
        };
        moment - Duration::from_nanos(finer.into())
    }

    /// A new table of two columns, `id` and `x`.
    pub(crate) async fn table(&self, column: Column) -> String {
        let number = self.tables.fetch_add(1, Ordering::Relaxed);
        let table = format!("values_{}_{number}", std::process::id());
        let kind = match self.database {
            Database::Sqlite(_) => column.sqlite,
            Database::Postgres(_) => column.postgres,
            Database::MariaDb(_) => column.mariadb,
        };
        let create = format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, x {kind})");
        self.writer.execute(create, ()).await.unwrap();
        table
    }

    fn placeholders(&self) -> [&'static str; 2] {
        match self.database {
            Database::Sqlite(_) => ["?1", "?2"],
            Database::Postgres(_) => ["$1", "$2"],
            Database::MariaDb(_) => ["?", "?"],
        }
    }

    /// To insert both columns, and to read `x` by `id`.
    pub(crate) fn texts(&self, table: &str) -> [String; 2] {
        let [one, two] = self.placeholders();
        [
            format!("INSERT INTO {table} (id, x) VALUES ({one}, {two})"),
            format!("SELECT x FROM {table} WHERE id = {one}"),
        ]
    }

    pub(crate) async fn query(&self, sql: String, parameters: impl IntoParameters) -> Result<Outcome, ReadError> {
        match &self.database {
            Database::Sqlite(database) => database.query(sql, parameters).await,
            Database::Postgres(database) => database.query(sql, parameters).await,
            Database::MariaDb(database) => database.query(sql, parameters).await,
        }
    }

    fn loader<K, V>(&self, sql: String) -> Loader<K, V, ReadError>
    where
        K: SqlKey + Clone + Eq + Hash + Sync,
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        match &self.database {
            Database::Sqlite(database) => database.loader(sql),
            Database::Postgres(database) => database.loader(sql),
            Database::MariaDb(database) => database.loader(sql),
        }
    }

    /// The `id` of each `x`, by a loader, all at a time.
    pub(crate) async fn ids<K>(&self, table: &str, keys: Vec<K>) -> Vec<Result<Option<usize>, String>>
    where
        K: IntoValue + Clone + Eq + Hash + Send + Sync + 'static,
    {
        let [one, _] = self.placeholders();
        let ids = self.loader::<K, usize>(format!("SELECT id FROM {table} WHERE x = {one}"));
        let loads = keys.into_iter().map(|key| ids.load(key));
        let loaded = futures_util::future::join_all(loads).await;
        loaded
            .into_iter()
            .map(|id| id.map_err(|error| error.to_string()))
            .collect()
    }

    async fn load<V>(&self, sql: String, id: usize) -> Result<Option<V>, String>
    where
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let loaded = self.loader::<usize, V>(sql).load(id).await;
        loaded.map_err(|error| error.to_string())
    }

    /// Both columns.
    pub(crate) async fn rows<V>(&self, table: &str, id: usize) -> Result<Option<V>, String>
    where
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let [one, _] = self.placeholders();
        self.load(format!("SELECT id, x FROM {table} WHERE id = {one}"), id)
            .await
    }

    /// `x` alone.
    pub(crate) async fn loaded<V>(&self, table: &str, id: usize) -> Result<Option<V>, String>
    where
        V: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        self.load(self.texts(table)[1].clone(), id).await
    }
}
