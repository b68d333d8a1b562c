//! State: a batch while it runs: which of its writes are settled, and the groups that come next.
//!
//! Promises: a settled write is not run again, unless what it did was rolled back. Knows nothing of how a group is run.

use std::sync::Arc;

use crate::facts::Facts;
use crate::inner::Inner;
use crate::plan::Plan;
use forebay_remote::backoff::Backoff;
use forebay_remote::settled::{Settled, WriteResult};
use forebay_write::{Write, WriteError};

/// Writes that share a transaction.
pub(super) struct Group {
    pub(super) indices: Vec<usize>,
    /// Whether a connection was lost while it ran: some statement in it may be what ends connections.
    pub(super) was_lost: bool,
}

/// A batch while it is run.
pub(super) struct Batch<'a> {
    pub(super) inner: &'a Inner,
    pub(super) writes: &'a [Write],
    pub(super) settled: Vec<Option<Settled>>,
    /// Groups still to be run, the next one last.
    pub(super) groups: Vec<Group>,
    pub(super) backoff: Backoff,
    /// Locks are waited for here, by whoever it is.
    pub(super) is_lock_waiter: bool,
    /// What the open transaction has executed.
    pub(super) executed: Vec<usize>,
    /// Plans of sets of the open transaction that rely on what was known of their tables, with that.
    pub(super) relied_on: Vec<(Arc<Plan>, Arc<Facts>)>,
    /// Transactions that were rolled back because of a set.
    pub(super) mistakes: u32,
}

impl<'a> Batch<'a> {
    pub(super) fn new(inner: &'a Inner, writes: &'a [Write], is_lock_waiter: bool) -> Self {
        Self {
            inner,
            writes,
            settled: writes.iter().map(|_| None).collect(),
            groups: vec![Group {
                indices: (0..writes.len()).collect(),
                was_lost: false,
            }],
            backoff: inner.connections.backoff(),
            is_lock_waiter,
            executed: Vec::new(),
            relied_on: Vec::new(),
            mistakes: 0,
        }
    }

    /// Nothing more can be tried: whoever is not settled gets this.
    pub(super) fn give_up(&mut self, error: &WriteError) {
        for settled in self.settled.iter_mut().filter(|settled| settled.is_none()) {
            *settled = Some(Settled::Outcome(Err(error.clone())));
        }
    }

    pub(super) fn settle(&mut self, index: usize, outcome: WriteResult) {
        self.settled[index] = Some(Settled::Outcome(outcome));
    }

    pub(super) fn settle_all(&mut self, indices: &[usize], error: &WriteError) {
        for &index in indices {
            self.settle(index, Err(error.clone()));
        }
    }

    /// These are run next; what was settled before the transaction was lost is not settled any more.
    pub(super) fn again(&mut self, indices: &[usize], was_lost: bool) {
        if indices.is_empty() {
            return;
        }
        for &index in indices {
            self.settled[index] = None;
        }
        self.groups.push(Group {
            indices: indices.to_vec(),
            was_lost,
        });
    }

    pub(super) fn again_in_halves(&mut self, indices: &[usize], was_lost: bool) {
        let (first, second) = indices.split_at(indices.len() / 2);
        self.again(second, was_lost);
        self.again(first, was_lost);
    }

    /// Those of them that have no outcome that stands are run next.
    pub(super) fn again_if_open(&mut self, indices: &[usize]) {
        let open = self.open(indices);
        self.again(&open, false);
    }

    pub(super) fn open(&self, indices: &[usize]) -> Vec<usize> {
        let stands = |settled: &Option<Settled>| {
            matches!(
                settled,
                Some(Settled::Deferred | Settled::Outcome(Err(WriteError::OutcomeUnknown { .. })))
            )
        };
        indices
            .iter()
            .copied()
            .filter(|index| !stands(&self.settled[*index]))
            .collect()
    }

    /// Whether a statement that a lock is in the way of keeps its place.
    pub(super) fn waits_in_place(&self, index: usize) -> bool {
        self.is_lock_waiter || self.writes[index].is_ordered()
    }
}

/// It may or may not be there.
pub(super) fn unknown<T>(cause: &impl ToString) -> Result<T, WriteError> {
    Err(WriteError::OutcomeUnknown {
        cause: cause.to_string(),
    })
}
