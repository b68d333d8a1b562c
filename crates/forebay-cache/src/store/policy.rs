//! Which entry goes when room is needed, by a [rule](super::rule) that may be another one each time.
//!
//! Promises: O(1) steps for each write (one eviction moves no more than [`MOVES`] entries). Works under its shard's lock; knows nothing
//! of keys, tables and readers, who only note uses in their entry's node. Does not know the store's capacity either: the shard
//! says when the store is full.
//!
//! Two queues and a [memory](super::ghosts) of what went (2Q: Johnson and Shasha, VLDB 1994). New entries are on trial in `small`; `main` has
//! those that are kept. While the store is filling, `main` takes what comes. What a use changes is seen when an entry is the oldest of its
//! queue: a reader moves nothing (CLOCK: Corbató, 1968; CLOCK-Pro: Jiang, Chen, Zhang, USENIX ATC 2005).
//!
//! - By reuse: who was used while on trial, or comes back sooner after its last use than the oldest of `main` has waited for its next,
//!   changes places with that one, which is on trial again.
//! - By frequency: who leaves `small` takes the place of the oldest of `main` if it was used more often; else it goes.
//! - In turn: of the oldest of both queues the one goes that was used longer ago, unless it was used since; then it goes on.
//!
//! Time is counted in misses, in ticks of less than a hundredth of the capacity, so that a hit writes no more often than that, and nothing at
//! all where all are hits.

use super::ghosts::{Ghosts, Memory};
use super::node::{NONE, Tick, USES_MAX, WAITING};
use super::queue::{Nodes, Queue};
use super::rule::{By, Rule};

/// Entries that an eviction moves at most: bounds the time under the lock.
const MOVES: usize = 256;
/// Of these, those that it makes room in `main` for, where a rule has just given more to it.
const TAKEN_OVER: usize = 16;
/// A capacity of misses has 2^this ticks, or up to twice as many.
const TICKS: u32 = 7;

const SMALL: u8 = WAITING + 1;
const MAIN: u8 = WAITING + 2;

pub(super) struct Policy {
    /// The shard's part of the store's capacity.
    share: u64,
    /// What the shard may weigh as it is: its share while the store is filling, what it has when the store is full.
    room: u64,
    /// The weight that was not there when it was asked for.
    missed: u64,
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
}

impl Policy {
    pub(super) fn new(share: u64) -> Self {
        Self {
            share,
            room: share,
            missed: 0,
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghosts: Ghosts::new(),
        }
    }

    pub(super) fn share(&self) -> u64 {
        self.share
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.small.len + self.main.len
    }

    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.small.weight + self.main.weight
    }

    /// In ticks.
    #[inline]
    fn ticks(&self, weight: u64) -> Tick {
        let log = self.share.max(1).ilog2();
        match log.checked_sub(TICKS) {
            Some(shift) => (weight >> shift) as Tick,
            None => (weight << (TICKS - log)) as Tick,
        }
    }

    #[inline]
    pub(super) fn now(&self) -> Tick {
        self.ticks(self.missed)
    }

    #[inline]
    fn small_target(&self, rule: Rule) -> u64 {
        // Of a large capacity the thousandths come first.
        let target = match self.share.checked_mul(rule.small) {
            Some(product) => (product + 500) / 1_000,
            None => self.share / 1_000 * rule.small,
        };
        target.max(1)
    }

    /// The store has no weight left for what is being written: evictions follow.
    #[inline]
    pub(super) fn store_is_full(&mut self) {
        self.room = self.weight();
    }

    #[inline]
    fn main_has_room(&self, weight: u64, rule: Rule) -> bool {
        self.main.weight + weight <= self.room.saturating_sub(self.small_target(rule))
    }

    /// What is known of the key of this tag, which is not there.
    #[inline]
    pub(super) fn recall(&mut self, tag: u32) -> Option<Memory> {
        let (now, span) = (self.now(), self.ticks(self.share));
        self.ghosts.take(tag, now, span)
    }

    /// Asks the processor for what [`recall`](Self::recall), or an eviction, will look at.
    #[inline]
    pub(super) fn prefetch(&self, tag: u32) {
        self.ghosts.prefetch(tag);
    }

    /// Who will go next, if nothing is used meanwhile.
    #[inline]
    pub(super) fn likely_next(&self) -> Option<u32> {
        let oldest = if self.small.oldest == NONE {
            self.main.oldest
        } else {
            self.small.oldest
        };
        Some(oldest).filter(|&oldest| oldest != NONE)
    }

    /// A new entry, whose key was not there. `filling`: nothing had to go for it.
    #[inline]
    pub(super) fn admit(&mut self, nodes: &impl Nodes, number: u32, memory: Option<Memory>, filling: bool, rule: Rule) {
        let node = nodes.node(number);
        let weight = node.weight();
        self.missed += weight;
        let uses = memory.map_or(0, |memory| memory.uses) + 1;
        node.remember(uses.min(USES_MAX), self.now());
        if filling {
            self.room = self.share.max(self.weight() + weight);
            if self.main_has_room(weight, rule) {
                self.main.push(nodes, number);
                return;
            }
        } else if let (By::Reuse, Some(memory)) = (rule.by, memory)
            && !self.main_has_room(weight, rule)
            && let Some(oldest) = self.oldest_unused(nodes, &mut { MOVES })
            && nodes.node(oldest).last_use(self.now()) < memory.last
        {
            self.main.unlink(nodes, oldest);
            self.small.push(nodes, oldest);
            self.main.push(nodes, number);
            return;
        }
        self.small.push(nodes, number);
    }

    /// An entry goes for another reason than want of room; it leaves no ghost.
    #[inline]
    pub(super) fn remove(&mut self, nodes: &impl Nodes, number: u32) {
        self.queue_of(nodes, number).unlink(nodes, number);
    }

    /// Takes up an entry in the queue where `like` was; they may be the same.
    pub(super) fn put_back(&mut self, nodes: &impl Nodes, number: u32, like: u32) {
        self.queue_of(nodes, like).push(nodes, number);
    }

    #[inline]
    fn queue_of(&mut self, nodes: &impl Nodes, number: u32) -> &mut Queue {
        if nodes.node(number).place() == MAIN {
            &mut self.main
        } else {
            &mut self.small
        }
    }

    /// The oldest of `main`, once those before it that were used have gone another round; so many may.
    #[inline]
    fn oldest_unused(&mut self, nodes: &impl Nodes, moves: &mut usize) -> Option<u32> {
        while *moves > 0 {
            let oldest = self.main.oldest;
            if oldest == NONE || !nodes.node(oldest).take_used() {
                break;
            }
            *moves -= 1;
            self.main.unlink(nodes, oldest);
            self.main.push(nodes, oldest);
        }
        Some(self.main.oldest).filter(|&oldest| oldest != NONE)
    }

    /// Picks the entry that has to go and forgets it. None: there is none.
    #[inline]
    pub(super) fn evict(&mut self, nodes: &impl Nodes, rule: Rule) -> Option<u32> {
        if rule.by == By::Turn {
            return self.evict_in_turn(nodes);
        }
        let target = self.small_target(rule);
        let mut moves = MOVES;
        while moves > 0 {
            moves -= 1;
            let is_smalls_turn = self.small.len > 0 && (self.small.weight >= target || self.main.len == 0);
            if !is_smalls_turn {
                break;
            }
            let candidate = self.small.oldest;
            let node = nodes.node(candidate);
            self.small.unlink(nodes, candidate);
            if moves >= MOVES - TAKEN_OVER && self.main_has_room(node.weight(), rule) {
                node.take_used();
                self.main.push(nodes, candidate);
                continue;
            }
            let was_used = node.take_used();
            match (self.oldest_unused(nodes, &mut moves), rule.by) {
                (None, _) if was_used => self.small.push(nodes, candidate),
                (Some(kept), By::Reuse) if was_used => {
                    self.main.unlink(nodes, kept);
                    self.main.push(nodes, candidate);
                    self.small.push(nodes, kept);
                }
                (Some(kept), By::Frequency) if node.uses(self.now()) > nodes.node(kept).uses(self.now()) => {
                    self.main.unlink(nodes, kept);
                    self.main.push(nodes, candidate);
                    return Some(self.bury(nodes, kept));
                }
                _ => return Some(self.bury(nodes, candidate)),
            }
        }
        if let Some(oldest) = self.oldest_unused(nodes, &mut moves) {
            self.main.unlink(nodes, oldest);
            return Some(self.bury(nodes, oldest));
        }
        self.evict_in_turn(nodes)
    }

    fn evict_in_turn(&mut self, nodes: &impl Nodes) -> Option<u32> {
        let now = self.now();
        for moved in 0..=MOVES {
            let (small, main) = (self.small.oldest, self.main.oldest);
            let last_use = |number: u32| nodes.node(number).last_use(now);
            let oldest = match (small, main) {
                (NONE, NONE) => return None,
                (NONE, oldest) | (oldest, NONE) => oldest,
                _ if last_use(main) <= last_use(small) => main,
                _ => small,
            };
            self.remove(nodes, oldest);
            if moved < MOVES && nodes.node(oldest).take_used() {
                self.small.push(nodes, oldest);
                continue;
            }
            return Some(self.bury(nodes, oldest));
        }
        None
    }

    #[inline]
    fn bury(&mut self, nodes: &impl Nodes, number: u32) -> u32 {
        let node = nodes.node(number);
        let now = self.now();
        let memory = Memory {
            last: node.last_use(now),
            uses: node.uses(now),
        };
        let entries = self.len() + 1;
        self.ghosts.remember(node.tag(), memory, entries);
        number
    }

    /// Those that are kept, then those on trial, the oldest of each first.
    pub(super) fn for_each(&self, nodes: &impl Nodes, mut visit: impl FnMut(u32)) {
        for mut number in [self.main.oldest, self.small.oldest] {
            while number != NONE {
                visit(number);
                number = nodes.node(number).next();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.ghosts.bytes()
    }

    #[cfg(test)]
    pub(super) fn validate(&self, nodes: &impl Nodes) {
        self.small.validate(nodes);
        self.main.validate(nodes);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::super::node::{Links, Node, Uses};
    use super::super::rule::RULES;
    use super::*;

    const REUSE: Rule = RULES[0];
    const FREQUENCY: Rule = RULES[1];
    const TURN: Rule = RULES[3];

    struct Field(Vec<(Uses, Links)>);

    impl Nodes for Field {
        fn node(&self, number: u32) -> Node<'_> {
            let (uses, links) = &self.0[number as usize];
            Node { uses, links }
        }
    }

    /// Entries of weight 1, whose tags are their numbers spread out.
    fn field(len: u32) -> Field {
        let field = Field((0..len).map(|_| (Uses::free(), Links::free())).collect());
        (0..len).for_each(|number| field.node(number).begin(number.wrapping_mul(0x9E37_79B9), 1));
        field
    }

    /// A full one of 400: the first ones are kept, the last two on trial.
    fn full(nodes: &Field) -> Policy {
        let mut policy = Policy::new(400);
        for number in 0..400 {
            policy.admit(nodes, number, None, true, REUSE);
        }
        policy.validate(nodes);
        assert_eq!((policy.small.len, policy.main.len), (2, 398), "main fills first");
        policy
    }

    fn used(policy: &Policy, nodes: &Field, number: u32) {
        nodes.node(number).uses.mark_used(policy.now());
    }

    /// As the shard does for a key that is not there: who goes for it.
    fn insert(policy: &mut Policy, nodes: &Field, number: u32, rule: Rule) -> u32 {
        let memory = policy.recall(nodes.node(number).tag());
        policy.store_is_full();
        let gone = policy.evict(nodes, rule).expect("somebody is there");
        policy.admit(nodes, number, memory, false, rule);
        policy.validate(nodes);
        assert_eq!(policy.len(), 400);
        gone
    }

    #[test]
    fn what_is_unused_on_trial_goes_in_order() {
        for rule in [REUSE, FREQUENCY] {
            let nodes = field(1_000);
            let mut policy = full(&nodes);
            for (number, gone) in [(400, 398), (401, 399), (402, 400)] {
                assert_eq!(insert(&mut policy, &nodes, number, rule), gone, "{rule:?}");
            }
        }
    }

    #[test]
    fn what_is_used_on_trial_changes_places_with_who_waits_longest() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        used(&policy, &nodes, 398);
        used(&policy, &nodes, 0);
        assert_eq!(insert(&mut policy, &nodes, 400, REUSE), 399);
        assert_eq!(nodes.node(398).place(), MAIN);
        assert_eq!(
            (nodes.node(0).place(), nodes.node(1).place()),
            (MAIN, SMALL),
            "0 was used"
        );
        assert_eq!(
            insert(&mut policy, &nodes, 401, REUSE),
            1,
            "on trial again, and not used"
        );
    }

    #[test]
    fn who_comes_back_sooner_than_the_oldest_has_waited_is_kept() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        for number in 400..500 {
            insert(&mut policy, &nodes, number, REUSE);
        }
        assert_eq!(insert(&mut policy, &nodes, 450, REUSE), 498);
        assert_eq!((nodes.node(450).place(), nodes.node(0).place()), (MAIN, SMALL));
        // All that are kept are used: nobody has waited for longer than this one.
        (1..400).for_each(|number| used(&policy, &nodes, number));
        insert(&mut policy, &nodes, 451, REUSE);
        assert_eq!(nodes.node(451).place(), SMALL);
    }

    #[test]
    fn who_was_used_more_often_is_kept() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        assert_eq!(insert(&mut policy, &nodes, 400, FREQUENCY), 398);
        assert_eq!(insert(&mut policy, &nodes, 398, FREQUENCY), 399, "used twice now");
        assert_eq!(insert(&mut policy, &nodes, 401, FREQUENCY), 400, "used as often as 0");
        assert_eq!(insert(&mut policy, &nodes, 402, FREQUENCY), 0);
        assert_eq!(nodes.node(398).place(), MAIN);
    }

    #[test]
    fn in_turn_who_was_used_has_another_round() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        used(&policy, &nodes, 0);
        used(&policy, &nodes, 2);
        let gone: Vec<u32> = (400..404)
            .map(|number| insert(&mut policy, &nodes, number, TURN))
            .collect();
        assert_eq!(gone, [398, 1, 3, 4], "0 and 2 were used since");
        for number in 404..797 {
            insert(&mut policy, &nodes, number, TURN);
        }
        assert_eq!(policy.main.len, 0, "there are no two kinds");
        let next: Vec<u32> = (797..800)
            .map(|number| insert(&mut policy, &nodes, number, TURN))
            .collect();
        assert_eq!(next, [399, 400, 0], "once");
    }

    #[test]
    fn a_rule_that_keeps_more_keeps_what_is_there() {
        let nodes = field(2_000);
        let mut policy = full(&nodes);
        for number in 400..800 {
            insert(&mut policy, &nodes, number, TURN);
        }
        assert_eq!(policy.main.len, 0);
        for number in 800..830 {
            insert(&mut policy, &nodes, number, REUSE);
        }
        assert!(policy.main.len >= 396, "{} of them in thirty steps", policy.main.len);
        let kept = (400..800).filter(|&number| nodes.node(number).place() == MAIN).count();
        assert!(kept > 360, "{kept}");
    }

    #[test]
    fn an_eviction_moves_a_bounded_number() {
        for rule in RULES {
            let nodes = field(3_000);
            let mut policy = Policy::new(2_000);
            for number in 0..2_000 {
                policy.admit(&nodes, number, None, true, rule);
            }
            (0..2_000).for_each(|number| used(&policy, &nodes, number));
            policy.store_is_full();
            assert!(policy.evict(&nodes, rule).is_some());
            let seen = (0..2_000).filter(|&number| nodes.node(number).take_used()).count();
            assert!(seen >= 2_000 - MOVES - 2, "{rule:?}: {seen}");
        }
    }

    #[test]
    fn an_empty_one_has_nothing_to_give() {
        for rule in RULES {
            let nodes = field(2);
            let mut policy = Policy::new(0);
            assert_eq!(policy.evict(&nodes, rule), None);
            policy.admit(&nodes, 0, None, false, rule);
            policy.remove(&nodes, 0);
            assert_eq!(policy.evict(&nodes, rule), None, "on hold");
            policy.put_back(&nodes, 1, 0);
            assert_eq!(policy.evict(&nodes, rule), Some(1));
            assert_eq!((policy.len(), policy.weight()), (0, 0));
        }
    }

    #[test]
    fn a_capacity_has_some_hundred_ticks_whatever_it_is() {
        for share in [1, 2, 100, 127, 128, 129, 1_000, 1 << 20, 1 << 40, u64::MAX] {
            let ticks = Policy::new(share).ticks(share);
            assert!((128..256).contains(&ticks), "{share}: {ticks}");
            assert!(RULES.iter().all(|&rule| Policy::new(share).small_target(rule) >= 1));
        }
    }
}
