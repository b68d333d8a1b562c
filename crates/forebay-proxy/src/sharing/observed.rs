//! Observed: how one statement was seen to answer: how long it took, in how many bytes, and whether it held others up.
//!
//! Promises: quick is who was so lately, until it is slow more often than chance has it; who takes far longer than usual while others wait for
//! it is [banned](Observed::ban) for a time, which is twice as long each time again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::pace::HELD_UP;

/// So many times as long as usual is unusual.
const UNUSUAL: u32 = 8;
/// So many slow answers in a row, and a statement is not quick any more.
const SLOW_MAX: u64 = 16;
/// A statement that held its company up travels alone for so long, and twice as long each time again.
const BANNED_FOR: Duration = Duration::from_secs(10);
const BANNED_FOR_MAX: Duration = Duration::from_secs(600);

/// How it was seen to answer.
#[derive(Debug, Default)]
pub(super) struct Observed {
    is_quick: AtomicBool,
    slow: AtomicU64,
    /// Its answers alone were of no more bytes, of late.
    answer_bytes: AtomicU64,
    /// How long it takes alone, of late, in nanoseconds.
    usual_ns: AtomicU64,
    banned_until_ms: AtomicU64,
    bans: AtomicU64,
}

/// Milliseconds since the first look, from 1 on.
pub(super) fn now_ms() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    1 + u64::try_from(FIRST.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Observed {
    /// Its answer alone had so many bytes. One that was long is forgotten after some that were not.
    pub(super) fn was_answered_in(&self, bytes: u64) {
        let before = self.answer_bytes();
        let now = bytes.max(before - before / 8);
        if now != before {
            self.answer_bytes.store(now, Ordering::Relaxed);
        }
    }

    /// Its answers alone were of no more bytes, of late.
    pub(super) fn answer_bytes(&self) -> u64 {
        self.answer_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    pub(super) fn is_banned(&self) -> bool {
        let until = self.banned_until_ms.load(Ordering::Relaxed);
        until != 0 && now_ms() < until
    }

    /// It was answered alone, within this time, which was quick or not; `was_held_up`: behind a trip that was given up. If it is far slower than
    /// it uses to be, it was the one that held the others up.
    pub(super) fn took(&self, elapsed: Duration, is_quick: bool, was_held_up: bool) {
        let usual = self.usual();
        if was_held_up && elapsed > HELD_UP && elapsed > usual * UNUSUAL {
            self.ban();
        } else {
            let usual = match usual.is_zero() {
                true => elapsed,
                false => (usual * 7 + elapsed) / 8,
            };
            let usual_ns = u64::try_from(usual.as_nanos()).unwrap_or(u64::MAX);
            self.usual_ns.store(usual_ns, Ordering::Relaxed);
        }
        if is_quick {
            if self.slow.load(Ordering::Relaxed) != 0 {
                self.slow.store(0, Ordering::Relaxed);
            }
            if !self.is_quick() {
                self.is_quick.store(true, Ordering::Relaxed);
            }
        } else if self.slow.fetch_add(1, Ordering::Relaxed) >= SLOW_MAX {
            self.is_quick.store(false, Ordering::Relaxed);
        }
    }

    /// How long it takes alone, of late; zero before anybody has seen it.
    pub(super) fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual_ns.load(Ordering::Relaxed))
    }

    /// It is to show again that it is quick.
    pub(super) fn is_to_show_that_it_is_quick(&self) {
        self.is_quick.store(false, Ordering::Relaxed);
    }

    /// It has held others up.
    pub(super) fn ban(&self) {
        let bans = self.bans.fetch_add(1, Ordering::Relaxed).min(16);
        let time = (BANNED_FOR * (1 << bans)).min(BANNED_FOR_MAX);
        self.banned_until_ms
            .store(now_ms() + milliseconds(time), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slow_or_holds_others_up_goes_alone() {
        let observed = Observed::default();
        assert!(!observed.is_quick(), "nobody has seen it");
        observed.took(Duration::ZERO, true, false);
        for _ in 0..SLOW_MAX {
            observed.took(Duration::from_millis(2), false, false);
            assert!(observed.is_quick());
        }
        observed.took(Duration::from_millis(2), false, false);
        assert!(!observed.is_quick());
        observed.took(Duration::ZERO, true, false);
        observed.took(Duration::from_millis(100), false, false);
        assert!(observed.is_quick() && !observed.is_banned(), "nobody waited for it");
        observed.took(Duration::from_secs(1), false, true);
        assert!(observed.is_banned());
    }

    #[test]
    fn what_was_long_is_forgotten_by_and_by() {
        let observed = Observed::default();
        observed.was_answered_in(1000);
        observed.was_answered_in(100);
        assert_eq!(observed.answer_bytes(), 875);
        (0..20).for_each(|_| observed.was_answered_in(100));
        assert_eq!(observed.answer_bytes(), 100);
    }
}
