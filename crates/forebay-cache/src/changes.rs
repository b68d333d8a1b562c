//! What the application says of a key: its value, or that what is known is not to be believed.
//!
//! Promises: what is said wins over every flight that was in the air, and other processes hear of it.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use super::backplane::Outbox;
use super::clock::whole_ms;
use super::core::Core;
use super::events::Event;
use super::record::Record;
use super::source::Fetched;
use super::tier::By;
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Keeps what the application says is the value.
    pub(super) fn insert(&self, hash: u64, key: K, said: Fetched<V>) {
        self.source.invalidate(&key);
        let (asked, before) = (self.asked(), self.tiers.before());
        let fetched_at_ms = asked.at_ms.saturating_sub(whole_ms(said.age));
        let (value, details) = (said.value, said.details.shared());
        let weight = self.weigh(
            &key,
            value.as_ref(),
            details.as_ref().and_then(|details| details.weight),
        );
        let for_tiers =
            (!self.tiers.is_empty()).then(|| self.prepare(&key, &value, details.as_ref(), fetched_at_ms, &before));
        let of_flights = key.clone();
        let record = self.record(hash, value, details, fetched_at_ms, asked.since);
        let mut entry = Some((key, self.learnt(record, asked)));
        let ((replaced, shelved), superseded) = self.flights.supersede(hash, &of_flights, || {
            let replaced = for_tiers.map(|prepared| self.tiers.insert(prepared));
            (replaced, self.shelve(hash, &of_flights, weight, &mut entry))
        });
        quietly(|| drop((replaced, entry)));
        // They bring nothing that is newer.
        superseded.iter().for_each(|(_, flight)| flight.something_is_kept());
        self.call_off_superseded(&superseded);
        self.shelved(hash, shelved);
        self.events.tell(|| Event::Changed {
            key: of_flights.clone(),
            elsewhere: false,
        });
        self.tell(|outbox, runtime| outbox.key(of_flights, false, runtime));
    }

    /// Forgets the key, here, in all tiers, and in other processes.
    pub(super) fn invalidate<Q>(&self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let owned = key.to_owned();
        self.source.invalidate(&owned);
        self.forget(hash, &owned, By::This);
        self.tell(|outbox, runtime| outbox.key(owned, false, runtime));
    }

    /// Makes the key's entry stale, here and in other processes.
    pub(super) fn mark_stale<Q>(&self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let owned = key.to_owned();
        self.source.invalidate(&owned);
        self.take_for_stale(hash, &owned, By::This);
        self.tell(|outbox, runtime| outbox.key(owned, true, runtime));
    }

    /// What carries the tag, and is known or on its way, is not believed any more; nor in other processes.
    pub(super) fn invalidate_tag(&self, tag: &str) {
        self.source.invalidate_tag(tag);
        self.forget_tag(tag, By::This);
        self.tell(|outbox, runtime| outbox.tag(tag, runtime));
    }

    /// Forgets everything, here, in all tiers, and in other processes.
    pub(super) fn clear(&self) {
        self.source_clears();
        self.forget_all(By::This);
        self.tell(Outbox::all);
    }

    pub(super) fn source_clears(&self) {
        for key in self.flights.keys() {
            self.source.invalidate(&key);
        }
        self.source.invalidate_all();
    }

    /// What is known of the key, or on its way, is not believed any more. The source is told before this, and before the next three.
    pub(super) fn forget(&self, hash: u64, key: &K, by: By) {
        let for_tiers = (!self.tiers.is_empty()).then(|| key.clone());
        let (replaced, superseded) = self.flights.supersede(hash, key, || {
            self.store.remove(hash, key);
            for_tiers.map(|key| self.tiers.invalidate(key, by))
        });
        quietly(|| drop(replaced));
        self.call_off_superseded(&superseded);
        quietly(|| self.store.tidy_removed(hash));
        self.events.tell(|| Event::Changed {
            key: key.clone(),
            elsewhere: by != By::This,
        });
    }

    /// What flies already may have read before the change, and is not kept.
    pub(super) fn take_for_stale(&self, hash: u64, key: &K, by: By) {
        let for_tiers = (!self.tiers.is_empty()).then(|| key.clone());
        let (replaced, superseded) = self.flights.supersede(hash, key, || {
            self.store.peek(hash, key, Record::mark_stale);
            for_tiers.map(|key| self.tiers.invalidate(key, by))
        });
        quietly(|| drop(replaced));
        self.call_off_superseded(&superseded);
        self.events.tell(|| Event::MarkedStale {
            key: key.clone(),
            elsewhere: by != By::This,
        });
    }

    pub(super) fn forget_tag(&self, tag: &str, by: By) {
        self.tags.invalidate(tag);
        let tag = Arc::from(tag);
        let replaced = self.tiers.invalidate_tag(&tag, by);
        if !self.tiers.is_empty() {
            // What a tier said before it knew of this, to who asked after memory did.
            self.tags.invalidate(&tag);
        }
        quietly(|| drop(replaced));
        self.events.tell(|| Event::TagInvalidated {
            tag,
            elsewhere: by != By::This,
        });
    }

    pub(super) fn forget_all(&self, by: By) {
        let (replaced, superseded) = self.flights.supersede_all(|| {
            self.store.clear();
            (!self.tiers.is_empty()).then(|| self.tiers.clear(by))
        });
        quietly(|| drop(replaced));
        self.call_off_superseded(&superseded);
        quietly(|| self.store.tidy_cleared());
        self.events.tell(|| Event::Cleared {
            elsewhere: by != By::This,
        });
    }
}
