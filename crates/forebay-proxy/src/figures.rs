//! Figures: how often something was asked, how often memory had the answer, and how long databases were at it, by the names of many things.
//!
//! Promises: what is counted is in the figures of one name, or in those of all others, and never in both. Those of the others never shrink; those of a name
//! begin anew where it was not shown for a while. No more than [`SHOWN_MAX`] names are shown. A name is kept as long as somebody
//! [holds](Top::of) its figures; of the rest so many that one which is asked for more often than once in [`KNOWN_MAX`]` / 2` times stays.
//!
//! Which ones go is told as by Misra and Gries, "Finding Repeated Elements" (1982), with the step of Anderson and others, "A High-Performance Algorithm
//! for Identifying Frequent Items in Data Streams" (2017): where there is no room, the weight in the middle is taken off all of them, and who
//! has none left goes. So a name that is new finds room, and one that was asked for long ago does not stay for ever.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::{AddAssign, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

/// So many names are shown.
const SHOWN_MAX: usize = 200;
/// About so many are known that nobody holds.
const KNOWN_MAX: usize = 2_000;

/// What was counted of something until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// How often it was asked.
    pub asked: u64,
    /// How often of these memory had the answer.
    pub remembered: u64,
    /// How long databases were at it, also for nobody, as where what is stale is asked again.
    pub at_database: Duration,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.remembered += other.remembered;
        self.at_database += other.at_database;
    }
}

impl Sub for Figures {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            asked: self.asked - before.asked,
            remembered: self.remembered - before.remembered,
            at_database: self.at_database - before.at_database,
        }
    }
}

/// What is counted of one name.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// How often it was asked, and memory had no answer.
    missed: AtomicU64,
    remembered: AtomicU64,
    database_ns: AtomicU64,
}

impl Counting {
    /// It was asked, and memory had no answer.
    pub(crate) fn was_missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// It was asked, and memory had the answer.
    pub(crate) fn was_remembered(&self) {
        self.remembered.fetch_add(1, Ordering::Relaxed);
    }

    /// A database was at it for so long.
    pub(crate) fn was_at_database(&self, elapsed: Duration) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.database_ns.fetch_add(elapsed_ns, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> Figures {
        let remembered = self.remembered.load(Ordering::Relaxed);
        Figures {
            asked: remembered + self.missed.load(Ordering::Relaxed),
            remembered,
            at_database: Duration::from_nanos(self.database_ns.load(Ordering::Relaxed)),
        }
    }
}

/// What is counted for all databases.
#[derive(Debug, Default)]
pub(crate) struct Tops {
    /// By the texts of statements, as they are shown.
    pub(crate) statements: Arc<Top>,
    /// By who asks them.
    pub(crate) callers: Top,
}

/// The figures of those that are asked for most, and of all others together.
#[derive(Debug, Default)]
pub(crate) struct Top(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Box<str>, Known, foldhash::fast::RandomState>,
    others: Figures,
    /// There is no room for more.
    full_at: usize,
}

#[derive(Debug, Default)]
struct Known {
    counting: Arc<Counting>,
    /// So much of it is among the others' already.
    given: Figures,
    /// So much was taken off its weight.
    off: u64,
}

impl Known {
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.counting) > 1
    }

    fn weight(&self) -> u64 {
        self.counting.figures().asked.saturating_sub(self.off)
    }

    /// What is not among the others' yet; it is from now on.
    fn give(&mut self) -> Figures {
        let now = self.counting.figures();
        now - std::mem::replace(&mut self.given, now)
    }
}

impl Table {
    /// Half of those that nobody holds go, or more.
    fn make_room(&mut self) {
        let free = self.known.values().filter(|known| !known.is_held());
        let mut weights: Vec<u64> = free.map(Known::weight).collect();
        if !weights.is_empty() {
            let middle = weights.len() / 2;
            let (_, middle, _) = weights.select_nth_unstable(middle);
            let others = &mut self.others;
            self.known.retain(|_, known| {
                known.off += *middle;
                // Nobody gets hold of it meanwhile: that takes the table.
                let stays = known.is_held() || known.weight() > 0;
                if !stays {
                    *others += known.give();
                }
                stays
            });
        }
        self.full_at = (2 * self.known.len()).max(KNOWN_MAX);
    }
}

impl Top {
    /// What is counted of this name. As long as it is held nothing of it is lost.
    pub(crate) fn of(&self, name: &str) -> Arc<Counting> {
        if let Some(known) = self.0.read().known.get(name) {
            return Arc::clone(&known.counting);
        }
        let mut table = self.0.write();
        if table.known.len() >= table.full_at && !table.known.contains_key(name) {
            table.make_room();
        }
        let known = table.known.entry(name.into()).or_default();
        Arc::clone(&known.counting)
    }

    /// The names that were asked for most, and what was counted of all others.
    pub(crate) fn shown(&self) -> (Vec<(String, Figures)>, Figures) {
        let mut table = self.0.write();
        let Table { known, others, .. } = &mut *table;
        let mut all: Vec<_> = known.iter_mut().collect();
        if all.len() > SHOWN_MAX {
            all.sort_by_cached_key(|(name, known)| (Reverse(known.counting.figures().asked), String::from(&***name)));
            for (_, known) in all.drain(SHOWN_MAX..) {
                *others += known.give();
            }
        }
        let shown = all
            .into_iter()
            .map(|(name, known)| (String::from(&**name), known.counting.figures() - known.given));
        (shown.collect(), *others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each was asked as it is shown, and all others.
    fn asked(top: &Top) -> (HashMap<String, u64>, u64) {
        let (shown, others) = top.shown();
        let shown = shown.into_iter().map(|(name, figures)| (name, figures.asked));
        (shown.collect(), others.asked)
    }

    fn ask(top: &Top, name: &str, times: usize) {
        for _ in 0..times {
            top.of(name).was_missed();
        }
    }

    #[test]
    fn each_thing_is_counted_once_and_those_asked_for_most_are_shown() {
        let top = Top::default();
        for number in 0..SHOWN_MAX {
            ask(&top, &format!("often {number}"), 2);
        }
        top.of("often 0").was_remembered();
        top.of("often 0").was_at_database(Duration::from_millis(3));
        let (shown, others) = top.shown();
        assert_eq!((shown.len(), others), (SHOWN_MAX, Figures::default()));
        let (_, first) = shown.iter().find(|(name, _)| name == "often 0").unwrap();
        let wanted = Figures {
            asked: 3,
            remembered: 1,
            at_database: Duration::from_millis(3),
        };
        assert_eq!(*first, wanted);
        ask(&top, "once", 1);
        let (shown, others) = asked(&top);
        assert_eq!((shown.len(), shown.get("once"), others), (SHOWN_MAX, None, 1));
        // What was among the others' stays there.
        ask(&top, "once", 5);
        let (shown, others) = asked(&top);
        let out: Vec<usize> = (0..SHOWN_MAX)
            .filter(|number| !shown.contains_key(&format!("often {number}")))
            .collect();
        assert_eq!((shown["once"], others, out.len()), (5, 1 + 2, 1));
        let total: u64 = shown.values().sum();
        assert_eq!(total + others, 2 * SHOWN_MAX as u64 + 1 + 6);
        // It comes again, and begins anew.
        let again = format!("often {}", out[0]);
        ask(&top, &again, 6);
        let (shown, others) = asked(&top);
        assert_eq!((shown[&again], others), (6, 1 + 2 + 2));
    }

    /// Names without an end, among which one comes more often.
    #[test]
    fn names_without_an_end_take_no_more_room_and_who_is_asked_for_often_stays() {
        let top = Top::default();
        ask(&top, "of before", 10);
        let held = top.of("held");
        let mut before = 0;
        for number in 0..20 * KNOWN_MAX {
            ask(&top, &format!("rare {number}"), 1);
            if number % 100 == 0 {
                ask(&top, "steady", 1);
            }
            if number % 999 == 0 {
                let (shown, others) = asked(&top);
                assert!(others >= before && shown.len() <= SHOWN_MAX);
                before = others;
            }
        }
        assert!(top.0.read().known.len() <= KNOWN_MAX);
        let (shown, others) = asked(&top);
        let all = 10 + 20 * KNOWN_MAX as u64 + 20 * KNOWN_MAX as u64 / 100;
        assert_eq!(shown.values().sum::<u64>() + others, all);
        assert!(
            shown["steady"] > 0 && shown.values().all(|asked| *asked <= shown["steady"]),
            "{shown:?}"
        );
        assert!(!top.0.read().known.contains_key("of before"), "it was long ago");
        // It was there all the while.
        held.was_missed();
        let (shown, others) = asked(&top);
        assert_eq!(shown.values().sum::<u64>() + others, all + 1);
    }
}
