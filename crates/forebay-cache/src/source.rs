//! Where a cache fetches from: an async function of a key, a [`Loader`], another [`Cache`](super::Cache); and what it says of a value
//! beside the value.
//!
//! Promises: a source is asked for a key by one flight at a time (or as many as the cache was told), in a task of the cache's.
//! Knows nothing of how answers are kept.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::backplane::Change;
use super::details::Details;
use super::settled::Settled;
use forebay_batch::load::{Key, Load, LoadError, Loader};

/// What a source answered for a key: a value or that there is none, and what else it says of it.
///
/// An async function may return one in place of an `Option`:
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Fetched};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let pages = Cache::builder(|path: String| async move {
///     let page = Fetched::of(format!("<h1>{path}</h1>")).fresh_for(Duration::from_secs(3600)).tag("shop").weight(500);
///     Ok::<_, Infallible>(page)
/// })
/// .build();
/// assert_eq!(pages.get("/cart").await.unwrap().unwrap(), "<h1>/cart</h1>");
/// assert_eq!(pages.stats().weight, 500);
///
/// pages.invalidate_tag("shop").await;
/// assert_eq!(pages.get_if_fresh("/cart"), None);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched<V> {
    /// The value, or that there is none.
    pub value: Option<V>,
    /// How old the value was when the source gave it: zero, unless the source is itself a cache.
    pub age: Duration,
    /// What else is known of it.
    pub details: Details,
    /// Whether it is what was known before.
    pub(super) unchanged: bool,
}

impl<V> From<Option<V>> for Fetched<V> {
    fn from(value: Option<V>) -> Self {
        Self {
            value,
            age: Duration::ZERO,
            details: Details::default(),
            unchanged: false,
        }
    }
}

impl<V> Fetched<V> {
    /// This value.
    pub fn of(value: V) -> Self {
        Some(value).into()
    }

    /// There is none.
    pub fn missing() -> Self {
        None.into()
    }

    /// It is that old already.
    #[must_use]
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// It is fresh for so long, counted from the beginning of its fetch, whatever the cache's windows are.
    #[must_use]
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.details.fresh_for = Some(fresh_for);
        self
    }

    /// It is stale for so long after that.
    #[must_use]
    pub fn stale_for(mut self, stale_for: Duration) -> Self {
        self.details.stale_for = Some(stale_for);
        self
    }

    /// It weighs so much, whatever the cache's weigher says.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.details.weight = Some(weight);
        self
    }

    /// It is about this too; see [`Cache::invalidate_tag`](super::Cache::invalidate_tag). An entry may have many tags.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<Arc<str>>) -> Self {
        self.details.tags.push(tag.into());
        self
    }

    /// By this the source can tell later whether it has changed; see [`conditional`].
    #[must_use]
    pub fn validator(mut self, validator: impl Into<Arc<str>>) -> Self {
        self.details.validator = Some(validator.into());
        self
    }
}

/// What memory has of a key that a fetch is to bring anew, for sources that can tell cheaply that it has not changed.
///
/// ```
/// use forebay::cache::{Fetched, Known};
///
/// /// The rows of a table whose `version` grows with each change.
/// fn row(known: Option<Known<String>>, version: i64, read: impl FnOnce() -> String) -> Fetched<String> {
///     match known {
///         Some(known) if known.validator() == Some(&version.to_string()) => known.unchanged(),
///         _ => Fetched::of(read()).validator(version.to_string()),
///     }
/// }
///
/// assert_eq!(row(None, 7, || "Ada".to_owned()).value.unwrap(), "Ada");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known<V> {
    /// The value, or that there was none.
    pub value: Option<V>,
    /// How old it is.
    pub age: Duration,
    /// What the source said of it.
    pub details: Details,
}

impl<V> Known<V> {
    /// The validator that came with it, if one did.
    pub fn validator(&self) -> Option<&str> {
        self.details.validator.as_deref()
    }

    /// It has not changed: it is as good as if it had just been fetched, with the same details.
    #[must_use]
    pub fn unchanged(self) -> Fetched<V> {
        Fetched {
            value: self.value,
            age: Duration::ZERO,
            details: self.details,
            unchanged: true,
        }
    }
}

/// What an async function that is a source may return: an `Option` of a value, or all that a [`Fetched`] says.
///
/// For an answer of your own:
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Fetched, IntoFetched};
///
/// /// What a server answered, and how long it holds.
/// struct Response { body: Option<String>, max_age: Duration }
///
/// impl IntoFetched for Response {
///     type Value = String;
///
///     fn into_fetched(self) -> Fetched<String> {
///         Fetched::from(self.body).fresh_for(self.max_age)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pages = Cache::new(|path: String| async move {
///     Ok::<_, Infallible>(Response { body: Some(format!("<h1>{path}</h1>")), max_age: Duration::ZERO })
/// });
/// assert_eq!(pages.get("/cart").await?.unwrap(), "<h1>/cart</h1>");
/// assert_eq!(pages.get_if_fresh("/cart"), None); // It said so.
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a source's function returns `Result<Option<V>, E>` or `Result<Fetched<V>, E>`, not a result of `{Self}`",
    label = "wrap the value into `Some`, or into `Fetched::of`",
    note = "`Ok(None)` says that the source has no value for the key, which the cache remembers too"
)]
pub trait IntoFetched {
    /// The value.
    type Value;
    /// All that is said of it.
    fn into_fetched(self) -> Fetched<Self::Value>;
}

impl<V> IntoFetched for Option<V> {
    type Value = V;

    fn into_fetched(self) -> Fetched<V> {
        self.into()
    }
}

impl<V> IntoFetched for Fetched<V> {
    type Value = V;

    fn into_fetched(self) -> Fetched<V> {
        self
    }
}

/// What a cache fetches from when it has nothing fresh.
///
/// Implemented for async functions `Fn(K) -> Result<Option<V>, E>` (or of a [`Fetched`]), for [`Loader`], which gathers the keys that many flights
/// want at about the same time into few fetches, and for [`Cache`](super::Cache). A loader's values are kept as they are: for those with tags a function asks the
/// loader, and returns [`Fetched`].
///
/// A caller of a source (the cache) guarantees: it asks again only after the answer before it, or after `invalidate`.
/// An implementation must: answer from data no older than its call, but for an age that it tells.
///
/// For a type of your own:
///
/// ```
/// use std::{io, path::PathBuf};
/// use forebay::cache::{Cache, Fetched, Source};
///
/// /// Files of a folder, by their names.
/// struct Files { folder: PathBuf }
///
/// impl Source<String> for Files {
///     type Value = String;
///     type Error = io::Error;
///
///     async fn fetch(&self, name: String) -> Result<Fetched<String>, io::Error> {
///         let path = self.folder.join(name);
///         let read = tokio::task::spawn_blocking(|| std::fs::read_to_string(path)).await?;
///         match read {
///             Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Fetched::missing()),
///             read => read.map(Fetched::of),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().to_owned();
/// std::fs::write(folder.join("motd"), "Mind the weir")?;
/// let files = Cache::new(Files { folder });
/// assert_eq!(files.get("motd").await?.as_deref(), Some("Mind the weir"));
/// assert_eq!(files.get("issue").await?, None);
/// # Ok(())
/// # }
/// ```
pub trait Source<K>: Send + Sync + 'static {
    /// What it brings.
    type Value: Clone + Send + Sync + 'static;
    /// How it fails.
    type Error: Send + Sync + 'static;

    /// Whether [`fetch_many`](Self::fetch_many) costs about as much as one fetch.
    const GATHERS: bool = false;

    /// Whether [`fetch_again`](Self::fetch_again) makes use of what is known.
    const CONDITIONAL: bool = false;

    /// The key's value, `None` inside if the source has none.
    fn fetch(&self, key: K) -> impl Future<Output = Result<Fetched<Self::Value>, Self::Error>> + Send;

    /// As [`fetch`](Self::fetch), for a key of which something is known. Where it has not changed, the answer is
    /// [`known.unchanged()`](Known::unchanged). Called only where [`CONDITIONAL`](Self::CONDITIONAL) says so, one key at a time. Default: fetches.
    fn fetch_again(
        &self,
        key: K,
        known: Known<Self::Value>,
    ) -> impl Future<Output = Result<Fetched<Self::Value>, Self::Error>> + Send
    where
        K: Send,
    {
        drop(known);
        self.fetch(key)
    }

    /// As [`fetch`](Self::fetch), not from what was read before this call; though nothing is known to have changed, so that what is known may stay, should it
    /// fail. One key at a time. Default: [`invalidate`](Self::invalidate), and fetches.
    fn fetch_anew(&self, key: K) -> impl Future<Output = Result<Fetched<Self::Value>, Self::Error>> + Send
    where
        K: Send + Sync,
    {
        async move {
            self.invalidate(&key);
            self.fetch(key).await
        }
    }

    /// The outcomes of many keys, one per key and in their order. Called only where [`GATHERS`](Self::GATHERS) says so.
    fn fetch_many(&self, keys: Vec<K>) -> impl Future<Output = Vec<Result<Fetched<Self::Value>, Self::Error>>> + Send
    where
        K: Send,
    {
        async move {
            let mut outcomes = Vec::with_capacity(keys.len());
            for key in keys {
                outcomes.push(self.fetch(key).await);
            }
            outcomes
        }
    }

    /// As [`fetch_many`](Self::fetch_many), for sources of which some keys' outcomes come before others': `arrived` is called with each key's place and its outcome as soon as
    /// it is there, once, so that who wants that key waits for no other. The answer is how many outcomes there were; if that is another number than that of the
    /// keys, those that have none fail. Default: [`fetch_many`](Self::fetch_many), and all of them when all are there.
    fn fetch_each(
        &self,
        keys: Vec<K>,
        arrived: impl Fn(usize, Result<Fetched<Self::Value>, Self::Error>) + Send + Sync,
    ) -> impl Future<Output = usize> + Send
    where
        K: Send,
    {
        async move {
            let wanted = keys.len();
            let outcomes = self.fetch_many(keys).await;
            let count = outcomes.len();
            if count == wanted {
                let each = outcomes.into_iter().enumerate();
                each.for_each(|(place, outcome)| arrived(place, outcome));
            }
            count
        }
    }

    /// From now on a fetch of this key must not be answered from what was read before. Default: nothing to do.
    fn invalidate(&self, _key: &K) {}

    /// The same for what another process has changed, which a source that has other processes too need not tell them. Default: as if it had been
    /// changed here.
    fn heard(&self, change: &Change<K>) {
        match change {
            Change::Key(key) | Change::Stale(key) => self.invalidate(key),
            Change::Tag(tag) => self.invalidate_tag(tag),
            Change::All => self.invalidate_all(),
            Change::Untold => {}
        }
    }

    /// The same for all keys whose values carry a tag, whichever they are. Default: for all keys.
    fn invalidate_tag(&self, _tag: &str) {
        self.invalidate_all();
    }

    /// The same for all keys. Of those that the cache itself is asking for, the source is told one by one in any case. Default:
    /// nothing to do.
    fn invalidate_all(&self) {}

    /// Resolves when what was invalidated before is not read any more in places that this source shares with those of other processes. Others are
    /// told of a change after that. Default: there are none.
    fn settled(&self) -> Option<Settled> {
        None
    }
}

impl<K, T, E, F, Fut> Source<K> for F
where
    F: Fn(K) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: IntoFetched,
    T::Value: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    K: Send,
{
    type Value = T::Value;
    type Error = E;

    async fn fetch(&self, key: K) -> Result<Fetched<T::Value>, E> {
        self(key).await.map(T::into_fetched)
    }
}

/// A source that is told what is known of the key, if memory has something: an async function of the key and that.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::{Cache, Fetched, Known, conditional};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // As a server of HTTP does: 304 if it is what the client has.
/// let page = conditional(|path: String, known: Option<Known<String>>| async move {
///     let version = "v7"; // Cheaper to find out than the page.
///     match known {
///         Some(known) if known.validator() == Some(version) => Ok(known.unchanged()),
///         _ => Ok::<_, Infallible>(Fetched::of(format!("<h1>{path}</h1>")).validator(version)),
///     }
/// });
/// let pages = Cache::builder(page).fresh_for(Duration::ZERO).build(); // So each get asks.
/// for _ in 0..3 {
///     assert_eq!(pages.get("/cart").await.unwrap().unwrap(), "<h1>/cart</h1>");
/// }
/// assert_eq!((pages.stats().fetches, pages.stats().unchanged), (3, 2));
/// # }
/// ```
///
/// A value is handed over fresh, stale or expired, for as long as memory has it; not one that was invalidated.
pub fn conditional<K, V, E, F, Fut>(fetch: F) -> Conditional<K, V, F>
where
    F: Fn(K, Option<Known<V>>) -> Fut,
    Fut: Future<Output = Result<Fetched<V>, E>>,
{
    let takes = PhantomData;
    Conditional { fetch, takes }
}

/// See [`conditional`].
///
/// It is a source as any other, to be handed on as one:
///
/// ```
/// use std::convert::Infallible;
/// use forebay::cache::{Cache, Fetched, Known, Source, conditional};
///
/// /// The rows of a table that has a version.
/// fn rows(version: u64) -> impl Source<u64, Value = String, Error = Infallible> {
///     conditional(move |id: u64, known: Option<Known<String>>| async move {
///         match known {
///             Some(known) if known.validator() == Some(&version.to_string()) => Ok(known.unchanged()),
///             _ => Ok(Fetched::of(format!("row {id}")).validator(version.to_string())),
///         }
///     })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rows = Cache::new(rows(7));
/// rows.get(&1).await?;
/// assert_eq!(rows.refresh(&1).await?.unwrap(), "row 1");
/// assert_eq!((rows.stats().fetches, rows.stats().unchanged), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Conditional<K, V, F> {
    fetch: F,
    takes: PhantomData<fn(K, V)>,
}

impl<K, V, E, F, Fut> Source<K> for Conditional<K, V, F>
where
    F: Fn(K, Option<Known<V>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Fetched<V>, E>> + Send + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    K: Send + 'static,
{
    type Value = V;
    type Error = E;

    const CONDITIONAL: bool = true;

    fn fetch(&self, key: K) -> impl Future<Output = Result<Fetched<V>, E>> + Send {
        (self.fetch)(key, None)
    }

    fn fetch_again(&self, key: K, known: Known<V>) -> impl Future<Output = Result<Fetched<V>, E>> + Send {
        (self.fetch)(key, Some(known))
    }
}

impl<K, V, E> Source<K> for Loader<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    type Value = V;
    type Error = LoadError<E>;

    const GATHERS: bool = true;

    async fn fetch(&self, key: K) -> Result<Fetched<V>, LoadError<E>> {
        self.load(key).await.map(Fetched::from)
    }

    async fn fetch_many(&self, keys: Vec<K>) -> Vec<Result<Fetched<V>, LoadError<E>>> {
        let outcomes = self.load_many(keys).await;
        outcomes.into_iter().map(|outcome| outcome.map(Fetched::from)).collect()
    }

    async fn fetch_each(
        &self,
        keys: Vec<K>,
        arrived: impl Fn(usize, Result<Fetched<V>, LoadError<E>>) + Send + Sync,
    ) -> usize {
        let count = keys.len();
        let load = |(place, key)| (place, self.register(key));
        let mut loads: Vec<_> = keys.into_iter().enumerate().map(load).collect();
        // Mostly one fetch brings all, and then it is not worth while to have each wake by itself.
        let mut looks = 0;
        let first = poll_fn(|context| {
            loads.retain_mut(|(place, load)| match load.poll_unpin(context) {
                Poll::Ready(outcome) => {
                    arrived(*place, outcome.map(Fetched::from));
                    false
                }
                Poll::Pending => true,
            });
            looks += 1;
            match looks < 2 && !loads.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        });
        first.await;
        let landed = |(place, load): (usize, Load<'static, K, V, E>)| async move { (place, load.await) };
        let mut rest: FuturesUnordered<_> = loads.into_iter().map(landed).collect();
        while let Some((place, outcome)) = rest.next().await {
            arrived(place, outcome.map(Fetched::from));
        }
        count
    }

    fn invalidate(&self, key: &K) {
        Loader::invalidate(self, key);
    }

    fn invalidate_all(&self) {
        Loader::invalidate_all(self);
    }
}

/// The one outcome of a fetch of one key.
pub(super) type Outcome<V, E> = Result<Fetched<V>, E>;

/// Takes a key's place and its outcome.
pub(super) type Arrived<'a, V, E> = dyn Fn(usize, Outcome<V, E>) + Send + Sync + 'a;

/// A source without its type, so that a cache's own type does not name it.
pub(super) trait AnySource<K, V, E>: Send + Sync {
    fn gathers(&self) -> bool;
    fn conditional(&self) -> bool;
    fn fetch(&self, key: K) -> BoxFuture<'_, Outcome<V, E>>;
    fn fetch_again(&self, key: K, known: Known<V>) -> BoxFuture<'_, Outcome<V, E>>;
    fn fetch_anew(&self, key: K) -> BoxFuture<'_, Outcome<V, E>>;
    fn fetch_each<'a>(&'a self, keys: Vec<K>, arrived: &'a Arrived<'a, V, E>) -> BoxFuture<'a, usize>;
    fn invalidate(&self, key: &K);
    fn heard(&self, change: &Change<K>);
    fn invalidate_tag(&self, tag: &str);
    fn invalidate_all(&self);
    fn settled(&self) -> Option<Settled>;
}

impl<K: Key, S: Source<K>> AnySource<K, S::Value, S::Error> for S {
    fn gathers(&self) -> bool {
        S::GATHERS
    }

    fn conditional(&self) -> bool {
        S::CONDITIONAL
    }

    fn fetch(&self, key: K) -> BoxFuture<'_, Outcome<S::Value, S::Error>> {
        Box::pin(Source::fetch(self, key))
    }

    fn fetch_again(&self, key: K, known: Known<S::Value>) -> BoxFuture<'_, Outcome<S::Value, S::Error>> {
        Box::pin(Source::fetch_again(self, key, known))
    }

    fn fetch_anew(&self, key: K) -> BoxFuture<'_, Outcome<S::Value, S::Error>> {
        Box::pin(Source::fetch_anew(self, key))
    }

    fn fetch_each<'a>(&'a self, keys: Vec<K>, arrived: &'a Arrived<'a, S::Value, S::Error>) -> BoxFuture<'a, usize> {
        Box::pin(Source::fetch_each(self, keys, arrived))
    }

    fn invalidate(&self, key: &K) {
        Source::invalidate(self, key);
    }

    fn heard(&self, change: &Change<K>) {
        Source::heard(self, change);
    }

    fn invalidate_tag(&self, tag: &str) {
        Source::invalidate_tag(self, tag);
    }

    fn invalidate_all(&self) {
        Source::invalidate_all(self);
    }

    fn settled(&self) -> Option<Settled> {
        Source::settled(self)
    }
}
