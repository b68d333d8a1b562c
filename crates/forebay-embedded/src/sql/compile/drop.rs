//! DROP and TRUNCATE.
//!
//! Promises: what depends on the dropped object goes only where the client said CASCADE.

use sqlparser::ast::{ObjectName, ObjectType, Truncate};

use super::compiler::Compiler;
use super::constraint::referring_tables;
use super::definition::Definition;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{quote_relation, shown};
use super::plan::Step;
use super::sequence::owned_sequences;
use super::sqlite_text::{identifier, quoted};
use super::view::{Dependent, drop_view};

impl Compiler<'_> {
    pub(super) fn drop(
        &mut self,
        kind: &ObjectType,
        if_exists: bool,
        names: &[ObjectName],
        cascade: bool,
    ) -> Result<Vec<Step>> {
        if *kind == ObjectType::Schema {
            return self.drop_schemas(names, if_exists, cascade);
        }
        let mut gone: Vec<String> = names.iter().filter_map(|name| self.name_of(name).ok()).collect();
        let mut steps = Vec::new();
        let mut defers = false;
        for name in names {
            let spelled = match self.name_of(name) {
                Ok(spelled) => spelled,
                Err(fault) if if_exists => {
                    self.notices.push(format!("{}, skipping", fault.message));
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let word = match kind {
                ObjectType::Table => "table",
                ObjectType::View => "view",
                ObjectType::Index => "index",
                ObjectType::Sequence => "sequence",
                other => return Err(Fault::unsupported(format!("DROP {other}"))),
            };
            let found = self.kind_of(&spelled)?;
            match found.as_deref() {
                Some(found) if found == word => {}
                None if if_exists => {
                    self.notices
                        .push(format!("{word} \"{}\" does not exist, skipping", shown(&spelled)));
                    continue;
                }
                None => {
                    let state = if word == "index" { "42704" } else { "42P01" };
                    return Err(Fault::new(
                        state,
                        format!("{word} \"{}\" does not exist", shown(&spelled)),
                    ));
                }
                Some(other) => {
                    let article = if word == "index" { "an" } else { "a" };
                    return Err(
                        Fault::new("42809", format!("\"{}\" is not {article} {word}", shown(&spelled))).with_hint(
                            format!(
                                "Use DROP {} to remove {} {other}.",
                                other.to_uppercase(),
                                if other == "index" { "an" } else { "a" }
                            ),
                        ),
                    );
                }
            }
            match word {
                "table" => {
                    let referring = referring_tables(self.schema.connection(), &spelled).map_err(unreadable)?;
                    // What goes together may refer to one another, and its rows to one another.
                    defers |= names.len() > 1 || referring.contains(&spelled);
                    steps.extend(self.drop_table(&spelled, &mut gone, cascade)?);
                }
                "sequence" => {
                    self.refuse_used_sequence(&spelled, cascade)?;
                    steps.push(format!("DELETE FROM \"forebay_sequence\" WHERE name = {}", quoted(&spelled)).into());
                    steps.push(format!("SELECT \"forebay_forget_sequence\"({})", quoted(&spelled)).into());
                }
                "index" => {
                    let sql = self.index_constraint(&spelled)?;
                    if let Some(table) = sql {
                        return Err(Fault::new(
                            "2BP01",
                            format!(
                                "cannot drop index {spelled} because constraint {spelled} on table {table} requires it"
                            ),
                        )
                        .with_hint(format!("You can drop constraint {spelled} on table {table} instead.")));
                    }
                    steps.push(format!("DROP INDEX {}", identifier(&spelled)).into());
                }
                _ => {
                    let dependents = self.dependent_views(&spelled, None, &gone)?;
                    self.take_along(&format!("view {spelled}"), &dependents, cascade)?;
                    steps.extend(dependents.iter().map(drop_view));
                    gone.extend(dependents.iter().filter_map(Dependent::view).map(str::to_owned));
                    steps.push(format!("DROP VIEW {}", identifier(&spelled)).into());
                }
            }
        }
        if defers {
            steps.insert(0, Step::DeferForeignKeys);
        }
        Ok(steps)
    }

    /// A sequence that columns are numbered by stays.
    fn refuse_used_sequence(&mut self, name: &str, cascade: bool) -> Result<()> {
        let tables: Vec<String> = (|| -> rusqlite::Result<_> {
            let mut statement = self
                .schema
                .connection()
                .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?1) > 0")?;
            statement.query_map([name], |row| row.get(0))?.collect()
        })()
        .map_err(unreadable)?;
        let default = format!("nextval({})", quoted(&quote_relation(name)));
        for table in tables {
            let described = self.schema.table(&table).map_err(unreadable)?;
            let Some(definition) = described.and_then(|table| Definition::read(&table.definition)) else {
                continue;
            };
            let Some(column) = definition
                .columns
                .iter()
                .find(|column| column.default.as_ref() == Some(&default))
            else {
                continue;
            };
            let column_name = &column.name;
            if column.identity.is_some() {
                return Err(Fault::new(
                    "2BP01",
                    format!("cannot drop sequence {name} because column {column_name} of table {table} requires it"),
                )
                .with_hint(format!("You can drop column {column_name} of table {table} instead.")));
            }
            if cascade {
                return Err(Fault::unsupported(format!(
                    "CASCADE to the default of the column \"{column_name}\""
                )));
            }
            return Err(Fault::new(
                "2BP01",
                format!("cannot drop sequence {name} because other objects depend on it"),
            )
            .with_detail(format!(
                "default value for column {column_name} of table {table} depends on sequence {name}"
            ))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        Ok(())
    }

    /// The table whose UNIQUE constraint an index carries.
    fn index_constraint(&mut self, index: &str) -> Result<Option<String>> {
        let table: Option<String> = self
            .schema
            .connection()
            .query_row(
                "SELECT tbl_name FROM sqlite_schema WHERE type = 'index' AND name = ?1",
                [index],
                |row| row.get(0),
            )
            .ok();
        let Some(table) = table else {
            return Ok(None);
        };
        let described = self.schema.table(&table).map_err(unreadable)?;
        let carries = described
            .and_then(|table| Definition::read(&table.definition))
            .is_some_and(|definition| definition.indexed_keys().any(|key| key.name == shown(index)));
        Ok(carries.then_some(table))
    }

    /// Refuses to drop what others depend on, unless they go with it, of which the client is told.
    pub(super) fn take_along(&mut self, what: &str, dependents: &[Dependent], cascade: bool) -> Result<()> {
        if cascade || dependents.is_empty() {
            let names: Vec<String> = dependents.iter().map(|dependent| dependent.what.clone()).collect();
            self.tell_cascade(&names);
            return Ok(());
        }
        let lines: Vec<String> = dependents.iter().map(Dependent::line).collect();
        Err(Fault::new(
            "2BP01",
            format!("cannot drop {what} because other objects depend on it"),
        )
        .with_detail(lines.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
    }

    /// `gone` goes with it, and gets the views that go because of it.
    pub(super) fn drop_table(&mut self, name: &str, gone: &mut Vec<String>, cascade: bool) -> Result<Vec<Step>> {
        self.reshapes.push(name.to_owned());
        let mut steps = Vec::new();
        let mut referring = referring_tables(self.schema.connection(), name).map_err(unreadable)?;
        referring.retain(|other| other != name && !gone.contains(other));
        let mut dependents = Vec::new();
        if !referring.is_empty() {
            let mut keys = self.foreign_keys_to(name)?;
            keys.retain(|(other, _)| referring.contains(other));
            dependents.extend(keys.iter().map(|(other, key)| Dependent {
                what: format!("constraint {} on table {other}", key.name),
                on: format!("table {name}"),
            }));
        }
        let views = self.dependent_views(name, None, gone)?;
        steps.extend(views.iter().map(drop_view));
        gone.extend(views.iter().filter_map(Dependent::view).map(str::to_owned));
        dependents.extend(views);
        self.take_along(&format!("table {name}"), &dependents, cascade)?;
        for other in referring {
            steps.extend(self.drop_foreign_keys_to(&other, name)?);
        }
        for sequence in owned_sequences(self.schema.connection(), name).map_err(unreadable)? {
            steps.push(format!("DELETE FROM \"forebay_sequence\" WHERE name = {}", quoted(&sequence)).into());
            steps.push(format!("SELECT \"forebay_forget_sequence\"({})", quoted(&sequence)).into());
        }
        steps.push(format!("DROP TABLE {}", identifier(name)).into());
        Ok(steps)
    }

    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<Vec<Step>> {
        let restart = matches!(truncate.identity, Some(sqlparser::ast::TruncateIdentityOption::Restart));
        let cascade = matches!(truncate.cascade, Some(sqlparser::ast::CascadeOption::Cascade));
        let mut names = Vec::new();
        for target in &truncate.table_names {
            self.refuse_missing_schema(&target.name)?;
            names.push(self.table(&target.name)?.name.clone());
        }
        let mut place = 0;
        while place < names.len() {
            for other in referring_tables(self.schema.connection(), &names[place]).map_err(unreadable)? {
                if names.contains(&other) {
                    continue;
                }
                if !cascade {
                    return Err(Fault::new(
                        "0A000",
                        "cannot truncate a table referenced in a foreign key constraint",
                    )
                    .with_detail(format!("Table \"{other}\" references \"{}\".", names[place]))
                    .with_hint(format!(
                        "Truncate table \"{other}\" at the same time, or use TRUNCATE ... CASCADE."
                    )));
                }
                self.notices
                    .push(format!("truncate cascades to table \"{}\"", shown(&other)));
                names.push(other);
            }
            place += 1;
        }
        self.empties.clone_from(&names);
        self.reshapes.clone_from(&names);
        let mut steps = vec![Step::DeferForeignKeys];
        for name in names.iter().rev() {
            steps.push(format!("DELETE FROM {}", identifier(name)).into());
            if restart {
                for sequence in owned_sequences(self.schema.connection(), name).map_err(unreadable)? {
                    let restart = quoted(r#"{"restart":[]}"#);
                    steps.push(format!("SELECT \"forebay_alter_sequence\"({}, {restart})", quoted(&sequence)).into());
                }
            }
        }
        Ok(steps)
    }
}
