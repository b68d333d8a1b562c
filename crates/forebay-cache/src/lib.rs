//! Cache: what was fetched a moment ago is served from memory; what is not there is fetched once, however many ask.
//!
//! Promises:
//! - One entry per key, which says the value or that there is none (*missing*). By age it is fresh (served), stale (served, and
//!   refreshed in the background) or expired (not served, unless the source fails: stale-if-error).
//! - One flight per key (or as many as [`max_fetches_per_key`](CacheBuilder::max_fetches_per_key) allows): readers of a key
//!   that is not there join the fetch of it, which runs in a task of its own. A reader who leaves affects no other.
//! - What is inserted, invalidated, marked stale or cleared wins over every fetch that began before.
//! - The capacity is never exceeded. A hit takes no lock, allocates nothing and makes no system call; but for one in 256, on
//!   average, which is recorded for [`hot_keys`](Cache::hot_keys) unless none are watched: it never waits for a lock either.
//! - What carries a tag that was invalidated is not served, nor what another process has changed, that within a stated bound ([`backplane`]).
//! - A source that fails, hangs or panics gives the reader an expired value, if one may still be used, or a typed error; never a wait
//!   beyond the timeout.
//!
//! Does not know SQL, nor what its source and tiers are.
//!
//! Asked of its users: `Hash`, `Eq` and `Clone` of keys run under locks, so they must be quick and not call the cache. So must `Clone` of values, a
//! [`staleness`](CacheBuilder::staleness) rule, which alone may call it, and the [`weigher`](CacheBuilder::weigher), and they must not wait for what somebody may hold who calls the cache: who writes waits for
//! readers that are in them, once there are some hundred entries that they may still see. A value whose clone is dear is best in an `Arc`.
//!
//! How it is built: `store` keeps `record`s and reads them without a lock; `flights` keeps the one order in which flights land and
//! writers write; `core` has these and all else that a cache is made of. On it stand `lookup`, by which a reader is answered;
//! `fetch`, a flight's way through `tier`s and `turns` to the `source`; `changes`, what the application writes; and `hearing`, what other
//! processes write and hear, by a `backplane`. `tags` has when tags were invalidated, `details` is what a source says beside a value.
//!
//! # In a web handler
//!
//! One cache lives as long as the program; every handler has a handle to it. However many requests want a page at a time, the
//! database is asked once. [`lookup`](Cache::lookup) tells how old the answer is. Whole program: `examples/cache_axum.rs`.
//!
//! ```no_run
//! use std::time::Duration;
//! use axum::{Json, Router, extract::{Path, State}, http::StatusCode, routing::get};
//! use forebay::{cache::Cache, load::LoadError, sqlite::{ReadError, Sqlite}};
//!
//! #[derive(Clone, serde::Deserialize, serde::Serialize)]
//! struct Product { id: i64, name: String }
//!
//! type Products = Cache<i64, Product, LoadError<ReadError>>;
//!
//! async fn page(State(products): State<Products>, Path(id): Path<i64>) -> Result<Json<Product>, StatusCode> {
//!     match products.get(&id).await {
//!         Ok(Some(product)) => Ok(Json(product)),
//!         Ok(None) => Err(StatusCode::NOT_FOUND),
//!         Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let loader = Sqlite::open("app.db")?.loader("SELECT id, name FROM products WHERE id = ?1");
//! let products: Products = Cache::builder(loader)
//!     .fresh_for(Duration::from_secs(5))   // Served.
//!     .stale_for(Duration::from_secs(600)) // Served, and refreshed in the background.
//!     .missing_fresh_for(Duration::from_secs(1))
//!     .missing_stale_for(Duration::ZERO)
//!     .max_fetches(4)                      // What the database is to do at a time.
//!     .build();
//! let app: Router = Router::new().route("/products/{id}", get(page)).with_state(products);
//! # Ok(())
//! # }
//! ```
//!
//! # After a write
//!
//! Write, then [`invalidate`](Cache::invalidate), in this order: a get that begins after the call is answered by a fetch that
//! begins after it. Fetches that were on their way with the old value still answer those who waited for them, and are kept nowhere.
//!
//! ```
//! use std::{convert::Infallible, sync::atomic::{AtomicU64, Ordering::SeqCst}};
//! use forebay::cache::Cache;
//!
//! static PRICE: AtomicU64 = AtomicU64::new(1_000); // Say that this is the database.
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let prices = Cache::builder(|_: u64| async { Ok::<_, Infallible>(Some(PRICE.load(SeqCst))) }).build();
//! assert_eq!(prices.get(&1).await.unwrap(), Some(1_000));
//!
//! PRICE.store(990, SeqCst);
//! assert_eq!(prices.get(&1).await.unwrap(), Some(1_000)); // Nobody has told the cache.
//! prices.invalidate(&1).await;
//! assert_eq!(prices.get(&1).await.unwrap(), Some(990));
//! # }
//! ```
//!
//! - Invalidate also where the write failed, if it may have happened all the same.
//! - A handler is dropped when its client hangs up, between the write and `invalidate` perhaps: let a task of its own do both
//!   (`tokio::spawn`).
//! - [`mark_stale`](Cache::mark_stale) keeps the old value for readers until the new one is there: nobody waits.
//!   [`insert`](Cache::insert) spares the fetch, where whoever writes knows the whole value and nobody else writes the key.
//! - All of them hold in this process from the call on. With tiers, await what they return: a deletion that no tier has heard
//!   of when the process ends is lost, and the next start finds the old value. Without tiers it is ready at once.
//!
//! # When the source fails
//!
//! | memory, or a tier, has | a reader gets |
//! |---|---|
//! | a fresh or stale entry | that; a refresh that fails is tried again after a back-off ([`retry_after`](CacheBuilder::retry_after)) |
//! | an expired one, for [`stale_if_error_for`](CacheBuilder::stale_if_error_for) | that, as [`State::Rescued`], once the fetch has failed; during the back-off at once |
//! | nothing | a [`CacheError`], the same for all who waited; the next get asks again |
//!
//! ```
//! use std::{sync::atomic::{AtomicBool, Ordering::SeqCst}, time::Duration};
//! use forebay::cache::{Cache, CacheError, State};
//!
//! static DOWN: AtomicBool = AtomicBool::new(false);
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let ask = |n: u64| async move { if DOWN.load(SeqCst) { Err("no route to host") } else { Ok(Some(n * n)) } };
//! let squares = Cache::builder(ask)
//!     .fresh_for(Duration::ZERO) // So each get asks.
//!     .stale_if_error_for(Duration::from_secs(3600))
//!     .build();
//! assert_eq!(squares.lookup(&12).await.unwrap().state, State::Fetched);
//!
//! DOWN.store(true, SeqCst);
//! let answer = squares.lookup(&12).await.unwrap();
//! assert_eq!((answer.value, answer.state), (Some(144), State::Rescued));
//! let error = squares.lookup(&13).await.unwrap_err(); // Nothing is known of it.
//! assert_eq!(error.source_error(), Some(&"no route to host"));
//! # }
//! ```
//!
//! A source that hangs is one that fails, after the [`fetch_timeout`](CacheBuilder::fetch_timeout). Where an expired entry could
//! answer, the [`soft_timeout`](CacheBuilder::soft_timeout) says how long a reader waits for better; and with
//! [`get_within`](Cache::get_within) a reader says it for itself. The flight goes on.
//!
//! # Tiers
//!
//! Below memory there may be further [`tier`]s, which are asked before the source is: a SQLite file, so that the next start finds what
//! this one fetched (feature `tier-sqlite`), or a Redis or Valkey that many processes share (`redis`). Ages go with the values, so a
//! copy is fresh, stale or expired wherever it comes from; an expired one still rescues, from memory, if that has room for it. What is fetched to be kept for
//! no time takes away the older copy that a tier has answered with, or may have by a put of this process, as far as the tier takes deletions.
//!
//! ```no_run
//! use std::convert::Infallible;
//! use forebay::cache::{Cache, tier::{Form, KeyForm, Postcard, sqlite::SqliteTier}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let form: Form<u64, u64> = Form::new("squares", KeyForm::display(), Postcard);
//! let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) })
//!     .tier(SqliteTier::builder("squares.cache", form).open()?)
//!     .build();
//! # Ok(())
//! # }
//! ```
//!
//! What is fetched goes to the tiers in the background: await [`settled`](Cache::settled) before the program ends, or the last of
//! it is not there at the next start. A file is open in one process at a time, and is the tier's alone. A tier also remembers
//! across a crash between a write and its `invalidate`: the windows bound how old a value may then be.
//!
//! A tier that fails, hangs or is down is skipped and counted ([`Stats::tiers`]), never a reader's error. `insert`, `invalidate` and
//! `clear` go through all of them: what was invalidated is not read from a tier again from the call on, and a tier that was down is
//! told when it is back. Await what they return ([`Settled`]) to know that other processes cannot read it there any more; that
//! may take as long as the tier is down. Their own memory hears of it by a [`backplane`].
//!
//! # Several processes
//!
//! With a [`backplane`] the caches of several processes hear of one another's changes; with a lease
//! ([`TierSettings::lease_for`](tier::TierSettings::lease_for)) one of them fetches for all. Both by Redis or Valkey (feature `redis`).
//!
//! # Warm starts
//!
//! [`hot_keys`](Cache::hot_keys) lists what is in demand, by a sample of the uses; [`warm`](Cache::warm) fetches it before anybody
//! asks, most used first. [`HotKeys`] is plain data, and serializable with the feature `serde`.
//!
//! ```
//! # use std::convert::Infallible;
//! # use forebay::cache::{Cache, Entry, HotKeys};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let build = || Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) }).build();
//! # let (last_run, squares) = (build(), build());
//! # for _ in 0..20_000 { last_run.get(&12).await?; }
//! let saved = serde_json::to_string(&last_run.hot_keys(1_000))?; // At the stop, or now and then.
//!
//! let hot_keys: HotKeys<u64> = serde_json::from_str(&saved)?; // At the start.
//! let warmed = squares.warm(hot_keys, |so_far| println!("{} of {}", so_far.done, so_far.keys)).await;
//! assert_eq!((warmed.present, squares.get_if_fresh(&12)), (1, Some(Entry::Present(144))));
//! # Ok(())
//! # }
//! ```
//!
//! # What it counts
//!
//! [`stats`](Cache::stats) is a reading of all counters. To judge a cache look at three: [`hit_rate`](Stats::hit_rate), the share
//! of lookups that memory answered; `joined` of the `misses`, which would have been fetches without sharing; and `evictions`
//! beside `entries`, which say whether the capacity is too small. `fetches` counts trips to the source: over a loader one brings
//! many keys (`keys_fetched`).
//!
//! A cache with a [`name`](CacheBuilder::name) publishes them once a second through the facade `metrics`, as `forebay_cache_hits_total`
//! (labels `cache` and `state`), `forebay_cache_misses_total`, `forebay_cache_fetches_total` and so on, and the time of each fetch
//! as `forebay_cache_fetch_seconds`. Flights are `tracing` spans, `flight`, at the level debug.

mod answer;
pub mod backplane;
mod builder;
mod changes;
mod clock;
mod core;
mod details;
mod error;
mod events;
mod fetch;
mod flight;
mod flights;
mod get;
mod hearing;
mod hot;
mod hot_keys;
mod lookup;
mod metrics;
#[cfg(all(test, forebay_loom))]
mod model;
mod nested;
mod publishing;
mod record;
#[cfg(feature = "redis")]
mod redis_link;
mod settled;
mod source;
mod stats;
mod store;
mod sync;
mod tags;
pub mod tier;
mod trip;
mod turns;
mod waits;

pub use answer::{Answer, Entry, State};
pub use builder::CacheBuilder;
pub use clock::Clock;
pub use details::Details;
pub use error::CacheError;
pub use events::{Event, Events};
pub use get::Get;
pub use hot_keys::{HotKeys, Warmed};
pub use record::Staleness;
pub use settled::Settled;
pub use source::{Conditional, Fetched, IntoFetched, Known, Source, conditional};
pub use stats::Stats;

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use self::core::Core;
use self::fetch::Departure;
use self::lookup::{Ashore, Told, Waiting, served};
use self::record::Record;
use forebay_batch::load::Key;

/// Keeps what a source answered, and asks it once for what many want.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::Cache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>((n < 100).then_some(n * n)) })
///     .capacity(10_000)
///     .fresh_for(Duration::from_secs(5))
///     .stale_for(Duration::from_secs(3600))
///     .missing_fresh_for(Duration::from_secs(1))
///     .build();
///
/// assert_eq!(squares.get(&12).await.unwrap(), Some(144)); // Fetched.
/// assert_eq!(squares.get(&12).await.unwrap(), Some(144)); // From memory.
/// assert_eq!(squares.get(&404).await.unwrap(), None);     // That is remembered too.
/// assert_eq!(squares.stats().fetches, 2);
/// # }
/// ```
///
/// A value is cloned for each reader: wrap what is dear to clone into an `Arc`. Clones of the cache are handles to the same one.
///
/// Over a [`Loader`](forebay_batch::load::Loader) the misses and refreshes of many keys become few fetches:
/// `Cache::builder(loader)`.
///
/// # Which entry goes
///
/// When room is needed the entry goes that can be spared most: by recency, by frequency, or by how soon a key comes back, whichever of four
/// rules has the most hits on a sample of the keys. They are tried on small caches of their own, which take less than 200 KiB.
///
/// # A source that gets from caches
///
/// A source may get from a cache, this one too, at any depth. A get that would wait for its own fetch, directly or over others and other caches,
/// is refused at once with [`CacheError::Circle`]. That holds in the fetch's own task, not in tasks that it spawns, nor behind a
/// [`Loader`](forebay_batch::load::Loader), whose fetches are for many callers and in tasks of their own: one that gets from the cache that waits for it is ended by the
/// fetch's time-out alone.
pub struct Cache<K, V, E = Infallible> {
    core: Arc<Core<K, V, E>>,
}

impl<K, V, E> Cache<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// The key's value, `None` if the source has none: from memory if it is fresh or stale there, else by a flight.
    ///
    /// # Errors
    ///
    /// [`CacheError`], when memory has nothing that may be served and the flight failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future harms no other reader. The flight goes on, unless it still waits for its turn and nobody else
    /// waits for it.
    #[inline]
    pub fn get<'a, Q>(&'a self, key: &'a Q) -> Get<'a, K, V, E, Q>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        Get::new(&self.core, key)
    }

    /// As [`get`](Self::get), and tells the value's state and age.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn lookup<Q>(&self, key: &Q) -> Result<Answer<V>, CacheError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.core.store.hash(key);
        if let Some(answer) = self.core.glance(hash, key, served) {
            self.core.hit(key, answer.state);
            return Ok(answer);
        }
        self.obtain(hash, key).await
    }

    /// As [`get`](Self::get), for a reader who waits no longer than `limit`; then it gets what could rescue, or
    /// [`WaitedTooLong`](CacheError::WaitedTooLong). The flight goes on, as when the reader is cancelled.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn get_within<Q>(&self, key: &Q, limit: Duration) -> Result<Option<V>, CacheError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.core.store.hash(key);
        if let Some((value, state)) = self
            .core
            .glance(hash, key, |record, state, _| (record.value().cloned(), state))
        {
            self.core.hit(key, state);
            return Ok(value);
        }
        let limited = || tokio::time::timeout(limit, self.obtain(hash, key));
        let Some(limited) = self.core.in_the_runtime(limited) else {
            return Err(CacheError::Stopped);
        };
        match limited.await {
            Ok(outcome) => outcome.map(|answer| answer.value),
            Err(_) => match self.core.rescue(hash, &key.to_owned()) {
                Some(answer) => Ok(answer.value),
                None => Err(CacheError::WaitedTooLong(limit)),
            },
        }
    }

    /// The outcomes of many keys, in the order asked for, duplicates and all. Where the source is a
    /// [`Loader`](forebay_batch::load::Loader), all that memory does not have is one fetch, up to the loader's own limit.
    ///
    /// Where there are more than may be in the air (`max_flights`), the next go when some have landed. Those for which there is no room while none is
    /// in the air for this call are refused, as a `get` is.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get), for all of them.
    pub async fn get_many(&self, keys: impl IntoIterator<Item = K>) -> Vec<Result<Option<V>, CacheError<E>>> {
        let answers = self.lookup_many(keys).await;
        let value = |answer: Result<Answer<V>, _>| answer.map(|answer| answer.value);
        answers.into_iter().map(value).collect()
    }

    /// As [`get_many`](Self::get_many), and tells each value's state and age.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get), for all of them.
    pub async fn lookup_many(&self, keys: impl IntoIterator<Item = K>) -> Vec<Result<Answer<V>, CacheError<E>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let mut answers: Vec<_> = keys.iter().map(|_| None).collect();
        let answered = |at: usize, answer| answers[at] = Some(answer);
        self.lookup_each(keys, Told::AtLast, answered).await;
        let answer = |answer: Option<_>| answer.expect("each key has flown or was answered at once");
        answers.into_iter().map(answer).collect()
    }

    /// The same, each told by itself.
    pub(crate) async fn lookup_each(
        &self,
        keys: Vec<K>,
        told: Told,
        mut answered: impl FnMut(usize, Result<Answer<V>, CacheError<E>>),
    ) {
        let core = &self.core;
        let mut departure = Departure::new(core);
        // Those that fly for this caller, and where their answers belong. As they land is dearer: each wakes the caller.
        let (mut in_order, mut as_they_land) = (Vec::new(), FuturesUnordered::new());
        let landed = |(at, waiting): (usize, Waiting<K, V, E>)| async move { (at, waiting.landed().await) };
        // Those for which there was no room.
        let mut left = VecDeque::new();
        for (at, key) in keys.into_iter().enumerate() {
            let hash = core.store.hash(&key);
            let known = core.glance(hash, &key, served);
            core.used(&key);
            if let Some(answer) = known {
                core.told_hit(&key, answer.state);
                answered(at, Ok(answer));
                continue;
            }
            match core.board(hash, key, departure.legs()) {
                Ok(waiting) => in_order.push((at, waiting)),
                Err(Ashore::Answered(answer)) => answered(at, Ok(answer)),
                Err(Ashore::Full(key)) => left.push_back((at, hash, key)),
            }
        }
        drop(departure);
        // If it is this caller's own keys that are too many, the next ones go when any flight has ended. Who has none in the air is refused.
        while !left.is_empty() {
            as_they_land.extend(in_order.drain(..).map(landed));
            let mut room = core.flights.wants_room();
            let mut departure = Departure::new(core);
            while let Some((at, hash, key)) = left.pop_front() {
                match core.board(hash, key, departure.legs()) {
                    Ok(waiting) => as_they_land.push(landed((at, waiting))),
                    Err(Ashore::Answered(answer)) => answered(at, Ok(answer)),
                    Err(Ashore::Full(key)) => {
                        left.push_front((at, hash, key));
                        break;
                    }
                }
            }
            drop(departure);
            if as_they_land.is_empty() {
                for (at, hash, key) in left.drain(..) {
                    answered(at, core.refused(hash, &key));
                }
            }
            if !left.is_empty() {
                tokio::select! {
                    landed = as_they_land.next() => {
                        let (at, answer) = landed.expect("some fly");
                        answered(at, answer);
                    }
                    () = room.is_left() => {}
                }
            }
        }
        if told == Told::AsTheyLand {
            as_they_land.extend(in_order.drain(..).map(landed));
        }
        for (at, waiting) in in_order {
            answered(at, waiting.landed().await);
        }
        while let Some((at, answer)) = as_they_land.next().await {
            answered(at, answer);
        }
    }

    /// What memory has, if it is fresh. Asks nobody, begins nothing.
    #[inline]
    pub fn get_if_fresh<Q>(&self, key: &Q) -> Option<Entry<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let entry = |record: &Record<V>, _| Entry::from(record.value().cloned());
        let entry = self.core.fresh(self.core.store.hash(key), key, entry)?;
        self.core.hit(key, State::Fresh);
        Some(entry)
    }

    /// As [`get_if_fresh`](Self::get_if_fresh), and tells the value's age.
    pub fn lookup_if_fresh<Q>(&self, key: &Q) -> Option<Answer<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let answer = |record: &Record<V>, now_ms| served(record, State::Fresh, now_ms);
        let answer = self.core.fresh(self.core.store.hash(key), key, answer)?;
        self.core.hit(key, State::Fresh);
        Some(answer)
    }

    /// What memory has of the key, however old it is, unless it was invalidated. Asks nobody, begins nothing, and counts as no lookup: it is for whoever has
    /// a say of his own in when an expired value will do. What another process has changed may not have been heard.
    ///
    /// ```
    /// use std::{convert::Infallible, time::Duration};
    /// use forebay::cache::{Cache, Fetched};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let prices = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Fetched::of(n * n).tag("prices")) })
    ///     .fresh_for(Duration::ZERO)
    ///     .build();
    /// prices.get(&12).await?;
    /// assert_eq!(prices.get_if_fresh(&12), None);
    /// let known = prices.known(&12).expect("it is there still");
    /// assert!(known.value == Some(144) && known.age < Duration::from_secs(60));
    /// prices.invalidate_tag("prices").await;
    /// assert_eq!(prices.known(&12), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn known<Q>(&self, key: &Q) -> Option<Known<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.core.known_of(self.core.store.hash(key), key)
    }

    /// Keeps a value that the application knows to be the present one, in memory from now on, and in all tiers. No fetch that
    /// began before can replace it.
    pub fn insert(&self, key: K, value: V) -> Settled {
        let hash = self.core.store.hash(&key);
        self.core.insert(hash, key, Fetched::of(value));
        self.settled()
    }

    /// As [`insert`](Self::insert), of a value (or that there is none) with all that a source could say of it: windows, tags, weight, validator.
    pub fn insert_fetched(&self, key: K, fetched: Fetched<V>) -> Settled {
        let hash = self.core.store.hash(&key);
        self.core.insert(hash, key, fetched);
        self.settled()
    }

    /// Keeps the knowledge that the source has no value for the key; else as [`insert`](Self::insert).
    pub fn insert_missing(&self, key: K) -> Settled {
        let hash = self.core.store.hash(&key);
        self.core.insert(hash, key, Fetched::missing());
        self.settled()
    }

    /// Forgets the key: a get that begins from now on is answered by a fetch that begins from now on. No fetch that began
    /// before can bring the old value back, and it is not read from a tier again: a tier that fails is told until it has heard.
    pub fn invalidate<Q>(&self, key: &Q) -> Settled
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.core.invalidate(self.core.store.hash(key), key);
        self.settled()
    }

    /// Makes the key's entry stale: it is served (for as long as it would have been fresh or stale), and refreshed by the next
    /// reader, by a fetch that begins from now on. Tiers forget the key.
    pub fn mark_stale<Q>(&self, key: &Q) -> Settled
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.core.mark_stale(self.core.store.hash(key), key);
        self.settled()
    }

    /// Forgets all keys whose values carry the tag ([`Fetched::tag`]), as [`invalidate`](Self::invalidate) does one: also those that a fetch
    /// brings which began before. It takes one look into a table, however many they are.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use forebay::cache::{Cache, Fetched};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let price = |n: u64| async move {
    ///     let currency = if n % 2 == 0 { "EUR" } else { "JPY" };
    ///     Ok::<_, Infallible>(Fetched::of(format!("{n} {currency}")).tag(currency).tag("prices"))
    /// };
    /// let prices = Cache::builder(price).build();
    /// for n in 0..10 {
    ///     prices.get(&n).await.unwrap();
    /// }
    /// prices.invalidate_tag("JPY").await;
    /// assert_eq!((0..10).filter(|n| prices.get_if_fresh(n).is_some()).count(), 5);
    /// # }
    /// ```
    ///
    /// Entries that were inserted without tags, and those of a cache whose source is another cache, have none.
    pub fn invalidate_tag(&self, tag: &str) -> Settled {
        self.core.invalidate_tag(tag);
        self.settled()
    }

    /// Forgets all keys, as [`invalidate`](Self::invalidate) does one.
    pub fn clear(&self) -> Settled {
        self.core.clear();
        self.settled()
    }

    /// Fetches the key from the source, whatever is known of it, by a fetch that begins now. Readers who come meanwhile are
    /// served what is there. Of refreshes and fetches that overlap, what has come is kept until something comes of a fetch that began later.
    /// It takes no fetch out of the air that began before: who comes when the entry has gone again may still be answered by one. After a write it is
    /// [`invalidate`](Self::invalidate) that has the last word.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); what is known stays.
    ///
    /// # Cancel safety
    ///
    /// As [`get`](Self::get).
    pub async fn refresh<Q>(&self, key: &Q) -> Result<Option<V>, CacheError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.core.store.hash(key);
        let refresh = Arc::clone(&self.core).refresh(hash, key.to_owned());
        Ok(refresh.await?.value)
    }

    /// Waits until the tiers have heard of everything that was written before.
    pub fn settled(&self) -> Settled {
        let outbox = self.core.outbox.as_ref().map(|own| &own.0);
        Settled::new(&self.core.tiers, self.core.source.settled(), outbox, || {
            Arc::clone(&self.core) as Arc<dyn Send + Sync>
        })
    }

    /// What happens from now on, as it happens. Where nobody listens this costs a hit next to nothing; a listener who is slower than 4,096 events
    /// loses the oldest.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use forebay::cache::{Cache, Event, State};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let squares = Cache::builder(|n: u64| async move { Ok::<_, Infallible>(Some(n * n)) }).build();
    /// let mut events = squares.events();
    /// squares.get(&12).await.unwrap();
    /// squares.get(&12).await.unwrap();
    /// squares.invalidate(&12).await;
    /// let missed = Event::Missed { key: 12, expired: false, joined: false };
    /// let fetched = Event::Fetched { key: 12, missing: false, by_tier: false, kept: true };
    /// let hit = Event::Hit { key: 12, state: State::Fresh };
    /// let changed = Event::Changed { key: 12, elsewhere: false };
    /// for expected in [missed, fetched, hit, changed] {
    ///     assert_eq!(events.next().await, Some(expected));
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn events(&self) -> Events<K> {
        self.core.events.listen()
    }

    /// A reading of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// On the heap, so that a get that hits does not carry the room for one that does not.
    #[cold]
    async fn obtain<Q>(&self, hash: u64, key: &Q) -> Result<Answer<V>, CacheError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.core.used(key);
        Box::pin(Arc::clone(&self.core).obtain(hash, key.to_owned())).await
    }
}

impl<K, V, E> Clone for Cache<K, V, E> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
        }
    }
}

impl<K, V, E> fmt::Debug for Cache<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("name", &self.core.settings.name)
            .finish_non_exhaustive()
    }
}
