//! Capacity, weights and memory.

use super::super::{Inserted, Store};
use super::{Census, Schedule};

#[test]
fn capacity_zero_keeps_nothing() {
    let store = Store::new(0);
    assert_eq!(store.put(1, 0, ()), Inserted::default());
    assert_eq!((store.len(), store.has(1)), (0, false));
    store.validate();
}

#[test]
fn capacity_one_keeps_the_last() {
    let store = Store::new(1);
    for key in 0..100 {
        let done = store.put(key, 1, key);
        assert_eq!((done.admitted, done.evicted), (true, u64::from(key > 0)));
        assert_eq!(store.copied(key), Some(key));
        assert_eq!((store.len(), store.weight()), (1, 1));
        store.validate();
    }
}

#[test]
fn capacity_two_keeps_two() {
    let store = Store::new(2);
    for key in 0..100_u64 {
        store.put(key, 1, key);
        assert_eq!(store.len(), 2.min(key + 1));
        assert_eq!(store.copied(key), Some(key), "what was inserted is there");
        store.validate();
    }
}

#[test]
fn too_heavy_is_not_admitted_and_takes_the_old_entry_along() {
    let store = Store::new(10);
    store.put(1, 4, "old");
    store.put(2, 4, "other");
    let done = store.put(1, 11, "too heavy");
    assert_eq!(
        done,
        Inserted {
            replaced: true,
            settles: true,
            ..Inserted::default()
        }
    );
    assert_eq!((store.has(1), store.copied(2)), (false, Some("other")));
    assert_eq!(store.weight(), 4);
    store.validate();
}

#[test]
fn as_heavy_as_the_capacity_pushes_out_all_others_of_all_shards() {
    let store = Store::with(400, 4, 1);
    for key in 0..400 {
        store.put(key, 1, key);
    }
    assert_eq!(store.len(), 400);
    let done = store.put(1_000, 400, 0);
    assert_eq!((done.admitted, done.evicted, done.evicted_weight), (true, 400, 400));
    assert_eq!((store.len(), store.weight()), (1, 400));
    store.validate();
    let done = store.put(1_001, 1, 1);
    assert_eq!(
        (done.admitted, done.evicted, done.evicted_weight),
        (true, 1, 400),
        "also from another shard"
    );
    store.validate();
}

#[test]
fn a_heavier_replacement_pushes_out_others_but_not_itself_first() {
    let store = Store::new(10);
    for key in 0..10 {
        store.put(key, 1, key);
    }
    let done = store.put(3, 5, 33);
    assert_eq!((done.replaced, done.admitted, done.evicted), (true, true, 4));
    assert_eq!((store.copied(3), store.weight(), store.len()), (Some(33), 10, 6));
    let done = store.put(3, 2, 333);
    assert_eq!(
        (done.replaced, done.evicted, store.weight()),
        (true, 0, 7),
        "a lighter one gives back"
    );
    store.validate();
}

#[test]
fn a_heavier_replacement_in_a_shard_of_its_own_takes_from_the_others() {
    let store = Store::with(40, 4, 1);
    let census = Census::default();
    // One key's shard has nothing but the key itself to give.
    let own = store.shards.index_of(store.hash(&0));
    let others: Vec<u64> = (1..)
        .filter(|key| store.shards.index_of(store.hash(key)) != own)
        .take(39)
        .collect();
    store.put(0, 1, census.canary(0, 1));
    for &key in &others {
        assert_eq!(store.put(key, 1, census.canary(key, 1)).evicted, 0);
    }
    let done = store.put(0, 20, census.canary(0, 2));
    assert_eq!((done.replaced, done.admitted, done.evicted), (true, true, 19));
    assert_eq!(store.peek(store.hash(&0), &0, |canary| canary.version_for(0)), Some(2));
    assert_eq!(store.weight(), 40);
    store.validate();
}

#[test]
fn hot_entries_outlive_a_scan() {
    let store = Store::new(1_000);
    for key in 0..500 {
        store.put(key, 1, ());
    }
    for _ in 0..3 {
        assert!((0..500).all(|key| store.copied(key).is_some()));
    }
    for key in 1_000..21_000 {
        store.put(key, 1, ());
    }
    let kept = (0..500).filter(|&key| store.has(key)).count();
    assert!(kept > 450, "{kept} of 500 hot entries are left");
}

#[test]
fn a_read_makes_hot_and_a_peek_does_not() {
    for reads in [false, true] {
        let store = Store::new(1_000);
        for key in 0..1_000 {
            store.put(key, 1, ());
        }
        // The newest entry is on trial, for a few inserts.
        if reads {
            assert_eq!(store.read(store.hash(&999), &999, |()| ((), false)), Some(()));
        } else {
            assert!(store.has(999));
        }
        for key in 1_000..1_050 {
            store.put(key, 1, ());
        }
        assert_eq!(store.has(999), reads);
        assert_eq!(store.counted(), 0, "marked but not counted");
    }
}

#[test]
fn a_replaced_entry_stays_hot() {
    for reads in [false, true] {
        let store = Store::new(1_000);
        for key in 0..1_000 {
            store.put(key, 1, 0);
        }
        if reads {
            assert_eq!(store.copied(999), Some(0));
        }
        assert!(store.put(999, 1, 1).replaced);
        for key in 1_000..1_050 {
            store.put(key, 1, 0);
        }
        assert_eq!(store.has(999), reads);
    }
}

#[test]
fn a_loop_larger_than_the_store_still_hits() {
    let store = Store::new(500);
    let mut hits = 0;
    for step in 0..100_000_u64 {
        let key = step % 1_000;
        if store.copied(key).is_some() {
            hits += 1;
        } else {
            store.put(key, 1, ());
        }
    }
    assert!(hits > 45_000, "{hits} of 100,000 where none is more than 50,000");
    store.validate();
}

/// Reads and, where there is nothing, puts in; the part of the requests that were hits, in hundredths.
fn hits_in_100(store: &Store<u64, ()>, requests: impl Iterator<Item = u64>) -> u64 {
    let (mut hits, mut all) = (0, 0);
    for key in requests {
        all += 1;
        if store.copied(key).is_some() {
            hits += 1;
        } else {
            store.put(key, 1, ());
        }
    }
    100 * hits / all
}

#[test]
fn a_loop_over_what_was_read_twice_before_hits() {
    for (capacity, least) in [(300, 25), (700, 63), (900, 82), (6_000, 54)] {
        let store = Store::new(capacity);
        let keys = (capacity * 3 / 2).min(1_000.max(capacity * 10 / 6));
        hits_in_100(&store, (0..keys).flat_map(|key| [key, key]));
        let hits = hits_in_100(&store, (0..100 * keys).map(|step| step % keys));
        let best = 100 * capacity / keys;
        assert!(
            hits >= least.min(best - 6),
            "{hits} % at {capacity}, where no more than {best} are possible"
        );
    }
}

#[test]
fn each_phase_has_the_hits_that_it_can_have() {
    for capacity in [500, 5_000_u64] {
        let store = Store::new(capacity);
        let recent = |phase: u64| {
            (0..30 * capacity).map(move |at| {
                let newest = phase * 100_000_000 + at / 2 + capacity;
                if at % 2 == 0 {
                    newest
                } else {
                    newest - at * 7_919 % (capacity / 2)
                }
            })
        };
        let round = |phase: u64| (0..30 * capacity).map(move |at| (phase + 50) * 100_000_000 + at % (capacity * 3 / 2));
        for phase in 0..3 {
            let hits = hits_in_100(&store, recent(phase));
            assert!(
                hits >= 38,
                "{hits} of 50 % where the latest are read again, phase {phase}, {capacity}"
            );
            let hits = hits_in_100(&store, round(phase));
            assert!(hits >= 48, "{hits} of 63 % in a loop, phase {phase}, {capacity}");
        }
    }
}

#[test]
fn memory_follows_the_entries_and_not_the_capacity() {
    let store = Store::new(1_000_000_000);
    for key in 0..10 {
        store.put(key, 1, [0_u64; 16]);
    }
    let (room, buckets) = store.footprint();
    assert!(
        room <= 4 * 10 && buckets == 8 * store.shards.count(),
        "room for {room}, {buckets} buckets"
    );
    store.validate();
}

#[test]
fn memory_does_not_grow_with_evictions() {
    let store = Store::new(1_000);
    for key in 0..1_000 {
        store.put(key, 1, ());
    }
    let (_, buckets) = store.footprint();
    for key in 1_000..50_000 {
        store.put(key, 1, ());
    }
    let (room, after) = store.footprint();
    assert_eq!(after, buckets);
    assert!(
        room <= 1_064 * 17 / 16 + 4,
        "room for {room}: the capacity and what waits for readers"
    );
}

#[test]
fn clear_gives_memory_back() {
    let census = Census::default();
    let store = Store::with(100_000, 2, 2);
    for key in 0..20_000 {
        store.put(key, 1, census.canary(key, 0));
    }
    assert_eq!(store.clear_and_tidy(), 20_000);
    assert_eq!(census.living(), 0);
    assert_eq!(store.footprint(), (0, 16), "as when it was new");
    assert_eq!((store.len(), store.weight()), (0, 0));
    store.validate();
    assert!(!store.has(1));
    store.put(1, 1, census.canary(1, 1));
    assert!(store.has(1));
    store.validate();
}

#[test]
fn what_waits_is_bounded_and_dropped_soon() {
    let census = Census::default();
    let store = Store::with(10_000, 2, 2);
    let mut schedule = Schedule(5);
    for _ in 0..50_000 {
        let key = schedule.below(30_000);
        store.put(key, 1, census.canary(key, 0));
        let waiting = census.living() - store.len();
        assert!(waiting <= 2 * 16, "{waiting} wait though nobody reads");
    }
    let key = (0..).find(|&key| store.has(key)).expect("something is there");
    store.take_out(key);
    let own = store.shards.index_of(store.hash(&key));
    assert_eq!(store.backlogs()[own].entries, 0, "a remove drops at once");
}

#[test]
fn heavy_entries_do_not_wait_for_others() {
    let census = Census::default();
    let store = Store::with(1_000, 1, 2);
    for key in 0..1_000 {
        store.put(key, 100, census.canary(key, 0));
        assert_eq!(census.living(), store.len(), "what weighs a lot is dropped at once");
    }
}
