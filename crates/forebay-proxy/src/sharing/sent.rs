//! Sent: when something was first sent, as those who wait for it see it.
//!
//! Promises: the first time holds, however often it is sent.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// When something was first sent, as those who wait for it see it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sent(Arc<OnceLock<Instant>>);

impl Sent {
    /// It is sent now. Sent again it is newer than is known, which harms nobody.
    pub(crate) fn now(&self) {
        self.0.get_or_init(Instant::now);
    }

    pub(crate) fn at(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_holds_for_all_who_wait() {
        let sent = Sent::default();
        let waits = sent.clone();
        assert_eq!(waits.at(), None);
        sent.now();
        let first = waits.at();
        sent.now();
        assert!(first.is_some() && waits.at() == first);
    }
}
