//! A run of a new file: bytes that gather until there are enough for one I/O, and that I/O.
//!
//! Promises: the bytes are aligned for transfers past the kernel's cache. While the I/O runs it owns them; when it has ended it
//! sends them back, with how it went. If nobody is there to receive them any more it does not begin.
//!
//! Knows nothing of files' names, nor of how many buffers there are.

use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::PageError;
use crate::core::Core;
use crate::io::{Landing, OpenFile, Operation, Piece, ShutDown, Transfer};
use crate::region::Region;

/// What transfers past the kernel's cache are aligned to, at most.
pub(super) const BLOCK: usize = 4096;

/// Memory for one run.
pub(super) struct Buffer {
    region: Region,
    capacity: usize,
    /// So many bytes from its beginning are the file's. <= `capacity`.
    filled: usize,
}

/// What comes back from an I/O.
pub(super) type Landed = (Buffer, Result<(), PageError>);

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
        core: &Arc<Core>,
        file: &Arc<OpenFile>,
        target: &Arc<Path>,
        offset: u64,
        landed: &mpsc::Sender<Landed>,
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
            landing: Box::new(Run {
                core: Arc::clone(core),
                buffer: self,
                target: Arc::clone(target),
                offset,
                landed: landed.clone(),
            }),
        }
    }
}

/// A run on its way to the file.
struct Run {
    core: Arc<Core>,
    buffer: Buffer,
    target: Arc<Path>,
    offset: u64,
    landed: mpsc::Sender<Landed>,
}

impl Landing for Run {
    fn wanted(&self) -> bool {
        !self.landed.is_closed()
    }

    fn lands(self: Box<Self>, outcome: io::Result<usize>) {
        let Self {
            core,
            mut buffer,
            target,
            offset,
            landed,
        } = *self;
        let length = buffer.filled;
        let outcome = outcome.and_then(|written| match written == length {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        });
        if outcome.is_ok() {
            core.counters.wrote(length as u64);
        }
        buffer.filled = 0;
        let outcome = outcome.map_err(|cause| io_error(&target, offset, length as u64, cause));
        // There is room for all of a writer's buffers; if nobody receives them they are not wanted any more.
        let _ = landed.try_send((buffer, outcome));
    }

    fn called_off(self: Box<Self>) {}
}

/// Why these bytes of a file were not written.
pub(super) fn io_error(target: &Arc<Path>, offset: u64, length: u64, cause: io::Error) -> PageError {
    if ShutDown::is_in(&cause) {
        return PageError::Closed;
    }
    PageError::Io {
        path: Arc::clone(target),
        offset,
        length,
        cause: Arc::new(cause),
    }
}
