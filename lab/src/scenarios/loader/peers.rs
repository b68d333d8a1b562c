//! How each peer written in Rust is spoken to, with the settings that were fastest here.
//!
//! All load over the same fetch, which does nothing but answer, in the form that the peer asks for. None of them remembers a
//! value between loads, but for `ultra-batch`, which cannot do otherwise: its keys are new each time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::dataloader::{DataLoader, Loader as AsyncGraphqlLoader};
use dataloader::BatchFn;
use dataloader::non_cached::Loader;
use ultra_batch::{BatchFetcher, Cache, Fetcher};

use crate::closed_loop::{Ask, Batches, answer};

/// async-graphql: tokio's timer takes no less; its default.
const ASYNC_GRAPHQL_DELAY: Duration = Duration::from_millis(1);
/// dataloader: times that a load yields to others before it fetches what has gathered; its default is 10.
const DATALOADER_YIELDS: usize = 3;
/// ultra-batch: tokio's timer takes no less; its default is ten times as long.
const ULTRA_BATCH_DELAY: Duration = Duration::from_millis(1);

/// What all of them fetch from.
struct Source {
    fetches: Batches,
}

impl Source {
    fn map(&self, keys: &[u64]) -> HashMap<u64, u64> {
        self.fetches.note();
        keys.iter().map(|key| (*key, answer(*key))).collect()
    }
}

/// The `DataLoader` of async-graphql, without a cache, which is its default.
#[derive(Clone)]
pub(super) struct AsyncGraphql {
    loader: Arc<DataLoader<Source>>,
}

impl AsyncGraphql {
    pub(super) fn new(max_items: usize, fetches: Batches) -> Self {
        let loader = DataLoader::new(Source { fetches }, tokio::spawn)
            .delay(ASYNC_GRAPHQL_DELAY)
            .max_batch_size(max_items);
        Self {
            loader: Arc::new(loader),
        }
    }
}

impl AsyncGraphqlLoader<u64> for Source {
    type Value = u64;
    type Error = Infallible;

    async fn load(&self, keys: &[u64]) -> Result<HashMap<u64, u64>, Infallible> {
        Ok(self.map(keys))
    }
}

impl Ask for AsyncGraphql {
    async fn ask(&self, key: u64) -> Result<u64, String> {
        match self.loader.load_one(key).await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(format!("{key} is missing")),
        }
    }
}

/// The crate dataloader: the loader without a cache.
#[derive(Clone)]
pub(super) struct Dataloader {
    loader: Loader<u64, u64, Source>,
}

impl Dataloader {
    pub(super) fn new(max_items: usize, fetches: Batches) -> Self {
        let loader = Loader::new(Source { fetches })
            .with_max_batch_size(max_items)
            .with_yield_count(DATALOADER_YIELDS);
        Self { loader }
    }
}

impl BatchFn<u64, u64> for Source {
    async fn load(&mut self, keys: &[u64]) -> HashMap<u64, u64> {
        self.map(keys)
    }
}

impl Ask for Dataloader {
    async fn ask(&self, key: u64) -> Result<u64, String> {
        self.loader.try_load(key).await.map_err(|error| error.to_string())
    }
}

/// The crate ultra-batch: its fetcher.
#[derive(Clone)]
pub(super) struct UltraBatch {
    fetcher: BatchFetcher<Source>,
}

impl UltraBatch {
    pub(super) fn new(max_items: usize, fetches: Batches) -> Self {
        let fetcher = BatchFetcher::build(Source { fetches })
            .eager_batch_size(Some(max_items))
            .delay_duration(ULTRA_BATCH_DELAY)
            .finish();
        Self { fetcher }
    }
}

impl Fetcher for Source {
    type Key = u64;
    type Value = u64;
    type Error = Infallible;

    async fn fetch(&self, keys: &[u64], values: &mut Cache<'_, u64, u64>) -> Result<(), Infallible> {
        self.fetches.note();
        for key in keys {
            values.insert(*key, answer(*key));
        }
        Ok(())
    }
}

impl Ask for UltraBatch {
    async fn ask(&self, key: u64) -> Result<u64, String> {
        self.fetcher.load(key).await.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty loads at a time in fetches of ten.
    async fn loads_share_fetches(system: impl Ask, fetches: Batches) {
        let loads: Vec<_> = (0..40)
            .map(|key| {
                let system = system.clone();
                tokio::spawn(async move { system.ask(key).await })
            })
            .collect();
        for (key, load) in (0..).zip(loads) {
            assert_eq!(load.await.unwrap(), Ok(answer(key)));
        }
        assert!(
            (4..40).contains(&fetches.count()),
            "{} fetches of 40 keys",
            fetches.count()
        );
    }

    #[tokio::test]
    async fn every_peer_loads_and_shares() {
        let fetches = Batches::default();
        loads_share_fetches(AsyncGraphql::new(10, fetches.clone()), fetches).await;
        let fetches = Batches::default();
        loads_share_fetches(Dataloader::new(10, fetches.clone()), fetches).await;
        let fetches = Batches::default();
        loads_share_fetches(UltraBatch::new(10, fetches.clone()), fetches).await;
    }

    #[tokio::test]
    async fn no_peer_answers_twice_from_one_fetch() {
        let fetches = Batches::default();
        let async_graphql = AsyncGraphql::new(10, fetches.clone());
        let dataloader = Dataloader::new(10, fetches.clone());
        for _ in 0..2 {
            async_graphql.ask(1).await.unwrap();
            dataloader.ask(1).await.unwrap();
        }
        assert_eq!(fetches.count(), 4);
    }
}
