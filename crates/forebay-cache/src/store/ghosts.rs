//! Fingerprints of what was evicted lately.
//!
//! Promises: an evicted entry is remembered until entries of 0.9 times the capacity have been evicted after it, or until its
//! bucket is full; then it is forgotten. Takes eight to ten bytes for each entry in the store once evictions begin, none
//! before.
//!
//! Buckets of eight, a cache line, each fingerprint with the time of its eviction; a full bucket forgets its oldest. The clock is
//! the weight evicted so far. No queue, no links. Knows nothing of entries.

pub(super) struct Ghosts {
    buckets: Vec<[Ghost; WAYS]>,
    clock: u64,
    /// Time is kept in units of 2^shift.
    shift: u32,
    horizon: u64,
}

const WAYS: usize = 8;

#[derive(Clone, Copy)]
struct Ghost {
    /// 0: none.
    fingerprint: u32,
    time: u32,
}

const FORGOTTEN: Ghost = Ghost {
    fingerprint: 0,
    time: 0,
};

impl Ghosts {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            buckets: Vec::new(),
            clock: 0,
            // A capacity has at most 2^20 units, so that time wraps only after 4,096 capacities.
            shift: (u64::BITS - capacity.leading_zeros()).saturating_sub(20),
            horizon: capacity - capacity / 10,
        }
    }

    fn bucket_of(&self, fingerprint: u32) -> usize {
        ((u64::from(fingerprint) * self.buckets.len() as u64) >> 32) as usize
    }

    fn now(&self) -> u32 {
        (self.clock >> self.shift) as u32
    }

    fn age(&self, ghost: Ghost) -> u64 {
        u64::from(self.now().wrapping_sub(ghost.time)) << self.shift
    }

    /// An entry was evicted, one of `entries`.
    pub(super) fn remember(&mut self, tag: u32, weight: u64, entries: usize) {
        self.fit(entries);
        self.clock += weight;
        self.put(Ghost {
            fingerprint: tag.max(1),
            time: self.now(),
        });
    }

    fn put(&mut self, ghost: Ghost) {
        let bucket = self.bucket_of(ghost.fingerprint);
        let oldest_first = |&way: &usize| {
            let there = self.buckets[bucket][way];
            let replaceable = there.fingerprint == 0 || there.fingerprint == ghost.fingerprint;
            if replaceable { u64::MAX } else { self.age(there) }
        };
        let way = (0..WAYS).max_by_key(oldest_first).expect("a bucket has ways");
        self.buckets[bucket][way] = ghost;
    }

    /// The weight that was evicted since the key's entry was, if that is remembered; it is forgotten with the answer.
    pub(super) fn take(&mut self, tag: u32) -> Option<u64> {
        let fingerprint = tag.max(1);
        let bucket = self.bucket_of(fingerprint);
        let bucket = self.buckets.get_mut(bucket)?;
        let ghost = bucket.iter_mut().find(|ghost| ghost.fingerprint == fingerprint)?;
        let taken = std::mem::replace(ghost, FORGOTTEN);
        Some(self.age(taken)).filter(|&age| age < self.horizon)
    }

    /// Room for as many as there are entries.
    fn fit(&mut self, entries: usize) {
        if entries <= self.buckets.len() * WAYS && !self.buckets.is_empty() {
            return;
        }
        // A quarter more at a time, or all at once when the first one goes.
        let least = self.buckets.len() + self.buckets.len() / 4 + 1;
        let buckets = least.max(entries.div_ceil(WAYS));
        let before = std::mem::replace(&mut self.buckets, vec![[FORGOTTEN; WAYS]; buckets]);
        for ghost in before.into_iter().flatten() {
            if ghost.fingerprint != 0 && self.age(ghost) < self.horizon {
                self.put(ghost);
            }
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    /// Tags that fall into different buckets.
    fn tag(key: u32) -> u32 {
        key.wrapping_mul(0x9E37_79B9)
    }

    #[test]
    fn remembers_for_less_than_a_capacity_and_answers_once() {
        let mut ghosts = Ghosts::new(100);
        assert_eq!(
            ghosts.take(tag(1)),
            None,
            "nothing is remembered before the first eviction"
        );
        for key in 0..100 {
            ghosts.remember(tag(key), 1, 100);
        }
        assert_eq!(ghosts.take(tag(99)), Some(0));
        assert_eq!(ghosts.take(tag(99)), None, "forgotten with the answer");
        assert_eq!(ghosts.take(tag(50)), Some(49), "its age is what was evicted since");
        assert_eq!(ghosts.take(tag(5)), None, "0.9 capacities are the horizon");
        let remembered = (10..99)
            .filter(|&key| key != 50 && ghosts.take(tag(key)).is_some())
            .count();
        assert!(remembered > 60, "{remembered} of 88: few buckets overflow");
    }

    #[test]
    fn a_full_bucket_forgets_its_oldest() {
        let mut ghosts = Ghosts::new(1_000);
        for key in 0..9 {
            ghosts.remember(key + 1, 1, 8);
        }
        assert_eq!(ghosts.take(1), None);
        assert!((1..9).all(|key| ghosts.take(key + 1).is_some()));
    }

    #[test]
    fn grows_with_the_entries_and_keeps_what_it_knows() {
        let mut ghosts = Ghosts::new(10_000);
        ghosts.remember(tag(1), 1, 4);
        ghosts.remember(tag(2), 1, 8_000);
        assert!(ghosts.buckets.len() >= 1_000, "a place for each");
        assert!(ghosts.take(tag(1)).is_some() && ghosts.take(tag(2)).is_some());
    }

    #[test]
    fn large_weights_do_not_wrap_the_clock() {
        let mut ghosts = Ghosts::new(1 << 40);
        ghosts.remember(tag(1), 1 << 31, 1);
        ghosts.remember(tag(2), 1 << 39, 2);
        assert_eq!(ghosts.take(tag(1)), Some(1 << 39));
        ghosts.remember(tag(3), 1 << 39, 2);
        ghosts.remember(tag(4), 1 << 39, 2);
        assert_eq!(ghosts.take(tag(2)), None);
    }

    #[test]
    fn a_capacity_of_nothing_remembers_nothing() {
        let mut ghosts = Ghosts::new(0);
        ghosts.remember(1, 1, 0);
        assert_eq!(ghosts.take(1), None);
    }
}
