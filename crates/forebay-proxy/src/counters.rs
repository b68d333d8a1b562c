//! Counters: how much clients have asked, and what errors they were told.
//!
//! Promises: what is counted never shrinks, also when clients, pools and databases go.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_pg_wire::error::sqlstate;
use parking_lot::Mutex;

/// Since the start, of all clients.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    alone: AtomicU64,
    shared: AtomicU64,
    fetched: AtomicU64,
    remembered: AtomicU64,
    /// By SQLSTATE, of which only so many are told apart.
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

/// What was counted until now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
    /// Statements that went to the server by themselves: queries, and executions of what is prepared.
    pub alone: u64,
    /// Statements that others carried, or that joined others.
    pub shared: u64,
    /// Statements that were answered by what the database was asked for memory, once for all who wait for it.
    pub fetched: u64,
    /// Statements that were answered from memory.
    pub remembered: u64,
    /// Errors that clients were told, by SQLSTATE.
    pub errors: Vec<(&'static str, u64)>,
}

impl Counters {
    pub(crate) fn went_alone(&self) {
        self.alone.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn was_shared(&self) {
        self.shared.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn was_fetched(&self) {
        self.fetched.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn was_remembered(&self) {
        self.remembered.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was told an error of this SQLSTATE.
    pub(crate) fn told(&self, code: &str) {
        *self.errors.lock().entry(sqlstate::of_another_server(code)).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Counted {
        Counted {
            alone: self.alone.load(Ordering::Relaxed),
            shared: self.shared.load(Ordering::Relaxed),
            fetched: self.fetched.load(Ordering::Relaxed),
            remembered: self.remembered.load(Ordering::Relaxed),
            errors: self.errors.lock().iter().map(|(code, count)| (*code, *count)).collect(),
        }
    }
}

/// A figure that is the sum of what is kept of statements, and is forgotten with them: what was added to it is not.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    last: u64,
    total: u64,
}

impl Tally {
    /// The sum is this now. What was added and forgotten since it was last told is not seen.
    pub(crate) fn is_now(&mut self, sum: u64) {
        self.total += sum.saturating_sub(self.last);
        self.last = sum;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_never_shrinks() {
        let mut tally = Tally::default();
        for (sum, total) in [(3, 3), (5, 5), (1, 5), (4, 8), (0, 8)] {
            tally.is_now(sum);
            assert_eq!(tally.total(), total, "{sum}");
        }
    }

    #[test]
    fn errors_are_told_apart_by_code_and_what_is_none_is_internal() {
        let counters = Counters::default();
        for code in ["23505", "42601", "23505", "nonsense"] {
            counters.told(code);
        }
        assert_eq!(counters.counts().errors, [("23505", 2), ("42601", 1), ("XX000", 1)]);
    }
}
