//! COPY FROM STDIN and COPY TO STDOUT, as PostgreSQL has them.
//!
//! Promises: one COPY is one statement of its transaction: all of it is stored, or none. Memory is bounded: data is read, stored and sent
//! in pieces. A value is what it would be in the same place of an INSERT or a SELECT. Errors say in which line and column they were met.
//!
//! [`lines`] cuts data into lines, [`text`], [`csv`] and [`binary`] lines into values and values into lines, [`input`] stores, [`output`]
//! sends.

mod binary;
mod csv;
mod input;
mod lines;
mod output;
mod text;

use std::sync::Arc;

use forebay_sqlite::connection::Session as Connection;
use forebay_write::{CancelToken, WriteError};
use postgres_types::Type;

use super::Session;
use super::execute::COMPILED_AGAIN_MAX;
use super::prepared::{PortalState, Prepared};
use super::stop::Stop;
use crate::errors;
use crate::sql::{self, CopiedColumn, Copy, Forced, Script, Subject};
use forebay_pg_wire::error::WireError;

/// A piece of data is stored when it has so many rows.
const PIECE_ROWS: usize = 1_000;
/// Or takes so many bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// PostgreSQL shows so much of a line.
const SHOWN_BYTES_MAX: usize = 100;

/// What is copied, as the schema has it: the statement that the COPY stands for, the table, the columns.
struct Looked {
    prepared: Prepared,
    table: String,
    columns: Vec<Column>,
}

/// A column, as it is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Type,
    typmod: i32,
    force_quote: bool,
    force_not_null: bool,
    force_null: bool,
}

/// A place of COPY's data, for errors.
fn at_line(error: WireError, table: &str, line: u64, text: Option<&[u8]>) -> WireError {
    let place = match text {
        Some(text) => format!("COPY {table}, line {line}: \"{}\"", shown(text)),
        None => format!("COPY {table}, line {line}"),
    };
    error.with_context(place)
}

/// The beginning of a text.
fn shown(text: &[u8]) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return String::from_utf8_lossy(text).into_owned();
    }
    let mut end = SHOWN_BYTES_MAX;
    while end > 0 && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    format!("{}...", String::from_utf8_lossy(&text[..end]))
}

fn bad_format(message: impl Into<String>) -> WireError {
    WireError::new("22P04", message)
}

impl Session {
    /// Carries a COPY out; gives the number of rows.
    pub(super) async fn copy(&mut self, copy: &Copy, token: &CancelToken) -> Result<u64, Stop> {
        if self.block.is_none() {
            self.open_implicit_block();
        }
        let read_only = self.block.as_ref().is_some_and(|block| block.read_only);
        if copy.from && read_only {
            let message = "cannot execute COPY FROM in a read-only transaction";
            return Err(WireError::new("25006", message).into());
        }
        if copy.from {
            return self.copy_in(copy, token).await;
        }
        let mut anew = false;
        for _ in 0..COMPILED_AGAIN_MAX {
            let looked = self.looked_up(copy, anew, token).await?;
            if let Some(count) = self.copy_out(copy, looked, token).await? {
                return Ok(count);
            }
            self.forget_plans();
            anew = true;
        }
        Err(WriteError::SchemaChanged.into())
    }

    /// What a COPY copies, as the schema is now; `anew`, though it may have been compiled before.
    async fn looked_up(&mut self, copy: &Copy, mut anew: bool, token: &CancelToken) -> Result<Looked, Stop> {
        for _ in 0..COMPILED_AGAIN_MAX {
            if let Some(looked) = self.looked_up_once(copy, anew, token).await? {
                return Ok(looked);
            }
            self.forget_plans();
            anew = true;
        }
        Err(WriteError::SchemaChanged.into())
    }

    /// [`looked_up`](Self::looked_up); nothing if the schema changes meanwhile.
    async fn looked_up_once(&mut self, copy: &Copy, anew: bool, token: &CancelToken) -> Result<Option<Looked>, Stop> {
        let (prepared, table, columns) = match &copy.subject {
            Subject::Query(query) => {
                let prepared = self.copied(query.clone(), anew).await?;
                if !prepared.shape.read_only || prepared.shape.columns.is_empty() {
                    return Err(WireError::unsupported("COPY of a query that writes is not supported").into());
                }
                let fields = prepared.shape.columns.iter();
                let columns = fields
                    .map(|field| Column {
                        name: field.name.clone(),
                        kind: field.kind.clone(),
                        typmod: field.typmod,
                        force_quote: false,
                        force_not_null: false,
                        force_null: false,
                    })
                    .collect();
                (prepared, String::new(), columns)
            }
            Subject::Table {
                written,
                schema,
                name,
                columns,
            } => {
                let (version, stored, known) = self.copied_columns(schema.clone(), name, copy.from, token).await?;
                if copy.from && copy.freeze {
                    self.refuse_unless_new(&stored)?;
                }
                let columns = chosen(name, &known, columns.as_deref())?;
                let list: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
                let list = list.join(", ");
                let text = if copy.from {
                    let values: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
                    format!(
                        "INSERT INTO {written} ({list}) OVERRIDING SYSTEM VALUE VALUES ({})",
                        values.join(", ")
                    )
                } else {
                    format!("SELECT {list} FROM {written}")
                };
                let prepared = self.copied(text, anew).await?;
                if prepared.shape.schema != Some(version) {
                    return Ok(None);
                }
                (prepared, name.clone(), columns)
            }
        };
        Ok(Some(Looked {
            prepared,
            table,
            columns: forced(columns, copy)?,
        }))
    }

    /// FREEZE is for a table whose rows nobody else can see yet.
    fn refuse_unless_new(&self, table: &str) -> Result<(), WireError> {
        if self
            .portals
            .values()
            .any(|portal| !matches!(portal.state, PortalState::Done))
        {
            let message = "cannot perform COPY FREEZE because of prior transaction activity";
            return Err(WireError::new("25000", message));
        }
        if self.block.as_ref().is_some_and(|block| block.has_emptied(table)) {
            return Ok(());
        }
        let message =
            "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction";
        Err(WireError::new("55000", message))
    }

    /// The statement that a COPY stands for.
    async fn copied(&mut self, text: String, anew: bool) -> Result<Prepared, Stop> {
        let script: Arc<str> = text.into();
        let mut understood: Script = self.understand(Arc::clone(&script)).await?;
        let statement = self.next_statement(&mut understood)?;
        let Some(statement) = statement.filter(|_| understood.statement_count() == 1) else {
            return Err(WireError::new("42601", "COPY takes one query").into());
        };
        let shape = if anew && statement.kind == sql::Kind::Sql {
            self.compiled_anew(&statement, &script, &[], true).await?
        } else {
            self.shape(&statement, &script, &[], true).await?
        };
        if statement.kind != sql::Kind::Sql
            || shape
                .plan
                .as_ref()
                .is_none_or(|plan| plan.steps.len() != 1 || !plan.session_columns.is_empty())
        {
            return Err(WireError::unsupported("COPY of this query is not supported").into());
        }
        if !shape.parameters.is_empty() && statement.tag != sql::Tag::Insert {
            return Err(WireError::new("42P02", "there is no parameter $1").into());
        }
        Ok(Prepared {
            statement: Some(statement),
            script,
            shape,
            from_sql: false,
        })
    }

    /// The columns of a table that is copied, behind the version of the schema and the table's name in the file.
    async fn copied_columns(
        &mut self,
        schema: Option<String>,
        name: &str,
        from: bool,
        token: &CancelToken,
    ) -> Result<(i64, String, Vec<CopiedColumn>), Stop> {
        let path = self.settings.value("search_path").unwrap_or_default();
        let user = self.identity.user.clone();
        let source = self.source(token).await?;
        let name = name.to_owned();
        let found = self
            .on_source(&source, token, move |connection: &mut Connection| {
                connection.refresh_schema().map_err(errors::unplaced)?;
                // Before the columns: should the schema change meanwhile, they are of no version that is there.
                let version = connection.schema_version().map_err(errors::unplaced)?;
                let connection = connection.connection();
                sql::copied_columns(connection, schema.as_deref(), &name, (&path, &user), from)
                    .map(|(stored, columns)| (version, stored, columns))
                    .map_err(|error| errors::understood(&error))
            })
            .await?;
        Ok(found?)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns that were listed, or all that are not generated.
fn chosen(table: &str, known: &[CopiedColumn], listed: Option<&[String]>) -> Result<Vec<Column>, WireError> {
    let column = |known: &CopiedColumn| Column {
        name: known.name.clone(),
        kind: Type::from_oid(known.oid).unwrap_or(Type::TEXT),
        typmod: known.typmod,
        force_quote: false,
        force_not_null: false,
        force_null: false,
    };
    let Some(listed) = listed else {
        return Ok(known.iter().filter(|column| !column.generated).map(column).collect());
    };
    let mut columns: Vec<Column> = Vec::with_capacity(listed.len());
    for name in listed {
        let Some(found) = known.iter().find(|column| column.name == *name) else {
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            return Err(WireError::new("42703", message));
        };
        if found.generated {
            return Err(
                WireError::new("42P10", format!("column \"{name}\" is a generated column"))
                    .with_detail("Generated columns cannot be used in COPY."),
            );
        }
        if columns.iter().any(|column| column.name == *name) {
            return Err(WireError::new(
                "42701",
                format!("column \"{name}\" specified more than once"),
            ));
        }
        columns.push(column(found));
    }
    Ok(columns)
}

/// Marks the columns that options are about.
fn forced(mut columns: Vec<Column>, copy: &Copy) -> Result<Vec<Column>, WireError> {
    type Mark = fn(&mut Column);
    let options: [(&str, &Forced, Mark); 3] = [
        ("FORCE_QUOTE", &copy.force_quote, |column| column.force_quote = true),
        ("FORCE_NOT_NULL", &copy.force_not_null, |column| {
            column.force_not_null = true;
        }),
        ("FORCE_NULL", &copy.force_null, |column| column.force_null = true),
    ];
    for (option, forced, mark) in options {
        match forced {
            Forced::All => columns.iter_mut().for_each(mark),
            Forced::Columns(names) => {
                for name in names {
                    let Some(column) = columns.iter_mut().find(|column| column.name == *name) else {
                        let message = format!("{option} column \"{name}\" not referenced by COPY");
                        return Err(WireError::new("42P10", message));
                    };
                    mark(column);
                }
            }
        }
    }
    Ok(columns)
}
