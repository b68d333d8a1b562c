//! The policy without files and memory: which of the pages that are read, one after another, would have been there.
//!
//! Promises: what a pool of that many pages does if reads come one at a time and let go at once: its words are the pool's. Public, and
//! hidden from the documentation, for the lab, which compares policies.

use std::sync::Arc;

use super::queues::Pages;
use super::{PageName, Policy};
use crate::memory::notes::Notes;
use crate::memory::uses::Look;
use crate::memory::word::{Judgement, Pinned, State, Word};

/// What all pages are of.
const MAPPING: u32 = 0;

/// A pool of numbers.
#[doc(hidden)]
pub struct Simulation {
    policy: Policy,
    notes: Arc<Notes>,
    words: Words,
    frames: usize,
    batch: usize,
    resident: usize,
}

/// By number.
struct Words(Vec<Word>);

impl Words {
    fn of(&self, name: PageName) -> &Word {
        &self.0[name.page as usize]
    }
}

impl Pages<PageName> for Words {
    fn look(&mut self, name: PageName) -> Look {
        self.of(name).look()
    }

    fn spend(&mut self, name: PageName) {
        self.of(name).spend();
    }

    fn take(&mut self, name: PageName) -> bool {
        let word = self.of(name);
        let is_taken = word.take() == Judgement::Taken;
        if is_taken {
            word.dequeue();
            word.finish_leaving();
        }
        is_taken
    }
}

impl Simulation {
    /// Holds that many pages, and makes room for `batch` at a time.
    ///
    /// # Panics
    /// If it is to hold none, or a batch is larger than what it holds.
    pub fn new(frames: usize, batch: usize) -> Self {
        assert!((1..=frames).contains(&batch), "a batch of {batch} of {frames} pages");
        let notes = Arc::new(Notes::new(frames));
        Self {
            policy: Policy::new(Arc::clone(&notes)),
            notes,
            words: Words(Vec::new()),
            frames,
            batch,
            resident: 0,
        }
    }

    /// Whether the page was there. It is now. Takes memory for all pages with lower numbers.
    pub fn read(&mut self, page: u32) -> bool {
        let at = page as usize;
        if self.words.0.len() <= at {
            self.words.0.resize_with(at + 1, Word::absent);
        }
        let pinned = self.words.0[at].pin(self.notes.now());
        match pinned {
            Pinned::Resident => {}
            Pinned::UsedAgain => self.notes.note(MAPPING, page),
            Pinned::Missing => self.load(page),
        }
        self.words.0[at].unpin();
        pinned != Pinned::Missing
    }

    fn load(&mut self, page: u32) {
        if self.resident == self.frames {
            self.resident -= self.policy.make_room(self.batch, &mut self.words);
        }
        self.resident += 1;
        let now = self.policy.loaded(1);
        let word = &self.words.0[page as usize];
        word.begin_load();
        word.finish_load();
        let (is_new, before) = word.enter(now);
        let name = PageName { mapping: MAPPING, page };
        self.policy.entered(name, before, is_new, &mut self.words);
    }

    /// How many pages are there; never more than it holds.
    pub fn resident(&self) -> usize {
        let words = self.words.0.iter();
        words.filter(|word| word.state() == State::Resident).count()
    }
}
