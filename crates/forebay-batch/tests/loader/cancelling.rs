//! Callers that leave: before the dispatch, after it, and with others in the same flight.

use super::*;

/// Counts how often it wakes.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_key_that_only_cancelled_callers_wanted_is_not_fetched() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(2).build(gate.doubling());
    let busy = register(&loader, [0]);
    settle().await;
    let (one, once_more, two, three) = (
        loader.register(1),
        loader.register(1),
        loader.register(2),
        loader.register(3),
    );
    drop((one, once_more));
    assert_eq!(loader.stats().keys_queued, 2, "both of its callers are gone");
    gate.let_through(2);
    expect_doubled(busy, [0]).await;
    expect_doubled(vec![two, three], [2, 3]).await;
    // It left no hole in the fetch.
    assert_eq!(gate.seen(), [vec![0], vec![2, 3]]);
}

#[tokio::test]
async fn a_key_in_line_is_fetched_for_who_is_left() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let busy = register(&loader, [0]);
    settle().await;
    let first = loader.register(1);
    let second = loader.register(1);
    drop(first);
    gate.let_through(2);
    expect_doubled(busy, [0]).await;
    assert_eq!(second.await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![0], vec![1]]);
}

#[tokio::test]
async fn a_key_whose_callers_left_the_line_can_be_wanted_again() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let busy = register(&loader, [0]);
    settle().await;
    for _ in 0..100 {
        drop(loader.register(1));
    }
    let stays = loader.register(1);
    assert_eq!(loader.stats().keys_queued, 1);
    gate.let_through(2);
    expect_doubled(busy, [0]).await;
    assert_eq!(stays.await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![0], vec![1]]);
}

#[tokio::test]
async fn a_flight_is_joined_also_when_its_first_caller_was_cancelled() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_in_flight(2).build(gate.doubling());
    let first = loader.register(1);
    settle().await;
    drop(first);
    let second = loader.register(1);
    settle().await;
    gate.let_through(1);
    assert_eq!(second.await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![1]]);
}

#[tokio::test]
async fn a_flight_that_all_have_left_ends_and_harms_nobody() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let gone = register(&loader, [1, 2]);
    settle().await;
    drop(gone);
    let next = loader.register(3);
    gate.let_through(2);
    assert_eq!(next.await.unwrap(), Some(6));
    assert_eq!(loader.load_many([]).await.len(), 0);
    assert_eq!(gate.seen(), [vec![1, 2], vec![3]]);
}

/// The task that started the fetch is aborted; its neighbours are not.
#[tokio::test]
async fn the_first_callers_end_is_nobody_elses() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let of_first = loader.clone();
    let first = tokio::spawn(async move { of_first.load_many([1, 2, 3]).await.len() });
    settle().await;
    let second = register(&loader, [2, 3]);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gate.let_through(1);
    expect_doubled(second, [2, 3]).await;
    assert_eq!(gate.seen(), [vec![1, 2, 3]]);
}

#[tokio::test]
async fn spurious_polls_with_other_wakers_lose_no_wake_up_and_keep_none() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let mut load = loader.register(1);
    let mut gives_up = loader.register(1);
    let wakers = [0; 4].map(|_| Arc::new(Woken::default()));
    for waker in &wakers[..3] {
        for _ in 0..3 {
            let waker = Waker::from(Arc::clone(waker));
            assert!(Pin::new(&mut load).poll(&mut Context::from_waker(&waker)).is_pending());
        }
    }
    let of_other = Waker::from(Arc::clone(&wakers[3]));
    assert!(
        Pin::new(&mut gives_up)
            .poll(&mut Context::from_waker(&of_other))
            .is_pending()
    );
    drop((of_other, gives_up));
    gate.let_through(1);
    settle().await;
    let woken = wakers
        .each_ref()
        .map(|waker| waker.0.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(woken, [0, 0, 1, 0]);
    for waker in wakers {
        assert_eq!(Arc::strong_count(&waker), 1, "no waker is kept");
    }
    assert_eq!(load.await.unwrap(), Some(2));
}

#[tokio::test]
async fn wakers_of_callers_that_left_are_given_up_while_the_flight_goes_on() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut stays = loader.register(1);
    let poll =
        |load: &mut Load<'_, u64, u64, String>| Pin::new(load).poll(&mut Context::from_waker(&waker)).is_pending();
    assert!(poll(&mut stays));
    for _ in 0..100 {
        let mut leaves = loader.register(1);
        assert!(poll(&mut leaves));
        settle().await;
    }
    // The test's two, and the one of the load that stays.
    assert_eq!(Arc::strong_count(&woken), 3);
    gate.let_through(1);
    settle().await;
    assert_eq!(woken.0.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(stays.await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![1]]);
}
