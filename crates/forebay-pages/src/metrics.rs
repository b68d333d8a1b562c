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
    counter("forebay_gap_pages_bytes_total", stats.gap_bytes);
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
