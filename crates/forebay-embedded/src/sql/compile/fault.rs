//! Why a statement does not compile, in PostgreSQL's words where PostgreSQL refuses it too.
//!
//! Knows nothing of statements.

use forebay_pg_values::ValueError;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Location;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// Where in the statement, as its lexer counts.
    pub(crate) location: Option<Location>,
}

/// The result of compiling anything.
pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            location: None,
        }
    }

    /// PostgreSQL can do this, and it cannot be done here.
    pub(crate) fn unsupported(what: impl std::fmt::Display) -> Self {
        Self::new("0A000", format!("{what} is not supported"))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Points at this name, unless it points somewhere already.
    pub(crate) fn at(self, name: &Ident) -> Self {
        self.at_location(Some(name.span.start))
    }

    /// Points there, unless it points somewhere already.
    pub(crate) fn at_location(mut self, location: Option<Location>) -> Self {
        self.location = self.location.or(location.filter(|location| location.line > 0));
        self
    }
}

impl From<ValueError> for Fault {
    fn from(error: ValueError) -> Self {
        Self {
            sqlstate: error.sqlstate,
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            location: None,
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn unreadable(error: rusqlite::Error) -> Fault {
    Fault::new("XX000", format!("the schema cannot be read: {error}"))
}
