//! The engine: which keys are on their way, and who waits for each.
//!
//! Promises:
//! - A key is in line or being fetched at most once (but for [`Engine::invalidate`], which asks for a second fetch); whoever wants
//!   it meanwhile joins that flight, also when its first caller has gone.
//! - A flight is forgotten before its callers are told, so that their next load fetches again.
//! - A key that nobody wants any more is taken out of the line, and is not fetched.
//! - Every ticket ends with exactly one outcome, whatever becomes of the fetch, its task or its runtime.
//!
//! - A load that is made inside a fetch, of this loader or another, never waits for one that waits for it: it takes the inner
//!   way, which has slots without end, and where a flight is joined only while it is in line. So a fetch waits only for
//!   fetches that begin later than it asks, and no circle of them can close.
//!
//! How: an item of the [`Batcher`] is a flight; its outcome goes straight to the flight's tickets, and the batcher's own
//! outcome says nothing. Locks are taken in the order map, then flight, and only `Hash`, `Eq` and `Clone` of a key run
//! under the map's. Knows nothing of answers and scopes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::answer::Answer;
use super::error::LoadError;
use super::fetch::{End, Fetched, quietly, sort};
use super::stats::Stats;
use crate::batch::{Batcher, Call, Rejected};

/// What a load ends with.
pub(super) type Outcome<V, E> = Result<Option<V>, LoadError<E>>;

tokio::task_local! {
    /// Is there while a fetch is polled.
    static INSIDE_A_FETCH: ();
}

/// What the lines are built with.
pub(super) struct Limits {
    pub(super) max_items: usize,
    pub(super) max_wait: Duration,
    pub(super) max_in_flight: usize,
    pub(super) max_queued: usize,
    pub(super) runtime: Option<Handle>,
}

/// Keys in line and in flight. Clones are handles to the same engine.
pub(super) struct Engine<K, V, E> {
    outer: Way<K, V, E>,
    /// For loads that are made inside a fetch.
    inner: Way<K, V, E>,
}

/// A line with its flights.
struct Way<K, V, E> {
    batcher: Batcher<InLine<K, V, E>, ()>,
    board: Arc<Board<K, V, E>>,
}

/// Where a key's flight is found.
struct Board<K, V, E> {
    flights: Mutex<Flights<K, V, E>>,
    /// Whether a flight stays on the board, to be joined, while its fetch runs.
    joins_running: bool,
    /// [`remove_this`], for code that does not know that keys can be hashed: a drop, which must work for every type.
    remove_this: RemoveThis<K, V, E>,
    counters: Counters,
}

type Entry<K, V, E> = (K, Arc<Flight<K, V, E>>);

type RemoveThis<K, V, E> = fn(&mut Flights<K, V, E>, &Arc<Flight<K, V, E>>) -> Option<Entry<K, V, E>>;

struct Flights<K, V, E> {
    of: HashMap<K, Arc<Flight<K, V, E>>>,
    closed: bool,
}

#[derive(Default)]
struct Counters {
    loads: AtomicU64,
    joined: AtomicU64,
    fetches: AtomicU64,
    keys_fetched: AtomicU64,
    keys_ignored: AtomicU64,
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

/// One key on its way.
struct Flight<K, V, E> {
    key: K,
    board: Arc<Board<K, V, E>>,
    /// Set once, before the wakers are taken out of `state`: who finds none under the lock leaves a waker that is woken.
    outcome: OnceLock<Outcome<V, E>>,
    state: Mutex<State<K, V, E>>,
}

struct State<K, V, E> {
    stage: Stage<K, V, E>,
    /// Tickets that live.
    wanted: usize,
    wakers: Vec<Option<Waker>>,
    /// Indices of `wakers` that nobody has, so that memory follows the live tickets.
    free: Vec<usize>,
}

enum Stage<K, V, E> {
    /// On its way into the line, or there already.
    Entering,
    /// The line dropped it before its entry was known here.
    Lost,
    /// In line. Dropping the call takes it out.
    Queued(#[allow(dead_code, reason = "held for its drop")] Call<InLine<K, V, E>, (), Infallible>),
    /// The fetch has the key.
    Running,
    /// Nobody wanted it while it was in line.
    Abandoned,
    /// It has its outcome.
    Over,
}

impl<K, V, E> Engine<K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// An engine whose batches go to `fetch`, which never panics.
    pub(super) fn new<A, F, Fut>(limits: Limits, fetch: F) -> Self
    where
        A: Answer<K, E, Value = V> + 'static,
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

    fn way(&self) -> &Way<K, V, E> {
        let inside = INSIDE_A_FETCH.try_with(|()| ()).is_ok();
        if inside { &self.inner } else { &self.outer }
    }

    /// Puts a key in line, or joins its flight.
    pub(super) fn enter(&self, key: K) -> Ticket<K, V, E> {
        let way = self.way();
        match way.enter_within(key, false) {
            Ok(ticket) => ticket,
            Err(Rejected::Overloaded(key) | Rejected::Closed(key)) => Ticket {
                flight: Arc::new(Flight {
                    key,
                    board: Arc::clone(&way.board),
                    outcome: OnceLock::from(Err(LoadError::Closed)),
                    state: Mutex::new(State::new(Stage::Over)),
                }),
                waker: None,
            },
        }
    }

    /// As [`enter`](Self::enter), or hands the key back where the line is full.
    pub(super) fn try_enter(&self, key: K) -> Result<Ticket<K, V, E>, Rejected<K>> {
        self.way().enter_within(key, true)
    }

    /// Loads from now on are answered by a fetch that begins from now on.
    pub(super) fn invalidate(&self, key: &K) {
        // On the inner way nobody joins a fetch that runs.
        let board = &self.outer.board;
        let mut flights = board.flights.lock();
        let begun = flights
            .of
            .get(key)
            .is_some_and(|flight| matches!(flight.state.lock().stage, Stage::Running));
        let removed = if begun { flights.of.remove_entry(key) } else { None };
        drop(flights);
        drop(removed);
    }

    /// The fetches that still run may load what they need: the inner way closes last.
    pub(super) async fn drain(&self) {
        self.outer.board.flights.lock().closed = true;
        self.outer.batcher.drain().await;
        self.inner.batcher.drain().await;
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for way in [&self.outer, &self.inner] {
            let (counters, of_batcher) = (&way.board.counters, way.batcher.stats());
            stats.loads += counters.loads.load(Ordering::Relaxed);
            stats.joined += counters.joined.load(Ordering::Relaxed);
            stats.fetches += counters.fetches.load(Ordering::Relaxed);
            stats.keys_fetched += counters.keys_fetched.load(Ordering::Relaxed);
            stats.keys_ignored += counters.keys_ignored.load(Ordering::Relaxed);
            stats.keys_queued += of_batcher.queued + of_batcher.waiting;
            stats.in_flight += of_batcher.in_flight;
        }
        stats
    }
}

impl<K, V, E> Way<K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn new<A, F, Fut>(limits: Limits, joins_running: bool, fetch: Arc<F>) -> Self
    where
        A: Answer<K, E, Value = V> + 'static,
        F: Fn(Vec<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Fetched<A, E>> + Send + 'static,
    {
        let board = Arc::new(Board {
            flights: Mutex::new(Flights {
                of: HashMap::new(),
                closed: false,
            }),
            joins_running,
            remove_this,
            counters: Counters::default(),
        });
        let mut builder = Batcher::builder()
            .max_items(limits.max_items)
            .max_wait(limits.max_wait)
            .max_in_flight(limits.max_in_flight)
            .max_queued(limits.max_queued);
        if let Some(runtime) = limits.runtime {
            builder = builder.runtime(runtime);
        }
        let of_batches = Arc::clone(&board);
        let batcher = builder.build(move |items| run(items, Arc::clone(&of_batches), Arc::clone(&fetch)));
        Self { batcher, board }
    }

    /// Puts a key in line, or joins its flight, or hands the key back. `bounded`: not behind a full line.
    fn enter_within(&self, key: K, bounded: bool) -> Result<Ticket<K, V, E>, Rejected<K>> {
        let flight = {
            let mut flights = self.board.flights.lock();
            if flights.closed {
                return Err(Rejected::Closed(key));
            }
            if let Some(flight) = flights.of.get(&key)
                && flight.join()
            {
                let flight = Arc::clone(flight);
                drop(flights);
                count(&self.board.counters.loads, 1);
                count(&self.board.counters.joined, 1);
                return Ok(Ticket { flight, waker: None });
            }
            let flight = Arc::new(Flight {
                key: key.clone(),
                board: Arc::clone(&self.board),
                outcome: OnceLock::new(),
                state: Mutex::new(State::new(Stage::Entering)),
            });
            let replaced = flights.of.insert(key, Arc::clone(&flight));
            drop(flights);
            // It had been abandoned, and its leaving caller is about to look for it.
            drop(replaced);
            flight
        };
        let ticket = Ticket { flight, waker: None };
        self.put_in_line(ticket, bounded)
    }

    fn put_in_line(&self, ticket: Ticket<K, V, E>, bounded: bool) -> Result<Ticket<K, V, E>, Rejected<K>> {
        let flight = &ticket.flight;
        let mut call = if bounded {
            match self.batcher.try_call(InLine(Arc::clone(flight))) {
                Ok(call) => call,
                Err(rejected) => {
                    let closed = matches!(rejected, Rejected::Closed(_));
                    drop(rejected.into_item());
                    if closed {
                        flight.end(Err(LoadError::Closed));
                        return Err(Rejected::Closed(flight.key.clone()));
                    }
                    if flight.give_up() {
                        return Err(Rejected::Overloaded(flight.key.clone()));
                    }
                    // Somebody who waits their turn has joined meanwhile: the key goes into the line after all.
                    self.batcher.call(InLine(Arc::clone(flight)))
                }
            }
        } else {
            self.batcher.call(InLine(Arc::clone(flight)))
        };
        // The first poll of a call puts it in line; nobody is ever woken by it.
        let entered = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        if entered.is_ready() && matches!(flight.state.lock().stage, Stage::Entering | Stage::Lost) {
            flight.end(Err(LoadError::Closed));
        }
        flight.has_entered(call);
        count(&self.board.counters.loads, 1);
        Ok(ticket)
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
            batcher: self.batcher.clone(),
            board: Arc::clone(&self.board),
        }
    }
}

/// Runs one batch: asks for its keys, and tells every flight of it.
async fn run<K, V, E, A, F, Fut>(
    items: Vec<InLine<K, V, E>>,
    board: Arc<Board<K, V, E>>,
    fetch: Arc<F>,
) -> Result<Vec<()>, Infallible>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: Send + Sync + 'static,
    A: Answer<K, E, Value = V>,
    F: Fn(Vec<K>) -> Fut,
    Fut: Future<Output = Fetched<A, E>>,
{
    let answers = vec![(); items.len()];
    let mut flights = items;
    flights.retain(|item| item.0.dispatch());
    if flights.is_empty() {
        return Ok(answers);
    }
    count(&board.counters.fetches, 1);
    count(&board.counters.keys_fetched, flights.len());
    if !board.joins_running {
        board.forget(flights.iter().map(|item| &item.0));
    }
    let keys = flights.iter().map(|item| item.0.key.clone()).collect();
    let fetched = INSIDE_A_FETCH.scope((), async { fetch(keys).await }).await;
    let end = sort(fetched, flights.iter().map(|item| &item.0.key));
    if board.joins_running {
        board.forget(flights.iter().map(|item| &item.0));
    }
    match end {
        End::Each { outcomes, ignored } => {
            count(&board.counters.keys_ignored, ignored);
            for (item, outcome) in flights.iter().zip(outcomes) {
                item.0.tell(outcome.map_err(|error| LoadError::Key(Arc::new(error))));
            }
        }
        End::All(error) => {
            for item in &flights {
                item.0.tell(Err(error.clone()));
            }
        }
    }
    quietly(|| drop(flights));
    Ok(answers)
}

/// Removes this flight and no later one of its key.
fn remove_this<K: Hash + Eq, V, E>(
    flights: &mut Flights<K, V, E>,
    flight: &Arc<Flight<K, V, E>>,
) -> Option<Entry<K, V, E>> {
    let found = flights.of.get(&flight.key);
    if found.is_some_and(|found| Arc::ptr_eq(found, flight)) {
        flights.of.remove_entry(&flight.key)
    } else {
        None
    }
}

impl<K, V, E> Board<K, V, E> {
    /// Takes flights off, so that who comes now begins another.
    fn forget<'f>(&self, ended: impl ExactSizeIterator<Item = &'f Arc<Flight<K, V, E>>>)
    where
        K: 'f,
        V: 'f,
        E: 'f,
    {
        // Keys and flights are the user's to drop, where no lock is held.
        let mut removed = Vec::with_capacity(ended.len());
        let mut flights = self.flights.lock();
        for flight in ended {
            removed.extend((self.remove_this)(&mut flights, flight));
        }
        drop(flights);
        quietly(|| drop(removed));
    }
}

impl<K, V, E> State<K, V, E> {
    /// With the one ticket that the flight is made for.
    fn new(stage: Stage<K, V, E>) -> Self {
        Self {
            stage,
            wanted: 1,
            wakers: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<K, V, E> Flight<K, V, E> {
    /// One more wants it; `false` if it has been abandoned.
    fn join(&self) -> bool {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Abandoned) {
            return false;
        }
        state.wanted += 1;
        true
    }

    /// Its call is known now. Whether the item is still in line is not.
    fn has_entered(self: &Arc<Self>, call: Call<InLine<K, V, E>, (), Infallible>) {
        let mut state = self.state.lock();
        match state.stage {
            Stage::Entering => state.stage = Stage::Queued(call),
            Stage::Lost => {
                drop(state);
                self.end(Err(LoadError::Stopped));
            }
            Stage::Queued(_) | Stage::Running | Stage::Abandoned | Stage::Over => drop(state),
        }
    }

    /// The fetch gets its key; `false` if nobody wants it.
    fn dispatch(&self) -> bool {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Abandoned) {
            return false;
        }
        let before = std::mem::replace(&mut state.stage, Stage::Running);
        drop(state);
        drop(before);
        true
    }

    /// The line was full. Gives the flight up unless others have joined it.
    fn give_up(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();
        if state.wanted > 1 {
            state.stage = Stage::Entering;
            return false;
        }
        state.stage = Stage::Abandoned;
        drop(state);
        self.board.forget([self].into_iter());
        true
    }

    /// Takes it off the board and tells everybody.
    fn end(self: &Arc<Self>, outcome: Outcome<V, E>) {
        self.board.forget([self].into_iter());
        self.tell(outcome);
    }

    /// Tells everybody who waits. No lock may be held.
    fn tell(&self, outcome: Outcome<V, E>) {
        if let Err(unwanted) = self.outcome.set(outcome) {
            quietly(|| drop(unwanted));
        }
        let mut state = self.state.lock();
        let stage = std::mem::replace(&mut state.stage, Stage::Over);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        for waker in wakers.into_iter().flatten() {
            quietly(|| waker.wake());
        }
        drop(stage);
    }
}

/// A flight in the batcher's hands. Dropped before it has its outcome, no task will bring it one any more.
pub(super) struct InLine<K, V, E>(Arc<Flight<K, V, E>>);

impl<K, V, E> Drop for InLine<K, V, E> {
    fn drop(&mut self) {
        let flight = &self.0;
        if flight.outcome.get().is_some() {
            return;
        }
        let mut state = flight.state.lock();
        match state.stage {
            Stage::Entering => state.stage = Stage::Lost,
            Stage::Queued(_) | Stage::Running => {
                drop(state);
                flight.end(Err(LoadError::Stopped));
            }
            Stage::Lost | Stage::Abandoned | Stage::Over => {}
        }
    }
}

/// One load's share in a flight. Dropped, the load is cancelled.
pub(super) struct Ticket<K, V, E> {
    flight: Arc<Flight<K, V, E>>,
    /// Index of its waker, once it has waited.
    waker: Option<usize>,
}

impl<K, V: Clone, E> Ticket<K, V, E> {
    /// The outcome, once it is there.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome<V, E>> {
        if let Some(outcome) = self.flight.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        // Cloned and dropped outside the lock: wakers are the runtime's code.
        let waker = context.waker().clone();
        let mut state = self.flight.state.lock();
        if let Some(outcome) = self.flight.outcome.get() {
            drop(state);
            return Poll::Ready(outcome.clone());
        }
        let index = *self.waker.get_or_insert_with(|| {
            state.free.pop().unwrap_or_else(|| {
                state.wakers.push(None);
                state.wakers.len() - 1
            })
        });
        let displaced = state.wakers[index].replace(waker);
        drop(state);
        drop(displaced);
        Poll::Pending
    }
}

impl<K, V, E> Drop for Ticket<K, V, E> {
    fn drop(&mut self) {
        let flight = &self.flight;
        if flight.outcome.get().is_some() {
            return;
        }
        let mut state = flight.state.lock();
        state.wanted -= 1;
        let mut waker = None;
        if let Some(index) = self.waker
            && index < state.wakers.len()
        {
            waker = state.wakers[index].take();
            state.free.push(index);
        }
        let leaves = state.wanted == 0 && matches!(state.stage, Stage::Queued(_));
        let stage = leaves.then(|| std::mem::replace(&mut state.stage, Stage::Abandoned));
        drop(state);
        drop(waker);
        if leaves {
            flight.board.forget([flight].into_iter());
        }
        // Takes it out of the line.
        drop(stage);
    }
}
