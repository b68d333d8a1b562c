//! What a cache asks of the heap beyond the keys and values themselves, an entry.
//!
//! Promises: each cache has room for just as many entries as it is given, and what it holds then is counted, so that one that
//! evicts early is not thought lean. What was asked for and given back meanwhile is not counted. Bytes are those asked for:
//! what the allocator adds is not in them.

use std::convert::Infallible;
use std::time::Duration;

use forebay::cache::Cache;
use foyer_memory::{CacheBuilder, CacheProperties};

use crate::allocation::Allocated;
use crate::failure::Failure;
use crate::measurement::Reading;

/// Bytes an entry.
pub(crate) const OVERHEAD: &str = "overhead";
/// Of what was inserted.
pub(crate) const HELD: &str = "held";
/// Of a u64 and another.
const KEY_AND_VALUE: u64 = 16;

/// A cache of u64 by u64.
pub(crate) trait Filled: Sized {
    /// Holding those of the keys below this for which it has room.
    fn with(entries: u64) -> Self;

    fn value(&self, key: u64) -> Option<u64>;
}

/// Never the key itself, never what an empty place would hold.
fn value_of(key: u64) -> u64 {
    key * 2 + 1
}

/// Fills a cache and counts.
pub(crate) fn measure<F: Filled>(entries: u64) -> Result<Vec<Reading>, Failure> {
    let (cache, allocated) = Allocated::during(|| F::with(entries));
    let mut held = 0;
    for key in 0..entries {
        match cache.value(key) {
            Some(value) if value == value_of(key) => held += 1,
            Some(value) => return Err(Failure::Wrong(format!("{key} was answered with {value}"))),
            None => {}
        }
    }
    if held == 0 {
        return Err(Failure::Wrong("nothing is held".to_owned()));
    }
    let beyond = allocated.bytes_kept().saturating_sub(held * KEY_AND_VALUE);
    Ok(vec![
        Reading::new(OVERHEAD, "bytes/entry", beyond as f64 / held as f64),
        Reading::new(HELD, "%", held as f64 / entries as f64 * 100.0),
    ])
}

pub(crate) struct QuickCache(quick_cache::sync::Cache<u64, u64>);

impl Filled for QuickCache {
    fn with(entries: u64) -> Self {
        let cache = quick_cache::sync::Cache::new(entries as usize);
        (0..entries).for_each(|key| cache.insert(key, value_of(key)));
        Self(cache)
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }
}

pub(crate) struct Moka(moka::sync::Cache<u64, u64>);

impl Filled for Moka {
    fn with(entries: u64) -> Self {
        let cache = moka::sync::Cache::builder()
            .max_capacity(entries)
            .time_to_live(Duration::from_secs(3_600))
            .build();
        (0..entries).for_each(|key| cache.insert(key, value_of(key)));
        cache.run_pending_tasks();
        Self(cache)
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }
}

pub(crate) struct Foyer(foyer_memory::Cache<u64, u64>);

impl Filled for Foyer {
    fn with(entries: u64) -> Self {
        let cache = CacheBuilder::new(entries as usize).build::<CacheProperties>();
        (0..entries).for_each(|key| drop(cache.insert(key, value_of(key))));
        Self(cache)
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|entry| *entry.value())
    }
}

pub(crate) struct Forebay(Cache<u64, u64>);

impl Filled for Forebay {
    fn with(entries: u64) -> Self {
        let cache = Cache::builder(|_: u64| async { Ok::<Option<u64>, Infallible>(None) })
            .capacity(entries)
            .fresh_for(Duration::from_secs(3_600))
            .build();
        for key in 0..entries {
            // There are no tiers to hear of it.
            drop(cache.insert(key, value_of(key)));
        }
        Self(cache)
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.0.get_if_fresh(&key)?.into_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for a megabyte more than it needs, for half of the entries, and gives two back.
    struct Wasteful(Vec<u64>, Vec<u8>);

    impl Filled for Wasteful {
        fn with(entries: u64) -> Self {
            std::hint::black_box(vec![1_u8; 2 << 20]);
            let held = (0..entries / 2).flat_map(|key| [key, value_of(key)]);
            let mut own = Vec::with_capacity(entries as usize);
            own.extend(held);
            Self(own, Vec::with_capacity(1 << 20))
        }

        fn value(&self, key: u64) -> Option<u64> {
            std::hint::black_box(&self.1);
            self.0.get(key as usize * 2 + 1).copied()
        }
    }

    #[test]
    fn what_is_beyond_keys_and_values_is_counted_for_those_that_are_held() {
        let readings = measure::<Wasteful>(2_048).unwrap();
        assert_eq!((readings[1].metric, readings[1].value), (HELD, 50.0));
        let off = (readings[0].value - 1_024.0).abs();
        // Other tests of this program use the heap meanwhile.
        assert!(off < 512.0, "{readings:?}");
    }

    #[test]
    fn a_wrong_value_is_a_failure() {
        struct Confused;
        impl Filled for Confused {
            fn with(_: u64) -> Self {
                Self
            }

            fn value(&self, key: u64) -> Option<u64> {
                Some(key)
            }
        }
        let error = measure::<Confused>(2).unwrap_err().to_string();
        assert!(error.contains("0 was answered with 0"), "{error}");
    }

    #[tokio::test]
    async fn every_cache_holds_nearly_all() {
        for readings in [
            measure::<QuickCache>(10_000),
            measure::<Moka>(10_000),
            measure::<Foyer>(10_000),
            measure::<Forebay>(10_000),
        ] {
            let readings = readings.unwrap();
            assert!(readings[1].value > 80.0, "{readings:?}");
        }
    }
}
