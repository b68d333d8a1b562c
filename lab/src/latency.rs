//! How long many short requests took: buckets, 64 to each doubling, so that noting one costs a few nanoseconds.
//!
//! Promises: what is told is within 1.6 % of what was noted, or within half a nanosecond; what takes longer than 18 minutes
//! counts as 18 minutes. Noting allocates nothing. The peers in Go note theirs in the same buckets. Knows no clock.

use std::time::Duration;

const STEPS_BITS: u32 = 6;
const STEPS: usize = 1 << STEPS_BITS;
/// Beyond the first 64 ns: up to 2^40 ns.
const DOUBLINGS: u32 = 40 - STEPS_BITS;
const BUCKETS: usize = (DOUBLINGS as usize + 1) * STEPS;

/// Counts of what took how long.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

fn bucket_of(took_ns: u64) -> usize {
    if took_ns < STEPS as u64 {
        return took_ns as usize;
    }
    let doubling = u64::BITS - took_ns.leading_zeros() - STEPS_BITS;
    if doubling > DOUBLINGS {
        return BUCKETS - 1;
    }
    // The leading bit is known, the next ones choose among the steps.
    doubling as usize * STEPS + (took_ns >> (doubling - 1)) as usize - STEPS
}

/// What is told for all that a bucket holds.
fn middle_of(bucket: usize) -> f64 {
    if bucket < STEPS {
        return bucket as f64;
    }
    let (doubling, step) = (bucket / STEPS, bucket % STEPS);
    ((STEPS + step) as f64 + 0.5) * (1_u64 << (doubling - 1)) as f64
}

impl Latencies {
    /// Of nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            total: 0,
        }
    }

    /// One more.
    #[inline]
    pub(crate) fn note(&mut self, took: Duration) {
        // The seconds that a u64 of nanoseconds cannot hold are beyond the last bucket in any case.
        let seconds_ns = took.as_secs().saturating_mul(1_000_000_000);
        let took_ns = seconds_ns.saturating_add(took.subsec_nanos().into());
        self.counts[bucket_of(took_ns)] += 1;
        self.total += 1;
    }

    /// Those of another, too.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts.iter_mut().zip(&*other.counts) {
            *sum += count;
        }
        self.total += other.total;
    }

    /// In nanoseconds; 0 of nothing.
    pub(crate) fn quantile_ns(&self, part: f64) -> f64 {
        let rank = (part * self.total as f64) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > rank {
                return middle_of(bucket);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_near_what_was_noted() {
        for took in [0_u64, 1, 63, 64, 127, 128, 1_000, 123_456, 5_000_000_000] {
            let mut latencies = Latencies::new();
            latencies.note(Duration::from_nanos(took));
            let (told, took) = (latencies.quantile_ns(0.5), took as f64);
            assert!(
                (told - took).abs() <= (took / 64.0).max(0.5),
                "{took} ns is told as {told}"
            );
        }
    }

    #[test]
    fn buckets_follow_one_another() {
        let mut before = 0;
        for took in 1..100_000 {
            let bucket = bucket_of(took);
            assert!(bucket == before || bucket == before + 1, "{took} ns");
            before = bucket;
        }
    }

    #[test]
    fn quantiles_are_of_all_that_was_noted() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.quantile_ns(0.5), 0.0);
        let mut others = Latencies::new();
        for took in 0..100 {
            let half = if took % 2 == 0 { &mut latencies } else { &mut others };
            half.note(Duration::from_nanos(took));
        }
        latencies.add(&others);
        // From 64 ns on a bucket is told by its middle.
        assert_eq!((latencies.quantile_ns(0.50), latencies.quantile_ns(0.99)), (50.0, 99.5));
        latencies.note(Duration::MAX);
        assert!(latencies.quantile_ns(0.999) >= (1_u64 << 39) as f64);
    }
}
