//! Prepared: a statement that the server knows.

use std::sync::Arc;

use mysql_async::{Column, Statement};

use forebay_sql::{Dialect, Verb, verb};

/// A statement that the server knows. Clones are the same one.
#[derive(Clone)]
pub(super) struct Prepared {
    /// None for the few that can only be sent as text, and take no parameters.
    pub(super) statement: Option<Statement>,
    /// Whether the rows it returns are those that it has changed.
    pub(super) changes_rows: bool,
}

impl Prepared {
    pub(super) fn new(sql: &str, statement: Option<Statement>) -> Self {
        Self {
            statement,
            changes_rows: verb(Dialect::MySql, sql) == Verb::Changes,
        }
    }

    pub(super) fn placeholders(&self) -> usize {
        let statement = self.statement.as_ref();
        statement.map_or(0, |statement| usize::from(statement.num_params()))
    }

    /// The columns that it has, as the server says when it prepares it.
    pub(super) fn columns(&self) -> Arc<[Column]> {
        self.statement.as_ref().map(Statement::columns).unwrap_or_default()
    }
}
