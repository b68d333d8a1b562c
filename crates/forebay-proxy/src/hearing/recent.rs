//! Recent: commits that the stream has told, and that may not be seen by everybody yet.
//!
//! A commit is in the log, and so in the stream, before new snapshots see it (`RecordTransactionCommit` comes before `ProcArrayEndTransaction` in
//! PostgreSQL's `xact.c`). So a question that is asked behind the telling may still be answered by what was before.
//!
//! Promises: who [begins](Recent::of) a question is given all commits of its tables that no [snapshot](Snapshot) has been known to see by then. What
//! is told later is not among them: that is a change during the question.

use std::collections::HashMap;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::memory::does::Does;

/// So many are kept, of all tables together. It takes a snapshot now and then, which comes many times a second.
const KEPT_MAX: usize = 1 << 20;

/// Commits, by the tables that they have changed.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Those that may have changed anything have the empty name.
    by_table: HashMap<Arc<str>, Vec<u32>, foldhash::fast::RandomState>,
    count: usize,
}

/// There are more than can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Recent {
    /// A transaction that has done this is committed.
    pub(crate) fn add(&mut self, transaction: u32, does: &Does) -> Result<(), TooMany> {
        let tables: Vec<Arc<str>> = match does {
            Does::Nothing => vec![],
            Does::Changes(tables) => tables.iter().map(|changed| Arc::clone(&changed.table)).collect(),
            Does::Anything => vec!["".into()],
        };
        self.count += tables.len();
        if self.count > KEPT_MAX {
            return Err(TooMany);
        }
        for table in tables {
            self.by_table.entry(table).or_default().push(transaction);
        }
        Ok(())
    }

    /// Those of these tables.
    pub(crate) fn of(&self, tables: &[Arc<str>]) -> Vec<u32> {
        let of_table = |table: &str| self.by_table.get(table).map_or(&[][..], |commits| commits);
        let tables = tables.iter().map(|table| &**table);
        tables.chain([""]).flat_map(of_table).copied().collect()
    }

    /// Every question that begins from now on sees what this snapshot sees.
    pub(crate) fn seen_by(&mut self, snapshot: &Snapshot) {
        self.by_table.retain(|_, commits| {
            commits.retain(|commit| !snapshot.sees(*commit));
            !commits.is_empty()
        });
        self.count = self.by_table.values().map(Vec::len).sum();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|&name| name.into()).collect()
    }

    fn changes(tables: &[&str]) -> Does {
        let mut all = Does::Nothing;
        tables.iter().for_each(|&table| all.add(Does::changes(table.into())));
        all
    }

    #[test]
    fn what_is_not_seen_by_everybody_is_given_to_who_begins() {
        let mut recent = Recent::default();
        recent.add(10, &changes(&["a", "b"])).unwrap();
        recent.add(11, &changes(&["b"])).unwrap();
        recent.add(12, &Does::Nothing).unwrap();
        assert_eq!(recent.of(&names(&["a"])), [10]);
        assert_eq!(recent.of(&names(&["b", "c"])), [10, 11]);
        recent.seen_by(&Snapshot::parse("10:12:10").unwrap());
        assert_eq!(recent.of(&names(&["a", "b"])), [10, 10]);
        recent.add(13, &Does::Anything).unwrap();
        assert_eq!(recent.of(&names(&["c"])), [13]);
        recent.seen_by(&Snapshot::parse("14:14:").unwrap());
        assert_eq!((recent.of(&names(&["a", "b"])), recent.count), (vec![], 0));
    }

    #[test]
    fn there_is_an_end_to_it() {
        let mut recent = Recent::default();
        let (one, two) = (changes(&["a"]), changes(&["a", "b"]));
        for number in 0..KEPT_MAX as u32 - 1 {
            recent.add(number, &one).unwrap();
        }
        assert_eq!(recent.add(0, &two), Err(TooMany));
    }
}
