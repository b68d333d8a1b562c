//! What the queues promise, with pages that tests can look into; their order, against naive models.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::super::rule::RULES;
use super::*;

const REUSE: Rule = RULES[0];
const FREQUENCY: Rule = RULES[1];
const TURN: Rule = RULES[3];

#[derive(Clone, Copy, Default)]
struct Page {
    is_there: bool,
    holders: u32,
    uses: Uses,
    again: bool,
}

#[derive(Default)]
struct Field {
    pages: BTreeMap<u32, Page>,
    looks: usize,
    went: Vec<u32>,
    /// They are used again before each look.
    always_used: bool,
}

impl Pages<u32> for Field {
    fn look(&mut self, name: u32) -> Look {
        self.looks += 1;
        let page = self.pages.get_mut(&name).expect("only what was admitted is looked at");
        page.again |= self.always_used;
        match page {
            Page { is_there: false, .. } => Look::Gone,
            Page { holders: 1.., .. } => Look::Held,
            Page { uses, again, .. } => Look::Free {
                uses: *uses,
                again: *again,
            },
        }
    }

    fn spend(&mut self, name: u32) {
        self.pages.get_mut(&name).expect("known").again = false;
    }

    fn take(&mut self, name: u32) -> bool {
        let page = self.pages.get_mut(&name).expect("known");
        let is_free = page.is_there && page.holders == 0;
        if is_free {
            page.is_there = false;
            page.again = false;
            self.went.push(name);
        }
        is_free
    }
}

/// A pool's queues, its pages, and what time it is: a tick a load.
struct Pool {
    queues: Queues<u32>,
    field: Field,
    now: Tick,
}

impl Pool {
    fn new(frames: usize) -> Self {
        Self {
            queues: Queues::new(frames),
            field: Field::default(),
            now: 0,
        }
    }

    /// Full of the pages from 0 on: all in main, but for the last ones.
    fn full(frames: u32) -> Self {
        let mut pool = Self::new(frames as usize);
        pool.load(0..frames, REUSE);
        let on_probation = pool.queues.on_probation(REUSE);
        assert_eq!(pool.queues.probation.waiting.len(), on_probation, "main fills first");
        pool
    }

    fn page(&mut self, page: u32) -> &mut Page {
        self.field.pages.entry(page).or_default()
    }

    fn load(&mut self, pages: impl IntoIterator<Item = u32>, rule: Rule) {
        for name in pages {
            self.now += 1;
            let now = self.now;
            let page = self.page(name);
            assert!(!page.is_there);
            page.is_there = true;
            let before = page.uses;
            page.uses = before.and_now(now);
            self.queues.admit(name, before, rule, &mut self.field);
        }
    }

    fn use_again(&mut self, pages: impl IntoIterator<Item = u32>) {
        let now = self.now;
        for name in pages {
            let page = self.page(name);
            page.uses = page.uses.and_now(now);
            page.again = true;
        }
    }

    fn hold(&mut self, pages: impl IntoIterator<Item = u32>) {
        pages.into_iter().for_each(|page| self.page(page).holders += 1);
    }

    fn let_go(&mut self, pages: impl IntoIterator<Item = u32>) {
        pages.into_iter().for_each(|page| self.page(page).holders -= 1);
    }

    /// What was taken, in order.
    fn make_room(&mut self, wanted: usize, rule: Rule) -> Vec<u32> {
        self.field.looks = 0;
        self.field.went.clear();
        let taken = self.queues.make_room(wanted, rule, self.now, &mut self.field);
        assert_eq!(taken, self.field.went.len());
        self.validate();
        self.field.went.clone()
    }

    fn is_in_main(&self, page: u32) -> bool {
        self.queues.main.waiting.contains(&page)
    }

    /// Every name that there is, once.
    fn validate(&self) -> HashSet<u32> {
        let names: HashSet<u32> = self.queues.names().copied().collect();
        assert_eq!(names.len(), self.queues.len(), "a name is in here once");
        names
    }
}

#[test]
fn what_is_not_used_on_probation_goes_in_the_order_in_which_it_came() {
    for rule in [REUSE, FREQUENCY] {
        let mut pool = Pool::full(400);
        for (page, gone) in [(400, 398), (401, 399), (402, 400)] {
            assert_eq!(pool.make_room(1, rule), [gone], "{rule:?}");
            pool.load([page], rule);
        }
    }
}

#[test]
fn what_is_used_on_probation_changes_places_with_who_waits_longest() {
    let mut pool = Pool::full(400);
    pool.use_again([398, 0]);
    assert_eq!(pool.make_room(1, REUSE), [399]);
    assert!(
        pool.is_in_main(398) && pool.is_in_main(0) && !pool.is_in_main(1),
        "0 was used"
    );
    pool.load([400], REUSE);
    assert_eq!(pool.make_room(1, REUSE), [1], "on probation again, and not used");
}

#[test]
fn who_comes_back_sooner_than_the_oldest_has_waited_is_kept() {
    let mut pool = Pool::full(400);
    for page in 400..500 {
        pool.make_room(1, REUSE);
        pool.load([page], REUSE);
    }
    assert_eq!(pool.make_room(1, REUSE), [498]);
    pool.load([450], REUSE);
    assert!(pool.is_in_main(450) && !pool.is_in_main(0));
    // All that are kept are used: nobody has waited for longer than this one.
    pool.use_again(1..398);
    pool.make_room(1, REUSE);
    pool.load([451], REUSE);
    assert!(!pool.is_in_main(451));
}

#[test]
fn who_was_used_more_often_is_kept() {
    let mut pool = Pool::full(400);
    assert_eq!(pool.make_room(1, FREQUENCY), [398]);
    pool.load([398], FREQUENCY);
    assert_eq!(
        pool.make_room(1, FREQUENCY),
        [399],
        "used as often as the oldest of main"
    );
    pool.load([400], FREQUENCY);
    assert_eq!(pool.make_room(1, FREQUENCY), [0], "398 was loaded twice");
    assert!(pool.is_in_main(398));
}

#[test]
fn in_turn_who_was_used_goes_round() {
    let mut pool = Pool::full(400);
    pool.use_again([0, 2]);
    assert_eq!(pool.make_room(4, TURN), [398, 1, 3, 4], "0 and 2 were used last");
    assert_eq!(pool.make_room(393, TURN), (5..398).collect::<Vec<u32>>());
    assert_eq!(pool.make_room(5, TURN), [399, 0, 2], "once");
}

#[test]
fn a_rule_that_keeps_more_keeps_what_is_there() {
    let mut pool = Pool::full(400);
    for page in 400..800 {
        pool.make_room(1, TURN);
        pool.load([page], TURN);
    }
    assert!(pool.queues.main.waiting.is_empty(), "there are no two kinds");
    for page in 800..830 {
        pool.make_room(1, REUSE);
        pool.load([page], REUSE);
    }
    assert!(pool.queues.main.waiting.len() >= 396);
    let kept = (400..800).filter(|page| pool.is_in_main(*page)).count();
    assert!(kept > 360, "{kept}");
}

#[test]
fn what_is_freed_at_a_time_is_probations_part() {
    // A two-hundredth of the pool is 20 pages.
    for (batch, come_and_go) in [(1, 20), (40, 41)] {
        let mut pool = Pool::full(4_000);
        let mut page = 4_000;
        for _ in 0..100 {
            let count = pool.make_room(batch, REUSE).len() as u32;
            pool.load(page..page + count, REUSE);
            page += count;
        }
        let kept = (0..4_000).filter(|page| pool.is_in_main(*page)).count();
        assert!(kept >= 4_000 - come_and_go, "{kept} are kept, {batch} at a time");
    }
}

#[test]
fn what_stays_held_is_not_looked_at_again_and_again() {
    for rule in RULES {
        let mut pool = Pool::full(10_000);
        pool.hold(0..9_500);
        pool.make_room(100, rule);
        for round in 0..200 {
            let first = 10_000 + round * 100;
            pool.load(first..first + 100, rule);
            assert_eq!(pool.make_room(100, rule).len(), 100);
            // The held ones of both queues as many times as wanted, and a few looks for each that goes; the first rounds meet them.
            let looks = pool.field.looks;
            assert!(
                round == 0 || looks <= 200 + 5 * 100,
                "{looks} in round {round}, {rule:?}"
            );
        }
    }
}

#[test]
fn what_is_let_go_can_be_taken_at_once_and_comes_back_with_time() {
    for rule in RULES {
        let mut pool = Pool::full(1_000);
        pool.hold(0..1_000);
        assert!(pool.make_room(10, rule).is_empty(), "all are held");
        pool.let_go([500, 999]);
        let mut gone = pool.make_room(10, rule);
        gone.sort_unstable();
        assert_eq!(gone, [500, 999], "whoever needs them finds them, {rule:?}");
        pool.let_go(0..500);
        for page in 2_000..2_100 {
            pool.load([page], rule);
            assert_eq!(pool.make_room(1, rule).len(), 1);
        }
        let held = pool.queues.len() - pool.queues.waiting();
        assert!((498..998 - 90).contains(&held), "{held} are left aside, {rule:?}");
    }
}

#[test]
fn readers_who_use_pages_all_the_time_do_not_keep_it_from_ending() {
    for rule in RULES {
        let mut pool = Pool::full(300);
        pool.field.always_used = true;
        assert_eq!(pool.make_room(200, rule).len(), 200, "{rule:?}");
    }
}

/// Else the first page that has to leave after a long time, or one that comes back, has the whole of a large pool looked at.
#[test]
fn however_many_pages_were_used_a_call_passes_over_few_and_the_next_goes_on_from_there() {
    for rule in RULES {
        let mut pool = Pool::full(100_000);
        pool.use_again(0..100_000);
        pool.page(40_000).again = false;
        let (at_least, for_each) = PASSED_OVER;
        let mut gone = Vec::new();
        for _ in 0..40_000 / at_least + 1 {
            assert_eq!(pool.make_room(4, rule).len(), 4);
            gone.extend_from_slice(&pool.field.went);
            let looks = pool.field.looks;
            // In turn the oldest of both queues are looked at.
            assert!(looks <= 2 * (at_least + 4 * for_each) + 50, "{looks} looks, {rule:?}");
        }
        assert!(
            rule.by != By::Reuse || gone.contains(&40_000),
            "who was not used is found, {rule:?}"
        );
        pool.use_again(pool.validate());
        let (now, looks) = (pool.now, pool.field.looks);
        pool.page(200_000).uses = Uses::default().and_now(now);
        pool.load([200_000], rule);
        let looks = pool.field.looks - looks;
        assert!(looks <= 2 * for_each, "{looks} looks to admit one, {rule:?}");
    }
}

#[test]
fn who_comes_to_be_held_just_when_it_is_taken_is_put_aside() {
    /// Says of all that they are free, and that they are held when they are taken.
    struct Late;
    impl Pages<u32> for Late {
        fn look(&mut self, _: u32) -> Look {
            Look::Free {
                uses: Uses::default(),
                again: false,
            }
        }
        fn spend(&mut self, _: u32) {}
        fn take(&mut self, _: u32) -> bool {
            false
        }
    }
    for rule in RULES {
        let mut pool = Pool::full(100);
        assert_eq!(pool.queues.make_room(10, rule, 0, &mut Late), 0);
        assert_eq!(pool.validate().len(), 100, "{rule:?}");
    }
}

#[test]
fn what_is_gone_or_forgotten_is_not_looked_at_any_more() {
    let mut pool = Pool::full(100);
    pool.hold([99]);
    assert_eq!(pool.make_room(1, REUSE), [0], "99 is held now");
    pool.let_go([99]);
    for page in (1..50).chain([99]) {
        pool.page(page).is_there = false;
    }
    pool.queues.forget(|page| page < 40 || page == 99);
    assert_eq!(pool.queues.len(), 59);
    pool.load((0..40).chain([99]), REUSE);
    let gone = pool.make_room(1_000, REUSE);
    assert_eq!(gone.len(), 90);
    assert!(!gone.iter().any(|page| (40..50).contains(page)));
    assert_eq!(pool.queues.len(), 0);
}

/// Second chance over one queue, for pages that nobody holds.
struct Naive {
    queue: Vec<u32>,
    again: HashSet<u32>,
}

impl Naive {
    fn evict(&mut self) -> u32 {
        loop {
            let oldest = self.queue.remove(0);
            if !self.again.remove(&oldest) {
                return oldest;
            }
            self.queue.push(oldest);
        }
    }
}

proptest! {
    /// The pool is filled by 0 to `frames`, all of which have gone when the models begin to be compared.
    #[test]
    fn in_turn_pages_go_as_in_the_naive_model(
        frames in 2_u32..40,
        batch in 1_u32..8,
        reads in prop::collection::vec(100_u32..160, 0..600),
    ) {
        let batch = batch.min(frames);
        let mut pool = Pool::full(frames);
        pool.make_room(frames as usize, TURN);
        let mut naive = Naive { queue: Vec::new(), again: HashSet::new() };
        for page in reads {
            if pool.page(page).is_there {
                pool.use_again([page]);
                naive.again.insert(page);
            } else {
                if pool.queues.len() == frames as usize {
                    let expected: Vec<u32> = (0..batch).map(|_| naive.evict()).collect();
                    prop_assert_eq!(pool.make_room(batch as usize, TURN), expected);
                }
                pool.load([page], TURN);
                naive.queue.push(page);
            }
        }
    }

    #[test]
    fn as_many_are_taken_as_are_wanted_or_all_that_nobody_holds(
        steps in prop::collection::vec((0_u8..7, 0_u32..80, 1_usize..30, 0..RULES.len()), 0..300),
    ) {
        let mut pool = Pool::new(60);
        for (step, name, number, rule) in steps {
            let page = *pool.page(name);
            match step {
                0 | 1 if !page.is_there && pool.queues.len() < 60 => pool.load([name], RULES[rule]),
                2 if page.is_there => pool.hold([name]),
                3 if page.holders > 0 => pool.let_go([name]),
                4 if page.is_there && page.holders == 0 => {
                    // Invalidated: not there, and forgotten before it may be loaded again.
                    pool.page(name).is_there = false;
                    pool.queues.forget(|other| other == name);
                }
                5 => {
                    let free: HashSet<u32> = pool.field.pages.iter()
                        .filter(|(_, page)| page.is_there && page.holders == 0)
                        .map(|(name, _)| *name)
                        .collect();
                    let gone = pool.make_room(number, RULES[rule]);
                    prop_assert_eq!(gone.len(), number.min(free.len()));
                    prop_assert!(gone.iter().all(|name| free.contains(name)));
                }
                6 if page.is_there => pool.use_again([name]),
                _ => {}
            }
            let there: HashSet<u32> = pool.field.pages.iter()
                .filter(|(_, page)| page.is_there)
                .map(|(name, _)| *name)
                .collect();
            prop_assert_eq!(pool.validate(), there);
        }
    }
}
