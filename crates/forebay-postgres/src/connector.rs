//! Connector: how connections are made, and which of them may be used again.
//!
//! Promises: what [`connections`] asks of a database. Knows no batch.

use std::time::Duration;

use super::connection::{Connection, ConnectionId};
use super::error::Failure;
use forebay_pg_link::ConnectError;
use forebay_remote::connections::{self, NotKilled, Readiness};
use forebay_remote::settings::Settings;

/// All connections to one database.
pub(super) type Connections = connections::Connections<Connector>;
/// A connection on loan.
pub(super) type Lease = connections::Lease<Connector>;

/// Makes connections.
pub(super) struct Connector {
    pub(super) link: forebay_pg_link::Connector,
    pub(super) settings: Settings,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconnected {
    /// There is no link.
    #[error(transparent)]
    Unlinked(#[from] ConnectError),
    /// There was one, and its session could not be set up.
    #[error("{0}")]
    NotSetUp(String),
    /// It was not made in time: the server took the connection and then said nothing.
    #[error("no connection was made within {} s", .0.as_secs_f32())]
    Silent(Duration),
}

impl connections::Connector for Connector {
    type Connection = Connection;
    type Error = Unconnected;

    async fn connect(&self) -> Result<Connection, Unconnected> {
        let link = self.link.connect().await?;
        Connection::set_up(link, self.settings.clone())
            .await
            .map_err(|failure| Unconnected::NotSetUp(failure.statement().message))
    }

    /// The link counts for each host by itself.
    fn connect_timeout(&self) -> Duration {
        let config = self.link.config();
        let hosts = u32::try_from(config.hosts.len()).unwrap_or(u32::MAX).max(1);
        let each = config.connect_timeout.unwrap_or(self.settings.answer_timeout);
        each.saturating_mul(hosts)
    }

    fn timed_out(&self) -> Unconnected {
        Unconnected::Silent(self.connect_timeout())
    }

    fn is_passing(&self, error: &Unconnected) -> bool {
        match error {
            Unconnected::Unlinked(error) => error.is_passing(),
            Unconnected::NotSetUp(_) | Unconnected::Silent(_) => true,
        }
    }

    fn explain(&self, error: &Unconnected) -> String {
        error.to_string()
    }
}

impl connections::Connection for Connection {
    type Id = ConnectionId;

    fn readiness(&mut self) -> Readiness {
        if self.is_still_usable() {
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
        self.answers().await
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
