//! Forms: joint forms of statements are found by asking the catalog and the server, on a carrier's connection, between two trips.
//!
//! Promises: a form is found only where the server describes it as it does the statement itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::facts;
use super::joint::{Form, Found, without_place};
use super::learning::describe;
use super::shape::{Shape, Verb};
use super::trip::Unknown;
use crate::asking::Lost;
use crate::asking::ask;
use crate::server::Server;
use crate::statements::{Statement, Statements, text_of};

/// Types of parameters: their numbers, those of lists of them, and the lists' names. Each reads a value alone as it does in a list. An interval does
/// not: as a literal it is read by the fields that its column has.
const TYPES: [(u32, u32, &str); 19] = [
    (16, 1000, "bool"),
    (17, 1001, "bytea"),
    (20, 1016, "int8"),
    (21, 1005, "int2"),
    (23, 1007, "int4"),
    (25, 1009, "text"),
    (26, 1028, "oid"),
    (114, 199, "json"),
    (700, 1021, "float4"),
    (701, 1022, "float8"),
    (1042, 1014, "bpchar"),
    (1043, 1015, "varchar"),
    (1082, 1182, "date"),
    (1083, 1183, "time"),
    (1114, 1115, "timestamp"),
    (1184, 1185, "timestamptz"),
    (1700, 1231, "numeric"),
    (2950, 2951, "uuid"),
    (3802, 3807, "jsonb"),
];

/// Asks about all of them.
pub(crate) async fn learn(unknown: &mut Unknown, statements: &Statements, server: &mut Server) -> Result<(), Lost> {
    while let Some((statement, joint, mark)) = unknown.last() {
        let found = find(statement, mark.clone(), statements, server).await?;
        joint.learn(found);
        unknown.pop();
    }
    Ok(())
}

/// The statement's form, where it has one.
async fn find(
    statement: &Statement,
    mark: Option<Arc<str>>,
    statements: &Statements,
    server: &mut Server,
) -> Result<Found, Lost> {
    let text = std::str::from_utf8(text_of(statement.definition())).ok();
    let Some((text, shape)) = text.and_then(|text| Some((text, Shape::of(text)?))) else {
        return Ok(Found::None);
    };
    // One that is prepared there already has the types that its parameters had then.
    let Some((elements, columns)) = describe(server, &statements.anew(statement)).await? else {
        return Ok(Found::Refused);
    };
    let Some(rows) = ask(server, &shape.ask_table(&elements)).await? else {
        return Ok(Found::Refused);
    };
    let Some((_, table)) = rows.first().and_then(|row| facts::row(row)) else {
        return Ok(Found::None);
    };
    let types = elements
        .iter()
        .map(|element| TYPES.iter().find(|(number, ..)| number == element));
    let Some(types) = types.collect::<Option<Vec<_>>>() else {
        return Ok(Found::None);
    };
    let lists: Vec<String> = types
        .iter()
        .map(|(_, _, name)| format!("pg_catalog.{name}[]"))
        .collect();
    let Some(joint) = shape
        .joint(text, lists, &table)
        .filter(|_| elements.len() == shape.parameters())
    else {
        return Ok(Found::None);
    };
    let joint = statements.beside(statement, &joint);
    let Some((lists, joint_columns)) = describe(server, &joint).await? else {
        return Ok(Found::Refused);
    };
    let is_alike = lists.iter().eq(types.iter().map(|(_, list, _)| list))
        && match shape.verb() {
            Verb::Insert => joint_columns.is_empty() && columns.is_empty(),
            // Of no columns nothing is described but a place.
            _ if !shape.tells_row() => {
                columns.is_empty() && without_place(&joint_columns).is_some_and(|rest| *rest == [0, 0])
            }
            _ => without_place(&joint_columns).is_some_and(|rest| rest == columns[..]),
        };
    if !is_alike {
        return Ok(Found::None);
    }
    Ok(Found::Form(Arc::new(Form {
        statement: joint,
        verb: shape.verb(),
        tells_row: shape.tells_row(),
        keys: shape.keys().map(<[usize]>::to_vec),
        mark,
        singly: AtomicU32::new(0),
        elements,
    })))
}
