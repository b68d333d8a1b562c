//! Recovery: what follows when a transaction left nothing.
//!
//! Promises: a loss, a conflict and a plan that is outdated are tried again for as long as is tried at all, and in halves where
//! the whole fails again; who waits for a lock is parted from those who do not; whoever cannot be tried again is told why.
//! Knows nothing of how a transaction is run.

use std::sync::Arc;
use std::time::Instant;

use super::{Batch, Group, Manner, Settled};
use crate::error::Fate;
use forebay_write::StatementError;

/// After so many conflicts a transaction is halved.
const CONFLICTS_MAX: u32 = 2;
/// After so many times that what was planned was outdated, no sets are tried; after twice as many, nothing is.
const REPLANS_MAX: u32 = 3;

/// Why a transaction did not come to its end. Nothing of it is left.
pub(super) enum Trouble {
    /// The connection, before the commit was asked for.
    Lost(String),
    /// Another transaction was there first.
    Conflict(StatementError),
    /// One statement failed, or an outcome was not accepted.
    Guilty,
    /// The statement at this place waited for a lock for too long.
    Lock(usize, StatementError),
    /// As much, for the table that it names: its text could not even be prepared.
    Table(usize, StatementError),
    /// The statement at this place cannot share a transaction.
    Alone(usize),
    /// The commit was refused. So many had been written.
    Refused(StatementError, usize),
    /// What the server or we had planned does not hold any more.
    Outdated(StatementError),
}

impl Batch<'_> {
    /// What to do after a transaction that left nothing.
    pub(super) async fn recover(&mut self, mut group: Group, trouble: Trouble) {
        match trouble {
            Trouble::Lost(cause) => {
                group.losses += 1;
                if self.may_wait().await {
                    if group.losses > 1 && group.places.len() > 1 {
                        // Twice: it may be one of them that does it.
                        let halves = group.halves().map(|half| Group { losses: 1, ..half });
                        self.next(halves);
                    } else {
                        self.next([group]);
                    }
                } else {
                    let error = self.database.unavailable(&cause);
                    self.tell_all(&group.places, &error);
                }
            }
            Trouble::Conflict(error) => {
                group.conflicts += 1;
                if !self.may_wait().await {
                    self.tell_all(&group.places, &error.into());
                } else if group.conflicts > CONFLICTS_MAX && group.places.len() > 1 {
                    let halves = group.halves();
                    self.next(halves);
                } else {
                    self.next([group]);
                }
            }
            Trouble::Guilty => {
                group.manner = Manner::Careful;
                self.next([group]);
            }
            Trouble::Lock(place, error) => self.part(group, place, error).await,
            Trouble::Table(place, error) => self.part_text(group, place, &error),
            Trouble::Alone(place) => {
                let groups = group.parted(place, Manner::Alone);
                self.next(groups);
            }
            Trouble::Refused(error, written) => {
                if group.places.len() == 1 {
                    self.tell(group.places[0], Err(error.into()));
                } else if written == 0 {
                    unreachable!("a transaction that wrote nothing is not committed");
                } else {
                    let halves = group.halves();
                    self.next(halves);
                }
            }
            Trouble::Outdated(error) => {
                group.replans += 1;
                self.is_renewed = true;
                if group.replans > 2 * REPLANS_MAX {
                    return self.tell_all(&group.places, &error.into());
                }
                if group.replans >= REPLANS_MAX {
                    // The table is changed all the time. Each by itself needs no facts about it.
                    for &place in &group.places {
                        self.plans[place].distrust_sets();
                    }
                }
                self.next([group]);
            }
        }
    }

    /// Parts the statement that waits for a lock from its neighbours.
    async fn part(&mut self, group: Group, place: usize, error: StatementError) {
        if self.is_patient || group.manner == Manner::Patient {
            // It has waited for as long as it may.
            self.tell(place, Err(error.into()));
        } else if Instant::now() >= self.until {
            // One after the other they would wait for as many locks, each a little.
            self.part_text(group, place, &error);
        } else if self.writes[place].is_ordered() {
            let groups = group.parted(place, Manner::Patient);
            self.next(groups);
        } else {
            self.answers[place] = Some(Settled::Later);
            self.locks += 1;
            self.next([group]);
        }
    }

    /// Parts the statements of a text whose table is locked from their neighbours: all at once, as each would wait as long.
    fn part_text(&mut self, group: Group, place: usize, error: &StatementError) {
        let plan = Arc::clone(&self.plans[place]);
        let is_over = self.is_patient || group.manner == Manner::Patient || Instant::now() >= self.until;
        let mut in_its_place = None;
        for &place in &group.places {
            if self.answers[place].is_some() || !Arc::ptr_eq(&self.plans[place], &plan) {
                continue;
            }
            if is_over {
                self.tell(place, Err(error.clone().into()));
            } else if !self.writes[place].is_ordered() {
                self.answers[place] = Some(Settled::Later);
            } else {
                in_its_place.get_or_insert(place);
            }
        }
        match in_its_place {
            Some(place) => {
                let groups = group.parted(place, Manner::Patient);
                self.next(groups);
            }
            None => self.next([group]),
        }
    }

    /// Waits a little; whether there is time to try again.
    pub(super) async fn may_wait(&mut self) -> bool {
        match self.backoff.next_delay() {
            Some(delay) => {
                tokio::time::sleep(delay).await;
                true
            }
            None => false,
        }
    }
}

/// What an error means for the transaction, when it is known whose it is.
pub(super) fn trouble(fate: Fate, place: usize) -> Trouble {
    match fate {
        Fate::Statement(_) | Fate::Skipped(_) => Trouble::Guilty,
        Fate::Conflict(error) => Trouble::Conflict(error),
        Fate::Lock(error) => Trouble::Lock(place, error),
        Fate::Alone(_) => Trouble::Alone(place),
        Fate::Replan(error) => Trouble::Outdated(error),
        Fate::Lost(cause) => Trouble::Lost(cause),
    }
}

/// What an error means for the transaction, when it is nobody's.
pub(super) fn general(fate: Fate) -> Trouble {
    match fate {
        Fate::Conflict(error) => Trouble::Conflict(error),
        Fate::Lost(cause) => Trouble::Lost(cause),
        other => Trouble::Outdated(other.statement()),
    }
}
