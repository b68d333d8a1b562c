//! The judge: what a get may answer, by what was true when it began and when it ended.
//!
//! Wrong is: a version older than the last one acknowledged before the get began; a row of another key, altered or never
//! written; a missing row that was never missing since, or the reverse; an answer older than its state allows; a rescue or an
//! error while nothing was wrong with the source; an error while memory could answer; a get that ended more than a second
//! after its deadline; memory over its capacity. A get that ended less late is late, and only counted.
//!
//! Promises: what it calls wrong is wrong whatever the interleaving, and whenever the machine stalls; where it cannot tell it
//! says nothing. Knows no cache's
//! insides.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forebay::cache::{CacheError, State};

use super::database::{Database, Row};
use super::stalls::Stalls;
use crate::failure::Failure;

/// The windows of the caches. A missing row is fresh for half as long, and stale for as much longer.
pub(crate) const FRESH_FOR: Duration = Duration::from_millis(300);
pub(crate) const STALE_FOR: Duration = Duration::from_millis(300);
pub(crate) const RESCUES_FOR: Duration = Duration::from_millis(1_500);
/// The time limits of the caches.
pub(crate) const SOFT_TIMEOUT: Duration = Duration::from_millis(60);
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_millis(400);
pub(crate) const TIER_TIMEOUT: Duration = Duration::from_millis(250);
pub(crate) const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(300));

/// The clocks differ by some milliseconds, and a thread may be put aside between a look at one and what follows.
const AGE_SLACK: Duration = Duration::from_millis(200);
/// How long after the last trouble with the source the cache may still be in its back-off, or a fetch in line behind it.
const AFTERMATH: Duration = Duration::from_secs(2);
/// After its deadline a get is late, and then wrong.
const LATE: Duration = Duration::from_millis(50);
const TOO_LATE: Duration = Duration::from_secs(1);
/// Of what was wrong, the first are told.
const TOLD_MAX: usize = 5;

fn us(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

/// What is known about a key in memory: it can answer until then, if nobody changes it.
#[derive(Debug, Clone, Copy)]
struct Known {
    until_us: u64,
    changes: u64,
}

/// A get that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) key: u64,
    began_us: u64,
    began: Instant,
    acknowledged: u64,
    changes: u64,
    known: Option<Known>,
    /// Of the machine, before it began.
    stalled: Duration,
}

/// Judges one cache.
#[derive(Debug)]
pub(crate) struct Judge {
    database: Arc<Database>,
    /// What memory has of each key; of a cache that evicts nothing, else of none.
    known: Option<Vec<Mutex<Option<Known>>>>,
    /// A fetch may join one that its source's batches began before.
    joins: Duration,
    stalls: Arc<Stalls>,
    wrong: AtomicU64,
    told: Mutex<Vec<String>>,
    answers: AtomicU64,
    late: AtomicU64,
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Judge {
    /// `is_roomy`: the cache evicts nothing. `gathers`: its source is a loader.
    pub(crate) fn new(database: &Arc<Database>, is_roomy: bool, gathers: bool) -> Result<Self, Failure> {
        let nothing = || (0..database.keys()).map(|_| Mutex::new(None)).collect();
        Ok(Self {
            database: Arc::clone(database),
            known: is_roomy.then(nothing),
            joins: if gathers { FETCH_TIMEOUT } else { Duration::ZERO },
            wrong: AtomicU64::new(0),
            told: Mutex::default(),
            answers: AtomicU64::new(0),
            late: AtomicU64::new(0),
            errors: Mutex::default(),
            stalls: Stalls::watch()?,
        })
    }

    /// To be called before a get of the key.
    pub(crate) fn asked(&self, key: u64) -> Asked {
        let slot = self.database.slot(key);
        let changes = slot.changes();
        let known = self.known.as_ref().and_then(|known| *lock(&known[key as usize]));
        Asked {
            key,
            changes,
            known,
            acknowledged: slot.acknowledged(),
            began_us: self.database.now_us(),
            stalled: self.stalls.so_far(),
            began: Instant::now(),
        }
    }

    /// As [`asked`](Self::asked), for a refresh: its fetch begins afterwards, so it may not even bring what was written before.
    pub(crate) fn asked_to_refresh(&self, key: u64) -> Asked {
        let written = self.database.slot(key).versions().newest;
        Asked {
            acknowledged: written,
            ..self.asked(key)
        }
    }

    /// A get has ended; `came` is how memory or the source came by the answer and how old it is, where the get tells.
    pub(crate) fn answered(&self, asked: &Asked, value: Option<&Row>, came: Option<(State, Duration)>) {
        self.answers.fetch_add(1, SeqCst);
        let took = asked.began.elapsed();
        let slot = self.database.slot(asked.key);
        let versions = slot.versions();
        let wrong = |what: &str| {
            self.wrong(format!(
                "key {}: {what}: {value:?} ({came:?}) where {} was acknowledged at {} µs, asked for {took:?}; now {versions:?}",
                asked.key, asked.acknowledged, asked.began_us
            ));
        };
        let limit = match came.map(|(state, _)| state) {
            Some(State::Fresh | State::Stale) => FRESH_FOR + STALE_FOR,
            Some(State::Fetched) => FRESH_FOR.max(FETCH_TIMEOUT),
            _ => FRESH_FOR + STALE_FOR + RESCUES_FOR,
        };
        let oldest_us = asked
            .began_us
            .saturating_sub(us(limit + AGE_SLACK + self.joins + self.stalls.so_far()));
        match value {
            Some(row) if row.key != asked.key || !row.is_whole() => wrong("not its row"),
            Some(row) if row.version > versions.newest => wrong("never written"),
            Some(row) if row.version < asked.acknowledged => wrong("older than acknowledged"),
            Some(row) if row.read_at_us < oldest_us => wrong("too old"),
            None if versions.missing < asked.acknowledged => wrong("missing, and never was since"),
            None if versions.missing_until_us.is_some_and(|until| until < oldest_us) => wrong("missing too long ago"),
            _ => {}
        }
        let Some((state, age)) = came else { return };
        if age > took + limit + AGE_SLACK {
            wrong("by its own word too old");
        }
        let was_slow = took + Duration::from_millis(15) >= SOFT_TIMEOUT;
        if state == State::Rescued && !was_slow && !self.had_trouble(asked.began_us) {
            wrong("rescued from nothing");
        }
        if state != State::Fetched
            && slot.is_quiet_since(asked.changes)
            && let Some(known) = &self.known
        {
            let left = (FRESH_FOR + STALE_FOR + RESCUES_FOR).saturating_sub(age);
            *lock(&known[asked.key as usize]) = Some(Known {
                // From the beginning: the age was told at some later moment, and a stall may have come between.
                until_us: asked.began_us + us(left),
                changes: asked.changes,
            });
        }
    }

    /// A get has ended with an error. A refresh may, also where memory could answer.
    pub(crate) fn failed<E>(&self, asked: &Asked, error: &CacheError<E>, is_refresh: bool) {
        self.answers.fetch_add(1, SeqCst);
        let kind = kind_of(error);
        *lock(&self.errors).entry(kind).or_default() += 1;
        let wrong = |what: &str| self.wrong(format!("key {}: error {kind}, {what}: {asked:?}", asked.key));
        match error {
            CacheError::Source(_) | CacheError::Panicked(_) | CacheError::TimedOut(_) => {
                if !self.had_trouble(asked.began_us) {
                    wrong("though nothing was wrong with the source");
                }
            }
            CacheError::WaitedTooLong(_) => {}
            _ => wrong("which cannot be here"),
        }
        let changes = asked.changes;
        let could_answer = asked
            .known
            .is_some_and(|known| known.changes == changes && self.database.now_us() + us(AGE_SLACK) < known.until_us);
        if could_answer && !is_refresh && self.database.slot(asked.key).is_quiet_since(changes) {
            wrong("though memory could answer");
        }
    }

    /// How long the machine stood still.
    pub(crate) fn stalled(&self) -> Duration {
        self.stalls.so_far()
    }

    /// Whether the get ended by its deadline.
    pub(crate) fn in_time(&self, asked: &Asked, deadline: Duration) {
        let took = asked.began.elapsed();
        if took > deadline + LATE {
            self.late.fetch_add(1, SeqCst);
        }
        // The machine's own stalls are nobody's fault.
        if took > deadline + TOO_LATE + self.stalls.so_far().saturating_sub(asked.stalled) {
            self.wrong(format!(
                "key {}: {took:?}, where {deadline:?} was the deadline",
                asked.key
            ));
        }
    }

    /// Memory weighs so much, and may so much.
    pub(crate) fn weighed(&self, weight: u64, capacity: u64) {
        if weight > capacity {
            self.wrong(format!("memory weighs {weight}, where {capacity} is its capacity"));
        }
    }

    /// What came of it all.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            answers: self.answers.load(SeqCst),
            wrong: self.wrong.load(SeqCst),
            late: self.late.load(SeqCst),
            told: lock(&self.told).clone(),
            errors: lock(&self.errors).clone(),
        }
    }

    fn had_trouble(&self, began_us: u64) -> bool {
        self.database.had_trouble_since(began_us.saturating_sub(us(AFTERMATH)))
    }

    fn wrong(&self, what: String) {
        self.wrong.fetch_add(1, SeqCst);
        let mut told = lock(&self.told);
        if told.len() < TOLD_MAX {
            told.push(what);
        }
    }
}

/// What came of all gets of a cache, or of several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    pub(crate) answers: u64,
    pub(crate) wrong: u64,
    pub(crate) late: u64,
    /// The first that were wrong.
    pub(crate) told: Vec<String>,
    /// By their type.
    pub(crate) errors: BTreeMap<&'static str, u64>,
}

impl Verdict {
    /// Both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.answers += other.answers;
        self.wrong += other.wrong;
        self.late += other.late;
        self.told.extend(other.told);
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self
    }
}

fn kind_of<E>(error: &CacheError<E>) -> &'static str {
    match error {
        CacheError::Source(_) => "source",
        CacheError::Panicked(_) => "panicked",
        CacheError::WrongCount { .. } => "wrong count",
        CacheError::TimedOut(_) => "timed out",
        CacheError::WaitedTooLong(_) => "waited too long",
        CacheError::Overloaded => "overloaded",
        CacheError::Stopped => "stopped",
        _ => "another",
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 1;

    fn judge() -> (Arc<Database>, Judge) {
        let database = Arc::new(Database::new(10, 1));
        let judge = Judge::new(&database, true, false).unwrap();
        (database, judge)
    }

    fn told(judge: &Judge) -> String {
        let verdict = judge.verdict();
        assert_eq!(verdict.wrong as usize, verdict.told.len());
        verdict.told.join("; ")
    }

    const FRESH: Option<(State, Duration)> = Some((State::Fresh, Duration::ZERO));

    #[test]
    fn what_is_right_is_not_wrong() {
        let (database, judge) = judge();
        for _ in 0..20 {
            let old = database.read(KEY);
            let asked = judge.asked(KEY);
            let version = database.write(KEY);
            judge.answered(&asked, old.as_ref(), FRESH);
            judge.answered(&judge.asked(KEY), database.read(KEY).as_ref(), None);
            database.slot(KEY).acknowledge(version);
        }
        let patience = CacheError::<()>::WaitedTooLong(Duration::ZERO);
        judge.failed(&judge.asked(2), &patience, false);
        judge.in_time(&judge.asked(2), Duration::ZERO);
        judge.weighed(10, 10);
        assert_eq!(told(&judge), "");
        let verdict = judge.verdict();
        assert_eq!((verdict.answers, verdict.late), (41, 0));
        assert_eq!(verdict.errors["waited too long"], 1);
    }

    #[test]
    fn each_wrong_answer_is_seen() {
        let see = |answer: &dyn Fn(&Database, &Judge)| {
            let (database, judge) = judge();
            answer(&database, &judge);
            told(&judge)
        };
        let other = see(&|database, judge| judge.answered(&judge.asked(KEY), database.read(2).as_ref(), None));
        assert!(other.contains("not its row"), "{other}");
        let old = see(&|database, judge| {
            let row = database.read(KEY);
            database.slot(KEY).acknowledge(database.write(KEY));
            judge.answered(&judge.asked(KEY), row.as_ref(), None);
        });
        assert!(old.contains("older than acknowledged"), "{old}");
        let refreshed = see(&|database, judge| {
            let row = database.read(KEY);
            database.write(KEY);
            judge.answered(&judge.asked_to_refresh(KEY), row.as_ref(), None);
        });
        assert!(refreshed.contains("older than acknowledged"), "{refreshed}");
        let missing = see(&|_, judge| judge.answered(&judge.asked(KEY), None, None));
        assert!(missing.contains("never was since"), "{missing}");
        let present = see(&|database, judge| {
            let row = database.read(KEY);
            while database.read(KEY).is_some() {
                database.slot(KEY).acknowledge(database.write(KEY));
            }
            judge.answered(&judge.asked(KEY), row.as_ref(), None);
        });
        assert!(present.contains("older than acknowledged"), "{present}");
        let unwritten = see(&|_, judge| {
            let later = Database::new(10, 1);
            later.write(KEY);
            judge.answered(&judge.asked(KEY), later.read(KEY).as_ref(), None);
        });
        assert!(unwritten.contains("never written"), "{unwritten}");
        let heavy = see(&|_, judge| judge.weighed(11, 10));
        assert!(heavy.contains("weighs 11"), "{heavy}");
    }

    #[test]
    fn an_answer_is_wrong_when_it_is_too_old_or_too_late() {
        let (database, judge) = judge();
        let row = database.read(KEY);
        let later_by = |later: Duration| Asked {
            began_us: database.now_us() + us(later),
            ..judge.asked(KEY)
        };
        let served = FRESH_FOR + STALE_FOR + AGE_SLACK;
        judge.answered(&later_by(served - SOFT_TIMEOUT), row.as_ref(), FRESH);
        judge.answered(&later_by(served + RESCUES_FOR - SOFT_TIMEOUT), row.as_ref(), None);
        assert_eq!(told(&judge), "");
        judge.answered(&later_by(served + SOFT_TIMEOUT), row.as_ref(), FRESH);
        assert!(told(&judge).contains("too old"));
        judge.answered(
            &judge.asked(KEY),
            row.as_ref(),
            Some((State::Fresh, served + SOFT_TIMEOUT)),
        );
        assert!(told(&judge).contains("by its own word"));
        while database.write(2) % 5 != 1 {}
        judge.answered(
            &Asked {
                key: 2,
                ..later_by(served + SOFT_TIMEOUT)
            },
            None,
            FRESH,
        );
        assert!(told(&judge).contains("missing too long ago"));

        let asked_before = |before: Duration| Asked {
            began: Instant::now().checked_sub(before).unwrap(),
            ..judge.asked(KEY)
        };
        judge.in_time(&asked_before(FETCH_TIMEOUT), FETCH_TIMEOUT);
        judge.in_time(&asked_before(FETCH_TIMEOUT + LATE), FETCH_TIMEOUT);
        assert_eq!((judge.verdict().wrong, judge.verdict().late), (3, 1));
        judge.in_time(&asked_before(FETCH_TIMEOUT + TOO_LATE), FETCH_TIMEOUT);
        assert_eq!((judge.verdict().wrong, judge.verdict().late), (4, 2));
    }

    #[tokio::test]
    async fn an_error_or_a_rescue_needs_a_reason() {
        let (database, judge) = judge();
        let row = database.read(KEY);
        let error = CacheError::Source(Arc::new(()));
        judge.failed(&judge.asked(2), &error, false);
        assert!(told(&judge).contains("nothing was wrong with the source"));
        judge.answered(&judge.asked(KEY), row.as_ref(), Some((State::Rescued, Duration::ZERO)));
        assert!(told(&judge).contains("rescued from nothing"));
        judge.failed(&judge.asked(3), &CacheError::<()>::Stopped, false);
        assert!(told(&judge).contains("cannot be here"));

        database.set_fault(super::super::database::Fault::Fails);
        while database.fetch(&[KEY]).await.is_ok() {}
        let before = judge.verdict().wrong;
        judge.failed(&judge.asked(2), &error, false);
        judge.answered(&judge.asked(KEY), row.as_ref(), Some((State::Rescued, Duration::ZERO)));
        assert_eq!(judge.verdict().wrong, before);

        // Memory has just answered, and nobody has changed the key.
        judge.failed(&judge.asked(KEY), &error, true);
        assert_eq!(judge.verdict().wrong, before);
        judge.failed(&judge.asked(KEY), &error, false);
        assert!(told(&judge).contains("memory could answer"));
        let changed = judge.asked(KEY);
        database.slot(KEY).change_begins();
        judge.failed(&changed, &error, false);
        database.slot(KEY).change_returned();
        judge.failed(&judge.asked(KEY), &error, false);
        assert_eq!(judge.verdict().wrong, before + 1);
    }
}
