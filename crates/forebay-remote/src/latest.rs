//! Latest: when something last happened, read by many, recorded by few.
//!
//! Promises: asking takes no lock. Knows nothing of what happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The last time that something happened.
#[derive(Debug)]
pub struct Latest {
    /// What is counted from.
    origin: Instant,
    /// Nanoseconds since then, and one more; 0 if it never happened. Never goes back.
    noted: AtomicU64,
}

impl Latest {
    /// It has not happened yet.
    pub fn never() -> Self {
        Self {
            origin: Instant::now(),
            noted: AtomicU64::new(0),
        }
    }

    /// It happens now.
    pub fn note(&self) {
        let now = nanoseconds(self.origin.elapsed()).saturating_add(1);
        // Nothing else is told by it.
        self.noted.fetch_max(now, Ordering::Relaxed);
    }

    /// Whether it has happened since.
    pub fn is_after(&self, since: Instant) -> bool {
        self.noted.load(Ordering::Relaxed) > nanoseconds(since.saturating_duration_since(self.origin))
    }
}

/// More than can be counted is as good as never.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_it_is_told_from_what_came_after() {
        let before_all = Instant::now();
        let latest = Latest::never();
        let before = Instant::now();
        assert!(!latest.is_after(before_all) && !latest.is_after(before));
        latest.note();
        assert!(latest.is_after(before_all) && latest.is_after(before));
        // The clock may stand still in between.
        let noted = Instant::now();
        let after = std::iter::repeat_with(Instant::now).find(|now| *now > noted).unwrap();
        assert!(!latest.is_after(after));
    }
}
