//! The line: queued items in arrival order, as stretches of slots.
//!
//! Promises:
//! - Batches are cut from the front in arrival order, and a cancelled item counts for nothing: not toward `max_items`, not
//!   toward `max_weight`, not toward the window.
//! - The tally is exact: `tally.items` is the number of slots in the line that hold an item.
//! - Memory follows the live items: a stretch without any leaves the line at once.
//!
//! Not synchronised (the intake's lock is around it) and knows nothing of runners, wakers' tasks or closing.

use std::collections::VecDeque;
use std::ops::{AddAssign, SubAssign};
use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use super::dispatch::Batch;
use super::slot::{Chunk, Displaced, Queued, Ticket};
use super::window::Due;

/// What a number of queued items adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) items: usize,
    /// Wide enough for the sum of any weights the user's weigher returns.
    pub(super) weight: u128,
    /// How many of the items wait for no window.
    pub(super) at_once: usize,
}

impl Tally {
    fn of_one(weight: usize, due: Due) -> Self {
        Self {
            items: 1,
            weight: weight as u128,
            at_once: usize::from(due == Due::AtOnce),
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.weight += other.weight;
        self.at_once += other.at_once;
    }
}

impl SubAssign for Tally {
    fn sub_assign(&mut self, other: Self) {
        self.items -= other.items;
        self.weight -= other.weight;
        self.at_once -= other.at_once;
    }
}

/// Neighbouring slots of one chunk. Invariant: `from < to <= chunk.slots.len()`.
pub(super) struct Stretch<I, O, E> {
    pub(super) chunk: Arc<Chunk<I, O, E>>,
    pub(super) from: usize,
    pub(super) to: usize,
    tally: Tally,
}

/// Where a batch ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    pub(super) max_items: usize,
    pub(super) max_weight: u128,
}

pub(super) struct Line<I, O, E> {
    /// In arrival order, hence by chunk number; a chunk has one stretch here at most.
    stretches: VecDeque<Stretch<I, O, E>>,
    /// What is in `stretches`.
    closed_tally: Tally,
    /// The chunk that is being filled; `None` before the first item.
    tail: Option<Arc<Chunk<I, O, E>>>,
    /// Slots of `tail` that are used up.
    tail_used: usize,
    /// The newest items, `open_from..tail_used` of `tail`, are not in `stretches` yet: an arrival, which all callers contend
    /// for, touches nothing but these few fields.
    open_from: usize,
    open_tally: Tally,
    chunks_made: u64,
}

impl<I, O, E> Line<I, O, E> {
    pub(super) fn new() -> Self {
        Self {
            stretches: VecDeque::new(),
            closed_tally: Tally::default(),
            tail: None,
            tail_used: 0,
            open_from: 0,
            open_tally: Tally::default(),
            chunks_made: 0,
        }
    }

    pub(super) fn tally(&self) -> Tally {
        let mut tally = self.closed_tally;
        tally += self.open_tally;
        tally
    }

    pub(super) fn is_empty(&self) -> bool {
        self.closed_tally.items + self.open_tally.items == 0
    }

    /// Whether the next item needs a chunk that is not there yet.
    pub(super) fn needs_chunk(&self) -> bool {
        self.tail.as_ref().is_none_or(|tail| self.tail_used == tail.slots.len())
    }

    /// Puts an item at the end. A chunk that is needed is taken from `spare`; making one here would keep everybody waiting.
    pub(super) fn push(
        &mut self,
        queued: Queued<I>,
        waker: Option<Waker>,
        spare: &mut Option<Arc<Chunk<I, O, E>>>,
    ) -> Ticket<I, O, E> {
        let chunk = match &self.tail {
            Some(tail) if self.tail_used < tail.slots.len() => Arc::clone(tail),
            _ => {
                self.close_stretch();
                let mut chunk = spare.take().unwrap_or_else(Chunk::new);
                Arc::get_mut(&mut chunk).expect("a spare chunk is nobody else's").number = self.chunks_made;
                self.chunks_made += 1;
                self.tail_used = 0;
                self.open_from = 0;
                self.tail = Some(Arc::clone(&chunk));
                chunk
            }
        };
        let index = self.tail_used;
        self.tail_used += 1;
        self.open_tally += Tally::of_one(queued.weight, queued.due);
        chunk.slots[index].fill(queued, waker);
        Ticket { chunk, index }
    }

    /// Moves the newest items to `stretches`, where they can be cut and searched.
    fn close_stretch(&mut self) {
        if self.open_tally.items == 0 {
            return;
        }
        let chunk = self.tail.as_ref().expect("open items have a chunk");
        match self.stretches.back_mut() {
            Some(last) if last.chunk.number == chunk.number => {
                last.to = self.tail_used;
                last.tally += self.open_tally;
            }
            _ => self.stretches.push_back(Stretch {
                chunk: Arc::clone(chunk),
                from: self.open_from,
                to: self.tail_used,
                tally: self.open_tally,
            }),
        }
        self.closed_tally += self.open_tally;
        self.open_tally = Tally::default();
        self.open_from = self.tail_used;
    }

    /// Takes a cancelled call's item out; `None` when it is not in the line any more.
    pub(super) fn remove(&mut self, ticket: &Ticket<I, O, E>) -> Option<Displaced<I, O, E>> {
        self.close_stretch();
        let at = self
            .stretches
            .binary_search_by(|stretch| stretch.chunk.number.cmp(&ticket.chunk.number))
            .ok()?;
        let stretch = &mut self.stretches[at];
        if ticket.index < stretch.from {
            return None;
        }
        let (weight, due) = ticket
            .slot()
            .queued()
            .expect("slots in the line hold their item until their one call leaves");
        let one = Tally::of_one(weight, due);
        stretch.tally -= one;
        self.closed_tally -= one;
        let (_, displaced) = ticket.slot().leave();
        if self.stretches[at].tally.items == 0 {
            self.stretches.remove(at);
        }
        Some(displaced)
    }

    /// Whether a batch cut now could take no further item.
    pub(super) fn fills(&self, limits: &BatchLimits) -> bool {
        let tally = self.tally();
        tally.items >= limits.max_items || tally.weight >= limits.max_weight
    }

    /// The earliest end of a window. Looks at every item: to be called for less than a batch of them.
    pub(super) fn earliest_due(&mut self) -> Option<Instant> {
        self.close_stretch();
        self.stretches
            .iter()
            .flat_map(|stretch| &stretch.chunk.slots[stretch.from..stretch.to])
            .filter_map(|slot| match slot.queued() {
                Some((_, Due::By(end))) => Some(end),
                _ => None,
            })
            .min()
    }

    /// Cuts a batch from the front: as many items as the limits allow, and at least one if there is one.
    pub(super) fn cut(&mut self, limits: &BatchLimits, batch: &mut Batch<I, O, E>) {
        debug_assert!(batch.is_empty(), "a batch is answered before the next is cut");
        self.close_stretch();
        let mut taken = Tally::default();
        while let Some(first) = self.stretches.front_mut() {
            let room_items = limits.max_items - taken.items;
            let room_weight = limits.max_weight.saturating_sub(taken.weight);
            if first.tally.items <= room_items && first.tally.weight <= room_weight {
                taken += first.tally;
                batch.stretches.extend(self.stretches.pop_front());
                continue;
            }
            let (to, part) = first.part_within(room_items, room_weight, taken.items == 0);
            if part.items > 0 {
                batch.stretches.push(Stretch {
                    chunk: Arc::clone(&first.chunk),
                    from: first.from,
                    to,
                    tally: part,
                });
                first.from = to;
                first.tally -= part;
                taken += part;
                if first.tally.items == 0 {
                    self.stretches.pop_front();
                }
            }
            break;
        }
        self.closed_tally -= taken;
        batch.items = taken.items;
    }

    /// Checks the invariants; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(super) fn validate(&mut self) {
        self.close_stretch();
        let mut sum = Tally::default();
        let mut last_number = None;
        for stretch in &self.stretches {
            assert!(stretch.from < stretch.to && stretch.to <= stretch.chunk.slots.len());
            assert!(last_number < Some(stretch.chunk.number), "stretches are in order");
            last_number = Some(stretch.chunk.number);
            let mut own = Tally::default();
            for slot in &stretch.chunk.slots[stretch.from..stretch.to] {
                if let Some((weight, due)) = slot.queued() {
                    own += Tally::of_one(weight, due);
                }
            }
            assert_eq!(own, stretch.tally, "a stretch's tally is exact");
            assert!(own.items > 0, "a stretch without items leaves the line");
            sum += own;
        }
        assert_eq!(sum, self.closed_tally, "the line's tally is exact");
    }

    /// Stretches in the line; for tests of its memory.
    #[cfg(all(test, not(forebay_loom)))]
    pub(super) fn stretches(&self) -> usize {
        self.stretches.len()
    }
}

impl<I, O, E> Stretch<I, O, E> {
    /// How far a batch with this much room reaches into this stretch, and what it takes. `alone`: the batch is empty, so
    /// that the first item goes even if it is too heavy, and then goes by itself.
    fn part_within(&self, room_items: usize, room_weight: u128, alone: bool) -> (usize, Tally) {
        let mut part = Tally::default();
        for index in self.from..self.to {
            let Some((weight, due)) = self.chunk.slots[index].queued() else {
                continue;
            };
            let fits = part.items < room_items && part.weight + weight as u128 <= room_weight;
            let goes_alone = alone && part.items == 0;
            if !(fits || goes_alone) {
                return (index, part);
            }
            part += Tally::of_one(weight, due);
        }
        (self.to, part)
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn push(line: &mut Line<u64, u64, ()>, item: u64, weight: usize) -> Ticket<u64, u64, ()> {
        let queued = Queued {
            item,
            weight,
            due: Due::AtOnce,
        };
        line.push(queued, None, &mut None)
    }

    /// What a batch of these waiting (item, weight) pairs must be, written as plainly as possible.
    fn naive_cut(waiting: &mut Vec<(u64, usize)>, limits: &BatchLimits) -> Vec<u64> {
        let mut items = Vec::new();
        let mut weight = 0;
        while let Some(&(item, next)) = waiting.first() {
            let exceeds = weight + next as u128 > limits.max_weight;
            if items.len() == limits.max_items || (exceeds && !items.is_empty()) {
                break;
            }
            waiting.remove(0);
            items.push(item);
            weight += next as u128;
            if exceeds {
                break;
            }
        }
        items
    }

    proptest! {
        /// Any mix of arrivals, cancellations and cuts gives the batches of a naive list.
        #[test]
        fn batches_are_those_of_a_plain_list(
            steps in prop::collection::vec((0..10_u8, 0..usize::MAX, 0..9_usize), 0..600),
            max_items in 1..100_usize,
            max_weight in prop_oneof![Just(u128::MAX), 0..50_u128],
        ) {
            let limits = BatchLimits { max_items, max_weight };
            let mut line = Line::new();
            let mut waiting: Vec<(u64, usize)> = Vec::new();
            let mut tickets = Vec::new();
            for (number, (kind, pick, weight)) in steps.into_iter().enumerate() {
                let item = number as u64;
                match kind {
                    0..6 => {
                        tickets.push((item, push(&mut line, item, weight)));
                        waiting.push((item, weight));
                    }
                    6..9 if !tickets.is_empty() => {
                        let (item, ticket) = tickets.swap_remove(pick % tickets.len());
                        let position = waiting.iter().position(|&(other, _)| other == item);
                        prop_assert_eq!(line.remove(&ticket).is_some(), position.is_some());
                        position.map(|position| waiting.remove(position));
                    }
                    _ => {
                        let mut batch = Batch::new();
                        line.cut(&limits, &mut batch);
                        let expected = naive_cut(&mut waiting, &limits);
                        prop_assert_eq!(batch.items, expected.len());
                        prop_assert_eq!(batch.collect_items(), expected);
                    }
                }
                line.validate();
                prop_assert_eq!(line.tally().items, waiting.len());
            }
        }
    }

    #[test]
    fn memory_follows_the_live_items() {
        let mut line = Line::new();
        let stays = push(&mut line, 0, 1);
        let slots = stays.chunk.slots.len();
        for item in 0..100_000 {
            let leaves = push(&mut line, item, 1);
            drop(line.remove(&leaves));
        }
        // The one that stays and the chunk being filled.
        assert!(line.stretches() <= 2, "{} stretches of {slots} slots", line.stretches());
        line.validate();
    }
}
