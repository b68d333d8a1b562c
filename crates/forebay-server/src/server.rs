//! The server: what is behind the door and the door, and how everything comes to an orderly end.
//!
//! On SIGINT or SIGTERM no new client is let in; sessions that are idle end at once, a group of messages whose Sync is on its way
//! is answered first, those inside a transaction may finish it for half of the drain timeout; then statements that still run are cancelled, what waits to be written is written, and the
//! file is closed. An acknowledged write is never lost by it, nor by a kill.
//!
//! Where it offers its sockets and another server takes them, it lets nobody in any more, and ends when its clients have gone.
//!
//! On SIGHUP options and files are read anew. Clients that are there stay; who comes is let in as they say now. What cannot be used is
//! logged, and all stays as it was.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_pg_wire::authentication::Authenticator;
use forebay_pg_wire::gate::{self, Gate};
use forebay_pg_wire::phase::Phase;
use forebay_pg_wire::startup::{Client, Handshake, StartUpError};
use forebay_stream::Socket;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::access::{Access, Rules};
use crate::config::{Options, Settings};
use crate::door::{self, Behind, Door};
use crate::embedded::Embedded;
use crate::error::ServeError;
use crate::handover::{Offer, Predecessor, Sockets, Successor};
use crate::http::{self, Asks};
use crate::listeners::{Listeners, Peer};
use crate::log::{self, Log};
use crate::proxied::Proxied;
use crate::tls;
use crate::users::Users;

/// The stack of a thread that parses statements: a debug build takes some 25 KiB a level of nesting.
const WORKER_STACK_BYTES: usize = 64 << 20;

/// Runs the server, on threads of its own, until it is told to stop by SIGINT or SIGTERM.
///
/// # Errors
/// [`ServeError`], before any client was let in.
///
/// # Panics
/// When this process logs already.
pub fn serve(settings: &Settings) -> Result<(), ServeError> {
    let options = settings.resolve()?;
    let log = Log::start(&options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Statements nest as deep as SQLite takes them, and are parsed recursively; memory that is not used costs nothing.
        .thread_stack_size(WORKER_STACK_BYTES)
        .build()
        .map_err(ServeError::Threads)?;
    runtime.block_on(until_told_to_stop(settings, options, &log))
}

async fn until_told_to_stop(settings: &Settings, options: Options, log: &Log) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Signals)?;
    let mut server = Server::start(options)
        .await
        .map_err(|error| error.in_file_of(settings))?;
    server.announce();
    loop {
        let signal = tokio::select! {
            signal = signals.next() => signal,
            successor = server.successor() => {
                server.leave(successor, &mut signals).await;
                tracing::info!("stopped");
                return Ok(());
            }
        };
        if signal == Signal::Stop {
            break;
        }
        let reloaded = settings.resolve().map_err(ServeError::from).and_then(|options| {
            log::check(&options)?;
            server.reload(&options)?;
            Ok(log.change(&options)?)
        });
        match reloaded {
            Ok(()) => tracing::info!("options are read anew"),
            Err(error) => {
                let error = error.in_file_of(settings).in_one_line();
                tracing::error!(%error, "options cannot be used, all stays as it was");
            }
        }
    }
    tracing::info!("stopping: no new clients, open transactions may finish");
    server.stop().await;
    tracing::info!("stopped");
    Ok(())
}

/// What clients find.
enum Database {
    Embedded(Embedded),
    Proxied(Proxied),
}

impl Database {
    /// Who may enter, and how.
    fn handshake(&self, options: &Options) -> Result<Arc<Handshake>, ServeError> {
        let tls = match &options.tls {
            Some(files) => Some(tls::load(files)?),
            None => None,
        };
        let gate: Arc<dyn Gate> = match (&options.users, self) {
            (Some(path), _) => Arc::new(gate::Users::new(Users::load(path)?.into_stored())),
            (None, Self::Embedded(_)) => Arc::new(gate::Trust),
            (None, Self::Proxied(proxied)) => proxied.gate(),
        };
        let gate = match &options.hba_file {
            Some(path) => Arc::new(Access::new(Rules::load_for(path, options)?, gate)),
            None => gate,
        };
        let authenticator = Authenticator::new(gate, tls.as_ref());
        let handshake = Handshake::new(authenticator, tls, options.startup_timeout);
        let handshake = handshake.requiring_tls(options.require_tls);
        Ok(Arc::new(handshake.serving_replication(options.proxy.is_some())))
    }

    fn describe(&self, options: &Options) -> String {
        match self {
            Self::Embedded(embedded) => embedded.describe(options),
            Self::Proxied(proxied) => proxied.describe(options),
        }
    }

    /// Why it is not to be sent anything; none if it is.
    async fn ailing(&self) -> Option<String> {
        match self {
            Self::Embedded(embedded) => embedded.ailing().await,
            Self::Proxied(proxied) => proxied.ailing(),
        }
    }

    /// Why it is not to be sent clients now; none if it is.
    async fn unready(&self) -> Option<String> {
        match self {
            Self::Embedded(embedded) => embedded.ailing().await,
            Self::Proxied(proxied) => proxied.unready().await,
        }
    }

    fn observe(&self) {
        match self {
            Self::Embedded(embedded) => embedded.observe(),
            Self::Proxied(proxied) => proxied.observe(),
        }
    }

    /// Appends metrics whose names are the clients'.
    fn put_figures(&self, text: &mut String) {
        if let Self::Proxied(proxied) = self {
            proxied.put_figures(text);
        }
    }

    /// Waits until the server whose sockets were taken has ended, if there is one.
    async fn predecessor_ended(&self) {
        if let Self::Proxied(proxied) = self {
            proxied.predecessor_ended().await;
        }
    }

    /// Cancels whatever runs where sessions do not end by themselves.
    fn cancel_all(&self) {
        match self {
            Self::Embedded(embedded) => embedded.cancel_all(),
            // Its sessions look at the phase wherever they wait.
            Self::Proxied(_) => {}
        }
    }

    async fn close(&self) {
        match self {
            Self::Embedded(embedded) => embedded.close().await,
            Self::Proxied(proxied) => proxied.close().await,
        }
    }

    /// Another server has taken over.
    fn leave(&self) {
        if let Self::Proxied(proxied) = self {
            proxied.leave();
        }
    }
}

impl Behind for Database {
    async fn serve(&self, client: Client<Socket>, peer: Peer) -> Result<(), StartUpError> {
        match self {
            Self::Embedded(embedded) => embedded.serve(client, peer).await,
            Self::Proxied(proxied) => proxied.serve(client, peer).await,
        }
    }

    async fn cancel(&self, process_id: i32, secret_key: &[u8]) {
        match self {
            Self::Embedded(embedded) => embedded.cancel(process_id, secret_key).await,
            Self::Proxied(proxied) => proxied.cancel(process_id, secret_key).await,
        }
    }
}

/// A server that runs.
pub struct Server {
    options: Options,
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    database: Arc<Database>,
    handshake: watch::Sender<Arc<Handshake>>,
    phase: watch::Sender<Phase>,
    door: watch::Sender<Door>,
    accepting: tokio::task::JoinHandle<JoinSet<()>>,
    /// Tells of the one that has taken the sockets, where they are offered.
    successor: Option<oneshot::Receiver<Successor>>,
}

impl Server {
    /// Opens the database and listens.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn start(options: Options) -> Result<Self, ServeError> {
        raise_file_limit();
        let metrics = metrics()?;
        let (predecessor, mut handed) = match &options.handover_socket {
            None => (None, None),
            Some(path) => match Predecessor::ask(path).await {
                Ok(asked) => asked
                    .map(|(predecessor, sockets)| (Arc::new(predecessor), sockets))
                    .unzip(),
                Err(cause) => return Err(handover_error(path, cause)),
            },
        };
        // First, so that a start that fails for want of a port leaves no file behind.
        let (handed_tcp, handed_local, handed_http) = match handed.take() {
            Some(Sockets { tcp, local, http }) => (Some(tcp), local, http),
            None => (None, None, None),
        };
        let listener = listen(options.listen, handed_tcp).await?;
        let http_listener = match options.http {
            None => None,
            Some(http) => Some((listen(http, handed_http).await?, http)),
        };
        let (phase, seen) = watch::channel(Phase::Serving);
        let (door, seen_door) = watch::channel(Door::Open);
        let database = Arc::new(match &options.proxy {
            None => Database::Embedded(Embedded::open(&options, seen.clone())?),
            Some(proxy) => Database::Proxied(Proxied::new(proxy, seen.clone(), predecessor.clone())?),
        });
        let (handshake, seen_handshake) = watch::channel(database.handshake(&options)?);
        let address = local(&listener, options.listen)?;
        let listeners = Listeners::new(listener, options.socket_folder.as_deref(), handed_local).await?;
        // Whatever can fail has been done; who waits to be accepted waits for a moment longer.
        let successor = match &options.handover_socket {
            None => None,
            Some(path) => {
                let http = http_listener.as_ref().map(|(listener, _)| listener);
                let taken = take_over(path, predecessor.as_deref(), &listeners, http).await;
                Some(taken.map_err(|cause| handover_error(path, cause))?)
            }
        };
        let http_address = match http_listener {
            None => None,
            Some((listener, http)) => {
                let address = local(&listener, http)?;
                tokio::spawn(http::serve(
                    listener,
                    pages(&database, metrics),
                    // Answers that it drains for as long as the process lives.
                    is_handed_over(seen_door.clone()),
                ));
                Some(address)
            }
        };
        let accepting = tokio::spawn(door::accept(
            listeners,
            seen_handshake,
            Arc::clone(&database),
            seen,
            seen_door,
            options.max_connections,
        ));
        Ok(Self {
            options,
            address,
            http_address,
            database,
            handshake,
            phase,
            door,
            accepting,
            successor,
        })
    }

    /// From now on who comes is let in as these options say, and databases of other servers are where they say; the users file and
    /// the certificates are read anew. Clients that are there stay.
    ///
    /// # Errors
    /// [`ServeError`] where something cannot be used; then all stays as it was.
    pub fn reload(&mut self, options: &Options) -> Result<(), ServeError> {
        let handshake = self.database.handshake(options)?;
        if let (Database::Proxied(proxied), Some(proxy)) = (&*self.database, &options.proxy) {
            proxied.change(proxy)?;
        }
        self.handshake.send_replace(handshake);
        for option in self.options.fixed_unlike(options) {
            tracing::warn!("{option} has changed: that holds from the next start on");
        }
        self.options.drain_timeout = options.drain_timeout;
        Ok(())
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Prints what a person needs to begin.
    fn announce(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let host = reached_from_here(self.address.ip());
        let port = self.address.port();
        let (database, user) = match &self.options.proxy {
            None => ("forebay", self.options.users.as_ref().map(|_| "NAME")),
            Some(proxy) => {
                let (database, user) = proxy.example();
                (database.unwrap_or("DATABASE"), Some(user.unwrap_or("NAME")))
            }
        };
        let user = user.map_or_else(String::new, |user| format!(" -U {user}"));
        println!("forebay {version} · {}", self.database.describe(&self.options));
        println!("  PostgreSQL  postgresql://{}/{database}", self.address);
        if let Some(folder) = &self.options.socket_folder {
            println!("  socket      psql -h {} -p {port}{user} {database}", folder.display());
        }
        match self.http_address {
            Some(address) => println!("  HTTP        http://{address}  (/metrics, /healthz, /readyz)"),
            None => println!("  HTTP        off"),
        }
        println!("  try         psql -h {host} -p {port}{user} {database}");
    }

    /// Brings everything to an orderly end, within the drain timeout.
    pub async fn stop(self) {
        let timeout = self.options.drain_timeout;
        let ended = tokio::time::timeout(timeout, self.drain()).await;
        if ended.is_err() {
            tracing::warn!("not everything ended within {timeout:?}; what was acknowledged is safe");
        }
    }

    /// Waits for a server that has taken the sockets.
    ///
    /// # Cancel safety
    /// Dropped, nobody is lost.
    async fn successor(&mut self) -> Successor {
        match &mut self.successor {
            Some(successor) => match successor.await {
                Ok(successor) => successor,
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// Lets nobody in any more, for another does, and ends when the clients that are here have gone, or within the drain timeout once it
    /// is told to stop.
    async fn leave(self, successor: Successor, signals: &mut Signals) {
        tracing::info!("another server has taken the sockets; clients that are here may stay");
        self.door.send_replace(Door::HandedOver);
        self.database.leave();
        let Ok(mut sessions) = self.accepting.await else {
            return;
        };
        let database = &self.database;
        let mut passed_on = pin!(async {
            let cancel = async |process_id, key: &[u8]| database.cancel(process_id, key).await;
            successor.serve(cancel).await;
            std::future::pending::<()>().await;
        });
        loop {
            tokio::select! {
                () = async {
                    while sessions.join_next().await.is_some() {}
                    // Their cancels come this way.
                    database.predecessor_ended().await;
                } => return database.close().await,
                signal = signals.next() => match signal {
                    Signal::Reload => tracing::warn!("options are for the server that has taken over"),
                    Signal::Stop => break,
                },
                () = &mut passed_on => {}
            }
        }
        tracing::info!("stopping: open transactions may finish");
        let timeout = self.options.drain_timeout;
        if tokio::time::timeout(timeout, end(timeout, database, &self.phase, sessions))
            .await
            .is_err()
        {
            tracing::warn!("not everything ended within {timeout:?}; what was acknowledged is safe");
        }
    }

    async fn drain(self) {
        let Self {
            options,
            database,
            phase,
            door,
            accepting,
            // Whoever is still to be let in is.
            handshake: _handshake,
            ..
        } = self;
        phase.send_replace(Phase::Draining);
        door.send_replace(Door::Closed);
        if let Ok(sessions) = accepting.await {
            end(options.drain_timeout, &database, &phase, sessions).await;
        }
    }
}

/// Ends sessions: those that are idle at once, others when they have had their time.
async fn end(drain_timeout: Duration, database: &Database, phase: &watch::Sender<Phase>, mut sessions: JoinSet<()>) {
    phase.send_replace(Phase::Draining);
    let all_ended = async { while sessions.join_next().await.is_some() {} };
    if tokio::time::timeout(drain_timeout / 2, all_ended).await.is_err() {
        phase.send_replace(Phase::Stopping);
        let cancelling = async {
            while !sessions.is_empty() {
                database.cancel_all();
                // A statement may just be starting: ask again.
                let again = tokio::time::timeout(Duration::from_millis(100), sessions.join_next());
                let _ended_or_not = again.await;
            }
        };
        if tokio::time::timeout(drain_timeout / 4, cancelling).await.is_err() {
            sessions.abort_all();
        }
    }
    database.close().await;
}

/// From now on the sockets are this one's, and it offers them to a server that starts.
async fn take_over(
    path: &Path,
    predecessor: Option<&Predecessor>,
    listeners: &Listeners,
    http: Option<&TcpListener>,
) -> std::io::Result<oneshot::Receiver<Successor>> {
    let offer = Offer::beside(path)?;
    let (tcp, local) = listeners.sockets()?;
    let http = http.map(|http| http.as_fd().try_clone_to_owned()).transpose()?;
    let sockets = Sockets {
        tcp,
        local,
        http: http.map(Into::into),
    };
    if let Some(predecessor) = predecessor {
        predecessor.succeed().await?;
        tracing::info!("the sockets of the server before are taken");
    }
    let offer = offer.stand(path)?;
    let (told, successor) = oneshot::channel();
    tokio::spawn(async move {
        // A server that has ended offers nothing.
        let _whether_it_is_there = told.send(offer.successor(sockets).await);
    });
    Ok(successor)
}

async fn is_handed_over(mut door: watch::Receiver<Door>) {
    if door.wait_for(|door| *door == Door::HandedOver).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The pages of metrics and health.
fn pages(database: &Arc<Database>, metrics: PrometheusHandle) -> axum::Router {
    let (asked, counted) = (Arc::clone(database), Arc::clone(database));
    let ailing = move |asks| {
        let asked = Arc::clone(&asked);
        async move {
            match asks {
                Asks::Health => asked.ailing().await,
                Asks::Readiness => asked.unready().await,
            }
        }
    };
    let text = move || {
        counted.observe();
        let mut text = metrics.render();
        counted.put_figures(&mut text);
        text
    };
    http::router(text, ailing)
}

fn handover_error(path: &Path, cause: std::io::Error) -> ServeError {
    let path = path.to_owned();
    ServeError::Handover { path, cause }
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

/// Where this machine reaches it: what listens everywhere listens on loopback too, and no network is asked for that.
fn reached_from_here(listening: IpAddr) -> IpAddr {
    match listening {
        listening if !listening.is_unspecified() => listening,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// On the socket that was handed over, if that listens there.
async fn listen(address: SocketAddr, handed: Option<std::net::TcpListener>) -> Result<TcpListener, ServeError> {
    let listener = match handed.and_then(|handed| Sockets::take(handed, address)) {
        Some(handed) => handed
            .set_nonblocking(true)
            .and_then(|()| TcpListener::from_std(handed)),
        None => TcpListener::bind(address).await,
    };
    listener.map_err(|cause| ServeError::Listen { address, cause })
}

fn local(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, ServeError> {
    listener
        .local_addr()
        .map_err(|cause| ServeError::Listen { address, cause })
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

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Stop,
    Reload,
}

/// The signals that ask a server for something.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
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
