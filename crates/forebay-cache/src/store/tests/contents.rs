//! What is read is what was last written, as a naive map has it.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::Store;
use super::Census;

#[derive(Clone, Debug)]
enum Step {
    Insert { key: u64, weight: u32 },
    Remove(u64),
    Read(u64),
    Peek(u64),
    Clear,
    Visit,
}

fn steps(keys: u64, weight_max: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..keys, 0..=weight_max).prop_map(|(key, weight)| Step::Insert { key, weight }),
        3 => (0..keys).prop_map(Step::Remove),
        6 => (0..keys).prop_map(Step::Read),
        2 => (0..keys).prop_map(Step::Peek),
        1 => Just(Step::Visit),
        1 => (0..40_u8).prop_map(|draw| if draw == 0 { Step::Clear } else { Step::Visit }),
    ];
    prop::collection::vec(step, 1..400)
}

/// Runs the steps beside a map that never evicts: what the store has must be what the map has, and what it has lost it must have
/// said.
fn agrees(capacity: u64, shards: usize, steps: &[Step]) {
    let census = Census::default();
    let store = Store::with(capacity, shards, 2);
    let mut model: HashMap<u64, (u64, u64)> = HashMap::new();
    let (mut version, mut counted) = (0, 0);
    for step in steps {
        match *step {
            Step::Insert { key, weight } => {
                version += 1;
                let before = store.len();
                let done = store.put(key, weight, census.canary(key, version));
                let weight = u64::from(weight.max(1));
                assert_eq!(done.admitted, weight <= capacity, "what fits is admitted");
                assert_eq!(
                    done.replaced,
                    model.remove(&key).is_some(),
                    "an insert knows whether it replaced"
                );
                if done.admitted {
                    model.insert(key, (version, weight));
                } else {
                    assert_eq!((done.evicted, done.evicted_weight), (0, 0));
                }
                assert_eq!(store.has(key), done.admitted, "an insert is seen at once");
                let after = before + u64::from(done.admitted) - u64::from(done.replaced) - done.evicted;
                assert_eq!(store.len(), after, "what was evicted is counted");
                let lost: Vec<u64> = model.keys().copied().filter(|&key| !store.has(key)).collect();
                assert_eq!(lost.len() as u64, done.evicted, "what was evicted is gone");
                let lost_weight: u64 = lost
                    .iter()
                    .filter_map(|key| model.remove(key))
                    .map(|(_, weight)| weight)
                    .sum();
                assert_eq!(lost_weight, done.evicted_weight);
            }
            Step::Remove(key) => {
                assert_eq!(
                    store.take_out(key),
                    model.remove(&key).is_some(),
                    "a remove knows whether it removed"
                );
                assert!(!store.has(key), "a remove is seen at once");
            }
            Step::Read(key) => {
                let read = store.read(store.hash(&key), &key, |canary| (canary.version_for(key), key % 2 == 0));
                assert_eq!(
                    read,
                    model.get(&key).map(|&(version, _)| version),
                    "the last write is read"
                );
                counted += u64::from(read.is_some() && key % 2 == 0);
            }
            Step::Peek(key) => {
                let seen = store.peek(store.hash(&key), &key, |canary| canary.version_for(key));
                assert_eq!(seen, model.get(&key).map(|&(version, _)| version));
            }
            Step::Clear => {
                assert_eq!(store.clear_and_tidy(), model.len() as u64);
                model.clear();
                assert_eq!(census.living(), 0, "a clear drops what it cleared");
            }
            Step::Visit => {
                let mut seen = HashMap::new();
                store.for_each(|&key, canary| {
                    assert!(
                        seen.insert(key, canary.version_for(key)).is_none(),
                        "each is visited once"
                    );
                });
                let expected: HashMap<u64, u64> = model.iter().map(|(&key, &(version, _))| (key, version)).collect();
                assert_eq!(seen, expected, "all is visited");
            }
        }
        let weight: u64 = model.values().map(|&(_, weight)| weight).sum();
        assert_eq!(store.weight(), weight, "the weight is that of what is there");
        assert!(weight <= capacity, "never more than the capacity");
        assert_eq!(store.len(), model.len() as u64);
        assert_eq!(store.counted(), counted, "only what is to be counted is");
        assert_eq!(store.shards.readers().open(), 0, "every read has ended");
        store.validate();
    }
    drop(store);
    assert_eq!(census.living(), 0, "everything is dropped, once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_shard_agrees_with_a_map(capacity in 0_u64..40, steps in steps(60, 1)) {
        agrees(capacity, 1, &steps);
    }

    #[test]
    fn weights_agree_with_a_map(capacity in 0_u64..200, shards in 1_usize..5, steps in steps(60, 30)) {
        agrees(capacity, shards, &steps);
    }

    #[test]
    fn growth_agrees_with_a_map(steps in steps(2_000, 1)) {
        agrees(100_000, 2, &steps);
    }
}

#[test]
fn a_large_store_keeps_all_that_fits() {
    let store = Store::new(50_000);
    for key in 0..50_000_u64 {
        assert_eq!(store.put(key, 1, key).evicted, 0);
    }
    assert!(
        (0..50_000).all(|key| store.copied(key) == Some(key)),
        "found after growth"
    );
    assert_eq!((store.len(), store.weight(), store.counted()), (50_000, 50_000, 50_000));
    store.validate();
    for key in (0..50_000).step_by(2) {
        assert!(store.take_out(key));
    }
    assert!(
        (0..50_000).all(|key| store.has(key) == (key % 2 == 1)),
        "neighbours stay when others go"
    );
    store.validate();
}

#[test]
fn a_borrowed_key_finds_its_owner() {
    let store: Store<String, u64> = Store::new(10);
    store.insert_and_tidy(store.hash("forebay"), "forebay".to_owned(), 1, 7);
    assert_eq!(store.peek(store.hash("forebay"), "forebay", |record| *record), Some(7));
    assert!(store.remove_and_tidy(store.hash("forebay"), "forebay"));
    assert!(!store.remove_and_tidy(store.hash("forebay"), "forebay"));
}

#[test]
fn keys_with_one_hash_are_told_apart() {
    let store: Store<u64, u64> = Store::new(100);
    for key in 0..40 {
        store.insert_and_tidy(7, key, 1, key * 10);
    }
    assert!((0..40).all(|key| store.peek(7, &key, |record| *record) == Some(key * 10)));
    assert_eq!(store.peek(7, &40, |record| *record), None);
    store.validate();
    assert!((0..40).step_by(3).all(|key| store.remove_and_tidy(7, &key)));
    assert!((0..40).all(|key| store.peek(7, &key, |_| ()).is_some() == (key % 3 != 0)));
    store.validate();
}

#[test]
fn seeds_differ() {
    let (one, other): (Store<u64, ()>, Store<u64, ()>) = (Store::new(1), Store::new(1));
    assert!(
        (0..8).any(|key: u64| one.hash(&key) != other.hash(&key)),
        "nobody can know which keys collide"
    );
}
