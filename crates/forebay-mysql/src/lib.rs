//! The Writer's MariaDB and MySQL: a pool of connections, on each of which a batch is one transaction. Tested on MariaDB only.
//!
//! Promises: an acknowledged write is committed, with the durability that the server is set to
//! (`innodb_flush_log_at_trx_commit = 1`, its default, puts it on the disk first; at anything else a warning is logged when
//! connecting). What was lost before its commit was asked for is written again on another connection; what was lost while it was
//! asked for is [`OutcomeUnknown`](forebay_write::WriteError::OutcomeUnknown). Reading and writing share the connections, and
//! neither starves the other.
//!
//! What a caller is told: rows affected are those that were *changed*, as the server counts them (an UPDATE that leaves a row as
//! it was counts 0, an upsert that updates counts 2); the id is the one the server would tell that statement alone. A statement
//! with RETURNING is told neither by the server: its count is the number of its rows, and its id is in them if it asks for it.
//!
//! What a batch changes: statements share one snapshot and the locks until the commit; `NOW()` may be the same for neighbours;
//! a statement that waits for somebody's lock for longer than the lock timeout leaves its place to those behind it, unless it
//! is [ordered](forebay_write::Write::ordered_by). Tables without transactions (MyISAM, Aria) are written as they are; what a
//! lost batch has done to them is `OutcomeUnknown`.
//!
//! `batch` decides what is committed, `set` writes many INSERTs as one, `facts` says where that is safe, `link` sends and waits,
//! `pool` lends links, `plan` reads texts, `value` turns values into the server's and back.

mod batch;
mod database;
mod error;
mod facts;
mod link;
mod load;
mod plan;
mod pool;
mod reading;
mod server;
mod set;
mod statements;
mod transaction;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder};
use tokio::sync::Semaphore;

use self::error::Failure;
use self::link::Session;
use self::plan::Plans;
use self::pool::{Links, Refusal};
use forebay_remote::address;
use forebay_remote::retry::Backoff;
use forebay_write::{Outcome, Parameters, Sql, WriteError};

pub use self::load::{Answered, Read, ReadError, SqlKey, all_rows, one_row};
pub use self::transaction::Transaction;
/// For [`MySqlBuilder::tls`].
#[cfg(feature = "tls")]
pub use mysql_async::SslOpts;

/// A MariaDB or MySQL database and the connections to it. Clones are handles to the same ones; the last one dropped closes them.
#[derive(Clone)]
pub struct MySql {
    inner: Arc<Inner>,
}

struct Inner {
    links: Links,
    plans: Plans,
    /// Statements that wait for a lock on a connection of their own.
    patient: Semaphore,
    retry_for: Duration,
    /// There are tables in which nothing can be undone. Only ever set.
    keeps_what_is_lost: AtomicBool,
}

/// Settings of connections that are to be made.
#[derive(Clone)]
pub struct MySqlBuilder {
    options: Opts,
    connections: usize,
    connect_timeout: Duration,
    retry_for: Duration,
    session: Session,
}

impl MySql {
    /// Connects with the defaults of the [`builder`](Self::builder). The URL is `mysql://user:password@host:3306/database`, or
    /// begins with `mariadb:`; whatever user or password has of `@ / : # ?` is percent-encoded in it. Without a database in it,
    /// statements name their tables' own.
    ///
    /// # Errors
    /// [`WriteError::InvalidUrl`]; [`WriteError::Unavailable`] if the server cannot be reached or refuses the user.
    pub async fn connect(url: &str) -> Result<Self, WriteError> {
        Self::builder(url)?.connect().await
    }

    /// Settings other than the defaults.
    ///
    /// # Errors
    /// [`WriteError::InvalidUrl`].
    pub fn builder(url: &str) -> Result<MySqlBuilder, WriteError> {
        let known = url.strip_prefix("mariadb:").map(|rest| format!("mysql:{rest}"));
        let known = known.as_deref().unwrap_or(url);
        let options = Opts::from_url(known).map_err(|error| address::invalid(known, error))?;
        address::check(known, options.db_name())?;
        Ok(MySqlBuilder {
            options,
            connections: 16,
            connect_timeout: Duration::from_secs(5),
            retry_for: Duration::from_secs(10),
            session: Session {
                statements: 256,
                rows_bytes_max: 64 << 20,
                lock_timeout: Duration::from_secs(1),
                answer_timeout: Duration::from_secs(60),
            },
        })
    }

    /// Reads all rows of a query. It sees every write acknowledged before.
    ///
    /// # Errors
    /// The statement's own; [`WriteError::Unavailable`]; [`WriteError::Refused`] if it is not a statement that reads.
    ///
    /// # Cancel safety
    /// Dropped before it completes, the query may go on at the server.
    pub async fn query(&self, sql: impl Into<Sql>, parameters: impl Into<Parameters>) -> Result<Outcome, WriteError> {
        let (sql, parameters) = (sql.into(), parameters.into());
        let plan = self.inner.plans.of(&sql);
        if let Some(reason) = plan.refusal() {
            return Err(WriteError::Refused { reason });
        }
        if !plan.reads {
            let reason = "a query only reads; write with a Writer".to_owned();
            return Err(WriteError::Refused { reason });
        }
        let permit = self.inner.links.permit_to_read().await?;
        let mut backoff = Backoff::new(self.inner.retry_for);
        loop {
            let mut lent = self.inner.links.take(&permit, &mut backoff).await?;
            let result = lent.link.execute(&sql, &parameters).await;
            if plan.changes_session {
                lent.link.mark_changed();
                lent.link.tidy_up().await;
            }
            match result {
                Ok(outcome) => return Ok(outcome),
                // It reads: to do it again does no harm.
                Err(Failure::Lost { cause, .. }) => {
                    self.inner.links.note_loss();
                    drop(lent);
                    match backoff.next_delay() {
                        Some(delay) => tokio::time::sleep(delay).await,
                        None => return Err(WriteError::Unavailable { cause }),
                    }
                }
                Err(failure) => return Err(failure.into_write_error()),
            }
        }
    }

    /// Begins a transaction of the caller's own, on a connection of its own, with the server's default isolation.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], [`WriteError::Closed`].
    ///
    /// # Cancel safety
    /// Dropped before it completes, nothing has happened.
    pub async fn begin(&self) -> Result<Transaction, WriteError> {
        Transaction::begin(Arc::clone(&self.inner)).await
    }

    /// Takes no more work: what waits or comes gets [`WriteError::Closed`]. Waits for what runs, then closes the connections.
    pub async fn close(&self) {
        self.inner.links.close().await;
    }
}

impl MySqlBuilder {
    /// The most connections. Default: 16.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        assert!(connections > 0, "without a connection nothing can be written");
        self.connections = connections;
        self
    }

    /// How many prepared statements each connection keeps. Default: 256.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn statement_cache(mut self, statements: usize) -> Self {
        assert!(statements > 0, "a statement is prepared before it is executed");
        self.session.statements = statements;
        self
    }

    /// The most memory that the rows of one statement may take, in bytes. One that returns more fails with
    /// [`TooLarge`](forebay_write::StatementErrorKind::TooLarge), without effect; or, where it was alone in its batch and is
    /// committed, with [`WriteError::OutcomeUnknown`]. Default: 64 MiB.
    #[must_use]
    pub fn rows_bytes_max(mut self, bytes: usize) -> Self {
        self.session.rows_bytes_max = bytes;
        self
    }

    /// How long a statement waits for a lock that another transaction holds, in whole seconds, at least one. One in a batch that
    /// waits for longer leaves the batch and is tried again by itself, so that its neighbours need not wait. Default: 1 s.
    #[must_use]
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.session.lock_timeout = lock_timeout;
        self
    }

    /// How long the server may take to answer; after that the connection counts as lost. For as long a connection is waited
    /// for that others have, before it is [`WriteError::Unavailable`]. Default: 60 s.
    #[must_use]
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.session.answer_timeout = answer_timeout;
        self
    }

    /// How long a new connection may take. Default: 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// For how long a write is tried again that had no effect: the server was away, a deadlock, a lock. Default: 10 s.
    #[must_use]
    pub fn retry_for(mut self, retry_for: Duration) -> Self {
        self.retry_for = retry_for;
        self
    }

    /// Speaks TLS, and nothing else, as `require_ssl=true` in the URL asks for, with what is trusted beside the well-known
    /// authorities. Without either none is spoken.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, options: SslOpts) -> Self {
        self.options = OptsBuilder::from_opts(self.options).ssl_opts(options).into();
        self
    }

    /// Connects, to see that the server is there and takes the user.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], at once.
    pub async fn connect(self) -> Result<MySql, WriteError> {
        let server = name_of(&self.options);
        #[cfg(feature = "tls")]
        if self.options.ssl_opts().is_none() && !is_local(&self.options) {
            address::warn_of_listeners(&server, "require_ssl=true in the URL, or MySqlBuilder::tls,");
        }
        let options = OptsBuilder::from_opts(self.options)
            // Statements are kept here, by the text as it was given.
            .stmt_cache_size(0)
            // What was asked for is what is connected to.
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            // Both are asked of the server here; and a row that it sends is taken, whatever it takes itself.
            .max_allowed_packet(Some(1 << 30))
            .wait_timeout(Some(0))
            .client_found_rows(false);
        let connect_timeout = self.connect_timeout;
        let links = Links::new(options.into(), self.session, self.connections, connect_timeout);
        let permit = links.permit_to_write().await?;
        let mut lent = match links.try_take(&permit).await {
            Ok(lent) => lent,
            Err(Refusal::Closed | Refusal::Busy) => unreachable!("nobody else has it"),
            Err(Refusal::Server(error)) => {
                let cause = format!("{server}: {}", error::said_of_connecting(&error, connect_timeout));
                return Err(WriteError::Unavailable { cause });
            }
        };
        let server = Arc::clone(lent.link.server());
        if server.flush_at_commit != Some(1) {
            tracing::warn!(
                innodb_flush_log_at_trx_commit = server.flush_at_commit,
                "an acknowledged write may be lost when the database's machine fails: the server does not flush at commit"
            );
        }
        let keeps = lent.link.has_tables_without_transactions().await;
        let keeps = keeps.map_err(Failure::into_write_error)?;
        drop(lent);
        drop(permit);
        Ok(MySql {
            inner: Arc::new(Inner {
                links,
                plans: Plans::default(),
                patient: Semaphore::new((self.connections / 4).max(1)),
                retry_for: self.retry_for,
                keeps_what_is_lost: AtomicBool::new(keeps),
            }),
        })
    }
}

/// Who is asked, and what for; never with a password.
fn name_of(options: &Opts) -> String {
    let user = options.user().unwrap_or_default();
    let database = options.db_name().unwrap_or_default();
    match options.socket() {
        Some(socket) => format!("MariaDB or MySQL {user}@{socket}/{database}"),
        None => format!(
            "MariaDB or MySQL {user}@{}:{}/{database}",
            options.ip_or_hostname(),
            options.tcp_port()
        ),
    }
}

#[cfg(feature = "tls")]
fn is_local(options: &Opts) -> bool {
    options.socket().is_some() || address::is_this_machine(options.ip_or_hostname())
}

impl Inner {
    /// Whether what was lost before its commit may be there all the same.
    fn keeps_what_is_lost(&self) -> bool {
        self.keeps_what_is_lost.load(Ordering::Relaxed)
    }
}
