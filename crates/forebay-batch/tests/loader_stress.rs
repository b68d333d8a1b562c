//! The `Loader` under a random mix of everything at once, on several threads, against a naive model.
//!
//! Promises: every load ends with exactly one outcome, and a value is the right one for its key; a key is never given to two
//! fetches that run at the same time, nor twice to one; `max_items` and `max_in_flight` hold; what a scope has told once it
//! tells again; at the end no key, value or fetch is kept. Loaders that load from one another at random end too. The random choices follow a printed seed;
//! `FOREBAY_SEED=… cargo test -p forebay-batch --test loader_stress` repeats them (the threads' interleaving is the machine's
//! own). `FOREBAY_ROUNDS` runs more of them.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_batch::load::{LoadError, Loader, Rejected};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::yield_now;

const CALLERS: usize = 12;
const LOADS_EACH: usize = 150;
const KEYS: u64 = 60;

/// A key or a value, counted while it lives.
#[derive(Clone, Debug)]
struct Counted(u64, #[allow(dead_code, reason = "held for its count")] Arc<()>);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// What the source holds for a key: the naive model.
fn truth(key: u64) -> Option<u64> {
    (!key.is_multiple_of(7)).then_some(key * 1000 + 1)
}

/// A key whose own outcome is an error.
fn is_bad(key: u64) -> bool {
    key % 11 == 5
}

/// What a round has seen.
struct Record {
    alive: Arc<()>,
    /// Keys that fetches run for now.
    running: Mutex<HashSet<u64>>,
    fetches: AtomicUsize,
    max_items: usize,
    max_in_flight: usize,
    seed: u64,
}

/// One fetch's keys among those that run. Dropped with the fetch, however that ends.
struct Running {
    record: Arc<Record>,
    keys: Vec<u64>,
}

impl Running {
    fn new(record: &Arc<Record>, keys: &[Counted]) -> Self {
        assert!((1..=record.max_items).contains(&keys.len()), "max_items");
        let keys: Vec<u64> = keys.iter().map(|key| key.0).collect();
        let mut running = record.running.lock();
        for key in &keys {
            assert!(running.insert(*key), "key {key} is being fetched already");
        }
        Self {
            record: Arc::clone(record),
            keys,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.record.running.lock();
        for key in &self.keys {
            running.remove(key);
        }
    }
}

/// Counts fetches in flight, also when one panics.
struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

type Answer = Vec<Result<Option<Counted>, String>>;
type Tested = Loader<Counted, Counted, String>;

async fn fetch(record: Arc<Record>, in_flight: Arc<AtomicUsize>, keys: Vec<Counted>) -> Result<Answer, String> {
    let others = in_flight.fetch_add(1, SeqCst);
    let _in_flight = InFlight(in_flight);
    assert!(others < record.max_in_flight, "max_in_flight");
    let running = Running::new(&record, &keys);
    let number = record.fetches.fetch_add(1, SeqCst) as u64;
    let mut random = StdRng::seed_from_u64(record.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for _ in 0..random.random_range(0..4) {
        yield_now().await;
    }
    let mut outcomes: Answer = keys
        .iter()
        .map(|key| match truth(key.0) {
            _ if is_bad(key.0) => Err(format!("bad {}", key.0)),
            value => Ok(value.map(|value| Counted(value, Arc::clone(&record.alive)))),
        })
        .collect();
    // Over before its callers are told.
    drop(running);
    match random.random_range(0..20) {
        0 => Err("as asked".to_owned()),
        1 => panic!("as asked"),
        2 => {
            outcomes.pop();
            Ok(outcomes)
        }
        3 => {
            outcomes.push(Ok(None));
            Ok(outcomes)
        }
        4 => std::future::pending().await,
        _ => Ok(outcomes),
    }
}

/// Gives up after some polls; polled for no reason until then.
struct Fidgety<F> {
    future: F,
    polls_left: Option<usize>,
}

impl<F: Future + Unpin> Future for Fidgety<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = Pin::new(&mut self.future).poll(context) {
            return Poll::Ready(Some(output));
        }
        match &mut self.polls_left {
            None => {}
            Some(0) => return Poll::Ready(None),
            Some(left) => {
                *left -= 1;
                context.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

fn check(key: u64, outcome: Result<Option<Counted>, LoadError<String>>) {
    match outcome {
        Ok(value) => {
            assert!(!is_bad(key));
            assert_eq!(value.map(|value| value.0), truth(key), "a neighbour's value");
        }
        Err(LoadError::Key(error)) => assert_eq!(*error, format!("bad {key}")),
        Err(LoadError::Fetch(error)) => assert_eq!(*error, "as asked"),
        Err(LoadError::Panicked(message)) => assert_eq!(&*message, "as asked"),
        Err(LoadError::WrongCount { expected, returned }) => assert_eq!(expected.abs_diff(returned), 1),
        Err(LoadError::TimedOut(_) | LoadError::Closed) => {}
        Err(other) => panic!("{other}"),
    }
}

async fn caller(loader: Tested, alive: Arc<()>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let scope = loader.scope();
    // What this scope has been told, by key: it must be told the same again.
    let mut told: HashMap<u64, Option<u64>> = HashMap::new();
    for _ in 0..LOADS_EACH {
        let number = random.random_range(0..KEYS);
        let key = Counted(number, Arc::clone(&alive));
        let polls_left = random.random_ratio(1, 4).then(|| random.random_range(0..6));
        let outcome = match random.random_range(0..6) {
            0 => {
                Fidgety {
                    future: loader.load(key),
                    polls_left,
                }
                .await
            }
            1 => {
                Fidgety {
                    future: loader.register(key),
                    polls_left,
                }
                .await
            }
            2 => match loader.try_register(key) {
                Ok(load) => {
                    Fidgety {
                        future: load,
                        polls_left,
                    }
                    .await
                }
                Err(Rejected::Overloaded(key) | Rejected::Closed(key)) => {
                    assert_eq!(key.0, number);
                    yield_now().await;
                    None
                }
                Err(other) => panic!("{other}"),
            },
            3 => {
                let numbers: Vec<u64> = (0..random.random_range(0..20))
                    .map(|_| random.random_range(0..KEYS))
                    .collect();
                let keys = numbers.iter().map(|number| Counted(*number, Arc::clone(&alive)));
                let many = Fidgety {
                    future: Box::pin(loader.load_many(keys)),
                    polls_left,
                }
                .await;
                for (number, outcome) in numbers.into_iter().zip(many.unwrap_or_default()) {
                    check(number, outcome);
                }
                None
            }
            4 => {
                drop(loader.register(key));
                None
            }
            _ => {
                let outcome = Fidgety {
                    future: Box::pin(scope.load(key)),
                    polls_left,
                }
                .await;
                if let Some(Ok(value)) = &outcome {
                    let value = value.as_ref().map(|value| value.0);
                    assert_eq!(*told.entry(number).or_insert(value), value);
                } else if outcome.is_some() {
                    assert!(!told.contains_key(&number), "it had remembered a value");
                }
                outcome
            }
        };
        if let Some(outcome) = outcome {
            check(number, outcome);
        }
    }
}

async fn round(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let record = Arc::new(Record {
        alive: Arc::new(()),
        running: Mutex::default(),
        fetches: AtomicUsize::new(0),
        max_items: random.random_range(1..20),
        max_in_flight: random.random_range(1..4),
        seed,
    });
    let of_fetch = Arc::clone(&record);
    let in_flight = Arc::new(AtomicUsize::new(0));
    let loader: Tested = Loader::builder()
        .max_items(record.max_items)
        .max_in_flight(record.max_in_flight)
        .max_queued(random.random_range(1..30))
        .max_wait(Duration::from_micros(if random.random() { 500 } else { 0 }))
        .fetch_timeout(Duration::from_millis(3))
        .build(move |keys: Vec<Counted>| fetch(Arc::clone(&of_fetch), Arc::clone(&in_flight), keys));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(caller(loader.clone(), Arc::clone(&record.alive), random.random())))
        .collect();
    // In half of the rounds the loader closes while the callers are busy.
    if random.random() {
        for _ in 0..random.random_range(0..3000) {
            yield_now().await;
        }
        loader.drain().await;
        let stats = loader.stats();
        assert_eq!((stats.keys_queued, stats.in_flight), (0, 0));
        assert!(record.running.lock().is_empty());
    }
    for caller in callers {
        caller.await.unwrap();
    }
    loader.drain().await;
    let stats = loader.stats();
    assert_eq!((stats.keys_queued, stats.in_flight), (0, 0));
    assert_eq!(stats.fetches, record.fetches.load(SeqCst) as u64);
    drop(loader);
    // The last runners' tasks end on their own, after drain has returned.
    while Arc::strong_count(&record) > 1 {
        yield_now().await;
    }
    assert_eq!(Arc::strong_count(&record.alive), 1, "a key or a value is kept");
}

/// The depth of a key is one more than that of the key below, asked of any of three loaders.
type Depths = Loader<u64, u64, String>;

async fn depth_of(others: Arc<OnceLock<Vec<Depths>>>, key: u64, choice: u64) -> Result<(u64, u64), String> {
    if key == 0 {
        return Ok((0, 0));
    }
    let others = others.get().unwrap();
    let other = &others[((key * 31 + choice) % others.len() as u64) as usize];
    let below = match other.load(key - 1).await {
        Ok(below) => below.unwrap(),
        Err(error) => return Err(error.to_string()),
    };
    Ok((key, below + 1))
}

/// Three loaders with one slot each, all busy, each fetch of which waits for the other loaders and its own.
async fn round_of_circles(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let all: Arc<OnceLock<Vec<Depths>>> = Arc::default();
    let loaders: Vec<Depths> = (0..3)
        .map(|_| {
            let (all, choice) = (Arc::clone(&all), random.random_range(0..1000));
            Loader::builder()
                .max_items(random.random_range(1..6))
                .build(move |keys: Vec<u64>| {
                    let all = Arc::clone(&all);
                    async move {
                        let depths = keys.into_iter().map(|key| depth_of(Arc::clone(&all), key, choice));
                        Ok(try_join_all(depths).await?.into_iter().collect::<HashMap<_, _>>())
                    }
                })
        })
        .collect();
    assert!(all.set(loaders.clone()).is_ok());
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (loaders, mut random) = (loaders.clone(), StdRng::seed_from_u64(random.random()));
            tokio::spawn(async move {
                for _ in 0..30 {
                    let key = random.random_range(0..8);
                    let loader = &loaders[random.random_range(0..loaders.len())];
                    assert_eq!(loader.load(key).await.unwrap(), Some(key));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// The seed of this run, and how many rounds: what the environment says, or new ones.
fn seed_and_rounds() -> (u64, u64) {
    let seed: u64 = match std::env::var("FOREBAY_SEED") {
        Ok(seed) => seed.parse().expect("FOREBAY_SEED is a number"),
        Err(_) => rand::random(),
    };
    let rounds =
        std::env::var("FOREBAY_ROUNDS").map_or(30, |rounds| rounds.parse().expect("FOREBAY_ROUNDS is a number"));
    println!("FOREBAY_SEED={seed}");
    (seed, rounds)
}

/// Runs rounds on several threads; one that takes too long hangs.
fn run_rounds<F: Future<Output = ()> + Send + 'static>(round: impl Fn(u64) -> F) {
    let (seed, rounds) = seed_and_rounds();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_time()
        .build()
        .unwrap();
    for number in 0..rounds {
        let limited = async {
            let running = tokio::spawn(round(seed ^ number));
            tokio::time::timeout(Duration::from_secs(60), running)
                .await
                .unwrap_or_else(|_| panic!("a hung load; FOREBAY_SEED={seed}, round {number}"))
                .unwrap();
        };
        runtime.block_on(limited);
    }
}

#[test]
fn loaders_that_load_from_one_another_never_wait_in_a_circle() {
    run_rounds(round_of_circles);
}

#[test]
fn every_load_ends_with_the_right_value_and_no_key_is_fetched_twice_at_a_time() {
    // Panics that were asked for are not worth a line each.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("as asked") {
            report(panic);
        }
    }));
    run_rounds(round);
}
