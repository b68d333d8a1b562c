//! Whether the open file is still the one that its path leads to.
//!
//! A file that was deleted, renamed or replaced while it is open goes on taking writes, which nobody will find again: neither
//! SQLite in WAL mode nor the kernel says a word. So its place is looked at beside every commit, and that of its write-ahead
//! log too: by device and inode, which belong to the open file for as long as it is open. A look is one `stat` a file; it never
//! opens the file, for closing it again would drop the locks that SQLite has on it. Nor does it ask when the file was changed: Linux
//! (6.13 and later) gives a file whose time was asked for a new one at the next write, where it would otherwise do so once in a tick
//! of the clock, and each commit then writes the log's inode to the disk as well.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::{Connection, ffi};

use forebay_write::{StatementError, StatementErrorKind, WriteError};

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// Where the open files of a database belong.
#[derive(Debug)]
pub(super) struct Location {
    database: PathBuf,
    log: PathBuf,
    database_id: FileId,
    /// Known from the first look at which there is a log.
    log_id: OnceLock<FileId>,
}

impl Location {
    /// The location of the database that `connection` has just opened.
    ///
    /// # Errors
    /// If the file is gone again already. None on systems that do not tell one file from another.
    pub(super) fn of(path: &Path, connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let gone = |cause: String| {
            rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_CANTOPEN),
                Some(format!("the file was moved while it was being opened: {cause}")),
            )
        };
        // The process may change its folder: what is looked at later must be what was opened.
        let database = std::path::absolute(path).map_err(|error| gone(error.to_string()))?;
        let Some(database_id) = identity(&database).map_err(|error| gone(error.to_string()))? else {
            return Ok(None);
        };
        if has_moved(connection) {
            return Err(gone("its name is another file's".to_owned()));
        }
        let mut log = database.clone().into_os_string();
        log.push("-wal");
        let location = Self {
            database,
            log: log.into(),
            database_id,
            log_id: OnceLock::new(),
        };
        location.learn_log();
        Ok(Some(location))
    }

    /// Whether both files are where they belong; if not, what happened, in words for the one who wrote.
    pub(super) fn look(&self) -> Result<(), WriteError> {
        self.look_at_database()?;
        match self.log_id.get() {
            Some(log) => differs(&self.log, *log, "the database's write-ahead log"),
            None => {
                self.learn_log();
                Ok(())
            }
        }
    }

    /// As [`look`](Self::look), at the database's file alone: what a reading connection opens.
    pub(super) fn look_at_database(&self) -> Result<(), WriteError> {
        differs(&self.database, self.database_id, "the database file")
    }

    /// There is a log from the first transaction on, and never where the journal is another.
    fn learn_log(&self) {
        if let Ok(Some(log)) = identity(&self.log) {
            // Whoever was first has seen the same.
            let _ = self.log_id.set(log);
        }
    }
}

/// An error if the file of that name is not that one.
fn differs(path: &Path, expected: FileId, which: &str) -> Result<(), WriteError> {
    let what = match identity(path) {
        Ok(Some(found)) if found != expected => "was replaced by another file while it was open".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "was deleted or moved while it was open".to_owned(),
        Err(error) => format!("cannot be looked at any more: {error}"),
    };
    let message = format!(
        "{which} {} {what}; nothing can be written until it is back in its place, or the database is opened anew",
        path.display()
    );
    Err(WriteError::Statement(StatementError::new(
        StatementErrorKind::Io,
        ffi::SQLITE_READONLY_DBMOVED,
        message,
    )))
}

/// Which file has that name. None on systems that do not tell one file from another.
#[cfg(target_os = "linux")]
fn identity(path: &Path) -> io::Result<Option<FileId>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(found) => Ok(Some(FileId {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        })),
        // Where this call is not let through, another one is.
        Err(_) => identity_by_stat(path),
    }
}

#[cfg(not(target_os = "linux"))]
fn identity(path: &Path) -> io::Result<Option<FileId>> {
    identity_by_stat(path)
}

#[cfg(unix)]
fn identity_by_stat(path: &Path) -> io::Result<Option<FileId>> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path)?;
    Ok(Some(FileId {
        device: found.dev(),
        inode: found.ino(),
    }))
}

#[cfg(not(unix))]
fn identity_by_stat(path: &Path) -> io::Result<Option<FileId>> {
    std::fs::metadata(path).map(|_| None)
}

/// Whether SQLite's own open file has lost its name, as far as it knows.
fn has_moved(connection: &Connection) -> bool {
    let mut moved: std::ffi::c_int = 0;
    // SAFETY: the handle is that of an open connection which this thread owns; "main" ends with a NUL; the operation writes one
    // integer through the pointer, which is to a live one.
    let status = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_HAS_MOVED,
            (&raw mut moved).cast(),
        )
    };
    status == ffi::SQLITE_OK && moved != 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;
    use std::time::{Duration, Instant, SystemTime};

    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// When the clock last ticked.
    fn ticked() -> SystemTime {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let past = "a clock that is behind 1970 is not tested";
        SystemTime::UNIX_EPOCH + Duration::new(now.tv_sec.try_into().expect(past), now.tv_nsec.try_into().expect(past))
    }

    #[test]
    fn a_look_does_not_have_the_next_write_get_a_time_of_its_own() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // Somebody else's question, about any file, raises the time of all files for the rest of the tick: this waits for a tick
        // in which nobody asked.
        let given_up = Instant::now() + Duration::from_secs(60);
        let at_a_tick = std::iter::from_fn(|| (Instant::now() < given_up).then_some(())).any(|()| {
            file.write_all(b"a").unwrap();
            identity(file.path()).unwrap();
            let before = ticked();
            file.write_all(b"b").unwrap();
            let after = ticked();
            before == after && file.as_file().metadata().unwrap().modified().unwrap() == before
        });
        assert!(at_a_tick);
    }

    #[test]
    fn both_ways_to_look_see_the_same_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = identity(file.path()).unwrap();
        assert!(found.is_some());
        assert_eq!(found, identity_by_stat(file.path()).unwrap());
        let path = file.path().to_owned();
        drop(file);
        assert_eq!(identity(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
