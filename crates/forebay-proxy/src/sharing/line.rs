//! Line: those who wait to be carried, and how many carry them.
//!
//! Promises: whoever waits is taken by somebody: while one waits there is a carrier. Whoever has gone meanwhile is left out. Nobody waits where
//! going alone costs no more: where few are on their way at once. Knows no connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::ask::Answer;
use super::job::Job;
use super::pace::{HELD_UP, Pace};

/// Most that travel together.
const TRIP_JOBS_MAX: usize = 128;
/// So few are not divided between two trips: each costs the server something by itself.
const TRIP_SHARE_MIN: usize = 8;
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
    pub(crate) pace: Pace,
    /// Somebody waits who did not.
    has_come: Notify,
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
    /// `quick`: as [`Pace::new`].
    pub(crate) fn new(max_alone: usize, max_carriers: usize, quick: Duration) -> Arc<Self> {
        Arc::new(Self {
            max_alone,
            max_carriers,
            pace: Pace::new(quick),
            has_come: Notify::new(),
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

    /// Somebody comes, who waits for company in any case if he `wants_company`; `job` is made where it waits.
    pub(crate) fn enter(&self, wants_company: bool, job: impl FnOnce() -> Job) -> Entry {
        let mut state = self.state.lock();
        let is_empty = state.waiting.is_empty() && !state.is_crowded;
        if is_empty && state.alone < self.max_alone && !wants_company {
            state.alone += 1;
            return Entry::Alone;
        }
        state.waiting.push_back(job());
        self.has_come.notify_waiters();
        Entry::Waits(state.counts_one_more(self.max_carriers))
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
        let held_up = self.pace.cost() + HELD_UP;
        (self.state.lock().trip_time * PATIENCE).clamp(held_up, PATIENCE_MAX)
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

    /// Completes when there is somebody who waits no longer for company, or as many as travel together, or nobody. Cancel safe.
    pub(crate) async fn is_due(&self) {
        loop {
            let come = self.has_come.notified();
            tokio::pin!(come);
            come.as_mut().enable();
            let Some(until) = self.waits_until() else { return };
            tokio::select! {
                () = come => {}
                () = tokio::time::sleep_until(until.into()) => return,
            }
        }
    }

    /// Until when all who wait do so for company; none where it is time to go.
    pub(crate) fn waits_until(&self) -> Option<Instant> {
        let state = self.state.lock();
        if state.waiting.len() >= state.trip_jobs_max {
            return None;
        }
        let mut first: Option<Instant> = None;
        for job in &state.waiting {
            let until = job.until?;
            first = Some(first.map_or(until, |first| first.min(until)));
        }
        first.filter(|until| *until > Instant::now())
    }

    /// Those who travel next, in the order in which they came. None if nobody waits: the carrier carries no more.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut state = self.state.lock();
        let most = state.trip_jobs_max.min(state.share());
        let mut taken = Vec::with_capacity(state.waiting.len().min(most));
        while taken.len() < most
            && let Some(job) = state.waiting.pop_front()
        {
            // Who has gone wants nothing done, nor does who has withdrawn it.
            if !job.is_abandoned() && job.claim.take() {
                taken.push(job);
            }
        }
        if taken.is_empty() {
            state.carriers -= 1;
            return None;
        }
        state.together += taken.len();
        // Where some go alone and others do not, each waits for the other's commits: fewer are enough to stay together than to begin.
        let least = match state.is_crowded {
            true => self.max_alone / 2,
            false => self.max_alone,
        };
        state.is_crowded = state.together + state.waiting.len() + state.alone >= least;
        let on_their_way = OnTheirWay {
            line: Arc::clone(self),
            count: taken.len(),
        };
        Some(Taken {
            jobs: taken,
            on_their_way,
            is_wanted: state.counts_one_more(self.max_carriers),
        })
    }

    /// One carrier goes; whether somebody is to carry who does not yet.
    pub(crate) fn is_left_by_one(&self) -> bool {
        let mut state = self.state.lock();
        state.carriers -= 1;
        state.counts_one_more(self.max_carriers)
    }

    /// One carrier ends. All who wait, where nobody carries any more.
    pub(crate) fn give_up(&self) -> VecDeque<Job> {
        let mut state = self.state.lock();
        state.carriers -= 1;
        if state.carriers > 0 {
            return VecDeque::new();
        }
        state.is_crowded = false;
        std::mem::take(&mut state.waiting)
    }

    /// These have come back undone, and go first. Only for who carries.
    pub(crate) fn put_back(&self, jobs: Vec<Job>) {
        let mut state = self.state.lock();
        for job in jobs.into_iter().rev() {
            match job.claim.give_back() {
                true => state.waiting.push_front(job),
                false => job.answer(Answer::Cancelled),
            }
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

impl State {
    /// Most that one trip takes of those who are there: half, so that the server works on some while the others are told and ask anew.
    fn share(&self) -> usize {
        if self.waiting.front().is_some_and(|job| job.until.is_some()) {
            // It has waited for company.
            return usize::MAX;
        }
        (self.waiting.len() + self.together).div_ceil(2).max(TRIP_SHARE_MIN)
    }

    /// Whether another one is to carry, which is counted then: once as many wait as are on their way with each.
    fn counts_one_more(&mut self, max_carriers: usize) -> bool {
        let waiting = self.waiting.len();
        let is_wanted = self.carriers == 0 && waiting > 0
            || (self.carriers < max_carriers && waiting * self.carriers >= self.together.max(2));
        self.carriers += usize::from(is_wanted);
        is_wanted
    }
}

/// Those who travel next.
pub(crate) struct Taken {
    pub(crate) jobs: Vec<Job>,
    pub(crate) on_their_way: OnTheirWay,
    /// Others are left; somebody is to carry who does not yet.
    pub(crate) is_wanted: bool,
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::sharing::ask::Ask;
    use crate::sharing::plan::Plan;
    use crate::sharing::rules::Rules;

    const QUICK: Duration = Duration::from_millis(1);

    fn job(until: Option<Instant>) -> Job {
        let text = "SELECT 1";
        let plan = Arc::new(Plan::of(text, &Rules::default()));
        let (job, told) = Job::new(
            plan,
            Ask::Simple(Bytes::from_static(text.as_bytes())),
            None,
            None,
            until,
        );
        // Whoever does not listen has gone.
        std::mem::forget(told);
        job
    }

    /// So many come, of whom none goes alone; how often somebody is wanted to carry.
    fn come(line: &Line, count: usize, until: Option<Instant>) -> usize {
        (0..count)
            .filter(|_| match line.enter(true, || job(until)) {
                Entry::Waits(is_wanted) => is_wanted,
                Entry::Alone => panic!("goes alone"),
            })
            .count()
    }

    #[test]
    fn one_trip_takes_half_and_another_carrier_the_rest() {
        let line = Line::new(12, 2, QUICK);
        assert_eq!(come(&line, 1, None), 1);
        let alone = line.take().unwrap();
        assert_eq!((alone.jobs.len(), alone.is_wanted), (1, false));
        drop(alone);
        let back = (0..50).map(|_| job(None)).inspect(|job| assert!(job.claim.take()));
        line.put_back(back.collect());
        let first = line.take().unwrap();
        assert_eq!((first.jobs.len(), first.is_wanted), (25, true));
        let second = line.take().unwrap();
        assert_eq!((second.jobs.len(), second.is_wanted), (25, false));
        // Those of the first are answered and ask anew, while the second is on its way.
        drop(first);
        assert_eq!(come(&line, 25, None), 0, "both carry already");
        let third = line.take().unwrap();
        assert_eq!((third.jobs.len(), third.is_wanted), (25, false));
    }

    #[test]
    fn what_is_withdrawn_is_not_taken_nor_does_it_wait_again() {
        let line = Line::new(12, 2, QUICK);
        let jobs = [(); 3].map(|()| job(None));
        let claims = jobs.each_ref().map(|job| job.claim.clone());
        for job in jobs {
            line.enter(true, || job);
        }
        assert!(claims[0].withdraw());
        let taken = line.take().unwrap();
        assert_eq!(taken.jobs.len(), 2);
        assert!(!claims[1].withdraw(), "it is on its way");
        line.put_back(taken.jobs);
        drop(taken.on_their_way);
        assert_eq!(line.take().unwrap().jobs.len(), 1);
    }

    #[test]
    fn few_are_not_divided_and_many_fill_trips() {
        let line = Line::new(12, 2, QUICK);
        come(&line, TRIP_SHARE_MIN, None);
        let few = line.take().unwrap();
        assert_eq!((few.jobs.len(), few.is_wanted), (TRIP_SHARE_MIN, false));
        drop(few);
        come(&line, 500, None);
        assert_eq!(line.take().unwrap().jobs.len(), TRIP_JOBS_MAX);
    }

    #[test]
    fn who_has_waited_for_company_travels_with_all_of_it() {
        let line = Line::new(12, 2, QUICK);
        come(&line, 50, Some(Instant::now()));
        let all = line.take().unwrap();
        assert_eq!((all.jobs.len(), all.is_wanted), (50, false));
    }

    #[test]
    fn fewer_are_enough_to_stay_together_than_to_begin() {
        let line = Line::new(12, 2, QUICK);
        let goes_alone = || matches!(line.enter(false, || job(None)), Entry::Alone);
        assert!((0..12).all(|_| goes_alone()) && !goes_alone(), "the thirteenth waits");
        let first = line.take().unwrap();
        (0..12).for_each(|_| line.leave());
        // Those who were alone are back, and stay together, though there are as few as might go alone.
        assert!(!(0..6).any(|_| goes_alone()));
        let six = line.take().unwrap();
        drop(first);
        assert!(!(0..5).any(|_| goes_alone()));
        let five = line.take().unwrap();
        drop(six);
        assert!(!goes_alone());
        drop(five);
        drop(line.take().unwrap());
        assert!(goes_alone(), "one was the last of them");
    }

    #[test]
    fn a_carrier_that_finds_no_connection_leaves_those_who_wait_to_the_others() {
        let line = Line::new(12, 2, QUICK);
        assert_eq!(come(&line, 50, None), 2);
        assert!(line.give_up().is_empty(), "another one carries");
        let first = line.take().unwrap();
        assert_eq!((first.jobs.len(), first.is_wanted), (25, true));
        assert!(line.give_up().is_empty(), "the first still does");
        assert_eq!(line.give_up().len(), 25, "nobody does");
    }

    #[test]
    fn no_more_carry_than_may_and_none_where_nobody_waits() {
        let line = Line::new(12, 2, QUICK);
        let wanted = come(&line, 500, None);
        let trips: Vec<Taken> = (0..4).map_while(|_| line.take()).collect();
        let more = trips.iter().filter(|trip| trip.is_wanted).count();
        assert_eq!((wanted + more, trips.len()), (2, 4));
        assert!(line.take().is_none(), "all are on their way");
        assert_eq!(line.state.lock().carriers, 1, "one is done");
    }
}
