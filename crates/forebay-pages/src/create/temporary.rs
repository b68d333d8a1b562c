//! A temporary file, in the directory in which it is to get its name.
//!
//! Promises: its temporary name is unique, and is gone when the file has got its own (`rename`) or is not wanted any more (drop, and
//! `remove`). A process that is killed leaves the file behind; the next file that is made in the directory removes it, though a
//! pool searches a directory once a second at most. Files that are still being written are left alone: each holds a lock (`flock`),
//! which the kernel releases with its last descriptor. The names are random and never used again: if somebody removes one by
//! hand, `rename` fails, and does not take another's file.
//!
//! Knows nothing of what is in the file. Everything but drop blocks.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::directory::{Directories, Directory};
use crate::blocking::blocking;
use crate::storage::local::open_file::OpenFile;

/// How the name ends.
const ENDING: &str = ".forebay-new";
/// How many random digits are before that.
const DIGITS: usize = 16;
/// How many bytes of the target's name are in it: file systems take names of at most 255 bytes.
const STEM_MAX: usize = 200;
/// After so many names that others have or remove it is no accident, and it gives up.
const TRIES_MAX: usize = 16;

/// The file.
pub(super) struct Temporary {
    directory: Arc<Directory>,
    /// `None`: it was renamed or removed.
    name: Option<Name>,
}

/// A temporary file's name. Dropping it removes it.
struct Name {
    /// Open as long as the name is there, for the lock.
    file: Arc<OpenFile>,
    renamed: bool,
}

impl Temporary {
    /// Makes one beside the target, and removes those that killed processes have left there, whatever their targets.
    pub(super) fn beside(target: &Path, direct: bool, directories: &Directories) -> io::Result<Self> {
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "no name for a file");
        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(no_name());
        };
        let (directory, is_due) = directories.open(folder)?;
        if is_due {
            remove_dead(folder);
        }
        for _ in 0..TRIES_MAX {
            let mut name = [b".", &name.as_bytes()[..name.len().min(STEM_MAX)]].concat();
            name.extend_from_slice(format!(".{:0DIGITS$x}{ENDING}", rand::random::<u64>()).as_bytes());
            let file = match OpenFile::create_new(folder.join(OsStr::from_bytes(&name)), direct) {
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
                created => Arc::new(created?),
            };
            if is_ours(file.file())? {
                let name = Name { file, renamed: false };
                return Ok(Self {
                    directory,
                    name: Some(name),
                });
            }
        }
        Err(io::Error::other("others remove the temporary files"))
    }

    pub(super) fn file(&self) -> &Arc<OpenFile> {
        &self.name.as_ref().expect("it goes with the last call").file
    }

    pub(super) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Gives the file its own name, replacing whatever has it. Returns the name's number in its directory. If it fails, the file is
    /// removed.
    pub(super) fn rename(mut self, target: &Path) -> io::Result<u64> {
        let mut name = self.name.take().expect("it goes with this call");
        // If another directory has the path by now, the temporary name is not in it.
        fs::rename(name.file.path(), target)?;
        name.renamed = true;
        Ok(self.directory.named())
    }

    /// Removes it, on a thread for blocking.
    pub(super) async fn remove(mut self) {
        let name = self.name.take();
        // Where the runtime is shutting down, it has been dropped all the same.
        let _ = blocking(move || {
            drop(name);
            Ok(())
        })
        .await;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        match Handle::try_current() {
            // Removing a large file takes its time. The runtime drops the name even if it does not run this any more.
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(name))),
            Err(_) => drop(name),
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        if let Err(cause) = fs::remove_file(self.file.path()) {
            tracing::warn!(%cause, path = %self.file.path().display(), "a temporary file stays behind");
        }
    }
}

/// Whether we have locked the file, and it still has its name. On a system without such locks nobody removes it.
fn is_ours(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        // Another found it before it was locked, and is about to remove it.
        Err(TryLockError::WouldBlock) => Ok(false),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Whether it is a temporary file's name.
fn is_temporary(name: &[u8]) -> bool {
    let Some(rest) = name
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_suffix(ENDING.as_bytes()))
    else {
        return false;
    };
    let Some(dot) = rest.iter().rposition(|byte| *byte == b'.') else {
        return false;
    };
    let digits = &rest[dot + 1..];
    dot > 0 && digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Removes the temporary files whose makers have died.
fn remove_dead(folder: &Path) {
    // Without the right to list the directory they stay.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !is_temporary(entry.file_name().as_bytes()) {
            continue;
        }
        let path = entry.path();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path) else {
            continue;
        };
        // Locked until it has gone: a maker that has not locked it yet sees that it has lost it.
        if file.try_lock().is_ok() {
            tracing::info!(path = %path.display(), "removing what a process left behind");
            // Another may have removed it.
            let _ = fs::remove_file(&path);
        }
    }
}
