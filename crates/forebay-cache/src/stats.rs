//! What a cache counts about itself.
//!
//! Promises: counters only grow. A hit costs one addition, on a cache line of the thread's own core. Tiers have counters of
//! their own (`tier::stats`), which are part of a reading.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::tier::TierStats;

/// A reading of a cache's counters. Taken while it works they are of slightly different moments.
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::Cache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::new(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) });
/// let (one, other) = (squares.clone(), squares.clone());
/// let (one, other) = tokio::join!(one.get(&12), other.get(&12)); // Together.
/// assert_eq!(one?, other?);
/// squares.get(&12).await?;
/// squares.get(&12).await?;
///
/// let stats = squares.stats();
/// assert_eq!((stats.misses, stats.joined, stats.fetches), (2, 1, 1));
/// assert_eq!((stats.hits_fresh, stats.hit_rate()), (2, 0.5));
/// assert_eq!((stats.entries, stats.evictions), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Lookups answered from memory by a fresh entry, so far.
    pub hits_fresh: u64,
    /// Lookups answered from memory by a stale entry, so far.
    pub hits_stale: u64,
    /// How many of these two were answered by an entry that says that the source has no value.
    pub hits_missing: u64,
    /// Lookups that memory could not answer, so far.
    pub misses: u64,
    /// How many of them joined a flight that was in the air.
    pub joined: u64,
    /// Lookups answered by an expired entry because the source failed or was slow, so far.
    pub rescued: u64,
    /// Flights begun, so far: for misses, and in the background.
    pub flights: u64,
    /// How many of them were refreshes in the background.
    pub refreshes: u64,
    /// Flights that nobody waited for any more before their fetch began, and that were called off, so far.
    pub called_off: u64,
    /// Flights answered by a tier, so far.
    pub flights_by_tier: u64,
    /// Fetches from the source, so far; one of many keys is one.
    pub fetches: u64,
    /// Keys fetched from the source, so far.
    pub keys_fetched: u64,
    /// How many of them the source had nothing new for ([`Known::unchanged`](super::Known::unchanged)).
    pub unchanged: u64,
    /// Flights that ended with an error, timeouts and panics included, so far.
    pub failures: u64,
    /// Fetches that ran into the hard timeout, so far.
    pub timeouts: u64,
    /// What flights brought and was not kept because the key was written, invalidated or cleared meanwhile, so far.
    pub late_dropped: u64,
    /// Entries that made room for others, so far.
    pub evictions: u64,
    /// Values not kept because they were heavier than the whole cache, so far.
    pub too_heavy: u64,
    /// The time that all fetches together took, so far.
    pub fetch_time: Duration,
    /// Flights in the air or in line now.
    pub in_flight: usize,
    /// How many of them wait for their turn (`CacheBuilder::max_fetches`).
    pub in_line: usize,
    /// Entries now.
    pub entries: u64,
    /// Their weight now.
    pub weight: u64,
    /// The most that they may weigh.
    pub capacity: u64,
    /// The tiers below memory, in order, each with its own counts. Whether a tier is well is told by its `breaker`, `errors`
    /// and `timeouts`; whether it has heard of all that was written, by `owed`.
    pub tiers: Vec<TierStats>,
}

impl Stats {
    /// The share of lookups answered from memory; 0 before the first.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        let hits = self.hits_fresh + self.hits_stale;
        match hits + self.misses {
            0 => 0.0,
            lookups => hits as f64 / lookups as f64,
        }
    }
}

/// What is counted where entries are not read.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) misses: AtomicU64,
    pub(super) joined: AtomicU64,
    pub(super) rescued: AtomicU64,
    pub(super) flights: AtomicU64,
    pub(super) refreshes: AtomicU64,
    pub(super) called_off: AtomicU64,
    pub(super) flights_by_tier: AtomicU64,
    pub(super) fetches: AtomicU64,
    pub(super) keys_fetched: AtomicU64,
    pub(super) unchanged: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) late_dropped: AtomicU64,
    pub(super) too_heavy: AtomicU64,
    pub(super) fetch_ns: AtomicU64,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    /// What it knows; the rest is left for others to fill in.
    pub(super) fn stats(&self) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            misses: of(&self.misses),
            joined: of(&self.joined),
            rescued: of(&self.rescued),
            flights: of(&self.flights),
            refreshes: of(&self.refreshes),
            called_off: of(&self.called_off),
            flights_by_tier: of(&self.flights_by_tier),
            fetches: of(&self.fetches),
            keys_fetched: of(&self.keys_fetched),
            unchanged: of(&self.unchanged),
            failures: of(&self.failures),
            timeouts: of(&self.timeouts),
            late_dropped: of(&self.late_dropped),
            too_heavy: of(&self.too_heavy),
            fetch_time: Duration::from_nanos(of(&self.fetch_ns)),
            ..Stats::default()
        }
    }
}

/// Hits that the store's own count does not tell apart, counted near the core that has them.
pub(super) struct Hits {
    stripes: Box<[Stripe]>,
}

/// Two cache lines, for they are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    stale: AtomicU64,
    missing: AtomicU64,
}

impl Hits {
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            stripes: (0..cores.next_power_of_two()).map(|_| Stripe::default()).collect(),
        }
    }

    fn stripe(&self) -> &Stripe {
        &self.stripes[super::store::thread_number() & (self.stripes.len() - 1)]
    }

    pub(super) fn stale(&self) {
        count(&self.stripe().stale);
    }

    pub(super) fn missing(&self) {
        count(&self.stripe().missing);
    }

    /// Stale ones, and those of either kind that were of missing entries.
    pub(super) fn totals(&self) -> (u64, u64) {
        self.stripes.iter().fold((0, 0), |(stale, missing), stripe| {
            (
                stale + stripe.stale.load(Ordering::Relaxed),
                missing + stripe.missing.load(Ordering::Relaxed),
            )
        })
    }
}
