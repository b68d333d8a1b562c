//! Places: a bounded number of things that are lent, one at a time each, and the queue of those who wait for one.
//!
//! Promises: there are never more than the limit; who waits longest is served next, also where whoever is served has gone. Does not
//! know what is lent.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// What is lent, and who waits for it.
#[derive(Debug)]
pub(crate) struct Places<T> {
    max: usize,
    max_waiting: usize,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// The one given back last is lent next: it is warm, and the others may go.
    idle: Vec<T>,
    waiting: VecDeque<Waiting<T>>,
    /// Places that are taken, by what is lent, idle, or being made.
    taken: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    since: Instant,
    grant: oneshot::Sender<Grant<T>>,
}

/// What somebody gets who waits.
#[derive(Debug)]
pub(crate) enum Grant<T> {
    /// One that is there.
    Lent(T),
    /// A place to make one at.
    Place(Place<T>),
}

/// What somebody gets who asks.
#[derive(Debug)]
pub(crate) enum Claim<T> {
    /// At once.
    Granted(Grant<T>),
    /// When it is his turn.
    Wait(oneshot::Receiver<Grant<T>>),
    /// Never: so many wait, the first of them for so long.
    Crowded(usize, Duration),
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place<T> {
    places: Weak<Places<T>>,
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let Some(places) = self.places.upgrade() else { return };
        let mut state = places.state.lock();
        // To the next who waits; whoever has gone meanwhile leaves it to the one behind.
        while let Some(waiting) = state.waiting.pop_front() {
            let place = Self {
                places: Arc::downgrade(&places),
            };
            match waiting.grant.send(Grant::Place(place)) {
                Ok(()) => return,
                // This one's drop is what runs here.
                Err(unwanted) => std::mem::forget(unwanted),
            }
        }
        state.taken -= 1;
    }
}

impl<T> Places<T> {
    pub(crate) fn new(max: usize, max_waiting: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_waiting,
            state: Mutex::new(State {
                idle: Vec::new(),
                waiting: VecDeque::new(),
                taken: 0,
            }),
        })
    }

    /// One that is idle, the preferred one if it is; or a place for one; or a place in the queue.
    pub(crate) fn claim(self: &Arc<Self>, is_preferred: impl Fn(&T) -> bool) -> Claim<T> {
        let mut state = self.state.lock();
        let preferred = state.idle.iter().rposition(is_preferred);
        if let Some(idle) = preferred.map(|at| state.idle.remove(at)).or_else(|| state.idle.pop()) {
            return Claim::Granted(Grant::Lent(idle));
        }
        if state.taken < self.max {
            state.taken += 1;
            let places = Arc::downgrade(self);
            return Claim::Granted(Grant::Place(Place { places }));
        }
        if state.waiting.len() >= self.max_waiting {
            let longest = state.waiting.front().map(|first| first.since.elapsed());
            return Claim::Crowded(state.waiting.len(), longest.unwrap_or_default());
        }
        let (grant, granted) = oneshot::channel();
        let since = Instant::now();
        state.waiting.push_back(Waiting { since, grant });
        Claim::Wait(granted)
    }

    /// To whoever waits, or to be idle.
    pub(crate) fn give_back(&self, mut lent: T) {
        let mut state = self.state.lock();
        while let Some(waiting) = state.waiting.pop_front() {
            match waiting.grant.send(Grant::Lent(lent)) {
                Ok(()) => return,
                Err(Grant::Lent(back)) => lent = back,
                Err(Grant::Place(_)) => unreachable!("no place was sent"),
            }
        }
        state.idle.push(lent);
    }

    /// Whether somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// How many places are taken, how many of what is lent are idle, and how many wait, without those who have gone.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let mut state = self.state.lock();
        state.waiting.retain(|waiting| !waiting.grant.is_closed());
        (state.taken, state.idle.len(), state.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted<T>(claim: Claim<T>) -> Grant<T> {
        match claim {
            Claim::Granted(grant) => grant,
            _ => panic!("not granted"),
        }
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let places: Arc<Places<u8>> = Places::new(2, 10);
        let one = granted(places.claim(|_| false));
        let other = granted(places.claim(|_| false));
        assert!(matches!(places.claim(|_| false), Claim::Wait(_)));
        drop(one);
        assert!(matches!(places.claim(|_| false), Claim::Granted(Grant::Place(_))));
        drop(other);
        assert_eq!(places.counts(), (0, 0, 0));
    }

    #[test]
    fn who_waits_longest_is_served_next_and_who_has_gone_is_passed_over() {
        let places: Arc<Places<u8>> = Places::new(1, 10);
        let taken = granted(places.claim(|_| false));
        let queue: Vec<_> = (0..3)
            .map(|_| match places.claim(|_| false) {
                Claim::Wait(granted) => granted,
                _ => panic!("not to wait"),
            })
            .collect();
        let [gone, mut second, mut third] = <[_; 3]>::try_from(queue).unwrap();
        drop(gone);
        places.give_back(7);
        assert!(matches!(second.try_recv(), Ok(Grant::Lent(7))));
        assert!(third.try_recv().is_err());
        drop(taken);
        assert!(matches!(third.try_recv(), Ok(Grant::Place(_))));
        assert_eq!(places.counts(), (0, 0, 0));
    }

    #[test]
    fn the_last_one_given_back_is_lent_first_unless_another_is_preferred() {
        let places: Arc<Places<u8>> = Places::new(3, 0);
        for lent in [1, 2, 3] {
            places.give_back(lent);
        }
        assert!(matches!(granted(places.claim(|lent| *lent == 1)), Grant::Lent(1)));
        assert!(matches!(granted(places.claim(|lent| *lent == 9)), Grant::Lent(3)));
    }

    #[test]
    fn the_queue_is_bounded() {
        let places: Arc<Places<u8>> = Places::new(1, 1);
        let _taken = granted(places.claim(|_| false));
        let _waiting = places.claim(|_| false);
        assert!(matches!(places.claim(|_| false), Claim::Crowded(1, _)));
    }
}
