//! From SQLite's result codes to the Writer's errors.

use std::time::Duration;

use rusqlite::ffi;

use forebay_write::{StatementError, StatementErrorKind as Kind, WriteError};

/// The statement's own error, by SQLite's extended result code.
pub fn statement_error(error: &rusqlite::Error) -> StatementError {
    let (code, message, offset) = match error {
        rusqlite::Error::SqliteFailure(failure, message) => (
            failure.extended_code,
            message.clone().unwrap_or_else(|| failure.to_string()),
            None,
        ),
        rusqlite::Error::SqlInputError { error, msg, offset, .. } => {
            (error.extended_code, msg.clone(), usize::try_from(*offset).ok())
        }
        rusqlite::Error::MultipleStatement => (
            ffi::SQLITE_MISUSE,
            "one statement a call: the text holds more than one".to_owned(),
            None,
        ),
        rusqlite::Error::Utf8Error(_, fault) => (
            ffi::SQLITE_MISMATCH,
            format!("a text that was returned is not UTF-8: {fault}; cast it to BLOB"),
            None,
        ),
        other => (ffi::SQLITE_ERROR, other.to_string(), None),
    };
    let kind = match error {
        rusqlite::Error::MultipleStatement => Kind::Text,
        // ON DELETE RESTRICT is a trigger of SQLite's own making, and fails as one.
        _ if code == ffi::SQLITE_CONSTRAINT_TRIGGER && message == "FOREIGN KEY constraint failed" => Kind::ForeignKey,
        _ => kind(code),
    };
    let mut told = StatementError::new(kind, code, message);
    told.offset = offset;
    told
}

/// The error as the Writer's callers see it; `busy_timeout` is what was waited for another process.
pub(super) fn write_error(error: &rusqlite::Error, busy_timeout: Duration) -> WriteError {
    let statement = statement_error(error);
    match statement.code & 0xff {
        ffi::SQLITE_BUSY if statement.code != ffi::SQLITE_BUSY_SNAPSHOT => WriteError::Busy { waited: busy_timeout },
        _ => WriteError::Statement(statement),
    }
}

fn kind(extended: i32) -> Kind {
    match extended {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            return Kind::Unique;
        }
        ffi::SQLITE_CONSTRAINT_NOTNULL => return Kind::NotNull,
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => return Kind::ForeignKey,
        ffi::SQLITE_CONSTRAINT_CHECK => return Kind::Check,
        ffi::SQLITE_CONSTRAINT_DATATYPE => return Kind::Type,
        ffi::SQLITE_BUSY_SNAPSHOT => return Kind::Conflict,
        _ => {}
    }
    match extended & 0xff {
        ffi::SQLITE_CONSTRAINT => Kind::OtherConstraint,
        ffi::SQLITE_MISMATCH => Kind::Type,
        ffi::SQLITE_ERROR => Kind::Text,
        ffi::SQLITE_RANGE => Kind::ParameterCount,
        ffi::SQLITE_READONLY => Kind::ReadOnly,
        ffi::SQLITE_FULL => Kind::Full,
        ffi::SQLITE_TOOBIG => Kind::TooLarge,
        ffi::SQLITE_NOMEM => Kind::OutOfMemory,
        ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN => Kind::Io,
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Kind::Corrupt,
        _ => Kind::Other,
    }
}

/// Whether the error says that the disk failed: after it a commit may or may not have happened.
pub(super) fn is_disk_failure(error: &rusqlite::Error) -> bool {
    statement_error(error).kind == Kind::Io
}
