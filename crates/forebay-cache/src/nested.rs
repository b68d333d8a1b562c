//! A cache as the source of another one. Its answers bring their age along, and what is changed above it is settled when it is here.

use std::sync::Arc;

use super::Cache;
use super::answer::Answer;
use super::backplane::{Change, Hearing};
use super::error::CacheError;
use super::lookup::Told;
use super::settled::Settled;
use super::source::{Fetched, Source};
use forebay_batch::load::Key;

impl<K, V, E> Source<K> for Cache<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    type Value = V;
    type Error = CacheError<E>;

    const GATHERS: bool = true;

    async fn fetch(&self, key: K) -> Result<Fetched<V>, CacheError<E>> {
        let answer = self.lookup(&key).await?;
        Ok(Fetched::from(answer.value).age(answer.age))
    }

    async fn fetch_anew(&self, key: K) -> Result<Fetched<V>, CacheError<E>> {
        let hash = self.core.store.hash(&key);
        let answer = Arc::clone(&self.core).refresh(hash, key).await?;
        Ok(Fetched::from(answer.value).age(answer.age))
    }

    async fn fetch_many(&self, keys: Vec<K>) -> Vec<Result<Fetched<V>, CacheError<E>>> {
        let answers = self.lookup_many(keys).await;
        let fetched = |answer: Answer<V>| Fetched::from(answer.value).age(answer.age);
        answers.into_iter().map(|answer| answer.map(fetched)).collect()
    }

    async fn fetch_each(
        &self,
        keys: Vec<K>,
        arrived: impl Fn(usize, Result<Fetched<V>, CacheError<E>>) + Send + Sync,
    ) -> usize {
        let count = keys.len();
        let fetched = |answer: Answer<V>| Fetched::from(answer.value).age(answer.age);
        let answered = |place, answer: Result<Answer<V>, CacheError<E>>| arrived(place, answer.map(fetched));
        self.lookup_each(keys, Told::AsTheyLand, answered).await;
        count
    }

    fn invalidate(&self, key: &K) {
        drop(Cache::invalidate(self, key));
    }

    fn heard(&self, change: &Change<K>) {
        self.core.heard(change.clone(), true);
    }

    fn invalidate_tag(&self, tag: &str) {
        drop(Cache::invalidate_tag(self, tag));
    }

    fn invalidate_all(&self) {
        drop(self.clear());
    }

    fn settled(&self) -> Option<Settled> {
        Some(Self::settled(self))
    }
}
