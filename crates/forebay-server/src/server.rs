//! The server: opens the database, listens, leads clients in, and brings everything to an orderly end.
//!
//! On SIGINT or SIGTERM no new client is let in; sessions that are idle end at once, a group of messages whose Sync is on its way
//! is answered first, those inside a transaction may finish it for half of the drain timeout; then statements that still run are cancelled, what waits to be written is written, and the
//! file is closed. An acknowledged write is never lost by it, nor by a kill.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use forebay_sqlite::{OpenError, Sqlite, connection};
use forebay_write::{Write, Writer};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::claim::{Claim, ClaimError};
use crate::config::{Options, Synchronous};
use crate::denials::Denials;
use crate::health::Health;
use crate::http;
use crate::tls::{self, TlsError};
use crate::users::{Users, UsersError};
use forebay_embedded::catalog::Catalog;
use forebay_embedded::session::cancel::{self, Cancels};
use forebay_embedded::session::shared::{Limits, Phase, Shared};
use forebay_embedded::session::{Identity, Session};
use forebay_embedded::sql;
use forebay_pg_wire::authentication::Authenticator;
use forebay_pg_wire::budget::InputBudget;
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::startup::{Client, Handshake, Opening, StartUpError};

/// The stack of a thread that parses statements: a debug build takes some 25 KiB a level of nesting.
const WORKER_STACK_BYTES: usize = 64 << 20;

/// Clients that are told they are too many, at a time; those beyond are closed unheard.
const REFUSALS_MAX: usize = 256;

/// The longest a stop waits for the Sync behind what was acknowledged: a client sends it with the statement, or at once behind it.
const SYNC_GRACE_MAX: Duration = Duration::from_secs(1);

/// Why the server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database is another server's.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The users file could not be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The certificate or key could not be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address could not be listened on.
    #[error("cannot listen on {address}: {cause}; --listen and --http choose other addresses")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The emulated catalog could not be made: memory has run out.
    #[error("cannot make the catalog: {0}")]
    Catalog(rusqlite::Error),
    /// Its threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// Signals could not be listened for.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// The metrics could not be set up.
    #[error("cannot set up metrics: {0}")]
    Metrics(String),
}

/// Runs the server, on threads of its own, until it is told to stop by SIGINT or SIGTERM.
///
/// # Errors
/// [`ServeError`], before any client was let in.
pub fn serve(options: Options) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Statements nest as deep as SQLite takes them, and are parsed recursively; memory that is not used costs nothing.
        .thread_stack_size(WORKER_STACK_BYTES)
        .build()
        .map_err(ServeError::Threads)?;
    runtime.block_on(until_told_to_stop(options))
}

async fn until_told_to_stop(options: Options) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Signals)?;
    let server = Server::start(options).await?;
    server.announce();
    signals.stop().await;
    tracing::info!("stopping: no new clients, open transactions may finish");
    server.stop().await;
    tracing::info!("stopped");
    Ok(())
}

/// A server that runs.
pub struct Server {
    options: Options,
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    accepting: tokio::task::JoinHandle<JoinSet<()>>,
    /// None where nothing is written.
    _claim: Option<Claim>,
}

impl Server {
    /// Opens the database and listens.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn start(options: Options) -> Result<Self, ServeError> {
        raise_file_limit();
        let metrics = metrics()?;
        // First, so that a start that fails for want of a port leaves no file behind.
        let listener = listen(options.listen).await?;
        let http_listener = match options.http {
            None => None,
            Some(http) => Some((listen(http).await?, http)),
        };
        let sequences = Arc::new(sql::Sequences::default());
        let sqlite = open(&options, &sequences)?;
        let claim = if sqlite.is_read_only() {
            None
        } else {
            Some(Claim::on(&options.database)?)
        };
        let writer = Writer::builder()
            .max_items(options.batch_max_items)
            .max_wait(options.batch_max_wait)
            .build(sqlite.clone());
        let tls = match &options.tls {
            Some(files) => Some(tls::load(&files.certificate, &files.key)?),
            None => None,
        };
        let authenticator = match &options.users {
            Some(path) => Authenticator::scram(Users::load(path)?.into_verifiers(), tls.as_ref()),
            None => Authenticator::trust(),
        };
        let (phase, seen) = watch::channel(Phase::Serving);
        let cancels = Arc::new(Cancels::default());
        tokio::spawn(look_for_the_gone(Arc::downgrade(&cancels)));
        let shared = Arc::new(Shared {
            sqlite,
            writer,
            catalog: Mutex::new(Catalog::new().map_err(ServeError::Catalog)?),
            cancels,
            plans: Arc::default(),
            advisory: Arc::default(),
            channels: Arc::default(),
            sequences,
            input: Arc::new(InputBudget::new(options.max_input_bytes, options.stall_timeout)),
            limits: Limits {
                max_message_bytes: options.max_message_bytes,
                max_result_bytes: options.max_result_bytes,
                statement_timeout: options.statement_timeout,
                idle_transaction_timeout: options.idle_transaction_timeout,
                idle_snapshot_timeout: options.idle_snapshot_timeout,
                stall_timeout: options.stall_timeout,
                // Well within what sessions are given between the word to stop and their abortion.
                sync_grace: SYNC_GRACE_MAX.min(options.drain_timeout / 8),
                max_statements: 10_000,
                max_portals: 1_000,
            },
            phase: seen,
        });
        let address = local(&listener, options.listen)?;
        let http_address = match http_listener {
            None => None,
            Some((listener, http)) => {
                let address = local(&listener, http)?;
                let (health, counted) = (Arc::new(Health::new(Arc::clone(&shared))), Arc::clone(&shared));
                let ailing = move || {
                    let health = Arc::clone(&health);
                    async move { health.ailing().await }
                };
                let text = move || {
                    observe(&counted);
                    metrics.render()
                };
                // Answers that it drains for as long as the process lives.
                tokio::spawn(http::serve(
                    listener,
                    http::router(text, ailing),
                    std::future::pending(),
                ));
                Some(address)
            }
        };
        let handshake =
            Arc::new(Handshake::new(authenticator, tls, options.startup_timeout).requiring_tls(options.require_tls));
        let accepting = tokio::spawn(accept(
            listener,
            handshake,
            Arc::clone(&shared),
            options.max_connections,
        ));
        Ok(Self {
            options,
            address,
            http_address,
            shared,
            phase,
            accepting,
            _claim: claim,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Prints what a person needs to begin.
    fn announce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let path = self.options.database.display();
        let durability = if self.shared.sqlite.is_read_only() {
            "read-only".to_owned()
        } else {
            format!("WAL, synchronous={}", durability(self.options.synchronous).as_str())
        };
        let host = reached_from_here(self.address.ip());
        let port = self.address.port();
        let user = if self.options.users.is_some() { " -U NAME" } else { "" };
        println!("forebay {version} · embedded SQLite {path} ({durability})");
        println!("  PostgreSQL  postgresql://{}/forebay", self.address);
        match self.http_address {
            Some(address) => println!("  HTTP        http://{address}  (/metrics, /healthz)"),
            None => println!("  HTTP        off"),
        }
        println!("  try         psql -h {host} -p {port}{user} forebay");
    }

    /// Brings everything to an orderly end, within the drain timeout.
    pub async fn stop(self) {
        let timeout = self.options.drain_timeout;
        let ended = tokio::time::timeout(timeout, self.drain()).await;
        if ended.is_err() {
            tracing::warn!("not everything ended within {timeout:?}; what was acknowledged is safe");
        }
    }

    async fn drain(self) {
        let Self {
            options,
            shared,
            phase,
            accepting,
            _claim,
            ..
        } = self;
        phase.send_replace(Phase::Draining);
        let Ok(mut sessions) = accepting.await else { return };
        let all_ended = async { while sessions.join_next().await.is_some() {} };
        if tokio::time::timeout(options.drain_timeout / 2, all_ended)
            .await
            .is_err()
        {
            phase.send_replace(Phase::Stopping);
            let cancelling = async {
                while !sessions.is_empty() {
                    shared.cancels.cancel_all();
                    // A statement may just be starting: ask again.
                    let again = tokio::time::timeout(Duration::from_millis(100), sessions.join_next());
                    let _ended_or_not = again.await;
                }
            };
            if tokio::time::timeout(options.drain_timeout / 4, cancelling)
                .await
                .is_err()
            {
                sessions.abort_all();
            }
        }
        // There is no such table where there are no sequences.
        let _given_back = shared.writer.submit(Write::new(sql::GIVE_BACK, ())).await;
        shared.writer.drain().await;
        shared.sqlite.close().await;
    }
}

fn metrics() -> Result<PrometheusHandle, ServeError> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // A second server in the same process (tests) shares the first one's recorder.
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    if metrics::set_global_recorder(recorder).is_ok() {
        return Ok(HANDLE.get_or_init(|| handle).clone());
    }
    HANDLE
        .get()
        .cloned()
        .ok_or_else(|| ServeError::Metrics("another recorder is installed".to_owned()))
}

fn durability(synchronous: Synchronous) -> forebay_sqlite::Synchronous {
    match synchronous {
        Synchronous::Full => forebay_sqlite::Synchronous::Full,
        Synchronous::Normal => forebay_sqlite::Synchronous::Normal,
        Synchronous::Off => forebay_sqlite::Synchronous::Off,
    }
}

fn open(options: &Options, sequences: &Arc<sql::Sequences>) -> Result<Sqlite, OpenError> {
    let sequences = Arc::clone(sequences);
    let max_result_bytes = options.max_result_bytes;
    forebay_pg_values::text::limit_results(max_result_bytes);
    let builder = Sqlite::builder(&options.database)
        .synchronous(durability(options.synchronous))
        .busy_timeout(options.busy_timeout)
        .max_readers(options.readers)
        .max_rows_bytes(max_result_bytes);
    let builder = connection::prepare(builder, move |connection| {
        // A misspelt "column" is an error, not a text: as PostgreSQL has it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        // Clients are strangers to the file's schema, and it to them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        let longest = i32::try_from(max_result_bytes).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)?;
        sql::register(connection, &sequences)
    });
    builder.open()
}

/// Where this machine reaches it: what listens everywhere listens on loopback too, and no network is asked for that.
fn reached_from_here(listening: IpAddr) -> IpAddr {
    match listening {
        listening if !listening.is_unspecified() => listening,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| ServeError::Listen { address, cause })
}

fn local(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, ServeError> {
    listener
        .local_addr()
        .map_err(|cause| ServeError::Listen { address, cause })
}

/// Accepts clients until the server stops, and gives back the sessions that are left.
async fn accept(
    listener: TcpListener,
    handshake: Arc<Handshake>,
    shared: Arc<Shared>,
    max_connections: usize,
) -> JoinSet<()> {
    let places = Arc::new(Semaphore::new(max_connections));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    let denials = Arc::new(Denials::default());
    let mut sessions = JoinSet::new();
    let mut phase = shared.phase.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving) => return sessions,
            Some(_) = sessions.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, mostly: others must end before it gets better.
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (place, refusal) = match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => (place, None),
            Err(_) => match Arc::clone(&refusals).try_acquire_owned() {
                Ok(place) => {
                    let refusal = WireError::fatal("53300", "sorry, too many clients already").with_hint(format!(
                        "The server takes {max_connections} connections (--max-connections)."
                    ));
                    (place, Some(refusal))
                }
                Err(_) => continue,
            },
        };
        let (handshake, shared, denials) = (Arc::clone(&handshake), Arc::clone(&shared), Arc::clone(&denials));
        sessions.spawn(async move {
            let _place = place;
            if let Err(StartUpError::Denied { user, error }) = connection(stream, &handshake, shared, refusal).await {
                denials.log(&user, address, &error);
            }
        });
    }
}

async fn connection(
    stream: TcpStream,
    handshake: &Handshake,
    shared: Arc<Shared>,
    refusal: Option<WireError>,
) -> Result<(), StartUpError> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let mut phase = shared.phase.clone();
    let opening = tokio::select! {
        biased;
        opening = handshake.run(stream, refusal) => opening,
        // Whoever is not in yet when the server stops does not come in, and is not waited for.
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => return Ok(()),
    };
    match opening {
        Ok(Opening::Client(client)) => session(*client, shared).await,
        Ok(Opening::Cancel { process_id, secret_key }) => shared.cancels.cancel(process_id, &secret_key),
        Ok(_) => {}
        Err(error) => {
            tracing::debug!(%error, "no session");
            return Err(error);
        }
    }
    Ok(())
}

/// Cancels what runs for clients that have gone, for as long as there is a server.
async fn look_for_the_gone(cancels: Weak<Cancels>) {
    loop {
        tokio::time::sleep(cancel::LOOK_EVERY).await;
        let Some(cancels) = cancels.upgrade() else { return };
        cancels.cancel_for_the_gone();
    }
}

async fn session(client: Client<TcpStream>, shared: Arc<Shared>) {
    let _open = Open::count();
    let registration = shared.cancels.register(client.secret_key_bytes());
    registration.attach(client.frames.stream().socket(), client.frames.stream().is_tls());
    let Client {
        frames,
        output,
        user,
        database,
        parameters,
        ..
    } = client;
    let identity = Identity { user, database };
    Session::new(frames, output, shared, registration, identity)
        .run(&parameters)
        .await;
}

/// Counts a session while it lives.
struct Open;

impl Open {
    fn count() -> Self {
        metrics::gauge!("forebay_connections").increment(1);
        metrics::counter!("forebay_connections_total").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("forebay_connections").decrement(1);
    }
}

/// Brings the figures that are counted elsewhere into the metrics, when somebody asks for them.
fn observe(shared: &Shared) {
    let stats = shared.writer.stats();
    metrics::counter!("forebay_writes_total").absolute(stats.calls);
    metrics::counter!("forebay_write_batches_total").absolute(stats.batches);
    metrics::gauge!("forebay_writes_queued").set(stats.queued as f64);
}

/// As many open files as the system lets us have: one a client, some a reading connection.
fn raise_file_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live struct of the type the call fills.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if !known || limit.rlim_cur >= limit.rlim_max {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to a live struct of the type the call reads.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        tracing::debug!("the limit of open files stays as it is");
    }
}

/// The signals that ask a server to stop.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_reached_on_loopback() {
        for (listening, reached) in [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("127.0.0.2", "127.0.0.2")] {
            let reached: IpAddr = reached.parse().unwrap();
            assert_eq!(reached_from_here(listening.parse().unwrap()), reached);
        }
    }
}
