//! Which flights are in the air for which keys, and the one order in which their results and the writes of others take effect.
//!
//! Promises, a key at a time:
//! - A reader joins the flight that is in the air, or begins one if fewer than `per_key` are. It begins none if an entry was
//!   stored since it last looked. What a flight brings that began before one that has landed is older than what is known: nobody joins it, and where
//!   all are like that one more is begun.
//! - What a flight brings is kept only if it is still in the air, and nothing that began after it has brought a value before it. To
//!   supersede a key takes all its flights out of the air: what they bring reaches those who waited, and is kept nowhere.
//! - A flight that began can always end: its end runs no code of the user's.
//! - Whatever is done to the key's entry (`keep`) is done under one lock with that decision.
//!
//! Does not know what a flight does, where entries are kept, or that there is time.
//!
//! Locks: the shard's, then whatever `keep` takes. `Eq` of keys is the only code of the user that runs under it.

use std::pin::Pin;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, fence};
use forebay_batch::panics::quietly;

/// What the table must know of a flight.
pub(super) trait Numbered {
    /// Larger for flights that began later.
    fn number(&self) -> u64;
}

/// The flights in the air.
pub(super) struct Flights<K, F> {
    shards: Box<[Shard<K, F>]>,
    per_key: usize,
    max: usize,
    /// Flights that have begun and not ended, superseded ones included: at most `max`.
    begun: AtomicUsize,
    numbers: AtomicU64,
    /// How many wait for others to end.
    wanting_room: AtomicUsize,
    room: Notify,
}

struct Shard<K, F> {
    /// How often something was kept. Read without the lock, written under it.
    kept: AtomicU64,
    table: Mutex<HashTable<Entry<K, F>>>,
}

impl<K, F> Shard<K, F> {
    /// Runs `keep`, and then says so: who reads the new count finds what was kept, and who read the old one looks again.
    fn keeping<R>(&self, keep: impl FnOnce() -> R) -> R {
        let kept = keep();
        // Only who has the lock writes it.
        self.kept
            .store(self.kept.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        kept
    }
}

/// A key with flights in the air.
struct Entry<K, F> {
    hash: u64,
    key: K,
    /// In the order of their numbers; never empty while the entry is in the table.
    flights: Vec<Arc<F>>,
    /// The highest number of those that have landed with a value.
    landed: u64,
}

impl<K, F: Numbered> Entry<K, F> {
    fn new(hash: u64, key: K, flight: &Arc<F>) -> Self {
        Self {
            hash,
            key,
            flights: vec![Arc::clone(flight)],
            landed: 0,
        }
    }

    /// How many may yet bring what is newer than what has landed.
    fn promising(&self) -> usize {
        self.flights.len() - self.flights.partition_point(|flight| flight.number() < self.landed)
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.flights
            .binary_search_by_key(&number, |flight| flight.number())
            .ok()
    }
}

/// Somebody who waits for a flight to end, whosever it is.
pub(super) struct WantsRoom<'a> {
    wanting: &'a AtomicUsize,
    room: Pin<Box<Notified<'a>>>,
}

impl WantsRoom<'_> {
    /// Until one has ended.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost by dropping it.
    pub(super) async fn is_left(&mut self) {
        self.room.as_mut().await;
    }
}

impl Drop for WantsRoom<'_> {
    fn drop(&mut self) {
        self.wanting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A flight has ended, which is told when this is dropped.
struct TellsOfRoom<'a, K, F>(&'a Flights<K, F>);

impl<K, F> Drop for TellsOfRoom<'_, K, F> {
    fn drop(&mut self) {
        self.0.room_is_left();
    }
}

/// Flights that were taken out of the air, each with its key's hash.
pub(super) type Superseded<F> = Vec<(u64, Arc<F>)>;

/// What became of a reader who wants a flight.
pub(super) enum Boarded<F> {
    /// It is on one that was in the air.
    Joined(Arc<F>),
    /// It began one.
    Began(Arc<F>),
    /// Something was kept since it looked.
    LookAgain,
    /// There are as many flights as there may be.
    Full,
}

/// What became of a request for a flight that nobody waits for.
pub(super) enum Begun<F> {
    /// It began.
    New(Arc<F>),
    /// One is in the air already.
    InTheAir,
    /// There are as many flights as there may be.
    Full,
}

impl<K, F> Flights<K, F> {
    /// One has ended. No lock is held: the wakers are the executors' code, and may drop what comes back here.
    fn room_is_left(&self) {
        if self.wanting_room.load(Ordering::SeqCst) > 0 {
            quietly(|| self.room.notify_waiters());
        }
    }
}

impl<K: Eq, F: Numbered> Flights<K, F> {
    pub(super) fn new(shards: usize, per_key: usize, max: usize) -> Self {
        assert!(shards.is_power_of_two() && per_key > 0 && max > 0);
        let shard = || Shard {
            kept: AtomicU64::new(0),
            table: Mutex::new(HashTable::new()),
        };
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            per_key,
            max,
            begun: AtomicUsize::new(0),
            numbers: AtomicU64::new(1),
            wanting_room: AtomicUsize::new(0),
            room: Notify::new(),
        }
    }

    fn shard(&self, hash: u64) -> &Shard<K, F> {
        // The low bits choose the place within the shard's table.
        &self.shards[(hash >> 48) as usize & (self.shards.len() - 1)]
    }

    /// To be asked before looking for the key's entry; see [`board`](Self::board).
    pub(super) fn kept(&self, hash: u64) -> u64 {
        self.shard(hash).kept.load(Ordering::Acquire)
    }

    /// Joins or begins a flight. `kept`: what [`kept`](Self::kept) said before the reader found nothing that would do.
    /// `join` runs under the lock.
    pub(super) fn board(
        &self,
        hash: u64,
        key: &K,
        kept: u64,
        begin: impl FnOnce(u64) -> F,
        join: impl FnOnce(&Arc<F>),
    ) -> Boarded<F>
    where
        K: Clone,
    {
        let shard = self.shard(hash);
        let mut table = shard.table.lock();
        if shard.kept.load(Ordering::Relaxed) != kept {
            return Boarded::LookAgain;
        }
        let flight = match table.entry(hash, |entry| entry.key == *key, |entry| entry.hash) {
            Place::Occupied(place) => {
                let entry = place.into_mut();
                let is_promised = entry.promising() > 0;
                let begun = match is_promised && entry.flights.len() >= self.per_key {
                    true => None,
                    false => self.begin(begin),
                };
                let Some(flight) = begun else {
                    let Some(flight) = entry.flights.last().filter(|_| is_promised).cloned() else {
                        return Boarded::Full;
                    };
                    join(&flight);
                    return Boarded::Joined(flight);
                };
                entry.flights.push(Arc::clone(&flight));
                flight
            }
            Place::Vacant(place) => {
                let key = key.clone();
                let Some(flight) = self.begin(begin) else {
                    return Boarded::Full;
                };
                place.insert(Entry::new(hash, key, &flight));
                flight
            }
        };
        join(&flight);
        Boarded::Began(flight)
    }

    /// Begins a flight if none is in the air that may bring what is newer than what has landed.
    pub(super) fn begin_if_none(&self, hash: u64, key: &K, begin: impl FnOnce(u64) -> F) -> Begun<F>
    where
        K: Clone,
    {
        let mut table = self.shard(hash).table.lock();
        let known = table.find(hash, |entry| entry.key == *key);
        if known.is_some_and(|entry| entry.promising() > 0) {
            return Begun::InTheAir;
        }
        self.add(&mut table, hash, key, begin).map_or(Begun::Full, Begun::New)
    }

    /// Begins one more flight of the key, however many are in the air: what those bring is kept if it comes before. `None`, and nothing has
    /// changed, when there are as many as there may be.
    pub(super) fn begin_one_more(
        &self,
        hash: u64,
        key: &K,
        begin: impl FnOnce(u64) -> F,
        join: impl FnOnce(&Arc<F>),
    ) -> Option<Arc<F>>
    where
        K: Clone,
    {
        let mut table = self.shard(hash).table.lock();
        let flight = self.add(&mut table, hash, key, begin)?;
        join(&flight);
        Some(flight)
    }

    /// One more of the key, unless there are as many as there may be.
    fn add(
        &self,
        table: &mut HashTable<Entry<K, F>>,
        hash: u64,
        key: &K,
        begin: impl FnOnce(u64) -> F,
    ) -> Option<Arc<F>>
    where
        K: Clone,
    {
        match table.entry(hash, |entry| entry.key == *key, |entry| entry.hash) {
            Place::Occupied(place) => {
                let flight = self.begin(begin)?;
                place.into_mut().flights.push(Arc::clone(&flight));
                Some(flight)
            }
            Place::Vacant(place) => {
                let key = key.clone();
                let flight = self.begin(begin)?;
                place.insert(Entry::new(hash, key, &flight));
                Some(flight)
            }
        }
    }

    /// The flight's end with a value: takes it out of the air and, unless it was superseded or something newer has landed, runs
    /// `keep` under the lock. To be called once for each flight that began, or [`fail`](Self::fail).
    pub(super) fn land<R>(&self, hash: u64, flight: &F, keep: impl FnOnce() -> R) -> Option<R> {
        self.end(hash, flight, true, keep)
    }

    /// The flight's end without a value, for which an older flight may yet bring one; else as [`land`](Self::land).
    pub(super) fn fail<R>(&self, hash: u64, flight: &F, keep: impl FnOnce() -> R) -> Option<R> {
        self.end(hash, flight, false, keep)
    }

    fn end<R>(&self, hash: u64, flight: &F, brings: bool, keep: impl FnOnce() -> R) -> Option<R> {
        let shard = self.shard(hash);
        // Also where `keep` panics; behind the lock.
        let _told = TellsOfRoom(self);
        let mut table = shard.table.lock();
        self.begun.fetch_sub(1, Ordering::SeqCst);
        let (newest, gone) = Self::take_one(&mut table, hash, flight, brings)?;
        let kept = newest.then(|| shard.keeping(keep));
        drop(table);
        quietly(|| drop(gone));
        kept
    }

    /// Takes a flight out of the air that will bring nothing, if `abandon` says under the lock that nobody wants it. Then it must
    /// not land.
    pub(super) fn abandon(&self, hash: u64, flight: &F, abandon: impl FnOnce() -> bool) -> bool {
        let mut table = self.shard(hash).table.lock();
        if !abandon() {
            return false;
        }
        self.begun.fetch_sub(1, Ordering::SeqCst);
        let gone = Self::take_one(&mut table, hash, flight, false);
        drop(table);
        self.room_is_left();
        quietly(|| drop(gone));
        true
    }

    /// Gives up a flight whose outcome would reach nobody: it was superseded, and `unwanted` says under the lock that nobody
    /// waits for it. Then it must not land.
    pub(super) fn abandon_superseded(&self, hash: u64, flight: &F, unwanted: impl FnOnce() -> bool) -> bool {
        let table = self.shard(hash).table.lock();
        let flies = |entry: &Entry<K, F>| entry.index_of(flight.number()).is_some();
        if table.find(hash, flies).is_some() || !unwanted() {
            return false;
        }
        self.begun.fetch_sub(1, Ordering::SeqCst);
        drop(table);
        self.room_is_left();
        true
    }

    /// Runs `keep` under the lock if the flight is in the air, and nothing newer has landed.
    pub(super) fn while_it_flies<R>(&self, hash: u64, flight: &F, keep: impl FnOnce() -> R) -> Option<R> {
        let number = flight.number();
        let table = self.shard(hash).table.lock();
        let entry = table.find(hash, |entry| entry.index_of(number).is_some())?;
        (entry.landed < number).then(keep)
    }

    /// Takes all flights of the key out of the air, and runs `keep` under the lock.
    pub(super) fn supersede<R>(&self, hash: u64, key: &K, keep: impl FnOnce() -> R) -> (R, Superseded<F>) {
        let shard = self.shard(hash);
        let mut table = shard.table.lock();
        let before = Self::take(&mut table, hash, key);
        let kept = shard.keeping(keep);
        drop(table);
        (kept, Self::superseded(before))
    }

    /// The flights of these.
    fn superseded(before: impl IntoIterator<Item = Entry<K, F>>) -> Superseded<F> {
        let mut superseded = Vec::new();
        for Entry { hash, key, flights, .. } in before {
            quietly(|| drop(key));
            superseded.extend(flights.into_iter().map(|flight| (hash, flight)));
        }
        superseded
    }

    /// Takes all flights of all keys out of the air, and runs `keep` under all locks.
    pub(super) fn supersede_all<R>(&self, keep: impl FnOnce() -> R) -> (R, Superseded<F>) {
        let mut tables: Vec<_> = self.shards.iter().map(|shard| shard.table.lock()).collect();
        let before: Vec<_> = tables.iter_mut().map(|table| std::mem::take(&mut **table)).collect();
        let kept = keep();
        for shard in &self.shards {
            shard.keeping(|| {});
        }
        drop(tables);
        (kept, Self::superseded(before.into_iter().flatten()))
    }

    /// The keys with flights in the air.
    pub(super) fn keys(&self) -> Vec<K>
    where
        K: Clone,
    {
        let mut keys = Vec::new();
        for shard in &self.shards {
            keys.extend(shard.table.lock().iter().map(|entry| entry.key.clone()));
        }
        keys
    }

    /// Those of the key.
    pub(super) fn of(&self, hash: u64, key: &K) -> Vec<Arc<F>> {
        let table = self.shard(hash).table.lock();
        let entry = table.find(hash, |entry| entry.key == *key);
        entry.map_or_else(Vec::new, |entry| entry.flights.clone())
    }

    /// Whoever looks for room behind this hears of what has ended since.
    pub(super) fn wants_room(&self) -> WantsRoom<'_> {
        self.wanting_room.fetch_add(1, Ordering::SeqCst);
        // So that either what ends is seen by who looks behind this, or this by what ends.
        fence(Ordering::SeqCst);
        let mut room = Box::pin(self.room.notified());
        room.as_mut().enable();
        WantsRoom {
            wanting: &self.wanting_room,
            room,
        }
    }

    /// Flights that have begun and not ended.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    fn begin(&self, begin: impl FnOnce(u64) -> F) -> Option<Arc<F>> {
        let room = |begun: usize| (begun < self.max).then_some(begun + 1);
        self.begun
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .ok()?;
        Some(Arc::new(begin(self.numbers.fetch_add(1, Ordering::Relaxed))))
    }

    fn take(table: &mut HashTable<Entry<K, F>>, hash: u64, key: &K) -> Option<Entry<K, F>> {
        let place = table.find_entry(hash, |entry| entry.key == *key).ok()?;
        let entry = place.remove().0;
        Self::shrink(table);
        Some(entry)
    }

    /// Takes a flight out of the air, and with the last one the key's entry out of the table: whether nothing newer has landed,
    /// and that entry. `None` when it was superseded. Found by its number, for the end of a flight must not hang on the key's
    /// `Eq`.
    fn take_one(
        table: &mut HashTable<Entry<K, F>>,
        hash: u64,
        flight: &F,
        brings: bool,
    ) -> Option<(bool, Option<Entry<K, F>>)> {
        let number = flight.number();
        let mut place = table.find_entry(hash, |entry| entry.index_of(number).is_some()).ok()?;
        let entry = place.get_mut();
        entry.flights.remove(entry.index_of(number)?);
        let newest = entry.landed < number;
        if brings {
            entry.landed = entry.landed.max(number);
        }
        let gone = entry.flights.is_empty().then(|| place.remove().0);
        Self::shrink(table);
        Some((newest, gone))
    }

    /// Gives back what a spike took.
    fn shrink(table: &mut HashTable<Entry<K, F>>) {
        if table.capacity() > 64 && table.len() * 8 < table.capacity() {
            table.shrink_to(table.len() * 2, |entry| entry.hash);
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Flight(u64);

    impl Numbered for Flight {
        fn number(&self) -> u64 {
            self.0
        }
    }

    const HASH: u64 = 7;

    fn flights(per_key: usize, max: usize) -> Flights<&'static str, Flight> {
        Flights::new(4, per_key, max)
    }

    fn board(flights: &Flights<&'static str, Flight>, kept: u64) -> Boarded<Flight> {
        flights.board(HASH, &"key", kept, Flight, |_| {})
    }

    fn began(flights: &Flights<&'static str, Flight>) -> Arc<Flight> {
        match board(flights, flights.kept(HASH)) {
            Boarded::Began(flight) => flight,
            _ => panic!("it is to begin a flight"),
        }
    }

    /// No flight is in the air, and the table is empty.
    fn assert_quiet(flights: &Flights<&'static str, Flight>) {
        assert_eq!((flights.begun(), flights.keys().len()), (0, 0));
    }

    /// Else a reader who looks in between finds nothing, sees no change and begins a fetch of what has just come.
    #[test]
    fn what_is_kept_is_counted_only_after_it_is_there() {
        let flights = flights(1, 9);
        let before = flights.kept(HASH);
        let flight = began(&flights);
        let during = flights.land(HASH, &flight, || flights.kept(HASH));
        assert_eq!(during, Some(before));
        assert!(matches!(board(&flights, before), Boarded::LookAgain));
        let before = flights.kept(HASH);
        assert_eq!(flights.supersede(HASH, &"key", || flights.kept(HASH)).0, before);
        assert!(matches!(board(&flights, before), Boarded::LookAgain));
        let before = flights.kept(HASH);
        assert_eq!(flights.supersede_all(|| flights.kept(HASH)).0, before);
        assert!(matches!(board(&flights, before), Boarded::LookAgain));
        assert_quiet(&flights);
    }

    #[test]
    fn a_reader_joins_the_flight_in_the_air_and_its_end_is_of_both() {
        let flights = flights(1, 9);
        let flight = began(&flights);
        let Boarded::Joined(joined) = board(&flights, flights.kept(HASH)) else {
            panic!("it is to join");
        };
        assert!(Arc::ptr_eq(&flight, &joined));
        assert!(matches!(flights.begin_if_none(HASH, &"key", Flight), Begun::InTheAir));
        // Of the same hash and not of the same key.
        assert!(matches!(flights.begin_if_none(HASH, &"other", Flight), Begun::New(_)));
        assert_eq!(flights.land(HASH, &flight, || ()), Some(()));
        assert_eq!((flights.begun(), flights.keys()), (1, vec!["other"]));
    }

    /// A flight of one's own key is there for who cannot begin one more.
    #[test]
    fn at_the_bound_a_reader_joins_where_there_is_something_to_join() {
        let flights = flights(2, 1);
        let flight = began(&flights);
        let joined = board(&flights, flights.kept(HASH));
        assert!(matches!(joined, Boarded::Joined(joined) if Arc::ptr_eq(&flight, &joined)));
        let other = flights.board(HASH, &"other", flights.kept(HASH), Flight, |_| {});
        assert!(matches!(other, Boarded::Full));
        assert_eq!(flights.begun(), 1);
    }

    #[test]
    fn what_a_superseded_flight_brings_is_not_kept_and_its_room_is_given_back() {
        let flights = flights(1, 9);
        let supersede: [fn(&Flights<&'static str, Flight>); 2] = [
            |flights| drop(flights.supersede(HASH, &"key", || ())),
            |flights| drop(flights.supersede_all(|| ())),
        ];
        for (round, supersede) in supersede.into_iter().enumerate() {
            let flight = began(&flights);
            supersede(&flights);
            assert_eq!(flights.land(HASH, &flight, || ()), None, "round {round}");
        }
        assert_quiet(&flights);
    }

    #[test]
    fn one_more_takes_nothing_from_those_before_it() {
        let flights = flights(1, 9);
        let one_more = || {
            flights
                .begin_one_more(HASH, &"key", Flight, |_| {})
                .expect("there is room")
        };
        let (first, second, third) = (began(&flights), one_more(), one_more());
        assert!(matches!(board(&flights, flights.kept(HASH)), Boarded::Joined(last) if Arc::ptr_eq(&last, &third)));
        assert_eq!(
            flights.land(HASH, &first, || ()),
            Some(()),
            "it is the newest that has come"
        );
        assert_eq!(flights.fail(HASH, &third, || ()), Some(()));
        assert_eq!(flights.land(HASH, &second, || ()), Some(()));
        assert_quiet(&flights);
        let (first, second) = (one_more(), one_more());
        assert_eq!(flights.land(HASH, &second, || ()), Some(()));
        assert_eq!(flights.land(HASH, &first, || ()), None, "older than what is there");
        assert_quiet(&flights);
    }

    #[test]
    fn of_flights_of_one_key_what_began_last_is_kept() {
        let flights = flights(3, 9);
        let [first, second, third] = [began(&flights), began(&flights), began(&flights)];
        assert!(matches!(board(&flights, flights.kept(HASH)), Boarded::Joined(last) if Arc::ptr_eq(&last, &third)));
        assert_eq!(flights.land(HASH, &second, || ()), Some(()));
        assert_eq!(flights.land(HASH, &first, || ()), None, "older than what is there");
        assert_eq!(flights.land(HASH, &third, || ()), Some(()));
        assert_quiet(&flights);
    }

    #[test]
    fn what_failed_does_not_stand_in_the_way_of_what_an_older_flight_brings() {
        let flights = flights(2, 9);
        let [first, second] = [began(&flights), began(&flights)];
        assert_eq!(flights.fail(HASH, &second, || ()), Some(()));
        assert_eq!(flights.land(HASH, &first, || ()), Some(()));
        assert_quiet(&flights);
        let [first, second] = [began(&flights), began(&flights)];
        assert_eq!(flights.land(HASH, &second, || ()), Some(()));
        assert_eq!(flights.fail(HASH, &first, || ()), None, "older than what is there");
        assert_quiet(&flights);
    }

    #[test]
    fn only_what_was_superseded_and_is_not_wanted_is_given_up() {
        let flights = flights(1, 9);
        let flight = began(&flights);
        assert!(!flights.abandon_superseded(HASH, &flight, || true), "it flies");
        flights.supersede(HASH, &"key", || ());
        assert!(!flights.abandon_superseded(HASH, &flight, || false), "it is wanted");
        assert!(flights.abandon_superseded(HASH, &flight, || true));
        assert_quiet(&flights);
    }

    #[test]
    fn there_are_never_more_flights_than_may_be_superseded_ones_included() {
        let flights = flights(1, 2);
        let first = began(&flights);
        flights.supersede(HASH, &"key", || ());
        let second = began(&flights);
        assert!(matches!(
            flights.board(HASH, &"other", flights.kept(HASH), Flight, |_| {}),
            Boarded::Full
        ));
        assert!(matches!(flights.begin_if_none(HASH, &"other", Flight), Begun::Full));
        assert!(flights.begin_one_more(HASH, &"key", Flight, |_| {}).is_none());
        assert_eq!(flights.land(HASH, &first, || ()), None);
        assert_eq!(
            flights.land(HASH, &second, || ()),
            Some(()),
            "the refused one superseded nothing"
        );
        assert_quiet(&flights);
    }

    #[test]
    fn a_flight_that_is_abandoned_is_gone_and_one_that_is_not_stays() {
        let flights = flights(1, 9);
        let flight = began(&flights);
        assert!(!flights.abandon(HASH, &flight, || false));
        assert_eq!(flights.begun(), 1);
        assert!(flights.abandon(HASH, &flight, || true));
        assert_quiet(&flights);
        // One that was superseded before gives its room back, and leaves the next one alone.
        let before = began(&flights);
        flights.supersede(HASH, &"key", || ());
        let after = began(&flights);
        assert!(flights.abandon(HASH, &before, || true));
        assert_eq!(flights.land(HASH, &after, || ()), Some(()));
        assert_quiet(&flights);
    }

    /// Who is woken may drop what comes back here.
    struct ComesBack {
        flights: Flights<&'static str, Flight>,
        wakes: AtomicUsize,
    }

    impl std::task::Wake for ComesBack {
        fn wake(self: Arc<Self>) {
            self.flights.keys();
            self.wakes.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn who_waits_for_room_is_woken_by_each_end_and_behind_its_lock() {
        let (told, hears) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let back = Arc::new(ComesBack {
                flights: flights(1, 3),
                wakes: AtomicUsize::new(0),
            });
            let flights = &back.flights;
            let ends: [&dyn Fn(&Flight); 4] = [
                &|flight| assert_eq!(flights.land(HASH, flight, || ()), Some(())),
                &|flight| assert_eq!(flights.fail(HASH, flight, || ()), Some(())),
                &|flight| assert!(flights.abandon(HASH, flight, || true)),
                &|flight| {
                    flights.supersede(HASH, &"key", || ());
                    assert!(flights.abandon_superseded(HASH, flight, || true));
                },
            ];
            for (wakes, end) in ends.into_iter().enumerate() {
                let flight = began(flights);
                let mut wants = flights.wants_room();
                let waker = std::task::Waker::from(Arc::clone(&back));
                let mut left = Box::pin(wants.is_left());
                let mut look = || {
                    left.as_mut()
                        .poll(&mut std::task::Context::from_waker(&waker))
                        .is_ready()
                };
                assert!(!look());
                end(&flight);
                assert!(look());
                assert_eq!(back.wakes.load(Ordering::SeqCst), wakes + 1);
            }
            told.send(()).unwrap();
        });
        hears
            .recv_timeout(std::time::Duration::from_secs(20))
            .expect("nobody waits for himself");
    }
}
