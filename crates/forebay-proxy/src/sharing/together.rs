//! Together: how many who ask one statement are asked together.
//!
//! Promises: as many as take hardly longer than one alone does: where the way is what takes long, many; where the work is, one. Knows no statement.

use std::time::{Duration, Instant};

use super::pace::HELD_UP;

/// Most that go together.
const TOGETHER_MAX: usize = 128;
/// So many to begin with, where nothing is known.
const TOGETHER_FIRST: usize = 2;
/// Their answers, at most, in bytes: all are held until all are there.
const ANSWERS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What is no matter of how many go.
pub(super) const CHANCE: Duration = Duration::from_millis(1);
/// So many times as long as one alone is held up.
const PATIENCE: u32 = 4;
/// Where two take twice as long as one they are not asked together for so long.
const ALONE_FOR: Duration = Duration::from_secs(10);

/// How many who ask one statement go together.
#[derive(Debug)]
pub(super) struct Together {
    most: usize,
    /// Until when one goes alone.
    alone_until: Option<Instant>,
}

impl Default for Together {
    fn default() -> Self {
        Self {
            most: TOGETHER_FIRST,
            alone_until: None,
        }
    }
}

impl Together {
    /// So many at most, where an answer may have so many bytes.
    pub(super) fn most(&mut self, bytes_max: u64, now: Instant) -> usize {
        if self.alone_until.is_some_and(|until| now >= until) {
            *self = Self::default();
        }
        let room = usize::try_from(ANSWERS_BYTES_MAX / bytes_max.max(1)).unwrap_or(usize::MAX);
        self.most.min(room).max(1)
    }

    /// So many took so long, where one takes `alone`; `is_well`: none has failed.
    pub(super) fn took(&mut self, count: usize, elapsed: Duration, alone: Duration, is_well: bool, now: Instant) {
        if is_well && elapsed <= alone + alone / 2 + CHANCE {
            self.most = self.most.max((count * 2).min(TOGETHER_MAX));
        } else if !is_well || elapsed > alone * 7 / 4 + CHANCE {
            self.most = self.most.min(count / 2);
            if self.most < 2 {
                self.alone(now);
            }
        }
    }

    /// They were given up.
    pub(super) fn alone(&mut self, now: Instant) {
        self.most = 1;
        self.alone_until = Some(now + ALONE_FOR);
    }
}

/// How long some may be under way together, where one takes so long alone.
pub(super) fn patience(alone: Duration) -> Duration {
    (alone * PATIENCE).max(alone + HELD_UP * PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn as_many_go_together_as_take_hardly_longer_than_one() {
        let now = Instant::now();
        let mut together = Together::default();
        // The way takes 190 ms, and each a tenth.
        let takes = |count: usize| MS * 190 + MS * u32::try_from(count).unwrap() / 10;
        for most in [2, 4, 8, 16, 32, 64, 128, 128] {
            let count = together.most(1024, now);
            assert_eq!(count, most);
            together.took(count, takes(count), takes(1), true, now);
        }
        assert_eq!(together.most(1 << 20, now), 8, "their answers are held");
        assert_eq!(together.most(1 << 24, now), 1);
        // It is the work that takes long.
        for most in [64, 32, 16, 8, 4, 2, 1] {
            let count = together.most(1, now);
            together.took(count, MS * 10 * u32::try_from(count).unwrap(), MS * 10, true, now);
            assert_eq!(together.most(1, now), most);
        }
        assert_eq!(together.most(1, now + ALONE_FOR / 2), 1);
        assert_eq!(together.most(1, now + ALONE_FOR), 2, "it is tried again");
    }

    #[test]
    fn what_fails_goes_with_fewer() {
        let now = Instant::now();
        let mut together = Together {
            most: 100,
            alone_until: None,
        };
        together.took(100, MS, MS, false, now);
        assert_eq!(together.most(1, now), 50);
        // What few take says nothing of more.
        together.took(3, MS, MS, true, now);
        assert_eq!(together.most(1, now), 50);
        together.alone(now);
        assert_eq!(together.most(1, now), 1);
    }
}
