//! Databases behind the door that are other servers': their connections are lent to clients.
//!
//! Knows no listener.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::Client;
use forebay_proxy::{Cancels, Databases, Identity, Session, UpstreamOptions};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::config::Options;
use crate::config::databases::{ProxyOptions, UpstreamSettings};
use crate::door::Behind;

/// How often it is looked for server connections that are idle for too long, or too old.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Databases over a network, and who is connected to them.
pub(crate) struct Proxied {
    databases: Arc<Databases>,
    cancels: Arc<Cancels>,
    phase: watch::Receiver<Phase>,
}

impl Proxied {
    /// Connects to nothing yet.
    pub(crate) fn new(options: &ProxyOptions, phase: watch::Receiver<Phase>) -> Self {
        let upstream = |settings: &UpstreamSettings| {
            let mut upstream = UpstreamOptions::new(settings.config.clone(), settings.limits.clone());
            upstream.trusts_loopback = options.trusts_loopback;
            upstream
        };
        let named = options.databases.iter().map(|(name, settings)| {
            let mut upstream = upstream(settings);
            upstream.database.clone_from(&settings.config.dbname);
            (name.clone(), upstream)
        });
        let databases = Arc::new(Databases::new(named, options.upstream.as_ref().map(upstream)));
        tokio::spawn(sweep(Arc::downgrade(&databases)));
        Self {
            databases,
            cancels: Arc::default(),
            phase,
        }
    }

    /// Who decides who is let in, where there are no users.
    pub(crate) fn gate(&self) -> Arc<Databases> {
        Arc::clone(&self.databases)
    }

    /// Where it is, in a few words.
    pub(crate) fn describe(&self, options: &Options) -> String {
        let options = options.proxy.as_ref().expect("there are some where there is this");
        let all = options.databases.values().chain(&options.upstream);
        let mut hosts: Vec<String> = all
            .flat_map(|upstream| &upstream.config.hosts)
            .map(ToString::to_string)
            .collect();
        let mut seen = HashSet::new();
        hosts.retain(|host| seen.insert(host.clone()));
        format!("proxy of PostgreSQL at {}", hosts.join(", "))
    }

    /// Why it is not well; none if it is.
    pub(crate) fn ailing(&self) -> Option<String> {
        (*self.phase.borrow() != Phase::Serving).then(|| "draining".to_owned())
    }

    /// Brings the figures that are counted elsewhere into the metrics, when somebody asks for them.
    pub(crate) fn observe(&self) {
        let stats = self.databases.stats();
        metrics::gauge!("forebay_server_connections").set(stats.open as f64);
        metrics::gauge!("forebay_server_connections_idle").set(stats.idle as f64);
        metrics::gauge!("forebay_clients_waiting").set(stats.waiting as f64);
    }
}

/// Closes what nobody uses, for as long as there is a server.
async fn sweep(databases: Weak<Databases>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(databases) = databases.upgrade() else { return };
        databases.sweep();
    }
}

impl Behind for Proxied {
    async fn serve(&self, client: Client<TcpStream>) {
        let identity = Identity {
            keys: client.keys,
            secret_bytes: client.secret_key_bytes(),
            user: client.user,
            database: client.database,
            parameters: client.parameters,
        };
        let (stream, input) = client.frames.into_parts();
        let begun = Session::begin(stream, input, client.output, &identity, &self.databases, &self.cancels).await;
        if let Some(session) = begun {
            // While it runs it needs no more of this.
            drop(identity);
            session.run(self.phase.clone()).await;
        }
    }

    async fn cancel(&self, process_id: i32, secret_key: &[u8]) {
        self.cancels.cancel(process_id, secret_key).await;
    }
}
