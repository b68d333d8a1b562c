//! Batcher: many callers, one async call, each caller its own outcome.
//!
//! Promises:
//! - When n calls are pending together, exactly ⌈n / max_items⌉ batches run, whichever threads the callers are on.
//! - An idle processor is called at once; callers gather while it is busy. A call waits for company only where a window was
//!   asked for, and never for longer than that.
//! - Every accepted call ends with exactly one outcome, its own: also when the processor panics or returns too few or too
//!   many outcomes, when the batcher is drained, when neighbours are cancelled, when the runtime shuts down.
//! - Items enter batches in arrival order; with `max_in_flight = 1` batches run in order.
//! - Memory follows the live calls. A call allocates nothing of its own, and no lock is held while user code runs.
//!
//! Does not know keys, SQL or caches.
//!
//! How it is built: a [`Call`] puts its item and waker into a `slot` of its core's `inbox`. Unless the inbox is on watch, that is
//! all; otherwise it tells the `intake`, the centre, which starts a `runner` if none is on its way. The runner's task collects
//! the inboxes into the `line`, cuts a batch off its front, hands it to the processor and answers its slots (`dispatch`). What is
//! `pub(crate)` is for the Loader, which brings a line of its own.

mod alone;
mod builder;
pub(crate) mod call;
pub(crate) mod dispatch;
mod error;
mod inbox;
pub(crate) mod intake;
pub(crate) mod line;
pub(crate) mod runner;
pub(crate) mod slot;
mod stats;
mod sync;
pub(crate) mod window;

#[cfg(all(test, forebay_loom))]
mod model;
#[cfg(all(test, not(forebay_loom)))]
mod user_code;

pub use alone::Alone;
pub use builder::BatcherBuilder;
pub use call::Call;
pub use error::{CallError, Rejected};
pub use stats::Stats;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use call::Handle;
use runner::Shared;

/// Lets concurrent callers share one async call, each getting its own outcome.
///
/// The processor gets the items of a batch in arrival order and answers with exactly one outcome per item, in that order. It
/// may fail a batch as a whole with `E`; an error of one item is an outcome like any other (`O = Result<…>`).
///
/// ```
/// use std::convert::Infallible;
/// use forebay::batch::Batcher;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // One query for many callers. A real one would ask a database.
/// let squares = Batcher::new(|numbers: Vec<u64>| async move {
///     Ok::<_, Infallible>(numbers.into_iter().map(|number| number * number).collect())
/// });
///
/// let (three, four) = tokio::join!(squares.call(3), squares.call(4));
/// assert_eq!(three.unwrap(), 9);
/// assert_eq!(four.unwrap(), 16);
/// assert_eq!(squares.stats().batches, 1);
/// # }
/// ```
///
/// An idle batcher sends a call's item at once; items that arrive while `max_in_flight` batches run gather for the next.
/// With a window (`max_wait`) a batch that is not full waits for more, up to that long after its first item.
///
/// Batches run in tasks of their own, so that cancelling a call never harms another. Clones are handles to the same batcher.
/// When all handles are gone, pending calls still end.
///
/// A processor that awaits a call to its own batcher needs `max_in_flight` of at least 2, and more the deeper it nests:
/// otherwise it waits for a slot that it holds itself.
///
/// # Cost
///
/// A call takes its inbox's lock once, for which other cores do not contend, and writes one counter that all share; it allocates
/// nothing. A batch costs the vectors of its items and callers, a look at each inbox, and now and then a task and a chunk of slots.
pub struct Batcher<I, O, E = Infallible> {
    shared: Arc<Shared<I, O, E>>,
}

impl<I, O, E> Batcher<I, O, E>
where
    I: Send + 'static,
    O: Send + 'static,
    E: Send + Sync + 'static,
{
    /// The item's own outcome, shared work. Enters the queue when first polled, and waits its turn when `max_queued` items
    /// are in it already.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call before its item was dispatched takes the item out; later, the item is processed and its outcome
    /// dropped. No other caller is affected.
    pub fn call(&self, item: I) -> Call<'_, I, O, E> {
        Call::new(Handle::Borrowed(&self.shared), item, None)
    }

    /// Like [`call`](Self::call), with a window of its own in place of the batcher's: the item's batch goes after `max_wait`
    /// at the latest, if a slot is free; with zero it does not wait for others. The batch goes earlier when another item of it
    /// is due earlier, so nobody waits for a neighbour's longer window.
    pub fn call_within(&self, item: I, max_wait: Duration) -> Call<'_, I, O, E> {
        Call::new(Handle::Borrowed(&self.shared), item, Some(max_wait))
    }

    /// Like [`call`](Self::call), as a future that keeps the batcher itself, so that it can be kept or spawned by itself. Costs
    /// a reference count, which all cores share, more than `call`.
    pub fn call_owned(&self, item: I) -> Call<'static, I, O, E> {
        Call::new(Handle::Owned(Arc::clone(&self.shared)), item, None)
    }

    /// Like [`call_within`](Self::call_within), as a future that keeps the batcher itself.
    pub fn call_within_owned(&self, item: I, max_wait: Duration) -> Call<'static, I, O, E> {
        Call::new(Handle::Owned(Arc::clone(&self.shared)), item, Some(max_wait))
    }

    /// Puts the item in the queue at once, or hands it back: [`Overloaded`](Rejected::Overloaded) when `max_queued` items
    /// wait, [`Closed`](Rejected::Closed) after [`drain`](Self::drain).
    ///
    /// Cancelled when dropped, as every call; in the queue, and processed, also while it is not polled.
    pub fn try_call(&self, item: I) -> Result<Call<'_, I, O, E>, Rejected<I>> {
        Call::entered(Handle::Borrowed(&self.shared), item)
    }

    /// Like [`try_call`](Self::try_call), as a future that keeps the batcher itself.
    pub fn try_call_owned(&self, item: I) -> Result<Call<'static, I, O, E>, Rejected<I>> {
        Call::entered(Handle::Owned(Arc::clone(&self.shared)), item)
    }

    /// Leave to process one item here and now, without the processor: if no item waits, no batch runs, and calls have long come one by
    /// one. None otherwise, and after [`drain`](Self::drain). What arrives until [`Alone`] is dropped waits, as for a batch.
    pub fn alone(&self) -> Option<Alone<'_, I, O, E>> {
        Alone::of(&self.shared)
    }

    /// Stops the intake, sends what is in the queue without waiting for its window, and waits until all of it is answered.
    /// Calls that enter later get [`CallError::Closed`]. Called again, or by several at once, all wait for the same.
    ///
    /// # Cancel safety
    ///
    /// From the first poll on the intake is stopped and the queue is run, also when this future is dropped.
    pub async fn drain(&self) {
        self.shared.drain().await;
    }

    /// A reading of the counters. Takes the intake's lock for a moment.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.intake.stats()
    }
}

impl<I, O, E> Clone for Batcher<I, O, E> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<I, O, E> fmt::Debug for Batcher<I, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher")
            .field("stats", &self.shared.intake.stats())
            .finish_non_exhaustive()
    }
}
