//! Errors of the batcher, told apart by what the caller should do.
//!
//! Promises: `E` need not be `Clone`, `Error` or even `Debug` for a batcher to work; one failure of a batch is shared, not
//! copied. Knows nothing of what the items are.
//!
//! `Display` and `Error` are written out instead of derived: a derive would ask `E: Error` of every user and hide `E` behind `Arc<E>` as
//! the source.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use derive_where::derive_where;

/// Why a call has no outcome from the processor.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use forebay::batch::{Batcher, CallError};
///
/// let down = Batcher::<u32, u32, _>::new(async |_: Vec<u32>| Err("down"));
/// match down.call(1).await {
///     Err(CallError::Failed(error)) => assert_eq!(*error, "down"), // shared by the whole batch
///     other => unreachable!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[derive_where(Clone)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The processor failed the whole batch. The error is the processor's own, shared by every caller of that batch.
    Failed(Arc<E>),
    /// The processor panicked; this is the panic's message. Whether the item took effect is not known.
    Panicked(Arc<str>),
    /// The processor broke its contract: it must return one outcome per item. A bug in the processor; whether the item took
    /// effect is not known.
    WrongCount {
        /// How many items the processor was given.
        expected: usize,
        /// How many outcomes it returned.
        returned: usize,
    },
    /// The batcher was drained before this call entered. The item was not processed.
    Closed,
    /// No tokio runtime ran the batch to its end: the runtime has shut down, or the call was polled outside of one and the
    /// batcher has none of its own (`BatcherBuilder::runtime`). Whether the item took effect is not known.
    Stopped,
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the batch failed: {error}"),
            Self::Panicked(message) => write!(f, "the processor panicked: {message}"),
            Self::WrongCount { expected, returned } => write!(
                f,
                "the processor returned {returned} outcomes for {expected} items; it must return one an item"
            ),
            Self::Closed => f.write_str("the batcher is closed: the item was not processed"),
            Self::Stopped => {
                f.write_str("no tokio runtime ran the batch to its end: it has shut down, or there was none")
            }
        }
    }
}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Why `try_call` did not take an item, with the item, which `Debug` leaves out: `I` need not have it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::batch::{Batcher, Rejected};
///
/// let echo = Batcher::new(async |items: Vec<u32>| Ok::<_, Infallible>(items));
/// echo.drain().await;
/// assert!(matches!(echo.try_call(7), Err(Rejected::Closed(7))));
/// # Ok(())
/// # }
/// ```
#[derive_where(Debug)]
#[non_exhaustive]
pub enum Rejected<I> {
    /// `max_queued` items wait already. Try again later, or use `call`, which waits its turn.
    Overloaded(#[derive_where(skip(Debug))] I),
    /// The batcher was drained: it takes no more items.
    Closed(#[derive_where(skip(Debug))] I),
}

impl<I> Rejected<I> {
    /// The item that was not taken.
    pub fn into_item(self) -> I {
        match self {
            Self::Overloaded(item) | Self::Closed(item) => item,
        }
    }
}

impl<I> fmt::Display for Rejected<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded(_) => "the batcher's queue is full: try again later",
            Self::Closed(_) => "the batcher is closed",
        })
    }
}

impl<I> Error for Rejected<I> {}
