//! The capacity and what of it is taken: one number for the whole store, whatever the shards hold.
//!
//! Promises:
//! - What is taken never exceeds the capacity, at no instant: weight is reserved before an entry is linked, and given back after
//!   one was unlinked.
//! - A reservation that is not spent is given back, also by a panic.
//!
//! Knows nothing of entries.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) struct Budget {
    capacity: u64,
    /// What is linked or reserved: at most `capacity`. Relaxed throughout: the sum is the only thing that it orders.
    taken: AtomicU64,
}

/// Weight that is taken but not linked yet (or no longer): one writer's.
pub(super) struct Reservation<'a> {
    budget: &'a Budget,
    held: u64,
}

impl Budget {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            taken: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Gives back what an unlinked entry had.
    #[inline]
    pub(super) fn give_back(&self, weight: u64) {
        if weight > 0 {
            let before = self.taken.fetch_sub(weight, Relaxed);
            debug_assert!(before >= weight, "only what was taken is given back");
        }
    }

    #[inline]
    pub(super) fn reserve(&self) -> Reservation<'_> {
        Reservation { budget: self, held: 0 }
    }
}

impl Reservation<'_> {
    /// What is still missing to hold `weight`.
    #[inline]
    pub(super) fn missing(&self, weight: u64) -> u64 {
        weight.saturating_sub(self.held)
    }

    /// Holds at least `weight` from now on, if that much is free.
    #[inline]
    pub(super) fn raise_to(&mut self, weight: u64) -> bool {
        let missing = self.missing(weight);
        let within = |taken: u64| taken.checked_add(missing).filter(|&sum| sum <= self.budget.capacity);
        if missing > 0 && self.budget.taken.fetch_update(Relaxed, Relaxed, within).is_err() {
            return false;
        }
        self.held += missing;
        true
    }

    /// Takes over what an entry had that was unlinked.
    #[inline]
    pub(super) fn inherit(&mut self, weight: u64) {
        self.held += weight;
    }

    /// The weight is an entry's now.
    #[inline]
    pub(super) fn spend(&mut self, weight: u64) {
        debug_assert!(self.held >= weight, "reserved before it is linked");
        self.held -= weight;
    }
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.budget.give_back(self.held);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_and_not_spent_goes_back() {
        let budget = Budget::new(10);
        let mut one = budget.reserve();
        assert!(one.raise_to(6) && one.raise_to(4), "it holds more than that");
        let mut other = budget.reserve();
        assert!(!other.raise_to(5) && other.raise_to(4), "all or nothing");
        assert_eq!((budget.taken(), one.missing(8), other.missing(4)), (10, 2, 0));
        one.spend(5);
        drop((one, other));
        assert_eq!(budget.taken(), 5, "what is spent stays taken");
        let mut third = budget.reserve();
        third.inherit(5);
        assert!(third.raise_to(10) && !third.raise_to(11));
        drop(third);
        assert_eq!(budget.taken(), 0);
        assert!(!budget.reserve().raise_to(u64::MAX), "no overflow");
    }

    #[test]
    fn reservations_at_once_stay_within() {
        let budget = Budget::new(7);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut reservation = budget.reserve();
                        reservation.raise_to(3);
                        assert!(budget.taken() <= 7);
                    }
                });
            }
        });
        assert_eq!(budget.taken(), 0);
    }
}
