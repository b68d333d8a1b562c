//! Beside: what is asked on each trip of those who change rows, beside their own.
//!
//! Promises: a connection prepares it once, as whoever has it holds the statements: to parse and plan the guard takes the server a millisecond.

use std::sync::Arc;

use super::facts;
use crate::settings::Settings;
use crate::statements::{Statement, Statements};

/// The statements.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Bounds what is waited for locks, by its parameter, in milliseconds.
    pub(crate) lock: Arc<Statement>,
    /// Fails where a table has changed.
    pub(crate) guard: Arc<Statement>,
}

impl Beside {
    pub(crate) fn new(statements: &Statements, settings: &Arc<Settings>) -> Self {
        Self {
            lock: statements.ours("SELECT pg_catalog.set_config('lock_timeout',$1,true)", &[], settings, 0),
            guard: statements.ours(&facts::guard(), &[], settings, 0),
        }
    }
}
