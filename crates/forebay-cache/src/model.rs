//! Model checks: every interleaving of a few readers and writers of one key (loom explores them all).
//!
//! ```console
//! $ RUSTFLAGS="--cfg forebay_loom" cargo test -p forebay-cache --lib --release --target-dir target/loom -- model
//! ```
//!
//! The flights and their landing are the product's; the store is a cell behind a lock, the source a number, a flight's task
//! the thread of the reader who began it. Knows no runtime and no time.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::flights::{Begun, Boarded, Flights, Numbered};

const KEY: u64 = 7;
const HASH: u64 = 7;

struct Flight {
    number: u64,
    outcome: Mutex<Option<usize>>,
}

impl Numbered for Flight {
    fn number(&self) -> u64 {
        self.number
    }
}

/// A cache of one key, over a source whose value is a version that only grows.
struct Cache {
    flights: Flights<u64, Flight>,
    /// What the store has of the key.
    kept: Mutex<Option<usize>>,
    source: AtomicUsize,
    fetches: AtomicUsize,
}

impl Cache {
    fn new(per_key: usize) -> Arc<Self> {
        Arc::new(Self {
            flights: Flights::new(1, per_key, 8),
            kept: Mutex::new(None),
            source: AtomicUsize::new(1),
            fetches: AtomicUsize::new(0),
        })
    }

    fn kept(&self) -> Option<usize> {
        *self.kept.lock().unwrap()
    }

    fn begin(number: u64) -> Flight {
        Flight {
            number,
            outcome: Mutex::new(None),
        }
    }

    fn fly(&self, flight: &Arc<Flight>) -> usize {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let value = self.source.load(Ordering::SeqCst);
        self.flights
            .land(HASH, flight, || *self.kept.lock().unwrap() = Some(value));
        *flight.outcome.lock().unwrap() = Some(value);
        value
    }

    fn get(&self) -> usize {
        loop {
            let kept = self.flights.kept(HASH);
            if let Some(value) = self.kept() {
                return value;
            }
            match self.flights.board(HASH, &KEY, kept, Self::begin, |_| {}) {
                Boarded::LookAgain => {}
                Boarded::Began(flight) => return self.fly(&flight),
                Boarded::Joined(flight) => loop {
                    if let Some(value) = *flight.outcome.lock().unwrap() {
                        return value;
                    }
                    thread::yield_now();
                },
                Boarded::Full => panic!("there is room for eight"),
            }
        }
    }

    fn refresh_in_background(&self) {
        if let Begun::New(flight) = self.flights.begin_if_none(HASH, &KEY, Self::begin) {
            self.fly(&flight);
        }
    }

    /// The database changes, and then the application says so.
    fn change_and_invalidate(&self, version: usize) {
        self.source.store(version, Ordering::SeqCst);
        self.flights.supersede(HASH, &KEY, || *self.kept.lock().unwrap() = None);
    }
}

/// Runs all of them at once, in every order.
fn model(per_key: usize, bodies: &'static [fn(&Cache)], check: fn(&Cache)) {
    loom::model(move || {
        let cache = Cache::new(per_key);
        let threads: Vec<_> = bodies
            .iter()
            .map(|body| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || body(&cache))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(cache.flights.begun(), 0, "all flights have ended");
        assert!(cache.flights.keys().is_empty(), "and none is in the table");
        check(&cache);
    });
}

#[test]
fn readers_of_one_key_share_one_fetch_also_when_it_lands_between_their_look_and_their_boarding() {
    fn get(cache: &Cache) {
        assert_eq!(cache.get(), 1);
    }
    model(1, &[get, get], |cache| {
        assert_eq!(cache.fetches.load(Ordering::SeqCst), 1);
        assert_eq!(cache.kept(), Some(1));
    });
}

#[test]
fn an_invalidated_value_never_comes_back() {
    fn get(cache: &Cache) {
        cache.get();
    }
    fn change(cache: &Cache) {
        cache.change_and_invalidate(2);
        assert_eq!(cache.get(), 2, "who asks after the invalidation gets what is new");
    }
    model(1, &[get, change], |cache| {
        assert_eq!(cache.kept(), Some(2));
        assert_eq!(cache.get(), 2);
    });
}

#[test]
fn a_refresh_in_the_background_does_not_bring_it_back_either() {
    fn change(cache: &Cache) {
        cache.change_and_invalidate(2);
        assert!(matches!(cache.kept(), None | Some(2)));
    }
    model(1, &[Cache::refresh_in_background, change], |cache| {
        assert!(matches!(cache.kept(), None | Some(2)), "{:?}", cache.kept());
    });
}

#[test]
fn what_is_inserted_wins_over_flights_that_were_in_the_air() {
    fn get(cache: &Cache) {
        cache.get();
    }
    fn insert(cache: &Cache) {
        cache.source.store(9, Ordering::SeqCst);
        cache
            .flights
            .supersede(HASH, &KEY, || *cache.kept.lock().unwrap() = Some(9));
        assert_eq!(cache.get(), 9);
    }
    model(1, &[get, insert], |cache| assert_eq!(cache.kept(), Some(9)));
}

#[test]
fn clearing_wins_too() {
    fn clear(cache: &Cache) {
        cache.source.store(2, Ordering::SeqCst);
        cache.flights.supersede_all(|| *cache.kept.lock().unwrap() = None);
        assert!(matches!(cache.kept(), None | Some(2)));
    }
    model(1, &[Cache::refresh_in_background, clear], |cache| {
        assert!(matches!(cache.kept(), None | Some(2)));
    });
}

#[test]
fn of_several_flights_of_one_key_the_last_to_begin_is_kept() {
    fn get(cache: &Cache) {
        cache.get();
    }
    /// A fetch that begins after the database has changed; nobody says so to the cache.
    fn change_and_get(cache: &Cache) {
        cache.source.store(2, Ordering::SeqCst);
        cache.get();
    }
    model(2, &[get, change_and_get], |cache| {
        // The second to begin is of whoever found the other in the air: it reads the new value, or both do.
        if cache.fetches.load(Ordering::SeqCst) == 2 {
            assert_eq!(cache.kept(), Some(2), "what began first has replaced what began last");
        }
    });
}
