//! Snapshot: which transactions a statement sees, as `pg_current_snapshot()` tells it.
//!
//! Promises: what is not told well is no snapshot. Transactions of a stream have the lower 32 bits of their numbers alone: one is taken for the
//! nearest of those, which it is as long as it is less than 2^31 transactions away.
//!
//! The form is that of PostgreSQL's documentation, "Transaction ID and Snapshot Information Functions": `xmin:xmax:xip_list`.

/// Which transactions are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// All before it have ended.
    oldest: u64,
    /// None from it on has ended.
    next: u64,
    /// Of those between, the ones that have not ended; in order.
    running: Vec<u64>,
}

impl Snapshot {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (oldest, next, list) = (parts.next()?, parts.next()?, parts.next()?);
        let running = list.split(',').filter(|number| !number.is_empty());
        let mut running: Vec<u64> = running.map(|number| number.parse().ok()).collect::<Option<_>>()?;
        running.sort_unstable();
        parts.next().is_none().then_some(Self {
            oldest: oldest.parse().ok()?,
            next: next.parse().ok()?,
            running,
        })
    }

    /// Whether it sees what this transaction has done, which is known to be committed.
    pub(crate) fn sees(&self, transaction: u32) -> bool {
        let number = self.whole(transaction);
        number < self.next && self.running.binary_search(&number).is_err()
    }

    /// All transactions that have ended for this one ended before this number.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether all transactions before this number have ended.
    pub(crate) fn has_left_behind(&self, number: u64) -> bool {
        self.oldest >= number
    }

    /// The number with these lower bits that is nearest to the next.
    fn whole(&self, transaction: u32) -> u64 {
        let distance = transaction.wrapping_sub(self.next as u32).cast_signed();
        self.next.wrapping_add_signed(distance.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_seen() {
        let snapshot = Snapshot::parse("10:20:10,14,15").unwrap();
        for number in 0..30 {
            let is_seen = number < 20 && ![10, 14, 15].contains(&number);
            assert_eq!(snapshot.sees(number), is_seen, "{number}");
        }
        assert!(snapshot.has_left_behind(10) && !snapshot.has_left_behind(11));
        assert!(Snapshot::parse("7:7:").unwrap().running.is_empty());
    }

    #[test]
    fn numbers_that_have_wrapped_are_the_nearest() {
        let turn = 1_u64 << 32;
        let snapshot = Snapshot::parse(&format!("{}:{}:{}", turn - 5, turn + 5, turn + 1)).unwrap();
        for (transaction, is_seen) in [
            (u32::MAX, true),
            (0, true),
            (1, false),
            (4, true),
            (5, false),
            (1 << 30, false),
        ] {
            assert_eq!(snapshot.sees(transaction), is_seen, "{transaction}");
        }
        let snapshot = Snapshot::parse(&format!("{0}:{0}:", turn - 5)).unwrap();
        assert!(!snapshot.sees(3), "of the next turn");
    }

    #[test]
    fn what_is_told_otherwise_is_none() {
        for text in ["", "1", "1:2", "1:2:3:4", "a:2:", "1:2:x", "1:2:3,,x", "-1:2:"] {
            assert_eq!(Snapshot::parse(text), None, "{text}");
        }
    }
}
