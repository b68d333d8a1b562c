//! The line: what has been collected from the inboxes, in order of arrival, and how batches are cut from its front.
//!
//! Promises:
//! - Batches are cut in order of arrival. A cancelled item counts towards neither `max_items` nor `max_weight` nor the window.
//! - A batch is as full as the limits allow, and holds at least one item if one waits.
//! - Memory that is held for cancelled calls is given back by the next cut or sweep.
//!
//! Not synchronised (the intake's lock is around it) and knows nothing of runners, of wakers' tasks or of closing.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::dispatch::{Batch, deliver};
use super::inbox::{Inboxes, Watch};
use super::slot::{Note, Place, Stretch};
use super::window::Due;

/// Where a batch ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub(crate) max_items: usize,
    pub(crate) max_weight: u128,
}

/// What was collected from the inboxes and not passed on yet.
pub(crate) struct Collected<I, O, E> {
    /// Of each inbox, in order of arrival.
    inboxes: Vec<VecDeque<Stretch<I, O, E>>>,
    /// The inboxes to look at, a bit each; the others are empty and on watch.
    active: u64,
    /// Arrivals from this number on are not settled: earlier ones may still be in an inbox. They wait for the next collection.
    cutoff: u64,
    /// No arrival from this number on has been collected.
    unsettled_to: u64,
    /// The inbox whose turn it is, and until which number of arrival, if that is known.
    turn: Option<(usize, u64)>,
    places: usize,
}

impl<I, O, E> Collected<I, O, E> {
    pub(crate) fn new(inboxes: usize) -> Self {
        Self {
            inboxes: (0..inboxes).map(|_| VecDeque::new()).collect(),
            active: 0,
            cutoff: 0,
            unsettled_to: 0,
            turn: None,
            places: 0,
        }
    }

    /// An inbox has reported an arrival.
    pub(crate) fn activate(&mut self, inbox: usize) {
        self.active |= 1 << inbox;
    }

    fn active(&self) -> impl Iterator<Item = usize> + use<I, O, E> {
        let mut left = self.active;
        std::iter::from_fn(move || {
            let inbox = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (inbox < 64).then_some(inbox)
        })
    }

    pub(crate) fn active_inboxes(&self) -> usize {
        self.active.count_ones() as usize
    }

    /// Takes what has arrived in the active inboxes, and sets their watch. Says whether there is anything in line that was not
    /// there, or not settled, before.
    pub(crate) fn collect(&mut self, inboxes: &Inboxes<I, O, E>, watch: Watch) -> bool {
        let mut any = self.unsettled_to > self.cutoff;
        self.cutoff = inboxes.arrived();
        self.turn = None;
        for inbox in self.active() {
            let (places, to) = inboxes.collect(inbox, watch, &mut self.inboxes[inbox]);
            self.places += places;
            self.unsettled_to = self.unsettled_to.max(to);
            any |= places > 0;
        }
        any
    }

    /// Leaves the active inboxes to their watch, if nothing has arrived there meanwhile. Says whether it has left them.
    pub(crate) fn stand_down(&mut self, inboxes: &Inboxes<I, O, E>) -> bool {
        if self.collect(inboxes, Watch::Any) {
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

    /// Notes of those that are settled and still wait, each inbox's in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Note> {
        let waiting = self.inboxes.iter().flatten().flat_map(Stretch::waiting);
        waiting.filter(|note| note.arrival < self.cutoff)
    }

    /// The inbox whose turn it is, and the number of arrival at which another one's begins.
    fn find_turn(&self) -> Option<(usize, u64)> {
        let mut first = (u64::MAX, 0);
        let mut second = self.cutoff;
        for inbox in self.active() {
            let Some(note) = self.inboxes[inbox].front().and_then(Stretch::first) else {
                continue;
            };
            if note.arrival < first.0 {
                second = second.min(first.0);
                first = (note.arrival, inbox);
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
            let (inbox, until) = self.turn?;
            let stretches = &mut self.inboxes[inbox];
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
        for stretches in &mut self.inboxes {
            let mut kept = VecDeque::new();
            for stretch in stretches.drain(..) {
                stretch.sweep(&mut kept);
            }
            *stretches = kept;
        }
        self.turn = None;
        self.places = self.inboxes.iter().flatten().map(Stretch::len).sum();
    }

    /// Checks the invariants; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn validate(&self) {
        for (index, stretches) in self.inboxes.iter().enumerate() {
            assert!(
                stretches.is_empty() || self.active & (1 << index) != 0,
                "an active inbox"
            );
            let mut last = None;
            for note in stretches.iter().flat_map(Stretch::waiting) {
                assert!(last < Some(note.arrival), "an inbox is in order of arrival");
                last = Some(note.arrival);
            }
            assert!(
                stretches.iter().all(|stretch| !stretch.is_empty()),
                "no empty stretch is kept"
            );
        }
        let places: usize = self.inboxes.iter().flatten().map(Stretch::len).sum();
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
mod tests;
