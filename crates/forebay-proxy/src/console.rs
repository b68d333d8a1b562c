//! Console: what those may ask who are named for it: what goes on, and to pause, to go on, to connect anew, to end a client.
//!
//! Promises: a statement is a command only if it is nothing else: PostgreSQL knows none of them. Values of parameters are never shown,
//! and no password. What changes something is logged, and who has asked for it.
//!
//! | statement | |
//! |---|---|
//! | `SHOW FOREBAY STATUS` | figures of the whole, and where the last answer of who asks came from |
//! | `SHOW FOREBAY POOLS`, `CLIENTS`, `SERVERS`, `STATEMENTS` | a row each |
//! | `SHOW FOREBAY SHARING` | a row for each statement: whether it travels in company, and if not, why not |
//! | `SHOW FOREBAY RULES` | a row for each rule: what it says, and how often it was of something |
//! | `PAUSE FOREBAY [database]` | lends nothing, and waits until all is given back |
//! | `RESUME FOREBAY [database]` | lends again |
//! | `RECONNECT FOREBAY [database]` | connections that are there now are not lent again |
//! | `KILL FOREBAY number` | ends the client of this number, as SHOW FOREBAY CLIENTS has it |

use std::cmp::Reverse;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::BytesMut;
use forebay_pg_wire::error::{Severity, WireError};
use forebay_pg_wire::phase::Phase;

use crate::clients::{Clients, Doing};
use crate::databases::Databases;
use crate::frames::{self, Frame};
use crate::last_answer::LastAnswer;
use crate::pool::{Pool, PoolMode};
use crate::sharing::rules::RuleCounts;

/// `ERRCODE_SYNTAX_ERROR`.
const SYNTAX_ERROR: &str = "42601";
/// `ERRCODE_UNDEFINED_OBJECT`.
const UNDEFINED_OBJECT: &str = "42704";
/// Of `int8`.
const INT8: u32 = 20;
/// Of `text`.
const TEXT: u32 = 25;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Status,
    Pools,
    Clients,
    Servers,
    Statements,
    Sharing,
    Rules,
    /// Of one database, or all.
    Pause(Option<String>),
    Resume(Option<String>),
    Reconnect(Option<String>),
    Kill(i32),
    /// Nothing that is known.
    Unknown,
}

impl Command {
    /// None if the message is no simple query, not whole, or for the database.
    pub(crate) fn of_message(message: &[u8]) -> Option<Self> {
        match frames::frame(message) {
            Ok(Some(Frame { tag: b'Q', length })) if length == message.len() => {
                Self::of(message[frames::HEADER_BYTES..].strip_suffix(&[0])?)
            }
            _ => None,
        }
    }

    /// What it does, in its own words; none where it only shows.
    pub(crate) fn change(&self) -> Option<String> {
        let of = |verb: &str, database: &Option<String>| match database {
            Some(name) => format!("{verb} FOREBAY {name:?}"),
            None => format!("{verb} FOREBAY"),
        };
        Some(match self {
            Self::Pause(database) => of("PAUSE", database),
            Self::Resume(database) => of("RESUME", database),
            Self::Reconnect(database) => of("RECONNECT", database),
            Self::Kill(process_id) => format!("KILL FOREBAY {process_id}"),
            _ => return None,
        })
    }

    /// The one database that it is about, if it is one.
    fn database(&self) -> Option<&str> {
        match self {
            Self::Pause(database) | Self::Resume(database) | Self::Reconnect(database) => database.as_deref(),
            _ => None,
        }
    }

    /// None if the statement is for the database.
    fn of(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim().trim_end_matches(';');
        let mut words = text.split_ascii_whitespace();
        let verb = words.next()?.to_ascii_uppercase();
        if !words.next()?.eq_ignore_ascii_case("FOREBAY") {
            return None;
        }
        let (object, rest) = (words.next(), words.next());
        let database = || object.map(|name| name.trim_matches('"').to_owned());
        let command = match (verb.as_str(), object.map(str::to_ascii_uppercase).as_deref()) {
            ("SHOW", Some("STATUS")) => Self::Status,
            ("SHOW", Some("POOLS")) => Self::Pools,
            ("SHOW", Some("CLIENTS")) => Self::Clients,
            ("SHOW", Some("SERVERS")) => Self::Servers,
            ("SHOW", Some("STATEMENTS")) => Self::Statements,
            ("SHOW", Some("SHARING")) => Self::Sharing,
            ("SHOW", Some("RULES")) => Self::Rules,
            // It is anybody's.
            ("SHOW", Some("LSN")) if rest.is_none() => return None,
            ("PAUSE", _) => Self::Pause(database()),
            ("RESUME", _) => Self::Resume(database()),
            ("RECONNECT", _) => Self::Reconnect(database()),
            ("KILL", Some(number)) => number.parse().map_or(Self::Unknown, Self::Kill),
            ("SHOW" | "KILL", _) => Self::Unknown,
            _ => return None,
        };
        Some(if rest.is_some() { Self::Unknown } else { command })
    }
}

/// What a command has found, or done.
pub(crate) enum Outcome {
    Rows(Rows),
    Done(&'static str),
    /// Done once these have nothing lent any more.
    Emptying(Vec<Arc<Pool>>),
    Refused(WireError),
}

/// Rows of text, under columns of names and types.
pub(crate) struct Rows {
    columns: &'static [(&'static str, u32)],
    rows: Vec<Vec<Option<String>>>,
}

/// What it knows.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    pub(crate) databases: Arc<Databases>,
    pub(crate) clients: Arc<Clients>,
}

impl Console {
    /// `last`: where whoever gives the command had the last answer.
    pub(crate) fn run(&self, command: &Command, last: LastAnswer) -> Outcome {
        match command {
            Command::Status => Outcome::Rows(self.status(last)),
            Command::Pools => Outcome::Rows(self.pools()),
            Command::Clients => Outcome::Rows(self.clients()),
            Command::Servers => Outcome::Rows(self.servers()),
            Command::Statements => Outcome::Rows(self.statements()),
            Command::Sharing => Outcome::Rows(self.sharing()),
            Command::Rules => Outcome::Rows(self.rules()),
            Command::Pause(database) => match self.databases.pause(database.as_deref()) {
                Ok(pools) => Outcome::Emptying(pools),
                Err(error) => Outcome::Refused(error),
            },
            Command::Resume(database) => done("RESUME", self.databases.resume(database.as_deref())),
            Command::Reconnect(database) => done("RECONNECT", self.databases.reconnect(database.as_deref())),
            Command::Kill(process_id) => match self.clients.of(*process_id) {
                Some(client) => {
                    client.tell(Phase::Stopping);
                    Outcome::Done("KILL")
                }
                None => Outcome::Refused(WireError::new(
                    UNDEFINED_OBJECT,
                    format!("there is no client of number {process_id}"),
                )),
            },
            Command::Unknown => Outcome::Refused(
                WireError::new(SYNTAX_ERROR, "no such command of Forebay").with_hint(
                    "SHOW FOREBAY STATUS, POOLS, CLIENTS, SERVERS, STATEMENTS, SHARING or RULES; PAUSE, RESUME or RECONNECT FOREBAY, each also with the \
                     name of a database; KILL FOREBAY with the number of a client.",
                ),
            ),
        }
    }

    /// What whoever gives a command is to know of it beside.
    pub(crate) fn notice(&self, command: &Command) -> Option<WireError> {
        let name = command.database().filter(|name| !self.databases.is_in_use(name))?;
        let notice = WireError::new(UNDEFINED_OBJECT, format!("no database \"{name}\" is in use"));
        let hint = "What is said of it holds for clients that come; SHOW FOREBAY POOLS names those in use.";
        Some(notice.with_severity(Severity::Notice).with_hint(hint))
    }

    fn status(&self, last: LastAnswer) -> Rows {
        let clients = self.clients.all();
        let doing = |doing| clients.iter().filter(|client| client.doing() == doing).count();
        let stats = self.databases.stats();
        let mut rows = Rows::new(&[("name", TEXT), ("value", TEXT)]);
        for (name, value) in [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("clients", clients.len().to_string()),
            ("clients_active", doing(Doing::Active).to_string()),
            ("clients_pinned", doing(Doing::Pinned).to_string()),
            ("clients_waiting", stats.waiting.to_string()),
            ("server_connections", stats.open.to_string()),
            ("server_connections_idle", stats.idle.to_string()),
        ] {
            rows.add([some(name), some(value)]);
        }
        rows.add([some("last_answered_by"), last.by().map(str::to_owned)]);
        let age = last.age().map(|age| age.as_millis().to_string());
        rows.add([some("last_answer_age_ms"), age]);
        if let Some(memory) = self.databases.memory() {
            let counts = memory.counts();
            for (name, value) in [
                ("cache_answers", counts.answers.to_string()),
                ("cache_bytes", counts.bytes.to_string()),
                ("cache_max_bytes", counts.max_bytes.to_string()),
                ("cache_told_while_away", counts.away.to_string()),
                ("cache_warmed", counts.warmed.to_string()),
                ("cache_invalidation", memory.invalidation().to_string()),
            ] {
                rows.add([some(name), some(value)]);
            }
            for (database, heard) in self.databases.heard() {
                let lag = heard
                    .lag
                    .map_or_else(|| "unknown".to_owned(), |lag| lag.as_millis().to_string());
                for (name, value) in [
                    ("stream", heard.standing),
                    ("stream_lag_ms", lag),
                    ("stream_position", heard.position),
                    ("stream_tables", heard.tables.to_string()),
                    ("stream_commits", heard.commits.to_string()),
                    ("stream_beginnings", heard.beginnings.to_string()),
                    ("stream_held_wal_bytes", heard.held_wal_bytes.to_string()),
                    ("stream_catalog_changes", heard.catalog_changes.to_string()),
                    ("stream_catalog_looks", heard.looks.to_string()),
                    ("stream_catalog_look_ms", heard.look.as_millis().to_string()),
                ] {
                    rows.add([some(format!("{name} {database}")), some(value)]);
                }
            }
        }
        rows
    }

    fn pools(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("database", TEXT),
            ("user", TEXT),
            ("mode", TEXT),
            ("state", TEXT),
            ("open", INT8),
            ("idle", INT8),
            ("max", INT8),
            ("waiting", INT8),
            ("waiting_ms", INT8),
        ]);
        for (database, pool) in self.databases.pools() {
            let (stats, limits) = (pool.stats(), pool.limits());
            rows.add([
                some(database),
                some(pool.user()),
                some(match limits.mode {
                    PoolMode::Transaction => "transaction",
                    PoolMode::Session => "session",
                }),
                some(if pool.is_paused() { "paused" } else { "open" }),
                some(stats.open),
                some(stats.idle),
                some(limits.max_connections),
                some(stats.waiting),
                some(pool.longest_wait().as_millis()),
            ]);
        }
        rows
    }

    fn clients(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("number", INT8),
            ("database", TEXT),
            ("user", TEXT),
            ("application", TEXT),
            ("address", TEXT),
            ("state", TEXT),
            ("connected_s", INT8),
        ]);
        let mut clients = self.clients.all();
        clients.sort_by_key(|client| client.since);
        for client in clients {
            rows.add([
                some(client.process_id),
                some(&client.who.database),
                some(&client.who.user),
                some(&client.who.application),
                client.who.address.map(|address| address.to_string()),
                some(match client.doing() {
                    Doing::Idle => "idle",
                    Doing::Waiting => "waiting",
                    Doing::Active => "active",
                    Doing::Pinned => "pinned",
                }),
                some(client.since.elapsed().as_secs()),
            ]);
        }
        rows
    }

    fn servers(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("database", TEXT),
            ("user", TEXT),
            ("process", INT8),
            ("client", INT8),
            ("lent", INT8),
            ("prepared", INT8),
            ("connected_s", INT8),
        ]);
        let now = Instant::now();
        for (database, pool) in self.databases.pools() {
            for server in pool.servers() {
                rows.add([
                    some(&database),
                    some(pool.user()),
                    server.process_id.map(|process_id| process_id.to_string()),
                    server.client().map(|client| client.to_string()),
                    some(server.lent()),
                    some(server.prepared()),
                    some(now.saturating_duration_since(server.since).as_secs()),
                ]);
            }
        }
        rows
    }

    fn sharing(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("database", TEXT),
            ("user", TEXT),
            ("statement", TEXT),
            ("shared", INT8),
            ("trips", INT8),
            ("alone", INT8),
            ("why_alone", TEXT),
            ("jointly", INT8),
            ("joined", INT8),
            ("sessions", INT8),
            ("application_name", TEXT),
            ("settings", TEXT),
            ("remembered", INT8),
            ("why_not_remembered", TEXT),
        ]);
        let mut known = Vec::new();
        for (database, pool) in self.databases.pools() {
            let limits = pool.limits();
            // It may have been switched off for one user.
            let off = (!pool.shares())
                .then_some("sharing = false")
                .or(limits.shares_nothing_by());
            let is_off = off.map(|option| format!("nothing is shared: {option}"));
            let little = limits.shares_little_by();
            let is_little = || little.map(|option| format!("a client that has written shares nothing: {option}"));
            if let Some(why) = is_off.clone().or_else(is_little) {
                // Of all statements; of those that never came to be known, too.
                let mut row = [const { None }; 14];
                (row[0], row[1], row[6]) = (some(&database), some(pool.user()), Some(why));
                rows.add(row);
            }
            for company in pool.companies.all() {
                for plan in company.plans() {
                    let counted = plan.counted();
                    let kind = plan.kind();
                    let of_session = || {
                        let may = kind.is_none_or(|kind| company.may_share(kind));
                        (!may).then(|| "of what its sessions have set".to_owned())
                    };
                    let row = [
                        some(&database),
                        some(pool.user()),
                        some(plan.text()),
                        some(counted.shared),
                        some(counted.trips),
                        some(counted.alone),
                        is_off.clone().or_else(|| plan.why_not()).or_else(of_session),
                        some(counted.jointly),
                        some(counted.joined),
                        some(company.number),
                        company.application().map(str::to_owned),
                        Some(company.settings_named().join(", ")).filter(|names| !names.is_empty()),
                        some(counted.remembered),
                        match pool.remembers() {
                            true if limits.mode == PoolMode::Session => {
                                Some("nothing is remembered: pool_mode = \"session\"".to_owned())
                            }
                            true => (plan.why_not_remembered().or_else(of_session)).or_else(|| {
                                pool.listener()?
                                    .why_not(&plan.may_be_remembered(false)?.tables, plan.max_lag())
                            }),
                            false => Some("nothing is remembered: there is no memory for it".to_owned()),
                        },
                    ];
                    known.push((Reverse(counted.total()), plan.number, row));
                }
            }
        }
        // What is asked most stands first; of two that are asked as often the one that came first.
        known.sort_unstable_by_key(|(total, number, _)| (*total, *number));
        known.into_iter().for_each(|(.., row)| rows.add(row));
        rows
    }

    fn rules(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("rule", TEXT),
            ("says", TEXT),
            ("met", INT8),
            ("batched", INT8),
            ("joined", INT8),
            ("remembered", INT8),
        ]);
        let of_pools: Vec<_> = self
            .databases
            .pools()
            .into_iter()
            .map(|(_, pool)| pool.companies.rules())
            .collect();
        for rule in self.databases.rules().iter() {
            let total = |count: fn(&RuleCounts) -> &AtomicU64| -> u64 {
                let of_each = of_pools.iter().filter_map(|rules| rules.counts(&rule.name));
                of_each.map(|counts| count(counts).load(Ordering::Relaxed)).sum()
            };
            rows.add([
                some(&rule.name),
                some(rule.said()),
                some(total(|counts| &counts.met)),
                some(total(|counts| &counts.batched)),
                some(total(|counts| &counts.joined)),
                some(total(|counts| &counts.remembered)),
            ]);
        }
        rows
    }

    fn statements(&self) -> Rows {
        let mut rows = Rows::new(&[
            ("database", TEXT),
            ("user", TEXT),
            ("number", INT8),
            ("clients", INT8),
            ("text", TEXT),
        ]);
        for (database, pool) in self.databases.pools() {
            for (number, clients, text) in pool.statements.all() {
                rows.add([
                    some(&database),
                    some(pool.user()),
                    some(number),
                    some(clients),
                    some(text),
                ]);
            }
        }
        rows
    }
}

fn some(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

fn done(tag: &'static str, done: Result<(), WireError>) -> Outcome {
    match done {
        Ok(()) => Outcome::Done(tag),
        Err(error) => Outcome::Refused(error),
    }
}

impl Rows {
    fn new(columns: &'static [(&'static str, u32)]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    fn add<const COUNT: usize>(&mut self, row: [Option<String>; COUNT]) {
        debug_assert_eq!(COUNT, self.columns.len(), "a value for each column");
        self.rows.push(row.into());
    }

    /// As a database answers a query, up to its tag.
    pub(crate) fn put(&self, out: &mut BytesMut) {
        let count = u16::try_from(self.columns.len()).expect("a table has few columns");
        let mut body = count.to_be_bytes().to_vec();
        for (name, kind) in self.columns {
            body.extend_from_slice(name.as_bytes());
            // Of no table; of varying length but for numbers; in text.
            body.extend_from_slice(&[0; 7]);
            body.extend_from_slice(&kind.to_be_bytes());
            body.extend_from_slice(&(if *kind == INT8 { 8_i16 } else { -1 }).to_be_bytes());
            body.extend_from_slice(&(-1_i32).to_be_bytes());
            body.extend_from_slice(&[0, 0]);
        }
        frames::put(out, b'T', &[&body]);
        for row in &self.rows {
            let mut body = count.to_be_bytes().to_vec();
            for value in row {
                match value {
                    None => body.extend_from_slice(&(-1_i32).to_be_bytes()),
                    Some(value) => {
                        let length = u32::try_from(value.len()).expect("a text is shorter than a message");
                        body.extend_from_slice(&length.to_be_bytes());
                        body.extend_from_slice(value.as_bytes());
                    }
                }
            }
            frames::put(out, b'D', &[&body]);
        }
        put_done(out, "SHOW");
    }
}

/// The tag of what is done.
pub(crate) fn put_done(out: &mut BytesMut, tag: &str) {
    frames::put(out, b'C', &[tag.as_bytes(), &[0]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_nothing_else_is_a_command() {
        let named = || Some("shop".to_owned());
        for (text, command) in [
            ("SHOW FOREBAY STATUS", Some(Command::Status)),
            ("  show\tforebay\npools ; ", Some(Command::Pools)),
            ("show forebay clients;;", Some(Command::Clients)),
            ("show forebay servers", Some(Command::Servers)),
            ("show forebay statements", Some(Command::Statements)),
            ("show forebay sharing", Some(Command::Sharing)),
            ("show forebay rules;", Some(Command::Rules)),
            ("pause forebay", Some(Command::Pause(None))),
            ("PAUSE FOREBAY shop", Some(Command::Pause(named()))),
            ("RESUME FOREBAY \"shop\"", Some(Command::Resume(named()))),
            ("RECONNECT FOREBAY shop;", Some(Command::Reconnect(named()))),
            ("KILL FOREBAY 17", Some(Command::Kill(17))),
            ("KILL FOREBAY all", Some(Command::Unknown)),
            ("KILL FOREBAY", Some(Command::Unknown)),
            ("SHOW FOREBAY", Some(Command::Unknown)),
            ("SHOW FOREBAY POOLS now", Some(Command::Unknown)),
            ("SHOW forebay.pools", None),
            ("SHOW FOREBAY LSN", None),
            ("SHOW FOREBAY LSN now", Some(Command::Unknown)),
            ("SHOW search_path", None),
            ("SELECT forebay", None),
            ("KILL", None),
            ("", None),
        ] {
            assert_eq!(Command::of(text.as_bytes()), command, "{text}");
        }
        assert_eq!(Command::of(b"SHOW FOREBAY \xff"), None);
    }
}
