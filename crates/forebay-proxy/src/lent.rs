//! Lent: which server connection it was that a client had, and whether anybody has had it since.

use std::sync::atomic::{AtomicU64, Ordering};

/// A connection, and how often it had been lent when it was had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lent {
    connection: u64,
    times: u64,
}

impl Lent {
    /// A connection that is new.
    pub(crate) fn first() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            connection: LAST.fetch_add(1, Ordering::Relaxed),
            times: 0,
        }
    }

    /// Whether nobody has had it.
    pub(crate) fn is_first(self) -> bool {
        self.times == 0
    }

    /// Whether nobody has had it between this and that.
    pub(crate) fn follows(self, last: Option<Self>) -> bool {
        last.is_some_and(|last| self.connection == last.connection && self.times == last.times + 1)
    }

    /// Whether it is the same connection, whoever has had it.
    pub(crate) fn is_of(self, last: Option<Self>) -> bool {
        last.is_some_and(|last| self.connection == last.connection)
    }

    /// It was lent to nobody: whoever had it leaves nothing that a client could tell from what was there before.
    pub(crate) fn not_at_all(&mut self) {
        // One that was made for it was lent to nobody before.
        self.times = self.times.saturating_sub(1);
    }

    /// It is lent once more.
    pub(crate) fn again(&mut self) {
        self.times += 1;
    }
}
