//! Files of this machine, read and written past the kernel's page cache where that is possible.
//!
//! Promises: what [`Storage`] and [`StoredFile`] ask for. The engine that reads the files belongs to the pool; a file that outlives
//! the pool has stopped reading.
//!
//! From the ground up: `open_file` and `transfer`, what is read and written; `queue`, whose turn it is; `job`, a transfer in
//! progress; `dispatch`, what the threads share; `threads` and `uring`, who runs jobs; `engine`, which has them do it.
//!
//! Knows nothing of pages and pools.

pub(crate) mod dispatch;
pub(crate) mod engine;
mod job;
pub(crate) mod open_file;
mod queue;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
mod threads;
pub(crate) mod transfer;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};

use self::engine::Engine;
use self::open_file::OpenFile;
use self::transfer::{Operation, Transfer};
use super::identity::Identity;
use super::request::ReadRequest;
use super::{Storage, StoredFile};
use crate::error::ShutDown;

/// The files of this machine.
pub(crate) struct LocalStorage {
    engine: Arc<Engine>,
    /// Whether reads bypass the kernel's page cache where they can.
    direct: bool,
}

impl LocalStorage {
    pub(crate) fn new(engine: Arc<Engine>, direct: bool) -> Self {
        Self { engine, direct }
    }
}

impl Storage for LocalStorage {
    fn identify(&self, path: &Path) -> io::Result<Identity> {
        open_file::identify(path)
    }

    fn open(&self, path: &Arc<Path>) -> io::Result<Arc<dyn StoredFile>> {
        let file = OpenFile::open(Arc::clone(path), self.direct)?;
        Ok(Arc::new(LocalFile {
            file: Arc::new(file),
            engine: Arc::downgrade(&self.engine),
        }))
    }
}

/// A file of this machine.
struct LocalFile {
    file: Arc<OpenFile>,
    engine: Weak<Engine>,
}

impl StoredFile for LocalFile {
    fn identity(&self) -> Identity {
        self.file.identity()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }

    fn read(&self, requests: Vec<ReadRequest>) {
        let Some(engine) = self.engine.upgrade() else {
            for request in requests {
                job::complete(request.handler, Err(io::Error::other(ShutDown)));
            }
            return;
        };
        let transfers = requests.into_iter().map(|request| Transfer {
            file: Arc::clone(&self.file),
            operation: Operation::Read,
            offset: request.offset,
            pieces: request.pieces,
            handler: request.handler,
        });
        engine.submit(transfers.collect());
    }
}
