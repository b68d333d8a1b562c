//! The line: what has been collected from the lanes, in order of arrival, and how batches are cut from its front.
//!
//! Promises:
//! - Batches are cut in order of arrival, and a cancelled item counts for nothing: not toward `max_items`, not toward
//!   `max_weight`, not toward the window.
//! - A batch is as full as the limits allow, and holds at least one item if one waits.
//! - What the places of cancelled calls hold in memory is given back by the next cut or sweep.
//!
//! Not synchronised (the intake's lock is around it) and knows nothing of runners, wakers' tasks or closing.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::dispatch::{Batch, deliver};
use super::lane::{Lanes, Watch};
use super::slot::{Note, Place, Stretch};
use super::window::Due;

/// Where a batch ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub(crate) max_items: usize,
    pub(crate) max_weight: u128,
}

/// What was collected from the lanes and not passed on yet.
pub(crate) struct Collected<I, O, E> {
    /// Of each lane, in order of arrival.
    lanes: Vec<VecDeque<Stretch<I, O, E>>>,
    /// The lanes to look at, a bit each; the others are empty and on watch.
    active: u64,
    /// Arrivals from this number on are not settled: earlier ones may still be in a lane. They wait for the next collection.
    cutoff: u64,
    /// No arrival from this number on has been collected.
    unsettled_to: u64,
    /// The lane whose turn it is, and until which number of arrival, if that is known.
    turn: Option<(usize, u64)>,
    places: usize,
}

impl<I, O, E> Collected<I, O, E> {
    pub(crate) fn new(lanes: usize) -> Self {
        Self {
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            active: 0,
            cutoff: 0,
            unsettled_to: 0,
            turn: None,
            places: 0,
        }
    }

    /// A lane has reported an arrival.
    pub(crate) fn activate(&mut self, lane: usize) {
        self.active |= 1 << lane;
    }

    fn active(&self) -> impl Iterator<Item = usize> + use<I, O, E> {
        let mut left = self.active;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (lane < 64).then_some(lane)
        })
    }

    pub(crate) fn active_lanes(&self) -> usize {
        self.active.count_ones() as usize
    }

    /// Takes what has arrived in the active lanes, and sets their watch. Says whether there is anything in line that was not
    /// there, or not settled, before.
    pub(crate) fn collect(&mut self, lanes: &Lanes<I, O, E>, watch: Watch) -> bool {
        let mut any = self.unsettled_to > self.cutoff;
        self.cutoff = lanes.arrived();
        self.turn = None;
        for lane in self.active() {
            let (places, to) = lanes.collect(lane, watch, &mut self.lanes[lane]);
            self.places += places;
            self.unsettled_to = self.unsettled_to.max(to);
            any |= places > 0;
        }
        any
    }

    /// Leaves the active lanes to their watch, if nothing has arrived there meanwhile. Says whether it has left them.
    pub(crate) fn stand_down(&mut self, lanes: &Lanes<I, O, E>) -> bool {
        if self.collect(lanes, Watch::Any) {
            return false;
        }
        debug_assert!(self.places == 0, "only a line without places is left to the watch");
        self.active = 0;
        true
    }

    /// Places in here, those of cancelled calls among them.
    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// Notes of those that are settled and still wait, each lane's in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Note> {
        let waiting = self.lanes.iter().flatten().flat_map(Stretch::waiting);
        waiting.filter(|note| note.arrival < self.cutoff)
    }

    /// The lane whose turn it is, and the number of arrival at which another one's begins.
    fn find_turn(&self) -> Option<(usize, u64)> {
        let mut first = (u64::MAX, 0);
        let mut second = self.cutoff;
        for lane in self.active() {
            let Some(note) = self.lanes[lane].front().and_then(Stretch::first) else {
                continue;
            };
            if note.arrival < first.0 {
                second = second.min(first.0);
                first = (note.arrival, lane);
            } else {
                second = second.min(note.arrival);
            }
        }
        (first.0 < second).then_some((first.1, second))
    }

    /// The next place in order of arrival, if `wants` it. Those of cancelled calls are ended in passing.
    #[inline]
    pub(crate) fn next_if(&mut self, wants: impl Fn(&Note) -> bool) -> Option<(Place<I, O, E>, Note)> {
        loop {
            if self.turn.is_none() {
                self.turn = self.find_turn();
            }
            let (lane, until) = self.turn?;
            let stretches = &mut self.lanes[lane];
            let next = stretches
                .front_mut()
                .and_then(|stretch| Some((stretch.first().filter(|note| note.arrival < until)?, stretch)));
            let Some((note, stretch)) = next else {
                self.turn = None;
                continue;
            };
            let is_waiting = stretch.first_is_waiting();
            if is_waiting && !wants(&note) {
                return None;
            }
            let place = stretch.pop_front().expect("it has a first one");
            if stretch.is_empty() {
                stretches.pop_front();
            }
            self.places -= 1;
            if is_waiting {
                return Some((place, note));
            }
            let swept = place.sweep();
            debug_assert!(swept.is_none(), "who has left does not come back");
        }
    }

    /// Ends the places of cancelled calls.
    pub(crate) fn sweep(&mut self) {
        for stretches in &mut self.lanes {
            let mut kept = VecDeque::new();
            for stretch in stretches.drain(..) {
                stretch.sweep(&mut kept);
            }
            *stretches = kept;
        }
        self.turn = None;
        self.places = self.lanes.iter().flatten().map(Stretch::len).sum();
    }

    /// Checks the invariants; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn validate(&self) {
        for (index, stretches) in self.lanes.iter().enumerate() {
            assert!(
                stretches.is_empty() || self.active & (1 << index) != 0,
                "an active lane"
            );
            let mut last = None;
            for note in stretches.iter().flat_map(Stretch::waiting) {
                assert!(last < Some(note.arrival), "a lane is in order of arrival");
                last = Some(note.arrival);
            }
            assert!(
                stretches.iter().all(|stretch| !stretch.is_empty()),
                "no empty stretch is kept"
            );
        }
        let places: usize = self.lanes.iter().flatten().map(Stretch::len).sum();
        assert_eq!(places, self.places);
    }
}

/// How items in line become batches: each for itself, or several sharing a place.
///
/// Whoever calls holds the intake's lock.
pub(crate) trait Line<I, O, E> {
    /// Whether calls whose items were dispatched from their slots may still wait in here.
    const KEEPS_WAITING: bool;

    /// How many items wait in here, not counting those that were collected and not taken over.
    fn kept(&self) -> u64;

    /// Places of calls whose items were dispatched from their slots and that are held in here, of calls that have left too: in
    /// line, and in all.
    fn places(&self) -> (u64, u64);

    /// Takes over what was collected, if it keeps things in another way. Says how many items it has dispatched from their
    /// slots.
    fn take_over(&mut self, collected: &mut Collected<I, O, E>) -> u64;

    /// Whether nothing is in line, apart from what was cancelled.
    fn is_empty(&self, collected: &Collected<I, O, E>) -> bool;

    /// Whether a batch cut now could take no further item.
    fn is_full(&self, collected: &Collected<I, O, E>, limits: &BatchLimits) -> bool;

    /// What a batch cut now would be.
    fn survey(&self, collected: &Collected<I, O, E>, limits: &BatchLimits) -> Survey;

    /// Cuts a batch: as many items as the limits allow, and at least one if one waits. Says how many items it has dispatched
    /// from their slots.
    fn cut(&mut self, collected: &mut Collected<I, O, E>, limits: &BatchLimits, batch: &mut Batch<I, O, E>) -> u64;

    /// The batch has its outcomes, and its callers are about to be told: the last moment to add some.
    fn end(&mut self, batch: &mut Batch<I, O, E>);

    /// Ends the places of cancelled calls.
    fn sweep(&mut self, collected: &mut Collected<I, O, E>);
}

/// What a batch would be that is cut now. Once it is full, the rest is not looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) items: usize,
    pub(crate) weight: u128,
    /// It could take no further item.
    pub(crate) is_full: bool,
    /// When it has to go; `None` when nothing waits.
    pub(crate) due: Option<Due>,
}

impl Survey {
    /// Of items with these notes, in any order, up to one that does not wait.
    pub(crate) fn of(notes: impl Iterator<Item = Note>, limits: &BatchLimits) -> Self {
        let mut hasty = false;
        let until_hasty = notes.take_while(|note| !std::mem::replace(&mut hasty, note.due == Due::AtOnce));
        Self::of_all(until_hasty, limits)
    }

    /// Of items with these notes, in any order.
    pub(crate) fn of_all(notes: impl Iterator<Item = Note>, limits: &BatchLimits) -> Self {
        let mut survey = Self::default();
        for note in notes {
            survey.items += 1;
            survey.weight += note.weight as u128;
            survey.due = Some(survey.due.map_or(note.due, |due| due.min(note.due)));
            survey.is_full = survey.items >= limits.max_items || survey.weight >= limits.max_weight;
            if survey.is_full {
                break;
            }
        }
        survey
    }

    /// Until when to wait for more; `None` when it is time to go, or nothing waits.
    pub(crate) fn time_to_wait(&self, clock: impl Fn() -> Instant) -> Option<Instant> {
        match self.due {
            Some(Due::By(end)) if !self.is_full => (clock() < end).then_some(end),
            _ => None,
        }
    }
}

/// Every item for itself, in order of arrival.
pub(crate) struct InOrder;

impl InOrder {
    /// Gives each call its outcome; one outcome per item.
    pub(crate) fn answer<I, O, E>(batch: &mut Batch<I, O, E>, outcomes: Vec<O>) {
        for (place, outcome) in batch.places.drain(..).zip(outcomes) {
            deliver(place, Ok(outcome));
        }
    }
}

impl<I, O, E> Line<I, O, E> for InOrder {
    const KEEPS_WAITING: bool = false;

    fn kept(&self) -> u64 {
        0
    }

    fn places(&self) -> (u64, u64) {
        (0, 0)
    }

    fn take_over(&mut self, _: &mut Collected<I, O, E>) -> u64 {
        0
    }

    fn is_empty(&self, collected: &Collected<I, O, E>) -> bool {
        collected.places() == 0
    }

    fn is_full(&self, collected: &Collected<I, O, E>, limits: &BatchLimits) -> bool {
        let may_be = collected.places() >= limits.max_items || limits.max_weight != u128::MAX;
        may_be && Survey::of_all(collected.waiting(), limits).is_full
    }

    fn survey(&self, collected: &Collected<I, O, E>, limits: &BatchLimits) -> Survey {
        Survey::of(collected.waiting(), limits)
    }

    fn cut(&mut self, collected: &mut Collected<I, O, E>, limits: &BatchLimits, batch: &mut Batch<I, O, E>) -> u64 {
        let before = batch.items.len();
        batch.items.reserve_exact(collected.places().min(limits.max_items));
        let mut weight = 0;
        while batch.items.len() < limits.max_items {
            let goes_alone = batch.items.is_empty();
            let fits = |note: &Note| goes_alone || weight + note.weight as u128 <= limits.max_weight;
            let Some((place, note)) = collected.next_if(fits) else {
                break;
            };
            // Its call may have left just now.
            if let Some((place, item)) = place.dispatch() {
                weight += note.weight as u128;
                batch.items.push(item);
                batch.places.push(place);
            }
        }
        (batch.items.len() - before) as u64
    }

    fn end(&mut self, _: &mut Batch<I, O, E>) {}

    fn sweep(&mut self, collected: &mut Collected<I, O, E>) {
        collected.sweep();
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::task::{Poll, Waker};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::lane::{Arrival, Queued};
    use super::super::slot::Ticket;
    use super::*;

    type SmallTicket = Ticket<u64, u64, ()>;

    /// The lanes and the line, as the intake has them.
    struct Queue {
        lanes: Lanes<u64, u64, ()>,
        collected: Collected<u64, u64, ()>,
    }

    impl Queue {
        fn with(lanes: usize) -> Self {
            Self {
                lanes: Lanes::with(lanes),
                collected: Collected::new(lanes),
            }
        }

        fn enter(&mut self, thread: usize, item: u64, weight: usize, due: Due) -> SmallTicket {
            match self.lanes.enter(thread, Queued { item, weight, due }, None) {
                Arrival::Entered(ticket, lane) => {
                    lane.into_iter().for_each(|lane| self.collected.activate(lane));
                    ticket
                }
                Arrival::Closed(..) => panic!("open"),
            }
        }

        fn collect(&mut self) -> bool {
            self.collected.collect(&self.lanes, Watch::Off)
        }

        /// A batch of what was collected, answered with its items.
        fn cut(&mut self, limits: &BatchLimits) -> Vec<u64> {
            let mut batch = Batch::new();
            let gone = InOrder.cut(&mut self.collected, limits, &mut batch);
            let items = std::mem::take(&mut batch.items);
            assert_eq!((batch.places.len(), gone), (items.len(), items.len() as u64));
            InOrder::answer(&mut batch, items.clone());
            assert!(batch.places.is_empty());
            items
        }
    }

    const UNBOUNDED: BatchLimits = BatchLimits {
        max_items: usize::MAX,
        max_weight: u128::MAX,
    };

    #[derive(Clone, Copy)]
    struct Waiting {
        item: u64,
        weight: usize,
        due: Due,
    }

    /// What a batch of these must be, written as plainly as possible.
    fn naive_cut(waiting: &mut Vec<Waiting>, limits: &BatchLimits) -> Vec<u64> {
        let mut items = Vec::new();
        let mut weight = 0;
        while let Some(&next) = waiting.first() {
            let exceeds = weight + next.weight as u128 > limits.max_weight;
            if items.len() == limits.max_items || (exceeds && !items.is_empty()) {
                break;
            }
            waiting.remove(0);
            items.push(next.item);
            weight += next.weight as u128;
            if exceeds {
                break;
            }
        }
        items
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 3 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Any mix of arrivals on any lanes, cancellations, collections, sweeps and cuts gives the batches of a naive list.
        #[test]
        fn batches_are_those_of_a_plain_list(
            steps in prop::collection::vec(
                (0..13_u8, 0..usize::MAX, 0..9_usize, 0..100_u64),
                0..if cfg!(miri) { 60 } else { 600 },
            ),
            lanes in prop_oneof![Just(1_usize), Just(2), Just(4), Just(64)],
            max_items in 1..100_usize,
            max_weight in prop_oneof![Just(u128::MAX), 0..50_u128],
        ) {
            let limits = BatchLimits { max_items, max_weight };
            let now = Instant::now();
            let mut queue = Queue::with(lanes);
            // In the lanes, and in the line.
            let mut arrived: Vec<Waiting> = Vec::new();
            let mut waiting: Vec<Waiting> = Vec::new();
            let mut tickets = Vec::new();
            let mut processed = BTreeMap::new();
            for (number, (kind, pick, weight, wait)) in steps.into_iter().enumerate() {
                let item = number as u64;
                match kind {
                    0..6 => {
                        let due = Due::By(now + Duration::from_millis(wait));
                        tickets.push((item, queue.enter(pick, item, weight, due)));
                        arrived.push(Waiting { item, weight, due });
                    }
                    6..9 if !tickets.is_empty() => {
                        let (item, mut ticket) = tickets.swap_remove(pick % tickets.len());
                        let position = |list: &[Waiting]| list.iter().position(|other| other.item == item);
                        let (in_lane, in_line) = (position(&arrived), position(&waiting));
                        prop_assert_eq!(ticket.leave().was_queued, in_lane.is_some() || in_line.is_some());
                        in_lane.map(|position| arrived.remove(position));
                        in_line.map(|position| waiting.remove(position));
                    }
                    9 => {
                        queue.collected.sweep();
                        prop_assert_eq!(queue.collected.places(), waiting.len(), "only those who wait have a place");
                    }
                    10..12 => {
                        let before = queue.collected.places();
                        prop_assert_eq!(queue.collect(), queue.collected.places() > before);
                        waiting.append(&mut arrived);
                    }
                    _ => {
                        let batch = queue.cut(&limits);
                        prop_assert_eq!(&batch, &naive_cut(&mut waiting, &limits));
                        processed.extend(batch.into_iter().map(|item| (item, ())));
                    }
                }
                queue.collected.validate();
                prop_assert!(queue.collected.waiting().map(|note| note.due).eq_by_sorted(waiting.iter().map(|item| item.due)));
                let survey = InOrder.survey(&queue.collected, &UNBOUNDED);
                prop_assert_eq!(survey.items, waiting.len());
                prop_assert_eq!(survey.weight, waiting.iter().map(|item| item.weight as u128).sum::<u128>());
                prop_assert_eq!(survey.due, waiting.iter().map(|item| item.due).min());
                let is_full = InOrder.survey(&queue.collected, &limits).is_full;
                let weight: u128 = waiting.iter().map(|item| item.weight as u128).sum();
                prop_assert_eq!(is_full, !waiting.is_empty() && (waiting.len() >= max_items || weight >= max_weight));
            }
            // Each call has what became of it.
            for (item, mut ticket) in tickets {
                match ticket.poll(Waker::noop()) {
                    Poll::Ready(outcome) => prop_assert_eq!((outcome.ok(), processed.contains_key(&item)), (Some(item), true)),
                    Poll::Pending => prop_assert!(!processed.contains_key(&item)),
                }
            }
        }
    }

    trait EqBySorted: Iterator + Sized
    where
        Self::Item: Ord,
    {
        /// Whether both give the same things, in any order.
        fn eq_by_sorted(self, other: impl Iterator<Item = Self::Item>) -> bool {
            let sorted = |mut list: Vec<Self::Item>| {
                list.sort_unstable();
                list
            };
            sorted(self.collect()) == sorted(other.collect())
        }
    }

    impl<T: Iterator> EqBySorted for T where T::Item: Ord {}

    /// Arrivals of which earlier ones may still be in a lane wait for the next collection.
    #[test]
    fn nothing_from_the_cutoff_on_is_cut() {
        for (lanes, limits) in [(1, UNBOUNDED), (2, UNBOUNDED), (4, UNBOUNDED)] {
            let mut queue = Queue::with(lanes);
            let _tickets: Vec<_> = (0..6)
                .map(|item| queue.enter(item as usize, item, 1, Due::AtOnce))
                .collect();
            assert!(queue.collect());
            // As when the last two arrived after the collection had begun.
            queue.collected.cutoff = 4;
            assert_eq!(queue.cut(&limits), [0, 1, 2, 3]);
            assert_eq!((queue.cut(&limits).len(), queue.collected.places()), (0, 2));
            assert!(queue.collect(), "they are settled only now");
            assert!(!queue.collect(), "and were here already");
            assert_eq!(queue.cut(&limits), [4, 5]);
        }
    }

    /// Threads that arrive one after the other, each on a lane of its own, are cut in that order, however the collections fall.
    #[test]
    fn batches_follow_the_order_in_which_threads_arrived() {
        const THREADS: u64 = 3;
        let turns = if cfg!(miri) { 30 } else { 20_000 };
        let lanes = Lanes::<u64, u64, ()>::with(4);
        let next = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let items = std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (lanes, next, failed) = (&lanes, &next, &failed);
                scope.spawn(move || {
                    for item in (thread..turns).step_by(THREADS as usize) {
                        while next.load(SeqCst) < item {
                            if failed.load(SeqCst) {
                                return;
                            }
                            std::thread::yield_now();
                        }
                        let queued = Queued {
                            item,
                            weight: 1,
                            due: Due::AtOnce,
                        };
                        drop(lanes.enter(thread as usize, queued, None));
                        next.store(item + 1, SeqCst);
                    }
                });
            }
            let mut collected = Collected::new(4);
            (0..THREADS as usize).for_each(|lane| collected.activate(lane));
            let mut items = Vec::new();
            while (items.len() as u64) < turns {
                collected.collect(&lanes, Watch::Off);
                let mut batch = Batch::new();
                InOrder.cut(&mut collected, &UNBOUNDED, &mut batch);
                items.append(&mut batch.items);
                if !items.is_sorted() {
                    break;
                }
            }
            failed.store(true, SeqCst);
            items
        });
        assert!(items.iter().copied().eq(0..turns), "one after the other");
    }

    #[test]
    fn a_line_is_left_to_the_watch_only_when_nothing_has_arrived() {
        for lanes in [1, 2, 4] {
            let mut queue = Queue::with(lanes);
            let _first = queue.enter(0, 0, 1, Due::AtOnce);
            assert!(!queue.collected.stand_down(&queue.lanes), "it holds one now");
            assert_eq!(queue.cut(&UNBOUNDED), [0]);
            assert_eq!(queue.collected.active_lanes(), 1);
            assert!(queue.collected.stand_down(&queue.lanes));
            assert_eq!(queue.collected.active_lanes(), 0);
            // On watch again, hence active, hence collected.
            let _second = queue.enter(lanes - 1, 1, 1, Due::AtOnce);
            assert_eq!(queue.collected.active_lanes(), 1);
            assert!(queue.collect());
            assert_eq!(queue.cut(&UNBOUNDED), [1]);
        }
    }

    #[test]
    fn places_of_cancelled_calls_do_not_pile_up() {
        for lanes in [1, 2, 4] {
            for by_sweep in [false, true] {
                let mut queue = Queue::with(lanes);
                let mut stays = None;
                for item in 0..if cfg!(miri) { 400 } else { 100_000 } {
                    let mut leaves = queue.enter(item as usize, item, 1, Due::AtOnce);
                    if item == 50 {
                        stays = Some(leaves);
                        continue;
                    }
                    drop(leaves.leave());
                    if item % 100 == 99 {
                        queue.collect();
                        if by_sweep {
                            queue.collected.sweep();
                        } else {
                            queue.cut(&UNBOUNDED);
                        }
                        queue.collected.validate();
                        assert_eq!(queue.collected.places(), usize::from(by_sweep));
                    }
                }
                let chunks = queue.lanes.chunks();
                assert!(chunks <= 3 * lanes + 5, "{chunks} chunks in {lanes} lanes");
                assert!(stays.is_some_and(|mut stays| stays.poll(Waker::noop()).is_ready() != by_sweep));
            }
        }
    }

    #[test]
    fn a_survey_waits_for_the_earliest_window_unless_the_batch_is_full_or_one_does_not_wait() {
        let now = Instant::now();
        let end = |milliseconds| now + Duration::from_millis(milliseconds);
        let limits = BatchLimits {
            max_items: 3,
            max_weight: 10,
        };
        let note = |weight, due| Note {
            arrival: 0,
            weight,
            due,
        };
        let wait = |notes: &[Note]| Survey::of(notes.iter().copied(), &limits).time_to_wait(|| now);
        let by = |milliseconds| Due::By(end(milliseconds));
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[note(1, by(7)), note(1, by(5))]), Some(end(5)));
        assert_eq!(wait(&[note(1, by(7)), note(1, by(0))]), None, "its window has ended");
        assert_eq!(wait(&[note(1, by(7)), note(1, Due::AtOnce)]), None);
        assert_eq!(wait(&[note(1, by(7)); 3]), None, "full by items");
        assert_eq!(wait(&[note(9, by(7))]), Some(end(7)));
        assert_eq!(wait(&[note(9, by(7)), note(1, by(7))]), None, "full by weight");
    }
}
