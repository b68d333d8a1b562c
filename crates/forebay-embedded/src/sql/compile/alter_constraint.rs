//! ALTER TABLE … ADD, DROP and VALIDATE CONSTRAINT, and the foreign keys of other tables that an alteration meets.
//!
//! Promises: a key that others refer to goes only where the client said CASCADE, and then their foreign keys go with it.

use sqlparser::ast::{Ident, TableConstraint};

use super::alteration::Alteration;
use super::compiler::Compiler;
use super::constraint::{self, referring_tables};
use super::definition::{Definition, ForeignKey, Key};
use super::fault::{Fault, Result, unreadable};
use super::namespace::{parted, stored};
use super::plan::Step;
use super::syntax::folded;

impl Compiler<'_> {
    pub(super) fn add_constraint(
        &mut self,
        alteration: &mut Alteration,
        constraint: &TableConstraint,
        not_valid: bool,
    ) -> Result<()> {
        let table = alteration.table.clone();
        let before = key_names(&alteration.new);
        if let TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) = constraint {
            return Err(Fault::unsupported("a constraint USING INDEX"));
        }
        self.table_constraint(&table, &mut alteration.new, constraint)?;
        if not_valid {
            match constraint {
                TableConstraint::Check(_) => {
                    if let Some(check) = alteration.new.checks.last_mut() {
                        check.not_valid = true;
                    }
                }
                TableConstraint::ForeignKey(_) => {
                    if let Some(key) = alteration.new.foreign_keys.last_mut() {
                        key.not_valid = true;
                    }
                }
                _ => return Err(Fault::new("0A000", "UNIQUE constraints cannot be marked NOT VALID")),
            }
        }
        self.settle_keys(alteration, &before)
    }

    /// A key that was just added is carried by an index, whose name must be free.
    pub(super) fn settle_keys(&mut self, alteration: &mut Alteration, before: &[String]) -> Result<()> {
        let new = &mut alteration.new;
        if let Some(key) = new.primary_key.as_mut().filter(|key| !before.contains(&key.name)) {
            key.indexed = true;
        }
        let added: Vec<String> = new
            .indexed_keys()
            .map(|key| key.name.clone())
            .filter(|name| !before.contains(name))
            .collect();
        for name in added {
            // What this statement drops is out of the way by then.
            let index = stored(parted(&alteration.table).0, &name);
            if self.is_taken(&index)? && !alteration.old.indexed_keys().any(|key| key.name == name) {
                return Err(Fault::new("42P07", format!("relation \"{name}\" already exists")));
            }
        }
        Ok(())
    }

    pub(super) fn drop_constraint(
        &mut self,
        alteration: &mut Alteration,
        name: &Ident,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let wanted = folded(name);
        let table = alteration.table.clone();
        let new = &mut alteration.new;
        if !constraint::taken(&wanted, new) {
            let message = format!("constraint \"{wanted}\" of relation \"{table}\" does not exist");
            if if_exists {
                self.notices.push(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Fault::new("42704", message));
        }
        let is_primary = new.primary_key.as_ref().is_some_and(|key| key.name == wanted);
        let key = new
            .primary_key
            .iter()
            .chain(&new.uniques)
            .find(|key| key.name == wanted)
            .cloned();
        if let Some(key) = key {
            let others: Vec<Vec<String>> = new
                .primary_key
                .iter()
                .chain(&new.uniques)
                .filter(|other| other.name != wanted)
                .map(|other| other.columns.clone())
                .collect();
            let same = |left: &[String], right: &[String]| {
                left.len() == right.len() && left.iter().all(|name| right.contains(name))
            };
            for (other, foreign) in self.foreign_keys_to(&table)? {
                if !same(&foreign.referred, &key.columns) || others.iter().any(|columns| same(columns, &key.columns)) {
                    continue;
                }
                if !cascade {
                    return Err(Fault::new(
                        "2BP01",
                        format!("cannot drop constraint {wanted} on table {table} because other objects depend on it"),
                    )
                    .with_detail(format!(
                        "constraint {} on table {other} depends on index {wanted}",
                        foreign.name
                    ))
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
                }
                self.tell_cascade(&[format!("constraint {} on table {other}", foreign.name)]);
                self.drop_foreign_key_of(alteration, &other, &foreign.name)?;
            }
        }
        let new = &mut alteration.new;
        if is_primary && let Some(key) = new.primary_key.take() {
            alteration.copies |= !key.indexed;
            // The key's columns stay NOT NULL, as they do in PostgreSQL.
            for column in &key.columns {
                if let Some(place) = new.column(column) {
                    new.columns[place].not_null = true;
                }
            }
        }
        new.uniques.retain(|key| key.name != wanted);
        new.checks.retain(|check| check.name != wanted);
        new.foreign_keys.retain(|key| key.name != wanted);
        Ok(())
    }

    /// Drops a foreign key that depends on what is dropped, of this table or another one.
    pub(super) fn drop_foreign_key_of(&mut self, alteration: &mut Alteration, table: &str, key: &str) -> Result<()> {
        if table == alteration.table {
            alteration.new.foreign_keys.retain(|other| other.name != key);
            return Ok(());
        }
        let steps = self.without_foreign_keys(table, |other| other.name == key)?;
        alteration.first.extend(steps);
        Ok(())
    }

    fn without_foreign_keys(&mut self, table: &str, gone: impl Fn(&ForeignKey) -> bool) -> Result<Vec<Step>> {
        let described = self
            .schema
            .table(table)
            .map_err(unreadable)?
            .ok_or_else(|| Fault::new("42P01", format!("relation \"{table}\" does not exist")))?;
        let mut alteration = self.alteration(&described)?;
        alteration.new.foreign_keys.retain(|key| !gone(key));
        self.carry_out(alteration)
    }

    /// Takes away what refers to a table that is dropped with CASCADE.
    pub(super) fn drop_foreign_keys_to(&mut self, table: &str, referred: &str) -> Result<Vec<Step>> {
        self.without_foreign_keys(table, |key| key.table == referred)
    }

    /// Foreign keys that refer to a table, with the tables they are of.
    pub(super) fn foreign_keys_to(&mut self, table: &str) -> Result<Vec<(String, ForeignKey)>> {
        let mut found = Vec::new();
        for other in referring_tables(self.schema.connection(), table).map_err(unreadable)? {
            let described = self.schema.table(&other).map_err(unreadable)?;
            let Some(definition) = described
                .as_ref()
                .and_then(|described| Definition::read(&described.definition))
            else {
                return Err(Fault::unsupported(format!(
                    "a change of what \"{other}\", which something else has made, refers to"
                )));
            };
            let keys = definition.foreign_keys.into_iter().filter(|key| key.table == table);
            found.extend(keys.map(|key| (other.clone(), key)));
        }
        Ok(found)
    }
}

/// VALIDATE CONSTRAINT: the rows are looked at when the alteration is carried out.
pub(super) fn validate_constraint(alteration: &mut Alteration, name: &str) -> Result<()> {
    let checks = alteration.new.checks.iter_mut().filter(|check| check.name == name);
    let keys = alteration.new.foreign_keys.iter_mut().filter(|key| key.name == name);
    let found: Vec<&mut bool> = checks
        .map(|check| &mut check.not_valid)
        .chain(keys.map(|key| &mut key.not_valid))
        .collect();
    if found.is_empty() {
        let table = &alteration.table;
        let message = format!("constraint \"{name}\" of relation \"{table}\" does not exist");
        return Err(Fault::new("42704", message));
    }
    found.into_iter().for_each(|not_valid| *not_valid = false);
    Ok(())
}

/// The names of the primary key and the UNIQUE constraints.
pub(super) fn key_names(definition: &Definition) -> Vec<String> {
    let keys = definition.primary_key.iter().chain(&definition.uniques);
    keys.map(|key: &Key| key.name.clone()).collect()
}
