//! What PostgreSQL shows a session of itself: `pg_prepared_statements`, `pg_cursors`, and its own row of `pg_stat_activity`.
//!
//! Promises: rows of the session that asks, as it is when it asks. Of other sessions, of addresses and of when a statement was prepared or a
//! cursor opened it tells nothing.

use rusqlite::{Connection, Result, params};

use super::arrays;
use super::oids::{DATABASE, OWNER};

/// The relations that are filled here.
const RELATIONS: [&str; 3] = ["\"pg_prepared_statements\"", "\"pg_cursors\"", "\"pg_stat_activity\""];

/// A prepared statement.
#[derive(Debug)]
pub struct PreparedStatement {
    /// Its name.
    pub name: String,
    /// The text that it came in.
    pub text: String,
    /// The names of its parameters' types.
    pub parameter_types: Vec<Option<String>>,
    /// PREPARE made it, and not the protocol.
    pub from_sql: bool,
}

/// A cursor, or a portal of the protocol.
#[derive(Debug)]
pub struct Cursor {
    /// Its name.
    pub name: String,
    /// The text that it came in.
    pub text: String,
    /// WITH HOLD.
    pub is_holdable: bool,
    /// SCROLL.
    pub is_scrollable: bool,
}

/// The session that asks.
#[derive(Debug)]
pub struct OwnSession {
    /// Its number.
    pub process: i32,
    /// Its `application_name`.
    pub application_name: String,
    /// The text that is being carried out.
    pub query: String,
    /// When the transaction began, as a timestamptz is stored.
    pub transaction_began: String,
    /// When the client asked, likewise.
    pub asked: String,
    /// What it has prepared.
    pub statements: Vec<PreparedStatement>,
    /// What it has open.
    pub cursors: Vec<Cursor>,
}

/// Whether a translated query reads what is filled here.
pub(super) fn is_asked_for(sql: &str) -> bool {
    RELATIONS.iter().any(|name| sql.contains(name))
}

/// Shows the session, and none that asked before.
pub(super) fn show(connection: &Connection, session: &OwnSession, database: &str, user: &str) -> Result<()> {
    connection.execute_batch(
        "DELETE FROM pg_catalog.pg_prepared_statements; DELETE FROM pg_catalog.pg_cursors; DELETE FROM pg_catalog.pg_stat_activity",
    )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO pg_catalog.pg_prepared_statements (name, statement, parameter_types, from_sql) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for statement in &session.statements {
        let types = arrays::format(&statement.parameter_types);
        insert.execute(params![statement.name, statement.text, types, statement.from_sql])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO pg_catalog.pg_cursors (name, statement, is_holdable, is_binary, is_scrollable) VALUES (?1, ?2, ?3, 0, ?4)",
    )?;
    for cursor in &session.cursors {
        insert.execute(params![
            cursor.name,
            cursor.text,
            cursor.is_holdable,
            cursor.is_scrollable
        ])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO pg_catalog.pg_stat_activity (datid, datname, pid, usesysid, usename, application_name, xact_start, query_start, \
             state_change, state, query, backend_type) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 'active', ?9, 'client backend')",
        )?
        .execute(params![
            DATABASE,
            database,
            session.process,
            OWNER,
            user,
            session.application_name,
            session.transaction_began,
            session.asked,
            session.query
        ])?;
    Ok(())
}
