//! Exactly one outcome a call, its own, whatever happens to the processor, the neighbours or the handles.

use super::*;

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
    let batcher: Batcher<u64, u64, NotClone> = Batcher::new(|_| async { Err(NotClone("disk full")) });
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
    assert_eq!(Arc::strong_count(&shared[0]), 1, "kept by its callers alone");
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
            Ok::<_, Infallible>(doubled.into_iter().map(|o| (o, Arc::clone(&outcomes))).collect())
        }
    });
    let mut calls: Vec<_> = (0..4).map(|item| Some(batcher.try_call(item).unwrap())).collect();
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
    assert_eq!(Arc::strong_count(&outcomes), 2, "unwanted outcomes are dropped");
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
    let unpolled = batcher.call_owned(5);
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
    let mut call = batcher.call_owned(1);
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

#[tokio::test]
async fn a_processor_may_call_its_own_batcher_when_more_than_one_batch_may_run() {
    let itself: Arc<std::sync::OnceLock<Doubling>> = Arc::default();
    let of_process = Arc::clone(&itself);
    let batcher = Batcher::builder().max_in_flight(2).build(move |items: Vec<u64>| {
        let itself = Arc::clone(&of_process);
        async move {
            if items[0] == 0 {
                return Ok::<_, Infallible>(items);
            }
            let nested = itself.get().unwrap().call(items[0] - items[0]).await.unwrap();
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
    assert!(failed.source().unwrap().downcast_ref::<std::io::Error>().is_some());
    let wrong: CallError<Infallible> = CallError::WrongCount {
        expected: 3,
        returned: 2,
    };
    assert_eq!(
        wrong.to_string(),
        "the processor returned 2 outcomes for 3 items; it must return one an item"
    );
    assert!(wrong.source().is_none());
    assert_eq!(format!("{:?}", Rejected::Overloaded(NotClone("x"))), "Overloaded");
}

/// Handles, calls and errors go wherever tasks go.
#[test]
fn handles_and_calls_can_be_sent() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync + Clone + Unpin>() {}
    struct NotSync(std::cell::Cell<u8>);
    shareable::<Batcher<NotSync, NotSync>>();
    sendable::<Call<'static, NotSync, NotSync, Infallible>>();
    shareable::<CallError<NotClone>>();
    let _ = NotSync(std::cell::Cell::new(0)).0.get();
}
