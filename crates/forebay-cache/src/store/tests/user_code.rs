//! Keys, records and visits that panic, call back, or linger.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use super::super::Store;
use super::Census;

thread_local!(static ARMED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });

/// Panics when compared while armed.
#[derive(Debug)]
struct Touchy(u64);

impl std::hash::Hash for Touchy {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        assert!(!ARMED.get(), "compared");
        self.0 == other.0
    }
}

impl Eq for Touchy {}

fn panics<R>(action: impl FnOnce() -> R) {
    assert!(catch_unwind(AssertUnwindSafe(action)).is_err(), "this panics");
}

#[test]
fn a_panicking_eq_changes_nothing() {
    let census = Census::default();
    let store = Store::new(3);
    let put = |key: u64, weight: u32| {
        let key = Touchy(key);
        store.insert_and_tidy(store.hash(&key), key, weight, census.canary(0, 0))
    };
    for key in 0..3 {
        put(key, 1);
    }
    ARMED.set(true);
    panics(|| put(1, 2));
    panics(|| put(1, 9));
    panics(|| store.remove_and_tidy(store.hash(&Touchy(1)), &Touchy(1)));
    panics(|| store.peek(store.hash(&Touchy(1)), &Touchy(1), |_| ()));
    panics(|| store.read(store.hash(&Touchy(1)), &Touchy(1), |_| ((), true)));
    ARMED.set(false);
    store.validate();
    assert_eq!((store.len(), store.weight(), store.counted()), (3, 3, 0));
    assert_eq!(store.shards.readers().open(), 0, "a read that panicked has ended");
    assert_eq!(census.living(), 3, "what was to be inserted is dropped");
    assert!(put(1, 1).replaced, "no lock is left behind");
}

#[test]
fn a_panicking_visit_ends_its_read() {
    let store = Store::new(10);
    store.put(1, 1, ());
    panics(|| store.read(store.hash(&1), &1, |_| -> ((), bool) { panic!("visit") }));
    panics(|| store.for_each(|_, _| panic!("visit")));
    assert_eq!((store.shards.readers().open(), store.counted()), (0, 0));
    assert!(
        !super::super::readers::is_reading(),
        "this thread is no reader any more"
    );
    store.put(2, 1, ());
    assert_eq!(store.clear_and_tidy(), 2);
    store.validate();
}

/// Panics when it is dropped, if it is to, and counts.
struct Grenade {
    live: bool,
    dropped: Arc<AtomicU64>,
}

impl Drop for Grenade {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Relaxed);
        assert!(!self.live || thread::panicking(), "dropped");
    }
}

#[test]
fn a_panicking_drop_corrupts_nothing() {
    let dropped = Arc::new(AtomicU64::new(0));
    let grenade = |live| Grenade {
        live,
        dropped: Arc::clone(&dropped),
    };
    let store = Store::new(5);
    store.put(0, 1, grenade(true));
    panics(|| store.take_out(0));
    store.validate();
    assert_eq!((store.len(), store.weight(), dropped.load(Relaxed)), (0, 0, 1));

    for key in 0..5 {
        store.put(key, 1, grenade(true));
    }
    for key in 5..30 {
        let evicts = catch_unwind(AssertUnwindSafe(|| store.put(key, 1, grenade(false))));
        assert!(store.has(key), "it is there, also when what it pushed out panicked");
        store.validate();
        if key == 5 {
            assert!(evicts.is_err());
        }
    }
    store.put(50, 1, grenade(true));
    panics(|| store.put(50, 1, grenade(false)));
    assert!(store.take_out(50));
    while store.len() < 5 {
        store.put(60 + store.len(), 1, grenade(false));
    }
    let _ = catch_unwind(AssertUnwindSafe(|| store.clear_and_tidy()));
    for key in 0..5 {
        store.put(key, 1, grenade(false));
    }
    let before = dropped.load(Relaxed);
    store.put(100, 1, grenade(true));
    assert_eq!(dropped.load(Relaxed) - before, 1, "one goes for one that comes");
    panics(|| store.clear_and_tidy());
    store.validate();
    assert_eq!((store.len(), store.weight()), (0, 0));
    assert_eq!(
        dropped.load(Relaxed) - before,
        6,
        "the others of the batch are dropped all the same"
    );

    store.put(200, 1, grenade(true));
    store.put(201, 1, grenade(false));
    let before = dropped.load(Relaxed);
    panics(move || drop(store));
    assert_eq!(dropped.load(Relaxed) - before, 2);
}

/// Calls back into the store it is in when it is dropped.
struct Returning {
    home: std::sync::Weak<Store<u64, Returning>>,
}

impl Drop for Returning {
    fn drop(&mut self) {
        if let Some(store) = self.home.upgrade() {
            store.has(1);
            store.take_out(77);
            assert!(store.len() <= store.capacity());
        }
    }
}

#[test]
fn drops_run_outside_of_all_locks() {
    let store = Arc::new(Store::with(8, 2, 2));
    for key in 0..200 {
        let home = Arc::downgrade(&store);
        store.put(key % 20, 1 + key as u32 % 8, Returning { home });
        store.validate();
    }
    store.clear_and_tidy();
    store.validate();
}

#[test]
fn a_visit_may_read_and_write_the_same_store() {
    let census = Census::default();
    let store = Store::with(50, 2, 1);
    for key in 0..50 {
        store.put(key, 1, census.canary(key, 0));
    }
    let key = 7;
    store.read(store.hash(&key), &key, |canary| {
        // Far more than what may wait: this thread must not wait for itself.
        for round in 1..40 {
            for key in 0..50 {
                store.put(key, 1, census.canary(key, round));
            }
            store.take_out(key);
            assert!(!store.has(key));
            store.clear_and_tidy();
            canary.version_for(key);
        }
        store.read(store.hash(&3), &3, |_| ((), true));
        ((), true)
    });
    store.validate();
    assert_eq!(store.counted(), 1);
    for key in 0..4_000 {
        store.put(key, 1, census.canary(key, 0));
    }
    assert!(
        census.living() <= 50 + 2 * 16,
        "what waited for the visit is gone after it: {} live",
        census.living()
    );
    drop(store);
    assert_eq!(census.living(), 0);
}

#[test]
fn for_each_may_write_to_the_same_store() {
    let census = Census::default();
    let store = Store::with(1_000, 4, 2);
    for key in 0..1_000 {
        store.put(key, 1, census.canary(key, 0));
    }
    let mut seen = 0;
    store.for_each(|&key, canary| {
        seen += 1;
        canary.version_for(key);
        store.take_out(key);
        store.put(key + 1_000_000, 1, census.canary(key + 1_000_000, 0));
        canary.version_for(key);
    });
    assert!(seen >= 1_000, "what was there throughout its shard's turn is seen");
    store.validate();
}

#[test]
fn a_record_lives_as_long_as_a_visit_of_another_thread() {
    let census = Census::default();
    let store = Arc::new(Store::with(1_000, 1, 4));
    store.put(1, 1, census.canary(1, 0));
    let (began, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let reader = {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            store.peek(store.hash(&1), &1, |canary| {
                began.send(()).expect("the test waits");
                may_end.recv().expect("the test sends");
                canary.version_for(1)
            })
        })
    };
    has_begun.recv().expect("the reader begins");
    assert!(store.take_out(1));
    assert!(!store.has(1), "gone for new readers");
    for key in 2..60 {
        store.put(key, 1, census.canary(key, 0));
        store.take_out(key);
    }
    assert!(census.living() >= 1, "not for the old one");
    end.send(()).expect("the reader waits");
    assert_eq!(reader.join().expect("no panic"), Some(0));
    store.put(2, 1, census.canary(2, 0));
    store.take_out(2);
    assert_eq!(census.living(), 0);
}

#[test]
fn a_writer_waits_for_readers_when_too_much_waits() {
    let census = Census::default();
    let store = Arc::new(Store::with(100_000, 1, 4));
    store.put(1, 1, census.canary(1, 0));
    let (began, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let reader = {
        let store = Arc::clone(&store);
        thread::spawn(move || {
            store.peek(store.hash(&1), &1, |_| {
                began.send(()).expect("the test waits");
                may_end.recv().expect("the test sends");
            })
        })
    };
    has_begun.recv().expect("the reader begins");
    let (finished, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (store, census) = (Arc::clone(&store), census.clone());
        let (finished, progress) = (Arc::clone(&finished), Arc::clone(&progress));
        thread::spawn(move || {
            for key in 0..2_000 {
                store.put(5, 1, census.canary(5, key));
                progress.store(key, Relaxed);
            }
            finished.store(true, Relaxed);
        })
    };
    // It stops at the bound, however long it is watched.
    while progress.load(Relaxed) < 255 {
        thread::yield_now();
    }
    for _ in 0..1_000 {
        thread::yield_now();
        assert!(
            census.living() <= 256 + 4,
            "{} live while a reader lingers",
            census.living()
        );
    }
    assert!(!finished.load(Relaxed));
    end.send(()).expect("the reader waits");
    reader.join().expect("no panic");
    writer.join().expect("no panic");
    store.validate();
}
