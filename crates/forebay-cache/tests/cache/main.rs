//! The `Cache` as its user sees it: tests for each line of its contract, named after the line.
//!
//! Ages follow a clock that a test turns by hand, timeouts follow tokio's stopped clock, and flights wait at gates: so windows
//! are checked to the millisecond and no test sleeps and hopes. Knows only the public interface.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod bad_input;
mod capacity;
mod counts;
mod events;
mod failures;
mod flights;
mod hot;
mod limits;
mod many;
mod model;
mod nested;
mod panics;
mod pitfalls;
mod said;
mod states;
mod stress;
mod timeouts;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay_batch::load::Loader;
use forebay_cache::{Answer, Cache, CacheBuilder, CacheError, Clock, State};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};

type Tested = Cache<u64, u64, String>;
type Outcome = Result<Option<u64>, CacheError<String>>;

const HOUR: Duration = Duration::from_secs(3600);

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A clock that stands still until it is turned.
#[derive(Clone)]
struct Ticks(Arc<AtomicU64>);

impl Ticks {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000)))
    }

    fn turn(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, SeqCst);
    }

    fn turn_back(&self, milliseconds: u64) {
        self.0.fetch_sub(milliseconds, SeqCst);
    }

    fn clock(&self) -> impl Clock {
        let ticks = Arc::clone(&self.0);
        move || ticks.load(SeqCst)
    }
}

/// Tokio's stopped clock as a cache's.
fn tokio_clock() -> impl Clock {
    let start = tokio::time::Instant::now();
    move || 1_000_000 + start.elapsed().as_millis() as u64
}

/// What a cache stands in front of. A fetch reads its row when it begins, and waits for a permit before it answers.
#[derive(Clone)]
struct Database(Arc<Rows>);

struct Rows {
    rows: Mutex<HashMap<u64, u64>>,
    fails: AtomicBool,
    fetched: Mutex<Vec<u64>>,
    batches: Mutex<Vec<Vec<u64>>>,
    permits: Semaphore,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

/// A fetch that runs, however it ends.
struct Running(Arc<Rows>);

impl Running {
    fn new(rows: &Arc<Rows>) -> Self {
        let running = rows.running.fetch_add(1, SeqCst) + 1;
        rows.most_running.fetch_max(running, SeqCst);
        Self(Arc::clone(rows))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

impl Database {
    /// Its fetches wait for [`let_through`](Self::let_through).
    fn shut() -> Self {
        Self(Arc::new(Rows {
            rows: Mutex::default(),
            fails: AtomicBool::new(false),
            fetched: Mutex::default(),
            batches: Mutex::default(),
            permits: Semaphore::new(0),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }))
    }

    /// Its fetches answer at once.
    fn open() -> Self {
        let database = Self::shut();
        database.let_through(1_000_000);
        database
    }

    /// With that row.
    fn with(self, key: u64, value: u64) -> Self {
        self.set(key, value);
        self
    }

    fn set(&self, key: u64, value: u64) {
        self.0.rows.lock().insert(key, value);
    }

    fn remove(&self, key: u64) {
        self.0.rows.lock().remove(&key);
    }

    fn fail(&self, fails: bool) {
        self.0.fails.store(fails, SeqCst);
    }

    fn let_through(&self, fetches: usize) {
        self.0.permits.add_permits(fetches);
    }

    /// The keys fetched so far, in order.
    fn fetched(&self) -> Vec<u64> {
        self.0.fetched.lock().clone()
    }

    fn fetches(&self) -> usize {
        self.0.fetched.lock().len()
    }

    /// The keys of each fetch of many so far.
    fn batches(&self) -> Vec<Vec<u64>> {
        self.0.batches.lock().clone()
    }

    fn most_running(&self) -> usize {
        self.0.most_running.load(SeqCst)
    }

    fn source(&self) -> impl Fn(u64) -> BoxFuture<'static, Result<Option<u64>, String>> + Send + Sync + 'static {
        let rows = Arc::clone(&self.0);
        move |key| {
            let rows = Arc::clone(&rows);
            Box::pin(async move {
                let _running = Running::new(&rows);
                rows.fetched.lock().push(key);
                let value = rows.rows.lock().get(&key).copied();
                let fails = rows.fails.load(SeqCst);
                rows.permits.acquire().await.unwrap().forget();
                if fails {
                    return Err("as asked".to_owned());
                }
                Ok(value)
            })
        }
    }

    /// A loader whose fetches of many each need a permit.
    fn loader(&self) -> Loader<u64, u64, String> {
        self.loader_of(Loader::builder())
    }

    fn loader_of(&self, builder: forebay_batch::load::LoaderBuilder<u64, u64, String>) -> Loader<u64, u64, String> {
        let rows = Arc::clone(&self.0);
        builder.build(move |keys: Vec<u64>| {
            let rows = Arc::clone(&rows);
            async move {
                let _running = Running::new(&rows);
                rows.batches.lock().push(keys.clone());
                rows.fetched.lock().extend(&keys);
                let found: HashMap<u64, u64> = {
                    let rows = rows.rows.lock();
                    keys.iter().filter_map(|key| Some((*key, *rows.get(key)?))).collect()
                };
                let fails = rows.fails.load(SeqCst);
                rows.permits.acquire().await.unwrap().forget();
                if fails {
                    return Err("as asked".to_owned());
                }
                Ok(found)
            }
        })
    }
}

/// A cache over it whose entries are fresh for 100 ms and then stale for 100 ms, missing ones for 10 ms each.
fn timed(database: &Database, ticks: &Ticks) -> CacheBuilder<u64, u64, String> {
    Cache::builder(database.source())
        .clock(ticks.clock())
        .fresh_for(ms(100))
        .stale_for(ms(100))
        .missing_fresh_for(ms(10))
        .missing_stale_for(ms(10))
}

/// A cache over it whose entries are fresh for an hour.
fn lasting(database: &Database) -> CacheBuilder<u64, u64, String> {
    Cache::builder(database.source()).fresh_for(HOUR)
}

/// Lets every task that can run do so, on the single thread of these tests.
async fn settle() {
    for _ in 0..60 {
        yield_now().await;
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A get in a task of its own.
fn spawn_get(cache: &Tested, key: u64) -> JoinHandle<Outcome> {
    let cache = cache.clone();
    tokio::spawn(async move { cache.get(&key).await })
}

/// A get that is waiting when this returns.
async fn begin_get(cache: &Tested, key: u64) -> JoinHandle<Outcome> {
    let get = spawn_get(cache, key);
    settle().await;
    assert!(!get.is_finished(), "it is to wait");
    get
}

fn answer<V>(value: V, state: State, age_ms: u64) -> Answer<V> {
    Answer {
        value: Some(value),
        state,
        age: ms(age_ms),
    }
}

fn missing<V>(state: State, age_ms: u64) -> Answer<V> {
    Answer {
        value: None,
        state,
        age: ms(age_ms),
    }
}

fn is_source_error<T>(outcome: &Result<T, CacheError<String>>) -> bool {
    matches!(outcome, Err(CacheError::Source(error)) if **error == "as asked")
}
