//! Panics of everything that a user brings: an error for those whom it concerns, and no harm to others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use forebay_cache::Staleness;
use futures_util::FutureExt;

use super::*;

/// A value that panics when it is cloned, if it is told to.
#[derive(Debug)]
struct Touchy {
    value: u64,
    panics: Arc<AtomicBool>,
}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        assert!(!self.panics.load(SeqCst), "as asked");
        Self {
            value: self.value,
            panics: Arc::clone(&self.panics),
        }
    }
}

/// Panics that were asked for are not worth a line each.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some("as asked") {
                report(panic);
            }
        }));
    });
}

fn is_panic<T>(outcome: &Result<T, CacheError<String>>) -> bool {
    matches!(outcome, Err(CacheError::Panicked(message)) if &**message == "as asked")
}

async fn panics<F: Future>(future: F) -> bool {
    AssertUnwindSafe(future).catch_unwind().await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_source_is_an_error_to_all_who_wait_and_not_remembered() {
    quiet();
    let panics = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&panics);
    for before_the_future in [false, true] {
        panics.store(true, SeqCst);
        let asked = Arc::clone(&asked);
        let cache = Cache::builder(move |key: u64| {
            let panics = asked.load(SeqCst);
            assert!(!(panics && before_the_future), "as asked");
            async move {
                yield_now().await;
                assert!(!panics, "as asked");
                Ok::<_, String>(Some(key))
            }
        })
        .build();
        let readers: Vec<_> = (0..10).map(|_| spawn_get(&cache, 1)).collect();
        for reader in readers {
            assert!(is_panic(&reader.await.unwrap()));
        }
        panics.store(false, SeqCst);
        assert_eq!(cache.get(&1).await.unwrap(), Some(1));
        let stats = cache.stats();
        assert_eq!((stats.failures, stats.in_flight), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_source_gives_its_turn_back() {
    quiet();
    let cache = Cache::builder(|key: u64| async move {
        assert!(key != 1, "as asked");
        Ok::<_, String>(Some(key))
    })
    .max_fetches(1)
    .build();
    let outcomes = cache.get_many([1, 2, 1, 3]).await;
    assert!(is_panic(&outcomes[0]) && is_panic(&outcomes[2]));
    assert_eq!(
        (outcomes[1].as_ref().unwrap(), outcomes[3].as_ref().unwrap()),
        (&Some(2), &Some(3))
    );
    assert_eq!(cache.stats().in_line, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_weigher_is_an_error_of_that_key() {
    quiet();
    let cache = Cache::builder(|key: u64| async move { Ok::<_, String>(Some(key)) })
        .weigher(|key, _| {
            assert!(*key != 1, "as asked");
            1
        })
        .build();
    let outcomes = cache.get_many([1, 2]).await;
    assert!(is_panic(&outcomes[0]));
    assert_eq!(outcomes[1].as_ref().unwrap(), &Some(2));
    // Who inserts is told in the same way as by any function of its own.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(cache.insert(1, 7)))).is_err());
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.in_flight), (1, 0));
    assert_eq!(cache.get_if_fresh(&1), None);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_values_clone_harms_only_who_wanted_the_clone() {
    quiet();
    let panics_now = Arc::new(AtomicBool::new(true));
    let of_source = Arc::clone(&panics_now);
    let cache = Cache::builder(move |value: u64| {
        let panics = Arc::clone(&of_source);
        async move { Ok::<_, String>(Some(Touchy { value, panics })) }
    })
    .build();
    // While it lands.
    assert!(matches!(cache.get(&1).await, Err(CacheError::Panicked(_))));
    assert_eq!(cache.stats().in_flight, 0);
    panics_now.store(false, SeqCst);
    assert_eq!(cache.get(&1).await.unwrap().unwrap().value, 1);
    // On a hit, many times: the entry is not lost, and none is stuck.
    panics_now.store(true, SeqCst);
    for _ in 0..100 {
        assert!(panics(cache.get(&1)).await);
        assert!(catch_unwind(AssertUnwindSafe(|| cache.get_if_fresh(&1))).is_err());
    }
    panics_now.store(false, SeqCst);
    assert_eq!(cache.get_if_fresh(&1).unwrap().into_value().unwrap().value, 1);
    drop(cache.invalidate(&1));
    assert_eq!(cache.get(&1).await.unwrap().unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_rule_harms_only_who_looked() {
    quiet();
    let panics_now = Arc::new(AtomicBool::new(false));
    let of_rule = Arc::clone(&panics_now);
    let cache = Cache::builder(|key: u64| async move { Ok::<_, String>(Some(key)) })
        .staleness(move |_, _| {
            assert!(!of_rule.load(SeqCst), "as asked");
            Staleness::Fresh
        })
        .build();
    cache.get(&1).await.unwrap();
    panics_now.store(true, SeqCst);
    assert!(panics(cache.get(&1)).await);
    assert!(panics(cache.refresh(&2)).await || cache.stats().in_flight == 0);
    panics_now.store(false, SeqCst);
    assert_eq!(cache.get(&1).await.unwrap(), Some(1));
    assert_eq!(cache.get(&2).await.unwrap(), Some(2));
}

/// What was begun for the keys before the panic must depart, or whoever joins it waits for ever.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_middle_of_many_keys_leaves_no_flight_on_the_ground() {
    quiet();
    let database = Database::open().with(1, 10).with(2, 20);
    let cache = lasting(&database).build();
    let keys = [1, 2, 3].into_iter().inspect(|key| assert!(*key != 3, "as asked"));
    assert!(panics(cache.get_many(keys)).await);
    settle().await;
    assert_eq!(cache.stats().in_flight, 0);
    let joined = tokio::time::timeout(ms(1), cache.get_many([1, 2]))
        .await
        .expect("nobody waits for ever");
    assert_eq!(
        joined.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [Some(10), Some(20)]
    );

    // The same where a clone of a hit panics.
    let panics_now = Arc::new(AtomicBool::new(false));
    let of_source = Arc::clone(&panics_now);
    let cache = Cache::builder(move |value: u64| {
        let panics = Arc::clone(&of_source);
        async move { Ok::<_, String>(Some(Touchy { value, panics })) }
    })
    .build();
    cache.get(&3).await.unwrap();
    panics_now.store(true, SeqCst);
    assert!(panics(cache.get_many([1, 2, 3])).await);
    settle().await;
    assert_eq!(cache.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_stale_values_clone_does_not_hold_back_its_refresh() {
    quiet();
    let panics_now = Arc::new(AtomicBool::new(false));
    let (of_source, ticks) = (Arc::clone(&panics_now), Ticks::new());
    let cache = Cache::builder(move |value: u64| {
        let panics = Arc::clone(&of_source);
        async move { Ok::<_, String>(Some(Touchy { value, panics })) }
    })
    .clock(ticks.clock())
    .fresh_for(ms(100))
    .stale_for(HOUR)
    .build();
    cache.get(&1).await.unwrap();
    ticks.turn(100);
    panics_now.store(true, SeqCst);
    assert!(panics(cache.get(&1)).await);
    panics_now.store(false, SeqCst);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Fresh);
}

/// A value that panics when it is dropped, if it is told to.
#[derive(Clone)]
struct Explosive {
    value: u64,
    panics: Arc<AtomicBool>,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || !self.panics.load(SeqCst), "as asked");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_values_drop_is_nobodys_who_writes() {
    quiet();
    let panics = Arc::new(AtomicBool::new(false));
    let explosive = |value| Explosive {
        value,
        panics: Arc::clone(&panics),
    };
    let cache = Cache::builder(|_: u64| async { Ok::<Option<Explosive>, String>(None) })
        .capacity(10)
        .build();
    for round in 0..50 {
        for key in 0..20 {
            let value = explosive(key);
            panics.store(true, SeqCst);
            drop(cache.insert(key, value));
            panics.store(false, SeqCst);
        }
        panics.store(true, SeqCst);
        drop(cache.invalidate(&19));
        if round % 10 == 0 {
            drop(cache.clear());
        }
        panics.store(false, SeqCst);
        assert!(cache.stats().entries <= 10);
    }
    drop(cache.insert(1, explosive(1)));
    assert_eq!(cache.get_if_fresh(&1).unwrap().into_value().unwrap().value, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_values_drop_leaves_no_reader_waiting_and_no_turn_taken() {
    quiet();
    let (panics, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(Semaphore::new(0)));
    let (of_source, of_gate) = (Arc::clone(&panics), Arc::clone(&gate));
    let cache = Cache::builder(move |value: u64| {
        let (panics, gate) = (Arc::clone(&of_source), Arc::clone(&of_gate));
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<_, String>(Some(Explosive { value, panics }))
        }
    })
    .max_fetches(1)
    .build();
    let readers: Vec<_> = [1, 1, 2]
        .into_iter()
        .map(|key| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&key).await })
        })
        .collect();
    settle().await;
    // What it brings is too late to be kept, and is dropped.
    drop(cache.invalidate(&1));
    panics.store(true, SeqCst);
    gate.add_permits(1);
    settle().await;
    panics.store(false, SeqCst);
    gate.add_permits(1);
    settle().await;
    let ended = readers.iter().filter(|reader| reader.is_finished()).count();
    assert_eq!(ended, 3);
    let stats = cache.stats();
    assert_eq!(
        (stats.late_dropped, stats.in_flight, stats.in_line, stats.entries),
        (1, 0, 0, 1)
    );
    let mut readers = readers.into_iter();
    assert!(readers.nth(2).unwrap().await.unwrap().is_ok(), "a neighbour");
}

/// A key that panics when it is cloned for the n-th time from now on.
struct BadKey {
    key: u64,
    clones_left: Arc<AtomicUsize>,
}

impl BadKey {
    fn new(key: u64, clones_left: usize) -> Self {
        let clones_left = Arc::new(AtomicUsize::new(clones_left));
        Self { key, clones_left }
    }
}

impl PartialEq for BadKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for BadKey {}

impl std::hash::Hash for BadKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Clone for BadKey {
    fn clone(&self) -> Self {
        let left = self.clones_left.load(SeqCst);
        self.clones_left.store(left.wrapping_sub(1), SeqCst);
        assert!(left != 0, "as asked");
        Self {
            key: self.key,
            clones_left: Arc::clone(&self.clones_left),
        }
    }
}

/// Wherever on its way a key is cloned: who wanted it is told, and neighbours in line get their values.
#[tokio::test(start_paused = true)]
async fn a_panic_of_a_keys_clone_harms_no_neighbour_in_line() {
    quiet();
    let mut harmless = 0;
    for clones in 0..12 {
        let gate = Arc::new(Semaphore::new(0));
        let of_source = Arc::clone(&gate);
        let cache = Cache::builder(move |key: BadKey| {
            let gate = Arc::clone(&of_source);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, String>(Some(key.key))
            }
        })
        .max_fetches(1)
        .build();
        let get = |key: u64, clones_left: usize| {
            let key = BadKey::new(key, clones_left);
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&key).await })
        };
        let bad = get(1, clones);
        let neighbours = [get(2, usize::MAX), get(3, usize::MAX)];
        settle().await;
        gate.add_permits(3);
        settle().await;
        for (neighbour, value) in neighbours.into_iter().zip(2..) {
            assert!(
                neighbour.is_finished(),
                "a neighbour waits for ever after {clones} clones"
            );
            assert_eq!(neighbour.await.unwrap().unwrap(), Some(value), "after {clones} clones");
        }
        assert!(bad.is_finished(), "it waits for ever after {clones} clones");
        match bad.await {
            Ok(Ok(value)) => {
                assert_eq!(value, Some(1));
                harmless += 1;
            }
            Ok(outcome) => assert!(is_panic(&outcome), "{outcome:?}"),
            Err(panicked) => assert!(panicked.is_panic()),
        }
        let stats = cache.stats();
        assert_eq!((stats.in_flight, stats.in_line), (0, 0), "after {clones} clones");
    }
    assert!(harmless > 0, "all clones that there are were tried");
}

/// Nobody waits for what its reader could not wait for.
#[tokio::test(start_paused = true)]
async fn a_panic_of_a_keys_clone_leaves_nothing_in_line() {
    quiet();
    let mut panics = 0;
    for clones in 0..8 {
        let cache = Cache::builder(|_: BadKey| std::future::pending::<Result<Option<u64>, String>>())
            .max_fetches(1)
            .build();
        let get = |key: u64, clones_left: usize| {
            let key = BadKey::new(key, clones_left);
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&key).await })
        };
        let _holds_the_turn = get(9, usize::MAX);
        settle().await;
        let bad = get(1, clones);
        settle().await;
        if bad.is_finished() {
            panics += 1;
            let stats = cache.stats();
            assert_eq!((stats.in_flight, stats.in_line), (1, 0), "after {clones} clones");
        }
    }
    assert!(panics > 0, "some were in vain");
}

/// The entry that goes is neither there nor gone when its key is cloned for those who listen.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_clone_of_an_evicted_key_leaves_its_place_to_others() {
    quiet();
    let cache = Cache::builder(|key: BadKey| async move { Ok::<_, String>(Some(key.key)) })
        .capacity(10)
        .build();
    let _events = cache.events();
    let clones_left = Arc::new(AtomicUsize::new(0));
    for key in 0..100 {
        // Of its own key the insert makes a clone before somebody has to go.
        clones_left.store(1, SeqCst);
        let bad = BadKey {
            key,
            clones_left: Arc::clone(&clones_left),
        };
        drop(cache.insert(bad, key));
    }
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.weight, stats.evictions), (10, 10, 90));
}

/// A key of which the next drop but so many panics, once.
#[derive(Debug)]
struct Fused(u64, Arc<AtomicU64>);

impl PartialEq for Fused {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Fused {}

impl std::hash::Hash for Fused {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Clone for Fused {
    fn clone(&self) -> Self {
        Self(self.0, Arc::clone(&self.1))
    }
}

impl Drop for Fused {
    fn drop(&mut self) {
        let left = self.1.fetch_sub(1, SeqCst);
        assert!(left != 1 || std::thread::panicking(), "as asked");
    }
}

/// Wherever on the way it is dropped.
#[tokio::test(start_paused = true)]
async fn a_panic_of_a_keys_drop_leaves_no_answer_behind() {
    quiet();
    for way in ["get", "get_many", "refresh"] {
        for drops in 1..14 {
            let (value, fuse) = (Arc::new(()), Arc::new(AtomicU64::new(u64::MAX)));
            let of_source = Arc::clone(&value);
            let cache = Cache::builder(move |key: Fused| {
                let value = Arc::clone(&of_source);
                async move {
                    drop(key);
                    Ok::<_, String>(Some(value))
                }
            })
            .build();
            let key = Fused(1, Arc::clone(&fuse));
            fuse.store(drops, SeqCst);
            let reading = AssertUnwindSafe(async {
                match way {
                    "get" => drop(cache.get(&key).await),
                    "refresh" => drop(cache.refresh(&key).await),
                    _ => drop(
                        cache
                            .get_many((0..5).map(|number| Fused(number, Arc::clone(&fuse))))
                            .await,
                    ),
                }
            });
            // Whether who asked is told of the panic is not what this is about.
            let _ = reading.catch_unwind().await;
            for _ in 0..5 {
                yield_now().await;
            }
            fuse.store(u64::MAX, SeqCst);
            drop(cache);
            assert_eq!(Arc::strong_count(&value), 1, "{way}, drop {drops}");
        }
    }
}
