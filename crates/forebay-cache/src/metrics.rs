//! What a cache tells the `metrics` facade, if it was given a name.
//!
//! Promises: counters are what [`Stats`] says at the moment they are published; only the time of a fetch is told as it happens.
//! Without a recorder all of this is nothing. Does not know when a reading is published.
//!
//! Each tier has counters and gauges of its own, by the label `tier`: its name, and from the second tier of that name on its
//! place among them (`redis`, `redis-2`). The time of its calls is a sum and a count, for averages over any period.

use std::sync::Arc;
use std::time::Duration;

use super::stats::Stats;
use super::tier::{BreakerState, Latency, TierStats};

/// A fetch from the source ended, well or not.
pub(super) fn fetch_took(name: &Arc<str>, time: Duration) {
    if !name.is_empty() {
        metrics::histogram!("forebay_cache_fetch_seconds", "cache" => Arc::clone(name)).record(time);
    }
}

/// Publishes a reading.
pub(super) fn publish(name: &Arc<str>, stats: &Stats) {
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
    counter("forebay_cache_flights_by_tier_total", stats.flights_by_tier);
    counter("forebay_cache_fetches_total", stats.fetches);
    counter("forebay_cache_keys_fetched_total", stats.keys_fetched);
    counter("forebay_cache_unchanged_total", stats.unchanged);
    counter("forebay_cache_failures_total", stats.failures);
    counter("forebay_cache_timeouts_total", stats.timeouts);
    counter("forebay_cache_late_dropped_total", stats.late_dropped);
    counter("forebay_cache_evictions_total", stats.evictions);
    gauge("forebay_cache_in_flight", stats.in_flight as f64);
    gauge("forebay_cache_entries", stats.entries as f64);
    gauge("forebay_cache_weight", stats.weight as f64);
    for (at, tier) in stats.tiers.iter().enumerate() {
        let namesakes = stats.tiers[..at].iter().filter(|above| above.name == tier.name).count();
        let label = match namesakes {
            0 => tier.name.clone(),
            above => format!("{}-{}", tier.name, above + 1),
        };
        publish_tier(name, &label, tier);
    }
}

/// Publishes a reading of one tier.
fn publish_tier(name: &Arc<str>, tier: &str, stats: &TierStats) {
    let counter = |metric: &'static str, value: u64| {
        metrics::counter!(metric, "cache" => Arc::clone(name), "tier" => tier.to_owned()).absolute(value);
    };
    let gauge = |metric: &'static str, value: f64| {
        metrics::gauge!(metric, "cache" => Arc::clone(name), "tier" => tier.to_owned()).set(value);
    };
    counter("forebay_cache_tier_gets_total", stats.gets);
    counter("forebay_cache_tier_hits_total", stats.hits);
    counter("forebay_cache_tier_misses_total", stats.misses);
    counter("forebay_cache_tier_errors_total", stats.errors);
    counter("forebay_cache_tier_timeouts_total", stats.timeouts);
    counter("forebay_cache_tier_skipped_total", stats.skipped);
    counter("forebay_cache_tier_barred_total", stats.barred);
    counter("forebay_cache_tier_puts_total", stats.puts);
    counter("forebay_cache_tier_deletes_total", stats.deletes);
    counter("forebay_cache_tier_dropped_total", stats.dropped);
    counter("forebay_cache_tier_overflows_total", stats.overflows);
    counter("forebay_cache_tier_undecodable_total", stats.undecodable);
    let us = |latency: &Latency| u64::try_from(latency.sum.as_micros()).unwrap_or(u64::MAX);
    counter("forebay_cache_tier_reads_total", stats.read_latency.count);
    counter("forebay_cache_tier_read_microseconds_total", us(&stats.read_latency));
    counter("forebay_cache_tier_changes_total", stats.change_latency.count);
    counter(
        "forebay_cache_tier_change_microseconds_total",
        us(&stats.change_latency),
    );
    gauge("forebay_cache_tier_owed", stats.owed as f64);
    gauge("forebay_cache_tier_breaker", breaker(stats.breaker));
}

/// 0: the tier is asked; 1: one read finds out; 2: it is left alone.
fn breaker(state: BreakerState) -> f64 {
    match state {
        BreakerState::Closed => 0.0,
        BreakerState::HalfOpen => 1.0,
        BreakerState::Open => 2.0,
    }
}
