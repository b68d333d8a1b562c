//! LRU, exactly: the entry whose last use is longest ago goes.
//!
//! Promises: the hits of a cache that knows nothing but this rule. A yardstick, not a cache: it holds no values.

use std::collections::{BTreeMap, HashMap};

/// How many requests a cache of that many entries answers from memory.
pub(super) fn hits(requests: &[u64], capacity: u64) -> u64 {
    // When each key was last used, and the same the other way round.
    let mut last_uses: HashMap<u64, usize> = HashMap::new();
    let mut oldest_first: BTreeMap<usize, u64> = BTreeMap::new();
    let mut hits = 0;
    for (now, key) in requests.iter().enumerate() {
        if let Some(before) = last_uses.insert(*key, now) {
            hits += 1;
            oldest_first.remove(&before);
        }
        oldest_first.insert(now, *key);
        if last_uses.len() as u64 > capacity {
            let oldest = oldest_first.pop_first();
            last_uses.remove(&oldest.expect("as many as there are keys, which are more than none").1);
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        // With two: 3 pushes out 2, for 1 was used again; 2 then pushes out 1.
        assert_eq!(hits(&[1, 2, 1, 3, 1, 2, 3, 1], 2), 2);
        // With three all but the first of each are hits.
        assert_eq!(hits(&[1, 2, 1, 3, 1, 2, 3, 1], 3), 5);
        assert_eq!(hits(&[1, 1, 1], 1), 2);
        assert_eq!(hits(&[1, 1, 1], 0), 0);
        assert_eq!(hits(&[], 1), 0);
    }

    #[test]
    fn a_loop_that_is_larger_by_one_never_hits() {
        let round: Vec<u64> = (0..11).cycle().take(110).collect();
        assert_eq!((hits(&round, 10), hits(&round, 11)), (0, 99));
    }
}
