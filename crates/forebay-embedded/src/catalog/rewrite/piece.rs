//! A translated expression, and how names and texts are written in SQLite's SQL.
//!
//! Knows no syntax of PostgreSQL's.

use postgres_types::Type;

use super::super::error::CatalogError;

/// A translated expression.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) sql: String,
    pub(super) kind: Type,
    /// The text of an untyped literal, which becomes whatever it meets.
    pub(super) literal: Option<String>,
    /// The number of a parameter that stands here bare.
    pub(super) parameter: Option<usize>,
    /// The type's modifier, -1 for none.
    pub(super) modifier: i32,
}

impl Piece {
    pub(super) fn new(sql: impl Into<String>, kind: Type) -> Self {
        Self {
            sql: sql.into(),
            kind,
            literal: None,
            parameter: None,
            modifier: -1,
        }
    }
}

/// An identifier in SQLite's SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text literal in SQLite's SQL.
pub(super) fn text_literal(text: &str) -> Result<String, CatalogError> {
    // SQLite ends a statement at a NUL; PostgreSQL has no such character in text.
    if text.contains('\0') {
        return Err(CatalogError::InvalidText {
            kind: "text".to_owned(),
            text: text.replace('\0', "\\0"),
        });
    }
    Ok(format!("'{}'", text.replace('\'', "''")))
}
