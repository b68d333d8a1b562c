//! Builder: the settings of connections that are to be made, and the making of the first one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::connector::{Connections, Connector};
use super::database::Postgres;
use super::inner::Inner;
#[cfg(feature = "tls")]
use forebay_pg_link::config::SslMode;
use forebay_pg_link::config::{Config, Endpoint};
#[cfg(feature = "tls")]
use forebay_pg_link::rustls;
use forebay_remote::address;
use forebay_remote::backoff::Backoff;
use forebay_remote::connect_error::{ConnectError, unconnected};
use forebay_remote::connections::Purpose;
use forebay_remote::settings::Settings;

/// Chooses settings of connections that are to be made; see [`Postgres::builder`].
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::postgres::Postgres;
///
/// let database = Postgres::builder("postgresql://app@127.0.0.1/app")?
///     .max_connections(20)
///     .connect()
///     .await?;
/// # drop(database);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it connects"]
pub struct PostgresBuilder {
    config: Config,
    settings: Settings,
    #[cfg(feature = "tls")]
    tls: Option<rustls::ClientConfig>,
}

impl Postgres {
    /// Connects with the defaults of the [`builder`](Self::builder). The URL is as for libpq:
    /// `postgresql://user:password@host:5432/database`, or `host=/run/postgresql user=app dbname=app`. Whatever user or password
    /// has of `@ / : # ?` is percent-encoded in the first form.
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
    pub fn builder(url: &str) -> Result<PostgresBuilder, ConnectError> {
        let mut config = Config::from_str(url).map_err(|error| address::invalid(url, error))?;
        address::check(url, hosts(&config).chain(config.dbname.as_deref()))?;
        config.application_name.get_or_insert_with(|| "forebay".to_owned());
        config.connect_timeout.get_or_insert(Duration::from_secs(5));
        Ok(PostgresBuilder {
            config,
            settings: Settings::default(),
            #[cfg(feature = "tls")]
            tls: None,
        })
    }
}

impl PostgresBuilder {
    forebay_remote::setters!();

    /// How long a statement waits for a lock that another transaction holds before it leaves its batch and waits on a connection
    /// of its own, so that its neighbours need not. Default: 1 s. Beside others in a batch it waits for no longer than a quarter
    /// of the server's `deadlock_timeout`, whatever this is: nobody is to be the victim of a deadlock with strangers' writes.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.settings.lock_timeout = lock_timeout;
        self
    }

    /// How long a new connection to one host may take, as `connect_timeout` in the URL says it. Default: 5 s.
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.config.connect_timeout = Some(connect_timeout);
        self
    }

    /// Speaks TLS with these settings, whose verifier says whom to trust. When it is spoken, `sslmode` in the URL says: `require`
    /// to insist, while a server that has none is spoken to in clear if it is left out. Without this call `sslmode` and
    /// `sslrootcert` also say whom to trust, as for PostgreSQL's own client.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Connects, to see that the server is there and takes the user.
    ///
    /// # Errors
    /// [`ConnectError::Unavailable`], at once.
    pub async fn connect(self) -> Result<Postgres, ConnectError> {
        let server = name_of(&self.config);
        let unusable = |error: forebay_pg_link::ConnectError| ConnectError::Unavailable {
            cause: format!("{server}: {error}"),
        };
        #[cfg(feature = "tls")]
        let link = match &self.tls {
            Some(tls) => forebay_pg_link::Connector::tls(self.config, tls),
            None => forebay_pg_link::Connector::new(self.config),
        };
        #[cfg(not(feature = "tls"))]
        let link = forebay_pg_link::Connector::new(self.config);
        let link = link.map_err(unusable)?;
        #[cfg(feature = "tls")]
        if link.config().sslmode < SslMode::Require && !is_local(link.config()) {
            address::warn_of_listeners(&server, "sslmode=verify-full in the URL");
        }
        let limits = self.settings.limits();
        let connector = Connector {
            link,
            settings: self.settings,
        };
        let connections = Connections::new(connector, limits, server);
        let at_once = &mut Backoff::new(Duration::ZERO);
        let first = connections.take(Purpose::Read, at_once).await;
        drop(first.map_err(unconnected)?);
        Ok(Postgres {
            inner: Arc::new(Inner::new(connections)),
        })
    }
}

/// The hosts that are reached over a network.
fn hosts(config: &Config) -> impl Iterator<Item = &str> {
    config.hosts.iter().filter_map(|host| match &host.endpoint {
        Endpoint::Tcp { name, .. } => Some(name.as_str()),
        Endpoint::Unix(_) => None,
    })
}

#[cfg(feature = "tls")]
fn is_local(config: &Config) -> bool {
    config.hosts.iter().all(|host| match &host.endpoint {
        Endpoint::Tcp {
            address: Some(address), ..
        } => address.is_loopback(),
        Endpoint::Tcp { name, .. } => address::is_this_machine(name),
        Endpoint::Unix(_) => true,
    })
}

/// Who is asked, and what for; never with a password.
fn name_of(config: &Config) -> String {
    let addresses: Vec<String> = config.hosts.iter().map(ToString::to_string).collect();
    let user = config.user.as_deref().unwrap_or("(none)");
    let database = config.dbname.as_deref().unwrap_or(user);
    format!("PostgreSQL {user}@{}/{database}", addresses.join(","))
}

/// Without what the URL says: there may be a password in it.
impl fmt::Debug for PostgresBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_by_who_is_asked_where_and_for_what() {
        for (url, name) in [
            ("postgresql://app:pw@h:5433/d", "PostgreSQL app@h:5433/d"),
            ("postgresql://app:pw@h,i:1/d", "PostgreSQL app@h:5432,i:1/d"),
            ("postgresql://app@h", "PostgreSQL app@h:5432/app"),
            ("host=/run/pg user=app password=pw", "PostgreSQL app@/run/pg:5432/app"),
            ("hostaddr=10.0.0.1 user=app dbname=d", "PostgreSQL app@10.0.0.1:5432/d"),
        ] {
            assert_eq!(name_of(&url.parse().unwrap()), name);
        }
    }

    #[test]
    #[cfg(feature = "tls")]
    fn what_leaves_this_machine_is_known() {
        let is_local = |url: &str| is_local(&url.parse().unwrap());
        assert!(is_local("postgresql://app@localhost,127.0.0.1/d"));
        assert!(is_local("host=/run/pg user=app"));
        for url in ["postgresql://app@localhost,h/d", "hostaddr=10.0.0.1 user=app"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
