//! The intake: the lanes, the line and the rules of who runs when.
//!
//! Promises:
//! - A line with items always has someone who will take them: a gatherer, or `max_in_flight` runners who look again when
//!   they finish. Whoever changes that is told what to do about it ([`Todo`]) once the lock is released.
//! - There is one gatherer at most, so that pending calls make full batches; it takes what is there when it starts.
//! - After `close` nothing enters, and the gatherer waits for no window.
//!
//! A call enters by its thread's lane and looks no further, unless the lane is on watch: then it comes here, to the centre,
//! whose lock is otherwise taken once or twice a batch. A runner is either the gatherer (has no batch yet) or running (has
//! one). Knows no runtime: it neither spawns nor sleeps, which is what lets the model checker run it.

use std::task::Waker;

use tokio::time::Instant;

use super::dispatch::Batch;
use super::lane::{Arrival, Lanes, Queued, Watch};
use super::line::{BatchLimits, Collected, InOrder, Line};
use super::slot::{Displaced, Ticket};
use super::stats::Stats;
use super::sync::{Mutex, OwnCacheLine};

/// The bounds of a batcher; each at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) batch: BatchLimits,
    pub(crate) max_in_flight: usize,
    pub(crate) max_queued: usize,
}

/// What is left to do after the lock was released, by the one who got it.
#[must_use = "a forgotten duty is a hung caller"]
#[derive(Default)]
pub(crate) struct Todo {
    /// Start a runner; the gatherer's place is already reserved for it.
    pub(crate) start_runner: bool,
    /// Wake the gatherer from its sleep.
    pub(crate) wake: Option<Waker>,
    /// The batcher is closed and has just come to rest.
    pub(crate) drained: bool,
}

impl Todo {
    pub(crate) fn is_nothing(&self) -> bool {
        !self.start_runner && self.wake.is_none() && !self.drained
    }
}

/// Why an item did not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Closed,
}

/// What a gatherer finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
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

struct Centre<I, O, E, L> {
    collected: Collected<I, O, E>,
    line: L,
    gatherer: Gatherer,
    /// Runners that have a batch. With the gatherer never more than `max_in_flight`, and those lent.
    running: usize,
    /// Running batches whose processor waits for a call of its own, which may be behind it in line: their places are lent.
    lent: usize,
    closed: bool,
    /// Calls that wait in line no more: their items were dispatched, or cancelled before.
    gone: u64,
    batches: u64,
    cancelled: u64,
    /// Cancelled since their places were last swept.
    unswept: u64,
}

pub(crate) struct Intake<I, O, E, L = InOrder> {
    lanes: Lanes<I, O, E>,
    centre: OwnCacheLine<Mutex<Centre<I, O, E, L>>>,
    limits: Limits,
}

/// Fewer cancelled calls than this are left in line until the next batch is cut.
const UNSWEPT_MAX: u64 = 256;

impl<I, O, E, L: Line<I, O, E>> Intake<I, O, E, L> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self::with(limits, Lanes::new())
    }

    pub(crate) fn with(limits: Limits, lanes: Lanes<I, O, E>) -> Self {
        Self {
            centre: OwnCacheLine(Mutex::new(Centre {
                collected: Collected::new(lanes.count()),
                line: L::new(),
                gatherer: Gatherer::None,
                running: 0,
                lent: 0,
                closed: false,
                gone: 0,
                batches: 0,
                cancelled: 0,
                unswept: 0,
            })),
            lanes,
            limits,
        }
    }

    /// Puts an item in line. `thread` is the same number for all calls of a thread. A refused item comes back with its waker.
    #[allow(clippy::type_complexity, reason = "what was brought comes back")]
    #[inline]
    pub(crate) fn enter(
        &self,
        thread: usize,
        queued: Queued<I>,
        waker: Option<Waker>,
    ) -> Result<(Ticket<I, O, E>, Todo), (I, Option<Waker>)> {
        match self.lanes.enter(thread, queued, waker) {
            Arrival::Entered(ticket, None) => Ok((ticket, Todo::default())),
            Arrival::Entered(ticket, Some(lane)) => {
                let todo = self.centre.0.lock().arrival(lane, &self.lanes, &self.limits);
                Ok((ticket, todo))
            }
            Arrival::Closed(item, waker) => Err((item, waker)),
        }
    }

    /// Puts an item in line if fewer than `max_queued` wait. A refused one comes back.
    pub(crate) fn try_enter(&self, thread: usize, queued: Queued<I>) -> Result<(Ticket<I, O, E>, Todo), (Refusal, I)> {
        let mut centre = self.centre.0.lock();
        if centre.closed {
            return Err((Refusal::Closed, queued.item));
        }
        if centre.waiting(&self.lanes) >= self.limits.max_queued as u64 {
            return Err((Refusal::Full, queued.item));
        }
        match self.lanes.enter(thread, queued, None) {
            Arrival::Entered(ticket, None) => Ok((ticket, Todo::default())),
            Arrival::Entered(ticket, Some(lane)) => {
                let todo = centre.arrival(lane, &self.lanes, &self.limits);
                Ok((ticket, todo))
            }
            Arrival::Closed(item, _) => Err((Refusal::Closed, item)),
        }
    }

    /// A call leaves before it has its outcome. What it leaves behind is returned.
    pub(crate) fn cancel(&self, ticket: &mut Ticket<I, O, E>) -> (Displaced<I, O, E>, Todo) {
        let displaced = ticket.leave();
        if !displaced.was_queued {
            return (displaced, Todo::default());
        }
        let mut centre = self.centre.0.lock();
        centre.cancelled += 1;
        centre.gone += 1;
        centre.unswept += 1;
        let waiting = centre.waiting(&self.lanes);
        let mut todo = Todo::default();
        if centre.unswept > UNSWEPT_MAX + waiting {
            todo.wake = centre.sweep(&self.lanes, &self.limits);
        }
        if waiting == 0 {
            // A gatherer that slept out a window for nobody would keep the batcher alive, and a drain waiting.
            todo.wake = todo.wake.or_else(|| centre.rouse());
            todo.drained = centre.is_drained(&self.lanes);
        }
        (displaced, todo)
    }

    /// The gatherer's look at the line. Cuts a batch when it is time for one; otherwise, if `waker` is brought, falls
    /// asleep. `waker` is `None` where it is always time.
    pub(crate) fn next(
        &self,
        batch: &mut Batch<I, O, E>,
        waker: &mut Option<Waker>,
        clock: impl Fn() -> Instant,
    ) -> (Next, Todo) {
        // Declared before the guard, hence dropped after it: it may hold a waker.
        let _previous;
        let mut centre = self.centre.0.lock();
        _previous = std::mem::replace(&mut centre.gatherer, Gatherer::Coming);
        loop {
            centre.collect(&self.lanes, Watch::Off);
            if waker.is_some()
                && let Some(until) = centre.time_to_wait(&self.limits, &clock)
            {
                if !centre.watch_room(&self.lanes, &self.limits, until) {
                    continue;
                }
                let waker = waker.take().expect("just seen");
                centre.gatherer = Gatherer::Asleep { until, waker };
                return (Next::Wait(until), Todo::default());
            }
            centre.cut(&self.limits.batch, batch);
            if !batch.is_empty() {
                centre.gatherer = Gatherer::None;
                centre.running += 1;
                centre.batches += 1;
                let todo = Todo {
                    start_runner: centre.look_out(&self.lanes, &self.limits),
                    ..Todo::default()
                };
                return (Next::Run, todo);
            }
            // Whatever was in line had been cancelled.
            if centre.stand_down(&self.lanes) {
                centre.gatherer = Gatherer::None;
                let todo = Todo {
                    drained: centre.is_drained(&self.lanes),
                    ..Todo::default()
                };
                return (Next::Leave, todo);
            }
        }
    }

    /// A running runner's batch has ended, and its callers have not been told yet. If a full batch is in line and nobody else
    /// comes for it, it is cut into `batch`: the runner goes on with that one, in the place of the one that ended.
    pub(crate) fn go_on(&self, ended: &mut Batch<I, O, E>, batch: &mut Batch<I, O, E>) -> Option<Todo> {
        let mut centre = self.centre.0.lock();
        centre.collect(&self.lanes, Watch::Off);
        centre.line.end(ended);
        if !matches!(centre.gatherer, Gatherer::None) || !centre.is_full(&self.limits.batch) {
            return None;
        }
        centre.cut(&self.limits.batch, batch);
        if batch.is_empty() {
            return None;
        }
        centre.batches += 1;
        Some(Todo {
            start_runner: centre.look_out(&self.lanes, &self.limits),
            ..Todo::default()
        })
    }

    /// A running runner has answered its batch. Says whether it is the gatherer now; otherwise it is signed off.
    pub(crate) fn finish(&self) -> (bool, Todo) {
        let mut centre = self.centre.0.lock();
        centre.running -= 1;
        let gathers = centre.look_out(&self.lanes, &self.limits);
        let todo = Todo {
            drained: centre.is_drained(&self.lanes),
            ..Todo::default()
        };
        (gathers, todo)
    }

    /// A runner was dropped by its runtime. When it was the last, nobody will take what is in line: that comes back in
    /// `stranded`, to be answered. `batch` is what it was running, if it was.
    pub(crate) fn lose_runner(&self, running: Option<&mut Batch<I, O, E>>, stranded: &mut Batch<I, O, E>) -> Todo {
        // Declared before the guard, hence dropped after it: it may hold a waker.
        let _previous;
        let mut centre = self.centre.0.lock();
        match running {
            Some(batch) => {
                centre.running -= 1;
                centre.collect(&self.lanes, Watch::Off);
                centre.line.end(batch);
            }
            None => _previous = std::mem::replace(&mut centre.gatherer, Gatherer::None),
        }
        if centre.running == 0 && matches!(centre.gatherer, Gatherer::None) {
            let unbounded = BatchLimits {
                max_items: usize::MAX,
                max_weight: u128::MAX,
            };
            loop {
                centre.collect(&self.lanes, Watch::Off);
                centre.cut(&unbounded, stranded);
                if centre.stand_down(&self.lanes) {
                    break;
                }
            }
        }
        Todo {
            drained: centre.is_drained(&self.lanes),
            ..Todo::default()
        }
    }

    /// A running batch's processor waits for a call of its own, which may be behind it in line: its place is lent until it
    /// is given back.
    pub(crate) fn lend(&self) -> Todo {
        let mut centre = self.centre.0.lock();
        centre.lent += 1;
        Todo {
            start_runner: centre.look_out(&self.lanes, &self.limits),
            ..Todo::default()
        }
    }

    /// The batch whose place was lent has ended.
    pub(crate) fn give_back(&self) {
        self.centre.0.lock().lent -= 1;
    }

    /// Stops the intake. What is in line goes without waiting for its window.
    pub(crate) fn close(&self) -> Todo {
        let mut centre = self.centre.0.lock();
        centre.closed = true;
        self.lanes.close();
        Todo {
            wake: centre.rouse(),
            ..Todo::default()
        }
    }

    /// Whether nothing enters any more, nothing waits and nothing runs.
    pub(crate) fn is_drained(&self) -> bool {
        self.centre.0.lock().is_drained(&self.lanes)
    }

    pub(crate) fn stats(&self) -> Stats {
        let centre = self.centre.0.lock();
        let calls = self.lanes.arrived();
        let in_line = calls.saturating_sub(centre.gone);
        let queued = in_line.min(self.limits.max_queued as u64);
        Stats {
            calls,
            batches: centre.batches,
            cancelled: centre.cancelled,
            queued: queued as usize,
            waiting: (in_line - queued) as usize,
            in_flight: centre.running,
        }
    }

    /// Checks the invariants where nothing is going on; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn validate(&self) {
        let centre = self.centre.0.lock();
        centre.collected.validate();
        let gatherers = usize::from(!matches!(centre.gatherer, Gatherer::None));
        let allowed = self.limits.max_in_flight + centre.lent;
        assert!(centre.running + gatherers <= allowed);
        assert!(
            centre.waiting(&self.lanes) == 0 || gatherers == 1 || centre.running >= allowed,
            "items in line and nobody to take them"
        );
    }

    /// Chunks of slots in memory; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn chunks(&self) -> usize {
        self.lanes.chunks()
    }
}

impl<I, O, E, L: Line<I, O, E>> Centre<I, O, E, L> {
    /// Calls in line. A call that is just leaving is counted until it has been here.
    fn waiting(&self, lanes: &Lanes<I, O, E>) -> u64 {
        lanes.arrived().saturating_sub(self.gone)
    }

    fn is_drained(&self, lanes: &Lanes<I, O, E>) -> bool {
        self.closed && self.waiting(lanes) == 0 && self.running == 0 && matches!(self.gatherer, Gatherer::None)
    }

    fn has_place(&self, limits: &Limits) -> bool {
        self.running < limits.max_in_flight + self.lent
    }

    fn collect(&mut self, lanes: &Lanes<I, O, E>, watch: Watch) -> bool {
        let any = self.collected.collect(lanes, watch);
        self.gone += self.line.take_over(&mut self.collected);
        any
    }

    fn is_full(&self, limits: &BatchLimits) -> bool {
        self.line.is_full(&self.collected, limits)
    }

    fn cut(&mut self, limits: &BatchLimits, batch: &mut Batch<I, O, E>) {
        self.gone += self.line.cut(&mut self.collected, limits, batch);
    }

    /// Leaves an empty line to the lanes' watch. Says whether it was one.
    fn stand_down(&mut self, lanes: &Lanes<I, O, E>) -> bool {
        if !self.line.is_empty(&self.collected) {
            return false;
        }
        let stood_down = self.collected.stand_down(lanes);
        if !stood_down {
            self.gone += self.line.take_over(&mut self.collected);
        }
        stood_down
    }

    /// Sees to it that the line is looked after when nobody gathers and there is a place for one more: by the lanes' watch if
    /// nothing is in line. Otherwise whoever asks becomes, or starts, the gatherer.
    fn look_out(&mut self, lanes: &Lanes<I, O, E>, limits: &Limits) -> bool {
        if !matches!(self.gatherer, Gatherer::None) || !self.has_place(limits) {
            return false;
        }
        while self.line.is_empty(&self.collected) {
            if self.stand_down(lanes) {
                return false;
            }
        }
        self.gatherer = Gatherer::Coming;
        true
    }

    /// A lane has reported an arrival.
    fn arrival(&mut self, lane: usize, lanes: &Lanes<I, O, E>, limits: &Limits) -> Todo {
        self.collected.activate(lane);
        let mut todo = Todo::default();
        if matches!(self.gatherer, Gatherer::Asleep { .. }) {
            todo.wake = self.reconsider(lanes, limits);
        } else {
            // Someone comes and looks, now or when a batch has ended.
            lanes.watch(lane, Watch::Off);
            if matches!(self.gatherer, Gatherer::None) && self.has_place(limits) {
                self.gatherer = Gatherer::Coming;
                todo.start_runner = true;
            }
        }
        todo
    }

    /// Whether a sleeping gatherer has to leave earlier; otherwise the lanes' watch is set anew.
    fn reconsider(&mut self, lanes: &Lanes<I, O, E>, limits: &Limits) -> Option<Waker> {
        let Gatherer::Asleep { until, .. } = self.gatherer else {
            return None;
        };
        loop {
            self.collect(lanes, Watch::Off);
            let survey = self.line.survey(&self.collected, &limits.batch);
            if survey.is_full || survey.due.is_some_and(|due| due.is_before(until)) {
                return self.rouse();
            }
            if self.watch_room(lanes, limits, until) {
                return None;
            }
        }
    }

    /// Shares the room that is left in the next batch out among the lanes, so that one of them reports when it may be full.
    /// Says whether nothing has arrived meanwhile that was not taken into account.
    fn watch_room(&mut self, lanes: &Lanes<I, O, E>, limits: &Limits, until: Instant) -> bool {
        let survey = self.line.survey(&self.collected, &limits.batch);
        let active = self.collected.active_lanes().max(1);
        let room = Watch::Room {
            items: limits.batch.max_items.saturating_sub(survey.items).div_ceil(active),
            weight: limits
                .batch
                .max_weight
                .saturating_sub(survey.weight)
                .div_ceil(active as u128),
            until,
        };
        !self.collect(lanes, room)
    }

    /// Ends the places of cancelled calls.
    fn sweep(&mut self, lanes: &Lanes<I, O, E>, limits: &Limits) -> Option<Waker> {
        self.collect(lanes, Watch::Off);
        self.line.sweep(&mut self.collected);
        self.unswept = 0;
        self.reconsider(lanes, limits)
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

    /// Until when the gatherer has to wait for more items; `None` when it is time to go, or nothing waits.
    fn time_to_wait(&self, limits: &Limits, clock: impl Fn() -> Instant) -> Option<Instant> {
        if self.closed {
            return None;
        }
        self.line.survey(&self.collected, &limits.batch).time_to_wait(clock)
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::task::Poll;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::dispatch::deliver;
    use super::super::window::Due;
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
    type SmallTicket = Ticket<u64, u64, ()>;
    type SmallBatch = Batch<u64, u64, ()>;

    /// With each number of lanes.
    fn for_each_number_of_lanes(limits: Limits, test: impl Fn(&Small)) {
        for lanes in [1, 2, 4] {
            test(&Small::with(limits, Lanes::with(lanes)));
        }
    }

    /// An arrival on the lane of the item's number.
    fn enter(intake: &Small, item: u64, due: Due) -> (SmallTicket, Todo) {
        enter_weighed(intake, item as usize, item, 0, due)
    }

    fn enter_weighed(intake: &Small, thread: usize, item: u64, weight: usize, due: Due) -> (SmallTicket, Todo) {
        let queued = Queued { item, weight, due };
        intake.enter(thread, queued, None).unwrap_or_else(|_| panic!("open"))
    }

    fn next(intake: &Small, batch: &mut SmallBatch, now: Instant) -> (Next, Todo) {
        let mut waker = Some(Waker::noop().clone());
        intake.next(batch, &mut waker, || now)
    }

    fn go_on(intake: &Small, batch: &mut SmallBatch) -> Option<Todo> {
        intake.go_on(&mut Batch::new(), batch)
    }

    /// Answers a batch with its items.
    fn answer(batch: &mut SmallBatch) {
        let items = std::mem::take(&mut batch.items);
        InOrder::answer(batch, items);
    }

    fn outcome(ticket: &mut SmallTicket) -> Option<u64> {
        match ticket.poll(Waker::noop()) {
            Poll::Ready(outcome) => Some(outcome.ok().expect("answered")),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_gatherer_at_most_and_the_next_is_started_when_it_has_its_batch() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let mut starts = Vec::new();
            let mut tickets = Vec::new();
            for item in 0..5 {
                let (ticket, todo) = enter(intake, item, Due::AtOnce);
                starts.push(todo.start_runner);
                tickets.push(ticket);
                intake.validate();
            }
            assert_eq!(starts, [true, false, false, false, false]);
            let mut batches = [Batch::new(), Batch::new()];
            let (first, todo) = next(intake, &mut batches[0], Instant::now());
            assert_eq!((first, todo.start_runner), (Next::Run, true));
            let (second, todo) = next(intake, &mut batches[1], Instant::now());
            // Both places are taken: the last item waits for whoever finishes first.
            assert_eq!((second, todo.start_runner), (Next::Run, false));
            assert_eq!([&batches[0].items, &batches[1].items], [&[0, 1], &[2, 3]]);
            intake.validate();
            let (gathers, _) = intake.finish();
            assert!(gathers);
            intake.validate();
            let (gathers, _) = intake.finish();
            assert!(!gathers, "there is a gatherer for the last item already");
            intake.validate();
            let mut last = Batch::new();
            assert_eq!(next(intake, &mut last, Instant::now()).0, Next::Run);
            assert_eq!(last.items, [4]);
        });
    }

    #[test]
    fn a_sleeping_gatherer_is_woken_only_to_leave_earlier() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let now = Instant::now();
            let end = now + Duration::from_secs(1);
            let mut batch = Batch::new();
            let (mut first, todo) = enter(intake, 0, Due::By(end));
            assert!(todo.start_runner);
            assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
            // Cancelled and replaced by a later window: it need not look again now, and finds the later end in time.
            let later = end + Duration::from_secs(1);
            let (mut second, todo) = enter(intake, 1, Due::By(later));
            assert!(todo.wake.is_some(), "a full batch goes");
            let (_, todo) = intake.cancel(&mut first);
            assert!(todo.wake.is_none());
            assert_eq!(next(intake, &mut batch, now).0, Next::Wait(later));
            let sooner = now + Duration::from_millis(500);
            let (mut third, todo) = enter(intake, 2, Due::By(sooner));
            assert!(todo.wake.is_some());
            drop(intake.cancel(&mut third));
            assert_eq!(next(intake, &mut batch, now).0, Next::Wait(later));
            let (_, todo) = intake.cancel(&mut second);
            assert!(todo.wake.is_some(), "nobody is left to gather");
            assert_eq!(next(intake, &mut batch, now).0, Next::Leave);
            intake.validate();
        });
    }

    #[test]
    fn a_sleeping_gatherer_is_woken_by_a_sooner_window_and_not_by_a_later_one() {
        for_each_number_of_lanes(
            Limits {
                batch: BatchLimits {
                    max_items: 100,
                    max_weight: u128::MAX,
                },
                ..LIMITS
            },
            |intake| {
                let now = Instant::now();
                let end = now + Duration::from_secs(10);
                let mut batch = Batch::new();
                let _first = enter(intake, 0, Due::By(end));
                assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
                // On each lane, also one that was not looked at before.
                for item in 1..9 {
                    let (_, todo) = enter(intake, item, Due::By(end + Duration::from_secs(item)));
                    assert!(todo.is_nothing(), "it sleeps on");
                }
                let mut end = end;
                for item in 9..18 {
                    end -= Duration::from_millis(1);
                    let (_, todo) = enter(intake, item, Due::By(end));
                    assert!(todo.wake.is_some() && !todo.start_runner, "item {item}");
                    assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
                }
                let (_, todo) = enter(intake, 18, Due::AtOnce);
                assert!(todo.wake.is_some());
                assert_eq!(next(intake, &mut batch, now).0, Next::Run);
                assert!(batch.items.iter().copied().eq(0..19));
            },
        );
    }

    /// How the arrivals of a window are spread over lanes, in order: `lanes` choices each.
    fn spreads(lanes: usize, arrivals: u32) -> impl Iterator<Item = Vec<usize>> {
        (0..lanes.pow(arrivals)).map(move |mut number| {
            let digits = (0..arrivals).map(|_| {
                let lane = number % lanes;
                number /= lanes;
                lane
            });
            digits.collect()
        })
    }

    /// Gathers under a window, and checks after each arrival that the gatherer was roused when the batch became full, not
    /// earlier and not later.
    fn roused_when_full(spread: &[(usize, usize)], lanes: usize, batch_limits: BatchLimits) {
        let limits = Limits {
            batch: batch_limits,
            max_in_flight: 1,
            max_queued: 1,
        };
        let intake = Small::with(limits, Lanes::with(lanes));
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        let mut batch = Batch::new();
        let (mut items, mut weight) = (0, 0);
        let mut tickets = Vec::new();
        for &(thread, own) in spread {
            let (ticket, todo) = enter_weighed(&intake, thread, items as u64, own, Due::By(end));
            tickets.push(ticket);
            items += 1;
            weight += own as u128;
            let is_full = items >= batch_limits.max_items || weight >= batch_limits.max_weight;
            if items == 1 {
                assert!(todo.start_runner);
                let found = next(&intake, &mut batch, now).0;
                assert_eq!(found, if is_full { Next::Run } else { Next::Wait(end) });
            } else {
                assert_eq!(
                    todo.wake.is_some(),
                    is_full,
                    "{spread:?} over {lanes} lanes at {items}, {batch_limits:?}"
                );
                assert!(!todo.start_runner);
            }
            intake.validate();
            if is_full {
                break;
            }
        }
        let is_full = items >= batch_limits.max_items || weight >= batch_limits.max_weight;
        if is_full && items > 1 {
            assert_eq!(next(&intake, &mut batch, now).0, Next::Run);
        }
    }

    /// Every way to spread up to six arrivals over up to four lanes.
    #[test]
    fn a_sleeping_gatherer_is_roused_exactly_when_the_batch_is_full_however_the_items_are_spread() {
        for lanes in [1, 2, 3, 4] {
            for max_items in 1..=6 {
                for spread in spreads(lanes, max_items) {
                    let spread: Vec<_> = spread.into_iter().map(|lane| (lane, 1)).collect();
                    for (max_items, max_weight) in [
                        (max_items as usize, u128::MAX),
                        (usize::MAX, u128::from(max_items)),
                        (max_items as usize, u128::from(max_items)),
                    ] {
                        roused_when_full(&spread, lanes, BatchLimits { max_items, max_weight });
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_sleeping_gatherer_is_roused_exactly_when_full_by_any_weights(
            spread in prop::collection::vec((0..8_usize, 0..20_usize), 1..80),
            lanes in 1..9_usize,
            max_items in 1..70_usize,
            max_weight in prop_oneof![Just(u128::MAX), 1..400_u128],
        ) {
            roused_when_full(&spread, lanes, BatchLimits { max_items, max_weight });
        }

        /// Any mix of arrivals, cancellations, looks, ends and losses: the books are right, somebody always comes, every call
        /// has its own outcome.
        #[test]
        fn somebody_always_comes_for_what_is_in_line(
            steps in prop::collection::vec((0..12_u8, 0..usize::MAX), 0..300),
            lanes in prop_oneof![Just(1_usize), Just(2), Just(4)],
            max_items in 1..8_usize,
            max_in_flight in 1..4_usize,
        ) {
            let limits = Limits { batch: BatchLimits { max_items, max_weight: u128::MAX }, max_in_flight, max_queued: 10 };
            let intake = Small::with(limits, Lanes::with(lanes));
            let now = Instant::now();
            let mut tickets: Vec<(u64, SmallTicket)> = Vec::new();
            let mut gatherers = 0;
            let mut running: Vec<SmallBatch> = Vec::new();
            let mut processed = Vec::new();
            let mut steps = steps.into_iter().enumerate();
            loop {
                let (kind, pick) = match steps.next() {
                    Some((number, (0..6, pick))) => {
                        let (ticket, todo) = enter_weighed(&intake, pick, number as u64, 0, Due::AtOnce);
                        tickets.push((number as u64, ticket));
                        gatherers += usize::from(todo.start_runner);
                        (99, 0)
                    }
                    Some((_, step)) => step,
                    // In the end all that runs ends.
                    None if gatherers > 0 => (9, 0),
                    None if !running.is_empty() => (11, 0),
                    None => break,
                };
                match kind {
                    6..8 if !tickets.is_empty() => {
                        let (item, mut ticket) = tickets.swap_remove(pick % tickets.len());
                        let (displaced, todo) = intake.cancel(&mut ticket);
                        prop_assert_eq!(displaced.was_queued, !processed.contains(&item));
                        prop_assert!(todo.is_nothing());
                    }
                    8..10 if gatherers > 0 => {
                        let mut batch = Batch::new();
                        let (found, todo) = next(&intake, &mut batch, now);
                        gatherers += usize::from(todo.start_runner);
                        gatherers -= 1;
                        if found == Next::Run {
                            prop_assert!((1..=max_items).contains(&batch.items.len()));
                            prop_assert!(batch.items.is_sorted());
                            prop_assert!(processed.last() < batch.items.first(), "in order of arrival");
                            processed.extend(&batch.items);
                            running.push(batch);
                        }
                    }
                    10..12 if !running.is_empty() => {
                        let mut ended = running.swap_remove(pick % running.len());
                        let mut following = Batch::new();
                        let todo = intake.go_on(&mut ended, &mut following);
                        answer(&mut ended);
                        if let Some(todo) = todo {
                            gatherers += usize::from(todo.start_runner);
                            processed.extend(&following.items);
                            running.push(following);
                        } else {
                            let (gathers, _) = intake.finish();
                            gatherers += usize::from(gathers);
                        }
                    }
                    _ => {}
                }
                prop_assert!(gatherers <= 1);
                prop_assert!(running.len() + gatherers <= max_in_flight);
                intake.validate();
            }
            let stats = intake.stats();
            prop_assert_eq!((stats.queued, stats.waiting, stats.in_flight), (0, 0, 0));
            for (item, mut ticket) in tickets {
                prop_assert_eq!(outcome(&mut ticket), Some(item));
            }
        }
    }

    #[test]
    fn a_runner_goes_on_with_a_full_batch_only() {
        let limits = Limits {
            max_in_flight: 1,
            ..LIMITS
        };
        for_each_number_of_lanes(limits, |intake| {
            let mut tickets: Vec<_> = (0..5).map(|item| enter(intake, item, Due::AtOnce).0).collect();
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [0, 1]);
            let mut second = Batch::new();
            let todo = intake.go_on(&mut batch, &mut second);
            assert!(todo.is_some_and(|todo| !todo.start_runner));
            assert_eq!(second.items, [2, 3]);
            answer(&mut batch);
            answer(&mut second);
            intake.validate();
            assert_eq!((intake.stats().in_flight, intake.stats().batches), (1, 2));
            assert!(go_on(intake, &mut Batch::new()).is_none(), "one item may find company");
            assert!(intake.finish().0);
            intake.validate();
            for (item, ticket) in tickets.iter_mut().enumerate().take(4) {
                assert_eq!(outcome(ticket), Some(item as u64));
            }
            assert_eq!(outcome(&mut tickets[4]), None);
        });
    }

    #[test]
    fn a_runner_leaves_a_full_batch_to_the_gatherer_that_is_coming() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let _first: Vec<_> = (0..2).map(|item| enter(intake, item, Due::AtOnce)).collect();
            assert_eq!(next(intake, &mut Batch::new(), Instant::now()).0, Next::Run);
            let (_third, todo) = enter(intake, 2, Due::AtOnce);
            assert!(todo.start_runner);
            let _fourth = enter(intake, 3, Due::AtOnce);
            assert!(go_on(intake, &mut Batch::new()).is_none());
            assert!(!intake.finish().0);
            intake.validate();
        });
    }

    #[test]
    fn the_end_of_a_window_sends_the_batch() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let end = Instant::now();
            let mut batch = Batch::new();
            let (_ticket, _) = enter(intake, 0, Due::By(end));
            assert_eq!(next(intake, &mut batch, end).0, Next::Run);
            assert_eq!(batch.items, [0]);
        });
    }

    #[test]
    fn a_lost_runner_leaves_the_line_to_others_and_the_last_one_brings_it_back() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let _tickets: Vec<_> = (0..9).map(|item| enter(intake, item, Due::AtOnce)).collect();
            let mut batches = [Batch::new(), Batch::new()];
            for batch in &mut batches {
                assert_eq!(next(intake, batch, Instant::now()).0, Next::Run);
            }
            let mut stranded = Batch::new();
            let _ = intake.lose_runner(Some(&mut batches[0]), &mut stranded);
            assert!(stranded.is_empty());
            let _ = intake.lose_runner(Some(&mut batches[1]), &mut stranded);
            assert_eq!(stranded.items, [4, 5, 6, 7, 8], "more than a batch");
            intake.validate();
            assert_eq!((intake.stats().in_flight, intake.stats().queued), (0, 0));
            // A new one is started for the next arrival.
            assert!(enter(intake, 9, Due::AtOnce).1.start_runner);
        });
    }

    #[test]
    fn a_lost_gatherer_brings_the_line_back_and_is_forgotten() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let now = Instant::now();
            let end = now + Duration::from_secs(1);
            for sleeps in [false, true] {
                let _ticket = enter(intake, 3, Due::By(end));
                if sleeps {
                    assert_eq!(next(intake, &mut Batch::new(), now).0, Next::Wait(end));
                }
                let mut stranded = Batch::new();
                let _ = intake.lose_runner(None, &mut stranded);
                assert_eq!(stranded.items, [3]);
                stranded.places.drain(..).for_each(|place| deliver(place, Ok(0)));
                intake.validate();
            }
        });
    }

    #[test]
    fn a_line_that_everybody_left_makes_no_batch() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let mut tickets: Vec<_> = (0..3).map(|item| enter(intake, item, Due::AtOnce).0).collect();
            for ticket in &mut tickets {
                let (displaced, _) = intake.cancel(ticket);
                assert!(displaced.was_queued);
            }
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Leave);
            assert!(batch.items.is_empty());
            let stats = intake.stats();
            assert_eq!(
                (stats.batches, stats.in_flight, stats.cancelled, stats.queued),
                (0, 0, 3, 0)
            );
            assert!(enter(intake, 1, Due::AtOnce).1.start_runner);
        });
    }

    #[test]
    fn a_call_cancelled_before_the_cut_never_reaches_the_processor_and_after_it_only_its_outcome_is_dropped() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let mut tickets: Vec<_> = (0..3).map(|item| enter(intake, item, Due::AtOnce).0).collect();
            assert!(intake.cancel(&mut tickets[0]).0.was_queued);
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [1, 2], "its room is another's");
            assert!(!intake.cancel(&mut tickets[1]).0.was_queued);
            assert_eq!(intake.stats().cancelled, 1);
            answer(&mut batch);
            assert_eq!(outcome(&mut tickets[2]), Some(2));
        });
    }

    /// An arrival that nobody was told of is found by the one who would stand down.
    #[test]
    fn a_runner_that_finishes_looks_again_before_it_leaves() {
        let limits = Limits {
            max_in_flight: 1,
            ..LIMITS
        };
        for_each_number_of_lanes(limits, |intake| {
            for lane in 0..4 {
                let _first = enter(intake, lane, Due::AtOnce);
                let mut batch = Batch::new();
                assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
                answer(&mut batch);
                let (_second, todo) = enter(intake, lane, Due::AtOnce);
                assert!(todo.is_nothing(), "whoever finishes looks");
                assert!(intake.finish().0, "an item in lane {lane}");
                assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
                assert_eq!(batch.items, [lane]);
                answer(&mut batch);
                assert!(!intake.finish().0);
                intake.validate();
            }
        });
    }

    #[test]
    fn batches_are_cut_in_order_of_arrival_across_lanes() {
        let limits = Limits {
            batch: BatchLimits {
                max_items: 3,
                max_weight: u128::MAX,
            },
            max_in_flight: 1,
            max_queued: 1,
        };
        for lanes in [1, 2, 4] {
            for spread in spreads(lanes, 5) {
                let intake = Small::with(limits, Lanes::with(lanes));
                let arrive = |item: usize| enter_weighed(&intake, spread[item], item as u64, 0, Due::AtOnce);
                let _before: Vec<_> = (0..4).map(arrive).collect();
                let mut batch = Batch::new();
                assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
                assert_eq!(batch.items, [0, 1, 2]);
                // Into whichever lane: behind the one that waits.
                let _last = arrive(4);
                assert!(intake.finish().0);
                let mut batch = Batch::new();
                assert_eq!(next(&intake, &mut batch, Instant::now()).0, Next::Run);
                assert_eq!(batch.items, [3, 4]);
            }
        }
    }

    #[test]
    fn pending_calls_make_full_batches_whichever_lanes_they_are_in() {
        let limits = Limits {
            max_in_flight: 1,
            ..LIMITS
        };
        for_each_number_of_lanes(limits, |intake| {
            let _tickets: Vec<_> = (0..101)
                .map(|item| enter(intake, item * item / 3, Due::AtOnce))
                .collect();
            let mut batch = Batch::new();
            let mut gathers = true;
            while gathers {
                assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
                loop {
                    answer(&mut batch);
                    if go_on(intake, &mut batch).is_none() {
                        break;
                    }
                }
                gathers = intake.finish().0;
            }
            assert_eq!(intake.stats().batches, 51);
        });
    }

    #[test]
    fn the_bound_holds_across_lanes() {
        let limits = Limits {
            max_queued: 3,
            max_in_flight: 1,
            ..LIMITS
        };
        for_each_number_of_lanes(limits, |intake| {
            let try_enter = |item: u64| {
                let queued = Queued {
                    item,
                    weight: 0,
                    due: Due::AtOnce,
                };
                intake.try_enter(item as usize, queued)
            };
            let (mut first, todo) = try_enter(0).ok().expect("room");
            assert!(todo.start_runner);
            let _others: Vec<_> = (1..3).map(|item| try_enter(item).ok().expect("room")).collect();
            assert!(matches!(try_enter(3), Err((Refusal::Full, 3))));
            // An entered call makes its own room, and is counted apart.
            let _waits = enter(intake, 4, Due::AtOnce);
            assert_eq!((intake.stats().queued, intake.stats().waiting), (3, 1));
            assert!(intake.cancel(&mut first).0.was_queued);
            assert!(matches!(try_enter(5), Err((Refusal::Full, 5))));
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [1, 2]);
            assert!(try_enter(6).is_ok());
            assert!(try_enter(7).is_ok());
            assert!(matches!(try_enter(8), Err((Refusal::Full, 8))));
            drop(intake.close());
            assert!(matches!(try_enter(9), Err((Refusal::Closed, 9))));
        });
    }

    #[test]
    fn after_close_nothing_enters_and_nobody_waits_for_a_window() {
        for_each_number_of_lanes(LIMITS, |intake| {
            let now = Instant::now();
            let end = now + Duration::from_secs(1);
            let _ticket = enter(intake, 0, Due::By(end));
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
            let todo = intake.close();
            assert!(todo.wake.is_some(), "the sleeper is roused");
            for thread in 0..4 {
                let queued = Queued {
                    item: 7,
                    weight: 0,
                    due: Due::AtOnce,
                };
                let refused = intake.enter(thread, queued, Some(Waker::noop().clone()));
                assert!(matches!(refused, Err((7, Some(_)))), "item and waker come back");
            }
            assert!(!intake.is_drained());
            assert_eq!(next(intake, &mut batch, now).0, Next::Run);
            assert!(!intake.is_drained());
            let (gathers, todo) = intake.finish();
            assert!(!gathers && todo.drained && intake.is_drained());
        });
    }

    #[test]
    fn whoever_brings_a_closed_batcher_to_rest_is_told() {
        let now = Instant::now();
        let end = now + Duration::from_secs(1);
        // The last call leaves, and the gatherer finds nothing.
        for_each_number_of_lanes(LIMITS, |intake| {
            let (mut ticket, _) = enter(intake, 1, Due::By(end));
            drop(intake.close());
            let (_, todo) = intake.cancel(&mut ticket);
            assert!(!todo.drained, "the gatherer is still there");
            let (found, todo) = next(intake, &mut Batch::new(), now);
            assert!(found == Next::Leave && todo.drained);
        });
        // The last runner is lost.
        for_each_number_of_lanes(LIMITS, |intake| {
            let _ticket = enter(intake, 1, Due::By(end));
            drop(intake.close());
            let todo = intake.lose_runner(None, &mut Batch::new());
            assert!(todo.drained && intake.is_drained());
        });
    }

    #[test]
    fn a_lent_place_is_anothers_until_it_is_given_back() {
        let limits = Limits {
            max_in_flight: 1,
            ..LIMITS
        };
        for_each_number_of_lanes(limits, |intake| {
            let _outer = enter(intake, 0, Due::AtOnce);
            assert_eq!(next(intake, &mut Batch::new(), Instant::now()).0, Next::Run);
            // Behind the running batch, whose processor waits for it.
            let (_inner, todo) = enter(intake, 1, Due::AtOnce);
            assert!(todo.is_nothing());
            assert!(intake.lend().start_runner);
            let mut batch = Batch::new();
            assert_eq!(next(intake, &mut batch, Instant::now()).0, Next::Run);
            assert_eq!(batch.items, [1]);
            intake.validate();
            assert!(!intake.finish().0);
            intake.give_back();
            assert!(enter(intake, 2, Due::AtOnce).1.is_nothing(), "no place is left");
            assert!(intake.finish().0);
            intake.validate();
        });
    }

    /// While one call stays and no batch is cut, because the places are taken or because a gatherer sleeps.
    #[test]
    fn places_of_cancelled_calls_do_not_pile_up() {
        let limits = Limits {
            batch: BatchLimits {
                max_items: 1_000_000,
                max_weight: u128::MAX,
            },
            max_in_flight: 1,
            max_queued: 10,
        };
        for sleeps in [false, true] {
            for_each_number_of_lanes(limits, |intake| {
                let now = Instant::now();
                let end = now + Duration::from_secs(1);
                let mut batch = Batch::new();
                if !sleeps {
                    let _running = enter(intake, 0, Due::AtOnce);
                    assert_eq!(next(intake, &mut batch, now).0, Next::Run);
                }
                let mut stays = enter(intake, 0, Due::By(end)).0;
                if sleeps {
                    assert_eq!(next(intake, &mut batch, now).0, Next::Wait(end));
                }
                let mut chunks_most = 0;
                for item in 0..100_000 {
                    let (mut leaves, todo) = enter(intake, item, Due::By(end));
                    assert!(todo.is_nothing());
                    let (displaced, todo) = intake.cancel(&mut leaves);
                    assert!(displaced.was_queued && todo.is_nothing(), "it sleeps on");
                    chunks_most = chunks_most.max(intake.chunks());
                }
                assert!(chunks_most <= 20, "{chunks_most} chunks for one call");
                intake.validate();
                assert_eq!(intake.stats().queued, 1);
                // The watch is as it should be after all the sweeps.
                let (_, todo) = enter(intake, 1, Due::AtOnce);
                assert_eq!(todo.wake.is_some(), sleeps);
                assert!(intake.cancel(&mut stays).0.was_queued);
            });
        }
    }
}
