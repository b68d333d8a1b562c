//! Asked: what of a client's messages is done where others have answered them.
//!
//! Promises: nothing of them is taken. Knows no connection.

use std::sync::Arc;

use super::unit::Unit;
use crate::statements::{Described, Statement};

/// What a client has asked in one go, and what of that is done where nothing else is.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Bytes of the client's that it is made of.
    pub(crate) length: usize,
    /// The unnamed statement behind it; none where it stays as it is.
    pub(super) unnamed: Option<Option<Arc<Statement>>>,
    /// A Parse was asked, too.
    pub(crate) is_parsed: bool,
    /// What the client has prepared by this name is described to it.
    pub(super) describes: Option<Described>,
}

impl Asked {
    /// `statement`: what a Parse of it makes.
    pub(super) fn of(unit: &Unit<'_>, input: &[u8], statement: impl FnOnce() -> Option<Arc<Statement>>) -> Self {
        let is_parsed = matches!(unit, Unit::Extended(extended) if extended.definition.is_some());
        Self {
            length: input.len(),
            unnamed: match unit {
                Unit::Simple(_) => Some(None),
                Unit::Extended(_) => is_parsed.then(statement),
            },
            is_parsed,
            describes: None,
        }
    }

    /// The same, with what is described by it.
    pub(super) fn describing(self, describes: Option<Described>) -> Self {
        Self { describes, ..self }
    }
}
