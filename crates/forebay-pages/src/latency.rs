//! How long I/Os took: a histogram that many threads fill at once.
//!
//! Promises: a bucket is at most an eighth of its lower bound wide, and so is the error of a percentile read from it. What takes
//! longer than the last bucket's bound is counted there. Recording is one atomic addition.
//!
//! Knows nothing of I/O.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets to a power of two.
const STEPS: u64 = 8;
/// Up to 2^36 microseconds, about 19 hours.
const BUCKETS: usize = 34 * STEPS as usize + STEPS as usize;

/// The counters.
pub(crate) struct Histogram([AtomicU64; BUCKETS]);

impl Histogram {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    pub(crate) fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // Relaxed: a count that nothing else depends on.
        self.0[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Latencies {
        let counts = self.0.iter().enumerate().filter_map(|(bucket, count)| {
            let count = count.load(Ordering::Relaxed);
            (count > 0).then(|| LatencyBucket {
                max_micros: upper_bound(bucket),
                count,
            })
        });
        Latencies(counts.collect())
    }
}

/// The bucket that so many microseconds belong to.
fn bucket(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let octave = u64::from(micros.ilog2()) - u64::from(STEPS.ilog2());
    let step = (micros >> octave) - STEPS;
    usize::try_from(STEPS + octave * STEPS + step).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
}

/// The most microseconds that belong to the bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let octave = (bucket - STEPS) / STEPS;
    let step = bucket % STEPS;
    ((STEPS + step + 1) << octave) - 1
}

/// How many I/Os took how long.
///
/// ```
/// use forebay::pages::{LatencyBucket, PagePool};
///
/// /// Counts up to each bound, as histograms of Prometheus have them.
/// fn cumulative(buckets: &[LatencyBucket]) -> Vec<(u64, u64)> {
///     let mut so_far = 0;
///     buckets.iter().map(|bucket| { so_far += bucket.count; (bucket.max_micros, so_far) }).collect()
/// }
///
/// let buckets = [LatencyBucket { max_micros: 87, count: 5 }, LatencyBucket { max_micros: 95, count: 2 }];
/// assert_eq!(cumulative(&buckets), [(87, 5), (95, 7)]);
/// assert!(cumulative(PagePool::new()?.stats().io_latency.buckets()).is_empty());
/// # Ok::<_, forebay::pages::PageError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBucket {
    /// The longest of them, in microseconds; all took longer than the bucket before says.
    pub max_micros: u64,
    /// How many.
    pub count: u64,
}

/// The latencies of all I/Os so far: the buckets that are not empty, shortest first.
///
/// ```
/// use forebay::pages::PagePool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, vec![7; 1 << 20])?;
/// let pool = PagePool::builder().memory(64 << 20).build()?;
/// assert_eq!(pool.stats().io_latency.micros_at(0.99), None); // There was none yet.
/// pool.open(&path).await?.read(..).await?;
///
/// let latencies = pool.stats().io_latency;
/// assert_eq!(latencies.count(), 4);
/// let (median, tail) = (latencies.micros_at(0.5).unwrap(), latencies.micros_at(0.99).unwrap());
/// assert!(median <= tail);
/// println!("half of them took up to {median} µs, all but one in a hundred up to {tail} µs");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<LatencyBucket>);

impl Latencies {
    /// The buckets.
    pub fn buckets(&self) -> &[LatencyBucket] {
        &self.0
    }

    /// How many I/Os there were.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.count).sum()
    }

    /// The latency, in microseconds, that this share of all I/Os (0.99, say) did not exceed. `None`: there were none.
    pub fn micros_at(&self, share: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        let reached = self.0.iter().find(|bucket| {
            seen += bucket.count;
            seen >= wanted
        });
        reached.or(self.0.last()).map(|bucket| bucket.max_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps_and_are_an_eighth_wide() {
        for index in 0..BUCKETS - 1 {
            let above = upper_bound(index) + 1;
            assert_eq!((bucket(upper_bound(index)), bucket(above)), (index, index + 1));
            assert!((upper_bound(index + 1) - above) * STEPS <= above, "bucket {index}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_told_from_the_counts() {
        let histogram = Histogram::new();
        assert_eq!(histogram.snapshot().micros_at(0.5), None);
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        histogram.record(Duration::MAX);
        let latencies = histogram.snapshot();
        assert_eq!(latencies.count(), 1001);
        let median = latencies.micros_at(0.5).unwrap();
        assert!((500..=563).contains(&median), "{median}");
        assert!((990..=1115).contains(&latencies.micros_at(0.99).unwrap()));
        assert!(latencies.micros_at(1.0).unwrap() > 1 << 35);
    }
}
