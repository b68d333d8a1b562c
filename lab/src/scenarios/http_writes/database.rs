//! The databases that the service writes to: started, emptied, and looked into by clients of their own.
//!
//! Promises: each has its own default durability, on the disk to be measured; what is told of its rows, the database told.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::failure::Failure;

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
}

impl Kind {
    /// In the order of the report.
    pub(super) const ALL: [Self; 1] = [Self::Sqlite];

    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
        }
    }

    /// Of what would be started.
    pub(super) fn version(self) -> String {
        match self {
            Self::Sqlite => rusqlite::version().to_owned(),
        }
    }
}

/// A database that is there.
pub(super) enum Database {
    Sqlite { file: PathBuf },
}

impl Database {
    /// Starts one with its data in `folder`.
    pub(super) fn start(kind: Kind, folder: &Path) -> Result<Self, Failure> {
        match kind {
            Kind::Sqlite => Ok(Self::Sqlite {
                file: folder.join("web.db"),
            }),
        }
    }

    /// How the service reaches it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::Sqlite { file } => format!("sqlite:{}", file.display()),
        }
    }

    /// Removes all rows.
    pub(super) fn empty(&self) -> Result<(), Failure> {
        self.execute("DELETE FROM entry")?;
        Ok(())
    }

    /// How many rows there are, and how many of them with this value.
    pub(super) fn count(&self, value: u32) -> Result<(u64, u64), Failure> {
        // One number, which every client prints alike.
        let count = |select: &str| {
            let told = self.execute(select)?;
            let number = told.trim().parse();
            number.map_err(|_| Failure::Wrong(format!("{select} gave {told:?}")))
        };
        let all = count("SELECT count(*) FROM entry")?;
        Ok((
            all,
            count(&format!("SELECT count(*) FROM entry WHERE value = {value}"))?,
        ))
    }

    /// Lets it write what it has put off, so that this does not reach into the turns of others.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        match self {
            Self::Sqlite { .. } => Ok(()),
        }
    }

    /// Gives what a statement returns, as text.
    fn execute(&self, statement: &str) -> Result<String, Failure> {
        match self {
            Self::Sqlite { file } => {
                let connection = Connection::open(file)?;
                connection.busy_timeout(std::time::Duration::from_secs(10))?;
                if statement.starts_with("SELECT") {
                    let number: i64 = connection.query_row(statement, (), |row| row.get(0))?;
                    Ok(number.to_string())
                } else {
                    connection.execute(statement, ())?;
                    Ok(String::new())
                }
            }
        }
    }
}
