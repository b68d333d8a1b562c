//! What is counted about a tier.
//!
//! Promises: counters only grow; a call costs a few relaxed additions. Knows nothing of exporters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A reading of one tier's counters. Taken while it works they are of slightly different moments.
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::{Cache, tier::{BreakerState, Form, KeyForm, Postcard, sqlite::SqliteTier}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.cache");
/// let form: Form<u64, u64> = Form::new("squares", KeyForm::display(), Postcard);
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .tier(SqliteTier::builder(path, form).open()?)
///     .build();
/// squares.get(&12).await?;
/// squares.settled().await;
///
/// let tier = &squares.stats().tiers[0];
/// assert_eq!((tier.gets, tier.hits, tier.puts), (1, 0, 1));
/// assert_eq!((tier.breaker, tier.owed), (BreakerState::Closed, 0)); // It is well, and has heard of everything.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierStats {
    /// The tier's name.
    pub name: String,
    /// Keys wanted of the tier so far: hits, misses, and those of reads that failed or were skipped.
    pub gets: u64,
    /// Keys it had a usable value of.
    pub hits: u64,
    /// Keys it had none of, or none that may be used.
    pub misses: u64,
    /// Calls that failed: reads, and batches of changes.
    pub errors: u64,
    /// Calls that were given up because they took too long.
    pub timeouts: u64,
    /// Reads not made because the breaker is open.
    pub skipped: u64,
    /// Keys not asked for because their deletion is owed.
    pub barred: u64,
    /// Values the tier has taken.
    pub puts: u64,
    /// Keys it has acknowledged the deletion of.
    pub deletes: u64,
    /// Values given up: the tier failed, or the queue was full.
    pub dropped: u64,
    /// Times the owed deletions were more than the bound, and the tier was to be cleared instead.
    pub overflows: u64,
    /// Deletions, puts that stand for one, and clears that are owed now.
    pub owed: usize,
    /// Stored values that could not be read, and such from the future.
    pub undecodable: u64,
    /// How long reads took, those that failed included.
    pub read_latency: Latency,
    /// How long batches of changes took, those that failed included.
    pub change_latency: Latency,
    /// Whether the tier is asked now.
    pub breaker: BreakerState,
}

/// Whether a tier is asked.
///
/// ```
/// use forebay::cache::tier::{BreakerState, TierStats};
///
/// /// For a page of health.
/// fn health(tier: &TierStats) -> String {
///     match tier.breaker {
///         BreakerState::Closed => format!("{} is well", tier.name),
///         BreakerState::Open => format!("{} is down, and left alone", tier.name),
///         BreakerState::HalfOpen => format!("{} is being tried", tier.name),
///     }
/// }
///
/// let mut tier = TierStats::default();
/// tier.name = "redis".to_owned();
/// assert_eq!(health(&tier), "redis is well");
/// tier.breaker = BreakerState::Open;
/// assert_eq!(health(&tier), "redis is down, and left alone");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreakerState {
    /// It is.
    #[default]
    Closed,
    /// It failed several times in a row and is left alone for a while.
    Open,
    /// One read finds out whether it works again.
    HalfOpen,
}

/// Upper bounds of the buckets of [`Latency`]; the last bucket has none.
pub const LATENCY_BOUNDS: [Duration; 10] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
];

/// How long calls took.
///
/// ```
/// use std::time::Duration;
/// use forebay::cache::tier::{LATENCY_BOUNDS, Latency};
///
/// /// How many took no longer than that, which is one of the bounds.
/// fn within(latency: &Latency, limit: Duration) -> u64 {
///     let counts = LATENCY_BOUNDS.iter().zip(latency.buckets);
///     counts.filter(|(bound, _)| **bound <= limit).map(|(_, count)| count).sum()
/// }
///
/// let mut latency = Latency::default(); // As `TierStats::read_latency` has it.
/// latency.count = 100;
/// latency.buckets[1] = 98; // up to 100 µs
/// latency.buckets[7] = 2; // up to 50 ms
/// assert_eq!(within(&latency, Duration::from_millis(1)), 98);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many calls.
    pub count: u64,
    /// All their time together.
    pub sum: Duration,
    /// How many took no longer than each of [`LATENCY_BOUNDS`] but longer than the one before; then those that took longer.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
}

/// A [`Latency`] that calls add to.
#[derive(Default)]
pub(super) struct Histogram {
    sum_nanos: AtomicU64,
    buckets: [AtomicU64; LATENCY_BOUNDS.len() + 1],
}

impl Histogram {
    pub(super) fn add(&self, took: Duration) {
        let bucket = LATENCY_BOUNDS.partition_point(|bound| *bound < took);
        self.buckets[bucket].fetch_add(1, Relaxed);
        // Enough for 584 years.
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    pub(super) fn read(&self) -> Latency {
        let buckets = self.buckets.each_ref().map(|bucket| bucket.load(Relaxed));
        Latency {
            count: buckets.iter().sum(),
            sum: Duration::from_nanos(self.sum_nanos.load(Relaxed)),
            buckets,
        }
    }
}

/// The counters behind [`TierStats`].
#[derive(Default)]
pub(super) struct Counters {
    pub(super) gets: AtomicU64,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) barred: AtomicU64,
    pub(super) puts: AtomicU64,
    pub(super) deletes: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) overflows: AtomicU64,
    /// Values from the future.
    pub(super) future: AtomicU64,
    pub(super) read_latency: Histogram,
    pub(super) change_latency: Histogram,
}

/// Adds what a count of things in memory comes to.
pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Relaxed);
}

impl Counters {
    /// All but what others know: owed, breaker, what the tier itself could not decode.
    pub(super) fn read(&self, name: &str) -> TierStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        TierStats {
            name: name.to_owned(),
            gets: read(&self.gets),
            hits: read(&self.hits),
            misses: read(&self.misses),
            errors: read(&self.errors),
            timeouts: read(&self.timeouts),
            skipped: read(&self.skipped),
            barred: read(&self.barred),
            puts: read(&self.puts),
            deletes: read(&self.deletes),
            dropped: read(&self.dropped),
            overflows: read(&self.overflows),
            undecodable: read(&self.future),
            read_latency: self.read_latency.read(),
            change_latency: self.change_latency.read(),
            ..TierStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_in_the_bucket_whose_bound_it_does_not_pass() {
        let histogram = Histogram::default();
        for took in [0, 50, 51, 2_000_000].map(Duration::from_micros) {
            histogram.add(took);
        }
        let read = histogram.read();
        assert_eq!((read.count, read.sum), (4, Duration::from_micros(2_000_101)));
        assert_eq!((read.buckets[0], read.buckets[1], read.buckets[10]), (2, 1, 1));
    }
}
