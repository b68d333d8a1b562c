//! The intake: the inboxes, the line and the rules of who runs when.
//!
//! Promises:
//! - A line with items always has someone who will take them: a gatherer, or `max_in_flight` runners who look again when
//!   they finish. Whoever changes that is told what to do about it ([`Todo`]) once the lock is released.
//! - There is one gatherer at most, so that pending calls make full batches; it takes what is there when it starts.
//! - After `close` nothing enters, and the gatherer waits for no window.
//!
//! A call enters by its thread's inbox and looks no further, unless the inbox is on watch: then it comes here, to the centre,
//! whose lock is otherwise taken once or twice per batch. A runner is either the gatherer (has no batch yet) or running (has
//! one). Knows no runtime: it neither spawns nor sleeps, which is what lets the model checker run it.

use std::task::Waker;

use tokio::time::Instant;

use super::dispatch::Batch;
use super::inbox::{Arrival, Inboxes, Queued, Watch};
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
    /// Runners that have a batch, and a caller that is [alone](Intake::try_alone). With the gatherer never more than `max_in_flight`.
    running: usize,
    closed: bool,
    /// Calls that wait in line no more: their items were dispatched, or cancelled before.
    gone: u64,
    batches: u64,
    /// Items that were processed without entering, each a batch of its own.
    alone: u64,
    /// Calls that had arrived when the last batch was cut.
    arrived: u64,
    /// How many batches in a row, up to the last one, were cut after the arrival of a single call.
    lonely: u32,
    cancelled: u64,
    /// Cancelled since their places were last swept.
    unswept: u64,
}

pub(crate) struct Intake<I, O, E, L = InOrder> {
    inboxes: Inboxes<I, O, E>,
    centre: OwnCacheLine<Mutex<Centre<I, O, E, L>>>,
    limits: Limits,
}

/// Fewer cancelled calls than this are left in line until the next batch is cut.
const UNSWEPT_MAX: u64 = 256;

/// After so many batches for which a single call had arrived, the next call is expected to be alone, too. A model begins there.
const LONELY_FROM: u32 = if cfg!(forebay_loom) { 0 } else { 16 };

impl<I, O, E, L: Line<I, O, E>> Intake<I, O, E, L> {
    pub(crate) fn new(limits: Limits, line: L) -> Self {
        Self::with(limits, line, Inboxes::new())
    }

    pub(crate) fn with(limits: Limits, line: L, inboxes: Inboxes<I, O, E>) -> Self {
        Self {
            centre: OwnCacheLine(Mutex::new(Centre {
                collected: Collected::new(inboxes.count()),
                line,
                gatherer: Gatherer::None,
                running: 0,
                closed: false,
                gone: 0,
                batches: 0,
                alone: 0,
                arrived: 0,
                lonely: 0,
                cancelled: 0,
                unswept: 0,
            })),
            inboxes,
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
        match self.inboxes.enter(thread, queued, waker) {
            Arrival::Entered(ticket, None) => Ok((ticket, Todo::default())),
            Arrival::Entered(ticket, Some(inbox)) => {
                let todo = self.centre.0.lock().arrival(inbox, &self.inboxes, &self.limits);
                Ok((ticket, todo))
            }
            Arrival::Closed(item, waker) => Err((item, waker)),
        }
    }

    /// Puts an item in line if fewer than `max_queued` wait. A refused one comes back.
    #[allow(clippy::type_complexity, reason = "what was brought comes back")]
    pub(crate) fn try_enter(&self, thread: usize, queued: Queued<I>) -> Result<(Ticket<I, O, E>, Todo), (Refusal, I)> {
        let mut centre = self.centre.0.lock();
        if centre.closed {
            return Err((Refusal::Closed, queued.item));
        }
        if centre.waiting(&self.inboxes) >= self.limits.max_queued as u64 {
            return Err((Refusal::Full, queued.item));
        }
        match self.inboxes.enter(thread, queued, None) {
            Arrival::Entered(ticket, None) => Ok((ticket, Todo::default())),
            Arrival::Entered(ticket, Some(inbox)) => {
                let todo = centre.arrival(inbox, &self.inboxes, &self.limits);
                Ok((ticket, todo))
            }
            Arrival::Closed(item, _) => Err((Refusal::Closed, item)),
        }
    }

    /// Whether a call that is in line by itself may have neighbours that are about to arrive.
    pub(crate) fn expects_company(&self) -> bool {
        let centre = self.centre.0.lock();
        centre.lonely < LONELY_FROM || centre.waiting(&self.inboxes) > 1
    }

    /// Takes a runner's place for one item that need not enter: only where nothing waits, runs or is about to, and no company is
    /// expected. Given back by [`end_alone`](Self::end_alone).
    pub(crate) fn try_alone(&self) -> bool {
        let mut centre = self.centre.0.lock();
        let is_at_rest =
            centre.running == 0 && matches!(centre.gatherer, Gatherer::None) && centre.waiting(&self.inboxes) == 0;
        let may = is_at_rest && !centre.closed && centre.lonely >= LONELY_FROM;
        if may {
            centre.running += 1;
        }
        may
    }

    /// Gives the place back. `processed`: there was a batch of that one item.
    pub(crate) fn end_alone(&self, processed: bool) -> Todo {
        let mut centre = self.centre.0.lock();
        centre.running -= 1;
        if processed {
            centre.alone += 1;
            centre.batches += 1;
        }
        Todo {
            start_runner: centre.look_out(&self.inboxes, &self.limits),
            drained: centre.is_drained(&self.inboxes),
            wake: None,
        }
    }

    /// A call leaves before it has its outcome. What it leaves behind is returned.
    pub(crate) fn cancel(&self, ticket: &mut Ticket<I, O, E>) -> (Displaced<I, O, E>, Todo) {
        let displaced = ticket.leave();
        if !displaced.was_queued && !L::KEEPS_WAITING {
            return (displaced, Todo::default());
        }
        let mut centre = self.centre.0.lock();
        if displaced.was_queued {
            centre.cancelled += 1;
            centre.gone += 1;
        }
        centre.unswept += 1;
        let waiting = centre.waiting(&self.inboxes);
        let mut todo = Todo::default();
        // Dead keys in line count as waiting, until they are swept.
        if centre.unswept > UNSWEPT_MAX + waiting.max(centre.line.places().1) / 2 {
            todo.wake = centre.sweep(&self.inboxes, &self.limits);
        }
        let is_last = waiting == 0 || (L::KEEPS_WAITING && centre.sleeps_for_nobody(&self.limits));
        if is_last {
            // A gatherer that slept out a window for nobody would keep the batcher alive, and a drain waiting.
            todo.wake = todo.wake.or_else(|| centre.rouse());
            todo.drained = centre.is_drained(&self.inboxes);
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
            centre.collect(&self.inboxes, Watch::Off);
            if waker.is_some()
                && let Some(until) = centre.time_to_wait(&self.limits, &clock)
            {
                if !centre.watch_room(&self.inboxes, &self.limits, until) {
                    continue;
                }
                let waker = waker.take().expect("just seen");
                centre.gatherer = Gatherer::Asleep { until, waker };
                return (Next::Wait(until), Todo::default());
            }
            centre.cut(&self.limits.batch, batch);
            if !batch.items.is_empty() {
                centre.gatherer = Gatherer::None;
                centre.running += 1;
                centre.count_batch(&self.inboxes);
                let todo = Todo {
                    start_runner: centre.look_out(&self.inboxes, &self.limits),
                    ..Todo::default()
                };
                return (Next::Run, todo);
            }
            // Whatever was in line had been cancelled.
            if centre.stand_down(&self.inboxes) {
                centre.gatherer = Gatherer::None;
                let todo = Todo {
                    drained: centre.is_drained(&self.inboxes),
                    ..Todo::default()
                };
                return (Next::Leave, todo);
            }
        }
    }

    /// A running runner's batch has ended, and its callers have not been told yet. If a full batch is in line and nobody else
    /// comes for it, it is cut into `batch`: the runner goes on with that one, in the place of the one that ended.
    pub(crate) fn go_on(&self, ended: &mut Batch<I, O, E>, batch: &mut Batch<I, O, E>) -> (bool, Todo) {
        let mut centre = self.centre.0.lock();
        centre.collect(&self.inboxes, Watch::Off);
        centre.line.end(ended);
        let mut todo = Todo {
            wake: centre.reconsider(&self.inboxes, &self.limits),
            ..Todo::default()
        };
        if !matches!(centre.gatherer, Gatherer::None) || !centre.is_full(&self.limits.batch) {
            return (false, todo);
        }
        centre.cut(&self.limits.batch, batch);
        if batch.items.is_empty() {
            return (false, todo);
        }
        centre.count_batch(&self.inboxes);
        todo.start_runner = centre.look_out(&self.inboxes, &self.limits);
        (true, todo)
    }

    /// A running runner has answered its batch. Says whether it is the gatherer now; otherwise it is signed off.
    pub(crate) fn finish(&self) -> (bool, Todo) {
        let mut centre = self.centre.0.lock();
        centre.running -= 1;
        let gathers = centre.look_out(&self.inboxes, &self.limits);
        let todo = Todo {
            drained: centre.is_drained(&self.inboxes),
            ..Todo::default()
        };
        (gathers, todo)
    }

    /// A runner was dropped by its runtime. When it was the last, nobody will take what is in line: that comes back in
    /// `stranded`, to be answered. `running` is its batch, if it had one.
    pub(crate) fn lose_runner(&self, running: Option<&mut Batch<I, O, E>>, stranded: &mut Batch<I, O, E>) -> Todo {
        // Declared before the guard, hence dropped after it: it may hold a waker.
        let _previous;
        let mut todo = Todo::default();
        let mut centre = self.centre.0.lock();
        match running {
            Some(batch) => {
                centre.running -= 1;
                centre.collect(&self.inboxes, Watch::Off);
                centre.line.end(batch);
                todo.wake = centre.reconsider(&self.inboxes, &self.limits);
            }
            None => _previous = std::mem::replace(&mut centre.gatherer, Gatherer::None),
        }
        if centre.running == 0 && matches!(centre.gatherer, Gatherer::None) {
            let unbounded = BatchLimits {
                max_items: usize::MAX,
                max_weight: u128::MAX,
            };
            loop {
                centre.collect(&self.inboxes, Watch::Off);
                centre.cut(&unbounded, stranded);
                if centre.stand_down(&self.inboxes) {
                    break;
                }
            }
            centre.line.end(stranded);
        } else if matches!(centre.gatherer, Gatherer::None) && centre.has_place(&self.limits) {
            // Others run, but may do so for long: the next who arrives starts a gatherer, in a runtime that is there.
            for inbox in 0..self.inboxes.count() {
                self.inboxes.watch(inbox, Watch::Any);
            }
        }
        todo.drained = centre.is_drained(&self.inboxes);
        todo
    }

    /// Stops the intake. What is in line goes without waiting for its window.
    pub(crate) fn close(&self) -> Todo {
        let mut centre = self.centre.0.lock();
        centre.closed = true;
        self.inboxes.close();
        Todo {
            wake: centre.rouse(),
            ..Todo::default()
        }
    }

    /// Whether nothing enters any more, nothing waits and nothing runs.
    pub(crate) fn is_drained(&self) -> bool {
        self.centre.0.lock().is_drained(&self.inboxes)
    }

    pub(crate) fn stats(&self) -> Stats {
        let centre = self.centre.0.lock();
        let calls = self.inboxes.arrived() + centre.alone;
        let in_line = centre.waiting(&self.inboxes);
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

    /// A look at the line, for what only its kind knows.
    pub(crate) fn with_line<R>(&self, look: impl FnOnce(&mut L) -> R) -> R {
        look(&mut self.centre.0.lock().line)
    }

    /// A look at the line once all that has arrived is in it.
    pub(crate) fn with_all_in_line<R>(&self, look: impl FnOnce(&mut L) -> R) -> (R, Todo) {
        let mut guard = self.centre.0.lock();
        let centre = &mut *guard;
        centre.collect(&self.inboxes, Watch::Off);
        if centre.unswept > 0 && centre.waiting(&self.inboxes) >= self.limits.max_queued as u64 {
            // Some of what is in line may be wanted by nobody, and is in nobody's way.
            centre.line.sweep(&mut centre.collected);
            centre.unswept = 0;
        }
        let seen = look(&mut centre.line);
        let todo = Todo {
            wake: centre.reconsider(&self.inboxes, &self.limits),
            ..Todo::default()
        };
        (seen, todo)
    }

    /// Checks the invariants where nothing is going on; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn validate(&self) {
        let centre = self.centre.0.lock();
        centre.collected.validate();
        let gatherers = usize::from(!matches!(centre.gatherer, Gatherer::None));
        let allowed = self.limits.max_in_flight;
        assert!(centre.running + gatherers <= allowed);
        assert!(
            centre.waiting(&self.inboxes) == 0 || gatherers == 1 || centre.running >= allowed,
            "items in line and nobody to take them"
        );
    }

    /// Chunks of slots in memory; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn chunks(&self) -> usize {
        self.inboxes.chunks()
    }
}

impl<I, O, E, L: Line<I, O, E>> Centre<I, O, E, L> {
    /// Calls in line. A call that is just leaving is counted until it has been here.
    fn waiting(&self, inboxes: &Inboxes<I, O, E>) -> u64 {
        inboxes.arrived().saturating_sub(self.gone) + self.line.kept()
    }

    fn sleeps_for_nobody(&self, limits: &Limits) -> bool {
        // Each key that nobody wants has lost a caller since the last sweep: a look is worth its price only then.
        self.unswept >= self.line.places().0
            && matches!(self.gatherer, Gatherer::Asleep { .. })
            && self.line.survey(&self.collected, &limits.batch).due.is_none()
    }

    fn is_drained(&self, inboxes: &Inboxes<I, O, E>) -> bool {
        self.closed && self.waiting(inboxes) == 0 && self.running == 0 && matches!(self.gatherer, Gatherer::None)
    }

    fn has_place(&self, limits: &Limits) -> bool {
        self.running < limits.max_in_flight
    }

    fn collect(&mut self, inboxes: &Inboxes<I, O, E>, watch: Watch) -> bool {
        let any = self.collected.collect(inboxes, watch);
        self.gone += self.line.take_over(&mut self.collected);
        any
    }

    fn count_batch(&mut self, inboxes: &Inboxes<I, O, E>) {
        self.batches += 1;
        let arrived = inboxes.arrived();
        self.lonely = if arrived - self.arrived == 1 {
            self.lonely.saturating_add(1)
        } else {
            0
        };
        self.arrived = arrived;
    }

    fn is_full(&self, limits: &BatchLimits) -> bool {
        self.line.is_full(&self.collected, limits)
    }

    fn cut(&mut self, limits: &BatchLimits, batch: &mut Batch<I, O, E>) {
        self.gone += self.line.cut(&mut self.collected, limits, batch);
    }

    /// Leaves an empty line to the inboxes' watch. Says whether it was one.
    fn stand_down(&mut self, inboxes: &Inboxes<I, O, E>) -> bool {
        if !self.line.is_empty(&self.collected) {
            return false;
        }
        let stood_down = self.collected.stand_down(inboxes);
        if !stood_down {
            self.gone += self.line.take_over(&mut self.collected);
        }
        stood_down
    }

    /// Sees to it that the line is looked after when nobody gathers and there is a place for one more: by the inboxes' watch if
    /// nothing is in line. Otherwise whoever asks becomes, or starts, the gatherer.
    fn look_out(&mut self, inboxes: &Inboxes<I, O, E>, limits: &Limits) -> bool {
        if !matches!(self.gatherer, Gatherer::None) || !self.has_place(limits) {
            return false;
        }
        while self.line.is_empty(&self.collected) {
            if self.stand_down(inboxes) {
                return false;
            }
        }
        self.gatherer = Gatherer::Coming;
        true
    }

    /// An inbox has reported an arrival.
    fn arrival(&mut self, inbox: usize, inboxes: &Inboxes<I, O, E>, limits: &Limits) -> Todo {
        self.collected.activate(inbox);
        let mut todo = Todo::default();
        if matches!(self.gatherer, Gatherer::Asleep { .. }) {
            todo.wake = self.reconsider(inboxes, limits);
        } else {
            // Someone comes and looks, now or when a batch has ended.
            inboxes.watch(inbox, Watch::Off);
            if matches!(self.gatherer, Gatherer::None) && self.has_place(limits) {
                self.gatherer = Gatherer::Coming;
                todo.start_runner = true;
            }
        }
        todo
    }

    /// Whether a sleeping gatherer has to leave earlier; otherwise the inboxes' watch is set anew.
    fn reconsider(&mut self, inboxes: &Inboxes<I, O, E>, limits: &Limits) -> Option<Waker> {
        let Gatherer::Asleep { until, .. } = self.gatherer else {
            return None;
        };
        loop {
            self.collect(inboxes, Watch::Off);
            let survey = self.line.survey(&self.collected, &limits.batch);
            if survey.is_full || survey.due.is_some_and(|due| due.is_before(until)) {
                return self.rouse();
            }
            if self.watch_room(inboxes, limits, until) {
                return None;
            }
        }
    }

    /// Shares the room that is left in the next batch out among the inboxes, so that one of them reports when it may be full.
    /// Says whether nothing has arrived meanwhile that was not taken into account.
    fn watch_room(&mut self, inboxes: &Inboxes<I, O, E>, limits: &Limits, until: Instant) -> bool {
        let survey = self.line.survey(&self.collected, &limits.batch);
        let active = self.collected.active_inboxes().max(1);
        let room = Watch::Room {
            items: limits.batch.max_items.saturating_sub(survey.items).div_ceil(active),
            weight: limits
                .batch
                .max_weight
                .saturating_sub(survey.weight)
                .div_ceil(active as u128),
            until,
        };
        !self.collect(inboxes, room)
    }

    /// Ends the places of cancelled calls.
    fn sweep(&mut self, inboxes: &Inboxes<I, O, E>, limits: &Limits) -> Option<Waker> {
        self.collect(inboxes, Watch::Off);
        self.line.sweep(&mut self.collected);
        self.unswept = 0;
        self.reconsider(inboxes, limits)
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
mod tests;
