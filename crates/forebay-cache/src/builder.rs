//! How a cache is made: its windows and limits are chosen first.
//!
//! Promises: every setting has a default; one that makes no sense is refused where it is set. Knows nothing of how they are kept.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::Cache;
use super::backplane::{Backplane, Bounds, Carrier, Listening, Outbox, Own};
use super::clock::{Clock, Time, whole_ms};
use super::core::{Core, Settings};
use super::events::Teller;
use super::flights::Flights;
use super::hot::Hot;
use super::record::{News, Rule, Staleness, Terms, Windows, keep_for};
use super::source::{AnySource, Source};
use super::stats::{Counters, Hits};
use super::store::Store;
use super::tags::Tags;
use super::tier::{Scales, Tier, TierSettings, Tiers, Weigher};
use super::turns::Turns;
use forebay_batch::load::Key;
use futures_util::future::BoxFuture;

/// Shards of the table of flights: enough that misses of many cores seldom meet.
const FLIGHT_SHARDS: usize = 64;

impl<K, V, E> Cache<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// A cache of that source with the default windows and limits; see [`CacheBuilder`] for each.
    pub fn new(source: impl Source<K, Value = V, Error = E>) -> Self {
        CacheBuilder::new(source).build()
    }

    /// Chooses windows and limits; [`CacheBuilder::build`] makes the cache. The source is an async function of a key, a
    /// [`Loader`](forebay_batch::load::Loader), another cache, or anything else that is a [`Source`].
    pub fn builder(source: impl Source<K, Value = V, Error = E>) -> CacheBuilder<K, V, E> {
        CacheBuilder::new(source)
    }
}

/// Chooses a cache's windows and limits; see [`Cache::builder`].
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use forebay::cache::Cache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pages = Cache::builder(|path: String| async move { Ok::<_, Infallible>(Some(format!("<h1>{path}</h1>"))) })
///     .capacity(64 << 20) // bytes, by the weigher
///     .weigher(|path, page| (path.len() + page.map_or(0, String::len)) as u32)
///     .fresh_for(Duration::from_secs(60))
///     .stale_for(Duration::from_secs(3600))
///     .jitter(0.1) // not all that was fetched together expires together
///     .max_fetches(8)
///     .fetch_timeout(Duration::from_secs(2))
///     .build();
/// pages.get("/cart").await?;
/// assert_eq!((pages.stats().weight, pages.stats().capacity), (19, 64 << 20));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct CacheBuilder<K, V, E> {
    source: Arc<dyn AnySource<K, V, E>>,
    capacity: u64,
    weigher: Option<Weigher<K, V>>,
    fresh_for: Duration,
    stale_for: Duration,
    missing_fresh_for: Option<Duration>,
    missing_stale_for: Option<Duration>,
    jitter: f64,
    stale_if_error_for: Duration,
    rule: Option<Rule<V>>,
    soft_timeout: Option<Duration>,
    fetch_timeout: Option<Duration>,
    retry_after: (Duration, Duration),
    max_fetches: Option<usize>,
    max_fetches_per_key: usize,
    max_flights: usize,
    refresh_ahead: f64,
    tracked_hot_keys: usize,
    hot_half_life: Duration,
    clock: Option<Arc<dyn Clock>>,
    runtime: Option<Handle>,
    name: String,
    tiers: Vec<Arc<dyn Tier<K, V>>>,
    tier_settings: TierSettings,
    carrier: Option<Arc<Carrier<K>>>,
}

impl<K: Key, V, E> CacheBuilder<K, V, E>
where
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn new(source: impl Source<K, Value = V, Error = E>) -> Self {
        Self {
            source: Arc::new(source),
            capacity: 10_000,
            weigher: None,
            fresh_for: Duration::from_secs(60),
            stale_for: Duration::ZERO,
            missing_fresh_for: None,
            missing_stale_for: None,
            jitter: 0.0,
            stale_if_error_for: Duration::ZERO,
            rule: None,
            soft_timeout: None,
            fetch_timeout: Some(Duration::from_secs(30)),
            retry_after: (Duration::from_millis(100), Duration::from_secs(30)),
            max_fetches: None,
            max_fetches_per_key: 1,
            max_flights: 65_536,
            refresh_ahead: 1.0,
            tracked_hot_keys: 1_000,
            hot_half_life: Duration::from_secs(600),
            clock: None,
            runtime: None,
            name: String::new(),
            tiers: Vec::new(),
            tier_settings: TierSettings::default(),
            carrier: None,
        }
    }

    /// The most that all entries may weigh, never exceeded. An entry weighs 1 unless a [`weigher`](Self::weigher) says
    /// otherwise; so this is a number of entries. Default: 10,000. With 0 nothing is kept, and flights are still shared.
    ///
    /// More values than that can be alive: those that flights have brought and readers have not taken yet (a value a flight,
    /// [`max_flights`](Self::max_flights) at most), those that readers hold, and those that went and that a reader may still look at, which are at
    /// most 256 entries and an eighth of the capacity in each of the cache's parts (four a core, or one where the capacity is below 4,096).
    ///
    /// Keys without a value (missing) are entries too.
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = capacity;
        self
    }

    /// What an entry weighs, for example its bytes; `None` is the entry of a key that the source has no value for. One that
    /// is heavier than the whole cache is not kept.
    ///
    /// Called once for each value that is to be kept, and once for each tier that it is to wait for, where no lock is held.
    pub fn weigher(mut self, weigher: impl Fn(&K, Option<&V>) -> u32 + Send + Sync + 'static) -> Self {
        self.weigher = Some(Arc::new(weigher));
        self
    }

    /// How long a value is fresh, from the beginning of its fetch: then it is served without asking. Default: 60 s.
    ///
    /// Ages have the resolution of the kernel's coarse clock, 1 to 10 ms. It stands still while a machine is suspended (Linux: `CLOCK_MONOTONIC`): by
    /// as much longer an entry is served. Where that matters give a [`clock`](Self::clock) that goes on (`CLOCK_BOOTTIME`).
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.fresh_for = fresh_for;
        self
    }

    /// How long a value that is no longer fresh is still served, while it is refreshed in the background. Counted from the
    /// end of the fresh window. Default: zero.
    pub fn stale_for(mut self, stale_for: Duration) -> Self {
        self.stale_for = stale_for;
        self
    }

    /// As [`fresh_for`](Self::fresh_for), for keys that the source has no value for. Default: as for values.
    pub fn missing_fresh_for(mut self, missing_fresh_for: Duration) -> Self {
        self.missing_fresh_for = Some(missing_fresh_for);
        self
    }

    /// As [`stale_for`](Self::stale_for), for keys that the source has no value for. Default: as for values.
    pub fn missing_stale_for(mut self, missing_stale_for: Duration) -> Self {
        self.missing_stale_for = Some(missing_stale_for);
        self
    }

    /// Takes up to this part of the fresh window off, a random part for each fetch, so that what was fetched together does
    /// not expire together. Default: 0.
    ///
    /// # Panics
    ///
    /// When it is not from 0 to 1.
    #[track_caller]
    pub fn jitter(mut self, part: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&part),
            "jitter is a part of the window: from 0 to 1"
        );
        self.jitter = part;
        self
    }

    /// How long a value that may not be served any more is still an answer when the source fails (or is slower than the
    /// [`soft_timeout`](Self::soft_timeout)). Counted from the end of the stale window. Default: zero.
    pub fn stale_if_error_for(mut self, stale_if_error_for: Duration) -> Self {
        self.stale_if_error_for = stale_if_error_for;
        self
    }

    /// A rule of one's own for what an entry is good for, by its value (`None`: missing) and age, in place of the windows.
    /// Those still say how long tiers keep a value, and how long an expired one may rescue.
    ///
    /// It runs on every hit: it must be quick. It may call the cache.
    pub fn staleness(mut self, rule: impl Fn(Option<&V>, Duration) -> Staleness + Send + Sync + 'static) -> Self {
        self.rule = Some(Box::new(rule));
        self
    }

    /// How long a reader waits for a flight if an expired entry could answer instead; see
    /// [`stale_if_error_for`](Self::stale_if_error_for). The flight goes on. Default: none; it waits for the flight's end.
    pub fn soft_timeout(mut self, soft_timeout: Duration) -> Self {
        self.soft_timeout = Some(soft_timeout);
        self
    }

    /// How long a fetch may run, its line not counted; then it is dropped, and who waits gets
    /// [`TimedOut`](super::CacheError::TimedOut). Default: 30 s. Needs a runtime with time enabled, as tokio's macros make it.
    pub fn fetch_timeout(mut self, fetch_timeout: Duration) -> Self {
        self.fetch_timeout = Some(fetch_timeout);
        self
    }

    /// Fetches may run for ever; a source that hangs keeps its readers.
    pub fn no_fetch_timeout(mut self) -> Self {
        self.fetch_timeout = None;
        self
    }

    /// After how long a key whose refresh failed is tried again in the background: `first` after one failure, doubled by each
    /// further one up to `most`. An expired entry that rescues is served meanwhile, without asking. Default: 100 ms, 30 s.
    ///
    /// A key of which nothing is known is asked for whenever somebody wants it.
    pub fn retry_after(mut self, first: Duration, most: Duration) -> Self {
        self.retry_after = (first, most.max(first));
        self
    }

    /// Most fetches that run at a time, for all keys: for example the connections that the source has. The others wait in
    /// line; the key whose readers have waited longest, their times added up, goes first: so one that many want soon overtakes,
    /// and one that a single reader wants is not overtaken for ever. Keys that are fetched together count as the one of them that most wait for. What
    /// nobody waits for any more leaves the line; refreshes in the background go last. Default: no limit.
    ///
    /// A fetch that itself waits for a cache's flight counts no more from then on, so that those who wait for one another cannot be stuck.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be fetched.
    #[track_caller]
    pub fn max_fetches(mut self, max_fetches: usize) -> Self {
        assert!(
            max_fetches > 0,
            "max_fetches must be at least 1: otherwise nothing is fetched"
        );
        self.max_fetches = Some(max_fetches);
        self
    }

    /// Most flights that run at a time for one key: the readers who come while fewer do begin another, and what began last is
    /// kept. More than 1 trades the source's work for a shorter wait where fetches sometimes hang. One more where all that run began before what is known
    /// was fetched: they bring nothing newer. Default: 1.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be fetched.
    #[track_caller]
    pub fn max_fetches_per_key(mut self, max_fetches_per_key: usize) -> Self {
        assert!(
            max_fetches_per_key > 0,
            "max_fetches_per_key must be at least 1: otherwise nothing is fetched"
        );
        self.max_fetches_per_key = max_fetches_per_key;
        self
    }

    /// Most flights in the air and in line. A reader who would need one more gets
    /// [`Overloaded`](super::CacheError::Overloaded), unless an expired entry rescues it. Default: 65,536.
    ///
    /// # Panics
    ///
    /// When it is 0: nothing could be fetched.
    #[track_caller]
    pub fn max_flights(mut self, max_flights: usize) -> Self {
        assert!(
            max_flights > 0,
            "max_flights must be at least 1: otherwise nothing is fetched"
        );
        self.max_flights = max_flights;
        self
    }

    /// From which part of the fresh window on a hit refreshes in the background, so that what is in use stays fresh. Default:
    /// 1, only when stale.
    ///
    /// # Panics
    ///
    /// When it is not from 0 to 1.
    #[track_caller]
    pub fn refresh_ahead(mut self, part: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&part),
            "refresh_ahead is a part of the window: from 0 to 1"
        );
        self.refresh_ahead = part;
        self
    }

    /// How many keys are watched for [`Cache::hot_keys`], and after how long a use counts half. Default: 1,000 and 10
    /// minutes. With 0 none are.
    pub fn hot_keys(mut self, tracked: usize, half_life: Duration) -> Self {
        self.tracked_hot_keys = tracked;
        self.hot_half_life = half_life;
        self
    }

    /// A clock of one's own, by which entries age; see [`Clock`]. For tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The runtime that flights run in, and what tells tiers and other processes. Default: the one that the get which begins them is polled in, or the
    /// change. Name one where callers live in several runtimes, so that none of them depends on another's being driven. Without one, what was changed
    /// where there is no runtime, or in one that ends before it was told, is told once the cache is used in another: by a fetch, by a change, by some of
    /// the hits, or when others are heard.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// The cache's name in metrics (the label `cache`) and spans. Default: none, and then no metrics.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// A further tier below memory, and below the tiers named before: asked when memory has nothing, before the source is.
    pub fn tier(mut self, tier: impl Tier<K, V>) -> Self {
        self.tiers.push(Arc::new(tier));
        self
    }

    /// How tiers are guarded: timeouts, breakers, retries, bounds. How long they keep a value follows from the windows.
    pub fn tier_settings(mut self, settings: TierSettings) -> Self {
        self.tier_settings = settings;
        self
    }

    /// By what the caches of several processes hear of one another's changes; see [`backplane`](super::backplane). Whatever becomes of it, an entry is
    /// served no longer than `max_lag` after another process's change of it was sent: 5 s is usual. It should be some times what a message takes.
    /// A source that is a cache with memory of its own is believed; it takes a backplane of its own to be bounded, too.
    ///
    /// A tier that is not shared, a file, makes no warm start beside it: what others have changed while this process was not there is not known,
    /// so its copies are not used once others are heard.
    ///
    /// It takes a runtime with time (`enable_time`), in which it pauses between two attempts to listen.
    ///
    /// # Panics
    ///
    /// When `max_lag` is less than 10 ms: clocks are not finer.
    #[track_caller]
    pub fn backplane(mut self, backplane: impl Backplane<K>, max_lag: Duration) -> Self {
        assert!(
            max_lag >= Duration::from_millis(10),
            "max_lag must be at least 10 ms: clocks are not finer"
        );
        let backplane = Arc::new(backplane);
        self.carrier = Some(Arc::new(Carrier { backplane, max_lag }));
        self
    }

    /// Builds the cache.
    pub fn build(self) -> Cache<K, V, E> {
        let present = Windows::new(self.fresh_for, self.stale_for);
        let missing = Windows::new(
            self.missing_fresh_for.unwrap_or(self.fresh_for),
            self.missing_stale_for.unwrap_or(self.stale_for),
        );
        let (first, most) = self.retry_after;
        let of_1024 = |part: f64| (part * 1024.0).round() as u64;
        let terms = Terms {
            present,
            missing,
            stale_if_error_ms: whole_ms(self.stale_if_error_for),
            jitter: of_1024(self.jitter),
            ahead: of_1024(self.refresh_ahead),
            rule: self.rule,
            surely_fresh_ms: [0, 0],
            retry_after_ms: (whole_ms(first), whole_ms(most)),
            // Longer than any fetch: then its end is what counts.
            lease_ms: self
                .fetch_timeout
                .map_or(60_000, |limit| whole_ms(limit).saturating_mul(2)),
            news: self
                .carrier
                .as_ref()
                .map_or_else(News::none, |carrier| News::within(carrier.max_lag)),
        };
        let time = Time::new(self.clock);
        let mut tier_settings = self.tier_settings;
        tier_settings.keep_for = keep_for(false, None, 0, &terms);
        tier_settings.keep_missing_for = keep_for(true, None, 0, &terms);
        let hot = (self.tracked_hot_keys > 0)
            .then(|| Mutex::new(Hot::new(self.tracked_hot_keys, self.hot_half_life, time.now())));
        let bounds = Bounds {
            max: tier_settings.max_owed,
            settle_within: tier_settings.timeout,
            send_within: tier_settings.change_timeout,
        };
        let scales = self.weigher.as_ref().map(|weigher| Scales {
            weigher: Arc::clone(weigher),
            max: self.capacity,
        });
        let tiers = Tiers::new(self.tiers, tier_settings, scales, runtime_of(self.runtime.clone()));
        let source = self.source;
        let outbox = self.carrier.as_ref().map(|carrier| {
            // Not a handle to the tiers, which are to end with the cache.
            let settled = when_settled(&tiers, &source);
            Own(Arc::new(Outbox::new(Arc::clone(&carrier.backplane), bounds, settled)))
        });
        let samples = hot.is_some() || !tiers.is_empty() || outbox.is_some();
        let core = Core {
            samples,
            store: Store::new(self.capacity),
            flights: Flights::new(FLIGHT_SHARDS, self.max_fetches_per_key, self.max_flights),
            turns: self.max_fetches.map(Turns::new),
            source,
            tiers,
            outbox,
            listening: self.carrier.map(Listening::new),
            terms: terms.complete(),
            tags: Tags::new(),
            time,
            settings: Settings {
                weigher: self.weigher,
                soft_timeout: self.soft_timeout,
                fetch_timeout: self.fetch_timeout,
                runtime: self.runtime,
                name: Arc::from(self.name),
            },
            counters: Counters::default(),
            hits: Hits::new(),
            events: Teller::new(),
            hot,
            publishes: AtomicBool::new(false),
        };
        let core = Arc::new(core);
        core.publish();
        core.listen();
        Cache { core }
    }
}

/// The runtime that things run in: the one that was named, or the one that asks.
fn runtime_of(named: Option<Handle>) -> Arc<dyn Fn() -> Option<Handle> + Send + Sync> {
    Arc::new(move || named.clone().or_else(|| Handle::try_current().ok()))
}

impl<K, V, E> fmt::Debug for CacheBuilder<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("capacity", &self.capacity)
            .field("fresh_for", &self.fresh_for)
            .field("stale_for", &self.stale_for)
            .field("missing_fresh_for", &self.missing_fresh_for)
            .field("missing_stale_for", &self.missing_stale_for)
            .field("stale_if_error_for", &self.stale_if_error_for)
            .field("fetch_timeout", &self.fetch_timeout)
            .field("max_fetches", &self.max_fetches)
            .field("max_flights", &self.max_flights)
            .field("name", &self.name)
            .field("tiers", &self.tiers.len())
            .finish_non_exhaustive()
    }
}

/// What can be asked any time to wait until the tiers, and those below the source, have heard of what was written before, and says whether they have;
/// it keeps neither.
fn when_settled<K, V, E>(
    tiers: &Tiers<K, V>,
    source: &Arc<dyn AnySource<K, V, E>>,
) -> Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    let by_tiers = tiers.when_settled();
    let is_all = source.settled().is_none_or(|settled| settled.is_settled());
    if is_all {
        return by_tiers;
    }
    let source = Arc::downgrade(source);
    Box::new(move || {
        let by_source = source.upgrade().and_then(|source| source.settled());
        let by_tiers = by_tiers();
        Box::pin(async move {
            let told = by_tiers.await;
            match by_source {
                None => false,
                Some(settled) => {
                    settled.await;
                    told
                }
            }
        })
    })
}
