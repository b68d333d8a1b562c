//! Builder: the settings of connections that are to be made, and the making of the first one.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tls")]
use mysql_async::SslOpts;
use mysql_async::{Opts, OptsBuilder};

use super::connector::{Connections, Connector};
use super::database::MySql;
use super::error::Failure;
use super::inner::Inner;
use super::session::Session;
use forebay_remote::address;
use forebay_remote::connections::{Limits, Purpose};
use forebay_remote::retry::Backoff;
use forebay_write::WriteError;

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
        let connector = Connector {
            options: options.into(),
            connect_timeout: self.connect_timeout,
            session: self.session,
        };
        let limits = Limits {
            connections: self.connections,
            busy_for: connector.session.answer_timeout,
            retry_for: self.retry_for,
        };
        let connections = Connections::new(connector, limits, server);
        let at_once = &mut Backoff::new(Duration::ZERO);
        let mut lease = connections.take(Purpose::Write, at_once).await?;
        let server = lease.server();
        if server.flush_at_commit != Some(1) {
            tracing::warn!(
                innodb_flush_log_at_trx_commit = server.flush_at_commit,
                "an acknowledged write may be lost when the database's machine fails: the server does not flush at commit"
            );
        }
        let keeps = lease.has_tables_without_transactions().await;
        let keeps = keeps.map_err(Failure::into_write_error)?;
        drop(lease);
        Ok(MySql {
            inner: Arc::new(Inner::new(connections, keeps)),
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
