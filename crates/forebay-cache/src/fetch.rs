//! What a flight does: it asks the tiers, waits for its turn, asks the source, and puts what it brings into memory.
//!
//! Promises:
//! - A trip runs in tasks of its own: nobody's cancellation ends it. However it ends (a panic, the hard timeout, a runtime that
//!   shuts down), every flight on it ends with an outcome, and its turn is given back.
//! - Flights that depart together ask the tiers in one go; and the source too, where it gathers.
//! - Where a tier arranges that one process fetches for all, the flights of the others land with what that one brings; if it brings nothing
//!   within its time, they ask the source themselves. Who waits in line, or for others, keeps no other process from a key.
//! - What comes is kept only if nobody wrote meanwhile, with the age that it has: counted from the beginning of its fetch, as
//!   HTTP caches count it (RFC 9111, section 4.2.3).

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tracing::Instrument;

use super::answer::State;
use super::backplane::Listening;
use super::clock::whole_ms;
use super::core::Core;
use super::error::CacheError;
use super::events::Event;
use super::flight::{Flight, Landed};
use super::flights::Begun;
use super::metrics;
use super::record::{Record, Staleness};
use super::source::{Known, Outcome};
use super::stats::count;
use super::tags::Tagged;
use super::tier::{Before, CENTURY, Found, Grant, Kept, Whose};
use super::trip::{ByTiers, Lease, Leg, Trip};
use super::turns::Turns;
use super::waits;
use forebay_batch::load::Key;
use forebay_batch::panics::{panic_message, quietly};

/// Flights that have begun, and depart together when this is dropped: also by a panic of the user's code that begins them, for
/// others may have joined already.
pub(super) struct Departure<'a, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    core: &'a Arc<Core<K, V, E>>,
    legs: Vec<Leg<K, V, E>>,
}

impl<'a, K, V, E> Departure<'a, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    pub(super) fn new(core: &'a Arc<Core<K, V, E>>) -> Self {
        Self { core, legs: Vec::new() }
    }

    pub(super) fn legs(&mut self) -> &mut Vec<Leg<K, V, E>> {
        &mut self.legs
    }
}

impl<K, V, E> Drop for Departure<'_, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        self.core.depart(std::mem::take(&mut self.legs));
    }
}

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Sends off flights that have begun.
    fn depart(self: &Arc<Self>, legs: Vec<Leg<K, V, E>>) {
        if legs.is_empty() {
            return;
        }
        self.publish();
        self.listen();
        self.deliver();
        if self.listening.as_ref().is_none_or(Listening::has_tried) {
            return self.send_off(legs);
        }
        let Some(runtime) = self.runtime() else {
            return self.strand(legs);
        };
        runtime.spawn(Arc::clone(self).when_it_hears(Travelling::new(self, legs)));
    }

    /// Sends them off when others are heard, so that what comes can be kept; or when that was tried.
    async fn when_it_hears(self: Arc<Self>, mut travelling: Travelling<K, V, E>) {
        if let Some(listening) = &self.listening {
            listening.tried().await;
        }
        self.send_off(std::mem::take(&mut travelling.legs));
    }

    fn send_off(self: &Arc<Self>, legs: Vec<Leg<K, V, E>>) {
        let asks_tiers = || legs.iter().any(|leg| leg.by_tiers != ByTiers::No) || self.tiers.lease_for().is_some();
        if self.tiers.is_empty() || !asks_tiers() {
            return self.to_the_source(legs);
        }
        let Some(runtime) = self.runtime() else {
            return self.strand(legs);
        };
        // On their way before the task runs, for a runtime that shuts down may drop it before that.
        runtime.spawn(Arc::clone(self).by_the_tiers(Travelling::new(self, legs)));
    }

    /// Asks the tiers, and sends what they do not have to the source, or lets it wait for who asks the source for all.
    async fn by_the_tiers(self: Arc<Self>, travelling: Travelling<K, V, E>) {
        let mut travelling = self.land_by_tiers(travelling).await;
        if travelling.legs.is_empty() {
            return;
        }
        let lease_for = match self.tiers.lease_for() {
            Some(lease_for) if self.turns.is_none() => lease_for,
            // Where there is a line, a lease is asked for when the turn is there: meanwhile another process may fetch.
            _ => return self.to_the_source(std::mem::take(&mut travelling.legs)),
        };
        let others = self.leave_with_leases(&mut travelling).await;
        self.wait_for_others(others, lease_for).await;
    }

    /// Lands what the tiers have; the rest is left.
    async fn land_by_tiers(self: &Arc<Self>, mut travelling: Travelling<K, V, E>) -> Travelling<K, V, E> {
        let asks = |leg: &&Leg<K, V, E>| leg.by_tiers != ByTiers::No;
        let keys: Vec<K> = travelling.legs.iter().filter(asks).map(|leg| leg.key.clone()).collect();
        let asked = self.asked();
        let asking: Vec<&Leg<K, V, E>> = travelling.legs.iter().filter(asks).collect();
        let is_enough = |place: usize, kept: &Kept<V>, is_shared: bool| {
            let found = || Found {
                kept: kept.clone(),
                is_shared,
            };
            let lands = || matches!(self.good_enough(asking[place], found(), asked), Some(Copy::Lands(..)));
            catch_unwind(AssertUnwindSafe(lands)).unwrap_or_default()
        };
        let found = self.tiers.get_many(&keys, &is_enough).await;
        drop(asking);
        // A local that panics in its drop would take with it what is returned, and its flights with that.
        quietly(|| drop(keys));
        // The user's rule runs here: whatever it does, no leg may be lost, so none is moved before all are judged.
        let mut found = found.into_iter();
        let good_enough: Vec<_> = travelling
            .legs
            .iter()
            .map(|leg| match asks(&leg).then(|| found.next()).flatten().flatten() {
                Some(found) => self.good_enough(leg, found, asked).unwrap_or(Copy::Old),
                None => Copy::None,
            })
            .collect();
        let mut rest = Vec::new();
        for (mut leg, landing) in std::mem::take(&mut travelling.legs).into_iter().zip(good_enough) {
            let (record, state) = match landing {
                Copy::Lands(record, state) => (record, state),
                Copy::Rescues(record) => {
                    // Others may be waited for, and asked about again and again.
                    if !std::mem::replace(&mut leg.has_copy, true) {
                        self.keep_to_rescue(&leg, record);
                    }
                    rest.push(leg);
                    continue;
                }
                Copy::Old => {
                    leg.has_copy = true;
                    rest.push(leg);
                    continue;
                }
                Copy::None => {
                    rest.push(leg);
                    continue;
                }
            };
            count(&self.counters.flights_by_tier);
            let fetched_at_ms = record.fetched_at_ms();
            self.land_value(&leg, record, state, None);
            if state == State::Stale {
                quietly(|| self.refresh_in_background(leg.hash, leg.key, fetched_at_ms));
            } else {
                quietly(|| drop(leg));
            }
        }
        travelling.legs = rest;
        travelling
    }

    /// Asks for leases: those remain that are to be asked for here; returns those that others ask for.
    async fn ask_for_leases(self: &Arc<Self>, travelling: &mut Travelling<K, V, E>) -> Travelling<K, V, E> {
        let (mut own, mut others) = (Travelling::new(self, Vec::new()), Travelling::new(self, Vec::new()));
        for grant in [Grant::IfNothingIsKept, Grant::IfNobodyHasIt, Grant::Anyway] {
            // Who wants it from the source, whatever is known, does not wait for what others began before.
            let asks = |leg: &Leg<K, V, E>| match leg.by_tiers {
                ByTiers::No => grant == Grant::Anyway,
                _ if leg.is_kept => grant == Grant::IfNobodyHasIt,
                _ => grant == Grant::IfNothingIsKept,
            };
            let asking = travelling.legs.iter().filter(|leg| asks(leg));
            let keys: Vec<K> = asking.map(|leg| leg.key.clone()).collect();
            if keys.is_empty() {
                continue;
            }
            let turns = self.tiers.turns(&keys, grant).await;
            quietly(|| drop(keys));
            let (asking, rest) = std::mem::take(&mut travelling.legs)
                .into_iter()
                .partition::<Vec<_>, _>(asks);
            travelling.legs = rest;
            for (mut leg, turn) in asking.into_iter().zip(turns) {
                match turn {
                    Whose::Own(lease) => {
                        leg.lease = lease.map_or(Lease::Needless, Lease::Granted);
                        own.legs.push(leg);
                    }
                    Whose::Others => {
                        leg.is_kept = false;
                        others.legs.push(leg);
                    }
                    Whose::Nobodys => {
                        // If it is still not good enough when it has been looked at again, it is to be fetched.
                        leg.is_kept = true;
                        others.legs.push(leg);
                    }
                }
            }
        }
        travelling.legs.append(&mut own.legs);
        others
    }

    /// The same, and sends those that are to be asked for here on to the source.
    async fn leave_with_leases(self: &Arc<Self>, travelling: &mut Travelling<K, V, E>) -> Travelling<K, V, E> {
        let others = self.ask_for_leases(travelling).await;
        self.to_the_source(std::mem::take(&mut travelling.legs));
        others
    }

    /// Lands what others bring; what they have not brought within that time, or gave up before, is asked for here.
    async fn wait_for_others(self: Arc<Self>, mut waiting: Travelling<K, V, E>, lease_for: Duration) {
        let until = tokio::time::Instant::now() + lease_for.min(CENTURY);
        let mut pause = FIRST_LOOK;
        while !waiting.legs.is_empty() {
            let now = tokio::time::Instant::now();
            if now >= until {
                let mut legs = std::mem::take(&mut waiting.legs);
                legs.iter_mut().for_each(|leg| leg.lease = Lease::Needless);
                return self.to_the_source(legs);
            }
            if !waiting.legs.iter().any(|leg| leg.is_kept) {
                tokio::time::sleep(pause.min(until - now)).await;
                pause = (pause * 2).min(LAST_LOOK);
            }
            waiting = self.land_by_tiers(waiting).await;
            waiting = self.leave_with_leases(&mut waiting).await;
        }
    }

    /// A tier's copy as an entry, if it will do, or at least for when the source fails. If that cannot be told, because the user's rule panics, the source is asked.
    /// One of a tier that others do not change is as it was when it was fetched: what they have changed since may not have been heard.
    fn good_enough(&self, leg: &Leg<K, V, E>, found: Found<V>, asked: Asked) -> Option<Copy<V>> {
        let Found { kept, is_shared } = found;
        let fetched_at_ms = self.time.read_off_the_wall(kept.fetched_at);
        let mut record = self.record(leg.hash, kept.value, kept.details, fetched_at_ms, asked.since);
        if is_shared {
            record = self.learnt(record, asked);
        }
        let now_ms = self.time.now();
        // What memory has may be newer, though it is not served any more.
        let in_memory = || self.store.peek(leg.hash, &leg.key, Record::fetched_at_ms);
        let known_ms = catch_unwind(AssertUnwindSafe(in_memory)).ok()?;
        if known_ms.is_some_and(|known_ms| is_newer(known_ms, fetched_at_ms, now_ms)) {
            return None;
        }
        let standing = || record.standing(now_ms, &self.terms);
        let standing = catch_unwind(AssertUnwindSafe(standing)).ok()?;
        let state = match (leg.by_tiers, standing.staleness) {
            (ByTiers::Any, Staleness::Fresh) => State::Fetched,
            (ByTiers::Any, Staleness::Stale) => State::Stale,
            (ByTiers::NewerThan(known_ms), Staleness::Fresh) if is_newer(fetched_at_ms, known_ms, now_ms) => {
                State::Fetched
            }
            (ByTiers::Any, Staleness::Expired) if standing.rescues => return Some(Copy::Rescues(record)),
            _ => return None,
        };
        Some(Copy::Lands(record, state))
    }

    /// Keeps an expired copy for when the source fails, if memory has nothing newer of the key and nobody has changed it meanwhile.
    fn keep_to_rescue(&self, leg: &Leg<K, V, E>, record: Record<V>) {
        let Leg { hash, key, flight, .. } = leg;
        // The user's code, on both sides.
        quietly(|| {
            let (weight, fetched_at_ms) = (self.weigh(key, record.value(), record.weight()), record.fetched_at_ms());
            let mut entry = Some((key.clone(), record));
            let kept = self.flights.while_it_flies(*hash, flight, || {
                let known_ms = self.store.peek(*hash, key, Record::fetched_at_ms);
                let is_newer = known_ms.is_none_or(|known_ms| known_ms < fetched_at_ms);
                is_newer.then(|| self.shelve(*hash, key, weight, &mut entry))
            });
            drop(entry);
            if let Some(shelved) = kept.flatten() {
                self.shelved(*hash, shelved);
                self.something_is_kept(*hash, key);
            }
        });
    }

    /// Whoever has waited as long as he is to for a flight of the key, and had nothing that would do, may have something now.
    fn something_is_kept(&self, hash: u64, key: &K) {
        if self.settings.soft_timeout.is_some() {
            quietly(|| {
                self.flights
                    .of(hash, key)
                    .iter()
                    .for_each(|flight| flight.something_is_kept());
            });
        }
    }

    pub(super) fn asked(&self) -> Asked {
        Asked {
            // Who asks after it was begun to hear of others' changes, asks after that by the clock too.
            at_ms: self.time.now().max(self.terms.news.since_ms()),
            since: self.tags.now(),
        }
    }

    /// The entry, as known to hold when it was asked for, though it is older.
    pub(super) fn learnt(&self, record: Record<V>, asked: Asked) -> Record<V> {
        match self.listening {
            None => record,
            Some(_) => record.learnt_at(asked.at_ms),
        }
    }

    /// Asks the source in the background, if nobody does. `known_ms`: when what is known was fetched.
    pub(super) fn refresh_in_background(self: &Arc<Self>, hash: u64, key: K, known_ms: u64) {
        match self
            .flights
            .begin_if_none(hash, &key, |number| Flight::new(number, true))
        {
            Begun::New(flight) => {
                count(&self.counters.flights);
                count(&self.counters.refreshes);
                self.depart(vec![Leg::new(hash, key, &flight, ByTiers::NewerThan(known_ms))]);
            }
            // It ends what was claimed, whatever it brings.
            Begun::InTheAir => {}
            Begun::Full => {
                self.store.peek(hash, &key, Record::unclaim);
            }
        }
    }

    fn to_the_source(self: &Arc<Self>, legs: Vec<Leg<K, V, E>>) {
        if self.source.gathers() {
            return self.in_turn(legs);
        }
        for leg in legs {
            self.in_turn(vec![leg]);
        }
    }

    /// Fetches as soon as there is a turn for it. A fetch that waits for another flight gives its turn back, so that those who wait for turns and
    /// those who have them do not wait for one another.
    fn in_turn(self: &Arc<Self>, mut legs: Vec<Leg<K, V, E>>) {
        let Some(turns) = &self.turns else {
            return self.go(Travelling::new(self, legs), self.runtime());
        };
        let turn_is_there = |trip| {
            if !self.go_with_turn(trip) {
                self.next_turn();
            }
        };
        if turns.take() {
            return turn_is_there(Trip::new(legs, self.runtime()));
        }
        let now = tokio::time::Instant::now();
        for leg in &mut legs {
            leg.in_line_since.get_or_insert(now);
            // Another process may fetch it meanwhile.
            self.end_lease(leg);
            if leg.lease != Lease::Needless {
                (leg.lease, leg.is_kept) = (Lease::Unasked, false);
            }
        }
        let flights: Vec<_> = legs.iter().map(|leg| (leg.hash, Arc::clone(&leg.flight))).collect();
        let trip = Trip::new(legs, self.runtime());
        let (number, since) = (trip.number(), trip.in_line_since());
        match turns.ask(number, trip, since, Trip::waiters) {
            Some(trip) => turn_is_there(trip),
            // Who left before it was in line has not called it off.
            None => flights
                .iter()
                .filter(|(_, flight)| flight.is_unwanted())
                .for_each(|(hash, flight)| self.leave_line(*hash, flight, |_| {})),
        }
    }

    /// Somebody does not wait for a flight any more, as `leave` notes: if nobody does, it is not to wait in line either.
    pub(super) fn leave_line(&self, hash: u64, flight: &Flight<V, E>, leave: impl FnOnce(&Flight<V, E>)) {
        let mut withdrawn = None;
        let called_off = self.flights.abandon(hash, flight, || {
            leave(flight);
            let Some(turns) = &self.turns else { return false };
            if !flight.is_unwanted() {
                turns.waiters(flight.in_line.number(), |trip| trip.waiters_now(flight));
                return false;
            }
            withdrawn = self.withdraw(turns, flight);
            withdrawn.is_some()
        });
        if called_off && let Some((leg, _)) = &withdrawn {
            count(&self.counters.called_off);
            // Who claimed a refresh meanwhile left it to this flight.
            self.came_to_nothing(leg);
            self.end_lease(leg);
        }
        quietly(|| drop(withdrawn));
    }

    /// Fetches now; the turn is there. False if it came back at once.
    fn go_with_turn(self: &Arc<Self>, trip: Trip<K, V, E>) -> bool {
        let turn = Arc::new(AtomicU8::new(LEAVING));
        let mut travelling = Travelling::new(self, trip.legs);
        travelling.turn = Some(Turn {
            word: Arc::clone(&turn),
            core: Arc::clone(self),
        });
        self.go(travelling, trip.runtime);
        turn.swap(DEPARTED, Ordering::AcqRel) != BACK
    }

    /// Fetches now; without a runtime all end.
    fn go(&self, travelling: Travelling<K, V, E>, runtime: Option<Handle>) {
        let Some(runtime) = runtime else { return };
        let span = tracing::debug_span!("flight", cache = &*self.settings.name, keys = travelling.legs.len());
        runtime.spawn(travelling.fetch().instrument(span));
    }

    /// No runtime: all end.
    fn strand(self: &Arc<Self>, legs: Vec<Leg<K, V, E>>) {
        drop(Travelling::new(self, legs));
    }

    /// A flight's end with a value. It goes into the tiers if it does not come from there: with what was known of them before it was fetched.
    fn land_value(&self, leg: &Leg<K, V, E>, record: Record<V>, state: State, into_tiers: Option<&Before>) {
        let Leg { hash, key, flight, .. } = leg;
        let fetched_at_ms = record.fetched_at_ms();
        // The user's code comes first: nothing has happened yet if it panics.
        let prepared = catch_unwind(AssertUnwindSafe(|| {
            let landed = Landed {
                value: record.value().cloned(),
                fetched_at_ms,
                state,
                learnt_ms: record.learnt_at_ms(),
                tagged: record.tagged().cloned(),
            };
            let value = &landed.value;
            let for_tiers = into_tiers.filter(|_| !self.tiers.is_empty());
            let for_tiers = for_tiers.map(|before| {
                let details = record.details().shared();
                self.prepare(key, value, details.as_ref(), fetched_at_ms, before)
            });
            (
                self.weigh(key, value.as_ref(), record.weight()),
                for_tiers,
                key.clone(),
                landed,
            )
        }));
        let (weight, mut for_tiers, owned, landed) = match prepared {
            Ok(prepared) => prepared,
            Err(panic) => {
                self.land_error(leg, panicked(panic));
                return quietly(|| drop(record));
            }
        };
        let mut entry = Some((owned, record));
        let kept = || {
            // A tag of it may have been invalidated meanwhile: then it is for those who waited.
            let holds = || landed.tagged.as_ref().is_none_or(Tagged::holds);
            self.flights.land(*hash, flight, || {
                if !holds() {
                    // What is known may still be served, of other tags.
                    return None;
                }
                let filled = for_tiers
                    .take()
                    .map(|prepared| self.tiers.fill(prepared, leg.lease_number(), leg.replaces(), holds));
                Some((filled, self.shelve(*hash, key, weight, &mut entry)))
            })
        };
        let kept = match catch_unwind(AssertUnwindSafe(kept)) {
            Ok(kept) => kept,
            // The key's `Eq`: it is out of the air and kept nowhere.
            Err(panic) => {
                count(&self.counters.failures);
                self.end_lease(leg);
                flight.end(Err(panicked(panic)));
                return quietly(|| drop((for_tiers, entry, landed)));
            }
        };
        let kept = kept.flatten();
        self.events.tell(|| Event::Fetched {
            key: key.clone(),
            missing: landed.value.is_none(),
            by_tier: into_tiers.is_none(),
            kept: kept.is_some(),
        });
        let replaced = match kept {
            Some((filled, shelved)) => {
                self.shelved(*hash, shelved);
                self.something_is_kept(*hash, key);
                if filled.as_ref().is_none_or(|filled| !filled.ends_lease) {
                    self.end_lease(leg);
                }
                filled
            }
            None => {
                count(&self.counters.late_dropped);
                self.came_to_nothing(leg);
                self.end_lease(leg);
                None
            }
        };
        flight.end(Ok(landed));
        // What came too late is dropped last: its panics are nobody's who waited.
        quietly(|| drop(replaced));
        quietly(|| drop((for_tiers, entry)));
    }

    /// Nothing comes of a flight that was to fetch for all who share a tier: the others need not wait for it.
    pub(super) fn end_lease(&self, leg: &Leg<K, V, E>) {
        let Some(lease) = leg.lease_number() else { return };
        let Some(runtime) = self.runtime() else { return };
        quietly(|| {
            let (tiers, key) = (self.tiers.clone(), leg.key.clone());
            runtime.spawn(async move { tiers.end_lease(key, lease).await });
        });
    }

    /// What a flight has brought is kept nowhere, as something newer is known: what was claimed for it has yet to be fetched.
    fn came_to_nothing(&self, leg: &Leg<K, V, E>) {
        quietly(|| {
            self.store.peek(leg.hash, &leg.key, Record::unclaim);
        });
    }

    /// A flight's end without one.
    fn land_error(&self, leg: &Leg<K, V, E>, error: CacheError<E>) {
        count(&self.counters.failures);
        self.end_lease(leg);
        let mut now_ms = None;
        quietly(|| now_ms = Some(self.time.now()));
        let mut is_told = false;
        quietly(|| {
            let told = self.flights.fail(leg.hash, &leg.flight, || {
                let now_ms = now_ms?;
                let failed = |record: &Record<V>| record.failed(now_ms, &self.terms);
                self.store.peek(leg.hash, &leg.key, failed)
            });
            is_told = told.flatten().is_some();
        });
        if !is_told {
            self.came_to_nothing(leg);
        }
        self.events.tell(|| Event::Failed { key: leg.key.clone() });
        leg.flight.end(Err(error));
    }

    /// Calls off those that wait for their turn and would reach nobody: nobody else is to wait for them, nor to be refused for them.
    pub(super) fn call_off_superseded(&self, superseded: &[(u64, Arc<Flight<V, E>>)]) {
        let Some(turns) = &self.turns else { return };
        for (_, flight) in superseded {
            // Nobody comes to wait for it any more.
            if flight.reaches_somebody() {
                continue;
            }
            let Some((leg, trip)) = self.withdraw(turns, flight) else {
                continue;
            };
            // Whoever has its leg ends it.
            if self.flights.abandon_superseded(leg.hash, flight, || true) {
                count(&self.counters.called_off);
                self.came_to_nothing(&leg);
                self.end_lease(&leg);
            }
            quietly(|| drop((leg, trip)));
        }
    }

    /// Takes a flight out of the line, if it waits there: its leg, and the trip if nothing is left of it.
    pub(super) fn withdraw(&self, turns: &Turns<Trip<K, V, E>>, flight: &Flight<V, E>) -> Option<Withdrawn<K, V, E>> {
        turns.withdraw(flight.in_line.number(), |trip| trip.take(flight), Trip::waiters_of_rest)
    }

    /// Whether a flight that has not begun its fetch may as well not: its outcome would reach nobody.
    fn call_off(&self, leg: &Leg<K, V, E>) -> bool {
        let unwanted = || !leg.flight.reaches_somebody();
        let called_off = unwanted() && self.flights.abandon_superseded(leg.hash, &leg.flight, unwanted);
        if called_off {
            count(&self.counters.called_off);
            self.came_to_nothing(leg);
            self.end_lease(leg);
        }
        called_off
    }
}

/// A flight's leg, and the trip if nothing is left of it.
type Withdrawn<K, V, E> = (Leg<K, V, E>, Option<Trip<K, V, E>>);

/// What a tier's copy is good for.
enum Copy<V> {
    Lands(Record<V>, State),
    /// It is expired, and better than nothing.
    Rescues(Record<V>),
    Old,
    None,
}

/// How soon a tier is asked again whether another process has brought a value, at first and at last.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// When somebody was asked, who answers with what is so from then on: by the clock, and by the tags that were invalidated.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) at_ms: u64,
    pub(super) since: u64,
}

/// By how much the same copy, that old, may seem to be newer when it is read back. Entries age by the kernel's coarse clock,
/// which lags by up to 10 ms, copies by the wall clock, which is slewed by up to 500 ppm.
fn apart_ms(age_ms: u64) -> u64 {
    20 + age_ms / 1_000
}

/// Whether what was fetched then is surely newer than that.
fn is_newer(at_ms: u64, than_ms: u64, now_ms: u64) -> bool {
    at_ms > than_ms.saturating_add(apart_ms(now_ms.saturating_sub(than_ms)))
}

fn panicked<E>(panic: Box<dyn Any + Send>) -> CacheError<E> {
    let message = panic_message(&*panic);
    quietly(|| drop(panic));
    CacheError::Panicked(message)
}

/// Flights on their way. Dropped before they have landed, they end as stopped.
struct Travelling<K: Key, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    core: Arc<Core<K, V, E>>,
    legs: Vec<Leg<K, V, E>>,
    turn: Option<Turn<K, V, E>>,
}

/// A turn that somebody has.
///
/// A runtime that has shut down drops what is spawned on it before `spawn` returns. If that gave the turn to the next in line
/// it would do so each inside of the one before; so whoever gave it takes it back, and gives it to the next.
struct Turn<K: Key, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    word: Arc<AtomicU8>,
    core: Arc<Core<K, V, E>>,
}

impl<K: Key, V, E> Drop for Turn<K, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        if self.word.swap(BACK, Ordering::AcqRel) == DEPARTED {
            self.core.next_turn();
        }
    }
}

/// It is being spawned.
const LEAVING: u8 = 0;
const DEPARTED: u8 = 1;
/// It was dropped while it was being spawned.
const BACK: u8 = 2;

impl<K, V, E> Travelling<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn new(core: &Arc<Core<K, V, E>>, legs: Vec<Leg<K, V, E>>) -> Self {
        Self {
            core: Arc::clone(core),
            legs,
            turn: None,
        }
    }

    /// Asks for leases. What others have begun to fetch is waited for without a turn.
    async fn get_leases(&mut self, lease_for: Duration) {
        let core = Arc::clone(&self.core);
        let unasked = self.legs.extract_if(.., |leg| leg.lease == Lease::Unasked).collect();
        let mut asking = Travelling::new(&core, unasked);
        let mut others = core.ask_for_leases(&mut asking).await;
        self.legs.append(&mut asking.legs);
        // What has come there meanwhile may be good enough. What is not is asked for here, if nobody else does.
        if others.legs.iter().any(|leg| leg.is_kept) {
            asking.legs = others.legs.extract_if(.., |leg| leg.is_kept).collect();
            asking = core.land_by_tiers(asking).await;
            others.legs.append(&mut core.ask_for_leases(&mut asking).await.legs);
            self.legs.append(&mut asking.legs);
        }
        if !others.legs.is_empty() {
            tokio::spawn(core.wait_for_others(others, lease_for));
        }
    }

    /// Leaves out what would reach nobody.
    fn call_off(&mut self) {
        let (called_off, legs) = std::mem::take(&mut self.legs)
            .into_iter()
            .partition::<Vec<_>, _>(|leg| self.core.call_off(leg));
        self.legs = legs;
        quietly(|| drop(called_off));
    }

    /// Asks the source, and lands.
    async fn fetch(mut self) {
        let core = Arc::clone(&self.core);
        self.call_off();
        if let Some(lease_for) = core.tiers.lease_for()
            && self.legs.iter().any(|leg| leg.lease == Lease::Unasked)
        {
            // On the heap: most fetches have no room to spare for it.
            Box::pin(self.get_leases(lease_for)).await;
            self.call_off();
        }
        if self.legs.is_empty() {
            return;
        }
        count(&core.counters.fetches);
        core.counters
            .keys_fetched
            .fetch_add(self.legs.len() as u64, Ordering::Relaxed);
        // The user's clock: whatever it does, they are on their way.
        let (asked, before, began) = (core.asked(), core.tiers.before(), Instant::now());
        let flights = self.legs.iter().map(|leg| leg.flight.id).collect();
        let mut wanted = Some(catch_unwind(AssertUnwindSafe(|| core.wanted(&self.legs))));
        let mut flying = Flying {
            core: &core,
            before: &before,
            asked,
            legs: std::mem::take(&mut self.legs).into_iter().map(Some).collect(),
        };
        let turn = self.turn.take().map(|turn| Box::new(turn) as Box<dyn Send>);
        let turn = Arc::new(Mutex::new(turn));
        let arrived = Mutex::new(Vec::new());
        let asking = core.ask(&mut wanted, flying.legs.len(), &arrived);
        let mut asking = pin!(waits::fetching(flights, Arc::clone(&turn), asking));
        let rest = poll_fn(|context| {
            let polled = asking.as_mut().poll(context);
            if polled.is_ready() {
                core.took(began.elapsed());
            }
            let arrived = std::mem::take(&mut *arrived.lock());
            for (place, outcome) in arrived {
                flying.land(place, outcome);
            }
            polled
        });
        let rest = rest.await;
        flying.land_rest(&rest);
    }
}

/// Keys that the source is being asked for. Those that have not landed when it is dropped end.
struct Flying<'c, K: Key, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    core: &'c Arc<Core<K, V, E>>,
    before: &'c Before,
    asked: Asked,
    /// Those that have not landed.
    legs: Vec<Option<Leg<K, V, E>>>,
}

impl<K: Key, V, E> Flying<'_, K, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn land(&mut self, place: usize, outcome: Outcome<V, E>) {
        let (core, asked) = (self.core, self.asked);
        let Some(leg) = self.legs.get_mut(place).and_then(Option::take) else {
            return;
        };
        match outcome {
            Ok(fetched) => {
                if fetched.unchanged {
                    count(&core.counters.unchanged);
                }
                let fetched_at_ms = asked.at_ms.saturating_sub(whole_ms(fetched.age));
                let (value, details) = (fetched.value, fetched.details.shared());
                let record = core.record(leg.hash, value, details, fetched_at_ms, asked.since);
                let record = core.learnt(record, asked);
                core.land_value(&leg, record, State::Fetched, Some(self.before));
            }
            Err(error) => core.land_error(&leg, CacheError::Source(Arc::new(error))),
        }
        quietly(|| drop(leg));
    }

    /// Of those for which nothing has come.
    fn land_rest(&mut self, error: &CacheError<E>) {
        for leg in self.legs.drain(..).flatten() {
            self.core.land_error(&leg, error.clone());
            quietly(|| drop(leg));
        }
    }
}

impl<K: Key, V, E> Drop for Flying<'_, K, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        self.land_rest(&CacheError::Stopped);
    }
}

/// What the source is to be asked for.
enum Wanted<K, V> {
    One(K),
    /// Whatever was read before.
    Anew(K),
    /// Of which this is known.
    Again(K, Known<V>),
    Many(Vec<K>),
}

/// Places of keys, and what has come for them.
type Arrivals<V, E> = Mutex<Vec<(usize, Outcome<V, E>)>>;

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn wanted(&self, legs: &[Leg<K, V, E>]) -> Wanted<K, V> {
        let [leg] = legs else {
            return Wanted::Many(legs.iter().map(|leg| leg.key.clone()).collect());
        };
        let (key, is_anew) = (leg.key.clone(), leg.by_tiers == ByTiers::No);
        match self.known(leg) {
            None if is_anew => Wanted::Anew(key),
            None => Wanted::One(key),
            Some(known) => {
                if is_anew {
                    self.source.invalidate(&key);
                }
                Wanted::Again(key, known)
            }
        }
    }

    /// Asks the source for what is wanted, whatever it does, and puts down each key's outcome as it comes. Answers with what those have for which nothing has
    /// come, if there are any.
    async fn ask(
        &self,
        wanted: &mut Option<std::thread::Result<Wanted<K, V>>>,
        expected: usize,
        arrived: &Arrivals<V, E>,
    ) -> CacheError<E> {
        // The timeout is inside, so that a panic of the dropped fetch is caught too.
        let asking = async {
            let came = |place, outcome| arrived.lock().push((place, outcome));
            let mut fetching = pin!(async {
                let wanted = wanted.take().expect("it is asked once");
                match wanted.unwrap_or_else(|panic| resume_unwind(panic)) {
                    Wanted::One(key) => came(0, self.source.fetch(key).await),
                    Wanted::Anew(key) => came(0, self.source.fetch_anew(key).await),
                    Wanted::Again(key, known) => came(0, self.source.fetch_again(key, known).await),
                    Wanted::Many(keys) => return self.source.fetch_each(keys, &came).await,
                }
                1
            });
            match self.settings.fetch_timeout {
                None => Ok(fetching.await),
                Some(limit) => tokio::time::timeout(limit, fetching.as_mut()).await.map_err(|_| limit),
            }
        };
        match AssertUnwindSafe(asking).catch_unwind().await {
            Ok(Ok(returned)) => CacheError::WrongCount { expected, returned },
            Ok(Err(limit)) => {
                count(&self.counters.timeouts);
                CacheError::TimedOut(limit)
            }
            Err(panic) => panicked(panic),
        }
    }

    /// What memory has of a key, for a source that can make use of it.
    fn known(&self, leg: &Leg<K, V, E>) -> Option<Known<V>> {
        match self.source.conditional() {
            true => self.known_of(leg.hash, &leg.key),
            false => None,
        }
    }

    fn took(&self, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counters.fetch_ns.fetch_add(time_ns, Ordering::Relaxed);
        metrics::fetch_took(&self.settings.name, time);
    }

    /// Gives a turn back, to whom it is due: to who can begin a fetch. Those whose runtime has shut down end.
    fn next_turn(self: &Arc<Self>) {
        let turns = self.turns.as_ref().expect("a turn comes from somewhere");
        while let Some(trip) = turns.give_back(Trip::number) {
            if self.go_with_turn(trip) {
                return;
            }
        }
    }
}

impl<K: Key, V, E> Drop for Travelling<K, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        for leg in self.legs.drain(..) {
            self.core.land_error(&leg, CacheError::Stopped);
            quietly(|| drop(leg));
        }
        // The turn is given back once all have ended.
        drop(self.turn.take());
    }
}
