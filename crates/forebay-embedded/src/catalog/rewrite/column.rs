//! Which column a name refers to.
//!
//! A lookup only finds the type, and refuses names that do not exist. Where several columns share a name, SQLite decides which one is meant,
//! by the same rules as PostgreSQL, because names are written as they came.

use super::super::error::CatalogError;
use super::piece::{Piece, quoted};
use super::translator::Translator;

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
