//! The intake: the line and the rules of who runs when, under one short lock.
//!
//! Promises:
//! - A line with items always has someone who will take them: a gatherer, or `max_in_flight` runners who look again when
//!   they finish. Whoever changes that is told what to do about it ([`Todo`]) once the lock is released.
//! - There is one gatherer at most, so that pending calls make full batches; it takes what is there when it starts.
//! - After `close` nothing enters, and the gatherer waits for no window.
//!
//! A runner is either the gatherer (has no batch yet) or running (has one). Knows no runtime: it neither spawns nor sleeps,
//! which is what lets the model checker run it.

use std::task::Waker;

use tokio::time::Instant;

use super::dispatch::Batch;
use super::line::{BatchLimits, Line};
use super::slot::{Chunk, Displaced, Queued, Ticket};
use super::stats::Stats;
use super::sync::{Mutex, OwnCacheLine};
use super::window::Due;

/// The bounds of a batcher; each at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) batch: BatchLimits,
    pub(super) max_in_flight: usize,
    pub(super) max_queued: usize,
}

/// What is left to do after the lock was released, by the one who got it.
#[must_use = "a forgotten duty is a hung caller"]
#[derive(Default)]
pub(super) struct Todo {
    /// Start a runner; the gatherer's place is already reserved for it.
    pub(super) start_runner: bool,
    /// Wake the gatherer from its sleep.
    pub(super) wake: Option<Waker>,
    /// The batcher is closed and has just come to rest.
    pub(super) drained: bool,
}

/// Why an item did not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    Closed,
}

/// What a gatherer finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The batch was cut; the gatherer is a running one now.
    Run,
    /// Look again at this time, or when woken.
    Wait(Instant),
    /// Nothing to do: the runner has been signed off.
    Leave,
}

enum Gatherer {
    /// Nobody gathers.
    None,
    /// Started or woken, and about to look at the line.
    Coming,
    /// Waits for the end of a window.
    Asleep { until: Instant, waker: Waker },
}

struct State<I, O, E> {
    line: Line<I, O, E>,
    gatherer: Gatherer,
    /// Runners that have a batch. With the gatherer never more than `max_in_flight`.
    running: usize,
    closed: bool,
    calls: u64,
    batches: u64,
    cancelled: u64,
}

pub(super) struct Intake<I, O, E> {
    state: OwnCacheLine<Mutex<State<I, O, E>>>,
    limits: Limits,
}

impl<I, O, E> Intake<I, O, E> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            state: OwnCacheLine(Mutex::new(State {
                line: Line::new(),
                gatherer: Gatherer::None,
                running: 0,
                closed: false,
                calls: 0,
                batches: 0,
                cancelled: 0,
            })),
            limits,
        }
    }

    /// Puts an item in line. With `bounded`, only if fewer than `max_queued` wait. A refused item comes back with its waker.
    #[allow(clippy::type_complexity, reason = "what was brought comes back")]
    pub(super) fn enter(
        &self,
        queued: Queued<I>,
        waker: Option<Waker>,
        bounded: bool,
    ) -> Result<(Ticket<I, O, E>, Todo), (Refusal, I, Option<Waker>)> {
        let due = queued.due;
        // Declared before the guard, hence dropped after it, if somebody else was quicker.
        let mut spare = None;
        let mut state = self.state.0.lock();
        if state.line.needs_chunk() {
            drop(state);
            spare = Some(Chunk::new());
            state = self.state.0.lock();
        }
        if state.closed {
            return Err((Refusal::Closed, queued.item, waker));
        }
        if bounded && state.line.tally().items >= self.limits.max_queued {
            return Err((Refusal::Full, queued.item, waker));
        }
        let ticket = state.line.push(queued, waker, &mut spare);
        state.calls += 1;
        let todo = state.after_arrival(due, &self.limits);
        Ok((ticket, todo))
    }

    /// A call leaves before it has its outcome. What it leaves behind is returned.
    pub(super) fn cancel(&self, ticket: &Ticket<I, O, E>) -> (Displaced<I, O, E>, Todo) {
        let mut state = self.state.0.lock();
        if let Some(displaced) = state.line.remove(ticket) {
            state.cancelled += 1;
            let mut todo = Todo::default();
            if state.line.is_empty() {
                // A gatherer that slept out a window for nobody would keep the batcher alive, and a drain waiting.
                todo.wake = state.rouse();
            }
            return (displaced, todo);
        }
        drop(state);
        let (was_queued, displaced) = ticket.slot().leave();
        if was_queued {
            // Its batch was cut, but the item had not been collected yet: it never reaches the processor.
            self.state.0.lock().cancelled += 1;
        }
        (displaced, Todo::default())
    }

    /// The gatherer's look at the line. Cuts a batch when it is time for one; otherwise, if `waker` is brought, falls
    /// asleep. `waker` is `None` in a batcher without windows, where it is always time.
    pub(super) fn next(
        &self,
        batch: &mut Batch<I, O, E>,
        waker: &mut Option<Waker>,
        clock: impl Fn() -> Instant,
    ) -> (Next, Todo) {
        // Declared before the guard, hence dropped after it: it may hold a waker.
        let _previous;
        let mut state = self.state.0.lock();
        _previous = std::mem::replace(&mut state.gatherer, Gatherer::Coming);
        if state.line.is_empty() {
            state.gatherer = Gatherer::None;
            let todo = Todo {
                drained: state.is_drained(),
                ..Todo::default()
            };
            return (Next::Leave, todo);
        }
        if let Some(until) = state.time_to_wait(&self.limits, clock)
            && let Some(waker) = waker.take()
        {
            state.gatherer = Gatherer::Asleep { until, waker };
            return (Next::Wait(until), Todo::default());
        }
        state.line.cut(&self.limits.batch, batch);
        state.gatherer = Gatherer::None;
        state.running += 1;
        state.batches += 1;
        let todo = Todo {
            start_runner: state.reserve_gatherer(&self.limits),
            ..Todo::default()
        };
        (Next::Run, todo)
    }

    /// A running runner's batch has ended, and its callers have not been told yet. If a full batch is in line and nobody else
    /// comes for it, it is cut into `batch`: the runner goes on with that one, in the place of the one that ended.
    pub(super) fn go_on(&self, batch: &mut Batch<I, O, E>) -> Option<Todo> {
        let mut state = self.state.0.lock();
        if !state.line.fills(&self.limits.batch) || !matches!(state.gatherer, Gatherer::None) {
            return None;
        }
        state.line.cut(&self.limits.batch, batch);
        state.batches += 1;
        Some(Todo {
            start_runner: state.reserve_gatherer(&self.limits),
            ..Todo::default()
        })
    }

    /// A running runner has answered its batch. Says whether it is the gatherer now; otherwise it is signed off. `empty`:
    /// every call of the batch was cancelled at the last moment, and no batch ran.
    pub(super) fn finish(&self, empty: bool) -> (bool, Todo) {
        let mut state = self.state.0.lock();
        state.running -= 1;
        if empty {
            state.batches -= 1;
        }
        let gathers = state.reserve_gatherer(&self.limits);
        let todo = Todo {
            drained: state.is_drained(),
            ..Todo::default()
        };
        (gathers, todo)
    }

    /// A runner was dropped by its runtime. When it was the last, nobody will take what is in line: that comes back in
    /// `batch`, to be answered.
    pub(super) fn lose_runner(&self, was_running: bool, batch: &mut Batch<I, O, E>) -> Todo {
        // Declared before the guard, hence dropped after it: it may hold a waker.
        let _previous;
        let mut state = self.state.0.lock();
        if was_running {
            state.running -= 1;
        } else {
            _previous = std::mem::replace(&mut state.gatherer, Gatherer::None);
        }
        if state.running == 0 && matches!(state.gatherer, Gatherer::None) {
            let unbounded = BatchLimits {
                max_items: usize::MAX,
                max_weight: u128::MAX,
            };
            state.line.cut(&unbounded, batch);
        }
        Todo {
            drained: state.is_drained(),
            ..Todo::default()
        }
    }

    /// Stops the intake. What is in line goes without waiting for its window.
    pub(super) fn close(&self) -> Todo {
        let mut state = self.state.0.lock();
        state.closed = true;
        Todo {
            wake: state.rouse(),
            ..Todo::default()
        }
    }

    /// Whether nothing enters any more, nothing waits and nothing runs.
    pub(super) fn is_drained(&self) -> bool {
        self.state.0.lock().is_drained()
    }

    pub(super) fn stats(&self) -> Stats {
        let state = self.state.0.lock();
        let in_line = state.line.tally().items;
        let queued = in_line.min(self.limits.max_queued);
        Stats {
            calls: state.calls,
            batches: state.batches,
            cancelled: state.cancelled,
            queued,
            waiting: in_line - queued,
            in_flight: state.running,
        }
    }

    /// Checks the invariants; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(super) fn validate(&self) {
        let mut state = self.state.0.lock();
        state.line.validate();
        let gatherers = usize::from(!matches!(state.gatherer, Gatherer::None));
        assert!(state.running + gatherers <= self.limits.max_in_flight);
        assert!(
            state.line.is_empty() || gatherers == 1 || state.running == self.limits.max_in_flight,
            "items in line and nobody to take them"
        );
    }
}

impl<I, O, E> State<I, O, E> {
    fn is_drained(&self) -> bool {
        self.closed && self.line.is_empty() && self.running == 0 && matches!(self.gatherer, Gatherer::None)
    }

    /// Makes the one who asks the gatherer, if one is needed and has a place.
    fn reserve_gatherer(&mut self, limits: &Limits) -> bool {
        let needed =
            !self.line.is_empty() && matches!(self.gatherer, Gatherer::None) && self.running < limits.max_in_flight;
        if needed {
            self.gatherer = Gatherer::Coming;
        }
        needed
    }

    /// The sleeping gatherer's waker, to be woken outside the lock.
    fn rouse(&mut self) -> Option<Waker> {
        match std::mem::replace(&mut self.gatherer, Gatherer::Coming) {
            Gatherer::Asleep { waker, .. } => Some(waker),
            other => {
                self.gatherer = other;
                None
            }
        }
    }

    fn after_arrival(&mut self, due: Due, limits: &Limits) -> Todo {
        let mut todo = Todo::default();
        match &self.gatherer {
            Gatherer::None => todo.start_runner = self.reserve_gatherer(limits),
            Gatherer::Coming => {}
            Gatherer::Asleep { until, .. } => {
                let sooner = match due {
                    Due::AtOnce => true,
                    Due::By(end) => end < *until,
                };
                if sooner || self.line.fills(&limits.batch) {
                    todo.wake = self.rouse();
                }
            }
        }
        todo
    }

    /// Until when the gatherer has to wait for more items; `None` when it is time to go.
    fn time_to_wait(&mut self, limits: &Limits, clock: impl Fn() -> Instant) -> Option<Instant> {
        let tally = self.line.tally();
        if self.closed || tally.at_once > 0 || self.line.fills(&limits.batch) {
            return None;
        }
        let end = self.line.earliest_due()?;
        (clock() < end).then_some(end)
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: Limits = Limits {
        batch: BatchLimits {
            max_items: 2,
            max_weight: u128::MAX,
        },
        max_in_flight: 2,
        max_queued: 100,
    };

    type Small = Intake<u64, u64, ()>;

    fn enter(intake: &Small, item: u64, due: Due) -> (Ticket<u64, u64, ()>, Todo) {
        let queued = Queued { item, weight: 0, due };
        intake.enter(queued, None, false).unwrap_or_else(|_| panic!("open"))
    }

    fn next(intake: &Small, batch: &mut Batch<u64, u64, ()>, now: Instant) -> (Next, Todo) {
        let mut waker = Some(Waker::noop().clone());
        intake.next(batch, &mut waker, || now)
    }

    #[test]
    fn one_gatherer_at_most_and_the_next_is_started_when_it_has_its_batch() {
        let intake = Small::new(LIMITS);
        let mut starts = Vec::new();
        let mut tickets = Vec::new();
        for item in 0..5 {
            let (ticket, todo) = enter(&intake, item, Due::AtOnce);
            starts.push(todo.start_runner);
            tickets.push(ticket);
            intake.validate();
        }
        assert_eq!(starts, [true, false, false, false, false]);
        let mut batches = [Batch::new(), Batch::new()];
        let (first, todo) = next(&intake, &mut batches[0], Instant::now());
        assert_eq!((first, todo.start_runner), (Next::Run, true));
        let (second, todo) = next(&intake, &mut batches[1], Instant::now());
        // Both places are taken: the last item waits for whoever finishes first.
        assert_eq!((second, todo.start_runner), (Next::Run, false));
        intake.validate();
        let (gathers, _) = intake.finish(false);
        assert!(gathers);
        intake.validate();
        let (gathers, _) = intake.finish(false);
        assert!(!gathers, "there is a gatherer for the last item already");
        intake.validate();
    }

    #[test]
    fn a_sleeping_gatherer_is_woken_only_to_leave_earlier() {
        let intake = Small::new(LIMITS);
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        let mut batch = Batch::new();
        let (first, todo) = enter(&intake, 0, Due::By(end));
        assert!(todo.start_runner);
        assert_eq!(next(&intake, &mut batch, now).0, Next::Wait(end));
        // Cancelled and replaced by a later window: it need not look again now, and finds the later end in time.
        let later = end + Duration::from_secs(1);
        let (second, todo) = enter(&intake, 1, Due::By(later));
        assert!(todo.wake.is_some(), "a full batch goes");
        let (_, todo) = intake.cancel(&first);
        assert!(todo.wake.is_none());
        assert_eq!(next(&intake, &mut batch, now).0, Next::Wait(later));
        let sooner = now + Duration::from_millis(500);
        let (third, todo) = enter(&intake, 2, Due::By(sooner));
        assert!(todo.wake.is_some());
        drop(intake.cancel(&third));
        assert_eq!(next(&intake, &mut batch, now).0, Next::Wait(later));
        let (_, todo) = intake.cancel(&second);
        assert!(todo.wake.is_some(), "nobody is left to gather");
        assert_eq!(next(&intake, &mut batch, now).0, Next::Leave);
        intake.validate();
    }

    #[test]
    fn a_runner_goes_on_with_a_full_batch_only() {
        let intake = Small::new(Limits {
            max_in_flight: 1,
            ..LIMITS
        });
        let _tickets: Vec<_> = (0..5).map(|item| enter(&intake, item, Due::AtOnce)).collect();
        let mut batch = Batch::new();
        assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
        assert_eq!(batch.collect_items(), [0, 1]);
        let mut second = Batch::new();
        assert!(intake.go_on(&mut second).is_some_and(|todo| !todo.start_runner));
        assert_eq!(second.collect_items(), [2, 3]);
        intake.validate();
        assert_eq!((intake.stats().in_flight, intake.stats().batches), (1, 2));
        assert!(intake.go_on(&mut Batch::new()).is_none(), "one item may find company");
        assert!(intake.finish(false).0);
        intake.validate();
    }

    #[test]
    fn the_end_of_a_window_sends_the_batch() {
        let intake = Small::new(LIMITS);
        let end = Instant::now();
        let mut batch = Batch::new();
        let (_ticket, _) = enter(&intake, 0, Due::By(end));
        assert_eq!(next(&intake, &mut batch, end).0, Next::Run);
        assert_eq!(batch.collect_items(), [0]);
    }

    #[test]
    fn a_lost_runner_leaves_the_line_to_others_and_the_last_one_brings_it_back() {
        let intake = Small::new(LIMITS);
        let tickets: Vec<_> = (0..5).map(|item| enter(&intake, item, Due::AtOnce)).collect();
        let mut batches = [Batch::new(), Batch::new()];
        for batch in &mut batches {
            assert_eq!(next(&intake, batch, Instant::now()).0, Next::Run);
        }
        let mut stranded = Batch::new();
        let _ = intake.lose_runner(true, &mut stranded);
        assert!(stranded.is_empty());
        let _ = intake.lose_runner(true, &mut stranded);
        assert_eq!(stranded.collect_items(), [4]);
        intake.validate();
        assert_eq!(intake.stats().in_flight, 0);
        drop(tickets);
    }

    #[test]
    fn a_batch_whose_calls_all_left_at_the_last_moment_is_not_counted() {
        let intake = Small::new(LIMITS);
        let (ticket, _) = enter(&intake, 0, Due::AtOnce);
        let mut batch = Batch::new();
        assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
        drop(intake.cancel(&ticket));
        assert!(batch.collect_items().is_empty());
        let _ = intake.finish(true);
        let stats = intake.stats();
        assert_eq!((stats.batches, stats.in_flight, stats.cancelled), (0, 0, 1));
    }

    #[test]
    fn an_item_cancelled_between_cut_and_collection_never_reaches_the_processor() {
        let intake = Small::new(LIMITS);
        let (first, _) = enter(&intake, 0, Due::AtOnce);
        let (_second, _) = enter(&intake, 1, Due::AtOnce);
        let mut batch = Batch::new();
        assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
        drop(intake.cancel(&first));
        assert_eq!(batch.collect_items(), [1]);
        assert_eq!(intake.stats().cancelled, 1);
        // The one outcome goes to the one item that was dispatched.
        batch.answer_each(vec![10]);
        assert!(matches!(
            _second.slot().poll(Waker::noop()),
            std::task::Poll::Ready(Ok(10))
        ));
    }
}
