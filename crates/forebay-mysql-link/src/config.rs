//! Config: which server is connected to, as whom, and how.
//!
//! Promises: each field can be said in a URL, how, `parse` says; but for certificates, which are given in the program.

use std::path::PathBuf;
use std::time::Duration;

/// Where MariaDB and MySQL listen unless they are told otherwise.
pub(crate) const PORT: u16 = 3306;

/// Which server, as whom, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// How the server is reached.
    pub endpoint: Endpoint,
    /// None for the user without a name.
    pub user: Option<String>,
    /// None if there is none.
    pub password: Option<Password>,
    /// The database that names without one are of. None for none.
    pub database: Option<String>,
    /// How long connecting may take, handshake included. None for as long as it takes.
    pub connect_timeout: Option<Duration>,
    /// How long a connection by TCP is idle before it is probed. None for the system's own time.
    pub tcp_keepalive: Option<Duration>,
    /// Whether what is sent by TCP waits for nothing that could go with it.
    pub tcp_nodelay: bool,
    /// How TLS is spoken. None: it is not. Over a Unix socket it never is.
    pub tls: Option<TlsOptions>,
    /// Whether a password is told in clear to a server that asks for it so, where nobody can listen: through TLS or a Unix socket.
    pub enable_cleartext_plugin: bool,
    /// Whether a password is encrypted with the key that the server says is its own, where `caching_sha2_password` needs it and TLS
    /// is not spoken: whoever is between can say the same. On this machine nobody is, and it need not be asked for.
    pub get_server_public_key: bool,
}

/// A password, which no message and no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Password(_)")
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// By TCP: its name or address, and its port.
    Tcp(String, u16),
    /// By the Unix socket of this file.
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(formatter, "{host}:{port}"),
            Self::Unix(file) => write!(formatter, "{}", file.display()),
        }
    }
}

/// How TLS is spoken: whom is trusted, and what is shown of oneself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct TlsOptions {
    pub(crate) verify_ca: bool,
    pub(crate) verify_identity: bool,
    pub(crate) built_in_roots: bool,
    pub(crate) root_certificates: Vec<Certificates>,
    pub(crate) client_certificate: Option<(Certificates, Certificates)>,
    pub(crate) server_name: Option<String>,
}

/// Where certificates, or a key, are read from: PEM, or one in DER.
#[derive(Clone, PartialEq, Eq)]
pub enum Certificates {
    /// A file.
    File(PathBuf),
    /// Its bytes.
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => formatter.debug_tuple("File").field(file).finish(),
            // It may be a key.
            Self::Bytes(_) => formatter.write_str("Bytes(_)"),
        }
    }
}

impl From<PathBuf> for Certificates {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl From<&str> for Certificates {
    /// The name of a file.
    fn from(file: &str) -> Self {
        Self::File(file.into())
    }
}

impl From<Vec<u8>> for Certificates {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl TlsOptions {
    /// Trusts the authorities that browsers trust, and checks that the certificate is of the server's name.
    pub fn new() -> Self {
        Self {
            verify_ca: true,
            verify_identity: true,
            built_in_roots: true,
            root_certificates: Vec::new(),
            client_certificate: None,
            server_name: None,
        }
    }

    /// Trusts these authorities as well.
    pub fn root_certificates(mut self, certificates: impl Into<Certificates>) -> Self {
        self.root_certificates.push(certificates.into());
        self
    }

    /// Whether the authorities that browsers trust are trusted. Default: they are.
    pub fn built_in_roots(mut self, are_trusted: bool) -> Self {
        self.built_in_roots = are_trusted;
        self
    }

    /// Whether anybody who is trusted must have signed the server's certificate; if not, whoever answers is spoken to. Default:
    /// somebody must.
    pub fn verify_ca(mut self, verify_ca: bool) -> Self {
        self.verify_ca = verify_ca;
        self
    }

    /// Whether the certificate must be of the server's name. Default: it must.
    pub fn verify_identity(mut self, verify_identity: bool) -> Self {
        self.verify_identity = verify_identity;
        self
    }

    /// The certificate, with those that lead to an authority behind it, and the key, that the server is shown.
    pub fn client_certificate(mut self, chain: impl Into<Certificates>, key: impl Into<Certificates>) -> Self {
        self.client_certificate = Some((chain.into(), key.into()));
        self
    }

    /// The name that the server's certificate must be of, if it is not the one it is reached by.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A text says no server that can be connected to. Its words repeat nothing of a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidConfig(pub(crate) String);

impl Default for Config {
    /// This machine, by TCP, and nobody in particular.
    fn default() -> Self {
        Self {
            endpoint: Endpoint::Tcp("127.0.0.1".to_owned(), PORT),
            user: None,
            password: None,
            database: None,
            connect_timeout: None,
            tcp_keepalive: None,
            tcp_nodelay: true,
            tls: None,
            enable_cleartext_plugin: false,
            get_server_public_key: false,
        }
    }
}
