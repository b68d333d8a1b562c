//! Sent: when something that many may wait for was sent.

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
