//! The in-memory database that answers catalog queries, and when it is rebuilt.
//!
//! Knows when the schema changed; what the rows say is [`super::fill`]'s, what a query means [`super::rewrite`]'s.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use postgres_types::Type;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::directory::Directory;
use super::error::CatalogError;
use super::own_session::OwnSession;
use super::rewrite::{self, Translation};
use super::{fill, functions, own, own_session, source, types};

/// How many steps of SQLite's virtual machine lie between two looks at whether to stop.
const STEPS_BETWEEN_LOOKS: i32 = 2_000;

/// Who asks, and where: what `current_database()`, `current_user` and `version()` answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The name of the one database.
    pub database: String,
    /// The client's user, who owns everything.
    pub user: String,
    /// The text of `version()`.
    pub version: String,
}

/// The emulated catalog: an SQLite connection of its own, in memory. One thread at a time.
#[derive(Debug)]
pub struct Catalog {
    connection: Connection,
    directory: Arc<RwLock<Directory>>,
    settings: Arc<RwLock<functions::Settings>>,
    /// What the rows were filled from: file, schema version and identity. `None` when they have to be read again in any case.
    filled: Option<(String, i64, String, Identity)>,
}

impl Catalog {
    /// An empty catalog; [`refresh`](Self::refresh) fills it.
    ///
    /// # Errors
    /// When SQLite is out of memory.
    pub fn new() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        let directory = Arc::new(RwLock::new(Directory::default()));
        // A misspelt "column" has to be an error, not a text.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(
            "PRAGMA case_sensitive_like = ON;
             ATTACH ':memory:' AS pg_catalog;
             ATTACH ':memory:' AS information_schema;
             BEGIN",
        )?;
        let settings = Arc::default();
        functions::register(&connection, &directory, &settings)?;
        fill::create(&connection)?;
        connection.execute_batch("COMMIT")?;
        Ok(Self {
            connection,
            directory,
            settings,
            filled: None,
        })
    }

    /// Shows the schema of `source`'s main database as it is now. Costs one pragma when neither schema nor identity changed.
    ///
    /// # Errors
    /// When the schema cannot be read; the catalog then shows what it showed before.
    pub fn refresh(&mut self, source: &Connection, identity: &Identity) -> rusqlite::Result<()> {
        let version: i64 = source.query_row("PRAGMA main.schema_version", [], |row| row.get(0))?;
        let file = source.path().unwrap_or_default();
        // Sequences and schemas are rows, of which the schema's version tells nothing.
        let kept = own::rows_text(source)?;
        let current = |(filled, of, rows, whose): &(String, i64, String, Identity)| {
            filled == file && *of == version && *rows == kept && whose == identity
        };
        // Databases without a file all look alike, so they are always read again.
        if !file.is_empty() && self.filled.as_ref().is_some_and(current) {
            return Ok(());
        }
        let schema = source::read(source)?;
        let next = Directory::of(&schema, &identity.database, &identity.user, &identity.version);
        let previous = std::mem::replace(&mut *self.directory.write(), next);
        let filled = self.connection.unchecked_transaction().and_then(|transaction| {
            fill::replace(&transaction, &schema)?;
            transaction.commit()
        });
        if let Err(error) = filled {
            *self.directory.write() = previous;
            return Err(error);
        }
        // Inside a transaction the schema may hold what is rolled back later, and another change then takes the same number.
        self.filled = source
            .is_autocommit()
            .then(|| (file.to_owned(), version, kept, identity.clone()));
        Ok(())
    }

    /// Translates one PostgreSQL catalog query into SQLite's SQL for [`connection`](Self::connection).
    ///
    /// # Errors
    /// Names what was not understood; see [`CatalogError`].
    pub fn translate(sql: &str) -> Result<Translation, CatalogError> {
        rewrite::translate(sql)
    }

    /// Where translated queries run: prepare, bind `$n` by name, step. Only to read. A recursive query may run for ever, as in
    /// PostgreSQL: a caller that cancels keeps the connection's interrupt handle.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What `current_setting` and `pg_backend_pid` answer from now on: the settings of the session that asks, by name in lower case, and
    /// its number.
    pub fn answer_settings(&self, settings: BTreeMap<String, String>, process: i32) {
        self.directory
            .write()
            .follow(settings.get("search_path").map_or("", String::as_str), process);
        *self.settings.write() = settings;
    }

    /// Whether a translated query reads what a session is shown of itself.
    pub fn reads_own_session(sql: &str) -> bool {
        own_session::is_asked_for(sql)
    }

    /// Lets `pg_prepared_statements`, `pg_cursors` and `pg_stat_activity` show this session, and no other.
    ///
    /// # Errors
    /// When SQLite is out of memory.
    pub fn show_own_session(&self, session: &OwnSession) -> rusqlite::Result<()> {
        let directory = self.directory.read();
        own_session::show(&self.connection, session, &directory.database, &directory.user)
    }

    /// Lets `pg_settings` show them.
    ///
    /// # Errors
    /// When SQLite is out of memory.
    pub fn show_settings(&self) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM pg_catalog.pg_settings", [])?;
        let sql =
            "INSERT INTO pg_catalog.pg_settings (name, setting, reset_val, pending_restart) VALUES (?1, ?2, ?2, 0)";
        let mut statement = self.connection.prepare_cached(sql)?;
        for (name, value) in &*self.settings.read() {
            let spelled = match name.as_str() {
                "datestyle" => "DateStyle",
                "intervalstyle" => "IntervalStyle",
                "timezone" => "TimeZone",
                name => name,
            };
            statement.execute([spelled, value])?;
        }
        Ok(())
    }

    /// The name behind an OID of a `reg…` type, which is how it is written as text; `None` for a type that has no names.
    ///
    /// # Errors
    /// As SQLite stands, never.
    pub fn name_of(&self, kind: &Type, oid: i64) -> rusqlite::Result<Option<String>> {
        if !types::is_registered(kind) {
            return Ok(None);
        }
        let sql = format!("SELECT {}(?1)", types::name_function(kind));
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_row([oid], |row| row.get(0))
    }

    /// Interrupts the queries that run from now on when `when` says so; `None` takes that back.
    ///
    /// # Errors
    /// Never, as SQLite stands.
    pub fn interrupt_when(&mut self, when: Option<impl FnMut() -> bool + Send + 'static>) -> rusqlite::Result<()> {
        self.connection.progress_handler(STEPS_BETWEEN_LOOKS, when)
    }
}
