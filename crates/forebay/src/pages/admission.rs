//! Which reads may load much now, and which wait for their turn.
//!
//! Promises: a read that needs little never waits here. Of those that need much as many load at once as keep the disk busy, four at
//! least, in the order of asking. Giving up (dropping the future, or a turn) leaves nothing behind.
//!
//! Why: a load has all its frames before it begins. Fifty large reads that all begin wait for the same disk with memory in which
//! there is nothing yet, and that others could have found something in. Who waits here has none.
//!
//! Knows neither pages nor memory.

use tokio::sync::{Semaphore, SemaphorePermit};

/// What needs no more runs than this is little.
const LITTLE_RUNS: usize = 4;
/// So many times what the disk is given at once is on its way, so that it has the next when something ends.
const AHEAD: usize = 2;
/// No turn takes more than this part of what may be on its way, so that one long read does not keep all others waiting.
const TURNS_MIN: usize = 4;

/// What may be on its way for reads that need much, in pages.
pub(crate) struct Admission {
    room: Semaphore,
    little: usize,
    turn_max: u32,
}

/// The right to load. Dropping it lets the next one in.
#[must_use]
pub(crate) struct Turn<'a> {
    _room: Option<SemaphorePermit<'a>>,
}

impl Turn<'_> {
    /// For what is not to wait.
    pub(crate) fn of_its_own() -> Self {
        Self { _room: None }
    }
}

impl Admission {
    /// For so many I/Os at once, of so many pages each.
    pub(crate) fn new(depth: usize, run_pages: usize) -> Self {
        let ahead = AHEAD.saturating_mul(depth).saturating_mul(run_pages);
        let turn_max = (ahead / TURNS_MIN).clamp(1, Semaphore::MAX_PERMITS / TURNS_MIN);
        let turn_max = u32::try_from(turn_max).unwrap_or(u32::MAX);
        Self {
            room: Semaphore::new(TURNS_MIN * turn_max as usize),
            little: LITTLE_RUNS.saturating_mul(run_pages),
            turn_max,
        }
    }

    /// A turn to load so many pages, if nobody waits for one and there is room.
    pub(crate) fn try_admit(&self, pages: usize) -> Option<Turn<'_>> {
        if pages <= self.little {
            return Some(Turn::of_its_own());
        }
        let room = self.room.try_acquire_many(self.share(pages)).ok()?;
        Some(Turn { _room: Some(room) })
    }

    /// A turn to load so many pages, when it has come.
    ///
    /// # Cancel safety
    /// Dropping it gives up the place in line.
    pub(crate) async fn admit(&self, pages: usize) -> Turn<'_> {
        let room = self.room.acquire_many(self.share(pages)).await;
        Turn {
            _room: Some(room.expect("this semaphore is never closed")),
        }
    }

    fn share(&self, pages: usize) -> u32 {
        u32::try_from(pages).unwrap_or(u32::MAX).min(self.turn_max)
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use futures_util::future::poll_immediate;

    use super::*;

    /// 64 pages at once on the disk: 128 ahead, 32 a turn.
    fn admission() -> Admission {
        Admission::new(8, 8)
    }

    #[tokio::test]
    async fn four_who_need_much_load_at_once_and_the_next_waits_for_one_of_them() {
        let admission = admission();
        let mut turns: Vec<Turn<'_>> = (0..4).map_while(|_| admission.try_admit(1_000_000)).collect();
        assert_eq!(turns.len(), 4);
        assert!(admission.try_admit(33).is_none());
        let mut next = Box::pin(admission.admit(100));
        let mut last = Box::pin(admission.admit(40));
        assert!(poll_immediate(&mut next).await.is_none() && poll_immediate(&mut last).await.is_none());
        turns.pop();
        assert!(poll_immediate(&mut last).await.is_none(), "not before its turn");
        let _turn = poll_immediate(&mut next).await.expect("room for one");
        assert!(poll_immediate(&mut last).await.is_none());
        turns.pop();
        assert!(poll_immediate(&mut last).await.is_some());
    }

    #[tokio::test]
    async fn who_needs_less_leaves_room_for_more_and_who_needs_little_never_waits() {
        let small_runs = Admission::new(64, 1);
        assert_eq!(
            (0..100).map_while(|_| small_runs.try_admit(8)).count(),
            100,
            "each was let go at once"
        );
        let turns: Vec<Turn<'_>> = (0..100).map_while(|_| small_runs.try_admit(8)).collect();
        assert_eq!(turns.len(), 128 / 8);
        let mut waits = Box::pin(small_runs.admit(8));
        assert!(poll_immediate(&mut waits).await.is_none());
        let little: Vec<Turn<'_>> = (0..1000).map_while(|_| small_runs.try_admit(4)).collect();
        assert_eq!(little.len(), 1000);
        assert!(small_runs.try_admit(5).is_none());
    }

    #[tokio::test]
    async fn giving_up_leaves_nothing_behind() {
        let admission = admission();
        let turns: Vec<Turn<'_>> = (0..4).map_while(|_| admission.try_admit(64)).collect();
        let mut early = Box::pin(admission.admit(64));
        let mut late = Box::pin(admission.admit(64));
        assert!(poll_immediate(&mut early).await.is_none() && poll_immediate(&mut late).await.is_none());
        drop(early);
        drop(turns);
        // It has been given its turn, and does not come to take it.
        drop(late);
        assert_eq!(
            (0..9)
                .map_while(|_| admission.try_admit(64).map(std::mem::forget))
                .count(),
            4
        );
    }

    #[test]
    fn the_smallest_and_the_largest_settings_let_somebody_in() {
        for (depth, run_pages) in [
            (1, 1),
            (1, 1 << 20),
            (4096, 1),
            (4096, u32::MAX as usize),
            (usize::MAX, usize::MAX),
        ] {
            let admission = Admission::new(depth, run_pages);
            let turns: Vec<Turn<'_>> = (0..4).map_while(|_| admission.try_admit(usize::MAX)).collect();
            assert!(
                turns.len() == 4 || admission.little == usize::MAX,
                "{depth} of {run_pages}"
            );
        }
    }
}
