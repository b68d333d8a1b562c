//! What a cache tells the `metrics` facade, if it was given a name.
//!
//! Promises: nothing of it is on the way of a hit. Counters are published once a second by a task that ends with the cache, and
//! are what [`Stats`] says; only the time of fetches is told as it happens. Without a recorder all of this is nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::Core;
use super::stats::Stats;
use crate::load::Key;

/// How often counters are published.
const PERIOD: Duration = Duration::from_secs(1);

/// A fetch from the source ended, well or not.
pub(super) fn fetch_took(name: &Arc<str>, time: Duration) {
    if !name.is_empty() {
        metrics::histogram!("forebay_cache_fetch_seconds", "cache" => Arc::clone(name)).record(time);
    }
}

/// Publishes until the cache is gone.
pub(super) async fn publish<K, V, E>(core: Weak<Core<K, V, E>>)
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(core) = core.upgrade() else { return };
        tell(&core.settings.name, &core.stats());
    }
}

/// Publishes a reading.
pub(super) fn tell(name: &Arc<str>, stats: &Stats) {
    let counter = |metric: &'static str, value: u64| {
        metrics::counter!(metric, "cache" => Arc::clone(name)).absolute(value);
    };
    let state = |metric: &'static str, state: &'static str, value: u64| {
        metrics::counter!(metric, "cache" => Arc::clone(name), "state" => state).absolute(value);
    };
    let gauge = |metric: &'static str, value: f64| {
        metrics::gauge!(metric, "cache" => Arc::clone(name)).set(value);
    };
    state("forebay_cache_hits_total", "fresh", stats.hits_fresh);
    state("forebay_cache_hits_total", "stale", stats.hits_stale);
    counter("forebay_cache_hits_missing_total", stats.hits_missing);
    counter("forebay_cache_misses_total", stats.misses);
    counter("forebay_cache_joined_total", stats.joined);
    counter("forebay_cache_rescued_total", stats.rescued);
    counter("forebay_cache_flights_total", stats.flights);
    counter("forebay_cache_refreshes_total", stats.refreshes);
    counter("forebay_cache_called_off_total", stats.called_off);
    counter("forebay_cache_fetches_total", stats.fetches);
    counter("forebay_cache_keys_fetched_total", stats.keys_fetched);
    counter("forebay_cache_failures_total", stats.failures);
    counter("forebay_cache_timeouts_total", stats.timeouts);
    counter("forebay_cache_late_dropped_total", stats.late_dropped);
    counter("forebay_cache_evictions_total", stats.evictions);
    gauge("forebay_cache_in_flight", stats.in_flight as f64);
    gauge("forebay_cache_entries", stats.entries as f64);
    gauge("forebay_cache_weight", stats.weight as f64);
}
