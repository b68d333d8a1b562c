//! Covered: the tables of which every commit is told by the stream.
//!
//! Promises: a name is covered only if all tables of that name are published, and all transactions have ended that may have changed one of them
//! before it was: what those commit is told in part, or not at all. Names that somebody has asked for are wanted; there is an end to them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::snapshot::Snapshot;

/// So many names are wanted at the most.
const WANTED_MAX: usize = 10_000;

/// Names of tables, without their schemas.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// What is published, and how: the number that transactions are to have left behind, or none where they have.
    published: HashMap<Arc<str>, Option<u64>, foldhash::fast::RandomState>,
    wanted: BTreeSet<Arc<str>>,
    has_new: bool,
}

impl Covered {
    /// The first of these that is not covered.
    pub(crate) fn first_uncovered<'a>(&self, tables: &'a [Arc<str>]) -> Option<&'a Arc<str>> {
        let is_covered = |table| matches!(self.published.get(table), Some(None));
        tables.iter().find(|table| !is_covered(*table))
    }

    /// Whether nothing would change if somebody asked for these.
    pub(crate) fn wants(&self, tables: &[Arc<str>]) -> bool {
        self.wanted.len() >= WANTED_MAX || tables.iter().all(|table| self.wanted.contains(table))
    }

    /// Somebody asks for these.
    pub(crate) fn want(&mut self, tables: &[Arc<str>]) {
        for table in tables {
            if self.wanted.len() < WANTED_MAX && !self.wanted.contains(table) {
                self.wanted.insert(Arc::clone(table));
                self.has_new = true;
            }
        }
    }

    /// What is wanted, if that is more than it was when this was asked last.
    pub(crate) fn wanted(&mut self) -> (Vec<Arc<str>>, bool) {
        (self.wanted.iter().cloned().collect(), std::mem::take(&mut self.has_new))
    }

    /// What is wanted is told as new once more.
    pub(crate) fn look_again(&mut self) {
        self.has_new = true;
    }

    /// These are published as this snapshot has it, and no others.
    pub(crate) fn learn(&mut self, names: impl IntoIterator<Item = Arc<str>>, snapshot: &Snapshot) {
        let before = std::mem::take(&mut self.published);
        let named = names.into_iter().map(|name| {
            let known = before.get(&name).copied();
            (name, known.unwrap_or(Some(snapshot.next())))
        });
        self.published = named.collect();
    }

    /// Transactions have ended.
    pub(crate) fn seen_by(&mut self, snapshot: &Snapshot) {
        for waits_for in self.published.values_mut() {
            if waits_for.is_some_and(|number| snapshot.has_left_behind(number)) {
                *waits_for = None;
            }
        }
    }

    /// How many are.
    pub(crate) fn count(&self) -> usize {
        self.published.values().filter(|waits_for| waits_for.is_none()).count()
    }

    /// Nothing is covered any more; what is wanted still is.
    pub(crate) fn clear(&mut self) {
        self.published.clear();
        self.has_new = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn what_is_published_is_covered_when_what_ran_before_has_ended() {
        let mut covered = Covered::default();
        let both = names(&["a", "b"]);
        assert_eq!(covered.first_uncovered(&both), Some(&both[0]));
        covered.learn(both[..1].iter().cloned(), &Snapshot::parse("5:9:5,7").unwrap());
        for text in ["5:9:5,7", "7:12:7", "8:12:8"] {
            covered.seen_by(&Snapshot::parse(text).unwrap());
            assert_eq!(covered.first_uncovered(&both), Some(&both[0]), "{text}");
        }
        covered.seen_by(&Snapshot::parse("9:12:9").unwrap());
        assert_eq!(covered.first_uncovered(&both), Some(&both[1]));
        // What is learnt again is not waited for again, and what is gone is.
        covered.learn(both.iter().cloned(), &Snapshot::parse("9:12:9").unwrap());
        assert_eq!((covered.first_uncovered(&both), covered.count()), (Some(&both[1]), 1));
        covered.learn(both[1..].iter().cloned(), &Snapshot::parse("12:12:").unwrap());
        covered.seen_by(&Snapshot::parse("12:12:").unwrap());
        assert_eq!(covered.first_uncovered(&both), Some(&both[0]));
        covered.clear();
        assert_eq!(covered.count(), 0);
    }

    #[test]
    fn what_is_wanted_is_told_once_as_new() {
        let mut covered = Covered::default();
        covered.want(&names(&["b", "a"]));
        assert_eq!(covered.wanted(), (names(&["a", "b"]), true));
        covered.want(&names(&["a"]));
        assert_eq!(covered.wanted(), (names(&["a", "b"]), false));
        covered.clear();
        assert!(covered.wanted().1, "all of it is to be looked for again");
        let many: Vec<Arc<str>> = (0..WANTED_MAX + 5).map(|number| number.to_string().into()).collect();
        covered.want(&many);
        assert_eq!(covered.wanted().0.len(), WANTED_MAX);
    }
}
