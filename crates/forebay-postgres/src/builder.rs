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
use super::session::Session;
use forebay_remote::address;
use forebay_remote::connections::{Limits, Purpose};
use forebay_remote::retry::Backoff;
use forebay_write::WriteError;

/// Settings of connections that are to be made.
pub struct PostgresBuilder {
    config: Config,
    connections: usize,
    retry_for: Duration,
    session: Session,
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
            connections: 16,
            retry_for: Duration::from_secs(10),
            session: Session {
                statements: 256,
                rows_bytes_max: 64 << 20,
                lock_timeout: Duration::from_secs(1),
                answer_timeout: Duration::from_secs(60),
            },
            #[cfg(feature = "tls")]
            tls: None,
        })
    }
}

impl PostgresBuilder {
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

    /// How long a statement waits inside a batch for a lock that another transaction holds. One that waits for longer leaves
    /// the batch and waits on a connection of its own, so that its neighbours need not. Default: 1 s.
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

    /// How long a new connection to one host may take, as `connect_timeout` in the URL says it. Default: 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.config.connect_timeout(connect_timeout);
        self
    }

    /// The most memory that the rows of one statement may take, in bytes, as they are received. One that returns more fails with
    /// [`TooLarge`](forebay_write::StatementErrorKind::TooLarge), without effect; or, where it was alone in its batch and is
    /// committed, with [`WriteError::OutcomeUnknown`]. Default: 64 MiB.
    #[must_use]
    pub fn rows_bytes_max(mut self, bytes: usize) -> Self {
        self.session.rows_bytes_max = bytes;
        self
    }

    /// For how long a write is tried again that had no effect: the server was away, a deadlock, a serialization failure, a
    /// lock. Default: 10 s.
    #[must_use]
    pub fn retry_for(mut self, retry_for: Duration) -> Self {
        self.retry_for = retry_for;
        self
    }

    /// Speaks TLS, as `sslmode` in the URL says: `require` to insist, while a server that has none is spoken to in clear if it is
    /// left out. Without this call no TLS is spoken.
    #[cfg(feature = "tls")]
    #[must_use]
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
        let lock_timeout = self.session.lock_timeout;
        let limits = Limits {
            connections: self.connections,
            busy_for: self.session.answer_timeout,
            retry_for: self.retry_for,
        };
        let connector = Connector {
            config: self.config,
            #[cfg(feature = "tls")]
            tls: self.tls,
            session: self.session,
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
    let mut places: Vec<String> = named.collect();
    if places.is_empty() {
        places = numbered.collect();
    }
    let user = config.get_user().unwrap_or("(none)");
    let database = config.get_dbname().unwrap_or(user);
    format!("PostgreSQL {user}@{}/{database}", places.join(","))
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
