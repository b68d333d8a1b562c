//! Trials: each [rule](super::rule) is tried on a small cache of its own, which is asked for a sample of the keys that the store is asked for; the
//! store follows the one that had most hits lately.
//!
//! Promises: a sample is a part of the keys, all requests of them, so that small caches of that part of the capacity show what the rules
//! would do to the whole (Waldspurger, Saemundsson, Ahmad, Park, "Cache Modeling and Optimization using Miniature Simulations", USENIX
//! ATC 2017). Each cache has at most [`ENTRIES_MAX`] entries, so that all of them take less than 100 KiB, and nothing before the first
//! request. Nobody waits: who finds another thread at work here goes on without having been seen.
//!
//! Knows nothing of keys, records and readers: of a request it is told what stands for its key, and the weight.

use std::sync::atomic::{AtomicU8, AtomicU16, Ordering::Relaxed};

use hashbrown::HashTable;
use parking_lot::Mutex;

use super::node::Node;
use super::policy::Policy;
use super::queue::Nodes;
use super::rule::{RULES, Rule};

/// With more entries than this in one of the caches half of the keys are asked for no more.
const ENTRIES_MAX: usize = 512;
/// So many times are the scores compared while as many requests come as a cache has entries.
const LOOKS: usize = 20;
/// Fewer requests say nothing.
const REQUESTS_MIN: usize = 16;
/// A score forgets as much as this at each look: what was before twenty times as many requests as there are entries has a third of its worth.
const FORGETS: f64 = 1.0 / (20 * LOOKS) as f64;
/// A rule has to be better by so many standard deviations of what chance adds between two looks.
const SURE: f64 = 2.0;
/// A rule that has done so much worse in the store than in its small cache is taken for what it has done in the store: a sample has more
/// or less than its part of the keys, which tells where all of a loop just has no room.
const DOUBTED: f64 = 0.9;

/// See the module.
pub(super) struct Trials {
    /// The rule to follow, by its place in [`RULES`].
    rule: AtomicU8,
    /// A key is one of the sample if these bits of its tag are zero.
    mask: AtomicU16,
    field: Mutex<Field>,
}

const HALVINGS_MAX: usize = 16;

/// The bits of a word, everywhere in a word.
fn spread(bits: u32) -> u64 {
    u64::from(bits).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

struct Field {
    /// The store's.
    capacity: u64,
    /// One in 2^this keys is asked for.
    halvings: usize,
    caches: [Miniature; RULES.len()],
    scores: [f64; RULES.len()],
    /// Of the same requests, since the rule is followed; before, that of the rule.
    score_of_the_store: f64,
    requests: usize,
    rule: usize,
}

impl Trials {
    /// For a store of that capacity.
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            rule: AtomicU8::new(0),
            mask: AtomicU16::new(0),
            field: Mutex::new(Field {
                capacity,
                halvings: 0,
                caches: RULES.map(|rule| Miniature::new(rule, capacity)),
                scores: [0.0; RULES.len()],
                score_of_the_store: 0.0,
                requests: 0,
                rule: 0,
            }),
        }
    }

    /// The rule to follow.
    pub(super) fn rule(&self) -> Rule {
        RULES[usize::from(self.rule.load(Relaxed))]
    }

    #[inline]
    fn is_of_the_sample(&self, tag: u32) -> bool {
        tag as u16 & self.mask.load(Relaxed) == 0
    }

    /// A key is asked for that has this tag and hash; it was there, or not.
    #[inline]
    pub(super) fn see(&self, tag: u32, hash: u64, weight: u32, is_hit: bool) {
        if self.is_of_the_sample(tag) {
            self.try_out(tag, hash, weight, is_hit);
        }
    }

    #[cold]
    fn try_out(&self, tag: u32, hash: u64, weight: u32, is_hit: bool) {
        if let Some(mut field) = self.field.try_lock() {
            field.see(tag, hash as u32, weight, is_hit);
            self.rule.store(field.rule as u8, Relaxed);
            self.mask.store(field.mask(), Relaxed);
        }
    }
}

impl Field {
    fn mask(&self) -> u16 {
        ((1_u32 << self.halvings) - 1) as u16
    }

    fn see(&mut self, sampled_by: u32, tag: u32, weight: u32, is_hit: bool) {
        self.score_of_the_store += f64::from(u8::from(is_hit));
        for (cache, score) in self.caches.iter_mut().zip(&mut self.scores) {
            *score += f64::from(u8::from(cache.see(sampled_by, tag, weight)));
        }
        self.requests += 1;
        let entries = self.caches.iter().map(Miniature::len).max().unwrap_or(0);
        if self.requests >= (entries / LOOKS).max(REQUESTS_MIN) {
            self.look();
        }
        if entries > ENTRIES_MAX && self.halvings < HALVINGS_MAX {
            self.halvings += 1;
            let (mask, capacity) = (self.mask(), self.capacity >> self.halvings);
            self.caches.iter_mut().for_each(|cache| cache.thin_out(mask, capacity));
        }
    }

    fn look(&mut self) {
        let chance = SURE * (self.requests as f64).sqrt();
        self.requests = 0;
        let mut scores = self.scores;
        let followed = &mut scores[self.rule];
        if self.score_of_the_store < *followed * DOUBTED {
            *followed = self.score_of_the_store;
        }
        let better = *followed + chance;
        let best = (0..RULES.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        if let Some(best) = best.filter(|best| scores[*best] > better) {
            self.rule = best;
            self.score_of_the_store = scores[best];
        }
        let scores = self.scores.iter_mut().chain([&mut self.score_of_the_store]);
        scores.for_each(|score| *score -= *score * FORGETS);
    }
}

/// A cache of nothing but tags that follows one rule. Its tags are not those of the store, which are alike in a sample.
struct Miniature {
    rule: Rule,
    /// What it has room for.
    capacity: u64,
    policy: Policy,
    entries: Entries,
    /// Numbers of entries, by tag.
    numbers: HashTable<u32>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Entries {
    nodes: Vec<Node>,
    /// What they are sampled by.
    sampled_by: Vec<u16>,
}

impl Nodes for Entries {
    fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }
}

impl Miniature {
    fn new(rule: Rule, capacity: u64) -> Self {
        Self {
            rule,
            capacity,
            policy: Policy::new(capacity),
            entries: Entries::default(),
            numbers: HashTable::new(),
            free: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.policy.len()
    }

    /// Whether it is there; it is from now on.
    fn see(&mut self, sampled_by: u32, tag: u32, weight: u32) -> bool {
        let entries = &self.entries;
        let is_it = |number: &u32| entries.node(*number).tag() == tag;
        if let Some(&number) = self.numbers.find(spread(tag), is_it) {
            entries.node(number).mark_used(self.policy.now());
            return true;
        }
        self.add(sampled_by as u16, tag, weight);
        false
    }

    fn add(&mut self, sampled_by: u16, tag: u32, weight: u32) {
        let weight = weight.max(1);
        if u64::from(weight) > self.capacity {
            return;
        }
        let memory = self.policy.recall(tag);
        let mut is_filling = true;
        while self.policy.weight() + u64::from(weight) > self.capacity {
            is_filling = false;
            self.policy.store_is_full();
            let Some(gone) = self.policy.evict(&self.entries, self.rule) else {
                return;
            };
            let gone_tag = self.entries.node(gone).tag();
            if let Ok(entry) = self.numbers.find_entry(spread(gone_tag), |number| *number == gone) {
                entry.remove();
            }
            self.free.push(gone);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.nodes.push(Node::free());
            self.entries.sampled_by.push(0);
            (self.entries.nodes.len() - 1) as u32
        });
        self.entries.sampled_by[number as usize] = sampled_by;
        self.entries.node(number).begin(tag, weight);
        self.policy.admit(&self.entries, number, memory, is_filling, self.rule);
        let nodes = &self.entries;
        self.numbers
            .insert_unique(spread(tag), number, |number| spread(nodes.node(*number).tag()));
    }

    /// Only those remain that have none of these bits.
    fn thin_out(&mut self, mask: u16, capacity: u64) {
        let before = std::mem::replace(self, Self::new(self.rule, capacity));
        before.policy.for_each(&before.entries, |number| {
            let (sampled_by, node) = (before.entries.sampled_by[number as usize], before.entries.node(number));
            if sampled_by & mask == 0 {
                self.add(sampled_by, node.tag(), node.weight() as u32);
            }
        });
    }
}
