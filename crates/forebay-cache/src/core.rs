//! What a cache is made of, behind its handles, and what lookups, fetches and changes all need of it.
//!
//! Promises: no user code runs while a lock is held, but for `Hash`, `Eq` and `Clone` of keys.
//!
//! Lookups are in `lookup`, fetches in `fetch`, changes in `changes`; this knows none of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::answer::State;
use super::backplane::{Listening, Own};
use super::clock::Time;
use super::details::Details;
use super::events::{Event, Teller};
use super::flight::Flight;
use super::flights::Flights;
use super::hot::{self, Hot};
use super::record::{More, Record, Terms, jitter_seed, keep_for};
use super::source::AnySource;
use super::stats::{Counters, Hits, Stats, count};
use super::store::{Inserted, Store};
use super::tags::Tags;
use super::tier::{Before, Kept, Prepared, Tiers, Weigher};
use super::trip::Trip;
use super::turns::Turns;
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

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
    pub(super) source: Arc<dyn AnySource<K, V, E>>,
    pub(super) tiers: Tiers<K, V>,
    /// What other processes are to hear, and what hears them.
    pub(super) outbox: Option<Own<K>>,
    pub(super) listening: Option<Listening<K>>,
    pub(super) terms: Terms<V>,
    pub(super) tags: Tags,
    pub(super) time: Time,
    pub(super) settings: Settings<K, V>,
    pub(super) counters: Counters,
    pub(super) hits: Hits,
    pub(super) events: Teller<K>,
    pub(super) hot: Option<Mutex<Hot<K>>>,
    /// Some uses are looked at.
    pub(super) samples: bool,
    /// Whether the task that publishes metrics has begun.
    pub(super) publishes: AtomicBool,
}

/// What putting an entry into memory did, the rest of which is done where no lock is held.
#[must_use]
pub(super) struct Shelved<K> {
    inserted: Inserted,
    /// Whose entries had to go, if anybody listens.
    evicted: Vec<K>,
}

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Puts an entry into memory, and takes it for that; one that could never fit is left to be dropped where no lock is held.
    #[inline]
    pub(super) fn shelve(&self, hash: u64, key: &K, weight: u32, entry: &mut Option<(K, Record<V>)>) -> Shelved<K> {
        if u64::from(weight.max(1)) > self.store.capacity() {
            self.store.remove(hash, key);
            return Shelved {
                inserted: Inserted::default(),
                evicted: Vec::new(),
            };
        }
        let (key, record) = entry.take().expect("an entry is kept once");
        let mut evicted = Vec::new();
        let is_heard = self.events.is_heard();
        let inserted = self.store.insert_telling(hash, key, weight, record, |key| {
            if is_heard {
                // The entry is on its way out, and a panic here would leave it neither there nor gone.
                quietly(|| evicted.push(key.clone()));
            }
        });
        Shelved { inserted, evicted }
    }

    /// What it weighs: as was `said`, or as the weigher says.
    pub(super) fn weigh(&self, key: &K, value: Option<&V>, said: Option<u32>) -> u32 {
        let weigh = || self.settings.weigher.as_ref().map_or(1, |weigh| weigh(key, value));
        said.unwrap_or_else(weigh)
    }

    /// An entry; `since` is the moment from which on its tags count.
    pub(super) fn record(
        &self,
        hash: u64,
        value: Option<V>,
        details: Option<Arc<Details>>,
        fetched_at_ms: u64,
        since: u64,
    ) -> Record<V> {
        let record = Record::new(value, fetched_at_ms, jitter_seed(hash, fetched_at_ms));
        let Some(details) = details else { return record };
        let tagged = (!details.tags.is_empty()).then(|| self.tags.tagged(&details.tags, since));
        let details = details.without_tags();
        if details.is_none() && tagged.is_none() {
            return record;
        }
        record.with(More {
            details,
            tagged,
            learnt_ms: None,
        })
    }

    /// What tiers are given to keep.
    pub(super) fn prepare(
        &self,
        key: &K,
        value: &Option<V>,
        details: Option<&Arc<Details>>,
        fetched_at_ms: u64,
        before: &Before,
    ) -> Prepared<K, V> {
        let age_ms = self.time.now().saturating_sub(fetched_at_ms);
        let keep_for = keep_for(value.is_none(), details.map(|details| &**details), age_ms, &self.terms);
        let kept = Kept {
            value: value.clone(),
            fetched_at: self.time.on_the_wall(fetched_at_ms),
            details: details.cloned(),
        };
        self.tiers.prepare(key.clone(), kept, keep_for, before)
    }

    /// The rest of an insert, where no lock is held: what was replaced and evicted is dropped. Its panics are not the reader's.
    pub(super) fn shelved(&self, hash: u64, shelved: Shelved<K>) {
        let Shelved { inserted, evicted } = shelved;
        if !inserted.admitted {
            count(&self.counters.too_heavy);
        }
        if inserted.settles() {
            quietly(|| self.store.tidy(hash, inserted));
        }
        for key in evicted {
            self.events.tell(|| Event::Evicted { key });
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
            in_line: self
                .turns
                .as_ref()
                .map_or(0, |turns| turns.in_line(|trip| trip.legs.len())),
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
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A lookup was answered from memory.
    #[inline]
    pub(super) fn hit<Q>(&self, key: &Q, state: State)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        self.used(key);
        self.told_hit(key, state);
    }

    /// The same where the use of the key is recorded already.
    #[inline]
    pub(super) fn told_hit<Q>(&self, key: &Q, state: State)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        self.events.tell(|| Event::Hit {
            key: key.to_owned(),
            state,
        });
    }

    /// A use of the key, of which some are recorded.
    #[inline]
    pub(super) fn used<Q>(&self, key: &Q)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        if self.samples && hot::sampled() {
            self.record_use(key);
        }
    }

    #[cold]
    fn record_use<Q>(&self, key: &Q)
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        self.deliver();
        // A use more or less is not worth a wait.
        if let Some(mut hot) = self.hot.as_ref().and_then(|hot| hot.try_lock()) {
            hot.record(&key.to_owned(), self.time.now());
        }
    }
}
