//! Which file it is, and which version of its bytes.
//!
//! Promises: two equal identities stand for the same bytes, as far as the storage can tell without reading them.
//!
//! Knows nothing of what a storage is.

/// Which file it is within its storage, whatever its path and its content: device and inode for a local file.
pub(crate) type FileId = (u64, u64);

/// What a storage knows of a file's bytes without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) file: FileId,
    /// In bytes.
    pub(crate) length: u64,
    /// Changes when the bytes change: for a local file the time of its last modification, in seconds and nanoseconds.
    pub(crate) version: (i64, i64),
}
