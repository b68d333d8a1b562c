//! New names for tables, columns, constraints, indexes and views.
//!
//! Promises: SQLite renames what it knows, in the texts of all tables and indexes; PostgreSQL's definitions of them are renamed here, and replace
//! SQLite's. A rename that a view's text depends on is refused, naming the view.

use forebay_sqlite::connection::SchemaEdit;
use sqlparser::ast::{AlterIndexOperation, Expr, Ident, ObjectName};

use super::carry_out::unchanged;
use super::compiler::Compiler;
use super::constraint::{self, referring_tables};
use super::definition::{Definition, ForeignKey};
use super::expression_text::parsed;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{plain_name, refuse_separator};
use super::plan::Step;
use super::schema::Table;
use super::sequence::owned_sequences;
use super::sqlite_text::{identifier, quoted};
use super::syntax::folded;
use crate::sql::walk::change_expressions;

/// What gets another name in PostgreSQL's expressions.
#[derive(Clone, Copy)]
enum Renamed<'a> {
    Column(&'a str, &'a str),
    Table(&'a str, &'a str),
}

impl Renamed<'_> {
    fn rename(self, expression: &mut Expr) {
        let rename = |name: &mut Ident, from: &str, to: &str| {
            if folded(name) == from {
                *name = Ident::with_quote('"', to);
            }
        };
        match (self, expression) {
            (Self::Column(from, to), Expr::Identifier(name)) => rename(name, from, to),
            (Self::Column(from, to), Expr::CompoundIdentifier(parts)) => {
                if let Some(name) = parts.last_mut() {
                    rename(name, from, to);
                }
            }
            (Self::Table(from, to), Expr::CompoundIdentifier(parts)) => {
                let place = parts.len().checked_sub(2);
                if let Some(name) = place.and_then(|place| parts.get_mut(place)) {
                    rename(name, from, to);
                }
            }
            _ => {}
        }
    }
}

fn renamed(text: &str, names: Renamed<'_>) -> Result<String> {
    let mut expression = parsed(text)?;
    change_expressions(&mut expression, |inner| names.rename(inner));
    Ok(expression.to_string())
}

fn rename_expressions(definition: &mut Definition, names: Renamed<'_>) -> Result<()> {
    for check in &mut definition.checks {
        check.condition.text = renamed(&check.condition.text, names)?;
    }
    for generated in definition
        .columns
        .iter_mut()
        .filter_map(|column| column.generated.as_mut())
    {
        generated.text = renamed(&generated.text, names)?;
    }
    Ok(())
}

fn replace_name(names: &mut [String], from: &str, to: &str) {
    for name in names.iter_mut().filter(|name| *name == from) {
        to.clone_into(name);
    }
}

impl Compiler<'_> {
    fn refuse_views(&mut self, table: &str, column: Option<&str>) -> Result<()> {
        let what = column.map_or_else(|| format!("\"{table}\""), |_| format!("a column of \"{table}\""));
        match self.dependent_views(table, column, &[])?.first() {
            Some(dependent) => Err(Fault::unsupported(format!(
                "another name for {what}, which the {} uses,",
                dependent.what
            ))
            .with_hint("Drop the view first, and create it again.")),
            None => Ok(()),
        }
    }

    pub(super) fn rename_relation(&mut self, from: &str, to: &ObjectName) -> Result<Vec<Step>> {
        let to = plain_name(to)?;
        if to == from || (!to.eq_ignore_ascii_case(from) && self.is_taken(&to)?) {
            return Err(Fault::new("42P07", format!("relation \"{to}\" already exists")));
        }
        if to.eq_ignore_ascii_case(from) {
            return Err(Fault::unsupported(format!(
                "a name for \"{from}\" that differs in upper and lower case only"
            )));
        }
        let Some(table) = self.schema.table(from).map_err(unreadable)? else {
            return Err(Fault::new("42P01", format!("relation \"{from}\" does not exist")));
        };
        self.refuse_views(from, None)?;
        if table.view.is_some() || table.foreign_view {
            return self.rename_view(&table, &to);
        }
        let mut alteration = self.alteration(&table)?;
        rename_expressions(&mut alteration.new, Renamed::Table(from, &to))?;
        for key in alteration.new.foreign_keys.iter_mut().filter(|key| key.table == from) {
            to.clone_into(&mut key.table);
        }
        self.settle_expressions(&to, &mut alteration.new)?;
        let mut steps = vec![
            unchanged(from, &alteration.text),
            format!("ALTER TABLE {} RENAME TO {}", identifier(from), identifier(&to)).into(),
            Step::Edit(SchemaEdit::TableText {
                sql: alteration.new.create(&to),
                table: to.clone(),
            }),
        ];
        for other in referring_tables(self.schema.connection(), from).map_err(unreadable)? {
            if other != from {
                steps.extend(self.renamed_reference(&other, |key| {
                    if key.table == from {
                        to.clone_into(&mut key.table);
                    }
                })?);
            }
        }
        if !owned_sequences(self.schema.connection(), from)
            .map_err(unreadable)?
            .is_empty()
        {
            steps.push(
                format!(
                    "UPDATE \"forebay_sequence\" SET owner_table = {} WHERE owner_table = {}",
                    quoted(&to),
                    quoted(from)
                )
                .into(),
            );
        }
        Ok(steps)
    }

    fn rename_view(&mut self, view: &Table, to: &str) -> Result<Vec<Step>> {
        let start = format!("CREATE VIEW {} ", identifier(&view.name));
        let Some(rest) = view.definition.strip_prefix(&start).filter(|_| view.view.is_some()) else {
            return Err(Fault::unsupported(format!(
                "another name for the view \"{}\", which something else has made,",
                view.name
            )));
        };
        Ok(vec![
            format!("DROP VIEW {}", identifier(&view.name)).into(),
            format!("CREATE VIEW {} {rest}", identifier(to)).into(),
        ])
    }

    /// The text of another table, whose foreign keys speak of new names.
    fn renamed_reference(&mut self, table: &str, rename: impl Fn(&mut ForeignKey)) -> Result<Option<Step>> {
        let described = self.schema.table(table).map_err(unreadable)?;
        // One that something else has made has no definition but SQLite's text.
        let Some(mut definition) = described.as_ref().and_then(|table| Definition::read(&table.definition)) else {
            return Ok(None);
        };
        definition.foreign_keys.iter_mut().for_each(rename);
        Ok(Some(Step::Edit(SchemaEdit::TableText {
            table: table.to_owned(),
            sql: definition.create(table),
        })))
    }

    pub(super) fn rename_column(&mut self, table: &Table, from: &Ident, to: &Ident) -> Result<Vec<Step>> {
        let (old, new) = (folded(from), folded(to));
        if table.view.is_some() || table.foreign_view {
            return Err(Fault::unsupported(format!(
                "another name for a column of the view \"{}\"",
                table.name
            )));
        }
        let mut alteration = self.alteration(table)?;
        let Some(place) = alteration.new.column(&old) else {
            return Err(Fault::new("42703", format!("column \"{old}\" does not exist")));
        };
        if let Some(there) = alteration
            .new
            .columns
            .iter()
            .find(|column| column.name.eq_ignore_ascii_case(&new))
        {
            if there.name == new {
                return Err(Fault::new(
                    "42701",
                    format!("column \"{new}\" of relation \"{}\" already exists", table.name),
                ));
            }
            if there.name != old {
                return Err(Fault::unsupported(format!(
                    "columns \"{}\" and \"{new}\", which differ in upper and lower case only,",
                    there.name
                )));
            }
        }
        self.refuse_views(&table.name, Some(&old))?;
        let definition = &mut alteration.new;
        definition.columns[place].name.clone_from(&new);
        for key in definition.primary_key.iter_mut().chain(&mut definition.uniques) {
            replace_name(&mut key.columns, &old, &new);
        }
        for key in &mut definition.foreign_keys {
            replace_name(&mut key.columns, &old, &new);
            if key.table == table.name {
                replace_name(&mut key.referred, &old, &new);
            }
        }
        rename_expressions(definition, Renamed::Column(&old, &new))?;
        self.settle_expressions(&table.name, &mut alteration.new)?;
        self.refuse_other_meaning(&table.name, &alteration.new, &[])?;
        let mut steps = vec![
            unchanged(&table.name, &alteration.text),
            format!(
                "ALTER TABLE {} RENAME COLUMN {} TO {}",
                identifier(&table.name),
                identifier(&old),
                identifier(&new)
            )
            .into(),
            Step::Edit(SchemaEdit::TableText {
                table: table.name.clone(),
                sql: alteration.new.create(&table.name),
            }),
        ];
        for other in referring_tables(self.schema.connection(), &table.name).map_err(unreadable)? {
            if other != table.name {
                steps.extend(self.renamed_reference(&other, |key| {
                    if key.table == table.name {
                        replace_name(&mut key.referred, &old, &new);
                    }
                })?);
            }
        }
        if !owned_sequences(self.schema.connection(), &table.name)
            .map_err(unreadable)?
            .is_empty()
        {
            steps.push(
                format!(
                    "UPDATE \"forebay_sequence\" SET owner_column = {} WHERE owner_table = {} AND owner_column = {}",
                    quoted(&new),
                    quoted(&table.name),
                    quoted(&old)
                )
                .into(),
            );
        }
        Ok(steps)
    }

    pub(super) fn rename_constraint(&mut self, table: &Table, from: &Ident, to: &Ident) -> Result<Vec<Step>> {
        let (old, new) = (folded(from), folded(to));
        refuse_separator(&new)?;
        let mut alteration = self.alteration(table)?;
        let definition = &mut alteration.new;
        if !constraint::taken(&old, definition) {
            return Err(Fault::new(
                "42704",
                format!("constraint \"{old}\" for table \"{}\" does not exist", table.name),
            ));
        }
        let is_key = definition
            .primary_key
            .iter()
            .chain(&definition.uniques)
            .any(|key| key.name == old);
        if is_key && self.is_taken(&new)? {
            return Err(Fault::new("42P07", format!("relation \"{new}\" already exists")));
        }
        if constraint::taken(&new, definition) {
            return Err(Fault::new(
                "42710",
                format!("constraint \"{new}\" for relation \"{}\" already exists", table.name),
            ));
        }
        let definition = &mut alteration.new;
        let keys = definition
            .primary_key
            .iter_mut()
            .chain(&mut definition.uniques)
            .map(|key| &mut key.name);
        let checks = definition.checks.iter_mut().map(|check| &mut check.name);
        let foreign = definition.foreign_keys.iter_mut().map(|key| &mut key.name);
        for name in keys.chain(checks).chain(foreign).filter(|name| **name == old) {
            name.clone_from(&new);
        }
        let mut steps = vec![
            unchanged(&table.name, &alteration.text),
            Step::Edit(SchemaEdit::TableText {
                table: table.name.clone(),
                sql: alteration.new.create(&table.name),
            }),
        ];
        if let Some(key) = alteration.new.indexed_keys().find(|key| key.name == new) {
            steps.push(Step::Edit(SchemaEdit::IndexText {
                index: old,
                name: new.clone(),
                sql: alteration.new.unique_index(&table.name, key),
            }));
        }
        Ok(steps)
    }

    pub(super) fn alter_index(&mut self, name: &ObjectName, operation: &AlterIndexOperation) -> Result<Vec<Step>> {
        let AlterIndexOperation::RenameIndex { index_name } = operation;
        let (old, new) = (plain_name(name)?, plain_name(index_name)?);
        let table_of_key = self.table_of_key(&old)?;
        match self.kind_of(&old)?.as_deref() {
            Some("index") => {}
            // PostgreSQL renames tables and views by these words too.
            Some("table" | "view") => return self.rename_relation(&old, index_name),
            _ if table_of_key.is_some() => {}
            _ => return Err(Fault::new("42P01", format!("relation \"{old}\" does not exist"))),
        }
        if let Some(table) = table_of_key {
            return self.rename_constraint(&table, &Ident::with_quote('"', &old), &Ident::with_quote('"', &new));
        }
        if self.is_taken(&new)? {
            return Err(Fault::new("42P07", format!("relation \"{new}\" already exists")));
        }
        let sql: String = self
            .schema
            .connection()
            .query_row(
                "SELECT sql FROM sqlite_schema WHERE type = 'index' AND name = ?1",
                [&old],
                |row| row.get(0),
            )
            .map_err(unreadable)?;
        let written = format!("INDEX {} ON ", identifier(&old));
        if !sql.contains(&written) {
            return Err(Fault::unsupported(format!(
                "another name for the index \"{old}\", which something else has made,"
            )));
        }
        Ok(vec![Step::Edit(SchemaEdit::IndexText {
            sql: sql.replacen(&written, &format!("INDEX {} ON ", identifier(&new)), 1),
            index: old,
            name: new,
        })])
    }

    /// The table with a primary key or a UNIQUE constraint of this name.
    fn table_of_key(&mut self, name: &str) -> Result<Option<std::rc::Rc<Table>>> {
        let tables: Vec<String> = (|| -> rusqlite::Result<_> {
            let mut statement = self
                .schema
                .connection()
                .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table' AND instr(sql, ?1) > 0")?;
            statement.query_map([name], |row| row.get(0))?.collect()
        })()
        .map_err(unreadable)?;
        for table in tables {
            let Some(table) = self.schema.table(&table).map_err(unreadable)? else {
                continue;
            };
            let has = Definition::read(&table.definition).is_some_and(|definition| {
                let mut keys = definition.primary_key.iter().chain(&definition.uniques);
                keys.any(|key| key.name == name)
            });
            if has {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }
}
