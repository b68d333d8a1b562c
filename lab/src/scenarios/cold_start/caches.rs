//! Forebay as a user sets it up over the simulated database: one key a query, or many.
//!
//! Promises: the windows of the setting; no more queries at once than the database has connections. A warm start begins with
//! the hot keys that another cache has listed, saved to a file and loaded back. Knows no callers.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::cache::{Cache, CacheBuilder, HotKeys};
use forebay::load::{LoadError, Loader};

use super::database::{Database, Product};
use super::setting::{STALE_FOR, Setting};
use super::traffic::Traffic;
use crate::failure::Failure;

/// In a query.
const KEYS_MAX: usize = 100;
/// Of those that are saved.
pub(crate) const HOT_KEYS: usize = 1_000;
/// One key a query.
pub(crate) fn single(setting: &Setting, database: &Arc<Database>) -> Cache<String, Arc<Product>> {
    let database = Arc::clone(database);
    let source = move |id: String| {
        let database = Arc::clone(&database);
        async move { Ok::<_, Infallible>(database.one(&id).await) }
    };
    // The key that most callers wait for has the next connection.
    windows(Cache::builder(source), setting)
        .max_fetches(setting.connections as usize)
        .build()
}

/// Many keys a query: those that are wanted while all connections are busy.
pub(crate) fn gathered(
    setting: &Setting,
    database: &Arc<Database>,
) -> Cache<String, Arc<Product>, LoadError<Infallible>> {
    let database = Arc::clone(database);
    let products = Loader::builder()
        .max_items(KEYS_MAX)
        .max_in_flight(setting.connections as usize)
        .build(move |ids: Vec<String>| {
            let database = Arc::clone(&database);
            async move { Ok::<_, Infallible>(database.many(&ids).await) }
        });
    windows(Cache::builder(products), setting).build()
}

fn windows<E: Send + Sync + 'static>(
    builder: CacheBuilder<String, Arc<Product>, E>,
    setting: &Setting,
) -> CacheBuilder<String, Arc<Product>, E> {
    builder
        .fresh_for(setting.fresh_for)
        .stale_for(STALE_FOR)
        .missing_fresh_for(setting.missing_fresh_for)
        .missing_stale_for(STALE_FOR)
        .fetch_timeout(setting.fetch_timeout)
}

/// What the hot keys are after that many requests, by way of a file; what an earlier trial has saved there is loaded.
pub(crate) async fn hot_keys(traffic: &Traffic, requests: u32, folder: &Path) -> Result<HotKeys<String>, Failure> {
    let file = folder.join("hot-keys.json");
    if !file.exists() {
        let hot = listed(traffic.of(u32::MAX), requests).await?;
        let saved = serde_json::to_string(&hot).map_err(|error| unreadable(&error))?;
        std::fs::write(&file, saved).map_err(Failure::system(format!("write {}", file.display())))?;
    }
    let loaded = std::fs::read(&file).map_err(Failure::system(format!("read {}", file.display())))?;
    serde_json::from_slice(&loaded).map_err(|error| unreadable(&error))
}

/// By a cache that has seen this traffic.
async fn listed(mut traffic: Traffic, requests: u32) -> Result<HotKeys<String>, Failure> {
    let database = Arc::new(Database::new(1, Duration::ZERO));
    let cache = Cache::builder(move |id: String| {
        let database = Arc::clone(&database);
        async move { Ok::<_, Infallible>(database.one(&id).await) }
    })
    .build();
    for _ in 0..requests {
        let (id, _) = traffic.next();
        cache.get(id).await.map_err(|error| Failure::Wrong(error.to_string()))?;
    }
    Ok(cache.hot_keys(HOT_KEYS))
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::Wrong(format!("the saved hot keys: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::scenarios::cold_start::setting::CONSTRAINED;

    #[tokio::test]
    async fn one_key_is_one_query_and_many_are_few() {
        let setting = CONSTRAINED.tiny();
        let ids: Vec<String> = (1..=100).map(|number| format!("product-{number}")).collect();
        let database = || Arc::new(Database::new(setting.connections, setting.latency));
        let alone = database();
        for got in single(&setting, &alone).get_many(ids.clone()).await {
            assert!(got.unwrap().is_some());
        }
        assert_eq!((alone.work().queries, alone.work().keys), (100, 100));
        let shared = database();
        for got in gathered(&setting, &shared).get_many(ids.clone()).await {
            assert!(got.unwrap().is_some());
        }
        assert_eq!((shared.work().queries, shared.work().keys), (1, 100));
    }

    #[tokio::test]
    async fn a_source_that_is_slower_than_the_setting_allows_is_an_error() {
        let setting = Setting {
            fetch_timeout: Duration::from_millis(5),
            ..CONSTRAINED.tiny()
        };
        let database = Arc::new(Database::new(1, Duration::from_secs(20)));
        let begun = Instant::now();
        assert!(single(&setting, &database).get("product-1").await.is_err());
        assert!(gathered(&setting, &database).get("product-1").await.is_err());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn the_hottest_keys_are_listed_once_and_come_back_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let traffic = Traffic::new();
        let hot = hot_keys(&traffic, 300_000, folder.path()).await.unwrap();
        for number in 1..=20 {
            let id = format!("product-{number}");
            assert!(hot.keys.iter().any(|(hot, _)| *hot == id), "{id}");
        }
        assert_eq!(hot_keys(&traffic, 0, folder.path()).await.unwrap(), hot);
    }
}
