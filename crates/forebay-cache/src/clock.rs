//! What time it is, for ages: cheap enough to be asked on every hit.
//!
//! Promises: [`Time::now`] makes no system call where the kernel offers a coarse clock in user space (Linux: a resolution of 1 to
//! 10 ms, by the kernel's configuration), and never goes backwards, whatever an injected clock does. Times are milliseconds of Unix
//! time when the cache is built, and monotonic from then on: setting the wall clock changes no age.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// A clock of one's own, for tests.
///
/// Answers with milliseconds since any moment it likes. Where it steps back no time has passed, and time goes on from there: so an entry is
/// served for as long as its windows say by the steps that the clock makes forward, however often it steps back. Back-off follows it
/// too; timeouts are of tokio's clock.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering::SeqCst}};
/// use forebay::cache::Cache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let now_ms = Arc::new(AtomicU64::new(0));
/// let clock = Arc::clone(&now_ms);
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
///     .fresh_for(Duration::from_secs(60))
///     .clock(move || clock.load(SeqCst))
///     .build();
/// squares.get(&12).await?;
/// now_ms.store(59_999, SeqCst);
/// assert_eq!(squares.lookup(&12).await?.age, Duration::from_millis(59_999));
/// now_ms.store(60_000, SeqCst);
/// assert!(squares.get_if_fresh(&12).is_none());
/// # Ok(())
/// # }
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds now.
    fn now_ms(&self) -> u64;
}

impl<F: Fn() -> u64 + Send + Sync + 'static> Clock for F {
    fn now_ms(&self) -> u64 {
        self()
    }
}

/// The cache's time.
pub(super) struct Time {
    injected: Option<Injected>,
    /// What is added to the ticking clock so that it shows Unix time, as it was when the cache was built.
    offset_ms: u64,
}

/// A clock of the user's, and what makes up for its steps back.
struct Injected {
    clock: Arc<dyn Clock>,
    /// What it showed last, and what it has stepped back so far, in milliseconds.
    shown: Mutex<(u64, u64)>,
}

impl Injected {
    fn now_ms(&self) -> u64 {
        let mut shown = self.shown.lock();
        let (last_ms, back_ms) = &mut *shown;
        let shows_ms = self.clock.now_ms();
        *back_ms = back_ms.saturating_add(last_ms.saturating_sub(shows_ms));
        *last_ms = shows_ms;
        shows_ms.saturating_add(*back_ms)
    }
}

impl Time {
    pub(super) fn new(injected: Option<Arc<dyn Clock>>) -> Self {
        let injected = injected.map(|clock| Injected {
            clock,
            shown: Mutex::default(),
        });
        let ticking_ms = injected.as_ref().map_or_else(ticking::now_ms, Injected::now_ms);
        let unix_ms = unix_ms(SystemTime::now());
        Self {
            injected,
            offset_ms: unix_ms.saturating_sub(ticking_ms),
        }
    }

    /// Milliseconds, on the scale of Unix time at the cache's beginning.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        let ticking_ms = match &self.injected {
            None => ticking::now_ms(),
            Some(injected) => injected.now_ms(),
        };
        ticking_ms.saturating_add(self.offset_ms)
    }

    /// When something was that is this old.
    pub(super) fn ago(&self, age: Duration) -> u64 {
        self.now().saturating_sub(whole_ms(age))
    }

    /// The same moment on the wall clock, for others to read.
    pub(super) fn on_the_wall(&self, at_ms: u64) -> SystemTime {
        let age = Duration::from_millis(self.now().saturating_sub(at_ms));
        SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH)
    }

    /// What others wrote down by the wall clock; what lies in the future is of now.
    pub(super) fn read_off_the_wall(&self, at: SystemTime) -> u64 {
        self.ago(SystemTime::now().duration_since(at).unwrap_or(Duration::ZERO))
    }
}

fn unix_ms(at: SystemTime) -> u64 {
    whole_ms(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Milliseconds; what does not fit is for ever.
pub(super) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod ticking {
    use rustix::time::{ClockId, clock_gettime};

    /// Milliseconds since the machine started, as of the kernel's last tick. Answered in user space (vDSO).
    #[inline]
    pub(super) fn now_ms() -> u64 {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        // Neither is ever negative for this clock.
        (now.tv_sec as u64) * 1_000 + (now.tv_nsec as u64) / 1_000_000
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod ticking {
    use std::sync::OnceLock;
    use std::time::Instant;

    /// Milliseconds since this was first asked.
    pub(super) fn now_ms() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        super::whole_ms(START.get_or_init(Instant::now).elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it is real time that is compared")]
    fn the_clock_of_the_machine_follows_real_time_within_its_resolution() {
        let time = Time::new(None);
        let (began, real) = (time.now(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(60));
        let (passed, really) = (time.now() - began, real.elapsed().as_millis() as u64);
        assert!(
            passed + 15 >= really && passed <= really + 15,
            "{passed} ms for {really} ms"
        );
    }

    #[test]
    fn an_injected_clock_is_the_only_one_that_counts() {
        let ticks = Arc::new(AtomicU64::new(5));
        let shown = Arc::clone(&ticks);
        let time = Time::new(Some(Arc::new(move || shown.load(Ordering::Relaxed))));
        let began = time.now();
        ticks.store(12, Ordering::Relaxed);
        assert_eq!(time.now() - began, 7);
        ticks.store(0, Ordering::Relaxed);
        assert_eq!(time.now() - began, 7, "no time has passed");
        ticks.store(3, Ordering::Relaxed);
        assert_eq!(time.now() - began, 10, "and it goes on");
        ticks.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(time.now(), u64::MAX, "to the end of time");
        ticks.store(0, Ordering::Relaxed);
        assert_eq!(time.now(), u64::MAX);
    }

    #[test]
    fn a_moment_survives_the_way_over_the_wall_clock() {
        let time = Time::new(None);
        let then = time.now() - 90_000;
        let back = time.read_off_the_wall(time.on_the_wall(then));
        assert!(back.abs_diff(then) <= 20, "{back} is not {then}");
        let future = SystemTime::now() + Duration::from_secs(3_600);
        assert!(
            time.read_off_the_wall(future) <= time.now(),
            "what comes from the future is of now"
        );
    }
}
