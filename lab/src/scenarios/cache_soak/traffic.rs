//! Readers, writers and the watch over one cache: everything at once, for as long as it takes.
//!
//! Promises: every answer is judged by what was true when its get began; what one task chooses follows from the seed. A writer
//! changes the database first and tells the cache then. Knows neither source nor tiers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay::cache::{Answer, Cache, CacheError, Settled};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::database::{Database, Row, Slot};
use super::judge::Judge;
use crate::failure::Failure;

const READERS: u64 = 24;
const WRITERS: u64 = 6;
/// Most gets, and most writes, are of so many keys.
const HOT_KEYS: u64 = 12;
/// How often memory is weighed.
const WEIGHED_EVERY: Duration = Duration::from_millis(10);

/// A cache under everything at once.
pub(crate) struct Traffic<E> {
    pub(crate) cache: Cache<u64, Row, E>,
    pub(crate) database: Arc<Database>,
    pub(crate) judge: Arc<Judge>,
    /// Within which a get without a limit of its own must end; none where it may have to stand in line.
    pub(crate) deadline: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) counts: Arc<Counts>,
    pub(crate) is_over: Arc<AtomicBool>,
}

/// What was done to the cache.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cancelled: AtomicU64,
    pub(crate) invalidations: AtomicU64,
    pub(crate) clears: AtomicU64,
    /// The longest time by which a timer of 10 ms was late: what the machine alone may add to any get.
    pub(crate) longest_stall_us: AtomicU64,
}

impl<E> Clone for Traffic<E> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            database: Arc::clone(&self.database),
            judge: Arc::clone(&self.judge),
            counts: Arc::clone(&self.counts),
            is_over: Arc::clone(&self.is_over),
            ..*self
        }
    }
}

impl<E: fmt::Display + Send + Sync + 'static> Traffic<E> {
    /// Runs until it is over; a task that panics is a failure.
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let mut tasks = JoinSet::new();
        for task in 0..READERS {
            tasks.spawn(self.clone().reader(self.random(task)));
        }
        for task in 0..WRITERS {
            tasks.spawn(self.clone().writer(self.random(READERS + task)));
        }
        tasks.spawn(self.clone().watch());
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Failure::Wrong(format!("a task of the soak ended early: {error}")))?;
        }
        Ok(())
    }

    fn random(&self, task: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed.wrapping_add(task.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    fn key(&self, random: &mut StdRng) -> u64 {
        let among = if random.random_ratio(3, 4) {
            HOT_KEYS
        } else {
            self.database.keys()
        };
        random.random_range(0..among)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    async fn reader(self, mut random: StdRng) {
        while !self.is_over() {
            let key = self.key(&mut random);
            match random.random_range(0..100) {
                0..70 => self.lookup(key).await,
                70..78 => {
                    self.get_within(key, Duration::from_millis(random.random_range(1..50)))
                        .await;
                }
                78..82 => self.lookup_many(&mut random).await,
                82..90 => {
                    self.cancelled(key, Duration::from_millis(random.random_range(0..8)))
                        .await;
                }
                90..99 => self.if_fresh(key),
                _ => self.refresh(key).await,
            }
            if random.random_ratio(1, 8) {
                tokio::time::sleep(Duration::from_millis(random.random_range(0..3))).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    fn judge(&self, asked: &super::judge::Asked, outcome: &Result<Answer<Row>, CacheError<E>>) {
        match outcome {
            Ok(answer) => self
                .judge
                .answered(asked, answer.value.as_ref(), Some((answer.state, answer.age))),
            Err(error) => self.judge.failed(asked, error, false),
        }
        if let Some(deadline) = self.deadline {
            self.judge.in_time(asked, deadline);
        }
    }

    async fn lookup(&self, key: u64) {
        let asked = self.judge.asked(key);
        self.judge(&asked, &self.cache.lookup(&key).await);
    }

    async fn get_within(&self, key: u64, limit: Duration) {
        let asked = self.judge.asked(key);
        match self.cache.get_within(&key, limit).await {
            Ok(value) => self.judge.answered(&asked, value.as_ref(), None),
            Err(error) => self.judge.failed(&asked, &error, false),
        }
        self.judge.in_time(&asked, limit);
    }

    async fn lookup_many(&self, random: &mut StdRng) {
        let all: Vec<_> = (0..8).map(|_| self.judge.asked(self.key(random))).collect();
        let answers = self.cache.lookup_many(all.iter().map(|asked| asked.key)).await;
        for (asked, answer) in all.iter().zip(&answers) {
            self.judge(asked, answer);
        }
    }

    /// The leader of a flight too, if it happens to be; with no time at all, once polled it is dropped.
    async fn cancelled(&self, key: u64, after: Duration) {
        let asked = self.judge.asked(key);
        match tokio::time::timeout(after, self.cache.lookup(&key)).await {
            Ok(outcome) => self.judge(&asked, &outcome),
            Err(_) => {
                self.counts.cancelled.fetch_add(1, Relaxed);
            }
        }
    }

    fn if_fresh(&self, key: u64) {
        let asked = self.judge.asked(key);
        if let Some(entry) = self.cache.get_if_fresh(&key) {
            self.judge.answered(&asked, entry.into_value().as_ref(), None);
        }
    }

    async fn refresh(&self, key: u64) {
        let asked = self.judge.asked_to_refresh(key);
        match self.cache.refresh(&key).await {
            Ok(value) => self.judge.answered(&asked, value.as_ref(), None),
            Err(error) => self.judge.failed(&asked, &error, true),
        }
    }

    async fn writer(self, mut random: StdRng) {
        while !self.is_over() {
            let key = self.key(&mut random);
            let slot = self.database.slot(key);
            let turn = slot.turn.lock().await;
            let version = self.database.write(key);
            if random.random_ratio(1, 2) {
                tokio::time::sleep(Duration::from_millis(random.random_range(0..3))).await;
            }
            let settled = match random.random_range(0..200) {
                0..100 => self.change(key, Some(version), || self.cache.invalidate(&key)),
                100..150 => self.change(key, Some(version), || match self.database.read(key) {
                    Some(row) => self.cache.insert(key, row),
                    None => self.cache.insert_missing(key),
                }),
                150..180 => self.change(key, None, || self.cache.mark_stale(&key)),
                180 => self.clear(),
                // Nobody tells the cache: the old version may be served for as long as the windows allow.
                _ => self.cache.settled(),
            };
            drop(turn);
            let pause = Duration::from_millis(random.random_range(0..20));
            if random.random_ratio(1, 8) {
                // A tier that is down is told when it is back.
                let _ = tokio::time::timeout(pause, settled).await;
            } else {
                drop(settled);
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Tells the cache, and when it has answered, that it knows of the version.
    fn change(&self, key: u64, version: Option<u64>, tell: impl FnOnce() -> Settled) -> Settled {
        let slot = self.database.slot(key);
        slot.change_begins();
        let settled = tell();
        slot.change_returned();
        if let Some(version) = version {
            slot.acknowledge(version);
        }
        self.counts.invalidations.fetch_add(1, Relaxed);
        settled
    }

    fn clear(&self) -> Settled {
        let slots = || (0..self.database.keys()).map(|key| self.database.slot(key));
        let written: Vec<u64> = slots().map(|slot| slot.versions().newest).collect();
        slots().for_each(Slot::change_begins);
        let settled = self.cache.clear();
        for (slot, version) in slots().zip(written) {
            slot.change_returned();
            slot.acknowledge(version);
        }
        self.counts.clears.fetch_add(1, Relaxed);
        settled
    }

    async fn watch(self) {
        while !self.is_over() {
            let stats = self.cache.stats();
            self.judge.weighed(stats.weight, stats.capacity);
            let begun = Instant::now();
            tokio::time::sleep(WEIGHED_EVERY).await;
            let stall = begun.elapsed().saturating_sub(WEIGHED_EVERY);
            self.counts
                .longest_stall_us
                .fetch_max(stall.as_micros() as u64, Relaxed);
        }
    }
}
