//! The engine: two ways for keys to reach the fetch, each with a line of its own.
//!
//! Promises:
//! - A load that is made inside a fetch, of this loader or another, never waits for one that waits for it: it takes the inner
//!   way, whose slots are unlimited, and where a flight is joined only while it is in line. So a fetch waits only for
//!   fetches that begin later than it asks, and they can never wait for one another in a circle.
//! - Every ticket ends with exactly one outcome, whatever becomes of the fetch, its task or its runtime.
//!
//! Stands on the Batcher's runners and slots; only the line is the loader's own. Knows nothing of scopes.

use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle as Runtime;
use tokio::sync::Notify;

use super::answer::Answer;
use super::error::LoadError;
use super::fetch::{End, Fetched, sort};
use super::line::{Hashed, Hasher, Keys};
use super::stats::Stats;
use crate::batch::call::{Handle, Pending};
use crate::batch::intake::{Intake, Limits as IntakeLimits};
use crate::batch::line::BatchLimits;
use crate::batch::runner::{Shared, run};
use crate::batch::window::WINDOW_MAX;
use crate::batch::{CallError, Rejected};

/// What a load ends with.
pub(super) type Outcome<V, E> = Result<Option<V>, LoadError<E>>;

/// A key's own outcome: what it has in common with every other key of its fetch is the batch's.
type OfKey<V, E> = Result<Option<V>, Arc<E>>;

type Line<K, V, E> = Keys<K, OfKey<V, E>, LoadError<E>>;

type OnTheWay<K, V, E> = Shared<Hashed<K>, OfKey<V, E>, LoadError<E>, Line<K, V, E>>;

/// A load in line, or why it is not.
type Entered<K, V, E> = Result<Ticket<'static, K, V, E>, LoadError<E>>;

tokio::task_local! {
    /// Is there while a fetch is polled: how many fetches that one another's loads have begun it is deep.
    static INSIDE_A_FETCH: u32;
}

/// Whether what is polled here is a fetch, or something in it.
pub(super) fn is_inside_a_fetch() -> bool {
    INSIDE_A_FETCH.try_with(|_| ()).is_ok()
}

/// Deeper than any fetch has a reason to be, and shallow enough to end before memory does.
const DEPTH_MAX: u32 = 1000;

/// What the lines are built with.
pub(super) struct Limits {
    pub(super) max_items: usize,
    pub(super) max_wait: Duration,
    pub(super) max_in_flight: usize,
    pub(super) max_queued: usize,
    pub(super) runtime: Option<Runtime>,
}

/// Keys in line and in flight. Clones are handles to the same engine.
pub(super) struct Engine<K, V, E> {
    outer: Way<K, V, E>,
    /// For loads that are made inside a fetch.
    inner: Way<K, V, E>,
}

/// A line, and the runners that take keys from its front to the fetch.
struct Way<K, V, E> {
    shared: Arc<OnTheWay<K, V, E>>,
    hasher: Hasher,
    /// Values that came for keys which were not asked for.
    ignored: Arc<AtomicU64>,
}

/// One load's place on its way. Dropped, the load is cancelled.
pub(super) struct Ticket<'a, K, V, E>(OneLoad<'a, K, V, E>);

type OneLoad<'a, K, V, E> = Pending<'a, Hashed<K>, OfKey<V, E>, LoadError<E>, Line<K, V, E>>;

impl<K, V, E> Engine<K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// An engine whose batches go to `fetch`, which never panics.
    pub(super) fn new<A, F, Fut>(limits: Limits, fetch: F) -> Self
    where
        A: Answer<K, E, Value = V> + Send + 'static,
        F: Fn(Vec<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Fetched<A, E>> + Send + 'static,
    {
        let fetch = Arc::new(fetch);
        let of_inner = Limits {
            // A fetch's own loads come together, and a window would only make their callers wait.
            max_wait: Duration::ZERO,
            max_in_flight: usize::MAX,
            max_queued: limits.max_queued,
            max_items: limits.max_items,
            runtime: limits.runtime.clone(),
        };
        Self {
            inner: Way::new(of_inner, false, Arc::clone(&fetch)),
            outer: Way::new(limits, true, fetch),
        }
    }

    /// The way of a load that is made here, with its key.
    #[inline]
    fn begin(&self, key: K) -> (&Way<K, V, E>, Hashed<K>) {
        match INSIDE_A_FETCH.try_with(|depth| *depth) {
            Ok(depth) => (&self.inner, self.inner.hasher.hash(key, depth + 1)),
            Err(_) => (&self.outer, self.outer.hasher.hash(key, 0)),
        }
    }

    /// A load of a key, in line from its first poll on.
    #[inline]
    pub(super) fn load(&self, key: K) -> Result<Ticket<'_, K, V, E>, LoadError<E>> {
        let (way, key) = self.begin(key);
        if key.depth > DEPTH_MAX {
            return Err(LoadError::TooDeep);
        }
        Ok(Ticket(Pending::new(Handle::Borrowed(&way.shared), key, None)))
    }

    /// Puts a key in line, or joins its flight.
    pub(super) fn enter(&self, key: K) -> Entered<K, V, E> {
        let (way, key) = self.begin(key);
        if key.depth > DEPTH_MAX {
            return Err(LoadError::TooDeep);
        }
        let entered = Pending::entered(Handle::Owned(Arc::clone(&way.shared)), key);
        entered.map(Ticket).map_err(|_| LoadError::Closed)
    }

    /// As [`enter`](Self::enter), or hands the key back where the line is full, unless it is on its way already.
    pub(super) fn try_enter(&self, key: K) -> Result<Entered<K, V, E>, Rejected<K>> {
        let (way, key) = self.begin(key);
        if key.depth > DEPTH_MAX {
            return Ok(Err(LoadError::TooDeep));
        }
        let handle = Handle::Owned(Arc::clone(&way.shared));
        let (is_on_its_way, todo) = way.shared.intake.with_all_in_line(|line| line.has(&key));
        way.shared.carry_out(todo);
        let entered = if is_on_its_way {
            Pending::entered(handle, key).map_err(Rejected::Closed)
        } else {
            Pending::try_entered(handle, key)
        };
        entered
            .map(|pending| Ok(Ticket(pending)))
            .map_err(|rejected| match rejected {
                Rejected::Overloaded(hashed) => Rejected::Overloaded(hashed.key),
                Rejected::Closed(hashed) => Rejected::Closed(hashed.key),
            })
    }

    /// Loads from now on are answered by a fetch that begins from now on.
    pub(super) fn invalidate(&self, key: &K)
    where
        K: Clone,
    {
        // On the inner way nobody joins a fetch that runs.
        let key = self.outer.hasher.hash(key.clone(), 0);
        let forgotten = self.outer.shared.intake.with_line(|line| line.forget(&key));
        drop(forgotten);
    }

    /// The same for all keys.
    pub(super) fn invalidate_all(&self) {
        let forgotten = self.outer.shared.intake.with_line(Keys::forget_all);
        drop(forgotten);
    }

    /// The fetches that still run may load what they need: the inner way closes last.
    pub(super) async fn drain(&self) {
        self.outer.shared.drain().await;
        self.inner.shared.drain().await;
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for way in [&self.outer, &self.inner] {
            let of_intake = way.shared.intake.stats();
            let of_line = way.shared.intake.with_line(|line| line.counters);
            stats.loads += of_intake.calls;
            stats.joined += of_line.joined;
            stats.fetches += of_intake.batches;
            stats.keys_fetched += of_line.fetched;
            stats.keys_ignored += way.ignored.load(Ordering::Relaxed);
            stats.keys_queued += of_intake.queued + of_intake.waiting;
            stats.in_flight += of_intake.in_flight;
        }
        stats
    }
}

impl<K, V, E> Way<K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn new<A, F, Fut>(limits: Limits, joins_flights: bool, fetch: Arc<F>) -> Self
    where
        A: Answer<K, E, Value = V> + Send + 'static,
        F: Fn(Vec<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Fetched<A, E>> + Send + 'static,
    {
        let ignored = Arc::new(AtomicU64::new(0));
        let of_process = Arc::clone(&ignored);
        let process = Arc::new(move |batch: Vec<Hashed<K>>| {
            let (fetch, ignored) = (Arc::clone(&fetch), Arc::clone(&of_process));
            async move { process(batch, &*fetch, &ignored).await }
        });
        let shared = Shared {
            intake: Intake::new(
                IntakeLimits {
                    batch: BatchLimits {
                        max_items: limits.max_items,
                        max_weight: u128::MAX,
                    },
                    max_in_flight: limits.max_in_flight,
                    max_queued: limits.max_queued,
                },
                Keys::new(joins_flights),
            ),
            max_wait: limits.max_wait.min(WINDOW_MAX),
            weigh: None,
            spawn: Box::new(move |runner, runtime: &Runtime| {
                // Detached: a runner ends by itself when the line is empty.
                drop(runtime.spawn(run(runner, Arc::clone(&process))));
            }),
            answer: Keys::answer,
            runtime: limits.runtime,
            at_rest: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            hasher: Hasher::default(),
            ignored,
        }
    }
}

/// Asks for the keys of a batch, and gives each its outcome.
async fn process<K, V, E, A, F, Fut>(
    batch: Vec<Hashed<K>>,
    fetch: &F,
    ignored: &AtomicU64,
) -> Result<Vec<OfKey<V, E>>, LoadError<E>>
where
    K: Clone,
    A: Answer<K, E, Value = V>,
    F: Fn(Vec<K>) -> Fut,
    Fut: Future<Output = Fetched<A, E>>,
{
    let depth = batch.iter().map(|hashed| hashed.depth).max().unwrap_or(0);
    let keys: Vec<K> = batch.into_iter().map(|hashed| hashed.key).collect();
    let asked = keys.clone();
    let fetched = INSIDE_A_FETCH.scope(depth, async { fetch(keys).await }).await;
    match sort(fetched, asked.iter()) {
        End::Each {
            outcomes,
            ignored: count,
        } => {
            if count > 0 {
                ignored.fetch_add(count as u64, Ordering::Relaxed);
            }
            Ok(outcomes.into_iter().map(|outcome| outcome.map_err(Arc::new)).collect())
        }
        End::All(error) => Err(error),
    }
}

impl<K, V, E> Clone for Engine<K, V, E> {
    fn clone(&self) -> Self {
        Self {
            outer: self.outer.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<K, V, E> Clone for Way<K, V, E> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            hasher: self.hasher.clone(),
            ignored: Arc::clone(&self.ignored),
        }
    }
}

impl<K, V, E> Ticket<'_, K, V, E> {
    /// The outcome, once it is there.
    #[inline]
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome<V, E>> {
        Pin::new(&mut self.0).poll(context).map(|outcome| match outcome {
            Ok(of_key) => of_key.map_err(LoadError::Key),
            Err(error) => Err(as_load_error(error)),
        })
    }
}

#[cold]
fn as_load_error<E>(error: CallError<LoadError<E>>) -> LoadError<E> {
    match error {
        CallError::Failed(error) => (*error).clone(),
        CallError::Panicked(message) => LoadError::Panicked(message),
        CallError::WrongCount { expected, returned } => LoadError::WrongCount { expected, returned },
        CallError::Closed => LoadError::Closed,
        CallError::Stopped => LoadError::Stopped,
    }
}
