//! From what the database and the SQL front end say to PostgreSQL's errors: the right SQLSTATE, and where in the statement.
//!
//! The only place that maps SQLite's codes and words to SQLSTATEs. Where drivers and people look for PostgreSQL's wording, the
//! message is that and SQLite's own is the detail; all other messages stay SQLite's own, so that they can be looked up. Knows
//! no schema: a violated UNIQUE is named as PostgreSQL names one that was given no name, until the session has looked
//! (`session/violation.rs`).

use forebay_write::{StatementError, StatementErrorKind as Kind, WriteError};
use rusqlite::ffi;

use crate::sql::{self, SqlError, Statement};
use forebay_pg_wire::error::WireError;

/// SQLSTATEs that only this mapping uses.
mod state {
    pub(super) const UNIQUE_VIOLATION: &str = "23505";
    pub(super) const NOT_NULL_VIOLATION: &str = "23502";
    pub(super) const FOREIGN_KEY_VIOLATION: &str = "23503";
    pub(super) const CHECK_VIOLATION: &str = "23514";
    pub(super) const INTEGRITY_VIOLATION: &str = "23000";
    pub(super) const RAISED: &str = "P0001";
    pub(super) const UNDEFINED_TABLE: &str = "42P01";
    pub(super) const DUPLICATE_TABLE: &str = "42P07";
    pub(super) const UNDEFINED_COLUMN: &str = "42703";
    pub(super) const DUPLICATE_COLUMN: &str = "42701";
    pub(super) const AMBIGUOUS_COLUMN: &str = "42702";
    pub(super) const UNDEFINED_FUNCTION: &str = "42883";
    pub(super) const UNDEFINED_OBJECT: &str = "42704";
    pub(super) const DUPLICATE_OBJECT: &str = "42710";
    pub(super) const SYNTAX_ERROR: &str = "42601";
    pub(super) const GROUPING_ERROR: &str = "42803";
    pub(super) const OTHER_TEXT_ERROR: &str = "42000";
    pub(super) const INVALID_TEXT: &str = "22P02";
    pub(super) const OUT_OF_RANGE: &str = "22003";
    pub(super) const WRONG_TYPE: &str = "42804";
    pub(super) const PARAMETER_COUNT: &str = "08P01";
    pub(super) const READ_ONLY: &str = "25006";
    pub(super) const NO_TRANSACTION_LEFT: &str = "25P02";
    pub(super) const DISK_FULL: &str = "53100";
    pub(super) const OUT_OF_MEMORY: &str = "53200";
    pub(super) const LIMIT_EXCEEDED: &str = "54000";
    pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(super) const CANCELED: &str = "57014";
    pub(super) const SHUTTING_DOWN: &str = "57P01";
    pub(super) const IO_ERROR: &str = "58030";
    pub(super) const SERIALIZATION_FAILURE: &str = "40001";
    pub(super) const COMPLETION_UNKNOWN: &str = "40003";
    pub(super) const CORRUPTED: &str = "XX001";
    pub(super) const INTERNAL: &str = "XX000";
    pub(super) const UNSUPPORTED: &str = "0A000";
}

/// An error of executing `statement`, which came in `script`.
pub fn write(error: WriteError, statement: &Statement, script: &str) -> WireError {
    match error {
        WriteError::Statement(error) => place_name(database(&error), &error.message, statement, script),
        other => unplaced(other),
    }
}

/// An error of describing `statement`, which came in `script`. `refusal` is the reason of the connection's rules, if they refused it.
pub fn described(error: &SqlError, refusal: Option<String>, statement: &Statement, script: &str) -> WireError {
    if let Some(reason) = refusal {
        return WireError::new(state::UNSUPPORTED, reason);
    }
    match error {
        SqlError::Sqlite(error) => {
            let error = forebay_sqlite::connection::statement_error(error);
            place_name(database(&error), &error.message, statement, script)
        }
        other => understood(other),
    }
}

/// An error of understanding a script.
pub fn understood(error: &SqlError) -> WireError {
    let mut answer = WireError::new(error.sqlstate(), error.to_string());
    if let Some(hint) = error.hint() {
        answer = answer.with_hint(hint);
    }
    if let Some(detail) = error.detail() {
        answer = answer.with_detail(detail);
    }
    match error.position().and_then(|position| u32::try_from(position).ok()) {
        Some(position) => answer.with_position(position),
        None => answer,
    }
}

/// An error that has no place in a statement.
pub fn unplaced(error: WriteError) -> WireError {
    match error {
        WriteError::Statement(error) => database(&error),
        WriteError::Busy { .. } => WireError::new(state::LOCK_NOT_AVAILABLE, error.to_string())
            .with_hint("Another process writes to the file; try again, or raise --busy-timeout."),
        WriteError::Refused { reason } => WireError::new(state::UNSUPPORTED, reason),
        WriteError::SchemaChanged => WireError::new(
            state::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        ),
        WriteError::Cancelled => WireError::new(state::CANCELED, "canceling statement due to user request"),
        WriteError::TimedOut => WireError::new(state::CANCELED, "canceling statement due to statement timeout"),
        WriteError::TransactionLost => WireError::new(state::NO_TRANSACTION_LEFT, error.to_string()),
        WriteError::OutcomeUnknown { .. } => WireError::new(state::COMPLETION_UNKNOWN, error.to_string())
            .with_hint("Look whether the write is there before trying it again."),
        WriteError::Closed => WireError::fatal(
            state::SHUTTING_DOWN,
            "terminating connection due to administrator command",
        ),
        other => WireError::new(state::INTERNAL, other.to_string()),
    }
}

/// SQLite's own error, of preparing or stepping, with the byte of the statement it points at.
pub fn sqlite(error: &rusqlite::Error) -> (WireError, Option<usize>) {
    let error = forebay_sqlite::connection::statement_error(error);
    let offset = error.offset;
    (database(&error), offset)
}

/// Points at the first name that is the missing one, where SQLite did not say where it is.
fn place_name(answer: WireError, message: &str, statement: &Statement, script: &str) -> WireError {
    if answer.position.is_some() {
        return answer;
    }
    let position = missing_name(message)
        .and_then(|name| {
            // Qualified or not: a dot may also stand in the name itself.
            let last = name.rsplit('.').next().unwrap_or(name);
            statement
                .position_of_name(script, name)
                .or_else(|| statement.position_of_name(script, last))
        })
        .and_then(|position| u32::try_from(position).ok());
    match position {
        Some(position) => answer.with_position(position),
        None => answer,
    }
}

/// The name in SQLite's words for what is not there.
fn missing_name(message: &str) -> Option<&str> {
    [
        "no such table: ",
        "no such view: ",
        "no such column: ",
        "no such function: ",
        "has no column named ",
    ]
    .iter()
    .find_map(|marker| behind(message, marker))
}

/// PostgreSQL's words for what SQLite says, where it has some that are looked for.
fn wording(sqlstate: &str, message: &str) -> Option<String> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).trim_matches('"').to_owned();
    match sqlstate {
        state::UNDEFINED_TABLE => {
            let name = missing_name(message)?;
            Some(format!("relation \"{}\" does not exist", last(name)))
        }
        state::UNDEFINED_COLUMN => {
            let name = missing_name(message)?;
            if let Some(table) = message
                .strip_prefix("table ")
                .and_then(|rest| rest.split(" has no column named ").next())
            {
                return Some(format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    last(table)
                ));
            }
            Some(if name.contains('.') {
                format!("column {name} does not exist")
            } else {
                format!("column \"{name}\" does not exist")
            })
        }
        state::DUPLICATE_TABLE => {
            let name = match message.strip_suffix(" already exists") {
                Some(what) => what.split_once(' ')?.1,
                None => message.strip_prefix("there is already ")?.split(" named ").nth(1)?,
            };
            Some(format!("relation \"{}\" already exists", last(name)))
        }
        _ => None,
    }
}

fn database(error: &StatementError) -> WireError {
    // Functions of ours bring their SQLSTATE along.
    if let Some(marked) = sql::marked_error(&error.message) {
        let mut answer = WireError::new(known_sqlstate(&marked.sqlstate), marked.message);
        if let Some(detail) = marked.detail {
            answer = answer.with_detail(detail);
        }
        if let Some(hint) = marked.hint {
            answer = answer.with_hint(hint);
        }
        if let Some(table) = marked.about.table {
            answer = answer.with_table(sql::parted(&table));
        }
        answer.column = marked.about.column;
        answer.constraint = marked.about.constraint;
        return answer;
    }
    let message = error.message.as_str();
    let answer = |sqlstate: &'static str| WireError::new(sqlstate, message);
    let worded = |sqlstate: &'static str, words: String| WireError::new(sqlstate, words).with_detail(message);
    match error.kind {
        Kind::Unique => with_columns(
            match unique_name(error) {
                Some(name) => worded(
                    state::UNIQUE_VIOLATION,
                    format!("duplicate key value violates unique constraint \"{name}\""),
                )
                .with_constraint(name),
                None => answer(state::UNIQUE_VIOLATION),
            },
            message,
        ),
        Kind::NotNull => {
            let words = behind(message, "constraint failed: ")
                .and_then(|column| column.rsplit_once('.'))
                .map(|(table, column)| {
                    let table = sql::shown(table);
                    format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")
                });
            with_columns(
                match words {
                    Some(words) => worded(state::NOT_NULL_VIOLATION, words),
                    None => answer(state::NOT_NULL_VIOLATION),
                },
                message,
            )
        }
        Kind::ForeignKey => worded(
            state::FOREIGN_KEY_VIOLATION,
            "insert, update or delete violates foreign key constraint".to_owned(),
        ),
        Kind::Check => match behind(message, "CHECK constraint failed: ") {
            Some(constraint) => worded(
                state::CHECK_VIOLATION,
                format!("new row violates check constraint \"{constraint}\""),
            )
            .with_constraint(constraint),
            None => answer(state::CHECK_VIOLATION),
        },
        Kind::OtherConstraint if error.code == ffi::SQLITE_CONSTRAINT_TRIGGER => answer(state::RAISED),
        Kind::OtherConstraint => answer(state::INTEGRITY_VIOLATION),
        Kind::LockTimeout => answer(state::LOCK_NOT_AVAILABLE),
        Kind::Type if error.code == ffi::SQLITE_CONSTRAINT_DATATYPE => answer(state::WRONG_TYPE),
        Kind::Type => answer(state::INVALID_TEXT),
        Kind::Text => {
            let sqlstate = text_state(message);
            match wording(sqlstate, message) {
                Some(words) => worded(sqlstate, words),
                None => answer(sqlstate),
            }
        }
        Kind::ParameterCount => answer(state::PARAMETER_COUNT),
        Kind::ReadOnly => answer(state::READ_ONLY),
        Kind::Full => answer(state::DISK_FULL),
        Kind::TooLarge => answer(state::LIMIT_EXCEEDED),
        Kind::OutOfMemory => answer(state::OUT_OF_MEMORY),
        Kind::Io => answer(state::IO_ERROR),
        Kind::Corrupt => answer(state::CORRUPTED),
        Kind::Conflict => answer(state::SERIALIZATION_FAILURE),
        _ => match error.code & 0xff {
            ffi::SQLITE_LOCKED | ffi::SQLITE_BUSY => answer(state::LOCK_NOT_AVAILABLE),
            ffi::SQLITE_INTERRUPT => answer(state::CANCELED),
            ffi::SQLITE_AUTH => answer(state::UNSUPPORTED),
            ffi::SQLITE_SCHEMA => answer(state::SERIALIZATION_FAILURE),
            _ => answer(state::INTERNAL),
        },
    }
}

/// SQLite has one code for all that is wrong with a statement's text; its message tells them apart.
fn text_state(message: &str) -> &'static str {
    let starts = |prefix: &str| message.starts_with(prefix);
    let holds = |part: &str| message.contains(part);
    match () {
        () if starts("no such table") || starts("no such view") => state::UNDEFINED_TABLE,
        () if starts("no such column") || holds("has no column named") || starts("unknown column") => {
            state::UNDEFINED_COLUMN
        }
        () if starts("no such function") || starts("wrong number of arguments to function") => {
            state::UNDEFINED_FUNCTION
        }
        () if starts("no such index") || starts("no such trigger") || starts("no such collation") => {
            state::UNDEFINED_OBJECT
        }
        () if starts("no such savepoint") => "3B001",
        () if starts("ambiguous column name") => state::AMBIGUOUS_COLUMN,
        () if starts("duplicate column name") => state::DUPLICATE_COLUMN,
        () if starts("index ") && holds("already exists") => state::DUPLICATE_TABLE,
        () if starts("trigger ") && holds("already exists") => state::DUPLICATE_OBJECT,
        () if holds("already exists") || starts("there is already") => state::DUPLICATE_TABLE,
        () if holds("syntax error") || starts("incomplete input") || starts("unrecognized token") => {
            state::SYNTAX_ERROR
        }
        () if starts("misuse of aggregate") => state::GROUPING_ERROR,
        () if starts("integer overflow") => state::OUT_OF_RANGE,
        () if starts("malformed JSON") => state::INVALID_TEXT,
        () if starts("frame starting offset") || starts("frame ending offset") => "22013",
        () if starts("cannot modify") || holds("may not be modified") => state::READ_ONLY,
        () if holds("values for") && holds("columns") => state::SYNTAX_ERROR,
        () if starts("too many") || starts("parser stack overflow") || holds("tree is too large") => "54001",
        () => state::OTHER_TEXT_ERROR,
    }
}

/// `UNIQUE constraint failed: t.a, t.b`: the table, and the column if it is one.
fn with_columns(answer: WireError, message: &str) -> WireError {
    let Some(columns) = behind(message, "constraint failed: ") else {
        return answer;
    };
    if columns.starts_with("index '") {
        let index = columns.trim_start_matches("index '").trim_end_matches('\'');
        return answer.with_constraint(sql::shown(index));
    }
    let Some((table, column)) = columns.split(", ").next().and_then(|first| first.split_once('.')) else {
        return answer;
    };
    let answer = answer.with_table(sql::parted(table));
    if columns.contains(", ") {
        answer
    } else {
        answer.with_column(column)
    }
}

/// The constraint's name, as the catalog shows it where the table's definition gives it none.
fn unique_name(error: &StatementError) -> Option<String> {
    let columns = behind(&error.message, "constraint failed: ")?;
    if let Some(index) = columns.strip_prefix("index '") {
        return Some(sql::shown(index.trim_end_matches('\'')).to_owned());
    }
    let mut names = Vec::new();
    let mut owner = None;
    for column in columns.split(", ") {
        let (table, column) = column.split_once('.')?;
        owner = Some(table);
        names.push(column);
    }
    let table = sql::shown(owner?);
    let primary = matches!(
        error.code,
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID
    );
    Some(if primary {
        format!("{table}_pkey")
    } else {
        format!("{table}_{}_key", names.join("_"))
    })
}

fn behind<'a>(message: &'a str, marker: &str) -> Option<&'a str> {
    message.find(marker).map(|at| &message[at + marker.len()..])
}

/// The SQLSTATE that an error's text carries, if it is one this server raises.
pub fn known_sqlstate(sqlstate: &str) -> &'static str {
    KNOWN
        .iter()
        .find(|known| **known == sqlstate)
        .copied()
        .unwrap_or(state::INTERNAL)
}

/// All that the server raises by a text.
const KNOWN: &[&str] = &[
    "0A000", "21000", "22000", "22001", "22003", "22004", "22007", "22008", "22009", "2200C", "2200H", "22011",
    "22012", "22013", "22015", "2201B", "2201E", "2201F", "2201G", "2201W", "2201X", "22021", "22023", "22025",
    "2202E", "22P02", "22P03", "22P05", "23502", "23503", "23505", "23514", "3F000", "40001", "42000", "42601",
    "42602", "42701", "42702", "42703", "42704", "42710", "42712", "42725", "42803", "42804", "42809", "42830",
    "42846", "42883", "428C9", "42939", "42P01", "42P02", "42P06", "42P07", "42P09", "42P10", "42P16", "42P17",
    "42P18", "42P20", "54000", "54001", "54011", "55000", "XX000", "XX001",
];
