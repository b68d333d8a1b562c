//! A `Cache` whose keys, values, clock, weigher, rule and source panic: each of them at each of the moments at which it runs.
//!
//! One busy scene (readers that share, leave, refresh and hit stale entries, writers, a line for one fetch at a time) is played
//! again and again, and each time one more step of the user's code goes well before one panics. Whatever panicked: everybody
//! ends, no flight and no turn is left, and the next reader of every key gets its value.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use forebay::cache::{Cache, CacheError, Fetched, Source, Staleness};
use tokio::task::JoinHandle;

use super::*;

/// What may panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KeyEq,
    KeyHash,
    KeyClone,
    KeyDrop,
    ValueClone,
    ValueDrop,
    Clock,
    Weigher,
    Rule,
    Fetch,
    Invalidate,
}

const FAULTS: [Fault; 11] = [
    Fault::KeyEq,
    Fault::KeyHash,
    Fault::KeyClone,
    Fault::KeyDrop,
    Fault::ValueClone,
    Fault::ValueDrop,
    Fault::Clock,
    Fault::Weigher,
    Fault::Rule,
    Fault::Fetch,
    Fault::Invalidate,
];

thread_local! {
    /// What panics next, and how often it goes well before.
    static FUSE: Cell<Option<(Fault, u64)>> = const { Cell::new(None) };
}

/// The user's code of that kind runs.
fn step(fault: Fault) {
    match FUSE.get() {
        // A second panic while the first one unwinds would be the test's end, not the cache's fault.
        Some((armed, 0)) if armed == fault && !std::thread::panicking() => {
            FUSE.set(None);
            panic!("as asked");
        }
        Some((armed, left)) if armed == fault => FUSE.set(Some((armed, left.saturating_sub(1)))),
        _ => {}
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

struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        step(Fault::KeyEq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        step(Fault::KeyHash);
        self.0.hash(state);
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        step(Fault::KeyClone);
        Self(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        step(Fault::KeyDrop);
    }
}

#[derive(Debug)]
struct Value(u64);

impl Clone for Value {
    fn clone(&self) -> Self {
        step(Fault::ValueClone);
        Self(self.0)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        step(Fault::ValueDrop);
    }
}

struct Squares<const GATHERS: bool>;

impl<const GATHERS: bool> Source<Key> for Squares<GATHERS> {
    type Value = Value;
    type Error = String;

    const GATHERS: bool = GATHERS;

    async fn fetch(&self, key: Key) -> Result<Fetched<Value>, String> {
        step(Fault::Fetch);
        yield_now().await;
        yield_now().await;
        step(Fault::Fetch);
        Ok(Some(Value(key.0 * key.0)).into())
    }

    fn invalidate(&self, _key: &Key) {
        step(Fault::Invalidate);
    }

    fn invalidate_all(&self) {
        step(Fault::Invalidate);
    }
}

type Tested = Cache<Key, Value, String>;

fn spawn<F: Future<Output = ()> + Send + 'static>(tasks: &mut Vec<JoinHandle<()>>, task: F) {
    tasks.push(tokio::spawn(task));
}

/// A panic of one's own call is told like any other; an error must come from a panic too.
fn harmless<T>(outcome: Result<T, CacheError<String>>) {
    if let Err(error) = outcome {
        assert!(
            matches!(error, CacheError::Panicked(_) | CacheError::Stopped),
            "{error:?}"
        );
    }
}

/// Everybody comes at once.
fn crowd(cache: &Tested, clears: bool, tasks: &mut Vec<JoinHandle<()>>) {
    for key in [1, 1, 1, 2, 3, 4] {
        let cache = cache.clone();
        spawn(tasks, async move { harmless(cache.get(&Key(key)).await) });
    }
    let of_many = cache.clone();
    spawn(tasks, async move {
        for outcome in of_many.get_many([1, 4, 5, 4].map(Key)).await {
            harmless(outcome);
        }
    });
    let of_refresh = cache.clone();
    spawn(tasks, async move { harmless(of_refresh.refresh(&Key(2)).await) });
    let of_leaver = cache.clone();
    spawn(tasks, async move {
        let key = Key(7);
        let mut get = std::pin::pin!(of_leaver.get(&key));
        drop(futures_util::poll!(get.as_mut()));
        yield_now().await;
    });
    let of_writer = cache.clone();
    spawn(tasks, async move {
        yield_now().await;
        drop(of_writer.insert(Key(6), Value(36)));
        drop(of_writer.mark_stale(&Key(1)));
        drop(of_writer.invalidate(&Key(3)));
        yield_now().await;
        drop(of_writer.insert_missing(Key(8)));
        if clears {
            drop(of_writer.clear());
        }
    });
}

async fn scene<const GATHERS: bool>(fault: Fault, goes_well: u64) -> bool {
    let ticks = Arc::new(AtomicU64::new(1_000_000));
    let shown = Arc::clone(&ticks);
    let second = Duration::from_secs(1);
    let cache = Cache::builder(Squares::<GATHERS>)
        .capacity(6)
        .clock(move || {
            step(Fault::Clock);
            shown.load(SeqCst)
        })
        .weigher(|_, _| {
            step(Fault::Weigher);
            1
        })
        .staleness(move |_, age| {
            step(Fault::Rule);
            match age {
                age if age < second => Staleness::Fresh,
                age if age < 2 * second => Staleness::Stale,
                _ => Staleness::Expired,
            }
        })
        .stale_if_error_for(second)
        .max_fetches(1)
        .hot_keys(2, second)
        .build();
    FUSE.set(Some((fault, goes_well)));
    let mut tasks = Vec::new();
    for (age_ms, clears) in [(0, false), (1_500, false), (0, true), (2_500, false)] {
        ticks.fetch_add(age_ms, SeqCst);
        crowd(&cache, clears, &mut tasks);
        settle().await;
    }
    for task in tasks {
        if let Err(panicked) = ends(task).await {
            let message = panicked.into_panic();
            assert_eq!(message.downcast_ref(), Some(&"as asked"), "{fault:?} after {goes_well}");
        }
    }
    settle().await;
    let has_panicked = FUSE.take().is_none();
    let stats = cache.stats();
    assert_eq!((stats.in_flight, stats.in_line), (0, 0), "{fault:?} after {goes_well}");
    drop(cache.clear());
    for key in 1..9 {
        let value = ends(cache.get(&Key(key))).await.unwrap().unwrap();
        assert_eq!(value.0, key * key, "{fault:?} after {goes_well}");
    }
    let stats = cache.stats();
    assert_eq!((stats.in_flight, stats.entries), (0, 6));
    has_panicked
}

async fn every_moment<const GATHERS: bool>() {
    quiet();
    for fault in FAULTS {
        let mut goes_well = 0;
        while scene::<GATHERS>(fault, goes_well).await {
            goes_well += 1;
        }
        assert!(goes_well > 0, "{fault:?} is never met");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_panics_whenever_everybody_ends() {
    every_moment::<false>().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_panics_whenever_everybody_ends_where_the_source_gathers() {
    every_moment::<true>().await;
}
