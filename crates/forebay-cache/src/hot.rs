//! The keys most used of late, by a sample of all uses.
//!
//! Promises: memory for `tracked` keys and no more. A key with more than 1/`tracked` of all recorded weight is among them
//! (Space-Saving; Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams",
//! ICDT 2005). Weight halves every `half_life`, without anything being touched: later uses weigh more instead (forward decay;
//! Cormode et al., "Forward Decay: A Practical Time Decay Model for Streaming Systems", ICDE 2009).
//!
//! A plain data structure: knows neither locks nor clocks.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use super::clock::whole_ms;

/// One use in this many is recorded, on average; with that weight.
const SAMPLED: u32 = 256;

thread_local! {
    /// Uses until this thread records the next, and the state of its dice.
    static NEXT: Cell<(u32, u32)> = const { Cell::new((1, 0x9E37_79B9)) };
}

/// Whether this use is one to record. The first of each thread is.
#[inline]
pub(super) fn sampled() -> bool {
    let (left, dice) = NEXT.get();
    if left > 1 {
        NEXT.set((left - 1, dice));
        return false;
    }
    // Xorshift (Marsaglia, 2003): at random distances, so that no pattern of uses escapes.
    let dice = dice ^ (dice << 13);
    let dice = dice ^ (dice >> 17);
    let dice = dice ^ (dice << 5);
    NEXT.set((1 + dice % (2 * SAMPLED - 1), dice));
    true
}

/// See the module.
pub(super) struct Hot<K> {
    tracked: usize,
    half_life_ms: f64,
    /// Weights are those of this moment.
    since_ms: u64,
    entries: Vec<Entry<K>>,
    index: HashMap<K, usize>,
    /// Lightest first: the weight's bits (weights are positive, so they sort as the numbers do) and the entry.
    order: BTreeSet<(u64, usize)>,
}

struct Entry<K> {
    key: K,
    weight: f64,
}

impl<K: Hash + Eq + Clone> Hot<K> {
    pub(super) fn new(tracked: usize, half_life: Duration, now_ms: u64) -> Self {
        assert!(tracked > 0);
        Self {
            tracked,
            half_life_ms: whole_ms(half_life).max(1) as f64,
            since_ms: now_ms,
            entries: Vec::new(),
            index: HashMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// One sampled use.
    pub(super) fn record(&mut self, key: &K, now_ms: u64) {
        self.add(key, f64::from(SAMPLED), now_ms);
    }

    /// Uses as of now, that were counted elsewhere.
    pub(super) fn add(&mut self, key: &K, uses: f64, now_ms: u64) {
        if !(uses.is_finite() && uses > 0.0) {
            return;
        }
        let weight = uses * self.inflation(now_ms);
        let at = match self.index.get(key) {
            Some(at) => *at,
            None => self.place(key.clone()),
        };
        let entry = &mut self.entries[at];
        self.order.remove(&(entry.weight.to_bits(), at));
        entry.weight += weight;
        self.order.insert((entry.weight.to_bits(), at));
    }

    /// The `n` keys with the most uses, most used first, and how many these would be if all of them were of now.
    pub(super) fn top(&mut self, n: usize, now_ms: u64) -> Vec<(K, f64)> {
        let inflation = self.inflation(now_ms);
        let heaviest = self.order.iter().rev().take(n);
        heaviest
            .map(|(_, at)| {
                let entry = &self.entries[*at];
                (entry.key.clone(), entry.weight / inflation)
            })
            .collect()
    }

    /// A place for a new key: a free one, or that of the lightest, whose weight it takes over.
    fn place(&mut self, key: K) -> usize {
        if self.entries.len() < self.tracked {
            self.index.insert(key.clone(), self.entries.len());
            self.entries.push(Entry { key, weight: 0.0 });
            self.order.insert((0, self.entries.len() - 1));
            return self.entries.len() - 1;
        }
        let at = self
            .order
            .first()
            .expect("as many as are tracked, and that is more than none")
            .1;
        let gone = std::mem::replace(&mut self.entries[at].key, key.clone());
        self.index.remove(&gone);
        self.index.insert(key, at);
        at
    }

    /// What a use of now weighs. Begins the scale anew before the numbers grow out of bounds.
    fn inflation(&mut self, now_ms: u64) -> f64 {
        let half_lives = now_ms.saturating_sub(self.since_ms) as f64 / self.half_life_ms;
        if half_lives < 64.0 {
            return half_lives.exp2();
        }
        self.since_ms = now_ms;
        let shrink = (-half_lives).exp2();
        self.order.clear();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            entry.weight *= shrink;
            self.order.insert((entry.weight.to_bits(), at));
        }
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_key_with_its_share_of_the_uses_is_never_lost() {
        let mut hot = Hot::new(10, HOUR, 0);
        for turn in 0..10_000_u64 {
            // Every fifth use is of key 7; all others are of keys used once.
            hot.record(&if turn % 5 == 0 { 7 } else { 1_000 + turn }, 0);
        }
        let top = hot.top(3, 0);
        assert_eq!(top[0].0, 7);
        let uses = top[0].1;
        assert!(uses >= 2_000.0 * f64::from(SAMPLED), "{uses}: never counted too low");
        assert!(hot.entries.len() <= 10 && hot.index.len() <= 10 && hot.order.len() <= 10);
    }

    #[test]
    fn what_is_not_used_any_more_weighs_half_after_each_half_life() {
        let mut hot = Hot::new(4, Duration::from_millis(100), 0);
        hot.add(&"old", 64.0, 0);
        hot.add(&"new", 20.0, 200);
        assert_eq!(hot.top(2, 200), [("new", 20.0), ("old", 16.0)]);
        // Long after, where the scale has begun anew.
        let later = hot.top(2, 10_000);
        assert_eq!(later[0].0, "new");
        assert!(later[0].1 < 1e-20);
        hot.add(&"now", 1.0, 10_000);
        assert_eq!(hot.top(1, 10_000), [("now", 1.0)]);
    }

    #[test]
    fn nonsense_weighs_nothing() {
        let mut hot = Hot::new(4, HOUR, 0);
        for uses in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            hot.add(&1, uses, 0);
        }
        assert!(hot.top(9, 0).is_empty());
    }

    #[test]
    fn about_one_use_in_two_hundred_fifty_six_is_sampled() {
        let sampled = (0..1_000_000).filter(|_| sampled()).count();
        assert!((3_300..4_600).contains(&sampled), "{sampled}");
    }

    proptest! {
        /// Space-Saving's bounds, at one moment: never too low, never too high by more than an equal share of all.
        #[test]
        fn counts_are_within_their_bounds(uses in prop::collection::vec(0_u8..30, 1..400), tracked in 1_usize..12) {
            let mut hot = Hot::new(tracked, HOUR, 0);
            let mut exact = HashMap::new();
            for key in &uses {
                hot.add(key, 1.0, 0);
                *exact.entry(*key).or_insert(0.0) += 1.0;
            }
            let share = uses.len() as f64 / tracked as f64;
            let top = hot.top(tracked, 0);
            prop_assert!(top.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            for (key, counted) in &top {
                prop_assert!(*counted >= exact[key] && *counted <= exact[key] + share);
            }
            for (key, counted) in &exact {
                prop_assert!(*counted <= share || top.iter().any(|(found, _)| found == key), "{key} is lost");
            }
        }
    }
}
