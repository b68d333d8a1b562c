//! A load: one caller's share in the fetch of a key, as a future.
//!
//! Promises:
//! - Made by `load` it does nothing before its first poll; made by `register` it is in line already.
//! - It ends with exactly one outcome, in whatever order and with whichever wakers it is polled.
//! - Dropped, it is cancelled, and no other load is affected: a key that others want is fetched all the same.
//!
//! Knows nothing of batches and fetches.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::engine::{Outcome, Ticket};
use super::error::LoadError;

/// The future of a load's own outcome; see [`Loader::load`](super::Loader::load) and
/// [`register`](super::Loader::register).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
///
/// use forebay::load::Loader;
///
/// let same = Loader::new(async |keys: Vec<u32>| Ok::<_, Infallible>(keys.into_iter().map(Some).collect::<Vec<_>>()));
/// let (one, two, three) = (same.register(1), same.register(2), same.register(3)); // all are in line
/// drop(three); // nobody else wants it
/// let elsewhere = tokio::spawn(two);
/// assert_eq!((one.await?, elsewhere.await??), (Some(1), Some(2)));
/// assert_eq!((same.stats().fetches, same.stats().keys_fetched), (1, 2));
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
///
/// Dropping it cancels this load and no other. A key that nobody else wants is not fetched, unless its fetch has begun.
///
/// # Panics
///
/// When polled again after it has ended, as futures may.
#[must_use = "a load is cancelled when dropped"]
pub struct Load<'a, K, V, E> {
    stage: Stage<'a, K, V, E>,
}

enum Stage<'a, K, V, E> {
    OnItsWay(Ticket<'a, K, V, E>),
    /// It could not enter.
    Failed(LoadError<E>),
    Over,
}

// Nothing in here is ever pinned: the key is moved on by value.
impl<K, V, E> Unpin for Load<'_, K, V, E> {}

impl<'a, K, V, E> Load<'a, K, V, E> {
    #[inline]
    pub(super) fn new(ticket: Result<Ticket<'a, K, V, E>, LoadError<E>>) -> Self {
        Self {
            stage: ticket.map_or_else(Stage::Failed, Stage::OnItsWay),
        }
    }
}

impl<K, V, E> Future for Load<'_, K, V, E> {
    type Output = Outcome<V, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let load = self.get_mut();
        let polled = match &mut load.stage {
            Stage::OnItsWay(ticket) => ticket.poll(context),
            Stage::Failed(error) => Poll::Ready(Err(error.clone())),
            Stage::Over => panic!("a load was polled after it had ended"),
        };
        if polled.is_ready() {
            load.stage = Stage::Over;
        }
        polled
    }
}

impl<K, V, E> fmt::Debug for Load<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::OnItsWay(_) => "Load(on its way)",
            Stage::Failed(_) => "Load(failed)",
            Stage::Over => "Load(over)",
        })
    }
}
