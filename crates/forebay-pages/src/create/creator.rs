//! What all new files of a pool share.
//!
//! Knows nothing of how a file is written and published.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::buffer::{BLOCK, Buffer};
use super::directory::Directories;
use super::temporary::Temporary;
use crate::error::PageError;
use crate::eviction::evictor::Evictor;
use crate::stats::Counters;
use crate::storage::local::engine::Engine;

/// Buffers are not larger, however long the pool's runs are.
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// What a new file is made with.
pub(crate) struct Creator {
    pub(crate) engine: Arc<Engine>,
    pub(crate) directories: Directories,
    /// Whether writes bypass the kernel's page cache where they can.
    pub(crate) direct: bool,
    /// In bytes.
    pub(crate) page_size: usize,
    /// How long the pool's runs are.
    pub(crate) run_bytes: usize,
    pub(crate) counters: Arc<Counters>,
    pub(crate) evictor: Arc<Evictor>,
}

impl Creator {
    /// A temporary file beside this one. Blocks.
    pub(super) fn temporary(&self, target: &Path) -> io::Result<Temporary> {
        self.evictor
            .with_descriptors(|| Temporary::beside(target, self.direct, &self.directories))
    }

    /// A buffer as long as the pool's runs.
    pub(super) fn buffer(&self, target: &Arc<Path>) -> Result<Buffer, PageError> {
        let length = self.run_bytes.min(BUFFER_BYTES_MAX);
        debug_assert!(length.is_multiple_of(BLOCK));
        Buffer::reserve(length).map_err(|cause| PageError::AddressSpace {
            path: Arc::clone(target),
            length: length as u64,
            cause: Arc::new(cause),
        })
    }
}
