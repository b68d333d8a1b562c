//! Draining, limits, loaders and runtimes that end.

use super::*;

#[tokio::test(start_paused = true)]
async fn drain_ends_a_window_of_an_hour_and_later_loads_get_closed() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(2).max_wait(HOUR).build(gate.doubling());
    let loads = register(&loader, 0..5);
    let unpolled = loader.load(9);
    settle().await;
    let begun = tokio::time::Instant::now();
    let draining = loader.clone();
    let draining = tokio::spawn(async move { draining.drain().await });
    settle().await;
    assert!(!draining.is_finished());

    assert!(matches!(unpolled.await, Err(LoadError::Closed)));
    assert!(matches!(loader.register(9).await, Err(LoadError::Closed)));
    // Also a key that is on its way: later loads are later.
    assert!(matches!(loader.load(0).await, Err(LoadError::Closed)));
    assert!(matches!(loader.try_register(9), Err(Rejected::Closed(9))));
    assert!(matches!(loader.scope().load(9).await, Err(LoadError::Closed)));
    assert!(matches!(loader.load_many([9]).await[0], Err(LoadError::Closed)));

    gate.let_through(2);
    settle().await;
    assert!(!draining.is_finished());
    gate.let_through(1);
    draining.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    expect_doubled(loads, 0..5).await;
    assert_eq!(gate.sizes(), [2, 2, 1]);
    loader.drain().await;
}

#[tokio::test]
async fn a_cancelled_drain_leaves_the_loader_closed_and_running_its_line() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(1).build(gate.doubling());
    let loads = register(&loader, 0..3);
    {
        let mut drain = Box::pin(loader.drain());
        assert!(poll_once(&mut drain).is_pending());
    }
    assert!(matches!(loader.load(9).await, Err(LoadError::Closed)));
    gate.let_through(3);
    expect_doubled(loads, 0..3).await;
    loader.drain().await;
}

#[tokio::test]
async fn pending_loads_end_when_the_loader_is_dropped() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(2).build(gate.doubling());
    let loads = register(&loader, 0..5);
    settle().await;
    drop(loader);
    gate.let_through(3);
    expect_doubled(loads, 0..5).await;
    assert_eq!(Arc::strong_count(&gate.permits), 1, "the fetch function is gone too");
}

#[tokio::test]
async fn try_register_is_refused_when_the_line_is_full_unless_the_key_is_on_its_way() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_queued(2).max_items(1).build(gate.doubling());
    let mut loads = register(&loader, [0]);
    settle().await;
    loads.push(loader.try_register(1).unwrap());
    loads.push(loader.try_register(2).unwrap());
    assert!(matches!(loader.try_register(3), Err(Rejected::Overloaded(3))));
    // In flight, and in line.
    loads.push(loader.try_register(0).unwrap());
    loads.push(loader.try_register(2).unwrap());
    // Waits its turn, behind the full line; it is on its way then.
    loads.push(loader.register(3));
    loads.push(loader.try_register(3).unwrap());
    assert!(matches!(loader.try_register(4), Err(Rejected::Overloaded(4))));
    gate.let_through(4);
    expect_doubled(loads, [0, 1, 2, 0, 2, 3, 3]).await;
    assert_eq!(gate.seen(), [vec![0], vec![1], vec![2], vec![3]]);
    gate.let_through(1);
    assert_eq!(loader.try_register(4).unwrap().await.unwrap(), Some(8));
}

#[test]
fn limits_that_let_nothing_through_are_refused_where_they_are_set() {
    type Builder = forebay_batch::load::LoaderBuilder<u64, u64, String>;
    type Set = fn(Builder) -> Builder;
    let refused: [(&str, Set); 3] = [
        ("max_items", |builder| builder.max_items(0)),
        ("max_in_flight", |builder| builder.max_in_flight(0)),
        ("max_queued", |builder| builder.max_queued(0)),
    ];
    for (limit, set) in refused {
        let panic = std::panic::catch_unwind(|| set(Doubling::builder())).unwrap_err();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert!(message.starts_with(limit), "{message}");
    }
}

#[tokio::test]
async fn no_more_fetches_run_than_max_in_flight() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(1).max_in_flight(3).build(gate.doubling());
    let loads = register(&loader, 0..9);
    settle().await;
    assert_eq!(gate.sizes().len(), 3);
    assert_eq!(loader.stats().in_flight, 3);
    gate.let_through(1);
    settle().await;
    assert_eq!(gate.sizes().len(), 4);
    gate.let_through(8);
    expect_doubled(loads, 0..9).await;
}

/// Polled where no runtime is.
#[test]
fn without_a_runtime_a_load_is_stopped_and_its_key_can_be_loaded_again() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let outcome = poll_once(&mut loader.register(1));
    assert!(matches!(outcome, Poll::Ready(Err(LoadError::Stopped))), "{outcome:?}");
    let outcomes = futures_util::FutureExt::now_or_never(loader.load_many([1, 1, 2])).unwrap();
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Err(LoadError::Stopped)))
    );

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let value = runtime.block_on(async { loader.load(1).await });
    assert_eq!(value.unwrap(), Some(2));
}

#[test]
fn a_runtime_that_shuts_down_in_the_midst_stops_its_loads_and_another_goes_on() {
    let gate = Gate::shut();
    let loader = Loader::new(gate.doubling());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut running, mut in_line) = runtime.block_on(async {
        let running = register(&loader, [1, 2]);
        settle().await;
        (running, register(&loader, [2, 3]))
    });
    assert_eq!(gate.seen(), [vec![1, 2]]);
    drop(runtime);
    for load in running.iter_mut().chain(&mut in_line[..1]) {
        assert!(matches!(poll_once(load), Poll::Ready(Err(LoadError::Stopped))));
    }
    // In line, or stopped because there was no runtime to take it over.
    let third = poll_once(&mut in_line[1]);
    assert!(matches!(third, Poll::Ready(Err(LoadError::Stopped))), "{third:?}");

    gate.let_through(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let value = runtime.block_on(async { loader.load(2).await });
    assert_eq!(value.unwrap(), Some(4));
}

/// A loader with a runtime of its own serves callers that are polled by anything.
#[test]
fn a_loader_runs_in_the_runtime_it_was_given() {
    let gate = Gate::open();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let loader = Loader::builder()
        .runtime(runtime.handle().clone())
        .build(gate.doubling());
    let here = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(here.block_on(loader.load(4)).unwrap(), Some(8));
}
