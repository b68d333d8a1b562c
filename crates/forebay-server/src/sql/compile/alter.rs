//! ALTER TABLE, and its like for indexes and views.
//!
//! Contract: the definition is changed in PostgreSQL's terms, all of a statement's operations at once and in PostgreSQL's order; SQLite's
//! text of the table follows from it. Where the rows stay as they are stored, the text alone is replaced; else the rows are copied into a
//! table of the new text, which then takes the old one's place ([`SchemaEdit`]). What a view reads is not changed under it.
//!
//! [`rename`](super::rename) is its other half: names, which SQLite changes itself.

use std::collections::HashMap;

use forebay::write::sqlite::SchemaEdit;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, DataType, DropBehavior, Expr, GeneratedAs, Ident,
    TableConstraint,
};

use super::define::{self, parsed, plain_name, referring_tables, unreadable};
use super::definition::{Definition, ForeignKey, Key};
use super::fault::{Fault, Result};
use super::rename::{mentions, text_names};
use super::scalar::{Scalar, identifier, quoted};
use super::schema::{Identity, Table, declared};
use super::scope::{Relation, RelationColumn, Scope};
use super::types;
use super::{Compiler, Step, folded};
use crate::sql::facts::{self, Context, oid};

/// Where rows are copied to, and where they came from: there only within one statement.
const COPY: &str = "forebay_altered";
const OLD: &str = "forebay_replaced";

/// What becomes of a table.
pub(super) struct Alteration {
    pub(super) table: String,
    /// SQLite's text of it when the statement was compiled.
    pub(super) text: String,
    pub(super) old: Definition,
    pub(super) new: Definition,
    /// SQLite's expressions of columns that are not copied as they are.
    values: HashMap<String, String>,
    /// Columns whose type is another one now.
    retyped: Vec<String>,
    copies: bool,
    first: Vec<Step>,
    last: Vec<Step>,
}

/// The order in which PostgreSQL carries the operations of one statement out (its `AlterTablePass`).
fn pass(operation: &AlterTableOperation) -> u8 {
    use AlterTableOperation as Operation;
    match operation {
        Operation::DropColumn { .. } | Operation::DropConstraint { .. } => 0,
        Operation::AlterColumn { op, .. } => match op {
            AlterColumnOperation::DropNotNull | AlterColumnOperation::DropDefault => 0,
            AlterColumnOperation::SetDataType { .. } => 1,
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::AddGenerated { .. } => 6,
            AlterColumnOperation::SetNotNull => 3,
        },
        Operation::AddColumn { .. } => 2,
        Operation::AddConstraint { constraint, .. } => match constraint {
            TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_) => 4,
            _ => 5,
        },
        _ => 7,
    }
}

fn is_cascade(behavior: Option<DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

impl Compiler<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<Vec<Step>> {
        use AlterTableOperation as Operation;
        let Some(table) = self.altered(alter)? else {
            return Ok(Vec::new());
        };
        if let [operation] = alter.operations.as_slice() {
            match operation {
                Operation::RenameTable { table_name } => {
                    let (sqlparser::ast::RenameTableNameKind::As(to) | sqlparser::ast::RenameTableNameKind::To(to)) = table_name;
                    return self.rename_relation(&table.name, to);
                }
                Operation::RenameColumn {
                    old_column_name,
                    new_column_name,
                } => return self.rename_column(&table, old_column_name, new_column_name),
                Operation::RenameConstraint { old_name, new_name } => {
                    return self.rename_constraint(&table, old_name, new_name);
                }
                _ => {}
            }
        }
        if table.view.is_some() || table.foreign_view {
            return Err(Fault::new("42809", format!("ALTER action cannot be performed on relation \"{}\"", table.name))
                .with_detail("This operation is not supported for views."));
        }
        let mut operations: Vec<&Operation> = alter.operations.iter().collect();
        operations.retain(|operation| !matches!(operation, Operation::OwnerTo { .. }));
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        operations.sort_by_key(|operation| pass(operation));
        let mut alteration = self.alteration(&table)?;
        for operation in operations {
            self.operation(&mut alteration, operation)?;
        }
        self.carry_out(alteration)
    }

    /// The table that is meant; `None` if it is not there and that is well.
    fn altered(&mut self, alter: &AlterTable) -> Result<Option<std::rc::Rc<Table>>> {
        if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
            return Err(Fault::unsupported(format!("ALTER TABLE {alter}")));
        }
        let name = plain_name(&alter.name)?;
        match self.kind_of(&name)?.as_deref() {
            Some("table" | "view") => {
                let found = self.schema.table(&name).map_err(unreadable)?;
                found
                    .map(Some)
                    .ok_or_else(|| Fault::new("42P01", format!("relation \"{name}\" does not exist")))
            }
            Some(other) => Err(Fault::unsupported(format!("ALTER TABLE of the {other} \"{name}\""))),
            None if alter.if_exists => {
                self.notice = Some(format!("relation \"{name}\" does not exist, skipping"));
                Ok(None)
            }
            None => Err(Fault::new("42P01", format!("relation \"{name}\" does not exist"))),
        }
    }

    pub(super) fn alteration(&mut self, table: &Table) -> Result<Alteration> {
        let Some(definition) = Definition::read(&table.definition) else {
            return Err(Fault::unsupported(format!("ALTER TABLE of \"{}\", which something else has made", table.name)));
        };
        Ok(Alteration {
            table: table.name.clone(),
            text: table.definition.clone(),
            old: definition.clone(),
            new: definition,
            values: HashMap::new(),
            retyped: Vec::new(),
            copies: false,
            first: Vec::new(),
            last: Vec::new(),
        })
    }

    fn operation(&mut self, alteration: &mut Alteration, operation: &AlterTableOperation) -> Result<()> {
        use AlterTableOperation as Operation;
        match operation {
            Operation::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => self.add_column(alteration, column_def, *if_not_exists),
            Operation::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => column_names
                .iter()
                .try_for_each(|name| self.drop_column(alteration, name, *if_exists, is_cascade(*drop_behavior))),
            Operation::AlterColumn { column_name, op } => self.alter_column(alteration, column_name, op),
            Operation::AddConstraint { constraint, not_valid } => self.add_constraint(alteration, constraint, *not_valid),
            Operation::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => self.drop_constraint(alteration, name, *if_exists, is_cascade(*drop_behavior)),
            Operation::ValidateConstraint { name } => {
                let name = folded(name);
                let checks = alteration.new.checks.iter_mut().filter(|check| check.name == name);
                let keys = alteration.new.foreign_keys.iter_mut().filter(|key| key.name == name);
                let found: Vec<&mut bool> = checks
                    .map(|check| &mut check.not_valid)
                    .chain(keys.map(|key| &mut key.not_valid))
                    .collect();
                if found.is_empty() {
                    return Err(no_constraint(&name, &alteration.table));
                }
                found.into_iter().for_each(|not_valid| *not_valid = false);
                Ok(())
            }
            other => Err(Fault::unsupported(format!("ALTER TABLE … {other}"))),
        }
    }

    fn add_column(&mut self, alteration: &mut Alteration, column: &ColumnDef, if_not_exists: bool) -> Result<()> {
        let name = folded(&column.name);
        let table = alteration.table.clone();
        if alteration.new.column(&name).is_some() {
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if if_not_exists {
                self.notice = Some(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Fault::new("42701", message).at(&column.name));
        }
        let (described, sequence, options) = self.column(&table, column)?;
        if let Some(sequence) = sequence {
            alteration.first.extend(sequence.steps()?.into_iter().map(Step::from));
        }
        let has_value = described.default.is_some() || described.generated.is_some();
        if let Some(default) = &described.default {
            let value = self.value_of_default(default, &described)?;
            alteration.values.insert(name.clone(), value);
        }
        alteration.copies |= has_value || alteration.old.columns.is_empty();
        alteration.new.columns.push(described);
        for (constraint_name, option) in options {
            let before = key_names(&alteration.new);
            self.column_constraint(&table, &mut alteration.new, &name, constraint_name, option)?;
            self.settle_keys(alteration, &before)?;
            if let ColumnOption::PrimaryKey(_) = option
                && let Some(place) = alteration.new.column(&name)
            {
                alteration.new.columns[place].not_null = true;
            }
        }
        Ok(())
    }

    /// SQLite's expression of a default.
    fn value_of_default(&mut self, text: &str, column: &super::definition::ColumnDefinition) -> Result<String> {
        let scope = Scope::new(None);
        scope.no_aggregates.set(Some("DEFAULT expressions"));
        scope.no_windows.set(Some("DEFAULT expressions"));
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        let scalar = self.expression(&parsed(text)?, &scope);
        self.fixed_parameters = fixed;
        let scalar = scalar?;
        let from = scalar.oid;
        let converted = self.convert(scalar, column.kind(), Context::Assignment).map_err(|fault| match fault.sqlstate {
            "42846" => Fault::new(
                "42804",
                format!(
                    "column \"{}\" is of type {} but default expression is of type {}",
                    column.name,
                    facts::display_name(column.oid),
                    facts::display_name(from)
                ),
            ),
            _ => fault,
        })?;
        Ok(converted.sql)
    }

    fn drop_column(&mut self, alteration: &mut Alteration, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
        let column = folded(name);
        let table = alteration.table.clone();
        let Some(place) = alteration.new.column(&column) else {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            if if_exists {
                self.notice = Some(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Fault::new("42703", message).at(name));
        };
        let depends = |detail: String| {
            Fault::new("2BP01", format!("cannot drop column {column} of table {table} because other objects depend on it"))
                .with_detail(detail)
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
        };
        if let Some(view) = self.view_of_column(&table, &column)? {
            if cascade {
                return Err(Fault::unsupported(format!("CASCADE to the view \"{view}\"")).with_hint("Drop the view first."));
            }
            return Err(depends(format!("view {view} depends on column {column} of table {table}")));
        }
        let mut dependents = Vec::new();
        let generated: Vec<String> = alteration
            .new
            .columns
            .iter()
            .filter(|other| other.name != column && other.generated.as_ref().is_some_and(|its| mentions(&its.text, &column)))
            .map(|other| other.name.clone())
            .collect();
        dependents.extend(generated.iter().map(|other| format!("column {other} of table {table}")));
        let mut foreign = self.foreign_keys_to(&table)?;
        foreign.retain(|(other, key)| key.referred.contains(&column) && *other != table);
        dependents.extend(foreign.iter().map(|(other, key)| format!("constraint {} on table {other}", key.name)));
        if !dependents.is_empty() && !cascade {
            let lines: Vec<String> = dependents
                .iter()
                .map(|dependent| format!("{dependent} depends on column {column} of table {table}"))
                .collect();
            return Err(depends(lines.join("\n")));
        }
        self.tell_cascade(&dependents);
        for other in generated {
            self.drop_column(alteration, &Ident::with_quote('"', other), false, true)?;
        }
        for (other, key) in foreign {
            self.drop_foreign_key_of(alteration, &other, &key.name)?;
        }
        let place = alteration.new.column(&column).unwrap_or(place);
        let new = &mut alteration.new;
        new.columns.remove(place);
        new.primary_key.take_if(|key| key.columns.contains(&column));
        new.uniques.retain(|key| !key.columns.contains(&column));
        new.checks.retain(|check| !mentions(&check.condition.text, &column));
        new.foreign_keys
            .retain(|key| !key.columns.contains(&column) && !(key.table == table && key.referred.contains(&column)));
        let owned = self.sequences_of_column(&table, &column)?;
        for sequence in owned {
            alteration.last.extend(drop_sequence(&sequence));
        }
        alteration.copies = true;
        Ok(())
    }

    fn alter_column(&mut self, alteration: &mut Alteration, name: &Ident, operation: &AlterColumnOperation) -> Result<()> {
        let column = folded(name);
        let table = alteration.table.clone();
        let missing = || Fault::new("42703", format!("column \"{column}\" of relation \"{table}\" does not exist")).at(name);
        let place = alteration.new.column(&column).ok_or_else(missing)?;
        let described = &mut alteration.new.columns[place];
        let is_identity = || Fault::new("42601", format!("column \"{column}\" of relation \"{table}\" is an identity column"));
        let is_generated = || Fault::new("42601", format!("column \"{column}\" of relation \"{table}\" is a generated column"));
        match operation {
            AlterColumnOperation::SetNotNull => described.not_null = true,
            AlterColumnOperation::DropNotNull => {
                let identity = described.identity.is_some();
                if alteration.new.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column)) {
                    return Err(Fault::new("42P16", format!("column \"{column}\" is in a primary key")));
                }
                if identity {
                    return Err(is_identity());
                }
                alteration.new.columns[place].not_null = false;
            }
            AlterColumnOperation::SetDefault { value } => {
                if described.identity.is_some() {
                    return Err(is_identity());
                }
                if described.generated.is_some() {
                    return Err(is_generated());
                }
                described.default = Some(value.to_string());
                described.default_stored = None;
            }
            AlterColumnOperation::DropDefault => {
                if described.identity.is_some() {
                    return Err(is_identity().with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."));
                }
                if described.generated.is_some() {
                    return Err(
                        is_generated().with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
                    );
                }
                described.default = None;
                described.default_stored = None;
            }
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                return self.set_data_type(alteration, place, name, data_type, using.as_ref());
            }
            AlterColumnOperation::AddGenerated {
                generated_as,
                sequence_options,
            } => {
                let state = |what: &str| Fault::new("55000", format!("column \"{column}\" of relation \"{table}\" {what}"));
                if !matches!(described.oid, oid::INT2 | oid::INT4 | oid::INT8) {
                    return Err(Fault::new("22023", "identity column type must be smallint, integer, or bigint"));
                }
                if !described.not_null {
                    return Err(state("must be declared NOT NULL before identity can be added"));
                }
                if described.identity.is_some() {
                    return Err(state("is already an identity column"));
                }
                if described.default.is_some() {
                    return Err(state("already has a default value"));
                }
                described.identity = Some(match generated_as {
                    Some(GeneratedAs::Always) => Identity::Always,
                    _ => Identity::ByDefault,
                });
                let kind = described.oid;
                let (default, steps) =
                    self.numbering(&table, &column, kind, sequence_options.as_deref().unwrap_or(&[]))?;
                alteration.new.columns[place].default = Some(default);
                alteration.first.extend(steps);
            }
        }
        Ok(())
    }

    fn set_data_type(
        &mut self,
        alteration: &mut Alteration,
        place: usize,
        name: &Ident,
        data_type: &DataType,
        using: Option<&Expr>,
    ) -> Result<()> {
        let table = alteration.table.clone();
        let before = alteration.new.columns[place].clone();
        let column = before.name.clone();
        let kind = types::resolve(data_type)?;
        if !types::has_values(kind.oid) || kind.oid == oid::UNKNOWN {
            return Err(Fault::unsupported(format!("a column of type {}", facts::display_name(kind.oid))).at(name));
        }
        if let Some(view) = self.view_of_column(&table, &column)? {
            return Err(Fault::new("0A000", "cannot alter type of a column used by a view or rule")
                .with_detail(format!("rule _RETURN on view {view} depends on column \"{column}\"")));
        }
        if before.generated.is_some() {
            return Err(Fault::unsupported("ALTER COLUMN … TYPE of a generated column"));
        }
        let used = |other: &super::definition::ColumnDefinition| other.generated.as_ref().is_some_and(|its| mentions(&its.text, &column));
        if let Some(other) = alteration.new.columns.iter().find(|other| used(other)) {
            return Err(Fault::new("0A000", "cannot alter type of a column used by a generated column").with_detail(format!(
                "Column \"{column}\" is used by generated column \"{}\".",
                other.name
            )));
        }
        if before.identity.is_some() && !matches!(kind.oid, oid::INT2 | oid::INT4 | oid::INT8) {
            return Err(Fault::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let scope = scope_of(&table, &alteration.old);
        scope.no_aggregates.set(Some("transform expressions"));
        scope.no_windows.set(Some("transform expressions"));
        let plain = identifier(&column);
        let source = match using {
            Some(using) => {
                let fixed = std::mem::replace(&mut self.fixed_parameters, true);
                let scalar = self.expression(using, &scope);
                self.fixed_parameters = fixed;
                scalar?
            }
            None => Scalar {
                typmod: before.typmod,
                ..Scalar::new(plain.clone(), before.oid)
            },
        };
        let longer = before.oid == oid::VARCHAR
            && kind.oid == oid::VARCHAR
            && (kind.typmod == -1 || (before.typmod != -1 && before.typmod <= kind.typmod));
        let whole = source.sql == plain && longer;
        let converted = if whole {
            source
        } else {
            self.convert(source, kind, Context::Assignment).map_err(|fault| match (fault.sqlstate, using) {
                ("42846", None) => Fault::new(
                    "42804",
                    format!(
                        "column \"{column}\" cannot be cast automatically to type {}",
                        facts::display_name(kind.oid)
                    ),
                )
                .with_hint(format!(
                    "You might need to specify \"USING {}::{}\".",
                    define::identifier_if_needed(&column),
                    types::format_type(kind.oid, kind.typmod)
                )),
                ("42846", Some(_)) => Fault::new(
                    "42804",
                    format!(
                        "result of USING clause for column \"{column}\" cannot be cast automatically to type {}",
                        facts::display_name(kind.oid)
                    ),
                )
                .with_hint("You might need to add an explicit cast."),
                _ => fault,
            })?
        };
        if before.default.is_some() && !super::resolve::converts(before.oid, kind.oid, Context::Assignment) && before.oid != kind.oid {
            return Err(Fault::new(
                "42804",
                format!(
                    "default for column \"{column}\" cannot be cast automatically to type {}",
                    facts::display_name(kind.oid)
                ),
            ));
        }
        let keeps = converted.sql == plain && affinity(&declared(before.kind())) == affinity(&declared(kind));
        if !keeps {
            alteration.copies = true;
            alteration.values.insert(column.clone(), converted.sql);
        }
        let described = &mut alteration.new.columns[place];
        described.oid = kind.oid;
        described.typmod = kind.typmod;
        described.default_stored = None;
        alteration.retyped.push(column);
        Ok(())
    }

    fn add_constraint(&mut self, alteration: &mut Alteration, constraint: &TableConstraint, not_valid: bool) -> Result<()> {
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
    fn settle_keys(&mut self, alteration: &mut Alteration, before: &[String]) -> Result<()> {
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
            if self.is_taken(&name)? && !alteration.old.indexed_keys().any(|key| key.name == name) {
                return Err(Fault::new("42P07", format!("relation \"{name}\" already exists")));
            }
        }
        Ok(())
    }

    fn drop_constraint(&mut self, alteration: &mut Alteration, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
        let wanted = folded(name);
        let table = alteration.table.clone();
        let new = &mut alteration.new;
        if !define::taken(&wanted, new) {
            let message = format!("constraint \"{wanted}\" of relation \"{table}\" does not exist");
            if if_exists {
                self.notice = Some(format!("{message}, skipping"));
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
            let same = |left: &[String], right: &[String]| left.len() == right.len() && left.iter().all(|name| right.contains(name));
            for (other, foreign) in self.foreign_keys_to(&table)? {
                if !same(&foreign.referred, &key.columns) || others.iter().any(|columns| same(columns, &key.columns)) {
                    continue;
                }
                if !cascade {
                    return Err(Fault::new(
                        "2BP01",
                        format!("cannot drop constraint {wanted} on table {table} because other objects depend on it"),
                    )
                    .with_detail(format!("constraint {} on table {other} depends on index {wanted}", foreign.name))
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
    fn drop_foreign_key_of(&mut self, alteration: &mut Alteration, table: &str, key: &str) -> Result<()> {
        if table == alteration.table {
            alteration.new.foreign_keys.retain(|other| other.name != key);
            return Ok(());
        }
        let steps = self.without_foreign_keys(table, |other| other.name == key)?;
        alteration.first.extend(steps);
        Ok(())
    }

    /// What PostgreSQL tells of what goes with what is dropped.
    pub(super) fn tell_cascade(&mut self, dependents: &[String]) {
        match dependents {
            [] => {}
            [only] => self.notice = Some(format!("drop cascades to {only}")),
            several => self.notice = Some(format!("drop cascades to {} other objects", several.len())),
        }
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
            let Some(definition) = described.as_ref().and_then(|described| Definition::read(&described.definition)) else {
                return Err(Fault::unsupported(format!(
                    "a change of what \"{other}\", which something else has made, refers to"
                )));
            };
            let keys = definition.foreign_keys.into_iter().filter(|key| key.table == table);
            found.extend(keys.map(|key| (other.clone(), key)));
        }
        Ok(found)
    }

    /// The steps of an alteration.
    pub(super) fn carry_out(&mut self, mut alteration: Alteration) -> Result<Vec<Step>> {
        if alteration.old == alteration.new {
            return Ok(alteration.first.into_iter().chain(alteration.last).collect());
        }
        self.settle_expressions(&alteration.table, &mut alteration.new)?;
        self.check_references(&alteration)?;
        // A key whose values have changed is looked at as any key that is added.
        let was_number = |name: &String| alteration.old.is_row_number(name);
        if let Some(key) = &alteration.new.primary_key
            && alteration.copies
            && key.columns.iter().any(|name| alteration.retyped.contains(name))
            && !key.columns.iter().all(|name| was_number(name) && alteration.new.is_row_number(name))
            && let Some(key) = &mut alteration.new.primary_key
        {
            key.indexed = true;
        }
        let table = alteration.table.clone();
        let own = identifier(&table);
        let mut steps = vec![unchanged(&table, &alteration.text)];
        steps.append(&mut alteration.first);
        let (kept, gone) = self.indexes_after(&alteration)?;
        if alteration.copies {
            self.refuse_triggers(&table)?;
            for (index, _) in kept.iter().chain(&gone) {
                steps.push(format!("DROP INDEX {}", identifier(index)).into());
            }
            steps.push(alteration.new.create_unconstrained(COPY).into());
            steps.push(copy_rows(&alteration).into());
            steps.extend(Self::no_nulls(&alteration));
            steps.push(Step::Edit(SchemaEdit::Replace {
                table: table.clone(),
                sql: alteration.new.create(&table),
                by: COPY.to_owned(),
                old: OLD.to_owned(),
                old_sql: alteration.old.create_unconstrained(OLD),
            }));
            steps.push(format!("DROP TABLE {}", identifier(OLD)).into());
        } else {
            for (index, _) in &gone {
                steps.push(format!("DROP INDEX {}", identifier(index)).into());
            }
            let changed_default = |column: &&super::definition::ColumnDefinition| {
                alteration.old.column(&column.name).is_some_and(|place| {
                    let before = &alteration.old.columns[place];
                    before.default_stored != column.default_stored && !before.not_null
                })
            };
            // A row from before a column was added ends before it, and reads what the text says: it must not say otherwise from now on.
            for column in alteration.new.columns.iter().filter(changed_default) {
                self.refuse_triggers(&table)?;
                let name = identifier(&column.name);
                steps.push(format!("UPDATE {own} SET {name} = NULL WHERE {name} IS NULL").into());
            }
            steps.extend(Self::no_nulls(&alteration));
            let sql = alteration.new.create(&table);
            steps.push(Step::Edit(SchemaEdit::TableText { table: table.clone(), sql }));
        }
        steps.extend(self.validation(&alteration)?);
        if alteration.copies {
            steps.extend(kept.into_iter().map(|(_, sql)| Step::from(sql)));
        }
        for key in alteration.new.indexed_keys() {
            let stays = !alteration.copies && alteration.old.indexed_keys().any(|old| old == key);
            if !stays {
                steps.push(alteration.new.unique_index(&table, key).into());
            }
        }
        steps.append(&mut alteration.last);
        Ok(steps)
    }

    /// The table's indexes, name and text: those that stay, without those of keys if the rows are copied; and those that go.
    #[allow(clippy::type_complexity, reason = "two lists of the same kind")]
    fn indexes_after(&mut self, alteration: &Alteration) -> Result<(Vec<(String, String)>, Vec<(String, String)>)> {
        let all: Vec<(String, String)> = (|| -> rusqlite::Result<_> {
            let mut statement = self.schema.connection().prepare_cached(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL ORDER BY rowid",
            )?;
            statement
                .query_map([&alteration.table], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })()
        .map_err(unreadable)?;
        let dropped: Vec<&str> = alteration
            .old
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(|name| alteration.new.column(name).is_none())
            .collect();
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for (name, sql) in all {
            if let Some(key) = alteration.old.indexed_keys().find(|key| key.name == name) {
                let stays = alteration.new.indexed_keys().any(|new| new == key);
                if !stays || alteration.copies {
                    gone.push((name, sql));
                }
                continue;
            }
            let keys = sql.split_once(&format!(" ON {} (", identifier(&alteration.table))).map_or(sql.as_str(), |(_, keys)| keys);
            if dropped.iter().any(|column| text_names(keys, column)) {
                gone.push((name, sql));
                continue;
            }
            for column in alteration.retyped.iter().filter(|column| text_names(keys, column)) {
                let kind = |definition: &Definition| definition.column(column).map(|place| definition.columns[place].oid);
                let (before, after) = (kind(&alteration.old), kind(&alteration.new));
                let is_plain = keys.trim_end_matches(')').split(", ").any(|key| {
                    key.trim_end_matches(" DESC") == identifier(column)
                }) && !keys.contains(" WHERE ");
                let same = before.and_then(types::collation) == after.and_then(types::collation);
                if before != after && !(is_plain && same && after.is_some_and(types::is_ordered)) {
                    return Err(Fault::unsupported(format!(
                        "another type for the column \"{column}\", which the index \"{name}\" uses,"
                    ))
                    .with_hint("Drop the index first, and create it again."));
                }
            }
            kept.push((name, sql));
        }
        Ok((kept, gone))
    }

    /// Foreign keys, of this table and to it, whose columns have other types now.
    fn check_references(&mut self, alteration: &Alteration) -> Result<()> {
        if alteration.retyped.is_empty() {
            return Ok(());
        }
        let mut pairs = Vec::new();
        for key in &alteration.new.foreign_keys {
            for (own, other) in key.columns.iter().zip(&key.referred) {
                let mine = alteration.new.column(own).map(|place| alteration.new.columns[place].oid);
                let theirs = if key.table == alteration.table {
                    alteration.new.column(other).map(|place| alteration.new.columns[place].oid)
                } else {
                    let table = self.schema.table(&key.table).map_err(unreadable)?;
                    table.and_then(|table| table.column(other).map(|place| table.columns[place].kind.oid))
                };
                pairs.push((key.name.clone(), own.clone(), other.clone(), mine, theirs));
            }
        }
        for (other, key) in self.foreign_keys_to(&alteration.table)? {
            if other == alteration.table {
                continue;
            }
            let table = self.schema.table(&other).map_err(unreadable)?;
            for (own, referred) in key.columns.iter().zip(&key.referred) {
                let mine = table.as_ref().and_then(|table| table.column(own).map(|place| table.columns[place].kind.oid));
                let theirs = alteration.new.column(referred).map(|place| alteration.new.columns[place].oid);
                pairs.push((key.name.clone(), own.clone(), referred.clone(), mine, theirs));
            }
        }
        for (name, own, other, mine, theirs) in pairs {
            let (Some(mine), Some(theirs)) = (mine, theirs) else { continue };
            let integers = |oid| matches!(oid, oid::INT2 | oid::INT4 | oid::INT8);
            let texts = |oid| matches!(oid, oid::TEXT | oid::VARCHAR);
            if mine != theirs && !(integers(mine) && integers(theirs)) && !(texts(mine) && texts(theirs)) {
                return Err(
                    Fault::new("42804", format!("foreign key constraint \"{name}\" cannot be implemented")).with_detail(format!(
                        "Key columns \"{own}\" and \"{other}\" are of incompatible types: {} and {}.",
                        facts::display_name(mine),
                        facts::display_name(theirs)
                    )),
                );
            }
        }
        Ok(())
    }

    /// Looks for NULL where none may be from now on, while SQLite does not know that yet: it would not look.
    fn no_nulls(alteration: &Alteration) -> Vec<Step> {
        let (old, new, table) = (&alteration.old, &alteration.new, &alteration.table);
        let mut steps = Vec::new();
        for column in &new.columns {
            let never = |definition: &Definition| {
                definition.column(&column.name).is_some_and(|place| definition.columns[place].not_null)
                    || definition.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.name))
            };
            let changed = alteration.values.contains_key(&column.name);
            if !never(new) || never(old) && !changed || new.is_row_number(&column.name) {
                continue;
            }
            let message = format!("column \"{}\" of relation \"{table}\" contains null values", column.name);
            let there = alteration.copies || old.column(&column.name).is_some();
            let condition = if there {
                format!(" WHERE {} IS NULL", identifier(&column.name))
            } else {
                String::new()
            };
            let rows = identifier(if alteration.copies { COPY } else { table });
            steps.push(fail("23502", &message, None, &format!("{rows}{condition}")));
        }
        steps
    }

    /// Looks at the rows for what holds from now on.
    fn validation(&mut self, alteration: &Alteration) -> Result<Vec<Step>> {
        let (old, new, table) = (&alteration.old, &alteration.new, &alteration.table);
        let own = identifier(table);
        let mut steps = Vec::new();
        for check in new.checks.iter().filter(|check| !check.not_valid) {
            let known = old.checks.iter().any(|before| before == check);
            if known && alteration.retyped.is_empty() {
                continue;
            }
            let message = format!("check constraint \"{}\" of relation \"{table}\" is violated by some row", check.name);
            steps.push(fail("23514", &message, None, &format!("{own} WHERE NOT ({})", check.condition.sql)));
        }
        for key in new.indexed_keys() {
            let touched = key.columns.iter().any(|column| alteration.retyped.contains(column));
            if old.indexed_keys().any(|before| before == key) && !touched {
                continue;
            }
            let columns: Vec<(String, facts::Oid)> = key
                .columns
                .iter()
                .filter_map(|name| new.column(name).map(|place| (identifier(name), new.columns[place].oid)))
                .collect();
            let values: Vec<String> = columns.iter().map(|(name, kind)| types::compared(name, *kind)).collect();
            let given: Vec<String> = columns.iter().map(|(name, _)| format!("{name} IS NOT NULL")).collect();
            let shown = self.shown(&key.columns, new, "")?;
            let detail = format!("'Key ({})=(' || {shown} || ') is duplicated.'", key.columns.join(", ").replace('\'', "''"));
            let message = format!("could not create unique index \"{}\"", key.name);
            let rows = format!(
                "{own} WHERE {} GROUP BY {} HAVING count(*) > 1",
                given.join(" AND "),
                values.join(", ")
            );
            steps.push(fail("23505", &message, Some(&detail), &rows));
        }
        for key in new.foreign_keys.iter().filter(|key| !key.not_valid) {
            let known = old.foreign_keys.iter().any(|before| before == key);
            if known && !key.columns.iter().any(|column| alteration.retyped.contains(column)) {
                continue;
            }
            let mut conditions = Vec::new();
            let mut given = Vec::new();
            for (own, other) in key.columns.iter().zip(&key.referred) {
                let kind = new.column(own).map_or(oid::TEXT, |place| new.columns[place].oid);
                let mine = types::compared(&format!("c.{}", identifier(own)), kind);
                conditions.push(format!("p.{} = {mine}", identifier(other)));
                given.push(format!("c.{} IS NOT NULL", identifier(own)));
            }
            let shown = self.shown(&key.columns, new, "c.")?;
            let detail = format!(
                "'Key ({})=(' || {shown} || ') is not present in table \"{}\".'",
                key.columns.join(", ").replace('\'', "''"),
                key.table.replace('\'', "''")
            );
            let message = format!("insert or update on table \"{table}\" violates foreign key constraint \"{}\"", key.name);
            let rows = format!(
                "{own} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
                given.join(" AND "),
                identifier(&key.table),
                conditions.join(" AND ")
            );
            steps.push(fail("23503", &message, Some(&detail), &rows));
        }
        Ok(steps)
    }

    /// SQLite's expression of the values of some columns, as PostgreSQL's messages show a key.
    fn shown(&mut self, columns: &[String], definition: &Definition, prefix: &str) -> Result<String> {
        let mut parts = Vec::new();
        for name in columns {
            let kind = definition.column(name).map_or(oid::TEXT, |place| definition.columns[place].oid);
            let scalar = Scalar::new(format!("{prefix}{}", identifier(name)), kind);
            parts.push(self.write_as_text(scalar, oid::TEXT)?.sql);
        }
        Ok(parts.join(" || ', ' || "))
    }

    fn refuse_triggers(&mut self, table: &str) -> Result<()> {
        let found: Option<String> = self
            .schema
            .connection()
            .query_row(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 LIMIT 1",
                [table],
                |row| row.get(0),
            )
            .ok();
        match found {
            Some(trigger) => Err(Fault::unsupported(format!(
                "a change of the rows of \"{table}\", which has the trigger \"{trigger}\","
            ))),
            None => Ok(()),
        }
    }

    /// A view that reads this column.
    fn view_of_column(&mut self, table: &str, column: &str) -> Result<Option<String>> {
        let views = self.views_of(table)?;
        Ok(views.into_iter().find(|(_, sql)| text_names(sql, column)).map(|(name, _)| name))
    }

    fn sequences_of_column(&mut self, table: &str, column: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for sequence in define::owned_sequences(self.schema.connection(), table).map_err(unreadable)? {
            let owner: Option<String> = self
                .schema
                .connection()
                .query_row("SELECT owner_column FROM forebay_sequence WHERE name = ?1", [&sequence], |row| row.get(0))
                .map_err(unreadable)?;
            if owner.as_deref() == Some(column) {
                found.push(sequence);
            }
        }
        Ok(found)
    }
}

fn drop_sequence(name: &str) -> [Step; 2] {
    [
        format!("DELETE FROM \"forebay_sequence\" WHERE name = {}", quoted(name)).into(),
        format!("SELECT \"forebay_forget_sequence\"({})", quoted(name)).into(),
    ]
}

/// Fails if the table is not the one any more that the statement was compiled for.
pub(super) fn unchanged(table: &str, text: &str) -> Step {
    format!(
        "SELECT \"forebay_fail\"('40001', 'could not serialize access due to concurrent update') \
         WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = {} AND sql = {})",
        quoted(table),
        quoted(text)
    )
    .into()
}

/// Fails if there is such a row.
fn fail(sqlstate: &str, message: &str, detail: Option<&str>, rows: &str) -> Step {
    let detail = detail.map(|detail| format!(", {detail}")).unwrap_or_default();
    format!("SELECT \"forebay_fail\"('{sqlstate}', {}{detail}) FROM {rows} LIMIT 1", quoted(message)).into()
}

fn no_constraint(name: &str, table: &str) -> Fault {
    Fault::new("42704", format!("constraint \"{name}\" of relation \"{table}\" does not exist"))
}

fn key_names(definition: &Definition) -> Vec<String> {
    let keys = definition.primary_key.iter().chain(&definition.uniques);
    keys.map(|key: &Key| key.name.clone()).collect()
}

fn copy_rows(alteration: &Alteration) -> String {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for column in alteration.new.columns.iter().filter(|column| column.generated.is_none()) {
        let name = identifier(&column.name);
        let value = match alteration.values.get(&column.name) {
            Some(value) => value.clone(),
            None if alteration.old.column(&column.name).is_some() => name.clone(),
            None => "NULL".to_owned(),
        };
        columns.push(name);
        values.push(value);
    }
    if columns.is_empty() {
        // Only generated columns, or none.
        let filler = alteration.new.columns.is_empty().then_some("\"forebay_no_column\"").unwrap_or("rowid");
        columns.push(filler.to_owned());
        values.push("NULL".to_owned());
    }
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM {} ORDER BY rowid",
        identifier(COPY),
        columns.join(", "),
        values.join(", "),
        identifier(&alteration.table)
    )
}

pub(super) fn scope_of(table: &str, definition: &Definition) -> Scope<'static> {
    let mut scope = Scope::new(None);
    scope.relations.push(Relation {
        name: Some(table.to_owned()),
        columns: definition
            .columns
            .iter()
            .map(|column| RelationColumn {
                name: column.name.clone(),
                kind: column.kind(),
                sql: identifier(&column.name),
                not_null: column.not_null,
            })
            .collect(),
        key: Vec::new(),
        merged: Vec::new(),
    });
    scope
}

/// SQLite's affinity of a declared type (its documentation, "Determination Of Column Affinity").
fn affinity(declared: &str) -> &'static str {
    let upper = declared.to_ascii_uppercase();
    let has = |word: &str| upper.contains(word);
    if has("INT") {
        "integer"
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        "text"
    } else if has("BLOB") || upper.is_empty() {
        "blob"
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        "real"
    } else {
        "numeric"
    }
}

