//! Silence: which idle connections are not worth a question, because another one has just died without a word.
//!
//! Promises: a connection that was made after is never among them. Knows nothing of databases, and asks nobody itself.

use std::time::Instant;

use parking_lot::Mutex;

/// When a connection was last found to be dead though nobody had said so: a machine that is gone, a firewall that forgets. Idle
/// ones that were made before are not asked, each for as long as an answer may take; they are replaced.
#[derive(Debug, Default)]
pub struct Silence {
    found: Mutex<Option<Instant>>,
}

impl Silence {
    /// One has just died without a word.
    pub fn note(&self) {
        *self.found.lock() = Some(Instant::now());
    }

    /// Whether one has, since a connection was made at that time.
    pub fn is_after(&self, made: Instant) -> bool {
        self.found.lock().is_some_and(|found| made < found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_made_before_are_not_asked_and_those_after_are() {
        let silence = Silence::default();
        let before = Instant::now();
        assert!(!silence.is_after(before));
        silence.note();
        assert!(silence.is_after(before));
        assert!(!silence.is_after(Instant::now()));
    }
}
