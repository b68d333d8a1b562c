//! Changes of the schema's own texts, for what SQLite's ALTER TABLE cannot do.
//!
//! Promises: inside the caller's transaction, whole or not at all, and rolled back with it. The caller vouches for the texts: a text must
//! describe the rows as they are stored. Statements of clients never get here: the authorizer refuses them the PRAGMAs, and the
//! connection's defensive mode the table.
//!
//! The way is the one that SQLite's documentation of ALTER TABLE describes ("Making Other Kinds Of Table Schema Changes"): the text is
//! replaced in `sqlite_schema`, and the schema's version raised, so that every connection reads it again.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::Session;
use forebay_write::{StatementError, StatementErrorKind, WriteError};

/// A change of the schema's own texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaEdit {
    /// Replaces the text of a table. Its rows, as they are stored, must be rows of that text.
    TableText {
        /// The table.
        table: String,
        /// Its CREATE TABLE.
        sql: String,
    },
    /// Replaces the name and the text of an index.
    IndexText {
        /// The index.
        index: String,
        /// Its name from now on.
        name: String,
        /// Its CREATE INDEX.
        sql: String,
    },
    /// Puts one table into the place of another, which goes on under a name that nothing refers to. Neither has indexes but those of its
    /// own constraints.
    Replace {
        /// The table, in name.
        table: String,
        /// Its CREATE TABLE.
        sql: String,
        /// What holds its rows now.
        by: String,
        /// The name of what held its rows so far.
        old: String,
        /// The CREATE TABLE of that one.
        old_sql: String,
    },
}

impl Session {
    /// Changes the schema's own texts; see the module.
    ///
    /// # Errors
    /// SQLite's, if what the texts describe is no schema; nothing has changed then.
    pub fn edit_schema(&mut self, edit: &SchemaEdit) -> Result<(), WriteError> {
        self.close_cursors();
        self.trusted("SAVEPOINT forebay_edit")
            .map_err(|failure| failure.error)?;
        let edited = self.authorizer.trusting(|| edit_texts(&self.connection, edit));
        self.programs.clear();
        self.schema_changed = true;
        match edited {
            Ok(()) => self.trusted("RELEASE forebay_edit").map_err(|failure| failure.error),
            Err(error) => {
                let error = match error {
                    rusqlite::Error::QueryReturnedNoRows => WriteError::Statement(StatementError::new(
                        StatementErrorKind::Corrupt,
                        rusqlite::ffi::SQLITE_CORRUPT,
                        "what is to be changed is not in the schema",
                    )),
                    error => self.explain(&error),
                };
                let undone = self
                    .trusted("ROLLBACK TO forebay_edit")
                    .and_then(|()| self.trusted("RELEASE forebay_edit"));
                self.forget_schema();
                undone.map_err(|failure| failure.error)?;
                Err(error)
            }
        }
    }

    /// Whether foreign keys are looked at only when the transaction ends; its end makes them as they were declared. Those that were
    /// declared deferred are so in any case.
    ///
    /// # Errors
    /// SQLite's, which there is no reason for.
    pub fn defer_foreign_keys(&mut self, defer: bool) -> Result<(), WriteError> {
        let set = if defer {
            "PRAGMA defer_foreign_keys = ON"
        } else {
            // By itself it forgets the violations so far, also those of deferred keys. Going back to a savepoint brings them
            // back, and leaves this setting.
            "SAVEPOINT forebay_keys; PRAGMA defer_foreign_keys = OFF; ROLLBACK TO forebay_keys; RELEASE forebay_keys"
        };
        let deferred = self.authorizer.trusting(|| self.connection.execute_batch(set));
        deferred.map_err(|error| self.explain(&error))
    }

    /// Has SQLite read the schema again: a rollback may have made what it remembers untrue.
    pub(super) fn forget_schema(&self) {
        let forgotten = self
            .authorizer
            .trusting(|| self.connection.execute_batch("PRAGMA writable_schema = RESET"));
        if let Err(error) = forgotten {
            tracing::warn!(%error, "the schema could not be forgotten");
        }
    }
}

/// Puts the defensive mode back, also when a panic leaves it.
struct Undefended<'a>(&'a Connection, bool);

impl<'a> Undefended<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        let before = connection.db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
        Ok(Self(connection, before))
    }
}

impl Drop for Undefended<'_> {
    fn drop(&mut self) {
        // PRAGMAs take effect as they are compiled; compiled statements of them are never kept.
        let closed = self
            .0
            .execute_batch("PRAGMA writable_schema = OFF")
            .and_then(|()| self.0.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, self.1));
        if let Err(error) = closed {
            tracing::error!(%error, "the schema could not be closed against writing");
        }
    }
}

fn edit_texts(connection: &Connection, edit: &SchemaEdit) -> rusqlite::Result<()> {
    let _until_the_end = Undefended::begin(connection)?;
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    let one = |changed: usize| match changed {
        1 => Ok(()),
        _ => Err(rusqlite::Error::QueryReturnedNoRows),
    };
    let looked_at = match edit {
        SchemaEdit::TableText { table, sql } => {
            one(connection.execute(
                "UPDATE main.sqlite_schema SET sql = ?2 WHERE type = 'table' AND name = ?1",
                (table, sql),
            )?)?;
            table.clone()
        }
        SchemaEdit::IndexText { index, name, sql } => {
            let table: String = connection.query_row(
                "UPDATE main.sqlite_schema SET name = ?2, sql = ?3 WHERE type = 'index' AND name = ?1 AND sql IS NOT NULL \
                 RETURNING tbl_name",
                (index, name, sql),
                |row| row.get(0),
            )?;
            // The name is also that of its statistics.
            let counted: bool = connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'sqlite_stat1')",
                (),
                |row| row.get(0),
            )?;
            if counted {
                connection.execute("UPDATE main.sqlite_stat1 SET idx = ?2 WHERE idx = ?1", (index, name))?;
            }
            table
        }
        SchemaEdit::Replace {
            table,
            sql,
            by,
            old,
            old_sql,
        } => {
            rename(connection, table, old, old_sql)?;
            rename(connection, by, table, sql)?;
            table.clone()
        }
    };
    let quoted = looked_at.replace('"', "\"\"");
    connection.execute_batch("PRAGMA writable_schema = RESET")?;
    // Behind RESET, so that SQLite knows at a rollback that the schema has changed in between.
    let version: i64 = connection.query_row("PRAGMA main.schema_version", (), |row| row.get(0))?;
    connection.execute_batch(&format!("PRAGMA main.schema_version = {}", (version + 1) & 0x7fff_ffff))?;
    connection
        .prepare(&format!("SELECT * FROM main.\"{quoted}\""))
        .map(|_| ())
}

/// Under another name in the schema, with the indexes of its constraints.
fn rename(connection: &Connection, from: &str, to: &str, sql: &str) -> rusqlite::Result<()> {
    let changed = connection.execute(
        "UPDATE main.sqlite_schema SET name = ?2, tbl_name = ?2, sql = ?3 WHERE type = 'table' AND name = ?1",
        (from, to, sql),
    )?;
    if changed != 1 {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    connection.execute(
        "UPDATE main.sqlite_schema SET tbl_name = ?2, name = 'sqlite_autoindex_' || ?2 || substr(name, length('sqlite_autoindex_' || ?1) + 1) \
         WHERE type = 'index' AND tbl_name = ?1 AND sql IS NULL",
        (from, to),
    )?;
    Ok(())
}
