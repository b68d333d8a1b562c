//! Databases behind the door that are other servers': their connections are lent to clients.
//!
//! Knows no listener.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use forebay_pg_link::ConnectError;
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::gate::Replication;
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::{Client, StartUpError};
use forebay_proxy::pool::Rule;
use forebay_proxy::{Clients, Databases, Identity, Invalidation, Memory, Session, UpstreamOptions, replicate};
use forebay_stream::Socket;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::config::Options;
use crate::config::databases::{Admins, ProxyOptions, UpstreamSettings};
use crate::door::Behind;
use crate::error::ServeError;
use crate::figures;
use crate::handover::Predecessor;
use crate::listeners::Peer;
use crate::warm;

/// How often it is looked for server connections that are idle for too long, or too old.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What is asked for most is written down so often.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);

/// It is tried so often whether databases can be reached, where somebody asks.
const TRIED_EVERY: Duration = Duration::from_secs(1);

/// Databases over a network, and who is connected to them.
pub(crate) struct Proxied {
    databases: Arc<Databases>,
    clients: Arc<Clients>,
    /// The one that had the sockets before, and may have clients still.
    predecessor: Option<Arc<Predecessor>>,
    /// Who may use the console.
    admins: RwLock<Admins>,
    phase: watch::Receiver<Phase>,
    /// What is remembered, and how it was to be.
    memory: Arc<RwLock<Remembering>>,
    /// Another server writes down what is asked for most.
    is_left: Arc<AtomicBool>,
    /// When it was tried whether the databases can be reached, and why they cannot.
    tried: tokio::sync::Mutex<Option<(Instant, Option<String>)>>,
}

/// What is remembered: how much at most, of all and of rules with room of their own, by what it is known to be old, and where.
#[derive(Clone)]
struct Remembering {
    as_said: (u64, Vec<(String, u64)>, Invalidation),
    rules: Arc<[Rule]>,
    memory: Option<Memory>,
    /// Where it is written down what is asked for most.
    warm_file: Option<PathBuf>,
}

impl Remembering {
    fn new(options: &ProxyOptions) -> Self {
        let as_said = Self::said_in(options);
        let (bytes, rooms, invalidation) = as_said.clone();
        Self {
            as_said,
            rules: Arc::clone(&options.rules),
            memory: (bytes > 0).then(|| Memory::with_rooms(bytes, invalidation, rooms)),
            warm_file: options.warm_file.clone(),
        }
    }

    fn said_in(options: &ProxyOptions) -> (u64, Vec<(String, u64)>, Invalidation) {
        let rooms = (options.rules.iter()).filter_map(|rule| Some((rule.name.clone(), rule.capacity?)));
        (options.cache_memory, rooms.collect(), options.invalidation.clone())
    }

    /// What is remembered stays where nothing else is said of it.
    fn changed(&self, options: &ProxyOptions) -> Self {
        let mut changed = Self::new(options);
        if self.as_said == changed.as_said {
            changed.memory.clone_from(&self.memory);
        }
        changed
    }

    /// What was asked for most of what was remembered before is asked anew, where it is not known any more to those who ask it.
    fn goes_on_from(&self, before: &Self) {
        if self.as_said == before.as_said && self.rules == before.rules {
            return;
        }
        if let (Some(memory), Some(before)) = (&self.memory, &before.memory) {
            if memory != before {
                memory.goes_on_from(before);
            }
            memory.await_again(before.hot());
        }
    }

    /// Writes down what is asked for most.
    fn write_down(&self) {
        let (Some(memory), Some(path)) = (&self.memory, &self.warm_file) else {
            return;
        };
        if let Err(error) = warm::write(path, &memory.hot()) {
            tracing::warn!(%error, "what is asked for most is not written down");
        }
    }
}

impl Proxied {
    /// Waits until the server whose sockets were taken has ended, if there is one.
    pub(crate) async fn predecessor_ended(&self) {
        if let Some(predecessor) = &self.predecessor {
            predecessor.ended().await;
        }
    }

    /// Connects to nothing yet, but to see whether somebody listens there.
    pub(crate) fn new(
        options: &ProxyOptions,
        phase: watch::Receiver<Phase>,
        predecessor: Option<Arc<Predecessor>>,
    ) -> Result<Self, ServeError> {
        check(options)?;
        let remembering = Remembering::new(options);
        if let (Some(memory), Some(path)) = (&remembering.memory, &remembering.warm_file) {
            let hot = warm::read(path)?;
            tracing::info!(questions = hot.len(), file = %path.display(), "what was asked for most is asked anew when those come who ask it");
            memory.await_again(hot);
            // What cannot be written is to be known now.
            remembering.write_down();
        }
        let (named, other) = upstreams(options, remembering.memory.as_ref());
        let databases = Databases::new(named, other, options.max_upstream_connections).map_err(of_some_database)?;
        let databases = Arc::new(databases);
        let clients = Arc::<Clients>::default();
        tokio::spawn(sweep(Arc::downgrade(&databases)));
        let tried = Arc::clone(&databases);
        tokio::spawn(async move { tried.try_all().await });
        tokio::spawn(tell(Arc::downgrade(&clients), phase.clone()));
        let (memory, is_left) = (Arc::new(RwLock::new(remembering)), Arc::<AtomicBool>::default());
        tokio::spawn(write_down(Arc::downgrade(&memory), Arc::clone(&is_left)));
        Ok(Self {
            databases,
            clients,
            predecessor,
            admins: RwLock::new(options.admins.clone()),
            phase,
            memory,
            is_left,
            tried: tokio::sync::Mutex::default(),
        })
    }

    /// From now on it is a proxy of these; who is connected stays.
    pub(crate) fn change(&self, options: &ProxyOptions) -> Result<(), ServeError> {
        check(options)?;
        let remembering = self.memory.read().changed(options);
        let (named, other) = upstreams(options, remembering.memory.as_ref());
        let changed = self.databases.change(named, other, options.max_upstream_connections);
        changed.map_err(of_some_database)?;
        let mut memory = self.memory.write();
        remembering.goes_on_from(&memory);
        *memory = remembering;
        drop(memory);
        *self.admins.write() = options.admins.clone();
        Ok(())
    }

    /// Another server has taken over, and writes down from now on what is asked for most.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// It serves nobody any more.
    pub(crate) async fn close(&self) {
        write_down_now(&self.memory, &self.is_left).await;
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

    /// Why it is not to be sent clients; none if it is. Databases are tried once in [`TRIED_EVERY`], however often somebody asks.
    pub(crate) async fn unready(&self) -> Option<String> {
        if let Some(ailing) = self.ailing() {
            return Some(ailing);
        }
        let mut tried = self.tried.lock().await;
        let is_old = tried.as_ref().is_none_or(|(at, _)| at.elapsed() >= TRIED_EVERY);
        if is_old {
            let unreachable = self.databases.unreachable().await;
            let names = unreachable.iter().map(|name| match name {
                Some(name) => format!("database \"{name}\""),
                None => "the upstream".to_owned(),
            });
            let names: Vec<String> = names.collect();
            let why = (!names.is_empty()).then(|| format!("cannot be reached: {}", names.join(", ")));
            *tried = Some((Instant::now(), why));
        }
        tried.as_ref().and_then(|(_, why)| why.clone())
    }

    /// Brings the figures that are counted elsewhere into the metrics, when somebody asks for them.
    pub(crate) fn observe(&self) {
        let stats = self.databases.stats();
        metrics::gauge!("forebay_server_connections").set(stats.open as f64);
        metrics::gauge!("forebay_server_connections_idle").set(stats.idle as f64);
        metrics::gauge!("forebay_clients_waiting").set(stats.waiting as f64);
        let counts = self.clients.counts();
        for (way, count) in [
            ("alone", counts.alone),
            ("shared", counts.shared),
            ("fetched", counts.fetched),
            ("remembered", counts.remembered),
        ] {
            metrics::counter!("forebay_statements_total", "way" => way).absolute(count);
        }
        for (sqlstate, count) in counts.errors {
            metrics::counter!("forebay_errors_total", "sqlstate" => sqlstate).absolute(count);
        }
        if let Some(memory) = &self.memory.read().memory {
            let remembered = memory.counts();
            metrics::gauge!("forebay_cache_answers").set(remembered.answers as f64);
            metrics::gauge!("forebay_cache_bytes").set(remembered.bytes as f64);
            for (state, count) in [
                ("fresh", remembered.fresh),
                ("stale", remembered.stale),
                ("missed", remembered.missed),
                ("away", remembered.away),
            ] {
                metrics::counter!("forebay_cache_lookups_total", "state" => state).absolute(count);
            }
            metrics::counter!("forebay_cache_evictions_total").absolute(remembered.evicted);
            metrics::counter!("forebay_cache_warmed_total").absolute(remembered.warmed);
        }
        for (database, heard) in self.databases.heard() {
            let of = |name: &'static str| metrics::gauge!(name, "database" => database.clone());
            let lag = heard.lag.map_or(f64::INFINITY, |lag| lag.as_secs_f64());
            of("forebay_stream_lag_seconds").set(lag);
            of("forebay_stream_tables").set(heard.tables as f64);
            of("forebay_stream_held_wal_bytes").set(heard.held_wal_bytes as f64);
            of("forebay_stream_look_seconds").set(heard.look.as_secs_f64());
            for (name, count) in [
                ("forebay_stream_commits_total", heard.commits),
                ("forebay_stream_beginnings_total", heard.beginnings),
                ("forebay_stream_catalog_changes_total", heard.catalog_changes),
            ] {
                metrics::counter!(name, "database" => database.clone()).absolute(count);
            }
        }
        let travelled = self.databases.travelled();
        metrics::counter!("forebay_trips_total").absolute(travelled.trips);
        metrics::counter!("forebay_statements_joined_total").absolute(travelled.joined);
    }

    /// Appends what is counted by names, as Prometheus reads it.
    pub(crate) fn put_figures(&self, text: &mut String) {
        figures::put(&self.databases, text);
    }
}

/// What could be used when it was checked, a moment ago, cannot be any more.
fn of_some_database(error: ConnectError) -> ServeError {
    let database = None;
    ServeError::Upstream { database, error }
}

/// Those with names, and what has all others.
fn upstreams(
    options: &ProxyOptions,
    memory: Option<&Memory>,
) -> (Vec<(String, UpstreamOptions)>, Option<UpstreamOptions>) {
    let upstream = |settings: &UpstreamSettings| {
        let mut upstream = UpstreamOptions::new(settings.config.clone(), settings.limits.clone());
        upstream.trusts_loopback = options.trusts_loopback;
        upstream.is_service = settings.is_service;
        upstream.auth_query.clone_from(&settings.auth_query);
        upstream.auth_query_kept = settings.auth_query_kept;
        upstream.max_clients = settings.max_clients;
        upstream.max_user_clients = options.max_user_clients;
        upstream.users = Arc::clone(&options.users);
        upstream.rules = Arc::clone(&options.rules);
        upstream.memory = memory.cloned();
        upstream
    };
    let named = options.databases.iter().map(|(name, settings)| {
        let mut upstream = upstream(settings);
        upstream.database.clone_from(&settings.config.dbname);
        (name.clone(), upstream)
    });
    (named.collect(), options.upstream.as_ref().map(upstream))
}

/// Whether connections can be made like this, as far as can be said without making one.
///
/// # Errors
/// [`ServeError`] of the first that cannot, and whose it is.
pub(crate) fn check(options: &ProxyOptions) -> Result<(), ServeError> {
    options.warm_file.as_deref().map(warm::read).transpose()?;
    let (named, other) = upstreams(options, None);
    let named = named.into_iter().map(|(name, upstream)| (Some(name), upstream));
    for (database, upstream) in named.chain(other.map(|upstream| (None, upstream))) {
        upstream
            .check_as("nobody")
            .map_err(|error| ServeError::Upstream { database, error })?;
        for (user, said) in options.users.iter() {
            let Some((_, key)) = &said.certificate else { continue };
            upstream.check_as(user).map_err(|error| ServeError::Certificate {
                user: user.clone(),
                // What is wrong with a file is told with its name.
                option: match error.to_string().contains(&*key.to_string_lossy()) {
                    true => "sslkey",
                    false => "sslcert",
                },
                error,
            })?;
        }
    }
    Ok(())
}

/// Tells clients how far the server's life is.
async fn tell(clients: Weak<Clients>, mut phase: watch::Receiver<Phase>) {
    while phase.changed().await.is_ok() {
        let Some(clients) = clients.upgrade() else { return };
        clients.tell(*phase.borrow_and_update());
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

/// Writes down each minute what is asked for most, for as long as there is a server.
async fn write_down(memory: Weak<RwLock<Remembering>>, is_left: Arc<AtomicBool>) {
    loop {
        tokio::time::sleep(WRITTEN_EVERY).await;
        let Some(memory) = memory.upgrade() else { return };
        write_down_now(&memory, &is_left).await;
    }
}

async fn write_down_now(memory: &Arc<RwLock<Remembering>>, is_left: &Arc<AtomicBool>) {
    let (memory, is_left) = (Arc::clone(memory), Arc::clone(is_left));
    let written = tokio::task::spawn_blocking(move || {
        // One at a time, the last one last; nobody who changes it waits for a disk.
        static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
        let _turn = TURN.lock();
        let remembering = memory.read().clone();
        if !is_left.load(Ordering::Acquire) {
            remembering.write_down();
        }
    });
    drop(written.await);
}

/// It has proven who it is, and there is no session for it all the same.
fn denied(identity: Identity, error: WireError) -> StartUpError {
    let user = identity.user;
    StartUpError::Denied { user, error }
}

impl Behind for Proxied {
    async fn serve(&self, client: Client<Socket>, peer: Peer) -> Result<(), StartUpError> {
        let is_admin = self.admins.read().have(&client.user, &client.database);
        let identity = Identity {
            is_admin,
            address: peer.address(),
            secret_bytes: client.secret_key_bytes(),
            proof: client.proof,
            replication: client.replication,
            user: client.user,
            database: client.database,
            parameters: client.parameters,
        };
        let (stream, input) = client.frames.into_parts();
        if identity.replication != Replication::No {
            let served = replicate(stream, input, client.output, &identity, &self.databases, &self.clients).await;
            return served.map_err(|error| denied(identity, error));
        }
        let begun = Session::begin(stream, input, client.output, &identity, &self.databases, &self.clients).await;
        match begun {
            Ok(session) => {
                // While it runs it needs no more of this.
                drop(identity);
                session.run().await;
                Ok(())
            }
            Err(error) => Err(denied(identity, error)),
        }
    }

    async fn cancel(&self, process_id: i32, secret_key: &[u8]) {
        if !self.clients.cancel(process_id, secret_key).await
            && let Some(predecessor) = &self.predecessor
        {
            predecessor.cancel(process_id, secret_key).await;
        }
    }
}
