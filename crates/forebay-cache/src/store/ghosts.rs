//! What is remembered of those that were evicted: when they were used last, and how often.
//!
//! Promises: who was used last less than [`REACH`] capacities of misses ago is remembered, until its bucket is full; then the one that
//! was evicted longest ago is forgotten. Takes 16 bytes for each entry in the store once evictions begin, none before.
//!
//! Buckets of sixteen, a cache line. Of a key there are sixteen bits, so that one in four thousand that were not there is taken for
//! another. No queue, no links. Knows nothing of entries.

use super::node::{Tick, faded};
use super::prefetch::prefetch;

/// In capacities: how far back it remembers, and so how many are remembered for each entry.
const REACH: u32 = 4;
const WAYS: usize = 16;
/// Time is kept in units of so many ticks: 2^this.
const COARSE: u32 = 2;
const TIME_MASK: u32 = 0xFFF;
/// An empty place.
const FORGOTTEN: u32 = 0;

/// What is known of a key that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) last: Tick,
    pub(super) uses: u8,
}

pub(super) struct Ghosts {
    /// Of each: fingerprint (16 bits), time of the last use (12), uses (4). Numbers and no buckets, since of those a vector is not made
    /// from the zeros that the system has, but by writing zeros: for milliseconds, where the store is large.
    places: Vec<u32>,
    /// Where the first bucket begins, so that each is a cache line.
    first: usize,
    buckets: usize,
}

type Bucket = [u32; WAYS];

/// Which of them it holds for, a bit each. Without a branch, so that all are looked at at once.
#[inline]
fn ways(bucket: &[u32; WAYS], holds: impl Fn(u32) -> bool) -> u32 {
    let bits = bucket.iter().enumerate();
    bits.fold(0, |bits, (way, ghost)| bits | u32::from(holds(*ghost)) << way)
}

impl Ghosts {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            first: 0,
            buckets: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }

    #[inline]
    fn bucket_of(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.buckets as u64) >> 32) as usize
    }

    #[inline]
    fn bucket(&mut self, tag: u32) -> Option<&mut Bucket> {
        let begin = self.first + self.bucket_of(tag) * WAYS;
        self.places.get_mut(begin..)?.first_chunk_mut()
    }

    /// Asks the processor for the memory that the tag's bucket is in.
    #[inline]
    pub(super) fn prefetch(&self, tag: u32) {
        prefetch(
            self.places
                .as_ptr()
                .wrapping_add(self.first + self.bucket_of(tag) * WAYS),
        );
    }

    /// In the units that time is kept in.
    #[inline]
    fn age(ghost: u32, now: Tick) -> u32 {
        (now >> COARSE).wrapping_sub(ghost >> 4) & TIME_MASK
    }

    /// One of `entries` was evicted.
    #[inline]
    pub(super) fn remember(&mut self, tag: u32, memory: Memory, entries: usize) {
        let wanted = (entries * REACH as usize).div_ceil(WAYS).max(1);
        if wanted > self.buckets * 2 || self.buckets == 0 {
            self.fit(wanted);
        }
        let ghost = tag << 16 | ((memory.last >> COARSE) & TIME_MASK) << 4 | u32::from(memory.uses & 0xF);
        let bucket = self.bucket(tag).expect("there are some, and none begins past the last");
        // The latest stand first; who takes a place that was left empty leaves the others theirs.
        let empty = ways(bucket, |there| there == FORGOTTEN);
        let place = (empty.trailing_zeros() as usize).min(WAYS - 1);
        bucket.copy_within(0..place, 1);
        bucket[0] = ghost;
    }

    /// What is known of the key, if it was used in the last [`REACH`] capacities, of `span` ticks each; it is forgotten with the answer.
    #[inline]
    pub(super) fn take(&mut self, tag: u32, now: Tick, span: Tick) -> Option<Memory> {
        let bucket = self.bucket(tag)?;
        let found = ways(bucket, |ghost| ghost >> 16 == tag & 0xFFFF && ghost != FORGOTTEN);
        let ghost = bucket.get_mut(found.trailing_zeros() as usize)?;
        let taken = std::mem::replace(ghost, FORGOTTEN);
        let age = Self::age(taken, now);
        // Rather earlier than it was: who comes back at the same distance as the others has not come sooner.
        let last = (now >> COARSE).saturating_sub(age) << COARSE;
        (age << COARSE < REACH * span).then(|| Memory {
            last,
            uses: faded((taken & 0xF) as u8, last, now),
        })
    }

    /// Room for [`REACH`] times as many as there are entries. Those of before are forgotten where there are many more than there were.
    #[cold]
    fn fit(&mut self, wanted: usize) {
        // From zeros, which cost nothing until they are written to.
        self.places = vec![FORGOTTEN; (wanted + 1) * WAYS];
        self.first = self.places.as_ptr().align_offset(size_of::<Bucket>()).min(WAYS);
        self.buckets = wanted;
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    const SPAN: Tick = 128;

    /// Tags that fall into different buckets.
    fn tag(key: u32) -> u32 {
        key.wrapping_mul(0x9E37_79B9)
    }

    fn at(last: Tick, uses: u8) -> Memory {
        Memory { last, uses }
    }

    #[test]
    fn remembers_four_capacities_and_answers_once() {
        let mut ghosts = Ghosts::new();
        assert_eq!(
            ghosts.take(tag(1), 0, SPAN),
            None,
            "nothing is remembered before the first eviction"
        );
        for key in 0..128 {
            ghosts.remember(tag(key), at(4 * key, (key % 16) as u8), 128);
        }
        assert_eq!(ghosts.take(tag(127), 508, SPAN), Some(at(508, 15)));
        assert_eq!(ghosts.take(tag(127), 508, SPAN), None, "forgotten with the answer");
        assert_eq!(ghosts.take(tag(50), 508, SPAN), Some(at(200, 2)));
        assert_eq!(ghosts.take(tag(5), 540, SPAN), None, "four capacities are the horizon");
        let remembered = (0..127).filter(|&key| key != 50 && key != 5 && ghosts.take(tag(key), 508, SPAN).is_some());
        assert!(remembered.count() > 120, "few buckets overflow");
    }

    #[test]
    fn a_full_bucket_forgets_who_was_evicted_longest_ago() {
        let mut ghosts = Ghosts::new();
        for key in 0..17 {
            ghosts.remember(key + 1, at(4 * key, 1), 1);
        }
        assert_eq!(ghosts.take(17, 100, SPAN), Some(at(64, 1)));
        assert_eq!(ghosts.take(1, 100, SPAN), None);
        ghosts.remember(18, at(68, 1), 1);
        assert!(
            (2..17).chain([18]).all(|key| ghosts.take(key, 100, SPAN).is_some()),
            "the empty place is taken"
        );
    }

    #[test]
    fn what_is_long_ago_is_not_taken_for_new() {
        let mut ghosts = Ghosts::new();
        ghosts.remember(tag(1), at(1_000, 3), 100);
        assert_eq!(ghosts.take(tag(1), 1_000 + 16_000, SPAN), None);
    }

    #[test]
    fn has_a_place_for_four_times_the_entries() {
        let mut ghosts = Ghosts::new();
        ghosts.remember(tag(1), at(0, 1), 1_000);
        assert_eq!(ghosts.buckets, 250);
        ghosts.remember(tag(2), at(0, 1), 1_500);
        assert!(ghosts.take(tag(1), 0, SPAN).is_some(), "some more change nothing");
        ghosts.remember(tag(3), at(0, 1), 8_000);
        assert_eq!(ghosts.buckets, 2_000);
    }
}
