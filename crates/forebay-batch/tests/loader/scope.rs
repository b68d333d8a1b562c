//! A scope: what one request remembers.

use super::*;

#[tokio::test]
async fn a_scope_remembers_values_and_what_is_missing() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    for _ in 0..3 {
        assert_eq!(scope.load(1).await.unwrap(), Some(2));
        assert_eq!(scope.clone().load(5000).await.unwrap(), None);
    }
    assert_eq!(gate.seen(), [vec![1], vec![5000]]);
    // Another request knows nothing of it, nor does the loader.
    assert_eq!(loader.scope().load(1).await.unwrap(), Some(2));
    assert_eq!(loader.load(1).await.unwrap(), Some(2));
    assert_eq!(gate.seen().len(), 4);
}

#[tokio::test]
async fn errors_are_not_remembered() {
    let failures = Arc::new(std::sync::atomic::AtomicUsize::new(2));
    let loader = Loader::new(move |keys: Vec<u64>| {
        let left = Arc::clone(&failures);
        async move {
            match left.load(std::sync::atomic::Ordering::SeqCst) {
                0 => Ok(keys.into_iter().map(|key| Ok(Some(key))).collect::<Vec<_>>()),
                left_now => {
                    left.store(left_now - 1, std::sync::atomic::Ordering::SeqCst);
                    if left_now == 2 {
                        Err("the fetch".to_owned())
                    } else {
                        Ok(keys.into_iter().map(|_| Err("the key".to_owned())).collect())
                    }
                }
            }
        }
    });
    let scope = loader.scope();
    assert!(matches!(scope.load(1).await, Err(LoadError::Fetch(_))));
    assert!(matches!(scope.load(1).await, Err(LoadError::Key(_))));
    assert_eq!(scope.load(1).await.unwrap(), Some(1));
    assert_eq!(scope.load(1).await.unwrap(), Some(1));
    assert_eq!(loader.stats().fetches, 3);
}

#[tokio::test]
async fn concurrent_loads_of_a_key_in_a_scope_share_and_load_many_keeps_its_order() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    let (outcomes, one) = tokio::join!(scope.load_many([3, 1, 3, 5000, 2]), scope.load(1));
    let values: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, [Some(6), Some(2), Some(6), None, Some(4)]);
    assert_eq!(one.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![3, 1, 5000, 2]]);
    // Some remembered, some not.
    let outcomes = scope.load_many([1, 7, 5000, 3]).await;
    let values: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, [Some(2), Some(14), None, Some(6)]);
    assert_eq!(gate.seen()[1], [7]);
    // More than a handful.
    let outcomes = scope.load_many((0..500).chain(0..500)).await;
    assert!(
        outcomes
            .into_iter()
            .zip((0..500).chain(0..500))
            .all(|(value, key)| value.unwrap() == Some(key * 2))
    );
    assert_eq!(gate.seen().len(), 3);
}

/// The flight is over, and who asked first has not looked yet: whoever asks now shares it all the same.
#[tokio::test]
async fn a_load_that_has_ended_unseen_is_shared_too() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    let mut first = Box::pin(scope.load(1));
    assert!(poll_once(&mut first).is_pending());
    settle().await;
    assert_eq!(loader.stats().in_flight, 0);
    assert_eq!(scope.load(1).await.unwrap(), Some(2));
    assert_eq!(first.await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![1]]);
}

#[tokio::test]
async fn prime_and_clear() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    scope.prime(1, 100);
    assert_eq!(scope.load(1).await.unwrap(), Some(100));
    scope.prime(1, 101);
    assert_eq!(scope.load(1).await.unwrap(), Some(101));
    assert_eq!(gate.seen(), Vec::<Vec<u64>>::new());
    scope.clear(&1);
    assert_eq!(scope.load(1).await.unwrap(), Some(2));
    scope.prime(2, 200);
    scope.clear_all();
    let values = scope.load_many([1, 2]).await;
    assert_eq!(
        values.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [Some(2), Some(4)]
    );
    assert_eq!(gate.seen(), [vec![1], vec![1, 2]]);
}

#[tokio::test]
async fn what_was_primed_is_not_replaced_by_a_load_that_began_before() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    let mut before = Box::pin(scope.load(1));
    assert!(poll_once(&mut before).is_pending());
    settle().await;
    scope.prime(1, 100);
    gate.let_through(1);
    assert_eq!(before.await.unwrap(), Some(2), "what it asked for");
    assert_eq!(scope.load(1).await.unwrap(), Some(100));
}

/// The source changes in the midst of a fetch: what that fetch brings is neither remembered nor given to later loads.
#[tokio::test]
async fn after_clear_nothing_old_comes_back() {
    for all in [false, true] {
        let source = Arc::new(Mutex::new("old"));
        let permits = Arc::new(Semaphore::new(0));
        let (of_fetch, gate) = (Arc::clone(&source), Arc::clone(&permits));
        let loader: Loader<u64, &str, String> = Loader::builder().max_in_flight(2).build(move |keys: Vec<u64>| {
            let (source, gate) = (Arc::clone(&of_fetch), Arc::clone(&gate));
            async move {
                let read = *source.lock();
                gate.acquire().await.unwrap().forget();
                Ok(keys.into_iter().map(|_| Some(read)).collect::<Vec<_>>())
            }
        });
        let scope = loader.scope();
        let mut before = Box::pin(scope.load(1));
        assert!(poll_once(&mut before).is_pending());
        settle().await;
        *source.lock() = "new";
        if all {
            scope.clear_all();
        } else {
            scope.clear(&1);
        }
        let mut after = Box::pin(scope.load(1));
        assert!(poll_once(&mut after).is_pending());
        settle().await;
        permits.add_permits(1);
        assert_eq!(before.await.unwrap(), Some("old"));
        permits.add_permits(2);
        assert_eq!(after.await.unwrap(), Some("new"));
        assert_eq!(scope.load(1).await.unwrap(), Some("new"));
    }
}

/// Also what this scope has never asked for, or has had no room for.
#[tokio::test]
async fn after_clear_all_nobodys_older_fetch_is_joined() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_in_flight(2).build(gate.doubling());
    let scope = loader.scope();
    let elsewhere = loader.register(1);
    settle().await;
    scope.clear_all();
    let mut after = Box::pin(scope.load(1));
    assert!(poll_once(&mut after).is_pending());
    settle().await;
    assert_eq!(gate.seen(), [vec![1], vec![1]]);
    gate.let_through(2);
    assert_eq!((elsewhere.await.unwrap(), after.await.unwrap()), (Some(2), Some(2)));
}

#[tokio::test]
async fn a_cancelled_load_of_a_scope_is_cancelled_and_can_be_asked_for_again() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let scope = loader.scope();
    let busy = loader.register(0);
    settle().await;
    let mut leaves = Box::pin(scope.load(1));
    assert!(poll_once(&mut leaves).is_pending());
    assert_eq!(loader.stats().keys_queued, 1);
    drop(leaves);
    assert_eq!(loader.stats().keys_queued, 0);
    gate.let_through(2);
    assert_eq!(busy.await.unwrap(), Some(0));
    assert_eq!(scope.load(1).await.unwrap(), Some(2));
    assert_eq!(gate.seen(), [vec![0], vec![1]]);
}

#[tokio::test]
async fn a_scope_remembers_so_many_and_loads_the_rest_each_time() {
    let gate = Gate::open();
    let loader = Loader::builder().max_remembered(2).build(gate.doubling());
    let scope = loader.scope();
    for _ in 0..2 {
        for key in 1..=3 {
            assert_eq!(scope.load(key).await.unwrap(), Some(key * 2));
        }
    }
    assert_eq!(gate.seen(), [vec![1], vec![2], vec![3], vec![3]]);
    scope.prime(3, 33);
    assert_eq!(
        scope.load(3).await.unwrap(),
        Some(6),
        "no room: asked for, and never wrong"
    );
    scope.prime(2, 22);
    assert_eq!(scope.load(2).await.unwrap(), Some(22));
    scope.clear(&1);
    scope.prime(3, 33);
    assert_eq!(scope.load(3).await.unwrap(), Some(33));
}

#[tokio::test]
async fn a_cancelled_load_takes_no_room_in_a_scope() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_remembered(2).build(gate.doubling());
    let scope = loader.scope();
    for key in 0..10 {
        let (mut leaves, mut leaves_last) = (Box::pin(scope.load(key)), Box::pin(scope.load(key)));
        assert!(poll_once(&mut leaves).is_pending());
        assert!(poll_once(&mut leaves_last).is_pending());
        drop(leaves);
        drop(leaves_last);
    }
    gate.let_through(10);
    for _ in 0..2 {
        assert_eq!(scope.load(20).await.unwrap(), Some(40));
        assert_eq!(scope.load(21).await.unwrap(), Some(42));
    }
    let fetched: Vec<u64> = gate.seen().concat();
    assert_eq!(fetched, [20, 21], "remembered");
}
