//! Where a cache fetches from: an async function of a key, a [`Loader`], another [`Cache`](super::Cache).
//!
//! Promises: a source is asked for a key by one flight at a time (or as many as the cache was told), in a task of the cache's.
//! Knows nothing of how answers are kept.

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;

use forebay_batch::load::{Key, LoadError, Loader};

/// What a source answered for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched<V> {
    /// The value, or that there is none.
    pub value: Option<V>,
    /// How old the value was when the source gave it: zero, unless the source is itself a cache.
    pub age: Duration,
}

impl<V> From<Option<V>> for Fetched<V> {
    fn from(value: Option<V>) -> Self {
        Self {
            value,
            age: Duration::ZERO,
        }
    }
}

/// What a cache fetches from when it has nothing fresh.
///
/// Implemented for async functions `Fn(K) -> Result<Option<V>, E>`, for [`Loader`], which gathers the keys that many flights
/// want at about the same time into few fetches, and for [`Cache`](super::Cache).
///
/// A caller of a source (the cache) guarantees: it asks again only after the answer before it, or after `invalidate`.
/// An implementation must: answer from data no older than its call, but for an age that it tells.
pub trait Source<K>: Send + Sync + 'static {
    /// What it brings.
    type Value: Clone + Send + Sync + 'static;
    /// How it fails.
    type Error: Send + Sync + 'static;

    /// Whether [`fetch_many`](Self::fetch_many) costs about as much as one fetch.
    const GATHERS: bool = false;

    /// The key's value, `None` inside if the source has none.
    fn fetch(&self, key: K) -> impl Future<Output = Result<Fetched<Self::Value>, Self::Error>> + Send;

    /// The outcomes of many keys, one per key and in their order. Called only where [`GATHERS`](Self::GATHERS) says so.
    fn fetch_many(&self, keys: Vec<K>) -> impl Future<Output = Vec<Result<Fetched<Self::Value>, Self::Error>>> + Send
    where
        K: Send,
    {
        async move {
            let mut outcomes = Vec::with_capacity(keys.len());
            for key in keys {
                outcomes.push(self.fetch(key).await);
            }
            outcomes
        }
    }

    /// From now on a fetch of this key must not be answered from what was read before. Default: nothing to do.
    fn invalidate(&self, _key: &K) {}

    /// The same for all keys. Of those that the cache itself is asking for, the source is told one by one in any case. Default:
    /// nothing to do.
    fn invalidate_all(&self) {}
}

impl<K, V, E, F, Fut> Source<K> for F
where
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<V>, E>> + Send + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    K: Send,
{
    type Value = V;
    type Error = E;

    async fn fetch(&self, key: K) -> Result<Fetched<V>, E> {
        self(key).await.map(Fetched::from)
    }
}

impl<K, V, E> Source<K> for Loader<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    type Value = V;
    type Error = LoadError<E>;

    const GATHERS: bool = true;

    async fn fetch(&self, key: K) -> Result<Fetched<V>, LoadError<E>> {
        self.load(key).await.map(Fetched::from)
    }

    async fn fetch_many(&self, keys: Vec<K>) -> Vec<Result<Fetched<V>, LoadError<E>>> {
        let outcomes = self.load_many(keys).await;
        outcomes.into_iter().map(|outcome| outcome.map(Fetched::from)).collect()
    }

    fn invalidate(&self, key: &K) {
        Loader::invalidate(self, key);
    }

    fn invalidate_all(&self) {
        Loader::invalidate_all(self);
    }
}

/// The one outcome of a fetch of one key.
pub(super) type Outcome<V, E> = Result<Fetched<V>, E>;

/// A source without its type, so that a cache's own type does not name it.
pub(super) trait AnySource<K, V, E>: Send + Sync {
    fn gathers(&self) -> bool;
    fn fetch(&self, key: K) -> BoxFuture<'_, Outcome<V, E>>;
    fn fetch_many(&self, keys: Vec<K>) -> BoxFuture<'_, Vec<Outcome<V, E>>>;
    fn invalidate(&self, key: &K);
    fn invalidate_all(&self);
}

impl<K: Key, S: Source<K>> AnySource<K, S::Value, S::Error> for S {
    fn gathers(&self) -> bool {
        S::GATHERS
    }

    fn fetch(&self, key: K) -> BoxFuture<'_, Outcome<S::Value, S::Error>> {
        Box::pin(Source::fetch(self, key))
    }

    fn fetch_many(&self, keys: Vec<K>) -> BoxFuture<'_, Vec<Outcome<S::Value, S::Error>>> {
        Box::pin(Source::fetch_many(self, keys))
    }

    fn invalidate(&self, key: &K) {
        Source::invalidate(self, key);
    }

    fn invalidate_all(&self) {
        Source::invalidate_all(self);
    }
}
