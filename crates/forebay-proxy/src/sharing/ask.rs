//! Ask: what is asked for one client, and what came of it.
//!
//! Promises: two that are equal ask the very same, byte by byte.

use bytes::Bytes;

use super::unit::Steps;
use crate::columns::Columns;

/// What is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// A text, without the zero behind it.
    Simple(Bytes),
    /// A statement that can be prepared, by its number; the body of its Bind behind the name, and what else is asked.
    Extended {
        number: u64,
        bound: Bytes,
        steps: Steps,
        /// The columns that it is to have, as whoever asks was told before.
        told: Option<Columns>,
    },
}

impl Ask {
    /// The columns that it is to have, as whoever asks was told before.
    pub(crate) fn told(&self) -> Option<Columns> {
        match self {
            Self::Simple(_) => None,
            Self::Extended { told, .. } => *told,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    /// All messages up to ReadyForQuery, which is not among them; nor is ParseComplete.
    Done(Bytes),
    /// Nothing, and nothing was done: it goes alone. It was held up, if this is true.
    Alone(bool),
    /// Whether it was done is not known.
    Unknown,
    /// Its client does not want it any more.
    Cancelled,
}
