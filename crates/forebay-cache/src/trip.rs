//! A trip: the keys that the source is asked for together, each with its flight. Knows nothing of what is done on it.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::flight::Flight;
use super::flights::Numbered;

/// A key on its way, and its flight.
pub(super) struct Leg<K, V, E> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) flight: Arc<Flight<V, E>>,
    pub(super) by_tiers: ByTiers,
    /// By what it is fetched for all who share a tier; and whether that tier has a value that is not good enough.
    pub(super) lease: Option<u64>,
    pub(super) is_kept: bool,
    /// A tier has answered with a copy that is not good enough.
    pub(super) has_copy: bool,
}

/// Which copies of the tiers are good enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ByTiers {
    /// All that may be served.
    Any,
    /// Fresh ones, fetched later than that (ms), and surely so.
    NewerThan(u64),
    /// None.
    No,
}

/// Keys that the source is asked for together.
pub(super) struct Trip<K, V, E> {
    pub(super) legs: Vec<Leg<K, V, E>>,
    /// The runtime to fetch in, for those who waited in line: their own, for whoever gives them the turn may be of another, or
    /// at the end of its runtime.
    pub(super) runtime: Option<Handle>,
    number: u64,
}

impl<K, V, E> Leg<K, V, E> {
    pub(super) fn new(hash: u64, key: K, flight: &Arc<Flight<V, E>>, by_tiers: ByTiers) -> Self {
        Self {
            hash,
            key,
            flight: Arc::clone(flight),
            by_tiers,
            lease: None,
            is_kept: false,
            has_copy: false,
        }
    }
}

impl<K, V, E> Leg<K, V, E> {
    /// Whether tiers may have what is older than what it brings.
    pub(super) fn replaces(&self) -> bool {
        self.has_copy || self.by_tiers != ByTiers::Any
    }
}

impl<K, V, E> Trip<K, V, E> {
    pub(super) fn new(legs: Vec<Leg<K, V, E>>, runtime: Option<Handle>) -> Self {
        let number = match &legs[..] {
            [leg] => leg.flight.number(),
            legs => legs.first().map_or(0, |leg| leg.flight.number()) | 1 << 63,
        };
        Self { legs, runtime, number }
    }

    /// By what it is known in line: a flight's own number, by which it can be called off; of many keys a number that no flight has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Takes the legs of these flights out.
    pub(super) fn without(&mut self, flights: impl Fn(&Flight<V, E>) -> bool) -> Vec<Leg<K, V, E>> {
        self.legs.extract_if(.., |leg| flights(&leg.flight)).collect()
    }

    /// Its flights know that number, so that the line knows of those who come to wait for them.
    pub(super) fn is_in_line(&self) {
        let number = self.number();
        self.legs.iter().for_each(|leg| leg.flight.is_in_line_as(number));
    }

    pub(super) fn waiters(&self) -> usize {
        self.legs.iter().map(|leg| leg.flight.waiting()).sum()
    }

    /// The same where one more or less waits now. Of many keys they are not counted each time: whether anybody waits is what matters, and that
    /// nobody does any more is not noticed.
    pub(super) fn waiters_now(&self, is_wanted: bool) -> Option<usize> {
        (self.legs.len() == 1 || !is_wanted).then(|| self.waiters())
    }
}
