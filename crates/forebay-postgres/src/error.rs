//! From PostgreSQL's errors to the Writer's: what kind each is, and what is to become of the batch it happened in.
//!
//! Decided by SQLSTATE, by severity and by the server's routine, none of which a server's language changes; never by the
//! words of a message. Does not know what was tried before: how often to try again is the caller's.

use std::io;

use tokio_postgres::error::{DbError, ErrorPosition, Severity};

use super::types::Misfit;
use forebay_write::{StatementError, StatementErrorKind as Kind};

/// What an error of a statement means for it and for its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The statement's own doing, or its own bad luck: it would have failed alone, too.
    Statement(StatementError),
    /// A deadlock or a serialization failure: nothing is wrong with the statement, the whole transaction can be tried again.
    Conflict(StatementError),
    /// A lock was not had in time, or at once where the statement asked for that.
    Lock(StatementError),
    /// It cannot run inside a transaction, or not beside what ran before it in this one: run it alone. Run alone already, the
    /// error is its own.
    Alone(StatementError),
    /// The statement's plan is no longer there, or no longer holds: prepare it again. Prepared anew already, the error is its own.
    Replan(StatementError),
    /// It was not run, because a statement before it in the same transaction had failed. Where none had, the error is its own.
    Skipped(StatementError),
    /// The connection ended, or is of no use any more.
    Lost(String),
}

impl Failure {
    /// What the statement's own caller is told, where nothing else is done about it.
    pub(crate) fn statement(self) -> StatementError {
        match self {
            Self::Statement(error)
            | Self::Conflict(error)
            | Self::Lock(error)
            | Self::Alone(error)
            | Self::Replan(error)
            | Self::Skipped(error) => error,
            Self::Lost(cause) => StatementError::new(Kind::Io, 0, cause),
        }
    }
}

/// Whether the server ended the connection in good order instead of the statement, so that the statement had no effect. A PANIC
/// is no such thing: it may come of a commit that is already in the log.
pub(crate) fn had_no_effect(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Fatal)
}

/// What an error of a statement with that text means.
pub(crate) fn failure(error: &tokio_postgres::Error, sql: &str) -> Failure {
    match error.as_db_error() {
        Some(told) => of_server(told, sql),
        None => of_client(error),
    }
}

fn of_server(told: &DbError, sql: &str) -> Failure {
    let code = told.code().code();
    // The server hangs up after FATAL and PANIC, whatever they are about, and after nothing else: an ERROR of class 08 is one
    // that a function or a foreign table had with a connection of its own. Before 9.6 severities came in any language.
    let hung_up = match told.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "53300"),
    };
    let raised_by = |routine| told.routine() == Some(routine);
    let statement = || statement_error(told, sql);
    match code {
        _ if hung_up => Failure::Lost(format!("{} (SQLSTATE {code})", told.message())),
        "40001" | "40P01" => Failure::Conflict(statement()),
        "55P03" => Failure::Lock(statement()),
        // Not inside a transaction; a COMMIT inside a procedure; a table that has trigger events pending, or a value of an
        // enum that was added, in the same transaction.
        "25001" | "2D000" | "55006" | "55P04" => Failure::Alone(statement()),
        // Unless a function raised it by itself, which ran.
        "25P02" if !raised_by("exec_stmt_raise") => Failure::Skipped(statement()),
        // The code says "feature not supported", as of many things: only the routine tells that a result's columns changed.
        "0A000" if raised_by("RevalidateCachedQuery") => Failure::Replan(statement()),
        "26000" => Failure::Replan(statement()),
        _ => Failure::Statement(statement()),
    }
}

/// Errors that the client made itself.
fn of_client(error: &tokio_postgres::Error) -> Failure {
    let source = std::error::Error::source(error);
    let own = |kind, message: String| Failure::Statement(StatementError::new(kind, 0, message));
    if let Some(misfit) = source.and_then(|source| source.downcast_ref::<Misfit>()) {
        return own(Kind::Type, format!("{error}: {misfit}"));
    }
    // The client keeps its own kinds of error to itself; these two are about the call, and leave the connection as it was. The
    // words are the library's, in one language, and a test holds them.
    let words = error.to_string();
    if words.starts_with("expected ") && words.contains(" parameters but got ") {
        return own(Kind::ParameterCount, words);
    }
    if let Some(cause) = source.and_then(|source| source.downcast_ref::<io::Error>())
        && words == "error encoding message to server"
    {
        return own(Kind::Text, format!("the statement cannot be sent: {cause}"));
    }
    Failure::Lost(source.map_or_else(|| words.clone(), |source| format!("{words}: {source}")))
}

/// The error as the statement's caller sees it.
pub(crate) fn statement_error(told: &DbError, sql: &str) -> StatementError {
    let code = told.code().code();
    // The detail names the key or the row, which the message leaves out.
    let message = match told.detail() {
        Some(detail) => format!("{} ({detail})", told.message()),
        None => told.message().to_owned(),
    };
    let mut error = StatementError::new(kind(code), 0, message);
    error.sqlstate = Some(code.into());
    error.constraint = told.constraint().map(Into::into);
    error.offset = match told.position() {
        Some(ErrorPosition::Original(position)) => byte_offset(sql, *position),
        // In a text that is not the caller's.
        Some(ErrorPosition::Internal { .. }) | None => None,
    };
    error
}

/// Where the character stands; the server counts characters, from 1.
fn byte_offset(sql: &str, position: u32) -> Option<usize> {
    let before = usize::try_from(position).ok()?.checked_sub(1)?;
    // "At the end of input" is one past the last.
    let mut offsets = sql.char_indices().map(|(offset, _)| offset).chain([sql.len()]);
    offsets.nth(before)
}

/// What kind of failure a SQLSTATE is.
fn kind(code: &str) -> Kind {
    match code {
        "23505" => Kind::Unique,
        "23502" => Kind::NotNull,
        "23503" | "23001" => Kind::ForeignKey,
        "23514" => Kind::Check,
        "25006" => Kind::ReadOnly,
        "42501" => Kind::Permission,
        "42P02" => Kind::ParameterCount,
        "53100" => Kind::Full,
        "53200" => Kind::OutOfMemory,
        "58030" | "58000" => Kind::Io,
        "XX001" | "XX002" => Kind::Corrupt,
        "40001" | "40P01" => Kind::Conflict,
        "55P03" => Kind::LockTimeout,
        "57014" => Kind::Timeout,
        // RAISE and ASSERT of a trigger's function.
        "P0001" | "P0004" => Kind::OtherConstraint,
        _ => match code.get(..2) {
            Some("22") => Kind::Type,
            // Also a trigger that changes what it must not, and a view's WITH CHECK OPTION.
            Some("23" | "27" | "44") => Kind::OtherConstraint,
            Some("40") => Kind::Conflict,
            // Also what is not supported, databases and schemas that are not there, and names of cursors and statements.
            Some("42" | "0A" | "3D" | "3F" | "34" | "26") => Kind::Text,
            Some("28" | "0L" | "0P") => Kind::Permission,
            Some("54") => Kind::TooLarge,
            _ => Kind::Other,
        },
    }
}

#[cfg(test)]
mod tests;
