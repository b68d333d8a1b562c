//! Why a server did not start.
//!
//! Promises: every reason says what could not be used, in words for whoever started the server.

use std::net::SocketAddr;
use std::path::PathBuf;

use forebay_pg_link::ConnectError;
use forebay_sqlite::OpenError;

use crate::access::RulesError;
use crate::claim::ClaimError;
use crate::config::{OptionsError, Settings};
use crate::log::LogError;
use crate::tls::TlsError;
use crate::users::UsersError;
use crate::warm::WarmFileError;

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
    #[error("{}: {error}", database.as_ref().map_or("upstream".to_owned(), |name| format!("database \"{name}\"")))]
    Upstream {
        /// Which one; none for what has all others.
        database: Option<String>,
        /// Why not.
        #[source]
        error: ConnectError,
    },
    /// A user's certificate for the databases cannot be used.
    #[error("user \"{user}\": {error}")]
    Certificate {
        /// Whose.
        user: String,
        /// Which of its two files.
        option: &'static str,
        /// Why not.
        #[source]
        error: ConnectError,
    },
    /// One of the other reasons, for what stands there in the file.
    #[error("configuration file {}, line {line}: {error}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        #[source]
        error: Box<Self>,
    },
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
    /// The file of hot questions cannot be used.
    #[error(transparent)]
    WarmFile(#[from] WarmFileError),
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

impl ServeError {
    /// As one line of a log has it: of a file that cannot be understood, which line, and what is wrong with it.
    pub(crate) fn in_one_line(&self) -> String {
        match self {
            Self::Options(error) => error.in_one_line(),
            error => error.to_string(),
        }
    }

    /// The same, with the line of the file that names what could not be used, if it stands there.
    #[must_use]
    pub fn in_file_of(self, settings: &Settings) -> Self {
        let (option, table) = match &self {
            Self::Users(_) => ("users", None),
            Self::Rules(_) => ("hba_file", None),
            Self::Tls(error) => (error.option(), None),
            Self::Upstream { database: None, .. } => ("upstream", None),
            Self::Upstream {
                database: Some(name), ..
            } => ("url", Some(("database", name.as_str()))),
            Self::Certificate { user, option, .. } => (*option, Some(("user", user.as_str()))),
            _ => return self,
        };
        match settings.line_of(option, table) {
            Some((path, line)) => Self::Line {
                path,
                line,
                error: Box::new(self),
            },
            None => self,
        }
    }
}
