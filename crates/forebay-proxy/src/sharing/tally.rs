//! Tally: how often one statement was answered, and how.
//!
//! Promises: each answer is counted once, as alone, shared, joined or remembered.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a trip is divided into.
const TRIP_PARTS: u64 = 1 << 20;

/// How often it was answered.
#[derive(Debug, Default)]
pub(super) struct Tally {
    alone: AtomicU64,
    shared: AtomicU64,
    jointly: AtomicU64,
    joined: AtomicU64,
    remembered: AtomicU64,
    trip_parts: AtomicU64,
}

/// How often it was answered until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// By itself, also where others had that answer.
    pub(crate) alone: u64,
    /// On a trip.
    pub(crate) shared: u64,
    /// Of these, as one query with others.
    pub(crate) jointly: u64,
    /// Its client had the answer to what another one had asked.
    pub(crate) joined: u64,
    /// Its client had an answer that was remembered.
    pub(crate) remembered: u64,
    /// On how many trips it was shared.
    pub(crate) trips: u64,
}

impl Counted {
    pub(crate) fn total(&self) -> u64 {
        self.alone + self.shared + self.joined + self.remembered
    }
}

impl Tally {
    pub(super) fn was_alone(&self) {
        self.alone.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn times_alone(&self) -> u64 {
        self.alone.load(Ordering::Relaxed)
    }

    /// On a trip of so many, as one query with others or not.
    pub(super) fn was_shared(&self, count: u64, is_joint: bool) {
        self.shared.fetch_add(1, Ordering::Relaxed);
        if is_joint {
            self.jointly.fetch_add(1, Ordering::Relaxed);
        }
        // A trip is counted by each who was on it, by its part.
        self.trip_parts.fetch_add(TRIP_PARTS / count.max(1), Ordering::Relaxed);
    }

    pub(super) fn was_remembered(&self) {
        self.remembered.fetch_add(1, Ordering::Relaxed);
    }

    /// So many had the answer to what another one had asked.
    pub(super) fn was_joined(&self, count: u64) {
        self.joined.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> Counted {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            alone: of(&self.alone),
            shared: of(&self.shared),
            jointly: of(&self.jointly),
            joined: of(&self.joined),
            remembered: of(&self.remembered),
            // Parts are cut off to whole ones.
            trips: (of(&self.trip_parts) + TRIP_PARTS / 2) / TRIP_PARTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_is_counted_once_by_all_who_were_on_it() {
        let tally = Tally::default();
        for count in [1, 3, 7, 1000] {
            (0..count).for_each(|_| tally.was_shared(count, count == 3));
        }
        tally.was_alone();
        tally.was_joined(2);
        tally.was_remembered();
        let counted = tally.counted();
        assert_eq!((counted.trips, counted.shared, counted.jointly), (4, 1011, 3));
        assert_eq!(counted.total(), 1011 + 1 + 2 + 1);
    }
}
