//! Schemas: which relation a name means, and under which name it stands in the file.
//!
//! Contract: a name without a schema is looked up along the search path and made in the first schema of it; a definition's text, a
//! view's or a default's, means the schema `public` by one. In the file all relations are in one namespace: those of `public` under
//! their names, those of another schema under `schema::name`. No client's own name has a `::`.

use sqlparser::ast::{ObjectName, ObjectNamePart, SchemaName};

use super::constraint::referring_tables;
use super::define::unreadable;
use super::fault::{Fault, Result};
use super::scalar::{identifier, quoted};
use super::{Compiler, Step, folded};
use crate::sql::Environment;

/// Where the schemas beside `public` are kept.
pub(crate) const SCHEMAS: &str = "CREATE TABLE \"forebay_schema\" (name TEXT PRIMARY KEY)";

const PUBLIC: &str = "public";
const SEPARATOR: &str = "::";

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

/// Names in the file, of these schemas, as a client writes them: see [`Compiler::as_told`].
pub(super) fn told(text: &mut String, schemas: &[String]) {
    for schema in schemas {
        let prefix = stored(schema, "");
        if text.contains(&prefix) {
            *text = text
                .replace(&format!("\"{prefix}"), "\"")
                .replace(&format!(" {prefix}"), &format!(" {schema}."));
        }
    }
}

fn missing(schema: &str) -> Fault {
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

impl Compiler<'_> {
    /// A fault in the words of who does not know the file: `"x::t"` is the relation `"t"`, and `x::t` is `x.t`.
    pub(super) fn as_told(&self, mut fault: Fault) -> Fault {
        if let Ok(schemas) = schemas(self.schema.connection()) {
            for text in [Some(&mut fault.message), fault.detail.as_mut(), fault.hint.as_mut()]
                .into_iter()
                .flatten()
            {
                told(text, &schemas);
            }
        }
        fault
    }

    fn has_schema(&self, name: &str) -> Result<bool> {
        Ok(name == PUBLIC
            || schemas(self.schema.connection())
                .map_err(unreadable)?
                .iter()
                .any(|known| known == name))
    }

    /// The schemas in which a name without one is looked up.
    pub(super) fn path(&mut self) -> Result<Vec<String>> {
        let setting = (self.session.settings)("search_path").filter(|_| !self.public_only);
        let Some(setting) = setting else {
            return Ok(vec![PUBLIC.to_owned()]);
        };
        let others = schemas(self.schema.connection()).map_err(unreadable)?;
        // Who has a schema of their own means something else by a name than others do.
        self.session_bound |= setting.contains("$user") && others.iter().any(|known| known == self.session.user);
        session_path(self.schema.connection(), self.session).map_err(unreadable)
    }

    /// Refuses what would be looked up elsewhere when its text is read again.
    pub(super) fn refuse_other_path(&mut self, what: &str) -> Result<()> {
        if self.path()? == [PUBLIC] {
            return Ok(());
        }
        Err(Fault::unsupported(format!(
            "{what} under another search_path than public"
        )))
    }

    /// The names in the file that a name may mean, the first that is there first; nothing if there is no such schema.
    pub(super) fn candidates(&mut self, name: &ObjectName) -> Result<Vec<String>> {
        let (schema, name) = written(name)?;
        if name.contains(SEPARATOR) || is_reserved(&name) {
            return Ok(Vec::new());
        }
        let schemas = match schema {
            Some(schema) if !self.has_schema(&schema)? => Vec::new(),
            Some(schema) => vec![schema],
            None => self.path()?,
        };
        Ok(schemas.iter().map(|schema| stored(schema, &name)).collect())
    }

    /// The name in the file of what a name means; if there is nothing, of what it would mean.
    pub(super) fn name_of(&mut self, name: &ObjectName) -> Result<String> {
        let candidates = self.candidates(name)?;
        for candidate in &candidates {
            if self.kind_of(candidate)?.is_some() {
                return Ok(candidate.clone());
            }
        }
        match (candidates.into_iter().next(), written(name)?) {
            (Some(first), _) => Ok(first),
            (None, (Some(schema), _)) if !self.has_schema(&schema)? => Err(missing(&schema)),
            (None, (_, name)) => Err(Fault::new("42939", format!("the name \"{name}\" is reserved"))),
        }
    }

    /// The name in the file of something new.
    pub(super) fn name_to_create(&mut self, name: &ObjectName) -> Result<String> {
        let (schema, name) = written(name)?;
        if is_reserved(&name) {
            return Err(Fault::new("42939", format!("the name \"{name}\" is reserved")));
        }
        refuse_separator(&name)?;
        let schema = match schema {
            Some(schema) if self.has_schema(&schema)? => schema,
            Some(schema) => return Err(missing(&schema)),
            None => self
                .path()?
                .into_iter()
                .next()
                .ok_or_else(|| Fault::new("3F000", "no schema has been selected to create in"))?,
        };
        Ok(stored(&schema, &name))
    }

    pub(super) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<Vec<Step>> {
        let SchemaName::Simple(name) = name else {
            return Err(Fault::unsupported("CREATE SCHEMA … AUTHORIZATION"));
        };
        let (None, name) = written(name)? else {
            return Err(Fault::unsupported("a schema of another database"));
        };
        if self.has_schema(&name)? || matches!(name.as_str(), "pg_catalog" | "information_schema" | "pg_toast") {
            if if_not_exists {
                self.notice = Some(format!("schema \"{name}\" already exists, skipping"));
                return Ok(Vec::new());
            }
            return Err(Fault::new("42P06", format!("schema \"{name}\" already exists")));
        }
        if name.starts_with("pg_") {
            return Err(Fault::new("42939", format!("unacceptable schema name \"{name}\""))
                .with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if is_reserved(&name) {
            return Err(Fault::new("42939", format!("the name \"{name}\" is reserved")));
        }
        refuse_separator(&name)?;
        Ok(vec![
            SCHEMAS.to_owned().into(),
            format!("INSERT INTO \"forebay_schema\" VALUES ({})", quoted(&name)).into(),
        ])
    }

    pub(super) fn drop_schemas(&mut self, names: &[ObjectName], if_exists: bool, cascade: bool) -> Result<Vec<Step>> {
        let mut steps = vec![Step::DeferForeignKeys];
        for name in names {
            let (None, name) = written(name)? else {
                return Err(Fault::unsupported("a schema of another database"));
            };
            if name == PUBLIC {
                return Err(Fault::unsupported("DROP SCHEMA public"));
            }
            if !self.has_schema(&name)? {
                if !if_exists {
                    return Err(missing(&name));
                }
                self.notice = Some(format!("schema \"{name}\" does not exist, skipping"));
                continue;
            }
            let (views, tables, sequences) = self.relations_of(&name).map_err(unreadable)?;
            let shown = |kind: &str, stored: &String| format!("{kind} {}", super::define::identifier_if_needed(stored));
            let dependents: Vec<String> = tables
                .iter()
                .map(|table| shown("table", table))
                .chain(views.iter().map(|view| shown("view", view)))
                .chain(sequences.iter().map(|sequence| shown("sequence", sequence)))
                .collect();
            if !dependents.is_empty() && !cascade {
                let lines: Vec<String> = dependents
                    .iter()
                    .map(|dependent| format!("{dependent} depends on schema {name}"))
                    .collect();
                return Err(Fault::new(
                    "2BP01",
                    format!("cannot drop schema {name} because other objects depend on it"),
                )
                .with_detail(lines.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            let mut gone = [views.as_slice(), tables.as_slice()].concat();
            for relation in &gone {
                if !self.dependent_views(relation, None, &gone)?.is_empty() {
                    return Err(Fault::unsupported("DROP SCHEMA of what views of another schema read")
                        .with_hint("Drop the views first."));
                }
            }
            for view in &views {
                steps.push(format!("DROP VIEW {}", identifier(view)).into());
            }
            for table in &tables {
                let referring = referring_tables(self.schema.connection(), table).map_err(unreadable)?;
                if referring.iter().any(|other| !tables.contains(other)) {
                    return Err(
                        Fault::unsupported("DROP SCHEMA of a table that tables of another schema refer to")
                            .with_hint("Drop the foreign keys first."),
                    );
                }
                steps.extend(self.drop_table(table, &mut gone, true)?);
            }
            for sequence in &sequences {
                steps.push(format!("DELETE FROM \"forebay_sequence\" WHERE name = {}", quoted(sequence)).into());
                steps.push(format!("SELECT \"forebay_forget_sequence\"({})", quoted(sequence)).into());
            }
            self.tell_cascade(&dependents);
            steps.push(
                format!(
                    "DELETE FROM {} WHERE name = {}",
                    identifier("forebay_schema"),
                    quoted(&name)
                )
                .into(),
            );
        }
        Ok(steps)
    }

    /// The views and tables of a schema, and the sequences that go with none of them.
    #[allow(clippy::type_complexity, reason = "three lists of names")]
    fn relations_of(&self, schema: &str) -> rusqlite::Result<(Vec<String>, Vec<String>, Vec<String>)> {
        let (connection, prefix) = (self.schema.connection(), stored(schema, ""));
        let names = |sql: &str| -> rusqlite::Result<Vec<String>> {
            connection
                .prepare_cached(sql)?
                .query_map([&prefix], |row| row.get(0))?
                .collect()
        };
        let views = names(
            "SELECT name FROM sqlite_schema WHERE type = 'view' AND substr(name, 1, length(?1)) = ?1 ORDER BY rowid",
        )?;
        let tables = names(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, length(?1)) = ?1 ORDER BY rowid",
        )?;
        let has_sequences =
            !names("SELECT name FROM sqlite_schema WHERE name = 'forebay_sequence' AND ?1 <> ''")?.is_empty();
        let sequences = if has_sequences {
            names("SELECT name FROM forebay_sequence WHERE owner_table IS NULL AND substr(name, 1, length(?1)) = ?1")?
        } else {
            Vec::new()
        };
        Ok((views, tables, sequences))
    }
}

/// Refuses what would be a name of another schema in the file.
pub(super) fn refuse_separator(name: &str) -> Result<()> {
    if name.contains(SEPARATOR) {
        return Err(Fault::unsupported(format!("a name with {SEPARATOR}")));
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("sqlite_") || lower.starts_with("forebay_")
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
