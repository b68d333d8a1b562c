//! Interruption: whether whoever asked for a value has stopped waiting for it.
//!
//! Promises: what may take long asks now and then, and ends with 57014 once that is so. Until somebody says how to ask, nobody has.

use std::sync::OnceLock;

use crate::{Result, ValueError};

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// How to ask, on the thread that computes. The first who says so is heard.
pub fn ask_by(ask: fn() -> bool) {
    ASK.get_or_init(|| ask);
}

/// Whether to end.
pub(crate) fn is_due() -> bool {
    ASK.get().is_some_and(|ask| ask())
}

/// An error, if it is time to end.
pub(crate) fn check() -> Result<()> {
    match is_due() {
        true => Err(ValueError::new("57014", "canceling statement due to user request")),
        false => Ok(()),
    }
}
