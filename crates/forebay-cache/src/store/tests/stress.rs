//! Many threads at once; every schedule begins from a seed that is printed, so that a failure shows which one it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::super::Store;
use super::{Census, Schedule};

const THREADS: u64 = 4;
const STEPS: u64 = 8_000;

fn seed() -> u64 {
    let seed = rand::random();
    println!("seed {seed}");
    seed
}

/// Each thread writes keys of its own and reads all: it must find what it wrote last or, if that was evicted, nothing; and what it
/// sees of others never goes back in time.
fn turmoil(capacity: u64, shards: usize, keys: u64, weight_max: u64, clears: bool) {
    let census = Census::default();
    let seed = seed();
    let store = Store::with(capacity, shards, 4);
    let evicts = capacity < keys * weight_max;
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let (store, census, running) = (&store, &census, &running);
        let watcher = scope.spawn(move || {
            while running.load(Relaxed) {
                assert!(store.weight() <= capacity, "at no instant more than the capacity");
                thread::yield_now();
            }
        });
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut schedule = Schedule(seed ^ (thread << 32));
                    let mut last_seen = vec![0; keys as usize];
                    for version in 1..=STEPS {
                        let key = schedule.below(keys);
                        let own = key - key % THREADS + thread;
                        let own = if own < keys { own } else { thread };
                        let weight = 1 + schedule.below(weight_max) as u32;
                        match schedule.below(100) {
                            0..30 => {
                                let done = store.put(own, weight, census.canary(own, version));
                                assert!(done.admitted);
                                let read = store.peek(store.hash(&own), &own, |canary| canary.version_for(own));
                                assert!(
                                    read == Some(version) || (read.is_none() && (evicts || clears)),
                                    "{read:?}"
                                );
                                last_seen[own as usize] = version;
                            }
                            30..40 => {
                                store.take_out(own);
                                assert!(!store.has(own), "nobody else writes this key");
                            }
                            40 if clears => {
                                store.clear_and_tidy();
                            }
                            41 => store.for_each(|&key, canary| {
                                canary.version_for(key);
                            }),
                            42..45 => {
                                // A visit that writes.
                                store.read(store.hash(&key), &key, |canary| {
                                    store.put(own, weight, census.canary(own, version));
                                    canary.version_for(key);
                                    ((), true)
                                });
                            }
                            _ => {
                                let read = store.read(store.hash(&key), &key, |canary| (canary.version_for(key), true));
                                if let Some(version) = read {
                                    assert!(version >= last_seen[key as usize], "an older record came back");
                                    last_seen[key as usize] = version;
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        running.store(false, Relaxed);
        watcher.join().expect("the watcher saw nothing wrong");
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}");
    });
    store.validate();
    assert_eq!(store.shards.readers().open(), 0);
    drop(store);
    assert_eq!(census.living(), 0, "every record is dropped exactly once");
}

#[test]
fn evictions_in_one_shard() {
    turmoil(40, 1, 200, 1, false);
}

#[test]
fn evictions_with_weights_across_shards() {
    turmoil(300, 4, 200, 50, false);
}

#[test]
fn very_heavy_entries_contend_for_the_whole_capacity() {
    turmoil(60, 4, 64, 60, false);
}

#[test]
fn growth_and_removals_without_evictions() {
    turmoil(1_000_000, 2, 3_000, 1, false);
}

#[test]
fn clears_among_all_else() {
    turmoil(500, 2, 400, 3, true);
}

#[test]
fn capacity_one_under_contention() {
    turmoil(1, 1, 16, 1, true);
}

/// Entries that nobody touches are found at all times, however their neighbours come, go and are moved, and the table grows.
#[test]
fn no_read_misses_what_is_there() {
    let seed = seed();
    let store = Arc::new(Store::with(1 << 30, 1, 4));
    let settled: Vec<u64> = (0..64).map(|key| key * 1_000_003).collect();
    for &key in &settled {
        store.put(key, 1, key);
    }
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let (store, settled, running) = (&store, &settled, &running);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut reads = 0_u64;
                    while running.load(Relaxed) {
                        for &key in settled {
                            assert_eq!(store.copied(key), Some(key), "it was never removed");
                            reads += 1;
                        }
                    }
                    reads
                })
            })
            .collect();
        let mut schedule = Schedule(seed);
        for round in 0..300 {
            let base = 1 + schedule.below(1 << 40) * 1_000_003;
            // Fewer at first, so that a small table is shifted much; more later, so that it grows.
            let many = 8 + round;
            for key in base..base + many {
                store.put(key, 1, key);
            }
            for key in base..base + many - many / 8 {
                assert!(store.take_out(key));
            }
        }
        running.store(false, Relaxed);
        let reads: u64 = readers
            .into_iter()
            .map(|reader| reader.join().expect("every read found its entry"))
            .sum();
        assert_eq!(store.counted(), reads, "every hit is counted");
    });
    store.validate();
}
