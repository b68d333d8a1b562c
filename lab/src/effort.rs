//! Effort: how many rounds, and how long a measurement takes in each.
//!
//! Promises: at least 5 rounds in a full run, 3 in a quick one. Knows no scenario.

use std::time::Duration;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Times that every system has its turn.
    pub(crate) rounds: u32,
    /// How long one measurement takes.
    pub(crate) duration: Duration,
    /// Whether the figures mean something: not in a tiny run.
    pub(crate) meaningful: bool,
}

impl Effort {
    /// For figures that are to be published.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 5,
            duration: Duration::from_secs(3),
            meaningful: true,
        }
    }

    /// For a look: a scenario of a dozen measurements ends within a minute.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 3,
            duration: Duration::from_millis(900),
            meaningful: true,
        }
    }

    /// To see that it works.
    pub(crate) fn tiny() -> Self {
        Self {
            rounds: 1,
            duration: Duration::from_millis(30),
            meaningful: false,
        }
    }

    /// As a user wants it.
    pub(crate) fn with(self, rounds: Option<u32>, seconds: Option<u32>) -> Self {
        Self {
            rounds: rounds.unwrap_or(self.rounds),
            duration: seconds.map_or(self.duration, |seconds| Duration::from_secs(seconds.into())),
            ..self
        }
    }
}
