//! A real PostgreSQL of the newest version installed here, with its default durability.
//!
//! Promises: connections from this machine are trusted, the superuser is `postgres`; when this process is root, the server
//! runs as an unprivileged account, because it refuses root. `fsync` and all other settings are PostgreSQL's own defaults
//! unless a caller changes them with [`PostgresBuilder::setting`].

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Ended, Error, Folder, ForTests, Process, Program,
    start::{account_unless_root, start_on_a_free_port},
};

/// Names the folder of another version's programs, to run all tests on that.
const PROGRAMS: &str = "FOREBAY_POSTGRES_PROGRAMS";
/// initdb writes some 40 MB.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Names, by its URL, a server to test against instead.
const URL_VARIABLE: &str = "FOREBAY_TEST_POSTGRES";
const ACCOUNTS: &[&str] = &["postgres", "nobody"];
const USER: &str = "postgres";
const INSTALL: &str = "apt-get install postgresql";

/// What to change before a PostgreSQL is started.
#[derive(Debug, Clone, Default)]
pub struct PostgresBuilder {
    settings: Vec<(String, String)>,
    parent: Option<PathBuf>,
    locale: Option<String>,
    host_based_authentication: Option<String>,
    tls: Option<(String, String)>,
    client_roots_pem: Option<String>,
    is_standby: bool,
}

impl PostgresBuilder {
    /// Sets a configuration parameter, such as `max_connections`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Keeps the data in a new folder in `parent`, for example on the disk to be measured. The account it runs as must be
    /// able to reach it.
    #[must_use]
    pub fn folder_in(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Prepares it with another locale than `C`, for example `C.UTF-8`, where letters beyond ASCII have an upper case.
    #[must_use]
    pub fn locale(mut self, locale: &str) -> Self {
        self.locale = Some(locale.to_owned());
        self
    }

    /// Whom it lets in how, as lines of `pg_hba.conf`; before them stands one that trusts the superuser at 127.0.0.1.
    #[must_use]
    pub fn host_based_authentication(mut self, lines: &str) -> Self {
        self.host_based_authentication = Some(lines.to_owned());
        self
    }

    /// Has it speak TLS with this certificate chain and this key, in PEM.
    #[must_use]
    pub fn tls(mut self, certificate_pem: &str, key_pem: &str) -> Self {
        self.tls = Some((certificate_pem.to_owned(), key_pem.to_owned()));
        self.setting("ssl", "on")
    }

    /// Has it take client certificates that these roots, in PEM, have signed.
    #[must_use]
    pub fn client_roots(mut self, roots_pem: &str) -> Self {
        self.client_roots_pem = Some(roots_pem.to_owned());
        self.setting("ssl_ca_file", "root.crt")
    }

    /// Starts it as a standby: of nobody, but nothing can be written to it.
    #[must_use]
    pub fn standby(mut self) -> Self {
        self.is_standby = true;
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// When PostgreSQL is not installed, or does not start; the error shows its log.
    pub fn start(self) -> Result<Postgres, Error> {
        let programs = find_programs()?;
        let account = account_unless_root("PostgreSQL", ACCOUNTS)?;
        let folder = Folder::new("postgres", self.parent.as_deref())?;
        if let Some(account) = account {
            folder.give_to(account)?;
        }
        let data = folder.file("data");
        let mut prepare = Program::new(
            programs.join("initdb"),
            ["--auth=trust", "--no-sync", "--encoding=UTF8"],
        );
        prepare
            .arguments
            .push(format!("--locale={}", self.locale.as_deref().unwrap_or("C")).into());
        prepare
            .arguments
            .extend(["--username".into(), USER.into(), "--pgdata".into(), data.clone().into()]);
        prepare.folder = Some(folder.path().to_path_buf());
        prepare.account = account;
        prepare.run(PREPARED_WITHIN)?;
        let place = |name: &str, text: &str| folder.place(&format!("data/{name}"), text, account);
        if let Some(lines) = &self.host_based_authentication {
            let trusted = format!("host all {USER} 127.0.0.1/32 trust\n{lines}\n");
            place("pg_hba.conf", &trusted)?;
        }
        if let Some((certificate_pem, key_pem)) = &self.tls {
            place("server.crt", certificate_pem)?;
            place("server.key", key_pem)?;
        }
        if let Some(roots_pem) = &self.client_roots_pem {
            place("root.crt", roots_pem)?;
        }
        if self.is_standby {
            place("standby.signal", "")?;
        }

        let mut program = Program::new(programs.join("postgres"), ["-D".into(), data.into_os_string()]);
        program.folder = Some(folder.path().to_path_buf());
        program.account = account;
        // An immediate shutdown: the data is thrown away, so no checkpoint is written for it.
        program.stop_signal = libc::SIGQUIT;
        // Unless a setting says otherwise.
        program
            .arguments
            .extend(["-c".into(), "unix_socket_directories=".into()]);
        for (name, value) in &self.settings {
            program
                .arguments
                .extend(["-c".into(), format!("{name}={value}").into()]);
        }
        let (port, process) = start_and_wait(&program)?;
        Ok(Postgres {
            process,
            program,
            port,
            folder,
        })
    }
}

/// A running PostgreSQL; dropping it stops it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    /// Without the port, which each start chooses anew.
    program: Program,
    port: u16,
    folder: Folder,
}

impl Postgres {
    /// Starts one with PostgreSQL's own defaults.
    ///
    /// # Errors
    /// As [`PostgresBuilder::start`].
    pub fn start() -> Result<Self, Error> {
        PostgresBuilder::default().start()
    }

    /// To change something first.
    #[must_use]
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// The server to test against: the one that `FOREBAY_TEST_POSTGRES` names by its URL, or else a new one.
    ///
    /// # Errors
    /// As [`PostgresBuilder::start`].
    pub fn for_tests() -> Result<ForTests<Self>, Error> {
        // Tests run at once, each with connections of its own.
        let start = || Self::builder().setting("max_connections", "300").start();
        ForTests::named_or_started(URL_VARIABLE, start, Self::url)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// How a client reaches it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://{USER}@{}/postgres", self.address())
    }

    /// Its folder; it holds the data.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its log so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Its process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it as a crash would: nothing is written, nobody is told.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill9(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGKILL)
    }

    /// Starts it on the same data again, on a new port, after it was killed; it recovers first.
    ///
    /// # Errors
    /// As [`PostgresBuilder::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        if self.process.ended()?.is_none() {
            self.process.stop(libc::SIGINT)?;
        }
        // Workers of a killed server notice within moments and let go of the data; until then a new one refuses to start,
        // and says so. `start_and_wait` tries again.
        (self.port, self.process) = start_and_wait(&self.program)?;
        Ok(())
    }
}

/// The folder with `initdb` and `postgres` that [`PROGRAMS`] names, or of the newest version that is installed.
fn find_programs() -> Result<PathBuf, Error> {
    if let Some(named) = std::env::var_os(PROGRAMS) {
        return Ok(named.into());
    }
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin")))
        })
        .collect();
    versions.sort_unstable();
    let from_pg_config = || {
        let told = Command::new("pg_config").arg("--bindir").output().ok()?;
        Some(PathBuf::from(String::from_utf8(told.stdout).ok()?.trim()))
    };
    let candidates = versions.into_iter().rev().map(|(_, path)| path).chain(from_pg_config());
    let complete = |path: &PathBuf| path.join("initdb").is_file() && path.join("postgres").is_file();
    candidates
        .into_iter()
        .find(complete)
        .ok_or_else(|| Error::NotInstalled {
            program: "PostgreSQL (initdb, postgres)".into(),
            looked_in: "/usr/lib/postgresql/*/bin and the folder that pg_config names".into(),
            install: INSTALL.into(),
        })
}

fn start_and_wait(program: &Program) -> Result<(u16, Process), Error> {
    let launch = |port: u16| {
        let mut on_port = program.clone();
        let settings = [format!("port={port}"), "listen_addresses=127.0.0.1".into()];
        for setting in settings {
            on_port.arguments.extend(["-c".into(), setting.into()]);
        }
        let mut process = on_port.start()?;
        process.wait_until(READY_WITHIN, || answers((Ipv4Addr::LOCALHOST, port).into()))?;
        Ok(process)
    };
    start_on_a_free_port(launch, may_pass)
}

/// Whether the server ended for a reason that another try on another port may not meet.
fn may_pass(output: &str) -> bool {
    output.contains("Address already in use") || output.contains("pre-existing shared memory block")
}

/// Whether a PostgreSQL here lets the superuser in. Spoken by hand, so that this crate needs no client library.
fn answers(address: SocketAddr) -> bool {
    greet(address).unwrap_or(false)
}

fn greet(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let parameters = format!("user\0{USER}\0database\0postgres\0\0");
    let length = u32::try_from(4 + 4 + parameters.len()).expect("a few dozen bytes");
    let mut startup = length.to_be_bytes().to_vec();
    startup.extend(0x0003_0000_u32.to_be_bytes());
    startup.extend(parameters.as_bytes());
    stream.write_all(&startup)?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        std::io::copy(
            &mut (&mut stream).take(u64::from(length.saturating_sub(4))),
            &mut std::io::sink(),
        )?;
        match head[0] {
            // Ready for a query.
            b'Z' => break,
            // Most likely "the database system is starting up".
            b'E' => return Ok(false),
            _ => {}
        }
    }
    stream.write_all(b"X\0\0\0\x04")?;
    Ok(true)
}
