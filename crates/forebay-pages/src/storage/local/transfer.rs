//! A transfer: what the engine is to read from a file, write to it, or sync.
//!
//! Knows nothing of how it is done.

use std::sync::Arc;

use super::open_file::OpenFile;
use crate::storage::request::{CompletionHandler, Piece};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Bytes of the file into memory.
    Read,
    /// Memory into the file.
    Write,
    /// `fdatasync`: make durable all that was written.
    Sync,
}

/// One I/O. Its bytes follow each other in the file, from `offset` on.
pub(crate) struct Transfer {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) handler: Box<dyn CompletionHandler>,
}
