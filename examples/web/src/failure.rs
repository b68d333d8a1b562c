//! What a visitor is told when it did not work.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use forebay::cache::CacheError;
use forebay::write::WriteError;

/// A status, and a text that says what happened.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    text: String,
}

impl Failure {
    /// What was asked for was not done: this try failed, another may not.
    pub(crate) fn try_later(cause: impl fmt::Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, cause)
    }

    /// It did not work, and would not a second time; or nobody can tell.
    pub(crate) fn broken(cause: impl fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, cause)
    }

    /// It took too long.
    pub(crate) fn late(cause: impl fmt::Display) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, cause)
    }

    fn new(status: StatusCode, cause: impl fmt::Display) -> Self {
        Self {
            status,
            text: format!("{cause}\n"),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, self.text).into_response()
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Busy { .. } | WriteError::Unavailable { .. } | WriteError::Closed => Self::try_later(error),
            error => Self::broken(error),
        }
    }
}

impl<E: fmt::Display> From<CacheError<E>> for Failure {
    fn from(error: CacheError<E>) -> Self {
        match error {
            CacheError::TimedOut(_) | CacheError::Overloaded => Self::try_later(error),
            error => Self::broken(error),
        }
    }
}
