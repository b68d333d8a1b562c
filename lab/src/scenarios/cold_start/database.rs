//! A simulated database of products: a few connections, and each query takes its time.
//!
//! Promises: never more queries at once than connections; what was asked and how long connections were busy is counted, also
//! of queries that whoever asked has left. Knows no cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// There are as many.
pub(crate) const PRODUCTS: u32 = 10_000;
/// What a query of many keys takes longer, for each.
const LATENCY_A_KEY: Duration = Duration::from_micros(100);

/// What is searched for. Caches keep a pointer to it, so that it does not matter how much else there is to know.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) id: String,
}

/// By number, from 1 on.
pub(crate) fn product_id(number: u32) -> String {
    format!("product-{number}")
}

/// The database.
#[derive(Debug)]
pub(crate) struct Database {
    connections: Semaphore,
    latency: Duration,
    products: HashMap<String, Arc<Product>>,
    queries: AtomicU64,
    keys: AtomicU64,
    busy_ns: AtomicU64,
}

/// What a database has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) queries: u64,
    /// That they asked for.
    pub(crate) keys: u64,
    /// Of all connections.
    pub(crate) busy: Duration,
}

impl Work {
    /// What was done since then.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            queries: self.queries - earlier.queries,
            keys: self.keys - earlier.keys,
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }
}

/// A query that runs; ends when it is dropped, whether it was answered or left.
struct Query<'a> {
    database: &'a Database,
    begun: Instant,
}

impl Drop for Query<'_> {
    fn drop(&mut self) {
        let busy = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.database.busy_ns.fetch_add(busy, Ordering::Relaxed);
    }
}

impl Database {
    /// With that many connections, on which a query takes that long.
    pub(crate) fn new(connections: u32, latency: Duration) -> Self {
        let products = (1..=PRODUCTS).map(|number| {
            let id = product_id(number);
            let product = Product { id: id.clone() };
            (id, Arc::new(product))
        });
        Self {
            connections: Semaphore::new(connections as usize),
            latency,
            products: products.collect(),
            queries: AtomicU64::new(0),
            keys: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
        }
    }

    /// One product, if there is one.
    pub(crate) async fn one(&self, id: &str) -> Option<Arc<Product>> {
        self.query(1, self.latency).await;
        self.products.get(id).cloned()
    }

    /// Those of many that there are.
    pub(crate) async fn many(&self, ids: &[String]) -> HashMap<String, Arc<Product>> {
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.query(count, self.latency + LATENCY_A_KEY * count).await;
        let found = ids.iter().filter_map(|id| self.products.get_key_value(id));
        found.map(|(id, product)| (id.clone(), Arc::clone(product))).collect()
    }

    /// Waits for a connection, and then as long as the query takes.
    async fn query(&self, keys: u32, takes: Duration) {
        let _connection = self.connections.acquire().await.expect("nobody closes it");
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.keys.fetch_add(keys.into(), Ordering::Relaxed);
        // Dropped before the connection, so that two are never busy at once with one.
        let _query = Query {
            database: self,
            begun: Instant::now(),
        };
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
    }

    /// What it has done so far.
    pub(crate) fn work(&self) -> Work {
        Work {
            queries: self.queries.load(Ordering::Relaxed),
            keys: self.keys.load(Ordering::Relaxed),
            busy: Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queries_wait_for_connections_and_are_counted() {
        let database = Arc::new(Database::new(3, Duration::from_millis(10)));
        let begun = Instant::now();
        let queries: Vec<_> = (0..9)
            .map(|_| {
                let database = Arc::clone(&database);
                tokio::spawn(async move { database.one("product-7").await.map(|product| product.id.clone()) })
            })
            .collect();
        for query in queries {
            assert_eq!(query.await.unwrap().as_deref(), Some("product-7"));
        }
        assert!(begun.elapsed() >= Duration::from_millis(30), "3 at a time");
        let work = database.work();
        assert_eq!((work.queries, work.keys), (9, 9));
        assert!(work.busy >= Duration::from_millis(90), "{work:?}");
    }

    #[tokio::test]
    async fn many_keys_are_one_query_that_takes_a_little_longer() {
        let database = Database::new(1, Duration::from_millis(2));
        let before = database.work();
        let begun = Instant::now();
        let ids = [product_id(1), "product-notfound-0".to_owned(), product_id(PRODUCTS)];
        let all: Vec<String> = ids.iter().cloned().cycle().take(99).collect();
        let found = database.many(&all).await;
        assert!(begun.elapsed() >= Duration::from_micros(2_000 + 9_900));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(id, product)| *id == product.id));
        let work = database.work().since(before);
        assert_eq!((work.queries, work.keys), (1, 99));
        assert!(database.one("product-notfound-0").await.is_none());
    }

    #[tokio::test]
    async fn a_query_that_is_left_was_busy_until_then_and_frees_its_connection() {
        let database = Database::new(1, Duration::from_millis(20));
        let left = tokio::time::timeout(Duration::from_millis(5), database.one("product-1")).await;
        assert!(left.is_err());
        let busy = database.work().busy;
        assert!(busy >= Duration::from_millis(4), "{busy:?}");
        assert!(database.one("product-1").await.is_some());
        assert_eq!(database.work().queries, 2);
    }
}
