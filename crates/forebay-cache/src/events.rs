//! What happens in a cache, told to who listens.
//!
//! Promises: where nobody listens, a hit costs one look at a word that seldom changes, and nothing is built. A listener who is slow delays
//! nobody: it loses the oldest events, and is told how many. No event is told while a lock is held.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::answer::State;
use forebay_batch::panics::quietly;

/// Most events that wait for a listener.
const WAITING_MAX: usize = 4_096;

/// Something that happened; see [`Cache::events`](super::Cache::events).
///
/// ```
/// use forebay::cache::{Event, State};
///
/// fn tells<K: std::fmt::Debug>(event: &Event<K>) -> Option<String> {
///     match event {
///         Event::Failed { key } => Some(format!("{key:?} was not fetched")),
///         Event::Lost { events } => Some(format!("{events} events were lost")),
///         _ => None,
///     }
/// }
///
/// assert_eq!(tells(&Event::Failed { key: 12 }).unwrap(), "12 was not fetched");
/// assert_eq!(tells(&Event::Hit { key: 12, state: State::Fresh }), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<K> {
    /// A lookup was answered from memory.
    Hit {
        /// Of this key.
        key: K,
        /// By an entry in this state.
        state: State,
    },
    /// A lookup was not answered from memory.
    Missed {
        /// Of this key.
        key: K,
        /// Memory has an entry that may not be served any more.
        expired: bool,
        /// It waits for a flight that was in the air.
        joined: bool,
    },
    /// A flight brought a value, or that there is none.
    Fetched {
        /// For this key.
        key: K,
        /// There is none.
        missing: bool,
        /// A tier had it.
        by_tier: bool,
        /// It was kept: nobody wrote meanwhile.
        kept: bool,
    },
    /// A flight failed.
    Failed {
        /// For this key.
        key: K,
    },
    /// An entry made room for others.
    Evicted {
        /// Of this key.
        key: K,
    },
    /// The application, here or in another process, gave the key's value or invalidated it.
    Changed {
        /// This key.
        key: K,
        /// It was another process.
        elsewhere: bool,
    },
    /// The key was marked stale.
    MarkedStale {
        /// This key.
        key: K,
        /// By another process.
        elsewhere: bool,
    },
    /// A tag was invalidated.
    TagInvalidated {
        /// This tag.
        tag: Arc<str>,
        /// By another process.
        elsewhere: bool,
    },
    /// All keys were invalidated.
    Cleared {
        /// By another process.
        elsewhere: bool,
    },
    /// So many events happened faster than they were listened to.
    Lost {
        /// So many.
        events: u64,
    },
}

/// A listener's events, in their order; see [`Cache::events`](super::Cache::events).
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::{Cache, Event, Events};
///
/// async fn evictions(mut events: Events<u64>) -> u64 {
///     let mut evicted = 0;
///     while let Some(event) = events.next().await {
///         evicted += u64::from(matches!(event, Event::Evicted { .. }));
///     }
///     evicted // The cache is gone.
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) }).capacity(1).build();
/// let counting = tokio::spawn(evictions(squares.events()));
/// for n in 0..3 {
///     squares.get(&n).await.unwrap();
/// }
/// drop(squares);
/// assert_eq!(counting.await.unwrap(), 2);
/// # }
/// ```
pub struct Events<K> {
    events: broadcast::Receiver<Event<K>>,
    listeners: Arc<AtomicUsize>,
}

impl<K: Clone> Events<K> {
    /// The next one; `None` when the cache is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has taken none.
    pub async fn next(&mut self) -> Option<Event<K>> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(events)) => Some(Event::Lost { events }),
            Err(RecvError::Closed) => None,
        }
    }
}

impl<K> Drop for Events<K> {
    fn drop(&mut self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<K> fmt::Debug for Events<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

/// Where events are told.
pub(super) struct Teller<K> {
    listeners: Arc<AtomicUsize>,
    sender: OnceLock<broadcast::Sender<Event<K>>>,
}

impl<K: Clone> Teller<K> {
    pub(super) fn new() -> Self {
        Self {
            listeners: Arc::default(),
            sender: OnceLock::new(),
        }
    }

    pub(super) fn listen(&self) -> Events<K> {
        let sender = self.sender.get_or_init(|| broadcast::Sender::new(WAITING_MAX));
        let events = sender.subscribe();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        Events {
            events,
            listeners: Arc::clone(&self.listeners),
        }
    }
}

impl<K> Teller<K> {
    /// Whether anybody listens.
    #[inline]
    pub(super) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Tells it, if anybody listens. A panic of the key's clone is not for who did what is told.
    #[inline]
    pub(super) fn tell(&self, event: impl FnOnce() -> Event<K>)
    where
        K: Clone,
    {
        if self.is_heard() {
            self.tell_all(event);
        }
    }

    #[cold]
    fn tell_all(&self, event: impl FnOnce() -> Event<K>)
    where
        K: Clone,
    {
        if let Some(sender) = self.sender.get() {
            // Without a listener, who has just gone, it is nobody's.
            quietly(|| drop(sender.send(event())));
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    /// Else what comes behind it is not done: other processes would not be told, say.
    #[test]
    fn a_panic_of_what_is_told_is_not_for_who_tells_it() {
        let teller = Teller::new();
        let mut events = teller.listen();
        teller.tell(|| panic!("a key's clone"));
        teller.tell(|| Event::Failed { key: 1 });
        assert_eq!(events.events.try_recv(), Ok(Event::Failed { key: 1 }));
    }
}
