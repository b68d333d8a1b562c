//! Which PRAGMA statements a client may run.
//!
//! Promises: a PRAGMA that only reads passes; a few that write the database file pass and run alone; anything else is refused by name,
//! because it would change a connection that other clients use. Knows nothing of what a PRAGMA returns.

use super::error::SqlError;
use super::token_cursor::TokenCursor;

/// How a PRAGMA that passes is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// On any reading connection.
    Reads,
    /// On the writer, outside a shared transaction.
    WritesAlone,
}

/// Read with or without an argument, which only says what to look at.
const READING: [&str; 15] = [
    "table_info",
    "table_xinfo",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "integrity_check",
    "quick_check",
    "compile_options",
    "table_list",
    "function_list",
    "collation_list",
    "database_list",
    "module_list",
];

/// Read as long as no value is given; with one, they would change something.
const READING_WITHOUT_VALUE: [&str; 14] = [
    "user_version",
    "schema_version",
    "application_id",
    "page_count",
    "page_size",
    "freelist_count",
    "journal_mode",
    "synchronous",
    "encoding",
    "data_version",
    "auto_vacuum",
    "foreign_keys",
    "busy_timeout",
    "cache_size",
];

/// Judges the PRAGMA at the cursor, which stands behind the word PRAGMA.
pub(crate) fn judge(cursor: &TokenCursor<'_>) -> Result<Run, SqlError> {
    let mut cursor = cursor.clone();
    let mut name = cursor.name("the name of a PRAGMA")?;
    if cursor.take_sign(".") {
        name = cursor.name("the name of a PRAGMA")?;
    }
    let name = name.to_ascii_lowercase();
    let has_value = !cursor.is_at_end();
    match name.as_str() {
        "wal_checkpoint" | "optimize" | "incremental_vacuum" => Ok(Run::WritesAlone),
        "user_version" if has_value => Ok(Run::WritesAlone),
        reading if READING.contains(&reading) => Ok(Run::Reads),
        reading if READING_WITHOUT_VALUE.contains(&reading) && !has_value => Ok(Run::Reads),
        _ => {
            let what = if has_value {
                format!("PRAGMA {name} with a value")
            } else {
                format!("PRAGMA {name}")
            };
            Err(SqlError::unsupported_but(
                what,
                "Connections are shared: what it changes would change for every client.",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, TokenCursor, judge};
    use crate::sql::lexer::tokens;

    fn judged(text: &str) -> Result<Run, String> {
        let tokens = tokens(text, 100).unwrap();
        judge(&TokenCursor::new(text, &tokens)).map_err(|error| error.to_string())
    }

    #[test]
    fn reading_pragmas_pass_and_changing_ones_are_named() {
        for reading in [
            "table_info(t)",
            "main.table_xinfo('t')",
            "journal_mode",
            "INTEGRITY_CHECK",
            "user_version",
            "index_list = t",
        ] {
            assert_eq!(judged(reading), Ok(Run::Reads), "{reading}");
        }
        for alone in [
            "wal_checkpoint",
            "wal_checkpoint(TRUNCATE)",
            "optimize",
            "user_version = 7",
            "incremental_vacuum(10)",
        ] {
            assert_eq!(judged(alone), Ok(Run::WritesAlone), "{alone}");
        }
        for refused in [
            "journal_mode = delete",
            "synchronous = off",
            "foreign_keys(0)",
            "writable_schema = 1",
            "key = 'x'",
            "schema_version = 3",
        ] {
            let message = judged(refused).unwrap_err();
            let name = refused.split([' ', '(']).next().unwrap();
            assert!(message.contains(name), "{refused}: {message}");
        }
    }
}
