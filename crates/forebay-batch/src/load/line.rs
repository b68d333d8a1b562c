//! The loader's line: keys, each once, and for each key who waits for it.
//!
//! Promises:
//! - A key is in line or in flight at most once, but for [`Keys::forget`], which asks for a second fetch. Who wants it meanwhile
//!   waits with the others, and does not count toward `max_items`.
//! - Keys are fetched in the order in which they were first asked for. One that nobody wants any more is not fetched.
//! - A flight is forgotten before its callers are told, so that their next load fetches again.
//!
//! Loads are looked up when they are collected, many at once, and not as they arrive; who arrives while a key is in flight is
//! looked up before that flight is forgotten. So what all cores would contend for is touched once or twice per batch.
//!
//! `Eq` and `Clone` of keys run under the intake's lock, their drop too where many leave at once. One that panics costs sharing
//! and no outcome: a key that cannot be compared is fetched for itself, one that cannot be cloned is not joined in flight, and
//! who cannot have a clone of the value gets the panic, whatever it carries. Knows nothing of answers.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::batch::CallError;
use crate::batch::dispatch::{Batch, deliver};
use crate::batch::line::{BatchLimits, Collected, Line, Survey};
use crate::batch::slot::{Note, Place};
use crate::batch::window::Due;
use crate::panics::{or_message, quietly};

/// A key on its way, with its hash, which its caller has made.
pub(super) struct Hashed<K> {
    pub(super) key: K,
    hash: u64,
    /// How deep inside of fetches the load was made.
    pub(super) depth: u32,
}

/// Makes hashes. Seeded, a different one for each loader.
#[derive(Clone, Default)]
pub(super) struct Hasher(DefaultHashBuilder);

impl Hasher {
    #[inline]
    pub(super) fn hash<K: std::hash::Hash>(&self, key: K, depth: u32) -> Hashed<K> {
        let hash = self.0.hash_one(&key);
        Hashed { key, hash, depth }
    }
}

/// How far an entry has come.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    InLine,
    InFlight,
}

struct Entry<K, V, E> {
    /// There while loads of an equal key can join, and while it is in line.
    key: Option<K>,
    hash: u64,
    /// Of its first load.
    depth: u32,
    stage: Stage,
    /// Whether the table has it, so that others join.
    listed: bool,
    due: Due,
    /// Most keys have one waiter, which is found here and nowhere else.
    first: Option<Place<Hashed<K>, V, E>>,
    others: Vec<Place<Hashed<K>, V, E>>,
}

impl<K, V, E> Entry<K, V, E> {
    fn add(&mut self, place: Place<Hashed<K>, V, E>) {
        if self.first.is_none() {
            self.first = Some(place);
        } else {
            self.others.push(place);
        }
    }

    /// Ends the places of loads that have left.
    fn prune(&mut self) {
        let all: Vec<_> = self.first.take().into_iter().chain(self.others.drain(..)).collect();
        for place in all {
            if let Some(place) = place.sweep() {
                self.add(place);
            }
        }
    }

    fn places(&self) -> u64 {
        u64::from(self.first.is_some()) + self.others.len() as u64
    }

    fn is_wanted(&self) -> bool {
        self.first.iter().chain(&self.others).any(Place::is_wanted)
    }
}

/// A hot key's waiters may need more room than it is worth keeping for the next key in its entry.
const WAITERS_KEPT: usize = 32;

/// What a loader counts under the intake's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) joined: u64,
    pub(super) fetched: u64,
}

/// The line. `V` is what a key's callers get, of which each gets a clone.
pub(super) struct Keys<K, V, E> {
    /// Names of listed entries, by key.
    table: HashTable<u32>,
    entries: Vec<Entry<K, V, E>>,
    /// Names of entries that are not in use.
    unused: Vec<u32>,
    /// Names of the entries in line, in order.
    line: VecDeque<u32>,
    /// Keys of loads that joined others, to be dropped outside the lock.
    spent: Vec<Hashed<K>>,
    /// Whether keys in flight are joined.
    joins_flights: bool,
    /// Places in all entries, and of those in flight, as of their last count.
    places: u64,
    places_in_flight: u64,
    equal: fn(&K, &K) -> bool,
    clone: fn(&K) -> K,
    pub(super) counters: Counters,
}

impl<K: Eq + Clone, V, E> Keys<K, V, E> {
    pub(super) fn new(joins_flights: bool) -> Self {
        Self {
            table: HashTable::new(),
            entries: Vec::new(),
            unused: Vec::new(),
            line: VecDeque::new(),
            spent: Vec::new(),
            joins_flights,
            places: 0,
            places_in_flight: 0,
            // As functions, so that loads can be dropped by code that knows nothing of keys.
            equal: K::eq,
            clone: K::clone,
            counters: Counters::default(),
        }
    }
}

impl<K, V: Clone, E> Keys<K, V, E> {
    /// Gives each load the outcome of its key; one outcome per key.
    pub(super) fn answer(batch: &mut Batch<Hashed<K>, V, E>, outcomes: Vec<V>) {
        let mut waiters = batch.places.drain(..).zip(batch.shares.drain(..)).peekable();
        'keys: for (share, outcome) in (0..).zip(outcomes) {
            while let Some((place, _)) = waiters.next_if(|(_, own)| *own == share) {
                if waiters.peek().is_some_and(|(_, next)| *next == share) {
                    let cloned = or_message(|| outcome.clone());
                    deliver(place, cloned.map_err(CallError::Panicked));
                } else {
                    deliver(place, Ok(outcome));
                    continue 'keys;
                }
            }
            // Nobody is left who wants it.
            quietly(|| drop(outcome));
        }
        debug_assert!(waiters.next().is_none(), "waiters are in the order of their keys");
    }
}

impl<K, V, E> Keys<K, V, E> {
    /// Loads that come from now on do not join the flight of this key.
    pub(super) fn forget(&mut self, key: &Hashed<K>) -> Option<K> {
        let (entries, equal) = (&self.entries, self.equal);
        let is_key = |name: &u32| {
            let own = &entries[*name as usize];
            own.stage == Stage::InFlight && own.key.as_ref().is_some_and(|own| equal(own, &key.key))
        };
        let (name, _) = self.table.find_entry(key.hash, is_key).ok()?.remove();
        let entry = &mut self.entries[name as usize];
        entry.listed = false;
        entry.key.take()
    }

    /// The same for all keys.
    pub(super) fn forget_all(&mut self) -> Vec<K> {
        let (table, entries) = (&mut self.table, &mut self.entries);
        let mut forgotten = Vec::new();
        table.retain(|name| {
            let entry = &mut entries[*name as usize];
            if entry.stage != Stage::InFlight {
                return true;
            }
            entry.listed = false;
            forgotten.extend(entry.key.take());
            false
        });
        forgotten
    }

    /// Whether a load of this key would wait with others.
    pub(super) fn has(&self, key: &Hashed<K>) -> bool {
        let is_key = |name: &u32| {
            let own = &self.entries[*name as usize];
            own.key.as_ref().is_some_and(|own| (self.equal)(own, &key.key))
        };
        or_message(|| self.table.find(key.hash, is_key).is_some()).unwrap_or(false)
    }

    /// A load has left its slot.
    fn arrive(&mut self, place: Place<Hashed<K>, V, E>, key: Hashed<K>, due: Due) {
        let (entries, equal) = (&self.entries, self.equal);
        let is_key = |name: &u32| {
            let own = &entries[*name as usize];
            own.hash == key.hash && own.key.as_ref().is_some_and(|own| equal(own, &key.key))
        };
        self.places += 1;
        // The place has to be kept, whatever the comparison does.
        let found = or_message(|| self.table.find(key.hash, is_key).copied());
        let is_comparable = found.is_ok();
        if let Ok(Some(name)) = found {
            let entry = &mut self.entries[name as usize];
            self.places_in_flight += u64::from(entry.stage == Stage::InFlight);
            entry.add(place);
            entry.due = entry.due.min(due);
            self.counters.joined += 1;
            self.spend(Some(key));
            return;
        }
        let name = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                key: None,
                hash: 0,
                depth: 0,
                stage: Stage::InLine,
                listed: false,
                due: Due::AtOnce,
                first: None,
                others: Vec::new(),
            });
            u32::try_from(self.entries.len() - 1).expect("fewer keys than memory holds")
        });
        let Hashed { key, hash, depth } = key;
        let entry = &mut self.entries[name as usize];
        entry.key = Some(key);
        entry.hash = hash;
        entry.depth = depth;
        entry.stage = Stage::InLine;
        entry.listed = is_comparable;
        entry.due = due;
        entry.first = Some(place);
        if is_comparable {
            let entries = &self.entries;
            self.table
                .insert_unique(hash, name, |name| entries[*name as usize].hash);
        }
        self.line.push_back(name);
    }

    /// Takes an entry off the table. Its key is returned, unless it was taken before.
    fn unlist(&mut self, name: u32) -> Option<Hashed<K>> {
        let entry = &mut self.entries[name as usize];
        let (hash, depth) = (entry.hash, entry.depth);
        if std::mem::take(&mut entry.listed) {
            let found = self.table.find_entry(hash, |own| *own == name);
            found.expect("a listed entry is in the table").remove();
        }
        entry.key.take().map(|key| Hashed { key, hash, depth })
    }

    /// Keeps a key that is not needed any more until it can be dropped outside the lock, if that is of any consequence.
    #[inline]
    fn spend(&mut self, key: Option<Hashed<K>>) {
        if std::mem::needs_drop::<K>() {
            self.spent.extend(key);
        }
    }

    /// The entry has neither key nor waiters any more.
    fn release(&mut self, name: u32) {
        let entry = &mut self.entries[name as usize];
        debug_assert!(entry.first.is_none() && entry.others.is_empty() && entry.key.is_none() && !entry.listed);
        if entry.others.capacity() > WAITERS_KEPT {
            entry.others = Vec::new();
        }
        self.unused.push(name);
    }

    /// Keys in line that somebody wants.
    fn wanted(&self) -> impl Iterator<Item = Note> {
        self.line.iter().filter_map(|name| {
            let entry = &self.entries[*name as usize];
            entry.is_wanted().then_some(Note {
                arrival: 0,
                weight: 0,
                due: entry.due,
            })
        })
    }

    /// Ends the places of loads that have left. Says whether anybody still wants the entry; otherwise it is released.
    fn is_wanted(&mut self, name: u32) -> bool {
        let entry = &mut self.entries[name as usize];
        if entry.is_wanted() {
            return true;
        }
        let before = entry.places();
        entry.prune();
        self.places -= before - entry.places();
        if entry.first.is_none() {
            let key = self.unlist(name);
            self.spend(key);
            self.release(name);
            return false;
        }
        true
    }
}

impl<K, V, E> Line<Hashed<K>, V, E> for Keys<K, V, E> {
    const KEEPS_WAITING: bool = true;

    fn kept(&self) -> u64 {
        self.line.len() as u64
    }

    fn places(&self) -> (u64, u64) {
        (self.places - self.places_in_flight, self.places)
    }

    fn take_over(&mut self, collected: &mut Collected<Hashed<K>, V, E>) -> u64 {
        let mut dispatched = 0;
        while let Some((place, note)) = collected.next_if(|_| true) {
            if let Some((place, key)) = place.dispatch() {
                dispatched += 1;
                self.arrive(place, key, note.due);
            }
        }
        dispatched
    }

    fn is_empty(&self, collected: &Collected<Hashed<K>, V, E>) -> bool {
        self.line.is_empty() && collected.places() == 0
    }

    fn is_full(&self, _: &Collected<Hashed<K>, V, E>, limits: &BatchLimits) -> bool {
        self.line.len() >= limits.max_items && Survey::of_all(self.wanted(), limits).is_full
    }

    fn survey(&self, _: &Collected<Hashed<K>, V, E>, limits: &BatchLimits) -> Survey {
        Survey::of(self.wanted(), limits)
    }

    fn cut(
        &mut self,
        _: &mut Collected<Hashed<K>, V, E>,
        limits: &BatchLimits,
        batch: &mut Batch<Hashed<K>, V, E>,
    ) -> u64 {
        let room = self.line.len().min(limits.max_items);
        batch.items.reserve(room);
        batch.names.reserve(room);
        while batch.items.len() < limits.max_items
            && let Some(name) = self.line.pop_front()
        {
            if !self.is_wanted(name) {
                continue;
            }
            let entry = &mut self.entries[name as usize];
            entry.stage = Stage::InFlight;
            self.places_in_flight += entry.places();
            let (hash, depth) = (entry.hash, entry.depth);
            let key = entry.key.as_ref().filter(|_| self.joins_flights);
            let cloned = key.and_then(|key| or_message(|| (self.clone)(key)).ok());
            let key = cloned.or_else(|| self.unlist(name).map(|hashed| hashed.key));
            let key = key.expect("an entry in line has its key");
            batch.items.push(Hashed { key, hash, depth });
            batch.names.push(name);
        }
        self.counters.fetched += batch.items.len() as u64;
        batch.spent.append(&mut self.spent);
        0
    }

    fn end(&mut self, batch: &mut Batch<Hashed<K>, V, E>) {
        let mut names = std::mem::take(&mut batch.names);
        batch.places.reserve(names.len());
        batch.shares.reserve(names.len());
        for (share, name) in (0..).zip(names.drain(..)) {
            let key = self.unlist(name);
            self.spend(key);
            let entry = &mut self.entries[name as usize];
            self.places -= entry.places();
            self.places_in_flight -= entry.places();
            if let Some(first) = entry.first.take() {
                batch.places.push(first);
                batch.shares.push(share);
            }
            if !entry.others.is_empty() {
                batch.shares.extend(entry.others.iter().map(|_| share));
                batch.places.append(&mut entry.others);
            }
            self.release(name);
        }
        batch.names = names;
        batch.spent.append(&mut self.spent);
    }

    fn sweep(&mut self, _: &mut Collected<Hashed<K>, V, E>) {
        // A hot key's waiters may come and go while its fetch hangs.
        (self.places, self.places_in_flight) = (0, 0);
        for entry in &mut self.entries {
            entry.prune();
            self.places += entry.places();
            if entry.stage == Stage::InFlight {
                self.places_in_flight += entry.places();
            }
        }
        let line = std::mem::take(&mut self.line);
        for name in line {
            if self.is_wanted(name) {
                self.line.push_back(name);
            }
        }
    }
}
