//! Pace: what any statement of a kind costs, however little it has to do: the way to the server and back, and, where rows are changed, the
//! commit; and which statement is quick, which is what it takes beyond that.
//!
//! Promises: what travels in company does not pay that cost again, so it is in nobody's way, however far away the server is and however slow
//! its disk; what has much to do by itself is, and is not quick. Of neither anything is known beforehand: the cost is no more than the least that a
//! statement took by itself of late, and no more than trips show: of `n` that travelled together in the time `t`, where one alone
//! takes `l`, each has `(t - l) / (n - 1)` to do, and the rest of `l` is the cost.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Who is not answered within this time is held up by somebody.
pub(crate) const HELD_UP: Duration = Duration::from_millis(5);
/// What takes longer than this beyond what is quick is not the way nor the commit, as far as anybody knows.
const COST_MAX: Duration = Duration::from_millis(20);
/// By this part of what a statement took longer than the least, the least is forgotten.
const FORGOTTEN_PART: u64 = 2048;
/// So many slow trips in a row, and it was not chance.
const SLOW_TRIPS_MAX: u32 = 4;
/// Of fewer who travel together nothing can be said of each.
const COUNT_MIN: u32 = 4;

/// What the statements of one kind in one company cost at least, and what is quick by that.
#[derive(Debug)]
pub(crate) struct Pace {
    quick: Duration,
    /// In nanoseconds; [`NOTHING`] before anything was seen.
    cost: AtomicU64,
    slow_trips: AtomicU32,
}

const NOTHING: u64 = u64::MAX;

impl Pace {
    /// Quick is what takes no longer than this beyond what any takes.
    pub(crate) fn new(quick: Duration) -> Self {
        Self {
            quick,
            cost: AtomicU64::new(NOTHING),
            slow_trips: AtomicU32::new(0),
        }
    }

    /// What any statement takes, as far as is known.
    pub(crate) fn cost(&self) -> Duration {
        match self.cost.load(Ordering::Relaxed) {
            NOTHING => Duration::ZERO,
            cost => Duration::from_nanos(cost),
        }
    }

    /// A statement was answered by itself within this time; whether it is quick.
    pub(crate) fn took(&self, elapsed: Duration) -> bool {
        let (elapsed_ns, cost) = (nanoseconds(elapsed), self.cost.load(Ordering::Relaxed));
        // Two at once may each forget the other's: it is an estimate, and the next one mends it.
        let now = match elapsed_ns.checked_sub(cost) {
            // Who waits for a lock says nothing of the way.
            Some(beyond) => cost.saturating_add(beyond.min(nanoseconds(COST_MAX)) / FORGOTTEN_PART),
            None => elapsed_ns,
        };
        let now = now.min(nanoseconds(COST_MAX));
        if now != cost {
            self.cost.store(now, Ordering::Relaxed);
        }
        elapsed <= Duration::from_nanos(now) + self.quick
    }

    /// So many travelled together within this time. Whether somebody on such trips is not quick: each is to show again that it is.
    pub(crate) fn travelled(&self, count: usize, elapsed: Duration) -> bool {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if count < COUNT_MIN {
            return false;
        }
        let cost = self.cost();
        let each = elapsed.saturating_sub(cost) / (count - 1);
        if each <= self.quick {
            if self.slow_trips.load(Ordering::Relaxed) != 0 {
                self.slow_trips.store(0, Ordering::Relaxed);
            }
            return false;
        }
        if self.slow_trips.fetch_add(1, Ordering::Relaxed) + 1 < SLOW_TRIPS_MAX {
            return false;
        }
        self.slow_trips.store(0, Ordering::Relaxed);
        self.cost
            .store(nanoseconds(cost.saturating_sub(each)), Ordering::Relaxed);
        true
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NOTHING - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn quick_is_what_takes_little_beyond_what_any_takes() {
        for far in [0, 1, 5, 20] {
            let pace = Pace::new(ms(1));
            assert_eq!(pace.cost(), Duration::ZERO, "nothing was seen");
            assert!(pace.took(ms(far)), "{far}");
            assert_eq!(pace.cost(), ms(far));
            assert!(pace.took(ms(far + 1)), "{far}");
            assert!(!pace.took(ms(far + 2)), "{far}");
        }
        let pace = Pace::new(ms(1));
        assert!(!pace.took(ms(30)), "no way is as long");
        assert_eq!(pace.cost(), COST_MAX);
        assert!(pace.took(ms(3)) && !pace.took(ms(5)), "the least counts");
    }

    #[test]
    fn a_way_that_has_become_longer_is_learnt() {
        let pace = Pace::new(ms(1));
        pace.took(ms(0));
        let seen = (1..).find(|_| pace.took(ms(5))).expect("it is");
        // Of five, four have to be forgotten: as many as that takes at a part of 2,048 each.
        assert!((3_000..3_600).contains(&seen), "{seen}");
    }

    #[test]
    fn one_who_waits_for_long_says_little() {
        let pace = Pace::new(ms(1));
        pace.took(ms(1));
        pace.took(Duration::from_secs(3600));
        assert!(pace.cost() < ms(1) + Duration::from_micros(10), "{:?}", pace.cost());
    }

    #[test]
    fn who_has_much_to_do_is_found_out_by_the_time_of_trips() {
        let pace = Pace::new(ms(1));
        // Each has five to do, and the way is of two.
        assert!(pace.took(ms(7)));
        let trip = |count: u64| pace.travelled(usize::try_from(count).expect("few"), ms(2 + 5 * count));
        assert!(!trip(3), "of so few nothing is said");
        let seen: Vec<bool> = (0..4).map(|_| trip(10)).collect();
        assert_eq!(seen, [false, false, false, true]);
        assert_eq!(pace.cost(), ms(2));
        assert!(!pace.took(ms(7)), "it is not quick any more");
        assert!(pace.took(ms(3)), "another one is");
    }

    #[test]
    fn one_slow_trip_among_others_is_chance() {
        let pace = Pace::new(ms(1));
        pace.took(ms(2));
        for _ in 0..100 {
            assert!((0..3).all(|_| !pace.travelled(10, ms(100))));
            assert!(!pace.travelled(10, ms(11)));
        }
        assert_eq!(pace.cost(), ms(2));
    }
}
