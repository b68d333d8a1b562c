//! Cap: how many connections one server is given, of all pools that lead to it.
//!
//! Promises: there are never more than the cap; who waits longest for one is served next, if another pool has one that is idle by that. Knows no
//! user and no database.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::places::{Claim, Grant, OfKind, Place, Places, Room};

/// Who has connections of the server, and can do without those that are idle.
pub(crate) trait Holder: std::fmt::Debug + Send + Sync {
    /// For how long the one has been idle that has been so longest; none if all are in use.
    fn idle_for(&self) -> Option<Duration>;

    /// Closes that one.
    fn close_idle(&self);
}

/// Nothing is lent here but the right to connect.
#[derive(Debug)]
pub(crate) struct Right;

impl OfKind for Right {
    /// Whose right it is, by a number.
    type Kind = u64;

    fn is_of(&self, _: &u64) -> bool {
        true
    }
}

/// The right to one connection, until it is dropped.
pub(crate) type Permit = Place<Right>;

/// The connections of one server.
#[derive(Debug)]
pub(crate) struct Cap {
    places: Arc<Places<Right>>,
    holders: Mutex<Vec<Weak<dyn Holder>>>,
    /// How many wait, for those who only want to know that nobody does.
    waiting: AtomicUsize,
    /// It was resized, and is not yet known to be within its bounds.
    may_be_over: AtomicBool,
}

/// Counts somebody who waits, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn count(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn room(max: Option<usize>) -> Room {
    Room::of(max.unwrap_or(usize::MAX), usize::MAX)
}

impl Cap {
    /// So many; none: as many as the pools make.
    pub(crate) fn new(max: Option<usize>) -> Self {
        Self {
            places: Places::new(room(max)),
            holders: Mutex::default(),
            waiting: AtomicUsize::new(0),
            may_be_over: AtomicBool::new(false),
        }
    }

    /// From now on so many: those that are too many are closed, the others of them when they come back.
    pub(crate) fn resize(&self, max: Option<usize>) {
        drop(self.places.resize(room(max)));
        self.may_be_over.store(true, Ordering::Release);
        while self.is_over() && self.make_room() {}
    }

    /// Whether there are more than there may be, since it was resized.
    pub(crate) fn is_over(&self) -> bool {
        if !self.may_be_over.load(Ordering::Acquire) {
            return false;
        }
        // Taken back before it is looked: whoever resizes it meanwhile is seen by the one or the other.
        self.may_be_over.store(false, Ordering::Release);
        let is_over = self.places.are_too_many();
        self.may_be_over.fetch_or(is_over, Ordering::AcqRel);
        is_over
    }

    /// Somebody who has connections of it from now on.
    pub(crate) fn add(&self, holder: Weak<dyn Holder>) {
        let mut holders = self.holders.lock();
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// The right to one more connection, for this holder. Where there is none left, the one that was idle longest somewhere is closed for it.
    ///
    /// # Cancel safety
    /// Dropped before it completes, whoever waits next is served.
    pub(crate) async fn acquire(&self, holder: u64) -> Permit {
        loop {
            match self.places.claim(holder, |_| false) {
                Claim::Granted(Grant::Place(permit)) => return permit,
                Claim::Wait(granted) => {
                    // Before it is looked for what is idle: whoever gives something back behind that look sees this.
                    let _waits = Waits::count(&self.waiting);
                    let _whether_there_was_some = self.make_room();
                    if let Ok(Grant::Place(permit)) = granted.await {
                        return permit;
                    }
                }
                Claim::Granted(Grant::Lent(_)) | Claim::Crowded(..) => {
                    unreachable!("nothing is lent, and all may wait")
                }
            }
        }
    }

    /// Whether there is no right to one more.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.places.would_wait(&0)
    }

    /// The right to one more connection, if there is one that nobody waits for.
    pub(crate) fn claim_free(&self) -> Option<Permit> {
        self.places.claim_below(usize::MAX)
    }

    /// False if there is nothing idle.
    fn make_room(&self) -> bool {
        let holders: Vec<Arc<dyn Holder>> = self.holders.lock().iter().filter_map(Weak::upgrade).collect();
        let idle = holders.iter().filter_map(|holder| Some((holder.idle_for()?, holder)));
        let longest = idle.max_by_key(|(idle_for, _)| *idle_for);
        longest.is_some_and(|(_, holder)| {
            holder.close_idle();
            true
        })
    }

    /// How long the first of other holders that wait has waited; none if none does.
    pub(crate) fn longest_wait_beside(&self, holder: u64) -> Option<Duration> {
        // Asked behind each transaction.
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.places.longest_wait(|waiting| *waiting != holder)
    }
}
