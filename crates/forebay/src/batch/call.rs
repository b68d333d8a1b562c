//! A call: one item's way through the batcher, as a future.
//!
//! Promises:
//! - It does nothing before its first poll, which puts item and waker in line together.
//! - It ends with exactly one outcome, in whatever order and with whichever wakers it is polled.
//! - Dropped before the dispatch it takes its item out; dropped later, its outcome is dropped too. Nobody else notices.
//!
//! It keeps what it needs alive: calls end also when every `Batcher` handle is gone. Knows nothing of batches.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::error::{CallError, Rejected};
use super::intake::Refusal;
use super::runner::Shared;
use super::slot::{Queued, Ticket};
use super::window::Due;

/// The future of a call's own outcome; see [`Batcher::call`](super::Batcher::call).
///
/// # Cancel safety
///
/// Dropping it cancels the call and no other. Before the item was dispatched it is taken out and dropped; afterwards it is
/// processed and its outcome dropped.
///
/// # Panics
///
/// When polled again after it has ended, as futures may.
#[must_use = "a call does nothing until it is awaited, and is cancelled when dropped"]
pub struct Call<I, O, E> {
    shared: Arc<Shared<I, O, E>>,
    stage: Stage<I, O, E>,
}

enum Stage<I, O, E> {
    New { item: I, max_wait: Option<Duration> },
    Entered(Ticket<I, O, E>),
    Over,
}

// Nothing in here is ever pinned: the item is moved on by value.
impl<I, O, E> Unpin for Call<I, O, E> {}

impl<I, O, E> Call<I, O, E> {
    pub(super) fn new(shared: Arc<Shared<I, O, E>>, item: I, max_wait: Option<Duration>) -> Self {
        Self {
            shared,
            stage: Stage::New { item, max_wait },
        }
    }

    /// A call that is in line before it is first polled.
    pub(super) fn entered(shared: &Arc<Shared<I, O, E>>, item: I) -> Result<Self, Rejected<I>> {
        match enter(shared, item, None, None, true) {
            Ok(ticket) => Ok(Self {
                shared: Arc::clone(shared),
                stage: Stage::Entered(ticket),
            }),
            Err((Refusal::Full, item)) => Err(Rejected::Overloaded(item)),
            Err((Refusal::Closed, item)) => Err(Rejected::Closed(item)),
        }
    }
}

/// Puts an item in line. User code (the weigher, dropping a refused waker) runs before and after the lock is held.
fn enter<I, O, E>(
    shared: &Arc<Shared<I, O, E>>,
    item: I,
    max_wait: Option<Duration>,
    waker: Option<Waker>,
    bounded: bool,
) -> Result<Ticket<I, O, E>, (Refusal, I)> {
    let queued = Queued {
        weight: shared.weigh.as_ref().map_or(0, |weigh| weigh(&item)),
        due: Due::from_now(shared.max_wait, max_wait),
        item,
    };
    match shared.intake.enter(queued, waker, bounded) {
        Ok((ticket, todo)) => {
            shared.carry_out(todo);
            Ok(ticket)
        }
        Err((refusal, item, _waker)) => Err((refusal, item)),
    }
}

impl<I, O, E> Future for Call<I, O, E> {
    type Output = Result<O, CallError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        match &call.stage {
            Stage::Entered(ticket) => {
                let polled = ticket.slot().poll(context.waker());
                if polled.is_ready() {
                    call.stage = Stage::Over;
                }
                polled
            }
            Stage::New { .. } => {
                let Stage::New { item, max_wait } = std::mem::replace(&mut call.stage, Stage::Over) else {
                    unreachable!("just seen");
                };
                let waker = Some(context.waker().clone());
                match enter(&call.shared, item, max_wait, waker, false) {
                    Ok(ticket) => {
                        call.stage = Stage::Entered(ticket);
                        Poll::Pending
                    }
                    // Unbounded, so it was not refused for want of room.
                    Err(_) => Poll::Ready(Err(CallError::Closed)),
                }
            }
            Stage::Over => panic!("a call was polled after it had ended"),
        }
    }
}

impl<I, O, E> Drop for Call<I, O, E> {
    fn drop(&mut self) {
        if let Stage::Entered(ticket) = &self.stage {
            let (displaced, todo) = self.shared.intake.cancel(ticket);
            self.shared.carry_out(todo);
            drop(displaced);
        }
    }
}

impl<I, O, E> fmt::Debug for Call<I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::New { .. } => "Call(new)",
            Stage::Entered(_) => "Call(entered)",
            Stage::Over => "Call(over)",
        })
    }
}
