//! SQL functions that do what PostgreSQL's spellings mean where SQLite's own would silently do something else.
//!
//! Contract: a cast gives the canonical stored form of a value or fails; NULL stays NULL. A failure's text is
//! `SQLSTATE 22P02: invalid input syntax …`, which [`marked_error`] takes apart. All are deterministic and touch nothing.
//!
//! Knows nothing of statements; the names begin with `forebay_` and are put into statements when they are rewritten.

mod cast;
mod ilike;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value;

pub(crate) use cast::{CastError, Target, cast as cast_value};

/// How the text of an error from these functions begins; the five characters of the code and `: ` follow.
const MARKER: &str = "SQLSTATE ";

/// Adds the functions to a connection. Every connection that runs rewritten statements needs them, reading and writing ones.
pub fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    for target in Target::ALL {
        connection.create_scalar_function(target.function_name(), 1, flags, move |context| {
            cast::cast(target, context.get_raw(0)).map_err(user_error)
        })?;
    }
    connection.create_scalar_function("forebay_numeric", 3, flags, |context| {
        let (precision, scale) = (context.get::<u32>(1)?, context.get::<i32>(2)?);
        cast::numeric_scaled(context.get_raw(0), precision, scale).map_err(user_error)
    })?;
    for arguments in [2, 3] {
        connection.create_scalar_function("forebay_ilike", arguments, flags, ilike_call)?;
    }
    Ok(())
}

/// The SQLSTATE and the message of an error that one of these functions raised, from the text SQLite reports.
pub fn marked_error(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(MARKER)?;
    let (code, message) = rest.split_at_checked(5)?;
    Some((code, message.strip_prefix(": ")?))
}

fn user_error(error: CastError) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(Box::new(error))
}

fn ilike_call(context: &Context<'_>) -> rusqlite::Result<Value> {
    let mut texts = Vec::with_capacity(3);
    for index in 0..context.len() {
        match cast::as_text(context.get_raw(index)) {
            Some(text) => texts.push(text),
            None => return Ok(Value::Null),
        }
    }
    let escape = match texts.get(2) {
        None => Some('\\'),
        Some(escape) => {
            let mut characters = escape.chars();
            let first = characters.next();
            if characters.next().is_some() {
                return Err(user_error(CastError::new(
                    "22025",
                    "invalid escape string: it must be empty or one character".to_owned(),
                )));
            }
            first
        }
    };
    match ilike::matches(&texts[0], &texts[1], escape) {
        Some(matched) => Ok(Value::Integer(i64::from(matched))),
        None => Err(user_error(CastError::new(
            "22025",
            "LIKE pattern must not end with escape character".to_owned(),
        ))),
    }
}
