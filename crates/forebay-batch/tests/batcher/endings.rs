//! Draining, and runtimes that end or were never there.

use super::*;

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
    assert!(join_all(calls).await.into_iter().all(|outcome| outcome.is_ok()));
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
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(batcher.call(item)).unwrap(), item * 2);
    }
}
