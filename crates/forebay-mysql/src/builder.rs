//! Builder: the settings of connections that are to be made, and the making of the first one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::connector::{Connections, Connector};
use super::database::MySql;
use super::inner::Inner;
#[cfg(feature = "tls")]
use forebay_mysql_link::config::TlsOptions;
use forebay_mysql_link::config::{Config, Endpoint};
use forebay_remote::address;
use forebay_remote::backoff::Backoff;
use forebay_remote::connect_error::{ConnectError, unconnected};
use forebay_remote::connections::Purpose;
use forebay_remote::settings::Settings;

/// Chooses settings of connections that are to be made; see [`MySql::builder`].
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::mysql::MySql;
///
/// let database = MySql::builder("mysql://app@127.0.0.1/app")?
///     .max_connections(20)
///     .connect()
///     .await?;
/// # drop(database);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct MySqlBuilder {
    config: Config,
    connect_timeout: Duration,
    settings: Settings,
}

impl MySql {
    /// Connects with the defaults of the [`builder`](Self::builder). The URL is `mysql://user:password@host:3306/database`, or
    /// begins with `mariadb:`; whatever user or password has of `@ / : # ?` is percent-encoded in it. Without a database in it,
    /// statements name their tables' own.
    ///
    /// # Errors
    /// [`ConnectError::InvalidUrl`]; [`ConnectError::Unavailable`] if the server cannot be reached or refuses the user.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::builder(url)?.connect().await
    }

    /// Settings other than the defaults.
    ///
    /// # Errors
    /// [`ConnectError::InvalidUrl`].
    pub fn builder(url: &str) -> Result<MySqlBuilder, ConnectError> {
        let mut config = Config::from_str(url).map_err(|error| address::invalid(url, error))?;
        let host = match &config.endpoint {
            Endpoint::Tcp(host, _) => Some(host.as_str()),
            Endpoint::Unix(_) => None,
        };
        address::check(url, host.into_iter().chain(config.database.as_deref()))?;
        config.tcp_keepalive = Some(Duration::from_secs(30));
        Ok(MySqlBuilder {
            config,
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
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.config.tls = Some(options);
        self
    }

    /// Connects, to see that the server is there and takes the user.
    ///
    /// # Errors
    /// [`ConnectError::Unavailable`], at once.
    pub async fn connect(self) -> Result<MySql, ConnectError> {
        let server = name_of(&self.config);
        #[cfg(feature = "tls")]
        if self.config.tls.is_none() && !is_local(&self.config) {
            address::warn_of_listeners(&server, "require_ssl=true in the URL, or MySqlBuilder::tls,");
        }
        let link = forebay_mysql_link::Connector::new(self.config).map_err(|error| ConnectError::Unavailable {
            cause: format!("{server}: {error}"),
        })?;
        let limits = self.settings.limits();
        let connector = Connector {
            link,
            connect_timeout: self.connect_timeout,
            settings: self.settings,
        };
        let connections = Connections::new(connector, limits, server);
        let at_once = &mut Backoff::new(Duration::ZERO);
        let mut lease = connections.take(Purpose::Write, at_once).await.map_err(unconnected)?;
        let server = lease.server();
        if server.flush_at_commit != Some(1) {
            tracing::warn!(
                innodb_flush_log_at_trx_commit = server.flush_at_commit,
                "an acknowledged write may be lost when the database's machine fails: the server does not flush at commit"
            );
        }
        let keeps = lease.has_tables_without_transactions().await;
        let keeps = keeps.map_err(|failure| unconnected(failure.into_write_error()))?;
        drop(lease);
        Ok(MySql {
            inner: Arc::new(Inner::new(connections, keeps)),
        })
    }
}

/// Who is asked, and what for; never with a password.
fn name_of(config: &Config) -> String {
    let user = config.user.as_deref().unwrap_or_default();
    let database = config.database.as_deref().unwrap_or_default();
    format!("MariaDB or MySQL {user}@{}/{database}", config.endpoint)
}

#[cfg(feature = "tls")]
fn is_local(config: &Config) -> bool {
    match &config.endpoint {
        Endpoint::Tcp(host, _) => address::is_this_machine(host),
        Endpoint::Unix(_) => true,
    }
}

/// Without what the URL says: there may be a password in it.
impl fmt::Debug for MySqlBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlBuilder").finish_non_exhaustive()
    }
}
