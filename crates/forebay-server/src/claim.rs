//! One server a database.
//!
//! Advisory locks, NOTIFY, sequences' reserves and compiled statements are a server's own: beside another one on the same file they would
//! be split without a word. So a server that writes claims its database by the system's lock on a file beside it, `<database>-lock`,
//! and the system gives it back when the process ends, however it ends. Another program's SQLite does not meet it; and the database itself
//! is not opened for it, for closing it again would drop the locks that SQLite has on it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A database that no other server writes to for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _locked: File,
}

/// Why a database could not be claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Another server has it.
    #[error("cannot serve {}: another server has it, and the lock on {}", database.display(), lock.display())]
    Taken {
        /// The database, as it was given.
        database: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// The lock could not be taken.
    #[error("cannot serve {}: no lock on {}: {cause}", database.display(), lock.display())]
    Failed {
        /// The database, as it was given.
        database: PathBuf,
        /// The file that was to be locked.
        lock: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl Claim {
    /// Claims the database at that path, which exists. Waits for nobody.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn on(database: &Path) -> Result<Self, ClaimError> {
        let lock = lock_of(database);
        let locked = open(&lock).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(cause)) => Err(cause),
        });
        let database = database.to_owned();
        match locked {
            Ok(Some(locked)) => Ok(Self { _locked: locked }),
            Ok(None) => Err(ClaimError::Taken { database, lock }),
            Err(cause) => Err(ClaimError::Failed { database, lock, cause }),
        }
    }
}

/// Beside the database itself, by whatever name it is served.
fn lock_of(database: &Path) -> PathBuf {
    let itself = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let mut lock = OsString::from(itself);
    lock.push("-lock");
    lock.into()
}

fn open(lock: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(lock)
}
