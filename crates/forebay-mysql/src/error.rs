//! From the server's error numbers, and the link's errors, to the Writer's.
//!
//! Promises: what is told apart here is what a caller or the batch does next, and nothing that would name a password. Knows
//! numbers that MariaDB and MySQL share, and those that only one of them has. From 4000 on each of the two counts for itself: of
//! those no number is taken here for what it means to one server where it is another error of the other's.

use std::io;
use std::time::Duration;

use forebay_mysql_link::{self as mysql_link, LinkError, Malformed, ServerError};
use forebay_write::{StatementError, StatementErrorKind as Kind, WriteError};

/// A deadlock: the whole transaction was rolled back.
const DEADLOCK: u16 = 1213;
/// Another transaction changed the row since this one's snapshot: the whole transaction was rolled back.
const SNAPSHOT_CHANGED: u16 = 1020;
/// Waited for a lock for too long.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// `NOWAIT`, and a lock was there.
const LOCK_NOT_WAITED_FOR: u16 = 3572;
/// The table's definition changed under a prepared statement, again and again; nothing was executed.
pub(super) const NEEDS_PREPARING: u16 = 1615;
/// The statement cannot be prepared, whatever its text.
pub(super) const NOT_PREPARABLE: u16 = 1295;
/// A warning of ROLLBACK: what was done to tables without transactions stays.
pub(super) const NOT_ROLLED_BACK: u16 = 1196;
/// The text is no SQL.
const SYNTAX: u16 = 1064;

/// Why a command has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The server says why.
    Server(ServerError),
    /// The connection is lost.
    Lost(LinkError),
}

impl From<LinkError> for Unanswered {
    fn from(error: LinkError) -> Self {
        Self::Lost(error)
    }
}

impl From<Malformed> for Unanswered {
    fn from(malformed: Malformed) -> Self {
        Self::Lost(malformed.into())
    }
}

/// Why a statement, or one of the transaction's own commands, has no outcome.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The server's own answer. The statement has no effect; what became of its transaction, the number tells.
    Server(StatementError),
    /// It was not sent; it fails alone with that.
    Caller(WriteError),
    /// It was executed, but its rows were more than are taken: it has to be undone.
    TooMuch(WriteError),
    /// The connection is gone. If the statement was not sent, it was not executed.
    Lost { cause: String, was_sent: bool },
}

impl Failure {
    /// Why a statement that was, or was not yet, sent has no answer.
    pub(super) fn of(unanswered: Unanswered, was_sent: bool) -> Self {
        match unanswered {
            Unanswered::Server(error) if ends_connection(error.code) => Self::Lost {
                cause: error.to_string(),
                // The server answered: it did not do it, and undid what it had done of it.
                was_sent: false,
            },
            Unanswered::Server(error) => Self::Server(statement_error(&error)),
            Unanswered::Lost(error) => Self::Lost {
                cause: error.to_string(),
                was_sent,
            },
        }
    }

    /// As it is for a text in which the server may have met a parameter with a name.
    pub(super) fn of_text(self) -> Self {
        match self {
            Self::Server(error) if error.code == i32::from(SYNTAX) && error.message.contains("near ':") => {
                Self::Caller(named_parameters())
            }
            failure => failure,
        }
    }

    fn code(&self) -> u16 {
        match self {
            Self::Server(error) => u16::try_from(error.code).unwrap_or(0),
            Self::Caller(_) | Self::TooMuch(_) | Self::Lost { .. } => 0,
        }
    }

    /// Whether the transaction is gone with the statement, and may be tried again.
    pub(super) fn is_deadlock(&self) -> bool {
        matches!(self.code(), DEADLOCK | SNAPSHOT_CHANGED)
    }

    /// Whether somebody else's lock was in the way.
    pub(super) fn is_lock_timeout(&self) -> bool {
        matches!(self.code(), LOCK_WAIT_TIMEOUT | LOCK_NOT_WAITED_FOR)
    }

    /// Whether a row was in conflict with another.
    pub(super) fn is_unique(&self) -> bool {
        matches!(self, Self::Server(error) if error.kind == Kind::Unique)
    }

    pub(super) fn is(&self, code: u16) -> bool {
        self.code() == code
    }

    /// Whether it is known that the statement alone was undone, and its transaction stands: what is told of one row, or before
    /// anything was executed.
    pub(super) fn leaves_transaction(&self) -> bool {
        match self {
            Self::Caller(_) => true,
            Self::TooMuch(_) | Self::Lost { .. } => false,
            Self::Server(error) => matches!(
                error.kind,
                Kind::Unique
                    | Kind::NotNull
                    | Kind::ForeignKey
                    | Kind::Check
                    | Kind::Type
                    | Kind::Text
                    | Kind::ParameterCount
                    | Kind::Permission
            ),
        }
    }

    /// The failure of a COMMIT, or of a statement that commits by itself, after which it may have been committed.
    pub(super) fn leaves_commit_unknown(&self) -> bool {
        // Writing the binary log, and "during commit", whatever that was.
        matches!(self, Self::Lost { was_sent: true, .. }) || matches!(self.code(), 1026 | 1180)
    }

    /// What its caller is told, if nothing is tried again.
    pub(super) fn into_write_error(self) -> WriteError {
        match self {
            Self::Server(error) => WriteError::Statement(error),
            Self::Caller(error) | Self::TooMuch(error) => error,
            Self::Lost { cause, was_sent: true } => WriteError::OutcomeUnknown { cause },
            Self::Lost { cause, .. } => WriteError::Unavailable { cause },
        }
    }
}

/// Numbers with which the server ends the connection: shutdown, KILL, what the client library would say.
fn ends_connection(code: u16) -> bool {
    // Not 4031: MySQL's farewell to a session that was idle is a trigger that is not there to MariaDB. Who is told the farewell as
    // an error has had no effect, either, and whoever comes next finds the connection closed.
    matches!(code, 1053 | 1927 | 2006 | 2013 | 3169)
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Unconnected {
    /// There is no link.
    Unlinked(mysql_link::ConnectError),
    /// There was one, and its session could not be set up.
    NotSetUp(Unanswered),
    /// It was not made in time.
    Silent,
}

impl From<mysql_link::ConnectError> for Unconnected {
    fn from(error: mysql_link::ConnectError) -> Self {
        Self::Unlinked(error)
    }
}

impl From<Unanswered> for Unconnected {
    fn from(unanswered: Unanswered) -> Self {
        Self::NotSetUp(unanswered)
    }
}

/// Whether a connection that was refused so may be had a moment later.
pub(super) fn is_passing(error: &Unconnected) -> bool {
    match error {
        Unconnected::Unlinked(error) => error.is_passing(),
        Unconnected::NotSetUp(Unanswered::Server(error)) => error.is_passing(),
        Unconnected::NotSetUp(Unanswered::Lost(_)) | Unconnected::Silent => true,
    }
}

/// Why there is no connection, in words for whoever wrote the URL.
pub(super) fn said_of_connecting(error: &Unconnected, within: Duration) -> String {
    let too_late = || {
        format!(
            "no connection was made within {} s (connect_timeout); does a MariaDB or MySQL server listen there?",
            within.as_secs_f32()
        )
    };
    match error {
        Unconnected::Silent => too_late(),
        Unconnected::Unlinked(mysql_link::ConnectError::Unreachable(error))
            if error.kind() == io::ErrorKind::TimedOut =>
        {
            too_late()
        }
        Unconnected::Unlinked(error) => error.to_string(),
        Unconnected::NotSetUp(Unanswered::Server(error)) => error.to_string(),
        Unconnected::NotSetUp(Unanswered::Lost(error)) => error.to_string(),
    }
}

/// The statement's own error.
pub(super) fn statement_error(error: &ServerError) -> StatementError {
    let kind = kind(error.code, &error.sqlstate);
    let mut told = StatementError::new(kind, i32::from(error.code), &*error.message);
    told.sqlstate = Some(error.sqlstate.as_str().into());
    told
}

/// An error that is found before the server is asked.
pub(super) fn found_here(kind: Kind, message: String) -> WriteError {
    WriteError::Statement(StatementError::new(kind, 0, message))
}

/// The server has parameters without names only.
fn named_parameters() -> WriteError {
    found_here(
        Kind::Text,
        "parameters have no names here: write ? for each, in the order of their values".to_owned(),
    )
}

fn kind(code: u16, sqlstate: &str) -> Kind {
    match code {
        1062 | 1022 | 1169 | 1557 | 1586 | 1761 | 1762 | 1859 => Kind::Unique,
        1048 | 1364 | 1423 | 1121 | 1263 => Kind::NotNull,
        1216 | 1217 | 1451 | 1452 => Kind::ForeignKey,
        3819 => Kind::Check,
        // MySQL's 4025 is about the size of a tablespace.
        4025 if sqlstate.starts_with("23") => Kind::Check,
        1264 | 1265 | 1292 | 1365 | 1366 | 1367 | 1406 | 1411 | 1416 | 1525 | 1690 | 3140 | 4038 => Kind::Type,
        1054 | 1064 | 1065 | 1046 | 1049 | 1051 | 1052 | 1109 | 1110 | 1136 | 1146 | 1149 | 1176 | 1235 | 1295
        | 1305 | 1630 => Kind::Text,
        1210 => Kind::ParameterCount,
        1223 | 1290 | 1792 | 1836 | 1036 => Kind::ReadOnly,
        1021 | 1114 => Kind::Full,
        1118 | 1153 | 1162 | 1301 | 1390 => Kind::TooLarge,
        1037 | 1038 | 1041 | 1135 => Kind::OutOfMemory,
        1002..=1005 | 1009 | 1016 | 1023..=1026 | 1030 => Kind::Io,
        1033..=1035 | 1194 | 1195 | 1712 | 1877 | 1932 => Kind::Corrupt,
        LOCK_WAIT_TIMEOUT | LOCK_NOT_WAITED_FOR => Kind::LockTimeout,
        1969 | 3024 => Kind::Timeout,
        1044 | 1045 | 1095 | 1142 | 1143 | 1227 | 1370 | 1410 | 1419 | 1698 => Kind::Permission,
        DEADLOCK | SNAPSHOT_CHANGED => Kind::Conflict,
        // SIGNAL, mostly from a trigger; a view's WITH CHECK OPTION; and what else breaks a rule of integrity.
        1644 | 1369 => Kind::OtherConstraint,
        _ if sqlstate == "45000" || sqlstate.starts_with("23") => Kind::OtherConstraint,
        _ if sqlstate.starts_with("22") => Kind::Type,
        _ if sqlstate.starts_with("42") => Kind::Text,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(code: u16) -> ServerError {
        ServerError {
            code,
            message: "said so".to_owned(),
            sqlstate: "HY000".to_owned(),
        }
    }

    fn server(code: u16) -> Unanswered {
        Unanswered::Server(server_error(code))
    }

    #[test]
    fn why_there_is_no_connection_is_said_once_and_plainly() {
        let unlinked = |error: mysql_link::ConnectError| said_of_connecting(&error.into(), Duration::from_secs(5));
        let said = |kind| unlinked(mysql_link::ConnectError::Unreachable(io::Error::from(kind)));
        assert_eq!(said(io::ErrorKind::ConnectionRefused), "connection refused");
        assert!(said(io::ErrorKind::TimedOut).contains("within 5 s (connect_timeout)"));
        let silent = said_of_connecting(&Unconnected::Silent, Duration::from_secs(5));
        assert!(silent.contains("within 5 s (connect_timeout)"));
        assert_eq!(unlinked(server_error(1045).into()), "ERROR 1045 (HY000): said so");
        assert_eq!(
            said_of_connecting(&server(1045).into(), Duration::ZERO),
            "ERROR 1045 (HY000): said so"
        );
    }

    #[test]
    fn a_number_that_the_two_servers_use_for_different_errors_is_nobodys_lost_connection() {
        // To MariaDB: CREATE TRIGGER … FOLLOWS one that is not there.
        let failure = Failure::of(server(4031), true);
        assert!(
            matches!(&failure, Failure::Server(error) if error.code == 4031),
            "{failure:?}"
        );
        assert!(!failure.leaves_transaction() && !failure.leaves_commit_unknown());
        assert_eq!(kind(4025, "23000"), Kind::Check);
        assert_eq!(kind(4025, "HY000"), Kind::Other);
    }

    #[test]
    fn an_answer_is_never_an_unknown_outcome() {
        for code in [1053, 1927, 1062, 1213, 1205] {
            assert!(!Failure::of(server(code), true).leaves_commit_unknown(), "{code}");
        }
        for code in [1026, 1180] {
            assert!(Failure::of(server(code), true).leaves_commit_unknown(), "{code}");
        }
    }

    #[test]
    fn a_connection_that_broke_before_the_statement_was_sent_leaves_nothing_unknown() {
        let broken = || Unanswered::Lost(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        assert!(Failure::of(broken(), true).leaves_commit_unknown());
        let before = Failure::of(broken(), false);
        assert!(!before.leaves_commit_unknown());
        assert!(matches!(before.into_write_error(), WriteError::Unavailable { .. }));
    }

    #[test]
    fn a_failure_that_may_have_taken_the_transaction_is_looked_at() {
        for code in [1205, 1213, 1317, 1969, 1206, 1030] {
            assert!(!Failure::of(server(code), true).leaves_transaction(), "{code}");
        }
    }
}
