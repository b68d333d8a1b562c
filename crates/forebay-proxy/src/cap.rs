//! Cap: how many connections one server is given, of all pools that lead to it.
//!
//! Promises: there are never more than the cap; who waits longest for one is served next, if another pool has one that is idle by that. Knows no
//! user and no database.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::places::{Claim, Grant, OfKind, Place, Places};

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
}

impl Cap {
    /// So many; none: as many as the pools make.
    pub(crate) fn new(max: Option<usize>) -> Self {
        Self {
            places: Places::new(max.unwrap_or(usize::MAX), usize::MAX),
            holders: Mutex::default(),
        }
    }

    /// From now on so many.
    pub(crate) fn resize(&self, max: Option<usize>) {
        drop(self.places.resize(max.unwrap_or(usize::MAX), usize::MAX));
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
                    self.make_room();
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

    fn make_room(&self) {
        let holders: Vec<Arc<dyn Holder>> = self.holders.lock().iter().filter_map(Weak::upgrade).collect();
        let idle = holders.iter().filter_map(|holder| Some((holder.idle_for()?, holder)));
        if let Some((_, holder)) = idle.max_by_key(|(idle_for, _)| *idle_for) {
            holder.close_idle();
        }
    }

    /// How long the first of other holders that wait has waited; none if none does.
    pub(crate) fn longest_wait_beside(&self, holder: u64) -> Option<Duration> {
        self.places.longest_wait(|waiting| *waiting != holder)
    }
}
