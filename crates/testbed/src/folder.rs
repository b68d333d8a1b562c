//! A folder of a server's own, removed with it, readable by the account the server runs as.
//!
//! Promises: whoever makes one first removes those beside it that a process has left behind which has ended without dropping
//! them, as one does that was killed or kept its server in a static; never one whose process still runs.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Account, Error};

/// A temporary folder; dropping it removes it and all it holds.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
    /// The folder itself, locked for as long as this process runs, by which others see that it does.
    _lock: File,
}

const PREFIX: &str = "forebay-testbed-";
/// A younger one may not be locked yet, or its server not have stopped.
const LEFT_FOR: Duration = Duration::from_secs(60);

impl Folder {
    /// A new folder in `parent`, or where the system keeps temporary files. Its name begins with `forebay-testbed-NAME-`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(name: &str, parent: Option<&Path>) -> Result<Self, Error> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_left_over(&parent, LEFT_FOR);
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{name}-"))
            .tempdir_in(&parent)
            .and_then(|folder| {
                let lock = File::open(folder.path())?;
                lock.lock()?;
                Ok(Self { folder, _lock: lock })
            });
        made.map_err(Error::system(format!("make a folder in {}", parent.display())))
    }

    /// Gives the folder to the account a server runs as.
    ///
    /// # Errors
    /// When this process may not.
    pub fn give_to(&self, account: Account) -> Result<(), Error> {
        chown(self.path(), Some(account.user), Some(account.group)).map_err(Error::system(format!(
            "give {} to user {}",
            self.path().display(),
            account.user
        )))
    }

    /// Puts a file into it that only its owner can read: that account, or the one of this process.
    ///
    /// # Errors
    /// When this process may not.
    pub fn place(&self, name: &str, text: &str, owner: Option<Account>) -> Result<(), Error> {
        let path = self.file(name);
        let placed = std::fs::write(&path, text).and_then(|()| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            match owner {
                Some(account) => chown(&path, Some(account.user), Some(account.group)),
                None => Ok(()),
            }
        });
        placed.map_err(Error::system(format!("write {}", path.display())))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of this name in it is.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// Removes those that have not changed for so long and that nobody has locked. What cannot be removed stays: it is in nobody's way.
fn remove_left_over(parent: &Path, left_for: Duration) {
    let is_left_over = |path: &Path| {
        let age = path.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        (age >= left_for && File::open(path).ok()?.try_lock().is_ok()).then_some(())
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if is_left_over(&entry.path()).is_some() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_left_behind_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let in_use = Folder::new("in-use", Some(parent.path())).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        let other = parent.path().join("other");
        for folder in [&left, &other] {
            std::fs::create_dir_all(folder.join("inside")).unwrap();
        }
        remove_left_over(parent.path(), LEFT_FOR);
        assert!(left.exists(), "it is young");
        remove_left_over(parent.path(), Duration::ZERO);
        assert!(in_use.path().exists() && other.exists() && !left.exists());
    }

    #[test]
    fn a_folder_goes_with_all_it_holds() {
        let folder = Folder::new("example", None).unwrap();
        let path = folder.path().to_path_buf();
        std::fs::write(folder.file("a"), "b").unwrap();
        assert!(path.join("a").exists());
        drop(folder);
        assert!(!path.exists());
    }
}
