//! A file that the engine reads or writes.

/// A file that the engine reads or writes.
pub(crate) struct OpenFile;
