//! Fingerprints of what was evicted lately.
//!
//! Promises: what was evicted within the last 0.9 capacities of evicted weight is remembered, as far as its bucket reaches; what
//! is older counts as forgotten. Eight to ten bytes for each entry that there is when evictions happen, none before.
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
