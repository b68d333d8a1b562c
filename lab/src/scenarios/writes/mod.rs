//! `writes`: rows into a real database, every caller waiting for its own durable outcome.
//!
//! Promises: every system writes the same rows into the same table on the same disk with the same durability, and nothing
//! counts that was not acknowledged and then found in the database. Knows the table and the cases; each database has a file
//! of its own.

mod sqlite;
mod sqlite_systems;

use clap::ValueEnum;

use crate::failure::Failure;
use crate::goal::Goal;
use crate::scenario::{Scenario, Stage, Trial, Yardsticks};

/// The databases written to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Database {
    /// SQLite, WAL, synchronous=FULL.
    Sqlite,
}

/// The scenario, on one database.
#[derive(Debug)]
pub(crate) struct Writes {
    database: Database,
}

impl Writes {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl Scenario for Writes {
    fn name(&self) -> String {
        match self.database {
            Database::Sqlite => "writes-sqlite".to_owned(),
        }
    }

    fn about(&self) -> String {
        match self.database {
            Database::Sqlite => sqlite::ABOUT.to_owned(),
        }
    }

    fn versions(&self) -> Vec<(String, String)> {
        match self.database {
            Database::Sqlite => vec![("SQLite".to_owned(), rusqlite::version().to_owned())],
        }
    }

    fn prepare(&self, _: &Stage<'_>, _: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        match self.database {
            Database::Sqlite => Ok(sqlite::trials()),
        }
    }

    fn yardsticks(&self) -> Yardsticks {
        match self.database {
            Database::Sqlite => sqlite::yardsticks(),
        }
    }

    fn goals(&self) -> Vec<Goal> {
        match self.database {
            Database::Sqlite => sqlite::goals(),
        }
    }
}
