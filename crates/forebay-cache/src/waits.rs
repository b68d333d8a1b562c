//! Who waits for whom, where sources ask caches: so that nobody waits for itself.
//!
//! Promises: a fetch that gets from a cache, its own or another, waits for no flight that waits for it, however many fetches, joins and caches
//! are between them: the last one that would close such a circle is told so at once. What waits elsewhere (in a task that the fetch spawns,
//! or for something that is no cache) is not known here.
//!
//! A wait-for graph (Holt, "Some Deadlock Properties of Computer Systems", ACM Computing Surveys, 1972): its nodes are flights, and it has an
//! edge for each flight of a fetch to each flight that the fetch waits for. It is touched only by gets inside of fetches.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// A flight, of all caches.
pub(super) type FlightId = u64;

static IDS: AtomicU64 = AtomicU64::new(1);
static WAITS: Mutex<Option<HashMap<FlightId, Vec<FlightId>>>> = Mutex::new(None);

tokio::task_local! {
    static FETCH: Arc<Fetch>;
}

pub(super) fn new_id() -> FlightId {
    IDS.fetch_add(1, Ordering::Relaxed)
}

/// A fetch that is polled in this task.
struct Fetch {
    flights: Vec<FlightId>,
    /// Something that is dropped when the fetch begins to wait for a flight: another fetch can go on while this one cannot.
    until_it_waits: Arc<Held>,
}

/// What somebody holds until somebody else takes it.
pub(super) type Held = Mutex<Option<Box<dyn Send>>>;

/// Polls the fetch of these flights. What is in `until_it_waits` is dropped once it waits for another flight.
pub(super) async fn fetching<F: Future>(flights: Vec<FlightId>, until_it_waits: Arc<Held>, fetch: F) -> F::Output {
    let scope = Fetch {
        flights,
        until_it_waits,
    };
    FETCH.scope(Arc::new(scope), fetch).await
}

/// A wait of a fetch, until it is dropped.
#[derive(Debug)]
pub(super) struct Wait {
    of: Vec<FlightId>,
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
    fn waits(&self, on: FlightId) -> Result<Wait, Circle> {
        {
            let mut waits = WAITS.lock();
            let waits = waits.get_or_insert_default();
            if self.is_waited_for_by(on, waits) {
                return Err(Circle);
            }
            for flight in &self.flights {
                waits.entry(*flight).or_default().push(on);
            }
        }
        // To drop it is others' code, which may begin fetches.
        let freed = self.until_it_waits.lock().take();
        drop(freed);
        Ok(Wait {
            of: self.flights.clone(),
            on,
        })
    }

    fn is_waited_for_by(&self, other: FlightId, waits: &HashMap<FlightId, Vec<FlightId>>) -> bool {
        let (mut to_see, mut seen) = (vec![other], HashSet::new());
        while let Some(flight) = to_see.pop() {
            if self.flights.contains(&flight) {
                return true;
            }
            if seen.insert(flight) {
                to_see.extend(waits.get(&flight).into_iter().flatten());
            }
        }
        false
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waits = WAITS.lock();
        let Some(waits) = &mut *waits else { return };
        for flight in &self.of {
            if let Some(on) = waits.get_mut(flight) {
                if let Some(at) = on.iter().position(|other| *other == self.on) {
                    on.swap_remove(at);
                }
                if on.is_empty() {
                    waits.remove(flight);
                }
            }
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
                .all(|flight| !waits.contains_key(flight))
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
