//! Place: a database of one test's own on a server, behind a proxy that the test makes faults with.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use forebay::postgres::ConnectError;
use forebay::write::{Database, Outcome, ReadError, Writer};
use testbed::{ForTests, Proxy, scratch_name};

/// What this binary's databases and schemas are called after.
pub(crate) const SUITE: &str = "writer_faults";

/// A make of database.
pub(crate) trait Site: Sized + Send + Sync + 'static {
    type Server: Send + Sync + 'static;
    type Handle: Clone + Database + Send + Sync + 'static;
    type Plain: Plain;
    /// Writes a number to `t`.
    const INSERT: &'static str;
    /// Writes a number and a text to `t`.
    const INSERT_WORDS: &'static str;

    fn start(settings: &[(&str, &str)]) -> Self::Server;
    /// The one that tests share.
    fn shared() -> Arc<ForTests<Self::Server>>;
    fn url(server: &Self::Server) -> String;
    fn kill(server: &mut Self::Server);
    /// Starts one that was killed; ends one that runs in order before.
    fn restart(server: &mut Self::Server);
    /// Where that database of the server's is found. `options` is for PostgreSQL's command line.
    fn url_of(server: &str, name: &str, options: &str) -> String;
    /// Makes the database or schema; drops those that are left over from runs before.
    async fn make(server: &str, name: &str);
    async fn open(url: &str, settings: &Settings) -> Result<Self::Handle, ConnectError>;
    async fn query(handle: &Self::Handle, sql: &'static str) -> Result<Outcome, ReadError>;
    async fn plain(url: &str) -> Option<Self::Plain>;
}

/// A connection that is no writer's.
pub(crate) trait Plain: Send {
    /// Statements parted by `;`.
    async fn try_say(&mut self, sql: &str) -> Result<(), String>;
    /// A row a line, columns parted by `|`.
    async fn read(&mut self, sql: &str) -> Vec<String>;

    async fn say(&mut self, sql: &str) {
        self.try_say(sql).await.unwrap();
    }
}

/// Limits that a handle is opened with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) connections: usize,
    pub(crate) answer_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) lock_timeout: Duration,
    /// For PostgreSQL's command line.
    pub(crate) options: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 4,
            answer_timeout: Duration::from_secs(30),
            retry_for: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(1),
            options: String::new(),
        }
    }
}

/// Whose server it is.
enum Server<S: Site> {
    Shared(Arc<ForTests<S::Server>>),
    Own(S::Server),
}

pub(crate) struct Place<S: Site> {
    pub(crate) proxy: Proxy,
    server: Server<S>,
    name: String,
}

impl<S: Site> Place<S> {
    /// On the server that tests share.
    pub(crate) async fn new(schema: &str) -> Self {
        let server = tokio::task::spawn_blocking(S::shared).await.unwrap();
        Self::on(Server::Shared(server), schema).await
    }

    /// On a server of its own.
    pub(crate) async fn own(settings: &[(&str, &str)], schema: &str) -> Self {
        let settings: Vec<(String, String)> = settings.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        let server = tokio::task::spawn_blocking(move || {
            S::start(&settings.iter().map(|(a, b)| (&**a, &**b)).collect::<Vec<_>>())
        });
        Self::on(Server::Own(server.await.unwrap()), schema).await
    }

    async fn on(server: Server<S>, schema: &str) -> Self {
        let url = server.url();
        let place = Self {
            proxy: Proxy::start(address(&url)).unwrap(),
            server,
            name: scratch_name(SUITE),
        };
        S::make(&url, &place.name).await;
        if !schema.is_empty() {
            place.say(schema).await;
        }
        place
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Past the proxy.
    pub(crate) fn url(&self) -> String {
        S::url_of(&self.server.url(), &self.name, "")
    }

    /// Through the proxy.
    pub(crate) fn url_through(&self, options: &str) -> String {
        let url = self.server.url();
        let there = url.replace(authority(&url), &self.proxy.address().to_string());
        S::url_of(&there, &self.name, options)
    }

    pub(crate) async fn try_open(&self, settings: &Settings) -> Result<S::Handle, ConnectError> {
        S::open(&self.url_through(&settings.options), settings).await
    }

    pub(crate) async fn open(&self, settings: &Settings) -> S::Handle {
        self.try_open(settings).await.unwrap()
    }

    /// A writer with the default settings.
    pub(crate) async fn writer(&self) -> Writer {
        Writer::new(self.open(&Settings::default()).await)
    }

    pub(crate) async fn plain(&self) -> S::Plain {
        S::plain(&self.url()).await.unwrap()
    }

    pub(crate) async fn say(&self, sql: &str) {
        self.plain().await.say(sql).await;
    }

    pub(crate) async fn read(&self, sql: &str) -> Vec<String> {
        self.plain().await.read(sql).await
    }

    /// The server as a crash would leave it, and nobody there.
    pub(crate) fn kill(&mut self) {
        S::kill(self.server.own());
    }

    /// Starts the server again, where the proxy finds it. One that runs is ended in order before.
    pub(crate) fn restart(&mut self) {
        S::restart(self.server.own());
        self.proxy.lead_to(address(&self.server.url()));
    }
}

impl<S: Site> Server<S> {
    fn url(&self) -> String {
        match self {
            Self::Shared(server) => server.url(),
            Self::Own(server) => S::url(server),
        }
    }

    fn own(&mut self) -> &mut S::Server {
        match self {
            Self::Shared(_) => panic!("a server that tests share is not one test's to kill"),
            Self::Own(server) => server,
        }
    }
}

/// `host:port` in a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").unwrap().1;
    let rest = rest.split(['/', '?']).next().unwrap();
    rest.rsplit('@').next().unwrap()
}

fn address(url: &str) -> SocketAddr {
    authority(url).to_socket_addrs().unwrap().next().unwrap()
}
