//! The pool's time, and notes of uses: how readers tell the policy, without a lock, that pages of its sample were used.
//!
//! Promises: a page is always of the sample or never; the sample is one in 2^n pages, at random, so that of as many pages as the pool holds
//! it has at most [`SAMPLE_MAX`]. A note is told once, or lost: where more come before the next load than there is room for, or two
//! threads meet. Takes four bytes for each page of the sample that the pool has room for.
//!
//! Knows nothing of what is done with the notes.

use super::uses::{TICK_BITS, TICKS, Tick};
use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// Of the pages that the pool has room for, so many are of the sample at most.
pub(crate) const SAMPLE_MAX: usize = 512;

/// See the module.
pub(crate) struct Notes {
    /// How many pages the pool holds.
    pub(crate) frames: usize,
    now: AtomicU32,
    /// One in 2^this pages is of the sample.
    halvings: u32,
    /// 0: none, or not yet.
    places: Box<[AtomicU32]>,
    /// How many were begun since they were read last, whether there was room for them or not.
    begun: AtomicUsize,
}

impl Notes {
    /// For a pool that holds that many pages.
    pub(crate) fn new(frames: usize) -> Self {
        let halvings = (0..usize::BITS - 1)
            .find(|halvings| frames >> halvings <= SAMPLE_MAX)
            .expect("the last of them leaves 1");
        let room = (frames >> halvings).max(1);
        Self {
            frames,
            now: AtomicU32::new(0),
            halvings,
            places: (0..room).map(|_| AtomicU32::new(0)).collect(),
            begun: AtomicUsize::new(0),
        }
    }

    /// How many pages of the sample the pool has room for.
    pub(crate) fn sample(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(crate) fn now(&self) -> Tick {
        self.now.load(Ordering::Relaxed)
    }

    /// So many pages have been loaded in all. Returns what time it is now.
    pub(crate) fn loaded(&self, pages: u64) -> Tick {
        // Nobody loads so many that it wraps.
        let ticks = pages.wrapping_mul(TICKS) / self.frames.max(1) as u64;
        let now = ticks as Tick & ((1 << TICK_BITS) - 1);
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// What stands for the page in the sample, if it is of it. Never 0.
    pub(crate) fn sampled(&self, mapping: u32, page: u32) -> Option<u32> {
        let hash = mixed(u64::from(mapping) << 32 | u64::from(page));
        let is_sampled = hash & ((1 << self.halvings) - 1) == 0;
        is_sampled.then_some((hash >> 32) as u32 | 1)
    }

    /// The page was used.
    #[cold]
    pub(crate) fn note(&self, mapping: u32, page: u32) {
        let Some(tag) = self.sampled(mapping, page) else {
            return;
        };
        let at = self.begun.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.places.get(at) {
            place.store(tag, Ordering::Relaxed);
        }
    }

    /// Tells what was noted, and forgets it. What is being noted meanwhile may be told the next time, or not at all.
    pub(crate) fn read(&self, mut tell: impl FnMut(u32)) {
        if self.begun.load(Ordering::Relaxed) == 0 {
            return;
        }
        let begun = self.begun.swap(0, Ordering::Relaxed);
        for place in self.places.iter().take(begun) {
            let tag = place.swap(0, Ordering::Relaxed);
            if tag != 0 {
                tell(tag);
            }
        }
    }
}

/// All bits of the result depend on all of these (splitmix64: Steele, Lea, Flood, OOPSLA 2014).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    fn told(notes: &Notes) -> Vec<u32> {
        let mut told = Vec::new();
        notes.read(|tag| told.push(tag));
        told
    }

    #[test]
    fn the_sample_is_a_part_of_the_pages() {
        for (frames, sample, one_in) in [(1, 1, 1), (512, 512, 1), (513, 256, 2), (16_384, 512, 32)] {
            let notes = Notes::new(frames);
            assert_eq!(notes.sample(), sample, "{frames}");
            let count = (0..100_000).filter(|page| notes.sampled(3, *page).is_some()).count();
            let expected = 100_000 / one_in;
            assert!(count.abs_diff(expected) <= expected / 20, "{frames}: {count}");
        }
    }

    #[test]
    fn what_is_noted_is_told_once_and_only_of_the_sample() {
        let notes = Notes::new(1_000);
        let sampled: Vec<u32> = (0..1_000).filter_map(|page| notes.sampled(3, page)).collect();
        (0..1_000).for_each(|page| notes.note(3, page));
        assert_eq!(told(&notes), sampled);
        assert_eq!(told(&notes), []);
        notes.note(3, 0);
        (0..100).for_each(|round| (0..1_000).for_each(|page| notes.note(round, page)));
        assert_eq!(told(&notes).len(), notes.sample(), "the others are lost");
    }

    #[test]
    fn time_goes_by_as_pages_are_loaded() {
        let notes = Notes::new(1_000);
        assert_eq!(notes.now(), 0);
        assert_eq!(
            [7, 8, 1_000, 10_000].map(|pages| notes.loaded(pages)),
            [0, 1, 128, 1_280]
        );
        assert_eq!(notes.now(), 1_280);
        assert!(notes.loaded(u64::MAX) < 1 << TICK_BITS);
        assert_eq!(Notes::new(10).loaded(1), 12);
    }
}
