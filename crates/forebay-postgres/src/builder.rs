//! Builder: the settings of connections that are to be made, and the making of the first one.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;
#[cfg(feature = "tls")]
use tokio_rustls::rustls;

use super::connector::{Connections, Connector};
use super::database::Postgres;
use super::inner::Inner;
use forebay_remote::address;
use forebay_remote::connections::Purpose;
use forebay_remote::retry::Backoff;
use forebay_remote::settings::Settings;
use forebay_write::WriteError;

/// Chooses settings of connections that are to be made; see [`Postgres::builder`].
#[must_use = "a builder does nothing until it connects"]
pub struct PostgresBuilder {
    config: Config,
    settings: Settings,
    #[cfg(feature = "tls")]
    tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
}

impl Postgres {
    /// Connects with the defaults of the [`builder`](Self::builder). The URL is as for libpq:
    /// `postgresql://user:password@host:5432/database`, or `host=/run/postgresql user=app dbname=app`. Whatever user or password
    /// has of `@ / : # ?` is percent-encoded in the first form.
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
    pub fn builder(url: &str) -> Result<PostgresBuilder, WriteError> {
        let mut config = Config::from_str(url).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            address::invalid(url, cause)
        })?;
        address::check(url, hosts(&config).chain(config.get_dbname()))?;
        if config.get_application_name().is_none() {
            config.application_name("forebay");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
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

    /// How long a statement waits inside a batch for a lock that another transaction holds. One that waits for longer leaves
    /// the batch and waits on a connection of its own, so that its neighbours need not. Default: 1 s.
    pub fn lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.settings.lock_timeout = lock_timeout;
        self
    }

    /// How long a new connection to one host may take, as `connect_timeout` in the URL says it. Default: 5 s.
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.config.connect_timeout(connect_timeout);
        self
    }

    /// Speaks TLS, as `sslmode` in the URL says: `require` to insist, while a server that has none is spoken to in clear if it is
    /// left out. Without this call no TLS is spoken.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = Some(tokio_postgres_rustls::MakeRustlsConnect::new(config));
        self
    }

    /// Connects, to see that the server is there and takes the user.
    ///
    /// # Errors
    /// [`WriteError::Unavailable`], at once.
    pub async fn connect(self) -> Result<Postgres, WriteError> {
        let server = name_of(&self.config);
        #[cfg(feature = "tls")]
        if self.tls.is_none() && !is_local(&self.config) {
            address::warn_of_listeners(&server, "PostgresBuilder::tls, with sslmode=require in the URL,");
        }
        let lock_timeout = self.settings.lock_timeout;
        let limits = self.settings.limits();
        let connector = Connector {
            config: self.config,
            #[cfg(feature = "tls")]
            tls: self.tls,
            settings: self.settings,
        };
        let connections = Connections::new(connector, limits, server);
        let at_once = &mut Backoff::new(Duration::ZERO);
        drop(connections.take(Purpose::Read, at_once).await?);
        Ok(Postgres {
            inner: Arc::new(Inner::new(connections, lock_timeout)),
        })
    }
}

/// The hosts that are reached over a network.
fn hosts(config: &Config) -> impl Iterator<Item = &str> {
    config.get_hosts().iter().filter_map(|host| match host {
        Host::Tcp(name) => Some(name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    })
}

#[cfg(feature = "tls")]
fn is_local(config: &Config) -> bool {
    hosts(config).all(address::is_this_machine) && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

/// Who is asked, and what for; never with a password.
fn name_of(config: &Config) -> String {
    let port = |at: usize| {
        config
            .get_ports()
            .get(at)
            .or(config.get_ports().first())
            .copied()
            .unwrap_or(5432)
    };
    let named = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(folder) => format!("{}:{}", folder.display(), port(at)),
    });
    let numbered = config.get_hostaddrs().iter().enumerate();
    let numbered = numbered.map(|(at, address)| format!("{address}:{}", port(at)));
    let mut addresses: Vec<String> = named.collect();
    if addresses.is_empty() {
        addresses = numbered.collect();
    }
    let user = config.get_user().unwrap_or("(none)");
    let database = config.get_dbname().unwrap_or(user);
    format!("PostgreSQL {user}@{}/{database}", addresses.join(","))
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
