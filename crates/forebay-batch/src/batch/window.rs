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

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_calls_own_window_takes_the_place_of_the_batchers() {
        let now = Instant::now();
        assert_eq!(Due::from_now(SECOND, None), Due::By(now + SECOND));
        assert_eq!(
            Due::from_now(SECOND, Some(3 * SECOND)),
            Due::By(now + 3 * SECOND),
            "also a longer one"
        );
        assert_eq!(Due::from_now(Duration::ZERO, Some(SECOND)), Due::By(now + SECOND));
        assert_eq!(Due::from_now(SECOND, Some(Duration::ZERO)), Due::AtOnce);
        assert_eq!(Due::from_now(Duration::ZERO, None), Due::AtOnce);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_window_does_not_overflow_the_clock() {
        assert_eq!(Due::from_now(Duration::MAX, None), Due::By(Instant::now() + WINDOW_MAX));
        assert_eq!(
            Due::from_now(Duration::ZERO, Some(Duration::MAX)),
            Due::By(Instant::now() + WINDOW_MAX)
        );
    }

    #[test]
    fn what_does_not_wait_is_before_any_time_and_earlier_than_any_window() {
        let now = Instant::now();
        assert!(Due::AtOnce.is_before(now));
        assert!(Due::By(now).is_before(now + SECOND));
        assert!(!Due::By(now).is_before(now), "at the same time is not before");
        assert!(!Due::By(now + SECOND).is_before(now));
        assert!(Due::AtOnce < Due::By(now) && Due::By(now) < Due::By(now + SECOND));
    }
}
