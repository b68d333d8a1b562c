//! A trip: the keys that the source is asked for together, each with its flight. Knows nothing of what is done on it.
//!
//! Promises: while it waits in line, each of its flights can be taken out, and told to be waited for by more or less, in O(log n). It is wanted as much as
//! the one of its flights that most wait for: one reader of many keys is one reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::flight::Flight;
use super::flights::Numbered;

/// A key on its way, and its flight.
pub(super) struct Leg<K, V, E> {
    pub(super) hash: u64,
    pub(super) key: K,
    pub(super) flight: Arc<Flight<V, E>>,
    pub(super) by_tiers: ByTiers,
    pub(super) lease: Lease,
    /// Whether the tier that gives leases has a value that is not good enough.
    pub(super) is_kept: bool,
    /// A tier has answered with a copy that is not good enough.
    pub(super) has_copy: bool,
    /// When it got in line first.
    pub(super) in_line_since: Option<Instant>,
}

/// Whether it is this process's to fetch, for all who share a tier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lease {
    /// That was not asked.
    Unasked,
    /// By this number.
    Granted(u64),
    /// By none: there was none to be had, or others have had it for long enough.
    Needless,
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
    /// How many of its flights so many wait for. Empty where it has had but one.
    waited_for_by: BTreeMap<usize, usize>,
}

impl<K, V, E> Leg<K, V, E> {
    pub(super) fn new(hash: u64, key: K, flight: &Arc<Flight<V, E>>, by_tiers: ByTiers) -> Self {
        Self {
            hash,
            key,
            flight: Arc::clone(flight),
            by_tiers,
            lease: Lease::Unasked,
            is_kept: false,
            has_copy: false,
            in_line_since: None,
        }
    }
}

impl<K, V, E> Leg<K, V, E> {
    /// By what its lease is known to the tier, if it has one.
    pub(super) fn lease_number(&self) -> Option<u64> {
        match self.lease {
            Lease::Granted(number) => Some(number),
            Lease::Unasked | Lease::Needless => None,
        }
    }

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
        for (place, leg) in legs.iter().enumerate() {
            leg.flight.in_line.is_at(number, place);
        }
        Self {
            legs,
            runtime,
            number,
            waited_for_by: BTreeMap::new(),
        }
    }

    /// When the first of its flights got in line.
    pub(super) fn in_line_since(&self) -> Option<Instant> {
        self.legs.iter().filter_map(|leg| leg.in_line_since).min()
    }

    /// By what it is known in line: a flight's own number, or one of many keys that no flight has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// It gets in line: how many wait for it.
    pub(super) fn waiters(&mut self) -> usize {
        if let [leg] = &self.legs[..] {
            return leg.flight.waiting();
        }
        self.waited_for_by.clear();
        for leg in &self.legs {
            let waiting = leg.flight.waiting();
            leg.flight.in_line.counts(waiting);
            *self.waited_for_by.entry(waiting).or_default() += 1;
        }
        self.most()
    }

    /// The same in line, where more or less may wait for this flight now; none if it is not on this trip.
    pub(super) fn waiters_now(&mut self, flight: &Flight<V, E>) -> Option<usize> {
        self.place(flight)?;
        let waiting = flight.waiting();
        if self.waited_for_by.is_empty() {
            return Some(waiting);
        }
        self.forget(flight.in_line.counts(waiting));
        *self.waited_for_by.entry(waiting).or_default() += 1;
        Some(self.most())
    }

    /// Takes this flight's leg out, if it is on this trip.
    pub(super) fn take(&mut self, flight: &Flight<V, E>) -> Option<Leg<K, V, E>> {
        let place = self.place(flight)?;
        if !self.waited_for_by.is_empty() {
            self.forget(flight.in_line.counts(0));
        }
        let leg = self.legs.swap_remove(place);
        if let Some(moved) = self.legs.get(place) {
            moved.flight.in_line.is_at(self.number, place);
        }
        Some(leg)
    }

    /// How many wait for it, in line; none if nothing is left of it.
    pub(super) fn waiters_of_rest(&self) -> Option<usize> {
        (!self.legs.is_empty()).then(|| self.most())
    }

    fn place(&self, flight: &Flight<V, E>) -> Option<usize> {
        let place = flight.in_line.place();
        let leg = self.legs.get(place)?;
        (leg.flight.number() == flight.number()).then_some(place)
    }

    fn forget(&mut self, waiting: usize) {
        if let Some(flights) = self.waited_for_by.get_mut(&waiting) {
            *flights -= 1;
            if *flights == 0 {
                self.waited_for_by.remove(&waiting);
            }
        }
    }

    fn most(&self) -> usize {
        self.waited_for_by.last_key_value().map_or(0, |(waiting, _)| *waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Leg = super::Leg<u64, u64, ()>;

    /// Joined, left and taken out at random, it tells each time what counting all anew tells.
    #[test]
    fn agrees_with_counting_them_all() {
        let mut dice = 7_u64;
        let mut roll = |sides: usize| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % sides
        };
        for count in (1..40).chain([300]) {
            let flights: Vec<_> = (0..count).map(|number| Arc::new(Flight::new(number, false))).collect();
            let begin = |flight: &Arc<Flight<u64, ()>>| Leg::new(0, flight.number(), flight, ByTiers::Any);
            flights
                .iter()
                .for_each(|flight| (0..roll(3)).for_each(|_| flight.join()));
            let mut trip = Trip::new(flights.iter().map(begin).collect(), None);
            // Who comes before it is in line is counted with the rest, though he tells so afterwards.
            flights[0].join();
            let most = |trip: &Trip<u64, u64, ()>| trip.legs.iter().map(|leg| leg.flight.waiting()).max();
            assert_eq!(Some(trip.waiters()), most(&trip));
            assert_eq!(trip.waiters_now(&flights[0]), most(&trip));
            let mut rest: Vec<_> = flights.clone();
            while !rest.is_empty() {
                let place = roll(rest.len());
                let flight = Arc::clone(&rest[place]);
                match roll(4) {
                    0 => {
                        rest.swap_remove(place);
                        assert_eq!(trip.take(&flight).map(|leg| leg.key), Some(flight.number()));
                        assert!(trip.take(&flight).is_none() && trip.waiters_now(&flight).is_none());
                        assert_eq!(trip.waiters_of_rest(), most(&trip));
                        continue;
                    }
                    1 if flight.waiting() > 0 => drop(flight.leave()),
                    _ => flight.join(),
                }
                assert_eq!(trip.waiters_now(&flight), most(&trip));
            }
            assert!(trip.legs.is_empty());
        }
    }
}
