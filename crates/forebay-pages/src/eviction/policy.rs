//! Which page is evicted when room is needed.
//!
//! Promises: of four [rules](rule) the one is followed that has done best of late, as [trials] of them on a sample of the pages tell. What is read
//! once, in however many small pieces within a moment, is one use. A call frees fewer pages than it was asked for only if all that
//! are left are held, and looks at only a few pages that stay held, unless there are no others. It takes eight bytes for each page in memory, none
//! for an evicted one, whose own word remembers its uses, and less than 192 KiB for the trials.
//!
//! Works under its user's lock. Knows the names of pages, and asks for their uses when it needs them; knows nothing of memory, files
//! and readers.

pub(crate) mod queues;
mod rule;
pub(crate) mod simulation;
mod trials;

use std::sync::Arc;

use queues::{Pages, Queues};
use trials::Trials;

use crate::memory::notes::Notes;
use crate::memory::uses::{Tick, Uses};

/// What a page is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageName {
    pub(crate) mapping: u32,
    pub(crate) page: u32,
}

/// The pages of a pool, in the order in which they will leave.
pub(crate) struct Policy {
    queues: Queues<PageName>,
    trials: Trials,
    notes: Arc<Notes>,
    /// How many pages were loaded in all.
    loaded: u64,
}

impl Policy {
    /// For the pool whose readers make these notes.
    pub(crate) fn new(notes: Arc<Notes>) -> Self {
        Self {
            queues: Queues::new(notes.frames),
            trials: Trials::new(notes.sample()),
            notes,
            loaded: 0,
        }
    }

    /// So many pages were loaded, which enter now: what time it is for them.
    pub(crate) fn loaded(&mut self, pages: usize) -> Tick {
        let (trials, now) = (&mut self.trials, self.notes.now());
        self.notes.read(|tag| trials.see(tag, now, true));
        self.loaded += pages as u64;
        self.notes.loaded(self.loaded)
    }

    /// This is one of them. Its uses were these `before`; its name is in no queue if it `is_new`.
    pub(crate) fn entered(&mut self, page: PageName, before: Uses, is_new: bool, pages: &mut impl Pages<PageName>) {
        if let Some(tag) = self.notes.sampled(page.mapping, page.page) {
            self.trials.see(tag, self.notes.now(), false);
        }
        if is_new {
            self.queues.admit(page, before, self.trials.rule(), pages);
        }
    }

    /// Takes one page after another until there are so many, or all that are left are held. Returns how many were taken.
    pub(crate) fn make_room(&mut self, wanted: usize, pages: &mut impl Pages<PageName>) -> usize {
        self.queues
            .make_room(wanted, self.trials.rule(), self.notes.now(), pages)
    }

    /// Forgets the pages that have left, which may be loaded again at any time. Looks at all names.
    pub(crate) fn forget(&mut self, gone: impl Fn(PageName) -> bool) {
        self.queues.forget(gone);
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &PageName> {
        self.queues.names()
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests;
