//! Connect error: why there is no database to read from or to write to.
//!
//! Promises: it tells a URL that has to be mended from a server that is away or refuses the user, and repeats nothing of a password.
//! Knows nothing of statements: whoever connects has neither read nor written.

use forebay_write::WriteError;

/// Why a database over a network cannot be connected to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL does not say where a database is. Mend it; what it has of a password is not repeated.
    #[error("{cause}")]
    InvalidUrl {
        /// What is wrong with it.
        cause: String,
    },
    /// The server could not be reached, or does not take this user. Try again later, or mend the URL.
    #[error("the database cannot be used: {cause}")]
    Unavailable {
        /// What was tried, and what it said last.
        cause: String,
    },
}

/// What the first connection met: connections are handed out to writers, who are told by a [`WriteError`].
pub fn unconnected(error: WriteError) -> ConnectError {
    let cause = match error {
        WriteError::Unavailable { cause } => cause,
        other => other.to_string(),
    };
    ConnectError::Unavailable { cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_connection_met_is_said_once() {
        let met = WriteError::Unavailable {
            cause: "PostgreSQL app@h/app: connection refused".to_owned(),
        };
        let told = unconnected(met).to_string();
        assert_eq!(
            told,
            "the database cannot be used: PostgreSQL app@h/app: connection refused"
        );
    }
}
