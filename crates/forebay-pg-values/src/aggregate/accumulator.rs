//! An accumulator: an aggregate that is being computed, fed one row at a time. Knows no aggregate by name.

use crate::{Arguments, Owned, Result};

/// An aggregate at work on one group.
pub trait Accumulator: Send {
    /// Takes a row's arguments.
    ///
    /// # Errors
    ///
    /// PostgreSQL's own: a sum beyond its type's range.
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()>;

    /// The result of what was added so far.
    ///
    /// # Errors
    ///
    /// PostgreSQL's own, or that the result has no stored form.
    fn finish(&self) -> Result<Owned>;
}

/// Begins a group.
pub type Start = fn() -> Box<dyn Accumulator>;
