//! The embedded database behind the door: opened, served, and closed in order.
//!
//! Promises: at the end what waits to be written is written and the file is closed. An acknowledged write is never lost by that, nor by a
//! kill. Knows no listener.

use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_embedded::catalog::Catalog;
use forebay_embedded::session::cancel::{self, Cancels};
use forebay_embedded::session::shared::{Limits, Shared};
use forebay_embedded::session::{Identity, Session};
use forebay_embedded::sql;
use forebay_pg_wire::budget::InputBudget;
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::{Client, StartUpError};
use forebay_sqlite::{OpenError, Sqlite, connection};
use forebay_stream::Socket;
use forebay_write::{Write, Writer};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use tokio::sync::watch;

use crate::claim::Claim;
use crate::config::{Options, Synchronous};
use crate::door::Behind;
use crate::error::ServeError;
use crate::health::Health;
use crate::listeners::Peer;

/// The longest a stop waits for the Sync behind what was acknowledged: a client sends it with the statement, or at once behind it.
const SYNC_GRACE_MAX: Duration = Duration::from_secs(1);

/// A database that is open.
pub(crate) struct Embedded {
    shared: Arc<Shared>,
    health: Health,
    /// None where nothing is written.
    _claim: Option<Claim>,
}

impl Embedded {
    /// Opens it.
    pub(crate) fn open(options: &Options, phase: watch::Receiver<Phase>) -> Result<Self, ServeError> {
        let sequences = Arc::new(sql::Sequences::default());
        let sqlite = open(options, &sequences)?;
        let claim = if sqlite.is_read_only() {
            None
        } else {
            Some(Claim::on(&options.database)?)
        };
        let writer = Writer::builder()
            .max_items(options.batch_max_items)
            .max_wait(options.batch_max_wait)
            .build(sqlite.clone());
        let cancels = Arc::new(Cancels::default());
        tokio::spawn(look_for_the_gone(Arc::downgrade(&cancels)));
        let shared = Arc::new(Shared {
            sqlite,
            writer,
            catalog: Mutex::new(Catalog::new().map_err(ServeError::Catalog)?),
            cancels,
            plans: Arc::default(),
            advisory: Arc::default(),
            channels: Arc::default(),
            sequences,
            input: Arc::new(InputBudget::new(options.max_input_bytes, options.stall_timeout)),
            limits: Limits {
                max_message_bytes: options.max_message_bytes,
                max_result_bytes: options.max_result_bytes,
                statement_timeout: options.statement_timeout,
                idle_transaction_timeout: options.idle_transaction_timeout,
                idle_snapshot_timeout: options.idle_snapshot_timeout,
                stall_timeout: options.stall_timeout,
                // Well within what sessions are given between the word to stop and their abortion.
                sync_grace: SYNC_GRACE_MAX.min(options.drain_timeout / 8),
                max_statements: 10_000,
                max_portals: 1_000,
            },
            phase,
        });
        Ok(Self {
            health: Health::new(Arc::clone(&shared)),
            shared,
            _claim: claim,
        })
    }

    /// What is open, in a few words.
    pub(crate) fn describe(&self, options: &Options) -> String {
        let durability = if self.shared.sqlite.is_read_only() {
            "read-only".to_owned()
        } else {
            format!("WAL, synchronous={}", durability(options.synchronous).as_str())
        };
        format!("embedded SQLite {} ({durability})", options.database.display())
    }

    /// Why it is not well; none if it is.
    pub(crate) async fn ailing(&self) -> Option<String> {
        self.health.ailing().await
    }

    /// Brings the figures that are counted elsewhere into the metrics, when somebody asks for them.
    pub(crate) fn observe(&self) {
        let stats = self.shared.writer.stats();
        metrics::counter!("forebay_writes_total").absolute(stats.calls);
        metrics::counter!("forebay_write_batches_total").absolute(stats.batches);
        metrics::gauge!("forebay_writes_queued").set(stats.queued as f64);
    }

    /// Cancels whatever runs.
    pub(crate) fn cancel_all(&self) {
        self.shared.cancels.cancel_all();
    }

    /// Writes what waits to be written, and closes the file.
    pub(crate) async fn close(&self) {
        // There is no such table where there are no sequences.
        let _given_back = self.shared.writer.submit(Write::new(sql::GIVE_BACK, ())).await;
        self.shared.writer.drain().await;
        self.shared.sqlite.close().await;
    }
}

impl Behind for Embedded {
    async fn serve(&self, client: Client<Socket>, _: Peer) -> Result<(), StartUpError> {
        let shared = Arc::clone(&self.shared);
        let registration = shared.cancels.register(client.secret_key_bytes());
        registration.attach(client.frames.stream().socket(), client.frames.stream().is_tls());
        let Client {
            frames,
            output,
            user,
            database,
            parameters,
            ..
        } = client;
        let identity = Identity { user, database };
        Session::new(frames, output, shared, registration, identity)
            .run(&parameters)
            .await;
        Ok(())
    }

    async fn cancel(&self, process_id: i32, secret_key: &[u8]) {
        self.shared.cancels.cancel(process_id, secret_key);
    }
}

/// Cancels what runs for clients that have gone, for as long as there is a server.
async fn look_for_the_gone(cancels: Weak<Cancels>) {
    loop {
        tokio::time::sleep(cancel::LOOK_EVERY).await;
        let Some(cancels) = cancels.upgrade() else { return };
        cancels.cancel_for_the_gone();
    }
}

fn durability(synchronous: Synchronous) -> forebay_sqlite::Synchronous {
    match synchronous {
        Synchronous::Full => forebay_sqlite::Synchronous::Full,
        Synchronous::Normal => forebay_sqlite::Synchronous::Normal,
        Synchronous::Off => forebay_sqlite::Synchronous::Off,
    }
}

fn open(options: &Options, sequences: &Arc<sql::Sequences>) -> Result<Sqlite, OpenError> {
    let sequences = Arc::clone(sequences);
    let max_result_bytes = options.max_result_bytes;
    forebay_pg_values::text::limit_results(max_result_bytes);
    let builder = Sqlite::builder(&options.database)
        .synchronous(durability(options.synchronous))
        .busy_timeout(options.busy_timeout)
        .max_readers(options.readers)
        .max_rows_bytes(max_result_bytes);
    let builder = connection::prepare(builder, move |connection| {
        // A misspelt "column" is an error, not a text: as PostgreSQL has it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        // Clients are strangers to the file's schema, and it to them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        let longest = i32::try_from(max_result_bytes).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)?;
        sql::register(connection, &sequences)
    });
    builder.open()
}
