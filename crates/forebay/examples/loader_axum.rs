//! N + 1 queries in a web handler, and how a loader makes one of them.
//!
//! Every request for a post asks for its author. Fifty requests at once would be fifty trips to the database; the loader makes
//! them share. The handlers know nothing of one another.
//!
//! `cargo run -p forebay --example loader_axum`

use std::error::Error;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use forebay::load::Loader;
use forebay::sqlite::ReadError;
use forebay::sqlite::Sqlite;
use forebay::write::Writer;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Post {
    id: i64,
    author_id: i64,
    title: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Author {
    id: i64,
    name: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Page {
    title: String,
    author: String,
}

/// What the program keeps for as long as it runs. Clones are handles.
#[derive(Clone)]
struct App {
    posts: Loader<i64, Post, ReadError>,
    authors: Loader<i64, Author, ReadError>,
}

/// Written as if it were the only one.
async fn page(State(app): State<App>, Path(id): Path<i64>) -> Result<Json<Page>, StatusCode> {
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let post = app.posts.load(id).await.map_err(failed)?;
    let post = post.ok_or(StatusCode::NOT_FOUND)?;
    let author = app.authors.load(post.author_id).await.map_err(failed)?;
    Ok(Json(Page {
        title: post.title,
        author: author.map_or_else(|| "unknown".to_owned(), |author| author.name),
    }))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let database = Sqlite::open(folder.path().join("blog.db"))?;
    fill(&Writer::new(database.clone())).await?;

    let app = App {
        posts: database.loader("SELECT id, author_id, title FROM posts WHERE id = ?1"),
        authors: database.loader("SELECT id, name FROM authors WHERE id = ?1"),
    };
    let router = Router::new().route("/posts/{id}", get(page)).with_state(app.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    // Fifty visitors at once, each of another post, and one who is lost.
    let client = reqwest::Client::new();
    let pages = try_join_all((1..=50).map(|id| {
        let request = client.get(format!("http://{address}/posts/{id}"));
        async move { request.send().await?.error_for_status()?.json::<Page>().await }
    }))
    .await?;
    for (id, page) in (1..=50).zip(&pages) {
        assert_eq!(page.title, format!("Post {id}"));
        assert_eq!(page.author, format!("Author {}", id % 5));
    }
    let lost = client.get(format!("http://{address}/posts/999")).send().await?;
    assert_eq!(lost.status(), StatusCode::NOT_FOUND);
    server.abort();

    let (posts, authors) = (app.posts.stats(), app.authors.stats());
    let (loads, trips) = (posts.loads + authors.loads, posts.fetches + authors.fetches);
    println!(
        "{loads} loads, {trips} trips to the database; of 50 authors asked for, {} were read",
        authors.keys_fetched
    );
    assert_eq!(loads, 101);
    assert!(trips < loads / 2, "requests at the same time share trips");
    Ok(())
}

async fn fill(writer: &Writer) -> Result<(), Box<dyn Error>> {
    for table in [
        "CREATE TABLE posts (id INTEGER PRIMARY KEY, author_id INTEGER NOT NULL, title TEXT NOT NULL)",
        "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    ] {
        writer.execute(table, ()).await?;
    }
    try_join_all((0..5).map(|id| writer.execute("INSERT INTO authors VALUES (?1, ?2)", (id, format!("Author {id}")))))
        .await?;
    let posts = (1..=50).map(|id| {
        let post = (id, id % 5, format!("Post {id}"));
        writer.execute("INSERT INTO posts VALUES (?1, ?2, ?3)", post)
    });
    try_join_all(posts).await?;
    Ok(())
}
