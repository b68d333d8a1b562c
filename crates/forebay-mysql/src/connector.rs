//! Connector: how connections are made, and which of them may be used again.
//!
//! Promises: what [`connections`] asks of a database. Knows no batch.

use std::time::Duration;

use super::connection::{Connection, ConnectionId};
use super::error::{Failure, Unconnected, is_passing, said_of_connecting};
use forebay_remote::connections::{self, NotKilled, Readiness};
use forebay_remote::settings::Settings;

/// All connections to one database.
pub(super) type Connections = connections::Connections<Connector>;
/// A connection on loan.
pub(super) type Lease = connections::Lease<Connector>;

/// Makes connections.
pub(super) struct Connector {
    pub(super) link: forebay_mysql_link::Connector,
    pub(super) settings: Settings,
    pub(super) connect_timeout: Duration,
}

impl connections::Connector for Connector {
    type Connection = Connection;
    type Error = Unconnected;

    async fn connect(&self) -> Result<Connection, Unconnected> {
        let link = self.link.connect().await?;
        Ok(Connection::set_up(link, self.settings.clone()).await?)
    }

    fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    fn timed_out(&self) -> Unconnected {
        Unconnected::Silent
    }

    fn is_passing(&self, error: &Unconnected) -> bool {
        is_passing(error)
    }

    fn explain(&self, error: &Unconnected) -> String {
        said_of_connecting(error, self.connect_timeout)
    }
}

impl connections::Connection for Connection {
    type Id = ConnectionId;

    fn readiness(&mut self) -> Readiness {
        Self::readiness(self)
    }

    async fn reset_session(&mut self) -> bool {
        self.reset_session().await
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
        self.kill(id).await.map_err(|failure| match failure {
            Failure::Lost { .. } => NotKilled::Lost,
            failure => NotKilled::Refused(failure.into_write_error().to_string()),
        })
    }
}
