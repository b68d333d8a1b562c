//! Tests of the slot: every order of two halves on one thread, each half in the middle of the other's turn, and two threads.
//! Run by miri too, hence without a runtime.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{RawWaker, RawWakerVTable, Wake};

use super::*;

/// A user's value: the count of its clones says how many are alive.
type Value = Arc<&'static str>;
type Small = Chunk<Value, Value, ()>;

/// A chunk that must be free in the end.
struct Checked(Option<Small>);

impl Checked {
    fn new() -> Self {
        Self(Some(Chunk::new()))
    }

    fn chunk(&self) -> &Small {
        self.0.as_ref().unwrap()
    }

    fn fill(
        &self,
        index: usize,
        item: &Value,
        waker: Option<Waker>,
    ) -> (Ticket<Value, Value, ()>, Place<Value, Value, ()>) {
        let note = Note {
            arrival: index as u64,
            weight: index,
            due: Due::AtOnce,
        };
        // SAFETY: `fill` itself asserts that the slot is free, and one thread fills. The place is made once.
        unsafe {
            let ticket = self.chunk().fill(index, Arc::clone(item), waker, note);
            let place = self.chunk().stretch(index, index + 1).pop_front().unwrap();
            (ticket, place)
        }
    }

    fn state(&self, index: usize) -> &AtomicU8 {
        &self.chunk().inner().slots[index].state
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        let chunk = self.0.take().unwrap();
        if !std::thread::panicking() {
            assert!(chunk.is_free(), "a half has not ended");
        }
        // SAFETY: no half is used after this.
        unsafe { chunk.free() };
    }
}

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a script does next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Poll(usize),
    Leave,
    Dispatch,
    Deliver,
}

/// Runs a script on one slot, and checks each step against what a slot is to do.
fn follow(script: &[Step], enters_with: Option<usize>) {
    let checked = Checked::new();
    let (item, outcome): (Value, Value) = (Arc::new("item"), Arc::new("outcome"));
    let bells = [(); 2].map(|()| Arc::new(Bell::default()));
    let waker = |bell: usize| Waker::from(Arc::clone(&bells[bell]));
    let (ticket, place) = checked.fill(0, &item, enters_with.map(waker));
    let (mut ticket, mut place) = (Some(ticket), Some(place));
    // Of the model: the waker left, and how far the item has come.
    let (mut kept, mut dispatched, mut delivered) = (enters_with, false, false);
    for step in script {
        match *step {
            Step::Poll(bell) => {
                let Some(own) = &mut ticket else { continue };
                match own.poll(&waker(bell)) {
                    Poll::Ready(taken) => {
                        assert!(delivered, "{script:?}");
                        assert!(Arc::ptr_eq(&taken.unwrap(), &outcome));
                        ticket = None;
                    }
                    Poll::Pending => {
                        assert!(!delivered, "{script:?}");
                        kept = Some(bell);
                    }
                }
            }
            Step::Leave => {
                let Some(mut own) = ticket.take() else { continue };
                let displaced = own.leave();
                assert_eq!(displaced.was_queued, !dispatched, "{script:?}");
                // Nothing was dropped in there.
                assert_eq!(displaced._item.is_some(), !dispatched);
                assert_eq!(displaced._outcome.is_some(), delivered);
                assert_eq!(displaced._waker.is_some(), kept.is_some() && !delivered);
                kept = None;
            }
            Step::Dispatch => {
                let Some((own, taken)) = place.take().unwrap().dispatch() else {
                    assert!(ticket.is_none(), "{script:?}");
                    continue;
                };
                assert!(ticket.is_some(), "an item that was cancelled: {script:?}");
                assert!(Arc::ptr_eq(&taken, &item));
                place = Some(own);
                dispatched = true;
            }
            Step::Deliver => {
                let Some(own) = place.take() else { continue };
                match own.deliver(Ok(Arc::clone(&outcome))) {
                    Delivered::Stored(woken) => {
                        assert!(ticket.is_some(), "{script:?}");
                        assert_eq!(woken.is_some(), kept.is_some(), "{script:?}");
                        woken.into_iter().for_each(Waker::wake);
                        delivered = true;
                        // The last waker, and no other.
                        for (number, bell) in bells.iter().enumerate() {
                            assert_eq!(bell.rung(), usize::from(kept == Some(number)), "{script:?}");
                        }
                        kept = None;
                    }
                    Delivered::Unwanted(unwanted) => {
                        assert!(ticket.is_none(), "{script:?}");
                        assert!(Arc::ptr_eq(&unwanted.unwrap(), &outcome));
                    }
                }
            }
        }
    }
    drop(checked);
    assert_eq!(
        (Arc::strong_count(&item), Arc::strong_count(&outcome)),
        (1, 1),
        "{script:?}"
    );
    for bell in bells {
        assert_eq!(Arc::strong_count(&bell), 1, "a waker is kept: {script:?}");
    }
}

/// Every order in which a caller's polls, with two wakers, and its leaving can fall among the dispatch and the delivery.
#[test]
fn whoever_comes_when_gets_one_outcome_and_the_last_waker_is_woken() {
    let mut scripts = 0;
    for polls in 0..=3_u32 {
        for wakers in 0..2_usize.pow(polls) {
            let caller: Vec<Step> = (0..polls)
                .map(|poll| Step::Poll(wakers >> poll & 1))
                .chain([Step::Leave])
                .collect();
            for dispatch_at in 0..=caller.len() {
                for deliver_at in dispatch_at..=caller.len() {
                    for enters_with in [None, Some(0), Some(1)] {
                        let mut script = caller.clone();
                        script.insert(deliver_at, Step::Deliver);
                        script.insert(dispatch_at, Step::Dispatch);
                        follow(&script, enters_with);
                        // The same without leaving: a last poll finds the outcome.
                        script.retain(|step| *step != Step::Leave);
                        script.push(Step::Poll(0));
                        follow(&script, enters_with);
                        scripts += 2;
                    }
                }
            }
            if cfg!(miri) && polls == 2 {
                // Enough of them for an interpreter.
                return;
            }
        }
    }
    assert!(scripts > 500, "{scripts}");
}

/// A half that finds the other in the middle of its turn has something to do: nobody waits.
#[test]
fn a_half_never_waits_for_the_others_turn() {
    let checked = Checked::new();
    let value: Value = Arc::new("value");
    let waker = || Some(Waker::noop().clone());
    let slot = |index: usize| &checked.chunk().inner().slots[index];

    // The caller is at its waker, from the dispatch to the delivery: the place leaves it there.
    let (mut ticket, place) = checked.fill(0, &value, waker());
    checked.state(0).store(QUEUED | AT_WAKER, Ordering::SeqCst);
    let (place, _item) = place.dispatch().expect("it waits");
    assert_eq!(checked.state(0).load(Ordering::SeqCst), RUNNING | AT_WAKER);
    assert!(matches!(place.deliver(Ok(Arc::clone(&value))), Delivered::Stored(None)));
    assert_eq!(checked.state(0).load(Ordering::SeqCst), DONE | AT_WAKER);
    // SAFETY: done, hence both are the ticket's; as its poll does.
    let left = unsafe { slot(0).exchange_waker(None) };
    assert!(left.is_some(), "a waker that its caller holds was taken");
    checked.state(0).store(DONE, Ordering::SeqCst);
    assert!(ticket.poll(Waker::noop()).is_ready());

    // The caller is taking its item back: for the place the call is gone. Whoever comes last sets free.
    for ends_place in [
        (|place| assert!(Place::dispatch(place).is_none())) as fn(Place<Value, Value, ()>),
        |place| assert!(place.sweep().is_none()),
    ] {
        let (_ticket, place) = checked.fill(1, &value, None);
        checked.state(1).store(LEAVING, Ordering::SeqCst);
        ends_place(place);
        assert_eq!(checked.state(1).load(Ordering::SeqCst), FORGOTTEN);
        // SAFETY: forgotten, hence all is the ticket's.
        drop(unsafe { slot(1).exchange_content(Content::Empty) });
        slot(1).set_free();
    }

    // The place is taking the waker: the outcome is the caller's already, by a poll or when it leaves.
    for ends_ticket in [
        (|mut ticket| assert!(Ticket::poll(&mut ticket, Waker::noop()).is_ready())) as fn(Ticket<Value, Value, ()>),
        |mut ticket| assert!(ticket.leave()._outcome.is_some()),
    ] {
        let (ticket, place) = checked.fill(2, &value, None);
        // Played by hand from here on.
        std::mem::forget(place);
        checked.state(2).store(DELIVERING, Ordering::SeqCst);
        // SAFETY: as the place does before it is delivering.
        drop(unsafe { slot(2).exchange_content(Content::Outcome(Ok(Arc::clone(&value)))) });
        ends_ticket(ticket);
        assert_eq!(checked.state(2).load(Ordering::SeqCst), TAKEN);
        slot(2).set_free();
    }
}

thread_local!(static WATCHED: Cell<*const AtomicU8> = const { Cell::new(std::ptr::null()) });

/// The executor's code runs: the place must not find the caller at the waker meanwhile.
fn executor_code() {
    // SAFETY: null, or the state of a slot of the test that runs on this thread.
    if let Some(state) = unsafe { WATCHED.get().as_ref() } {
        assert_eq!(
            state.load(Ordering::SeqCst) & AT_WAKER,
            0,
            "a waker's code was run while at it"
        );
    }
}

static WATCHING: RawWakerVTable = RawWakerVTable::new(
    |tag| {
        executor_code();
        RawWaker::new(tag, &WATCHING)
    },
    |_| executor_code(),
    |_| executor_code(),
    |_| executor_code(),
);

#[test]
fn no_wakers_code_runs_while_the_place_has_to_make_way() {
    // SAFETY: the functions of `WATCHING` never dereference the pointer, own nothing, and are thread safe.
    let waker = |tag: usize| unsafe { Waker::new(std::ptr::without_provenance(tag), &WATCHING) };
    let checked = Checked::new();
    let value: Value = Arc::new("value");
    let (mut ticket, place) = checked.fill(0, &value, Some(waker(1)));
    WATCHED.set(checked.state(0));
    for tag in [1, 2, 2, 3] {
        assert!(ticket.poll(&waker(tag)).is_pending());
    }
    let (place, _item) = place.dispatch().expect("it waits");
    assert!(ticket.poll(&waker(4)).is_pending());
    drop(ticket.leave());
    assert!(matches!(place.deliver(Ok(value)), Delivered::Unwanted(_)));
    WATCHED.set(std::ptr::null());
}

/// Two threads, as many orders as chance brings.
#[test]
fn two_threads_meet() {
    struct Sent(Checked);
    // SAFETY: shared for the look at the end only; slots are filled by one thread.
    unsafe impl Sync for Sent {}

    let value: Value = Arc::new("value");
    for round in 0..if cfg!(miri) { 40 } else { 4_000 } {
        let bells = [(); 3].map(|()| Arc::new(Bell::default()));
        let chunk = Sent(Checked::new());
        let (mut ticket, place) = chunk.0.fill(0, &value, None);
        let (leaves, got) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let Some((place, item)) = place.dispatch() else { return };
                drop(item);
                if let Delivered::Stored(Some(waker)) = place.deliver(Ok(Arc::clone(&value))) {
                    waker.wake();
                }
            });
            let mut last = 0;
            for poll in 0..round % 7 {
                last = poll % bells.len();
                if ticket.poll(&Waker::from(Arc::clone(&bells[last]))).is_ready() {
                    return (false, true);
                }
            }
            if round % 2 == 0 {
                let displaced = ticket.leave();
                return (true, displaced._outcome.is_some());
            }
            if ticket.poll(&Waker::from(Arc::clone(&bells[last]))).is_ready() {
                return (false, true);
            }
            while bells[last].rung() == 0 {
                std::thread::yield_now();
            }
            (false, ticket.poll(Waker::noop()).is_ready())
        });
        assert!(leaves || got, "woken, and no outcome");
        drop(chunk);
        assert_eq!(Arc::strong_count(&value), 1, "something was kept, or dropped twice");
    }
}

#[test]
fn a_chunk_is_bounded_in_slots_and_in_bytes() {
    fn slots<O>() -> usize {
        let chunk = Chunk::<u64, O, ()>::new();
        let slots = chunk.slots();
        assert!(chunk.is_free());
        // SAFETY: nothing was filled.
        unsafe { chunk.free() };
        slots
    }
    assert_eq!(slots::<u64>(), CHUNK_SLOTS);
    assert!((2..=4).contains(&slots::<[u8; 4_000]>()));
    assert_eq!(slots::<[u8; 100_000]>(), 1);
}

#[test]
fn a_swept_stretch_keeps_those_who_wait_in_order_and_in_few_pieces() {
    let checked = Checked::new();
    let value: Value = Arc::new("value");
    let (mut tickets, places): (Vec<_>, Vec<_>) = (0..8).map(|index| checked.fill(index, &value, None)).unzip();
    // The stretch made below has them.
    places.into_iter().for_each(std::mem::forget);
    for gone in [0, 3, 4] {
        assert!(tickets[gone].leave().was_queued);
    }
    // SAFETY: filled, and the places made above are not used.
    let stretch = unsafe { checked.chunk().stretch(0, 8) };
    let arrivals = |stretch: &Stretch<_, _, _>| stretch.waiting().map(|note| note.arrival).collect::<Vec<_>>();
    assert_eq!((stretch.len(), arrivals(&stretch)), (8, vec![1, 2, 5, 6, 7]));
    assert!(!stretch.first_is_waiting());
    let mut kept = VecDeque::new();
    stretch.sweep(&mut kept);
    assert_eq!(
        kept.iter().map(arrivals).collect::<Vec<_>>(),
        [vec![1, 2], vec![5, 6, 7]]
    );
    for gone in [0, 3, 4] {
        assert_eq!(checked.state(gone).load(Ordering::SeqCst), FREE);
    }
    for mut stretch in kept {
        while let Some(note) = stretch.first() {
            assert!(stretch.first_is_waiting());
            let (place, _item) = stretch.pop_front().unwrap().dispatch().unwrap();
            drop(place.deliver(Ok(Arc::clone(&value))));
            assert!(tickets[note.weight].poll(Waker::noop()).is_ready());
        }
        assert!(stretch.is_empty() && stretch.pop_front().is_none());
    }
}

#[test]
fn a_place_that_is_dropped_tells_its_caller() {
    let checked = Checked::new();
    let value: Value = Arc::new("value");
    let is_stopped = |ticket: &mut Ticket<Value, Value, ()>| {
        matches!(ticket.poll(Waker::noop()), Poll::Ready(Err(CallError::Stopped)))
    };
    // In line, and with the processor.
    let (mut waits, place) = checked.fill(0, &value, None);
    drop(place);
    assert!(is_stopped(&mut waits));
    let (mut runs, place) = checked.fill(1, &value, None);
    drop(place.dispatch());
    assert!(is_stopped(&mut runs));
    // Whose caller has gone, before and after.
    let (mut gone, place) = checked.fill(2, &value, None);
    drop(gone.leave());
    drop(place);
    let (mut gone, place) = checked.fill(3, &value, None);
    let dispatched = place.dispatch();
    drop(gone.leave());
    drop(dispatched);
    for index in 0..4 {
        assert_eq!(checked.state(index).load(Ordering::SeqCst), FREE);
    }
    assert_eq!(Arc::strong_count(&value), 1, "nothing is kept");
}
