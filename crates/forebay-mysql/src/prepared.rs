//! Prepared: a statement that the server knows.

use std::sync::Arc;

use parking_lot::Mutex;

use forebay_mysql_link::Column;
use forebay_sql::{Dialect, Verb, verb};

/// A statement that the server knows. Clones are the same one.
#[derive(Clone)]
pub(super) struct Prepared {
    /// None for the few that can only be sent as text, and take no parameters.
    pub(super) statement: Option<Arc<Statement>>,
    /// Whether the rows it returns are those that it has changed.
    pub(super) changes_rows: bool,
}

/// What the server calls it and says of it.
pub(super) struct Statement {
    pub(super) id: u32,
    pub(super) parameters: u16,
    /// As the server has described them last: it does so again only when they have changed.
    columns: Mutex<Arc<[Column]>>,
}

impl Statement {
    pub(super) fn new(id: u32, parameters: u16, columns: Arc<[Column]>) -> Self {
        Self {
            id,
            parameters,
            columns: Mutex::new(columns),
        }
    }

    pub(super) fn columns(&self) -> Arc<[Column]> {
        Arc::clone(&self.columns.lock())
    }

    /// The server has described them anew.
    pub(super) fn learn(&self, columns: &Arc<[Column]>) {
        *self.columns.lock() = Arc::clone(columns);
    }
}

impl Prepared {
    pub(super) fn new(sql: &str, statement: Option<Statement>) -> Self {
        Self {
            statement: statement.map(Arc::new),
            changes_rows: verb(Dialect::MySql, sql) == Verb::Changes,
        }
    }

    pub(super) fn placeholders(&self) -> usize {
        let statement = self.statement.as_ref();
        statement.map_or(0, |statement| usize::from(statement.parameters))
    }

    /// The columns that it has, as the server says when it prepares it.
    pub(super) fn columns(&self) -> Arc<[Column]> {
        self.statement
            .as_ref()
            .map(|statement| statement.columns())
            .unwrap_or_default()
    }
}
