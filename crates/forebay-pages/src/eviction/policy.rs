//! Which page is evicted when room is needed.
//!
//! Promises: what is read once, in however many small pieces, does not push out what is read again and again. Of a loop that is
//! larger than the pool, a part stays in memory. A call frees fewer pages than it was asked for only if all that are left are
//! pinned. A call looks at only a few pages that stay pinned, unless there are no others. It takes eight bytes for each page in
//! memory, and none for an evicted one, whose own word keeps the time of the eviction.
//!
//! Works under its user's lock. Knows the names of pages; it asks a judge for their states, and knows nothing of memory, files and
//! readers.
//!
//! Two queues (2Q: Johnson and Shasha, VLDB 1994). A page enters on *probation* and leaves it in the order in which it came,
//! used or not: uses so soon after each other may be one reader's, who reads a page in pieces. A page that is loaded again
//! before as many others left as the pool holds enters *main*, where each use is worth another round (CLOCK, with counters).
//! While the pool is filling, main takes what leaves probation: a cold pool keeps what it saw first, which a loop rewards.

pub(crate) mod simulation;

use std::collections::VecDeque;

/// One of so many pages is on probation.
const ON_PROBATION: usize = 10;
/// The most uses that a page's word counts.
pub(crate) const USES_MAX: u8 = 3;

/// What a page is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageName {
    pub(crate) mapping: u32,
    pub(crate) page: u32,
}

/// Under which rule a page is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Unless it is pinned. Its word keeps the stamp, for [`Policy::entered`] when it is loaded again. Never 0.
    Anyway { stamp: u32 },
    /// Unless it is pinned, or was used: then one use less is left to it. It is not remembered.
    Unused,
}

/// What the judge says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was evicted now.
    Taken,
    /// It had uses, and has one less now. Only by [`Rule::Unused`].
    Used,
    /// Somebody holds it.
    Pinned,
    /// It is not there any more.
    Gone,
}

/// Pages in the order in which they will be asked about.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<PageName>,
    /// Those that were pinned when they were asked about last.
    held: VecDeque<PageName>,
}

/// Which queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Probation,
    Main,
}

/// The pages of a pool, in the order in which they will leave. A name is in here once, from `entered` until the judge says `Taken`
/// or `Gone` of it, or until `forget`.
pub(crate) struct Policy {
    /// How many pages the pool holds.
    frames: u32,
    probation: Queue,
    main: Queue,
    /// The next stamp, a count of evictions. Never 0.
    stamp: u32,
    /// Nothing had to leave so far.
    filling: bool,
}

impl Policy {
    /// For a pool that holds that many pages.
    pub(crate) fn new(frames: usize) -> Self {
        Self {
            frames: u32::try_from(frames).unwrap_or(u32::MAX),
            probation: Queue::default(),
            main: Queue::default(),
            stamp: 1,
            filling: true,
        }
    }

    /// A page was loaded. `remembered` is the stamp of its last eviction, if its word has one.
    pub(crate) fn entered(&mut self, page: PageName, remembered: Option<u32>) {
        // The count wraps: a stamp of 2^32 evictions ago looks new. Then a page is in main that need not be.
        let again = remembered.is_some_and(|then| self.stamp.wrapping_sub(then) <= self.frames);
        let place = if again { Place::Main } else { Place::Probation };
        if self.filling
            && self.probation_is_full()
            && let Some(oldest) = self.probation.waiting.pop_front()
        {
            self.main.waiting.push_back(oldest);
        }
        self.queue(place).waiting.push_back(page);
    }

    /// Asks about one page after another until so many are taken, or all that are left are pinned. Returns how many were taken.
    pub(crate) fn make_room(&mut self, wanted: usize, mut judge: impl FnMut(PageName, Rule) -> Fate) -> usize {
        self.filling &= wanted == 0;
        let mut taken = 0;
        // A few of the held ones each time, so that they come back when they are released; all, if that is not enough.
        for of_held in [wanted, usize::MAX] {
            for place in [Place::Probation, Place::Main] {
                taken += self.ask_held(place, of_held, wanted - taken, &mut judge);
            }
            taken += self.ask_waiting(wanted - taken, &mut judge);
            if taken == wanted {
                break;
            }
        }
        taken
    }

    /// Forgets the pages that have left, which may be loaded again at any time. Looks at all names.
    pub(crate) fn forget(&mut self, gone: impl Fn(PageName) -> bool) {
        for queue in [&mut self.probation, &mut self.main] {
            queue.waiting.retain(|page| !gone(*page));
            queue.held.retain(|page| !gone(*page));
        }
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &PageName> {
        [&self.probation, &self.main]
            .into_iter()
            .flat_map(|queue| queue.waiting.iter().chain(&queue.held))
    }

    fn queue(&mut self, place: Place) -> &mut Queue {
        match place {
            Place::Probation => &mut self.probation,
            Place::Main => &mut self.main,
        }
    }

    /// Counts those that wait: the held ones may be held for ever, and leave the others a smaller pool.
    fn probation_is_full(&self) -> bool {
        let probation = self.probation.waiting.len();
        probation * ON_PROBATION >= probation + self.main.waiting.len()
    }

    fn ask_held(
        &mut self,
        place: Place,
        most: usize,
        wanted: usize,
        judge: &mut impl FnMut(PageName, Rule) -> Fate,
    ) -> usize {
        let mut taken = 0;
        for _ in 0..self.queue(place).held.len().min(most) {
            if taken == wanted {
                break;
            }
            let page = self.queue(place).held.pop_front().expect("as many as were counted");
            taken += usize::from(self.ask(page, place, self.rule(place), judge) == Fate::Taken);
        }
        taken
    }

    fn ask_waiting(&mut self, wanted: usize, judge: &mut impl FnMut(PageName, Rule) -> Fate) -> usize {
        let mut taken = 0;
        // Readers may use pages faster than they are asked about: at some point uses do not count any more.
        let mut rounds_left = self.main.waiting.len() * usize::from(USES_MAX);
        while taken < wanted {
            let place = if self.probation_is_full() {
                Place::Probation
            } else {
                Place::Main
            };
            let rule = self.rule(if rounds_left == 0 { Place::Probation } else { place });
            let Some(page) = self.queue(place).waiting.pop_front() else {
                break;
            };
            match self.ask(page, place, rule, judge) {
                Fate::Taken => taken += 1,
                Fate::Used => rounds_left -= 1,
                Fate::Pinned | Fate::Gone => {}
            }
        }
        taken
    }

    fn rule(&self, place: Place) -> Rule {
        match place {
            Place::Probation => Rule::Anyway { stamp: self.stamp },
            Place::Main => Rule::Unused,
        }
    }

    /// Asks about a page that was taken out of its queue, and puts it where it belongs after the answer.
    fn ask(
        &mut self,
        page: PageName,
        place: Place,
        rule: Rule,
        judge: &mut impl FnMut(PageName, Rule) -> Fate,
    ) -> Fate {
        let fate = judge(page, rule);
        match fate {
            Fate::Taken if rule != Rule::Unused => self.stamp = self.stamp.wrapping_add(1).max(1),
            Fate::Taken | Fate::Gone => {}
            Fate::Used => {
                assert!(rule == Rule::Unused, "uses are asked for by one rule only");
                self.queue(place).waiting.push_back(page);
            }
            Fate::Pinned => self.queue(place).held.push_back(page),
        }
        fate
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        let queues = [&self.probation, &self.main];
        queues.iter().map(|queue| queue.waiting.len() + queue.held.len()).sum()
    }

    /// Every name that there is, once.
    #[cfg(test)]
    fn validate(&self) -> std::collections::HashSet<PageName> {
        assert!(self.stamp != 0, "0 is no stamp");
        let mut names = std::collections::HashSet::new();
        for queue in [&self.probation, &self.main] {
            for page in queue.waiting.iter().chain(&queue.held) {
                assert!(names.insert(*page), "{page:?} is in here once");
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
