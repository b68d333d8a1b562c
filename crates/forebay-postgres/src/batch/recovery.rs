//! Recovery: what follows when a transaction was rolled back or lost.
//!
//! Promises: after a lost connection, a conflict or an outdated plan a group is tried again until the batch's deadline, in
//! halves if the whole of it fails again; a statement that waits for a lock is parted from the others; one that is not tried
//! again gets its error. Knows nothing of how a transaction is run.

use std::sync::Arc;
use std::time::Instant;

use super::interruption::Interruption;
use super::state::{Batch, Group, Mode, wait_for};
use forebay_remote::settled::Settled;
use forebay_write::StatementError;

/// After so many conflicts a transaction is halved.
const CONFLICTS_MAX: u32 = 2;
/// After so many times that what was planned was outdated, no sets are tried; after twice as many, nothing is.
const REPLANS_MAX: u32 = 3;

impl Batch<'_> {
    /// What to do after a transaction that left nothing; after a loss or a conflict, at `next_try`, if there is one.
    pub(super) async fn recover(&mut self, mut group: Group, interruption: Interruption, next_try: Option<Instant>) {
        match interruption {
            Interruption::Lost(cause) => {
                group.losses += 1;
                if wait_for(next_try).await {
                    if group.losses > 1 && group.indices.len() > 1 {
                        // Twice: it may be one of them that does it.
                        let halves = group.halves().map(|half| Group { losses: 1, ..half });
                        self.next(halves);
                    } else {
                        self.next([group]);
                    }
                } else {
                    let error = self.inner.connections.unavailable(cause);
                    self.settle_all(&group.indices, &error);
                }
            }
            Interruption::Conflict(error) => {
                group.conflicts += 1;
                if !wait_for(next_try).await {
                    self.settle_all(&group.indices, &error.into());
                } else if group.conflicts > CONFLICTS_MAX && group.indices.len() > 1 {
                    let halves = group.halves();
                    self.next(halves);
                } else {
                    self.next([group]);
                }
            }
            Interruption::Guilty => {
                group.mode = Mode::Careful;
                self.next([group]);
            }
            Interruption::Lock(index, error) => self.part(group, index, error).await,
            Interruption::Table(index, error) => self.part_text(group, index, &error),
            Interruption::Alone(index) => {
                let groups = group.parted(index, Mode::Alone);
                self.next(groups);
            }
            Interruption::Refused(error, written) => {
                if group.indices.len() == 1 {
                    self.settle(group.indices[0], Err(error.into()));
                } else if written == 0 {
                    unreachable!("a transaction that wrote nothing is not committed");
                } else {
                    let halves = group.halves();
                    self.next(halves);
                }
            }
            Interruption::Outdated(error) => {
                group.replans += 1;
                self.is_renewed = true;
                if group.replans > 2 * REPLANS_MAX {
                    return self.settle_all(&group.indices, &error.into());
                }
                if group.replans >= REPLANS_MAX {
                    // The table is changed all the time. Each by itself needs no facts about it.
                    for &index in &group.indices {
                        self.plans[index].distrust_sets();
                    }
                }
                self.next([group]);
            }
        }
    }

    /// Parts the statement that waits for a lock from its neighbours.
    async fn part(&mut self, group: Group, index: usize, error: StatementError) {
        if self.is_lock_waiter || group.mode == Mode::LockWaiter {
            // It has waited for as long as it may.
            self.settle(index, Err(error.into()));
        } else if Instant::now() >= self.until() {
            // One after the other they would wait for as many locks, each a little.
            self.part_text(group, index, &error);
        } else if self.writes[index].is_ordered() {
            let groups = group.parted(index, Mode::LockWaiter);
            self.next(groups);
        } else {
            self.settled[index] = Some(Settled::Deferred);
            self.locks += 1;
            self.next([group]);
        }
    }

    /// Parts the statements of a text whose table is locked from their neighbours: all at once, as each would wait as long.
    fn part_text(&mut self, group: Group, index: usize, error: &StatementError) {
        let plan = Arc::clone(&self.plans[index]);
        let is_over = self.is_lock_waiter || group.mode == Mode::LockWaiter || Instant::now() >= self.until();
        let mut in_its_place = None;
        for &index in &group.indices {
            if self.settled[index].is_some() || !Arc::ptr_eq(&self.plans[index], &plan) {
                continue;
            }
            if is_over {
                self.settle(index, Err(error.clone().into()));
            } else if !self.writes[index].is_ordered() {
                self.settled[index] = Some(Settled::Deferred);
            } else {
                in_its_place.get_or_insert(index);
            }
        }
        match in_its_place {
            Some(index) => {
                let groups = group.parted(index, Mode::LockWaiter);
                self.next(groups);
            }
            None => self.next([group]),
        }
    }
}
