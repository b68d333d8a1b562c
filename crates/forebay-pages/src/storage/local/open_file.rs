//! A file that the engine reads or writes.
//!
//! Promises: only regular files are opened. If asked to, transfers bypass the kernel's page cache (`O_DIRECT`) wherever the file
//! system supports it with an alignment that divides 4096. Elsewhere, and for each transfer that is not aligned, they go through the
//! page cache, with the same bytes; so they do where a file system accepts `O_DIRECT` and then refuses to read (`refuse_direct`).
//! Both ways lead to the same file, whatever has been put in its place under its path meanwhile.
//!
//! Knows nothing of transfers. Everything here may block for as long as the file system takes.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::storage::identity::{FileId, Identity, Version};

/// To what transfers must be aligned where the kernel does not tell; and the most that a file may ask for.
const ALIGNMENT_MAX: usize = 4096;

/// How far apart two changes are at the least whose times differ: twice the longest tick of a kernel, by which file systems take the
/// time; FAT counts in hundredths of a second as well.
const GRAIN: Duration = Duration::from_millis(20);
/// The same where times are kept in whole seconds, or in every other one.
const GRAIN_OF_SECONDS: Duration = Duration::from_secs(2);

/// What the path leads to now.
pub(crate) fn identify(path: &Path) -> io::Result<Identity> {
    let before = SystemTime::now();
    Ok(identity_of(&path.metadata()?, before))
}

/// Of a file with these metadata, which were asked for after `now`.
fn identity_of(metadata: &Metadata, now: SystemTime) -> Identity {
    let version = Version {
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    };
    Identity {
        file: file_id_of(metadata),
        length: metadata.len(),
        version,
        is_settled: is_settled(&version, now),
    }
}

/// Of a file with these metadata.
pub(crate) fn file_id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Whether a change after `now` gets other times than these.
fn is_settled(version: &Version, now: SystemTime) -> bool {
    let nanoseconds =
        |(seconds, nanoseconds): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let now = match now.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    };
    let is_young = |time: (i64, i64)| {
        let grain = if time.1 == 0 { GRAIN_OF_SECONDS } else { GRAIN };
        nanoseconds(time) + grain.as_nanos() as i128 > now
    };
    // A time of change in the future is that of a clock that was set back, or is another machine's. The time of modification is looked
    // at for file systems that keep no other, and may have been set into the future by anybody.
    !is_young(version.changed) && (!is_young(version.modified) || nanoseconds(version.modified) > now)
}

/// An open file.
pub(crate) struct OpenFile {
    path: Arc<Path>,
    identity: Identity,
    /// Past the kernel's cache, where `alignment` is there.
    file: File,
    writes: bool,
    /// To what offset, memory and length of a transfer past the kernel's cache must be aligned.
    alignment: Option<usize>,
    /// The file system took `O_DIRECT`, and then did not keep to it.
    refused: AtomicBool,
    /// The same file through the kernel's cache, once it was needed beside `file`.
    buffered: OnceLock<File>,
}

impl OpenFile {
    /// Opens a file to be read, `direct`: past the kernel's cache where that is possible.
    pub(crate) fn open(path: impl Into<Arc<Path>>, direct: bool) -> io::Result<Self> {
        // A pipe would wait here for its other end, if it were not for O_NONBLOCK.
        let path = path.into();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)?;
        Self::new(path, file, direct, false)
    }

    /// Makes a file, to be written and read. There must be none of that name.
    pub(crate) fn create_new(path: impl Into<Arc<Path>>, direct: bool) -> io::Result<Self> {
        let path = path.into();
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Self::new(path, file, direct, true)
    }

    fn new(path: Arc<Path>, file: File, direct: bool, writes: bool) -> io::Result<Self> {
        let before = SystemTime::now();
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let alignment = platform::set_flags(&file, direct)?;
        Ok(Self {
            path,
            identity: identity_of(&metadata, before),
            file,
            writes,
            alignment,
            refused: AtomicBool::new(false),
            buffered: OnceLock::new(),
        })
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// What it was when it was opened.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether transfers that are aligned go past the kernel's cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.alignment().is_some()
    }

    /// To what transfers must be aligned, to go past the kernel's cache. `None`: nothing does.
    pub(super) fn alignment(&self) -> Option<usize> {
        // Relaxed: whoever learns of it late is refused once more, and goes the other way then.
        if self.refused.load(Ordering::Relaxed) {
            None
        } else {
            self.alignment
        }
    }

    /// From now on everything goes through the kernel's cache.
    pub(super) fn refuse_direct(&self) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %self.path.display(), "the file system refuses O_DIRECT: reading through the kernel's cache");
        }
    }

    /// The descriptor that was opened first: past the kernel's cache, where `is_direct` says so.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// A descriptor of the same file that goes through the kernel's cache.
    pub(super) fn buffered(&self) -> io::Result<&File> {
        if self.alignment.is_none() {
            return Ok(&self.file);
        }
        if let Some(file) = self.buffered.get() {
            return Ok(file);
        }
        let file = self.open_again()?;
        // Where two come at once, one of the descriptors is closed again.
        Ok(self.buffered.get_or_init(|| file))
    }

    fn open_again(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.writes);
        // The descriptor's own entry leads to the file itself, also when its path leads elsewhere now.
        let again = platform::path_of_descriptor(&self.file).and_then(|path| options.open(path).ok());
        let file = match again {
            Some(file) => file,
            None => options.custom_flags(libc::O_NONBLOCK).open(&self.path)?,
        };
        if file_id_of(&file.metadata()?) != self.identity.file {
            return Err(io::Error::other(
                "the file was replaced, and cannot be opened once more",
            ));
        }
        platform::set_flags(&file, false)?;
        Ok(file)
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use rustix::fs::{AtFlags, OFlags, StatxFlags};

    use super::ALIGNMENT_MAX;

    /// Clears O_NONBLOCK, with which io_uring would end transfers with EAGAIN that must wait, and sets O_DIRECT where it is
    /// wanted and possible. Answers with the alignment it asks for then.
    pub(super) fn set_flags(file: &File, direct: bool) -> io::Result<Option<usize>> {
        let flags = rustix::fs::fcntl_getfl(file)? - OFlags::NONBLOCK;
        let alignment = if direct { alignment(file) } else { None };
        if alignment.is_some() && rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).is_ok() {
            return Ok(alignment);
        }
        rustix::fs::fcntl_setfl(file, flags)?;
        Ok(None)
    }

    /// What the kernel says of the file; `None` where O_DIRECT is not possible with what the pool aligns to.
    fn alignment(file: &File) -> Option<usize> {
        let Ok(told) = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
            return Some(ALIGNMENT_MAX);
        };
        if told.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
            return Some(ALIGNMENT_MAX);
        }
        let alignment = told.stx_dio_mem_align.max(told.stx_dio_offset_align) as usize;
        (told.stx_dio_offset_align > 0 && ALIGNMENT_MAX.is_multiple_of(alignment)).then_some(alignment)
    }

    pub(super) fn path_of_descriptor(file: &File) -> Option<PathBuf> {
        Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::fs::File;
    use std::io;
    use std::path::PathBuf;

    /// There is no O_DIRECT; O_NONBLOCK has no meaning for regular files.
    pub(super) fn set_flags(_file: &File, _direct: bool) -> io::Result<Option<usize>> {
        Ok(None)
    }

    pub(super) fn path_of_descriptor(_file: &File) -> Option<PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(changed: (i64, i64), modified: (i64, i64), now_ms: u64) -> bool {
        is_settled(
            &Version { modified, changed },
            UNIX_EPOCH + Duration::from_millis(now_ms),
        )
    }

    #[test]
    fn times_that_are_as_young_as_their_grain_are_not_settled() {
        let old = (3, 5);
        assert!(!at((9, 990_000_001), old, 10_000));
        assert!(at((9, 970_000_001), old, 10_000));
        // In whole seconds: the next change may be in the same one, or two.
        assert!(!at((9, 0), old, 10_500));
        assert!(at((9, 0), old, 11_000));
        // In the future, where only the time of modification may stand that somebody has set.
        assert!(!at((20, 1), old, 10_000));
        assert!(at(old, (20, 1), 10_000));
        // No time of change.
        assert!(!at((0, 0), (9, 990_000_001), 10_000));
        assert!(at((0, 0), (9, 970_000_001), 10_000));
    }
}
