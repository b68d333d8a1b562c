//! The settings: a database, and for how long what it answers is good.
//!
//! The figures are those of a published benchmark of a product search, so that its results can be held beside ours.

use std::time::Duration;

/// A database and the windows of the cache over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// The same, where callers pause after each request.
    pub(crate) paused: &'static str,
    pub(crate) connections: u32,
    /// Of a query.
    pub(crate) latency: Duration,
    pub(crate) fetch_timeout: Duration,
    pub(crate) fresh_for: Duration,
    pub(crate) missing_fresh_for: Duration,
    pub(crate) callers: u32,
}

/// Of everything, beyond the fresh window.
pub(crate) const STALE_FOR: Duration = Duration::from_secs(24 * 3_600);
/// The published benchmark's, "to avoid CPU spinning".
pub(crate) const PAUSE: Duration = Duration::from_millis(1);
/// How much faster all goes in a tiny run, whose figures mean nothing.
const TINY: u32 = 100;

pub(crate) const SETTINGS: [Setting; 4] = [
    Setting {
        name: "High performance",
        paused: "High performance, 1 ms pauses",
        connections: 100,
        latency: Duration::from_millis(90),
        fetch_timeout: Duration::from_secs(2),
        fresh_for: Duration::from_secs(1),
        missing_fresh_for: Duration::from_millis(500),
        callers: 600,
    },
    Setting {
        name: "Cloud",
        paused: "Cloud, 1 ms pauses",
        connections: 20,
        latency: Duration::from_millis(85),
        fetch_timeout: Duration::from_secs(1),
        fresh_for: Duration::from_secs(5),
        missing_fresh_for: Duration::from_secs(3),
        callers: 100,
    },
    Setting {
        name: "Shared",
        paused: "Shared, 1 ms pauses",
        connections: 13,
        latency: Duration::from_millis(125),
        fetch_timeout: Duration::from_secs(5),
        fresh_for: Duration::from_secs(10),
        missing_fresh_for: Duration::from_secs(5),
        callers: 100,
    },
    CONSTRAINED,
];

pub(crate) const CONSTRAINED: Setting = Setting {
    name: "Constrained",
    paused: "Constrained, 1 ms pauses",
    connections: 8,
    latency: Duration::from_millis(190),
    fetch_timeout: Duration::from_secs(10),
    fresh_for: Duration::from_secs(20),
    missing_fresh_for: Duration::from_secs(10),
    callers: 100,
};

impl Setting {
    /// Queries of one key that the database can answer a second.
    pub(crate) fn queries_a_second(&self) -> f64 {
        f64::from(self.connections) / self.latency.as_secs_f64()
    }

    /// The same for a run of a moment.
    pub(crate) fn tiny(self) -> Self {
        Self {
            latency: self.latency / TINY,
            fresh_for: self.fresh_for / TINY,
            missing_fresh_for: self.missing_fresh_for / TINY,
            ..self
        }
    }

    /// For the peer in Go.
    pub(crate) fn arguments(&self, pause: Option<Duration>) -> Vec<String> {
        let time = |name: &str, duration: Duration| format!("-{name}={}us", duration.as_micros());
        vec![
            "cold-start".to_owned(),
            format!("-connections={}", self.connections),
            time("latency", self.latency),
            time("fetch-timeout", self.fetch_timeout),
            time("fresh", self.fresh_for),
            time("stale", STALE_FOR),
            time("missing-fresh", self.missing_fresh_for),
            time("missing-stale", STALE_FOR),
            time("pause", pause.unwrap_or_default()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_called_what_it_is() {
        for setting in SETTINGS {
            assert_eq!(
                setting.paused,
                format!("{}, {} ms pauses", setting.name, PAUSE.as_millis())
            );
        }
    }

    #[test]
    fn the_databases_can_do_what_their_amplification_is_of() {
        let rates = SETTINGS.map(|setting| setting.queries_a_second().round());
        assert_eq!(rates, [1_111.0, 235.0, 104.0, 42.0]);
    }
}
