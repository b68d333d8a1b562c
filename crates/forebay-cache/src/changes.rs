//! What the application says of a key: its value, or that what is known is not to be believed.
//!
//! Promises: what is said wins over every flight that was in the air.

use std::borrow::Borrow;
use std::hash::Hash;

use super::core::Core;
use super::record::{Record, jitter_seed};
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Keeps what the application says is the value.
    pub(super) fn insert(&self, hash: u64, key: K, value: Option<V>) {
        self.source.invalidate(&key);
        let now_ms = self.time.now();
        let weight = self.weigh(&key, value.as_ref());
        let for_tiers = (!self.tiers.is_empty()).then(|| self.prepare(&key, &value, now_ms));
        let of_flights = key.clone();
        let mut entry = Some((key, Record::new(value, now_ms, jitter_seed(hash, now_ms))));
        let (replaced, inserted) = self.flights.supersede(hash, &of_flights, || {
            let replaced = for_tiers.map(|prepared| self.tiers.insert(prepared));
            (replaced, self.shelve(hash, &of_flights, weight, &mut entry))
        });
        quietly(|| drop((replaced, entry)));
        self.inserted(hash, inserted);
    }

    /// Forgets the key, here and in all tiers.
    pub(super) fn invalidate<Q>(&self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let owned = key.to_owned();
        self.source.invalidate(&owned);
        let for_tiers = (!self.tiers.is_empty()).then(|| owned.clone());
        let replaced = self.flights.supersede(hash, &owned, || {
            self.store.remove::<K>(hash, &owned);
            for_tiers.map(|key| self.tiers.invalidate(key))
        });
        quietly(|| drop(replaced));
        quietly(|| self.store.tidy_removed(hash));
    }

    /// Makes the key's entry stale; what flies already may have read before the change, and is not kept.
    pub(super) fn mark_stale<Q>(&self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let owned = key.to_owned();
        self.source.invalidate(&owned);
        let for_tiers = (!self.tiers.is_empty()).then(|| owned.clone());
        let replaced = self.flights.supersede(hash, &owned, || {
            self.store.peek::<K, _>(hash, &owned, Record::mark_stale);
            for_tiers.map(|key| self.tiers.invalidate(key))
        });
        quietly(|| drop(replaced));
    }

    /// Forgets everything, here and in all tiers.
    pub(super) fn clear(&self) {
        for key in self.flights.keys() {
            self.source.invalidate(&key);
        }
        self.source.invalidate_all();
        let replaced = self.flights.supersede_all(|| {
            self.store.clear();
            (!self.tiers.is_empty()).then(|| self.tiers.clear())
        });
        quietly(|| drop(replaced));
        quietly(|| self.store.tidy_cleared());
    }
}
