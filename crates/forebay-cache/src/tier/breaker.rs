//! A circuit breaker: a tier that failed several reads in a row is left alone for a while, then tried by one read.
//!
//! Promises: closed, every read goes through; `failures_to_open` failures in a row open it, then none does until the pause is
//! over; then exactly one does at a time (the probe). A success closes it; a failed probe opens it again, for twice as long up to
//! the longest pause. A cancelled probe counts for nothing.
//!
//! Does not know tiers: it is told what happened. Changes have no breaker: what is owed has its own back-off (`queue`).

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::stats::BreakerState;

/// Watches over the reads of one tier.
pub(super) struct Breaker {
    failures_to_open: u32,
    /// The first and the longest.
    pause: (Duration, Duration),
    state: Mutex<State>,
}

enum State {
    /// So many failed in a row, fewer than would open it.
    Closed { failures: u32 },
    Open {
        until: Instant,
        pause: Duration,
        probing: bool,
    },
}

/// Leave to read. Dropped without a word, as by a reader who goes away, it changes nothing.
pub(super) struct Leave<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Breaker {
    pub(super) fn new(failures_to_open: u32, pause: (Duration, Duration)) -> Self {
        Self {
            failures_to_open: failures_to_open.max(1),
            pause,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Leave to read now, if there is.
    pub(super) fn admit(&self) -> Option<Leave<'_>> {
        let is_probe = match &mut *self.state.lock() {
            State::Closed { .. } => false,
            State::Open { until, probing, .. } => {
                if *probing || Instant::now() < *until {
                    return None;
                }
                *probing = true;
                true
            }
        };
        Some(Leave {
            breaker: self,
            is_probe,
        })
    }

    pub(super) fn state(&self) -> BreakerState {
        match &*self.state.lock() {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { probing: false, .. } => BreakerState::Open,
            State::Open { probing: true, .. } => BreakerState::HalfOpen,
        }
    }
}

impl Leave<'_> {
    /// The read succeeded. Returns whether that closed the breaker.
    pub(super) fn succeeded(mut self) -> bool {
        // A straggler's success, of a read from before it opened, tells as much as a probe's.
        let was_open = matches!(
            std::mem::replace(&mut *self.breaker.state.lock(), State::Closed { failures: 0 }),
            State::Open { .. }
        );
        self.is_probe = false;
        was_open
    }

    /// The read failed.
    pub(super) fn failed(mut self) {
        let mut state = self.breaker.state.lock();
        let (first, longest) = self.breaker.pause;
        let next = match &*state {
            State::Closed { failures } if failures + 1 < self.breaker.failures_to_open => {
                State::Closed { failures: failures + 1 }
            }
            State::Closed { .. } => opened(first),
            State::Open { pause, .. } if self.is_probe => opened((*pause * 2).min(longest)),
            // A straggler's failure: known already.
            State::Open { .. } => return,
        };
        *state = next;
        drop(state);
        self.is_probe = false;
    }
}

fn opened(pause: Duration) -> State {
    State::Open {
        until: Instant::now() + pause,
        pause,
        probing: false,
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.is_probe
            && let State::Open { probing, .. } = &mut *self.breaker.state.lock()
        {
            *probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn failed_in_a_row(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.admit().unwrap().failed();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_in_a_row_open_it() {
        let breaker = Breaker::new(3, (ms(10), ms(40)));
        failed_in_a_row(&breaker, 2);
        assert!(!breaker.admit().unwrap().succeeded());
        failed_in_a_row(&breaker, 2);
        assert_eq!(breaker.state(), BreakerState::Closed);
        failed_in_a_row(&breaker, 1);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.admit().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_probe_at_a_time_and_the_pause_doubles_to_its_limit() {
        let breaker = Breaker::new(1, (ms(10), ms(40)));
        failed_in_a_row(&breaker, 1);
        for pause in [10, 20, 40, 40] {
            advance(ms(pause - 1)).await;
            assert!(breaker.admit().is_none(), "asked before its {pause} ms were over");
            advance(ms(1)).await;
            let probe = breaker.admit().expect("the pause is over");
            assert_eq!(breaker.state(), BreakerState::HalfOpen);
            assert!(breaker.admit().is_none(), "a second probe");
            probe.failed();
        }
        advance(ms(40)).await;
        assert!(breaker.admit().unwrap().succeeded());
        assert_eq!(breaker.state(), BreakerState::Closed);
        // The next failure begins with the short pause again.
        failed_in_a_row(&breaker, 1);
        advance(ms(10)).await;
        assert!(breaker.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_probe_leaves_the_next_reader_to_probe() {
        let breaker = Breaker::new(1, (ms(10), ms(40)));
        failed_in_a_row(&breaker, 1);
        advance(ms(10)).await;
        drop(breaker.admit().unwrap());
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn reads_from_before_it_opened_do_not_lengthen_the_pause() {
        let breaker = Breaker::new(1, (ms(10), ms(40)));
        let (first, second) = (breaker.admit().unwrap(), breaker.admit().unwrap());
        first.failed();
        advance(ms(5)).await;
        second.failed();
        advance(ms(5)).await;
        assert!(breaker.admit().is_some());
    }
}
