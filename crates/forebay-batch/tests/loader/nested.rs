//! Fetches that load: from another loader and from their own, at any depth, with one fetch in flight at a time.

use std::sync::OnceLock;

use forebay_batch::load::Scope;

use super::*;

/// A test that hangs is ended by the stopped clock: it runs when every task waits.
async fn within_a_minute<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("the loads hang")
}

type Depths = Loader<u64, u64, String>;

/// The depth of a key is the sum of the depth below it and one, and that of 0 is 0. Asked of the loader itself.
fn depths(max_in_flight: usize) -> Depths {
    depths_within(Loader::builder().max_in_flight(max_in_flight))
}

fn depths_within(limits: forebay_batch::load::LoaderBuilder<u64, u64, String>) -> Depths {
    let own: Arc<OnceLock<Depths>> = Arc::default();
    let inside = Arc::clone(&own);
    let loader = limits.build(move |keys: Vec<u64>| {
        let own = Arc::clone(&inside);
        async move {
            let own = own.get().unwrap();
            let below = own
                .load_many(keys.iter().filter(|key| **key > 0).map(|key| key - 1))
                .await;
            let mut below = below.into_iter();
            let mut depth = |key: u64| match key {
                0 => Ok(0),
                _ => match below.next().unwrap() {
                    Ok(below) => Ok(below.unwrap() + 1),
                    Err(error) => Err(error.to_string()),
                },
            };
            keys.iter()
                .map(|key| depth(*key).map(|depth| (*key, depth)))
                .collect::<Result<HashMap<_, _>, _>>()
        }
    });
    own.set(loader.clone()).unwrap();
    loader
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_another_loader() {
    let gate = Gate::open();
    let inner = Loader::new(gate.doubling());
    let outer = Loader::new(move |keys: Vec<u64>| {
        let inner = inner.clone();
        async move {
            let values = inner.load_many(keys).await;
            values.into_iter().collect::<Result<Vec<_>, _>>()
        }
    });
    let outcomes = within_a_minute(outer.load_many([1, 5000, 3])).await;
    assert_eq!(
        outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [Some(2), None, Some(6)]
    );
    assert_eq!(gate.seen(), [vec![1, 5000, 3]]);
}

async fn goes_so_deep(depth: u64, max_in_flight: usize) {
    let loader = depths(max_in_flight);
    let (one, same) = within_a_minute(async { tokio::join!(loader.load(depth), loader.load(depth)) }).await;
    assert_eq!(one.unwrap(), Some(depth));
    assert_eq!(same.unwrap(), Some(depth));
    // And is usable afterwards.
    assert_eq!(within_a_minute(loader.load(0)).await.unwrap(), Some(0));
    assert_eq!(loader.stats().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_its_own_loader_once() {
    goes_so_deep(1, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_its_own_loader_twice() {
    goes_so_deep(2, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_its_own_loader_five_deep() {
    goes_so_deep(5, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_its_own_loader_with_slots_to_spare() {
    goes_so_deep(5, 8).await;
}

/// Two loaders that ask each other, one fetch in flight each: the depth of a key is one more than that of the key below.
fn each_other() -> (Depths, Depths) {
    let (a, b): (Arc<OnceLock<Depths>>, Arc<OnceLock<Depths>>) = Default::default();
    let asks = |other: &Arc<OnceLock<Depths>>| {
        let other = Arc::clone(other);
        Loader::builder().max_in_flight(1).build(move |keys: Vec<u64>| {
            let other = Arc::clone(&other);
            async move {
                let mut depths = HashMap::new();
                for key in keys {
                    let below = match key {
                        0 => None,
                        _ => other
                            .get()
                            .unwrap()
                            .load(key - 1)
                            .await
                            .map_err(|error| error.to_string())?,
                    };
                    depths.insert(key, below.map_or(0, |below| below + 1));
                }
                Ok(depths)
            }
        })
    };
    let loaders = (asks(&b), asks(&a));
    a.set(loaders.0.clone()).unwrap();
    b.set(loaders.1.clone()).unwrap();
    loaders
}

#[tokio::test(start_paused = true)]
async fn a_fetch_may_load_from_a_loader_that_loads_from_it() {
    let (a, _) = each_other();
    for depth in [1, 2, 3, 6] {
        assert_eq!(within_a_minute(a.load(depth)).await.unwrap(), Some(depth));
    }
}

/// Each holds its only slot and wants the other's, and the keys that they want are in flight there.
#[tokio::test(start_paused = true)]
async fn loaders_that_load_from_each_other_do_not_wait_for_each_other_when_both_are_busy() {
    let (a, b) = each_other();
    let loads: Vec<_> = (0..20)
        .flat_map(|round| [a.register(round % 5), b.register(round % 7)])
        .collect();
    let outcomes = within_a_minute(join_all(loads)).await;
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let round = at as u64 / 2;
        let expected = if at % 2 == 0 { round % 5 } else { round % 7 };
        assert_eq!(outcome.unwrap(), Some(expected));
    }
}

/// What runs needs more loads to end, also when the loader is closing.
#[tokio::test(start_paused = true)]
async fn drain_lets_the_fetches_that_run_load_what_they_need() {
    let begun = tokio::time::Instant::now();
    // A window would make the drain wait for what it must not wait for.
    let loader = depths_within(Loader::builder().max_wait(HOUR));
    let load = loader.register(5);
    // Nothing of it has begun.
    within_a_minute(loader.drain()).await;
    assert_eq!(load.await.unwrap(), Some(5));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(matches!(loader.load(0).await, Err(LoadError::Closed)));
    // Nor is there a way in through another loader's fetch.
    let outer = Loader::new(move |keys: Vec<u64>| {
        let closed = loader.clone();
        async move {
            let outcome = closed.load(keys[0]).await;
            assert!(matches!(outcome, Err(LoadError::Closed)));
            Err::<HashMap<u64, u64>, _>("closed".to_owned())
        }
    });
    assert!(matches!(outer.load(1).await, Err(LoadError::Fetch(_))));
}

/// Strangers wait behind the nested loads, and are served too.
#[tokio::test(start_paused = true)]
async fn nested_loads_and_strangers_all_end() {
    let loader = depths(1);
    let strangers: Vec<_> = (0..20).map(|key| loader.register(key % 7)).collect();
    let outcomes = within_a_minute(join_all(strangers)).await;
    for (key, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.unwrap(), Some(key as u64 % 7));
    }
}

/// A key that needs itself: no hang, and no fetches without end.
#[tokio::test(start_paused = true)]
async fn a_fetch_that_asks_for_its_own_key_without_end_is_told_so() {
    let own: Arc<OnceLock<Depths>> = Arc::default();
    let inside = Arc::clone(&own);
    let loader = Loader::new(move |keys: Vec<u64>| {
        let own = Arc::clone(&inside);
        async move {
            match own.get().unwrap().load(keys[0]).await {
                Ok(value) => Ok(vec![value]),
                Err(LoadError::Fetch(cause)) => Err(cause.to_string()),
                Err(error) => Err(format!("{error:?}")),
            }
        }
    });
    own.set(loader.clone()).unwrap();
    for _ in 0..2 {
        let outcome = within_a_minute(loader.load(1)).await;
        assert!(
            matches!(&outcome, Err(LoadError::Fetch(cause)) if **cause == "TooDeep"),
            "{outcome:?}"
        );
    }
    assert!(loader.stats().fetches < 3000);
}

/// Somebody waits in line, by the same scope, for what the fetch before him asks for.
#[tokio::test(start_paused = true)]
async fn a_fetch_that_loads_by_a_scope_waits_for_nobody_who_waits_for_it() {
    let of_request: Arc<OnceLock<Scope<u64, u64, String>>> = Arc::default();
    let inside = Arc::clone(&of_request);
    let loader = Loader::builder().max_in_flight(1).build(move |keys: Vec<u64>| {
        let inside = Arc::clone(&inside);
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut values = HashMap::new();
            for key in keys {
                let next = if key == 1 {
                    inside.get().unwrap().load(2).await
                } else {
                    Ok(None)
                };
                values.insert(key, key + next.map_err(|error| error.to_string())?.unwrap_or(0));
            }
            Ok::<_, String>(values)
        }
    });
    let scope = of_request.get_or_init(|| loader.scope());
    let in_line = async {
        tokio::time::sleep(Duration::from_millis(3)).await;
        scope.load(2).await
    };
    let (one, two) = within_a_minute(async { tokio::join!(scope.load(1), in_line) }).await;
    assert_eq!((one.unwrap(), two.unwrap()), (Some(3), Some(2)));
    assert_eq!(scope.load(1).await.unwrap(), Some(3));
    assert_eq!(loader.stats().keys_fetched, 3, "what was loaded is remembered");
}
