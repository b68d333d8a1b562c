//! What stands in front of a PostgreSQL, or nothing: started for the lab, and stopped with it.

use std::net::SocketAddr;
use std::path::Path;

use super::password::Password;
use super::process;
use crate::failure::Failure;
use crate::scenario::{FOREBAY, LIMIT};

pub(in crate::scenarios) const PGBOUNCER: &str = "PgBouncer";
pub(in crate::scenarios) const PGBOUNCER_BY_SESSION: &str = "PgBouncer, by session";
pub(super) const PGPOOL: &str = "pgpool-II";
pub(in crate::scenarios) const PGPOOL_REMEMBERS: &str = "pgpool-II, memory cache";
/// It has a process and a server connection for each client: it is measured with so many.
pub(super) const PGPOOL_CLIENTS_MAX: u32 = 60;
/// The same where it remembers.
pub(in crate::scenarios) const PGPOOL_REMEMBERING_CLIENTS: usize = 120;
/// The server connections of each proxy.
pub(in crate::scenarios) const POOL: usize = 20;

/// What pgbench is pointed at.
pub(in crate::scenarios) struct System {
    pub(in crate::scenarios) name: &'static str,
    pub(in crate::scenarios) url: String,
    /// The proxy's.
    pub(in crate::scenarios) process: Option<u32>,
    _running: Option<Running>,
}

/// Kept for its drop.
#[allow(dead_code, reason = "kept for its drop, which stops the proxy")]
enum Running {
    Forebay(testbed::Forebay),
    PgBouncer(testbed::PgBouncer),
    Pgpool(testbed::Pgpool),
}

/// The system, if what it needs is installed; else that is told with what is absent.
pub(in crate::scenarios) fn present(
    started: Result<System, Failure>,
    absent: &mut Vec<Failure>,
) -> Result<Option<System>, Failure> {
    match started {
        Ok(system) => Ok(Some(system)),
        Err(missed @ Failure::Absent { .. }) => {
            absent.push(missed);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

impl System {
    /// PostgreSQL itself.
    pub(in crate::scenarios) fn straight(server: &testbed::Postgres) -> Self {
        Self {
            name: LIMIT,
            url: server.url(),
            process: None,
            _running: None,
        }
    }

    /// What its process has in memory.
    pub(in crate::scenarios) fn resident_kib(&self) -> Result<u64, Failure> {
        let process = self
            .process
            .ok_or_else(|| Failure::Wrong(format!("{} has no process of its own", self.name)))?;
        process::resident_kib(process)
    }

    pub(in crate::scenarios) fn forebay(program: &Path, server: &testbed::Postgres) -> Result<Self, Failure> {
        Self::forebay_with(FOREBAY, program, server, &[])
    }

    /// By that name, with these arguments.
    pub(in crate::scenarios) fn forebay_with(
        name: &'static str,
        program: &Path,
        server: &testbed::Postgres,
        arguments: &[&str],
    ) -> Result<Self, Failure> {
        Self::forebay_of(name, program, server, POOL, arguments)
    }

    /// The same, of so many server connections.
    pub(in crate::scenarios) fn forebay_of(
        name: &'static str,
        program: &Path,
        server: &testbed::Postgres,
        pool: usize,
        arguments: &[&str],
    ) -> Result<Self, Failure> {
        let proxy = testbed::Forebay::builder(program)
            .upstream(server.url())
            .arguments(["--max-server-connections", &pool.to_string()])
            .arguments(arguments)
            .start()?;
        Ok(Self {
            name,
            // As the server's own user.
            url: format!("postgresql://postgres@{}/postgres", proxy.address()),
            process: Some(proxy.process_id()),
            _running: Some(Running::Forebay(proxy)),
        })
    }

    /// One with a user of its own and a certificate.
    pub(super) fn forebay_asking(
        program: &Path,
        server: &testbed::Postgres,
        folder: &Path,
        password: &Password,
    ) -> Result<Self, Failure> {
        let (certificate, key) = certificate()?;
        let place = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).map_err(Failure::system("place a file of the proxy"))?;
            Ok::<_, Failure>(file.display().to_string())
        };
        let files = [
            ("--users", place("users", &format!("postgres:{}\n", password.verifier))?),
            ("--tls-certificate", place("server.pem", &certificate)?),
            ("--tls-key", place("server.key", &key)?),
        ];
        let arguments = files.iter().flat_map(|(option, file)| [*option, file.as_str()]);
        let proxy = testbed::Forebay::builder(program)
            .upstream(server.url())
            .arguments([
                "--max-server-connections",
                &POOL.to_string(),
                "--max-connections",
                "20000",
            ])
            .arguments(arguments)
            .start()?;
        Ok(Self {
            name: FOREBAY,
            url: format!("postgresql://postgres@{}/postgres", proxy.address()),
            process: Some(proxy.process_id()),
            _running: Some(Running::Forebay(proxy)),
        })
    }

    pub(super) fn pgbouncer_asking(server: SocketAddr, password: &Password) -> Result<Self, Failure> {
        let asking = testbed::Asking {
            verifier: password.verifier.clone(),
            tls: certificate()?,
        };
        let proxy =
            testbed::PgBouncer::start_asking(server, POOL, &asking).map_err(|error| absent(PGBOUNCER, error))?;
        Ok(Self::of_pgbouncer(proxy))
    }

    /// With rules of this file, which names the server.
    pub(in crate::scenarios) fn forebay_told(
        name: &'static str,
        program: &Path,
        config: &Path,
    ) -> Result<Self, Failure> {
        let proxy = testbed::Forebay::builder(program).databases_of(config).start()?;
        Ok(Self {
            name,
            url: format!("postgresql://postgres@{}/postgres", proxy.address()),
            process: Some(proxy.process_id()),
            _running: Some(Running::Forebay(proxy)),
        })
    }

    /// With a memory of its own, and processes for a hundred clients.
    pub(in crate::scenarios) fn pgpool_remembering(server: SocketAddr) -> Result<Self, Failure> {
        let proxy = testbed::Pgpool::start_remembering(server, PGPOOL_REMEMBERING_CLIENTS);
        let proxy = proxy.map_err(|error| absent(PGPOOL, error))?;
        Ok(Self {
            name: PGPOOL_REMEMBERS,
            url: proxy.url(),
            process: Some(proxy.process_id()),
            _running: Some(Running::Pgpool(proxy)),
        })
    }

    pub(super) fn pgpool(server: SocketAddr) -> Result<Self, Failure> {
        let clients = PGPOOL_CLIENTS_MAX as usize;
        let proxy = testbed::Pgpool::start(server, clients).map_err(|error| absent(PGPOOL, error))?;
        Ok(Self {
            name: PGPOOL,
            url: proxy.url(),
            process: Some(proxy.process_id()),
            _running: Some(Running::Pgpool(proxy)),
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        let address = self.url.split_once('@').and_then(|(_, rest)| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok());
        address.ok_or_else(|| Failure::Wrong(format!("{} names no address", self.url)))
    }

    pub(in crate::scenarios) fn pgbouncer(server: SocketAddr) -> Result<Self, Failure> {
        let proxy = testbed::PgBouncer::start(server, POOL).map_err(|error| absent(PGBOUNCER, error))?;
        Ok(Self::of_pgbouncer(proxy))
    }

    /// Which lends each client a server connection of its own, of so many.
    pub(in crate::scenarios) fn pgbouncer_by_session(server: SocketAddr, pool: usize) -> Result<Self, Failure> {
        let proxy = testbed::PgBouncer::start_by_session(server, pool).map_err(|error| absent(PGBOUNCER, error))?;
        Ok(Self {
            name: PGBOUNCER_BY_SESSION,
            ..Self::of_pgbouncer(proxy)
        })
    }

    pub(super) fn of_pgbouncer(proxy: testbed::PgBouncer) -> Self {
        Self {
            name: PGBOUNCER,
            url: proxy.url(),
            process: Some(proxy.process_id()),
            _running: Some(Running::PgBouncer(proxy)),
        }
    }
}

fn absent(what: &str, error: testbed::Error) -> Failure {
    match error {
        testbed::Error::NotInstalled { .. } => Failure::Absent {
            what: what.to_owned(),
            cause: error.to_string(),
            remedy: "measured without it".to_owned(),
        },
        error => error.into(),
    }
}

/// Of this machine, and its key, in PEM.
fn certificate() -> Result<(String, String), Failure> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let made = made.map_err(|error| Failure::Wrong(format!("no certificate can be made: {error}")))?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}
