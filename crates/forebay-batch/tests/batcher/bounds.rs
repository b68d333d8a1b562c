//! The bounds of queue and limits, and what is over them.

use super::*;

#[tokio::test]
async fn over_max_queued_try_call_hands_the_item_back_and_call_waits_its_turn() {
    let gate = Gate::shut();
    let batcher = Batcher::builder().max_items(2).max_queued(3).build(gate.doubling());
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
