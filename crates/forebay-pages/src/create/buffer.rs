//! A run of a new file: a buffer in which bytes gather until there are enough for one I/O, and that I/O.
//!
//! Promises: the bytes are aligned for O_DIRECT. While the I/O runs it owns the buffer; when it has ended it sends the buffer back,
//! with its outcome. If nobody is there to receive the buffer, the I/O does not begin.
//!
//! Knows nothing of files' names, nor of how many buffers there are.

use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::error::PageError;
use crate::memory::region::Region;
use crate::stats::Counters;
use crate::storage::local::open_file::OpenFile;
use crate::storage::local::transfer::{Operation, Transfer};
use crate::storage::request::{CompletionHandler, Piece};

/// The largest alignment that O_DIRECT asks for.
pub(super) const BLOCK: usize = 4096;

/// Memory for one run.
pub(super) struct Buffer {
    region: Region,
    capacity: usize,
    /// So many bytes from its beginning are the file's. <= `capacity`.
    filled: usize,
}

/// What comes back from an I/O.
pub(super) type Written = (Buffer, Result<(), PageError>);

impl Buffer {
    /// Empty, for so many bytes. Takes memory as it is filled.
    pub(super) fn reserve(capacity: usize) -> io::Result<Self> {
        Ok(Self {
            region: Region::reserve(capacity)?,
            capacity,
            filled: 0,
        })
    }

    /// Takes bytes as far as there is room; how many.
    pub(super) fn append(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity - self.filled);
        // SAFETY: the region has `capacity` bytes from its beginning on, this many of them behind `filled`; it is owned, and not
        // lent to an I/O, which would own the buffer. `bytes` cannot lie in it, since nobody can borrow from it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.region.at(self.filled).as_ptr(), count) };
        self.filled += count;
        count
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == self.capacity
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// The I/O that writes it to a file at `offset`, the file that is to be at `target`.
    pub(super) fn transfer(
        self,
        counters: &Arc<Counters>,
        file: &Arc<OpenFile>,
        target: &Arc<Path>,
        offset: u64,
        written: &mpsc::Sender<Written>,
    ) -> Transfer {
        let piece = Piece {
            start: self.region.at(0).as_ptr(),
            length: self.filled,
        };
        Transfer {
            file: Arc::clone(file),
            operation: Operation::Write,
            offset,
            pieces: vec![piece],
            handler: Box::new(WriteRun {
                counters: Arc::clone(counters),
                buffer: self,
                target: Arc::clone(target),
                offset,
                written: written.clone(),
            }),
        }
    }
}

/// A run on its way to the file.
struct WriteRun {
    counters: Arc<Counters>,
    buffer: Buffer,
    target: Arc<Path>,
    offset: u64,
    written: mpsc::Sender<Written>,
}

impl CompletionHandler for WriteRun {
    fn is_wanted(&self) -> bool {
        !self.written.is_closed()
    }

    fn completed(self: Box<Self>, outcome: io::Result<usize>) {
        let Self {
            counters,
            mut buffer,
            target,
            offset,
            written,
        } = *self;
        let length = buffer.filled;
        let outcome = outcome.and_then(|count| match count == length {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        });
        if outcome.is_ok() {
            counters.wrote(length as u64);
        }
        buffer.filled = 0;
        let outcome = outcome.map_err(|cause| PageError::io(&target, offset, length as u64, cause));
        // There is room for all of a writer's buffers; if nobody receives them they are not wanted any more.
        let _ = written.try_send((buffer, outcome));
    }

    fn cancelled(self: Box<Self>) {}
}
