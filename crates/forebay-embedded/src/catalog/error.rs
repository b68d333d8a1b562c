//! What can be wrong with a catalog query, and the SQLSTATE a client should see for it.
//!
//! Knows nothing of translation itself. Errors that only show while a query runs (a relation name that is cast to `regclass` and
//! does not exist) travel through SQLite as text; [`runtime_error`] gives them back their SQLSTATE.

use std::fmt::{Display, Formatter};

/// Why a catalog query was not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The text is not a statement of PostgreSQL: the client should correct it.
    #[error("syntax error in a catalog query: {message}")]
    Syntax {
        /// What the parser said.
        message: String,
    },
    /// PostgreSQL may well understand this; the emulated catalog does not. The client has to ask in a simpler way.
    #[error("the emulated catalog does not support {construct}")]
    Unsupported {
        /// The construct, named as the client wrote it.
        construct: String,
    },
    /// The catalog has no such relation.
    #[error("relation \"{name}\" does not exist")]
    UndefinedTable {
        /// The name as the client wrote it.
        name: String,
    },
    /// No relation of the query has such a column.
    #[error("column \"{name}\" does not exist")]
    UndefinedColumn {
        /// The name as the client wrote it.
        name: String,
    },
    /// A literal that is no value of the type it is compared with or cast to.
    #[error("invalid input syntax for type {kind}: \"{text}\"")]
    InvalidText {
        /// The PostgreSQL type.
        kind: String,
        /// The literal.
        text: String,
    },
    /// The query is longer or deeper than the translator accepts: it should be split.
    #[error("catalog query too complex: {limit}")]
    TooComplex {
        /// The limit that was met.
        limit: &'static str,
    },
}

impl CatalogError {
    /// The five letters a client decides by.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "42601",
            Self::Unsupported { .. } => "0A000",
            Self::UndefinedTable { .. } => "42P01",
            Self::UndefinedColumn { .. } => "42703",
            Self::InvalidText { .. } => "22P02",
            Self::TooComplex { .. } => "54001",
        }
    }

    pub(super) fn unsupported(construct: impl Display) -> Self {
        let mut construct = construct.to_string();
        // The text comes from the client and goes to its log: a line is enough to find it.
        if construct.len() > 200 {
            let end = (0..=200)
                .rev()
                .find(|end| construct.is_char_boundary(*end))
                .unwrap_or(0);
            construct.truncate(end);
            construct.push('…');
        }
        Self::Unsupported { construct }
    }
}

/// An error raised by a function of the catalog while SQLite runs it. Its text begins with the SQLSTATE in brackets, the only way
/// to get one through SQLite.
#[derive(Debug)]
pub(super) struct RuntimeError {
    pub(super) sqlstate: &'static str,
    pub(super) message: String,
}

impl Display for RuntimeError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "[{}] {}", self.sqlstate, self.message)
    }
}

impl std::error::Error for RuntimeError {}

impl RuntimeError {
    pub(super) fn raise(sqlstate: &'static str, message: impl Into<String>) -> rusqlite::Error {
        rusqlite::Error::UserFunctionError(Box::new(Self {
            sqlstate,
            message: message.into(),
        }))
    }
}

/// The SQLSTATE and message of an error met while stepping a translated query, if a catalog function raised it.
#[must_use]
pub fn runtime_error(error: &rusqlite::Error) -> Option<(String, String)> {
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        rusqlite::Error::UserFunctionError(error) => error.to_string(),
        _ => return None,
    };
    let (state, message) = text.strip_prefix('[')?.split_once("] ")?;
    let valid = state.len() == 5
        && state
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    valid.then(|| (state.to_owned(), message.to_owned()))
}
