//! Who waits for whom, where sources ask caches: so that nobody waits for itself.
//!
//! Promises: a fetch that gets from a cache, its own or another, waits for no flight that waits for it, however many fetches, joins and caches
//! are between them: the last one that would close such a circle is told so at once. What waits elsewhere (in a task that the fetch spawns,
//! or for something that is no cache) is not known here.
//!
//! A wait-for graph (Holt, "Some Deadlock Properties of Computer Systems", ACM Computing Surveys, 1972): its nodes are fetches, and it has an
//! edge for each flight that a fetch waits for, to the fetch of that flight. A fetch of many flights is one node, so that its waits cost no more
//! for its flights: each one, but for the first, takes a look into a table. It is touched only by gets inside of fetches, and walked only where the
//! fetch that is about to wait is waited for: no other can close a circle.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use derive_where::derive_where;
use parking_lot::Mutex;

/// A flight, of all caches.
pub(super) type FlightId = u64;

/// A fetch of some flights, of all caches.
type FetchId = u64;

static IDS: AtomicU64 = AtomicU64::new(1);
static WAITS: Mutex<Option<Waits>> = Mutex::new(None);

/// For so many flights the table keeps its room when it is empty.
const ROOM_KEPT: usize = 1_024;

/// Of the fetches that wait, or have waited and go on.
#[derive(Default)]
struct Waits {
    /// By whom a flight is flown.
    flown_by: HashMap<FlightId, FetchId>,
    /// For which flights a fetch waits, and how often.
    waiting: HashMap<FetchId, HashMap<FlightId, usize>>,
    /// How many waits there are for a flight.
    waited_for: HashMap<FlightId, usize>,
}

/// Of a fetch of more flights it is not looked whether any of them is waited for.
const LOOKED_AT: usize = 8;

tokio::task_local! {
    static FETCH: Arc<Fetch>;
}

pub(super) fn new_id() -> FlightId {
    IDS.fetch_add(1, Ordering::Relaxed)
}

/// A fetch that is polled in this task.
struct Fetch {
    id: FetchId,
    flights: Vec<FlightId>,
    /// Whether the graph has it. Changed under its lock.
    has_waited: AtomicBool,
    /// Something that is dropped when the fetch begins to wait for a flight: another fetch can go on while this one cannot.
    until_it_waits: Arc<Held>,
}

/// What somebody holds until somebody else takes it.
pub(super) type Held = Mutex<Option<Box<dyn Send>>>;

/// Polls the fetch of these flights. What is in `until_it_waits` is dropped once it waits for another flight.
pub(super) fn fetching<F: Future>(
    flights: Vec<FlightId>,
    until_it_waits: Arc<Held>,
    fetch: F,
) -> impl Future<Output = F::Output> {
    let scope = Fetch {
        id: new_id(),
        flights,
        has_waited: AtomicBool::new(false),
        until_it_waits,
    };
    FETCH.scope(Arc::new(scope), fetch)
}

/// A wait of a fetch, until it is dropped.
#[derive_where(Debug)]
pub(super) struct Wait {
    #[derive_where(skip)]
    of: Arc<Fetch>,
    on: FlightId,
}

/// The wait would never end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Circle;

/// The fetch in whose task this is called waits for that flight from now on; nothing where there is none.
#[inline]
pub(super) fn wait(on: FlightId) -> Result<Option<Wait>, Circle> {
    match FETCH.try_with(Arc::clone) {
        Ok(fetch) => fetch.waits(on).map(Some),
        Err(_) => Ok(None),
    }
}

impl Fetch {
    fn waits(self: Arc<Self>, on: FlightId) -> Result<Wait, Circle> {
        {
            let mut waits = WAITS.lock();
            let waits = waits.get_or_insert_default();
            if !self.has_waited.swap(true, Ordering::Relaxed) {
                waits
                    .flown_by
                    .extend(self.flights.iter().map(|flight| (*flight, self.id)));
            }
            if waits.may_close_a_circle(&self.flights, on) && waits.leads_to(on, self.id) {
                return Err(Circle);
            }
            *waits.waiting.entry(self.id).or_default().entry(on).or_default() += 1;
            *waits.waited_for.entry(on).or_default() += 1;
        }
        // To drop it is others' code, which may begin fetches.
        let freed = self.until_it_waits.lock().take();
        drop(freed);
        Ok(Wait { of: self, on })
    }
}

impl Waits {
    /// Whether a fetch of these flights that waits for that one may wait for itself: it does, or another one waits for it.
    fn may_close_a_circle(&self, flights: &[FlightId], on: FlightId) -> bool {
        let is_waited_for = |flight: &FlightId| *flight == on || self.waited_for.contains_key(flight);
        flights.len() > LOOKED_AT || flights.iter().any(is_waited_for)
    }

    /// Whether who waits for that flight waits for that fetch.
    fn leads_to(&self, on: FlightId, fetch: FetchId) -> bool {
        let (mut to_see, mut seen) = (vec![on], HashSet::new());
        while let Some(flight) = to_see.pop() {
            let Some(flown_by) = self.flown_by.get(&flight) else {
                continue;
            };
            if *flown_by == fetch {
                return true;
            }
            if seen.insert(*flown_by) {
                to_see.extend(self.waiting.get(flown_by).into_iter().flat_map(HashMap::keys));
            }
        }
        false
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waits = WAITS.lock();
        let Some(waits) = &mut *waits else { return };
        once_less(&mut waits.waited_for, self.on);
        let Some(on) = waits.waiting.get_mut(&self.of.id) else {
            return;
        };
        once_less(on, self.on);
        if on.is_empty() {
            waits.waiting.remove(&self.of.id);
        }
    }
}

fn once_less(times: &mut HashMap<FlightId, usize>, flight: FlightId) {
    if let Entry::Occupied(mut times) = times.entry(flight) {
        *times.get_mut() -= 1;
        if *times.get() == 0 {
            times.remove();
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !*self.has_waited.get_mut() {
            return;
        }
        let mut waits = WAITS.lock();
        let Some(known) = &mut *waits else { return };
        for flight in &self.flights {
            known.flown_by.remove(flight);
        }
        if known.flown_by.is_empty() && known.flown_by.capacity() > ROOM_KEPT {
            // Gives back what a spike took. Who waits is in the other tables only while it is in this one.
            *waits = None;
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use super::*;

    async fn in_fetch<R>(flights: &[FlightId], then: impl FnOnce() -> R) -> R {
        fetching(flights.to_vec(), Arc::default(), async { then() }).await
    }

    #[tokio::test]
    async fn the_last_wait_of_a_circle_is_refused() {
        let [one, other, third] = [new_id(), new_id(), new_id()];
        assert!(wait(one).unwrap().is_none(), "no fetch is here");
        assert_eq!(in_fetch(&[one], || wait(one)).await.unwrap_err(), Circle);
        let first = in_fetch(&[one, third], || wait(other)).await.unwrap();
        assert_eq!(in_fetch(&[other], || wait(third)).await.unwrap_err(), Circle);
        let far = new_id();
        let second = in_fetch(&[other], || wait(far)).await.unwrap();
        assert_eq!(in_fetch(&[far], || wait(one)).await.unwrap_err(), Circle, "over two");
        drop(first);
        let third_wait = in_fetch(&[far], || wait(one)).await.unwrap();
        drop((second, third_wait));
        let waits = WAITS.lock();
        let waits = waits.as_ref().unwrap();
        assert!(
            [one, other, third, far]
                .iter()
                .all(|flight| !waits.flown_by.contains_key(flight))
        );
    }

    #[tokio::test]
    async fn what_is_held_until_it_waits_is_let_go_then() {
        let let_go = Arc::new(());
        let held: Arc<Held> = Arc::new(Mutex::new(Some(Box::new(Arc::clone(&let_go)))));
        fetching(vec![new_id()], Arc::clone(&held), async {
            assert_eq!(Arc::strong_count(&let_go), 2);
            let _wait = wait(new_id()).unwrap();
            assert_eq!(Arc::strong_count(&let_go), 1);
        })
        .await;
    }
}
