//! A flight: a running fetch of a key, and those who wait for it.
//!
//! Promises: it ends once, with one outcome for all who wait; a reader who leaves earlier affects no other. Whoever looks
//! after the end sees the outcome at once.
//!
//! Does not know sources, keys or other flights, of the same key neither.

use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::answer::State;
use super::error::CacheError;
use super::flights::Numbered;
use super::sync::Mutex;
use super::tags::Tagged;
use super::waits::{self, FlightId};
use forebay_batch::panics::quietly;

/// What a flight brought.
#[derive(Clone, Debug)]
pub(super) struct Landed<V> {
    pub(super) value: Option<V>,
    pub(super) fetched_at_ms: u64,
    /// When it was so: when the source or a tier was asked.
    pub(super) learnt_ms: u64,
    /// `Fetched`, or `Stale` where a tier had nothing better.
    pub(super) state: State,
    /// Its tags.
    pub(super) tagged: Option<Tagged>,
}

pub(super) type Outcome<V, E> = Result<Landed<V>, CacheError<E>>;

pub(super) struct Flight<V, E> {
    number: u64,
    /// For those who wait inside of fetches.
    pub(super) id: FlightId,
    /// Who waits now. Changed under the lock of the flights' shard; after the end, under that of what failed.
    waiting: AtomicUsize,
    /// Whether it is wanted though nobody waits: a refresh.
    background: AtomicBool,
    /// How many of those have left and count on, and whom its outcome does not reach.
    left_behind: AtomicUsize,
    pub(super) in_line: InLine,
    outcome: OnceLock<Result<Landed<V>, Failed<E>>>,
    /// It has ended, or something of the key has come into memory meanwhile.
    changed: Notify,
}

/// Where a flight waits for its turn, if it does. All but its number is under the lock of the line.
pub(super) struct InLine {
    number: AtomicU64,
    place: AtomicUsize,
    counted: AtomicUsize,
}

impl InLine {
    /// The number of what it is a part of.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Its place in that.
    pub(super) fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    pub(super) fn is_at(&self, number: u64, place: usize) {
        self.place.store(place, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
    }

    /// So many are known there to wait for it from now on; how many were before.
    pub(super) fn counts(&self, waiting: usize) -> usize {
        self.counted.swap(waiting, Ordering::Relaxed)
    }
}

/// Why a flight brought nothing, until the last of those who waited is told.
pub(super) struct Failed<E>(Mutex<Option<CacheError<E>>>);

impl<V, E> Drop for Flight<V, E> {
    /// Whoever lets go last, of those who waited and those who landed it: a panic of the value's drop is not theirs.
    fn drop(&mut self) {
        let outcome = self.outcome.take();
        quietly(|| drop(outcome));
    }
}

impl<V, E> Numbered for Flight<V, E> {
    fn number(&self) -> u64 {
        self.number
    }
}

impl<V, E> Flight<V, E> {
    pub(super) fn new(number: u64, background: bool) -> Self {
        Self {
            number,
            id: waits::new_id(),
            waiting: AtomicUsize::new(0),
            background: AtomicBool::new(background),
            left_behind: AtomicUsize::new(0),
            in_line: InLine {
                number: AtomicU64::new(number),
                place: AtomicUsize::new(0),
                counted: AtomicUsize::new(0),
            },
            outcome: OnceLock::new(),
            changed: Notify::new(),
        }
    }

    /// One more waits. Under the shard's lock.
    pub(super) fn join(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// One waits no more. Under the shard's lock, unless it has ended. Returns how many do.
    pub(super) fn leave(&self) -> usize {
        self.waiting.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether its outcome would reach somebody, were it kept nowhere. Where it was taken out of the air nobody comes any more.
    pub(super) fn reaches_somebody(&self) -> bool {
        self.waiting() > self.left_behind.load(Ordering::Relaxed)
    }

    /// Whether nobody waits for it, nor asked for it for later.
    pub(super) fn is_unwanted(&self) -> bool {
        self.waiting() == 0 && !self.background.load(Ordering::Relaxed)
    }

    /// From now on it is wanted though nobody waits, and counts as if whoever says so, who leaves now, waited on: others may come for as short a time, and each
    /// would be the first.
    pub(super) fn go_on(&self) {
        self.background.store(true, Ordering::Relaxed);
        self.join();
        self.left_behind.fetch_add(1, Ordering::Relaxed);
    }

    /// Its end, for all who wait. Only the first counts.
    pub(super) fn end(&self, outcome: Outcome<V, E>) {
        // An outcome that was there before is the first.
        drop(
            self.outcome
                .set(outcome.map_err(|error| Failed(Mutex::new(Some(error))))),
        );
        // The wakers are the executors' code: what they do is not the next flight's business.
        quietly(|| self.changed.notify_waiters());
    }

    pub(super) fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// What it brought, if it did.
    pub(super) fn landed(&self) -> Option<&Landed<V>> {
        self.outcome.get()?.as_ref().ok()
    }

    /// Waits for the end.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost by dropping it.
    pub(super) async fn wait(&self) {
        self.wait_or(|| None::<()>).await;
    }

    /// Something of the key is in memory now, though not by this flight's end: it may be enough for those who have waited long enough.
    pub(super) fn something_is_kept(&self) {
        quietly(|| self.changed.notify_waiters());
    }

    /// Waits for the end, or until `is_enough` is something of what is kept meanwhile, or before; and what that is.
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub(super) async fn wait_or<R>(&self, mut is_enough: impl FnMut() -> Option<R>) -> Option<R> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on it is noticed; so what came before must be looked for now.
            changed.as_mut().enable();
            let enough = is_enough();
            if enough.is_some() || self.has_ended() {
                return enough;
            }
            changed.await;
        }
    }

    /// What it brought, told once to each who has waited for the end. The last of them gets the error itself: who was alone is the only
    /// one to have it, though the flight may still be held by whoever landed it.
    pub(super) fn told(&self) -> Result<&Landed<V>, CacheError<E>> {
        let outcome = self.outcome.get().expect("it has ended");
        outcome.as_ref().map_err(|Failed(error)| {
            let mut held = error.lock();
            // Nobody joins a flight that has ended. Under this lock, so that none of the others is told later than the last.
            let others = self.leave();
            let told = if others == 0 { held.take() } else { held.clone() };
            told.expect("it is taken by the last one")
        })
    }
}
