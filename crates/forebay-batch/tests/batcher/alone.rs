//! Calls that come alone, one after the other: nobody is waited for, and those that are pending together still are one batch.

use super::*;

/// So many batches of one call that a call is expected to come alone.
const LONELY: u64 = 20;

/// Whether the batch of so many calls begins before another task of the thread has its turn.
async fn begins_before_others(batcher: &Batcher<u64, u64>, begun: &Arc<AtomicUsize>, calls: u64) -> bool {
    let before = begun.load(SeqCst);
    let calls: Vec<_> = (0..calls)
        .map(|item| {
            let mut call = batcher.call_owned(item);
            assert!(poll_once(&mut call).is_pending());
            call
        })
        .collect();
    let seen = Arc::clone(begun);
    let other = tokio::spawn(async move { seen.load(SeqCst) > before });
    for (item, outcome) in (0..).zip(join_all(calls).await) {
        assert_eq!(outcome.unwrap(), item);
    }
    other.await.unwrap()
}

/// A batcher, and how many batches have begun.
fn counted() -> (Batcher<u64, u64>, Arc<AtomicUsize>) {
    let begun = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&begun);
    let batcher = Batcher::new(move |items: Vec<u64>| {
        counts.fetch_add(1, SeqCst);
        async move { Ok::<_, Infallible>(items) }
    });
    (batcher, begun)
}

#[tokio::test]
async fn after_many_that_came_alone_the_next_is_not_kept_for_others() {
    let (batcher, begun) = counted();
    for _ in 0..2 {
        let is_at_once = begins_before_others(&batcher, &begun, 1).await;
        assert!(!is_at_once, "others may be about to call");
        for _ in 0..LONELY {
            batcher.call(0).await.unwrap();
        }
        assert!(begins_before_others(&batcher, &begun, 1).await, "nobody is");
        // Company, and more of it is expected, now and the next time.
        assert!(!begins_before_others(&batcher, &begun, 2).await);
    }
}

#[tokio::test]
async fn those_pending_together_are_one_batch_also_after_many_that_came_alone() {
    let (batcher, begun) = counted();
    for _ in 0..10 {
        for _ in 0..LONELY {
            batcher.call(0).await.unwrap();
        }
        let before = begun.load(SeqCst);
        join_all((0..100).map(|item| batcher.call(item))).await;
        assert_eq!(begun.load(SeqCst), before + 1);
    }
}

/// A batcher whose calls have come one by one for long.
async fn lonely(gate: &Gate) -> Doubling {
    let batcher = Batcher::new(gate.doubling());
    for _ in 0..LONELY {
        batcher.call(0).await.unwrap();
    }
    batcher
}

#[tokio::test]
async fn leave_to_be_alone_is_for_whom_nobody_joins() {
    let gate = Gate::open();
    let fresh: Doubling = Batcher::new(gate.doubling());
    assert!(fresh.alone().is_none(), "others may be about to call");
    fresh.call(1).await.unwrap();

    let batcher = lonely(&gate).await;
    let before = batcher.stats();
    let alone = batcher.alone().unwrap();
    assert!(batcher.alone().is_none(), "one at a time");
    assert_eq!(batcher.stats().in_flight, 1);
    alone.processed();
    let after = batcher.stats();
    assert_eq!((after.calls, after.batches), (before.calls + 1, before.batches + 1));
    drop(batcher.alone().unwrap());
    assert_eq!(batcher.stats(), after, "nothing was processed");

    let in_line = batcher.try_call(1).unwrap();
    assert!(batcher.alone().is_none(), "another one waits");
    in_line.await.unwrap();
    batcher.drain().await;
    assert!(batcher.alone().is_none());
}

#[tokio::test]
async fn nobody_is_alone_while_a_batch_runs() {
    let gate = Gate::open();
    let batcher = lonely(&gate).await;
    gate.permits.forget_permits(usize::MAX);
    let running = tokio::spawn(batcher.call_owned(1));
    while batcher.stats().in_flight == 0 {
        yield_now().await;
    }
    assert!(batcher.alone().is_none());
    gate.let_through(1);
    running.await.unwrap().unwrap();
    assert!(batcher.alone().is_some());
}

#[tokio::test]
async fn what_arrives_while_one_is_alone_waits_for_its_end() {
    let gate = Gate::open();
    let batcher = lonely(&gate).await;
    for _ in 0..3 {
        let batches = gate.seen().len();
        let alone = batcher.alone().unwrap();
        let mut calls: Vec<_> = (1..=3).map(|item| batcher.call_owned(item)).collect();
        for call in &mut calls {
            assert!(poll_once(call).is_pending());
        }
        for _ in 0..10 {
            yield_now().await;
        }
        assert_eq!(gate.seen().len(), batches, "the one that is alone has not ended");
        alone.processed();
        for (item, outcome) in (1..).zip(join_all(calls).await) {
            assert_eq!(outcome.unwrap(), item * 2);
        }
        assert_eq!(gate.seen()[batches..], [[1, 2, 3]]);
        for _ in 0..LONELY {
            batcher.call(0).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_drain_waits_for_the_one_that_is_alone() {
    let gate = Gate::open();
    let batcher = lonely(&gate).await;
    let alone = batcher.alone().unwrap();
    let mut drain = Box::pin(batcher.drain());
    assert!(poll_once(&mut drain).is_pending());
    alone.processed();
    drain.await;
}
