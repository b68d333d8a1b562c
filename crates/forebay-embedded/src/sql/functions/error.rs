//! Errors that functions raise, and how they pass through SQLite, to which an error is a text.
//!
//! Promises: what [`raised`] puts into the text, [`marked_error`] takes out of it: PostgreSQL's SQLSTATE, message, detail and hint, and what the
//! error is about.

use std::fmt;

use forebay_pg_values::ValueError;

/// How the text of an error from these functions begins; the five characters of the code and `: ` follow.
const MARKER: &str = "SQLSTATE ";

/// Between message, detail, hint, and what it is about.
const SEPARATOR: char = '\u{1f}';

/// An error that one of these functions raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Five characters.
    pub sqlstate: String,
    /// PostgreSQL's message.
    pub message: String,
    /// More about this case.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// What it is about.
    pub about: About,
}

/// What an error is about, where PostgreSQL tells programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The table.
    pub table: Option<String>,
    /// Its column.
    pub column: Option<String>,
    /// Its constraint.
    pub constraint: Option<String>,
}

#[derive(Debug)]
struct Carried(ValueError, About);

impl fmt::Display for Carried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.0;
        write!(formatter, "{MARKER}{}: {}", error.sqlstate, error.message)?;
        let About {
            table,
            column,
            constraint,
        } = &self.1;
        let parts = [&error.detail, &error.hint, table, column, constraint];
        let told = parts.iter().rposition(|part| part.is_some()).map_or(0, |last| last + 1);
        for part in &parts[..told] {
            write!(formatter, "{SEPARATOR}{}", part.as_deref().unwrap_or(""))?;
        }
        Ok(())
    }
}

impl std::error::Error for Carried {}

/// The error behind a text that SQLite reports, if one of these functions raised it.
pub fn marked_error(text: &str) -> Option<Marked> {
    let rest = text.strip_prefix(MARKER)?;
    let (code, rest) = rest.split_at_checked(5)?;
    let mut parts = rest.strip_prefix(": ")?.split(SEPARATOR).map(str::to_owned);
    let message = parts.next()?;
    let mut other = || parts.next().filter(|part| !part.is_empty());
    Some(Marked {
        sqlstate: code.to_owned(),
        message,
        detail: other(),
        hint: other(),
        about: About {
            table: other(),
            column: other(),
            constraint: other(),
        },
    })
}

pub(super) fn raised(error: ValueError) -> rusqlite::Error {
    if error.sqlstate == "57014" {
        // As if SQLite itself had looked: whoever runs the statement knows why.
        return rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT), None);
    }
    raised_about(error, About::default())
}

pub(super) fn raised_about(error: ValueError, about: About) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(Box::new(Carried(error, about)))
}
