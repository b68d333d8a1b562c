//! What a cache is made of, behind its handles, and what lookups, fetches and changes all need of it.
//!
//! Promises: no user code runs while a lock is held, but for `Hash`, `Eq` and `Clone` of keys.
//!
//! Lookups are in `lookup`, fetches in `fetch`, changes in `changes`; this knows none of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::clock::Time;
use super::flight::Flight;
use super::flights::Flights;
use super::hot::{self, Hot};
use super::record::{Record, Terms, keep_for};
use super::source::AnySource;
use super::stats::{Counters, Hits, Stats, count};
use super::store::{Inserted, Store};
use super::tier::{Kept, Prepared, Put, Tiers};
use super::trip::Trip;
use super::turns::Turns;
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

/// What an entry of that key and value weighs.
pub(super) type Weigher<K, V> = Box<dyn Fn(&K, Option<&V>) -> u32 + Send + Sync>;

pub(super) struct Settings<K, V> {
    pub(super) weigher: Option<Weigher<K, V>>,
    pub(super) soft_timeout: Option<Duration>,
    pub(super) fetch_timeout: Option<Duration>,
    pub(super) runtime: Option<Handle>,
    pub(super) name: Arc<str>,
}

pub(super) struct Core<K, V, E> {
    pub(super) store: Store<K, Record<V>>,
    pub(super) flights: Flights<K, Flight<V, E>>,
    pub(super) turns: Option<Turns<Trip<K, V, E>>>,
    pub(super) source: Box<dyn AnySource<K, V, E>>,
    pub(super) tiers: Tiers<K, V>,
    pub(super) terms: Terms<V>,
    pub(super) time: Time,
    pub(super) settings: Settings<K, V>,
    pub(super) counters: Counters,
    pub(super) hits: Hits,
    pub(super) hot: Option<Mutex<Hot<K>>>,
    /// Whether the task that publishes metrics has begun.
    pub(super) publishes: AtomicBool,
}

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Puts an entry into memory, and takes it for that; one that could never fit is left to be dropped where no lock is held.
    #[inline]
    pub(super) fn shelve(&self, hash: u64, key: &K, weight: u32, entry: &mut Option<(K, Record<V>)>) -> Inserted {
        if u64::from(weight.max(1)) > self.store.capacity() {
            self.store.remove(hash, key);
            return Inserted::default();
        }
        let (key, record) = entry.take().expect("an entry is kept once");
        self.store.insert(hash, key, weight, record)
    }

    pub(super) fn weigh(&self, key: &K, value: Option<&V>) -> u32 {
        self.settings.weigher.as_ref().map_or(1, |weigh| weigh(key, value))
    }

    /// What tiers are given to keep.
    pub(super) fn prepare(&self, key: &K, value: &Option<V>, fetched_at_ms: u64) -> Prepared<K, V> {
        let fetched_at: SystemTime = self.time.on_the_wall(fetched_at_ms);
        let age_ms = self.time.now().saturating_sub(fetched_at_ms);
        self.tiers.prepare(Put {
            key: key.clone(),
            kept: Kept {
                value: value.clone(),
                fetched_at,
            },
            keep_for: keep_for(value.is_none(), age_ms, &self.terms),
        })
    }

    /// The rest of an insert, where no lock is held: what was replaced and evicted is dropped. Its panics are not the reader's.
    pub(super) fn inserted(&self, hash: u64, inserted: Inserted) {
        if !inserted.admitted {
            count(&self.counters.too_heavy);
        }
        if inserted.settles() {
            quietly(|| self.store.tidy(hash, inserted));
        }
    }

    /// Makes a timer, say, of the runtime that flights run in, wherever it is then awaited. `None`: there is no runtime.
    pub(super) fn in_the_runtime<R>(&self, make: impl FnOnce() -> R) -> Option<R> {
        let runtime = self.runtime()?;
        let _inside = runtime.enter();
        Some(make())
    }

    pub(super) fn runtime(&self) -> Option<Handle> {
        self.settings.runtime.clone().or_else(|| Handle::try_current().ok())
    }

    pub(super) fn stats(&self) -> Stats {
        let (hits_stale, hits_missing) = self.hits.totals();
        Stats {
            hits_fresh: self.store.counted(),
            hits_stale,
            hits_missing,
            in_flight: self.flights.begun(),
            in_line: self.turns.as_ref().map_or(0, |turns| turns.counts().1),
            evictions: self.store.evicted(),
            entries: self.store.len(),
            weight: self.store.weight(),
            capacity: self.store.capacity(),
            tiers: self.tiers.stats(),
            ..self.counters.stats()
        }
    }
}

impl<K, V, E> Core<K, V, E>
where
    K: Key,
{
    /// A use of the key, of which some are recorded.
    #[inline]
    pub(super) fn used<Q>(&self, key: &Q)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        if self.hot.is_some() && hot::sampled() {
            self.record_use(key);
        }
    }

    #[cold]
    fn record_use<Q>(&self, key: &Q)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        // A use more or less is not worth a wait.
        if let Some(mut hot) = self.hot.as_ref().and_then(|hot| hot.try_lock()) {
            hot.record(&key.to_owned(), self.time.now());
        }
    }
}
