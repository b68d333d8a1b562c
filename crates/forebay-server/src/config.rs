//! Options of the server, from the command line and a file.
//!
//! Promises: the command line wins over the file, the file over the defaults; both have the same keys; an unknown key or a
//! value out of its range is an error that names it. A server that would let in everyone from beyond this machine does not
//! start unless `--insecure` says so as well. Does not know what any option does.

pub mod databases;
mod error;
mod proxy;
pub mod quantity;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod users;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use databases::{Admins, DatabaseOption, Lent, ProxyOptions, SessionFunctionsOption};
pub use error::OptionsError;
use error::value;
use quantity::{Address, AddressOrOff, Size, Span};
use rules::{InvalidateOption, RuleSettings};
use users::UserSettings;

/// The pool in front of the database: speaks the PostgreSQL protocol on embedded SQLite, or as a proxy in front of a PostgreSQL
/// (--upstream); concurrent requests share work.
#[derive(Debug, Parser)]
#[command(name = "forebay", version, args_conflicts_with_subcommands = true)]
pub struct CommandLine {
    /// What to do; without one, serve.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`.
    #[command(flatten)]
    pub serve: Settings,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the database (what `forebay` alone does, too)
    Serve(Box<Settings>),
    /// Read a configuration, with the files that it names, and say what would be served: by which databases, for whom. Nothing is
    /// listened on and nothing connected to
    Check {
        /// The file that serve would get as --config
        #[arg(value_name = "FILE")]
        config: PathBuf,
        /// Statements of which is said which rules are of them, and what that comes to
        #[arg(value_name = "STATEMENT")]
        statements: Vec<String>,
        /// As this user asks them
        #[arg(long)]
        user: Option<String>,
        /// At this database, as clients call it
        #[arg(long)]
        database: Option<String>,
        /// From sessions whose application_name is this
        #[arg(long)]
        application: Option<String>,
    },
    /// Change who may connect
    User {
        /// What to change.
        #[command(subcommand)]
        action: UserAction,
    },
}

/// What to do about users.
#[derive(Debug, Subcommand)]
pub enum UserAction {
    /// Add a user, or change a user's password; it is asked for at a terminal, or read from standard input
    Add {
        /// The user's name
        name: String,
        /// Where the users are kept
        #[command(flatten)]
        file: UsersFile,
    },
    /// Remove a user
    Remove {
        /// The user's name
        name: String,
        /// Where the users are kept
        #[command(flatten)]
        file: UsersFile,
    },
    /// List the users' names
    List {
        /// Where the users are kept
        #[command(flatten)]
        file: UsersFile,
    },
}

/// The file that `forebay user` changes.
#[derive(Debug, Args)]
pub struct UsersFile {
    /// The users file; start the server with the same --users
    #[arg(long, value_name = "FILE", default_value = "forebay.users")]
    pub users: PathBuf,
}

/// How sure a commit is before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronous {
    /// On disk: survives a power failure
    Full,
    /// Survives a crash of the server; a power failure may take the last commits, never the database
    Normal,
    /// With the operating system: a power failure may damage the database
    Off,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line of text for each event
    Text,
    /// A line of JSON for each event
    Json,
}

/// Options as they are given, on the command line or in the file: what is not given is `None`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// File with the same options, for example `listen = "127.0.0.1:6432"`; the command line wins [default: none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Be a proxy of this PostgreSQL, as postgresql://127.0.0.1/app, instead of serving a SQLite database: clients connect as its own
    /// users to its own databases, and share its connections. A password that is given here is that of the user that is given here; it
    /// is better off in a file (--config), for arguments can be read by every process [default: none]
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,

    /// With --upstream: most connections to it, of each user at each database; clients share them by transaction [default: 20]
    #[arg(long, value_name = "COUNT")]
    pub max_server_connections: Option<usize>,

    /// With --upstream: connections that each user at each database has while there are clients, used or not [default: 0]
    #[arg(long, value_name = "COUNT")]
    pub min_server_connections: Option<usize>,

    /// With --upstream: connections beyond --max-server-connections, for clients that have waited for --reserve-after; closed when nobody
    /// waits [default: 0]
    #[arg(long, value_name = "COUNT")]
    pub reserve_server_connections: Option<usize>,

    /// With --upstream: how long a client waits before it is served from the reserve [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub reserve_after: Option<Span>,

    /// With --upstream: most connections to one server, of all users and databases together; one that is idle elsewhere makes room
    /// [default: none]
    #[arg(long, value_name = "COUNT")]
    pub max_upstream_connections: Option<usize>,

    /// With --upstream: most clients that wait for a connection of one user at one database; the next is refused with 53300
    /// [default: 10000]
    #[arg(long, value_name = "COUNT")]
    pub max_waiting: Option<usize>,

    /// With --upstream: for how long a client has a server connection [default: transaction]
    #[arg(long, value_name = "MODE", value_enum)]
    pub pool_mode: Option<Lent>,

    /// With --upstream: what clients ask at the same time travels to the database together, where nobody can tell [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub sharing: Option<bool>,

    /// With --upstream: what currval and lastval know of numbers that a client has drawn on a connection that another had since [default:
    /// refuse]
    #[arg(long, value_name = "MODE", value_enum)]
    pub session_functions: Option<SessionFunctionsOption>,

    /// With --upstream: how long a client waits for a connection before it is refused with 53300 [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub server_wait_timeout: Option<Span>,

    /// With --upstream: how long a server connection is kept that nobody uses [default: 10min]
    #[arg(long, value_name = "TIME")]
    pub server_idle_timeout: Option<Span>,

    /// With --upstream: how long a server connection is kept all in all; it is closed between two transactions [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub server_lifetime: Option<Span>,

    /// With --upstream: how long a client may do nothing, outside of a transaction; then its connection is closed with 57P05; 0 for no limit
    /// [default: 0]
    #[arg(long, value_name = "TIME")]
    pub idle_session_timeout: Option<Span>,

    /// With --upstream: who connects from this machine need not prove what the password, certificate or socket of --upstream proves for
    /// them [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub trust_loopback: Option<bool>,

    /// With --upstream: all clients are the URL's user at the database, whoever they are here. Who they are here is for --users or --auth-query
    /// to say, or for the database [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub service_user: Option<bool>,

    /// With --upstream: what is stored of a user's password is asked of the database, as the URL's user: a query of $1, the name, which gives
    /// that name and what rolpassword of pg_authid has. Without it the database is asked to let the
    /// user in [default: none]
    #[arg(long, value_name = "SQL")]
    pub auth_query: Option<String>,

    /// With --upstream: for how long it is believed what --auth-query said of a user, who is then asked for no more than that; a proof that
    /// fails by it is refused only once the query was asked anew. 0 asks at each login [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub auth_query_kept: Option<Span>,

    /// With --upstream: most clients of each database; the next is refused with 53300. Those whom --admin-users names are not
    /// [default: none]
    #[arg(long, value_name = "COUNT")]
    pub max_client_connections: Option<usize>,

    /// With --upstream: most clients of each user, at all databases together; in a file also for single users, each a table named user
    /// [default: none]
    #[arg(long, value_name = "COUNT")]
    pub max_user_connections: Option<usize>,

    /// With --upstream: memory for answers that hints and rules have remembered, of all databases: 1MiB at least, or 0 to remember nothing [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub cache_memory: Option<Size>,

    /// With --cache-memory: what is asked for most of it is written to this file each minute and at the end, and asked anew behind the next start, as soon as
    /// those come who ask it. It has values of parameters; nobody but its owner may read it [default: none]
    #[arg(long, value_name = "FILE")]
    pub warm_file: Option<PathBuf>,

    /// With --upstream: by what remembered answers are known to be old before their time: "own", what passes this proxy to change rows; "stream",
    /// that and what the database itself tells of its changes, by logical replication as the user in the URL; or "none" [default: own]
    #[arg(long, value_name = "WHAT")]
    pub invalidate: Option<InvalidateOption>,

    /// With --invalidate stream: no answer is served that may be older than this where the stream is behind or cut [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub max_lag: Option<Span>,

    /// With --invalidate stream: the publication to listen to. Without one, "forebay" is made and has the tables that are asked for
    /// [default: none]
    #[arg(long, value_name = "NAME")]
    pub publication: Option<String>,

    /// With --invalidate stream: where listening holds back more of the database's log than this, it is ended, and begun anew
    /// [default: 1GiB]
    #[arg(long, value_name = "BYTES")]
    pub max_wal: Option<Size>,

    /// In a file: what is said of single users, each a table.
    #[arg(skip)]
    pub user: Option<Vec<UserSettings>>,

    /// In a file: what is said of statements of the proxy's clients without touching them, each a table.
    #[arg(skip)]
    pub rule: Option<Vec<RuleSettings>>,

    /// With --upstream: users who may use the console, as SHOW FOREBAY STATUS: names, separated by commas, each of a user at any database or,
    /// as NAME@DATABASE, at one. With databases of several owners name the one, for whoever makes users there makes any [default: none]
    #[arg(long, value_name = "NAMES")]
    pub admin_users: Option<Admins>,

    /// The SQLite database; made if it does not exist. In a file also databases of other servers, each a table named database
    /// [default: ./forebay.db]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().map(DatabaseOption::File))]
    pub database: Option<DatabaseOption>,

    /// Where PostgreSQL clients connect. Beyond loopback only with --users, or --insecure [default: 127.0.0.1:6432]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<Address>,

    /// Folder of a Unix socket where clients connect, too, under the port of --listen: psql -h FOLDER. Whoever reaches the folder may
    /// [default: none]
    #[arg(long, value_name = "FOLDER")]
    pub socket_folder: Option<PathBuf>,

    /// With --upstream: a Unix socket by which a server that starts takes the sockets of the one that runs, if one does: nobody who connects
    /// is refused, and the old one ends when its clients have gone. Only its owner may use it [default: none]
    #[arg(long, value_name = "FILE")]
    pub handover_socket: Option<PathBuf>,

    /// Where /metrics, /healthz and /readyz are, or "off". They ask for no password; beyond loopback only with --users, or --insecure
    /// [default: 127.0.0.1:6480]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<AddressOrOff>,

    /// Who may connect (see `forebay user add`); without it everyone who reaches the port [default: none]
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,

    /// Rules that say who may connect from where, to what, and what they must show, in the format of PostgreSQL's pg_hba.conf. Whom no
    /// rule meets is refused [default: none]
    #[arg(long, value_name = "FILE")]
    pub hba_file: Option<PathBuf>,

    /// Listen beyond loopback without users: everyone who reaches the port may read and change everything [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub insecure: Option<bool>,

    /// Certificate chain in PEM, the server's own first: clients may then use TLS; needs --tls-key [default: none]
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,

    /// Key of that certificate in PEM [default: none]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Certificates of authorities in PEM: clients may then show a certificate that one of them has signed, and --hba-file can ask for it;
    /// needs --tls-certificate [default: none]
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,

    /// Refuse clients that do not use TLS, with 28000; needs --tls-certificate [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub require_tls: Option<bool>,

    /// Most clients at once; the next is refused with 53300 [default: 10000]
    #[arg(long, value_name = "COUNT")]
    pub max_connections: Option<usize>,

    /// Longest message a client may send; bounds a statement with its parameters, from 10000 bytes to 1GiB [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_message_bytes: Option<Size>,

    /// Most memory that messages which are being received take, of all clients together; those of up to 16KiB are not counted and never
    /// wait, longer ones wait for room. At least twice max_message_bytes [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_input_bytes: Option<Size>,

    /// Most bytes of what the server must hold as a whole: the rows of one RETURNING, one value, what open cursors have left when their
    /// transaction writes. More is refused with 54000; the rows of SELECT and of COPY are passed on as they come [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_result_bytes: Option<Size>,

    /// Longest time a statement may run; 0 for no limit. The default is long for any sane query and ends a forgotten one, which
    /// would hold a reader, or in a transaction the one writer, for ever. With --upstream there is none unless it is said, as the database
    /// has its own [default: 5min]
    #[arg(long, value_name = "TIME")]
    pub statement_timeout: Option<Span>,

    /// Longest wait for another process that has locked the database [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub busy_timeout: Option<Span>,

    /// How long a session may be idle while it holds what somebody waits for: an open transaction that has written holds the one
    /// writer, an open cursor a reading connection. Then it is rolled back and its
    /// connection closed; 0 for no limit. With --upstream: how long a transaction may be idle, and no limit unless it is said [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub idle_transaction_timeout: Option<Span>,

    /// How long an open cursor, or a read-only transaction that must see one state, may wait for its client, all in all: its snapshot
    /// keeps the write-ahead log from being emptied. Then it is given up, and its owner gets 72000; 0 for no limit [default: 5min]
    #[arg(long, value_name = "TIME")]
    pub idle_snapshot_timeout: Option<Span>,

    /// How long a client may take nothing of what it is sent; then its connection is closed. A sixth of it: how long it may send
    /// nothing of a long message that it has begun, while others wait for the room (see max_input_bytes) [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub stall_timeout: Option<Span>,

    /// Longest time from connecting to being let in [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub startup_timeout: Option<Span>,

    /// Most statements that share a commit [default: 4096]
    #[arg(long, value_name = "COUNT")]
    pub batch_max_items: Option<usize>,

    /// How long a write may wait for company. 0 does not mean alone: writes gather while a commit runs; more helps only where a commit
    /// costs much and waiting costs little [default: 0]
    #[arg(long, value_name = "TIME")]
    pub batch_max_wait: Option<Span>,

    /// Most reading connections to the database, each on a thread of its own that starts when it is first needed; a cursor that is
    /// open keeps one [default: 64]
    #[arg(long, value_name = "COUNT")]
    pub readers: Option<usize>,

    /// How long a shutdown waits for statements that run, at most [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub drain_timeout: Option<Span>,

    /// When a commit is acknowledged [default: full]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub synchronous: Option<Synchronous>,

    /// What is logged to standard error: error, warn, info, debug, trace, or directives such as forebay_server=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,

    /// How the log is written [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

/// Options as the server uses them: complete, and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What it is a proxy of; `None` for a server of the SQLite database.
    pub proxy: Option<ProxyOptions>,
    /// The SQLite database.
    pub database: PathBuf,
    /// Where PostgreSQL clients connect.
    pub listen: SocketAddr,
    /// The folder of a Unix socket where clients connect, too.
    pub socket_folder: Option<PathBuf>,
    /// Where a server that starts takes the sockets of the one that runs.
    pub handover_socket: Option<PathBuf>,
    /// Where /metrics and /healthz are; `None` for nowhere.
    pub http: Option<SocketAddr>,
    /// Who may connect; `None` for everyone.
    pub users: Option<PathBuf>,
    /// Rules that say who may connect from where.
    pub hba_file: Option<PathBuf>,
    /// Certificate and key.
    pub tls: Option<TlsFiles>,
    /// Whether clients without TLS are refused.
    pub require_tls: bool,
    /// Most clients at once.
    pub max_connections: usize,
    /// Longest message of a client.
    pub max_message_bytes: usize,
    /// Most memory of messages that are being received, of all clients together.
    pub max_input_bytes: usize,
    /// Most bytes of rows that must be gathered, and of one value.
    pub max_result_bytes: usize,
    /// Longest time a statement may run.
    pub statement_timeout: Option<Duration>,
    /// Longest wait for another process's lock.
    pub busy_timeout: Duration,
    /// Longest idle time in a transaction that has written.
    pub idle_transaction_timeout: Option<Duration>,
    /// Longest time a snapshot waits for its client.
    pub idle_snapshot_timeout: Option<Duration>,
    /// Longest time a client takes or sends nothing where it should.
    pub stall_timeout: Duration,
    /// Longest start-up of a connection.
    pub startup_timeout: Duration,
    /// Most statements that share a commit.
    pub batch_max_items: usize,
    /// How long a write may wait for company.
    pub batch_max_wait: Duration,
    /// Most reading connections.
    pub readers: usize,
    /// How long a shutdown waits.
    pub drain_timeout: Duration,
    /// When a commit is acknowledged.
    pub synchronous: Synchronous,
    /// What is logged.
    pub log: String,
    /// How it is written.
    pub log_format: LogFormat,
}

/// Where certificate and key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who signs certificates of clients.
    pub client_ca: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            proxy: None,
            database: PathBuf::from("./forebay.db"),
            listen: SocketAddr::from(([127, 0, 0, 1], 6432)),
            socket_folder: None,
            handover_socket: None,
            http: Some(SocketAddr::from(([127, 0, 0, 1], 6480))),
            users: None,
            hba_file: None,
            tls: None,
            require_tls: false,
            max_connections: 10_000,
            max_message_bytes: 64 << 20,
            max_input_bytes: 256 << 20,
            max_result_bytes: 256 << 20,
            statement_timeout: Some(Duration::from_secs(300)),
            busy_timeout: Duration::from_secs(5),
            idle_transaction_timeout: Some(Duration::from_secs(10)),
            idle_snapshot_timeout: Some(Duration::from_secs(300)),
            stall_timeout: Duration::from_secs(30),
            startup_timeout: Duration::from_secs(10),
            batch_max_items: 4096,
            batch_max_wait: Duration::ZERO,
            readers: 64,
            drain_timeout: Duration::from_secs(10),
            synchronous: Synchronous::Full,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
        }
    }
}

macro_rules! over {
    ($first:expr, $second:expr, $($field:ident)*) => {
        Settings { $($field: $first.$field.clone().or($second.$field)),* }
    };
}

impl Settings {
    /// These options, those of the file they name, and the defaults, in this order.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, has an unknown key, or a value of the wrong shape; when a value is out of its range, or the server
    /// would be open to everyone. What stands in the file is named with its line.
    pub fn resolve(&self) -> Result<Options, OptionsError> {
        let Some(path) = &self.config else {
            let mut options = self.over(Self::default())?;
            options.doubt(|doubt| doubt);
            return Ok(options);
        };
        let text = std::fs::read_to_string(path).map_err(|error| OptionsError::File {
            path: path.clone(),
            error,
        })?;
        let file: Self = toml::from_str(&text).map_err(|error| OptionsError::Parse {
            path: path.clone(),
            text: text.clone(),
            error: Box::new(error),
        })?;
        let mut options = self.over(file).map_err(|error| error.in_file(path, &text))?;
        options.doubt(|doubt| doubt.in_file(path, &text));
        Ok(options)
    }

    /// Where in the file the option stands that holds: in the table of this kind and name, if it is one's, and nowhere if it was given on
    /// the command line.
    pub(crate) fn line_of(&self, option: &str, table: Option<(&str, &str)>) -> Option<(PathBuf, usize)> {
        let is_given = match option {
            "upstream" => self.upstream.is_some(),
            "users" => self.users.is_some(),
            "hba_file" => self.hba_file.is_some(),
            "tls_certificate" => self.tls_certificate.is_some(),
            "tls_key" => self.tls_key.is_some(),
            "tls_client_ca" => self.tls_client_ca.is_some(),
            _ => false,
        };
        let path = self.config.as_ref().filter(|_| !is_given)?;
        let text = std::fs::read_to_string(path).ok()?;
        Some((path.clone(), error::line_of(&text, option, table)?))
    }

    /// These options, others where they say nothing, and the defaults.
    fn over(&self, file: Self) -> Result<Options, OptionsError> {
        let given = over!(self, file, config upstream max_server_connections min_server_connections reserve_server_connections reserve_after max_upstream_connections max_waiting pool_mode sharing session_functions server_wait_timeout server_idle_timeout
            server_lifetime idle_session_timeout trust_loopback service_user auth_query
            auth_query_kept max_client_connections max_user_connections cache_memory warm_file invalidate max_lag publication max_wal user rule admin_users
            database listen socket_folder handover_socket http users hba_file insecure tls_certificate tls_key tls_client_ca require_tls max_connections
            max_message_bytes max_input_bytes max_result_bytes statement_timeout busy_timeout idle_transaction_timeout
            idle_snapshot_timeout stall_timeout startup_timeout batch_max_items batch_max_wait
            readers drain_timeout synchronous log log_format);
        let proxy = given.proxy()?;
        let default = Options::default();
        let optional = |span: Option<Span>, default: Option<Duration>| match span {
            Some(Span(Duration::ZERO)) => None,
            Some(Span(span)) => Some(span),
            None => default,
        };
        let tls = match (given.tls_certificate, given.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles {
                certificate,
                key,
                client_ca: given.tls_client_ca,
            }),
            (None, None) if given.tls_client_ca.is_some() => {
                return Err(value("tls_client_ca", "needs tls_certificate and tls_key"));
            }
            (None, None) => None,
            (Some(_), None) => return Err(value("tls_key", "needed with tls_certificate")),
            (None, Some(_)) => return Err(value("tls_certificate", "needed with tls_key")),
        };
        let max_message_bytes = given
            .max_message_bytes
            .map_or(default.max_message_bytes, |Size(bytes)| bytes);
        // Who raises the one alone has raised the other as far as it must be.
        let input_bytes_least = default.max_input_bytes.max(max_message_bytes.saturating_mul(2));
        let options = Options {
            proxy,
            database: match given.database {
                Some(DatabaseOption::File(file)) => file,
                _ => default.database,
            },
            listen: given.listen.map_or(default.listen, |Address(address)| address),
            socket_folder: given.socket_folder,
            handover_socket: given.handover_socket,
            http: given.http.map_or(default.http, |AddressOrOff(address)| address),
            users: given.users,
            hba_file: given.hba_file,
            tls,
            require_tls: given.require_tls.unwrap_or(default.require_tls),
            max_connections: given.max_connections.unwrap_or(default.max_connections),
            max_message_bytes,
            max_input_bytes: given.max_input_bytes.map_or(input_bytes_least, |Size(bytes)| bytes),
            max_result_bytes: given
                .max_result_bytes
                .map_or(default.max_result_bytes, |Size(bytes)| bytes),
            statement_timeout: optional(given.statement_timeout, default.statement_timeout),
            busy_timeout: given.busy_timeout.map_or(default.busy_timeout, |Span(span)| span),
            idle_transaction_timeout: optional(given.idle_transaction_timeout, default.idle_transaction_timeout),
            idle_snapshot_timeout: optional(given.idle_snapshot_timeout, default.idle_snapshot_timeout),
            stall_timeout: given.stall_timeout.map_or(default.stall_timeout, |Span(span)| span),
            startup_timeout: given.startup_timeout.map_or(default.startup_timeout, |Span(span)| span),
            batch_max_items: given.batch_max_items.unwrap_or(default.batch_max_items),
            batch_max_wait: given.batch_max_wait.map_or(default.batch_max_wait, |Span(span)| span),
            readers: given.readers.unwrap_or(default.readers),
            drain_timeout: given.drain_timeout.map_or(default.drain_timeout, |Span(span)| span),
            synchronous: given.synchronous.unwrap_or(default.synchronous),
            log: given.log.unwrap_or(default.log),
            log_format: given.log_format.unwrap_or(default.log_format),
        };
        options.check(given.insecure.unwrap_or(false))?;
        Ok(options)
    }
}

macro_rules! unlike {
    ($first:expr, $second:expr, $($field:ident)*) => {
        [$(($first.$field != $second.$field).then_some(stringify!($field))),*]
    };
}

impl Options {
    /// Finds what is said in vain, and where.
    fn doubt(&mut self, place: impl Fn(OptionsError) -> OptionsError) {
        let Some(proxy) = &mut self.proxy else { return };
        let doubts = rules::doubts(&proxy.rules, proxy.cache_memory > 0, &proxy.invalidation);
        proxy.doubts = doubts.into_iter().map(|doubt| place(doubt).to_string()).collect();
    }

    /// Options that hold from the start to the end of a server, and that others have otherwise.
    pub(crate) fn fixed_unlike(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let proxy = (self.proxy.is_some() != other.proxy.is_some()).then_some("upstream");
        let unlike = unlike!(self, other, database listen socket_folder handover_socket http max_connections max_message_bytes max_input_bytes max_result_bytes
            statement_timeout busy_timeout idle_transaction_timeout idle_snapshot_timeout stall_timeout batch_max_items
            batch_max_wait readers synchronous log_format);
        proxy.into_iter().chain(unlike.into_iter().flatten())
    }

    fn check(&self, insecure: bool) -> Result<(), OptionsError> {
        for (option, count, most) in [
            ("max_connections", self.max_connections, 1_000_000),
            ("batch_max_items", self.batch_max_items, 1_000_000),
            ("readers", self.readers, 1_024),
        ] {
            if !(1..=most).contains(&count) {
                return Err(value(option, &format!("{count} is not from 1 to {most}")));
            }
        }
        for (option, bytes, most) in [
            ("max_message_bytes", self.max_message_bytes, 1 << 30),
            ("max_result_bytes", self.max_result_bytes, 1 << 40),
        ] {
            if !(10_000..=most).contains(&bytes) {
                return Err(value(
                    option,
                    &format!("{bytes} bytes is not from 10000 bytes to {}GiB", most >> 30),
                ));
            }
        }
        if self.max_input_bytes / 2 < self.max_message_bytes {
            return Err(value(
                "max_input_bytes",
                &format!(
                    "{} bytes is less than twice max_message_bytes, which is {}",
                    self.max_input_bytes, self.max_message_bytes
                ),
            ));
        }
        if self.require_tls && self.tls.is_none() {
            return Err(value(
                "require_tls",
                "needs tls_certificate and tls_key: nobody could connect",
            ));
        }
        if self.stall_timeout.is_zero() {
            return Err(value("stall_timeout", "must not be 0: nobody could be served"));
        }
        if self.startup_timeout.is_zero() {
            return Err(value("startup_timeout", "must not be 0: nobody could connect"));
        }
        if self.users.is_none() && !insecure {
            for (option, address) in [("listen", Some(self.listen)), ("http", self.http)] {
                if let Some(address) = address.filter(|address| !address.ip().to_canonical().is_loopback()) {
                    // Rules say for each address who may come from there.
                    if option == "listen" && self.hba_file.is_some() {
                        continue;
                    }
                    if option == "listen" && self.proxy.is_some() {
                        match self.tls {
                            // The database itself says who is let in.
                            Some(_) => continue,
                            None => {
                                return Err(value(
                                    "listen",
                                    "clients beyond this machine are asked for the database's passwords over TLS only: give tls_certificate \
                                 and tls_key, or users",
                                ));
                            }
                        }
                    }
                    return Err(OptionsError::OpenToEveryone { option, address });
                }
            }
        }
        Ok(())
    }
}
