//! A load: one caller's share in the fetch of a key, as a future.
//!
//! Promises:
//! - Made by `load` it does nothing before its first poll; made by `register` it is in line already.
//! - It ends with exactly one outcome, in whatever order and with whichever wakers it is polled.
//! - Dropped, it is cancelled, and nobody else notices: a key that others want is fetched all the same.
//!
//! Knows nothing of batches and fetches.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Key;
use super::engine::{Engine, Outcome, Ticket};

/// The future of a load's own outcome; see [`Loader::load`](super::Loader::load) and
/// [`register`](super::Loader::register).
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
    New { engine: &'a Engine<K, V, E>, key: K },
    Entered(Ticket<K, V, E>),
    Over,
}

// Nothing in here is ever pinned: the key is moved on by value.
impl<K, V, E> Unpin for Load<'_, K, V, E> {}

impl<'a, K, V, E> Load<'a, K, V, E> {
    pub(super) fn new(engine: &'a Engine<K, V, E>, key: K) -> Self {
        Self {
            stage: Stage::New { engine, key },
        }
    }
}

impl<K, V, E> Load<'static, K, V, E> {
    pub(super) fn entered(ticket: Ticket<K, V, E>) -> Self {
        Self {
            stage: Stage::Entered(ticket),
        }
    }
}

impl<K, V, E> Future for Load<'_, K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    type Output = Outcome<V, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let load = self.get_mut();
        loop {
            match &mut load.stage {
                Stage::Entered(ticket) => {
                    let polled = ticket.poll(context);
                    if polled.is_ready() {
                        load.stage = Stage::Over;
                    }
                    return polled;
                }
                Stage::New { .. } => {
                    let Stage::New { engine, key } = std::mem::replace(&mut load.stage, Stage::Over) else {
                        unreachable!("just seen");
                    };
                    load.stage = Stage::Entered(engine.enter(key));
                }
                Stage::Over => panic!("a load was polled after it had ended"),
            }
        }
    }
}

impl<K, V, E> fmt::Debug for Load<'_, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::New { .. } => "Load(new)",
            Stage::Entered(_) => "Load(entered)",
            Stage::Over => "Load(over)",
        })
    }
}
