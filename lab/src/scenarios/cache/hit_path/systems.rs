//! The caches that are written in Rust, each as its users speak to it: a key by reference, a handle to the value back.
//!
//! Promises: each holds every key when it is made, in twice the room, so that none that divides its room has to evict. Those
//! that know ages are told one hour. Knows no loop.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use forebay::cache::Cache;
use foyer_memory::{CacheBuilder, CacheEntry, CacheProperties};

use super::getting::{Cached, Held, Watch, Wrong};

const ROOM_FOR: u32 = 2;
/// Longer than any measurement.
const FRESH_FOR: Duration = Duration::from_secs(3_600);

fn each<G>(
    keys: &[u32],
    watch: &mut impl Watch,
    get: impl Fn(&u64) -> Option<G>,
    held: impl Fn(&G) -> &Held,
) -> Result<(), Wrong> {
    for (index, &key) in keys.iter().enumerate() {
        let wanted = u64::from(key);
        watch.begin(index);
        let got = get(&wanted);
        watch.end(index);
        Wrong::check(key, got.as_ref().map(&held))?;
    }
    Ok(())
}

fn holding(keys: u32, mut insert: impl FnMut(u64, Arc<Held>)) {
    for key in 0..keys {
        insert(key.into(), Arc::new(Held { key }));
    }
}

/// The bare cost of what every cache has to do: find a value, share it.
pub(crate) struct Bare(Vec<Arc<Held>>);

impl Bare {
    pub(crate) fn new(keys: u32) -> Self {
        let mut values = Vec::new();
        holding(keys, |_, value| values.push(value));
        Self(values)
    }
}

impl Cached for Bare {
    async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
        each(keys, watch, |key| self.0.get(*key as usize).cloned(), |held| held)
    }
}

/// Knows no ages.
pub(crate) struct QuickCache(quick_cache::sync::Cache<u64, Arc<Held>>);

impl QuickCache {
    pub(crate) fn new(keys: u32) -> Self {
        let cache = quick_cache::sync::Cache::new((ROOM_FOR * keys) as usize);
        holding(keys, |key, value| cache.insert(key, value));
        Self(cache)
    }
}

impl Cached for QuickCache {
    async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
        each(keys, watch, |key| self.0.get(key), |held| held)
    }
}

/// With a time to live.
pub(crate) struct Moka(moka::sync::Cache<u64, Arc<Held>>);

impl Moka {
    pub(crate) fn new(keys: u32) -> Self {
        let cache = moka::sync::Cache::builder()
            .max_capacity((ROOM_FOR * keys).into())
            .time_to_live(FRESH_FOR)
            .build();
        holding(keys, |key, value| cache.insert(key, value));
        cache.run_pending_tasks();
        Self(cache)
    }
}

impl Cached for Moka {
    async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
        each(keys, watch, |key| self.0.get(key), |held| held)
    }
}

/// Knows no ages; its handle to an entry is all that is asked of it.
pub(crate) struct Foyer(foyer_memory::Cache<u64, Arc<Held>>);

impl Foyer {
    pub(crate) fn new(keys: u32) -> Self {
        let cache = CacheBuilder::new((ROOM_FOR * keys) as usize).build::<CacheProperties>();
        holding(keys, |key, value| drop(cache.insert(key, value)));
        Self(cache)
    }
}

impl Cached for Foyer {
    async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
        each(
            keys,
            watch,
            |key| self.0.get(key),
            |entry: &CacheEntry<_, Arc<Held>>| entry.value(),
        )
    }
}

/// With a window in which values are fresh, over a source that has nothing and is not to be asked.
pub(crate) struct Forebay(Cache<u64, Arc<Held>>);

impl Forebay {
    /// In a runtime, in which it would fetch.
    pub(crate) fn new(keys: u32) -> Self {
        let cache = Cache::builder(|_: u64| async { Ok::<Option<Arc<Held>>, Infallible>(None) })
            .capacity((ROOM_FOR * keys).into())
            .fresh_for(FRESH_FOR)
            .build();
        // There are no tiers to hear of it.
        holding(keys, |key, value| drop(cache.insert(key, value)));
        Self(cache)
    }
}

impl Cached for Forebay {
    async fn batch(&self, keys: &[u32], watch: &mut impl Watch) -> Result<(), Wrong> {
        for (index, &key) in keys.iter().enumerate() {
            let wanted = u64::from(key);
            watch.begin(index);
            let got = self.0.get(&wanted).await;
            watch.end(index);
            let got = got.map_err(|error| Wrong::Refused {
                key,
                error: error.to_string(),
            })?;
            Wrong::check(key, got.as_deref())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::cache::hit_path::getting::Unwatched;

    #[tokio::test]
    async fn every_cache_holds_every_key() {
        const KEYS: u32 = 10_000;
        let keys: Vec<u32> = (0..KEYS).collect();
        async fn check(keys: &[u32], cache: impl Cached) {
            assert_eq!(cache.batch(keys, &mut Unwatched).await, Ok(()));
            assert_eq!(cache.batch(&[KEYS], &mut Unwatched).await, Err(Wrong::Missing(KEYS)));
        }
        check(&keys, Bare::new(KEYS)).await;
        check(&keys, QuickCache::new(KEYS)).await;
        check(&keys, Moka::new(KEYS)).await;
        check(&keys, Foyer::new(KEYS)).await;
        check(&keys, Forebay::new(KEYS)).await;
    }
}
