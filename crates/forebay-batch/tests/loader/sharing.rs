//! Who shares a fetch with whom, and how many fetches there are.

use super::*;

#[tokio::test]
async fn equal_keys_in_a_batch_are_fetched_once() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let keys = [1, 2, 1, 1, 2];
    expect_doubled(register(&loader, keys), keys).await;
    assert_eq!(gate.seen(), [vec![1, 2]]);
}

#[tokio::test]
async fn the_same_key_ten_thousand_times_is_one_fetch() {
    let gate = Gate::open();
    let loader = Loader::builder().max_items(2).max_queued(1).build(gate.doubling());
    let keys = std::iter::repeat_n(7, 10_000);
    expect_doubled(register(&loader, keys.clone()), keys).await;
    assert_eq!(gate.seen(), [vec![7]]);
    assert_eq!(loader.stats().joined, 9_999);
}

#[tokio::test]
async fn duplicates_do_not_count_toward_max_items() {
    let gate = Gate::open();
    let loader = Loader::builder().max_items(3).max_wait(HOUR).build(gate.doubling());
    let loads = register(&loader, [1, 1, 1, 2, 2]);
    settle().await;
    assert_eq!(
        gate.seen(),
        Vec::<Vec<u64>>::new(),
        "two keys do not fill a fetch of three"
    );
    let third = register(&loader, [3]);
    expect_doubled(loads, [1, 1, 1, 2, 2]).await;
    expect_doubled(third, [3]).await;
    assert_eq!(gate.seen(), [vec![1, 2, 3]]);
}

#[tokio::test]
async fn a_key_in_flight_is_joined_and_not_fetched_again() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_in_flight(4).build(gate.doubling());
    let first = register(&loader, [1, 2]);
    settle().await;
    let later = register(&loader, [2, 3]);
    settle().await;
    assert_eq!(gate.seen(), [vec![1, 2], vec![3]]);
    gate.let_through(2);
    expect_doubled(first, [1, 2]).await;
    expect_doubled(later, [2, 3]).await;
    assert_eq!(gate.seen().len(), 2);
}

#[tokio::test]
async fn nothing_is_remembered() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    for round in 1..=3 {
        assert_eq!(loader.load(1).await.unwrap(), Some(2));
        assert_eq!(loader.load(5000).await.unwrap(), None);
        assert_eq!(gate.seen().len(), 2 * round);
    }
}

/// A caller that was just told loads again: it must not be told the same again.
#[tokio::test]
async fn once_answered_the_next_load_fetches_again_however_soon() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let again = loader.clone();
    let task = tokio::spawn(async move {
        assert_eq!(again.load(1).await.unwrap(), Some(2));
        again.load(1).await.unwrap()
    });
    let slow = loader.register(1);
    settle().await;
    gate.let_through(1);
    settle().await;
    // `slow` has not looked at its outcome yet.
    assert_eq!(gate.seen(), [vec![1], vec![1]]);
    gate.let_through(1);
    assert_eq!(task.await.unwrap(), Some(2));
    assert_eq!(slow.await.unwrap(), Some(2));
}

#[tokio::test]
async fn after_invalidate_a_load_waits_for_a_fetch_that_begins_later() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_in_flight(2).build(gate.doubling());
    let before = loader.register(1);
    settle().await;
    loader.invalidate(&1);
    loader.invalidate(&9);
    let after = register(&loader, [1, 1]);
    settle().await;
    assert_eq!(gate.seen(), [vec![1], vec![1]]);
    // One in line has not begun, so it is fresh enough.
    let queued = loader.register(2);
    loader.invalidate(&2);
    let joined = loader.register(2);
    gate.let_through(3);
    assert_eq!(before.await.unwrap(), Some(2));
    expect_doubled(after, [1, 1]).await;
    expect_doubled(vec![queued, joined], [2, 2]).await;
    assert_eq!(gate.seen(), [vec![1], vec![1], vec![2]]);
}

/// The end of the flight that was left behind takes nothing off the board that is not its own.
#[tokio::test]
async fn an_invalidated_flight_that_ends_leaves_the_later_one_joinable() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_in_flight(2).build(gate.doubling());
    let before = loader.register(1);
    settle().await;
    loader.invalidate(&1);
    let after = loader.register(1);
    settle().await;
    gate.let_through(1);
    assert_eq!(before.await.unwrap(), Some(2));
    let joins = loader.register(1);
    gate.let_through(1);
    expect_doubled(vec![after, joins], [1, 1]).await;
    assert_eq!(gate.seen().len(), 2);
}

#[tokio::test]
async fn n_keys_registered_together_make_exactly_n_divided_by_max_items_fetches() {
    for (keys, max_items, fetches) in [(1, 1, 1), (100, 100, 1), (101, 100, 2), (1000, 50, 20), (7, 3, 3)] {
        for max_in_flight in [1, 4] {
            let gate = Gate::open();
            let loader = Loader::builder()
                .max_items(max_items)
                .max_in_flight(max_in_flight)
                .build(gate.doubling());
            // Each twice: duplicates change nothing.
            let loads = register(&loader, (0..keys).chain(0..keys));
            expect_doubled(loads, (0..keys).chain(0..keys)).await;
            assert_eq!(gate.sizes().len(), fetches, "{keys} keys, {max_items} a fetch");
        }
    }
}

/// Callers on several threads, each a task of its own, together in line because a window holds a fetch until it is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_hundred_tasks_make_one_fetch_and_a_thousand_make_twenty_or_ten_on_every_run() {
    for run in 0..100 {
        for (tasks, max_items, fetches) in [(100, 100, 1), (1000, 50, 20), (1000, 100, 10)] {
            let gate = Gate::open();
            let loader = Loader::builder()
                .max_items(max_items)
                .max_wait(HOUR)
                .max_in_flight(1 + run % 3)
                .build(gate.doubling());
            let tasks: Vec<_> = (0..tasks)
                .map(|key| {
                    let loader = loader.clone();
                    tokio::spawn(async move { (key, loader.load(key).await) })
                })
                .collect();
            for task in tasks {
                let (key, value) = task.await.unwrap();
                assert_eq!(value.unwrap(), Some(key * 2));
            }
            assert_eq!(gate.sizes(), vec![max_items; fetches], "run {run}");
        }
    }
}

/// As above without a window: all are in line before the one fetch that runs lets them go.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn loads_registered_on_all_threads_behind_a_busy_source_leave_in_full_fetches() {
    for run in 0..100 {
        let gate = Gate::shut();
        let loader = Loader::builder().max_items(50).build(gate.doubling());
        let busy = loader.register(999);
        while gate.seen().is_empty() {
            yield_now().await;
        }
        let tasks: Vec<_> = (0..10)
            .map(|task| {
                let loader = loader.clone();
                // Overlapping ranges: every key is wanted by two tasks.
                tokio::spawn(async move { register(&loader, (0..20).map(|key| (task * 10 + key) % 100)) })
            })
            .collect();
        let mut registered = Vec::new();
        for task in tasks {
            registered.push(task.await.unwrap());
        }
        gate.let_through(3);
        assert_eq!(busy.await.unwrap(), Some(1998));
        for (task, loads) in registered.into_iter().enumerate() {
            expect_doubled(loads, (0..20).map(|key| (task as u64 * 10 + key) % 100)).await;
        }
        assert_eq!(gate.sizes(), [1, 50, 50], "run {run}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_counts_from_the_first_key_and_ends_early_when_a_fetch_is_full() {
    let gate = Gate::open();
    let loader = Loader::builder().max_items(3).max_wait(ms(10)).build(gate.doubling());
    let begun = tokio::time::Instant::now();
    let first = register(&loader, [1]);
    tokio::time::advance(ms(6)).await;
    let second = register(&loader, [2]);
    expect_doubled(first, [1]).await;
    assert_eq!(begun.elapsed(), ms(10));
    expect_doubled(second, [2]).await;
    expect_doubled(register(&loader, [3, 4, 5]), [3, 4, 5]).await;
    assert_eq!(begun.elapsed(), ms(10));
    assert_eq!(gate.seen(), [vec![1, 2], vec![3, 4, 5]]);
}
