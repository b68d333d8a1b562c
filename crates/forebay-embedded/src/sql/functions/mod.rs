//! PostgreSQL's functions as functions of SQLite: what compiled statements call.
//!
//! Promises: a function of PostgreSQL's is registered as `pg:` and its symbol; what the compiler needs beside them is in [`special`], under names
//! that begin with `forebay_`. Values come and go in their stored forms. The text of a failure carries PostgreSQL's SQLSTATE, message, detail and
//! hint, which [`marked_error`] takes apart.
//!
//! SQLite's functions know no session: what they must know of it comes as the text of one parameter ([`SessionContext`]).

mod aggregate;
mod collation;
mod error;
mod rows;
mod sequence_change;
mod sequences;
mod session_context;
mod special;
mod value;

use std::sync::Arc;

use forebay_pg_values::{Arguments, Datum, Environment, Function};
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;

pub(crate) use aggregate::{aggregate, distinct, moving};
pub(crate) use error::About;
pub use error::{Marked, marked_error};
pub(crate) use sequence_change::{SequenceChange, sequence_bounds};
pub use sequences::{Drawn, GIVE_BACK, Sequences};
pub use session_context::{SessionContext, zone};
pub(crate) use special::{clock_micros, stored_timestamptz};

use super::compile::types::ARRAY_COLLATIONS;
use aggregate::aggregates;
use collation::{COMPARISONS, compare_arrays};
use error::raised;
use session_context::session_context;
use value::{data, datum, types, utc, value};

/// Adds all functions and collations to a connection.
pub fn register(connection: &mut Connection, sequences: &Arc<Sequences>) -> rusqlite::Result<()> {
    forebay_pg_values::interruption::ask_by(forebay_sqlite::connection::is_interrupted);
    for function in forebay_pg_values::functions() {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let name = format!("pg:{}", function.symbol);
        connection.create_scalar_function(name.as_str(), -1, flags, move |context| call(function, context))?;
    }
    for aggregate in aggregates() {
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let name = format!("pg:{}", aggregate.name);
        connection.create_window_function(name.as_str(), -1, flags, aggregate)?;
    }
    for (name, comparison) in COMPARISONS {
        connection.create_collation(name, comparison)?;
    }
    for (kind, name) in ARRAY_COLLATIONS {
        connection.create_collation(name, move |left, right| compare_arrays(kind, left, right))?;
    }
    special::register(connection)?;
    sequences::register(connection, sequences)
}

/// Calls a function of PostgreSQL's; behind its own arguments stand their types and the session's context, if it asked for them.
fn call(function: &'static Function, context: &Context<'_>) -> rusqlite::Result<Value> {
    let mut count = context.len();
    let mut session = None;
    if function.in_session && count > 0 {
        count -= 1;
        let last = context.get_raw(count);
        if let Datum::Text(text) = datum(last)? {
            session = Some(session_context(text)?);
        }
    }
    let mut kinds = Vec::new();
    if function.typed && count > 0 {
        count -= 1;
        let last = context.get_raw(count);
        if let Datum::Text(labels) = datum(last)? {
            kinds = types(labels);
        }
    }
    let arguments = data(context, count)?;
    let environment: &Environment = match &session {
        Some(session) => &session.values,
        None => utc(),
    };
    function
        .call(Arguments {
            values: &arguments,
            types: &kinds,
            environment,
        })
        .map_err(raised)
        .and_then(value)
}
