//! The server under test: `forebay`, a real PostgreSQL to test the tests, or `forebay` as a proxy in front of one.

use testbed::{Forebay, Postgres};

/// Says which server to make the checks against: `postgres`, `proxy`, or Forebay when it is not set.
const AGAINST: &str = "FOREBAY_CLIENTS_AGAINST";
const PROGRAM: &str = env!("CARGO_BIN_EXE_forebay");
/// Fewer than the connections of a program that makes many at a time, so that they are shared.
const SERVER_CONNECTIONS: &str = "5";

/// What the checks are made against.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Against {
    Forebay,
    Postgres,
    Proxy,
}

impl Against {
    pub(crate) fn told() -> Self {
        match std::env::var(AGAINST).as_deref() {
            Err(_) | Ok("" | "forebay") => Self::Forebay,
            Ok("postgres") => Self::Postgres,
            Ok("proxy") => Self::Proxy,
            Ok(other) => panic!("{AGAINST}={other}: say forebay, postgres or proxy"),
        }
    }
}

/// A server of a test's own, with an empty database.
pub(crate) enum Server {
    Forebay(Forebay),
    Postgres(Postgres),
    // The proxy is stopped before what is behind it.
    Proxy(Box<Forebay>, Postgres),
}

impl Server {
    pub(crate) fn start() -> Self {
        // Forebay shows times in UTC unless told otherwise; PostgreSQL takes the machine's zone.
        let postgres = || Postgres::builder().setting("timezone", "UTC").start();
        let started = match Against::told() {
            Against::Forebay => Forebay::start(PROGRAM).map(Self::Forebay),
            Against::Postgres => postgres().map(Self::Postgres),
            Against::Proxy => postgres().and_then(|postgres| {
                let proxy = Forebay::builder(PROGRAM)
                    .upstream(postgres.url())
                    .arguments(["--max-server-connections", SERVER_CONNECTIONS])
                    .start()?;
                Ok(Self::Proxy(Box::new(proxy), postgres))
            }),
        };
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Forebay(server) => server.url(),
            Self::Postgres(server) => server.url(),
            // The database's own users and names.
            Self::Proxy(proxy, postgres) => {
                let (behind, before) = (postgres.address().to_string(), proxy.address().to_string());
                postgres.url().replace(&behind, &before)
            }
        }
    }

    /// What the server printed: shown when a check fails.
    pub(crate) fn output(&self) -> String {
        match self {
            Self::Forebay(server) => server.output(),
            Self::Postgres(server) => server.output(),
            Self::Proxy(proxy, postgres) => {
                format!("{}--- and behind the proxy:\n{}", proxy.output(), postgres.output())
            }
        }
    }
}
