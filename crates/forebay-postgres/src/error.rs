//! From PostgreSQL's errors to the Writer's: what kind each is, and what is to become of the batch it happened in.
//!
//! Decided by SQLSTATE, by severity and by the server's routine, none of which a server's language changes; never by the
//! words of a message. Does not know what was tried before: how often to try again is the caller's.

use super::pipeline::Refusal;
use super::types::Misfit;
use forebay_pg_link::{LinkError, ServerError, Severity, Unsendable};
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
    /// The link has ended.
    pub(crate) fn lost(error: &LinkError) -> Self {
        Self::Lost(error.to_string())
    }

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
pub(crate) fn had_no_effect(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Server(error) => error.severity == Some(Severity::Fatal),
        Refusal::Unsendable(_) | Refusal::Skipped => true,
        Refusal::Lost(_) => false,
    }
}

/// What it means that a statement with that text was refused.
pub(crate) fn failure(refusal: Refusal, sql: &str) -> Failure {
    match refusal {
        Refusal::Server(told) => of_server(&told, sql),
        Refusal::Unsendable(error) => of_client(*error),
        Refusal::Lost(cause) => Failure::Lost(cause),
        Refusal::Skipped => Failure::Skipped(StatementError::new(
            Kind::Other,
            0,
            "it was not executed, as one before it had failed",
        )),
    }
}

fn of_server(told: &ServerError, sql: &str) -> Failure {
    let code = &*told.code;
    // An ERROR of class 08 is one that a function or a foreign table had with a connection of its own.
    let raised_by = |routine| told.routine.as_deref() == Some(routine);
    let statement = || statement_error(told, sql);
    match code {
        _ if told.ends_the_session() => Failure::Lost(told.to_string()),
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

/// What could not be sent.
fn of_client(error: Unsendable) -> Failure {
    let own = |kind, message: String| Failure::Statement(StatementError::new(kind, 0, message));
    match error {
        Unsendable::Parameter(error) => match error.downcast::<Misfit>() {
            Ok(misfit) => own(Kind::Type, format!("a parameter cannot be sent: {misfit}")),
            Err(error) => own(Kind::Type, format!("a parameter cannot be sent: {error}")),
        },
        error => own(Kind::Text, format!("the statement cannot be sent: {error}")),
    }
}

/// The error as the statement's caller sees it.
fn statement_error(told: &ServerError, sql: &str) -> StatementError {
    let code = &*told.code;
    // The detail names the key or the row, which the message leaves out.
    let message = match &told.detail {
        Some(detail) => format!("{} ({detail})", told.message),
        None => told.message.clone(),
    };
    let mut error = StatementError::new(kind(code), 0, message);
    error.sqlstate = Some(code.into());
    error.constraint = told.constraint.as_deref().map(Into::into);
    // An internal one is in a text that is not the caller's.
    error.offset = told.position.and_then(|position| byte_offset(sql, position));
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
