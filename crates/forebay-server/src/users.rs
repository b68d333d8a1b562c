//! The users file: who may connect, and what proves it.
//!
//! One user a line, `name:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey` (or `name:md5…`), as PostgreSQL keeps it; a verifier proves a
//! password and does not contain it. Empty lines and lines that begin with `#` are kept and ignored.
//!
//! Promises: a file that cannot be understood is an error that names the line; the file is replaced as a whole or not at all, and only
//! its owner may read it. Does not know: connections, SCRAM messages, the command line.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use forebay_pg_wire::verifier::{StoredPassword, Verifier};

/// The longest name, as in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

/// Why a users file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsersError {
    /// The file cannot be read or written.
    #[error("users file {}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A line cannot be understood: correct or remove it.
    #[error("users file {}, line {line}: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// A user cannot have this name: choose another.
    #[error("user name {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
}

/// The users of one file, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    User(String, StoredPassword),
    /// A comment or an empty line, as it stands.
    Other(String),
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or a line cannot be understood or repeats a user.
    pub fn load(path: &Path) -> Result<Self, UsersError> {
        let text = std::fs::read_to_string(path).map_err(|error| UsersError::File {
            path: path.to_owned(),
            error,
        })?;
        let mut users = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line_error = |why: String| UsersError::Line {
                path: path.to_owned(),
                line: index + 1,
                why,
            };
            if line.trim().is_empty() || line.starts_with('#') {
                users.lines.push(Line::Other(line.to_owned()));
                continue;
            }
            let (name, stored) = line
                .split_once(':')
                .ok_or_else(|| line_error("expected name:verifier".to_owned()))?;
            check_name(name).map_err(|error| line_error(error.to_string()))?;
            let stored = stored
                .trim_end()
                .parse()
                .map_err(|why: &str| line_error(why.to_owned()))?;
            if users.stored(name).is_some() {
                return Err(line_error(format!("user {name:?} stands here twice")));
            }
            users.lines.push(Line::User(name.to_owned(), stored));
        }
        Ok(users)
    }

    /// Reads a file if it exists; none means no users yet.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_or_empty(path: &Path) -> Result<Self, UsersError> {
        match Self::load(path) {
            Err(UsersError::File { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            other => other,
        }
    }

    /// Replaces the file as a whole: written beside it, flushed, renamed. Only the owner may read it.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then the old file stands.
    pub fn save(&self, path: &Path) -> Result<(), UsersError> {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = directory.join(format!(".{name}.{:016x}", rand::random::<u64>()));
        let written = self.write(&beside).and_then(|()| {
            std::fs::rename(&beside, path)?;
            // The rename itself is durable once the directory is.
            std::fs::File::open(directory)?.sync_all()
        });
        written.map_err(|error| {
            // Whether or not it was created: what matters is the first error.
            let _ = std::fs::remove_file(&beside);
            UsersError::File {
                path: path.to_owned(),
                error,
            }
        })
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        // Also when the umask would take more away.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        for line in &self.lines {
            match line {
                Line::User(name, stored) => writeln!(file, "{name}:{stored}")?,
                Line::Other(text) => writeln!(file, "{text}")?,
            }
        }
        file.sync_all()
    }

    /// Adds a user or changes the password of one; true when the user is new.
    ///
    /// # Errors
    ///
    /// When nobody can have that name.
    pub fn set(&mut self, name: &str, verifier: Verifier) -> Result<bool, UsersError> {
        check_name(name)?;
        let stored = StoredPassword::Scram(verifier);
        for line in &mut self.lines {
            if let Line::User(known, old) = line
                && known == name
            {
                *old = stored;
                return Ok(false);
            }
        }
        self.lines.push(Line::User(name.to_owned(), stored));
        Ok(true)
    }

    /// Removes a user; false when there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.lines.len();
        self.lines
            .retain(|line| !matches!(line, Line::User(known, _) if known == name));
        self.lines.len() < before
    }

    /// The users' names, in the file's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::User(name, _) => Some(name.as_str()),
            Line::Other(_) => None,
        })
    }

    /// The users with what is stored of their passwords, in the file's order.
    pub fn into_stored(self) -> impl Iterator<Item = (String, StoredPassword)> {
        self.lines.into_iter().filter_map(|line| match line {
            Line::User(name, stored) => Some((name, stored)),
            Line::Other(_) => None,
        })
    }

    /// What is stored of the user's password; `None` for nobody.
    pub fn stored(&self, name: &str) -> Option<&StoredPassword> {
        self.lines.iter().find_map(|line| match line {
            Line::User(known, stored) if known == name => Some(stored),
            _ => None,
        })
    }
}

fn check_name(name: &str) -> Result<(), UsersError> {
    let why = if name.is_empty() {
        "a name has at least one character"
    } else if name.len() > NAME_BYTES_MAX {
        "a name has at most 63 bytes"
    } else if name.starts_with('#') || name.trim() != name || name.contains(|c: char| c == ':' || c.is_control()) {
        "a name has no colon, no control character, no # at its start and no space at either end"
    } else {
        return Ok(());
    };
    Err(UsersError::Name {
        name: name.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_as_it_was_saved_and_only_its_owner_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        let hashed = format!("hashed:md5{}", "0123456789abcdef".repeat(2));
        std::fs::write(&path, format!("# ours\n\n{hashed}\n")).unwrap();
        let mut users = Users::load(&path).unwrap();
        assert!(users.set("anna", Verifier::from_password("a")).unwrap());
        assert!(users.set("bo b", Verifier::from_password("b")).unwrap());
        assert!(!users.set("anna", Verifier::from_password("c")).unwrap());
        users.save(&path).unwrap();
        assert_eq!(Users::load(&path).unwrap(), users);
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .starts_with(&format!("# ours\n\n{hashed}\nanna:SCRAM-SHA-256$4096:"))
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(users.names().collect::<Vec<_>>(), ["hashed", "anna", "bo b"]);
        assert!(users.remove("anna") && !users.remove("anna"));
        assert!(users.stored("anna").is_none() && users.stored("bo b").is_some());
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_save_that_fails_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(Users::default().save(&path), Err(UsersError::File { .. })));
        assert!(path.is_dir());
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn errors_name_the_line() {
        let good = Verifier::from_password("x").to_string();
        let keys = good.split('$').next_back().unwrap();
        for (line, why) in [
            ("nonsense".to_owned(), "expected name:verifier"),
            ("bert:plain".to_owned(), "expected SCRAM-SHA-256$"),
            ("bert:md5abc".to_owned(), "32 hexadecimal digits"),
            (format!(":{good}"), "at least one character"),
            (format!("{}:{good}", "x".repeat(64)), "at most 63"),
            (format!("anna:{good}"), "twice"),
            (format!("x:SCRAM-SHA-256$0:AAAA${keys}"), "iterations"),
            (format!("x:SCRAM-SHA-256$99999999:AAAA${keys}"), "iterations"),
            (format!("x:SCRAM-SHA-256$4096:?${keys}"), "base64"),
            (format!("x:SCRAM-SHA-256$4096:${keys}"), "must not be empty"),
            ("x:SCRAM-SHA-256$4096:AAAA$AAAA:AAAA".to_owned(), "32 bytes"),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), format!("anna:{good}\n# comment\n{line}\n")).unwrap();
            let error = Users::load(file.path()).unwrap_err().to_string();
            assert!(error.contains("line 3") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_no_users_only_where_that_is_meant() {
        let missing = Path::new("/nonexistent/users");
        assert!(Users::load(missing).is_err());
        assert_eq!(Users::load_or_empty(missing).unwrap(), Users::default());
    }
}
