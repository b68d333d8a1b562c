//! A case's caches, set up as a user would, and the times of faults that they live through.
//!
//! Two caches run side by side, each over a database of its own: a tight one, whose capacity is far below the keys, and a
//! roomy one, which evicts nothing and lets few fetches run at a time.
//!
//! Promises: times of faults follow from the seed and end before the run does. Knows which caches there are; what is done to
//! them is in `traffic`, what is done to their tiers in `disturbance`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay::cache::tier::TierSettings;
use forebay::cache::tier::redis::RedisTier;
use forebay::cache::tier::sqlite::SqliteTier;
use forebay::cache::{Cache, CacheBuilder};
use forebay::load::{LoadError, Loader};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::database::{Database, FAULTS, Fault, Refused, Row};
use super::judge::{
    FETCH_TIMEOUT, FRESH_FOR, Judge, RESCUES_FOR, RETRY_AFTER, SOFT_TIMEOUT, STALE_FOR, TIER_TIMEOUT, Verdict,
};
use super::traffic::{Counts, Traffic};
use crate::failure::Failure;

const KEYS: u64 = 400;
const TIGHT_CAPACITY: u64 = 120;
const ROOMY_CAPACITY: u64 = 1_000_000;
/// What the roomy cache lets run at a time.
const FETCHES_MAX: usize = 8;
/// Of a loader.
const KEYS_A_FETCH: usize = 32;

/// The caches of a case, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Tight,
    Roomy,
}

/// What a cache has below its memory.
#[derive(Debug)]
pub(crate) enum Below {
    Nothing,
    Redis(RedisTier<u64, Row>),
    Sqlite(SqliteTier<u64, Row>),
}

/// What a run has shown.
#[derive(Debug)]
pub(crate) struct Soaked {
    pub(crate) verdict: Verdict,
    pub(crate) faults: u64,
    pub(crate) counts: Vec<Arc<Counts>>,
    pub(crate) seconds: f64,
    /// How long the machine stood still meanwhile.
    pub(crate) stalled: Duration,
}

/// Runs both caches for so long.
pub(crate) async fn soak(
    gathers: bool,
    below: [Below; 2],
    seed: u64,
    duration: Duration,
    is_over: &Arc<AtomicBool>,
) -> Result<Soaked, Failure> {
    let databases = [1, 2].map(|number| Arc::new(Database::new(KEYS, seed ^ number)));
    let rooms = [Room::Tight, Room::Roomy];
    let judge = |at: usize| Judge::new(&databases[at], rooms[at] == Room::Roomy, gathers).map(Arc::new);
    let judges = [judge(0)?, judge(1)?];
    let counts = [Arc::<Counts>::default(), Arc::default()];
    let begun = Instant::now();
    let traffic = |at: usize| {
        (
            Arc::clone(&databases[at]),
            Arc::clone(&judges[at]),
            Arc::clone(&counts[at]),
        )
    };
    let run = async |at: usize, below: Below| {
        let room = rooms[at];
        let (database, judge, counts) = traffic(at);
        let seed = seed ^ (at as u64 + 1) << 32;
        if gathers {
            let cache = gathered(room, &database, below);
            live(cache, database, judge, counts, room, seed, is_over).await
        } else {
            let cache = single(room, &database, below);
            live(cache, database, judge, counts, room, seed, is_over).await
        }
    };
    let [tight, roomy] = below;
    let (tight, roomy, ()) = tokio::join!(
        run(0, tight),
        run(1, roomy),
        faults(&databases, seed, duration, is_over)
    );
    tight.and(roomy)?;
    Ok(Soaked {
        verdict: judges[0].verdict().and(judges[1].verdict()),
        faults: databases.iter().map(|database| database.faults()).sum(),
        counts: counts.into(),
        seconds: begun.elapsed().as_secs_f64(),
        stalled: judges[0].stalled(),
    })
}

async fn live<E: fmt::Display + Send + Sync + 'static>(
    cache: Cache<u64, Row, E>,
    database: Arc<Database>,
    judge: Arc<Judge>,
    counts: Arc<Counts>,
    room: Room,
    seed: u64,
    is_over: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let traffic = Traffic {
        cache,
        database,
        judge,
        deadline: (room == Room::Tight).then_some(TIER_TIMEOUT + FETCH_TIMEOUT),
        seed,
        counts,
        is_over: Arc::clone(is_over),
    };
    traffic.run().await
}

/// Times without faults and with one, in turns, until the run is over.
async fn faults(databases: &[Arc<Database>], seed: u64, duration: Duration, is_over: &AtomicBool) {
    let mut random = StdRng::seed_from_u64(seed);
    let end = Instant::now() + duration;
    // Of the longest calm the aftermath of the faults before must be a small part: then an error has no excuse.
    let (calm, faulty) = (
        Duration::from_secs(4).min(duration / 4),
        Duration::from_secs(2).min(duration / 6),
    );
    let mut fault = Fault::Nothing;
    while Instant::now() < end {
        let most = if fault == Fault::Nothing { calm } else { faulty };
        databases.iter().for_each(|database| database.set_fault(fault));
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(most.mul_f64(random.random_range(0.1..1.0)).min(left)).await;
        fault = match fault {
            Fault::Nothing => FAULTS[random.random_range(0..FAULTS.len())],
            _ => Fault::Nothing,
        };
    }
    databases.iter().for_each(|database| database.set_fault(Fault::Nothing));
    is_over.store(true, Relaxed);
}

fn single(room: Room, database: &Arc<Database>, below: Below) -> Cache<u64, Row, Refused> {
    let database = Arc::clone(database);
    let source = move |key: u64| {
        let database = Arc::clone(&database);
        async move { Ok(database.fetch(&[key]).await?.pop().flatten()) }
    };
    build(Cache::builder(source), room, below)
}

fn gathered(room: Room, database: &Arc<Database>, below: Below) -> Cache<u64, Row, LoadError<Refused>> {
    let database = Arc::clone(database);
    let loader = Loader::builder()
        .max_items(KEYS_A_FETCH)
        .max_in_flight(FETCHES_MAX)
        .fetch_timeout(FETCH_TIMEOUT)
        .build(move |keys: Vec<u64>| {
            let database = Arc::clone(&database);
            async move { database.fetch(&keys).await }
        });
    build(Cache::builder(loader), room, below)
}

fn build<E: Send + Sync + 'static>(builder: CacheBuilder<u64, Row, E>, room: Room, below: Below) -> Cache<u64, Row, E> {
    let mut settings = TierSettings::default();
    settings.timeout = TIER_TIMEOUT;
    settings.pause = (Duration::from_millis(50), Duration::from_millis(500));
    settings.retry_after = (Duration::from_millis(20), Duration::from_millis(500));
    let builder = builder
        .fresh_for(FRESH_FOR)
        .stale_for(STALE_FOR)
        .missing_fresh_for(FRESH_FOR / 2)
        .missing_stale_for(STALE_FOR + FRESH_FOR / 2)
        .stale_if_error_for(RESCUES_FOR)
        .jitter(0.2)
        .soft_timeout(SOFT_TIMEOUT)
        .fetch_timeout(FETCH_TIMEOUT)
        .retry_after(RETRY_AFTER.0, RETRY_AFTER.1)
        // Of an unlike weight each, so that one in may be several out.
        .weigher(|_, row| row.map_or(1, |row| 1 + (row.version % 8) as u32))
        .tier_settings(settings);
    let builder = match below {
        Below::Nothing => builder,
        Below::Redis(tier) => builder.tier(tier),
        Below::Sqlite(tier) => builder.tier(tier),
    };
    match room {
        Room::Tight => builder.capacity(TIGHT_CAPACITY).refresh_ahead(0.8).build(),
        Room::Roomy => builder.capacity(ROOMY_CAPACITY).max_fetches(FETCHES_MAX).build(),
    }
}
