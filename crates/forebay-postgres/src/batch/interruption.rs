//! Interruption: why a transaction's statements did not all run to their end.

use crate::error::Failure;
use forebay_write::StatementError;

/// Why a transaction did not come to its end. Nothing of it is left.
pub(super) enum Interruption {
    /// The connection, before the commit was asked for.
    Lost(String),
    /// Another transaction was there first.
    Conflict(StatementError),
    /// One statement failed, or an outcome was not accepted.
    Guilty,
    /// The statement at this index waited for a lock for too long.
    Lock(usize, StatementError),
    /// As much, for the table that it names: its text could not even be prepared.
    Table(usize, StatementError),
    /// The statement at this index cannot share a transaction.
    Alone(usize),
    /// The commit was refused. So many had been written.
    Refused(StatementError, usize),
    /// What the server or we had planned does not hold any more.
    Outdated(StatementError),
}

/// What an error means for the transaction, when it is known whose it is.
pub(super) fn interruption(failure: Failure, index: usize) -> Interruption {
    match failure {
        Failure::Statement(_) | Failure::Skipped(_) => Interruption::Guilty,
        Failure::Conflict(error) => Interruption::Conflict(error),
        Failure::Lock(error) => Interruption::Lock(index, error),
        Failure::Alone(_) => Interruption::Alone(index),
        Failure::Replan(error) => Interruption::Outdated(error),
        Failure::Lost(cause) => Interruption::Lost(cause),
    }
}

/// What an error means for the transaction, when it is nobody's.
pub(super) fn general(failure: Failure) -> Interruption {
    match failure {
        Failure::Conflict(error) => Interruption::Conflict(error),
        Failure::Lost(cause) => Interruption::Lost(cause),
        other => Interruption::Outdated(other.statement()),
    }
}
