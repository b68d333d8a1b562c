//! The two ways to a PostgreSQL, each of which has one of its own.

use std::{
    env,
    ffi::OsStr,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use testbed::{Folder, Forebay, Postgres, PostgresBuilder, Program};

use crate::{
    beside::{self, Beside},
    installed::on_path,
};

/// Few enough that every suite has clients that wait, and connections that others had.
const SERVER_CONNECTIONS: &str = "10";
/// A suite may hold all of them for long.
const SERVER_WAIT: &str = "100s";

/// The file of it.
const CERTIFICATE: &str = "certificate.pem";

const PREPARED_WITHIN: Duration = Duration::from_secs(60);

/// How a suite reaches its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Straight,
    Through,
}

/// A fresh server, with the proxy in front of it where that is the way.
pub(crate) struct Server {
    // Stopped before what is behind it: fields are dropped in this order.
    #[allow(dead_code, reason = "it lives as long")]
    beside: Option<Beside>,
    proxy: Option<Forebay>,
    postgres: Postgres,
    folder: Option<Folder>,
}

/// Its data is thrown away.
fn postgres(lines: &str) -> PostgresBuilder {
    // The first is what PostgreSQL's own tests want.
    Postgres::builder()
        .setting("max_prepared_transactions", "2")
        .setting("fsync", "off")
        .host_based_authentication(lines)
}

impl Server {
    pub(crate) fn start(way: Way) -> Self {
        Self::start_with(way, "host all all 127.0.0.1/32 trust")
    }

    /// One that lets clients in by these lines of `pg_hba.conf`, and its own user always.
    pub(crate) fn start_with(way: Way, lines: &str) -> Self {
        Self::start_as(way, postgres(lines), "", &[])
    }

    /// The same, that speaks TLS as `localhost`, and listens at a socket, too; the proxy asks the server by TLS.
    pub(crate) fn start_with_tls_and_socket(way: Way, lines: &str) -> Self {
        let folder = Folder::new("reached", None).unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        std::fs::write(folder.file(CERTIFICATE), &certificate).unwrap();
        std::fs::write(folder.file("key.pem"), &key).unwrap();
        let arguments = [
            ("--tls-certificate", folder.file(CERTIFICATE)),
            ("--tls-key", folder.file("key.pem")),
            ("--socket-folder", folder.path().to_owned()),
        ];
        let arguments = arguments
            .each_ref()
            .map(|(option, value)| [OsStr::new(option), value.as_os_str()]);
        // Relative to its data.
        let postgres = postgres(lines)
            .tls(&certificate, &key)
            .setting("unix_socket_directories", ".");
        let server = Self::start_as(way, postgres, "?sslmode=require", arguments.as_flattened());
        Self {
            folder: Some(folder),
            ..server
        }
    }

    fn start_as(way: Way, postgres: PostgresBuilder, asked: &str, arguments: &[&OsStr]) -> Self {
        let postgres = postgres.start().unwrap_or_else(|error| panic!("{error}"));
        let proxy = (way == Way::Through).then(|| {
            let usual = [
                "--max-server-connections",
                SERVER_CONNECTIONS,
                "--server-wait-timeout",
                SERVER_WAIT,
            ];
            Forebay::builder(env!("CARGO_BIN_EXE_forebay"))
                .upstream(format!("postgresql://{}/postgres{asked}", postgres.address()))
                .arguments(usual)
                .arguments(arguments)
                .start()
                .unwrap_or_else(|error| panic!("{error}"))
        });
        let mut server = Self {
            beside: None,
            proxy,
            postgres,
            folder: None,
        };
        server.execute("postgres", beside::SCHEMA);
        server.beside = Some(Beside::start(server.address()));
        server
    }

    /// The certificate that it shows, and the folder of its socket; of one that has them.
    pub(crate) fn certificate_and_sockets(&self) -> (PathBuf, PathBuf) {
        let folder = self.folder.as_ref().unwrap();
        let sockets = match self.proxy {
            Some(_) => folder.path().to_owned(),
            None => self.postgres.folder().join("data"),
        };
        (folder.file(CERTIFICATE), sockets)
    }

    /// Where the suite connects to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.proxy.as_ref().map_or(self.postgres.address(), Forebay::address)
    }

    /// The same, as the server's own user, in this database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgresql://postgres@{}/{database}", self.address())
    }

    /// How the server itself is reached, to prepare what a suite finds there.
    pub(crate) fn straight_url(&self, database: &str) -> String {
        format!("postgresql://postgres@{}/{database}", self.postgres.address())
    }

    /// Has the server itself do this in a database, each statement for itself.
    pub(crate) fn execute(&self, database: &str, statements: &str) {
        let mut words = vec!["-qX".to_owned(), "-d".to_owned(), self.straight_url(database)];
        for statement in statements.lines() {
            words.extend(["-c".to_owned(), statement.to_owned()]);
        }
        Program::new(on_path("psql"), words).run(PREPARED_WITHIN).unwrap();
    }
}

/// Does it both ways at the same time: straight, and through the proxy.
pub(crate) fn both<T: Send>(run: impl Fn(Way) -> T + Sync) -> [T; 2] {
    thread::scope(|scope| {
        let through = scope.spawn(|| run(Way::Through));
        let straight = run(Way::Straight);
        [straight, through.join().unwrap()]
    })
}

/// Whether all of a suite is to be run, also what takes long.
pub(crate) fn whole() -> bool {
    env::var_os("FOREBAY_SUITES_WHOLE").is_some()
}

/// The folder of what belongs to a suite here.
pub(crate) fn sources(place: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites").join(place)
}
