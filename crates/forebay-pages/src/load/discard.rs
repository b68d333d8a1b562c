//! The discard buffer: the bytes of gaps are read into it, so that one I/O can read on over a gap.
//!
//! Promises: it takes a bounded amount of memory, however long the gaps are. All runs of a pool read into it at once, over each
//! other: nobody looks at what is in it.
//!
//! Knows neither pages nor files.

use std::io;

use crate::memory::region::Region;
use crate::storage::request::Piece;

/// The most memory that it takes. What is longer goes to the same place again.
const BYTES_MAX: usize = 256 << 10;

/// The buffer.
pub(crate) struct DiscardBuffer {
    region: Region,
    /// At least one.
    length: usize,
}

impl DiscardBuffer {
    /// For gaps of up to so many bytes.
    pub(crate) fn reserve(gap_bytes: usize) -> io::Result<Self> {
        // Without gaps nothing is discarded.
        let length = gap_bytes.clamp(1, BYTES_MAX);
        Ok(Self {
            region: Region::reserve(length)?,
            length,
        })
    }

    /// The memory for so many bytes. To be used only while the buffer lives.
    pub(crate) fn pieces(&self, length: usize) -> impl Iterator<Item = Piece> {
        (0..length).step_by(self.length).map(move |from| Piece {
            start: self.region.at(0).as_ptr(),
            length: self.length.min(length - from),
        })
    }
}
