//! Which file it is, and which version of its bytes.
//!
//! Promises: a settled identity that is equal to a later one stands for the same bytes, as far as the storage can tell without
//! reading them. One that is not settled stands for nothing later: the next change may leave it as it is.
//!
//! Knows nothing of what a storage is.

/// Which file it is within its storage, whatever its path and its content: device and inode for a local file.
pub(crate) type FileId = (u64, u64);

/// What a storage knows of a file's bytes without reading them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) file: FileId,
    /// In bytes.
    pub(crate) length: u64,
    pub(crate) version: Version,
    /// Whether every change after this look makes another version.
    pub(crate) is_settled: bool,
}

/// Changes when the bytes change: for a local file its times, in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// Of the last modification. Whoever may write the file may set it to anything.
    pub(crate) modified: (i64, i64),
    /// Of the last change of bytes, name, owner or times. Nobody can set it.
    pub(crate) changed: (i64, i64),
}

impl Identity {
    /// Whether both looks found the same version of the same file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.file, self.length, self.version) == (other.file, other.length, other.version)
    }

    /// Whether the file has the same bytes `later` on.
    pub(crate) fn is_unchanged(&self, later: &Self) -> bool {
        self.is_settled && self.is_same(later)
    }
}
