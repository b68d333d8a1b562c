//! How a violated constraint is reported: in PostgreSQL's words, with the row or the key that they are about.
//!
//! Promises: what is reported is true, and what cannot be known for certain is left out. Nothing is done before a statement has failed; then
//! its rows are looked at again ([`Attempt`]), in the state that it met or, outside of a transaction, in one that it could have met: it has
//! left nothing behind, so that failing for what is there now is as true an answer. That takes a bounded time, whatever the statement is.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use forebay_sqlite::connection::Session as Connection;
use forebay_write::{CancelToken, Parameters, StatementErrorKind, Value, WriteError};
use rusqlite::Row;
use rusqlite::types::{Value as Held, ValueRef};

use super::Session;
use super::prepared::Prepared;
use crate::sql::{self, Attempt, Definition, Question, Suspect};
use forebay_pg_wire::error::WireError;

/// So long it is looked for the row: the statement has ended, and neither its time-out nor a cancel would end this.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Of a value that a failing row holds, so many bytes are shown.
const SHOWN_BYTES_MAX: usize = 64;

/// A constraint that a statement has violated.
pub(super) struct Violation {
    suspect: Suspect,
    /// The table, where SQLite tells it.
    table: Option<String>,
}

impl Violation {
    /// From SQLite's words: `UNIQUE constraint failed: t.a, t.b`.
    pub(super) fn of(error: &WriteError) -> Option<Self> {
        let WriteError::Statement(error) = error else {
            return None;
        };
        let what = error.message.split_once("constraint failed: ").map(|(_, what)| what);
        match error.kind {
            // An index of expressions has no columns.
            StatementErrorKind::Unique if what?.starts_with("index '") => Some(Self {
                suspect: Suspect::Unique(Vec::new()),
                table: None,
            }),
            StatementErrorKind::Unique => {
                let mut table = None;
                let mut columns = Vec::new();
                for column in what?.split(", ") {
                    let (owner, column) = column.split_once('.')?;
                    table = Some(owner.to_owned());
                    columns.push(column.to_owned());
                }
                Some(Self {
                    suspect: Suspect::Unique(columns),
                    table,
                })
            }
            StatementErrorKind::NotNull => {
                let (table, column) = what?.split_once('.')?;
                Some(Self {
                    suspect: Suspect::NotNull(column.to_owned()),
                    table: Some(table.to_owned()),
                })
            }
            StatementErrorKind::Check => Some(Self {
                suspect: Suspect::Check(what?.to_owned()),
                table: None,
            }),
            StatementErrorKind::ForeignKey => Some(Self {
                suspect: Suspect::ForeignKey { deferred: false },
                table: None,
            }),
            _ => {
                let marked = sql::marked_error(&error.message).filter(|marked| marked.sqlstate == "23502")?;
                let (column, rest) = marked
                    .message
                    .strip_prefix("null value in column \"")?
                    .split_once("\" of relation \"")?;
                let table = rest.strip_suffix("\" violates not-null constraint")?;
                Some(Self {
                    suspect: Suspect::NotNull(column.to_owned()),
                    table: Some(table.to_owned()),
                })
            }
        }
    }
}

/// What is known of a violation.
enum Found {
    /// All of it.
    Whole(Box<WireError>),
    /// The name of the key's constraint.
    Key(String),
    /// The table.
    Table(String),
    Nothing,
}

impl Session {
    /// The error of a statement that has violated a constraint, as PostgreSQL tells it as far as that can be known.
    pub(super) async fn explained(
        &mut self,
        answer: WireError,
        violation: Violation,
        prepared: &Prepared,
        parameters: Parameters,
        token: &CancelToken,
    ) -> WireError {
        let (Some(plan), Some(statement)) = (prepared.shape.plan.clone(), prepared.statement.clone()) else {
            return answer;
        };
        let Ok(source) = self.source(token).await else {
            return answer;
        };
        // What the statement was told, it is told again.
        let first = usize::from(plan.environment);
        let told = match parameters.values().get(..first) {
            Some([Value::Text(told)]) => told.clone(),
            _ => self.told(),
        };
        let (settings, identity, pid) = (self.settings.clone(), self.identity.clone(), self.registration.process);
        let values = self.value_environment();
        let Violation { mut suspect, table } = violation;
        if let Suspect::ForeignKey { deferred } = &mut suspect {
            *deferred = self.block.is_none();
        }
        let asked = suspect.clone();
        let looking = CancelToken::with_deadline(Some(Instant::now() + LOOK_MAX));
        let until = looking.clone();
        let job = move |session: &mut Connection| {
            let connection = session.connection();
            let settings = |name: &str| settings.value(name);
            let environment = sql::Environment {
                user: &identity.user,
                database: &identity.database,
                pid,
                version: super::VERSION,
                settings: &settings,
            };
            let attempt = sql::attempt(connection, &statement, &environment, &values, &plan.parameters, &asked);
            if let Some(attempt) = &attempt
                && !attempt.questions.is_empty()
                && table
                    .as_ref()
                    .is_none_or(|table| sql::shown(table) == sql::shown(&attempt.table))
                && let Ok(Some(found)) = session.interruptible(&until, |connection| {
                    look(
                        connection,
                        attempt,
                        parameters.values().get(first..).unwrap_or_default(),
                        &told,
                    )
                })
            {
                return Found::Whole(Box::new(found));
            }
            match &asked {
                Suspect::Unique(columns) if columns.is_empty() => {
                    attempt.map_or(Found::Nothing, |attempt| Found::Table(attempt.table))
                }
                Suspect::Unique(columns) => table
                    .and_then(|table| constraint_name(connection, &table, columns))
                    .map_or(Found::Nothing, Found::Key),
                Suspect::Check(name) => attempt
                    .map(|attempt| attempt.table)
                    .filter(|table| {
                        definition(connection, table)
                            .is_some_and(|definition| definition.checks.iter().any(|check| check.name == *name))
                    })
                    .map_or(Found::Nothing, Found::Table),
                _ => Found::Nothing,
            }
        };
        let Ok(found) = self.on_source(&source, &looking, job).await else {
            return answer;
        };
        let mut answer = answer;
        match found {
            Found::Whole(whole) => *whole,
            Found::Key(name) => {
                answer.column = None;
                answer.detail = None;
                answer.message = unique_message(&name);
                answer.with_constraint(name)
            }
            Found::Table(table) => {
                answer.detail = None;
                if let Suspect::Check(name) = &suspect {
                    answer.message = check_message(&table, name);
                }
                answer.with_table(sql::parted(&table))
            }
            Found::Nothing => {
                if !matches!(suspect, Suspect::ForeignKey { .. }) {
                    answer.detail = None;
                }
                answer
            }
        }
    }
}

fn unique_message(name: &str) -> String {
    format!("duplicate key value violates unique constraint \"{name}\"")
}

fn check_message(table: &str, name: &str) -> String {
    format!(
        "new row for relation \"{}\" violates check constraint \"{name}\"",
        sql::shown(table)
    )
}

/// Goes through the rows of an attempt up to the first that a constraint refuses.
fn look(
    connection: &rusqlite::Connection,
    attempt: &Attempt,
    parameters: &[Value],
    told: &str,
) -> rusqlite::Result<Option<WireError>> {
    let mut statement = connection.prepare(&attempt.sql)?;
    for index in 1..=statement.parameter_count() {
        // A number that nothing asks for has no name.
        let Some(name) = statement.parameter_name(index) else {
            continue;
        };
        let Some(place) = name.get(1..).and_then(|digits| digits.parse::<usize>().ok()) else {
            return Ok(None);
        };
        let value = if place == attempt.environment {
            Held::Text(told.to_owned())
        } else {
            match parameters.get(place - 1) {
                Some(Value::Null) => Held::Null,
                Some(Value::Integer(integer)) => Held::Integer(*integer),
                Some(Value::Real(real)) => Held::Real(*real),
                Some(Value::Text(text)) => Held::Text(text.clone()),
                Some(Value::Blob(bytes)) => Held::Blob(bytes.clone()),
                Some(Value::Unsigned(_) | Value::Timestamp(_) | Value::Array(_)) | None => return Ok(None),
            }
        };
        statement.raw_bind_parameter(index, value)?;
    }
    let mut rows = statement.raw_query();
    let mut before = Before::default();
    while let Some(row) = rows.next()? {
        let number: Option<i64> = row.get(0)?;
        // Which of several rows an UPDATE takes its values from is open.
        if number.is_some_and(|number| !before.numbers.insert(number)) {
            return Ok(None);
        }
        for (place, question) in attempt.questions.iter().enumerate() {
            if let Some(error) = ask(attempt, place, question, row, number, &mut before)? {
                return Ok(Some(error));
            }
        }
    }
    Ok(None)
}

/// What the rows before have left.
#[derive(Default)]
struct Before {
    /// Rows that were changed.
    numbers: HashSet<i64>,
    /// Keys, by the place of their question.
    keys: HashSet<(usize, Vec<u8>)>,
}

/// The error that a row is, if it is one.
fn ask(
    attempt: &Attempt,
    place: usize,
    question: &Question,
    row: &Row<'_>,
    number: Option<i64>,
    before: &mut Before,
) -> rusqlite::Result<Option<WireError>> {
    let holds = |cell: usize| row.get::<_, Option<bool>>(cell).map(Option::unwrap_or_default);
    let texts = |cells: &[usize]| -> rusqlite::Result<String> {
        let texts: rusqlite::Result<Vec<String>> = cells
            .iter()
            .map(|cell| {
                Ok(row
                    .get::<_, Option<String>>(*cell)?
                    .unwrap_or_else(|| "null".to_owned()))
            })
            .collect();
        Ok(texts?.join(", "))
    };
    let key = |columns: &[String], cells: &[usize]| Ok::<_, rusqlite::Error>((columns.join(", "), texts(cells)?));
    let named = sql::parted(&attempt.table);
    let table = named.1;
    Ok(match question {
        Question::NotNull { column, cell } => {
            if row.get_ref(*cell)? != ValueRef::Null {
                return Ok(None);
            }
            let message =
                format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
            let error = WireError::new("23502", message).with_table(named).with_column(column);
            Some(error.with_detail(failing_row(attempt, row)?))
        }
        Question::Check { name, cell } => {
            if !holds(*cell)? {
                return Ok(None);
            }
            let error = WireError::new("23514", check_message(table, name));
            let error = error.with_table(named).with_constraint(name);
            Some(error.with_detail(failing_row(attempt, row)?))
        }
        Question::Unique {
            name,
            columns,
            shown,
            cell,
        } => {
            let mut bytes = Vec::new();
            for cell in *cell..*cell + columns.len() {
                match row.get_ref(cell)? {
                    // A key with a NULL is like no other.
                    ValueRef::Null => return Ok(None),
                    value => bytes.extend(format!("{value:?};").into_bytes()),
                }
            }
            let holder: Option<i64> = row.get(*cell + columns.len())?;
            let held = holder.is_some_and(|holder| Some(holder) != number && !before.numbers.contains(&holder));
            if before.keys.insert((place, bytes)) && !held {
                return Ok(None);
            }
            let (columns, values) = key(columns, shown)?;
            let error = WireError::new("23505", unique_message(name));
            let error = error.with_table(named).with_constraint(name);
            Some(error.with_detail(format!("Key ({columns})=({values}) already exists.")))
        }
        Question::Missing {
            name,
            columns,
            shown,
            table: referred,
            cell,
        } => {
            if !holds(*cell)? {
                return Ok(None);
            }
            let (columns, values) = key(columns, shown)?;
            let message = format!("insert or update on table \"{table}\" violates foreign key constraint \"{name}\"");
            let error = WireError::new("23503", message).with_table(named).with_constraint(name);
            Some(error.with_detail(format!(
                "Key ({columns})=({values}) is not present in table \"{}\".",
                sql::shown(referred)
            )))
        }
        Question::Referenced {
            name,
            columns,
            table: referring,
            cell,
            shown,
        } => {
            if !holds(*cell)? {
                return Ok(None);
            }
            let (columns, values) = key(columns, shown)?;
            let named = sql::parted(referring);
            let referring = named.1;
            let message = format!(
                "update or delete on table \"{table}\" violates foreign key constraint \"{name}\" on table \"{referring}\""
            );
            let error = WireError::new("23503", message).with_table(named).with_constraint(name);
            Some(error.with_detail(format!(
                "Key ({columns})=({values}) is still referenced from table \"{referring}\"."
            )))
        }
    })
}

fn failing_row(attempt: &Attempt, row: &Row<'_>) -> rusqlite::Result<String> {
    let mut values = Vec::with_capacity(attempt.width);
    for cell in 1..=attempt.width {
        let text: Option<String> = row.get(cell)?;
        values.push(match text {
            None => "null".to_owned(),
            Some(text) if text.len() > SHOWN_BYTES_MAX => {
                format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
            }
            Some(text) => text,
        });
    }
    Ok(format!("Failing row contains ({}).", values.join(", ")))
}

fn index_columns(connection: &rusqlite::Connection, index: &str) -> Option<Vec<String>> {
    let mut statement = connection
        .prepare_cached("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")
        .ok()?;
    let columns: rusqlite::Result<Vec<Option<String>>> = statement.query_map([index], |row| row.get(0)).ok()?.collect();
    columns.ok()?.into_iter().collect()
}

fn definition(connection: &rusqlite::Connection, table: &str) -> Option<Definition> {
    let text: String = connection
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE name = ?1 AND type = 'table'",
            [table],
            |row| row.get(0),
        )
        .ok()?;
    Definition::read(&text)
}

/// The name of the key of these columns: as declared, or that of the index.
fn constraint_name(connection: &rusqlite::Connection, table: &str, columns: &[String]) -> Option<String> {
    let definition = definition(connection, table)?;
    if let Some(key) = definition
        .primary_key
        .iter()
        .chain(&definition.uniques)
        .find(|key| key.columns == columns)
    {
        return Some(key.name.clone());
    }
    let mut statement = connection
        .prepare_cached("SELECT name FROM pragma_index_list(?1) WHERE \"unique\" = 1")
        .ok()?;
    let names: Vec<String> = statement
        .query_map([table], |row| row.get(0))
        .ok()?
        .collect::<rusqlite::Result<_>>()
        .ok()?;
    names
        .into_iter()
        .find(|name| index_columns(connection, name).as_deref() == Some(columns))
        .map(|name| sql::shown(&name).to_owned())
}
