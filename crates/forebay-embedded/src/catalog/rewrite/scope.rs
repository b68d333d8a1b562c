//! The relations that are visible at one point of a query, and their columns.
//!
//! Does not decide which column a name refers to.

use postgres_types::Type;

use super::piece::{Piece, quoted};

/// The relations of one FROM clause.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) sources: Vec<Source>,
    /// Columns that `USING` merged into one.
    pub(super) merged: Vec<String>,
    /// A NATURAL JOIN merges columns that are not listed anywhere.
    pub(super) natural: bool,
}

/// One relation under the name the query gave it.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) alias: String,
    pub(super) columns: Vec<ScopeColumn>,
    /// For `tableoid`.
    pub(super) oid: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    pub(super) kind: Type,
    /// The type's modifier, -1 for none.
    pub(super) modifier: i32,
    /// How to reach it when not as `alias.name`.
    pub(super) sql: Option<String>,
}

/// A name of a WITH clause.
#[derive(Clone)]
pub(super) struct CommonTable {
    pub(super) name: String,
    pub(super) columns: Vec<ScopeColumn>,
}

impl ScopeColumn {
    pub(super) fn plain(name: impl Into<String>, kind: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            modifier: -1,
            sql: None,
        }
    }
}

impl Source {
    pub(super) fn piece(&self, column: &ScopeColumn) -> Piece {
        let sql = column
            .sql
            .clone()
            .unwrap_or_else(|| format!("{}.{}", quoted(&self.alias), quoted(&column.name)));
        Piece {
            modifier: column.modifier,
            ..Piece::new(sql, column.kind.clone())
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Piece> {
        if let Some(column) = self.columns.iter().find(|column| column.name == name) {
            return Some(self.piece(column));
        }
        // A system column: every relation has it, none lists it.
        (name == "tableoid")
            .then_some(self.oid)
            .flatten()
            .map(|oid| Piece::new(oid.to_string(), Type::OID))
    }
}
