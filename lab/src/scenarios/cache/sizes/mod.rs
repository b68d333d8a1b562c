//! Caches of ten thousand to ten million entries: what gets and inserts take by the number of entries, and the longest that one insert
//! took.
//!
//! Promises: every system is filled with the same keys in the same order, each has room for as many entries as are put in, and every
//! value that is got is checked. Keys are u64, values too: what is measured is the cache, and not what it is given. Gets are of keys drawn
//! uniformly, which is hardest on the processor's caches. Knows which systems and sizes there are; how each is spoken to is in `systems`.

mod systems;

use std::time::{Duration, Instant};

use super::peers::{MOKA, QUICK_CACHE};
use crate::allocation::Allocated;
use crate::failure::Failure;
use crate::goal::{Beside, Goal, Key};
use crate::judged::Wanted;
use crate::measurement::Reading;
use crate::scenario::{FOREBAY, Stage, Trial};
use systems::{Filled, Forebay, Moka, QuickCache};

const SIZES: [(&str, u64); 4] = [
    ("10,000 of u64 by u64", 10_000),
    ("100,000 of u64 by u64", 100_000),
    ("1,000,000 of u64 by u64", 1_000_000),
    ("10,000,000 of u64 by u64", 10_000_000),
];
/// In a run that is only to show that it works.
const ENTRIES_MAX_OF_A_TINY_RUN: u64 = 20_000;

const GETS: &str = "gets";
const FILLING: &str = "inserts, filling";
const EVICTING: &str = "inserts, evicting";
/// Of both kinds.
const WORST: &str = "worst insert";
/// With key and value.
const BYTES: &str = "bytes";
const HELD: &str = "held";

/// Between looks at the clock.
const AT_ONCE: u64 = 1_024;

/// What a reader should know who has not read the code.
pub(crate) fn about() -> String {
    "Sizes: one thread puts as many keys into an empty cache as that has room for, gets keys drawn uniformly, and puts in new ones, for each \
     of\nwhich an old one must go. The worst insert is of a second cache that is filled and evicted from with the clock read at each insert; \
     what the\nprocessor was taken away for is in it, so look at its least over the rounds. Bytes: what the heap has kept, key and value \
     included,\nan entry that is held."
        .to_owned()
}

/// Everything that takes part.
pub(crate) fn trials() -> Vec<Box<dyn Trial>> {
    let mut trials: Vec<Box<dyn Trial>> = Vec::new();
    for (case, entries) in SIZES {
        let measured: [(&str, Measured); 3] = [
            (QUICK_CACHE, measure::<QuickCache>),
            (MOKA, measure::<Moka>),
            (FOREBAY, measure::<Forebay>),
        ];
        for (system, measure) in measured {
            trials.push(Box::new(SizeTrial {
                system,
                case,
                entries,
                measure,
            }));
        }
    }
    trials
}

/// What is hoped for, at every size.
pub(crate) fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for (case, _) in SIZES {
        for (metric, times) in [(GETS, 0.9), (FILLING, 0.8), (EVICTING, 0.8)] {
            goals.push(Goal {
                text: format!("{case}: {metric} ÷ {QUICK_CACHE}"),
                metric,
                ours: Key::new(FOREBAY, case),
                beside: Beside::Ratio(vec![Key::new(QUICK_CACHE, case)]),
                wanted: Wanted::AtLeast(times),
            });
        }
        goals.push(Goal {
            text: format!("{case}: {WORST}, ms"),
            metric: WORST,
            ours: Key::new(FOREBAY, case),
            beside: Beside::Nothing,
            wanted: Wanted::AtMost(1.0),
        });
    }
    goals
}

type Measured = fn(u64, Duration) -> Result<Vec<Reading>, Failure>;

struct SizeTrial {
    system: &'static str,
    case: &'static str,
    entries: u64,
    measure: Measured,
}

impl Trial for SizeTrial {
    fn system(&self) -> &str {
        self.system
    }

    fn case(&self) -> &str {
        self.case
    }

    fn measure(&mut self, stage: &Stage<'_>) -> Result<Vec<Reading>, Failure> {
        let runtime = crate::closed_loop::two_workers()?;
        let _inside = runtime.enter();
        let entries = if stage.effort.meaningful {
            self.entries
        } else {
            self.entries.min(ENTRIES_MAX_OF_A_TINY_RUN)
        };
        (self.measure)(entries, stage.effort.duration / 3)
    }
}

/// Keys that are not neighbours, each once.
fn key_of(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Never the key itself.
fn value_of(key: u64) -> u64 {
    !key
}

fn measure<C: Filled>(entries: u64, duration: Duration) -> Result<Vec<Reading>, Failure> {
    let ((cache, filling), allocated) = Allocated::during(|| {
        let cache = C::with_room_for(entries);
        let filling = rate(entries, None, |number| {
            let key = key_of(number);
            cache.put(key, value_of(key));
        });
        cache.settle();
        (cache, filling)
    });
    let held = (0..entries)
        .filter(|&number| cache.value(key_of(number)).is_some())
        .count() as f64;
    if held == 0.0 {
        return Err(Failure::Wrong("nothing is held".to_owned()));
    }
    let mut dice = 1_u64;
    let mut wrong = None;
    let gets = rate(u64::MAX, Some(duration), |_| {
        // Xorshift (Marsaglia, 2003).
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let key = key_of(((u128::from(dice) * u128::from(entries)) >> 64) as u64);
        match cache.value(key) {
            Some(value) if value != value_of(key) => wrong = Some((key, value)),
            _ => {}
        }
    });
    if let Some((key, value)) = wrong {
        return Err(Failure::Wrong(format!("{key} was answered with {value}")));
    }
    let evicting = rate(u64::MAX, Some(duration), |number| {
        let key = key_of(entries + number);
        cache.put(key, value_of(key));
    });
    drop(cache);
    Ok(vec![
        Reading::new(GETS, "gets/s", gets),
        Reading::new(FILLING, "inserts/s", filling),
        Reading::new(EVICTING, "inserts/s", evicting),
        Reading::new(WORST, "ms", worst_ms::<C>(entries)),
        Reading::new(BYTES, "bytes/entry", allocated.bytes_kept() as f64 / held),
        Reading::new(HELD, "%", held / entries as f64 * 100.0),
    ])
}

/// How many a second: as many as there are, or until the time is over.
fn rate(most: u64, duration: Option<Duration>, mut each: impl FnMut(u64)) -> f64 {
    let begun = Instant::now();
    let mut done = 0;
    while done < most {
        let until = most.min(done + AT_ONCE);
        (done..until).for_each(&mut each);
        done = until;
        if duration.is_some_and(|duration| begun.elapsed() >= duration) {
            break;
        }
    }
    done as f64 / begun.elapsed().as_secs_f64()
}

/// The longest insert of those that fill a cache and of half as many that evict.
fn worst_ms<C: Filled>(entries: u64) -> f64 {
    let cache = C::with_room_for(entries);
    let mut before = Instant::now();
    let mut worst = Duration::ZERO;
    for number in 0..entries + entries / 2 {
        cache.put(key_of(number), value_of(key_of(number)));
        let now = Instant::now();
        worst = worst.max(now.duration_since(before));
        before = now;
    }
    worst.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_system_is_measured() {
        for measure in [measure::<QuickCache>, measure::<Moka>, measure::<Forebay>] {
            let readings = measure(5_000, Duration::from_millis(2)).unwrap();
            assert!(readings.iter().all(|reading| reading.value > 0.0), "{readings:?}");
            let held = readings.iter().find(|reading| reading.metric == HELD).unwrap();
            assert!((80.0..=100.0).contains(&held.value), "{readings:?}");
        }
    }

    #[test]
    fn a_rate_is_of_all_or_of_a_time() {
        let mut seen = 0;
        assert!(rate(3_000, None, |number| seen += u64::from(number < 3_000)) > 0.0);
        assert_eq!(seen, 3_000);
        let mut seen = 0;
        rate(u64::MAX, Some(Duration::ZERO), |_| seen += 1);
        assert_eq!(seen, AT_ONCE);
    }

    #[tokio::test]
    async fn a_wrong_value_is_a_failure() {
        struct Confused;
        impl Filled for Confused {
            fn with_room_for(_: u64) -> Self {
                Self
            }

            fn put(&self, _: u64, _: u64) {}

            fn value(&self, key: u64) -> Option<u64> {
                Some(key)
            }
        }
        let error = measure::<Confused>(100, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("was answered with"), "{error}");
    }
}
