//! One real PostgreSQL for all unit tests that run at the same time; it goes, with its files, when the last of them ends.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::connection::Connection;
use forebay_remote::settings::Settings;
use testbed::Postgres;
use tokio_postgres::{Client, NoTls};

/// A connection of a test's own; its tables are temporary.
pub(super) struct Session {
    client: Client,
    _server: Arc<Postgres>,
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

fn server() -> Arc<Postgres> {
    static SERVER: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
    // A test that failed to start it says so itself.
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let started = Arc::new(Postgres::start().expect("PostgreSQL is installed"));
        *shared = Arc::downgrade(&started);
        started
    })
}

pub(super) async fn session() -> Session {
    let server = tokio::task::spawn_blocking(server).await.expect("it starts");
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("it answers");
    // It ends with the client.
    tokio::spawn(connection);
    Session {
        client,
        _server: server,
    }
}

/// A connection as the Writer has them.
pub(super) async fn connection() -> (Connection, Arc<Postgres>) {
    let server = tokio::task::spawn_blocking(server).await.expect("it starts");
    let config = server.url().parse().expect("a URL of ours");
    let link = forebay_pg_link::connect(&config).await.expect("it answers");
    let connection = Connection::set_up(link, Settings::default()).await;
    (connection.expect("it is set up"), server)
}
