//! The `Batcher` as its user sees it: one test for each line of its contract, named after the line.
//!
//! Time is tokio's stopped clock and runs only when every task waits, so windows are checked to the millisecond and no test
//! sleeps and hopes. Knows only the public interface.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay::batch::{Batcher, Call, CallError, Rejected};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};

type Doubling = Batcher<u64, u64>;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Sees every batch, and lets one through for each permit.
#[derive(Clone)]
struct Gate {
    batches: Arc<Mutex<Vec<Vec<u64>>>>,
    permits: Arc<Semaphore>,
}

impl Gate {
    fn shut() -> Self {
        Self {
            batches: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }

    fn open() -> Self {
        let gate = Self::shut();
        gate.let_through(1_000_000);
        gate
    }

    fn let_through(&self, batches: usize) {
        self.permits.add_permits(batches);
    }

    fn seen(&self) -> Vec<Vec<u64>> {
        self.batches.lock().clone()
    }

    fn sizes(&self) -> Vec<usize> {
        self.batches.lock().iter().map(Vec::len).collect()
    }

    /// A processor that doubles.
    fn doubling(
        &self,
    ) -> impl Fn(Vec<u64>) -> Pin<Box<dyn Future<Output = Result<Vec<u64>, Infallible>> + Send>>
    + Send
    + Sync
    + 'static {
        let gate = self.clone();
        move |items| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.batches.lock().push(items.clone());
                gate.permits.acquire().await.unwrap().forget();
                Ok(items.into_iter().map(|item| item * 2).collect())
            })
        }
    }
}

/// Lets every task that can run do so, on the single thread of these tests.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Calls that are in line, in this order.
fn enter(
    batcher: &Doubling,
    items: impl IntoIterator<Item = u64>,
) -> Vec<Call<u64, u64, Infallible>> {
    items
        .into_iter()
        .map(|item| {
            let mut call = batcher.call(item);
            assert!(poll_once(&mut call).is_pending());
            call
        })
        .collect()
}

// Dispatch.

#[tokio::test]
async fn n_calls_pending_together_make_exactly_n_over_max_items_batches() {
    for n in [1, 9, 10, 11, 63, 64, 65, 200, 201] {
        for max_in_flight in [1, 3] {
            let gate = Gate::open();
            let batcher = Batcher::builder()
                .max_items(10)
                .max_in_flight(max_in_flight)
                .build(gate.doubling());
            let outcomes = join_all((0..n).map(|item| batcher.call(item))).await;
            for (item, outcome) in (0..n).zip(outcomes) {
                assert_eq!(outcome.unwrap(), item * 2);
            }
            assert_eq!(batcher.stats().batches, n.div_ceil(10), "{n} calls");
            assert_eq!(gate.seen().concat(), (0..n).collect::<Vec<_>>());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn n_calls_make_exactly_that_many_batches_whichever_threads_the_callers_are_on() {
    for max_in_flight in [1, 2] {
        let gate = Gate::shut();
        let batcher = Batcher::builder()
            .max_items(10)
            .max_in_flight(max_in_flight)
            .build(gate.doubling());
        // The processor is kept busy, so that what comes next is pending together.
        let mut busy = Vec::new();
        for item in 0..max_in_flight {
            busy.push(batcher.try_call(item as u64).unwrap());
            while gate.seen().len() <= item {
                yield_now().await;
            }
        }
        let entering = (0..97).map(|item| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.try_call(item).unwrap() })
        });
        let calls: Vec<_> = join_all(entering)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        gate.let_through(1000);
        for (item, outcome) in join_all(calls).await.into_iter().enumerate() {
            assert_eq!(outcome.unwrap(), item as u64 * 2);
        }
        join_all(busy).await;
        assert_eq!(batcher.stats().batches, max_in_flight as u64 + 10);
    }
}

#[tokio::test]
async fn cancelled_items_leave_no_holes_in_batches() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_items(10).build(gate.doubling());
    let busy = enter(&batcher, [1000]);
    settle().await;
    let mut calls: Vec<_> = enter(&batcher, 0..150).into_iter().map(Some).collect();
    let stays = |item: usize| item % 7 == 3 || item == 149;
    for (item, call) in calls.iter_mut().enumerate() {
        if !stays(item) {
            *call = None;
        }
    }
    gate.let_through(1000);
    for (item, call) in calls.into_iter().enumerate() {
        if let Some(call) = call {
            assert_eq!(call.await.unwrap(), item as u64 * 2);
        }
    }
    drop(busy);
    assert_eq!(gate.sizes(), [1, 10, 10, 2]);
    assert_eq!(batcher.stats().cancelled, 150 - 22);
}

#[tokio::test(start_paused = true)]
async fn an_idle_processor_is_called_at_once() {
    let batcher: Doubling = Batcher::new(Gate::open().doubling());
    let begun = Instant::now();
    assert_eq!(batcher.call(21).await.unwrap(), 42);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn tasks_that_are_ready_together_share_the_first_batch() {
    let gate = Gate::open();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let tasks = (0..20).map(|item| {
        let batcher = batcher.clone();
        tokio::spawn(async move { batcher.call(item).await.unwrap() })
    });
    join_all(tasks).await;
    assert_eq!(gate.sizes(), [20]);
}

#[tokio::test]
async fn callers_gather_while_the_processor_is_busy_and_go_when_a_slot_is_free() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_in_flight(2).build(gate.doubling());
    let mut calls = Vec::new();
    for item in [1, 2] {
        calls.extend(enter(&batcher, [item]));
        settle().await;
    }
    for item in 3..8 {
        calls.extend(enter(&batcher, [item]));
        settle().await;
    }
    assert_eq!(gate.sizes(), [1, 1]);
    assert_eq!(batcher.stats().in_flight, 2);
    assert_eq!(batcher.stats().queued, 5);
    gate.let_through(1);
    settle().await;
    assert_eq!(gate.seen(), [vec![1], vec![2], vec![3, 4, 5, 6, 7]]);
    gate.let_through(2);
    join_all(calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn never_more_than_max_in_flight_batches_run() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (of_process, most_of_process) = (Arc::clone(&running), Arc::clone(&most));
    let batcher = Batcher::builder()
        .max_items(3)
        .max_in_flight(3)
        .build(move |items: Vec<u64>| {
            let (running, most) = (Arc::clone(&of_process), Arc::clone(&most_of_process));
            async move {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                for _ in 0..5 {
                    yield_now().await;
                }
                running.fetch_sub(1, SeqCst);
                Ok::<_, Infallible>(items)
            }
        });
    let tasks = (0..50).map(|task| {
        let batcher = batcher.clone();
        tokio::spawn(async move {
            for item in 0..20 {
                assert_eq!(
                    batcher.call(task * 100 + item).await.unwrap(),
                    task * 100 + item
                );
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(most.load(SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_one_in_flight_items_and_batches_run_in_arrival_order() {
    let gate = Gate::open();
    let batcher = Batcher::builder().max_items(7).build(gate.doubling());
    // Each task's own calls are in order, whatever the other does.
    let tasks = [0, 1_000_000].map(|base| {
        let batcher = batcher.clone();
        tokio::spawn(async move {
            for round in 0..20 {
                let items = base + round * 10..base + (round + 1) * 10;
                join_all(items.map(|item| batcher.call(item))).await;
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    let (low, high): (Vec<u64>, Vec<u64>) = gate
        .seen()
        .concat()
        .into_iter()
        .partition(|&item| item < 1_000_000);
    assert_eq!(low, (0..200).collect::<Vec<_>>());
    assert_eq!(high, (1_000_000..1_000_200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_runner_lets_other_tasks_run_between_batches() {
    let batcher = Batcher::builder()
        .max_items(1)
        .build(|items: Vec<u64>| async move { Ok::<_, Infallible>(items) });
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let spectator = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, SeqCst);
            // Not tokio's `yield_now`, which would wait for a look at I/O.
            let mut yielded = false;
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut yielded, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
    });
    let calls: Vec<_> = (0..100)
        .map(|item| batcher.try_call(item).unwrap())
        .collect();
    join_all(calls).await;
    spectator.abort();
    assert!(turns.load(SeqCst) >= 99, "{} turns", turns.load(SeqCst));
}

// Weight.

#[tokio::test]
async fn a_batch_ends_before_the_item_that_would_exceed_max_weight() {
    let gate = Gate::open();
    let batcher = Batcher::builder()
        .max_weight(6, |item: &u64| *item as usize)
        .build(gate.doubling());
    join_all([3, 3, 3, 4, 2, 1, 5, 6, 1].map(|item| batcher.call(item))).await;
    assert_eq!(
        gate.seen(),
        [
            vec![3, 3],
            vec![3],
            vec![4, 2],
            vec![1, 5],
            vec![6],
            vec![1]
        ]
    );
}

#[tokio::test]
async fn an_item_heavier_than_max_weight_goes_alone() {
    let gate = Gate::open();
    let batcher = Batcher::builder()
        .max_weight(6, |item: &u64| usize::try_from(*item).unwrap())
        .build(gate.doubling());
    let huge = u64::MAX / 2;
    let outcomes = join_all([7, 0, 1, huge, huge, 2].map(|item| batcher.call(item))).await;
    assert!(outcomes.into_iter().all(|outcome| outcome.is_ok()));
    assert_eq!(
        gate.seen(),
        [vec![7], vec![0, 1], vec![huge], vec![huge], vec![2]]
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_max_weight_does_not_wait_for_its_window() {
    let gate = Gate::open();
    let batcher = Batcher::builder()
        .max_weight(6, |item: &u64| *item as usize)
        .max_wait(ms(100))
        .build(gate.doubling());
    let begun = Instant::now();
    join_all([2, 4].map(|item| batcher.call(item))).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

// Windows.

#[tokio::test(start_paused = true)]
async fn a_window_counts_from_the_first_item_and_never_slides() {
    let gate = Gate::open();
    let batcher = Batcher::builder().max_wait(ms(100)).build(gate.doubling());
    let begun = Instant::now();
    let mut calls = enter(&batcher, [1]);
    for item in [2, 3] {
        sleep(ms(45)).await;
        calls.extend(enter(&batcher, [item]));
    }
    assert!(gate.seen().is_empty());
    join_all(calls).await;
    assert_eq!(gate.seen(), [vec![1, 2, 3]]);
    assert!(begun.elapsed() >= ms(100) && begun.elapsed() <= ms(102));
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait_for_its_window() {
    let batcher = Batcher::builder()
        .max_items(2)
        .max_wait(ms(100))
        .build(Gate::open().doubling());
    let begun = Instant::now();
    join_all((0..6).map(|item| batcher.call(item))).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_window_of_a_batch_already_sent_by_size_does_not_send_the_next_early() {
    let batcher = Batcher::builder()
        .max_items(2)
        .max_wait(ms(100))
        .build(Gate::open().doubling());
    let mut calls = enter(&batcher, [1]);
    sleep(ms(50)).await;
    calls.extend(enter(&batcher, [2]));
    join_all(calls).await;
    sleep(ms(10)).await;
    let begun = Instant::now();
    batcher.call(3).await.unwrap();
    assert!(begun.elapsed() >= ms(100) && begun.elapsed() <= ms(102));
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_full_line_waits_for_its_own_window() {
    let gate = Gate::open();
    let batcher = Batcher::builder()
        .max_items(2)
        .max_wait(ms(100))
        .build(gate.doubling());
    let begun = Instant::now();
    join_all((0..5).map(|item| batcher.call(item))).await;
    assert_eq!(gate.sizes(), [2, 2, 1]);
    assert!(begun.elapsed() >= ms(100) && begun.elapsed() <= ms(102));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_bring_its_own_shorter_window() {
    let gate = Gate::open();
    let batcher = Batcher::builder().max_wait(ms(100)).build(gate.doubling());
    let begun = Instant::now();
    let calls = enter(&batcher, [1, 2]);
    settle().await;
    let hasty = batcher.call_within(3, ms(30));
    assert_eq!(hasty.await.unwrap(), 6);
    assert!(begun.elapsed() >= ms(30) && begun.elapsed() <= ms(32));
    join_all(calls).await;
    assert_eq!(gate.seen(), [vec![1, 2, 3]]);
}

#[tokio::test(start_paused = true)]
async fn a_call_within_zero_goes_at_once_and_takes_its_batch_along() {
    let gate = Gate::open();
    let batcher = Batcher::builder().max_wait(ms(100)).build(gate.doubling());
    let begun = Instant::now();
    let calls = enter(&batcher, [1, 2]);
    settle().await;
    batcher.call_within(3, Duration::ZERO).await.unwrap();
    join_all(calls).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(gate.seen(), [vec![1, 2, 3]]);
}

#[tokio::test(start_paused = true)]
async fn a_longer_window_of_a_calls_own_has_no_effect() {
    let batcher = Batcher::builder()
        .max_wait(ms(10))
        .build(Gate::open().doubling());
    let begun = Instant::now();
    batcher.call_within(1, Duration::MAX).await.unwrap();
    assert!(begun.elapsed() <= ms(12));
    let batcher: Doubling = Batcher::new(Gate::open().doubling());
    let begun = Instant::now();
    batcher.call_within(1, ms(1000)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_window_of_a_cancelled_call_reaches_nobody_else() {
    let batcher = Batcher::builder()
        .max_wait(ms(100))
        .build(Gate::open().doubling());
    let begun = Instant::now();
    let first = enter(&batcher, [1]);
    sleep(ms(50)).await;
    let second = enter(&batcher, [2]);
    let mut hasty = batcher.call_within(3, ms(10));
    assert!(poll_once(&mut hasty).is_pending());
    settle().await;
    drop((first, hasty));
    join_all(second).await;
    assert!(begun.elapsed() >= ms(150) && begun.elapsed() <= ms(152));
}

#[tokio::test(start_paused = true)]
async fn a_window_ends_while_all_slots_are_busy_and_the_batch_goes_when_one_is_free() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_wait(ms(10)).build(gate.doubling());
    let mut calls = enter(&batcher, [1]);
    sleep(ms(20)).await;
    calls.extend(enter(&batcher, [2]));
    sleep(ms(500)).await;
    assert_eq!(gate.seen(), [[1]]);
    let begun = Instant::now();
    gate.let_through(2);
    join_all(calls).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_longest_window_is_no_overflow() {
    let batcher = Batcher::builder()
        .max_wait(Duration::MAX)
        .build(Gate::open().doubling());
    let calls = enter(&batcher, [1]);
    advance(Duration::from_secs(3600)).await;
    settle().await;
    assert_eq!(batcher.stats().queued, 1);
    batcher.drain().await;
    join_all(calls).await;
}

// Bounds.

#[tokio::test]
async fn over_max_queued_try_call_hands_the_item_back_and_call_waits_its_turn() {
    let gate = Gate::shut();
    let batcher = Batcher::builder()
        .max_items(2)
        .max_queued(3)
        .build(gate.doubling());
    let mut calls = enter(&batcher, [0]);
    settle().await;
    calls.extend((1..4).map(|item| batcher.try_call(item).unwrap()));
    let rejected = batcher.try_call(4).unwrap_err();
    assert!(matches!(rejected, Rejected::Overloaded(4)), "{rejected}");
    assert_eq!(rejected.into_item(), 4);

    calls.extend(enter(&batcher, [5, 6]));
    let stats = batcher.stats();
    assert_eq!((stats.queued, stats.waiting), (3, 2));
    gate.let_through(1);
    settle().await;
    // Three are left, and nobody overtakes a call that waits its turn.
    assert!(matches!(batcher.try_call(7), Err(Rejected::Overloaded(7))));
    gate.let_through(100);
    for (item, call) in [0, 1, 2, 3, 5, 6].into_iter().zip(calls) {
        assert_eq!(call.await.unwrap(), item * 2);
    }
    assert_eq!(gate.seen(), [vec![0], vec![1, 2], vec![3, 5], vec![6]]);
    assert!(batcher.try_call(7).is_ok());
}

#[tokio::test]
async fn a_cancelled_call_makes_room_in_the_queue() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_queued(1).build(gate.doubling());
    let _busy = enter(&batcher, [0]);
    settle().await;
    let queued = batcher.try_call(1).unwrap();
    assert!(batcher.try_call(2).is_err());
    drop(queued);
    assert!(batcher.try_call(2).is_ok());
}

#[test]
#[should_panic(expected = "max_items must be at least 1")]
fn max_items_zero_is_refused() {
    let _ = Batcher::<u64, u64>::builder().max_items(0);
}

#[test]
#[should_panic(expected = "max_in_flight must be at least 1")]
fn max_in_flight_zero_is_refused() {
    let _ = Batcher::<u64, u64>::builder().max_in_flight(0);
}

#[test]
#[should_panic(expected = "max_queued must be at least 1")]
fn max_queued_zero_is_refused() {
    let _ = Batcher::<u64, u64>::builder().max_queued(0);
}

// Exactly one outcome.

#[tokio::test]
async fn a_panic_is_an_error_of_its_batch_only() {
    let batcher = Batcher::builder().max_items(2).build(|items: Vec<u64>| {
        // Item 0 panics before there is a future, item 10 inside it.
        assert!(items[0] != 0, "no future for {}", items[0]);
        async move {
            yield_now().await;
            if items[0] == 10 {
                std::panic::panic_any("bad luck");
            }
            if items[0] == 20 {
                std::panic::panic_any(20_u8);
            }
            Ok::<_, Infallible>(items)
        }
    });
    let outcomes = join_all([0, 1, 2, 3, 10, 11, 20, 21, 4].map(|item| batcher.call(item))).await;
    let messages: Vec<_> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(item) => item.to_string(),
            Err(CallError::Panicked(message)) => message.to_string(),
            Err(other) => panic!("{other}"),
        })
        .collect();
    assert_eq!(
        messages,
        [
            "no future for 0",
            "no future for 0",
            "2",
            "3",
            "bad luck",
            "bad luck",
            "a panic without a message",
            "a panic without a message",
            "4"
        ]
    );
}

#[tokio::test]
async fn too_few_or_too_many_outcomes_are_an_error_for_every_caller_of_the_batch() {
    let batcher = Batcher::builder()
        .max_items(3)
        .build(|items: Vec<usize>| async move { Ok::<_, Infallible>(vec![7_u64; items[0]]) });
    for returned in [0, 1, 2, 4, 100] {
        for outcome in join_all((0..3).map(|_| batcher.call(returned))).await {
            match outcome {
                Err(CallError::WrongCount {
                    expected,
                    returned: counted,
                }) => {
                    assert_eq!((expected, counted), (3, returned));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(join_all((0..3).map(|_| batcher.call(3))).await.len(), 3);
}

struct NotClone(&'static str);

#[tokio::test]
async fn a_batch_wide_failure_is_shared_behind_one_arc() {
    let batcher: Batcher<u64, u64, NotClone> =
        Batcher::new(|_| async { Err(NotClone("disk full")) });
    let mut shared = Vec::new();
    for outcome in join_all((0..3).map(|item| batcher.call(item))).await {
        match outcome {
            Err(CallError::Failed(error)) => shared.push(error),
            _ => panic!("the batch failed"),
        }
    }
    assert_eq!(shared[0].0, "disk full");
    assert!(shared.iter().all(|error| Arc::ptr_eq(error, &shared[0])));
    drop(shared.split_off(1));
    assert_eq!(
        Arc::strong_count(&shared[0]),
        1,
        "kept by its callers alone"
    );
}

#[tokio::test]
async fn an_error_of_one_item_is_its_own() {
    let batcher = Batcher::new(|items: Vec<u64>| async move {
        let judge = |item| if item == 2 { Err("two") } else { Ok(item) };
        Ok::<_, Infallible>(items.into_iter().map(judge).collect())
    });
    let outcomes = join_all([1, 2, 3].map(|item| batcher.call(item))).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [Ok(1), Err("two"), Ok(3)]);
}

#[tokio::test]
async fn a_call_cancelled_after_the_dispatch_is_processed_and_its_outcome_dropped() {
    let gate = Gate::shut();
    let outcomes = Arc::new(());
    let (of_process, of_outcomes) = (gate.clone(), Arc::clone(&outcomes));
    let batcher = Batcher::new(move |items: Vec<u64>| {
        let doubled = of_process.doubling()(items);
        let outcomes = Arc::clone(&of_outcomes);
        async move {
            let doubled = doubled.await?;
            Ok::<_, Infallible>(
                doubled
                    .into_iter()
                    .map(|o| (o, Arc::clone(&outcomes)))
                    .collect(),
            )
        }
    });
    let mut calls: Vec<_> = (0..4)
        .map(|item| Some(batcher.try_call(item).unwrap()))
        .collect();
    settle().await;
    assert_eq!(gate.seen(), [[0, 1, 2, 3]]);
    // The first started the batch; its leaving harms nobody.
    calls[0] = None;
    calls[2] = None;
    gate.let_through(1);
    for (item, call) in calls.into_iter().enumerate() {
        if let Some(call) = call {
            assert_eq!(call.await.unwrap().0, item as u64 * 2);
        }
    }
    settle().await;
    // One here and one in the processor.
    assert_eq!(
        Arc::strong_count(&outcomes),
        2,
        "unwanted outcomes are dropped"
    );
    assert_eq!(batcher.stats().cancelled, 0);
}

#[tokio::test]
async fn an_outcome_whose_caller_leaves_without_looking_is_dropped() {
    let item = Arc::new(());
    let batcher = Batcher::new(|items: Vec<Arc<()>>| async move { Ok::<_, Infallible>(items) });
    let call = batcher.try_call(Arc::clone(&item)).unwrap();
    settle().await;
    assert_eq!(batcher.stats().batches, 1);
    assert_eq!(Arc::strong_count(&item), 2);
    drop(call);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[tokio::test]
async fn a_call_cancelled_before_the_dispatch_takes_its_item_out() {
    let gate = Gate::shut();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let mut calls = enter(&batcher, [0]);
    settle().await;
    calls.extend(enter(&batcher, [1, 2, 3]));
    drop(calls.remove(2));
    gate.let_through(10);
    join_all(calls).await;
    assert_eq!(gate.seen(), [vec![0], vec![1, 3]]);
}

#[tokio::test]
async fn when_every_call_of_a_batch_is_cancelled_no_batch_runs() {
    let gate = Gate::shut();
    let batcher: Doubling = Batcher::new(gate.doubling());
    drop(enter(&batcher, 0..5));
    settle().await;
    assert!(gate.seen().is_empty());
    let stats = batcher.stats();
    assert_eq!((stats.batches, stats.queued, stats.cancelled), (0, 0, 5));
}

#[tokio::test]
async fn neighbours_are_answered_when_the_task_that_started_the_batch_is_aborted() {
    let gate = Gate::shut();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let of_starter = batcher.clone();
    let starter = tokio::spawn(async move { of_starter.call(1).await });
    let of_neighbour = batcher.clone();
    let neighbour = tokio::spawn(async move { of_neighbour.call(2).await });
    settle().await;
    assert_eq!(gate.seen(), [[1, 2]]);
    starter.abort();
    assert!(starter.await.unwrap_err().is_cancelled());
    gate.let_through(1);
    assert_eq!(neighbour.await.unwrap().unwrap(), 4);
}

#[tokio::test]
async fn calls_end_also_when_every_handle_is_gone() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_items(2).build(gate.doubling());
    let calls = enter(&batcher, 0..5);
    let unpolled = batcher.call(5);
    drop(batcher);
    gate.let_through(10);
    for (item, outcome) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(outcome.unwrap(), item as u64 * 2);
    }
    assert_eq!(unpolled.await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_outlives_the_handles_and_the_calls() {
    let processor = Arc::new(());
    let of_process = Arc::clone(&processor);
    let batcher = Batcher::builder()
        .max_wait(Duration::from_secs(3600))
        .build(move |items: Vec<u64>| {
            let _kept = &of_process;
            async move { Ok::<_, Infallible>(items) }
        });
    let mut call = batcher.call(1);
    assert!(poll_once(&mut call).is_pending());
    settle().await;
    let begun = Instant::now();
    drop((call, batcher));
    settle().await;
    assert_eq!(
        Arc::strong_count(&processor),
        1,
        "no runner sleeps out a window for nobody"
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

// Drain.

#[tokio::test(start_paused = true)]
async fn drain_runs_what_is_queued_at_once_and_waits_and_later_calls_get_closed() {
    let gate = Gate::shut();
    let batcher = Batcher::builder()
        .max_items(2)
        .max_queued(4)
        .max_wait(Duration::from_secs(3600))
        .build(gate.doubling());
    // More than max_queued, so that drain also runs those which wait their turn.
    let calls = enter(&batcher, 0..7);
    let unpolled = batcher.call(9);
    settle().await;
    assert_eq!(gate.sizes(), [2]);
    let begun = Instant::now();
    let draining = batcher.clone();
    let draining = tokio::spawn(async move { draining.drain().await });
    let also_draining = batcher.clone();
    let also_draining = tokio::spawn(async move { also_draining.drain().await });
    settle().await;
    assert!(!draining.is_finished());

    assert!(matches!(unpolled.await, Err(CallError::Closed)));
    assert!(matches!(batcher.call(9).await, Err(CallError::Closed)));
    assert!(matches!(batcher.try_call(9), Err(Rejected::Closed(9))));

    gate.let_through(3);
    settle().await;
    assert!(!draining.is_finished() && !also_draining.is_finished());
    gate.let_through(1);
    draining.await.unwrap();
    also_draining.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    for (item, outcome) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(outcome.unwrap(), item as u64 * 2);
    }
    assert_eq!(gate.sizes(), [2, 2, 2, 1]);
    batcher.drain().await;
}

#[tokio::test(start_paused = true)]
async fn drain_wakes_a_gatherer_that_sleeps() {
    let batcher = Batcher::builder()
        .max_wait(Duration::from_secs(3600))
        .build(Gate::open().doubling());
    let calls = enter(&batcher, [1]);
    settle().await;
    let begun = Instant::now();
    batcher.drain().await;
    join_all(calls).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_cancelled_drain_leaves_the_batcher_closed_and_running_its_queue() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_items(1).build(gate.doubling());
    let calls = enter(&batcher, 0..3);
    {
        let mut drain = Box::pin(batcher.drain());
        assert!(poll_once(&mut drain).is_pending());
    }
    assert!(matches!(batcher.call(9).await, Err(CallError::Closed)));
    gate.let_through(3);
    assert!(
        join_all(calls)
            .await
            .into_iter()
            .all(|outcome| outcome.is_ok())
    );
    batcher.drain().await;
}

#[tokio::test]
async fn drain_ends_when_the_last_pending_call_is_cancelled() {
    let batcher = Batcher::builder()
        .max_wait(Duration::from_secs(3600))
        .build(Gate::open().doubling());
    let calls = enter(&batcher, [1]);
    let mut drain = Box::pin(batcher.drain());
    assert!(poll_once(&mut drain).is_pending());
    drop(calls);
    drain.await;
}

// Runtimes.

#[tokio::test]
async fn when_the_runtime_shuts_down_every_call_gets_stopped() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let gate = Gate::shut();
    let batcher = Batcher::builder()
        .max_items(2)
        .runtime(runtime.handle().clone())
        .build(gate.doubling());
    let calls = enter(&batcher, 0..5);
    while gate.seen().is_empty() {
        yield_now().await;
    }
    runtime.shutdown_background();
    for outcome in join_all(calls).await {
        assert!(matches!(outcome, Err(CallError::Stopped)));
    }
    assert!(matches!(batcher.call(9).await, Err(CallError::Stopped)));
    batcher.drain().await;
}

#[test]
fn without_a_runtime_a_call_gets_stopped_and_with_one_of_its_own_it_is_answered() {
    let batcher: Doubling = Batcher::new(Gate::open().doubling());
    let mut call = batcher.call(1);
    let mut polled = poll_once(&mut call);
    if polled.is_pending() {
        polled = poll_once(&mut call);
    }
    assert!(matches!(polled, Poll::Ready(Err(CallError::Stopped))));

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let batcher = Batcher::builder()
        .runtime(runtime.handle().clone())
        .build(Gate::open().doubling());
    let mut call = batcher.call(1);
    assert!(poll_once(&mut call).is_pending());
    assert_eq!(runtime.block_on(call).unwrap(), 2);
}

#[test]
fn a_batcher_outlives_the_runtime_it_was_first_used_in() {
    let batcher: Doubling = Batcher::new(Gate::open().doubling());
    for item in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(batcher.call(item)).unwrap(), item * 2);
    }
}

// The rest of the interface.

#[tokio::test]
async fn a_processor_may_call_its_own_batcher_when_more_than_one_batch_may_run() {
    let itself: Arc<std::sync::OnceLock<Doubling>> = Arc::default();
    let of_process = Arc::clone(&itself);
    let batcher = Batcher::builder()
        .max_in_flight(2)
        .build(move |items: Vec<u64>| {
            let itself = Arc::clone(&of_process);
            async move {
                if items[0] == 0 {
                    return Ok::<_, Infallible>(items);
                }
                let nested = itself
                    .get()
                    .unwrap()
                    .call(items[0] - items[0])
                    .await
                    .unwrap();
                Ok(items.into_iter().map(|item| item + nested).collect())
            }
        });
    itself.set(batcher.clone()).unwrap();
    assert_eq!(batcher.call(5).await.unwrap(), 5);
}

#[tokio::test]
async fn huge_and_empty_items_and_outcomes_work() {
    let huge = Batcher::new(|items: Vec<u8>| async move {
        Ok::<_, Infallible>(items.into_iter().map(|item| [item; 50_000]).collect())
    });
    for (item, outcome) in join_all((0..5).map(|item| huge.call(item)))
        .await
        .into_iter()
        .enumerate()
    {
        assert!(outcome.unwrap().iter().all(|&byte| byte == item as u8));
    }
    let empty = Batcher::new(|items: Vec<()>| async move { Ok::<_, Infallible>(items) });
    assert_eq!(
        join_all((0..500).map(|_| empty.call(())).collect::<Vec<_>>())
            .await
            .len(),
        500
    );
}

#[tokio::test]
#[should_panic(expected = "polled after it had ended")]
async fn a_call_polled_after_its_end_panics() {
    let batcher: Doubling = Batcher::new(Gate::open().doubling());
    let mut call = batcher.call(1);
    (&mut call).await.unwrap();
    let _ = poll_once(&mut call);
}

#[test]
fn errors_say_what_happened_and_name_their_source() {
    use std::error::Error;
    let failed = CallError::Failed(Arc::new(std::io::Error::other("disk full")));
    assert_eq!(failed.to_string(), "the batch failed: disk full");
    assert!(
        failed
            .source()
            .unwrap()
            .downcast_ref::<std::io::Error>()
            .is_some()
    );
    let wrong: CallError<Infallible> = CallError::WrongCount {
        expected: 3,
        returned: 2,
    };
    assert_eq!(
        wrong.to_string(),
        "the processor returned 2 outcomes for 3 items; it must return one an item"
    );
    assert!(wrong.source().is_none());
    assert_eq!(
        format!("{:?}", Rejected::Overloaded(NotClone("x"))),
        "Overloaded(..)"
    );
}

/// Handles, calls and errors go wherever tasks go.
#[test]
fn handles_and_calls_can_be_sent() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync + Clone + Unpin>() {}
    struct NotSync(std::cell::Cell<u8>);
    shareable::<Batcher<NotSync, NotSync>>();
    sendable::<Call<NotSync, NotSync, Infallible>>();
    shareable::<CallError<NotClone>>();
    let _ = NotSync(std::cell::Cell::new(0)).0.get();
}
