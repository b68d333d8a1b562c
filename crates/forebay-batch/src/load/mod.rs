//! Loader: many callers, each wants a key; one fetch for all keys wanted at about the same time.
//!
//! Promises:
//! - `load(key)` ends with the key's own outcome: its value, `None` if the source has none, its own error, or the error of the
//!   fetch that it shared. Nobody else's, also when the fetch panics, hangs past its limit or miscounts.
//! - Equal keys are fetched once: in line or in flight, a key is joined, also when its first caller was cancelled; by loads
//!   that are made inside of a fetch in line alone, so that none waits for itself. When n
//!   distinct keys are pending together, exactly ⌈n / max_items⌉ fetches run, whichever threads they come from.
//! - A key that only cancelled callers wanted is not fetched, unless its fetch has begun.
//! - No memory: once answered, the next load fetches again. A [`Scope`] remembers, for one request.
//! - Bounded: keys per fetch, fetches in flight, keys in line, keys that a scope remembers, and, if asked for, a fetch's time.
//!
//! Does not know SQL or caches: fetches that read a database come with the database.
//!
//! How it is built: a [`Load`] puts its key into a slot of the [`Batcher`](crate::batch::Batcher)'s inboxes, by one of the two ways
//! of the `engine`. A runner collects the inboxes into the `line`, where equal keys meet, and takes a batch of keys to `fetch`,
//! whose `answer` becomes one outcome per key.
//!
//! # Over a database
//!
//! A query for one key is enough. `database.loader(…)` takes a row per key, `loader_many(…)` all of a key's rows; serde reads them.
//! What a key gets is what its query gives alone, and all keys of a fetch are read in one snapshot.
//!
//! | | `database` | the key | many keys at a time |
//! |---|---|---|---|
//! | `sqlite` | `Sqlite::open("app.db")?` | `?1` | one statement, executed once per key, in the process |
//! | `postgres` | `Postgres::connect(url).await?` | `$1` | one query, joined to the keys, where it can be |
//! | `mysql` | `MySql::connect(url).await?` | `?` | one query with `IN (…)`, where keys and column are whole numbers |
//!
//! # In a web handler
//!
//! One loader lives as long as the program; every handler has a handle to it. Requests that come at about the same time share
//! queries without knowing of one another. Whole program: `examples/loader_axum.rs`.
//!
//! ```no_run
//! use axum::{Json, Router, extract::{Path, State}, http::StatusCode, routing::get};
//! use forebay::{load::Loader, sqlite::{ReadError, Sqlite}};
//!
//! #[derive(Clone, serde::Deserialize, serde::Serialize)]
//! struct User { id: i64, name: String }
//!
//! type Users = Loader<i64, User, ReadError>;
//!
//! async fn user(State(users): State<Users>, Path(id): Path<i64>) -> Result<Json<User>, StatusCode> {
//!     match users.load(id).await {
//!         Ok(Some(user)) => Ok(Json(user)),
//!         Ok(None) => Err(StatusCode::NOT_FOUND),
//!         Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let users: Users = Sqlite::open("app.db")?.loader("SELECT id, name FROM users WHERE id = ?1");
//! let app: Router = Router::new().route("/users/{id}", get(user)).with_state(users);
//! # Ok(())
//! # }
//! ```
//!
//! # In GraphQL resolvers
//!
//! A scope for each request: what a query mentions many times is loaded once, and the next request sees new data. An
//! executor that polls a few resolvers of a list at a time, as async-graphql's does, wants a window of a millisecond or two
//! (`Loader::builder().max_wait(…)`), which gathers the whole list's keys. Whole program: `examples/loader_graphql.rs`.
//!
//! ```
//! use async_graphql::{ComplexObject, Context, Result, SimpleObject};
//! use forebay::load::Scope;
//! use forebay::sqlite::ReadError;
//!
//! #[derive(Clone, SimpleObject, serde::Deserialize)]
//! struct Author { id: i64, name: String }
//!
//! #[derive(SimpleObject)]
//! #[graphql(complex)]
//! struct Book { title: String, author_id: i64 }
//!
//! #[ComplexObject]
//! impl Book {
//!     async fn author(&self, context: &Context<'_>) -> Result<Option<Author>> {
//!         let authors = context.data::<Scope<i64, Author, ReadError>>()?;
//!         Ok(authors.load(self.author_id).await?)
//!     }
//! }
//! ```
//!
//! # Over a batched HTTP API
//!
//! Any async function of many keys will do. Whole program: `examples/loader_http_api.rs`.
//!
//! ```no_run
//! use std::{collections::HashMap, time::Duration};
//! use forebay::load::Loader;
//!
//! # async fn prices() -> Result<(), Box<dyn std::error::Error>> {
//! let client = reqwest::Client::new();
//! let prices = Loader::builder()
//!     .max_items(100) // what the API takes
//!     .max_in_flight(4)
//!     .fetch_timeout(Duration::from_secs(2))
//!     .build(move |articles: Vec<String>| {
//!         let request = client.post("http://127.0.0.1:8080/prices").json(&articles);
//!         async move { request.send().await?.error_for_status()?.json::<HashMap<String, u64>>().await }
//!     });
//! let price: Option<u64> = prices.load("penstock".to_owned()).await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod builder;
mod engine;
mod error;
mod fetch;
mod future;
mod key;
mod line;
mod scope;
mod stats;

pub use crate::batch::Rejected;
pub use answer::{Answer, Outcomes};
pub use builder::LoaderBuilder;
pub use error::LoadError;
pub use future::Load;
pub use key::Key;
pub use scope::Scope;
pub use stats::Stats;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;

use engine::Engine;

/// Lets concurrent callers who each want a key share the fetches; each gets its own outcome.
///
/// The fetch gets keys that are all different and answers with a map, or with a list in the order of the keys; see
/// [`Answer`]. A value is cloned for each caller who shares it, so wrap what is dear to clone into an `Arc`.
///
/// ```
/// use std::collections::HashMap;
/// use forebay::load::Loader;
///
/// # #[derive(Clone, Debug, PartialEq)] struct User { name: String }
/// # #[derive(Clone)] struct Database;
/// # impl Database {
/// #     async fn users_by_id(&self, ids: &[u64]) -> Result<HashMap<u64, User>, std::io::Error> {
/// #         Ok(ids.iter().filter(|id| **id < 100).map(|id| (*id, User { name: format!("user {id}") })).collect())
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let db = Database;
/// let users = Loader::new(move |ids: Vec<u64>| {
///     let db = db.clone();
///     async move { db.users_by_id(&ids).await }
/// });
///
/// let (one, same, none) = tokio::join!(users.load(42), users.load(42), users.load(404));
/// assert_eq!(one.unwrap().unwrap().name, "user 42");
/// assert_eq!(same.unwrap().unwrap().name, "user 42");
/// assert_eq!(none.unwrap(), None);
/// // Here, on one thread. On several a fetch may be over before the last key comes, and what was in it is fetched again.
/// assert_eq!(users.stats().fetches, 1);
/// assert_eq!(users.stats().keys_fetched, 2);
/// # }
/// ```
///
/// An idle loader fetches at once; keys that come while `max_in_flight` fetches run gather for the next. With a window
/// (`max_wait`) a fetch that is not full waits for more, up to that long after its first key.
///
/// Fetches run in tasks of their own, so that cancelling a load never harms another. Clones are handles to the same loader.
/// When all handles are gone, pending loads still end.
///
/// A fetch may itself load, from another loader or the same one, at any depth. Such loads never wait for a slot, and do not join
/// a fetch that runs already, so that fetches cannot wait for one another in a circle. One that asks for its own key without end
/// gets [`LoadError::TooDeep`]. That holds in the fetch's own task, not in tasks that it spawns.
///
/// # After a write
///
/// A load joins a fetch of its key that runs already, and that fetch may have begun before a write of your own. To read what
/// you have written call [`invalidate`](Self::invalidate) first.
pub struct Loader<K, V, E = Infallible> {
    engine: Engine<K, V, E>,
    max_remembered: usize,
}

impl<K, V, E> Loader<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// The key's value, `None` if the source has none. The key enters the line when the load is first polled, and waits its
    /// turn when `max_queued` keys are in it already.
    ///
    /// The load borrows the loader; one that is to be stored or spawned comes from [`register`](Self::register).
    ///
    /// # Errors
    ///
    /// [`LoadError`], which tells this key's own errors from those of the whole fetch.
    ///
    /// # Cancel safety
    ///
    /// Dropping the load affects nobody else. Its key is taken out of the line if nobody else wants it; once its fetch has
    /// begun, the value is dropped.
    pub fn load(&self, key: K) -> Load<'_, K, V, E> {
        Load::new(self.engine.load(key))
    }

    /// The outcomes of many keys, in the order asked for, duplicates and all. The keys enter the line together when this is
    /// first polled. No keys: no fetch.
    ///
    /// # Cancel safety
    ///
    /// As [`load`](Self::load), for all of them.
    pub fn load_many(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Vec<Result<Option<V>, LoadError<E>>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        async move {
            let tickets: Vec<_> = keys.into_iter().map(|key| self.register(key)).collect();
            let mut outcomes = Vec::with_capacity(tickets.len());
            for ticket in tickets {
                outcomes.push(ticket.await);
            }
            outcomes
        }
    }

    /// Puts the key in line now, to be awaited later, and by any task. As [`load`](Self::load) in all else.
    ///
    /// It is fetched also while nobody polls it, and cancelled when dropped.
    #[doc(alias = "load_owned")]
    pub fn register(&self, key: K) -> Load<'static, K, V, E> {
        Load::new(self.engine.enter(key))
    }

    /// As [`register`](Self::register), or hands the key back: [`Overloaded`](Rejected::Overloaded) when `max_queued` keys
    /// are in line, unless this one is on its way already; [`Closed`](Rejected::Closed) after [`drain`](Self::drain).
    ///
    /// # Errors
    ///
    /// [`Rejected`], with the key.
    pub fn try_register(&self, key: K) -> Result<Load<'static, K, V, E>, Rejected<K>> {
        self.engine.try_enter(key).map(Load::new)
    }

    /// Loads of the key that come from now on are answered by a fetch that begins from now on: they do not join one that
    /// runs. To be called after a write. The loads that wait already are not affected.
    pub fn invalidate(&self, key: &K) {
        self.engine.invalidate(key);
    }

    /// Loads that come from now on, of whatever key, are answered by fetches that begin from now on.
    pub fn invalidate_all(&self) {
        self.engine.invalidate_all();
    }

    /// A memory for one request: what is loaded through it is loaded once.
    #[must_use]
    pub fn scope(&self) -> Scope<K, V, E> {
        Scope::new(self.engine.clone(), self.max_remembered)
    }

    /// Stops the intake, fetches what is in line without waiting for its window, and waits until all of it is answered. Loads
    /// that enter later get [`LoadError::Closed`], but for those that the fetches still running need.
    ///
    /// # Cancel safety
    ///
    /// From the first poll on the intake is stopped and the line is run, also when this future is dropped.
    pub async fn drain(&self) {
        self.engine.drain().await;
    }

    /// A reading of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }
}

impl<K, V, E> Clone for Loader<K, V, E> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            max_remembered: self.max_remembered,
        }
    }
}

impl<K, V, E> fmt::Debug for Loader<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("stats", &self.engine.stats())
            .finish_non_exhaustive()
    }
}
