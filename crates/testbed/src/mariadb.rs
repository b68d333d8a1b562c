//! A real MariaDB, as Debian packages it, with its default durability.
//!
//! Promises: `root` is let in from 127.0.0.1 without a password, and the database `test` is there; the machine's own option
//! files are not read; when this process is root, the server runs as an unprivileged account, because it refuses root. How
//! commits reach the disk, and all other settings, are MariaDB's own defaults unless a caller changes them with
//! [`MariaDbBuilder::setting`]; only names of clients are not looked up.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Ended, Error, Folder, ForTests, Process, Program,
    start::{account_unless_root, find_program, start_on_a_free_port},
};

/// The system tables take about a second on a machine that does nothing else.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Names, by its URL, a server to test against instead.
const URL_VARIABLE: &str = "FOREBAY_TEST_MYSQL";
const USER: &str = "root";
const DATABASE: &str = "test";
const SERVER: &str = "mariadbd";
const PREPARER: &str = "mariadb-install-db";
const ACCOUNTS: &[&str] = &["mysql", "nobody"];
const DAEMONS: &[&str] = &["/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/libexec"];
const INSTALL: &str = "apt-get install mariadb-server";

/// What to change before a MariaDB is started.
#[derive(Debug, Clone, Default)]
pub struct MariaDbBuilder {
    settings: Vec<(String, String)>,
    parent: Option<PathBuf>,
}

impl MariaDbBuilder {
    /// Sets a system variable, such as `max_connections`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes so that [`kill9`](MariaDb::kill9) cannot break its tables.
    ///
    /// By default MariaDB hands pages to the kernel (io_uring), which may still write them when the process is gone, and the
    /// one started next is already recovering: with 10.11.19 on Linux 6.18 that has left a primary key in a table twice. Without
    /// it, what a killed process writes has been written when it is gone.
    #[must_use]
    pub fn survives_kills(self) -> Self {
        self.setting("innodb_use_native_aio", "OFF")
    }

    /// Keeps the data in a new folder in `parent`, for example on the disk to be measured. The account it runs as must be
    /// able to reach it.
    #[must_use]
    pub fn folder_in(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Starts it and waits until it lets a client in.
    ///
    /// # Errors
    /// When MariaDB is not installed, or does not start; the error shows its log.
    pub fn start(self) -> Result<MariaDb, Error> {
        let account = account_unless_root("MariaDB", ACCOUNTS)?;
        let folder = Folder::new("mariadb", self.parent.as_deref())?;
        if let Some(account) = account {
            folder.give_to(account)?;
        }
        let data = folder.file("data");
        // A server that starts removes what it takes for left-over tables of its own from the folder for temporary files, so
        // that two of them must not share one.
        let places = || [with_value("--datadir=", &data), with_value("--tmpdir=", folder.path())];

        let mut prepare = Program::new(find(PREPARER)?, ["--no-defaults"]);
        prepare.arguments.extend(places());
        let options = [
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ];
        prepare.arguments.extend(options.map(OsString::from));
        prepare.folder = Some(folder.path().to_path_buf());
        prepare.account = account;
        prepare.run(PREPARED_WITHIN)?;

        // The server runs it before it takes connections.
        let first_words = folder.file("first.sql");
        std::fs::write(&first_words, format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"))
            .map_err(Error::system(format!("write {}", first_words.display())))?;
        // To be understood, `--no-defaults` must come first.
        let mut program = Program::new(find(SERVER)?, ["--no-defaults"]);
        program.arguments.extend(places());
        program.arguments.extend([
            with_value("--init-file=", &first_words),
            // Relative to the data, because the path of a socket has to be short.
            "--socket=socket".into(),
            "--bind-address=127.0.0.1".into(),
            "--skip-name-resolve".into(),
        ]);
        for (name, value) in &self.settings {
            program.arguments.push(format!("--{name}={value}").into());
        }
        program.folder = Some(folder.path().to_path_buf());
        program.account = account;
        // The data is thrown away, so nothing is flushed for it.
        program.stop_signal = libc::SIGKILL;
        let (port, process) = start_and_wait(&program)?;
        Ok(MariaDb {
            process,
            program,
            port,
            folder,
        })
    }
}

/// A running MariaDB; dropping it stops it and removes its data.
#[derive(Debug)]
pub struct MariaDb {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    /// Without the port, which each start chooses anew.
    program: Program,
    port: u16,
    folder: Folder,
}

impl MariaDb {
    /// Starts one with MariaDB's own defaults.
    ///
    /// # Errors
    /// As [`MariaDbBuilder::start`].
    pub fn start() -> Result<Self, Error> {
        MariaDbBuilder::default().start()
    }

    /// To change something first.
    #[must_use]
    pub fn builder() -> MariaDbBuilder {
        MariaDbBuilder::default()
    }

    /// The server to test against: the one that `FOREBAY_TEST_MYSQL` names by its URL, or else a new one. It may be a MySQL.
    ///
    /// # Errors
    /// As [`MariaDbBuilder::start`].
    pub fn for_tests() -> Result<ForTests<Self>, Error> {
        ForTests::named_or_started(URL_VARIABLE, Self::start, Self::url)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// How a client reaches it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://{USER}@{}/{DATABASE}", self.address())
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

    /// Kills it as a crash would: nothing is written, nobody is told. One that is to be started on the same data again is best
    /// made with [`survives_kills`](MariaDbBuilder::survives_kills).
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill9(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGKILL)
    }

    /// Starts it on the same data again, on a new port, after it was killed; it recovers first. One that still runs is ended
    /// in order.
    ///
    /// # Errors
    /// As [`MariaDbBuilder::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        if self.process.ended()?.is_none() {
            self.process.stop(libc::SIGTERM)?;
        }
        (self.port, self.process) = start_and_wait(&self.program)?;
        Ok(())
    }
}

fn find(program: &str) -> Result<PathBuf, Error> {
    find_program(program, DAEMONS).ok_or_else(|| Error::NotInstalled {
        program: format!("MariaDB ({program})"),
        looked_in: format!("PATH, {}", DAEMONS.join(", ")),
        install: INSTALL.into(),
    })
}

fn with_value(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}

fn start_and_wait(program: &Program) -> Result<(u16, Process), Error> {
    let launch = |port: u16| {
        let mut on_port = program.clone();
        on_port.arguments.push(format!("--port={port}").into());
        let mut process = on_port.start()?;
        process.wait_until(READY_WITHIN, || {
            lets_in((Ipv4Addr::LOCALHOST, port).into()).unwrap_or(false)
        })?;
        Ok(process)
    };
    start_on_a_free_port(launch, |output| output.contains("Address already in use"))
}

/// Whether a MariaDB here lets the superuser into the database. Spoken by hand, so that this crate needs no client library.
fn lets_in(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    // The greeting begins with the version of the protocol; an error instead of it with 0xff ("too many connections").
    if read_packet(&mut stream)?.first() != Some(&10) {
        return Ok(false);
    }
    stream.write_all(&packet(1, &login()))?;
    let is_in = read_packet(&mut stream)?.first() == Some(&0);
    if is_in {
        const QUIT: u8 = 1;
        stream.write_all(&packet(0, &[QUIT]))?;
    }
    Ok(is_in)
}

/// The client's answer to the greeting: who it is, no password, and the database.
fn login() -> Vec<u8> {
    const CONNECT_WITH_DATABASE: u32 = 1 << 3;
    const PROTOCOL_41: u32 = 1 << 9;
    const SECURE_CONNECTION: u32 = 1 << 15;
    const PLUGIN_AUTH: u32 = 1 << 19;
    const UTF8MB4: u8 = 45;
    let mut login = (CONNECT_WITH_DATABASE | PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH)
        .to_le_bytes()
        .to_vec();
    login.extend((16 * 1024 * 1024_u32).to_le_bytes());
    login.push(UTF8MB4);
    login.extend([0; 23]);
    // A password of no bytes stands between the two names.
    login.extend(format!("{USER}\0\0{DATABASE}\0mysql_native_password\0").as_bytes());
    login
}

/// A packet: three bytes of length, one of its place in the exchange.
fn packet(place: u8, body: &[u8]) -> Vec<u8> {
    let [first, second, third, _] = u32::try_from(body.len()).expect("about a hundred bytes").to_le_bytes();
    [&[first, second, third, place], body].concat()
}

fn read_packet(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    // Three bytes of length bound what a wrong server can make us read to 16 MiB.
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok(body)
}
