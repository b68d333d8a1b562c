//! State: a batch while it runs: which of its writes are settled, and the groups that come next.
//!
//! Promises: a settled write is not run again. Knows nothing of how a group is run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::inner::Inner;
use crate::plan::Plan;
use forebay_remote::backoff::Backoff;
use forebay_remote::settled::{Settled, WriteResult};
use forebay_write::{Write, WriteError};

/// Writes that are run together, by their indices in the batch.
pub(super) struct Group {
    pub(super) indices: Vec<usize>,
    pub(super) mode: Mode,
    pub(super) conflicts: u32,
    pub(super) replans: u32,
    /// Connections that were lost while it ran: some statement in it may be what ends connections.
    pub(super) losses: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// In one transaction, sent without waiting for answers between.
    Optimistic,
    /// In one transaction, in subtransactions.
    Careful,
    /// Outside a transaction; it is one statement.
    Alone,
    /// Waiting for locks; it is one statement.
    LockWaiter,
}

/// A batch while it is run.
pub(super) struct Batch<'a> {
    pub(super) inner: &'a Inner,
    pub(super) writes: &'a [Write],
    pub(super) plans: Vec<Arc<Plan>>,
    pub(super) settled: Vec<Option<Settled>>,
    pub(super) groups: VecDeque<Group>,
    pub(super) backoff: Backoff,
    pub(super) is_lock_waiter: bool,
    /// How many statements were deferred because of a lock.
    pub(super) locks: u32,
    /// What is prepared was forgotten once, as it may have been outdated.
    pub(super) is_renewed: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(inner: &'a Inner, writes: &'a [Write], is_lock_waiter: bool) -> Self {
        let mut plans: Vec<Arc<Plan>> = Vec::with_capacity(writes.len());
        for write in writes {
            // Neighbours mostly are the same text.
            let plan = match plans.last() {
                Some(last) if last.sql == *write.sql() => Arc::clone(last),
                _ => inner.plans.of(write.sql()),
            };
            plans.push(plan);
        }
        Self {
            inner,
            writes,
            plans,
            settled: vec![None; writes.len()],
            groups: VecDeque::new(),
            backoff: inner.connections.backoff(),
            is_lock_waiter,
            locks: 0,
            is_renewed: false,
        }
    }

    /// Puts a group at the end of the queue.
    pub(super) fn later(&mut self, indices: Vec<usize>, mode: Mode) {
        if !indices.is_empty() {
            self.groups.push_back(Group::new(indices, mode));
        }
    }

    /// Puts groups at the head of the queue, in this order.
    pub(super) fn next(&mut self, groups: impl IntoIterator<Item = Group, IntoIter: DoubleEndedIterator>) {
        for group in groups.into_iter().rev() {
            if !group.indices.is_empty() {
                self.groups.push_front(group);
            }
        }
    }

    pub(super) fn settle(&mut self, index: usize, result: WriteResult) {
        self.settled[index] = Some(Settled::Outcome(result));
    }

    pub(super) fn settle_all(&mut self, indices: &[usize], error: &WriteError) {
        for &index in indices {
            self.settle(index, Err(error.clone()));
        }
    }

    /// Whether it is to be executed; if not, it is settled.
    pub(super) fn may_run(&mut self, index: usize) -> bool {
        if self.settled[index].is_some() {
            return false;
        }
        let Err(error) = self.writes[index].claim() else {
            return true;
        };
        self.settle(index, Err(error));
        false
    }

    /// After this nothing is tried again.
    pub(super) fn until(&self) -> Instant {
        self.backoff.deadline()
    }

    /// When to try again; none if there is no time for that.
    pub(super) fn next_try(&mut self) -> Option<Instant> {
        Some(Instant::now() + self.backoff.next_delay()?)
    }

    /// Waits a little; whether there is time to try again.
    pub(super) async fn may_wait(&mut self) -> bool {
        let next_try = self.next_try();
        wait_for(next_try).await
    }
}

impl Group {
    pub(super) fn new(indices: Vec<usize>, mode: Mode) -> Self {
        Self {
            indices,
            mode,
            conflicts: 0,
            replans: 0,
            losses: 0,
        }
    }

    pub(super) fn halves(self) -> [Self; 2] {
        let (first, second) = self.indices.split_at(self.indices.len() / 2);
        [first, second].map(|indices| Self::new(indices.to_vec(), self.mode))
    }

    /// What is before that index, the one at it in a mode of its own, and what is after.
    pub(super) fn parted(self, index: usize, mode: Mode) -> [Self; 3] {
        let position = self.indices.iter().position(|&other| other == index);
        let position = position.expect("the index is one of the group's");
        let (before, after) = (&self.indices[..position], &self.indices[position + 1..]);
        [
            Self::new(before.to_vec(), self.mode),
            Self::new(vec![index], mode),
            Self::new(after.to_vec(), self.mode),
        ]
    }
}

/// Waits until then; whether there is something to wait for.
pub(super) async fn wait_for(next_try: Option<Instant>) -> bool {
    let Some(next_try) = next_try else { return false };
    tokio::time::sleep_until(next_try.into()).await;
    true
}
