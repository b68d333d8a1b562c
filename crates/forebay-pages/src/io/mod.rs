//! Transfers between files and memory: many at once, in fair turns, on threads of their own.
//!
//! Promises: each transfer that is handed over ends exactly once, by its [`Landing`], on a thread of the engine, and never
//! before the kernel is done with its memory. Short transfers are continued: a read that ends with fewer bytes than asked for
//! has met the end of the file. At most `depth` transfers run at once, and at most `depth_per_reader` of those handed over
//! together; who hands over many takes turns with the others. The results are the same whichever backend runs them: io_uring,
//! or threads with `preadv` and `pwritev`.
//!
//! Knows files, memory and the kernel; nothing of pages, pools or readers.

mod engine;
mod faults;
mod job;
mod latency;
mod open_file;
mod queue;
#[cfg(test)]
mod tests;
mod threads;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::sync::Arc;

pub(crate) use engine::{Backend, Engine, Kind, Settings, ShutDown};
pub use faults::{Fault, Faults};
pub use latency::{Latencies, LatencyBucket};
pub(crate) use open_file::{Identity, Inode, OpenFile};

/// What is to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Bytes of the file into memory.
    Read,
    /// Memory into the file.
    Write,
    /// `fdatasync`: all that was written is durable.
    Sync,
}

/// A stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: it is an address, and may be used where the one who made it says so (`Landing`).
unsafe impl Send for Piece {}

/// One I/O. The pieces follow each other in the file from `offset` on.
pub(crate) struct Transfer {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) landing: Box<dyn Landing>,
}

/// What a transfer is for. It owns the memory of the transfer's pieces: for nobody else as long as it has not landed.
pub(crate) trait Landing: Send {
    /// Asked right before the transfer begins: whether it is still wanted. If not, it will not begin, and `called_off` follows.
    fn wanted(&self) -> bool;

    /// The transfer ended: so many bytes were transferred, or why not.
    fn lands(self: Box<Self>, outcome: io::Result<usize>);

    /// The transfer never began: nobody wanted it any more.
    fn called_off(self: Box<Self>);
}
