//! What can go wrong when a server is started, watched or stopped. Each message says what was tried and what to do about it.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why a server could not be started, reached or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program the server consists of is not on this machine: install it.
    #[error("{program} was not found (looked in {looked_in}); to install it: {install}")]
    NotInstalled {
        /// The program that was looked for.
        program: String,
        /// Where it was looked for.
        looked_in: String,
        /// The command that brings it.
        install: String,
    },
    /// The server refuses to run as root and there is no other account to run it as: make one, or run as another user.
    #[error("{program} refuses to run as root, and none of the accounts {tried} exists to run it as")]
    NoAccount {
        /// The program.
        program: String,
        /// The accounts that were tried.
        tried: String,
    },
    /// The operating system refused something.
    #[error("could not {what}: {cause}")]
    System {
        /// What was tried, on what.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A program that prepares the server ended badly: read its output.
    #[error("{command} ended with {status}; it said:\n{output}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// The server ended before it was ready: read its output.
    #[error("{command} ended with {status} before it was ready; it said:\n{output}")]
    EndedEarly {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// The server runs and did not get ready in time: read its output, or allow more time.
    #[error("{command} was not ready after {waited:?}; it said:\n{output}")]
    NotReady {
        /// The command.
        command: String,
        /// How long it was waited for.
        waited: Duration,
        /// The end of its output.
        output: String,
    },
    /// The server was told to stop and did not: it was killed.
    #[error("{command} still ran {waited:?} after signal {signal} and was killed; it said:\n{output}")]
    DidNotStop {
        /// The command.
        command: String,
        /// The signal it was sent.
        signal: i32,
        /// How long it was waited for.
        waited: Duration,
        /// The end of its output.
        output: String,
    },
    /// What was asked for needs a running server, and this one is stopped: start it again.
    #[error("{command} is not running; start it again first")]
    NotRunning {
        /// The command.
        command: String,
    },
    /// The server printed something else than what was expected of it.
    #[error("{command} printed no {expected}; it said:\n{output}")]
    Unexpected {
        /// The command.
        command: String,
        /// What was looked for.
        expected: String,
        /// The end of its output.
        output: String,
    },
    /// The server does not speak HTTP on the address it was asked on, or not with what was asked for.
    #[error("GET http://{address}{path}: {problem}")]
    Http {
        /// Where.
        address: String,
        /// What.
        path: String,
        /// The answer, or why there was none.
        problem: String,
    },
    /// The program to run does not exist: build it.
    #[error("{} does not exist; build it first: {build}", path.display())]
    NotBuilt {
        /// Where it should be.
        path: PathBuf,
        /// The command that builds it.
        build: String,
    },
}

impl Error {
    /// Turns what the system said into an error that names what was tried.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }
}
