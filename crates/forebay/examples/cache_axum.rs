//! A product page whose figures are dear to compute, with a cache in front of the database and, to compare, without.
//!
//! Promises: `/products/{id}` and `/uncached/products/{id}` give the same page by the same query; a change of price is seen by
//! every request that comes after its answer. What was in demand is remembered in the folder over a stop by Ctrl-C.
//!
//! `cargo run --release -p forebay --example cache_axum -- [FOLDER] [ADDRESS]`; without a folder it takes a temporary one.
//!
//! | request | answer |
//! |---|---|
//! | `GET /products/{id}` | through the cache; the headers `age` and `x-cache` say how old it is and how it was come by |
//! | `GET /uncached/products/{id}` | the database is read for this request |
//! | `POST /products/{id}` with `{"price_cents": 990}` | the price is changed |
//! | `GET /stats` | what the cache has counted |

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use forebay::cache::{self, Cache, CacheError, HotKeys};
use forebay::load::LoadError;
use forebay::sqlite::Sqlite;
use forebay::sqlite::{self, ReadError};
use forebay::write::{WriteError, Writer};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// What a page shows of a product: counted over all its orders, which takes some milliseconds.
const PRODUCT: &str = "SELECT p.id, p.name, p.price_cents, count(o.number) AS orders,
            count(DISTINCT o.customer_id) AS customers, round(avg(o.stars), 2) AS stars
     FROM products AS p LEFT JOIN orders AS o ON o.product_id = p.id
     WHERE p.id = ?1 GROUP BY p.id";

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Product {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) price_cents: i64,
    pub(crate) orders: i64,
    pub(crate) customers: i64,
    pub(crate) stars: Option<f64>,
}

/// What the program keeps for as long as it runs. Clones are handles.
#[derive(Clone)]
pub(crate) struct Shop {
    database: Sqlite,
    writer: Writer,
    pub(crate) products: Cache<i64, Product, LoadError<ReadError>>,
    hot_keys: PathBuf,
}

impl Shop {
    /// Opens the shop in that folder, and fills it first where there is none.
    pub(crate) async fn open(folder: &FilePath, products: i64, orders_each: i64) -> Result<Self, Box<dyn Error>> {
        // Few connections, as servers of databases have them.
        let database = Sqlite::builder(folder.join("shop.db")).max_readers(4).open()?;
        let writer = Writer::new(database.clone());
        fill(&database, &writer, products, orders_each).await?;

        // All that misses while a trip to the database is under way shares the next one.
        let source = database.loader::<i64, Product>(PRODUCT);
        let products = Cache::builder(source)
            .name("products")
            .capacity(10_000)
            .fresh_for(Duration::from_secs(5))
            .stale_for(Duration::from_secs(600)) // Then it is served, and refreshed in the background.
            .missing_fresh_for(Duration::from_secs(1))
            .missing_stale_for(Duration::ZERO) // A product that is new is not missing for long.
            .jitter(0.1)
            .stale_if_error_for(Duration::from_secs(3600))
            .fetch_timeout(Duration::from_secs(2))
            .max_fetches(2) // So that half of the connections are left to others.
            .build();
        let hot_keys = folder.join("hot_keys.json");
        Ok(Self {
            database,
            writer,
            products,
            hot_keys,
        })
    }

    /// Fetches what was in demand before the last stop; tells how many products that were.
    pub(crate) async fn warm(&self) -> Result<usize, Box<dyn Error>> {
        if !self.hot_keys.exists() {
            return Ok(0);
        }
        let hot_keys: HotKeys<i64> = serde_json::from_slice(&std::fs::read(&self.hot_keys)?)?;
        Ok(self.products.warm(hot_keys, |_| {}).await.present)
    }

    /// Answers requests until `stop` ends, and those that have come until then; then remembers what was in demand.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<usize, Box<dyn Error>> {
        let router = Router::new()
            .route("/products/{id}", get(page).post(change_price))
            .route("/uncached/products/{id}", get(uncached_page))
            .route("/stats", get(stats))
            .with_state(self.clone());
        axum::serve(listener, router).with_graceful_shutdown(stop).await?;

        let hot_keys = self.products.hot_keys(1_000);
        // Whole or not at all, whenever the machine stops.
        let half_written = self.hot_keys.with_extension("new");
        std::fs::write(&half_written, serde_json::to_vec(&hot_keys)?)?;
        std::fs::rename(&half_written, &self.hot_keys)?;
        self.database.close().await;
        Ok(hot_keys.keys.len())
    }
}

async fn page(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<Response, Failure> {
    let answer = shop.products.lookup(&id).await?;
    let came_by = match answer.state {
        cache::State::Fresh => "fresh",
        cache::State::Stale => "stale",
        cache::State::Rescued => "rescued",
        _ => "fetched",
    };
    let headers = [
        ("age", answer.age.as_secs().to_string()),
        ("x-cache", came_by.to_owned()),
    ];
    Ok(match answer.value {
        Some(product) => (headers, Json(product)).into_response(),
        None => (StatusCode::NOT_FOUND, headers).into_response(),
    })
}

async fn uncached_page(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<Response, Failure> {
    let read = sqlite::one_row::<i64, Product>(&shop.database, PRODUCT);
    let product = read(vec![id]).await?.pop().transpose()?.flatten();
    Ok(match product {
        Some(product) => Json(product).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

#[derive(Deserialize)]
pub(crate) struct PriceChange {
    pub(crate) price_cents: i64,
}

pub(crate) async fn change_price(
    State(shop): State<Shop>,
    Path(id): Path<i64>,
    Json(change): Json<PriceChange>,
) -> Result<StatusCode, Failure> {
    // A task of its own: a visitor who hangs up takes the handler along, and the cache would not hear of the new price.
    let changing = tokio::spawn(async move {
        let update = "UPDATE products SET price_cents = ?2 WHERE id = ?1";
        let done = shop.writer.execute(update, (id, change.price_cents)).await;
        // Before the outcome is looked at: an error may be one that does not know whether the price has changed.
        shop.products.invalidate(&id).await;
        done
    });
    let done = changing.await.map_err(Failure::new)??;
    Ok(match done.rows_affected {
        0 => StatusCode::NOT_FOUND,
        _ => StatusCode::NO_CONTENT,
    })
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Counted {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) joined: u64,
    pub(crate) fetches: u64,
    pub(crate) refreshes: u64,
    pub(crate) hit_rate: f64,
}

async fn stats(State(shop): State<Shop>) -> Json<Counted> {
    let stats = shop.products.stats();
    Json(Counted {
        hits: stats.hits_fresh + stats.hits_stale,
        misses: stats.misses,
        joined: stats.joined,
        fetches: stats.fetches,
        refreshes: stats.refreshes,
        hit_rate: stats.hit_rate(),
    })
}

/// What a visitor is told when it did not work.
pub(crate) struct Failure(StatusCode, String);

impl Failure {
    fn new(error: impl Error) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl From<CacheError<LoadError<ReadError>>> for Failure {
    fn from(error: CacheError<LoadError<ReadError>>) -> Self {
        match error {
            // The database is slow, or there is too much to do. Another try may find it better.
            CacheError::TimedOut(_) | CacheError::Overloaded => {
                Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
            error => Self::new(error),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::new(error)
    }
}

/// Makes tables and rows, unless they are there.
async fn fill(database: &Sqlite, writer: &Writer, products: i64, orders_each: i64) -> Result<(), Box<dyn Error>> {
    for table in [
        "CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL)",
        "CREATE TABLE IF NOT EXISTS orders (product_id INTEGER NOT NULL, number INTEGER NOT NULL,
            customer_id INTEGER NOT NULL, stars INTEGER NOT NULL, PRIMARY KEY (product_id, number)) WITHOUT ROWID",
    ] {
        writer.execute(table, ()).await?;
    }
    let is_filled = database.query("SELECT 1 FROM products LIMIT 1", ()).await?;
    if !is_filled.rows.is_empty() {
        return Ok(());
    }
    // The products last: once they are there, all is.
    let orders = "WITH RECURSIVE
            product(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM product WHERE id < ?1),
            place(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM place WHERE number < ?2)
        INSERT OR REPLACE INTO orders
        SELECT id, number, (id + number * number) % 9001, min(5, 2 + (id + number * number) % 7) FROM product, place";
    writer.execute(orders, (products, orders_each)).await?;
    let rows = "WITH RECURSIVE product(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM product WHERE id < ?1)
        INSERT INTO products SELECT id, 'Product ' || id, 1000 + id * 37 % 900 FROM product";
    writer.execute(rows, (products,)).await?;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let folder = arguments
        .next()
        .map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let address: SocketAddr = arguments.next().as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    std::fs::create_dir_all(&folder)?;

    let listener = TcpListener::bind(address).await?;
    let began = Instant::now();
    let shop = Shop::open(&folder, 100, 10_000).await?;
    println!("shop in {}, opened in {:.1?}", folder.display(), began.elapsed());
    let began = Instant::now();
    println!("{} products warmed in {:.1?}", shop.warm().await?, began.elapsed());
    println!("http://{}/products/1, until Ctrl-C", listener.local_addr()?);

    let stop = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("Ctrl-C cannot be heard: {error}");
        }
    };
    let hot = shop.serve(listener, stop).await?;
    println!("stopped; {hot} products were in demand");
    Ok(())
}
