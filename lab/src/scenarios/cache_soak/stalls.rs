//! When the machine itself stood still: a thread that ticks, and how late its ticks came.
//!
//! Promises: what it calls a stall was one of the process or the machine, for its thread shares nothing with a runtime that
//! hangs by its own fault. A stall counts while it lasts, also before the thread has woken. The thread ends soon after the last
//! owner is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

const TICK: Duration = Duration::from_millis(10);
/// A tick that is less late is none: a thread has to wait for its processor now and then.
const STALL_US: u64 = 30_000;

/// Stalls so far.
#[derive(Debug)]
pub(crate) struct Stalls {
    origin: Instant,
    ticked_us: AtomicU64,
    stalled_us: AtomicU64,
}

impl Stalls {
    /// Begins to watch.
    pub(crate) fn watch() -> Result<Arc<Self>, Failure> {
        let stalls = Arc::new(Self {
            origin: Instant::now(),
            ticked_us: AtomicU64::new(0),
            stalled_us: AtomicU64::new(0),
        });
        let watched = Arc::downgrade(&stalls);
        #[allow(
            clippy::disallowed_methods,
            reason = "a thread of its own: how late it wakes is what it is for"
        )]
        let ticking = move || {
            while let Some(stalls) = watched.upgrade() {
                stalls.tick(stalls.now_us());
                drop(stalls);
                thread::sleep(TICK);
            }
        };
        let thread = thread::Builder::new().name("stalls".to_owned());
        thread.spawn(ticking).map_err(Failure::system("start a thread"))?;
        Ok(stalls)
    }

    /// How long all stalls took together, up to now.
    pub(crate) fn so_far(&self) -> Duration {
        Duration::from_micros(self.up_to(self.now_us()))
    }

    fn now_us(&self) -> u64 {
        self.origin.elapsed().as_micros() as u64
    }

    fn tick(&self, now_us: u64) {
        let stalled_us = self.up_to(now_us);
        // In this order a stall may count twice for a moment, and is never missed.
        self.stalled_us.store(stalled_us, SeqCst);
        self.ticked_us.store(now_us, SeqCst);
    }

    fn up_to(&self, now_us: u64) -> u64 {
        let ticked_us = self.ticked_us.load(SeqCst);
        let late_us = now_us.saturating_sub(ticked_us + TICK.as_micros() as u64);
        self.stalled_us.load(SeqCst) + if late_us > STALL_US { late_us } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_a_stall_from_when_it_should_have_come() {
        let stalls = Stalls {
            origin: Instant::now(),
            ticked_us: AtomicU64::new(0),
            stalled_us: AtomicU64::new(0),
        };
        stalls.tick(10_000);
        stalls.tick(45_000);
        assert_eq!(stalls.up_to(50_000), 0);
        assert_eq!(stalls.up_to(155_000), 100_000, "it has not ended");
        stalls.tick(255_000);
        assert_eq!(stalls.up_to(256_000), 200_000);
    }
}
