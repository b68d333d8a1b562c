//! Ledger: what callers were told of the numbers they wrote, and whether it is the truth.

use forebay::write::{Outcome, WriteError};

use crate::{Place, Site};

pub(crate) type Answer = Result<Outcome, WriteError>;

/// What was told of each number.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) acknowledged: Vec<i64>,
    pub(crate) failed: Vec<(i64, WriteError)>,
    pub(crate) unknown: Vec<i64>,
}

impl Ledger {
    pub(crate) fn note(&mut self, n: i64, answer: Answer) {
        match answer {
            Ok(outcome) => {
                assert_eq!(outcome.rows_affected, 1, "{n}");
                self.acknowledged.push(n);
            }
            Err(WriteError::OutcomeUnknown { .. }) => self.unknown.push(n),
            Err(error) => self.failed.push((n, error)),
        }
    }

    /// That all were acknowledged.
    #[track_caller]
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        assert!(self.failed.is_empty() && self.unknown.is_empty(), "{self:?}");
        !self.acknowledged.is_empty()
    }

    /// That the table `t` holds what was told, and nothing twice.
    pub(crate) async fn holds<S: Site>(&self, place: &Place<S>) {
        let rows = place.read("SELECT n, COUNT(*) FROM t GROUP BY n").await;
        let mut there = Vec::new();
        for row in rows {
            let (n, count) = row.split_once('|').unwrap();
            assert_eq!(count, "1", "{n} was written {count} times");
            there.push(n.parse::<i64>().unwrap());
        }
        let lost: Vec<_> = self.acknowledged.iter().filter(|n| !there.contains(n)).collect();
        assert!(lost.is_empty(), "acknowledged and not there: {lost:?}");
        let told = |n: &i64| self.acknowledged.contains(n) || self.unknown.contains(n);
        let ghosts: Vec<_> = there.iter().filter(|n| !told(n)).collect();
        assert!(
            ghosts.is_empty(),
            "there, and told to have failed: {ghosts:?}, {:?}",
            self.failed
        );
    }
}

impl FromIterator<(i64, Answer)> for Ledger {
    fn from_iter<I: IntoIterator<Item = (i64, Answer)>>(told: I) -> Self {
        let mut ledger = Self::default();
        ledger.extend(told);
        ledger
    }
}

impl Extend<(i64, Answer)> for Ledger {
    fn extend<I: IntoIterator<Item = (i64, Answer)>>(&mut self, told: I) {
        for (n, answer) in told {
            self.note(n, answer);
        }
    }
}
