//! What the policy promises, with words that tests can look into; its order, against a naive model.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::simulation::Simulation;
use super::*;

fn name(page: u32) -> PageName {
    PageName { mapping: 7, page }
}

#[derive(Clone, Copy, Default)]
struct Word {
    is_resident: bool,
    pins: u32,
    uses: u8,
    /// 0: none.
    stamp: u32,
}

/// A pool's words, and what was asked about them.
struct Pool {
    policy: Policy,
    words: BTreeMap<u32, Word>,
    asked: usize,
}

impl Pool {
    fn new(frames: usize) -> Self {
        Self {
            policy: Policy::new(frames),
            words: BTreeMap::new(),
            asked: 0,
        }
    }

    /// Full of the pages from 0 on, of which the last tenth is on probation.
    fn full(frames: u32) -> Self {
        let mut pool = Self::new(frames as usize);
        pool.load(0..frames);
        let on_probation: Vec<u32> = pool.policy.probation.waiting.iter().map(|name| name.page).collect();
        let expected: Vec<u32> = (frames - (frames - 1).div_ceil(10)..frames).collect();
        assert_eq!(on_probation, expected, "main takes what leaves probation");
        pool
    }

    fn word(&mut self, page: u32) -> &mut Word {
        self.words.entry(page).or_default()
    }

    fn load(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            let word = self.word(page);
            assert!(!word.is_resident);
            word.is_resident = true;
            let stamp = std::mem::take(&mut word.stamp);
            self.policy.entered(name(page), (stamp != 0).then_some(stamp));
        }
    }

    fn use_once(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            let word = self.word(page);
            word.uses = (word.uses + 1).min(USES_MAX);
        }
    }

    fn pin(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            self.use_once([page]);
            self.word(page).pins += 1;
        }
    }

    fn unpin(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            self.word(page).pins -= 1;
        }
    }

    /// What was taken, in order.
    fn make_room(&mut self, wanted: usize) -> Vec<u32> {
        let mut gone = Vec::new();
        let (words, asked) = (&mut self.words, &mut self.asked);
        *asked = 0;
        let taken = self.policy.make_room(wanted, |page, rule| {
            *asked += 1;
            let word = words.get_mut(&page.page).unwrap();
            if !word.is_resident {
                return Fate::Gone;
            }
            if word.pins > 0 {
                return Fate::Pinned;
            }
            if rule == Rule::Unused && word.uses > 0 {
                word.uses -= 1;
                return Fate::Used;
            }
            let stamp = match rule {
                Rule::Anyway { stamp } => stamp,
                Rule::Unused => 0,
            };
            *word = Word {
                stamp,
                ..Word::default()
            };
            gone.push(page.page);
            Fate::Taken
        });
        assert_eq!(taken, gone.len());
        self.policy.validate();
        gone
    }
}

#[test]
fn uses_on_probation_do_not_count() {
    let mut pool = Pool::full(100);
    pool.use_once((0..100).chain(0..100).chain(0..100));
    assert_eq!(pool.make_room(1), [90]);
    pool.load([1_000]);
    assert_eq!(pool.make_room(1), [91], "in the order in which they came");
}

#[test]
fn a_page_that_comes_back_soon_enters_main() {
    for (others, again) in [(0, true), (99, true), (100, false)] {
        let mut pool = Pool::full(100);
        assert_eq!(pool.make_room(1), [90]);
        for page in 1_000..1_000 + others {
            pool.load([page]);
            assert_eq!(pool.make_room(1).len(), 1);
        }
        pool.load([90]);
        let in_main = pool.policy.main.waiting.back() == Some(&name(90));
        assert_eq!(in_main, again, "after {others} others");
    }
}

#[test]
fn who_left_main_is_not_remembered() {
    let mut pool = Pool::full(100);
    assert_eq!(pool.make_room(2), [90, 0], "probation has less than its share then");
    assert_eq!((pool.word(90).stamp, pool.word(0).stamp), (1, 0));
    pool.load([0]);
    assert_eq!(pool.policy.probation.waiting.back(), Some(&name(0)));
}

#[test]
fn in_main_a_use_is_worth_a_round() {
    let mut pool = Pool::full(10);
    assert_eq!(pool.make_room(1), [9]);
    pool.use_once([0, 1, 1, 2]);
    assert_eq!(pool.make_room(9), [3, 4, 5, 6, 7, 8, 0, 2, 1]);
    assert_eq!(pool.policy.len(), 0);
}

#[test]
fn only_a_pool_that_is_filling_puts_into_main_what_was_not_asked_for_again() {
    let mut pool = Pool::full(101);
    assert!(pool.make_room(0).is_empty(), "nothing had to go for that");
    assert!(pool.policy.filling);
    pool.make_room(50);
    let in_main = pool.policy.main.waiting.len();
    pool.load(1_000..1_050);
    assert_eq!(pool.policy.main.waiting.len(), in_main);
}

#[test]
fn what_stays_pinned_is_not_asked_about_again_and_again() {
    let mut pool = Pool::full(10_000);
    pool.pin(0..9_500);
    pool.make_room(100);
    for round in 0..200 {
        pool.load((10_000..10_100).map(|page| page + round * 100));
        assert_eq!(pool.make_room(100).len(), 100);
        // The held ones of both queues as many times as wanted, and the others.
        let first = if round == 0 { 9_500 } else { 0 };
        assert!(
            pool.asked <= 100 + 3 * 100 + first,
            "{} asked in round {round}",
            pool.asked
        );
    }
}

#[test]
fn what_is_let_go_can_be_taken_at_once_and_comes_back_with_time() {
    let mut pool = Pool::full(1_000);
    pool.pin(0..1_000);
    assert!(pool.make_room(10).is_empty(), "all are pinned");
    pool.unpin([500, 999]);
    assert_eq!(pool.make_room(10), [999, 500], "whoever needs them finds them");
    pool.unpin(0..500);
    for page in 2_000..2_100 {
        pool.load([page]);
        assert_eq!(pool.make_room(1).len(), 1);
    }
    assert!(
        pool.policy.main.waiting.len() >= 90 && pool.policy.len() == 998,
        "one a call, and none of those that are pinned"
    );
}

#[test]
fn readers_who_use_pages_all_the_time_do_not_keep_it_from_ending() {
    let mut pool = Pool::full(1_000);
    let mut asked = 0;
    let taken = pool.policy.make_room(600, |_, rule| {
        asked += 1;
        if rule == Rule::Unused { Fate::Used } else { Fate::Taken }
    });
    assert_eq!(taken, 600);
    assert!(asked <= 1_000 * (usize::from(USES_MAX) + 1), "{asked}");
}

#[test]
fn what_is_gone_or_forgotten_is_not_asked_about_any_more() {
    let mut pool = Pool::full(100);
    pool.pin([90]);
    assert_eq!(pool.make_room(1), [0], "90 is held now");
    pool.unpin([90]);
    for page in (0..50).chain([90]) {
        *pool.word(page) = Word::default();
    }
    pool.policy
        .forget(|page| page.mapping == 7 && (page.page < 40 || page.page == 90));
    assert_eq!(pool.policy.len(), 59);
    pool.load((0..40).chain([90]));
    let gone = pool.make_room(1_000);
    assert_eq!(gone.len(), 90);
    assert!(!gone.iter().any(|page| (40..50).contains(page)));
    assert_eq!(pool.policy.len(), 0);
}

#[test]
fn stamps_wrap_and_are_never_0() {
    let mut pool = Pool::full(100);
    pool.policy.stamp = u32::MAX;
    assert_eq!(pool.make_room(1), [90]);
    pool.load([1_000]);
    assert_eq!(pool.make_room(1), [91]);
    assert_eq!((pool.word(90).stamp, pool.word(91).stamp), (u32::MAX, 1));
    pool.load([90, 91]);
    let newest: Vec<PageName> = pool.policy.main.waiting.iter().rev().take(2).copied().collect();
    assert_eq!(newest, [name(91), name(90)], "both were remembered");
}

#[test]
fn what_is_read_again_and_again_stays_while_others_are_read_once_in_small_pieces() {
    for batch in [1, 16] {
        let mut pool = Simulation::new(256, batch);
        let mut missed = 0;
        for round in 0..10_000_u32 {
            missed += u32::from(!pool.read(round % 128));
            for _piece in 0..16 {
                pool.read(1_000 + round);
            }
        }
        // The first of each, and a second time those that did not come while the pool was filling.
        assert!(missed <= 2 * 128, "{missed} by batches of {batch}");
        assert!(pool.resident() <= 256);
    }
}

#[test]
fn of_a_loop_larger_than_the_pool_a_part_stays() {
    for pages in [264, 300, 380] {
        let mut pool = Simulation::new(256, 4);
        let hits = (0..100 * pages).filter(|read| pool.read(read % pages)).count();
        assert!(hits as f64 / f64::from(100 * pages) > 0.4, "{hits} of 100 × {pages}");
    }
}

/// 2Q as one would write it down first, for pages that nobody pins.
struct Naive {
    frames: usize,
    probation: Vec<u32>,
    main: Vec<u32>,
    uses: BTreeMap<u32, u8>,
    /// What went from probation, newest last.
    went: Vec<u32>,
    filling: bool,
}

impl Naive {
    fn probation_is_full(&self) -> bool {
        10 * self.probation.len() >= self.probation.len() + self.main.len()
    }

    fn load(&mut self, page: u32) {
        self.uses.insert(page, 0);
        if self.filling && self.probation_is_full() && !self.probation.is_empty() {
            let oldest = self.probation.remove(0);
            self.main.push(oldest);
        }
        let last = self.went.iter().rposition(|gone| *gone == page);
        match last {
            Some(at) if self.went.len() - at <= self.frames => self.main.push(page),
            _ => self.probation.push(page),
        }
        // It is remembered no more, but counts among those that went.
        for gone in self.went.iter_mut().filter(|gone| **gone == page) {
            *gone = u32::MAX;
        }
    }

    fn evict(&mut self) -> u32 {
        self.filling = false;
        if self.probation_is_full() {
            let oldest = self.probation.remove(0);
            self.went.push(oldest);
            return oldest;
        }
        loop {
            let oldest = self.main.remove(0);
            match self.uses.get_mut(&oldest) {
                Some(uses) if *uses > 0 => {
                    *uses -= 1;
                    self.main.push(oldest);
                }
                _ => return oldest,
            }
        }
    }
}

proptest! {
    #[test]
    fn pages_go_in_the_order_of_the_naive_model(
        frames in 1_u32..40,
        batch in 1_u32..8,
        reads in prop::collection::vec(0_u32..60, 0..600),
    ) {
        let batch = batch.min(frames);
        let mut pool = Pool::new(frames as usize);
        let mut naive = Naive {
            frames: frames as usize,
            probation: Vec::new(),
            main: Vec::new(),
            uses: BTreeMap::new(),
            went: Vec::new(),
            filling: true,
        };
        for page in reads {
            if pool.word(page).is_resident {
                pool.use_once([page]);
                let uses = naive.uses.get_mut(&page).unwrap();
                *uses = (*uses + 1).min(3);
            } else {
                if pool.policy.len() == frames as usize {
                    let expected: Vec<u32> = (0..batch).map(|_| naive.evict()).collect();
                    prop_assert_eq!(pool.make_room(batch as usize), expected);
                }
                pool.load([page]);
                naive.load(page);
            }
        }
    }

    #[test]
    fn as_many_are_taken_as_are_wanted_or_all_that_nobody_pins(
        steps in prop::collection::vec((0_u8..6, 0_u32..80, 1_usize..30), 0..300),
    ) {
        let mut pool = Pool::new(60);
        for (step, page, number) in steps {
            let word = *pool.word(page);
            match step {
                0 | 1 if !word.is_resident && pool.policy.len() < 60 => pool.load([page]),
                2 if word.is_resident => pool.pin([page]),
                3 if word.pins > 0 => pool.unpin([page]),
                4 if word.is_resident && word.pins == 0 => {
                    // Invalidated: not there, and forgotten before it may be loaded again.
                    *pool.word(page) = Word::default();
                    pool.policy.forget(|other| other.page == page);
                }
                5 => {
                    let free: HashSet<u32> = pool.words.iter()
                        .filter(|(_, word)| word.is_resident && word.pins == 0)
                        .map(|(page, _)| *page)
                        .collect();
                    let gone = pool.make_room(number);
                    prop_assert_eq!(gone.len(), number.min(free.len()));
                    prop_assert!(gone.iter().all(|page| free.contains(page)));
                }
                _ => {}
            }
            let resident: HashSet<PageName> = pool.words.iter()
                .filter(|(_, word)| word.is_resident)
                .map(|(page, _)| name(*page))
                .collect();
            prop_assert_eq!(pool.policy.validate(), resident);
        }
    }
}
