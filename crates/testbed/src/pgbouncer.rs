//! A real PgBouncer, as Debian packages it: in front of one PostgreSQL, lending its connections by transaction, or by session.
//!
//! Promises: it trusts its clients, as a PostgreSQL of this crate does, unless it is to ask them; each user at each database has a pool of the size that
//! was asked for.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    time::Duration,
};

use crate::{
    Error, Folder, Process, Program,
    start::{self, account_unless_root, start_on_a_free_port},
};

const READY_WITHIN: Duration = Duration::from_secs(30);
const PROGRAM: &str = "pgbouncer";
/// Daemons are in nobody's PATH.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
const INSTALL: &str = "apt-get install pgbouncer";
/// It refuses to run as root.
const ACCOUNTS: &[&str] = &["postgres", "nobody"];
/// As the PostgreSQL of this crate has it.
const USER: &str = "postgres";

/// A running PgBouncer; dropping it stops it.
#[derive(Debug)]
pub struct PgBouncer {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    port: u16,
    _folder: Folder,
}

/// How clients are asked who they are.
#[derive(Debug, Clone)]
pub struct Asking {
    /// What is stored of the password of this crate's user, as SCRAM-SHA-256 has it.
    pub verifier: String,
    /// A certificate and its key, in PEM, for clients that want TLS.
    pub tls: (String, String),
}

impl PgBouncer {
    /// Starts one in front of this PostgreSQL, with so many server connections a pool, and waits until it listens.
    ///
    /// # Errors
    /// When PgBouncer is not installed, or does not start; the error shows its log.
    pub fn start(upstream: SocketAddr, pool_size: usize) -> Result<Self, Error> {
        Self::start_with(upstream, pool_size, "transaction", None)
    }

    /// The same, where a client has its server connection for as long as it is there.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_by_session(upstream: SocketAddr, pool_size: usize) -> Result<Self, Error> {
        Self::start_with(upstream, pool_size, "session", None)
    }

    /// The same, which asks its clients to prove a password.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_asking(upstream: SocketAddr, pool_size: usize, asking: &Asking) -> Result<Self, Error> {
        Self::start_with(upstream, pool_size, "transaction", Some(asking))
    }

    fn start_with(
        upstream: SocketAddr,
        pool_size: usize,
        lending: &str,
        asking: Option<&Asking>,
    ) -> Result<Self, Error> {
        let program = start::find_program(PROGRAM, &FOLDERS).ok_or_else(|| Error::NotInstalled {
            program: format!("PgBouncer ({PROGRAM})"),
            looked_in: format!("PATH, {}", FOLDERS.join(", ")),
            install: INSTALL.into(),
        })?;
        let account = account_unless_root("PgBouncer", ACCOUNTS)?;
        let folder = Folder::new("pgbouncer", None)?;
        if let Some(account) = account {
            folder.give_to(account)?;
        }
        let stored = asking.map_or("", |asking| asking.verifier.as_str());
        folder.place("users.txt", &format!("\"{USER}\" \"{stored}\"\n"), account)?;
        let auth = match asking {
            None => "auth_type = trust\n".to_owned(),
            Some(Asking {
                tls: (certificate, key),
                ..
            }) => {
                folder.place("server.pem", certificate, account)?;
                folder.place("server.key", key, account)?;
                format!(
                    "auth_type = scram-sha-256\nclient_tls_sslmode = allow\nclient_tls_cert_file = {}\nclient_tls_key_file = {}\n",
                    folder.file("server.pem").display(),
                    folder.file("server.key").display()
                )
            }
        };
        let (address, upstream_port) = (upstream.ip(), upstream.port());
        let launch = |port: u16| {
            let configuration = format!(
                "[databases]\n* = host={address} port={upstream_port}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n{auth}\
                 auth_file = {users}\npool_mode = {lending}\ndefault_pool_size = {pool_size}\nmax_client_conn = 20000\n\
                 ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0\n",
                users = folder.file("users.txt").display(),
            );
            folder.place("pgbouncer.ini", &configuration, account)?;
            launch(&program, &folder, account, port)
        };
        let (port, process) = start_on_a_free_port(launch, |output| output.contains("in use"))?;
        Ok(Self {
            process,
            port,
            _folder: folder,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// How a client reaches a database through it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://{USER}@{}/postgres", self.address())
    }

    /// Its process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

fn launch(path: &PathBuf, folder: &Folder, account: Option<crate::Account>, port: u16) -> Result<Process, Error> {
    let mut program = Program::new(path, [folder.file("pgbouncer.ini")]);
    program.folder = Some(folder.path().to_path_buf());
    program.account = account;
    // At once: the first one would wait for clients.
    program.stop_signal = libc::SIGTERM;
    let mut process = program.start()?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    process.wait_until(READY_WITHIN, || {
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    })?;
    Ok(process)
}
