//! The database behind the door that is another server's: its connections are lent to clients.
//!
//! Knows no listener.

use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::Client;
use forebay_proxy::{Cancels, Identity, Session, Upstream, UpstreamOptions};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::config::{Options, UpstreamSettings};
use crate::door::Behind;

/// How often it is looked for server connections that are idle for too long, or too old.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A database over a network, and who is connected to it.
pub(crate) struct Proxied {
    upstream: Arc<Upstream>,
    cancels: Arc<Cancels>,
    phase: watch::Receiver<Phase>,
}

impl Proxied {
    /// Connects to nothing yet.
    pub(crate) fn new(settings: &UpstreamSettings, phase: watch::Receiver<Phase>) -> Self {
        let mut options = UpstreamOptions::new(settings.config.clone(), settings.limits.clone());
        options.trusts_loopback = settings.trusts_loopback;
        let upstream = Arc::new(Upstream::new(options));
        tokio::spawn(sweep(Arc::downgrade(&upstream)));
        Self {
            upstream,
            cancels: Arc::default(),
            phase,
        }
    }

    /// Who decides who is let in, where there are no users.
    pub(crate) fn gate(&self) -> Arc<Upstream> {
        Arc::clone(&self.upstream)
    }

    /// Where it is, in a few words.
    pub(crate) fn describe(&self, options: &Options) -> String {
        let upstream = options.upstream.as_ref().expect("there is one where there is this");
        let hosts: Vec<String> = upstream.config.hosts.iter().map(ToString::to_string).collect();
        format!("proxy of PostgreSQL at {}", hosts.join(", "))
    }

    /// Why it is not well; none if it is.
    pub(crate) fn ailing(&self) -> Option<String> {
        (*self.phase.borrow() != Phase::Serving).then(|| "draining".to_owned())
    }

    /// Brings the figures that are counted elsewhere into the metrics, when somebody asks for them.
    pub(crate) fn observe(&self) {
        let stats = self.upstream.stats();
        metrics::gauge!("forebay_server_connections").set(stats.open as f64);
        metrics::gauge!("forebay_server_connections_idle").set(stats.idle as f64);
        metrics::gauge!("forebay_clients_waiting").set(stats.waiting as f64);
    }
}

/// Closes what nobody uses, for as long as there is a server.
async fn sweep(upstream: Weak<Upstream>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(upstream) = upstream.upgrade() else { return };
        upstream.sweep();
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
        let begun = Session::begin(stream, input, client.output, &identity, &self.upstream, &self.cancels).await;
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
