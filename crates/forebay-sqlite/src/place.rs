//! Whether the file that is open is still the one that its name names.
//!
//! A file that was deleted, renamed or replaced while it is open goes on taking writes, which nobody will find again: neither
//! SQLite in WAL mode nor the kernel says a word. So its place is looked at beside every commit, and that of its write-ahead
//! log too: by device and inode, which belong to the open file for as long as it is open. A look is one `stat` a file; it never
//! opens the file, for closing it again would drop the locks that SQLite has on it.

use std::fs::Metadata;
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
pub(super) struct Place {
    database: PathBuf,
    log: PathBuf,
    database_id: FileId,
    /// Known from the first look at which there is a log.
    log_id: OnceLock<FileId>,
}

impl Place {
    /// The place of the database that `connection` has just opened.
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
        let found = std::fs::metadata(&database).map_err(|error| gone(error.to_string()))?;
        let Some(database_id) = identity(&found) else {
            return Ok(None);
        };
        if has_moved(connection) {
            return Err(gone("its name is another file's".to_owned()));
        }
        let mut log = database.clone().into_os_string();
        log.push("-wal");
        let place = Self {
            database,
            log: log.into(),
            database_id,
            log_id: OnceLock::new(),
        };
        place.learn_log();
        Ok(Some(place))
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
        if let Some(log) = std::fs::metadata(&self.log).ok().as_ref().and_then(identity) {
            // Whoever was first has seen the same.
            let _ = self.log_id.set(log);
        }
    }
}

/// An error if the file of that name is not that one.
fn differs(path: &Path, expected: FileId, which: &str) -> Result<(), WriteError> {
    let what = match std::fs::metadata(path) {
        Ok(found) => match identity(&found) {
            Some(found) if found != expected => "was replaced by another file while it was open".to_owned(),
            _ => return Ok(()),
        },
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

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some(FileId {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<FileId> {
    None
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
