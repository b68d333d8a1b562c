//! The tables and views that a statement names, as the database has them now.
//!
//! Contract: each is looked up at most once for a statement; a name that is not there has no columns, and is SQLite's to report. Knows
//! nothing of queries.

use std::collections::HashMap;
use std::rc::Rc;

use postgres_types::Type;
use rusqlite::{Connection, OptionalExtension};

use super::types;

/// A column as a query sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TypedColumn {
    pub(super) name: String,
    pub(super) kind: Option<Type>,
    /// Whether `*` stands for it, and INSERT without a list of columns fills it.
    pub(super) starred: bool,
    /// Whether a value can be written to it.
    pub(super) writable: bool,
}

impl TypedColumn {
    pub(super) fn new(name: String, kind: Option<Type>) -> Self {
        Self {
            name,
            kind,
            starred: true,
            writable: true,
        }
    }
}

/// What a name in a FROM clause stands for.
#[derive(Debug, Clone)]
pub(super) enum Named {
    /// A table, or a function that gives rows.
    Table(Rc<Vec<TypedColumn>>),
    /// A view: its columns, and the text that created it.
    View(Rc<Vec<TypedColumn>>, Rc<str>),
}

pub(super) struct Schema<'a> {
    connection: &'a Connection,
    known: HashMap<String, Option<Named>>,
}

impl<'a> Schema<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            known: HashMap::new(),
        }
    }

    /// The table or view of that name. A database that cannot be read has none: preparing the statement has said so already.
    pub(super) fn named(&mut self, name: &str) -> Option<Named> {
        let name = name.to_ascii_lowercase();
        if let Some(known) = self.known.get(&name) {
            return known.clone();
        }
        let found = self.read(&name).ok().flatten();
        self.known.insert(name, found.clone());
        found
    }

    fn read(&self, name: &str) -> rusqlite::Result<Option<Named>> {
        let mut columns = self
            .connection
            .prepare_cached("SELECT name, type, hidden FROM pragma_table_xinfo(?1)")?;
        let columns: Vec<TypedColumn> = columns
            .query_map([name], |row| {
                let (declared, hidden): (String, i64) = (row.get(1)?, row.get(2)?);
                // 1 is hidden in a virtual table, 2 and 3 are computed.
                Ok(TypedColumn {
                    name: row.get(0)?,
                    kind: types::of_declared(&declared),
                    starred: hidden != 1,
                    writable: hidden == 0,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let view: Option<String> = self
            .connection
            .prepare_cached("SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE")?
            .query_row([name], |row| row.get(0))
            .optional()?;
        let columns = Rc::new(columns);
        Ok(Some(match view {
            Some(sql) => Named::View(columns, sql.into()),
            None => Named::Table(columns),
        }))
    }
}
