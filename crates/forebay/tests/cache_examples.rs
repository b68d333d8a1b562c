//! The example of the Cache, as visitors see it: a stampede, a missing product, a change of price, a stop and a warm start.
//!
//! What is fresh is told by the real clock, so nothing here asks whether an answer was fresh or stale already.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../examples/cache_axum.rs"]
#[expect(dead_code, reason = "its `main`, which waits for Ctrl-C")]
mod cache_axum;

use std::future::ready;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use cache_axum::{Counted, PriceChange, Product, Shop};
use futures_util::future::try_join_all;
use reqwest::{Client, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

type Ended = Result<(), Box<dyn std::error::Error>>;

/// A shop that is open.
struct Open {
    shop: Shop,
    client: Client,
    address: String,
    stop: oneshot::Sender<()>,
    /// How many keys were remembered at the end.
    served: JoinHandle<usize>,
}

impl Open {
    async fn new(folder: &tempfile::TempDir) -> Self {
        let shop = Shop::open(folder.path(), 10, 50).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let open = shop.clone();
        let served = tokio::spawn(async move {
            let stop = async { stopped.await.unwrap() };
            open.serve(listener, stop).await.unwrap()
        });
        Self {
            shop,
            client: Client::new(),
            address,
            stop,
            served,
        }
    }

    async fn get(&self, path: &str) -> reqwest::Result<Response> {
        self.client.get(format!("{}{path}", self.address)).send().await
    }

    async fn product(&self, path: &str) -> reqwest::Result<Product> {
        self.get(path).await?.error_for_status()?.json().await
    }

    async fn stats(&self) -> reqwest::Result<Counted> {
        self.get("/stats").await?.json().await
    }

    async fn change_price(&self, id: i64, price_cents: i64) -> reqwest::Result<StatusCode> {
        let request = self.client.post(format!("{}/products/{id}", self.address));
        let change = serde_json::json!({ "price_cents": price_cents });
        Ok(request.json(&change).send().await?.status())
    }

    async fn close(self) -> usize {
        self.stop.send(()).unwrap();
        drop(self.client);
        self.served.await.unwrap()
    }
}

fn came_by(response: &Response) -> &str {
    assert!(response.headers()["age"].to_str().unwrap().parse::<u64>().is_ok());
    response.headers()["x-cache"].to_str().unwrap()
}

#[tokio::test]
async fn a_hundred_visitors_of_a_cold_page_read_the_database_once() -> Ended {
    let folder = tempfile::tempdir()?;
    let open = Open::new(&folder).await;
    let truth = open.product("/uncached/products/7").await?;
    assert_eq!((truth.orders, truth.price_cents), (50, 1259));
    assert_eq!(
        open.stats().await?.misses,
        0,
        "the page without the cache leaves it alone"
    );

    let pages = try_join_all((0..100).map(|_| open.product("/products/7"))).await?;
    assert!(pages.iter().all(|page| *page == truth));
    let stats = open.stats().await?;
    assert_eq!(stats.hits + stats.misses, 100);
    assert_eq!(stats.fetches - stats.refreshes, 1);
    assert_eq!(stats.misses, stats.joined + 1);
    assert_eq!(stats.hit_rate, stats.hits as f64 / 100.0);
    open.close().await;
    Ok(())
}

#[tokio::test]
async fn a_change_of_price_is_seen_at_once() -> Ended {
    let folder = tempfile::tempdir()?;
    let open = Open::new(&folder).await;
    for price_cents in [990, 1_090, 1_190] {
        open.product("/products/3").await?;
        assert_eq!(open.change_price(3, price_cents).await?, StatusCode::NO_CONTENT);
        let page = open.get("/products/3").await?;
        assert_eq!(came_by(&page), "fetched");
        assert_eq!(page.json::<Product>().await?.price_cents, price_cents);
    }
    assert_eq!(open.change_price(404, 1).await?, StatusCode::NOT_FOUND);
    open.close().await;
    Ok(())
}

#[tokio::test]
async fn a_visitor_who_hangs_up_still_changes_the_price_for_all() -> Ended {
    let folder = tempfile::tempdir()?;
    let open = Open::new(&folder).await;
    open.product("/products/3").await?;

    let change = PriceChange { price_cents: 990 };
    let changing = cache_axum::change_price(State(open.shop.clone()), Path(3), Json(change));
    tokio::select! {
        biased;
        _ = changing => panic!("a change of price takes a trip to the disk"),
        () = ready(()) => {} // Begun, and dropped.
    }
    let products = &open.shop.products;
    timeout(Duration::from_secs(30), async {
        // What is stale would be refreshed some time, and be no miss.
        while products.stats().misses < 2 {
            products.get(&3).await?;
            yield_now().await;
        }
        assert_eq!(products.get(&3).await?.unwrap().price_cents, 990);
        Ended::Ok(())
    })
    .await??;
    open.close().await;
    Ok(())
}

#[tokio::test]
async fn a_product_that_is_not_there_is_not_found_with_and_without_the_cache() -> Ended {
    let folder = tempfile::tempdir()?;
    let open = Open::new(&folder).await;
    assert_eq!(
        open.get("/uncached/products/404").await?.status(),
        StatusCode::NOT_FOUND
    );
    let page = open.get("/products/404").await?;
    assert_eq!((page.status(), came_by(&page)), (StatusCode::NOT_FOUND, "fetched"));
    open.close().await;
    Ok(())
}

#[tokio::test]
async fn what_was_in_demand_is_there_after_a_stop_and_a_start() -> Ended {
    let folder = tempfile::tempdir()?;
    let open = Open::new(&folder).await;
    assert_eq!(open.shop.warm().await?, 0, "nothing is remembered yet");
    // One use in 256 is recorded.
    for _ in 0..2_000 {
        open.shop.products.get(&5).await?;
    }
    let remembered = open.close().await;
    assert!(remembered >= 1);

    let open = Open::new(&folder).await;
    assert_eq!(open.shop.warm().await?, remembered);
    let page = open.get("/products/5").await?;
    assert_ne!(came_by(&page), "fetched");
    open.close().await;
    Ok(())
}
