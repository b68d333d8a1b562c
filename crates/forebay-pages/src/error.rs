//! Why a read, or a file to be, did not become what was asked for, told apart by what the caller should do.
//!
//! Promises: an error about a file's bytes names the file, and where there is one, offset and length; it is `Clone`, since one failed I/O fails all
//! who waited for its pages, and it is remembered for nobody else.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// What a call of the pool can end with instead of what it was asked for.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PageError {
    /// The file could not be opened, looked at, or made: not there, no permission, a directory, no file descriptors left; or
    /// a new one could not get its name.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: Arc<Path>,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The bytes could not be read or written. Nothing of them is kept: the next read tries again.
    #[error("{}: {length} bytes at {offset}: {cause}", path.display())]
    Io {
        /// The file.
        path: Arc<Path>,
        /// Where the I/O that failed began, in bytes.
        offset: u64,
        /// How many bytes it was for.
        length: u64,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The range begins or ends behind the file. Nothing was read.
    #[error("{}: the range {start}..{end} is not within the file, which has {file_length} bytes", path.display())]
    PastEnd {
        /// The file.
        path: Arc<Path>,
        /// The first byte asked for.
        start: u64,
        /// The byte behind the last one asked for.
        end: u64,
        /// How long the file was when it was opened, or last invalidated.
        file_length: u64,
    },
    /// The range ends before it begins. A bug in the caller.
    #[error("the range {start}..{end} ends before it begins")]
    Backwards {
        /// The first byte asked for.
        start: u64,
        /// The byte behind the last one asked for.
        end: u64,
    },
    /// The file has become shorter than it was when it was opened: there is nothing where there were bytes. A page that was cut
    /// short is not served at all, its first bytes neither. `invalidate` or open it again to read what it is now.
    #[error("{}: cut short by others: no bytes at {offset}, where it had some when it was opened", path.display())]
    Truncated {
        /// The file.
        path: Arc<Path>,
        /// From where on there is nothing, in bytes.
        offset: u64,
    },
    /// A page is not what its checksum says. Nothing of it is kept: the next read tries again.
    #[error("{}: the page of {length} bytes at {offset} is not what its checksum says", path.display())]
    Checksum {
        /// The file.
        path: Arc<Path>,
        /// Where the page begins, in bytes.
        offset: u64,
        /// How many bytes of the file it has.
        length: u64,
    },
    /// The side file with the checksums cannot be used: it is for another page size or another length, or damaged.
    #[error("{}: not the checksums of this file: {reason}", path.display())]
    Checksums {
        /// The side file.
        path: Arc<Path>,
        /// In which way.
        reason: Arc<str>,
    },
    /// What was asked for at once needs more pages than the pool has: it could never be read. Ask for less, or give the pool
    /// more memory.
    #[error("{wanted} bytes in whole pages cannot be held by a pool of {capacity} bytes")]
    TooLarge {
        /// What the pages asked for need.
        wanted: u64,
        /// What the pool may use.
        capacity: u64,
    },
    /// All the time that a read may wait for memory, others held on to theirs. Drop views sooner, or give the pool more memory.
    #[error("{wanted} bytes were not free within {} ms: views held {pinned} of {capacity} in the end", waited.as_millis())]
    Full {
        /// What the read needed, in bytes.
        wanted: u64,
        /// What views and running reads held when it gave up, in bytes.
        pinned: u64,
        /// What the pool may use, in bytes.
        capacity: u64,
        /// How long it waited.
        waited: Duration,
    },
    /// The address space for the file cannot be reserved: the process may have no more of it (`ulimit -v`).
    #[error("{}: no address space for {length} bytes: {cause}", path.display())]
    AddressSpace {
        /// The file.
        path: Arc<Path>,
        /// How much was asked for.
        length: u64,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The I/O that was asked for is not to be had: no io_uring where it has to be, or no threads.
    #[error("io_uring or its threads cannot be had here ({cause}); `Io::Auto` and `Io::Threads` need no io_uring")]
    Engine {
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// A call of `write` was dropped before it had ended, so that nobody knows how much of its bytes the new file has: it has been
    /// given up. Create it again.
    #[error("{}: given up: a write to the new file was dropped before it had ended", path.display())]
    Abandoned {
        /// The name that the file was to have.
        path: Arc<Path>,
    },
    /// The file has been published, and all who open it see it; but its directory could not be synced: after a power cut the old
    /// one may be there again. Publish it again, from the beginning, to be sure.
    #[error("{}: published, but its directory could not be synced: {cause}", path.display())]
    Undurable {
        /// The file.
        path: Arc<Path>,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The settings contradict each other or what a machine can do; the text says which. A bug in the caller.
    #[error("{0}")]
    Settings(&'static str),
    /// The pool, or the runtime that the call was made in, is shutting down.
    #[error("the pool, or the runtime, is shutting down")]
    Closed,
}
