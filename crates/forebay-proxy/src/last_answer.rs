//! Last answer: where the last thing that a client has asked of a database was answered.
//!
//! Promises: it is a few bytes, and to note it takes no clock.

use std::time::Duration;

/// Where that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LastAnswer {
    /// It has asked nothing yet, or took back what it asked before anybody had it.
    #[default]
    Nowhere,
    /// At the database.
    Database,
    /// In memory.
    Memory(Remembrance),
}

/// How an answer was remembered when it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembrance {
    /// How long ago it was asked of the database.
    pub(crate) age: Duration,
    /// It was past its first window.
    pub(crate) is_stale: bool,
}

impl LastAnswer {
    /// By whom, in a word.
    pub(crate) fn by(self) -> Option<&'static str> {
        match self {
            Self::Nowhere => None,
            Self::Database => Some("primary"),
            Self::Memory(Remembrance { is_stale: false, .. }) => Some("cache"),
            Self::Memory(Remembrance { is_stale: true, .. }) => Some("cache (stale)"),
        }
    }

    /// How old the answer was, where it was remembered.
    pub(crate) fn age(self) -> Option<Duration> {
        match self {
            Self::Memory(Remembrance { age, .. }) => Some(age),
            Self::Nowhere | Self::Database => None,
        }
    }
}
