//! What a call can end with instead of its result, told apart by what the caller should do.
//!
//! Promises: an error about a file names it, and an error about bytes names their offset and length as well. Errors are `Clone`,
//! because one failed I/O fails every read that waits for its pages. They are not remembered: the next call tries again.

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use thiserror::Error;

/// What a call of the pool can end with instead of its result.
///
/// ```
/// use forebay::pages::{PageError, PagePool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("data");
/// std::fs::write(&path, [7; 1000])?;
/// let pool = PagePool::builder().memory(1 << 20).build()?;
/// let file = pool.open(&path).await?;
/// match file.read(900..1100).await {
///     Ok(view) => println!("{} bytes", view.len()),
///     Err(PageError::PastEnd { file_length, .. }) => assert_eq!(file_length, 1000),
///     Err(PageError::Full { pinned_bytes, .. }) => println!("later: views hold {pinned_bytes} bytes"),
///     Err(error) => println!("it names the file and the bytes: {error}"),
/// }
///
/// let missing = pool.open(folder.path().join("missing")).await.unwrap_err();
/// assert!(matches!(missing, PageError::File { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PageError {
    /// The file could not be opened, looked at or made (not there, no permission, a directory, no file descriptors left), or a new
    /// one could not get its name.
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
    /// The range begins or ends past the end of the file. Nothing was read.
    #[error("{}: the range {start}..{end} is not within the file, which has {file_length} bytes", path.display())]
    PastEnd {
        /// The file.
        path: Arc<Path>,
        /// The first byte asked for.
        start: u64,
        /// The byte after the last one asked for.
        end: u64,
        /// How long the file was when it was opened, or last invalidated.
        file_length: u64,
    },
    /// The range ends before it begins. A bug in the caller.
    #[error("the range {start}..{end} ends before it begins")]
    Backwards {
        /// The first byte asked for.
        start: u64,
        /// The byte after the last one asked for.
        end: u64,
    },
    /// The file has become shorter than it was when it was opened. A page that was cut short is not served at all. `invalidate` or
    /// open it again to read it as it is now.
    #[error("{}: truncated by others: no bytes at {offset}, where it had some when it was opened", path.display())]
    Truncated {
        /// The file.
        path: Arc<Path>,
        /// Where it ends now, in bytes.
        offset: u64,
    },
    /// A page does not match its checksum. Nothing of it is kept: the next read tries again.
    #[error("{}: the page of {length} bytes at {offset} does not match its checksum", path.display())]
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
        /// Why.
        reason: Arc<str>,
    },
    /// What was asked for at once needs more pages than the pool has: it could never be read. Ask for less, or give the pool
    /// more memory.
    #[error("{wanted_bytes} bytes in whole pages cannot be held by a pool of {capacity_bytes} bytes")]
    TooLarge {
        /// What the pages asked for need.
        wanted_bytes: u64,
        /// What the pool may use.
        capacity_bytes: u64,
    },
    /// The memory was not free within the time that a read may wait for it. Drop views sooner, or give the pool more memory.
    #[error("{wanted_bytes} bytes were not free within {} ms: views held {pinned_bytes} of {capacity_bytes} in the end", waited.as_millis())]
    Full {
        /// What the read needed.
        wanted_bytes: u64,
        /// What views and running reads held when it gave up, or a moment before.
        pinned_bytes: u64,
        /// What the pool may use.
        capacity_bytes: u64,
        /// How long it waited.
        waited: Duration,
    },
    /// The address space for the file cannot be reserved: the process may not have more of it (`ulimit -v`).
    #[error("{}: no address space for {length} bytes: {cause}", path.display())]
    AddressSpace {
        /// The file.
        path: Arc<Path>,
        /// How much was asked for.
        length: u64,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The I/O that was asked for is not available: no io_uring where it is required, or no threads.
    #[error(
        "io_uring or threads for I/O are not available here ({cause}); `Io::Auto` and `Io::Threads` need no io_uring"
    )]
    Engine {
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// A call of `write` was dropped before it had ended, so nobody knows how many of its bytes the new file has: the file was
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
    /// The settings contradict each other, or ask for what the machine cannot do; the text says how. A bug in the caller.
    #[error("{0}")]
    Settings(&'static str),
    /// The pool, or the runtime that the call was made in, is shutting down.
    #[error("the pool, or the runtime, is shutting down")]
    Closed,
}

impl PageError {
    /// A file could not be opened, looked at, made or renamed.
    pub(crate) fn file(path: &Arc<Path>, cause: io::Error) -> Self {
        Self::File {
            path: Arc::clone(path),
            cause: Arc::new(cause),
        }
    }

    /// Bytes could not be read or written, or the I/O was never begun because the pool is shutting down.
    pub(crate) fn io(path: &Arc<Path>, offset: u64, length: u64, cause: io::Error) -> Self {
        if ShutDown::is_in(&cause) {
            return Self::Closed;
        }
        Self::Io {
            path: Arc::clone(path),
            offset,
            length,
            cause: Arc::new(cause),
        }
    }
}

/// Why an I/O never began: the pool is shutting down. Travels inside an [`io::Error`].
#[derive(Debug)]
pub(crate) struct ShutDown;

impl ShutDown {
    pub(crate) fn is_in(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(cause) if cause.is::<Self>())
    }
}

impl fmt::Display for ShutDown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the pool has been shut down")
    }
}

impl StdError for ShutDown {}
