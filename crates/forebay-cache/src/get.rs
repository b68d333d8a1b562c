//! A get as a future: its first poll looks into memory, and is usually its last.
//!
//! Promises: a hit allocates nothing (unless it is sampled for the hot keys), and the future is small enough to be inlined into
//! its caller; a miss keeps its state on the heap. Dropping the future leaves the flight.

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::answer::Answer;
use super::core::Core;
use super::error::CacheError;
use forebay_batch::load::Key;

/// A get on its way; what [`Cache::get`](super::Cache::get) returns.
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::Cache;
/// use futures_util::future::try_join_all;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = Cache::new(|n: u64| async move { Ok::<_, Infallible>((n < 100).then_some(n * n)) });
/// drop(squares.get(&12)); // Not awaited, so nothing was asked.
/// assert_eq!(squares.stats().misses, 0);
///
/// let keys = [3, 4, 4];
/// let values = try_join_all(keys.iter().map(|key| squares.get(key))).await?;
/// assert_eq!(values, [Some(9), Some(16), Some(16)]);
/// assert_eq!(squares.stats().fetches, 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "a get does nothing until it is awaited"]
pub struct Get<'a, K, V, E, Q: ?Sized> {
    core: &'a Arc<Core<K, V, E>>,
    key: &'a Q,
    /// From when on memory could not answer.
    obtaining: Option<BoxFuture<'static, Result<Answer<V>, CacheError<E>>>>,
}

impl<'a, K, V, E, Q: ?Sized> Get<'a, K, V, E, Q> {
    #[inline]
    pub(super) fn new(core: &'a Arc<Core<K, V, E>>, key: &'a Q) -> Self {
        Self {
            core,
            key,
            obtaining: None,
        }
    }
}

impl<K, V, E, Q> Future for Get<'_, K, V, E, Q>
where
    K: Key + Borrow<Q>,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    type Output = Result<Option<V>, CacheError<E>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.obtaining.is_none() {
            let (core, key) = (self.core, self.key);
            let hash = core.store.hash(key);
            if let Some((value, state)) = core.glance(hash, key, |record, state, _| (record.value().cloned(), state)) {
                core.hit(key, state);
                return Poll::Ready(Ok(value));
            }
            self.obtain(hash);
        }
        self.obtained(context)
    }
}

impl<K, V, E, Q> Get<'_, K, V, E, Q>
where
    K: Key + Borrow<Q>,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    #[cold]
    fn obtain(&mut self, hash: u64) {
        let core = self.core;
        core.used(self.key);
        self.obtaining = Some(Box::pin(Arc::clone(core).obtain(hash, self.key.to_owned())));
    }

    #[cold]
    fn obtained(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<V>, CacheError<E>>> {
        let obtaining = self.obtaining.as_mut().expect("it was begun before it is waited for");
        let outcome = std::task::ready!(obtaining.as_mut().poll(context));
        Poll::Ready(outcome.map(|answer| answer.value))
    }
}

impl<K, V, E, Q: ?Sized> fmt::Debug for Get<'_, K, V, E, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").finish_non_exhaustive()
    }
}
