//! Where databases are: one file, or servers by name, and how connections to them are shared.
//!
//! Promises: what a database does not say of itself is as for all.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use forebay_pg_link::Config;
use forebay_proxy::pool::{Limits, PoolMode, Rule, SessionFunctions, Sharing, Timeouts};
use forebay_proxy::{Invalidation, UserOptions};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::{OptionsError, value_of};
use super::quantity::Span;

/// A file, or in the configuration file `[[database]]` as often as there are some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseOption {
    /// The SQLite database.
    File(PathBuf),
    /// Databases of other servers.
    Named(Vec<DatabaseSettings>),
}

impl<'de> Deserialize<'de> for DatabaseOption {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = DatabaseOption;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a file, or a table [[database]] for each database")
            }

            fn visit_str<E>(self, file: &str) -> Result<DatabaseOption, E> {
                Ok(DatabaseOption::File(file.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut tables: A) -> Result<DatabaseOption, A::Error> {
                let mut all = Vec::new();
                while let Some(settings) = tables.next_element()? {
                    all.push(settings);
                }
                Ok(DatabaseOption::Named(all))
            }
        }

        from.deserialize_any(Either)
    }
}

/// For how long a client has a server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lent {
    /// For a transaction: many clients share few connections
    Transaction,
    /// For its session: as many clients as connections, the others wait
    Session,
}

/// What `currval` and `lastval` know where transactions run on several connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionFunctionsOption {
    /// Nothing, once another client had the connection on which a number was drawn: 55000
    Refuse,
    /// All: a client that writes keeps its connection until it discards all, or goes
    Pin,
}

/// A database of another server, under the name that clients give it. What is not said is as for all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// What clients call it.
    pub name: String,
    /// Where it is, and what it is called there: that name where it says none.
    pub url: String,
    /// As `--max-server-connections`.
    pub max_server_connections: Option<usize>,
    /// As `--min-server-connections`.
    pub min_server_connections: Option<usize>,
    /// As `--reserve-server-connections`.
    pub reserve_server_connections: Option<usize>,
    /// As `--reserve-after`.
    pub reserve_after: Option<Span>,
    /// As `--max-waiting`.
    pub max_waiting: Option<usize>,
    /// As `--pool-mode`.
    pub pool_mode: Option<Lent>,
    /// As `--sharing`.
    pub sharing: Option<bool>,
    /// As `--session-functions`.
    pub session_functions: Option<SessionFunctionsOption>,
    /// As `--server-wait-timeout`.
    pub server_wait_timeout: Option<Span>,
    /// As `--server-idle-timeout`.
    pub server_idle_timeout: Option<Span>,
    /// As `--server-lifetime`.
    pub server_lifetime: Option<Span>,
    /// As `--statement-timeout`.
    pub statement_timeout: Option<Span>,
    /// As `--idle-transaction-timeout`.
    pub idle_transaction_timeout: Option<Span>,
    /// As `--idle-session-timeout`.
    pub idle_session_timeout: Option<Span>,
    /// As `--service-user`.
    pub service_user: Option<bool>,
    /// As `--auth-query`.
    pub auth_query: Option<String>,
    /// As `--max-client-connections`.
    pub max_client_connections: Option<usize>,
}

/// Who may use the console: users by their names, at any database or, as `NAME@DATABASE`, at one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "NamesOption")]
pub struct Admins(Vec<String>);

/// Names with commas between them, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NamesOption {
    Text(String),
    List(Vec<String>),
}

impl TryFrom<NamesOption> for Admins {
    type Error = String;

    fn try_from(names: NamesOption) -> Result<Self, String> {
        let names = match names {
            NamesOption::Text(text) => return text.parse(),
            NamesOption::List(names) => names,
        };
        match names.iter().any(|name| name.trim().is_empty()) {
            true => Err("a name is empty".to_owned()),
            false => Ok(Self(names)),
        }
    }
}

impl FromStr for Admins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(|name| name.trim().to_owned());
        NamesOption::List(names.collect()).try_into()
    }
}

impl Admins {
    /// All of them, with commas between; none if there are none.
    pub(crate) fn listed(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(", "))
    }

    /// Whether this user of this database is one.
    pub(crate) fn have(&self, user: &str, database: &str) -> bool {
        let at_one = |admin: &str| {
            admin
                .strip_prefix(user)
                .and_then(|rest| rest.strip_prefix('@'))
                .is_some_and(|at| at == database)
        };
        self.0.iter().any(|admin| admin == user || at_one(admin))
    }
}

/// What it is a proxy of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// Databases by the names that clients give.
    pub databases: BTreeMap<String, UpstreamSettings>,
    /// What has the databases of all other names.
    pub upstream: Option<UpstreamSettings>,
    /// Whether clients on this machine are trusted with what the proxy can prove.
    pub trusts_loopback: bool,
    /// Who may use the console.
    pub admins: Admins,
    /// Most connections to one server.
    pub max_upstream_connections: Option<usize>,
    /// Most clients of a user of whom nothing else is said.
    pub max_user_clients: Option<usize>,
    /// What is said of single users.
    pub users: Arc<BTreeMap<String, UserOptions>>,
    /// What is said of statements and sessions, the first before the others.
    pub rules: Arc<[Rule]>,
    /// Bytes for answers that are remembered; 0: none are.
    pub cache_memory: u64,
    /// Where what is asked for most of it is written down.
    pub warm_file: Option<PathBuf>,
    /// By what they are known to be old.
    pub invalidation: Invalidation,
    /// What can be used, and most probably is not what was meant.
    pub doubts: Vec<String>,
}

impl ProxyOptions {
    /// A database that a client may name, and who it may be, as far as they are known.
    pub(crate) fn example(&self) -> (Option<&str>, Option<&str>) {
        match (self.databases.first_key_value(), &self.upstream) {
            (Some((name, upstream)), _) => (Some(name), upstream.config.user.as_deref()),
            (None, Some(upstream)) => (upstream.config.dbname.as_deref(), upstream.config.user.as_deref()),
            (None, None) => (None, None),
        }
    }
}

/// A PostgreSQL, and how its connections are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamSettings {
    /// Where it is.
    pub config: Config,
    /// Of the connections to it.
    pub limits: Limits,
    /// All clients are its user there.
    pub is_service: bool,
    /// What is stored of a user's password is asked by this.
    pub auth_query: Option<String>,
    /// What that said of a user is believed for so long.
    pub auth_query_kept: Duration,
    /// Most clients of each database.
    pub max_clients: Option<usize>,
}

impl UpstreamSettings {
    /// `option` is what the URL was given by; `database` whose it is, where it is not everybody's.
    pub(super) fn new(
        url: &str,
        option: &'static str,
        database: Option<&str>,
        limits: Limits,
        is_service: bool,
        auth_query: Option<String>,
    ) -> Result<Self, OptionsError> {
        let config = config(url, option, database)?;
        check(&limits, database)?;
        for (needs_user, what) in [(is_service, "service_user"), (auth_query.is_some(), "auth_query")] {
            if needs_user && config.user.is_none() {
                return Err(value_of(what, database, "needs a user in the URL"));
            }
        }
        Ok(Self {
            config,
            limits,
            is_service,
            auth_query,
            auth_query_kept: Duration::ZERO,
            max_clients: None,
        })
    }
}

impl DatabaseSettings {
    pub(super) fn limits(&self, default: &Limits) -> Limits {
        let span = |given: Option<Span>, default: Duration| given.map_or(default, |Span(span)| span);
        let limit = |given: Option<Span>, default: Option<Duration>| match given {
            Some(Span(span)) => Some(span).filter(|span| !span.is_zero()),
            None => default,
        };
        Limits {
            mode: match self.pool_mode {
                Some(Lent::Transaction) => PoolMode::Transaction,
                Some(Lent::Session) => PoolMode::Session,
                None => default.mode,
            },
            sharing: Sharing {
                is_on: self.sharing.unwrap_or(default.sharing.is_on),
                ..default.sharing
            },
            session_functions: match self.session_functions {
                Some(SessionFunctionsOption::Refuse) => SessionFunctions::Refuse,
                Some(SessionFunctionsOption::Pin) => SessionFunctions::Pin,
                None => default.session_functions,
            },
            max_connections: self.max_server_connections.unwrap_or(default.max_connections),
            min_connections: self.min_server_connections.unwrap_or(default.min_connections),
            reserve_connections: self.reserve_server_connections.unwrap_or(default.reserve_connections),
            reserve_after: span(self.reserve_after, default.reserve_after),
            max_waiting: self.max_waiting.unwrap_or(default.max_waiting),
            max_wait: span(self.server_wait_timeout, default.max_wait),
            max_message_bytes: default.max_message_bytes,
            idle_timeout: span(self.server_idle_timeout, default.idle_timeout),
            lifetime: span(self.server_lifetime, default.lifetime),
            strays: default.strays,
            timeouts: Timeouts {
                statement: limit(self.statement_timeout, default.timeouts.statement),
                idle_transaction: limit(self.idle_transaction_timeout, default.timeouts.idle_transaction),
                idle_session: limit(self.idle_session_timeout, default.timeouts.idle_session),
            },
        }
    }
}

/// `database` says whose they are, where they are not everybody's.
pub(super) fn check(limits: &Limits, database: Option<&str>) -> Result<(), OptionsError> {
    for (option, count, most) in [
        ("max_server_connections", limits.max_connections, 10_000),
        ("max_waiting", limits.max_waiting, 1_000_000),
    ] {
        if !(1..=most).contains(&count) {
            return Err(value_of(option, database, &format!("{count} is not from 1 to {most}")));
        }
    }
    for (option, count) in [
        ("min_server_connections", limits.min_connections),
        ("reserve_server_connections", limits.reserve_connections),
    ] {
        if count > limits.max_connections {
            let why = format!(
                "{count} is more than max_server_connections, which is {}",
                limits.max_connections
            );
            return Err(value_of(option, database, &why));
        }
    }
    if limits.max_wait.is_zero() {
        let why = "must not be 0: nobody could be served";
        return Err(value_of("server_wait_timeout", database, why));
    }
    Ok(())
}

/// What is wrong with a URL is said without its password.
fn config(url: &str, option: &'static str, database: Option<&str>) -> Result<Config, OptionsError> {
    url.parse::<Config>()
        .map_err(|error| value_of(option, database, &error.to_string()))
}
