//! The two ways to a PostgreSQL, each of which has one of its own.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use testbed::{Forebay, Postgres, Program};

use crate::installed::on_path;

/// Few enough that every suite has clients that wait, and connections that others had.
const SERVER_CONNECTIONS: &str = "10";
/// A suite may hold all of them for long.
const SERVER_WAIT: &str = "100s";

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
    proxy: Option<Forebay>,
    postgres: Postgres,
}

impl Server {
    pub(crate) fn start(way: Way) -> Self {
        Self::start_with(way, "host all all 127.0.0.1/32 trust")
    }

    /// One that lets clients in by these lines of `pg_hba.conf`, and its own user always.
    pub(crate) fn start_with(way: Way, lines: &str) -> Self {
        // The first is what PostgreSQL's own tests want; the data is thrown away.
        let postgres = Postgres::builder()
            .setting("max_prepared_transactions", "2")
            .setting("fsync", "off")
            .host_based_authentication(lines)
            .start()
            .unwrap_or_else(|error| panic!("{error}"));
        let proxy = (way == Way::Through).then(|| {
            let arguments = [
                "--max-server-connections",
                SERVER_CONNECTIONS,
                "--server-wait-timeout",
                SERVER_WAIT,
            ];
            Forebay::builder(env!("CARGO_BIN_EXE_forebay"))
                .upstream(format!("postgresql://{}/postgres", postgres.address()))
                .arguments(arguments)
                .start()
                .unwrap_or_else(|error| panic!("{error}"))
        });
        Self { proxy, postgres }
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
