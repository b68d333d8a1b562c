//! Fetches that misbehave: each is a clear outcome for its own batch, and the next works again.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;

/// Does to each fetch what the first of its keys says, and answers with the list of its keys.
fn mischievous(limits: forebay_batch::load::LoaderBuilder<u64, u64, String>) -> Loader<u64, u64, String> {
    limits.build(|keys: Vec<u64>| {
        assert!(keys[0] != 901, "before its first await");
        async move {
            match keys[0] {
                900 => return Err("the source is down".to_owned()),
                902 => {
                    yield_now().await;
                    panic!("in the midst of {}", keys.len());
                }
                903 => std::future::pending().await,
                904 => return Ok(keys[1..].iter().copied().map(Some).collect()),
                905 => return Ok(keys.iter().chain(&keys).copied().map(Some).collect()),
                906 => std::panic::panic_any(keys),
                _ => {}
            }
            Ok(keys.into_iter().map(Some).collect::<Vec<_>>())
        }
    })
}

/// The outcome that both callers of a batch of two have, while a batch before and one after are well.
async fn outcome_of(fault: u64) -> LoadError<String> {
    let loader = mischievous(Loader::builder().max_items(2).fetch_timeout(Duration::from_secs(2)));
    let loads: Vec<_> = [1, 2, fault, 3, 4, 5].map(|key| loader.register(key)).into();
    let duplicate = loader.register(3);
    // The stopped clock ends a hang.
    let mut outcomes = tokio::time::timeout(HOUR, join_all(loads)).await.expect("all end");
    for (at, value) in [(0, 1), (1, 2), (4, 4), (5, 5)] {
        assert_eq!(*outcomes[at].as_ref().unwrap(), Some(value));
    }
    let neighbour = outcomes.remove(3).unwrap_err();
    assert_eq!(
        format!("{neighbour:?}"),
        format!("{:?}", outcomes[2].as_ref().unwrap_err())
    );
    assert_eq!(format!("{neighbour:?}"), format!("{:?}", duplicate.await.unwrap_err()));
    // Later loads of the same keys work again.
    assert_eq!(loader.load(3).await.unwrap(), Some(3));
    assert_eq!(loader.stats().in_flight, 0);
    neighbour
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_fails_is_its_own_batchs_error() {
    let error = outcome_of(900).await;
    assert!(
        matches!(&error, LoadError::Fetch(cause) if **cause == "the source is down"),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_panics_is_its_own_batchs_error() {
    let error = outcome_of(901).await;
    assert!(
        matches!(&error, LoadError::Panicked(message) if message.contains("before its first await")),
        "{error:?}"
    );
    let error = outcome_of(902).await;
    assert!(
        matches!(&error, LoadError::Panicked(message) if **message == *"in the midst of 2"),
        "{error:?}"
    );
    let error = outcome_of(906).await;
    assert!(
        matches!(&error, LoadError::Panicked(message) if **message == *"a panic without a message"),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_hangs_is_dropped_when_its_time_is_over() {
    let begun = tokio::time::Instant::now();
    let error = outcome_of(903).await;
    assert!(
        matches!(error, LoadError::TimedOut(limit) if limit == Duration::from_secs(2)),
        "{error:?}"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_the_wrong_length_is_nobodys_answer() {
    let error = outcome_of(904).await;
    assert!(
        matches!(
            error,
            LoadError::WrongCount {
                expected: 2,
                returned: 1
            }
        ),
        "{error:?}"
    );
    let error = outcome_of(905).await;
    assert!(
        matches!(
            error,
            LoadError::WrongCount {
                expected: 2,
                returned: 4
            }
        ),
        "{error:?}"
    );
}

/// The same in the form with an outcome a key.
#[tokio::test]
async fn outcomes_of_the_wrong_length_are_nobodys_answer() {
    let loader: Loader<u64, u64, String> =
        Loader::new(|keys: Vec<u64>| async move { Ok(keys[1..].iter().map(|key| Ok(Some(*key))).collect::<Vec<_>>()) });
    for outcome in loader.load_many([1, 2, 3]).await {
        assert!(matches!(
            outcome,
            Err(LoadError::WrongCount {
                expected: 3,
                returned: 2
            })
        ));
    }
}

#[tokio::test]
async fn an_error_of_one_key_is_that_keys_alone() {
    let loader = Loader::new(|keys: Vec<u64>| async move {
        let outcome = |key| if key == 2 { Err("two".to_owned()) } else { Ok(Some(key)) };
        Ok(keys.into_iter().map(outcome).collect::<Vec<_>>())
    });
    let outcomes = loader.load_many([1, 2, 3, 2]).await;
    assert_eq!(*outcomes[0].as_ref().unwrap(), Some(1));
    assert_eq!(*outcomes[2].as_ref().unwrap(), Some(3));
    for of_two in [1, 3] {
        assert!(matches!(&outcomes[of_two], Err(LoadError::Key(error)) if **error == "two"));
    }
    assert_eq!(loader.stats().fetches, 1);
}

/// A key whose equality panics while the answer is sorted, and a fetch timeout where the runtime has no clock.
#[test]
fn panics_of_the_users_types_are_outcomes_too() {
    #[derive(Clone, PartialEq, Hash)]
    struct Touchy(u64);
    impl Eq for Touchy {}
    struct Answers(Vec<Touchy>);
    impl forebay_batch::load::Answer<Touchy, Infallible> for Answers {
        type Value = u64;
        fn into_outcomes<'k>(
            self,
            keys: impl ExactSizeIterator<Item = &'k Touchy>,
        ) -> forebay_batch::load::Outcomes<u64, Infallible> {
            assert!(self.0.len() != 2, "two are too many to sort");
            forebay_batch::load::Outcomes {
                of_keys: keys.map(|key| Ok(Some(key.0))).collect(),
                ignored: 0,
            }
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let loader = Loader::new(|keys: Vec<Touchy>| async move { Ok(Answers(keys)) });
        for outcome in loader.load_many([Touchy(1), Touchy(2)]).await {
            assert!(matches!(outcome, Err(LoadError::Panicked(message)) if *message == *"two are too many to sort"));
        }
        assert_eq!(loader.load(Touchy(1)).await.unwrap(), Some(1));

        let clockless = Loader::builder()
            .fetch_timeout(ms(1))
            .build(|keys: Vec<u64>| async move { Ok::<_, Infallible>(keys.into_iter().map(Some).collect::<Vec<_>>()) });
        assert!(matches!(clockless.load(1).await, Err(LoadError::Panicked(_))));
    });
}

/// Every key and value is counted: after everything that can happen to them none is left.
#[tokio::test(start_paused = true)]
async fn nothing_leaks() {
    #[derive(Clone)]
    struct Counted(u64, #[allow(dead_code, reason = "held for its count")] Arc<()>);
    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Counted {}
    impl std::hash::Hash for Counted {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    let alive = Arc::new(());
    let of_values = Arc::clone(&alive);
    let gate = Arc::new(Semaphore::new(0));
    let of_fetch = Arc::clone(&gate);
    let loader = Loader::builder()
        .max_items(3)
        .fetch_timeout(Duration::from_secs(1))
        .build(move |keys: Vec<Counted>| {
            let (gate, alive) = (Arc::clone(&of_fetch), Arc::clone(&of_values));
            async move {
                gate.acquire().await.unwrap().forget();
                let value = |key: &Counted| Some(Counted(key.0, Arc::clone(&alive)));
                match keys[0].0 {
                    9 => Err("as asked".to_owned()),
                    18 => panic!("as asked"),
                    30 => std::future::pending().await,
                    39 => Ok(keys.iter().skip(1).map(value).collect()),
                    _ => Ok(keys.iter().map(value).collect::<Vec<_>>()),
                }
            }
        });
    let key = |number| Counted(number, Arc::clone(&alive));
    let scope = loader.scope();
    scope.prime(key(7), key(7));
    let mut loads: Vec<_> = (0..60)
        .chain(0..60)
        .map(|number| loader.register(key(number)))
        .collect();
    let never_polled = loader.load(key(1));
    let cancelled_in_line = loads.split_off(115);
    settle().await;
    let cancelled_in_flight = loads.swap_remove(0);
    drop((never_polled, cancelled_in_line, cancelled_in_flight));
    gate.add_permits(100);
    let outcomes = join_all(loads).await;
    assert!(outcomes.iter().filter(|outcome| outcome.is_err()).count() > 10);
    drop(outcomes);
    assert_eq!(scope.load(key(8)).await.unwrap().unwrap().0, 8);
    // One that nobody looks at.
    let unseen = loader.register(key(1));
    loader.drain().await;
    settle().await;
    drop((unseen, scope));
    // Without handles and loads the loader is gone, and with it everything it had.
    drop(loader);
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 1, "a key, a value or the fetch is kept");
}

/// A value whose clones fail to be made.
#[derive(Debug)]
struct Unclonable;

impl Clone for Unclonable {
    fn clone(&self) -> Self {
        panic!("no clone of this");
    }
}

#[tokio::test]
async fn a_value_that_panics_when_cloned_is_a_panic_of_those_loads_alone() {
    let loader = Loader::new(|keys: Vec<u64>| async move {
        Ok::<_, Infallible>(keys.iter().map(|_| Some(Unclonable)).collect::<Vec<_>>())
    });
    let shared: Vec<_> = (0..3).map(|_| loader.register(1)).collect();
    let own = loader.register(2);
    let mut ends: Vec<_> = join_all(shared).await.into_iter().map(|end| end.is_ok()).collect();
    ends.sort_unstable();
    assert_eq!(ends, [false, false, true], "one has the value itself");
    assert!(own.await.unwrap().is_some());
    assert!(loader.load(1).await.unwrap().is_some(), "later loads work");
}

/// A key that cannot be compared with itself.
#[derive(Clone, Debug)]
struct Incomparable(u64);

impl std::hash::Hash for Incomparable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Incomparable {
    fn eq(&self, other: &Self) -> bool {
        assert!(self.0 != other.0 || self.0 != 13, "13 is not to be compared");
        self.0 == other.0
    }
}

impl Eq for Incomparable {}

#[tokio::test]
async fn a_key_that_panics_when_compared_leaves_nobody_waiting() {
    let loader = Loader::new(|keys: Vec<Incomparable>| async move {
        Ok::<_, Infallible>(keys.iter().map(|key| Some(key.0)).collect::<Vec<_>>())
    });
    let loads: Vec<_> = [1, 13, 2, 13, 3].map(|key| loader.register(Incomparable(key))).into();
    for (key, end) in [1, 13, 2, 13, 3].into_iter().zip(join_all(loads).await) {
        assert!(
            end.is_err() || end.unwrap() == Some(key),
            "a value of its own, or an error"
        );
    }
    assert_eq!(loader.load(Incomparable(4)).await.unwrap(), Some(4), "later loads work");
}

/// What a panic carries: its drop panics, too.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "dropped");
    }
}

/// Its first clones panic with a grenade; compared with another 13, a 13 does so always.
#[derive(Debug)]
struct Fragile {
    number: u64,
    clones_that_panic: Arc<AtomicUsize>,
}

impl Fragile {
    fn new(number: u64, clones_that_panic: usize) -> Self {
        Self {
            number,
            clones_that_panic: Arc::new(AtomicUsize::new(clones_that_panic)),
        }
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        let one_less = |left: usize| left.checked_sub(1);
        if self.clones_that_panic.fetch_update(SeqCst, SeqCst, one_less).is_ok() {
            std::panic::panic_any(Grenade);
        }
        Self::new(self.number, 0)
    }
}

impl std::hash::Hash for Fragile {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        if self.number == 13 && other.number == 13 {
            std::panic::panic_any(Grenade);
        }
        self.number == other.number
    }
}

impl Eq for Fragile {}

#[tokio::test(start_paused = true)]
async fn what_a_clone_of_a_value_panics_with_harms_nobody() {
    let loader = Loader::new(|keys: Vec<u64>| async move {
        Ok::<_, Infallible>(keys.iter().map(|key| Some(Fragile::new(*key, 2))).collect::<Vec<_>>())
    });
    let shared: Vec<_> = (0..4).map(|_| loader.register(1)).collect();
    let own = loader.register(2);
    let (whole, panicked): (Vec<_>, Vec<_>) = join_all(shared).await.into_iter().partition(Result::is_ok);
    assert_eq!(whole.len(), 2, "two of the clones could not be made");
    for end in panicked {
        assert!(matches!(end, Err(LoadError::Panicked(message)) if *message == *"a panic without a message"));
    }
    assert_eq!(own.await.unwrap().unwrap().number, 2);
    assert!(loader.load(1).await.unwrap().is_some(), "later loads work");
}

#[tokio::test(start_paused = true)]
async fn what_a_key_panics_with_harms_nobody() {
    for (number, clones_that_panic) in [(7, 1), (13, 0)] {
        let loader = Loader::new(|keys: Vec<Fragile>| async move {
            Ok::<_, Infallible>(keys.iter().map(|key| Some(key.number)).collect::<Vec<_>>())
        });
        let others = [1, 2].map(|number| loader.register(Fragile::new(number, 0)));
        let own = loader.register(Fragile::new(number, clones_that_panic));
        let again = loader.try_register(Fragile::new(number, 0)).map_err(drop).unwrap();
        let loads = join_all(others.into_iter().chain([own, again]));
        // The stopped clock ends a hang.
        let ends = tokio::time::timeout(HOUR, loads).await.expect("all end");
        for (number, end) in [1, 2, number, number].into_iter().zip(ends) {
            assert_eq!(end.unwrap(), Some(number));
        }
        assert_eq!(
            loader.load(Fragile::new(3, 0)).await.unwrap(),
            Some(3),
            "later loads work"
        );
    }
}
