//! The log of failed logins: who, from where, why; at most so many lines a time, however many fail.
//!
//! Without a bound whoever guesses passwords could fill the disk with the log of it. What was left out is counted and told.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use forebay_pg_wire::error::WireError;

/// Lines within one [`WINDOW`].
const LINES_MAX: u32 = 20;

/// See [`LINES_MAX`].
const WINDOW: Duration = Duration::from_secs(10);

/// The longest part of a name that is logged, in characters.
const NAME_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Denials(Mutex<Window>);

#[derive(Debug)]
struct Window {
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
        Self(Mutex::new(Window {
            begun: Instant::now(),
            lines: 0,
            left_out: 0,
        }))
    }
}

impl Denials {
    /// Logs that `user`, from `address`, was not let in.
    pub fn log(&self, user: &str, address: SocketAddr, error: &WireError) {
        metrics::counter!("forebay_logins_failed_total").increment(1);
        let line = self.0.lock().next(Instant::now());
        let Line::Behind(left_out) = line else { return };
        if left_out > 0 {
            tracing::warn!(left_out, "more logins failed than were logged");
        }
        // Escaped: a name is what a stranger says.
        let user: String = user.chars().take(NAME_MAX).collect();
        tracing::warn!(?user, %address, sqlstate = error.sqlstate, "login failed: {:?}", error.message);
    }
}

impl Window {
    fn next(&mut self, now: Instant) -> Line {
        if now.duration_since(self.begun) >= WINDOW {
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
        let mut window = Window {
            begun,
            lines: 0,
            left_out: 0,
        };
        for _ in 0..LINES_MAX {
            assert_eq!(window.next(begun), Line::Behind(0));
        }
        for _ in 0..1_000 {
            assert_eq!(window.next(begun + WINDOW / 2), Line::None);
        }
        assert_eq!(window.next(begun + WINDOW), Line::Behind(1_000));
        assert_eq!(window.next(begun + WINDOW), Line::Behind(0));
    }
}
