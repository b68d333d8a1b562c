//! A batch on its way: from the line to the processor, and its outcomes back to the callers.
//!
//! Promises:
//! - Every item that the processor was given gets exactly one outcome, in item order, also where calls were cancelled
//!   before the dispatch or after it.
//! - Wakers are woken, and unwanted outcomes dropped, where no lock is held; one that panics keeps nobody else from theirs.
//!
//! Knows nothing of limits, windows and runners.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::CallError;
use super::line::Stretch;
use super::slot::{Completed, Outcome, Slot};

pub(super) struct Batch<I, O, E> {
    /// In arrival order. Slots in here that hold no dispatched item are skipped.
    pub(super) stretches: Vec<Stretch<I, O, E>>,
    /// Items at the time of the cut: an upper bound afterwards.
    pub(super) items: usize,
}

impl<I, O, E> Batch<I, O, E> {
    pub(super) fn new() -> Self {
        Self {
            stretches: Vec::new(),
            items: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<I, O, E>> {
        self.stretches
            .iter()
            .flat_map(|stretch| &stretch.chunk.slots[stretch.from..stretch.to])
    }

    /// Takes the items for the processor. Fewer than at the cut if calls were cancelled since.
    pub(super) fn collect_items(&self) -> Vec<I> {
        let mut items = Vec::with_capacity(self.items);
        items.extend(self.slots().filter_map(Slot::dispatch));
        items
    }

    /// Gives each dispatched item its own outcome. The caller has checked the count.
    pub(super) fn answer_each(&mut self, outcomes: Vec<O>) {
        let mut outcomes = outcomes.into_iter();
        for slot in self.slots() {
            deliver(slot, || {
                Ok(outcomes
                    .next()
                    .expect("as many outcomes as dispatched items, counted before"))
            });
        }
        debug_assert!(outcomes.next().is_none(), "no outcome is left over");
        self.clear();
    }

    /// Gives every dispatched item of the batch the same error.
    pub(super) fn answer_all(&mut self, error: &CallError<E>) {
        for slot in self.slots() {
            deliver(slot, || Err(error.clone()));
        }
        self.clear();
    }

    /// Forgets a batch of which no item is left to answer.
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.items = 0;
    }
}

fn deliver<I, O, E>(slot: &Slot<I, O, E>, outcome: impl FnOnce() -> Outcome<O, E>) {
    match slot.complete(outcome) {
        Completed::Stored(Some(waker)) => quietly(|| waker.wake()),
        Completed::Stored(None) | Completed::Skipped => {}
        Completed::Unwanted(outcome) => quietly(|| drop(outcome)),
    }
}

/// Runs a piece of user code whose panic is nobody else's business (the panic hook has reported it).
pub(super) fn quietly(work: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(work)));
}
