//! A slot: the place where one call and the batch that serves it meet.
//!
//! Promises:
//! - An outcome is stored before the caller's waker is handed out to be woken, and a waker is stored only where no outcome
//!   is yet, under the same lock: no wake-up is lost, however often and with whichever wakers the caller polls.
//! - Exactly one outcome is consumed for an item that was dispatched, none for one that was cancelled before.
//! - Nothing of the user's (item, outcome, waker) is dropped or run under the lock: what is displaced is returned.
//!
//! Slots come in chunks, one allocation for up to [`CHUNK_SLOTS`] calls, so that a call itself allocates nothing. Knows
//! nothing of the queue's order or limits.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::error::CallError;
use super::sync::Mutex;
use super::window::Due;

/// What a call ends with.
pub(super) type Outcome<O, E> = Result<O, CallError<E>>;

/// Most slots in a chunk. One call that stays for long keeps its whole chunk in memory, hence not more.
#[cfg(not(forebay_loom))]
const CHUNK_SLOTS: usize = 64;
/// Small in the model, so that chunk borders are crossed and few objects are tracked.
#[cfg(forebay_loom)]
const CHUNK_SLOTS: usize = 2;

/// Most bytes in a chunk, so that callers with huge outcomes do not pay for 64 of them at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// An item that waits in the queue.
pub(super) struct Queued<I> {
    pub(super) item: I,
    pub(super) weight: usize,
    pub(super) due: Due,
}

enum State<I, O, E> {
    /// Not used yet.
    Free,
    /// In the queue, or in a batch whose items are just being collected.
    Queued(Queued<I>, Option<Waker>),
    /// The processor has the item.
    Running(Option<Waker>),
    /// The processor has the item and the call is gone.
    Abandoned,
    /// The outcome waits for its caller.
    Done(Outcome<O, E>),
    /// The caller has its outcome, or left before the item was dispatched.
    Over,
}

/// What a state change pushed out: user values, to be dropped where no lock is held.
#[must_use = "to be dropped outside any lock"]
pub(super) struct Displaced<I, O, E>(#[allow(dead_code, reason = "held for its drop")] State<I, O, E>);

/// What became of an outcome offered to a slot.
pub(super) enum Completed<O, E> {
    /// The slot is not part of the batch: the outcome was not asked for.
    Skipped,
    /// Stored; the caller is to be woken, if it has polled at all.
    Stored(Option<Waker>),
    /// The call is gone: to be dropped outside any lock.
    Unwanted(Outcome<O, E>),
}

pub(super) struct Slot<I, O, E>(Mutex<State<I, O, E>>);

impl<I, O, E> Slot<I, O, E> {
    fn free() -> Self {
        Self(Mutex::new(State::Free))
    }

    /// Puts an item in. The slot must be free.
    pub(super) fn fill(&self, queued: Queued<I>, waker: Option<Waker>) {
        let mut state = self.0.lock();
        debug_assert!(matches!(*state, State::Free), "a slot is used once");
        *state = State::Queued(queued, waker);
    }

    /// Weight and due time of the item that waits here, if one does.
    pub(super) fn queued(&self) -> Option<(usize, Due)> {
        match &*self.0.lock() {
            State::Queued(queued, _) => Some((queued.weight, queued.due)),
            _ => None,
        }
    }

    /// Takes the item for the processor; `None` when its call was cancelled before.
    pub(super) fn dispatch(&self) -> Option<I> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Queued(queued, waker) => {
                *state = State::Running(waker);
                Some(queued.item)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Stores the outcome of a dispatched item. `outcome` is called once at most, under the lock: it must only move or count.
    pub(super) fn complete(&self, outcome: impl FnOnce() -> Outcome<O, E>) -> Completed<O, E> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Running(waker) => {
                *state = State::Done(outcome());
                Completed::Stored(waker)
            }
            State::Abandoned => Completed::Unwanted(outcome()),
            other => {
                *state = other;
                Completed::Skipped
            }
        }
    }

    /// The caller looks for its outcome and leaves its waker where there is none yet.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Outcome<O, E>> {
        // A waker's clone and drop are the executor's code: both happen outside the lock, hence the second look.
        let mut spare = None;
        loop {
            let mut state = self.0.lock();
            match &mut *state {
                State::Done(_) => {
                    let State::Done(outcome) = std::mem::replace(&mut *state, State::Over) else {
                        unreachable!("just seen, under the same lock");
                    };
                    return Poll::Ready(outcome);
                }
                State::Queued(_, kept) | State::Running(kept) => {
                    if kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
                        return Poll::Pending;
                    }
                    if spare.is_some() {
                        std::mem::swap(kept, &mut spare);
                        drop(state);
                        return Poll::Pending;
                    }
                }
                State::Free | State::Abandoned | State::Over => {
                    unreachable!("only a call that holds a ticket and has no outcome yet polls its slot")
                }
            }
            drop(state);
            spare = Some(waker.clone());
        }
    }

    /// The call leaves. Says whether the item was still here, hence never reaches the processor.
    pub(super) fn leave(&self) -> (bool, Displaced<I, O, E>) {
        let mut state = self.0.lock();
        let next = match &*state {
            State::Running(_) => State::Abandoned,
            _ => State::Over,
        };
        let displaced = std::mem::replace(&mut *state, next);
        (matches!(displaced, State::Queued(..)), Displaced(displaced))
    }
}

/// Slots that share an allocation, used in order and each once.
pub(super) struct Chunk<I, O, E> {
    /// Grows by one from chunk to chunk of one queue.
    pub(super) number: u64,
    pub(super) slots: Box<[Slot<I, O, E>]>,
}

impl<I, O, E> Chunk<I, O, E> {
    /// An unused chunk; its number is given when it joins the line.
    pub(super) fn new() -> Arc<Self> {
        let fitting = CHUNK_BYTES / size_of::<Slot<I, O, E>>();
        let slots = fitting.clamp(1, CHUNK_SLOTS);
        Arc::new(Self {
            number: 0,
            slots: (0..slots).map(|_| Slot::free()).collect(),
        })
    }
}

/// A call's claim on its slot.
pub(super) struct Ticket<I, O, E> {
    pub(super) chunk: Arc<Chunk<I, O, E>>,
    pub(super) index: usize,
}

impl<I, O, E> Ticket<I, O, E> {
    pub(super) fn slot(&self) -> &Slot<I, O, E> {
        &self.chunk.slots[self.index]
    }
}
