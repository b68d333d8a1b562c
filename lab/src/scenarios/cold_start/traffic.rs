//! What callers ask for: 80 % of requests are for products 1–20, 15 % for 21–200, 4 % for 201–1,000, and 1 % for 50 that do
//! not exist.
//!
//! Promises: a caller's requests are the same in every run and for every system, the peer in Go included; choosing the next
//! costs a few nanoseconds and allocates nothing. Knows no cache.

use std::sync::Arc;

use super::database::product_id;

/// Ids that are asked for and do not exist.
const UNKNOWNS: u64 = 50;

/// The parts of the traffic: up to which of 1,000 requests, the first product and how many there are.
const KNOWN: [(u64, u64, u64); 3] = [(800, 1, 20), (950, 21, 180), (990, 201, 800)];

/// Every id that is ever asked for: of those that exist, and then of those that do not.
#[derive(Debug)]
struct Ids {
    known: Vec<String>,
    unknown: Vec<String>,
}

/// One caller's requests.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    ids: Arc<Ids>,
    state: u64,
}

impl Traffic {
    /// That of the first caller.
    pub(crate) fn new() -> Self {
        let asked_for = KNOWN.iter().map(|(_, _, count)| *count as u32).sum();
        let ids = Ids {
            known: (1..=asked_for).map(product_id).collect(),
            unknown: (0..UNKNOWNS).map(|index| format!("product-notfound-{index}")).collect(),
        };
        Self {
            ids: Arc::new(ids),
            state: 0,
        }
    }

    /// That of another caller.
    pub(crate) fn of(&self, caller: u32) -> Self {
        Self {
            ids: Arc::clone(&self.ids),
            state: caller.into(),
        }
    }

    /// The next id, and whether there is such a product.
    #[inline]
    pub(crate) fn next(&mut self) -> (&String, bool) {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let slot = ((mixed >> 32) * 1_000) >> 32;
        let among = |count: u64| ((mixed & u64::from(u32::MAX)) * count) >> 32;
        for (below, first, count) in KNOWN {
            if slot < below {
                return (&self.ids.known[(first - 1 + among(count)) as usize], true);
            }
        }
        (&self.ids.unknown[among(UNKNOWNS) as usize], false)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn requests_are_divided_as_is_told() {
        const REQUESTS: u32 = 1_000_000;
        let mut traffic = Traffic::new();
        let mut counts = [0_u32; 4];
        let mut seen = BTreeSet::new();
        for _ in 0..REQUESTS {
            let (id, exists) = traffic.next();
            seen.insert(id.clone());
            let number = id.strip_prefix("product-").and_then(|number| number.parse().ok());
            assert_eq!(number.is_some(), exists, "{id}");
            counts[match number {
                Some(1..=20) => 0,
                Some(21..=200) => 1,
                Some(201..=1_000) => 2,
                Some(_) => panic!("{id} is never asked for"),
                None => 3,
            }] += 1;
        }
        for (count, expected) in counts.into_iter().zip([800_000, 150_000, 40_000, 10_000_u32]) {
            assert!(count.abs_diff(expected) < 2_000, "{counts:?}");
        }
        assert_eq!(seen.len(), 1_050);
    }

    #[test]
    fn callers_ask_in_orders_of_their_own_which_are_always_the_same() {
        let traffic = Traffic::new();
        let first = |caller| -> Vec<String> {
            let mut own = traffic.of(caller);
            (0..100).map(|_| own.next().0.clone()).collect()
        };
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
    }
}
