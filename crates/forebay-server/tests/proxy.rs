//! The program as a proxy, beside the PostgreSQL behind it: what is asked straight and through it is answered alike.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

#[path = "wire/client.rs"]
mod client;

#[path = "proxy/access.rs"]
mod access;
#[path = "proxy/altering.rs"]
mod altering;
#[path = "proxy/at_once.rs"]
mod at_once;
#[path = "proxy/away.rs"]
mod away;
#[path = "proxy/by_row.rs"]
mod by_row;
#[path = "proxy/cancels.rs"]
mod cancels;
#[path = "proxy/caps.rs"]
mod caps;
#[path = "proxy/console.rs"]
mod console;
#[path = "proxy/crowd.rs"]
mod crowd;
#[path = "proxy/databases.rs"]
mod databases;
#[path = "proxy/deadlines.rs"]
mod deadlines;
#[path = "proxy/ends.rs"]
mod ends;
#[path = "proxy/filling.rs"]
mod filling;
#[path = "proxy/followed.rs"]
mod followed;
#[path = "proxy/freshness.rs"]
mod freshness;
#[path = "proxy/greeting.rs"]
mod greeting;
#[path = "proxy/handover.rs"]
mod handover;
#[path = "proxy/hints.rs"]
mod hints;
#[path = "proxy/inside.rs"]
mod inside;
#[path = "proxy/judged.rs"]
mod judged;
#[path = "proxy/leaving.rs"]
mod leaving;
#[path = "proxy/login.rs"]
mod login;
#[path = "proxy/memory.rs"]
mod memory;
#[path = "proxy/metrics.rs"]
mod metrics;
#[path = "proxy/neighbours.rs"]
mod neighbours;
#[path = "proxy/options.rs"]
mod options;
#[path = "proxy/outdated.rs"]
mod outdated;
#[path = "proxy/plans.rs"]
mod plans;
#[path = "proxy/preparing.rs"]
mod preparing;
#[path = "proxy/reading.rs"]
mod reading;
#[path = "proxy/reload.rs"]
mod reload;
#[path = "proxy/replication.rs"]
mod replication;
#[path = "proxy/rules.rs"]
mod rules;
#[path = "proxy/sharing.rs"]
mod sharing;
#[path = "proxy/sizes.rs"]
mod sizes;
#[path = "proxy/stream.rs"]
mod stream;
#[path = "proxy/traps.rs"]
mod traps;
#[path = "proxy/twins.rs"]
mod twins;
#[path = "proxy/warming.rs"]
mod warming;
#[path = "proxy/windows.rs"]
mod windows;

use std::net::SocketAddr;
use std::sync::OnceLock;

use testbed::{Forebay, Postgres};

const PROGRAM: &str = env!("CARGO_BIN_EXE_forebay");

/// Users are named by how the server asks them.
const LINES: &str = "
local all all                  trust
host  all scram   127.0.0.1/32 scram-sha-256
host  all hashed  127.0.0.1/32 md5
host  all clear   127.0.0.1/32 password
host  all changes 127.0.0.1/32 scram-sha-256
host  all all     127.0.0.1/32 trust
";
const PASSWORD: &str = "se'cr@t\u{e9}";

/// One server for all tests that do not end it.
fn postgres() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(started_with_users)
}

fn started_with_users() -> Postgres {
    let server = started();
    let mut client = straight(&server);
    for user in ["scram", "hashed", "clear", "changes", "trusted"] {
        let encryption = if user == "hashed" { "md5" } else { "scram-sha-256" };
        let password = PASSWORD.replace('\'', "''");
        for sql in [
            format!("SET password_encryption = '{encryption}'"),
            format!("CREATE ROLE {user} LOGIN PASSWORD '{password}'"),
        ] {
            client.query(&sql).expect(&sql);
        }
    }
    server
}

fn started() -> Postgres {
    Postgres::builder()
        .host_based_authentication(LINES)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A proxy of that server.
fn proxy(server: &Postgres, arguments: &[&str]) -> Forebay {
    let url = format!("postgresql://{}/postgres", server.address());
    proxy_of(&url, arguments)
}

fn proxy_of(url: &str, arguments: &[&str]) -> Forebay {
    Forebay::builder(PROGRAM)
        .upstream(url)
        .arguments(arguments)
        .start()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The server's own user at the server itself.
fn straight(server: &Postgres) -> client::Client {
    at(server.address())
}

/// The server's own user, whom it trusts.
fn at(address: SocketAddr) -> client::Client {
    as_user(address, "postgres").unwrap_or_else(|error| panic!("refused: {error:?}"))
}

/// A user whom the server trusts, if it does.
fn as_user(address: SocketAddr, user: &str) -> Result<client::Client, client::Failure> {
    client::Client::connect_with(address, &[("user", user), ("database", "postgres")])
}
