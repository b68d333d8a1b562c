//! When batches go and what is in them: arrival order, sizes, weights, slots.

use super::*;

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
            // The call itself is what the task brings back, to be awaited here.
            #[allow(clippy::async_yields_async)]
            tokio::spawn(async move { batcher.try_call_owned(item).unwrap() })
        });
        let calls: Vec<_> = join_all(entering).await.into_iter().map(Result::unwrap).collect();
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

/// Also on a thread of the multi-threaded runtime, which runs a task that was just spawned before older ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tasks_that_are_ready_together_share_the_first_batch() {
    let gate = Gate::open();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let spawner = tokio::spawn(async move {
        for item in 0..20 {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.call(item).await.unwrap() });
        }
        batcher
    });
    let batcher = spawner.await.unwrap();
    while batcher.stats().calls < 20 {
        yield_now().await;
    }
    batcher.drain().await;
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
                assert_eq!(batcher.call(task * 100 + item).await.unwrap(), task * 100 + item);
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
    let (low, high): (Vec<u64>, Vec<u64>) = gate.seen().concat().into_iter().partition(|&item| item < 1_000_000);
    assert_eq!(low, (0..200).collect::<Vec<_>>());
    assert_eq!(high, (1_000_000..1_000_200).collect::<Vec<_>>());
}

/// How often another task of the thread has its turn while this many items go through, in batches of `max_items`.
async fn turns_of_a_spectator(items: u64, max_items: usize) -> usize {
    let batcher = Batcher::builder()
        .max_items(max_items)
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
    let calls: Vec<_> = (0..items).map(|item| batcher.try_call(item).unwrap()).collect();
    join_all(calls).await;
    spectator.abort();
    turns.load(SeqCst)
}

#[tokio::test]
async fn a_runner_lets_other_tasks_run_after_16_batches_or_1024_items() {
    let turns = turns_of_a_spectator(1600, 1).await;
    assert!(turns >= 100, "{turns} turns in 1600 batches");
    let turns = turns_of_a_spectator(51_200, 512).await;
    assert!(turns >= 50, "{turns} turns in 100 batches of 512 items");
}

#[tokio::test]
async fn a_batch_ends_before_the_item_that_would_exceed_max_weight() {
    let gate = Gate::open();
    let batcher = Batcher::builder()
        .max_weight(6, |item: &u64| *item as usize)
        .build(gate.doubling());
    join_all([3, 3, 3, 4, 2, 1, 5, 6, 1].map(|item| batcher.call(item))).await;
    assert_eq!(
        gate.seen(),
        [vec![3, 3], vec![3], vec![4, 2], vec![1, 5], vec![6], vec![1]]
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
    assert_eq!(gate.seen(), [vec![7], vec![0, 1], vec![huge], vec![huge], vec![2]]);
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
