//! CLOCK: pages in a ring; the hand passes over those that were used, once for each use that they remember.
//!
//! Promises: the hits of a pool that knows nothing but this rule, with the same counters as ours. A yardstick: it holds nothing.

use std::collections::{HashMap, VecDeque};

/// As many uses as a page's word counts.
const USES_MAX: u8 = 3;

/// How many requests a pool of that many pages answers from memory.
pub(super) fn hits(requests: &[u64], capacity: u64) -> u64 {
    let mut uses: HashMap<u64, u8> = HashMap::new();
    let mut ring: VecDeque<u64> = VecDeque::new();
    let mut hits = 0;
    for page in requests {
        if let Some(uses) = uses.get_mut(page) {
            *uses = (*uses + 1).min(USES_MAX);
            hits += 1;
            continue;
        }
        while uses.len() as u64 >= capacity {
            let Some(next) = ring.pop_front() else {
                return hits;
            };
            match uses.get_mut(&next) {
                Some(uses) if *uses > 0 => {
                    *uses -= 1;
                    ring.push_back(next);
                }
                _ => {
                    uses.remove(&next);
                }
            }
        }
        uses.insert(*page, 0);
        ring.push_back(*page);
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_used_gets_another_round() {
        // With two: 3 pushes out 2, for 1 was used; 2 then pushes out 3, or 1, whose use was taken: the hand stands at 1.
        assert_eq!(hits(&[1, 2, 1, 3, 1, 2], 2), 2);
        assert_eq!(hits(&[1, 2, 1, 3, 2], 2), 1);
        assert_eq!(hits(&[1, 1, 1], 1), 2);
        assert_eq!(hits(&[1, 1, 1], 0), 0);
    }
}
