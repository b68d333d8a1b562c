//! A batch on its way: from the line to the processor, and its outcomes back to the callers.
//!
//! Promises:
//! - Every item that the processor was given gets exactly one outcome, in item order, also where calls were cancelled
//!   before the dispatch or after it.
//! - Wakers are woken, and unwanted outcomes dropped, where no lock is held; a panic in one affects no other.
//!
//! Knows nothing of limits, windows and runners.

use super::error::CallError;
use super::slot::{Delivered, Outcome, Place};
use crate::panics::quietly;

/// Items and the callers who wait for their outcomes.
pub(crate) struct Batch<I, O, E> {
    /// For the processor, which takes them.
    pub(crate) items: Vec<I>,
    /// The halves of the calls that wait for this batch.
    pub(crate) places: Vec<Place<I, O, E>>,
    /// Where places share items: of each place, which item is its. In order.
    pub(crate) shares: Vec<u32>,
    /// Where places share items: the line's own names for the items.
    pub(crate) names: Vec<u32>,
    /// Items that were one too many, to be dropped where no lock is held.
    pub(crate) spent: Vec<I>,
}

impl<I, O, E> Default for Batch<I, O, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, O, E> Batch<I, O, E> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            places: Vec::new(),
            shares: Vec::new(),
            names: Vec::new(),
            spent: Vec::new(),
        }
    }

    /// Gives every call of the batch the same error.
    pub(crate) fn answer_all(&mut self, error: &CallError<E>) {
        self.shares.clear();
        for place in self.places.drain(..) {
            deliver(place, Err(error.clone()));
        }
    }
}

/// Gives a call its outcome and wakes its task.
#[inline]
pub(crate) fn deliver<I, O, E>(place: Place<I, O, E>, outcome: Outcome<O, E>) {
    match place.deliver(outcome) {
        Delivered::Stored(Some(waker)) => quietly(|| waker.wake()),
        Delivered::Stored(None) => {}
        Delivered::Unwanted(outcome) => quietly(|| drop(outcome)),
    }
}
