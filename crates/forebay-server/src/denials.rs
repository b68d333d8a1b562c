//! The log of failed logins: who, from where and why, in a bounded number of lines, however many fail.
//!
//! Otherwise whoever guesses passwords could fill the disk with log lines. Those that are left out are counted, and their
//! number is logged.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use forebay_pg_wire::error::WireError;

use crate::listeners::Peer;

/// Lines within one [`PERIOD`].
const LINES_MAX: u32 = 20;

/// The database behind could not be asked, which is logged of the database, and not of each who comes meanwhile.
const UNASKED: &str = "08006";

/// See [`LINES_MAX`].
const PERIOD: Duration = Duration::from_secs(10);

/// The longest part of a name that is logged, in characters.
const NAME_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Denials(Mutex<Period>);

#[derive(Debug)]
struct Period {
    begun: Instant,
    lines: u32,
    left_out: u64,
}

/// What is to be logged of one failed login.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Nothing: there were too many.
    None,
    /// It, and how many were left out before it.
    Behind(u64),
}

impl Default for Denials {
    fn default() -> Self {
        Self(Mutex::new(Period {
            begun: Instant::now(),
            lines: 0,
            left_out: 0,
        }))
    }
}

impl Denials {
    /// Logs that `user`, from `peer`, was not let in.
    pub(crate) fn log(&self, user: &str, peer: Peer, error: &WireError) {
        metrics::counter!("forebay_logins_failed_total").increment(1);
        if error.sqlstate == UNASKED {
            tracing::debug!(user, address = %peer, "login failed: {:?}", error.message);
            return;
        }
        let line = self.0.lock().next(Instant::now());
        let Line::Behind(left_out) = line else { return };
        if left_out > 0 {
            tracing::warn!(left_out, "more logins failed than were logged");
        }
        // Escaped: a name is what a stranger says.
        let user: String = user.chars().take(NAME_MAX).collect();
        tracing::warn!(?user, address = %peer, sqlstate = error.sqlstate, "login failed: {:?}", error.message);
    }
}

impl Period {
    fn next(&mut self, now: Instant) -> Line {
        if now.duration_since(self.begun) >= PERIOD {
            (self.begun, self.lines) = (now, 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return Line::None;
        }
        self.lines += 1;
        Line::Behind(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_what_is_left_out_is_told() {
        let begun = Instant::now();
        let mut period = Period {
            begun,
            lines: 0,
            left_out: 0,
        };
        for _ in 0..LINES_MAX {
            assert_eq!(period.next(begun), Line::Behind(0));
        }
        for _ in 0..1_000 {
            assert_eq!(period.next(begun + PERIOD / 2), Line::None);
        }
        assert_eq!(period.next(begun + PERIOD), Line::Behind(1_000));
        assert_eq!(period.next(begun + PERIOD), Line::Behind(0));
    }
}
