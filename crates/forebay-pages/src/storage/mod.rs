//! Where a pool's files are kept: the traits that a kind of storage implements.
//!
//! A storage finds files by their paths, and the files that it opened read their bytes into memory that they are given. `local`
//! is the one kind there is: files of this machine, read by io_uring or by threads. Another kind (an object store, say) is a
//! module beside `local`, and a line in `pool`, where a pool is given its storage. New files (`create`) are local ones,
//! whichever storage files are read from, and `monitor` shows the local engine's figures.
//!
//! Knows nothing of pages, nor of which bytes are in memory already.

pub(crate) mod faults;
pub(crate) mod identity;
pub(crate) mod local;
pub(crate) mod request;

use std::io;
use std::path::Path;
use std::sync::Arc;

use self::identity::Identity;
use self::request::ReadRequest;

/// A kind of place where files are. Its calls may block.
pub(crate) trait Storage: Send + Sync {
    /// What the path leads to now.
    fn identify(&self, path: &Path) -> io::Result<Identity>;

    /// Opens the file that the path leads to now.
    fn open(&self, path: &Arc<Path>) -> io::Result<Arc<dyn StoredFile>>;
}

/// An open file: it goes on leading to the same bytes, whatever has been put under its path meanwhile.
///
/// A file does not keep its storage running: it may outlive the pool, for as long as somebody has a view of it.
pub(crate) trait StoredFile: Send + Sync {
    /// What it was when it was opened.
    fn identity(&self) -> Identity;

    /// Whether its bytes are in this machine's memory only once: reads bypass the kernel's page cache.
    fn is_direct(&self) -> bool;

    /// Begins the reads of one reader, in this order and in fair turns with those of others, and does not wait for them. Each ends
    /// by its handler, with [`ShutDown`](crate::error::ShutDown) as the error if the storage has stopped.
    fn read(&self, requests: Vec<ReadRequest>);
}
