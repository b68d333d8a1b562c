//! Advisory locks: numbers that sessions lock for one another.
//!
//! Promises: what PostgreSQL's `pg_advisory_…` functions do. A holder may take its lock again; a session's locks are held until they have
//! been released as often as taken, or the session ends; a transaction's until it ends, or is rolled back to before them. Waiters come before
//! later requests that conflict with theirs. A session that would wait for itself, also by way of the right to write, is told so within
//! [`LOOK_FOR_DEADLOCK_EVERY`]. In memory: locks end with the server.
//!
//! Knows nothing of statements, or of who the sessions are.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_write::CancelToken;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::stop::Stop;
use super::timeouts::lock_timed_out;
use forebay_pg_wire::error::WireError;

/// How often one who waits looks whether it waits for itself: PostgreSQL's `deadlock_timeout`.
const LOOK_FOR_DEADLOCK_EVERY: Duration = Duration::from_secs(1);
/// The most locks of one session.
const LOCKS_MAX: usize = 100_000;

/// What is locked. One number and two numbers are never the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    One(i64),
    Two(i32, i32),
}

/// How it is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Exclusive,
    Shared,
}

impl Mode {
    fn conflicts(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

type SessionNumber = i32;

/// All locks of a server.
#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    state: Mutex<State>,
    /// Something was given back, or somebody waits no more.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    locks: HashMap<Key, Lock>,
    /// What each session that waits waits for.
    waiting: HashMap<SessionNumber, (Key, Mode)>,
    /// Sessions that hold locks and wait for the right to write, or have just got it.
    want_to_write: HashSet<SessionNumber>,
    last_ticket: u64,
}

#[derive(Debug, Default)]
struct Lock {
    /// How often each session holds it, exclusively and shared.
    holders: HashMap<SessionNumber, (usize, usize)>,
    /// Who waits, in the order they came.
    queue: VecDeque<(u64, SessionNumber, Mode)>,
}

impl Lock {
    fn held(&self, session: SessionNumber, mode: Mode) -> bool {
        self.holders
            .get(&session)
            .is_some_and(|(exclusive, shared)| match mode {
                Mode::Exclusive => *exclusive > 0,
                Mode::Shared => *shared > 0,
            })
    }

    /// Sessions that one must wait for; `ticket` is its place in the queue.
    fn in_the_way(&self, session: SessionNumber, mode: Mode, ticket: Option<u64>) -> Vec<SessionNumber> {
        if self.held(session, mode) {
            return Vec::new();
        }
        let conflicting =
            |(exclusive, shared): &(usize, usize)| *exclusive > 0 || (mode == Mode::Exclusive && *shared > 0);
        let holders = self
            .holders
            .iter()
            .filter(|(holder, counts)| **holder != session && conflicting(counts))
            .map(|(holder, _)| *holder);
        let before = self
            .queue
            .iter()
            .filter(|(other, waiter, wanted)| {
                *waiter != session && ticket.is_none_or(|own| *other < own) && mode.conflicts(*wanted)
            })
            .map(|(_, waiter, _)| *waiter);
        if self.holders.contains_key(&session) {
            // Those who wait for it must not keep it waiting.
            return holders.collect();
        }
        holders.chain(before).collect()
    }
}

impl State {
    fn in_the_way(&self, key: Key, session: SessionNumber, mode: Mode, ticket: Option<u64>) -> Vec<SessionNumber> {
        let lock = self.locks.get(&key);
        lock.map_or_else(Vec::new, |lock| lock.in_the_way(session, mode, ticket))
    }

    fn grant(&mut self, key: Key, session: SessionNumber, mode: Mode) {
        let counts = self.locks.entry(key).or_default().holders.entry(session).or_default();
        match mode {
            Mode::Exclusive => counts.0 += 1,
            Mode::Shared => counts.1 += 1,
        }
    }

    fn give_back(&mut self, key: Key, session: SessionNumber, mode: Mode, times: usize) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        if let Some(counts) = lock.holders.get_mut(&session) {
            let count = match mode {
                Mode::Exclusive => &mut counts.0,
                Mode::Shared => &mut counts.1,
            };
            *count = count.saturating_sub(times);
            if *counts == (0, 0) {
                lock.holders.remove(&session);
            }
        }
        if lock.holders.is_empty() && lock.queue.is_empty() {
            self.locks.remove(&key);
        }
    }

    /// Whether a session that waits does so for itself.
    fn waits_for_itself(&self, session: SessionNumber, holds_right_to_write: bool) -> bool {
        let mut seen = HashSet::new();
        let mut next = vec![session];
        while let Some(one) = next.pop() {
            let Some((key, mode)) = self.waiting.get(&one) else {
                continue;
            };
            let ticket = self.locks.get(key).and_then(|lock| {
                let mut queue = lock.queue.iter();
                queue.find(|(_, waiter, _)| *waiter == one).map(|(ticket, ..)| *ticket)
            });
            for other in self.in_the_way(*key, one, *mode, ticket) {
                if other == session || (holds_right_to_write && self.want_to_write.contains(&other)) {
                    return true;
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        false
    }
}

/// Until when a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Session,
    Transaction,
}

/// The locks of one session; all are given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    locks: Arc<AdvisoryLocks>,
    session: SessionNumber,
    of_session: HashMap<(Key, Mode), usize>,
    /// In the order they were taken.
    of_transaction: Vec<(Key, Mode)>,
    /// How many there were at each savepoint.
    savepoints: Vec<usize>,
}

impl Held {
    pub(super) fn new(locks: Arc<AdvisoryLocks>, session: SessionNumber) -> Self {
        Self {
            locks,
            session,
            of_session: HashMap::new(),
            of_transaction: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    fn taken(&mut self, key: Key, mode: Mode, scope: Scope) {
        match scope {
            Scope::Session => *self.of_session.entry((key, mode)).or_default() += 1,
            Scope::Transaction => self.of_transaction.push((key, mode)),
        }
    }

    fn refuse_too_many(&self) -> Result<(), WireError> {
        if self.of_session.len() + self.of_transaction.len() < LOCKS_MAX {
            return Ok(());
        }
        Err(WireError::new("53200", "out of shared memory")
            .with_detail(format!("A session has at most {LOCKS_MAX} advisory locks.")))
    }

    /// Takes a lock if nobody is in the way.
    pub(super) fn try_take(&mut self, key: Key, mode: Mode, scope: Scope) -> Result<bool, WireError> {
        self.refuse_too_many()?;
        let mut state = self.locks.state.lock();
        if !state.in_the_way(key, self.session, mode, None).is_empty() {
            return Ok(false);
        }
        state.grant(key, self.session, mode);
        drop(state);
        self.taken(key, mode, scope);
        Ok(true)
    }

    /// Takes a lock, in its turn.
    pub(super) async fn take(
        &mut self,
        (key, mode, scope): (Key, Mode, Scope),
        token: &CancelToken,
        timeout: Option<Duration>,
        holds_right_to_write: bool,
    ) -> Result<(), Stop> {
        if self.try_take(key, mode, scope)? {
            return Ok(());
        }
        let place = Place::in_queue(&self.locks, self.session, key, mode);
        let began = Instant::now();
        loop {
            let changed = self.locks.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.locks.state.lock();
                if state.in_the_way(key, self.session, mode, Some(place.ticket)).is_empty() {
                    state.grant(key, self.session, mode);
                    break;
                }
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            if left == Some(Duration::ZERO) {
                return Err(lock_timed_out().into());
            }
            let look_after = left.map_or(LOOK_FOR_DEADLOCK_EVERY, |left| left.min(LOOK_FOR_DEADLOCK_EVERY));
            tokio::select! {
                biased;
                error = token.fired() => return Err(error.into()),
                () = changed => {}
                () = tokio::time::sleep(look_after) => {
                    if self.locks.state.lock().waits_for_itself(self.session, holds_right_to_write) {
                        return Err(WireError::new("40P01", "deadlock detected")
                            .with_detail("The advisory lock is held by a session that waits for this one.")
                            .into());
                    }
                }
            }
        }
        drop(place);
        self.taken(key, mode, scope);
        Ok(())
    }

    /// Gives a lock of the session back once; false if it holds none.
    pub(super) fn give_back(&mut self, key: Key, mode: Mode) -> bool {
        let Some(count) = self.of_session.get_mut(&(key, mode)) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.of_session.remove(&(key, mode));
        }
        self.locks.state.lock().give_back(key, self.session, mode, 1);
        self.locks.changed.notify_waiters();
        true
    }

    /// Gives all locks of the session back.
    pub(super) fn give_back_session(&mut self) {
        if self.of_session.is_empty() {
            return;
        }
        let mut state = self.locks.state.lock();
        for ((key, mode), times) in self.of_session.drain() {
            state.give_back(key, self.session, mode, times);
        }
        drop(state);
        self.locks.changed.notify_waiters();
    }

    fn give_back_since(&mut self, count: usize) {
        if self.of_transaction.len() <= count {
            return;
        }
        let mut state = self.locks.state.lock();
        for (key, mode) in self.of_transaction.drain(count..) {
            state.give_back(key, self.session, mode, 1);
        }
        drop(state);
        self.locks.changed.notify_waiters();
    }

    /// The transaction has ended.
    pub(super) fn end_transaction(&mut self) {
        self.give_back_since(0);
        self.savepoints.clear();
    }

    /// The innermost savepoint's statements are undone.
    pub(super) fn fail(&mut self) {
        let since = self.savepoints.last().copied().unwrap_or(0);
        self.give_back_since(since);
    }

    /// A savepoint is set.
    pub(super) fn savepoint(&mut self) {
        self.savepoints.push(self.of_transaction.len());
    }

    /// There are only so many savepoints any more; what came since the last of them is undone.
    pub(super) fn rolled_back_to(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints);
        self.fail();
    }

    /// There are only so many savepoints any more.
    pub(super) fn released_to(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints);
    }

    /// Until the guard is dropped the session waits for the right to write, as far as anybody needs to know.
    pub(super) fn wanting_to_write(&self) -> Option<WantsToWrite> {
        if self.of_session.is_empty() && self.of_transaction.is_empty() {
            return None;
        }
        self.locks.state.lock().want_to_write.insert(self.session);
        Some(WantsToWrite(Arc::clone(&self.locks), self.session))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end_transaction();
        self.give_back_session();
    }
}

/// See [`Held::wanting_to_write`].
#[derive(Debug)]
pub(super) struct WantsToWrite(Arc<AdvisoryLocks>, SessionNumber);

impl Drop for WantsToWrite {
    fn drop(&mut self) {
        self.0.state.lock().want_to_write.remove(&self.1);
    }
}

/// A place among those who wait; given up when it is dropped.
struct Place {
    locks: Arc<AdvisoryLocks>,
    session: SessionNumber,
    key: Key,
    ticket: u64,
}

impl Place {
    fn in_queue(locks: &Arc<AdvisoryLocks>, session: SessionNumber, key: Key, mode: Mode) -> Self {
        let mut state = locks.state.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state
            .locks
            .entry(key)
            .or_default()
            .queue
            .push_back((ticket, session, mode));
        state.waiting.insert(session, (key, mode));
        drop(state);
        Self {
            locks: Arc::clone(locks),
            session,
            key,
            ticket,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.locks.state.lock();
        state.waiting.remove(&self.session);
        if let Some(lock) = state.locks.get_mut(&self.key) {
            lock.queue.retain(|(ticket, ..)| *ticket != self.ticket);
            if lock.holders.is_empty() && lock.queue.is_empty() {
                state.locks.remove(&self.key);
            }
        }
        drop(state);
        self.locks.changed.notify_waiters();
    }
}
