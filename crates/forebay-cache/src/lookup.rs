//! How a lookup is answered.
//!
//! Promises: by a fresh or stale entry at once, and otherwise by the flight that it joins or begins; if that fails, by an expired
//! entry that may still rescue, or with the flight's error.
//!
//! What a flight does is in `fetch`.

use std::borrow::Borrow;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::answer::{Answer, State};
use super::core::Core;
use super::error::CacheError;
use super::events::Event;
use super::fetch::{Asked, Departure};
use super::flight::Flight;
use super::flights::Boarded;
use super::record::{Record, Staleness};
use super::source::Known;
use super::stats::count;
use super::trip::{ByTiers, Leg};
use super::waits::{self, Circle};
use forebay_batch::load::Key;
use forebay_batch::panics::quietly;

/// Why a reader is on no flight.
pub(super) enum Ashore<K, V> {
    /// It needs none: the answer has come meanwhile.
    Answered(Answer<V>),
    /// There are as many flights as there may be.
    Full(K),
}

/// A reader on a flight; leaving it in any way is noticed.
pub(super) struct Waiting<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    core: Arc<Core<K, V, E>>,
    hash: u64,
    key: K,
    flight: Arc<Flight<V, E>>,
    /// When it asked.
    asked: Asked,
    /// When an expired entry is a better answer than to wait on.
    rescue_at: Option<Instant>,
}

impl<K, V, E> Core<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// What `take` makes of the entry that memory has, if it has one that may be served.
    #[inline]
    pub(super) fn glance<Q, R>(
        self: &Arc<Self>,
        hash: u64,
        key: &Q,
        take: impl Fn(&Record<V>, State, u64) -> R,
    ) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let now_ms = self.time.now();
        let mut refresh = None;
        let taken = self.store.read(hash, key, |record| {
            if record.surely_fresh(now_ms, &self.terms) {
                if record.value().is_none() {
                    self.hits.missing();
                }
                return (Some(take(record, State::Fresh, now_ms)), true);
            }
            match self.second_glance(record, now_ms, &mut refresh) {
                Some(state) => {
                    let taken = take(record, state, now_ms);
                    // Last, for a claim that is lost in a panic of the value's clone would hold back all others.
                    refresh = refresh.filter(|_| record.claim(now_ms, &self.terms));
                    (Some(taken), state == State::Fresh)
                }
                None => (None, false),
            }
        })?;
        if let Some(known_ms) = refresh {
            self.refresh_in_background(hash, key.to_owned(), known_ms);
        }
        taken
    }

    /// The rest of a glance, for entries that are not simply fresh: as what it may be served. If it wants a refresh, when what is
    /// known was fetched is in `refresh`.
    #[inline(never)]
    fn second_glance(&self, record: &Record<V>, now_ms: u64, refresh: &mut Option<u64>) -> Option<State> {
        let standing = record.standing(now_ms, &self.terms);
        let state = match standing.staleness {
            Staleness::Fresh => State::Fresh,
            Staleness::Stale => {
                self.hits.stale();
                State::Stale
            }
            // Between two attempts at a source that fails, there is no sense in waiting.
            Staleness::Expired if standing.rescues && record.backs_off(now_ms, &self.terms) => {
                count(&self.counters.rescued);
                return Some(State::Rescued);
            }
            Staleness::Expired => return None,
        };
        if record.value().is_none() {
            self.hits.missing();
        }
        if standing.refresh {
            *refresh = Some(record.fetched_at_ms());
        }
        Some(state)
    }

    /// A fresh entry, if memory has one. Nothing is begun.
    pub(super) fn fresh<Q, R>(&self, hash: u64, key: &Q, take: impl Fn(&Record<V>, u64) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now_ms = self.time.now();
        self.store.read(hash, key, |record| {
            let fresh = record.standing(now_ms, &self.terms).staleness == Staleness::Fresh;
            if fresh && record.value().is_none() {
                self.hits.missing();
            }
            (fresh.then(|| take(record, now_ms)), fresh)
        })?
    }

    /// What memory has of a key, unless it was invalidated. Nothing is begun.
    pub(super) fn known_of<Q>(&self, hash: u64, key: &Q) -> Option<Known<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let now_ms = self.time.now();
        self.store.peek(hash, key, |record| {
            record.holds().then(|| Known {
                value: record.value().cloned(),
                age: record.age(now_ms),
                details: record.details(),
            })
        })?
    }

    /// What is left where the source failed or is slow: an expired entry, or what somebody has written meanwhile.
    pub(super) fn rescue(&self, hash: u64, key: &K) -> Option<Answer<V>> {
        let now_ms = self.time.now();
        let answer = self.store.peek(hash, key, |record| {
            let standing = record.standing(now_ms, &self.terms);
            let state = match standing.staleness {
                Staleness::Fresh => State::Fresh,
                Staleness::Stale => State::Stale,
                Staleness::Expired => State::Rescued,
            };
            standing.rescues.then(|| served(record, state, now_ms))
        })??;
        if answer.state == State::Rescued {
            count(&self.counters.rescued);
        }
        Some(answer)
    }

    /// Gets a reader whom memory could not answer onto a flight, or the answer that has come meanwhile. A flight that was
    /// begun is in `begun`, and must depart. Who finds no room boards again, or is [`refused`](Self::refused).
    pub(super) fn board(
        self: &Arc<Self>,
        hash: u64,
        key: K,
        begun: &mut Vec<Leg<K, V, E>>,
    ) -> Result<Waiting<K, V, E>, Ashore<K, V>> {
        self.board_as_of(self.asked(), hash, key, begun)
    }

    /// The same for a reader who asked at that moment.
    fn board_as_of(
        self: &Arc<Self>,
        asked: Asked,
        hash: u64,
        key: K,
        begun: &mut Vec<Leg<K, V, E>>,
    ) -> Result<Waiting<K, V, E>, Ashore<K, V>> {
        loop {
            let kept = self.flights.kept(hash);
            if let Some(answer) = self.glance(hash, &key, served) {
                self.told_hit(&key, answer.state);
                return Err(Ashore::Answered(answer));
            }
            let begin = |number| Flight::new(number, false);
            match self.flights.board(hash, &key, kept, begin, |flight| self.join(flight)) {
                Boarded::LookAgain => continue,
                Boarded::Full => return Err(Ashore::Full(key)),
                Boarded::Joined(flight) => {
                    count(&self.counters.joined);
                    let waiting = self.waiting(hash, key, flight, asked);
                    self.missed(hash, &waiting.key, true);
                    return Ok(waiting);
                }
                Boarded::Began(flight) => {
                    count(&self.counters.flights);
                    // The key first goes on its way: from there on the flight ends even if the clone panics.
                    begun.push(Leg::new(hash, key, &flight, ByTiers::Any));
                    let key = self.key_of(begun.last().expect("just pushed"));
                    let waiting = self.waiting(hash, key, flight, asked);
                    self.missed(hash, &waiting.key, false);
                    return Ok(waiting);
                }
            }
        }
    }

    /// The key of a flight that was joined just now. If its clone panics, nobody waits for it after all.
    fn key_of(&self, leg: &Leg<K, V, E>) -> K {
        let key = catch_unwind(AssertUnwindSafe(|| leg.key.clone()));
        key.unwrap_or_else(|panic| {
            self.leave_line(leg.hash, &leg.flight, |flight| {
                flight.leave();
            });
            resume_unwind(panic)
        })
    }

    /// The end of a lookup for which there is no flight: what rescues from that.
    pub(super) fn refused(&self, hash: u64, key: &K) -> Result<Answer<V>, CacheError<E>> {
        self.missed(hash, key, false);
        self.rescue(hash, key).ok_or(CacheError::Overloaded)
    }

    /// A lookup was not answered from memory.
    fn missed(&self, hash: u64, key: &K, joined: bool) {
        count(&self.counters.misses);
        self.events.tell(|| Event::Missed {
            key: key.clone(),
            expired: self.store.peek(hash, key, |_| ()).is_some(),
            joined,
        });
    }

    fn waiting(self: &Arc<Self>, hash: u64, key: K, flight: Arc<Flight<V, E>>, asked: Asked) -> Waiting<K, V, E> {
        Waiting {
            core: Arc::clone(self),
            hash,
            key,
            flight,
            asked,
            rescue_at: self
                .settings
                .soft_timeout
                .and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// One more waits for the flight. Under the shard's lock.
    fn join(&self, flight: &Flight<V, E>) {
        flight.join();
        if let Some(turns) = &self.turns {
            turns.waiters(flight.in_line.number(), |trip| trip.waiters_now(flight));
        }
    }

    /// A reader's way when memory could not answer.
    pub(super) async fn obtain(self: Arc<Self>, hash: u64, key: K) -> Result<Answer<V>, CacheError<E>> {
        let asked = self.asked();
        self.obtain_as_of(asked, hash, key).await
    }

    /// The same for a reader who asked at that moment.
    async fn obtain_as_of(self: Arc<Self>, asked: Asked, hash: u64, key: K) -> Result<Answer<V>, CacheError<E>> {
        let mut departure = Departure::new(&self);
        let boarded = self.board_as_of(asked, hash, key, departure.legs());
        drop(departure);
        match boarded {
            Ok(waiting) => waiting.landed().await,
            Err(Ashore::Answered(answer)) => Ok(answer),
            Err(Ashore::Full(key)) => self.refused(hash, &key),
        }
    }

    /// A fetch that begins now, whatever is known and whoever flies.
    pub(super) async fn refresh(self: Arc<Self>, hash: u64, key: K) -> Result<Answer<V>, CacheError<E>> {
        let asked = self.asked();
        let begin = |number| Flight::new(number, false);
        let Some(flight) = self
            .flights
            .begin_one_more(hash, &key, begin, |flight| self.join(flight))
        else {
            return Err(CacheError::Overloaded);
        };
        count(&self.counters.flights);
        let mut departure = Departure::new(&self);
        // The key first goes on its way, as when boarding.
        departure.legs().push(Leg::new(hash, key, &flight, ByTiers::No));
        let key = self.key_of(&departure.legs()[0]);
        drop(departure);
        let waiting = self.waiting(hash, key, flight, asked);
        let Ok(waits) = waits::wait(waiting.flight.id) else {
            return Err(CacheError::Circle);
        };
        let answer = waiting.outcome().await;
        drop(waits);
        waiting.done();
        answer
    }
}

impl<K, V, E> Waiting<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// What the flight brings, or what rescues from it.
    pub(super) async fn landed(self) -> Result<Answer<V>, CacheError<E>> {
        let answer = self.landing().await;
        self.done();
        answer
    }

    /// Nothing is waited for any more. The key is the user's, and where its drop panics after the answer was returned, that would never be dropped.
    fn done(self) {
        quietly(|| drop(self));
    }

    async fn landing(&self) -> Result<Answer<V>, CacheError<E>> {
        let core = &self.core;
        let _waits = match waits::wait(self.flight.id) {
            Ok(waits) => waits,
            Err(Circle) => return core.rescue(self.hash, &self.key).ok_or(CacheError::Circle),
        };
        if let Some(deadline) = self.rescue_at
            && let Some(waiting) = core.in_the_runtime(|| timeout_at(deadline, self.flight.wait()))
            && waiting.await.is_err()
            && let Some(answer) = self.flight.wait_or(|| core.rescue(self.hash, &self.key)).await
        {
            self.flight.go_on();
            return Ok(answer);
        }
        match self.outcome().await {
            Ok(_) if self.came_too_late() => {
                let again = Arc::clone(core).obtain_as_of(self.asked, self.hash, self.key.clone());
                Box::pin(again).await
            }
            Ok(answer) => Ok(answer),
            Err(error) => core.rescue(self.hash, &self.key).ok_or(error),
        }
    }

    /// Whether what the flight brought may be older than this reader's coming allows: a tag of it was invalidated between the flight's beginning
    /// and then, or a change by another process would not have been heard. Then another has to bring what this reader asked for: one that began
    /// after this one has ended, so it is the last but for further changes.
    fn came_too_late(&self) -> bool {
        let Some(landed) = self.flight.landed() else {
            return false;
        };
        let holds = landed
            .tagged
            .as_ref()
            .is_none_or(|tagged| tagged.held_at(self.asked.since));
        // What was so when this reader asked, or later, is what it asked for, whether changes are heard by now or not.
        let is_late = landed.learnt_ms < self.asked.at_ms;
        !holds || (is_late && !self.core.terms.news.cover(landed.learnt_ms, self.asked.at_ms))
    }

    /// What the flight brings.
    async fn outcome(&self) -> Result<Answer<V>, CacheError<E>> {
        self.flight.wait().await;
        let landed = self.flight.told()?;
        let age_ms = self.core.time.now().saturating_sub(landed.fetched_at_ms);
        Ok(Answer {
            value: landed.value.clone(),
            state: landed.state,
            age: Duration::from_millis(age_ms),
        })
    }
}

impl<K, V, E> Drop for Waiting<K, V, E>
where
    K: Key,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        if self.flight.has_ended() {
            return;
        }
        self.core.leave_line(self.hash, &self.flight, |flight| {
            flight.leave();
        });
    }
}

/// When the answers of many keys are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Each as soon as it is there.
    AsTheyLand,
    /// By when the last is there.
    AtLast,
}

/// A whole answer.
pub(super) fn served<V: Clone>(record: &Record<V>, state: State, now_ms: u64) -> Answer<V> {
    Answer {
        value: record.value().cloned(),
        state,
        age: record.age(now_ms),
    }
}
