//! Inboxes: where calls arrive, one inbox for each core's threads, so that cores do not contend for every call.
//!
//! Promises:
//! - An arrival takes a number from one counter under its inbox's lock. Numbers grow with time across all inboxes: what
//!   arrives after another arrival has returned has the higher number, whichever threads the two are on.
//! - Collecting takes what has arrived in all inboxes, and says below which number nothing can be missing.
//! - An inbox that is *on watch* says of an arrival that the centre must be told; of an inbox that is not, the centre knows. The
//!   inbox's lock decides, so that no arrival falls between the two.
//! - Memory follows the live calls: a chunk whose slots are all free is filled again, or in time given back.
//!
//! Lock order: the centre's lock before an inbox's, and one inbox's at a time. Knows nothing of limits, windows and runners.

use std::collections::VecDeque;

use super::slot::{Chunk, Note, Stretch, Ticket};
use super::sync::{AtomicU64, Mutex, Ordering, OwnCacheLine};
use super::window::Due;

/// Most inboxes of a batcher; each costs a few hundred bytes. More threads than that share.
const INBOXES_MAX: usize = 64;

/// Every this many-th time that a chunk is needed, a second free one is given back.
const LOOKS_FOR_SURPLUS: u32 = 4;

/// What an arrival brings.
pub(crate) struct Queued<I> {
    pub(crate) item: I,
    pub(crate) weight: usize,
    pub(crate) due: Due,
}

/// Which arrivals an inbox reports to the centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Watch {
    /// None: someone comes and looks in any case.
    Off,
    /// The next one.
    Any,
    /// The one that uses up this inbox's share of the room in the next batch, or that is due before the gatherer wakes.
    Room {
        items: usize,
        weight: u128,
        until: tokio::time::Instant,
    },
}

struct Inbox<I, O, E> {
    /// The chunk that is being filled; `None` before the first arrival.
    chunk: Option<Chunk<I, O, E>>,
    /// Slots of `chunk` that are filled; of those, the ones from `open_from` on are in no stretch yet.
    filled: usize,
    open_from: usize,
    /// Older arrivals that were not collected yet.
    stretches: Vec<Stretch<I, O, E>>,
    /// Chunks that were filled, in that order.
    used: VecDeque<Chunk<I, O, E>>,
    /// Chunks that were begun.
    started: u32,
    watch: Watch,
    closed: bool,
}

type Locked<I, O, E> = OwnCacheLine<Mutex<Inbox<I, O, E>>>;

/// All inboxes of a batcher.
pub(crate) struct Inboxes<I, O, E> {
    inboxes: Box<[Locked<I, O, E>]>,
    /// The number of the next arrival.
    arrivals: OwnCacheLine<AtomicU64>,
}

/// What became of an arrival.
pub(crate) enum Arrival<I, O, E> {
    /// It is in; with the inbox to be reported to the centre, if it must be.
    Entered(Ticket<I, O, E>, Option<usize>),
    /// The inboxes are closed: the item comes back.
    Closed(I, Option<std::task::Waker>),
}

impl<I, O, E> Inboxes<I, O, E> {
    /// As many inboxes as fit the machine.
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self::with(cores.next_power_of_two().min(INBOXES_MAX))
    }

    pub(crate) fn with(inboxes: usize) -> Self {
        let inbox = || Inbox {
            chunk: None,
            filled: 0,
            open_from: 0,
            stretches: Vec::new(),
            used: VecDeque::new(),
            started: 0,
            watch: Watch::Any,
            closed: false,
        };
        Self {
            inboxes: (0..inboxes).map(|_| OwnCacheLine(Mutex::new(inbox()))).collect(),
            arrivals: OwnCacheLine(AtomicU64::new(0)),
        }
    }

    /// How many have arrived so far.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrivals.0.load(Ordering::Acquire)
    }

    pub(crate) fn count(&self) -> usize {
        self.inboxes.len()
    }

    /// Puts an item in. `thread` says which inbox: any number, the same for calls that come from the same thread.
    #[inline]
    pub(crate) fn enter(&self, thread: usize, queued: Queued<I>, waker: Option<std::task::Waker>) -> Arrival<I, O, E> {
        let index = thread % self.inboxes.len();
        let mut inbox = self.inboxes[index].0.lock();
        if inbox.closed {
            return Arrival::Closed(queued.item, waker);
        }
        if inbox.chunk.as_ref().is_none_or(|chunk| inbox.filled == chunk.slots()) {
            inbox.next_chunk();
        }
        let Queued { item, weight, due } = queued;
        let at = inbox.filled;
        inbox.filled += 1;
        let note = Note {
            arrival: self.arrivals.0.fetch_add(1, Ordering::AcqRel),
            weight,
            due,
        };
        let chunk = inbox.chunk.as_ref().expect("made just above");
        // SAFETY: the slot is behind all filled ones of a chunk that was free before the first; the lock keeps others out.
        let ticket = unsafe { chunk.fill(at, item, waker, note) };
        Arrival::Entered(ticket, inbox.reports(weight, due).then_some(index))
    }

    /// Moves what has arrived in an inbox to `line`, and sets its watch. Says how many places it has moved, and the number of the
    /// arrival after the last of them.
    pub(crate) fn collect(&self, index: usize, watch: Watch, line: &mut VecDeque<Stretch<I, O, E>>) -> (usize, u64) {
        let mut inbox = self.inboxes[index].0.lock();
        inbox.watch = watch;
        inbox.close_stretch();
        let places = inbox.stretches.iter().map(Stretch::len).sum();
        let last = inbox.stretches.last().and_then(Stretch::last);
        line.extend(inbox.stretches.drain(..));
        (places, last.map_or(0, |note| note.arrival + 1))
    }

    /// Sets an inbox's watch; what has arrived is left there.
    pub(crate) fn watch(&self, index: usize, watch: Watch) {
        self.inboxes[index].0.lock().watch = watch;
    }

    /// Lets nothing more in.
    pub(crate) fn close(&self) {
        for inbox in &self.inboxes {
            inbox.0.lock().closed = true;
        }
    }

    /// Chunks in memory; for tests.
    #[cfg(all(test, not(forebay_loom)))]
    pub(crate) fn chunks(&self) -> usize {
        let chunks = |inbox: &Inbox<I, O, E>| inbox.used.len() + usize::from(inbox.chunk.is_some());
        self.inboxes.iter().map(|inbox| chunks(&inbox.0.lock())).sum()
    }
}

impl<I, O, E> Inbox<I, O, E> {
    /// Whether the centre is to be told of an arrival.
    fn reports(&mut self, weight: usize, due: Due) -> bool {
        match &mut self.watch {
            Watch::Off => false,
            Watch::Any => true,
            Watch::Room {
                items,
                weight: weight_left,
                until,
            } => {
                *items = items.saturating_sub(1);
                *weight_left = weight_left.saturating_sub(weight as u128);
                *items == 0 || *weight_left == 0 || due.is_before(*until)
            }
        }
    }

    /// Moves the newest arrivals to `stretches`.
    fn close_stretch(&mut self) {
        if self.open_from == self.filled {
            return;
        }
        let chunk = self.chunk.as_ref().expect("filled slots have a chunk");
        // SAFETY: filled, and each index is passed once.
        let stretch = unsafe { chunk.stretch(self.open_from, self.filled) };
        self.stretches.push(stretch);
        self.open_from = self.filled;
    }

    /// A chunk to be filled: the oldest used one, if it is free, or a new one.
    fn next_chunk(&mut self) {
        self.close_stretch();
        self.used.extend(self.chunk.take());
        self.filled = 0;
        self.open_from = 0;
        self.chunk = Some(self.free_chunk().unwrap_or_else(Chunk::new));
        self.started = self.started.wrapping_add(1);
        if self.started.is_multiple_of(LOOKS_FOR_SURPLUS)
            && let Some(surplus) = self.free_chunk()
        {
            // SAFETY: free, and nobody but this inbox fills it.
            unsafe { surplus.free() };
        }
    }

    /// The oldest chunk, if it is free. One that is kept from that goes behind the others, which may be free by then.
    fn free_chunk(&mut self) -> Option<Chunk<I, O, E>> {
        let oldest = self.used.pop_front()?;
        if oldest.is_free() {
            return Some(oldest);
        }
        self.used.push_back(oldest);
        None
    }
}

impl<I, O, E> Drop for Inbox<I, O, E> {
    fn drop(&mut self) {
        for chunk in self.used.drain(..).chain(self.chunk.take()) {
            // SAFETY: the batcher is gone, and it is kept by every call, line and batch (rule 2 of the slots).
            unsafe { chunk.free() };
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::sync::mpsc;
    use std::task::Waker;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::super::slot::{Delivered, Place};
    use super::*;

    type Small = Inboxes<u64, u64, ()>;
    type Line = VecDeque<Stretch<u64, u64, ()>>;

    fn queued(item: u64) -> Queued<u64> {
        Queued {
            item,
            weight: 1,
            due: Due::AtOnce,
        }
    }

    fn enter(inboxes: &Small, thread: usize, item: u64) -> (Ticket<u64, u64, ()>, Option<usize>) {
        match inboxes.enter(thread, queued(item), None) {
            Arrival::Entered(ticket, reports) => (ticket, reports),
            Arrival::Closed(..) => panic!("open"),
        }
    }

    fn arrivals(line: &Line) -> Vec<u64> {
        line.iter()
            .flat_map(Stretch::waiting)
            .map(|note| note.arrival)
            .collect()
    }

    fn places(line: &mut Line) -> Vec<Place<u64, u64, ()>> {
        line.drain(..)
            .flat_map(|mut stretch| std::iter::from_fn(move || stretch.pop_front()))
            .collect()
    }

    /// Dispatches and answers all that is in line.
    fn serve(line: &mut Line) -> Vec<u64> {
        let serve = |place: Place<u64, u64, ()>| {
            let (place, item) = place.dispatch()?;
            assert!(matches!(place.deliver(Ok(item)), Delivered::Stored(_)));
            Some(item)
        };
        places(line).into_iter().filter_map(serve).collect()
    }

    #[test]
    fn numbers_grow_across_inboxes_and_collecting_takes_all_of_a_inbox_in_order() {
        for count in [1, 2, 4] {
            let inboxes = Small::with(count);
            let total = if cfg!(miri) { 150 } else { 1_000 };
            for item in 0..total {
                // Any number of threads, each with any number.
                let thread = (item * item * 7 + 3) as usize;
                enter(&inboxes, thread, item);
                assert_eq!(inboxes.arrived(), item + 1);
            }
            let mut all = Vec::new();
            for inbox in 0..count {
                let mut line = Line::new();
                let moved = inboxes.collect(inbox, Watch::Off, &mut line).0;
                assert_eq!(
                    inboxes.collect(inbox, Watch::Off, &mut line).0,
                    0,
                    "what is collected is not in the inbox any more"
                );
                let own = arrivals(&line);
                assert_eq!(own.len(), moved);
                assert!(own.is_sorted());
                // Items were numbered as they arrived.
                assert_eq!(serve(&mut line), own);
                assert!(own.iter().all(|item| (item * item * 7 + 3) as usize % count == inbox));
                all.extend(own);
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..total), "one of each");
        }
    }

    /// What arrives after another arrival has returned has the higher number, whichever threads the two are on.
    #[test]
    fn numbers_follow_real_time_between_threads() {
        let inboxes = Small::with(4);
        let (to_second, at_second) = mpsc::channel();
        let (to_first, at_first) = mpsc::channel();
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        std::thread::scope(|scope| {
            let inboxes = &inboxes;
            scope.spawn(move || {
                for _ in 0..rounds {
                    enter(inboxes, 0, 0);
                    to_second.send(inboxes.arrived()).unwrap();
                    at_first.recv().unwrap();
                }
            });
            for _ in 0..rounds {
                let others: u64 = at_second.recv().unwrap();
                enter(inboxes, 1, others);
                to_first.send(()).unwrap();
            }
        });
        let [mut first, mut second] = [0, 1].map(|inbox| {
            let mut line = Line::new();
            inboxes.collect(inbox, Watch::Off, &mut line);
            line
        });
        assert!(arrivals(&first).into_iter().eq((0..rounds).map(|round| 2 * round)));
        assert!(arrivals(&second).into_iter().eq((0..rounds).map(|round| 2 * round + 1)));
        serve(&mut first);
        serve(&mut second);
    }

    #[test]
    fn a_inbox_on_watch_reports_and_another_does_not() {
        let inboxes = Small::with(2);
        let mut line = Line::new();
        // On watch from the start, until the centre says otherwise.
        assert_eq!(enter(&inboxes, 1, 0).1, Some(1));
        assert_eq!(enter(&inboxes, 3, 0).1, Some(1));
        inboxes.watch(1, Watch::Off);
        assert_eq!(enter(&inboxes, 1, 0).1, None);
        assert_eq!(enter(&inboxes, 0, 0).1, Some(0), "each inbox has its own watch");
        assert_eq!(inboxes.collect(1, Watch::Any, &mut line), (3, 3));
        assert_eq!(enter(&inboxes, 1, 0).1, Some(1), "a collection sets the watch");
    }

    #[test]
    fn a_watch_for_room_reports_the_arrival_that_uses_up_the_share_or_is_due_sooner() {
        let now = Instant::now();
        let until = now + Duration::from_secs(1);
        let inboxes = Small::with(1);
        let reports = |weight: usize, due: Due| {
            let queued = Queued { item: 0, weight, due };
            matches!(inboxes.enter(0, queued, None), Arrival::Entered(_, Some(0)))
        };
        let later = Due::By(until);
        let room = |items: usize, weight: u128| inboxes.watch(0, Watch::Room { items, weight, until });
        room(3, u128::MAX);
        assert_eq!(
            [(); 4].map(|()| reports(1, later)),
            [false, false, true, true],
            "by items"
        );
        room(100, 10);
        assert_eq!(
            [4, 5, 1, 0].map(|weight| reports(weight, later)),
            [false, false, true, true],
            "by weight"
        );
        room(100, 10);
        assert!(reports(usize::MAX, later), "more than there was room for");
        room(100, 100);
        assert!(reports(0, Due::By(until - Duration::from_nanos(1))), "sooner");
        assert!(reports(0, Due::AtOnce));
        assert!(!reports(0, Due::By(until + Duration::from_secs(1))), "later");
        assert!(!reports(0, later), "at the same time");
    }

    #[test]
    fn closed_inboxes_hand_back_what_was_brought() {
        let inboxes = Small::with(2);
        enter(&inboxes, 0, 1);
        inboxes.close();
        for thread in 0..2 {
            let Arrival::Closed(item, waker) = inboxes.enter(thread, queued(7), Some(Waker::noop().clone())) else {
                panic!("closed");
            };
            assert_eq!((item, waker.is_some()), (7, true));
        }
        assert_eq!(inboxes.arrived(), 1);
        let mut line = Line::new();
        assert_eq!(
            inboxes.collect(0, Watch::Off, &mut line).0,
            1,
            "what was in before stays"
        );
        assert_eq!(serve(&mut line), [1]);
    }

    #[test]
    fn chunks_are_filled_again_and_those_of_a_crowd_are_given_back() {
        let inboxes = Small::with(1);
        let mut line = Line::new();
        let wave = |size: u64, line: &mut Line| {
            let mut tickets: Vec<_> = (0..size).map(|item| enter(&inboxes, 0, item).0).collect();
            inboxes.collect(0, Watch::Off, line);
            serve(line);
            for ticket in &mut tickets {
                assert!(ticket.poll(Waker::noop()).is_ready());
            }
        };
        for _ in 0..if cfg!(miri) { 5 } else { 1_000 } {
            wave(100, &mut line);
            assert!(
                inboxes.chunks() <= 4,
                "{} chunks for 100 calls at a time",
                inboxes.chunks()
            );
        }
        let crowd = if cfg!(miri) { 640 } else { 64_000 };
        wave(crowd, &mut line);
        assert!(inboxes.chunks() as u64 >= crowd / 64);
        // One that stays keeps its own chunk and no other.
        enter(&inboxes, 0, 0);
        for _ in 0..crowd / 10 {
            wave(64, &mut line);
        }
        assert!(inboxes.chunks() <= 8, "{} chunks", inboxes.chunks());
    }

    #[test]
    fn the_number_of_inboxes_fits_the_machine_and_is_bounded() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let count = Small::new().count();
        assert!(count >= cores.min(INBOXES_MAX) && count <= INBOXES_MAX);
        const { assert!(INBOXES_MAX <= 64, "a bit each") };
    }
}
