//! What a pool that has a name publishes through the `metrics` facade.
//!
//! Promises: reads have no part in it. Without a recorder it does nothing.
//!
//! Knows [`Stats`], not where the figures come from.

use std::sync::Arc;

use crate::stats::Stats;

/// Publishes a reading.
pub(crate) fn publish(name: &Arc<str>, stats: &Stats) {
    let counter = |metric: &'static str, value: u64| {
        metrics::counter!(metric, "pool" => Arc::clone(name)).absolute(value);
    };
    let gauge = |metric: &'static str, value: f64| {
        metrics::gauge!(metric, "pool" => Arc::clone(name)).set(value);
    };
    counter("forebay_pages_hits_total", stats.hits);
    counter("forebay_pages_misses_total", stats.misses);
    counter("forebay_pages_joined_total", stats.joined);
    counter("forebay_pages_runs_total", stats.runs);
    counter("forebay_pages_asked_bytes_total", stats.asked_bytes);
    counter("forebay_pages_read_bytes_total", stats.read_bytes);
    counter("forebay_pages_gap_bytes_total", stats.gap_bytes);
    counter("forebay_pages_evictions_total", stats.evictions);
    counter("forebay_pages_waits_total", stats.waits);
    counter("forebay_pages_failures_total", stats.failures);
    counter("forebay_pages_written_bytes_total", stats.written_bytes);
    counter("forebay_pages_published_total", stats.published);
    counter("forebay_pages_syncs_shared_total", stats.syncs_shared);
    gauge("forebay_pages_resident_bytes", stats.resident_bytes as f64);
    gauge("forebay_pages_pinned_bytes", stats.pinned_bytes as f64);
    gauge("forebay_pages_capacity_bytes", stats.capacity_bytes as f64);
    gauge("forebay_pages_io_in_flight", stats.io_in_flight as f64);
    gauge("forebay_pages_io_queued", stats.io_queued as f64);
    for (quantile, share) in [("0.5", 0.5), ("0.99", 0.99), ("1", 1.0)] {
        if let Some(micros) = stats.io_latency.micros_at(share) {
            metrics::gauge!("forebay_pages_io_seconds", "pool" => Arc::clone(name), "quantile" => quantile)
                .set(micros as f64 / 1e6);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
    use parking_lot::Mutex;

    use super::*;

    /// Notes what is published.
    #[derive(Default)]
    struct Names(Mutex<BTreeSet<String>>);

    impl Recorder for Names {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.0.lock().insert(format!("counter {}", key.name()));
            Counter::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.0.lock().insert(format!("gauge {}", key.name()));
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn what_is_published_has_the_names_that_are_documented() {
        let names = Names::default();
        metrics::with_local_recorder(&names, || publish(&"segments".into(), &Stats::default()));
        let counters = [
            "hits",
            "misses",
            "joined",
            "runs",
            "asked_bytes",
            "read_bytes",
            "gap_bytes",
            "evictions",
            "waits",
            "failures",
            "written_bytes",
            "published",
            "syncs_shared",
        ];
        let gauges = [
            "resident_bytes",
            "pinned_bytes",
            "capacity_bytes",
            "io_in_flight",
            "io_queued",
        ];
        let counters = counters.map(|name| format!("counter forebay_pages_{name}_total"));
        let gauges = gauges.map(|name| format!("gauge forebay_pages_{name}"));
        assert_eq!(names.0.into_inner(), counters.into_iter().chain(gauges).collect());
    }
}
