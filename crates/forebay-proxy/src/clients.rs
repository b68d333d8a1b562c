//! Clients: who is connected, and how each is reached: to cancel what runs for it, to be shown, and to be told to go.
//!
//! Promises: a request to cancel reaches what runs for the client whose key it brings, or nothing: never what runs on the same server
//! connection for the next one, which is not given away while a request is under way. Whoever is told to go while it waits is woken;
//! who comes later is told when it comes. Of one user and of one database there are no more at a time than [`Bounds`] say.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Instant;

use bytes::Bytes;
use forebay_pg_link::CancelToken;
use forebay_pg_wire::phase::Phase;
use parking_lot::Mutex;
use rand::RngCore;

use crate::counters::{Counted, Counters};

/// Nobody carries what it asks.
const NOT_TRAVELLING: u8 = 0;
/// Others do.
const TRAVELLING: u8 = 1;
/// It wants that no more.
const CANCELLED: u8 = 2;

/// All who are connected.
#[derive(Debug, Default)]
pub struct Clients {
    table: Mutex<Table>,
    last: AtomicI32,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Table {
    by_process: HashMap<i32, Arc<Entry>, foldhash::fast::RandomState>,
    of_user: Counts,
    of_database: Counts,
    phase: Phase,
}

/// How many clients there are of each name, of which there is one.
#[derive(Debug, Default)]
struct Counts(HashMap<String, usize, foldhash::fast::RandomState>);

impl Counts {
    fn are_within(&self, name: &str, max: Option<usize>) -> bool {
        max.is_none_or(|max| self.0.get(name).is_none_or(|count| *count < max))
    }

    fn add(&mut self, name: &str) {
        match self.0.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(name.to_owned(), 1)),
        }
    }

    fn take(&mut self, name: &str) {
        if let Some(count) = self.0.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(name);
            }
        }
    }
}

/// How many clients there may be at a time; none: as many as come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Of one user, wherever they are.
    pub(crate) of_user: Option<usize>,
    /// Of one database, whoever they are.
    pub(crate) of_database: Option<usize>,
}

/// There are as many as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMany {
    OfUser(usize),
    OfDatabase(usize),
}

/// Who it is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) address: Option<SocketAddr>,
    /// As it said when it came.
    pub(crate) application: String,
}

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has no server connection and wants none.
    Idle,
    /// It waits for one.
    Waiting,
    /// It has one.
    Active,
    /// It keeps one.
    Pinned,
}

/// One client, as others find it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) process_id: i32,
    pub(crate) secret: Bytes,
    pub(crate) who: Who,
    pub(crate) since: Instant,
    running: Mutex<Option<Target>>,
    /// What it asks is carried by others or waits for a connection, and whether it wants that no more.
    travelling: AtomicU8,
    doing: AtomicU8,
    phase: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// A server connection, as a request finds it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) token: CancelToken,
    /// Requests that are under way to it.
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Entry {
    /// What a request to cancel reaches from now on.
    pub(crate) fn set_running(&self, target: Option<Target>) {
        *self.running.lock() = target;
    }

    /// What it asks is carried by others from now on, or waits for a connection: until it [has](Self::has_travelled).
    pub(crate) fn travels(&self) {
        // One that is cancelled stays so.
        let (from, to) = (NOT_TRAVELLING, TRAVELLING);
        let _ = self
            .travelling
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// What it asks is carried by others no more. Whether it was cancelled meanwhile.
    pub(crate) fn has_travelled(&self) -> bool {
        self.travelling.swap(NOT_TRAVELLING, Ordering::AcqRel) == CANCELLED
    }

    /// Whether what others carry for it was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.travelling.load(Ordering::Acquire) == CANCELLED
    }

    /// Cancels what others carry for it, if they do.
    fn cancel_travelling(&self) {
        let (from, to) = (TRAVELLING, CANCELLED);
        let changed = self
            .travelling
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok()
            && let Some(waker) = self.waker.lock().take()
        {
            waker.wake();
        }
    }

    pub(crate) fn set_doing(&self, doing: Doing) {
        self.doing.store(doing as u8, Ordering::Relaxed);
    }

    pub(crate) fn doing(&self) -> Doing {
        [Doing::Idle, Doing::Waiting, Doing::Active, Doing::Pinned][usize::from(self.doing.load(Ordering::Relaxed))]
    }

    /// What it has been told; the task is woken when it is told more.
    pub(crate) fn poll_phase(&self, context: &Context<'_>) -> Phase {
        {
            let mut waker = self.waker.lock();
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        // Behind the waker: whoever tells it meanwhile finds that.
        [Phase::Serving, Phase::Draining, Phase::Stopping][usize::from(self.phase.load(Ordering::Acquire))]
    }

    /// Nothing takes back what it was told.
    pub(crate) fn tell(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

impl Clients {
    /// A client of its own process number and key, of so many bytes, if there is room for it.
    pub(crate) fn register(
        self: &Arc<Self>,
        who: Who,
        secret_bytes: usize,
        bounds: Bounds,
    ) -> Result<Registration, TooMany> {
        let mut secret = vec![0; secret_bytes];
        rand::rng().fill_bytes(&mut secret);
        let mut table = self.table.lock();
        if let Some(max) = bounds
            .of_database
            .filter(|_| !table.of_database.are_within(&who.database, bounds.of_database))
        {
            return Err(TooMany::OfDatabase(max));
        }
        if let Some(max) = bounds
            .of_user
            .filter(|_| !table.of_user.are_within(&who.user, bounds.of_user))
        {
            return Err(TooMany::OfUser(max));
        }
        table.of_user.add(&who.user);
        table.of_database.add(&who.database);
        let process_id = loop {
            let next = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            // As a process has it: not 0, not negative.
            if next > 0 && !table.by_process.contains_key(&next) {
                break next;
            }
        };
        let entry = Arc::new(Entry {
            process_id,
            secret: secret.into(),
            who,
            since: Instant::now(),
            running: Mutex::default(),
            travelling: AtomicU8::new(NOT_TRAVELLING),
            doing: AtomicU8::new(Doing::Idle as u8),
            phase: AtomicU8::new(table.phase as u8),
            waker: Mutex::default(),
        });
        table.by_process.insert(process_id, Arc::clone(&entry));
        Ok(Registration {
            clients: Arc::clone(self),
            entry,
        })
    }

    /// All who are there, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.table.lock().by_process.values().cloned().collect()
    }

    /// What they have asked and been told, with those who have gone.
    pub fn counts(&self) -> Counted {
        self.counters.counts()
    }

    /// The one of this number.
    pub(crate) fn of(&self, process_id: i32) -> Option<Arc<Entry>> {
        self.table.lock().by_process.get(&process_id).cloned()
    }

    /// Tells all, also those who are still to come.
    pub fn tell(&self, phase: Phase) {
        let all = {
            let mut table = self.table.lock();
            table.phase = phase;
            table.by_process.values().cloned().collect::<Vec<_>>()
        };
        for entry in all {
            entry.tell(phase);
        }
    }

    /// Cancels what runs for the client of this number, if this is its key; false if there is none of both.
    pub async fn cancel(&self, process_id: i32, secret: &[u8]) -> bool {
        // No timing tells how much of a key was right: it is of use for one number, on one try each.
        let Some(entry) = self.of(process_id).filter(|entry| entry.secret == secret) else {
            return false;
        };
        let target = {
            let target = entry.running.lock();
            let Some(target) = &*target else {
                entry.cancel_travelling();
                return true;
            };
            target.requests.fetch_add(1, Ordering::AcqRel);
            target.clone()
        };
        if let Err(error) = target.token.cancel().await {
            tracing::debug!(%error, "a cancel request did not reach the server");
        }
        target.requests.fetch_sub(1, Ordering::AcqRel);
        true
    }
}

/// A client that is connected, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    clients: Arc<Clients>,
    pub(crate) entry: Arc<Entry>,
}

impl Registration {
    /// Of all clients.
    pub(crate) fn counters(&self) -> &Counters {
        &self.clients.counters
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut table = self.clients.table.lock();
        table.by_process.remove(&self.entry.process_id);
        table.of_user.take(&self.entry.who.user);
        table.of_database.take(&self.entry.who.database);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use super::*;

    fn registered(clients: &Arc<Clients>, secret_bytes: usize) -> Registration {
        let registered = clients.register(Who::default(), secret_bytes, Bounds::default());
        registered.expect("there is room")
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_waits_is_woken_and_who_comes_later_is_told() {
        let clients = Arc::<Clients>::default();
        let [one, other] = [(); 2].map(|()| registered(&clients, 4));
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let context = Context::from_waker(&waker);
        assert_eq!(one.entry.poll_phase(&context), Phase::Serving);
        other.entry.tell(Phase::Stopping);
        assert!(!woken.0.load(Ordering::Relaxed), "only the other was told");
        clients.tell(Phase::Draining);
        assert!(woken.0.load(Ordering::Relaxed));
        assert_eq!(one.entry.poll_phase(&context), Phase::Draining);
        assert_eq!(other.entry.poll_phase(&context), Phase::Stopping, "not taken back");
        assert_eq!(registered(&clients, 4).entry.poll_phase(&context), Phase::Draining);
    }

    #[test]
    fn numbers_are_each_ones_own_and_gone_with_it() {
        let clients = Arc::<Clients>::default();
        let one = registered(&clients, 4);
        clients.last.store(i32::MAX - 1, Ordering::Relaxed);
        let [second, third] = [(); 2].map(|()| registered(&clients, 32).entry.process_id);
        assert_eq!((one.entry.process_id, second, third), (1, i32::MAX, 2));
        assert_eq!(one.entry.secret.len(), 4);
        assert!(clients.of(2).is_none(), "dropped at once");
        assert_eq!(clients.all().len(), 1);
    }

    #[test]
    fn of_a_user_and_of_a_database_there_are_no_more_than_there_may_be() {
        let clients = Arc::<Clients>::default();
        let bounds = Bounds {
            of_user: Some(2),
            of_database: Some(3),
        };
        let comes = |user: &str, database: &str| {
            let who = Who {
                user: user.to_owned(),
                database: database.to_owned(),
                ..Who::default()
            };
            clients.register(who, 4, bounds)
        };
        let _annas = [comes("anna", "shop").unwrap(), comes("anna", "mail").unwrap()];
        assert_eq!(
            comes("anna", "shop").err(),
            Some(TooMany::OfUser(2)),
            "of all databases"
        );
        let bert = comes("bert", "shop").unwrap();
        let _carl = comes("carl", "shop").unwrap();
        assert_eq!(
            comes("dora", "shop").err(),
            Some(TooMany::OfDatabase(3)),
            "of all users"
        );
        drop(bert);
        assert!(comes("dora", "shop").is_ok());
        let table = clients.table.lock();
        assert_eq!(table.of_user.0.len(), 2, "who has gone is forgotten");
    }
}
