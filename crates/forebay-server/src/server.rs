//! The server: what the program runs.

use crate::config::Options;

/// Why the server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The session layer is not part of this build.
    #[error("this build cannot serve yet ({0} would be the database)")]
    Incomplete(std::path::PathBuf),
    /// Users file.
    #[error(transparent)]
    Users(#[from] crate::users::UsersError),
    /// TLS files.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// A listener.
    #[error("{what} cannot listen on {address}: {error}")]
    Listen {
        /// Which listener.
        what: &'static str,
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
}

/// Serves until a signal ends it.
///
/// # Errors
///
/// When it cannot start.
pub async fn serve(options: Options) -> Result<(), ServeError> {
    Err(ServeError::Incomplete(options.database))
}
