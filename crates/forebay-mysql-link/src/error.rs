//! Errors of a link, told apart by what the caller should do.

use std::io;
use std::time::Duration;

use crate::reader::Malformed;
use crate::server_error::ServerError;

/// The link has ended: what was asked and not answered may or may not have been done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The connection was lost, or the server hung up.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// The server ended the connection without having been asked anything, and said why.
    #[error("the server ended the connection: {0}")]
    Ended(Box<ServerError>),
    /// What came is not what the protocol says comes. The link is of no use any more.
    #[error("the server does not keep to the protocol: {0}")]
    Protocol(String),
}

impl LinkError {
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
    /// The server cannot be reached: what the system says.
    #[error("{0}")]
    Unreachable(io::Error),
    /// It was silent for as long as is waited ([`connect_timeout`](crate::Config::connect_timeout)).
    #[error("no answer within {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The server does not let the user in, or has no room.
    #[error(transparent)]
    Server(Box<ServerError>),
    /// TLS is insisted on and cannot be had, or the certificate is not the server's.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server asks for a proof that cannot be given here.
    #[error("{0}")]
    Authentication(String),
    /// The connection ended in the middle of the handshake.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl ConnectError {
    /// Whether the same may go well a moment later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Silent(_) | Self::Link(LinkError::Lost(_)) => true,
            Self::Server(error) | Self::Link(LinkError::Ended(error)) => error.is_passing(),
            Self::Setting(_) | Self::Tls(_) | Self::Authentication(_) | Self::Link(LinkError::Protocol(_)) => false,
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
