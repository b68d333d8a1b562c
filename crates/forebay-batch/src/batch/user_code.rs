//! Tests of the user's code inside a batcher: it never finds a lock held, and its panics stay its own.
//!
//! Every place where user code can run (processor, weigher, drop of item, outcome and error, all of a waker's functions)
//! notes how many of the batcher's locks the thread holds; a note above zero fails the test.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::dispatch::Batch;
use super::inbox::{Inboxes, Queued};
use super::intake::{Intake, Limits, Next};
use super::line::{BatchLimits, InOrder};
use super::sync::locks_held;
use super::window::Due;
use super::{Batcher, Call, CallError};

thread_local!(static NOTES: RefCell<BTreeMap<&'static str, (usize, usize)>> = RefCell::default());

/// Notes that user code runs: how often, and the most locks held.
fn note(place: &'static str) {
    NOTES.with_borrow_mut(|notes| {
        let (times, most_held) = notes.entry(place).or_default();
        *times += 1;
        *most_held = (*most_held).max(locks_held());
    });
}

static NOTING: RawWakerVTable = RawWakerVTable::new(
    |tag| {
        note("waker clone");
        RawWaker::new(tag, &NOTING)
    },
    |_| note("waker wake"),
    |_| note("waker wake by ref"),
    |_| note("waker drop"),
);

/// Wakers with different tags do not count as the same.
fn noting_waker(tag: usize) -> Waker {
    // SAFETY: the functions of `NOTING` never dereference the pointer, own nothing, and are thread safe.
    unsafe { Waker::new(std::ptr::without_provenance(tag), &NOTING) }
}

struct Noting(&'static str);

impl Drop for Noting {
    fn drop(&mut self) {
        note(self.0);
    }
}

fn poll_with<F: Future + Unpin>(future: &mut F, tag: usize) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&noting_waker(tag)))
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[derive(Clone, Copy)]
enum End {
    Answers,
    Fails,
    Panics,
    Miscounts,
}

/// One of each: awaited, polled with changing wakers, cancelled at every stage, rejected.
async fn every_way_through(end: End, max_wait: Duration) {
    let gate = Arc::new(Semaphore::new(0));
    let of_process = Arc::clone(&gate);
    let batcher = Batcher::builder()
        .max_wait(max_wait)
        .max_weight(1000, |_: &Noting| {
            note("weigh");
            1
        })
        .build(move |items: Vec<Noting>| {
            note("process");
            let gate = Arc::clone(&of_process);
            async move {
                gate.acquire().await.unwrap().forget();
                note("process");
                let outcomes = items.iter().map(|_| Noting("outcome drop"));
                match end {
                    End::Answers => Ok(outcomes.collect()),
                    End::Fails => Err(Noting("error drop")),
                    End::Panics => std::panic::panic_any(Noting("panic drop")),
                    End::Miscounts => Ok(outcomes.skip(1).collect()),
                }
            }
        });
    let mut calls: Vec<_> = (0..6).map(|_| batcher.call(Noting("item drop"))).collect();
    let mut entered = batcher.try_call(Noting("item drop")).unwrap();
    for call in &mut calls {
        assert!(poll_with(call, 1).is_pending());
        assert!(poll_with(call, 2).is_pending());
    }
    drop(calls.remove(0));
    settle().await;
    if !max_wait.is_zero() {
        assert_eq!(batcher.stats().in_flight, 0);
        // Ends the window by waking the gatherer, which is a task and has tokio's waker.
        let mut hasty = batcher.call_within(Noting("item drop"), Duration::ZERO);
        assert!(poll_with(&mut hasty, 1).is_pending());
        calls.push(hasty);
        settle().await;
    }
    assert_eq!(batcher.stats().in_flight, 1);
    drop(calls.remove(0));
    assert!(poll_with(&mut calls[0], 3).is_pending());
    assert!(poll_with(&mut entered, 3).is_pending());
    // In line behind the running batch.
    let mut late = batcher.call(Noting("item drop"));
    assert!(poll_with(&mut late, 1).is_pending());
    let mut leaves = batcher.call(Noting("item drop"));
    assert!(poll_with(&mut leaves, 1).is_pending());
    drop(leaves);
    gate.add_permits(2);
    settle().await;
    assert!(poll_with(&mut calls[0], 4).is_ready());
    assert!(poll_with(&mut entered, 4).is_ready());
    // Their outcomes are there, and nobody has looked at them.
    drop(calls);
    batcher.drain().await;
    assert!(poll_with(&mut late, 1).is_ready());
    assert!(batcher.try_call(Noting("item drop")).is_err());
    assert!(poll_with(&mut batcher.call(Noting("item drop")), 1).is_ready());
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_held_while_user_code_runs() {
    for end in [End::Answers, End::Fails, End::Panics, End::Miscounts] {
        for max_wait in [Duration::ZERO, Duration::from_secs(3600)] {
            every_way_through(end, max_wait).await;
        }
    }
    let notes = NOTES.take();
    println!("{notes:?}");
    for place in [
        "waker clone",
        "waker wake",
        "waker drop",
        "weigh",
        "process",
        "item drop",
        "outcome drop",
        "error drop",
        "panic drop",
    ] {
        let (times, most_held) = notes.get(place).copied().unwrap_or_default();
        assert!(times > 0, "{place} never ran: the test tests nothing");
        assert_eq!(most_held, 0, "{place} ran under a lock");
    }
}

/// The gatherer's waker is the runtime's, which is somebody's code too.
#[test]
fn no_lock_is_held_while_a_gatherers_waker_is_dropped() {
    for inboxes in [1, 2, 4] {
        let limits = Limits {
            batch: BatchLimits {
                max_items: 2,
                max_weight: u128::MAX,
            },
            max_in_flight: 1,
            max_queued: 1,
        };
        let intake = Intake::<u64, u64, ()>::with(limits, InOrder, Inboxes::with(inboxes));
        let now = Instant::now();
        let queued = Queued {
            item: 0,
            weight: 0,
            due: Due::By(now + Duration::from_secs(1)),
        };
        let entered = intake.enter(1, queued, None);
        assert!(entered.is_ok());
        let mut batch = Batch::new();
        for tag in 0..3 {
            let (next, _) = intake.next(&mut batch, &mut Some(noting_waker(tag)), || now);
            assert!(matches!(next, Next::Wait(_)));
        }
        let _ = intake.lose_runner(None, &mut batch);
        let notes = NOTES.take();
        assert_eq!(
            notes.get("waker drop"),
            Some(&(3, 0)),
            "dropped three times, no lock held"
        );
    }
}

/// Items, wakers and outcomes that the intake returns, refuses or strands, looked at one by one.
#[test]
fn no_lock_is_held_while_the_intake_hands_something_back() {
    for inboxes in [1, 2, 4] {
        let limits = Limits {
            batch: BatchLimits {
                max_items: 2,
                max_weight: u128::MAX,
            },
            max_in_flight: 1,
            max_queued: 3,
        };
        let intake = Intake::<Noting, Noting, ()>::with(limits, InOrder, Inboxes::with(inboxes));
        let queued = || Queued {
            item: Noting("item drop"),
            weight: 0,
            due: Due::AtOnce,
        };
        let enter = |thread: usize| {
            intake
                .enter(thread, queued(), Some(noting_waker(thread)))
                .ok()
                .expect("open")
                .0
        };
        let mut tickets: Vec<_> = (0..6).map(enter).collect();
        let mut batch = Batch::new();
        let found = intake.next(&mut batch, &mut None, Instant::now).0;
        assert_eq!(found, Next::Run);
        drop(intake.try_enter(0, queued()));
        for gone in [1, 2, 4] {
            drop(intake.cancel(&mut tickets[gone]));
        }
        let mut stranded = Batch::new();
        let _ = intake.lose_runner(Some(&mut batch), &mut stranded);
        assert_eq!(stranded.items.len(), 2);
        batch.answer_all(&CallError::Stopped);
        stranded.answer_all(&CallError::Stopped);
        drop((batch, stranded));
        drop(intake.close());
        drop(intake.enter(0, queued(), Some(noting_waker(0))));
        let notes = NOTES.take();
        assert_eq!(notes.get("item drop"), Some(&(8, 0)));
        assert!(notes.values().all(|(_, most_held)| *most_held == 0), "{notes:?}");
    }
}

/// While calls go on arriving: what arrives during it comes back too, item and place together.
#[test]
fn no_lock_is_held_while_a_lost_runner_brings_the_line_back() {
    let limits = Limits {
        batch: BatchLimits {
            max_items: 2,
            max_weight: u128::MAX,
        },
        max_in_flight: 1,
        max_queued: 3,
    };
    let intake = Intake::<Noting, Noting, ()>::with(limits, InOrder, Inboxes::with(2));
    let arrive = |thread: usize| {
        let queued = Queued {
            item: Noting("stranded item drop"),
            weight: 0,
            due: Due::AtOnce,
        };
        assert!(intake.enter(thread, queued, None).is_ok());
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                for _ in 0..16 {
                    arrive(1);
                }
                std::thread::yield_now();
            }
        });
        for _ in 0..20_000 {
            arrive(0);
            let (mut batch, mut stranded) = (Batch::new(), Batch::new());
            if intake.next(&mut batch, &mut None, Instant::now).0 == Next::Run {
                let _ = intake.lose_runner(Some(&mut batch), &mut stranded);
            }
            if stranded.items.len() != stranded.places.len() {
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            }
            assert_eq!(stranded.items.len(), stranded.places.len());
            batch.answer_all(&CallError::Stopped);
            stranded.answer_all(&CallError::Stopped);
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    // Undisturbed, all that is left comes back.
    arrive(0);
    let (mut batch, mut stranded) = (Batch::new(), Batch::new());
    assert_eq!(intake.next(&mut batch, &mut None, Instant::now).0, Next::Run);
    let _ = intake.lose_runner(Some(&mut batch), &mut stranded);
    let stats = intake.stats();
    assert_eq!(
        (stats.queued, stats.waiting, stats.in_flight),
        (0, 0, 0),
        "the books are right"
    );
    drop((batch, stranded));
    let (times, most_held) = NOTES.take()["stranded item drop"];
    assert!(times >= 20_000);
    assert_eq!(most_held, 0, "an item was dropped under a lock");
}

#[tokio::test]
async fn spurious_polls_keep_the_last_waker() {
    struct Woken(std::sync::atomic::AtomicBool);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let wakers = [0; 3].map(|_| Arc::new(Woken(false.into())));
    let batcher = Batcher::new(|items: Vec<u64>| async move { Ok::<_, Infallible>(items) });
    let mut call = batcher.call(1);
    for waker in &wakers {
        for _ in 0..3 {
            let waker = Waker::from(Arc::clone(waker));
            let polled = Pin::new(&mut call).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
    }
    settle().await;
    let woken = wakers
        .each_ref()
        .map(|waker| waker.0.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(woken, [false, false, true]);
    for waker in wakers {
        assert_eq!(Arc::strong_count(&waker), 1, "no waker is kept");
    }
    assert_eq!(call.await.unwrap(), 1);
}

/// Panics when it is dropped, unless it was defused.
struct Explosive(bool);

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(!self.0, "dropped an explosive outcome");
    }
}

#[tokio::test]
async fn a_panic_in_the_drop_of_an_unwanted_outcome_harms_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let of_process = Arc::clone(&gate);
    let batcher = Batcher::new(move |items: Vec<bool>| {
        let gate = Arc::clone(&of_process);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(items.into_iter().map(Explosive).collect())
        }
    });
    let mut calls: Vec<_> = [false, true, false]
        .map(|explosive| batcher.try_call(explosive).unwrap())
        .into();
    settle().await;
    drop(calls.remove(1));
    let next = batcher.try_call(false).unwrap();
    gate.add_permits(2);
    for call in calls {
        assert!(call.await.is_ok());
    }
    assert!(next.await.is_ok());
    batcher.drain().await;
}

#[tokio::test]
async fn a_panic_of_a_waker_harms_nobody() {
    struct Grenade;
    impl std::task::Wake for Grenade {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    let batcher = Batcher::new(|items: Vec<u64>| async move { Ok::<_, Infallible>(items) });
    let mut own = batcher.call(1);
    let grenade = Waker::from(Arc::new(Grenade));
    assert!(Pin::new(&mut own).poll(&mut Context::from_waker(&grenade)).is_pending());
    assert_eq!(batcher.call(2).await.unwrap(), 2);
    assert_eq!(own.await.unwrap(), 1);
    batcher.drain().await;
}

#[tokio::test]
async fn a_panic_of_the_weigher_is_its_own_callers() {
    let batcher = Batcher::builder()
        .max_weight(10, |item: &usize| {
            assert!(*item != 13, "will not weigh 13");
            *item
        })
        .build(|items: Vec<usize>| async move { Ok::<_, Infallible>(items) });
    let of_unlucky = batcher.clone();
    let unlucky = tokio::spawn(async move { of_unlucky.call(13).await });
    assert_eq!(batcher.call(1).await.unwrap(), 1);
    assert!(unlucky.await.unwrap_err().is_panic());
    assert_eq!(batcher.stats().calls, 1);
}

#[tokio::test]
async fn a_panic_in_the_drop_of_a_cancelled_item_is_its_own_callers() {
    let batcher: Batcher<Explosive, ()> = Batcher::new(|items: Vec<Explosive>| async move {
        let count = items.len();
        items.into_iter().for_each(|mut item| item.0 = false);
        Ok(vec![(); count])
    });
    let explosive = batcher.try_call(Explosive(true)).unwrap();
    let neighbour: Call<_, _, _> = batcher.try_call(Explosive(false)).unwrap();
    let leaving = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(explosive)));
    assert!(leaving.is_err());
    let outcome: Result<(), CallError<Infallible>> = neighbour.await;
    assert!(outcome.is_ok());
    batcher.drain().await;
}
