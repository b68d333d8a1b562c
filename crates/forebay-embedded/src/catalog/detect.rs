//! Tells a query of the catalog from a query of the user's data.
//!
//! Looks at the statement only, never at a schema: whether the relations exist is found out by the translator.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{DataType, Expr, ObjectName, ObjectNamePart, Query, Statement, TableFactor};

use super::relations;
use crate::sql::walk::{Look, walk};

/// Whether this statement reads relations of the catalog, or calls functions only the catalog can answer, and reads nothing of
/// the user's tables. A query that joins both is not a catalog query: it cannot be answered by the catalog alone.
#[must_use]
pub fn is_catalog_query(statement: &Statement) -> bool {
    if !matches!(statement, Statement::Query(_)) {
        return false;
    }
    let mut names = CommonTables::default();
    let _ = walk(statement, &mut names);
    let mut seen = Seen {
        common_tables: names.0,
        catalog: false,
        foreign: false,
    };
    let _ = walk(statement, &mut seen);
    seen.catalog && !seen.foreign
}

#[derive(Default)]
struct CommonTables(HashSet<String>);

impl Look for CommonTables {
    fn query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.0.insert(folded(&table.alias.name));
        }
        ControlFlow::Continue(())
    }
}

struct Seen {
    common_tables: HashSet<String>,
    catalog: bool,
    foreign: bool,
}

impl Look for Seen {
    fn table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            // A function in FROM is judged as a function, not as a relation.
            TableFactor::Table {
                name, args: Some(_), ..
            }
            | TableFactor::Function { name, .. } => {
                self.catalog |= is_catalog_function(name);
            }
            TableFactor::Table { name, .. } => match name_parts(name).as_deref() {
                Some([table]) if self.common_tables.contains(table) => {}
                Some([table]) if relations::find(None, table).is_some() => self.catalog = true,
                Some([schema, _]) if is_catalog_schema(schema) => self.catalog = true,
                Some([_, schema, _]) if is_catalog_schema(schema) => self.catalog = true,
                _ => self.foreign = true,
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => self.catalog |= is_catalog_function(&function.name),
            Expr::Cast { data_type, .. } => self.catalog |= is_registered_type(data_type),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn is_catalog_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "information_schema")
}

fn is_registered_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Regclass => true,
        DataType::Custom(name, _) => {
            matches!(name_parts(name).as_deref().and_then(<[String]>::last), Some(last) if last.starts_with("reg")
                && super::types::type_oid(last).is_some())
        }
        _ => false,
    }
}

/// A function that only the catalog can answer. `version()`, `current_schema()` and the like are the session's own, unless the
/// client asks for them in `pg_catalog`.
fn is_catalog_function(name: &ObjectName) -> bool {
    match name_parts(name).as_deref() {
        Some([schema, _]) => is_catalog_schema(schema),
        Some([function]) => {
            const SESSION: [&str; 4] = ["pg_backend_pid", "pg_is_in_recovery", "pg_sleep", "pg_typeof"];
            let prefixed = ["pg_", "has_", "to_reg"]
                .iter()
                .any(|prefix| function.starts_with(prefix));
            (prefixed && !SESSION.contains(&function.as_str()))
                || matches!(
                    function.as_str(),
                    "format_type" | "obj_description" | "col_description" | "shobj_description"
                )
        }
        _ => false,
    }
}

/// The parts of a name as PostgreSQL folds them. `None` for names that hold more than identifiers.
pub(super) fn name_parts(name: &ObjectName) -> Option<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(identifier) => Some(folded(identifier)),
            ObjectNamePart::Function(_) => None,
        })
        .collect()
}

/// Unquoted names are lower case in PostgreSQL.
pub(super) fn folded(identifier: &sqlparser::ast::Ident) -> String {
    match identifier.quote_style {
        Some(_) => identifier.value.clone(),
        None => identifier.value.to_lowercase(),
    }
}
