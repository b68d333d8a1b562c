//! Which columns a name can mean at one point of a query, and what they are.
//!
//! Lookup only types the reference and refuses names that do not exist; which of two equal names is meant is SQLite's decision, by
//! the same rules as PostgreSQL's, because names are written as they were.

use postgres_types::Type;

use super::{CatalogError, Piece, Translator, quoted};

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

    fn find(&self, name: &str) -> Option<Piece> {
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

impl Translator {
    pub(super) fn column(&self, parts: &[String]) -> Result<Piece, CatalogError> {
        let undefined = || CatalogError::UndefinedColumn { name: parts.join(".") };
        let (alias, name) = match parts {
            [name] => (None, name),
            [alias, name] => (Some(alias), name),
            // schema.table.column: the table's alias hides the schema in SQLite as written by the FROM clause.
            [_, alias, name] => (Some(alias), name),
            _ => return Err(undefined()),
        };
        for scope in self.scopes.iter().rev() {
            let mut sources = scope
                .sources
                .iter()
                .filter(|source| alias.is_none_or(|alias| source.alias == *alias));
            match alias {
                Some(_) => {
                    if let Some(source) = sources.next() {
                        return source.find(name).ok_or_else(undefined);
                    }
                }
                None => {
                    let mut found = sources.filter_map(|source| source.find(name));
                    let Some(first) = found.next() else { continue };
                    // Several have it: unqualified, so that SQLite merges or objects as PostgreSQL does.
                    if found.next().is_some() {
                        return Ok(Piece::new(quoted(name), first.kind));
                    }
                    return Ok(first);
                }
            }
        }
        Err(undefined())
    }
}
