//! What the core asks of tiers: it stands in until there are some.
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
#[derive(Clone, Debug)]
/// k
pub struct Kept<V> {
    /// v
    pub value: Option<V>,
    /// f
    pub fetched_at: SystemTime,
}
#[derive(Clone, Debug)]
/// p
pub struct Put<K, V> {
    /// k
    pub key: K,
    /// k
    pub kept: Kept<V>,
    /// k
    pub keep_for: Duration,
}
/// t
pub trait Tier<K, V>: Send + Sync + 'static {
    /// get
    fn get_many<'a>(&'a self, keys: &'a [K]) -> BoxFuture<'a, Vec<Option<Kept<V>>>>;
}
/// s
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierStats {}
pub(crate) struct Tiers<K, V>(Vec<Arc<dyn Tier<K, V>>>);
impl<K, V> Tiers<K, V> {
    pub(crate) fn new(t: Vec<Arc<dyn Tier<K, V>>>, _h: Option<Handle>) -> Self {
        Self(t)
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) async fn get_many(&self, keys: &[K]) -> Vec<Option<Kept<V>>> {
        keys.iter().map(|_| None).collect()
    }
    pub(crate) fn fill(&self, _p: Put<K, V>) {}
    pub(crate) fn insert(&self, _p: Put<K, V>) {}
    pub(crate) fn invalidate(&self, _k: K) {}
    pub(crate) fn clear(&self) {}
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        async {}
    }
    pub(crate) fn stats(&self) -> Vec<TierStats> {
        vec![]
    }
}
