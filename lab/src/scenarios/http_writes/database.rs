//! The databases that the service writes to: started, emptied, and looked into by clients of their own.
//!
//! Promises: each has its own default durability, on the disk to be measured; what is told of its rows, the database told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use testbed::{MariaDb, Postgres, Program};

use crate::failure::Failure;
use crate::machine::first_line_of;

/// What a statement of the lab's own may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    MariaDb,
    Postgres,
    Sqlite,
}

impl Kind {
    /// In the order of the report: the one of the published figures first.
    pub(super) const ALL: [Self; 3] = [Self::MariaDb, Self::Postgres, Self::Sqlite];

    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// Of what would be started.
    pub(super) fn version(self) -> String {
        match self {
            Self::MariaDb => first_line_of("mariadb", &["--version"]),
            Self::Postgres => first_line_of("pg_config", &["--version"]),
            Self::Sqlite => rusqlite::version().to_owned(),
        }
    }
}

/// A database that is there; stopped when dropped.
pub(super) enum Database {
    MariaDb(MariaDb),
    Postgres(Postgres),
    Sqlite { file: PathBuf },
}

impl Database {
    /// Starts one with its data in `folder`.
    pub(super) fn start(kind: Kind, folder: &Path) -> Result<Self, Failure> {
        let started = match kind {
            Kind::MariaDb => MariaDb::builder().folder_in(folder).start().map(Self::MariaDb),
            Kind::Postgres => Postgres::builder().folder_in(folder).start().map(Self::Postgres),
            Kind::Sqlite => Ok(Self::Sqlite {
                file: folder.join("web.db"),
            }),
        };
        started.map_err(|error| match error {
            testbed::Error::NotInstalled { .. } => Failure::Absent {
                what: kind.name().to_owned(),
                cause: error.to_string(),
                remedy: "measured without it".to_owned(),
            },
            error => error.into(),
        })
    }

    /// How the service reaches it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::MariaDb(server) => server.url(),
            Self::Postgres(server) => server.url(),
            Self::Sqlite { file } => format!("sqlite:{}", file.display()),
        }
    }

    /// Removes all rows.
    pub(super) fn empty(&self) -> Result<(), Failure> {
        self.execute(match self {
            Self::Sqlite { .. } => "DELETE FROM entry",
            Self::MariaDb(_) | Self::Postgres(_) => "TRUNCATE TABLE entry",
        })?;
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
            Self::Postgres(_) => self.execute("CHECKPOINT").map(drop),
            // MariaDB writes pages all the time, SQLite at commits.
            Self::MariaDb(_) | Self::Sqlite { .. } => Ok(()),
        }
    }

    /// Gives what a statement returns, as text.
    fn execute(&self, statement: &str) -> Result<String, Failure> {
        match self {
            Self::MariaDb(server) => {
                let (host, port) = (server.address().ip().to_string(), server.address().port().to_string());
                let options = ["--no-defaults", "--user=root", "--batch", "--skip-column-names"];
                let place = ["--host", &host, "--port", &port, "--execute", statement, "test"];
                let client = Program::new("mariadb", options.into_iter().chain(place));
                Ok(client.run(PATIENCE)?)
            }
            Self::Postgres(server) => {
                let url = server.url();
                let options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command"];
                let client = Program::new("psql", options.into_iter().chain([statement, &url]));
                Ok(client.run(PATIENCE)?)
            }
            Self::Sqlite { file } => {
                let connection = Connection::open(file)?;
                connection.busy_timeout(PATIENCE)?;
                if statement.starts_with("SELECT") {
                    let number: i64 = connection.query_row(statement, (), |row| row.get(0))?;
                    return Ok(number.to_string());
                }
                connection.execute(statement, ())?;
                Ok(String::new())
            }
        }
    }
}
