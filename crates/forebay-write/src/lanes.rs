//! Lanes: as many Batchers as batches may be in flight, and which of them a write goes to.
//!
//! Promises: each lane has one batch in flight, so that what is in one lane is committed in the order of its arrival. What must
//! stay in order is in one lane, whatever the others do. What needs no order goes where it finishes soonest: a few calls to
//! idle lanes; more of them to one lane, where a row costs next to nothing beside others of its text; many to all lanes. Knows no database, and not what must stay in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_batch::batch::{self, Batcher};

use super::Write;
use super::database::Sharing;

/// A writer's lanes. Clones are handles to the same ones.
pub(super) struct Lanes<T>(Arc<[Lane<T>]>);

struct Lane<T> {
    batcher: Batcher<Write, T>,
    /// Calls that wait here, or whose batch is in flight. A hint: nothing but speed depends on it.
    calls: AtomicUsize,
}

impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Where a write has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// With all that has the same number.
    Ordered(u64),
    /// Anywhere, but best with those of the same number where there are more than a few.
    Free(u64, Sharing),
}

/// A call in its lane, until it is dropped.
pub(super) struct InLane<'a, T>(&'a Lane<T>);

impl<T> InLane<'_, T> {
    pub(super) fn batcher(&self) -> &Batcher<Write, T> {
        &self.0.batcher
    }
}

impl<T> Drop for InLane<'_, T> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: Send + 'static> Lanes<T> {
    pub(super) fn new(batchers: impl Iterator<Item = Batcher<Write, T>>) -> Self {
        let lane = |batcher| Lane {
            batcher,
            calls: AtomicUsize::new(0),
        };
        Self(batchers.map(lane).collect())
    }

    /// Whether there is but one, for all writes.
    pub(super) fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Enters the lane for a write of that place.
    pub(super) fn enter(&self, place: Place) -> InLane<'_, T> {
        let calls = |lane: usize| self.0[lane].calls.load(Ordering::Relaxed);
        let lane = &self.0[choose(place, self.0.len(), calls)];
        lane.calls.fetch_add(1, Ordering::Relaxed);
        InLane(lane)
    }

    /// As [`Batcher::drain`], of all.
    pub(super) async fn drain(&self) {
        futures_util::future::join_all(self.0.iter().map(|lane| lane.batcher.drain())).await;
    }

    /// What all of them have done so far.
    pub(super) fn stats(&self) -> batch::Stats {
        let stats = self.0.iter().map(|lane| lane.batcher.stats());
        stats.fold(batch::Stats::default(), batch::Stats::and)
    }
}

/// Which of so many lanes, by the calls that are in each.
fn choose(place: Place, lanes: usize, calls: impl Fn(usize) -> usize) -> usize {
    let home = |number: u64| usize::try_from(number % lanes as u64).expect("less than there are lanes");
    match place {
        Place::Ordered(number) => home(number),
        Place::Free(number, Sharing { few, many }) => {
            let home = home(number);
            let in_home = calls(home);
            let mut from_home = (0..lanes).map(|step| (home + step) % lanes);
            let elsewhere = if in_home < few {
                from_home.find(|lane| calls(*lane) == 0)
            } else if in_home >= many {
                from_home.min_by_key(|lane| calls(*lane))
            } else {
                None
            };
            elsewhere.unwrap_or(home)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(place: Place, calls: &[usize]) -> usize {
        choose(place, calls.len(), |lane| calls[lane])
    }

    const MANY: usize = 512;
    const FREE: Place = free(16, MANY);

    const fn free(few: usize, many: usize) -> Place {
        Place::Free(5, Sharing { few, many })
    }

    #[test]
    fn what_must_stay_in_order_stays_in_its_lane() {
        for calls in [[0, 0, 0, 0], [0, 1, 0, 0], [0, 15, 0, 0], [0, 10_000, 0, 0]] {
            assert_eq!(chosen(Place::Ordered(5), &calls), 1);
        }
    }

    #[test]
    fn a_few_go_to_lanes_that_are_idle() {
        assert_eq!(chosen(FREE, &[0, 0, 0, 0]), 1, "its own, if that is");
        assert_eq!(chosen(FREE, &[0, 1, 0, 0]), 2);
        assert_eq!(chosen(FREE, &[0, 15, 1, 1]), 0);
        assert_eq!(chosen(FREE, &[1, 15, 1, 1]), 1, "none is idle");
        assert_eq!(chosen(free(0, MANY), &[0, 1, 0, 0]), 1);
    }

    #[test]
    fn more_than_a_few_stay_together() {
        assert_eq!(chosen(FREE, &[0, 16, 0, 0]), 1);
        assert_eq!(chosen(FREE, &[0, MANY - 1, 0, 0]), 1);
        assert_eq!(chosen(free(16, usize::MAX), &[0, 10 * MANY, 0, 0]), 1);
    }

    #[test]
    fn many_go_where_the_fewest_are() {
        assert_eq!(chosen(FREE, &[2, MANY, 3, 1]), 3);
        assert_eq!(chosen(FREE, &[MANY, MANY, MANY, MANY]), 1);
        assert_eq!(chosen(FREE, &[MANY, MANY + 1, MANY - 1, MANY]), 2);
    }
}
