//! Errors of a link, told apart by what the caller should do.

use std::io;
use std::time::Duration;

use crate::message::{Malformed, Tag};
use crate::server_error::ServerError;

/// The link has ended: what was asked and not answered may or may not have been done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection was lost, or the server hung up.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// What came is not what the protocol says comes. The link is of no use any more.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
}

impl LinkError {
    pub(crate) fn unexpected(tag: Tag, instead_of: &str) -> Self {
        Self::Protocol(format!("a message {tag} came instead of {instead_of}"))
    }

    pub(crate) fn hung_up() -> Self {
        Self::Lost(io::Error::new(io::ErrorKind::UnexpectedEof, "the server hung up"))
    }
}

impl From<Malformed> for LinkError {
    fn from(malformed: Malformed) -> Self {
        Self::Protocol(malformed.to_string())
    }
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting cannot be used; mend it.
    #[error("{0}")]
    Setting(String),
    /// A host cannot be reached.
    #[error("{host} cannot be reached: {source}")]
    Unreachable {
        /// Which one, with its port.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// A host was silent for as long as is waited (`connect_timeout`).
    #[error("{host} did not answer within {} s (connect_timeout)", waited.as_secs_f32())]
    Silent {
        /// Which one, with its port.
        host: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The server does not let the user in, or has no room.
    #[error(transparent)]
    Server(Box<ServerError>),
    /// TLS is insisted on and cannot be had, or the certificate is not the server's.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server asks for what is not given: a method that is not known or not allowed, a password that is not there.
    #[error("{0}")]
    Authentication(String),
    /// The server asks for a password, and there is none.
    #[error("the server asks for a password, and there is none")]
    NoPassword,
    /// No host is as `target_session_attrs` wants it.
    #[error("{host} is not as wanted (target_session_attrs={wanted})")]
    WrongSession {
        /// Which one, with its port.
        host: String,
        /// As in the URL.
        wanted: &'static str,
    },
    /// The connection ended in the middle of the handshake.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl ConnectError {
    /// Whether the same may go well a moment later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } | Self::WrongSession { .. } => true,
            Self::Link(error) => matches!(error, LinkError::Lost(_)),
            // Not invalid authorization, an invalid catalog name, or insufficient privilege.
            Self::Server(error) => !["28", "3D", "42"].iter().any(|class| error.code.starts_with(class)),
            Self::Setting(_) | Self::Tls(_) | Self::Authentication(_) | Self::NoPassword => false,
        }
    }
}

impl From<ServerError> for ConnectError {
    fn from(error: ServerError) -> Self {
        Self::Server(Box::new(error))
    }
}

impl From<Malformed> for ConnectError {
    fn from(malformed: Malformed) -> Self {
        Self::Link(malformed.into())
    }
}
