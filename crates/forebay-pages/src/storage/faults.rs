//! Faults that tests inject into I/O: errors, short transfers and delays, in front of whichever backend runs it.
//!
//! Promises: it is asked before each attempt at a transfer, so a transfer that is continued is asked about again, with what is left
//! of it.
//!
//! Knows nothing of how attempts are made.

use std::path::Path;
use std::time::Duration;

/// Says what goes wrong.
pub trait Faults: Send + Sync {
    /// Asked before each attempt: to transfer `length` bytes at `offset`, or with a length of 0 and `write`, to make the file
    /// durable.
    fn fault(&self, path: &Path, write: bool, offset: u64, length: u64) -> Option<Fault>;
}

/// What goes wrong with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error number, without any I/O.
    Error(i32),
    /// It transfers so many bytes only, rounded to what the file's alignment allows, at least one such unit.
    Short(usize),
    /// It begins later, and keeps its place among those in flight meanwhile: a slow device.
    Delay(Duration),
}
