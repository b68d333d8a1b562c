//! Many INSERTs of one text as one statement over lists of their parameters.
//!
//! Promises: only for texts of which a parser has shown that each inserts one row of parameters and constants, and tables
//! whose [`Facts`] say that nobody can tell the difference. Each caller's own outcome: with one row a caller, as many rows as
//! callers means one for each; rows that are returned, or skipped because of a conflict, are matched to their callers by a
//! number that is drawn from the table's own sequence before the row is inserted, never by their order.
//!
//! Lists rather than a longer VALUES, because one prepared statement then serves any number of rows.

use std::fmt::Write as _;

use tokio_postgres::types::Type;

use super::facts::Facts;
use super::types::array_of;
use crate::write::shape::{Cell, Insert};

/// How a set is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) sql: String,
    /// The types of the lists.
    pub(super) lists: Vec<Type>,
    /// Which parameter of the original each list holds.
    pub(super) sources: Vec<usize>,
    /// Whether rows are told, each with the place of its caller (from 1), for those that were inserted.
    pub(super) is_told: bool,
}

/// Which form is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflicts {
    /// A conflict fails the whole set.
    Fail,
    /// Rows in conflict with others are not inserted, and not told.
    Skip,
}

/// The set-based form of the text, for a table of these facts; `types` are those of the parameters of the original.
pub(super) fn form(insert: &Insert, facts: &Facts, types: &[Type], conflicts: Conflicts) -> Option<Form> {
    if !facts.is_plain || types.len() != insert.parameters || insert.parameters == 0 {
        return None;
    }
    let serial = facts
        .serial
        .as_ref()
        .filter(|serial| !insert.columns.iter().any(|column| serial.is(column)));
    let mut lists = Vec::with_capacity(types.len());
    let mut sources = Vec::with_capacity(types.len());
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    for (column, cell) in insert.columns.iter().zip(&insert.cells) {
        match cell {
            Cell::Parameter(number) => {
                lists.push(array_of(&types[*number])?);
                sources.push(*number);
                columns.push(column.as_str());
                cells.push(format!("forebay_row.p{}", lists.len()));
            }
            Cell::Constant(literal) => {
                columns.push(column);
                cells.push(literal.clone());
            }
            // What a column gets that is not named.
            Cell::Default => {}
        }
    }
    let mut sql = String::new();
    let written = if insert.returning.is_none() && conflicts == Conflicts::Fail {
        plain(&mut sql, &insert.table, &columns, &cells, lists.len())
    } else {
        let serial = serial?;
        let returning = match &insert.returning {
            Some(list) if list.iter().all(|item| is_column(item)) => list.as_slice(),
            Some(_) => return None,
            None => &[],
        };
        let number = Number {
            column: &serial.column,
            sequence: serial.sequence,
            is_identity: serial.is_identity,
        };
        told(
            &mut sql,
            &insert.table,
            &columns,
            &cells,
            lists.len(),
            &number,
            returning,
            conflicts,
        )
    };
    written.expect("a String takes everything");
    Some(Form {
        is_told: insert.returning.is_some() || conflicts == Conflicts::Skip,
        sql,
        lists,
        sources,
    })
}

/// Names for the lists' values.
fn names(count: usize) -> String {
    let names: Vec<String> = (1..=count).map(|list| format!("p{list}")).collect();
    names.join(", ")
}

/// The lists themselves.
fn parameters(count: usize) -> String {
    let parameters: Vec<String> = (1..=count).map(|list| format!("${list}")).collect();
    parameters.join(", ")
}

fn plain(sql: &mut String, table: &str, columns: &[&str], cells: &[String], lists: usize) -> std::fmt::Result {
    write!(
        sql,
        "INSERT INTO {table} ({}) SELECT {} FROM unnest({}) AS forebay_row({})",
        columns.join(", "),
        cells.join(", "),
        parameters(lists),
        names(lists)
    )
}

/// The number that a row is known by.
struct Number<'a> {
    column: &'a str,
    sequence: u32,
    is_identity: bool,
}

#[allow(clippy::too_many_arguments, reason = "the parts of one statement")]
fn told(
    sql: &mut String,
    table: &str,
    columns: &[&str],
    cells: &[String],
    lists: usize,
    number: &Number<'_>,
    returning: &[String],
    conflicts: Conflicts,
) -> std::fmt::Result {
    let column = format!("\"{}\"", number.column.replace('"', "\"\""));
    write!(
        sql,
        "WITH forebay_row AS MATERIALIZED (\
           SELECT *, nextval({sequence}::oid::regclass) AS forebay_number \
           FROM unnest({parameters}) WITH ORDINALITY AS forebay_list({names}, forebay_place)), \
         forebay_told AS (\
           INSERT INTO {table} ({column}, {columns}){overriding} SELECT forebay_number, {cells} FROM forebay_row \
           ORDER BY forebay_place{skip} RETURNING {column} AS forebay_number",
        sequence = number.sequence,
        parameters = parameters(lists),
        names = names(lists),
        columns = columns.join(", "),
        cells = cells.join(", "),
        overriding = if number.is_identity {
            " OVERRIDING SYSTEM VALUE"
        } else {
            ""
        },
        skip = match conflicts {
            Conflicts::Fail => "",
            Conflicts::Skip => " ON CONFLICT DO NOTHING",
        },
    )?;
    let mut wanted = String::new();
    for (place, item) in returning.iter().enumerate() {
        if item == "*" || item.ends_with(".*") {
            write!(sql, ", {item}")?;
        } else {
            write!(sql, ", {item} AS forebay_{place}")?;
        }
    }
    if !returning.is_empty() {
        wanted.push_str(", forebay_told.*");
    }
    write!(
        sql,
        ") SELECT forebay_place{wanted} FROM forebay_told JOIN forebay_row USING (forebay_number)"
    )
}

/// Whether a thing that is returned is a column, or all of them: nothing that could look at other rows.
fn is_column(item: &str) -> bool {
    let mut rest = item;
    loop {
        rest = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.replace("\"\"", "__").find('"') {
                Some(end) => &quoted[end + 1..],
                None => return false,
            },
            None => {
                let end = rest
                    .find(|character: char| !(character.is_alphanumeric() || character == '_' || character == '$'))
                    .unwrap_or(rest.len());
                if end == 0 {
                    return rest == "*";
                }
                &rest[end..]
            }
        };
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return rest.is_empty(),
        }
    }
}
