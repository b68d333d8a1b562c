//! Windows: an upper bound that was asked for, counted from the first item, on a stopped clock.

use super::*;

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
    let batcher = Batcher::builder().max_items(2).max_wait(ms(100)).build(gate.doubling());
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
async fn a_longer_window_of_a_calls_own_gathers_for_that_long() {
    let gate = Gate::open();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let begun = Instant::now();
    let mut patient = batcher.call_within(1, ms(50));
    assert!(poll_once(&mut patient).is_pending());
    sleep(ms(30)).await;
    let mut later = batcher.call_within(2, ms(50));
    assert!(poll_once(&mut later).is_pending());
    assert_eq!(patient.await.unwrap(), 2);
    assert!(begun.elapsed() >= ms(50) && begun.elapsed() <= ms(52));
    assert_eq!(later.await.unwrap(), 4);
    assert_eq!(gate.seen(), [vec![1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_neighbours_longer_window() {
    let gate = Gate::open();
    let batcher: Doubling = Batcher::new(gate.doubling());
    let begun = Instant::now();
    let mut patient = batcher.call_within(1, Duration::MAX);
    assert!(poll_once(&mut patient).is_pending());
    settle().await;
    assert_eq!(batcher.call(2).await.unwrap(), 4);
    assert_eq!(patient.await.unwrap(), 2);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(gate.seen(), [vec![1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn the_window_of_a_cancelled_call_reaches_nobody_else() {
    let batcher = Batcher::builder().max_wait(ms(100)).build(Gate::open().doubling());
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
