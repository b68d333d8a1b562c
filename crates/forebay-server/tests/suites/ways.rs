//! The two ways to a PostgreSQL, each of which has one of its own.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
};

use testbed::{Forebay, Postgres};

/// Few enough that every suite has clients that wait, and connections that others had.
const SERVER_CONNECTIONS: &str = "10";
/// A suite may hold all of them for long.
const SERVER_WAIT: &str = "100s";

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
        // The first is what PostgreSQL's own tests want; the data is thrown away.
        let postgres = Postgres::builder()
            .setting("max_prepared_transactions", "2")
            .setting("fsync", "off")
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
                .upstream(postgres.url())
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

    /// The server itself, to prepare what a suite finds there.
    pub(crate) fn postgres(&self) -> &Postgres {
        &self.postgres
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
