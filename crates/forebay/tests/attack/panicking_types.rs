//! Keys and values whose own code panics, wherever the loader runs it.

use std::convert::Infallible;
use std::hash::{Hash, Hasher};

use forebay::load::{LoadError, Loader};
use futures_util::future::join_all;

use super::*;

const UNLUCKY: u64 = 13;

/// Keys that panic when two unlucky ones are compared.
#[derive(Clone, Debug)]
struct Incomparable(u64);

impl PartialEq for Incomparable {
    fn eq(&self, other: &Self) -> bool {
        assert!(self.0 != UNLUCKY || other.0 != UNLUCKY, "will not compare 13");
        self.0 == other.0
    }
}

impl Eq for Incomparable {}

impl Hash for Incomparable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_panic_when_compared_keep_nobody_waiting() {
    for max_wait in [Duration::ZERO, Duration::from_secs(1)] {
        let loader: Loader<Incomparable, u64> = Loader::builder()
            .max_wait(max_wait)
            .build(|keys: Vec<Incomparable>| async move { Ok(keys.iter().map(|key| Some(key.0)).collect::<Vec<_>>()) });
        for _ in 0..3 {
            let keys = [1, UNLUCKY, UNLUCKY, UNLUCKY, 2, 1];
            let outcomes = ends(loader.load_many(keys.map(Incomparable))).await;
            let values = outcomes.into_iter().map(|outcome| outcome.unwrap().unwrap());
            assert_eq!(values.collect::<Vec<_>>(), keys);
        }
        let refused = loader.try_register(Incomparable(UNLUCKY)).unwrap();
        let once_more = loader.try_register(Incomparable(UNLUCKY)).unwrap();
        assert_eq!(ends(refused).await.unwrap(), Some(UNLUCKY));
        assert_eq!(ends(once_more).await.unwrap(), Some(UNLUCKY));
        ends(loader.drain()).await;
        assert_eq!((loader.stats().keys_queued, loader.stats().in_flight), (0, 0));
    }
}

/// Keys of which some panic when they are cloned.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Unclonable(u64);

impl Clone for Unclonable {
    fn clone(&self) -> Self {
        assert!(self.0 != UNLUCKY, "will not clone 13");
        Self(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_panic_when_cloned_keep_nobody_waiting() {
    let loader: Loader<Unclonable, u64> = Loader::builder()
        .max_items(3)
        .build(|keys: Vec<Unclonable>| async move { Ok(keys.iter().map(|key| Some(key.0)).collect::<Vec<_>>()) });
    let loads: Vec<_> = [1, UNLUCKY, 2, 3, 4].map(|key| loader.register(Unclonable(key))).into();
    let outcomes = ends(join_all(loads)).await;
    for of_batch in &outcomes[..3] {
        assert!(matches!(of_batch, Err(LoadError::Panicked(message)) if **message == *"will not clone 13"));
    }
    assert_eq!(*outcomes[3].as_ref().unwrap(), Some(3));
    assert_eq!(*outcomes[4].as_ref().unwrap(), Some(4));
    assert_eq!(ends(loader.load(Unclonable(1))).await.unwrap(), Some(1));
    ends(loader.drain()).await;
    assert_eq!((loader.stats().keys_queued, loader.stats().in_flight), (0, 0));
}

/// Values of which some panic when they are cloned, as they are for each caller but the last.
#[derive(Debug, PartialEq)]
struct Unique(u64);

impl Clone for Unique {
    fn clone(&self) -> Self {
        assert!(self.0 != UNLUCKY, "will not clone the value 13");
        Self(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn values_that_panic_when_cloned_are_their_own_callers_error() {
    let gate = gate();
    let of_fetch = Arc::clone(&gate);
    let loader: Loader<u64, Unique> = Loader::builder().max_items(3).build(move |keys: Vec<u64>| {
        let gate = Arc::clone(&of_fetch);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(keys.into_iter().map(|key| Some(Unique(key))).collect::<Vec<_>>())
        }
    });
    // The last three are the batch that has begun by the time the first one's callers are told.
    let keys = [1, UNLUCKY, UNLUCKY, UNLUCKY, 2, 2, 4, 5, 6];
    let loads = keys.map(|key| loader.register(key));
    settle().await;
    gate.add_permits(10);
    let outcomes = ends(join_all(loads)).await;
    for (key, outcome) in keys.into_iter().zip(outcomes) {
        match outcome {
            Ok(value) => assert_eq!(value, Some(Unique(key))),
            Err(LoadError::Panicked(message)) => {
                assert_eq!((key, &*message), (UNLUCKY, "will not clone the value 13"));
            }
            Err(other) => panic!("key {key}: {other}"),
        }
    }
    assert_eq!(ends(loader.load(7)).await.unwrap(), Some(Unique(7)));
    ends(loader.drain()).await;
}
