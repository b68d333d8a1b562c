//! Trials: each [rule](super::rule) is tried on a small cache of its own, which is asked for a sample of the keys that the store is asked for; the
//! store follows the one that had most hits lately.
//!
//! Promises: a sample is a part of the keys, all requests of them, so that small caches of that part of the capacity show what the rules
//! would do to the whole (Waldspurger, Saemundsson, Ahmad, Park, "Cache Modeling and Optimization using Miniature Simulations", USENIX
//! ATC 2017). Each cache has at most [`ENTRIES_MAX`] entries, so that all of them take less than 200 KiB, and nothing before the first
//! request. Nobody waits: who finds another thread at work here goes on without having been seen.
//!
//! Knows nothing of keys, records and readers: of a request it is told what stands for its key, and the weight.

use std::sync::atomic::{AtomicU8, AtomicU16, Ordering::Relaxed};

use hashbrown::HashTable;
use parking_lot::Mutex;

use super::node::{Links, Node, Uses};
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
/// The same of what tells that the load is another one: a third is left of what was three times as many requests ago.
const FORGETS_SOON: f64 = 1.0 / (3 * LOOKS) as f64;
/// It is another one where a rule has had so much more of the hits of late, as a part of the requests. Then what was before is no longer
/// counted.
const ANOTHER_LOAD: f64 = 0.1;
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
    /// The same, of late.
    recent: [f64; RULES.len()],
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
                recent: [0.0; RULES.len()],
                score_of_the_store: 0.0,
                requests: 0,
                rule: 0,
            }),
        }
    }

    /// The rule to follow.
    #[inline]
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
        for (cache, scores) in self.caches.iter_mut().zip(self.scores.iter_mut().zip(&mut self.recent)) {
            let hits = f64::from(u8::from(cache.see(sampled_by, tag, weight)));
            *scores.0 += hits;
            *scores.1 += hits;
        }
        self.requests += 1;
        let entries = self.caches.iter().map(Miniature::len).max().unwrap_or(0);
        if self.requests >= (entries / LOOKS).max(REQUESTS_MIN) {
            self.look(entries);
        }
        if entries > ENTRIES_MAX && self.halvings < HALVINGS_MAX {
            self.halvings += 1;
            let (mask, capacity) = (self.mask(), self.capacity >> self.halvings);
            self.caches.iter_mut().for_each(|cache| cache.thin_out(mask, capacity));
        }
    }

    fn look(&mut self, entries: usize) {
        let of_late = entries as f64 / FORGETS_SOON / LOOKS as f64;
        let lead = self.recent[best(&self.recent)] - self.recent[self.rule];
        if lead > of_late * ANOTHER_LOAD + SURE * of_late.sqrt() {
            self.scores = self.recent;
            self.score_of_the_store = self.recent[self.rule];
        }
        let mut scores = self.scores;
        let followed = &mut scores[self.rule];
        if self.score_of_the_store < *followed * DOUBTED {
            *followed = self.score_of_the_store;
        }
        let better = *followed + SURE * (self.requests as f64).sqrt();
        let best = best(&scores);
        if scores[best] > better {
            self.rule = best;
            self.score_of_the_store = scores[best];
        }
        self.requests = 0;
        let scores = self.scores.iter_mut().chain([&mut self.score_of_the_store]);
        scores.for_each(|score| *score -= *score * FORGETS);
        self.recent.iter_mut().for_each(|score| *score -= *score * FORGETS_SOON);
    }
}

/// Where the highest score is.
fn best(scores: &[f64; RULES.len()]) -> usize {
    (0..RULES.len())
        .max_by(|one, other| scores[*one].total_cmp(&scores[*other]))
        .unwrap_or(0)
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
    nodes: Vec<(Uses, Links)>,
    /// What they are sampled by.
    sampled_by: Vec<u16>,
}

impl Nodes for Entries {
    fn node(&self, number: u32) -> Node<'_> {
        let (uses, links) = &self.nodes[number as usize];
        Node { uses, links }
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
            entries.node(number).uses.mark_used(self.policy.now());
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
            self.entries.nodes.push((Uses::free(), Links::free()));
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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::super::rule::By;
    use super::*;

    /// What stands for a key: all of its bits, as a good hash has them.
    fn hash(key: u64) -> u64 {
        let mixed = (key ^ (key >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn see(trials: &Trials, key: u64, is_hit: bool) {
        let hash = hash(key.wrapping_add(0x9E37_79B9_7F4A_7C15));
        trials.see((hash >> 32) as u32, hash, 1, is_hit);
    }

    /// New keys, and each again soon.
    fn one_after_the_other(trials: &Trials, requests: u64, is_hit: bool) {
        for at in 0..requests {
            let key = 1_000_000 + at / 2;
            see(trials, if at % 2 == 0 { key } else { key - at % 300 }, is_hit);
        }
    }

    fn round_and_round(trials: &Trials, keys: u64, requests: u64, is_hit: bool) {
        (0..requests).for_each(|at| see(trials, at % keys, is_hit));
    }

    #[test]
    fn the_rule_follows_the_load() {
        for capacity in [400, 6_000] {
            let trials = Trials::new(capacity);
            assert_eq!(trials.rule(), RULES[0]);
            one_after_the_other(&trials, 60 * capacity, true);
            assert!(trials.rule().small >= 100, "{capacity}: {:?}", trials.rule());
            // Ten times around is enough.
            round_and_round(&trials, capacity * 3 / 2, 15 * capacity, true);
            assert_ne!(trials.rule().by, By::Turn, "{capacity}");
        }
    }

    #[test]
    fn frequency_counts_where_few_keys_are_used_often() {
        let trials = Trials::new(1_000);
        let mut dice = 1_u64;
        for _ in 0..400_000 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let part = (dice >> 33) as f64 / (1_u64 << 31) as f64;
            // By Zipf's law, about: as likely between 1 and 10 as between 1,000 and 10,000.
            see(&trials, (20_000_f64.powf(part)) as u64, true);
        }
        assert_eq!(trials.rule().by, By::Frequency);
    }

    #[test]
    fn the_caches_stay_small() {
        let trials = Trials::new(10_000_000);
        for key in 0..2_000_000 {
            see(&trials, key, false);
        }
        let field = trials.field.lock();
        assert!((10..14).contains(&field.halvings), "{}", field.halvings);
        for cache in &field.caches {
            assert!((200..=ENTRIES_MAX + 1).contains(&cache.len()), "{}", cache.len());
            assert_eq!(cache.numbers.len(), cache.len());
            assert!(cache.entries.nodes.len() <= ENTRIES_MAX + 1);
            cache.policy.validate(&cache.entries);
        }
        // hashbrown has a byte beside each place, of which it leaves an eighth empty.
        let bytes = |cache: &Miniature| {
            cache.entries.nodes.capacity() * size_of::<(Uses, Links)>()
                + cache.entries.sampled_by.capacity() * size_of::<u16>()
                + cache.free.capacity() * size_of::<u32>()
                + cache.numbers.capacity() * 8 / 7 * (size_of::<u32>() + 1)
                + cache.policy.bytes()
        };
        let all: usize = field.caches.iter().map(bytes).sum();
        assert!((1..200 * 1024).contains(&all), "{all} bytes");
    }

    #[test]
    fn a_rule_that_does_worse_in_the_store_than_on_trial_is_left() {
        let trials = Trials::new(1_000);
        one_after_the_other(&trials, 60_000, true);
        let followed = trials.rule();
        // All of the sample has room on trial; in the store nothing is ever there.
        let is_left = (0..900_u64).any(|round| {
            round_and_round(&trials, 900, 100 + round % 2, false);
            trials.rule() != followed
        });
        assert!(is_left);
    }

    #[test]
    fn nobody_waits_for_another() {
        let trials = Trials::new(1_000);
        let at_work = trials.field.lock();
        see(&trials, 1, false);
        drop(at_work);
        assert_eq!(trials.field.lock().caches[0].len(), 0, "it was not seen");
        see(&trials, 1, false);
        assert_eq!(trials.field.lock().caches[0].len(), 1);
    }

    #[test]
    fn what_is_too_heavy_is_on_no_trial() {
        let trials = Trials::new(100);
        trials.see(0, 1, 101, false);
        trials.see(0, 2, 100, false);
        trials.see(0, 3, 0, false);
        let field = trials.field.lock();
        assert!(
            field
                .caches
                .iter()
                .all(|cache| cache.len() == 1 && cache.policy.weight() == 1)
        );
    }
}
