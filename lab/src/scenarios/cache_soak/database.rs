//! The "database": versions of keys, read by the caches' sources with a random latency and with faults.
//!
//! Promises: a row tells which key and version it is and when it was read, and cannot be altered unseen; a version that is
//! divisible by [`MISSING_EVERY`] is no row. What is acknowledged of a key only grows. Every random choice follows from the
//! seed; how tasks interleave is the machine's own. Knows no cache and no verdict.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// One version in so many says that there is no row.
pub(crate) const MISSING_EVERY: u64 = 5;
/// A fetch that took longer was slow, whoever is to blame.
const SLOW: Duration = Duration::from_millis(50);
/// So many of 100 fetches in a time of faults.
const FAULTY_PERCENT: u32 = 70;

/// What a source answers with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) key: u64,
    pub(crate) version: u64,
    /// Since the database's beginning.
    pub(crate) read_at_us: u64,
    seal: u64,
}

impl Row {
    fn new(key: u64, version: u64, read_at_us: u64) -> Self {
        let seal = seal(key, version, read_at_us);
        Self {
            key,
            version,
            read_at_us,
            seal,
        }
    }

    /// Whether it is as it was made.
    pub(crate) fn is_whole(&self) -> bool {
        self.seal == seal(self.key, self.version, self.read_at_us) && !self.version.is_multiple_of(MISSING_EVERY)
    }
}

/// The finalizer of `SplitMix64` over all three.
fn seal(key: u64, version: u64, read_at_us: u64) -> u64 {
    let mut mixed = 0x9e37_79b9_7f4a_7c15_u64;
    for word in [key, version, read_at_us] {
        mixed = (mixed ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 31;
    }
    mixed
}

/// What is wrong with the database for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    Nothing,
    Fails,
    Hangs,
    Panics,
    IsSlow,
}

/// All that can be wrong.
pub(crate) const FAULTS: [Fault; 4] = [Fault::Fails, Fault::Hangs, Fault::Panics, Fault::IsSlow];

/// The source's own error.
#[derive(Debug, thiserror::Error)]
#[error("the database is told to fail")]
pub(crate) struct Refused;

/// What is true of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) newest: u64,
    /// The last version that was no row.
    pub(crate) missing: u64,
    /// When it was followed by one that is; none while it is the newest.
    pub(crate) missing_until_us: Option<u64>,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Slot {
    versions: Mutex<Versions>,
    /// The last version of which the cache was told by a call that returned.
    acknowledged: AtomicU64,
    /// Calls that change the key's entry: begun, and returned.
    begun: AtomicU64,
    returned: AtomicU64,
    /// Writers of a key take turns, as in a database.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// The database.
#[derive(Debug)]
pub(crate) struct Database {
    slots: Vec<Slot>,
    origin: Instant,
    seed: u64,
    calls: AtomicU64,
    fault: AtomicU8,
    faults: AtomicU64,
    /// When something was last wrong with a fetch; 0 before the first time.
    trouble_at_us: AtomicU64,
}

impl Database {
    /// With so many keys, the first version of each written.
    pub(crate) fn new(keys: u64, seed: u64) -> Self {
        let slot = |key: u64| Slot {
            versions: Mutex::new(Versions {
                newest: MISSING_EVERY + key % MISSING_EVERY,
                missing: MISSING_EVERY,
                missing_until_us: (!key.is_multiple_of(MISSING_EVERY)).then_some(0),
            }),
            acknowledged: AtomicU64::new(MISSING_EVERY + key % MISSING_EVERY),
            begun: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            turn: tokio::sync::Mutex::new(()),
        };
        Self {
            slots: (0..keys).map(slot).collect(),
            origin: Instant::now(),
            seed,
            calls: AtomicU64::new(0),
            fault: AtomicU8::new(Fault::Nothing as u8),
            faults: AtomicU64::new(0),
            trouble_at_us: AtomicU64::new(0),
        }
    }

    pub(crate) fn keys(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(crate) fn slot(&self, key: u64) -> &Slot {
        &self.slots[key as usize]
    }

    /// Microseconds since the beginning.
    pub(crate) fn now_us(&self) -> u64 {
        self.origin.elapsed().as_micros() as u64
    }

    /// The next version of the key is there now.
    pub(crate) fn write(&self, key: u64) -> u64 {
        let mut versions = self.slot(key).lock();
        versions.newest += 1;
        if versions.newest.is_multiple_of(MISSING_EVERY) {
            versions.missing = versions.newest;
            versions.missing_until_us = None;
        } else if versions.missing_until_us.is_none() {
            versions.missing_until_us = Some(self.now_us());
        }
        versions.newest
    }

    /// The key's newest version, if it is a row.
    pub(crate) fn read(&self, key: u64) -> Option<Row> {
        let newest = self.slot(key).lock().newest;
        (!newest.is_multiple_of(MISSING_EVERY)).then(|| Row::new(key, newest, self.now_us()))
    }

    /// From now on that is wrong.
    pub(crate) fn set_fault(&self, fault: Fault) {
        self.fault.store(fault as u8, SeqCst);
    }

    /// Fetches with which something was wrong on purpose.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(SeqCst)
    }

    /// Whether something was wrong with a fetch at that time or later.
    pub(crate) fn had_trouble_since(&self, since_us: u64) -> bool {
        let at_us = self.trouble_at_us.load(SeqCst);
        at_us > 0 && at_us >= since_us
    }

    fn trouble(&self) {
        self.trouble_at_us.fetch_max(self.now_us().max(1), SeqCst);
    }

    /// As a source of many keys: an answer a key, in their order.
    pub(crate) async fn fetch(&self, keys: &[u64]) -> Result<Vec<Option<Row>>, Refused> {
        let _watched = Watched {
            database: self,
            began: Instant::now(),
        };
        let call = self.calls.fetch_add(1, SeqCst);
        let mut random = StdRng::seed_from_u64(self.seed ^ seal(call, 0, 0));
        let fault = self.fault.load(SeqCst);
        if fault != Fault::Nothing as u8 && random.random_ratio(FAULTY_PERCENT, 100) {
            self.faults.fetch_add(1, SeqCst);
            self.trouble();
            pause(&mut random, 4).await;
            match fault {
                fault if fault == Fault::Fails as u8 => return Err(Refused),
                fault if fault == Fault::Hangs as u8 => std::future::pending().await,
                // As a panic, without a word on standard error.
                fault if fault == Fault::Panics as u8 => std::panic::resume_unwind(Box::new("told to panic")),
                _ => pause(&mut random, 350).await,
            }
        }
        pause(&mut random, 4).await;
        let rows = keys.iter().map(|key| self.read(*key)).collect();
        pause(&mut random, 4).await;
        Ok(rows)
    }
}

/// Up to so many milliseconds, often none.
async fn pause(random: &mut StdRng, most_ms: u64) {
    match random.random_range(0..=2 * most_ms) {
        0 => {}
        ms if ms <= most_ms => tokio::time::sleep(Duration::from_millis(ms)).await,
        _ => tokio::task::yield_now().await,
    }
}

/// Notes, however a fetch ends, that it was slow.
struct Watched<'a> {
    database: &'a Database,
    began: Instant,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if self.began.elapsed() > SLOW {
            self.database.trouble();
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn versions(&self) -> Versions {
        *self.lock()
    }

    /// The version that a get which begins now must not be older than.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(SeqCst)
    }

    /// The cache was told of that version, by a call that has returned.
    pub(crate) fn acknowledge(&self, version: u64) {
        self.acknowledged.fetch_max(version, SeqCst);
    }

    /// A call that changes the key's entry is about to begin.
    pub(crate) fn change_begins(&self) {
        self.begun.fetch_add(1, SeqCst);
    }

    /// It has returned.
    pub(crate) fn change_returned(&self) {
        self.returned.fetch_add(1, SeqCst);
    }

    /// How many changes have returned.
    pub(crate) fn changes(&self) -> u64 {
        self.returned.load(SeqCst)
    }

    /// Whether no change ran at any moment since so many had returned.
    pub(crate) fn is_quiet_since(&self, changes: u64) -> bool {
        self.begun.load(SeqCst) == changes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_row_that_was_altered_is_not_whole() {
        let database = Database::new(10, 1);
        let row = database.read(1).unwrap();
        assert!(row.is_whole());
        for altered in [
            Row { key: 2, ..row.clone() },
            Row {
                version: 7,
                ..row.clone()
            },
            Row {
                read_at_us: u64::MAX,
                ..row
            },
        ] {
            assert!(!altered.is_whole(), "{altered:?}");
        }
        assert!(!Row::new(1, MISSING_EVERY, 0).is_whole(), "that version is no row");
    }

    #[test]
    fn one_version_in_five_is_no_row_and_it_is_known_until_when() {
        let database = Database::new(10, 1);
        for version in 7..30 {
            assert_eq!(database.write(1), version);
            let versions = database.slot(1).versions();
            assert_eq!(versions.missing, version / 5 * 5);
            assert_eq!(versions.missing_until_us.is_none(), version % 5 == 0);
            assert_eq!(
                database.read(1).map(|row| row.version),
                (version % 5 != 0).then_some(version)
            );
        }
    }

    #[tokio::test]
    async fn faults_are_what_they_are_called_and_are_counted() {
        let database = Arc::new(Database::new(10, 1));
        assert!(database.fetch(&[0, 1]).await.unwrap()[0].is_none());
        assert!(!database.had_trouble_since(0) && database.faults() == 0);
        for fault in FAULTS {
            let before = database.faults();
            database.set_fault(fault);
            let fetches: Vec<_> = (0..100)
                .map(|_| {
                    let database = Arc::clone(&database);
                    // Far longer than what is slow.
                    let limit = Duration::from_secs(2);
                    tokio::spawn(async move { tokio::time::timeout(limit, database.fetch(&[1])).await })
                })
                .collect();
            let (mut failed, mut hung, mut panicked) = (0, 0, 0);
            for fetch in fetches {
                match fetch.await {
                    Err(_) => panicked += 1,
                    Ok(Err(_)) => hung += 1,
                    Ok(Ok(Err(Refused))) => failed += 1,
                    Ok(Ok(Ok(rows))) => assert_eq!(rows[0].as_ref().unwrap().version, 6),
                }
            }
            let faults = database.faults() - before;
            assert!((50..90).contains(&faults), "{fault:?}: {faults}");
            let told = |is: bool| if is { faults } else { 0 };
            assert_eq!(
                (failed, hung, panicked),
                (
                    told(fault == Fault::Fails),
                    told(fault == Fault::Hangs),
                    told(fault == Fault::Panics)
                )
            );
        }
        assert!(database.had_trouble_since(1));
    }
}
