//! Which entry goes when room is needed.
//!
//! Promises: O(1) steps for each write (one eviction looks at no more than [`SWEEP_STEPS`] entries of `main`); a scan or a loop
//! larger than the cache does not empty it. Works under its shard's lock; knows nothing of keys, tables and readers, who only
//! bump their entry's use counter. Does not know the store's capacity either: the shard says when the store is full.
//!
//! Two queues and a memory of what went (S3-FIFO: Yang et al., SOSP 2023; 2Q: Johnson and Shasha, VLDB 1994): new entries enter
//! `small`; those used there move to `main`; those unused are forgotten but for a fingerprint (a ghost). A key that returns while
//! its ghost is remembered challenges `main`. What differs from S3-FIFO:
//!
//! - The challenge looks at the [`LOOK`] oldest entries of `main`; one that is unused makes room. If all were used, only the
//!   oldest pays one use, and the challenger starts in `small` again. A loop larger than the cache brings at most one challenge
//!   for each entry of `main` in a round (ghosts reach back 0.9 capacities), and each entry earns one use in a round: `main`
//!   stands. (The comparison of candidate and victim is TinyLFU's: Einziger, Friedman, Manes, ACM ToS 2017.)
//! - The share of `small` adapts (the idea of ARC: Megiddo and Modha, FAST 2003), between 0.5 % and 20 %: a challenge soon after
//!   the eviction that is won says that `small` is too small, one that is lost says that `main` is worth more.
//! - While the store is filling, `main` takes what leaves `small` unseen: a cold cache keeps the first it saw, which a loop
//!   rewards.
//!
//! The constants depend on one another: with two uses paid for a lost challenge, or ghosts of 1.5 capacities, loops of 1.5 to 1.9
//! capacities collapse from 60 % hits to 1 %.

use super::ghosts::Ghosts;
use super::node::{NONE, WAITING};
use super::queue::{Nodes, Queue};

/// A use counter saturates here.
pub(super) const USES_MAX: u8 = 3;
/// Entries of `main` that a challenge looks at.
const LOOK: usize = 4;
/// Entries that an eviction gives another round at most; bounds the time under the lock.
const SWEEP_STEPS: usize = 256;

/// The queue that an entry enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Small,
    Main,
}

const SMALL: u8 = WAITING + 1;
const MAIN: u8 = WAITING + 2;

pub(super) struct Policy {
    /// The shard's part of the store's capacity.
    share: u64,
    /// What the shard may weigh as it is: its share while the store is filling, what it has when the store is full.
    room: u64,
    /// What `small` is to weigh; `small_min() <= small_target <= small_max()`.
    small_target: u64,
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
}

impl Policy {
    pub(super) fn new(share: u64) -> Self {
        let mut policy = Self {
            share,
            room: share,
            small_target: 0,
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghosts: Ghosts::new(share),
        };
        policy.small_target = policy.small_min();
        policy
    }

    pub(super) fn share(&self) -> u64 {
        self.share
    }

    pub(super) fn len(&self) -> usize {
        self.small.len + self.main.len
    }

    pub(super) fn weight(&self) -> u64 {
        self.small.weight + self.main.weight
    }

    fn small_min(&self) -> u64 {
        (self.share / 200).max(1)
    }

    fn small_max(&self) -> u64 {
        (self.share / 5).max(1)
    }

    /// The store has no weight left for what is being written: evictions follow.
    pub(super) fn store_is_full(&mut self) {
        self.room = self.weight();
    }

    /// The store has room for the entry that is being written.
    pub(super) fn store_has_room(&mut self, weight: u64) {
        self.room = self.share.max(self.weight() + weight);
    }

    pub(super) fn main_has_room(&self, weight: u64) -> bool {
        self.main.weight + weight <= self.room.saturating_sub(self.small_target)
    }

    /// How long ago, in evicted weight, the key of this tag was evicted, if that is remembered.
    pub(super) fn recall(&mut self, tag: u32) -> Option<u64> {
        self.ghosts.take(tag)
    }

    /// Evicts the oldest of the [`LOOK`] oldest entries of `main` that was not used; when all were, the oldest pays a use.
    pub(super) fn challenge(&mut self, nodes: &impl Nodes) -> Option<u32> {
        let mut number = self.main.oldest;
        for _ in 0..LOOK {
            if number == NONE {
                break;
            }
            if nodes.node(number).uses() == 0 {
                self.main.unlink(nodes, number);
                return Some(self.bury(nodes, number));
            }
            number = nodes.node(number).next();
        }
        if self.main.len > 0 {
            self.another_round(nodes, self.main.oldest);
        }
        None
    }

    /// A challenge after `age` was won or lost: adapts the share of `small`.
    pub(super) fn adapt(&mut self, age: u64, weight: u64, won: bool) {
        if age <= self.small_max() {
            let target = if won {
                self.small_target.saturating_add(weight)
            } else {
                self.small_target.saturating_sub(weight)
            };
            self.small_target = target.clamp(self.small_min(), self.small_max());
        }
    }

    /// A new entry, whose key was not there. `filling`: nothing had to go for it.
    pub(super) fn admit(&mut self, nodes: &impl Nodes, number: u32, place: Place, filling: bool) {
        match place {
            Place::Small => self.small.push(nodes, number),
            Place::Main => self.main.push(nodes, number),
        }
        // Only a store that is not full yet moves what was not used: a full one has better for `main`.
        while filling && self.small.weight > self.small_target {
            let oldest = self.small.oldest;
            if !self.main_has_room(nodes.node(oldest).weight()) {
                break;
            }
            self.small.unlink(nodes, oldest);
            self.main.push(nodes, oldest);
        }
    }

    /// An entry goes for another reason than want of room; it leaves no ghost.
    pub(super) fn remove(&mut self, nodes: &impl Nodes, number: u32) {
        self.queue_of(nodes, number).unlink(nodes, number);
    }

    /// Takes up an entry in the queue where `like` was; they may be the same.
    pub(super) fn put_back(&mut self, nodes: &impl Nodes, number: u32, like: u32) {
        self.queue_of(nodes, like).push(nodes, number);
    }

    fn queue_of(&mut self, nodes: &impl Nodes, number: u32) -> &mut Queue {
        if nodes.node(number).place() == MAIN {
            &mut self.main
        } else {
            &mut self.small
        }
    }

    /// Picks the entry that has to go and forgets it. None: there is none.
    pub(super) fn evict(&mut self, nodes: &impl Nodes) -> Option<u32> {
        while self.small.len > 0 && (self.small.weight >= self.small_target || self.main.len == 0) {
            let oldest = self.small.oldest;
            let node = nodes.node(oldest);
            self.small.unlink(nodes, oldest);
            if node.uses() == 0 {
                return Some(self.bury(nodes, oldest));
            }
            node.set_uses(0);
            let crowded = !self.main_has_room(node.weight());
            let victim = if crowded { self.evict_main(nodes) } else { None };
            self.main.push(nodes, oldest);
            if victim.is_some() {
                return victim;
            }
        }
        self.evict_main(nodes)
    }

    fn evict_main(&mut self, nodes: &impl Nodes) -> Option<u32> {
        if self.main.len == 0 {
            return None;
        }
        for _ in 0..SWEEP_STEPS {
            if nodes.node(self.main.oldest).uses() == 0 {
                break;
            }
            self.another_round(nodes, self.main.oldest);
        }
        let oldest = self.main.oldest;
        self.main.unlink(nodes, oldest);
        Some(self.bury(nodes, oldest))
    }

    /// One use less; a reader's bump at the same moment may be lost.
    fn another_round(&mut self, nodes: &impl Nodes, number: u32) {
        let node = nodes.node(number);
        node.set_uses(node.uses().saturating_sub(1));
        self.main.unlink(nodes, number);
        self.main.push(nodes, number);
    }

    fn bury(&mut self, nodes: &impl Nodes, number: u32) -> u32 {
        let node = nodes.node(number);
        let entries = self.len() + 1;
        self.ghosts.remember(node.tag(), node.weight(), entries);
        number
    }

    #[cfg(test)]
    pub(super) fn validate(&self, nodes: &impl Nodes) {
        assert!(
            (self.small_min()..=self.small_max()).contains(&self.small_target),
            "small's share has its limits"
        );
        self.small.validate(nodes);
        self.main.validate(nodes);
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::super::node::Node;
    use super::*;

    struct Field(Vec<Node>);

    impl Nodes for Field {
        fn node(&self, number: u32) -> &Node {
            &self.0[number as usize]
        }
    }

    /// Entries of weight 1, whose tags are their numbers spread out.
    fn field(len: u32) -> Field {
        let node = |number: u32| {
            let node = Node::free();
            node.begin(number.wrapping_mul(0x9E37_79B9), 1);
            node
        };
        Field((0..len).map(node).collect())
    }

    /// A full shard of 400: the first ones in `main`, the last few on trial in `small`.
    fn full(nodes: &Field) -> Policy {
        let mut policy = Policy::new(400);
        for number in 0..400 {
            policy.store_has_room(1);
            policy.admit(nodes, number, Place::Small, true);
        }
        policy.validate(nodes);
        assert_eq!((policy.small.len, policy.main.len), (2, 398), "main fills first");
        policy
    }

    /// As the shard does for a key that is not there.
    fn insert(policy: &mut Policy, nodes: &Field, number: u32) -> Vec<u32> {
        let mut gone = Vec::new();
        let mut place = Place::Small;
        let tag = nodes.node(number).tag();
        policy.store_is_full();
        if let Some(age) = policy.recall(tag) {
            let victim = policy.challenge(nodes);
            policy.adapt(age, 1, victim.is_some());
            if victim.is_some() {
                place = Place::Main;
            }
            gone.extend(victim);
        }
        if gone.is_empty() {
            gone.extend(policy.evict(nodes));
        }
        nodes.node(number).set_uses(0);
        policy.admit(nodes, number, place, false);
        policy.validate(nodes);
        gone
    }

    #[test]
    fn what_is_unused_on_trial_goes_in_order() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        assert_eq!(insert(&mut policy, &nodes, 400), [398]);
        assert_eq!(insert(&mut policy, &nodes, 401), [399]);
        assert_eq!(insert(&mut policy, &nodes, 402), [400]);
    }

    #[test]
    fn what_is_used_on_trial_moves_to_main() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        nodes.node(398).mark_used(USES_MAX);
        assert_eq!(
            insert(&mut policy, &nodes, 400),
            [0],
            "main is full: its oldest unused one goes"
        );
        assert_eq!(nodes.node(398).place(), MAIN);
        assert_eq!(nodes.node(398).uses(), 0, "it has to earn its place again");
    }

    #[test]
    fn a_returning_key_challenges_main() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        assert_eq!(insert(&mut policy, &nodes, 400), [398]);
        for number in 0..2 {
            nodes.node(number).mark_used(USES_MAX);
        }
        let before = policy.small_target;
        assert_eq!(insert(&mut policy, &nodes, 398), [2], "the oldest that is unused");
        assert_eq!(nodes.node(398).place(), MAIN);
        assert_eq!(policy.small_target, before + 1, "a win so soon: small is too small");
    }

    #[test]
    fn a_lost_challenge_costs_the_oldest_one_use() {
        let nodes = field(1_000);
        let mut policy = full(&nodes);
        assert_eq!(insert(&mut policy, &nodes, 400), [398]);
        for number in 0..4 {
            nodes.node(number).set_uses(2);
        }
        policy.small_target = 5;
        insert(&mut policy, &nodes, 398);
        assert_eq!(nodes.node(398).place(), SMALL);
        let uses: Vec<u8> = (0..4).map(|number| nodes.node(number).uses()).collect();
        // The second one is the eviction's, which takes from main while small is below its share.
        assert!(uses[0] < 2 && uses.iter().all(|&uses| uses > 0), "{uses:?}");
        assert_eq!(policy.small_target, 4);
    }

    #[test]
    fn smalls_share_has_its_limits() {
        let mut policy = Policy::new(1_000);
        for _ in 0..1_000 {
            policy.adapt(0, 7, true);
        }
        assert_eq!(policy.small_target, 200);
        policy.adapt(201, 7, false);
        assert_eq!(policy.small_target, 200, "long ago says nothing");
        for _ in 0..1_000 {
            policy.adapt(0, 7, false);
        }
        assert_eq!(policy.small_target, 5);
    }

    #[test]
    fn an_eviction_looks_at_a_bounded_number() {
        let nodes = field(1_000);
        let mut policy = Policy::new(900);
        for number in 0..900 {
            policy.store_has_room(1);
            policy.admit(&nodes, number, Place::Main, true);
            nodes.node(number).set_uses(USES_MAX);
        }
        policy.store_is_full();
        assert!(policy.evict(&nodes).is_some());
        let passed = (0..900).filter(|&number| nodes.node(number).uses() < USES_MAX).count();
        assert!(passed <= SWEEP_STEPS, "{passed}");
    }

    #[test]
    fn an_empty_one_has_nothing_to_give() {
        let nodes = field(2);
        let mut policy = Policy::new(0);
        assert_eq!((policy.evict(&nodes), policy.challenge(&nodes)), (None, None));
        policy.admit(&nodes, 0, Place::Small, false);
        policy.remove(&nodes, 0);
        assert_eq!(policy.evict(&nodes), None, "on hold");
        policy.put_back(&nodes, 1, 0);
        assert_eq!(policy.evict(&nodes), Some(1));
        assert_eq!((policy.len(), policy.weight()), (0, 0));
    }
}
