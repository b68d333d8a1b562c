//! The table that a COPY names, and its columns.
//!
//! Promises: PostgreSQL's error where there is no such table, or it cannot be copied. Knows nothing of the rows.

use super::compile::namespace::{schemas, search_path, stored};
use super::compile::schema::Schema;
use super::error::SqlError;

/// A column of a table, for COPY.
#[derive(Debug, Clone)]
pub(crate) struct CopiedColumn {
    pub(crate) name: String,
    pub(crate) oid: u32,
    pub(crate) typmod: i32,
    /// Computed: neither copied from nor to.
    pub(crate) generated: bool,
}

/// The name in the file, and the columns, of a table that is copied, `from` the client or to it. `path` is the setting of `search_path`, and the user.
pub(crate) fn copied_columns(
    connection: &rusqlite::Connection,
    schema: Option<&str>,
    name: &str,
    path: (&str, &str),
    from: bool,
) -> Result<(String, Vec<CopiedColumn>), SqlError> {
    let fault = |sqlstate: &'static str, message: String, hint: Option<&str>| SqlError::Fault {
        sqlstate,
        message,
        detail: None,
        hint: hint.map(str::to_owned),
        position: None,
    };
    let others = schemas(connection)?;
    let is_there = |name: &str| name == "public" || others.iter().any(|known| known == name);
    let schemas = match schema {
        Some(schema) => vec![schema.to_owned()],
        None => search_path(path.0, path.1, is_there),
    };
    if let Some(missing) = schema.filter(|schema| !is_there(schema)) {
        return Err(fault("3F000", format!("schema \"{missing}\" does not exist"), None));
    }
    let mut found = None;
    for schema in schemas.iter().filter(|schema| is_there(schema)) {
        if found.is_none() {
            found = Schema::new(connection).table(&stored(schema, name))?;
        }
    }
    let own = name.starts_with("sqlite_") || name.starts_with("forebay_");
    let Some(table) = found.filter(|_| !own) else {
        return Err(fault("42P01", format!("relation \"{name}\" does not exist"), None));
    };
    if table.view.is_some() || table.foreign_view {
        return Err(if from {
            fault("42809", format!("cannot copy to view \"{name}\""), None)
        } else {
            let hint = "Try the COPY (SELECT ...) TO variant.";
            fault("42809", format!("cannot copy from view \"{name}\""), Some(hint))
        });
    }
    let columns = table
        .columns
        .iter()
        .map(|column| CopiedColumn {
            name: column.name.clone(),
            oid: column.kind.oid,
            typmod: column.kind.typmod,
            generated: column.generated,
        })
        .collect();
    Ok((table.name.clone(), columns))
}
