//! Schemas, and the names under which relations stand in the file.
//!
//! Promises: in the file all relations share one namespace: those of `public` stand under their names, those of another schema under
//! `schema::name`. No client's own name contains `::`.

use sqlparser::ast::{ObjectName, ObjectNamePart};

use super::fault::{Fault, Result};
use super::syntax::folded;
use super::types;
use crate::sql::environment::Environment;
use crate::sql::identifier::{cut, quote_identifier};

/// Where the schemas beside `public` are kept.
pub(crate) const SCHEMAS: &str = "CREATE TABLE \"forebay_schema\" (name TEXT PRIMARY KEY)";

pub(super) const PUBLIC: &str = "public";
pub(super) const SEPARATOR: &str = "::";

/// The name in the file of a relation.
pub(crate) fn stored(schema: &str, name: &str) -> String {
    if schema == PUBLIC {
        name.to_owned()
    } else {
        format!("{schema}{SEPARATOR}{name}")
    }
}

/// The schema and the name of a relation, by its name in the file.
pub(crate) fn parted(stored: &str) -> (&str, &str) {
    stored.split_once(SEPARATOR).unwrap_or((PUBLIC, stored))
}

/// The name of a relation without its schema, by its name in the file.
pub(crate) fn shown(stored: &str) -> &str {
    parted(stored).1
}

/// The schemas that a setting of `search_path` names, of those there are.
pub(crate) fn search_path(setting: &str, user: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut rest = setting.trim_start();
    while !rest.is_empty() {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
                (name.to_owned(), behind)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_ascii_lowercase(), &rest[end..])
            }
        };
        rest = behind.split_once(',').map_or("", |(_, rest)| rest.trim_start());
        let name = if name == "$user" { user.to_owned() } else { name };
        if !path.contains(&name) && is_there(&name) {
            path.push(name);
        }
    }
    path
}

/// The schemas in which this session looks up a name without one.
pub(crate) fn session_path(
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
) -> rusqlite::Result<Vec<String>> {
    let Some(setting) = (session.settings)("search_path") else {
        return Ok(vec![PUBLIC.to_owned()]);
    };
    let others = schemas(connection)?;
    Ok(search_path(&setting, session.user, |name| {
        name == PUBLIC || others.iter().any(|known| known == name)
    }))
}

/// The names of the schemas beside `public`.
pub(crate) fn schemas(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<String>> {
    let there: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_schema')")?
        .query_row([], |row| row.get(0))?;
    if !there {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT name FROM forebay_schema ORDER BY rowid")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Writes the names in the file that a text for the client holds, of these schemas, as a client writes them.
pub(super) fn unfold_names(text: &mut String, schemas: &[String]) {
    for schema in schemas {
        let prefix = stored(schema, "");
        if text.contains(&prefix) {
            *text = text
                .replace(&format!("\"{prefix}"), "\"")
                .replace(&format!(" {prefix}"), &format!(" {schema}."));
        }
    }
}

pub(super) fn missing(schema: &str) -> Fault {
    Fault::new("3F000", format!("schema \"{schema}\" does not exist"))
}

/// The schema, if the client named one, and the name.
pub(super) fn written(name: &ObjectName) -> Result<(Option<String>, String)> {
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(name) => parts.push(folded(name)),
            ObjectNamePart::Function(_) => return Err(Fault::unsupported(format!("the name {name}"))),
        }
    }
    let Some(last) = parts.pop() else {
        return Err(Fault::new("42602", "invalid name syntax"));
    };
    match parts.as_slice() {
        [] => Ok((None, last)),
        [.., schema] => Ok((Some(schema.clone()), last)),
    }
}

/// Refuses what would be a name of another schema in the file.
pub(super) fn refuse_separator(name: &str) -> Result<()> {
    if name.contains(SEPARATOR) {
        return Err(Fault::unsupported(format!("a name with {SEPARATOR}")));
    }
    Ok(())
}

pub(super) fn is_reserved(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("sqlite_") || lower.starts_with("forebay_")
}

/// A relation as one would have to write it in SQL, by its name in the file.
pub(crate) fn quote_relation(stored: &str) -> String {
    match parted(stored) {
        (PUBLIC, name) => quote_identifier(name),
        (schema, name) => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
    }
}

/// A name in `public`.
pub(super) fn plain_name(name: &ObjectName) -> Result<String> {
    let spelled = types::object_name(name)?;
    let plain = match spelled.strip_prefix("public.") {
        Some(plain) if name.0.len() > 1 => plain.to_owned(),
        _ if name.0.len() > 1 => {
            return Err(Fault::unsupported(format!(
                "{name} at this place, in a schema beside public"
            )));
        }
        _ => spelled,
    };
    refuse_separator(&plain)?;
    let lower = plain.to_ascii_lowercase();
    if lower.starts_with("sqlite_") || lower.starts_with("forebay_") {
        return Err(Fault::new("42939", format!("the name \"{plain}\" is reserved")));
    }
    Ok(plain)
}

/// The name in the file of a sequence, from a literal: folded unless quoted, in `public` unless it names a schema.
pub(crate) fn sequence_name(text: &str) -> Result<String> {
    let parts = name_parts(text)?;
    match parts.as_slice() {
        [_] | [_, _] if parts.iter().any(|part| part.contains("::")) => {
            Err(Fault::new("42P01", format!("relation \"{text}\" does not exist")))
        }
        [name] => Ok(name.clone()),
        [schema, name] => Ok(stored(schema, name)),
        _ => Err(Fault::new("42P01", format!("relation \"{text}\" does not exist"))),
    }
}

/// The parts of a name in a literal.
pub(super) fn name_parts(text: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut characters = quoted.char_indices().peekable();
            let mut end = None;
            while let Some((at, character)) = characters.next() {
                if character == '"' {
                    if characters.peek().is_some_and(|(_, next)| *next == '"') {
                        name.push('"');
                        characters.next();
                    } else {
                        end = Some(at + 1);
                        break;
                    }
                } else {
                    name.push(character);
                }
            }
            let Some(end) = end else {
                return Err(Fault::new("42602", "invalid name syntax"));
            };
            parts.push(cut(name));
            rest = &quoted[end..];
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            if end == 0 {
                return Err(Fault::new("42602", "invalid name syntax"));
            }
            parts.push(cut(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        }
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(parts),
            None => return Err(Fault::new("42602", "invalid name syntax")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parted, search_path, stored};

    #[test]
    fn a_name_in_the_file_tells_its_schema() {
        for (schema, name, expected) in [
            ("public", "t", "t"),
            ("public", "a.b", "a.b"),
            ("x", "t", "x::t"),
            ("a.b", "c", "a.b::c"),
        ] {
            assert_eq!(stored(schema, name), expected);
            assert_eq!(parted(expected), (schema, name));
        }
    }

    #[test]
    fn a_search_path_names_schemas_that_are_there() {
        let there = |name: &str| ["public", "x", "Odd, one", "me"].contains(&name);
        for (setting, expected) in [
            ("\"$user\", public", vec!["me", "public"]),
            ("X,nosuch , public,x", vec!["x", "public"]),
            ("\"Odd, one\", \"x\"", vec!["Odd, one", "x"]),
            ("\"\"", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(search_path(setting, "me", there), expected, "{setting}");
        }
    }
}
