//! What a storage is asked to read, and what is called when it has been read.
//!
//! Knows neither storages nor pages.

use std::io;

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

// SAFETY: it is only an address; it may be used as long as the `CompletionHandler` that came with it lives.
unsafe impl Send for Piece {}

/// One read. Its bytes follow each other in the file, from `offset` on, and fill the pieces in order.
pub(crate) struct ReadRequest {
    pub(crate) offset: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) handler: Box<dyn CompletionHandler>,
}

/// Called when an I/O has ended. It owns the memory of the I/O's pieces, which nobody else uses until then.
///
/// Callers promise to end each I/O by exactly one call, of `completed` or of `cancelled`, and only when nobody writes to or reads
/// from the pieces any more. Implementers need not guard against panics: the caller does.
pub(crate) trait CompletionHandler: Send {
    /// Asked right before the I/O begins: whether anybody still wants it. If not, it does not begin, and `cancelled` follows.
    fn is_wanted(&self) -> bool;

    /// The I/O ended with so many bytes, or failed. Fewer bytes than asked for: the file ends there.
    fn completed(self: Box<Self>, outcome: io::Result<usize>);

    /// The I/O never began, because nobody wanted it any more.
    fn cancelled(self: Box<Self>);
}
