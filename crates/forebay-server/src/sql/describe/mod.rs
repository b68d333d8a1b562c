//! The types of a statement's parameters and columns, found out from the schema it meets.
//!
//! Contract: as many parameters as the highest number says; a type the client declared is kept; what cannot be known is text. As many
//! columns as SQLite says, under SQLite's names. Nothing is run: the statement is prepared on a reading connection and dropped.
//! Knows nothing of values.

mod expression;
mod function;
mod infer;
mod literals;
mod schema;
pub(crate) mod types;

pub use self::literals::{RefusedLiteral, coerce_literals};
use postgres_types::{Kind as TypeKind, Type};
use rusqlite::Connection;

use self::infer::Inference;
use self::schema::{Schema, TypedColumn};
use super::error::SqlError;
use super::{Kind, Statement};

/// What a statement takes and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The type of each parameter, `$1` first.
    pub parameters: Vec<Type>,
    /// The columns of its result; none for a statement that returns no rows.
    pub columns: Vec<Column>,
    /// Whether SQLite says that it does not write.
    pub read_only: bool,
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// The table column it shows, where it shows one.
    pub origin: Option<Origin>,
}

/// A table's column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
}

/// Describes a statement for SQLite. `declared` are the type OIDs the client gave, 0 (or `unknown`) for those it left open.
///
/// Only [`Kind::Sql`] has columns here: the others are described by who runs them, and get their parameters alone. For [`Kind::Catalog`]
/// the connection is the catalog's, whose tables the parameters are compared with.
pub fn describe(connection: &Connection, statement: &Statement, declared: &[u32]) -> Result<Description, SqlError> {
    let count = statement.parameter_count.max(declared.len());
    let parameters: Vec<Option<Type>> = (0..count)
        .map(|index| declared.get(index).copied().and_then(declared_type))
        .collect();
    if statement.kind != Kind::Sql {
        let parameters = match statement.kind {
            Kind::Catalog => inferred(connection, statement, parameters).0,
            _ => parameters,
        };
        return Ok(Description {
            parameters: or_text(parameters),
            columns: Vec::new(),
            read_only: true,
        });
    }
    let prepared = connection.prepare(&statement.sql)?;
    let (parameters, inferred) = inferred(connection, statement, parameters);
    // What does not line up with SQLite's own columns was misread, and says nothing.
    let inferred = inferred
        .filter(|inferred| inferred.len() == prepared.column_count())
        .unwrap_or_default();
    let columns = prepared
        .columns_with_metadata()
        .zip(prepared.columns())
        .enumerate()
        .map(|(position, (metadata, column))| Column {
            name: column.name().to_owned(),
            kind: match column.decl_type() {
                Some(declared) => types::of_declared(declared),
                // A table's column without a declared type can hold anything.
                None if metadata.origin_name().is_some() => None,
                None if is_information(statement) => information_type(column.name()),
                None => inferred.get(position).and_then(|inferred| inferred.kind.clone()),
            }
            .unwrap_or(Type::TEXT),
            origin: metadata
                .table_name()
                .zip(metadata.origin_name())
                .map(|(table, column)| Origin {
                    table: table.to_owned(),
                    column: column.to_owned(),
                }),
        })
        .collect();
    Ok(Description {
        parameters: or_text(parameters),
        columns,
        read_only: prepared.readonly() && !statement.runs_alone,
    })
}

/// The types of the parameters, and the result's columns if the grammar knows the statement.
fn inferred(
    connection: &Connection,
    statement: &Statement,
    parameters: Vec<Option<Type>>,
) -> (Vec<Option<Type>>, Option<Vec<TypedColumn>>) {
    let Some(tree) = statement.tree() else {
        return (parameters, None);
    };
    let mut first = Inference::new(Schema::new(connection), parameters);
    let columns = first.statement(tree);
    if first.parameters.is_empty() || columns.is_none() {
        return (first.parameters, columns);
    }
    // Once more, for columns that show a parameter whose type was found only behind them.
    let known = first
        .parameters
        .into_iter()
        .map(|kind| Some(kind.unwrap_or(Type::TEXT)))
        .collect();
    let mut second = Inference::new(first.schema, known);
    let columns = second.statement(tree);
    (second.parameters, columns)
}

/// Whether SQLite tells about itself in it.
fn is_information(statement: &Statement) -> bool {
    matches!(statement.tag.words(), "PRAGMA" | "EXPLAIN")
}

/// The columns of PRAGMA and EXPLAIN that are numbers.
fn information_type(name: &str) -> Option<Type> {
    const NUMBERS: [&str; 32] = [
        "addr",
        "application_id",
        "auto_vacuum",
        "busy",
        "busy_timeout",
        "cache_size",
        "checkpointed",
        "cid",
        "data_version",
        "desc",
        "fkid",
        "foreign_keys",
        "freelist_count",
        "hidden",
        "id",
        "key",
        "log",
        "narg",
        "ncol",
        "notnull",
        "notused",
        "p1",
        "p2",
        "p3",
        "page_count",
        "page_size",
        "parent",
        "partial",
        "pk",
        "schema_version",
        "seq",
        "seqno",
    ];
    const MORE: [&str; 8] = [
        "rowid",
        "strict",
        "synchronous",
        "timeout",
        "unique",
        "user_version",
        "wr",
        "builtin",
    ];
    (NUMBERS.contains(&name) || MORE.contains(&name)).then_some(Type::INT8)
}

/// The number under which the protocol knows SQLite's parameter at `index` (both count from 1): `$2` is 2 wherever it stands. `?`, which
/// has no name, is known by its index.
pub fn parameter_number(prepared: &rusqlite::Statement<'_>, index: usize) -> Option<usize> {
    match prepared.parameter_name(index) {
        Some(name) => name.strip_prefix(['$', '?'])?.parse().ok(),
        None => Some(index),
    }
}

fn declared_type(oid: u32) -> Option<Type> {
    match Type::from_oid(oid) {
        Some(Type::UNKNOWN) => None,
        Some(known) => Some(known),
        None if oid == 0 => None,
        // Kept as it is: the client gets back what it said, and the value's format decides what can be done with it.
        None => Some(Type::new(
            format!("type {oid}"),
            oid,
            TypeKind::Simple,
            "public".to_owned(),
        )),
    }
}

fn or_text(parameters: Vec<Option<Type>>) -> Vec<Type> {
    parameters.into_iter().map(|kind| kind.unwrap_or(Type::TEXT)).collect()
}
