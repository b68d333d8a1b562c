//! Backoff: how long to wait before something that failed for a passing reason is tried again.
//!
//! Promises: each wait is drawn at random from a range that doubles, up to a limit, so that those who failed together do not
//! come back together; no wait ends after the deadline, and none is given once it has passed. Knows nothing of what is
//! tried, and does not itself wait.

use std::time::{Duration, Instant};

/// The range of the first wait.
const FIRST: Duration = Duration::from_millis(2);
/// The range of a wait grows to this, and no further.
const LONGEST: Duration = Duration::from_secs(1);

/// The waits between the tries of one thing.
#[derive(Debug)]
pub struct Backoff {
    deadline: Instant,
    /// What the next wait is drawn from: half of it to all of it.
    range: Duration,
}

impl Backoff {
    /// Tries for that long, counted from now.
    pub fn new(retry_for: Duration) -> Self {
        let now = Instant::now();
        // A time too far to be counted is as good as one that never comes.
        let deadline = now.checked_add(retry_for);
        Self::until(deadline.unwrap_or_else(|| now + Duration::from_secs(86_400 * 365)))
    }

    /// Tries until then.
    pub fn until(deadline: Instant) -> Self {
        Self { deadline, range: FIRST }
    }

    /// Until when it is tried.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long to wait before the next try; none if there is no time for one.
    pub fn next_delay(&mut self) -> Option<Duration> {
        let left = self.deadline.checked_duration_since(Instant::now())?;
        if left.is_zero() {
            return None;
        }
        let delay = self.range.mul_f64(rand::random_range(0.5..=1.0));
        self.range = (self.range * 2).min(LONGEST);
        // The last try is at the deadline: nobody gives up while there is time left.
        Some(delay.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_are_never_the_same_for_all() {
        let mut backoff = Backoff::new(Duration::from_secs(3600));
        let delays: Vec<Duration> = (0..40).map(|_| backoff.next_delay().unwrap()).collect();
        assert!(delays[0] >= FIRST / 2 && delays[0] <= FIRST, "{delays:?}");
        let mut range = FIRST;
        for delay in &delays {
            assert!(*delay >= range / 2 && *delay <= range, "{delays:?}");
            range = (range * 2).min(LONGEST);
        }
        let longest = &delays[20..];
        assert!(
            longest.iter().any(|delay| *delay != longest[0]),
            "no jitter: {delays:?}"
        );
    }

    #[test]
    fn no_wait_is_given_after_the_deadline() {
        assert_eq!(Backoff::new(Duration::ZERO).next_delay(), None);
    }

    #[test]
    fn no_wait_ends_after_the_deadline() {
        let mut backoff = Backoff::new(Duration::from_millis(500));
        backoff.range = LONGEST * 100;
        assert!(backoff.next_delay().unwrap() <= Duration::from_millis(500));
    }

    #[test]
    fn a_time_without_end_can_be_asked_for() {
        assert!(Backoff::new(Duration::MAX).next_delay().is_some());
    }
}
