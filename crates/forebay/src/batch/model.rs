//! Model checks: every interleaving of a few callers, runners and leavers (loom explores them all).
//!
//! ```console
//! $ RUSTFLAGS="--cfg forebay_loom" cargo test -p forebay --no-default-features --lib --release model --target-dir target/loom
//! ```
//!
//! A runner is a thread here and a caller's waker unparks its thread; everything else is the product's code. A lost
//! wake-up shows as a deadlock, a lost or doubled outcome as a failed assertion. Knows no runtime, hence no windows.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::task::{Poll, Wake, Waker};

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use tokio::time::Instant;

use super::dispatch::Batch;
use super::error::CallError;
use super::intake::{Intake, Limits, Next, Refusal, Todo};
use super::line::BatchLimits;
use super::slot::{Outcome, Queued, Ticket};
use super::window::Due;

type Model = Intake<u64, u64, u64>;

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

fn intake(max_items: usize, max_in_flight: usize) -> Arc<Model> {
    Arc::new(Model::new(Limits {
        batch: BatchLimits {
            max_items,
            max_weight: u128::MAX,
        },
        max_in_flight,
        max_queued: 10,
    }))
}

fn carry_out(intake: &Arc<Model>, todo: Todo, processor: Processor) {
    assert!(todo.wake.is_none(), "without windows no gatherer sleeps");
    if todo.start_runner {
        let intake = Arc::clone(intake);
        thread::spawn(move || run(&intake, processor));
    }
}

fn run(intake: &Arc<Model>, processor: Processor) {
    loop {
        let mut batch = Batch::new();
        let (next, todo) = intake.next(&mut batch, &mut None, Instant::now);
        carry_out(intake, todo, processor);
        if next == Next::Leave {
            return;
        }
        let mut items = batch.collect_items();
        let mut none_left = items.is_empty();
        match processor {
            _ if none_left => batch.clear(),
            Processor::Answers => loop {
                let mut following = Batch::new();
                let gone_on = intake.go_on(&mut following);
                let begun = following.collect_items();
                batch.answer_each(items.into_iter().map(|item| item * 10).collect());
                let Some(todo) = gone_on else { break };
                carry_out(intake, todo, processor);
                (batch, items) = (following, begun);
                none_left = items.is_empty();
                if none_left {
                    batch.clear();
                    break;
                }
            },
            Processor::FailsAll => {
                batch.answer_all(&CallError::Failed(std::sync::Arc::new(7)));
            }
            Processor::IsDropped => {
                batch.answer_all(&CallError::Stopped);
                let mut stranded = Batch::new();
                let todo = intake.lose_runner(true, &mut stranded);
                drop(stranded.collect_items());
                stranded.answer_all(&CallError::Stopped);
                return carry_out(intake, todo, processor);
            }
        }
        let (gathers, todo) = intake.finish(none_left);
        carry_out(intake, todo, processor);
        if !gathers {
            return;
        }
    }
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

fn enter(
    intake: &Arc<Model>,
    item: u64,
    waker: Option<Waker>,
    processor: Processor,
) -> Result<Ticket<u64, u64, u64>, Refusal> {
    let queued = Queued {
        item,
        weight: 0,
        due: Due::AtOnce,
    };
    match intake.enter(queued, waker, false) {
        Ok((ticket, todo)) => {
            carry_out(intake, todo, processor);
            Ok(ticket)
        }
        Err((refusal, returned, _)) => {
            assert_eq!(returned, item);
            Err(refusal)
        }
    }
}

fn wait_for(ticket: &Ticket<u64, u64, u64>, bell: &Bell, waker: &Waker) -> Outcome<u64, u64> {
    loop {
        if let Poll::Ready(outcome) = ticket.slot().poll(waker) {
            return outcome;
        }
        bell.wait();
    }
}

/// A whole call: enters with its waker and polls only when woken.
fn call(intake: &Arc<Model>, item: u64, processor: Processor) -> Outcome<u64, u64> {
    let (bell, waker) = Bell::new();
    match enter(intake, item, Some(waker.clone()), processor) {
        Ok(ticket) => {
            bell.wait();
            wait_for(&ticket, &bell, &waker)
        }
        Err(_) => Err(CallError::Closed),
    }
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
            let ticket = enter(&others, 2, None, Processor::Answers).expect("open");
            let (displaced, todo) = others.cancel(&ticket);
            drop(displaced);
            carry_out(&others, todo, Processor::Answers);
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
        let ticket = enter(&intake, 1, Some(first_waker), Processor::Answers).expect("open");
        // Races with the runner; only the last waker counts.
        let (bell, waker) = Bell::new();
        assert!(matches!(wait_for(&ticket, &bell, &waker), Ok(10)));
        at_rest(&intake);
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
        let first = enter(&intake, 1, Some(first_waker.clone()), Processor::Answers).expect("open");
        assert!(matches!(call(&intake, 2, Processor::Answers), Ok(20)));
        assert!(matches!(wait_for(&first, &first_bell, &first_waker), Ok(10)));
        assert!(matches!(other.join().unwrap(), Ok(30)));
        at_rest(&intake);
    });
}
