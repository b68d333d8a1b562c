//! Covered: the tables of which every commit is told by the stream.
//!
//! Promises: a name is covered only if all tables of that name are published, and all transactions have ended that may have changed one of them
//! before it was: what those commit is told in part, or not at all. By which key rows are told is known by a [number](Covered::keys_number) that is another
//! one whenever any key is. Names that somebody has asked for are wanted; there is an end to them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::memory::key::Key;

/// So many names are wanted at the most.
const WANTED_MAX: usize = 10_000;

/// Names of tables, without their schemas.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    published: HashMap<Arc<str>, Published, foldhash::fast::RandomState>,
    /// Why others are not that were looked for, in words that follow the name.
    unpublished: HashMap<Arc<str>, String, foldhash::fast::RandomState>,
    keys_number: u64,
    wanted: BTreeSet<Arc<str>>,
    has_new: bool,
}

/// How the catalog has it that the tables of one name are published.
#[derive(Debug, Clone, Default)]
pub(crate) struct Publishing {
    /// Another one whenever one of them was published anew.
    pub(crate) since: String,
    pub(crate) key: Option<Key>,
}

/// How the tables of one name are published.
#[derive(Debug, Clone)]
struct Published {
    since: String,
    /// The number that transactions are to have left behind; none where they have.
    waits_for: Option<u64>,
    key: Option<Arc<Key>>,
}

impl Covered {
    /// The first of these that is not covered.
    pub(crate) fn first_uncovered<'a>(&self, tables: &'a [Arc<str>]) -> Option<&'a Arc<str>> {
        let is_covered = |table| self.published.get(table).is_some_and(|table| table.waits_for.is_none());
        tables.iter().find(|table| !is_covered(*table))
    }

    /// Why the first of these that is not covered is not; none where all are.
    pub(crate) fn why_not(&self, tables: &[Arc<str>]) -> Option<String> {
        let table = self.first_uncovered(tables)?;
        let why = match (self.published.contains_key(table), self.unpublished.get(table)) {
            (true, _) => "is published, and not relied on before all transactions have ended that ran when it was",
            (false, Some(why)) => why,
            (false, None) => "is not published yet",
        };
        Some(format!("the table {table} {why}"))
    }

    /// Why these are not published, in words that follow the name.
    pub(crate) fn lacks(&mut self, why: impl IntoIterator<Item = (Arc<str>, String)>) {
        self.unpublished = why.into_iter().collect();
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

    /// These are published as this snapshot has it, and no others, with these keys; those of them that have another key than before. What was published anew, though it
    /// was before, may not have been in between.
    pub(crate) fn learn(
        &mut self,
        names: impl IntoIterator<Item = (Arc<str>, Publishing)>,
        snapshot: &Snapshot,
    ) -> Vec<Arc<str>> {
        let mut before = std::mem::take(&mut self.published);
        let mut others = Vec::new();
        for (name, Publishing { since, key }) in names {
            let known = before.remove(&name);
            let is_still = known.as_ref().filter(|known| known.since == since);
            let waits_for = is_still.map_or(Some(snapshot.next()), |known| known.waits_for);
            let of_before = known.and_then(|known| known.key);
            let key = match of_before {
                Some(before) if key.as_ref() == Some(&*before) => Some(before),
                before => {
                    if before.is_some() || key.is_some() {
                        others.push(Arc::clone(&name));
                    }
                    key.map(Arc::new)
                }
            };
            self.published.insert(name, Published { since, waits_for, key });
        }
        if !others.is_empty() || before.values().any(|gone| gone.key.is_some()) {
            self.keys_number += 1;
        }
        others
    }

    /// By what its rows are told.
    pub(crate) fn key(&self, table: &str) -> Option<&Arc<Key>> {
        self.published.get(table)?.key.as_ref()
    }

    /// Tells what is known of keys from what was known before.
    pub(crate) fn keys_number(&self) -> u64 {
        self.keys_number
    }

    /// Transactions have ended.
    pub(crate) fn seen_by(&mut self, snapshot: &Snapshot) {
        for table in self.published.values_mut() {
            if table.waits_for.is_some_and(|number| snapshot.has_left_behind(number)) {
                table.waits_for = None;
            }
        }
    }

    /// How many are.
    pub(crate) fn count(&self) -> usize {
        self.published
            .values()
            .filter(|table| table.waits_for.is_none())
            .count()
    }

    /// Nothing is covered any more; what is wanted still is.
    pub(crate) fn clear(&mut self) {
        self.published.clear();
        self.unpublished.clear();
        self.keys_number += 1;
        self.has_new = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|&name| name.into()).collect()
    }

    fn without_keys(names: &[Arc<str>]) -> impl Iterator<Item = (Arc<str>, Publishing)> {
        names.iter().map(|name| (Arc::clone(name), Publishing::default()))
    }

    fn by(key: Option<Key>) -> Publishing {
        let since = String::new();
        Publishing { since, key }
    }

    #[test]
    fn what_was_published_anew_waits_anew() {
        let mut covered = Covered::default();
        let mut learn = |since: &str, seen: &str| {
            let since = since.to_owned();
            let snapshot = Snapshot::parse(seen).unwrap();
            covered.learn([("a".into(), Publishing { since, key: None })], &snapshot);
            covered.seen_by(&Snapshot::parse(seen).unwrap());
            covered.count()
        };
        assert_eq!(learn("1", "5:9:5"), 0);
        assert_eq!(learn("1", "9:9:"), 1, "all have ended that ran");
        assert_eq!(learn("1", "9:12:9"), 1);
        assert_eq!(learn("2", "9:12:9"), 0, "what 9 has changed in between was not told");
        assert_eq!(learn("2", "12:12:"), 1);
    }

    #[test]
    fn a_table_that_has_another_key_is_told() {
        let mut covered = Covered::default();
        let snapshot = Snapshot::parse("9:9:").unwrap();
        let mut number = covered.keys_number();
        for (key, is_another) in [
            (None, false),
            (Some("23 id"), true),
            (Some("23 id"), false),
            (Some("20 id"), true),
            (None, true),
        ] {
            let key = key.and_then(Key::parse);
            let others = covered.learn([("a".into(), by(key.clone())), ("b".into(), by(None))], &snapshot);
            assert_eq!(others, names(if is_another { &["a"] } else { &[] }));
            assert_eq!(covered.key("a").map(|key| (**key).clone()), key);
            assert_eq!(covered.keys_number() != number, is_another, "{key:?}");
            number = covered.keys_number();
        }
        covered.learn([("a".into(), by(Key::parse("23 id")))], &snapshot);
        number = covered.keys_number();
        covered.learn([("b".into(), by(None))], &snapshot);
        assert_ne!(covered.keys_number(), number, "its table is gone");
        number = covered.keys_number();
        covered.clear();
        assert_ne!(covered.keys_number(), number);
    }

    #[test]
    fn what_is_published_is_covered_when_what_ran_before_has_ended() {
        let mut covered = Covered::default();
        let both = names(&["a", "b"]);
        assert_eq!(covered.first_uncovered(&both), Some(&both[0]));
        covered.learn(without_keys(&both[..1]), &Snapshot::parse("5:9:5,7").unwrap());
        for text in ["5:9:5,7", "7:12:7", "8:12:8"] {
            covered.seen_by(&Snapshot::parse(text).unwrap());
            assert_eq!(covered.first_uncovered(&both), Some(&both[0]), "{text}");
        }
        covered.seen_by(&Snapshot::parse("9:12:9").unwrap());
        assert_eq!(covered.first_uncovered(&both), Some(&both[1]));
        // What is learnt again is not waited for again, and what is gone is.
        covered.learn(without_keys(&both), &Snapshot::parse("9:12:9").unwrap());
        assert_eq!((covered.first_uncovered(&both), covered.count()), (Some(&both[1]), 1));
        covered.learn(without_keys(&both[1..]), &Snapshot::parse("12:12:").unwrap());
        covered.seen_by(&Snapshot::parse("12:12:").unwrap());
        assert_eq!(covered.first_uncovered(&both), Some(&both[0]));
        covered.clear();
        assert_eq!(covered.count(), 0);
    }

    #[test]
    fn of_each_that_is_not_covered_it_is_told_why() {
        let mut covered = Covered::default();
        let both = names(&["a", "b"]);
        let why = |covered: &Covered, at: usize| covered.why_not(&both[at..=at]);
        assert!(why(&covered, 0).is_some_and(|why| why == "the table a is not published yet"));
        covered.learn(without_keys(&both[..1]), &Snapshot::parse("5:9:5,7").unwrap());
        covered.lacks([("b".into(), "has no replica identity".to_owned())]);
        assert!(why(&covered, 0).is_some_and(|why| why.contains("before all transactions have ended")));
        assert_eq!(why(&covered, 1).as_deref(), Some("the table b has no replica identity"));
        covered.seen_by(&Snapshot::parse("9:9:").unwrap());
        assert_eq!(why(&covered, 0), None);
        covered.lacks([]);
        assert!(why(&covered, 1).is_some_and(|why| why.contains("not published yet")));
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
