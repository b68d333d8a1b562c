//! What can go wrong between a client's statement text and SQLite, and what the client should do about it.
//!
//! Promises: every error has a SQLSTATE, a message that names the construct it is about, and a hint where something can be done.
//! Positions are characters, counted from 1, in the text the client sent; they are given only where that text is what failed.
//! Knows nothing of protocol messages, and nothing of SQLite's result codes: [`SqlError::Sqlite`] carries those as they came.

use super::compile::Fault;
use thiserror::Error;

/// Why a statement is not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text is not a statement: an unterminated literal or comment, a session command that makes no sense.
    #[error("{message}")]
    Syntax {
        /// What was expected, or what was found.
        message: String,
        /// Where, as a character counted from 1.
        position: Option<usize>,
    },
    /// The statement is understood and not offered; a different statement is needed.
    #[error("{what} is not supported")]
    Unsupported {
        /// The construct, named as the client wrote it.
        what: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// A parameter that cannot be bound: not a number, zero, or beyond the limit.
    #[error("there is no parameter {name}")]
    NoSuchParameter {
        /// The parameter as written.
        name: String,
        /// Where, as a character counted from 1.
        position: Option<usize>,
    },
    /// Nested or chained deeper than the server is willing to follow; it must be split.
    #[error("the statement is too complex: {what}")]
    TooComplex {
        /// Which limit was met.
        what: String,
    },
    /// What the compiler has to say: PostgreSQL's own error, or that something is not supported.
    #[error("{message}")]
    Fault {
        /// Five characters.
        sqlstate: &'static str,
        /// PostgreSQL's words where it would give this error too.
        message: String,
        /// More about this case.
        detail: Option<String>,
        /// What to do.
        hint: Option<String>,
        /// Where, as a character counted from 1.
        position: Option<usize>,
    },
    /// SQLite refused the statement when it was prepared.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl From<Fault> for SqlError {
    fn from(fault: Fault) -> Self {
        Self::Fault {
            sqlstate: fault.sqlstate,
            message: fault.message,
            detail: fault.detail,
            hint: fault.hint,
            position: None,
        }
    }
}

impl SqlError {
    /// An [`SqlError::Unsupported`] without a hint.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported {
            what: what.into(),
            hint: None,
        }
    }

    /// An [`SqlError::Unsupported`] that says what to do instead.
    pub(crate) fn unsupported_but(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unsupported {
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    /// The five characters of PostgreSQL's error code. For [`SqlError::Sqlite`] this is only the general "syntax error or access
    /// rule violation"; whoever knows SQLite's result codes can say it better.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "42601",
            Self::Unsupported { .. } => "0A000",
            Self::Fault { sqlstate, .. } => sqlstate,
            Self::NoSuchParameter { .. } => "42P02",
            Self::TooComplex { .. } => "54001",
            Self::Sqlite(_) => "42000",
        }
    }

    /// What to do about it, where there is something to say beyond the message.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unsupported { hint, .. } | Self::Fault { hint, .. } => hint.as_deref(),
            Self::TooComplex { .. } => Some("Split the statement, or replace a long chain of OR by IN."),
            _ => None,
        }
    }

    /// Where in the text the client sent, as a character counted from 1.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Syntax { position, .. } | Self::NoSuchParameter { position, .. } | Self::Fault { position, .. } => {
                *position
            }
            _ => None,
        }
    }

    /// More about this case.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Fault { detail, .. } => detail.as_deref(),
            _ => None,
        }
    }

    /// Its place counted in the script, in which the statement begins at this byte.
    pub(crate) fn moved(mut self, script: &str, offset: usize) -> Self {
        if let Self::Syntax {
            position: Some(position),
            ..
        } = &mut self
        {
            *position += character_position(script, offset) - 1;
        }
        self
    }
}

/// The character, counted from 1, that stands at this byte of the text.
pub(crate) fn character_position(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(start, _)| *start < byte).count() + 1
}
