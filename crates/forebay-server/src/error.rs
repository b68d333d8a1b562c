//! Why a server did not start.
//!
//! Promises: every reason says what could not be used, in words for whoever started the server.

use std::net::SocketAddr;
use std::path::PathBuf;

use forebay_pg_link::ConnectError;
use forebay_sqlite::OpenError;

use crate::access::RulesError;
use crate::claim::ClaimError;
use crate::config::OptionsError;
use crate::log::LogError;
use crate::tls::TlsError;
use crate::users::UsersError;

/// Why the server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database is another server's.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The options cannot be used.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// What is to be logged cannot be understood.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No connection to a database can be made as it is said.
    #[error("upstream: {0}")]
    Upstream(#[from] ConnectError),
    /// The users file could not be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The rules of access could not be used.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The certificate or key could not be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address could not be listened on.
    #[error("cannot listen on {address}: {cause}; --listen and --http choose other addresses")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The Unix socket could not be listened on.
    #[error("cannot listen on {}: {cause}; --socket-folder chooses another folder", path.display())]
    Socket {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The sockets of the server that runs could not be taken, or be offered to the next one.
    #[error("cannot hand over by {}: {cause} (--handover-socket)", path.display())]
    Handover {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The emulated catalog could not be made: memory has run out.
    #[error("cannot make the catalog: {0}")]
    Catalog(rusqlite::Error),
    /// Its threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// Signals could not be listened for.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// The metrics could not be set up.
    #[error("cannot set up metrics: {0}")]
    Metrics(String),
}
