//! Why a message is not carried out: an error to be reported, or a client that has gone.

use std::io;

use forebay_pg_wire::error::{Severity, WireError, sqlstate};
use forebay_pg_wire::frontend::FrameError;

/// Why a message was not carried out.
#[derive(Debug)]
pub(super) enum Stop {
    /// The client is told.
    Error(WireError),
    /// There is no client any more.
    Gone(io::Error),
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Self::Error(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<forebay_write::WriteError> for Stop {
    fn from(error: forebay_write::WriteError) -> Self {
        Self::Error(crate::errors::unplaced(error))
    }
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Refused { error, .. } => Self::Error(error),
            FrameError::Broken(error) => Self::Error(error.with_severity(Severity::Fatal)),
            FrameError::Lost(error) => Self::Gone(error),
        }
    }
}

pub(super) fn shut_down() -> WireError {
    WireError::fatal(
        sqlstate::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}
