//! The types of a statement's parameters and columns, found out from the schema it meets.
//!
//! Contract: as many parameters as the highest number says; a type the client declared is kept; what cannot be known is text. As many
//! columns as SQLite says, under SQLite's names. Nothing is run: the statement is prepared on a reading connection and dropped.
//! Knows nothing of values.

pub(crate) mod types;

use postgres_types::{Kind as TypeKind, Type};
use rusqlite::Connection;

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
/// Only [`Kind::Sql`] has columns here: the others are described by who runs them, and get their parameters alone.
pub fn describe(
    connection: &Connection,
    statement: &Statement,
    declared: &[u32],
) -> Result<Description, SqlError> {
    let count = statement.parameter_count.max(declared.len());
    let parameters: Vec<Option<Type>> = (0..count)
        .map(|index| declared.get(index).copied().and_then(declared_type))
        .collect();
    if statement.kind != Kind::Sql {
        return Ok(Description {
            parameters: or_text(parameters),
            columns: Vec::new(),
            read_only: true,
        });
    }
    let prepared = connection.prepare(&statement.sql)?;
    let columns = prepared
        .columns_with_metadata()
        .zip(prepared.columns())
        .map(|(metadata, column)| Column {
            name: column.name().to_owned(),
            kind: column
                .decl_type()
                .and_then(types::of_declared)
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
    parameters
        .into_iter()
        .map(|kind| kind.unwrap_or(Type::TEXT))
        .collect()
}
