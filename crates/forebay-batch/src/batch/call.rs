//! A call: one item's way through the batcher, as a future.
//!
//! Promises:
//! - It does nothing before its first poll, which puts item and waker in line together.
//! - It ends with exactly one outcome, in whatever order and with whichever wakers it is polled.
//! - Dropped before the dispatch, it takes its item out; dropped later, its outcome is dropped too. No other call is affected.
//! - It keeps what it needs alive, or borrows it.
//!
//! Knows nothing of batches.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::error::{CallError, Rejected};
use super::inbox::Queued;
use super::intake::{Refusal, Todo};
use super::line::{InOrder, Line};
use super::runner::Shared;
use super::slot::{Outcome, Ticket};
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
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::batch::Batcher;
///
/// let echo = Batcher::new(async |words: Vec<&'static str>| Ok::<_, Infallible>(words));
/// let call = echo.call("weir"); // not yet on its way
/// assert_eq!(call.await?, "weir");
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited, and is cancelled when dropped"]
pub struct Call<'a, I, O, E>(Pending<'a, I, O, E, InOrder>);

impl<'a, I, O, E> Call<'a, I, O, E> {
    pub(super) fn new(shared: Handle<'a, I, O, E, InOrder>, item: I, max_wait: Option<Duration>) -> Self {
        Self(Pending::new(shared, item, max_wait))
    }

    pub(super) fn entered(shared: Handle<'a, I, O, E, InOrder>, item: I) -> Result<Self, Rejected<I>> {
        Pending::try_entered(shared, item).map(Self)
    }
}

impl<I, O, E> Future for Call<'_, I, O, E> {
    type Output = Result<O, CallError<E>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<I, O, E> fmt::Debug for Call<'_, I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.stage {
            Stage::New { .. } => "Call(new)",
            Stage::Entered(_) => "Call(entered)",
            Stage::Over => "Call(over)",
        })
    }
}

/// The batcher that a call is made to: a reference count, if it is to be kept, is written by all cores for each call.
pub(crate) enum Handle<'a, I, O, E, L: Line<I, O, E>> {
    Borrowed(&'a Arc<Shared<I, O, E, L>>),
    Owned(Arc<Shared<I, O, E, L>>),
}

impl<I, O, E, L: Line<I, O, E>> Deref for Handle<'_, I, O, E, L> {
    type Target = Arc<Shared<I, O, E, L>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(shared) => shared,
            Self::Owned(shared) => shared,
        }
    }
}

/// A call to any kind of line.
pub(crate) struct Pending<'a, I, O, E, L: Line<I, O, E>> {
    shared: Handle<'a, I, O, E, L>,
    stage: Stage<I, O, E>,
}

enum Stage<I, O, E> {
    New { item: I, max_wait: Option<Duration> },
    Entered(Ticket<I, O, E>),
    Over,
}

// Nothing in here is ever pinned: the item is moved on by value.
impl<I, O, E, L: Line<I, O, E>> Unpin for Pending<'_, I, O, E, L> {}

thread_local!(static THREAD: Cell<usize> = const { Cell::new(usize::MAX) });

/// A number for this thread, by which it finds its inbox. Neighbours have neighbouring numbers.
#[inline]
fn thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let own = THREAD.get();
    if own != usize::MAX {
        return own;
    }
    let own = THREADS.fetch_add(1, Ordering::Relaxed);
    THREAD.set(own);
    own
}

impl<'a, I, O, E, L: Line<I, O, E>> Pending<'a, I, O, E, L> {
    pub(crate) fn new(shared: Handle<'a, I, O, E, L>, item: I, max_wait: Option<Duration>) -> Self {
        Self {
            shared,
            stage: Stage::New { item, max_wait },
        }
    }

    /// A call that is in line before it is first polled, also if that is full.
    pub(crate) fn entered(shared: Handle<'a, I, O, E, L>, item: I) -> Result<Self, I> {
        let queued = weighed(&shared, item, None);
        match shared.intake.enter(thread(), queued, None) {
            Ok((ticket, todo)) => Ok(Self::in_line(shared, ticket, todo)),
            Err((item, _)) => Err(item),
        }
    }

    /// A call that is in line before it is first polled, if that has room.
    pub(crate) fn try_entered(shared: Handle<'a, I, O, E, L>, item: I) -> Result<Self, Rejected<I>> {
        let queued = weighed(&shared, item, None);
        match shared.intake.try_enter(thread(), queued) {
            Ok((ticket, todo)) => Ok(Self::in_line(shared, ticket, todo)),
            Err((Refusal::Full, item)) => Err(Rejected::Overloaded(item)),
            Err((Refusal::Closed, item)) => Err(Rejected::Closed(item)),
        }
    }

    fn in_line(shared: Handle<'a, I, O, E, L>, ticket: Ticket<I, O, E>, todo: Todo) -> Self {
        let call = Self {
            shared,
            stage: Stage::Entered(ticket),
        };
        call.shared.carry_out(todo);
        call
    }

    /// The first poll: item and waker enter together. User code (the weigher, dropping a refused waker) runs before and after
    /// a lock is held.
    #[inline]
    fn enter(&mut self, item: I, max_wait: Option<Duration>, waker: Waker) -> Poll<Outcome<O, E>> {
        let queued = weighed(&self.shared, item, max_wait);
        match self.shared.intake.enter(thread(), queued, Some(waker)) {
            Ok((ticket, todo)) => {
                self.stage = Stage::Entered(ticket);
                if !todo.is_nothing() {
                    self.shared.carry_out(todo);
                }
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(CallError::Closed)),
        }
    }
}

#[inline]
fn weighed<I, O, E, L: Line<I, O, E>>(shared: &Shared<I, O, E, L>, item: I, max_wait: Option<Duration>) -> Queued<I> {
    Queued {
        weight: shared.weigh.as_ref().map_or(0, |weigh| weigh(&item)),
        due: Due::from_now(shared.max_wait, max_wait),
        item,
    }
}

impl<I, O, E, L: Line<I, O, E>> Future for Pending<'_, I, O, E, L> {
    type Output = Outcome<O, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        match &mut call.stage {
            Stage::Entered(ticket) => {
                let polled = ticket.poll(context.waker());
                if polled.is_ready() {
                    call.stage = Stage::Over;
                }
                polled
            }
            Stage::New { .. } => {
                let Stage::New { item, max_wait } = std::mem::replace(&mut call.stage, Stage::Over) else {
                    unreachable!("just seen");
                };
                call.enter(item, max_wait, context.waker().clone())
            }
            Stage::Over => panic!("a call was polled after it had ended"),
        }
    }
}

impl<I, O, E, L: Line<I, O, E>> Drop for Pending<'_, I, O, E, L> {
    fn drop(&mut self) {
        if let Stage::Entered(ticket) = &mut self.stage {
            let (displaced, todo) = self.shared.intake.cancel(ticket);
            self.shared.carry_out(todo);
            drop(displaced);
        }
    }
}
