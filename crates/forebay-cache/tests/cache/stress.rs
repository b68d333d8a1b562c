//! A random mix of everything at once, on several threads: writers bump a version in the "database" and then tell the cache;
//! no reader may see a version older than the last one acknowledged before its get began, whatever is evicted, cleared,
//! refreshed, marked, cancelled or failing meanwhile; and at rest all counts add up.
//!
//! The random choices follow a printed seed; `FOREBAY_SEED=… cargo test -p forebay-cache --test cache stress` repeats them (the threads'
//! interleaving is the machine's own). `FOREBAY_ROUNDS` runs more of them.

use std::convert::Infallible;

use forebay_batch::load::LoadError;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

const KEYS: u64 = 12;
const TASKS: u64 = 8;
const STEPS: usize = 120;

/// A row is its version; where that is divisible by 5, there is no row.
fn value_of(version: u64) -> Option<u64> {
    (!version.is_multiple_of(5)).then_some(version)
}

#[derive(Default)]
struct Row {
    version: AtomicU64,
    /// The last version of which the cache has been told, and has answered.
    acknowledged: AtomicU64,
    /// Writers of one row take turns, as they would in a database.
    writers: tokio::sync::Mutex<()>,
}

struct Shared {
    rows: Vec<Row>,
    seed: u64,
    /// One fetch in this many fails.
    failing: u32,
    /// Whether writers may clear the cache instead of telling it of the one key.
    clears: bool,
    calls: AtomicU64,
    failures: AtomicU64,
    lookups: AtomicU64,
    refreshes: AtomicU64,
}

impl Shared {
    fn random_of_a_call(&self) -> StdRng {
        let call = self.calls.fetch_add(1, SeqCst);
        StdRng::seed_from_u64(self.seed ^ call.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Reads at some moment of its run.
    async fn read(&self, random: &mut StdRng, key: u64) -> Option<u64> {
        for _ in 0..random.random_range(0..4) {
            yield_now().await;
        }
        let version = self.rows[key as usize].version.load(SeqCst);
        for _ in 0..random.random_range(0..4) {
            yield_now().await;
        }
        value_of(version)
    }

    fn fails(&self, random: &mut StdRng) -> bool {
        let fails = random.random_ratio(1, self.failing);
        if fails {
            self.failures.fetch_add(1, SeqCst);
        }
        fails
    }

    /// Whether a reader who began when `floor` was acknowledged may see that.
    fn check(&self, key: u64, floor: u64, value: Option<u64>) {
        let newest = self.rows[key as usize].version.load(SeqCst);
        let newest_missing = newest / 5 * 5;
        let seen = value.unwrap_or(newest_missing);
        assert!(
            (floor..=newest).contains(&seen),
            "key {key}: saw {value:?}, though {floor} was acknowledged before (now {newest}); FOREBAY_SEED={}",
            self.seed
        );
    }
}

/// Polls a few times and then gives up, or never does.
async fn fidgety<F: Future>(random: &mut StdRng, future: F) -> Option<F::Output> {
    let mut polls_left = random.random_ratio(1, 5).then(|| random.random_range(0..5));
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        match &mut polls_left {
            None => {}
            Some(0) => return Poll::Ready(None),
            Some(left) => {
                *left -= 1;
                context.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await
}

async fn write<E: Send + Sync + 'static>(shared: &Shared, cache: &Cache<u64, u64, E>, random: &mut StdRng, key: u64) {
    let row = &shared.rows[key as usize];
    let _turn = row.writers.lock().await;
    let version = row.version.fetch_add(1, SeqCst) + 1;
    match (random.random_range(0..5), value_of(version)) {
        (0, Some(value)) => drop(cache.insert(key, value)),
        (0, None) => drop(cache.insert_missing(key)),
        (1, _) if shared.clears => drop(cache.clear()),
        _ => drop(cache.invalidate(&key)),
    }
    row.acknowledged.fetch_max(version, SeqCst);
}

async fn user<E: Send + Sync + 'static>(shared: Arc<Shared>, cache: Cache<u64, u64, E>, ticks: Ticks, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let floor = |key: u64| shared.rows[key as usize].acknowledged.load(SeqCst);
    for _ in 0..STEPS {
        let key = random.random_range(0..KEYS);
        let before = floor(key);
        match random.random_range(0..16) {
            0..7 => {
                shared.lookups.fetch_add(1, SeqCst);
                if let Some(Ok(value)) = fidgety(&mut random, cache.get(&key)).await {
                    shared.check(key, before, value);
                }
            }
            7 => {
                if let Some(entry) = cache.get_if_fresh(&key) {
                    shared.lookups.fetch_add(1, SeqCst);
                    shared.check(key, before, entry.into_value());
                }
            }
            8 => {
                let keys: Vec<u64> = (0..random.random_range(0..6))
                    .map(|_| random.random_range(0..KEYS))
                    .collect();
                let floors: Vec<u64> = keys.iter().map(|key| floor(*key)).collect();
                shared.lookups.fetch_add(keys.len() as u64, SeqCst);
                let outcomes = fidgety(&mut random, cache.get_many(keys.clone())).await;
                for ((key, floor), outcome) in keys.into_iter().zip(floors).zip(outcomes.unwrap_or_default()) {
                    if let Ok(value) = outcome {
                        shared.check(key, floor, value);
                    }
                }
            }
            9 => {
                shared.refreshes.fetch_add(1, SeqCst);
                if let Some(Ok(value)) = fidgety(&mut random, cache.refresh(&key)).await {
                    shared.check(key, before, value);
                }
            }
            10 => drop(cache.mark_stale(&key)),
            11 => ticks.turn(random.random_range(0..20)),
            12 => yield_now().await,
            _ => write(&shared, &cache, &mut random, key).await,
        }
        let stats = cache.stats();
        assert!(stats.weight <= stats.capacity);
    }
}

/// What a round is made with.
struct Round {
    shared: Arc<Shared>,
    ticks: Ticks,
    random: StdRng,
}

impl Round {
    fn new(seed: u64, clears: bool) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let shared = Shared {
            rows: (0..KEYS).map(|_| Row::default()).collect(),
            seed,
            failing: if random.random() { 10 } else { u32::MAX },
            clears,
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            refreshes: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
            ticks: Ticks::new(),
            random,
        }
    }

    fn tune<E: Send + Sync + 'static>(&mut self, builder: CacheBuilder<u64, u64, E>) -> CacheBuilder<u64, u64, E> {
        let random = &mut self.random;
        let capacity = if random.random() { KEYS / 2 } else { 1_000 };
        let builder = builder
            .clock(self.ticks.clock())
            .capacity(capacity)
            .fresh_for(ms(random.random_range(0..200)))
            .stale_for(ms(random.random_range(0..2) * 50))
            .jitter(random.random_range(0.0..0.5))
            .refresh_ahead(random.random_range(0.5..1.0))
            .max_fetches_per_key(random.random_range(1..3))
            .retry_after(ms(0), ms(0));
        if random.random() {
            builder.max_fetches(random.random_range(1..4))
        } else {
            builder
        }
    }

    /// Lets all users run, and looks at what is left.
    async fn run<E: Send + Sync + 'static>(mut self, cache: Cache<u64, u64, E>) -> (Arc<Shared>, forebay_cache::Stats) {
        let users: Vec<_> = (0..TASKS)
            .map(|_| {
                let (shared, ticks) = (Arc::clone(&self.shared), self.ticks.clone());
                tokio::spawn(user(shared, cache.clone(), ticks, self.random.random()))
            })
            .collect();
        for user in users {
            user.await.unwrap();
        }
        while cache.stats().in_flight > 0 {
            yield_now().await;
        }
        let stats = cache.stats();
        let lookups = self.shared.lookups.load(SeqCst);
        assert_eq!(
            stats.hits_fresh + stats.hits_stale + stats.misses,
            lookups,
            "lookups: {stats:?}"
        );
        let refreshes = self.shared.refreshes.load(SeqCst);
        assert_eq!(
            stats.misses - stats.joined + stats.refreshes + refreshes,
            stats.flights,
            "flights: {stats:?}"
        );
        assert_eq!(
            stats.keys_fetched + stats.called_off,
            stats.flights,
            "fetches: {stats:?}"
        );
        assert_eq!(
            (stats.in_line, stats.timeouts, stats.rescued, stats.too_heavy),
            (0, 0, 0, 0)
        );
        assert!(
            stats.entries <= stats.capacity && stats.entries == stats.weight,
            "{stats:?}"
        );
        for key in 0..KEYS {
            let newest = value_of(self.shared.rows[key as usize].version.load(SeqCst));
            drop(cache.invalidate(&key));
            let value = loop {
                if let Ok(value) = cache.get(&key).await {
                    break value;
                }
            };
            assert_eq!(value, newest, "key {key}");
        }
        (self.shared, stats)
    }
}

fn source(
    shared: &Arc<Shared>,
) -> impl Fn(u64) -> BoxFuture<'static, Result<Option<u64>, String>> + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move |key| {
        let shared = Arc::clone(&shared);
        Box::pin(async move {
            let mut random = shared.random_of_a_call();
            let value = shared.read(&mut random, key).await;
            if shared.fails(&mut random) {
                return Err("as asked".to_owned());
            }
            Ok(value)
        })
    }
}

/// Over an async function.
async fn round_over_a_function(seed: u64) {
    let mut round = Round::new(seed, true);
    let cache = Cache::builder(source(&round.shared));
    let cache = round.tune(cache).build();
    let (shared, stats) = round.run(cache).await;
    assert_eq!(stats.fetches, stats.keys_fetched);
    assert!(stats.fetches <= shared.calls.load(SeqCst));
    assert!(stats.failures <= shared.failures.load(SeqCst));
}

/// Over a loader, which gathers and shares fetches of its own.
async fn round_over_a_loader(seed: u64) {
    let mut round = Round::new(seed, true);
    let shared = Arc::clone(&round.shared);
    let loader: Loader<u64, u64, Infallible> = Loader::builder()
        .max_items(round.random.random_range(1..8))
        .max_in_flight(round.random.random_range(1..4))
        .build(move |keys: Vec<u64>| {
            let shared = Arc::clone(&shared);
            async move {
                let mut random = shared.random_of_a_call();
                let mut values = Vec::new();
                for key in keys {
                    values.push(shared.read(&mut random, key).await);
                }
                Ok(values)
            }
        });
    let cache: Cache<u64, u64, LoadError<Infallible>> = round.tune(Cache::builder(loader)).build();
    round.run(cache).await;
}

/// Over another cache.
async fn round_over_a_cache(seed: u64) {
    let mut round = Round::new(seed, true);
    let lower = Cache::builder(source(&round.shared));
    let lower = round.tune(lower).build();
    let upper = round.tune(Cache::builder(lower.clone())).build();
    round.run(upper).await;
    while lower.stats().in_flight > 0 {
        yield_now().await;
    }
    assert_eq!(lower.stats().in_line, 0);
}

/// Runs rounds on several threads; one that takes too long hangs.
fn run_rounds<F: Future<Output = ()> + Send + 'static>(round: impl Fn(u64) -> F) {
    let seed: u64 = match std::env::var("FOREBAY_SEED") {
        Ok(seed) => seed.parse().expect("FOREBAY_SEED is a number"),
        Err(_) => rand::random(),
    };
    let rounds: u64 =
        std::env::var("FOREBAY_ROUNDS").map_or(25, |rounds| rounds.parse().expect("FOREBAY_ROUNDS is a number"));
    println!("FOREBAY_SEED={seed}");
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
                .unwrap_or_else(|_| panic!("a hung get; FOREBAY_SEED={seed}, round {number}"))
                .unwrap();
        };
        runtime.block_on(limited);
    }
}

#[test]
fn no_reader_sees_what_was_overwritten_before_it_began() {
    run_rounds(round_over_a_function);
}

#[test]
fn no_reader_sees_what_was_overwritten_before_it_began_over_a_loader() {
    run_rounds(round_over_a_loader);
}

#[test]
fn no_reader_sees_what_was_overwritten_before_it_began_over_another_cache() {
    run_rounds(round_over_a_cache);
}
