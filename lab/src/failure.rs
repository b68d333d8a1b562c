//! Why a measurement, or a whole run, has no figures.
//!
//! Told apart by what the lab does about it: an absent peer is left out, a wrong outcome fails the run.

use std::path::PathBuf;

/// What it says, and what the server said, if it did.
fn in_full(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// No figures, and why.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A peer, or a tool that drives it, is not installed: the lab says so and goes on without.
    #[error("{what} is not here ({cause}); {remedy}")]
    Absent {
        /// What is missed.
        what: String,
        /// How that was seen.
        cause: String,
        /// How to get it.
        remedy: String,
    },
    /// An outcome was wrong or missing. The run has failed: a fast wrong answer is no answer.
    #[error("wrong outcome: {0}")]
    Wrong(String),
    /// What happened to one system in one case.
    #[error("{name}: {cause}")]
    Trial {
        /// System and case.
        name: String,
        /// What happened.
        cause: Box<Failure>,
    },
    /// SQLite failed where it must not.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL failed where it must not.
    #[error("PostgreSQL: {}", in_full(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// MariaDB failed where it must not.
    #[error("MariaDB: {0}")]
    MariaDb(Box<mysql_async::Error>),
    /// The system refused something.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A server did not start or stop as it should.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// The databases would be kept in memory, where durability costs nothing.
    #[error("{} is on {kind}, which is no disk; name a folder on one with --folder", folder.display())]
    NotADisk {
        /// The folder asked for.
        folder: PathBuf,
        /// The kind of file system it is on.
        kind: String,
    },
    /// There is nothing to report.
    #[error("no results in {}; measure first, for example: cargo xtask lab writes", folder.display())]
    NoResults {
        /// Where the last results would be.
        folder: PathBuf,
    },
    /// Kept results cannot be understood.
    #[error("{} is not what the lab keeps: {cause}; measure that scenario again, or remove the file", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What is wrong in it, and where.
        cause: String,
    },
    /// `--only` matches nothing.
    #[error("nothing here has {only:?} in its name; there is: {names}")]
    NothingChosen {
        /// The text given.
        only: String,
        /// What could have been chosen.
        names: String,
    },
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Self {
        Self::MariaDb(Box::new(error))
    }
}

impl Failure {
    /// For `map_err`: what was tried when the system refused.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }
}
