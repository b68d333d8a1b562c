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
use forebay_remote::address;
use forebay_remote::connections::Purpose;
use forebay_remote::retry::Backoff;
use forebay_remote::settings::Settings;
use forebay_write::WriteError;

/// Chooses settings of connections that are to be made; see [`MySql::builder`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct MySqlBuilder {
    options: Opts,
    connect_timeout: Duration,
    settings: Settings,
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
            connect_timeout: Duration::from_secs(5),
            settings: Settings::default(),
        })
    }
}

impl MySqlBuilder {
    forebay_remote::setters!();

    /// How long a statement waits for a lock that another transaction holds, in whole seconds, at least one. One in a batch that
    /// waits for longer leaves the batch and is tried again by itself, so that its neighbours need not wait. Default: 1 s.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.settings.lock_timeout = lock_timeout;
        self
    }

    /// How long a new connection may take. Default: 5 s.
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Speaks TLS, and nothing else, as `require_ssl=true` in the URL asks for, with what is trusted beside the well-known
    /// authorities. Without either none is spoken.
    #[cfg(feature = "tls")]
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
        let limits = self.settings.limits();
        let connector = Connector {
            options: options.into(),
            connect_timeout: self.connect_timeout,
            settings: self.settings,
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
