//! Hot keys: found by a sample, saved and loaded back; and warming by them.

use forebay_cache::{HotKeys, Warmed};

use super::*;

fn keys<K: Copy>(hot: &HotKeys<K>) -> Vec<K> {
    hot.keys.iter().map(|(key, _)| *key).collect()
}

#[tokio::test(start_paused = true)]
async fn the_keys_most_used_are_found_most_used_first() {
    let database = Database::open();
    let cache = lasting(&database).hot_keys(20, HOUR).build();
    // 1,000 keys used 20 times each, and three that are used much more.
    for round in 0..20_000_u64 {
        cache.get(&(1_000 + round % 1_000)).await.unwrap();
        cache.get(&1).await.unwrap();
        cache.get_if_fresh(&2);
        cache.get(&2).await.unwrap();
        if round % 2 == 0 {
            cache.lookup(&3).await.unwrap();
        }
        if round % 4 == 0 {
            cache.get_many([2, 2]).await;
        }
    }
    let hot = cache.hot_keys(3);
    let mut found = keys(&hot);
    assert_eq!(found[0], 2, "{hot:?}");
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3], "{hot:?}");
    // About as often as it was.
    let uses = hot.keys[0].1;
    assert!((25_000.0..80_000.0).contains(&uses), "{uses} instead of 50,000");
    assert!(hot.keys.windows(2).all(|pair| pair[0].1 >= pair[1].1));
    assert_eq!(cache.hot_keys(1_000).keys.len(), 20, "no more than are watched");
    assert!(cache.hot_keys(0).keys.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_and_not_there_is_used_as_well() {
    let database = Database::open();
    let cache = lasting(&database).hot_keys(20, HOUR).build();
    for _ in 0..5_000 {
        cache.invalidate(&1).await;
        cache.get(&1).await.unwrap();
        cache.invalidate(&2).await;
        cache.get_many([2]).await;
    }
    let mut found = keys(&cache.hot_keys(2));
    found.sort_unstable();
    assert_eq!(found, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn with_none_watched_there_are_no_hot_keys_and_warming_works() {
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).hot_keys(0, HOUR).build();
    for _ in 0..1_000 {
        cache.get(&1).await.unwrap();
    }
    assert!(cache.hot_keys(10).keys.is_empty());
    let warmed = cache.warm(HotKeys::from_iter([1, 2]), |_| {}).await;
    assert_eq!((warmed.done, warmed.present, warmed.missing), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn uses_of_long_ago_weigh_less() {
    let (database, ticks) = (Database::open(), Ticks::new());
    let cache = timed(&database, &ticks).hot_keys(10, ms(1_000)).build();
    cache
        .warm(
            HotKeys {
                keys: vec![(1, 1_000_000.0)],
            },
            |_| {},
        )
        .await;
    ticks.turn(20_000);
    cache
        .warm(
            HotKeys {
                keys: vec![(2, 1_000.0)],
            },
            |_| {},
        )
        .await;
    let hot = cache.hot_keys(2);
    assert_eq!(keys(&hot)[0], 2, "{hot:?}");
}

#[tokio::test(start_paused = true)]
async fn warming_fetches_what_is_not_there_gathered_and_tells_how_far_it_has_come() {
    let database = Database::open();
    (0..2_000).for_each(|key| database.set(key, key));
    let cache = Cache::builder(database.loader()).build();
    cache.get(&7).await.unwrap();
    let mut steps = Vec::new();
    let warmed = cache.warm((0..2_500).collect(), |step| steps.push(step)).await;
    assert_eq!(
        steps.iter().map(|step| step.done).collect::<Vec<_>>(),
        [1_000, 2_000, 2_500]
    );
    assert!(steps.iter().all(|step| step.keys == 2_500 && step.failed == 0));
    assert_eq!(steps.last(), Some(&warmed));
    assert_eq!((warmed.present, warmed.missing), (2_000, 500));
    let sizes: Vec<_> = database.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 999, 1_000, 500]);
    assert!((0..2_500).all(|key| cache.get_if_fresh(&key).is_some()));
}

#[tokio::test(start_paused = true)]
async fn over_a_source_that_does_not_gather_warming_asks_for_a_few_at_a_time() {
    let database = Database::shut();
    let cache = lasting(&database).build();
    let warming = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.warm((0..100).collect(), |_| {}).await })
    };
    settle().await;
    assert_eq!(database.fetches(), 16);
    database.let_through(100);
    assert_eq!(warming.await.unwrap().missing, 100);
    assert_eq!(database.most_running(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_to_warm_harms_no_other_and_is_counted() {
    let cache: Tested = Cache::builder(|key: u64| async move {
        match key % 4 {
            0 => Err("as asked".to_owned()),
            1 => Ok(None),
            _ => Ok(Some(key)),
        }
    })
    .build();
    let warmed = cache.warm((0..40).collect(), |_| {}).await;
    let Warmed {
        keys,
        done,
        present,
        missing,
        failed,
        ..
    } = warmed;
    assert_eq!((keys, done, present, missing, failed), (40, 40, 20, 10, 10));
    assert_eq!(cache.stats().entries, 30);
    let nothing = cache.warm(HotKeys::default(), |_| panic!("there is no step")).await;
    assert_eq!(nothing, Warmed::default());
}

#[tokio::test(start_paused = true)]
async fn a_warming_that_is_cancelled_keeps_what_it_has() {
    let database = Database::shut();
    let cache = lasting(&database).build();
    let warming = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.warm((0..100).collect(), |_| {}).await })
    };
    database.let_through(20);
    settle().await;
    warming.abort();
    settle().await;
    assert_eq!(cache.stats().entries, 20);
}

#[cfg(feature = "serde")]
#[tokio::test(start_paused = true)]
async fn hot_keys_are_saved_and_loaded_back() {
    let database = Database::open();
    let cache = lasting(&database).build();
    cache
        .warm(
            HotKeys {
                keys: vec![(3, 300.5), (1, 100.25), (2, 200.0)],
            },
            |_| {},
        )
        .await;
    let hot = cache.hot_keys(10);
    let saved = serde_json::to_string(&hot).unwrap();
    let loaded: HotKeys<u64> = serde_json::from_str(&saved).unwrap();
    // JSON's reader may be off by the last bit of a number.
    assert_eq!(loaded.keys.len(), hot.keys.len());
    for ((key, uses), (saved_key, saved_uses)) in loaded.keys.iter().zip(&hot.keys) {
        assert_eq!(key, saved_key);
        assert!((uses / saved_uses - 1.0).abs() < 1e-12, "{uses} {saved_uses}");
    }
    let next = lasting(&database).build();
    let warmed = next.warm(loaded, |_| {}).await;
    assert!(warmed.done >= 3);
    assert_eq!(keys(&next.hot_keys(3)), [3, 2, 1], "and goes on from their uses");
    // What somebody else wrote.
    let strange = r#"{"keys":[[1,0.0],[2,-5.0],[1,1e300],[1,1e308]]}"#;
    next.warm(serde_json::from_str(strange).unwrap(), |_| {}).await;
    assert!(next.hot_keys(10).keys.iter().all(|(_, uses)| !uses.is_nan()));
}
