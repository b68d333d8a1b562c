//! The SQL front end: takes statement text and says what to do with it; after a look at the schema, what SQLite is to run instead.
//!
//! Promises:
//! - It is PostgreSQL's SQL, carried out by SQLite: equal, or refused with words that name it (0A000), never different. Where
//!   PostgreSQL reports an error, a spelling of SQLite's own may stand instead: PRAGMA does.
//! - What would change or read the state of a connection, which all clients share, is refused by name.
//!
//! `compile` is the compiler, `functions` what its output calls, `facts` what PostgreSQL knows of its types and functions. Queries of
//! PostgreSQL's catalog are told apart here (`catalog_query`) and answered elsewhere.
//!
//! Knows nothing of sockets, messages or transactions.

mod alter_sequence;
mod carrier;
mod catalog_query;
mod command;
pub(crate) mod compile;
mod copied;
mod copy;
mod dialect;
mod environment;
mod error;
pub(crate) mod facts;
pub(crate) mod functions;
mod grammar;
pub(crate) mod identifier;
mod lexer;
mod lift;
mod maintenance;
mod misread;
mod pragma;
mod script;
mod sequence_options;
mod split;
mod statement;
mod tag;
#[cfg(test)]
mod tests;
mod token_cursor;
pub(crate) mod walk;

pub(crate) use compile::attempt::{Attempt, Question, Suspect};
pub(crate) use compile::definition::Definition;
pub(crate) use compile::namespace::{parted, search_path, shown};
pub use compile::{Locks, Plan, ResultColumn, SessionColumn, Step};
pub(crate) use copied::{CopiedColumn, copied_columns};
pub use copy::{Copy, Forced, Format, Header, Subject};
pub use environment::Environment;
pub use error::SqlError;
pub use functions::{Drawn, GIVE_BACK, Marked, Sequences, SessionContext, marked_error, register, zone};
pub(crate) use functions::{clock_micros, stored_timestamptz};
pub(crate) use lift::lift;
pub use script::Script;
#[cfg(test)]
pub use script::parse_script;
pub use split::Hints;
pub use statement::{Direction, Isolation, Kind, ResetTarget, Statement};
pub use tag::Tag;

use error::character_position;

/// Compiles a statement that is for SQLite, by the schema of this connection. `declared` are the types the client gave its parameters.
pub(crate) fn compile(
    connection: &rusqlite::Connection,
    statement: &Statement,
    script: &str,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    declared: &[u32],
) -> Result<Plan, SqlError> {
    if let Some(maintenance) = &statement.maintenance {
        return maintenance.plan(connection, environment);
    }
    if let Some(alter) = &statement.altered_sequence {
        return compile::alter_sequence(alter, connection, environment, values)
            .map_err(|fault| placed(fault, statement, script));
    }
    let Some(tree) = &statement.tree else {
        return described_by_sqlite(connection, statement);
    };
    grammar::with_deep_stack(tree.depth(), || {
        compile::compile(tree.statement(), connection, environment, values, declared)
            .map_err(|fault| placed(fault, statement, script))
    })
}

/// Compiles the arguments of an EXECUTE: a query of one row, its columns of these types.
pub(crate) fn compile_arguments(
    connection: &rusqlite::Connection,
    statement: &Statement,
    script: &str,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    wanted: &[u32],
) -> Result<Plan, SqlError> {
    let tree = statement.tree.as_ref().expect("an EXECUTE is parsed");
    grammar::with_deep_stack(tree.depth(), || {
        compile::compile_arguments(tree.statement(), connection, environment, values, wanted)
            .map_err(|fault| placed(fault, statement, script))
    })
}

/// The compiler's error, with its place in the script.
fn placed(fault: compile::Fault, statement: &Statement, script: &str) -> SqlError {
    let place = fault.location.map(|location| {
        character_position(script, statement.offset) - 1
            + grammar::position_of(&statement.sql, location.line, location.column)
    });
    let mut error = SqlError::from(fault);
    if let SqlError::Fault { position, .. } = &mut error {
        *position = place;
    }
    error
}

/// What a statement that has failed was about to do. `parameters` are the types that its parameters have.
pub(crate) fn attempt(
    connection: &rusqlite::Connection,
    statement: &Statement,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    parameters: &[u32],
    suspect: &Suspect,
) -> Option<Attempt> {
    let tree = statement.tree.as_ref()?;
    grammar::with_deep_stack(tree.depth(), || {
        compile::attempt::compile(tree.statement(), connection, environment, values, parameters, suspect)
    })
}

/// A PRAGMA that was judged: as SQLite describes it.
fn described_by_sqlite(connection: &rusqlite::Connection, statement: &Statement) -> Result<Plan, SqlError> {
    let prepared = connection.prepare(&statement.sql)?;
    let columns = prepared
        .columns()
        .map(|column| ResultColumn {
            name: column.name().to_owned(),
            kind: compile::types::TypeName::plain(facts::oid::TEXT),
            not_null: false,
            origin: None,
        })
        .collect();
    Ok(Plan {
        columns,
        writes: !prepared.readonly() || statement.runs_alone,
        session_bound: true,
        ..Plan::of_steps(vec![statement.sql.to_string().into()])
    })
}

/// Whether SQLite's text of a table has a foreign key that is DEFERRABLE and not INITIALLY DEFERRED.
pub(crate) fn is_deferrable_only(sql: &str) -> bool {
    Definition::read(sql).is_some_and(|table| table.foreign_keys.iter().any(|key| key.deferrable && !key.deferred))
}
