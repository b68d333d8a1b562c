//! The optimum: what is needed again last goes, or is not kept at all (L. A. Belady, "A Study of Replacement Algorithms for a
//! Virtual-Storage Computer", IBM Systems Journal 5(2), 1966).
//!
//! Promises: no cache of that many entries, whatever its rule, misses fewer of these requests; also none that may refuse to
//! keep what it was just given. Knows the future, which no cache does.

use std::collections::{BTreeSet, HashMap, HashSet};

/// Never again.
const NEVER: usize = usize::MAX;

/// How many requests a cache of that many entries could answer from memory.
pub(super) fn hits(requests: &[u64], capacity: u64) -> u64 {
    let next_uses = next_uses(requests);
    let mut kept: HashSet<u64> = HashSet::new();
    // By next use, which is of one key alone unless there is none.
    let mut soonest_first: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut hits = 0;
    for (now, (key, next_use)) in requests.iter().zip(next_uses).enumerate() {
        if !kept.insert(*key) {
            hits += 1;
            soonest_first.remove(&(now, *key));
        }
        soonest_first.insert((next_use, *key));
        if kept.len() as u64 > capacity {
            let last = soonest_first.pop_last();
            kept.remove(&last.expect("as many as are kept, which are more than none").1);
        }
    }
    hits
}

/// For each request, the next of the same key.
fn next_uses(requests: &[u64]) -> Vec<usize> {
    let mut next_uses = vec![NEVER; requests.len()];
    let mut seen: HashMap<u64, usize> = HashMap::new();
    for (now, key) in requests.iter().enumerate().rev() {
        if let Some(next) = seen.insert(*key, now) {
            next_uses[now] = next;
        }
    }
    next_uses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_last_goes() {
        assert_eq!(next_uses(&[1, 2, 1, 1, 2]), [2, 4, 3, NEVER, NEVER]);
        // With two: 3 is not kept, for 1 and 2 come sooner; then 3 and 1 are, and 2 is not.
        assert_eq!(hits(&[1, 2, 1, 3, 1, 2, 3, 1], 2), 4);
        assert_eq!(hits(&[1, 2, 1, 3, 1, 2, 3, 1], 3), 5);
        // With one: whatever comes, 1 is worth keeping.
        assert_eq!(hits(&[1, 2, 1, 3, 1], 1), 2);
        assert_eq!(hits(&[1, 1], 0), 0);
        assert_eq!(hits(&[], 1), 0);
    }

    #[test]
    fn of_a_loop_a_fixed_part_is_kept() {
        let round: Vec<u64> = (0..11).cycle().take(110).collect();
        assert_eq!(hits(&round, 11), 99);
        // Ten entries and the one between two rounds: of eleven requests, ten or the next ten are hits.
        assert_eq!(hits(&round, 10), brute_force(&round[..33], 10) + 70);
    }

    /// Tries every way to evict, or not to keep.
    fn brute_force(requests: &[u64], capacity: usize) -> u64 {
        fn most(
            requests: &[u64],
            kept: &BTreeSet<u64>,
            capacity: usize,
            known: &mut HashMap<(usize, Vec<u64>), u64>,
        ) -> u64 {
            let Some((key, rest)) = requests.split_first() else {
                return 0;
            };
            if kept.contains(key) {
                return 1 + most(rest, kept, capacity, known);
            }
            let state = (rest.len(), kept.iter().copied().collect());
            if let Some(hits) = known.get(&state) {
                return *hits;
            }
            let mut all = kept.clone();
            all.insert(*key);
            let hits = if all.len() <= capacity {
                most(rest, &all, capacity, known)
            } else {
                let without = |gone: &u64| {
                    let mut kept = all.clone();
                    kept.remove(gone);
                    kept
                };
                let ways: Vec<_> = all.iter().map(without).collect();
                ways.iter()
                    .map(|kept| most(rest, kept, capacity, known))
                    .max()
                    .unwrap_or(0)
            };
            known.insert(state, hits);
            hits
        }
        most(requests, &BTreeSet::new(), capacity, &mut HashMap::new())
    }

    #[test]
    fn no_way_to_evict_has_more_hits() {
        let mut dice = 1_u64;
        let mut throw = |sides: u64| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        for round in 0..300 {
            let keys = throw(6) + 2;
            let requests: Vec<u64> = (0..14).map(|_| throw(keys)).collect();
            for capacity in 1..4 {
                assert_eq!(
                    hits(&requests, capacity as u64),
                    brute_force(&requests, capacity),
                    "round {round}: {requests:?}, {capacity}"
                );
            }
        }
    }
}
