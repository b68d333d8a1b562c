//! Settings of how tiers are guarded: timeouts, breakers, retries, bounds. Knows no particular tier.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Tells the time by the wall clock.
pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// It is for ever, and can be added to now.
pub(crate) const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
/// What fails is not tried again sooner.
const RETRY_MIN: Duration = Duration::from_millis(1);

/// How tiers are guarded. The defaults suit a cache server in the same data centre.
///
/// ```
/// # use std::time::Duration;
/// use forebay::cache::tier::TierSettings;
///
/// let mut settings = TierSettings::default();
/// settings.timeout = Duration::from_millis(50);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TierSettings {
    /// A read that takes longer is given up: the tier is skipped. 250 ms.
    pub timeout: Duration,
    /// A batch of puts or deletions that takes longer counts as failed. 1 s.
    pub change_timeout: Duration,
    /// A clear that takes longer counts as failed and begins anew. 30 s.
    pub clear_timeout: Duration,
    /// At most so many keys wait for one tier. Over it a fetched value is dropped, and where deletions alone are more, the tier
    /// is cleared. Where there is a [`weigher`](super::super::CacheBuilder::weigher), what waits for a tier weighs no more than the cache's
    /// capacity either, but for one that is heavier alone: a fetched value beyond it is dropped, and one that was inserted is deleted there instead. 65,536.
    pub max_owed: usize,
    /// So many failed reads in a row, and the tier is not asked for a while. 5.
    pub failures_to_open: u32,
    /// That while: at first the one, doubled each time up to the other. 1 s, 30 s.
    pub pause: (Duration, Duration),
    /// What is owed is tried again after the one at first, doubled each time up to the other, and shortened by up to half at
    /// random; a millisecond at least. 100 ms, 30 s.
    pub retry_after: (Duration, Duration),
    /// If it is set, one process fetches a key for all that share a tier which can arrange that (Redis), and may be the only one for so long: the
    /// others wait for what it brings, or fetch themselves when that time is over. It should be longer than most fetches take. What waits in line
    /// (`max_fetches`) is kept from no other process. None.
    pub lease_for: Option<Duration>,
    /// A value fetched so much later than now is not used: some clock is wrong. 5 s.
    pub max_clock_skew: Duration,
    /// How old a value may get that is carried from a lower tier into the ones above it. The cache's windows say.
    pub(crate) keep_for: Duration,
    /// The same, for keys which the source has no value of.
    pub(crate) keep_missing_for: Duration,
    pub(crate) wall_clock: WallClock,
}

impl TierSettings {
    /// Tells the time otherwise than by the system's clock, for tests.
    #[must_use]
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = Arc::new(now);
        self
    }

    /// The same, with times that can be added to now, and pauses in which others can go on.
    pub(super) fn within_reason(mut self) -> Self {
        for time in [&mut self.pause.0, &mut self.pause.1, &mut self.max_clock_skew] {
            *time = (*time).min(CENTURY);
        }
        for time in [&mut self.retry_after.0, &mut self.retry_after.1] {
            *time = (*time).clamp(RETRY_MIN, CENTURY);
        }
        self
    }
}

impl Default for TierSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(250),
            change_timeout: Duration::from_secs(1),
            clear_timeout: Duration::from_secs(30),
            max_owed: 65_536,
            failures_to_open: 5,
            pause: (Duration::from_secs(1), Duration::from_secs(30)),
            retry_after: (Duration::from_millis(100), Duration::from_secs(30)),
            lease_for: None,
            max_clock_skew: Duration::from_secs(5),
            keep_for: Duration::from_secs(3600),
            keep_missing_for: Duration::from_secs(60),
            wall_clock: Arc::new(SystemTime::now),
        }
    }
}

impl fmt::Debug for TierSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TierSettings")
            .field("timeout", &self.timeout)
            .field("change_timeout", &self.change_timeout)
            .field("clear_timeout", &self.clear_timeout)
            .field("max_owed", &self.max_owed)
            .field("failures_to_open", &self.failures_to_open)
            .field("pause", &self.pause)
            .field("retry_after", &self.retry_after)
            .field("lease_for", &self.lease_for)
            .field("max_clock_skew", &self.max_clock_skew)
            .field("keep_for", &self.keep_for)
            .field("keep_missing_for", &self.keep_missing_for)
            .finish_non_exhaustive()
    }
}
