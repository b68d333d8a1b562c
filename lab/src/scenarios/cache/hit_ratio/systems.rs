//! How each cache is asked for a key, and given the value that it did not have.
//!
//! Promises: a value that is not the key's, and a cache that holds more than its capacity, are errors. Of a peer that can be
//! divided, one part has it all: more would only lose hits. Knows nothing of traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay::cache::Cache;
use foyer_memory::{CacheBuilder, S3FifoConfig};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter, sync::DefaultLifecycle};

use super::{fewest, least_recent};
use crate::failure::Failure;
use crate::scenario::{FOREBAY, LIMIT};

/// What the best is chosen from, in the order of the report.
pub(super) const PEERS: [&str; 4] = ["LRU", "quick_cache", "moka", "foyer"];

/// Who answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    /// The optimum.
    Limit,
    /// The rule itself.
    LeastRecent,
    QuickCache,
    Moka,
    Foyer,
    Forebay,
}

impl Contender {
    /// The one that reports call so.
    pub(super) fn named(system: &str) -> Result<Self, Failure> {
        let [least_recent, quick_cache, moka, foyer] = PEERS;
        match system {
            LIMIT => Ok(Self::Limit),
            FOREBAY => Ok(Self::Forebay),
            name if name == least_recent => Ok(Self::LeastRecent),
            name if name == quick_cache => Ok(Self::QuickCache),
            name if name == moka => Ok(Self::Moka),
            name if name == foyer => Ok(Self::Foyer),
            name => Err(Failure::Wrong(format!("no system is called {name}"))),
        }
    }

    /// Others hash with seeds of their own.
    pub(super) fn is_the_same_each_time(self) -> bool {
        matches!(self, Self::Limit | Self::LeastRecent)
    }

    /// How many of the requests it answers from memory, empty at first.
    pub(crate) fn hits(self, requests: &[u64], capacity: u64) -> Result<u64, Failure> {
        match self {
            Self::Limit => Ok(fewest::hits(requests, capacity)),
            Self::LeastRecent => Ok(least_recent::hits(requests, capacity)),
            Self::QuickCache => quick_cache(requests, capacity),
            Self::Moka => moka(requests, capacity),
            Self::Foyer => foyer(requests, capacity),
            Self::Forebay => forebay(requests, capacity),
        }
    }
}

/// The key's value: another number, so that a mistaken key would show.
fn value_of(key: u64) -> u64 {
    !key
}

fn check(key: u64, value: u64) -> Result<(), Failure> {
    if value == value_of(key) {
        Ok(())
    } else {
        Err(Failure::Wrong(format!("key {key} has the value {value}")))
    }
}

fn check_entries(entries: u64, capacity: u64) -> Result<(), Failure> {
    if entries <= capacity {
        Ok(())
    } else {
        let message = format!("{entries} entries where there is room for {capacity}");
        Err(Failure::Wrong(message))
    }
}

/// Asks for every key, and gives the value where it is not held.
fn replay(
    requests: &[u64],
    mut held: impl FnMut(u64) -> Option<u64>,
    mut keep: impl FnMut(u64, u64),
) -> Result<u64, Failure> {
    let mut hits = 0;
    for key in requests {
        match held(*key) {
            Some(value) => {
                check(*key, value)?;
                hits += 1;
            }
            None => keep(*key, value_of(*key)),
        }
    }
    Ok(hits)
}

/// Of many kinds of numbers, those that the peers want.
fn as_size(capacity: u64) -> usize {
    usize::try_from(capacity).unwrap_or(usize::MAX)
}

fn quick_cache(requests: &[u64], capacity: u64) -> Result<u64, Failure> {
    let options = OptionsBuilder::new()
        .shards(1)
        .weight_capacity(capacity)
        .estimated_items_capacity(as_size(capacity))
        .build()
        .map_err(|error| Failure::Wrong(format!("quick_cache refuses its options: {error}")))?;
    let cache = quick_cache::sync::Cache::with_options(
        options,
        UnitWeighter,
        DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    );
    let hits = replay(requests, |key| cache.get(&key), |key, value| cache.insert(key, value))?;
    check_entries(cache.len() as u64, capacity)?;
    Ok(hits)
}

fn moka(requests: &[u64], capacity: u64) -> Result<u64, Failure> {
    let cache = moka::sync::Cache::new(capacity);
    let held = |key| {
        let value = cache.get(&key);
        // Otherwise the use would count only later, or not at all.
        cache.run_pending_tasks();
        value
    };
    let keep = |key, value| {
        cache.insert(key, value);
        cache.run_pending_tasks();
    };
    let hits = replay(requests, held, keep)?;
    check_entries(cache.entry_count(), capacity)?;
    Ok(hits)
}

fn foyer(requests: &[u64], capacity: u64) -> Result<u64, Failure> {
    let cache: foyer_memory::Cache<u64, u64> = CacheBuilder::new(as_size(capacity))
        .with_shards(1)
        .with_eviction_config(S3FifoConfig::default())
        .build();
    let held = |key| cache.get(&key).map(|entry| *entry.value());
    let hits = replay(requests, held, |key, value| {
        cache.insert(key, value);
    })?;
    check_entries(cache.usage() as u64, capacity)?;
    Ok(hits)
}

/// As a user has it: what is not held is fetched, and the fetches are counted.
fn forebay(requests: &[u64], capacity: u64) -> Result<u64, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Failure::system("start a runtime"))?;
    let fetches = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&fetches);
    let source = move |key: u64| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, std::convert::Infallible>(Some(value_of(key))) }
    };
    // A trace takes seconds: nothing grows old meanwhile.
    let cache = Cache::builder(source)
        .capacity(capacity)
        .fresh_for(Duration::from_secs(24 * 60 * 60))
        .build();
    runtime.block_on(async {
        for key in requests {
            let value = cache
                .get(key)
                .await
                .map_err(|error| Failure::Wrong(error.to_string()))?;
            let value = value.ok_or_else(|| Failure::Wrong(format!("key {key} has no value")))?;
            check(*key, value)?;
        }
        Ok::<_, Failure>(())
    })?;
    check_entries(cache.stats().entries, capacity)?;
    let fetches = fetches.load(Ordering::Relaxed);
    (requests.len() as u64)
        .checked_sub(fetches)
        .ok_or_else(|| Failure::Wrong(format!("{fetches} fetches for {} requests", requests.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [Contender; 4] = [
        Contender::QuickCache,
        Contender::Moka,
        Contender::Foyer,
        Contender::Forebay,
    ];

    #[test]
    fn where_there_is_room_for_all_only_the_first_of_each_key_is_a_miss() {
        let requests: Vec<u64> = (0..50).chain(0..50).chain(10..40).collect();
        for contender in CACHES.into_iter().chain([Contender::Limit, Contender::LeastRecent]) {
            assert_eq!(contender.hits(&requests, 100).unwrap(), 80, "{contender:?}");
        }
    }

    #[test]
    fn what_is_used_always_is_kept_and_nobody_beats_the_optimum() {
        // Every other request is of one of five keys; the rest comes once.
        let requests: Vec<u64> = (0..10_000)
            .map(|at| if at % 2 == 0 { at / 2 % 5 } else { 1_000 + at })
            .collect();
        let optimum = Contender::Limit.hits(&requests, 50).unwrap();
        assert_eq!(optimum, 5_000 - 5);
        for contender in CACHES {
            let hits = contender.hits(&requests, 50).unwrap();
            assert!((4_900..=optimum).contains(&hits), "{contender:?}: {hits}");
        }
    }

    #[test]
    fn a_wrong_value_and_one_entry_too_many_are_errors() {
        let wrong = replay(&[1, 2], Some, |_, _| ()).unwrap_err();
        assert!(wrong.to_string().contains("key 1 has the value 1"), "{wrong}");
        assert!(check_entries(5, 5).is_ok());
        assert!(check_entries(6, 5).unwrap_err().to_string().contains("6 entries"));
    }

    #[test]
    fn every_system_of_the_report_is_known() {
        for system in PEERS.into_iter().chain([LIMIT, FOREBAY]) {
            Contender::named(system).unwrap();
        }
        assert!(Contender::named("nobody").is_err());
    }
}
