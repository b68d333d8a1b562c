//! Interruption: why a transaction's statements did not all run to their end.

use crate::error::Failure;

/// Why the statements after this one are not executed in this transaction.
pub(super) enum Interruption {
    /// The connection is gone.
    Lost(String),
    /// The transaction is gone, or in doubt, and it was nobody's fault.
    Conflict(Failure),
    /// The statement at this index waits for a lock in its place. What was before it stands.
    Blocked(usize, Failure),
    /// The statement at this index took the transaction with it, or left it in doubt; it has its outcome.
    Spoiled(usize),
    /// A set was not what it must be, and will not be tried again: all of it once more.
    Again,
}

impl Interruption {
    /// One of the transaction's own commands failed.
    pub(super) fn of(failure: Failure) -> Self {
        match failure {
            Failure::Lost { cause, .. } => Self::Lost(cause),
            failure => Self::Conflict(failure),
        }
    }
}
