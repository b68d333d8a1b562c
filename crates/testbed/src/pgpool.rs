//! A real pgpool-II, as Debian packages it: in front of one PostgreSQL, without replication and balancing, and without a cache unless one is asked for.
//!
//! Promises: it trusts its clients, as a PostgreSQL of this crate does. It lends nothing: each client has a process of it and a server
//! connection until it goes, and clients beyond the number that was asked for wait to be let in.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Error, Folder, FreePort, Process, Program,
    start::{self, account_unless_root, start_on_a_free_port},
};

const READY_WITHIN: Duration = Duration::from_secs(30);
const PROGRAM: &str = "pgpool";
/// Daemons are in nobody's PATH.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const INSTALL: &str = "apt-get install pgpool2";
const ACCOUNTS: &[&str] = &["postgres", "nobody"];
/// As the PostgreSQL of this crate has it.
const USER: &str = "postgres";

/// A running pgpool-II; dropping it stops it.
#[derive(Debug)]
pub struct Pgpool {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    port: u16,
    _folder: Folder,
}

impl Pgpool {
    /// Starts one in front of this PostgreSQL, for so many clients at a time, and waits until it listens.
    ///
    /// # Errors
    /// When pgpool-II is not installed, or does not start; the error shows its log.
    pub fn start(upstream: SocketAddr, clients: usize) -> Result<Self, Error> {
        Self::start_with(upstream, clients, "")
    }

    /// The same, with a memory for answers in memory that its processes share: as much as it comes with, for an hour.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_remembering(upstream: SocketAddr, clients: usize) -> Result<Self, Error> {
        let memory = "memory_cache_enabled = on\nmemqcache_method = 'shmem'\nmemqcache_expire = 3600\n";
        Self::start_with(upstream, clients, memory)
    }

    fn start_with(upstream: SocketAddr, clients: usize, further: &str) -> Result<Self, Error> {
        let program = start::find_program(PROGRAM, &FOLDERS).ok_or_else(|| Error::NotInstalled {
            program: format!("pgpool-II ({PROGRAM})"),
            looked_in: format!("PATH, {}", FOLDERS.join(", ")),
            install: INSTALL.into(),
        })?;
        let account = account_unless_root("pgpool-II", ACCOUNTS)?;
        let folder = Folder::new("pgpool", None)?;
        if let Some(account) = account {
            folder.give_to(account)?;
        }
        folder.place("pcp.conf", "", account)?;
        let pcp_port = FreePort::find()?;
        let launch = |port: u16| {
            let configuration = format!(
                "listen_addresses = '127.0.0.1'\nport = {port}\nsocket_dir = '{folder}'\npcp_listen_addresses = '127.0.0.1'\n\
                 pcp_port = {pcp_port}\npcp_socket_dir = '{folder}'\nbackend_clustering_mode = 'raw'\n\
                 backend_hostname0 = '{address}'\nbackend_port0 = {upstream_port}\nbackend_weight0 = 1\n\
                 num_init_children = {clients}\nmax_pool = 1\nconnection_cache = off\nload_balance_mode = off\n\
                 enable_pool_hba = off\npool_passwd = ''\npid_file_name = '{folder}/pgpool.pid'\nlogdir = '{folder}'\n\
                 log_destination = 'stderr'\nhealth_check_period = 0\nsr_check_period = 0\nuse_watchdog = off\n{further}\
                 memqcache_oiddir = '{folder}/oids'\n",
                folder = folder.path().display(),
                pcp_port = pcp_port.number(),
                address = upstream.ip(),
                upstream_port = upstream.port(),
            );
            folder.place("pgpool.conf", &configuration, account)?;
            launch(&program, &folder, account, port)
        };
        let (port, process) = start_on_a_free_port(launch, |output| output.contains("in use"))?;
        Ok(Self {
            process,
            port,
            _folder: folder,
        })
    }

    /// How a client reaches a database through it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://{USER}@{}:{}/postgres", Ipv4Addr::LOCALHOST, self.port)
    }

    /// The process id of the one that all others are children of.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

fn launch(path: &PathBuf, folder: &Folder, account: Option<crate::Account>, port: u16) -> Result<Process, Error> {
    let file = |name: &str| Path::new(folder.path()).join(name).into_os_string();
    let mut program = Program::new(
        path,
        [
            "-n".into(),
            "-f".into(),
            file("pgpool.conf"),
            "-F".into(),
            file("pcp.conf"),
        ],
    );
    program.folder = Some(folder.path().to_path_buf());
    program.account = account;
    // At once, whoever is there.
    program.stop_signal = libc::SIGINT;
    let mut process = program.start()?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    process.wait_until(READY_WITHIN, || {
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    })?;
    Ok(process)
}
