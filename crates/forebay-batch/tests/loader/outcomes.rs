//! Each caller its own outcome: values, missing keys, errors of a key; and the shapes that a fetch answers in.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error as _;

use super::*;

#[tokio::test]
async fn a_load_gives_the_value_and_none_for_a_missing_key() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let (two, missing) = tokio::join!(loader.load(2), loader.load(5000));
    assert_eq!(two.unwrap(), Some(4));
    assert_eq!(missing.unwrap(), None);
    assert_eq!(gate.seen(), [vec![2, 5000]]);
}

#[tokio::test]
async fn load_many_answers_in_the_order_asked_for_with_duplicates() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let outcomes = loader.load_many([5, 1, 5000, 5, 3]).await;
    let values: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, [Some(10), Some(2), None, Some(10), Some(6)]);
    assert_eq!(gate.seen(), [vec![5, 1, 5000, 3]]);
}

#[tokio::test]
async fn no_keys_no_fetch() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    assert!(loader.load_many([]).await.is_empty());
    assert!(loader.scope().load_many([]).await.is_empty());
    settle().await;
    assert_eq!(gate.seen(), Vec::<Vec<u64>>::new());
    assert_eq!(loader.stats().loads, 0);
}

#[tokio::test]
async fn a_load_does_nothing_before_it_is_polled_and_a_registered_one_does() {
    let gate = Gate::open();
    let loader = Loader::new(gate.doubling());
    let lazy = loader.load(1);
    let many = loader.load_many([2, 3]);
    settle().await;
    assert_eq!(gate.seen(), Vec::<Vec<u64>>::new());
    drop((lazy, many));

    let registered = loader.register(4);
    settle().await;
    assert_eq!(gate.seen(), [vec![4]]);
    // Awaited later, by a task that has nothing of the loader, and once every handle is gone.
    drop(loader);
    let value = tokio::spawn(registered).await.unwrap();
    assert_eq!(value.unwrap(), Some(8));
}

#[tokio::test]
async fn keys_are_fetched_in_the_order_of_their_arrival() {
    let gate = Gate::open();
    let loader = Loader::builder().max_items(3).build(gate.doubling());
    let keys = [9, 1, 8, 2, 7, 3];
    expect_doubled(register(&loader, keys), keys).await;
    assert_eq!(gate.seen(), [vec![9, 1, 8], vec![2, 7, 3]]);
}

/// Every shape, without annotations beyond the keys' type and, where a fetch cannot fail, its error.
#[tokio::test]
async fn a_fetch_answers_with_a_map_a_list_or_an_outcome_a_key() {
    let hash_map = Loader::new(|keys: Vec<u64>| async move {
        let even = keys.into_iter().filter(|key| key % 2 == 0);
        Ok::<_, Infallible>(even.map(|key| (key, key.to_string())).collect::<HashMap<_, _>>())
    });
    let tree_map = Loader::new(|keys: Vec<u64>| async move {
        let even = keys.into_iter().filter(|key| key % 2 == 0);
        Ok::<_, Infallible>(even.map(|key| (key, key.to_string())).collect::<BTreeMap<_, _>>())
    });
    let list = Loader::new(|keys: Vec<u64>| async move {
        let values = keys.into_iter().map(|key| (key % 2 == 0).then(|| key.to_string()));
        Ok::<_, Infallible>(values.collect::<Vec<_>>())
    });
    let expected = [Some("2".to_owned()), None, Some("4".to_owned()), None];
    for loader in [hash_map, tree_map, list] {
        let outcomes = loader.load_many([2, 1, 4, 3]).await;
        assert_eq!(outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(), expected);
        assert_eq!(loader.stats().fetches, 1);
    }

    // The error's type is told by the outcomes.
    let outcomes = Loader::new(|keys: Vec<u64>| async move {
        Ok(keys
            .into_iter()
            .map(|key| match key % 3 {
                0 => Ok(Some(key)),
                1 => Ok(None),
                _ => Err(std::io::Error::other(key.to_string())),
            })
            .collect::<Vec<_>>())
    });
    let answers = outcomes.load_many([3, 4, 5, 6]).await;
    assert_eq!(*answers[0].as_ref().unwrap(), Some(3));
    assert_eq!(*answers[1].as_ref().unwrap(), None);
    assert!(matches!(&answers[2], Err(LoadError::Key(error)) if error.to_string() == "5"));
    assert_eq!(*answers[3].as_ref().unwrap(), Some(6));
    assert_eq!(outcomes.stats().fetches, 1);
}

#[tokio::test]
async fn keys_never_asked_for_are_ignored_and_counted() {
    let loader = Loader::new(|keys: Vec<u64>| async move {
        let more = keys.iter().map(|key| key + 100);
        Ok::<_, Infallible>(
            more.chain(keys.clone())
                .map(|key| (key, key))
                .collect::<HashMap<_, _>>(),
        )
    });
    let outcomes = loader.load_many([1, 2, 3]).await;
    assert_eq!(
        outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
    assert_eq!(loader.stats().keys_ignored, 3);
    // They were not remembered either.
    assert_eq!(loader.load(101).await.unwrap(), Some(101));
    assert_eq!(loader.stats().keys_fetched, 4);
}

/// An error that is neither `Clone` nor `Debug`, and a value that is only `Clone`.
#[tokio::test]
async fn errors_need_not_be_clone_and_keep_their_source() {
    struct Bare;
    let loader: Loader<u64, (), Bare> =
        Loader::new(|keys: Vec<u64>| async move { Ok(keys.iter().map(|_| Err(Bare)).collect::<Vec<_>>()) });
    let (one, same) = tokio::join!(loader.load(1), loader.load(1));
    let (Err(LoadError::Key(one)), Err(LoadError::Key(same))) = (one, same) else {
        panic!("an error of the key");
    };
    assert!(Arc::ptr_eq(&one, &same));

    let error: LoadError<std::io::Error> = LoadError::Fetch(Arc::new(std::io::Error::other("no route")));
    assert_eq!(error.clone().source().unwrap().to_string(), "no route");
    assert_eq!(error.source_error().unwrap().to_string(), "no route");
    assert_eq!(error.to_string(), "the fetch failed: no route");
    assert!(LoadError::<std::io::Error>::Closed.source().is_none());
}

#[tokio::test]
async fn the_counters_say_what_was_saved() {
    let gate = Gate::shut();
    let loader = Loader::builder().max_items(2).build(gate.doubling());
    let loads = register(&loader, [1, 2, 3, 1, 1]);
    settle().await;
    let stats = loader.stats();
    assert_eq!((stats.loads, stats.joined), (5, 2));
    assert_eq!((stats.fetches, stats.in_flight, stats.keys_queued), (1, 1, 1));
    gate.let_through(2);
    expect_doubled(loads, [1, 2, 3, 1, 1]).await;
    settle().await;
    let stats = loader.stats();
    assert_eq!((stats.fetches, stats.keys_fetched, stats.keys_ignored), (2, 3, 0));
    assert_eq!((stats.in_flight, stats.keys_queued), (0, 0));
}
