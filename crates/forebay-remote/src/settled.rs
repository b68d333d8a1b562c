//! Settled: what became of each write of a batch, and what its caller is answered.
//!
//! Promises: one answer a write, in order. Knows nothing of how a batch is run.

use forebay_write::database::{Answer, Running};
use forebay_write::{Outcome, Write, WriteError};

/// What a write ends with.
pub type WriteResult = Result<Outcome, WriteError>;

/// What became of a write.
#[derive(Debug, Clone)]
pub enum Settled {
    /// Its own outcome.
    Outcome(WriteResult),
    /// Deferred: a lock was in its way, and it is tried again without its neighbours.
    Deferred,
}

/// What the callers of a batch are answered, when every write of it is settled. `deferred` runs one that was deferred.
pub fn answers(
    settled: Vec<Option<Settled>>,
    writes: Vec<Write>,
    deferred: impl Fn(Write) -> Running<'static, WriteResult>,
) -> Vec<Answer> {
    let settled = settled.into_iter().zip(writes);
    settled
        .map(
            |(settled, write)| match settled.expect("every write of every group is settled") {
                Settled::Outcome(result) => Answer::Outcome(result),
                Settled::Deferred => Answer::Deferred(deferred(write)),
            },
        )
        .collect()
}
