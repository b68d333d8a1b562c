//! CREATE SCHEMA and DROP SCHEMA.
//!
//! Promises: a schema goes with all that is in it, or not at all; what is in it goes only where the client said CASCADE.

use sqlparser::ast::{ObjectName, SchemaName};

use super::compiler::Compiler;
use super::constraint::referring_tables;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{PUBLIC, SCHEMAS, is_reserved, missing, quote_relation, refuse_separator, stored, written};
use super::plan::Step;
use super::sqlite_text::{identifier, quoted};

impl Compiler<'_> {
    pub(super) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<Vec<Step>> {
        let SchemaName::Simple(name) = name else {
            return Err(Fault::unsupported("CREATE SCHEMA … AUTHORIZATION"));
        };
        let (None, name) = written(name)? else {
            return Err(Fault::unsupported("a schema of another database"));
        };
        if self.has_schema(&name)? || matches!(name.as_str(), "pg_catalog" | "information_schema" | "pg_toast") {
            if if_not_exists {
                self.notices.push(format!("schema \"{name}\" already exists, skipping"));
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
                self.notices.push(format!("schema \"{name}\" does not exist, skipping"));
                continue;
            }
            let (views, tables, sequences) = self.relations_of(&name).map_err(unreadable)?;
            let shown = |kind: &str, stored: &String| format!("{kind} {}", quote_relation(stored));
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
