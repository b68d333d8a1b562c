//! Async closures are taken like functions that return a future. The language has no word yet for "and what it borrows from the closure
//! may be sent": one that uses what it has captured clones it first, or is written `move |…| { let x = x.clone(); async move { … } }`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use forebay::batch::Batcher;
use forebay::cache::Cache;
use forebay::load::Loader;

#[tokio::test]
async fn a_loader_a_batcher_and_a_cache_take_async_closures() {
    let loader = Loader::new(async |keys: Vec<u32>| {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(keys.into_iter().map(|key| (key, key + 1)).collect::<HashMap<_, _>>())
    });
    assert_eq!(loader.load(1).await.unwrap(), Some(2));

    let batcher = Batcher::new(async |items: Vec<u32>| Ok::<_, Infallible>(items));
    assert_eq!(batcher.call(5).await.unwrap(), 5);

    let cache = Cache::new(async |key: u32| Ok::<_, Infallible>(Some(key * 2)));
    assert_eq!(cache.get(&4).await.unwrap(), Some(8));
}

/// What a captured value wants.
#[tokio::test]
async fn what_is_captured_is_cloned_for_each_call() {
    let words = Arc::new(["zero", "one"]);
    let loader = Loader::new(move |keys: Vec<usize>| {
        let words = Arc::clone(&words);
        async move { Ok::<_, Infallible>(keys.into_iter().map(|key| words.get(key).copied()).collect::<Vec<_>>()) }
    });
    assert_eq!(loader.load(1).await.unwrap(), Some("one"));
}
