//! Numbers: those that a client has drawn from sequences, where they are to be known as long as its session lasts.
//!
//! Promises: a client that may have drawn one is not parted from its connection, which alone knows it, before it has discarded what was
//! drawn. Where that was not wished nothing is looked at.

use crate::pool::SessionFunctions;

/// The tags of what may draw: it writes, or runs what is the database's own.
const DRAWS: [&[u8]; 7] = [
    b"INSERT ", b"UPDATE ", b"DELETE ", b"MERGE ", b"COPY ", b"CALL\0", b"DO\0",
];

/// What a client may have drawn.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// Nobody keeps them.
    Unheeded,
    /// None.
    Undrawn,
    /// Some: only its connection knows them.
    Drawn,
}

impl Numbers {
    pub(crate) fn of(functions: SessionFunctions) -> Self {
        match functions {
            SessionFunctions::Refuse => Self::Unheeded,
            SessionFunctions::Pin => Self::Undrawn,
        }
    }

    /// Whether they are to be known.
    pub(crate) fn are_heeded(&self) -> bool {
        !matches!(self, Self::Unheeded)
    }

    /// Whether its connection is to stay.
    pub(crate) fn are_kept(&self) -> bool {
        matches!(self, Self::Drawn)
    }

    /// A text is asked.
    pub(crate) fn asked(&mut self, text: &[u8]) {
        if matches!(self, Self::Undrawn) && draws(text) {
            *self = Self::Drawn;
        }
    }

    /// A command has ended, with this tag.
    pub(crate) fn ended(&mut self, tag: &[u8]) {
        match self {
            Self::Undrawn if DRAWS.iter().any(|draws| tag.starts_with(draws)) => *self = Self::Drawn,
            Self::Drawn if matches!(tag, b"DISCARD ALL\0" | b"DISCARD SEQUENCES\0") => *self = Self::Undrawn,
            _ => {}
        }
    }

    /// A command has failed: it may have drawn before, which is not undone.
    pub(crate) fn failed(&mut self) {
        if matches!(self, Self::Undrawn) {
            *self = Self::Drawn;
        }
    }
}

/// Whether the text draws by itself: it has the name of one of the functions that do.
fn draws(text: &[u8]) -> bool {
    text.windows(b"nextval".len())
        .any(|part| part.eq_ignore_ascii_case(b"nextval"))
}
