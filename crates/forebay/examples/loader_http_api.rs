//! A batched HTTP API behind a loader: a thousand tasks ask for a price each, the API sees ten requests.
//!
//! The API (an axum server in this same program) takes up to a hundred articles a request and answers with a map. The loader
//! keeps to that, and to at most four requests at a time.
//!
//! `cargo run -p forebay --example loader_http_api`

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use forebay::load::Loader;

const ARTICLES_MAX: usize = 100;

/// The API: prices of the articles that it has.
async fn prices(
    State(requests): State<Arc<AtomicUsize>>,
    Json(articles): Json<Vec<String>>,
) -> Result<Json<HashMap<String, usize>>, StatusCode> {
    requests.fetch_add(1, Ordering::Relaxed);
    if articles.len() > ARTICLES_MAX {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let known = articles.into_iter().filter(|article| article != "philosopher's stone");
    Ok(Json(
        known.map(|article| (article.clone(), article.len() * 100)).collect(),
    ))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let requests = Arc::new(AtomicUsize::new(0));
    let api = Router::new()
        .route("/prices", post(prices))
        .with_state(Arc::clone(&requests));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, api).await });

    let client = reqwest::Client::new();
    let prices = Loader::builder()
        .max_items(ARTICLES_MAX)
        .max_in_flight(4)
        .fetch_timeout(Duration::from_secs(10))
        .build(move |articles: Vec<String>| {
            let request = client.post(format!("http://{address}/prices")).json(&articles);
            async move {
                let response = request.send().await?.error_for_status()?;
                response.json::<HashMap<String, usize>>().await
            }
        });

    // In line before any of them waits, so that they leave in full batches.
    let asked: Vec<_> = (0..1000)
        .map(|number| {
            let article = format!("article {number}");
            (article.len() * 100, prices.register(article))
        })
        .collect();
    for (expected, price) in asked {
        assert_eq!(price.await?, Some(expected));
    }
    let seen = requests.load(Ordering::Relaxed);
    println!("1000 loads, {seen} HTTP requests");
    assert_eq!(seen, 10);

    assert_eq!(prices.load("philosopher's stone".to_owned()).await?, None);
    server.abort();
    Ok(())
}
