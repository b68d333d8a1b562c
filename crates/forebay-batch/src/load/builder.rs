//! How a loader is made: its limits are chosen first.
//!
//! Promises: every limit has a default and is at least one; one that could let nothing through is refused where it is set.
//! Knows nothing of how limits are kept.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::Loader;
use super::answer::Answer;
use super::engine::{Engine, Limits};
use super::fetch::ask;
use super::key::Key;

impl<K, V, E> Loader<K, V, E> {
    /// Chooses limits; [`LoaderBuilder::build`] makes the loader.
    ///
    /// ```
    /// use std::{convert::Infallible, time::Duration};
    /// use forebay::load::Loader;
    ///
    /// let halves = Loader::builder()
    ///     .max_items(100)
    ///     .max_in_flight(4)
    ///     .fetch_timeout(Duration::from_secs(2))
    ///     .build(|numbers: Vec<u64>| async move {
    ///         // A list, in the order of the keys.
    ///         Ok::<_, Infallible>(numbers.iter().map(|n| (n % 2 == 0).then_some(n / 2)).collect::<Vec<_>>())
    ///     });
    /// # drop(halves);
    /// ```
    pub fn builder() -> LoaderBuilder<K, V, E> {
        LoaderBuilder::new()
    }
}

impl<K, V, E> Loader<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A loader with the default limits; see [`LoaderBuilder`] for each.
    pub fn new<A, F, Fut>(fetch: F) -> Self
    where
        A: Answer<K, E, Value = V> + Send + 'static,
        F: Fn(Vec<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, E>> + Send + 'static,
    {
        LoaderBuilder::new().build(fetch)
    }
}

/// Chooses a loader's limits; see [`Loader::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::convert::Infallible;
/// use std::time::Duration;
///
/// use forebay::load::Loader;
///
/// let lengths = Loader::<&'static str, usize, Infallible>::builder()
///     .max_items(100)
///     .fetch_timeout(Duration::from_secs(1))
///     .build(async |words: Vec<&'static str>| Ok(words.into_iter().map(|word| Some(word.len())).collect::<Vec<_>>()));
/// assert_eq!(lengths.load("weir").await?, Some(4));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct LoaderBuilder<K, V, E> {
    max_items: usize,
    max_wait: Duration,
    max_in_flight: usize,
    max_queued: usize,
    max_remembered: usize,
    fetch_timeout: Option<Duration>,
    runtime: Option<Handle>,
    /// So that `Loader::builder()` needs no annotations: `build` says what is loaded.
    loads: PhantomData<fn(K) -> (V, E)>,
}

impl<K, V, E> LoaderBuilder<K, V, E> {
    fn new() -> Self {
        Self {
            max_items: 1024,
            max_wait: Duration::ZERO,
            max_in_flight: 1,
            max_queued: 65_536,
            max_remembered: 65_536,
            fetch_timeout: None,
            runtime: None,
            loads: PhantomData,
        }
    }

    /// Most keys that a fetch is given; duplicates do not count, for they are fetched once. Default: 1024.
    ///
    /// # Panics
    ///
    /// When it is 0: no fetch could take a key.
    #[track_caller]
    pub fn max_items(mut self, max_items: usize) -> Self {
        assert!(
            max_items > 0,
            "max_items must be at least 1: a fetch of 0 keys brings nothing"
        );
        self.max_items = max_items;
        self
    }

    /// The window: how long a fetch that is not full may wait for more keys, counted from its first key's arrival and never
    /// extended. Default: zero, no window: what has gathered is fetched as soon as fewer than `max_in_flight` fetches run.
    ///
    /// Tokio's timer counts in milliseconds and rounds up, and must be enabled in the runtime.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Most fetches that run at the same time. Default: 1, which shares the most: keys gather while it runs. More is better
    /// where a fetch is slow and the source does several at once (a server behind a pool of connections).
    ///
    /// Loads made inside a fetch, of this loader or another, run beyond it: who waits for them may hold the last slot.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be fetched.
    #[track_caller]
    pub fn max_in_flight(mut self, max_in_flight: usize) -> Self {
        assert!(
            max_in_flight > 0,
            "max_in_flight must be at least 1: otherwise nothing is fetched"
        );
        self.max_in_flight = max_in_flight;
        self
    }

    /// Most keys in line. When it is full `load` and `register` wait their turn and `try_register` answers `Overloaded`.
    /// Default: 65,536.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could enter.
    #[track_caller]
    pub fn max_queued(mut self, max_queued: usize) -> Self {
        assert!(
            max_queued > 0,
            "max_queued must be at least 1: otherwise nothing enters"
        );
        self.max_queued = max_queued;
        self
    }

    /// Most keys that one scope remembers; those over it are loaded each time they are asked for. Default: 65,536.
    pub fn max_remembered(mut self, max_remembered: usize) -> Self {
        self.max_remembered = max_remembered;
        self
    }

    /// How long a fetch may run. Then it is dropped, and its callers get [`TimedOut`](super::LoadError::TimedOut). Default: no
    /// limit. Needs a runtime with time enabled.
    pub fn fetch_timeout(mut self, fetch_timeout: Duration) -> Self {
        self.fetch_timeout = Some(fetch_timeout);
        self
    }

    /// The runtime that fetches run in. Default: the one that the load which starts them is polled in. Name one where
    /// callers live in several runtimes, so that none of them depends on another's being driven.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the loader. `fetch` gets keys that are all different, in the order of their arrival, and answers in one of the
    /// shapes of [`Answer`].
    pub fn build<A, F, Fut>(self, fetch: F) -> Loader<K, V, E>
    where
        K: Key,
        V: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
        A: Answer<K, E, Value = V> + Send + 'static,
        F: Fn(Vec<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, E>> + Send + 'static,
    {
        let limits = Limits {
            max_items: self.max_items,
            max_wait: self.max_wait,
            max_in_flight: self.max_in_flight,
            max_queued: self.max_queued,
            runtime: self.runtime,
        };
        let fetch = Arc::new(fetch);
        let timeout = self.fetch_timeout;
        let engine = Engine::new(limits, move |keys| {
            let fetch = Arc::clone(&fetch);
            async move { ask(&*fetch, keys, timeout).await }
        });
        Loader {
            engine,
            max_remembered: self.max_remembered,
        }
    }
}

impl<K, V, E> fmt::Debug for LoaderBuilder<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderBuilder")
            .field("max_items", &self.max_items)
            .field("max_wait", &self.max_wait)
            .field("max_in_flight", &self.max_in_flight)
            .field("max_queued", &self.max_queued)
            .field("max_remembered", &self.max_remembered)
            .field("fetch_timeout", &self.fetch_timeout)
            .finish_non_exhaustive()
    }
}
