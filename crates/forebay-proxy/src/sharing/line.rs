//! Line: those who wait to be carried, and how many carry them.
//!
//! Promises: whoever waits is taken by somebody: while one waits there is a carrier. Whoever has gone meanwhile is left out. Nobody waits where
//! going alone costs no more: where few are on their way at once. Knows no connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::job::Job;
use super::plan::HELD_UP;

/// Most that travel together.
const TRIP_JOBS_MAX: usize = 128;
/// So many times as long as the others of late a trip may take.
const PATIENCE: u32 = 8;
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// Least that are tried together after failures.
const TRIP_JOBS_MIN: usize = 8;

/// Those of one kind that wait.
#[derive(Debug)]
pub(crate) struct Line {
    /// So many are on their way each by itself before others wait.
    max_alone: usize,
    /// So many carry at once.
    max_carriers: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Job>,
    /// On their way alone.
    alone: usize,
    carriers: usize,
    /// On their way together.
    together: usize,
    /// Most that are taken at once: fewer after failures, which cost all of them.
    trip_jobs_max: usize,
    /// There were so many a moment ago that none goes alone.
    is_crowded: bool,
    /// How long a trip takes, of late.
    trip_time: Duration,
}

/// What somebody is told who comes.
pub(crate) enum Entry {
    /// Goes alone.
    Alone,
    /// Waits; somebody is to carry who does not yet, if this is true.
    Waits(bool),
}

impl Line {
    pub(crate) fn new(max_alone: usize, max_carriers: usize) -> Arc<Self> {
        Arc::new(Self {
            max_alone,
            max_carriers,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                alone: 0,
                carriers: 0,
                together: 0,
                trip_jobs_max: TRIP_JOBS_MAX,
                is_crowded: false,
                trip_time: Duration::ZERO,
            }),
        })
    }

    /// Somebody comes; `job` is made where it waits.
    pub(crate) fn enter(&self, job: impl FnOnce() -> Job) -> Entry {
        let mut state = self.state.lock();
        let goes_alone = state.waiting.is_empty() && !state.is_crowded && state.alone < self.max_alone;
        if goes_alone {
            state.alone += 1;
            return Entry::Alone;
        }
        state.waiting.push_back(job());
        // Another one carries while the first waits for the server, once as many wait as are on their way with each.
        let is_wanted = state.carriers == 0
            || (state.carriers < self.max_carriers && state.waiting.len() * state.carriers >= state.together.max(2));
        state.carriers += usize::from(is_wanted);
        Entry::Waits(is_wanted)
    }

    /// Somebody goes alone whatever there is.
    pub(crate) fn enter_alone(&self) {
        self.state.lock().alone += 1;
    }

    /// Somebody who went alone is back.
    pub(crate) fn leave(&self) {
        self.state.lock().alone -= 1;
    }

    /// After how long a trip is given up: where the machine is slow all take longer, and to begin anew would make it slower.
    pub(crate) fn patience(&self) -> Duration {
        (self.state.lock().trip_time * PATIENCE).clamp(HELD_UP, PATIENCE_MAX)
    }

    /// A trip took so long.
    pub(crate) fn took(&self, elapsed: Duration) {
        let mut state = self.state.lock();
        state.trip_time = (state.trip_time * 7 + elapsed) / 8;
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Those who travel next, in the order in which they came. None if nobody waits: the carrier carries no more.
    pub(crate) fn take(self: &Arc<Self>) -> Option<(Vec<Job>, OnTheirWay)> {
        let mut state = self.state.lock();
        let mut taken = Vec::with_capacity(state.waiting.len().min(state.trip_jobs_max));
        while taken.len() < state.trip_jobs_max
            && let Some(job) = state.waiting.pop_front()
        {
            // Who has gone wants nothing done.
            if !job.is_abandoned() {
                taken.push(job);
            }
        }
        if taken.is_empty() {
            state.carriers -= 1;
            return None;
        }
        state.together += taken.len();
        state.is_crowded = state.together + state.alone >= self.max_alone;
        let on_their_way = OnTheirWay {
            line: Arc::clone(self),
            count: taken.len(),
        };
        Some((taken, on_their_way))
    }

    /// One carrier goes; whether somebody is to carry who does not yet.
    pub(crate) fn is_left_by_one(&self) -> bool {
        let mut state = self.state.lock();
        state.carriers -= 1;
        let is_wanted = state.carriers == 0 && !state.waiting.is_empty();
        state.carriers += usize::from(is_wanted);
        is_wanted
    }

    /// All who wait, as nobody carries any more.
    pub(crate) fn give_up(&self) -> VecDeque<Job> {
        let mut state = self.state.lock();
        state.carriers -= 1;
        state.is_crowded = false;
        std::mem::take(&mut state.waiting)
    }

    /// These have come back undone, and go first; `failed`: one of them is why.
    pub(crate) fn put_back(&self, jobs: Vec<Job>) {
        let mut state = self.state.lock();
        for job in jobs.into_iter().rev() {
            state.waiting.push_front(job);
        }
    }

    /// A trip has ended, well or not.
    pub(crate) fn ended(&self, is_well: bool) {
        let mut state = self.state.lock();
        state.trip_jobs_max = match is_well {
            true => (state.trip_jobs_max + 2).min(TRIP_JOBS_MAX),
            false => (state.trip_jobs_max * 3 / 4).max(TRIP_JOBS_MIN),
        };
    }
}

/// Those who were taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct OnTheirWay {
    line: Arc<Line>,
    count: usize,
}

impl Drop for OnTheirWay {
    fn drop(&mut self) {
        self.line.state.lock().together -= self.count;
    }
}
