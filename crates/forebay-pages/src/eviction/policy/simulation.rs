//! The policy without files and memory: which of the pages that are read, one after another, would have been there.
//!
//! Promises: what a pool of that many pages does if reads come one at a time and let go at once. Public, and hidden from the
//! documentation, for the lab, which compares policies.

use super::{Fate, PageName, Policy, Rule, USES_MAX};

/// A pool of numbers.
#[doc(hidden)]
pub struct Simulation {
    policy: Policy,
    /// By number: what its word says.
    words: Vec<Word>,
    frames: usize,
    batch: usize,
    resident: usize,
}

#[derive(Clone, Copy, Default)]
struct Word {
    is_resident: bool,
    uses: u8,
    /// 0: none.
    stamp: u32,
}

impl Simulation {
    /// Holds that many pages, and makes room for `batch` at a time.
    ///
    /// # Panics
    /// If it is to hold none, or a batch is larger than what it holds.
    pub fn new(frames: usize, batch: usize) -> Self {
        assert!((1..=frames).contains(&batch), "a batch of {batch} of {frames} pages");
        Self {
            policy: Policy::new(frames),
            words: Vec::new(),
            frames,
            batch,
            resident: 0,
        }
    }

    /// Whether the page was there. It is now. Takes memory for all pages with lower numbers.
    pub fn read(&mut self, page: u32) -> bool {
        let at = page as usize;
        if self.words.len() <= at {
            self.words.resize(at + 1, Word::default());
        }
        if self.words[at].is_resident {
            self.words[at].uses = (self.words[at].uses + 1).min(USES_MAX);
            return true;
        }
        if self.resident == self.frames {
            let words = &mut self.words;
            self.resident -= self.policy.make_room(self.batch, |page, rule| judge(words, page, rule));
        }
        self.resident += 1;
        let stamp = self.words[at].stamp;
        self.policy
            .entered(PageName { mapping: 0, page }, (stamp != 0).then_some(stamp));
        // The reader who has it loaded pins it, which is a use.
        self.words[at] = Word {
            is_resident: true,
            uses: 1,
            stamp: 0,
        };
        false
    }

    /// How many pages are there; never more than it holds.
    pub fn resident(&self) -> usize {
        self.words.iter().filter(|word| word.is_resident).count()
    }
}

fn judge(words: &mut [Word], page: PageName, rule: Rule) -> Fate {
    let word = &mut words[page.page as usize];
    let stamp = match rule {
        Rule::Anyway { stamp } => stamp,
        Rule::Unused if word.uses > 0 => {
            word.uses -= 1;
            return Fate::Used;
        }
        Rule::Unused => 0,
    };
    *word = Word {
        stamp,
        ..Word::default()
    };
    Fate::Taken
}
