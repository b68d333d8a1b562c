//! Any order of events, by seed: reads, fills, inserts, invalidations and clears over tiers that fail, delay, hang and apply what
//! they then deny. No read ever brings a value older than the last change, and at the end no tier has one.

use crate::tier::By;
use std::cell::RefCell;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::time::sleep;

use super::*;

const KEYS: u64 = 12;

/// A tier that does its worst, within what a tier may do.
struct Wild {
    kept: Mutex<HashMap<u64, Kept<u64>>>,
    random: Mutex<StdRng>,
    is_tame: Mutex<bool>,
}

impl Wild {
    /// Waits, does it or not, waits, and says so or not. A change that is given up is done before the next one, or never.
    async fn call<T>(&self, work: impl FnOnce(&mut HashMap<u64, Kept<u64>>) -> T) -> Result<T, TierError> {
        let (before, after, is_done, is_admitted) = {
            let mut random = self.random.lock();
            let mut wait = || match random.random_range(0..20) {
                0 => 100_000,
                1..8 => random.random_range(1..400),
                _ => 0,
            };
            let waits = (wait(), wait());
            (waits.0, waits.1, random.random_bool(0.8), random.random_bool(0.8))
        };
        if *self.is_tame.lock() {
            return Ok(work(&mut self.kept.lock()));
        }
        sleep(ms(before)).await;
        let done = is_done.then(|| work(&mut self.kept.lock()));
        sleep(ms(after)).await;
        let denied = || TierError::failed("do anything", "just so");
        done.filter(|_| is_admitted).ok_or_else(denied)
    }
}

impl Tier<u64, u64> for Wild {
    fn name(&self) -> &str {
        "wild"
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        Box::pin(self.call(|kept| keys.iter().map(|key| kept.get(key).cloned()).collect()))
    }

    fn put_many<'a>(&'a self, entries: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.call(|kept| kept.extend(entries.iter().map(|put| (put.key, put.kept.clone())))))
    }

    fn delete_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.call(|kept| kept.retain(|key, _| !keys.contains(key))))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(self.call(HashMap::clear))
    }
}

/// Returns how many values were read.
async fn run(seed: u64) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let wild: Vec<Arc<Wild>> = (0..2)
        .map(|_| {
            Arc::new(Wild {
                kept: Mutex::default(),
                random: Mutex::new(StdRng::seed_from_u64(random.random())),
                is_tame: Mutex::new(false),
            })
        })
        .collect();
    let mut settings = settings();
    // Small enough to be met in some runs.
    settings.max_owed = random.random_range(2..30);
    settings.pause = (ms(50), ms(200));
    settings.retry_after = (ms(10), ms(500));
    let clock = Arc::clone(&settings.wall_clock);
    let tiers: Tiers<u64, u64> = Tiers::new(
        wild.iter()
            .map(|tier| Arc::clone(tier) as Arc<dyn Tier<u64, u64>>)
            .collect(),
        settings,
        None,
        Arc::new(|| Handle::try_current().ok()),
    );
    // The present version of each key, as the source has it.
    let present = RefCell::new([1_u64; KEYS as usize]);
    let found = RefCell::new(0);
    let check = |keys: &[u64], read: Vec<Option<u64>>| {
        for (key, value) in keys.iter().zip(read) {
            let Some(value) = value else { continue };
            *found.borrow_mut() += 1;
            assert_eq!(
                value,
                present.borrow()[*key as usize],
                "seed {seed}: key {key} was read with an old value"
            );
        }
    };
    let mut reads = Vec::new();
    for _ in 0..400 {
        let key = random.random_range(0..KEYS);
        match random.random_range(0..100) {
            0..40 => {
                let keys: Vec<u64> = (0..random.random_range(1..4))
                    .map(|_| random.random_range(0..KEYS))
                    .collect();
                let (tiers, check) = (tiers.clone(), &check);
                reads.push(Box::pin(async move {
                    let read = read(&tiers, &keys).await;
                    check(&keys, read);
                }));
            }
            40..70 => tiers.fill_with(put(key, present.borrow()[key as usize], clock())),
            70..84 => {
                present.borrow_mut()[key as usize] += 1;
                drop(tiers.invalidate(key, By::This));
            }
            84..98 => {
                present.borrow_mut()[key as usize] += 1;
                tiers.insert_with(put(key, present.borrow()[key as usize], clock()));
            }
            _ => {
                present.borrow_mut().iter_mut().for_each(|version| *version += 1);
                drop(tiers.clear(By::This));
            }
        }
        tiers.validate();
        // Time passes, in which some of the reads go on; they are polled by nobody else.
        let pause = random.random_range(0..60);
        if pause < 40 {
            let until = Instant::now() + ms(pause);
            while Instant::now() < until {
                sleep(ms(5)).await;
                let mut left = Vec::new();
                for mut reading in reads.drain(..) {
                    if futures_util::poll!(reading.as_mut()).is_pending() {
                        left.push(reading);
                    }
                }
                reads = left;
            }
        }
    }
    futures_util::future::join_all(reads).await;
    for tier in &wild {
        *tier.is_tame.lock() = true;
    }
    tiers.settled().await;
    tiers.validate();
    let keys: Vec<u64> = (0..KEYS).collect();
    check(&keys, read(&tiers, &keys).await);
    assert!(tiers.stats().iter().all(|stats| stats.owed == 0));
    // Read by a process that knows of no watermark: what the tiers keep is the present, and nothing else.
    for tier in &wild {
        for (key, kept) in &*tier.kept.lock() {
            let value = kept.value.unwrap();
            assert_eq!(
                value,
                present.borrow()[*key as usize],
                "seed {seed}: key {key} was left with an old value"
            );
        }
    }
    found.into_inner()
}

#[tokio::test(start_paused = true)]
async fn no_schedule_brings_an_old_value() {
    let first = std::env::var("FOREBAY_SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = first.map_or(0..150, |seed: u64| seed..seed + 1);
    let mut found = 0;
    for seed in seeds {
        found += run(seed).await;
    }
    assert!(found > 0, "a schedule in which nothing is ever read tests nothing");
}
