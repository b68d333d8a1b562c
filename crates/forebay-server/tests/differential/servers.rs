//! The two servers: a real PostgreSQL and the one under test, started here or named by their URLs.
//!
//! Promises: in a PostgreSQL that is not ours, everything happens in a database of our own, dropped at the end.

use std::env;

use testbed::{Forebay, Postgres, is_left_over, scratch_name};

use crate::connection::{Address, Answer, Connection, Send};

const FOREBAY_URL: &str = "FOREBAY_URL";
const POSTGRES_URL: &str = "POSTGRES_URL";
const SUITE: &str = "differential";
/// What PostgreSQL orders and cases texts by here: code points, and all of Unicode's letters.
const LOCALE: &str = "C.UTF-8";

#[derive(Debug)]
pub(crate) struct Servers {
    postgres: Address,
    forebay: Address,
    /// The database to drop at the end, and from where.
    scratch: Option<(Address, String)>,
    _postgres_started: Option<Postgres>,
    forebay_started: Option<Forebay>,
}

fn named(variable: &str) -> Option<Address> {
    let url = env::var(variable).ok().filter(|url| !url.is_empty())?;
    Some(Address::of_url(&url))
}

impl Servers {
    pub(crate) fn start() -> Self {
        let mut scratch = None;
        let mut postgres_started = None;
        let postgres = if let Some(named) = named(POSTGRES_URL) {
            let name = make_scratch(&named);
            scratch = Some((named.clone(), name.clone()));
            Address {
                database: name,
                ..named
            }
        } else {
            let started = Postgres::builder()
                .locale(LOCALE)
                .setting("timezone", "UTC")
                .setting("fsync", "off")
                .start()
                .unwrap_or_else(|error| panic!("{error}"));
            let address = Address::of_url(&started.url());
            postgres_started = Some(started);
            address
        };
        let mut forebay_started = None;
        let forebay = named(FOREBAY_URL).unwrap_or_else(|| {
            let started = Forebay::start(env!("CARGO_BIN_EXE_forebay")).unwrap_or_else(|error| panic!("{error}"));
            let address = Address::of_url(&started.url());
            forebay_started = Some(started);
            address
        });
        Self {
            postgres,
            forebay,
            scratch,
            _postgres_started: postgres_started,
            forebay_started,
        }
    }

    /// A session on each, set alike.
    pub(crate) fn connect(&self, zone: &str) -> Pair {
        let mut pair = Pair {
            postgres: Connection::open(&self.postgres),
            forebay: Connection::open(&self.forebay),
            zone: "UTC".into(),
        };
        pair.postgres.set("SET statement_timeout = '3s'");
        pair.forebay.set("SET statement_timeout = '10s'");
        // Not a session that could go parallel or wait: the order of a scan is then that of the rows.
        pair.postgres.set("SET max_parallel_workers_per_gather = 0");
        pair.postgres.set("SET jit = off");
        pair.postgres.set("SET synchronous_commit = off");
        let set = format!("SET TimeZone = '{zone}'");
        if zone != "UTC" && pair.forebay.set(&set) {
            pair.postgres.set(&set);
            pair.zone = zone.to_owned();
        }
        pair
    }

    /// What the server under test printed, when it was started here.
    pub(crate) fn output(&self) -> String {
        self.forebay_started.as_ref().map(Forebay::output).unwrap_or_default()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some((address, name)) = &self.scratch {
            Connection::open(address).query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

fn make_scratch(address: &Address) -> String {
    let mut connection = Connection::open(address);
    let databases = connection.query("SELECT datname FROM pg_database");
    for name in databases.rows.into_iter().flatten().flatten() {
        let name = String::from_utf8_lossy(&name).into_owned();
        if is_left_over(SUITE, &name) {
            connection.query(&format!("DROP DATABASE IF EXISTS {name}"));
        }
    }
    let name = scratch_name(SUITE);
    let made = connection.query(&format!(
        "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE '{LOCALE}'"
    ));
    assert!(made.error.is_none(), "{:?}", made.error);
    name
}

/// A session on each server.
#[derive(Debug)]
pub(crate) struct Pair {
    postgres: Connection,
    forebay: Connection,
    /// The time zone of both.
    pub(crate) zone: String,
}

impl Pair {
    /// What each makes of these cases, PostgreSQL first.
    pub(crate) fn run(&mut self, cases: &[Vec<Send>]) -> (Vec<Vec<Answer>>, Vec<Vec<Answer>>) {
        let (postgres, forebay) = (&mut self.postgres, &mut self.forebay);
        std::thread::scope(|scope| {
            let wanted = scope.spawn(move || postgres.run(cases));
            let given = forebay.run(cases);
            (wanted.join().expect("the client does not panic"), given)
        })
    }
}
