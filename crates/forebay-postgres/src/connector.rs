//! Connector: how connections are made, and which of them may be had again.
//!
//! Promises: what [`connections`] asks of a database. Knows no batch.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use super::connection::{Connection, ConnectionId};
use super::error::Failure;
use forebay_remote::connections::{self, NotKilled, Readiness};
use forebay_remote::settings::Settings;

/// All connections to one database.
pub(super) type Connections = connections::Connections<Connector>;
/// A connection on loan.
pub(super) type Lease = connections::Lease<Connector>;

/// Makes connections.
pub(super) struct Connector {
    pub(super) config: Config,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<tokio_postgres_rustls::MakeRustlsConnect>,
    pub(super) settings: Settings,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconnected {
    /// The server, or the system, said so.
    #[error(transparent)]
    Said(#[from] tokio_postgres::Error),
    /// It was not made in time: the server took the connection and then said nothing.
    #[error("no connection was made within {} s", .0.as_secs_f32())]
    Silent(Duration),
}

impl Connector {
    async fn open(&self) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let (client, driver) = self.config.connect(tls.clone()).await?;
            return Ok((client, tokio::spawn(drive(driver))));
        }
        let (client, driver) = self.config.connect(NoTls).await?;
        Ok((client, tokio::spawn(drive(driver))))
    }
}

/// Runs the connection until it ends. How it ended, whoever waits for an answer is told.
async fn drive<D: Future<Output = Result<(), tokio_postgres::Error>>>(driver: D) {
    if let Err(error) = driver.await {
        tracing::debug!(%error, "a connection to PostgreSQL ended");
    }
}

impl connections::Connector for Connector {
    type Connection = Connection;
    type Error = Unconnected;

    async fn connect(&self) -> Result<Connection, Unconnected> {
        let (client, driver) = self.open().await?;
        #[cfg(feature = "tls")]
        let connection = Connection::new(client, driver, self.settings.clone(), self.tls.clone());
        #[cfg(not(feature = "tls"))]
        let connection = Connection::new(client, driver, self.settings.clone());
        Ok(connection.set_up().await?)
    }

    /// The library counts only until the server is reached.
    fn connect_timeout(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        let each = self.config.get_connect_timeout().copied();
        each.unwrap_or(self.settings.answer_timeout).saturating_mul(hosts)
    }

    fn timed_out(&self) -> Unconnected {
        Unconnected::Silent(self.connect_timeout())
    }

    /// Not where the server is there and does not want us.
    fn is_passing(&self, error: &Unconnected) -> bool {
        let Unconnected::Said(error) = error else { return true };
        // Invalid authorization; invalid catalog name; insufficient privilege.
        let refusals = ["28", "3D", "42"];
        !error
            .code()
            .is_some_and(|state| refusals.iter().any(|class| state.code().starts_with(class)))
    }

    /// The error and what is behind it, which the library keeps to itself.
    fn explain(&self, error: &Unconnected) -> String {
        // Also through what is transparent.
        match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }
}

impl connections::Connection for Connection {
    type Id = ConnectionId;

    fn readiness(&self) -> Readiness {
        if self.is_usable() {
            Readiness::Ready
        } else {
            Readiness::Unusable
        }
    }

    async fn reset_session(&mut self) -> bool {
        self.reset_session().await;
        self.is_usable()
    }

    async fn answers(&mut self) -> bool {
        self.client().check_connection().await.is_ok()
    }

    fn is_silent(&self) -> bool {
        self.is_silent()
    }

    fn id(&self) -> Option<&ConnectionId> {
        self.id()
    }

    async fn kill(&mut self, id: &ConnectionId) -> Result<(), NotKilled> {
        Self::kill(self, id).await.map_err(|failure| match failure {
            Failure::Lost(_) => NotKilled::Lost,
            failure => NotKilled::Refused(failure.statement().message),
        })
    }
}
