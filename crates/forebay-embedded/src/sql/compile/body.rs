//! The body of a query on its way to SQLite: a SELECT whose list can still be converted, or a set operation.
//!
//! Promises: every body's columns are called `c1`, `c2`, … inside SQLite. Knows no syntax.

use super::fault::{Fault, Result};
use super::plan::{Origin, ResultColumn};
use super::scalar::Scalar;
use super::scope::Starred;

/// A query, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) sql: String,
    pub(super) columns: Vec<ResultColumn>,
}

/// An expression of a select list under its name.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) scalar: Scalar,
    pub(super) origin: Option<Origin>,
}

impl From<Starred> for Item {
    fn from(column: Starred) -> Self {
        Self {
            name: column.name,
            scalar: column.scalar,
            origin: None,
        }
    }
}

/// DISTINCT ON: its keys, and the keys of the order.
type FirstOf = (Vec<String>, Vec<String>);

/// One SELECT before its list is written out, so that its columns can still be converted.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) distinct: bool,
    pub(super) items: Vec<Item>,
    /// From FROM to HAVING.
    pub(super) rest: String,
    pub(super) order: Option<String>,
    /// DISTINCT ON: its keys and the order that decides which row stays.
    pub(super) first_of: Option<FirstOf>,
}

pub(super) enum Body {
    Leaf(Leaf),
    Set { sql: String, columns: Vec<ResultColumn> },
}

impl Body {
    pub(super) fn columns(&self) -> Vec<ResultColumn> {
        match self {
            Self::Leaf(leaf) => leaf
                .items
                .iter()
                .map(|item| ResultColumn {
                    name: item.name.clone(),
                    kind: item.scalar.type_name(),
                    not_null: item.scalar.not_null,
                    origin: item.origin.clone(),
                })
                .collect(),
            Self::Set { columns, .. } => columns.clone(),
        }
    }
}

pub(super) fn render(body: &Body) -> String {
    match body {
        Body::Leaf(leaf) => render_leaf(leaf, leaf.distinct),
        Body::Set { sql, .. } => sql.clone(),
    }
}

/// As a side of a set operation, whose rows may be told apart.
pub(super) fn render_compared(body: &Body, distinct: bool) -> String {
    match body {
        Body::Leaf(leaf) => render_leaf(leaf, distinct || leaf.distinct),
        Body::Set { sql, .. } => sql.clone(),
    }
}

fn render_leaf(leaf: &Leaf, compared: bool) -> String {
    let mut list = Vec::with_capacity(leaf.items.len());
    for (place, item) in leaf.items.iter().enumerate() {
        // A column of a subquery takes its collation from what it is made of.
        let text = if compared || item.scalar.has_collation() {
            item.scalar.compared()
        } else {
            item.scalar.sql.clone()
        };
        list.push(format!("{text} AS \"c{}\"", place + 1));
    }
    if list.is_empty() {
        // PostgreSQL has rows without columns; SQLite needs one, which nobody is shown.
        list.push("NULL AS \"c0\"".to_owned());
    }
    if let Some((on, order)) = &leaf.first_of {
        let window_order = if order.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", order.join(", "))
        };
        let row = format!(
            "row_number() OVER (PARTITION BY {}{window_order}) AS \"row\"",
            on.join(", ")
        );
        let place = if order.is_empty() {
            format!("row_number() OVER (ORDER BY {}) AS \"place\"", on.join(", "))
        } else {
            format!("row_number() OVER (ORDER BY {}) AS \"place\"", order.join(", "))
        };
        let outer: Vec<String> = (1..=leaf.items.len()).map(|number| format!("\"c{number}\"")).collect();
        return format!(
            "SELECT {} FROM (SELECT {}, {row}, {place}{}) WHERE \"row\" = 1 ORDER BY \"place\"",
            outer.join(", "),
            list.join(", "),
            leaf.rest
        );
    }
    let distinct = if leaf.distinct { "DISTINCT " } else { "" };
    format!("SELECT {distinct}{}{}", list.join(", "), leaf.rest)
}

pub(super) fn rename(columns: &mut [ResultColumn], names: &[String], table: &str) -> Result<()> {
    if names.len() > columns.len() {
        return Err(Fault::new(
            "42P10",
            format!(
                "table \"{table}\" has {} columns available but {} columns specified",
                columns.len(),
                names.len()
            ),
        ));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    Ok(())
}
