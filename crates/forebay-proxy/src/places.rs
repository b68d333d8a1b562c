//! Places: a bounded number of things that are lent, one at a time each, and the queue of those who wait for one.
//!
//! Promises: there are never more than the limit; who waits longest is served next, also where whoever is served has gone. Things are of
//! kinds, and who asks wants one of a kind: where there is none and no place for another, one of another kind makes room. Of those
//! who have waited for less than [`PASSED_OVER_MAX`] one may be passed over by somebody behind whom what comes back suits as it is.
//! While they are closed nothing is lent, and what comes back is dropped. Does not know what is lent.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// How long somebody may be passed over: making a thing of another kind takes some milliseconds that all behind wait for.
const PASSED_OVER_MAX: Duration = Duration::from_millis(20);

/// What is lent, of some kind.
pub(crate) trait OfKind {
    type Kind: std::fmt::Debug;

    fn is_of(&self, kind: &Self::Kind) -> bool;
}

/// How many there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Of what is lent.
    pub(crate) max: usize,
    /// Of those who wait for it.
    pub(crate) max_waiting: usize,
    /// So many more of what is lent, for those who have waited for so long.
    pub(crate) reserve: usize,
    pub(crate) reserve_after: Duration,
}

impl Room {
    /// Without a reserve.
    pub(crate) fn of(max: usize, max_waiting: usize) -> Self {
        Self {
            max,
            max_waiting,
            reserve: 0,
            reserve_after: Duration::ZERO,
        }
    }
}

/// What is lent, and who waits for it.
#[derive(Debug)]
pub(crate) struct Places<T: OfKind> {
    state: Mutex<State<T>>,
    /// Tells those who wait for it that nothing is lent any more.
    emptied: Notify,
}

#[derive(Debug)]
struct State<T: OfKind> {
    room: Room,
    is_closed: bool,
    /// The one given back last is lent next: it is warm, and the others may go.
    idle: Vec<T>,
    waiting: VecDeque<Waiting<T>>,
    /// Places that are taken, by what is lent, idle, or being made.
    taken: usize,
}

#[derive(Debug)]
struct Waiting<T: OfKind> {
    kind: T::Kind,
    /// It has a place, and waits for what is lent alone.
    has_place: bool,
    since: Instant,
    grant: oneshot::Sender<Grant<T>>,
}

/// What somebody gets who waits.
#[derive(Debug)]
pub(crate) enum Grant<T: OfKind> {
    /// One that is there.
    Lent(T),
    /// A place to make one at.
    Place(Place<T>),
}

/// What somebody gets who asks.
#[derive(Debug)]
pub(crate) enum Claim<T: OfKind> {
    /// At once.
    Granted(Grant<T>),
    /// When it is his turn.
    Wait(oneshot::Receiver<Grant<T>>),
    /// Never: so many wait, the first of them for so long.
    Crowded(usize, Duration),
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place<T: OfKind> {
    places: Weak<Places<T>>,
}

impl<T: OfKind> Drop for Place<T> {
    fn drop(&mut self) {
        let Some(places) = self.places.upgrade() else { return };
        let mut state = places.state.lock();
        state.taken -= 1;
        state.fill(&places);
        if state.taken == 0 {
            places.emptied.notify_waiters();
        }
    }
}

impl<T: OfKind> State<T> {
    /// Gives the places that are free to those who wait; whoever has gone meanwhile leaves it to the one behind.
    fn fill(&mut self, places: &Arc<Places<T>>) {
        while !self.is_closed
            && let Some(at) = self.waiting.iter().position(|waiting| !waiting.has_place)
            && self.taken < self.max_for(self.waiting[at].since)
            && let Some(waiting) = self.waiting.remove(at)
        {
            let place = Place {
                places: Arc::downgrade(places),
            };
            match waiting.grant.send(Grant::Place(place)) {
                Ok(()) => self.taken += 1,
                // Its drop would come here again.
                Err(unwanted) => std::mem::forget(unwanted),
            }
        }
    }
}

impl<T: OfKind> State<T> {
    /// How many there may be for somebody who has waited since then.
    fn max_for(&self, since: Instant) -> usize {
        let Room {
            max,
            reserve,
            reserve_after,
            ..
        } = self.room;
        match reserve > 0 && since.elapsed() >= reserve_after {
            true => max.saturating_add(reserve),
            false => max,
        }
    }

    /// Whether what comes back is not to be kept.
    fn is_too_many(&self) -> bool {
        let max = self.room.max;
        self.taken > max && (self.waiting.is_empty() || self.taken > max.saturating_add(self.room.reserve))
    }
}

impl<T: OfKind> Places<T> {
    pub(crate) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self {
            emptied: Notify::new(),
            state: Mutex::new(State {
                room,
                is_closed: false,
                idle: Vec::new(),
                waiting: VecDeque::new(),
                taken: 0,
            }),
        })
    }

    /// One of this kind that is idle, the preferred one if it is; or a place for one; or a place in the queue.
    pub(crate) fn claim(self: &Arc<Self>, kind: T::Kind, is_preferred: impl Fn(&T) -> bool) -> Claim<T> {
        loop {
            let mut state = self.state.lock();
            let found = state.idle.iter().rposition(&is_preferred);
            if let Some(at) = found.or_else(|| state.idle.iter().rposition(|idle| idle.is_of(&kind))) {
                return Claim::Granted(Grant::Lent(state.idle.remove(at)));
            }
            if state.taken < state.room.max && !state.is_closed {
                state.taken += 1;
                let places = Arc::downgrade(self);
                return Claim::Granted(Grant::Place(Place { places }));
            }
            if !state.idle.is_empty() {
                // Of another kind: the one that was idle longest. Its place is free once it is dropped, which takes the lock.
                let makes_room = state.idle.remove(0);
                drop(state);
                drop(makes_room);
                continue;
            }
            if state.waiting.len() >= state.room.max_waiting {
                let longest = state.waiting.front().map(|first| first.since.elapsed());
                return Claim::Crowded(state.waiting.len(), longest.unwrap_or_default());
            }
            let (grant, granted) = oneshot::channel();
            let since = Instant::now();
            let has_place = false;
            state.waiting.push_back(Waiting {
                kind,
                has_place,
                since,
                grant,
            });
            return Claim::Wait(granted);
        }
    }

    /// Whether one of this kind is idle.
    pub(crate) fn has_idle(&self, kind: &T::Kind) -> bool {
        self.state.lock().idle.iter().any(|idle| idle.is_of(kind))
    }

    /// Whether somebody who asks for this kind would have to wait, or to take the place of one of another kind.
    pub(crate) fn would_wait(&self, kind: &T::Kind) -> bool {
        let state = self.state.lock();
        (state.taken >= state.room.max || state.is_closed) && !state.idle.iter().any(|idle| idle.is_of(kind))
    }

    /// What is lent next, for somebody who has a place and may find nothing to put there.
    pub(crate) fn wait_for_lent(&self, kind: T::Kind) -> oneshot::Receiver<Grant<T>> {
        let (grant, granted) = oneshot::channel();
        let mut state = self.state.lock();
        match state.idle.iter().rposition(|idle| idle.is_of(&kind)) {
            Some(at) => {
                let lent = state.idle.remove(at);
                drop(state);
                // The receiver is here.
                drop(grant.send(Grant::Lent(lent)));
            }
            None => {
                let since = Instant::now();
                let has_place = true;
                state.waiting.push_back(Waiting {
                    kind,
                    has_place,
                    since,
                    grant,
                });
            }
        }
        granted
    }

    /// To whoever waits, or to be idle.
    pub(crate) fn give_back(&self, mut lent: T) {
        let mut state = self.state.lock();
        if state.is_closed || state.is_too_many() {
            drop(state);
            drop(lent);
            return;
        }
        loop {
            let Some(first) = state.waiting.front() else {
                state.idle.push(lent);
                return;
            };
            let at = match first.since.elapsed() < PASSED_OVER_MAX {
                true => state.waiting.iter().position(|waiting| lent.is_of(&waiting.kind)),
                false => lent.is_of(&first.kind).then_some(0),
            };
            let Some(waiting) = at.and_then(|at| state.waiting.remove(at)) else {
                // Nobody can do with it as it is, or the first has waited long enough: its place is what is wanted.
                drop(state);
                drop(lent);
                return;
            };
            match waiting.grant.send(Grant::Lent(lent)) {
                Ok(()) => return,
                Err(Grant::Lent(back)) => lent = back,
                Err(Grant::Place(_)) => unreachable!("no place was sent"),
            }
        }
    }

    /// What this says of the one that has been idle longest, if one is.
    pub(crate) fn longest_idle<R>(&self, of: impl FnOnce(&T) -> R) -> Option<R> {
        self.state.lock().idle.first().map(of)
    }

    /// Takes the one out that has been idle longest.
    pub(crate) fn take_longest_idle(&self) -> Option<T> {
        let mut state = self.state.lock();
        (!state.idle.is_empty()).then(|| state.idle.remove(0))
    }

    /// Takes those out that are idle and of which this says so.
    pub(crate) fn take_idle(&self, mut is_taken: impl FnMut(&mut T) -> bool) -> Vec<T> {
        self.state.lock().idle.extract_if(.., |idle| is_taken(idle)).collect()
    }

    /// From now on there are so many places, and so many may wait; what is idle and too much is given.
    pub(crate) fn resize(self: &Arc<Self>, room: Room) -> Vec<T> {
        let mut state = self.state.lock();
        state.room = room;
        state.fill(self);
        let too_many = state.taken.saturating_sub(room.max).min(state.idle.len());
        state.idle.drain(..too_many).collect()
    }

    /// Whether more places are taken than there are since they were [fewer](Self::resize).
    pub(crate) fn are_too_many(&self) -> bool {
        let state = self.state.lock();
        state.taken > state.room.max
    }

    /// A place, while fewer than this are taken, and nobody waits for one.
    pub(crate) fn claim_below(self: &Arc<Self>, max: usize) -> Option<Place<T>> {
        let mut state = self.state.lock();
        let is_free = state.taken < state.room.max.min(max) && !state.is_closed && state.waiting.is_empty();
        is_free.then(|| {
            state.taken += 1;
            let places = Arc::downgrade(self);
            Place { places }
        })
    }

    /// Gives places to those who have waited for the reserve.
    pub(crate) fn fill(self: &Arc<Self>) {
        self.state.lock().fill(self);
    }

    /// Lends nothing until it is [opened](Self::open); gives what is idle.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut state = self.state.lock();
        state.is_closed = true;
        std::mem::take(&mut state.idle)
    }

    /// Those who have waited are served.
    pub(crate) fn open(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_closed = false;
        state.fill(self);
    }

    /// Whether nothing is lent.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Waits until no place is taken.
    ///
    /// # Cancel safety
    /// Dropped, nobody is told.
    pub(crate) async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.state.lock().taken == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// Whether somebody waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// How long the first of those who wait has waited, of those whose kind is one of these; none if nobody does.
    pub(crate) fn longest_wait(&self, is_asked: impl Fn(&T::Kind) -> bool) -> Option<Duration> {
        let state = self.state.lock();
        let waits = |waiting: &&Waiting<T>| !waiting.grant.is_closed() && is_asked(&waiting.kind);
        state.waiting.iter().find(waits).map(|first| first.since.elapsed())
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

    /// Of kind 0 if it is less than 100, else of kind 1; with the place that it has, if it has one.
    #[derive(Debug)]
    struct Thing(
        u8,
        #[allow(dead_code, reason = "its drop is what it is for")] Option<Place<Thing>>,
    );

    impl OfKind for Thing {
        type Kind = u8;

        fn is_of(&self, kind: &u8) -> bool {
            self.0 / 100 == *kind
        }
    }

    fn thing(number: u8) -> Thing {
        Thing(number, None)
    }

    fn granted(claim: Claim<Thing>) -> Grant<Thing> {
        match claim {
            Claim::Granted(grant) => grant,
            _ => panic!("not granted"),
        }
    }

    fn number(grant: Grant<Thing>) -> Option<u8> {
        match grant {
            Grant::Lent(thing) => Some(thing.0),
            Grant::Place(_) => None,
        }
    }

    fn made(places: &Arc<Places<Thing>>, kind: u8, number: u8) -> Thing {
        match granted(places.claim(kind, |_| false)) {
            Grant::Place(place) => Thing(number, Some(place)),
            Grant::Lent(thing) => panic!("{thing:?}"),
        }
    }

    fn waits(places: &Arc<Places<Thing>>, kind: u8) -> oneshot::Receiver<Grant<Thing>> {
        match places.claim(kind, |_| false) {
            Claim::Wait(granted) => granted,
            _ => panic!("not to wait"),
        }
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let places = Places::new(Room::of(2, 10));
        let one = granted(places.claim(0, |_| false));
        let other = granted(places.claim(0, |_| false));
        assert!(matches!(places.claim(0, |_| false), Claim::Wait(_)));
        drop(one);
        assert!(matches!(places.claim(0, |_| false), Claim::Granted(Grant::Place(_))));
        drop(other);
        assert_eq!(places.counts(), (0, 0, 0));
    }

    #[test]
    fn the_reserve_is_for_those_who_have_waited_and_goes_when_nobody_does() {
        let places = Places::new(Room {
            reserve: 1,
            reserve_after: Duration::from_secs(5),
            ..Room::of(1, 10)
        });
        let one = made(&places, 0, 1);
        let [mut first, mut second] = [(); 2].map(|()| waits(&places, 0));
        places.fill();
        assert!(first.try_recv().is_err(), "it has only come");
        places.state.lock().waiting[0].since -= Duration::from_secs(5);
        places.state.lock().waiting[1].since -= Duration::from_secs(4);
        places.fill();
        let Ok(Grant::Place(place)) = first.try_recv() else {
            panic!("it has waited")
        };
        assert!(second.try_recv().is_err());
        let reserve = Thing(2, Some(place));
        places.give_back(reserve);
        let Ok(Grant::Lent(reserve)) = second.try_recv() else {
            panic!("one of the reserve serves whoever waits")
        };
        let mut third = waits(&places, 0);
        places.state.lock().waiting[0].since -= Duration::from_secs(9);
        places.fill();
        assert!(third.try_recv().is_err(), "there is no more of it");
        drop(third);
        places.counts();
        places.give_back(reserve);
        assert_eq!(places.counts(), (1, 0, 0), "nobody waits for it");
        places.give_back(one);
        assert_eq!(places.counts(), (1, 1, 0));
    }

    #[test]
    fn places_that_nobody_waits_for_can_be_claimed_up_to_a_number() {
        let places = Places::new(Room::of(3, 10));
        let below = |max| places.claim_below(max);
        let _one = below(2).unwrap();
        let _two = below(2).unwrap();
        assert!(below(2).is_none());
        let _three = made(&places, 0, 3);
        let _waits = waits(&places, 0);
        assert!(below(9).is_none());
    }

    #[test]
    fn who_waits_longest_is_served_next_and_who_has_gone_is_passed_over() {
        let places = Places::new(Room::of(1, 10));
        let taken = granted(places.claim(0, |_| false));
        let [gone, mut second, mut third] = [(); 3].map(|()| waits(&places, 0));
        drop(gone);
        places.give_back(thing(7));
        assert_eq!(second.try_recv().ok().and_then(number), Some(7));
        assert!(third.try_recv().is_err());
        drop(taken);
        assert!(matches!(third.try_recv(), Ok(Grant::Place(_))));
        assert_eq!(places.counts(), (0, 0, 0));
    }

    #[test]
    fn the_last_one_given_back_is_lent_first_unless_another_is_preferred() {
        let places = Places::new(Room::of(3, 0));
        for lent in [1, 2, 3] {
            places.give_back(thing(lent));
        }
        assert_eq!(number(granted(places.claim(0, |lent| lent.0 == 1))), Some(1));
        assert_eq!(number(granted(places.claim(0, |lent| lent.0 == 9))), Some(3));
    }

    #[test]
    fn the_queue_is_bounded() {
        let places: Arc<Places<Thing>> = Places::new(Room::of(1, 1));
        let _taken = granted(places.claim(0, |_| false));
        let _waiting = places.claim(0, |_| false);
        assert!(matches!(places.claim(0, |_| false), Claim::Crowded(1, _)));
    }

    #[test]
    fn one_of_another_kind_makes_room() {
        let places = Places::new(Room::of(2, 10));
        let (one, other) = (made(&places, 0, 1), made(&places, 0, 2));
        places.give_back(one);
        places.give_back(other);
        assert!(matches!(places.claim(1, |_| false), Claim::Granted(Grant::Place(_))));
        assert_eq!(
            number(granted(places.claim(0, |_| false))),
            Some(2),
            "the other one was idle for longer"
        );
    }

    #[test]
    fn whom_it_suits_is_served_first_for_a_moment_and_then_its_place_goes_to_the_first() {
        let places = Places::new(Room::of(1, 10));
        let lent = made(&places, 0, 1);
        let (mut first, mut suits) = (waits(&places, 1), waits(&places, 0));
        places.give_back(lent);
        let Ok(Grant::Lent(lent)) = suits.try_recv() else {
            panic!("passed over")
        };
        assert!(first.try_recv().is_err());
        let mut behind = waits(&places, 0);
        places.state.lock().waiting[0].since -= PASSED_OVER_MAX;
        places.give_back(lent);
        let Ok(Grant::Place(place)) = first.try_recv() else {
            panic!("not served")
        };
        assert!(behind.try_recv().is_err());
        places.give_back(Thing(100, Some(place)));
        assert!(
            matches!(behind.try_recv(), Ok(Grant::Place(_))),
            "of no use to who waits"
        );
    }

    #[test]
    fn what_is_idle_can_be_taken_out() {
        let places = Places::new(Room::of(3, 0));
        for number in [1, 2, 3] {
            places.give_back(thing(number));
        }
        let taken = places.take_idle(|idle| idle.0 != 2);
        assert_eq!(taken.iter().map(|thing| thing.0).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(places.counts().1, 1);
    }

    #[test]
    fn more_places_are_for_those_who_wait_and_fewer_take_what_is_idle() {
        let places = Places::new(Room::of(1, 10));
        let one = made(&places, 0, 1);
        let [mut first, mut second] = [(); 2].map(|()| waits(&places, 0));
        assert!(places.resize(Room::of(2, 10)).is_empty());
        let Ok(Grant::Place(place)) = first.try_recv() else {
            panic!("there is room for one more");
        };
        assert!(second.try_recv().is_err(), "and for no other");
        let other = Thing(2, Some(place));
        assert!(places.resize(Room::of(1, 10)).is_empty(), "both are lent");
        places.give_back(one);
        assert_eq!(places.counts(), (1, 0, 1), "it was too many, also for who waits");
        places.give_back(other);
        assert_eq!(second.try_recv().ok().and_then(number), Some(2));
        let idle = Places::new(Room::of(3, 10));
        for number in [1, 2, 3] {
            let Claim::Granted(Grant::Place(place)) = idle.claim(1 + number, |_| false) else {
                panic!("there is room");
            };
            idle.give_back(Thing(number, Some(place)));
        }
        let gone = idle.resize(Room::of(1, 10));
        assert_eq!(gone.iter().map(|thing| thing.0).collect::<Vec<_>>(), [1, 2]);
        drop(gone);
        assert_eq!(idle.counts(), (1, 1, 0));
        idle.resize(Room::of(1, 0));
        let _lent = granted(idle.claim(0, |_| true));
        assert!(matches!(idle.claim(0, |_| false), Claim::Crowded(0, _)));
    }

    #[tokio::test]
    async fn closed_places_lend_nothing_and_serve_those_who_waited_once_they_are_open() {
        let places = Places::new(Room::of(2, 10));
        let (lent, idle) = (made(&places, 0, 1), made(&places, 0, 2));
        places.give_back(idle);
        let gone = places.close();
        assert_eq!(gone.len(), 1);
        drop(gone);
        let [mut first, mut second, mut third] = [(); 3].map(|()| waits(&places, 0));
        {
            let mut emptied = std::pin::pin!(places.emptied());
            assert!(poll_once(emptied.as_mut()).is_pending());
            places.give_back(lent);
            assert!(poll_once(emptied.as_mut()).is_ready(), "what came back is gone");
        }
        assert!(first.try_recv().is_err());
        places.open();
        for waiting in [&mut first, &mut second] {
            assert!(matches!(waiting.try_recv(), Ok(Grant::Place(_))));
        }
        // The places that they were given were free again at once.
        assert!(matches!(third.try_recv(), Ok(Grant::Place(_))));
        places.emptied().await;
    }

    fn poll_once<F: Future<Output = ()>>(future: std::pin::Pin<&mut F>) -> std::task::Poll<()> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
