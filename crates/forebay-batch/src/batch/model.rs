//! Model checks: every interleaving of a few callers, runners and cancelled calls (loom explores them all).
//!
//! ```console
//! $ RUSTFLAGS="--cfg forebay_loom" cargo test -p forebay-batch --lib --release --target-dir target/loom -- batch::model
//! ```
//!
//! A runner is a thread here and a caller's waker unparks its thread; everything else is the product's code. A lost
//! wake-up shows as a deadlock, a lost or doubled outcome as a failed assertion. The clock stands still: windows never
//! end on their own. Knows no runtime.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use tokio::time::Instant;

use super::dispatch::Batch;
use super::error::CallError;
use super::inbox::{Inboxes, Queued};
use super::intake::{Intake, Limits, Next, Todo};
use super::line::{BatchLimits, InOrder};
use super::slot::{Chunk, Delivered, Note, Outcome, Place, Ticket};
use super::window::Due;

type Model = Intake<u64, u64, u64>;
type ModelTicket = Ticket<u64, u64, u64>;

/// What the processor of a model does with a batch.
#[derive(Clone, Copy)]
enum Processor {
    /// Ten times each item.
    Answers,
    /// As after a panic or a wrong count.
    FailsAll,
    /// The runtime drops the runner's task.
    IsDropped,
}

/// Two inboxes: a call names its own, and the order of the two does not depend on chunks.
fn intake(max_items: usize, max_in_flight: usize) -> Arc<Model> {
    let limits = Limits {
        batch: BatchLimits {
            max_items,
            max_weight: u128::MAX,
        },
        max_in_flight,
        max_queued: 10,
    };
    Arc::new(Model::with(limits, InOrder, Inboxes::with(2)))
}

fn carry_out(intake: &Arc<Model>, todo: Todo, processor: Processor) {
    if let Some(waker) = todo.wake {
        waker.wake();
    }
    if todo.start_runner {
        let intake = Arc::clone(intake);
        thread::spawn(move || run(&intake, processor));
    }
}

/// Waits for a batch, as the runner's task does. The clock stands still.
fn gather(intake: &Arc<Model>, batch: &mut Batch<u64, u64, u64>, processor: Processor) -> bool {
    let mut sleeps = None;
    loop {
        let (bell, waker) = sleeps.get_or_insert_with(Bell::new);
        let (next, todo) = intake.next(batch, &mut Some(waker.clone()), start);
        carry_out(intake, todo, processor);
        match next {
            Next::Run => return true,
            Next::Leave => return false,
            // Its window never ends: a batch that is full, or nobody left, has to wake it.
            Next::Wait(_) => bell.wait(),
        }
    }
}

fn run(intake: &Arc<Model>, processor: Processor) {
    loop {
        let mut batch = Batch::new();
        if !gather(intake, &mut batch, processor) {
            return;
        }
        loop {
            let items = std::mem::take(&mut batch.items);
            assert_eq!(items.len(), batch.places.len());
            if matches!(processor, Processor::IsDropped) {
                let mut stranded = Batch::new();
                let todo = intake.lose_runner(Some(&mut batch), &mut stranded);
                batch.answer_all(&CallError::Stopped);
                stranded.answer_all(&CallError::Stopped);
                return carry_out(intake, todo, processor);
            }
            let mut following = Batch::new();
            let (goes_on, todo) = intake.go_on(&mut batch, &mut following);
            if matches!(processor, Processor::Answers) {
                InOrder::answer(&mut batch, items.into_iter().map(|item| item * 10).collect());
            } else {
                batch.answer_all(&CallError::Failed(std::sync::Arc::new(7)));
            }
            carry_out(intake, todo, processor);
            if !goes_on {
                break;
            }
            batch = following;
        }
        let (gathers, todo) = intake.finish();
        carry_out(intake, todo, processor);
        if !gathers {
            return;
        }
    }
}

/// When the model began; its clock stays there.
fn start() -> Instant {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// A window that never ends.
fn window() -> Due {
    Due::By(start() + Duration::from_secs(3600))
}

/// A waker that the model can wait for.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    ringing: Condvar,
}

/// `Wake` wants std's `Arc`.
struct Ringer(Arc<Bell>);

impl Wake for Ringer {
    fn wake(self: std::sync::Arc<Self>) {
        *self.0.rung.lock().unwrap() = true;
        self.0.ringing.notify_one();
    }
}

impl Bell {
    fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        let waker = Waker::from(std::sync::Arc::new(Ringer(Arc::clone(&bell))));
        (bell, waker)
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.ringing.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// Puts an item in the inbox of its number.
fn enter(intake: &Arc<Model>, item: u64, due: Due, waker: Option<Waker>, processor: Processor) -> Option<ModelTicket> {
    let queued = Queued { item, weight: 0, due };
    match intake.enter(item as usize, queued, waker) {
        Ok((ticket, todo)) => {
            carry_out(intake, todo, processor);
            Some(ticket)
        }
        Err((returned, _)) => {
            assert_eq!(returned, item);
            None
        }
    }
}

fn wait_for(ticket: &mut ModelTicket, bell: &Bell, waker: &Waker) -> Outcome<u64, u64> {
    loop {
        if let Poll::Ready(outcome) = ticket.poll(waker) {
            return outcome;
        }
        bell.wait();
    }
}

/// A whole call: enters with its waker and polls only when woken.
fn call_due(intake: &Arc<Model>, item: u64, due: Due, processor: Processor) -> Outcome<u64, u64> {
    let (bell, waker) = Bell::new();
    match enter(intake, item, due, Some(waker.clone()), processor) {
        Some(mut ticket) => {
            bell.wait();
            wait_for(&mut ticket, &bell, &waker)
        }
        None => Err(CallError::Closed),
    }
}

fn call(intake: &Arc<Model>, item: u64, processor: Processor) -> Outcome<u64, u64> {
    call_due(intake, item, Due::AtOnce, processor)
}

fn cancel(intake: &Arc<Model>, mut ticket: ModelTicket) {
    let (displaced, todo) = intake.cancel(&mut ticket);
    drop(displaced);
    carry_out(intake, todo, Processor::Answers);
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // More switches than this find nothing new in code with a lock an operation, and take hours.
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn at_rest(intake: &Model) {
    let stats = intake.stats();
    assert_eq!((stats.queued, stats.waiting), (0, 0));
}

#[test]
fn loom_each_caller_gets_its_own_outcome() {
    explore(|| {
        let intake = intake(2, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 2, Processor::Answers));
        assert!(matches!(call(&intake, 1, Processor::Answers), Ok(10)));
        assert!(matches!(other.join().unwrap(), Ok(20)));
        at_rest(&intake);
    });
}

#[test]
fn loom_two_runners_and_batches_of_one() {
    explore(|| {
        let intake = intake(1, 2);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 2, Processor::Answers));
        assert!(matches!(call(&intake, 1, Processor::Answers), Ok(10)));
        assert!(matches!(other.join().unwrap(), Ok(20)));
        at_rest(&intake);
        assert_eq!(intake.stats().batches, 2);
    });
}

#[test]
fn loom_a_failure_reaches_every_caller() {
    explore(|| {
        let intake = intake(2, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 2, Processor::FailsAll));
        let own = call(&intake, 1, Processor::FailsAll);
        for outcome in [own, other.join().unwrap()] {
            assert!(matches!(outcome, Err(CallError::Failed(error)) if *error == 7));
        }
        at_rest(&intake);
    });
}

#[test]
fn loom_a_lost_runner_strands_nobody() {
    explore(|| {
        let intake = intake(1, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 2, Processor::IsDropped));
        let own = call(&intake, 1, Processor::IsDropped);
        for outcome in [own, other.join().unwrap()] {
            assert!(matches!(outcome, Err(CallError::Stopped)));
        }
        at_rest(&intake);
    });
}

#[test]
fn loom_a_cancelled_neighbour_changes_nothing() {
    explore(|| {
        let intake = intake(2, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || {
            let ticket = enter(&others, 2, Due::AtOnce, None, Processor::Answers).expect("open");
            cancel(&others, ticket);
        });
        assert!(matches!(call(&intake, 1, Processor::Answers), Ok(10)));
        other.join().unwrap();
        at_rest(&intake);
    });
}

#[test]
fn loom_spurious_polls_with_other_wakers_lose_no_wake_up() {
    explore(|| {
        let intake = intake(2, 1);
        let (_, first_waker) = Bell::new();
        let mut ticket = enter(&intake, 1, Due::AtOnce, Some(first_waker), Processor::Answers).expect("open");
        // Races with the runner; only the last waker counts.
        let (bell, waker) = Bell::new();
        assert!(matches!(wait_for(&mut ticket, &bell, &waker), Ok(10)));
        at_rest(&intake);
    });
}

/// Two callers, each alone if it may be: otherwise in line behind the other, which forgets nobody when it ends.
#[test]
fn loom_one_that_is_alone_is_alone_and_forgets_nobody() {
    fn alone_or_in_line(intake: &Arc<Model>, busy: &Mutex<()>, item: u64) -> u64 {
        if !intake.try_alone() {
            return call(intake, item, Processor::Answers).unwrap();
        }
        let alone = busy.try_lock().expect("nobody else is");
        thread::yield_now();
        drop(alone);
        let todo = intake.end_alone(true);
        carry_out(intake, todo, Processor::Answers);
        item * 10
    }
    explore(|| {
        let intake = intake(2, 1);
        let busy = Arc::new(Mutex::new(()));
        let (others, theirs) = (Arc::clone(&intake), Arc::clone(&busy));
        let other = thread::spawn(move || alone_or_in_line(&others, &theirs, 2));
        assert_eq!(alone_or_in_line(&intake, &busy, 1), 10);
        assert_eq!(other.join().unwrap(), 20);
        at_rest(&intake);
        assert_eq!((intake.stats().calls, intake.stats().batches), (2, 2));
    });
}

#[test]
fn loom_who_is_alone_when_the_intake_closes_ends_it() {
    explore(|| {
        let intake = intake(2, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || {
            if others.try_alone() {
                others.end_alone(true).drained
            } else {
                false
            }
        });
        carry_out(&intake, intake.close(), Processor::Answers);
        let drained = intake.is_drained();
        assert!(other.join().unwrap() || drained, "nobody would tell that it is drained");
        assert!(intake.is_drained());
    });
}

#[test]
fn loom_close_ends_every_call_once() {
    explore(|| {
        let intake = intake(2, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 2, Processor::Answers));
        let todo = intake.close();
        carry_out(&intake, todo, Processor::Answers);
        assert!(matches!(call(&intake, 1, Processor::Answers), Err(CallError::Closed)));
        assert!(matches!(other.join().unwrap(), Ok(20) | Err(CallError::Closed)));
        at_rest(&intake);
    });
}

#[test]
fn loom_three_callers_across_a_chunk_border() {
    explore(|| {
        let intake = intake(3, 1);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || call(&others, 3, Processor::Answers));
        let (first_bell, first_waker) = Bell::new();
        let mut first = enter(&intake, 1, Due::AtOnce, Some(first_waker.clone()), Processor::Answers).expect("open");
        assert!(matches!(call(&intake, 2, Processor::Answers), Ok(20)));
        assert!(matches!(wait_for(&mut first, &first_bell, &first_waker), Ok(10)));
        assert!(matches!(other.join().unwrap(), Ok(30)));
        at_rest(&intake);
    });
}

/// An arrival on another inbox while the centre stands down after the first: found, or reported.
#[test]
fn loom_an_arrival_while_the_centre_stands_down_is_not_missed() {
    explore(|| {
        let intake = intake(1, 1);
        assert!(matches!(call(&intake, 1, Processor::Answers), Ok(10)));
        // The runner of the first may be on its way out, or gone.
        assert!(matches!(call(&intake, 2, Processor::Answers), Ok(20)));
        at_rest(&intake);
        assert_eq!(intake.stats().batches, 2);
    });
}

/// Under a window that never ends, the one that fills the batch wakes the gatherer, whichever inbox it comes by.
#[test]
fn loom_a_full_batch_wakes_the_sleeping_gatherer() {
    // By another inbox than the first, and by the same.
    for second in [2, 3] {
        explore(move || {
            let intake = intake(2, 1);
            let others = Arc::clone(&intake);
            let other = thread::spawn(move || call_due(&others, second, window(), Processor::Answers));
            assert!(matches!(call_due(&intake, 1, window(), Processor::Answers), Ok(10)));
            assert!(matches!(other.join().unwrap(), Ok(outcome) if outcome == 10 * second));
            at_rest(&intake);
            assert_eq!(intake.stats().batches, 1);
        });
    }
}

#[test]
fn loom_one_that_does_not_wait_wakes_the_sleeping_gatherer() {
    explore(|| {
        let intake = intake(3, 1);
        let others = Arc::clone(&intake);
        let first = enter(&intake, 1, window(), None, Processor::Answers).expect("open");
        let other = thread::spawn(move || call(&others, 2, Processor::Answers));
        assert!(matches!(other.join().unwrap(), Ok(20)));
        cancel(&intake, first);
        at_rest(&intake);
    });
}

#[test]
fn loom_the_last_that_leaves_and_close_wake_the_sleeping_gatherer() {
    explore(|| {
        let intake = intake(3, 1);
        let first = enter(&intake, 1, window(), None, Processor::Answers).expect("open");
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || cancel(&others, first));
        let todo = intake.close();
        carry_out(&intake, todo, Processor::Answers);
        other.join().unwrap();
        at_rest(&intake);
    });
}

/// What arrives after another arrival has returned goes after it, though its inbox is collected before the other's.
#[test]
fn loom_order_holds_across_inboxes() {
    explore(|| {
        let intake = intake(8, 2);
        // Nobody is started for them: the other thread looks by itself.
        let arrive = |item: u64| {
            let queued = Queued {
                item,
                weight: 0,
                due: Due::AtOnce,
            };
            assert!(intake.enter(item as usize, queued, None).is_ok());
        };
        let cut = |intake: &Model, order: &mut Vec<u64>| {
            let mut batch = Batch::new();
            let (next, _) = intake.next(&mut batch, &mut None, start);
            order.append(&mut batch.items);
            next
        };
        // Now both inboxes are looked at, one after the other.
        [4, 3].into_iter().for_each(arrive);
        let others = Arc::clone(&intake);
        let other = thread::spawn(move || {
            let mut order = Vec::new();
            assert_eq!(cut(&others, &mut order), Next::Run);
            order
        });
        [2, 1].into_iter().for_each(arrive);
        let mut order = other.join().unwrap();
        cut(&intake, &mut order);
        assert_eq!(order, [4, 3, 2, 1]);
    });
}

/// A chunk that several threads of a model look at.
struct Meeting(Chunk<Value, Value, u64>);

// SAFETY: one thread at a time fills its slots, as the chunk wants it; everything else goes by their states.
unsafe impl Sync for Meeting {}

/// A user's value: the count of its clones says how many are alive.
type Value = std::sync::Arc<()>;

impl Meeting {
    fn new() -> Arc<Self> {
        Arc::new(Self(Chunk::new()))
    }

    #[allow(clippy::type_complexity, reason = "both halves")]
    fn fill(&self, item: &Value, waker: Option<Waker>) -> (Ticket<Value, Value, u64>, Place<Value, Value, u64>) {
        let note = Note {
            arrival: 0,
            weight: 0,
            due: Due::AtOnce,
        };
        // SAFETY: whoever calls has seen that the slot is free, and is the only one to fill; its place is made once.
        unsafe {
            let ticket = self.0.fill(0, std::sync::Arc::clone(item), waker, note);
            (ticket, self.0.stretch(0, 1).pop_front().expect("one place"))
        }
    }
}

/// Explores every order, without a bound: the slot's is the one protocol without a lock.
fn meet(
    caller: impl Fn(Ticket<Value, Value, u64>) + Copy + Send + Sync + 'static,
    place: impl Fn(Place<Value, Value, u64>, Value) + Copy + Send + Sync + 'static,
) {
    meet_within(None, caller, place);
}

fn meet_within(
    preemption_bound: Option<usize>,
    caller: impl Fn(Ticket<Value, Value, u64>) + Copy + Send + Sync + 'static,
    place: impl Fn(Place<Value, Value, u64>, Value) + Copy + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemption_bound;
    builder.check(move || {
        let meeting = Meeting::new();
        let (item, outcome) = (Value::default(), Value::default());
        let (ticket, half) = meeting.fill(&item, None);
        let delivered = std::sync::Arc::clone(&outcome);
        let other = thread::spawn(move || place(half, delivered));
        caller(ticket);
        other.join().unwrap();
        assert!(meeting.0.is_free(), "both halves have ended");
        for value in [item, outcome] {
            assert_eq!(std::sync::Arc::strong_count(&value), 1, "kept");
        }
        let meeting = Arc::try_unwrap(meeting).ok().expect("the other thread is gone");
        // SAFETY: free.
        unsafe { meeting.0.free() };
    });
}

fn serve(place: Place<Value, Value, u64>, outcome: Value) {
    let Some((place, item)) = place.dispatch() else { return };
    drop(item);
    match place.deliver(Ok(outcome)) {
        Delivered::Stored(Some(waker)) => waker.wake(),
        Delivered::Stored(None) => {}
        Delivered::Unwanted(outcome) => drop(outcome),
    }
}

/// As the line does when it is swept before it is cut.
fn sweep_and_serve(place: Place<Value, Value, u64>, outcome: Value) {
    if let Some(place) = place.sweep() {
        serve(place, outcome);
    }
}

fn wait_in_slot(ticket: &mut Ticket<Value, Value, u64>) {
    let (bell, waker) = Bell::new();
    loop {
        if ticket.poll(&waker).is_ready() {
            return;
        }
        bell.wait();
    }
}

#[test]
fn loom_slot_a_caller_that_waits_is_woken() {
    meet(|mut ticket| wait_in_slot(&mut ticket), serve);
}

#[test]
fn loom_slot_the_last_of_changing_wakers_is_woken() {
    // Each poll is many steps, and without a bound their orders take hours.
    meet_within(
        Some(3),
        |mut ticket| {
            for _ in 0..2 {
                let (_bell, waker) = Bell::new();
                if ticket.poll(&waker).is_ready() {
                    return;
                }
            }
            wait_in_slot(&mut ticket);
        },
        serve,
    );
}

#[test]
fn loom_slot_a_caller_may_leave_at_any_time() {
    meet(
        |mut ticket| {
            drop(ticket.leave());
        },
        serve,
    );
}

#[test]
fn loom_slot_a_caller_may_leave_after_it_left_a_waker() {
    meet(
        |mut ticket| {
            let (_bell, waker) = Bell::new();
            if ticket.poll(&waker).is_pending() {
                drop(ticket.leave());
            }
        },
        serve,
    );
}

#[test]
fn loom_slot_a_sweep_meets_a_caller_that_leaves() {
    meet(
        |mut ticket| {
            drop(ticket.leave());
        },
        sweep_and_serve,
    );
}

#[test]
fn loom_slot_a_sweep_does_not_harm_one_that_waits() {
    meet(|mut ticket| wait_in_slot(&mut ticket), sweep_and_serve);
}

/// Whoever finds a slot free may fill it: all that both halves did has happened.
#[test]
fn loom_slot_is_filled_again_as_soon_as_it_is_free() {
    for leaves in [false, true] {
        loom::model(move || {
            let meeting = Meeting::new();
            let value = Value::default();
            let (mut ticket, place) = meeting.fill(&value, None);
            let outcome = std::sync::Arc::clone(&value);
            let batch = thread::spawn(move || serve(place, outcome));
            let caller = thread::spawn(move || {
                if leaves {
                    drop(ticket.leave());
                } else {
                    wait_in_slot(&mut ticket);
                }
            });
            if meeting.0.is_free() {
                let (mut ticket, place) = meeting.fill(&value, None);
                serve(place, std::sync::Arc::clone(&value));
                assert!(ticket.poll(Waker::noop()).is_ready());
            }
            batch.join().unwrap();
            caller.join().unwrap();
            assert!(meeting.0.is_free());
            assert_eq!(std::sync::Arc::strong_count(&value), 1);
            let meeting = Arc::try_unwrap(meeting).ok().expect("held here only");
            // SAFETY: free.
            unsafe { meeting.0.free() };
        });
    }
}
