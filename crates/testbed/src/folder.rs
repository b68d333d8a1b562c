//! A folder of a server's own, removed with it, readable by the account the server runs as.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::{Account, Error};

/// A temporary folder; dropping it removes it and all it holds.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    /// A new folder in `parent`, or where the system keeps temporary files. Its name begins with `forebay-testbed-NAME-`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(name: &str, parent: Option<&Path>) -> Result<Self, Error> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = tempfile::Builder::new()
            .prefix(&format!("forebay-testbed-{name}-"))
            .tempdir_in(&parent)
            .map_err(Error::system(format!("make a folder in {}", parent.display())))?;
        Ok(Self { folder })
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

#[cfg(test)]
mod tests {
    use super::*;

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
