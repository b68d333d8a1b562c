//! Pins: pages that are held in memory.
//!
//! Promises: a page that was seen resident under a pin stays resident, with the same bytes, until the pin is released. Taking and
//! releasing pins costs one atomic operation a page, or two if it is the page's first use for a moment.
//!
//! Knows nothing of loading and evicting.

use std::ops::Range;
use std::sync::Arc;

use super::mapping::Mapping;
use super::word::{Pinned, State};

/// Neighbouring pages that are held. Dropping it releases them.
pub(crate) struct Pins {
    mapping: Arc<Mapping>,
    pages: Range<u32>,
}

impl Pins {
    /// Holds these pages, and adds those that are not resident to `missing`.
    #[inline]
    pub(crate) fn take(mapping: &Arc<Mapping>, pages: Range<u32>, missing: &mut Vec<u32>) -> Self {
        let now = mapping.notes.now();
        for (word, page) in mapping.words(&pages).iter().zip(pages.clone()) {
            match word.pin(now) {
                Pinned::Resident => {}
                Pinned::Missing => missing.push(page),
                Pinned::UsedAgain => mapping.notes.note(mapping.id, page),
            }
        }
        Self {
            mapping: Arc::clone(mapping),
            pages,
        }
    }

    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    pub(crate) fn pages(&self) -> Range<u32> {
        self.pages.clone()
    }

    /// A part of these pages, held by itself.
    pub(crate) fn part(&self, pages: Range<u32>) -> Self {
        assert!(
            self.pages.start <= pages.start && pages.end <= self.pages.end,
            "a part of what is held"
        );
        for page in pages.clone() {
            self.mapping.word(page).pin_again();
        }
        Self {
            mapping: Arc::clone(&self.mapping),
            pages,
        }
    }

    /// Whether all of them are resident: then their bytes may be read as long as this lives.
    pub(crate) fn are_resident(&self) -> bool {
        self.pages()
            .all(|page| self.mapping.word(page).state() == State::Resident)
    }
}

impl Drop for Pins {
    #[inline]
    fn drop(&mut self) {
        for word in self.mapping.words(&self.pages) {
            word.unpin();
        }
        self.mapping.pins_released(&self.pages);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;
    use crate::testing::SmallPool;

    fn land(mapping: &Mapping, pages: Range<u32>) {
        for page in pages {
            mapping.word(page).begin_load();
            mapping.word(page).finish_load();
        }
    }

    #[test]
    fn pins_say_what_is_missing_and_are_given_back_once() {
        let pool = SmallPool::start(16);
        let mapping = Arc::new(pool.mapping_of_zeros(8 * 4096));
        land(&mapping, 1..3);
        land(&mapping, 5..6);
        let mut missing = Vec::new();
        let pins = Pins::take(&mapping, 0..7, &mut missing);
        assert_eq!(missing, [0, 3, 4, 6]);
        assert!(!pins.are_resident() && pins.part(1..3).are_resident());
        let part = pins.part(2..3);
        drop(pins);
        let pinned = |mapping: &Mapping| -> Vec<u32> {
            mapping.pages().filter(|page| mapping.word(*page).is_pinned()).collect()
        };
        assert_eq!(pinned(&mapping), [2]);
        drop(part);
        assert_eq!(pinned(&mapping), [0_u32; 0]);
    }

    #[test]
    fn pins_note_the_first_use_of_a_page_for_a_moment() {
        let pool = SmallPool::start(16);
        let mapping = Arc::new(pool.mapping_of_zeros(8 * 4096));
        land(&mapping, 1..4);
        (1..3).for_each(|page| assert!(mapping.word(page).enter(0).0));
        let told = || {
            drop(Pins::take(&mapping, 0..5, &mut Vec::new()));
            let mut told = Vec::new();
            mapping.notes.read(|tag| told.push(tag));
            told
        };
        assert_eq!(told(), [0_u32; 0], "they have just entered");
        mapping.notes.loaded(8);
        let sampled = |page| mapping.notes.sampled(mapping.id, page).expect("all are of the sample");
        assert_eq!(told(), [sampled(1), sampled(2)]);
        assert_eq!(told(), [0_u32; 0], "the same moment");
    }
}
