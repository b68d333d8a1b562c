//! Trials: each [rule](super::rule) is tried on a small pool of its own, which is asked for a sample of the pages that the pool is asked for; the
//! pool follows the one that had most hits lately.
//!
//! Promises: the sample is a part of the pages, all uses of them, so that small pools of that part of the capacity show what the rules would do
//! to the whole (Waldspurger, Saemundsson, Ahmad, Park, "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC 2017).
//! No more pages are known than [`KNOWN`] times as many as a small pool holds.
//!
//! When a page was used, and how often, is the same under all rules, so it is kept once; a rule has its queues and two bits a page. Of uses within
//! a moment only the first is told, which is a hit under every rule that can be of use.
//!
//! Knows nothing of the pool: of a page it is told what stands for it.

use std::collections::HashMap;

use super::queues::{Pages, Queues};
use super::rule::{RULES, Rule};
use crate::memory::uses::{Look, TICKS, Tick, Uses};

/// How many pages are known at most, for each that a small pool holds.
const KNOWN: usize = 7;
/// When there are more, those are forgotten that no rule holds and that were used last longer ago than the loads of so many pools. What was
/// used since then are rarely more than five pools and what rules hold.
const REACH: Tick = 4 * TICKS as Tick;
const _: () = assert!(REACH.is_power_of_two());
/// A small pool makes room for one of so many of its pages at a time, as the sweeper does.
const BATCHES: usize = 64;
/// So many times are the scores compared while as many requests come as a small pool has pages.
const LOOKS: usize = 20;
/// Fewer requests say nothing.
const REQUESTS_MIN: usize = 16;
/// A score forgets as much as this at each look: what was before twenty times as many requests as a small pool has pages has a third of its worth.
const FORGETS: f64 = 1.0 / (20 * LOOKS) as f64;
/// The same of what tells that the load is another one: a third is left of what was three times as many requests ago.
const FORGETS_SOON: f64 = 1.0 / (3 * LOOKS) as f64;
/// It is another one where a rule has had so much more of the hits of late, as a part of the requests. Then what was before is no longer
/// counted.
const ANOTHER_LOAD: f64 = 0.1;
/// A rule has to be better by so many standard deviations of what chance adds between two looks.
const SURE: f64 = 2.0;
/// A rule that has done so much worse in the pool than in its small one is taken for what it has done in the pool: a sample has more
/// or less than its part of the pages, which tells where all of a loop just has no room.
const DOUBTED: f64 = 0.85;

/// A page of the sample.
#[derive(Default)]
struct Page {
    uses: Uses,
    /// By a bit each: the rules under which it is there.
    there: u8,
    /// The same: under which it was used again.
    again: u8,
}

/// The pages, as one rule sees them.
struct Miniature<'a> {
    pages: &'a mut HashMap<u32, Page>,
    bit: u8,
}

impl Miniature<'_> {
    fn page(&mut self, tag: u32) -> &mut Page {
        self.pages.get_mut(&tag).expect("a page that is there is known")
    }
}

impl Pages<u32> for Miniature<'_> {
    fn look(&mut self, tag: u32) -> Look {
        let bit = self.bit;
        let page = self.page(tag);
        Look::Free {
            uses: page.uses,
            again: page.again & bit != 0,
        }
    }

    fn spend(&mut self, tag: u32) {
        let bit = self.bit;
        self.page(tag).again &= !bit;
    }

    fn take(&mut self, tag: u32) -> bool {
        let bit = self.bit;
        let page = self.page(tag);
        page.there &= !bit;
        page.again &= !bit;
        true
    }
}

/// See the module.
pub(super) struct Trials {
    /// How many pages a small pool holds.
    capacity: usize,
    pages: HashMap<u32, Page>,
    queues: [Queues<u32>; RULES.len()],
    /// The hits of each rule.
    scores: [f64; RULES.len()],
    /// The same, of late.
    recent: [f64; RULES.len()],
    /// Of the same requests, since the rule is followed; before, that of the rule.
    score_of_the_pool: f64,
    /// Since the last look.
    requests: usize,
    /// The one to follow, by its place in [`RULES`].
    rule: usize,
}

impl Trials {
    /// With small pools of that many pages.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            pages: HashMap::new(),
            queues: RULES.map(|_| Queues::new(capacity)),
            scores: [0.0; RULES.len()],
            recent: [0.0; RULES.len()],
            score_of_the_pool: 0.0,
            requests: 0,
            rule: 0,
        }
    }

    /// The rule to follow.
    pub(super) fn rule(&self) -> Rule {
        RULES[self.rule]
    }

    /// A page of the sample is asked for; it was there, or not.
    pub(super) fn see(&mut self, tag: u32, now: Tick, is_hit: bool) {
        self.score_of_the_pool += f64::from(u8::from(is_hit));
        let page = self.pages.entry(tag).or_default();
        let before = page.uses;
        page.uses = before.and_now(now);
        let was_there = page.there;
        page.again |= was_there;
        page.there = (1 << RULES.len()) - 1;
        for (at, rule) in RULES.into_iter().enumerate() {
            let bit = 1 << at;
            if was_there & bit != 0 {
                self.scores[at] += 1.0;
                self.recent[at] += 1.0;
                continue;
            }
            let queues = &mut self.queues[at];
            let pages = &mut Miniature {
                pages: &mut self.pages,
                bit,
            };
            if queues.len() >= self.capacity {
                queues.make_room((self.capacity / BATCHES).max(1), rule, now, pages);
            }
            queues.admit(tag, before, rule, pages);
        }
        self.requests += 1;
        if self.requests >= (self.capacity / LOOKS).max(REQUESTS_MIN) {
            self.look();
        }
        if self.pages.len() > KNOWN * self.capacity {
            self.forget(now);
        }
    }

    /// Forgets until one in seven more may come.
    #[cold]
    fn forget(&mut self, now: Tick) {
        for reach in (0..=REACH.ilog2()).rev().map(|log| 1 << log).chain([0]) {
            self.pages
                .retain(|_, page| page.there != 0 || now.wrapping_sub(page.uses.last) < reach);
            if self.pages.len() < KNOWN * self.capacity * 6 / 7 {
                break;
            }
        }
    }

    fn look(&mut self) {
        let of_late = self.capacity as f64 / FORGETS_SOON / LOOKS as f64;
        let lead = self.recent[best(&self.recent)] - self.recent[self.rule];
        if lead > of_late * ANOTHER_LOAD + SURE * of_late.sqrt() {
            self.scores = self.recent;
            self.score_of_the_pool = self.recent[self.rule];
        }
        let mut scores = self.scores;
        let followed = &mut scores[self.rule];
        if self.score_of_the_pool < *followed * DOUBTED {
            *followed = self.score_of_the_pool;
        }
        let better = *followed + SURE * (self.requests as f64).sqrt();
        let best = best(&scores);
        if scores[best] > better {
            self.rule = best;
            self.score_of_the_pool = scores[best];
        }
        self.requests = 0;
        let scores = self.scores.iter_mut().chain([&mut self.score_of_the_pool]);
        scores.for_each(|score| *score -= *score * FORGETS);
        self.recent.iter_mut().for_each(|score| *score -= *score * FORGETS_SOON);
    }
}

/// Where the highest score is.
fn best(scores: &[f64; RULES.len()]) -> usize {
    (0..RULES.len())
        .max_by(|one, other| scores[*one].total_cmp(&scores[*other]))
        .expect("there are rules")
}

#[cfg(test)]
impl Trials {
    pub(super) fn known(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::super::rule::By;
    use super::*;

    /// Trials, and time as it goes by where a pool of the small ones' size loads what it has not.
    struct Lab {
        trials: Trials,
        capacity: usize,
        requests: u64,
    }

    impl Lab {
        fn new(capacity: usize) -> Self {
            Self {
                trials: Trials::new(capacity),
                capacity,
                requests: 0,
            }
        }

        fn see(&mut self, page: u32, is_hit: bool) {
            self.requests += 1;
            let now = self.requests * TICKS / self.capacity as u64;
            self.trials.see(page + 1, now as Tick, is_hit);
        }

        /// New pages, and each again soon.
        fn one_after_the_other(&mut self, requests: u32) {
            for at in 0..requests {
                let page = 1_000_000 + at / 2;
                self.see(if at % 2 == 0 { page } else { page - at % 300 }, true);
            }
        }

        fn round_and_round(&mut self, pages: u32, requests: u32, is_hit: bool) {
            (0..requests).for_each(|at| self.see(at % pages, is_hit));
        }
    }

    #[test]
    fn the_rule_follows_the_load() {
        let mut lab = Lab::new(400);
        assert_eq!(lab.trials.rule(), RULES[0]);
        lab.one_after_the_other(24_000);
        assert!(lab.trials.rule().probation >= 100, "{:?}", lab.trials.rule());
        lab.round_and_round(600, 6_000, true);
        assert!(lab.trials.rule().probation < 100, "{:?}", lab.trials.rule());
    }

    #[test]
    fn frequency_counts_where_few_pages_are_used_often() {
        let mut lab = Lab::new(500);
        let mut dice = 1_u64;
        for _ in 0..200_000 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let part = (dice >> 33) as f64 / (1_u64 << 31) as f64;
            // By Zipf's law, about: as likely between 1 and 10 as between 1,000 and 10,000.
            lab.see((20_000_f64.powf(part)) as u32, true);
        }
        assert_eq!(lab.trials.rule().by, By::Frequency);
    }

    #[test]
    fn a_rule_that_does_worse_in_the_pool_than_on_trial_is_left() {
        let mut lab = Lab::new(500);
        lab.one_after_the_other(30_000);
        let followed = lab.trials.rule();
        // All of it has room on trial; in the pool nothing is ever there.
        let is_left = (0..900).any(|round| {
            lab.round_and_round(450, 50 + round % 2, false);
            lab.trials.rule() != followed
        });
        assert!(is_left);
    }

    #[test]
    fn no_more_pages_are_known_than_the_most_and_no_small_pool_holds_more_than_it_can() {
        for capacity in [1, 3, 100, 512] {
            let mut lab = Lab::new(capacity);
            for page in 0..20 * KNOWN as u32 * 512 {
                // Time stands still for long, so that nothing is out of reach.
                lab.trials.see(page + 1, page / 4_000, false);
                assert!(lab.trials.known() <= KNOWN * capacity.max(1), "{}", lab.trials.known());
            }
            for (at, queues) in lab.trials.queues.iter().enumerate() {
                let there = lab
                    .trials
                    .pages
                    .values()
                    .filter(|page| page.there >> at & 1 == 1)
                    .count();
                assert_eq!(there, queues.len());
                assert!((1..=capacity).contains(&there), "{there} of {capacity}");
            }
        }
    }

    #[test]
    fn they_take_less_memory_than_the_policy_promises() {
        let mut lab = Lab::new(crate::memory::notes::SAMPLE_MAX);
        (0..100_000).for_each(|page| lab.trials.see(page + 1, page / 4, false));
        // hashbrown has a byte beside each place, and places by powers of two, of which it leaves an eighth empty.
        let places = (lab.trials.pages.capacity() * 8 / 7).next_power_of_two();
        let names: usize = lab.trials.queues.iter().map(Queues::places).sum();
        let bytes = places * (size_of::<(u32, Page)>() + 1) + names * size_of::<u32>();
        assert!((32 << 10..192 << 10).contains(&bytes), "{bytes}");
    }
}
