//! Config: which server is connected to, as whom, and how.
//!
//! Promises: each field is what PostgreSQL's own client library has a key of that name for, and defaults to the same. How they are
//! read from a text, `parse` says.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::secret::Secret;

/// Where PostgreSQL listens unless it is told otherwise.
pub(crate) const PORT: u16 = 5432;

/// Which server, as whom, and how. Its fields are as the keys of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// In the order in which they are tried. Never empty.
    pub hosts: Vec<Host>,
    /// None for the name of the system's user.
    pub user: Option<String>,
    /// None if there is none.
    pub password: Option<Password>,
    /// What stands for it where it is not known.
    pub secret: Option<Secret>,
    /// None for the user's name.
    pub dbname: Option<String>,
    /// Command-line options for the session, as `-c search_path=app`.
    pub options: Option<String>,
    /// What the server shows of whose connection it is.
    pub application_name: Option<String>,
    /// Of [`replication`](https://www.postgresql.org/docs/current/protocol-replication.html).
    pub replication: Option<String>,
    /// Of texts on their way; none for the database's own. What is read here is read as UTF8.
    pub client_encoding: Option<String>,
    /// Further settings that the session begins with, by name.
    pub settings: Vec<(String, String)>,
    /// How long a host may take, handshake included. None for as long as it takes.
    pub connect_timeout: Option<Duration>,
    /// Whether a connection that has been idle is probed.
    pub keepalives: bool,
    /// How long it is idle before that; none for the system's own time. So for the next two.
    pub keepalives_idle: Option<Duration>,
    /// How long between probes.
    pub keepalives_interval: Option<Duration>,
    /// How many probes are not answered before the connection is lost.
    pub keepalives_count: Option<u32>,
    /// How long what was sent may go without the other machine's acknowledgement.
    pub tcp_user_timeout: Option<Duration>,
    /// What the session must be like.
    pub target_session_attrs: TargetSessionAttrs,
    /// Whether hosts are tried in an order of chance.
    pub load_balance_hosts: bool,
    /// Whether TLS is spoken.
    pub sslmode: SslMode,
    /// How it is begun.
    pub sslnegotiation: SslNegotiation,
    /// Whose certificates are trusted. Named, they are looked at in every mode; not named, only where the mode says so.
    pub sslrootcert: Option<RootCertificates>,
    /// A file with the client's certificate chain, in PEM.
    pub sslcert: Option<PathBuf>,
    /// A file with its key, in PEM.
    pub sslkey: Option<PathBuf>,
    /// Whether the host's name is told in TLS' greeting.
    pub sslsni: bool,
    /// Whether a password's proof is bound to the server's certificate.
    pub channel_binding: ChannelBinding,
    /// How the server may ask who the user is.
    pub require_auth: RequireAuth,
}

/// A password, which no message and no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Password(_)")
    }
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Its port; for a Unix socket, the last part of the file's name.
    pub port: u16,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// By TCP: by its name, which its certificate has; by an address, without asking for the name's.
    Tcp {
        /// Its name, or its address in letters.
        name: String,
        /// Its address, if it is known.
        address: Option<IpAddr>,
    },
    /// By the socket of its port in this folder.
    Unix(PathBuf),
}

impl std::fmt::Display for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp { name, .. } => write!(formatter, "{name}:{}", self.port),
            Endpoint::Unix(folder) => write!(formatter, "{}:{}", folder.display(), self.port),
        }
    }
}

/// What a session must be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetSessionAttrs {
    /// Whatever it is like.
    #[default]
    Any,
    /// It can write.
    ReadWrite,
    /// It cannot.
    ReadOnly,
    /// Its server is no standby.
    Primary,
    /// It is one.
    Standby,
    /// It is one, if any of the hosts is.
    PreferStandby,
}

/// Whether TLS is spoken, and what the server's certificate must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum SslMode {
    /// It is not spoken.
    Disable,
    /// Only with a server that wants it.
    Allow,
    /// With a server that has it. Here as above a certificate that cannot be trusted ends in a connection in clear.
    #[default]
    Prefer,
    /// It is; whose certificate it is does not matter, unless [`Config::sslrootcert`] is there.
    Require,
    /// It is, and the certificate was signed by somebody trusted.
    VerifyCa,
    /// … and is that of the host's name.
    VerifyFull,
}

/// How TLS is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslNegotiation {
    /// The server is asked first.
    #[default]
    Postgres,
    /// At once, as servers from version 17 on take it.
    Direct,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCertificates {
    /// Those that this machine trusts.
    System,
    /// Those of a file, in PEM.
    File(PathBuf),
}

/// Whether a password's proof is bound to the server's certificate, so that nobody between can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelBinding {
    /// It is not.
    Disable,
    /// Where the server can.
    #[default]
    Prefer,
    /// Otherwise there is no connection.
    Require,
}

/// How the server may ask who the user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequireAuth {
    /// It may not ask at all.
    pub none: bool,
    /// For the password in clear.
    pub password: ClearPassword,
    /// For its MD5.
    pub md5: bool,
    /// For SCRAM-SHA-256, with channel binding or without.
    pub scram_sha_256: bool,
}

/// Whether a password is told in clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClearPassword {
    /// Never.
    No,
    /// Where nobody can listen: through TLS or a Unix socket.
    Encrypted,
    /// Also where others can listen.
    Always,
}

impl Default for RequireAuth {
    /// Everything but a password in clear where others can listen.
    fn default() -> Self {
        Self {
            none: true,
            password: ClearPassword::Encrypted,
            md5: true,
            scram_sha_256: true,
        }
    }
}

/// A text says no server that can be connected to. Its words repeat nothing of a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub(crate) String);

impl Password {
    /// Of this text.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }
}

impl Default for Config {
    /// As for an empty text.
    fn default() -> Self {
        Self {
            hosts: vec![Host {
                endpoint: default_endpoint(PORT),
                port: PORT,
            }],
            user: None,
            password: None,
            secret: None,
            dbname: None,
            options: None,
            application_name: None,
            replication: None,
            client_encoding: Some("UTF8".to_owned()),
            settings: Vec::new(),
            connect_timeout: None,
            keepalives: true,
            keepalives_idle: None,
            keepalives_interval: None,
            keepalives_count: None,
            tcp_user_timeout: None,
            target_session_attrs: TargetSessionAttrs::default(),
            load_balance_hosts: false,
            sslmode: SslMode::default(),
            sslnegotiation: SslNegotiation::default(),
            sslrootcert: None,
            sslcert: None,
            sslkey: None,
            sslsni: true,
            channel_binding: ChannelBinding::default(),
            require_auth: RequireAuth::default(),
        }
    }
}

/// Where a server is looked for that is not named: at its socket, if there is one, else at this machine's name for itself.
pub(crate) fn default_endpoint(port: u16) -> Endpoint {
    let file = format!(".s.PGSQL.{port}");
    ["/run/postgresql", "/tmp"]
        .map(PathBuf::from)
        .into_iter()
        .find(|folder| folder.join(&file).exists())
        .map_or_else(
            || Endpoint::Tcp {
                name: "localhost".to_owned(),
                address: None,
            },
            Endpoint::Unix,
        )
}
