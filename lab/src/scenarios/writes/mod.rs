//! `writes`: rows into a real database, every caller waiting for its own durable outcome.
//!
//! Promises: every system writes the same rows into the same table on the same disk with the same durability, and nothing
//! counts that was not acknowledged and then found in the database. Knows which databases there are; each has files of its
//! own, and what those over the network have in common is in `served`.

mod by_hand;
mod cases;
mod forebay;
mod mariadb;
mod mariadb_systems;
mod postgres;
mod postgres_systems;
mod served;
mod sqlite;
mod sqlite_systems;

use std::time::Duration;

use clap::ValueEnum;

use crate::failure::Failure;
use crate::goal::Goal;
use crate::scenario::{Scenario, Stage, Trial, Yardsticks};

/// What a measurement takes when it is to be quick: there are some twenty a database, each with a table to make and to read.
pub(crate) const QUICKLY: Duration = Duration::from_millis(450);

/// The databases written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    /// SQLite, WAL, synchronous=FULL.
    Sqlite,
    /// PostgreSQL, with its own durability.
    Postgres,
    /// MariaDB, with its own durability.
    Mariadb,
}

/// The scenario, on one database.
#[derive(Debug)]
pub(crate) struct Writes {
    database: Database,
    is_quick: bool,
}

impl Writes {
    /// The scenario on that database; without one on each of them, one after another. Where it is to be quick its large table is smaller.
    pub(crate) fn on(database: Option<Database>, is_quick: bool) -> Vec<Box<dyn Scenario>> {
        let all = Database::value_variants();
        let databases = database.as_ref().map_or(all, std::slice::from_ref);
        let on = |database: &Database| -> Box<dyn Scenario> {
            Box::new(Self {
                database: *database,
                is_quick,
            })
        };
        databases.iter().map(on).collect()
    }
}

impl Scenario for Writes {
    fn name(&self) -> String {
        let database = match self.database {
            Database::Sqlite => "sqlite",
            Database::Postgres => "postgres",
            Database::Mariadb => "mariadb",
        };
        format!("writes-{database}")
    }

    fn about(&self) -> String {
        let about = match self.database {
            Database::Sqlite => sqlite::ABOUT,
            Database::Postgres => postgres::ABOUT,
            Database::Mariadb => mariadb::ABOUT,
        };
        about.to_owned()
    }

    fn versions(&self) -> Vec<(String, String)> {
        match self.database {
            Database::Sqlite => vec![("SQLite".to_owned(), rusqlite::version().to_owned())],
            Database::Postgres => postgres::versions(),
            Database::Mariadb => mariadb::versions(),
        }
    }

    fn prepare(&self, stage: &Stage<'_>, absent: &mut Vec<Failure>) -> Result<Vec<Box<dyn Trial>>, Failure> {
        match self.database {
            Database::Sqlite => Ok(sqlite::trials(self.is_quick)),
            Database::Postgres => postgres::trials(stage, absent),
            Database::Mariadb => mariadb::trials(stage),
        }
    }

    fn yardsticks(&self) -> Yardsticks {
        match self.database {
            Database::Sqlite => sqlite::yardsticks(),
            Database::Postgres => postgres::yardsticks(),
            Database::Mariadb => mariadb::yardsticks(),
        }
    }

    fn goals(&self) -> Vec<Goal> {
        match self.database {
            Database::Sqlite => sqlite::goals(),
            Database::Postgres => postgres::goals(),
            Database::Mariadb => mariadb::goals(),
        }
    }
}
