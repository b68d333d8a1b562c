//! SET CONSTRAINTS: when foreign keys are checked.
//!
//! SQLite checks deferred foreign keys when the transaction commits, and others after each statement; it can be asked whether any is violated.
//! IMMEDIATE asks that at once, and after each statement that writes from then on.

use forebay_sqlite::connection::Session as Connection;
use forebay_write::CancelToken;
use rusqlite::ffi;

use super::Session;
use super::prepared::Source;
use super::stop::Stop;
use forebay_pg_wire::error::WireError;

impl Session {
    pub(super) async fn set_constraints(
        &mut self,
        names: &[String],
        deferred: bool,
        token: &CancelToken,
    ) -> Result<(), Stop> {
        if !names.is_empty() && deferred {
            return Err(
                WireError::unsupported("SET CONSTRAINTS of single constraints is not supported")
                    .with_hint("Write SET CONSTRAINTS ALL.")
                    .into(),
            );
        }
        if self.is_outside_of_a_block() {
            self.warn("25P01", "SET CONSTRAINTS can only be used in transaction blocks");
            if self.block.is_none() {
                return Ok(());
            }
        }
        if !names.is_empty() {
            return self.make_immediate(names, token).await;
        }
        if deferred {
            let source = self.source(token).await?;
            let initially_immediate = self.on_source(&source, token, some_are_deferrable_only).await?;
            if initially_immediate.map_err(|error| WireError::internal(error.to_string()))? {
                return Err(WireError::unsupported("SET CONSTRAINTS ALL DEFERRED with a constraint that is DEFERRABLE INITIALLY IMMEDIATE is not supported")
                    .with_hint("Declare it DEFERRABLE INITIALLY DEFERRED.")
                    .into());
            }
        } else {
            self.look_at_constraints(token).await?;
        }
        if let Some(block) = &mut self.block {
            block.constraints_are_immediate = !deferred;
            block.some_constraints_are_immediate = false;
        }
        Ok(())
    }

    /// SQLite does not tell which foreign key is violated: that these are immediate and others are not matters, and is refused, as soon
    /// as any is.
    async fn make_immediate(&mut self, names: &[String], token: &CancelToken) -> Result<(), Stop> {
        let source = self.source(token).await?;
        for name in names {
            let wanted = name.clone();
            let known = self
                .on_source(&source, token, move |connection| is_deferrable(connection, &wanted))
                .await?;
            if !known.map_err(|error| WireError::internal(error.to_string()))? {
                return Err(WireError::unsupported(format!(
                    "SET CONSTRAINTS of \"{name}\", which is not a constraint that was declared DEFERRABLE under this name, is not supported"
                ))
                .into());
            }
        }
        if let Some(block) = &mut self.block {
            block.some_constraints_are_immediate = true;
        }
        self.look_at_some_constraints(token).await
    }

    /// Refuses to go on if a foreign key is violated while some are immediate.
    pub(super) async fn look_at_some_constraints(&mut self, token: &CancelToken) -> Result<(), Stop> {
        if self.block.as_ref().is_none_or(|block| block.write().is_none()) {
            return Ok(());
        }
        if self.on_source(&Source::Block, token, some_are_violated).await? {
            return Err(WireError::unsupported(
                "a violated foreign key while SET CONSTRAINTS has made some immediate is not supported",
            )
            .with_hint("Write SET CONSTRAINTS ALL.")
            .into());
        }
        Ok(())
    }

    /// Fails if the transaction has left a foreign key violated.
    pub(super) async fn look_at_constraints(&mut self, token: &CancelToken) -> Result<(), Stop> {
        if self.block.as_ref().is_none_or(|block| block.write().is_none()) {
            return Ok(());
        }
        if self.on_source(&Source::Block, token, some_are_violated).await? {
            return Err(WireError::new("23503", "a row violates a foreign key constraint").into());
        }
        Ok(())
    }
}

/// Whether a table was declared with a constraint of this name, and with one that is deferrable.
#[allow(
    clippy::needless_pass_by_ref_mut,
    reason = "jobs are given their connection like this"
)]
fn is_deferrable(connection: &mut Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'
        AND (instr(sql, 'CONSTRAINT \"' || replace(?1, '\"', '\"\"') || '\"') OR instr(sql, 'CONSTRAINT ' || ?1 || ' '))
        AND instr(upper(sql), 'DEFERRABLE INITIALLY')";
    connection
        .connection()
        .query_row(sql, [name], |row| row.get::<_, i64>(0))
        .map(|count| count > 0)
}

/// Whether a foreign key is violated that will be looked at when the transaction commits.
#[allow(
    clippy::needless_pass_by_ref_mut,
    reason = "jobs are given their connection like this"
)]
fn some_are_violated(connection: &mut Connection) -> bool {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: the handle is that of an open connection, used on the thread that owns it; both pointers are to live integers.
    let asked = unsafe {
        ffi::sqlite3_db_status(
            connection.connection().handle(),
            ffi::SQLITE_DBSTATUS_DEFERRED_FKS,
            &raw mut current,
            &raw mut highest,
            0,
        )
    };
    asked != ffi::SQLITE_OK || current != 0
}

/// Whether a foreign key is deferrable and not deferred yet, by the definitions of the tables.
#[allow(
    clippy::needless_pass_by_ref_mut,
    reason = "jobs are given their connection like this"
)]
fn some_are_deferrable_only(connection: &mut Connection) -> rusqlite::Result<bool> {
    let mut statement = connection
        .connection()
        .prepare_cached("SELECT sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%deferrable%'")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if crate::sql::is_deferrable_only(&row.get::<_, String>(0)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
