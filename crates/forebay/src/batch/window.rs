//! Windows: when a queued item must go at the latest.
//!
//! Promises: a call's own window takes the place of the batcher's; no window means no look at the clock. Knows nothing of
//! queues and timers.

use std::time::Duration;

use tokio::time::Instant;

/// Longer windows are cut to this, so that adding one to a clock reading cannot overflow.
pub(crate) const WINDOW_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// When an item must go at the latest, if a slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// It does not wait for others.
    AtOnce,
    /// Its window ends then.
    By(Instant),
}

impl Due {
    /// The due time of an item that arrives now, in a batcher whose window is `window`.
    pub(crate) fn from_now(window: Duration, own: Option<Duration>) -> Self {
        let window = own.unwrap_or(window).min(WINDOW_MAX);
        if window.is_zero() {
            Self::AtOnce
        } else {
            Self::By(Instant::now() + window)
        }
    }

    /// Whether it has to go before that time.
    pub(crate) fn is_before(self, time: Instant) -> bool {
        match self {
            Self::AtOnce => true,
            Self::By(end) => end < time,
        }
    }
}
