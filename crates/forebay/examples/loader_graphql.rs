//! GraphQL resolvers over a scope: the query mentions a hundred authors, the database is asked once.
//!
//! Each request has a scope of its own. Resolvers of one request share trips and what was read; the next request reads anew.
//!
//! `cargo run -p forebay --example loader_graphql`

use std::error::Error;
use std::time::Duration;

use async_graphql::{
    ComplexObject, Context, EmptyMutation, EmptySubscription, Object, Request, Result, Schema, SimpleObject,
};
use forebay::load::{Loader, Scope};
use forebay::sqlite::Sqlite;
use forebay::sqlite::{self, ReadError};
use forebay::write::Writer;
use futures_util::future::try_join_all;
use serde::Deserialize;

#[derive(Clone, Deserialize, SimpleObject)]
#[graphql(complex)]
struct Book {
    title: String,
    author_id: i64,
}

#[derive(Clone, Deserialize, SimpleObject)]
struct Author {
    id: i64,
    name: String,
}

#[ComplexObject]
impl Book {
    async fn author(&self, context: &Context<'_>) -> Result<Option<Author>> {
        let authors = context.data::<Scope<i64, Author, ReadError>>()?;
        Ok(authors.load(self.author_id).await?)
    }
}

struct Query;

#[Object]
impl Query {
    async fn books(&self, context: &Context<'_>, shelf: i64) -> Result<Vec<Book>> {
        let shelves = context.data::<Scope<i64, Vec<Book>, ReadError>>()?;
        Ok(shelves.load(shelf).await?.unwrap_or_default())
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let database = Sqlite::open(folder.path().join("library.db"))?;
    fill(&Writer::new(database.clone())).await?;

    // The executor polls two resolvers of a list, then lets others run, so a short window gathers the keys of a whole list.
    let window = Duration::from_millis(2);
    let shelves: Loader<i64, Vec<Book>, ReadError> = Loader::builder().max_wait(window).build(sqlite::all_rows(
        &database,
        "SELECT title, author_id FROM books WHERE shelf = ?1 ORDER BY id",
    ));
    let authors: Loader<i64, Author, ReadError> = Loader::builder()
        .max_wait(window)
        .build(sqlite::one_row(&database, "SELECT id, name FROM authors WHERE id = ?1"));
    let schema = Schema::new(Query, EmptyMutation, EmptySubscription);

    // Two requests, one after the other; each names shelf 1 twice and shelf 2 once.
    let query = "{ one: books(shelf: 1) { title author { name } }
                   two: books(shelf: 2) { title author { name } }
                   again: books(shelf: 1) { author { id name } } }";
    for request in 1..=2 {
        let before = authors.stats();
        let of_request = Request::new(query).data(shelves.scope()).data(authors.scope());
        let response = schema.execute(of_request).await;
        assert!(response.errors.is_empty(), "{:?}", response.errors);
        let answer = response.data.into_json()?;
        assert_eq!(answer["one"][3]["title"], "Book 7");
        assert_eq!(answer["one"][3]["author"]["name"], "Author 7");
        assert_eq!(answer["again"][49]["author"]["id"], 19);

        let after = authors.stats();
        println!(
            "request {request}: 150 authors resolved, {} read, trips to the database: {}",
            after.keys_fetched - before.keys_fetched,
            after.fetches - before.fetches,
        );
        assert_eq!(after.keys_fetched - before.keys_fetched, 20);
        // One, unless the machine is so busy that a window ends in the midst of a list.
        assert!(after.fetches - before.fetches <= 5);
    }
    assert_eq!(shelves.stats().keys_fetched, 4, "two a request, for three lists");
    Ok(())
}

async fn fill(writer: &Writer) -> std::result::Result<(), Box<dyn Error>> {
    for table in [
        "CREATE TABLE books (id INTEGER PRIMARY KEY, shelf INTEGER, title TEXT, author_id INTEGER)",
        "CREATE INDEX books_of_shelf ON books (shelf)",
        "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT)",
    ] {
        writer.execute(table, ()).await?;
    }
    let authors = (0..20).map(|id| writer.execute("INSERT INTO authors VALUES (?1, ?2)", (id, format!("Author {id}"))));
    try_join_all(authors).await?;
    let books = (1..=100).map(|id| {
        let book = (id, 2 - id % 2, format!("Book {id}"), id % 20);
        writer.execute("INSERT INTO books VALUES (?1, ?2, ?3, ?4)", book)
    });
    try_join_all(books).await?;
    Ok(())
}
