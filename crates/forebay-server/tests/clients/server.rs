//! The server under test: `forebay`, or a real PostgreSQL to test the tests.

use testbed::{Forebay, Postgres};

/// Says which server to make the checks against: `postgres`, or Forebay when it is not set.
const AGAINST: &str = "FOREBAY_CLIENTS_AGAINST";

/// A server of a test's own, with an empty database.
pub(crate) enum Server {
    Forebay(Forebay),
    Postgres(Postgres),
}

impl Server {
    pub(crate) fn start() -> Self {
        let started = match std::env::var(AGAINST).as_deref() {
            // Forebay shows times in UTC unless told otherwise; PostgreSQL takes the machine's zone.
            Ok("postgres") => Postgres::builder()
                .setting("timezone", "UTC")
                .start()
                .map(Self::Postgres),
            Ok(other) if !matches!(other, "" | "forebay") => panic!("{AGAINST}={other}: say postgres or forebay"),
            _ => Forebay::start(env!("CARGO_BIN_EXE_forebay")).map(Self::Forebay),
        };
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Forebay(server) => server.url(),
            Self::Postgres(server) => server.url(),
        }
    }

    /// What the server printed: shown when a check fails.
    pub(crate) fn output(&self) -> String {
        match self {
            Self::Forebay(server) => server.output(),
            Self::Postgres(server) => server.output(),
        }
    }
}
