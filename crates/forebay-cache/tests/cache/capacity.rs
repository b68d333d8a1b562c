//! The capacity is never exceeded: not in entries, not in weight, not for a moment, whoever writes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

const KEYS: u64 = 300;

/// Values are their own weight.
fn weighed(database: &Database, capacity: u64) -> Tested {
    lasting(database)
        .capacity(capacity)
        .weigher(|_, value| value.map_or(3, |value| *value as u32))
        .build()
}

/// Does one of all the things that write.
async fn write_something(cache: &Tested, random: &mut StdRng) {
    let key = random.random_range(0..KEYS);
    match random.random_range(0..12) {
        0..5 => drop(cache.insert(key, random.random_range(1..120))),
        5 => drop(cache.insert_missing(key)),
        6 => drop(cache.invalidate(&key)),
        7 => drop(cache.mark_stale(&key)),
        8 => drop(cache.refresh(&key).await),
        9 if random.random_ratio(1, 50) => drop(cache.clear()),
        _ => drop(cache.get(&key).await),
    }
}

/// What a reader finds, key by key, and what that weighs.
fn found(cache: &Tested) -> (u64, u64) {
    let found = (0..KEYS).filter_map(|key| cache.get_if_fresh(&key));
    found.fold((0, 0), |(entries, weight), entry| {
        (entries + 1, weight + entry.into_value().unwrap_or(3))
    })
}

#[tokio::test(start_paused = true)]
async fn weight_is_not_over_the_capacity_after_any_operation_and_is_what_the_entries_weigh() {
    let database = Database::open();
    (0..KEYS)
        .filter(|key| key % 3 > 0)
        .for_each(|key| database.set(key, 1 + key % 110));
    for capacity in [1, 100, 1_000, 20_000] {
        let cache = weighed(&database, capacity);
        let mut random = StdRng::seed_from_u64(capacity);
        for step in 0..1_500 {
            write_something(&cache, &mut random).await;
            settle_little().await;
            let stats = cache.stats();
            assert!(
                stats.weight <= capacity,
                "{} of {capacity} at step {step}",
                stats.weight
            );
            if step % 50 == 0 {
                // All are fresh, but for those that were marked.
                let (entries, weight) = found(&cache);
                assert!(entries <= stats.entries && weight <= stats.weight);
            }
        }
        assert_eq!(cache.stats().capacity, capacity);
        drop(cache.clear());
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.weight), (0, 0));
        for key in 0..KEYS {
            drop(cache.insert(key, 1 + key % 7));
        }
        let stats = cache.stats();
        assert_eq!(
            found(&cache),
            (stats.entries, stats.weight),
            "nothing is counted that is not there"
        );
    }
}

async fn settle_little() {
    for _ in 0..5 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn entries_are_not_over_the_capacity_after_any_operation_and_all_room_is_used() {
    let database = Database::open();
    let cache = lasting(&database).capacity(64).build();
    for key in 0..5_000 {
        cache.get(&key).await.unwrap();
        let stats = cache.stats();
        assert_eq!(stats.entries, (key + 1).min(64), "missing keys are entries too");
        assert_eq!(stats.evictions, (key + 1).saturating_sub(64));
    }
}

#[test]
fn the_capacity_holds_while_many_threads_write() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    let database = Database::open();
    (0..KEYS).for_each(|key| database.set(key, 1 + key % 110));
    for capacity in [100, 2_000] {
        let cache = weighed(&database, capacity);
        let writers: Vec<_> = (0..6)
            .map(|seed| {
                let cache = cache.clone();
                runtime.spawn(async move {
                    let mut random = StdRng::seed_from_u64(seed);
                    for _ in 0..2_000 {
                        write_something(&cache, &mut random).await;
                        let stats = cache.stats();
                        assert!(stats.weight <= capacity, "{} of {capacity}", stats.weight);
                    }
                })
            })
            .collect();
        for writer in writers {
            runtime.block_on(writer).unwrap();
        }
        drop(cache.clear());
        for key in 0..KEYS {
            drop(cache.insert(key, 1 + key % 7));
        }
        let stats = cache.stats();
        assert_eq!(found(&cache), (stats.entries, stats.weight));
    }
}

/// A value that is counted while it lives.
#[derive(Clone)]
struct Living(#[allow(dead_code, reason = "held for its count")] Arc<()>);

/// Weights are only as good as what is really dropped: values that were pushed out must go, at once or a few later.
#[tokio::test(start_paused = true)]
async fn values_that_were_pushed_out_are_dropped() {
    let alive = Arc::new(());
    let of_source = Arc::clone(&alive);
    let cache = Cache::builder(move |_: u64| {
        let value = Living(Arc::clone(&of_source));
        async move { Ok::<_, String>(Some(value)) }
    })
    .capacity(100)
    .build();
    for key in 0..10_000_u64 {
        cache.get(&key).await.unwrap();
        let living = Arc::strong_count(&alive) - 2;
        assert!(living <= 100 + 200, "{living} values live in a cache of 100");
    }
    for key in 0..10_000_u64 {
        drop(cache.insert(key % 50, Living(Arc::clone(&alive))));
    }
    drop(cache);
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 1, "a value is kept for ever");
}
