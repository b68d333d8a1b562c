//! Statements that define: tables, indexes, views, sequences.
//!
//! Contract: a definition is kept as PostgreSQL reads it, with PostgreSQL's names for what was given none; what SQLite cannot keep is
//! refused by name. One statement may take several steps, which are one transaction.

use sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ConstraintCharacteristics, CreateIndex, CreateTable, CreateView,
    DeferrableInitial, Expr, ForeignKeyConstraint, GeneratedAs, GeneratedExpressionMode, IndexColumn, ObjectName,
    ObjectType, ReferentialAction, SequenceOptions, Statement as Tree, TableConstraint, Truncate,
};

use super::definition::{Check, ColumnDefinition, Definition, ForeignKey, Key, Lowered};
use super::fault::{Fault, Result};
use super::query::ResultColumn;
use super::scalar::{Form, identifier, quoted};
use super::schema::{Identity, Table, marked_view_text};
use super::scope::{Relation, RelationColumn, Scope};
use super::types::{self, TypeName};
use super::{Compiler, Step, folded};
use crate::sql::facts::{self, Context, Oid, oid};

/// Where sequences are kept.
pub(crate) const SEQUENCES: &str = "CREATE TABLE \"forebay_sequence\" (name TEXT PRIMARY KEY, kind TEXT NOT NULL, \
     start INTEGER NOT NULL, increment INTEGER NOT NULL, minimum INTEGER NOT NULL, maximum INTEGER NOT NULL, \
     cycle INTEGER NOT NULL, last INTEGER NOT NULL, called INTEGER NOT NULL, owner_table TEXT, owner_column TEXT)";

/// A sequence to be made.
pub(super) struct Sequence {
    name: String,
    kind: Oid,
    start: Option<i64>,
    increment: i64,
    minimum: Option<i64>,
    maximum: Option<i64>,
    cycle: bool,
    owner: Option<(String, String)>,
}

impl Compiler<'_> {
    pub(super) fn define(&mut self, tree: &Tree) -> Result<Vec<Step>> {
        let mut steps = self.definition_steps(tree)?;
        // The table of sequences is made with the first one.
        let mut there = self.kind_of("forebay_sequence")?.is_some();
        steps.retain(|step| {
            !matches!(step, Step::Run { sql, .. } if **sql == *SEQUENCES) || !std::mem::replace(&mut there, true)
        });
        Ok(steps)
    }

    fn definition_steps(&mut self, tree: &Tree) -> Result<Vec<Step>> {
        match tree {
            Tree::CreateTable(table) => self.create_table(table).map(steps_of),
            Tree::CreateIndex(index) => self.create_index(index).map(steps_of),
            Tree::CreateView(view) => self.create_view(view).map(steps_of),
            Tree::CreateSequence {
                temporary: false,
                if_not_exists,
                name,
                data_type,
                sequence_options,
                owned_by,
            } => {
                let name = plain_name(name)?;
                if let Some(steps) = self.exists_already(&name, *if_not_exists)? {
                    return Ok(steps_of(steps));
                }
                let kind = match data_type {
                    Some(kind) => types::resolve(kind)?.oid,
                    None => oid::INT8,
                };
                let mut sequence = self.sequence(name, kind, sequence_options)?;
                if let Some(owner) = owned_by {
                    sequence.owner = owner_of(owner);
                }
                sequence.steps().map(steps_of)
            }
            Tree::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                purge: false,
                temporary: false,
                table: None,
                ..
            } => self.drop(object_type, *if_exists, names, *cascade),
            Tree::Truncate(truncate) => self.truncate(truncate),
            Tree::AlterTable(alter) => self.alter_table(alter),
            Tree::AlterIndex { name, operation } => self.alter_index(name, operation),
            Tree::CreateSchema {
                schema_name,
                if_not_exists,
                ..
            } => {
                let name = schema_name.to_string().trim_matches('"').to_owned();
                if name == "public" {
                    if *if_not_exists {
                        self.notice = Some("schema \"public\" already exists, skipping".to_owned());
                        return Ok(Vec::new());
                    }
                    return Err(Fault::new("42P06", "schema \"public\" already exists"));
                }
                Err(Fault::unsupported("a schema beside public").with_hint("All tables are in the schema public."))
            }
            Tree::Comment { .. } => Ok(Vec::new()),
            Tree::Analyze { .. } => Ok(vec!["ANALYZE".to_owned().into()]),
            Tree::Vacuum(_) => Ok(vec!["VACUUM".to_owned().into()]),
            Tree::Lock { .. } => {
                self.locks = true;
                Ok(Vec::new())
            }
            Tree::CreateExtension(extension) => {
                let name = folded(&extension.name);
                if extension.version.is_some() || extension.schema.is_some() {
                    return Err(Fault::unsupported("a schema or version of an extension"));
                }
                // Of what it brings only uuid_generate_v4() is known, and the rest is refused by name.
                if name == "uuid-ossp" && extension.if_not_exists {
                    self.notice = Some(format!("extension \"{name}\" already exists, skipping"));
                    return Ok(Vec::new());
                }
                Err(Fault::new("0A000", format!("extension \"{name}\" is not available")))
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(Fault::unsupported(words.join(" ").to_uppercase()))
            }
        }
    }

    /// Whether the name is taken: an error, or nothing to do where the client said IF NOT EXISTS.
    pub(super) fn exists_already(&mut self, name: &str, if_not_exists: bool) -> Result<Option<Vec<String>>> {
        if !self.is_taken(name)? {
            return Ok(None);
        }
        if if_not_exists {
            self.notice = Some(format!("relation \"{name}\" already exists, skipping"));
            return Ok(Some(Vec::new()));
        }
        Err(Fault::new("42P07", format!("relation \"{name}\" already exists")))
    }

    pub(super) fn is_taken(&self, name: &str) -> Result<bool> {
        let connection = self.schema.connection();
        let found = |sql: &str| -> rusqlite::Result<bool> {
            connection.prepare_cached(sql)?.query_row([name], |row| row.get(0))
        };
        let in_schema =
            found("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE)").map_err(unreadable)?;
        let has_sequences =
            found("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence' AND ?1 IS NOT NULL)")
                .map_err(unreadable)?;
        Ok(in_schema
            || (has_sequences
                && found("SELECT EXISTS (SELECT 1 FROM forebay_sequence WHERE name = ?1)").map_err(unreadable)?))
    }

    fn create_table(&mut self, table: &CreateTable) -> Result<Vec<String>> {
        let foreign = [
            (table.temporary, "a temporary table"),
            (table.or_replace, "CREATE OR REPLACE TABLE"),
            (table.external, "an external table"),
            (table.like.is_some(), "CREATE TABLE … LIKE"),
            (table.inherits.is_some(), "INHERITS"),
            (table.partition_by.is_some(), "PARTITION BY"),
            (table.partition_of.is_some(), "PARTITION OF"),
            (table.without_rowid, "WITHOUT ROWID"),
            (table.strict, "STRICT"),
            (table.on_commit.is_some(), "ON COMMIT"),
            (table.clone.is_some(), "CLONE"),
        ];
        if let Some((_, what)) = foreign.iter().find(|(there, _)| *there) {
            return Err(Fault::unsupported(what));
        }
        let name = plain_name(&table.name)?;
        if let Some(steps) = self.exists_already(&name, table.if_not_exists)? {
            return Ok(steps);
        }
        if let Some(query) = &table.query {
            return self.create_table_as(&name, table, query);
        }
        let mut steps = Vec::new();
        let mut definition = Definition {
            columns: Vec::new(),
            primary_key: None,
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
        };
        check_column_count(table.columns.len())?;
        // Constraints may speak of columns that are declared behind them.
        let mut later = Vec::new();
        for column in &table.columns {
            let folded = folded(&column.name);
            if definition.column(&folded).is_some() {
                return Err(
                    Fault::new("42701", format!("column \"{folded}\" specified more than once")).at(&column.name),
                );
            }
            let (described, sequence, options) = self.column(&name, column)?;
            if let Some(sequence) = sequence {
                steps.extend(sequence.steps()?);
            }
            definition.columns.push(described);
            later.push((folded, options));
        }
        for (column, options) in later {
            for (constraint_name, option) in options {
                self.column_constraint(&name, &mut definition, &column, constraint_name, option)?;
            }
        }
        for constraint in &table.constraints {
            self.table_constraint(&name, &mut definition, constraint)?;
        }
        self.settle_expressions(&name, &mut definition)?;
        steps.push(definition.create(&name));
        steps.extend(definition.unique_indexes(&name));
        Ok(steps)
    }

    fn create_table_as(
        &mut self,
        name: &str,
        table: &CreateTable,
        query: &sqlparser::ast::Query,
    ) -> Result<Vec<String>> {
        let compiled = self.query(query, None, None)?;
        let mut columns = compiled.columns;
        let names: Vec<String> = table.columns.iter().map(|column| folded(&column.name)).collect();
        super::query::rename(&mut columns, &names, name)?;
        check_column_count(columns.len())?;
        let mut definition = Definition {
            columns: Vec::new(),
            primary_key: None,
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
        };
        for column in &columns {
            if definition.column(&column.name).is_some() {
                return Err(Fault::new(
                    "42701",
                    format!("column \"{}\" specified more than once", column.name),
                ));
            }
            if !types::has_values(column.kind.oid) {
                return Err(Fault::unsupported(format!(
                    "a column of type {}",
                    facts::display_name(column.kind.oid)
                )));
            }
            definition.columns.push(ColumnDefinition {
                name: column.name.clone(),
                oid: column.kind.oid,
                typmod: column.kind.typmod,
                not_null: false,
                default: None,
                default_stored: None,
                identity: None,
                generated: None,
            });
        }
        Ok(vec![
            definition.create(name),
            format!("INSERT INTO {} {}", identifier(name), compiled.sql),
        ])
    }

    /// A column's own part of its definition; its constraints, with their names, are left to be seen to.
    #[allow(clippy::type_complexity, reason = "the parts of one declaration")]
    pub(super) fn column<'c>(
        &mut self,
        table: &str,
        column: &'c ColumnDef,
    ) -> Result<(
        ColumnDefinition,
        Option<SequenceSteps>,
        Vec<(Option<String>, &'c ColumnOption)>,
    )> {
        let name = folded(&column.name);
        let serial = serial(&column.data_type.to_string());
        let kind = match serial {
            Some(oid) => TypeName::plain(oid),
            None => types::resolve(&column.data_type)?,
        };
        if !types::has_values(kind.oid) || kind.oid == oid::UNKNOWN {
            return Err(
                Fault::unsupported(format!("a column of type {}", facts::display_name(kind.oid))).at(&column.name),
            );
        }
        if let Some(element) = facts::element_of(kind.oid)
            && kind.typmod >= 0
        {
            return Err(Fault::unsupported(format!(
                "a column of type {}[]",
                types::format_type(element, kind.typmod)
            )));
        }
        let mut described = ColumnDefinition {
            name: name.clone(),
            oid: kind.oid,
            typmod: kind.typmod,
            not_null: serial.is_some(),
            default: None,
            default_stored: None,
            identity: None,
            generated: None,
        };
        let mut sequence = None;
        if serial.is_some() {
            let made = self.owned_sequence(table, &name, kind.oid, &[])?;
            described.default = Some(format!("nextval({})", quoted(&identifier_if_needed(&made.name))));
            sequence = Some(made);
        }
        let mut constraints = Vec::new();
        for option in &column.options {
            let constraint_name = option.name.as_ref().map(folded);
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => described.not_null = true,
                ColumnOption::Default(expression) => described.default = Some(expression.to_string()),
                ColumnOption::Collation(collation) => {
                    let collation = types::object_name(collation)?;
                    if !matches!(collation.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
                        return Err(Fault::unsupported(format!("the collation \"{collation}\"")));
                    }
                }
                ColumnOption::Generated {
                    generation_expr: Some(expression),
                    generation_expr_mode,
                    ..
                } => {
                    if *generation_expr_mode == Some(GeneratedExpressionMode::Virtual) {
                        return Err(Fault::unsupported("a virtual generated column").with_hint("Use STORED."));
                    }
                    described.generated = Some(Lowered {
                        text: expression.to_string(),
                        sql: String::new(),
                    });
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options,
                    generation_expr: None,
                    ..
                } => {
                    if !matches!(kind.oid, oid::INT2 | oid::INT4 | oid::INT8) {
                        return Err(Fault::new(
                            "22023",
                            "identity column type must be smallint, integer, or bigint",
                        ));
                    }
                    described.identity = Some(if *generated_as == GeneratedAs::Always {
                        Identity::Always
                    } else {
                        Identity::ByDefault
                    });
                    described.not_null = true;
                    let options = sequence_options.as_deref().unwrap_or(&[]);
                    let made = self.owned_sequence(table, &name, kind.oid, options)?;
                    described.default = Some(format!("nextval({})", quoted(&identifier_if_needed(&made.name))));
                    sequence = Some(made);
                }
                constraint @ (ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::Check(_)
                | ColumnOption::ForeignKey(_)) => constraints.push((constraint_name, constraint)),
                other => return Err(Fault::unsupported(format!("{other} of a column"))),
            }
        }
        Ok((described, sequence.map(SequenceSteps), constraints))
    }

    pub(super) fn owned_sequence(
        &mut self,
        table: &str,
        column: &str,
        kind: Oid,
        options: &[SequenceOptions],
    ) -> Result<Sequence> {
        let mut name = format!("{table}_{column}_seq");
        let mut number = 0;
        while self.is_taken(&name)? {
            number += 1;
            name = format!("{table}_{column}_seq{number}");
        }
        let mut sequence = self.sequence(name, kind, options)?;
        sequence.owner = Some((table.to_owned(), column.to_owned()));
        Ok(sequence)
    }

    /// A sequence for a column that is there already: the column's default, and the steps that make it.
    pub(super) fn numbering(
        &mut self,
        table: &str,
        column: &str,
        kind: Oid,
        options: &[SequenceOptions],
    ) -> Result<(String, Vec<Step>)> {
        let made = self.owned_sequence(table, column, kind, options)?;
        let default = format!("nextval({})", quoted(&identifier_if_needed(&made.name)));
        Ok((default, steps_of(made.steps()?)))
    }

    pub(super) fn sequence(&mut self, name: String, kind: Oid, options: &[SequenceOptions]) -> Result<Sequence> {
        let mut sequence = Sequence {
            name,
            kind,
            start: None,
            increment: 1,
            minimum: None,
            maximum: None,
            cycle: false,
            owner: None,
        };
        for option in options {
            match option {
                SequenceOptions::IncrementBy(value, _) => sequence.increment = self.whole_number(value)?,
                SequenceOptions::MinValue(value) => {
                    sequence.minimum = value.as_ref().map(|value| self.whole_number(value)).transpose()?;
                }
                SequenceOptions::MaxValue(value) => {
                    sequence.maximum = value.as_ref().map(|value| self.whole_number(value)).transpose()?;
                }
                SequenceOptions::StartWith(value, _) => sequence.start = Some(self.whole_number(value)?),
                SequenceOptions::Cache(_) => {}
                SequenceOptions::Cycle(no) => sequence.cycle = !no,
            }
        }
        if sequence.increment == 0 {
            return Err(Fault::new("22023", "INCREMENT must not be zero"));
        }
        Ok(sequence)
    }

    fn whole_number(&mut self, expression: &Expr) -> Result<i64> {
        let scope = Scope::new(None);
        let scalar = self.expression(expression, &scope)?;
        let scalar = self.convert_type(scalar, oid::INT8, Context::Implicit)?;
        match (scalar.form, scalar.sql.parse()) {
            (Form::Constant(forebay_pg_values::Owned::Integer(number)), _) | (_, Ok(number)) => Ok(number),
            _ => Err(Fault::new("42601", "a sequence's option must be a number")),
        }
    }

    pub(super) fn column_constraint(
        &mut self,
        table: &str,
        definition: &mut Definition,
        column: &str,
        name: Option<String>,
        option: &ColumnOption,
    ) -> Result<()> {
        let columns = vec![column.to_owned()];
        match option {
            ColumnOption::PrimaryKey(_) => set_primary_key(table, definition, name, columns),
            ColumnOption::Unique(unique) => {
                refuse_deferrable(unique.characteristics.as_ref())?;
                add_unique(table, definition, name, columns)
            }
            ColumnOption::Check(check) => self.add_check(table, definition, name, check, Some(column)),
            ColumnOption::ForeignKey(key) => self.add_foreign_key(table, definition, name, key, columns),
            _ => Ok(()),
        }
    }

    pub(super) fn table_constraint(
        &mut self,
        table: &str,
        definition: &mut Definition,
        constraint: &TableConstraint,
    ) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key_columns(definition, &key.columns)?;
                set_primary_key(table, definition, key.name.as_ref().map(folded), columns)
            }
            TableConstraint::Unique(key) => {
                refuse_deferrable(key.characteristics.as_ref())?;
                if matches!(key.nulls_distinct, sqlparser::ast::NullsDistinctOption::NotDistinct) {
                    return Err(Fault::unsupported("UNIQUE NULLS NOT DISTINCT"));
                }
                let columns = key_columns(definition, &key.columns)?;
                add_unique(table, definition, key.name.as_ref().map(folded), columns)
            }
            TableConstraint::Check(check) => {
                let name = check.name.as_ref().map(folded);
                self.add_check(table, definition, name, check, None)
            }
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(folded).collect();
                let name = key.name.as_ref().map(folded);
                self.add_foreign_key(table, definition, name, key, columns)
            }
            other => Err(Fault::unsupported(format!("the constraint {other}"))),
        }
    }

    fn add_check(
        &mut self,
        table: &str,
        definition: &mut Definition,
        name: Option<String>,
        check: &CheckConstraint,
        column: Option<&str>,
    ) -> Result<()> {
        let name = name.or_else(|| check.name.as_ref().map(folded));
        let name = match name {
            Some(name) => name,
            None => {
                let mentioned = match column {
                    Some(column) => Some(column.to_owned()),
                    None => only_column(&check.expr, definition),
                };
                let base = match mentioned {
                    Some(column) => format!("{table}_{column}_check"),
                    None => format!("{table}_check"),
                };
                unused(&base, definition)
            }
        };
        if taken(&name, definition) {
            return Err(Fault::new(
                "42710",
                format!("constraint \"{name}\" for relation \"{table}\" already exists"),
            ));
        }
        definition.checks.push(Check {
            name,
            condition: Lowered {
                text: check.expr.to_string(),
                sql: String::new(),
            },
            not_valid: false,
        });
        Ok(())
    }

    fn add_foreign_key(
        &mut self,
        table: &str,
        definition: &mut Definition,
        name: Option<String>,
        key: &ForeignKeyConstraint,
        columns: Vec<String>,
    ) -> Result<()> {
        for column in &columns {
            if definition.column(column).is_none() {
                return Err(Fault::new(
                    "42703",
                    format!("column \"{column}\" referenced in foreign key constraint does not exist"),
                ));
            }
        }
        if key.match_kind.is_some()
            && !key
                .match_kind
                .as_ref()
                .is_some_and(|kind| kind.to_string().contains("SIMPLE"))
        {
            return Err(Fault::unsupported("MATCH FULL and MATCH PARTIAL"));
        }
        let referred_table = plain_name(&key.foreign_table)?;
        let mut referred: Vec<String> = key.referred_columns.iter().map(folded).collect();
        // The table itself may be the one that is referred to, and is not there yet.
        let other = if referred_table == table {
            None
        } else {
            Some(self.table(&key.foreign_table)?)
        };
        if referred.is_empty() {
            referred = match &other {
                Some(other) => other
                    .primary_key
                    .iter()
                    .map(|place| other.columns[*place].name.clone())
                    .collect(),
                None => definition
                    .primary_key
                    .as_ref()
                    .map(|key| key.columns.clone())
                    .unwrap_or_default(),
            };
            if referred.is_empty() {
                return Err(Fault::new(
                    "42704",
                    format!("there is no primary key for referenced table \"{referred_table}\""),
                ));
            }
        }
        if referred.len() != columns.len() {
            return Err(Fault::new(
                "42830",
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        for (own, column) in columns.iter().zip(&referred) {
            let kind = match &other {
                Some(other) => other.column(column).map(|place| other.columns[place].kind.oid),
                None => definition.column(column).map(|place| definition.columns[place].oid),
            };
            let Some(kind) = kind else {
                return Err(Fault::new(
                    "42703",
                    format!("column \"{column}\" referenced in foreign key constraint does not exist"),
                ));
            };
            let own_kind = definition
                .column(own)
                .map_or(oid::TEXT, |place| definition.columns[place].oid);
            let integers = |oid: Oid| matches!(oid, oid::INT2 | oid::INT4 | oid::INT8);
            let texts = |oid: Oid| matches!(oid, oid::TEXT | oid::VARCHAR);
            if own_kind != kind && !(integers(own_kind) && integers(kind)) && !(texts(own_kind) && texts(kind)) {
                let constraint = name.clone().unwrap_or_else(|| format!("{table}_{own}_fkey"));
                return Err(Fault::new(
                    "42804",
                    format!("foreign key constraint \"{constraint}\" cannot be implemented"),
                )
                .with_detail(format!(
                    "Key columns \"{own}\" and \"{column}\" are of incompatible types: {} and {}.",
                    facts::display_name(own_kind),
                    facts::display_name(kind)
                )));
            }
        }
        if !self.is_key(other.as_deref(), definition, &referred)? {
            return Err(Fault::new(
                "42830",
                format!("there is no unique constraint matching given keys for referenced table \"{referred_table}\""),
            ));
        }
        let name = name
            .or_else(|| key.name.as_ref().map(folded))
            .unwrap_or_else(|| unused(&format!("{table}_{}_fkey", columns.join("_")), definition));
        if taken(&name, definition) {
            return Err(Fault::new(
                "42710",
                format!("constraint \"{name}\" for relation \"{table}\" already exists"),
            ));
        }
        let action = |action: Option<ReferentialAction>| {
            action
                .filter(|action| !matches!(action, ReferentialAction::NoAction))
                .map(|action| action.to_string())
        };
        let characteristics = key.characteristics.as_ref();
        definition.foreign_keys.push(ForeignKey {
            name,
            columns,
            table: referred_table,
            referred,
            on_delete: action(key.on_delete),
            on_update: action(key.on_update),
            deferrable: characteristics.is_some_and(|its| its.deferrable == Some(true)),
            deferred: characteristics.is_some_and(|its| matches!(its.initially, Some(DeferrableInitial::Deferred))),
            not_valid: false,
        });
        Ok(())
    }

    /// Whether the columns are a key of the table (`None`: of the one being defined).
    fn is_key(&mut self, other: Option<&Table>, definition: &Definition, columns: &[String]) -> Result<bool> {
        let same = |key: &[String]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
        match other {
            None => Ok(definition.primary_key.as_ref().is_some_and(|key| same(&key.columns))
                || definition.uniques.iter().any(|key| same(&key.columns))),
            Some(table) => {
                let primary: Vec<String> = table
                    .primary_key
                    .iter()
                    .map(|place| table.columns[*place].name.clone())
                    .collect();
                if same(&primary) {
                    return Ok(true);
                }
                let keys = unique_keys(self.schema.connection(), &table.name).map_err(unreadable)?;
                Ok(keys.iter().any(|(_, key)| same(key)))
            }
        }
    }

    /// Lowers the expressions of a definition: checks, generated columns, defaults.
    pub(super) fn settle_expressions(&mut self, table: &str, definition: &mut Definition) -> Result<()> {
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
        scope.no_windows.set(Some("a definition"));
        self.fixed_parameters = true;
        for check in &mut definition.checks {
            scope.no_aggregates.set(Some("check constraints"));
            let expression = parsed(&check.condition.text)?;
            let condition = self.condition(&expression, &scope, "CHECK")?;
            refuse_session(&condition.sql, "a CHECK constraint")?;
            check.condition.sql = condition.sql;
        }
        for place in 0..definition.columns.len() {
            let column = definition.columns[place].clone();
            if let Some(generated) = &column.generated {
                scope.no_aggregates.set(Some("column generation expressions"));
                let expression = parsed(&generated.text)?;
                let scalar = self.expression(&expression, &scope)?;
                let scalar = self.convert(scalar, column.kind(), Context::Assignment)?;
                if scalar.volatile || scalar.sql.contains(super::scalar::ENVIRONMENT) {
                    return Err(Fault::new("42P17", "generation expression is not immutable"));
                }
                definition.columns[place].generated = Some(Lowered {
                    text: generated.text.clone(),
                    sql: scalar.sql,
                });
            }
            if let Some(text) = &column.default {
                let expression = parsed(text)?;
                let empty = Scope::new(None);
                empty.no_aggregates.set(Some("DEFAULT expressions"));
                empty.no_windows.set(Some("DEFAULT expressions"));
                if is_sequence_call(&expression) {
                    continue;
                }
                let scalar = self.expression(&expression, &empty)?;
                let from = scalar.oid;
                let scalar = self
                    .convert(scalar, column.kind(), Context::Assignment)
                    .map_err(|fault| {
                        if fault.sqlstate == "42846" {
                            Fault::new(
                                "42804",
                                format!(
                                    "column \"{}\" is of type {} but default expression is of type {}",
                                    column.name,
                                    facts::display_name(column.oid),
                                    facts::display_name(from)
                                ),
                            )
                        } else {
                            fault
                        }
                    })?;
                definition.columns[place].default_stored =
                    matches!(scalar.form, Form::Constant(_)).then_some(scalar.sql);
            }
        }
        self.fixed_parameters = false;
        // A default that is looked at when the table is made is read anew for each row.
        self.session_bound = true;
        Ok(())
    }

    fn create_index(&mut self, index: &CreateIndex) -> Result<Vec<String>> {
        if !index.include.is_empty() || index.nulls_distinct == Some(false) {
            return Err(Fault::unsupported("INCLUDE and NULLS NOT DISTINCT of an index"));
        }
        if let Some(using) = &index.using {
            let using = using.to_string().to_ascii_lowercase();
            if !matches!(using.as_str(), "btree" | "hash") {
                return Err(Fault::unsupported(format!("an index USING {using}")));
            }
        }
        let table = self.table(&index.table_name)?;
        if table.view.is_some() || table.foreign_view {
            return Err(
                Fault::new("42809", format!("cannot create index on relation \"{}\"", table.name))
                    .with_detail("This operation is not supported for views."),
            );
        }
        let own = identifier(&table.name);
        let mut scope = Scope::new(None);
        scope.no_aggregates.set(Some("index expressions"));
        scope.no_windows.set(Some("index expressions"));
        scope.relations.push(Relation {
            name: Some(table.name.clone()),
            columns: table
                .columns
                .iter()
                .map(|column| RelationColumn {
                    name: column.name.clone(),
                    kind: column.kind,
                    sql: identifier(&column.name),
                    not_null: column.not_null,
                })
                .collect(),
            key: Vec::new(),
            merged: Vec::new(),
        });
        self.fixed_parameters = true;
        check_key_count(index.columns.len())?;
        let (mut keys, mut names) = (Vec::new(), Vec::new());
        for column in &index.columns {
            let (text, name) = self.index_key(column, &scope)?;
            keys.push(text);
            names.push(name);
        }
        let name = match &index.name {
            Some(name) => {
                let name = plain_name(name)?;
                if let Some(steps) = self.exists_already(&name, index.if_not_exists)? {
                    return Ok(steps);
                }
                name
            }
            None => {
                let base = format!("{}_{}_idx", table.name, names.join("_"));
                let mut name = base.clone();
                let mut number = 0;
                while self.is_taken(&name)? {
                    number += 1;
                    name = format!("{base}{number}");
                }
                name
            }
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let mut sql = format!(
            "CREATE {unique}INDEX {} ON {own} ({})",
            identifier(&name),
            keys.join(", ")
        );
        if let Some(predicate) = &index.predicate {
            let condition = self.condition(predicate, &scope, "WHERE")?;
            refuse_session(&condition.sql, "the predicate of an index")?;
            sql.push_str(&format!(" WHERE {}", condition.sql));
        }
        self.fixed_parameters = false;
        Ok(vec![sql])
    }

    fn index_key(&mut self, column: &IndexColumn, scope: &Scope<'_>) -> Result<(String, String)> {
        if let Some(class) = &column.operator_class {
            let class = types::object_name(class)?;
            let known = ["varchar_pattern_ops", "text_pattern_ops", "bpchar_pattern_ops"].contains(&class.as_str())
                || class.ends_with("_ops")
                    && !matches!(class.as_str(), "gin_trgm_ops" | "jsonb_path_ops" | "gist_trgm_ops");
            if !known {
                return Err(Fault::unsupported(format!("the operator class {class}")));
            }
        }
        let scalar = self.expression(&column.column.expr, scope)?;
        if scalar.volatile || scalar.sql.contains(super::scalar::ENVIRONMENT) {
            return Err(Fault::new(
                "42P17",
                "functions in index expression must be marked IMMUTABLE",
            ));
        }
        if !types::is_ordered(scalar.oid) {
            return Err(Fault::unsupported(format!(
                "an index of {}",
                facts::display_name(scalar.oid)
            )));
        }
        let descending = if matches!(column.column.options.sort, Some(sqlparser::ast::OrderBySort::Desc)) {
            " DESC"
        } else {
            ""
        };
        let name = super::naming::column_name(&column.column.expr);
        let name = if name == "?column?" { "expr".to_owned() } else { name };
        Ok((format!("{}{descending}", scalar.compared()), name))
    }

    fn create_view(&mut self, view: &CreateView) -> Result<Vec<String>> {
        if view.materialized || view.temporary {
            return Err(Fault::unsupported("a materialized or temporary view"));
        }
        let name = plain_name(&view.name)?;
        let mut steps = Vec::new();
        if self.is_taken(&name)? {
            let existing = self
                .schema
                .table(&name)
                .map_err(unreadable)?
                .is_some_and(|table| table.view.is_some() || table.foreign_view);
            if !view.or_replace || !existing {
                return Err(Fault::new("42P07", format!("relation \"{name}\" already exists")));
            }
            steps.push(format!("DROP VIEW {}", identifier(&name)));
        }
        self.fixed_parameters = true;
        let compiled = self.query(&view.query, None, None)?;
        self.fixed_parameters = false;
        refuse_session(&compiled.sql, "a view")?;
        let mut columns: Vec<ResultColumn> = compiled.columns;
        let names: Vec<String> = view.columns.iter().map(|column| folded(&column.name)).collect();
        super::query::rename(&mut columns, &names, &name)?;
        if let Some(text) = self
            .schema
            .table(&name)
            .map_err(unreadable)?
            .and_then(|table| table.view.clone())
        {
            let known = self.schema.table(&name).map_err(unreadable)?;
            let known_names: Vec<String> = known
                .map(|table| table.columns.iter().map(|column| column.name.clone()).collect())
                .unwrap_or_default();
            let before = self.view(&text)?.columns;
            if columns.len() < before.len() {
                return Err(Fault::new("42P16", "cannot drop columns from view"));
            }
            for ((old, old_name), new) in before.iter().zip(&known_names).zip(&columns) {
                if *old_name != new.name {
                    return Err(Fault::new(
                        "42P16",
                        format!("cannot change name of view column \"{old_name}\" to \"{}\"", new.name),
                    )
                    .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
                }
                if old.kind != new.kind {
                    return Err(Fault::new(
                        "42P16",
                        format!(
                            "cannot change data type of view column \"{old_name}\" from {} to {}",
                            types::format_type(old.kind.oid, old.kind.typmod),
                            types::format_type(new.kind.oid, new.kind.typmod)
                        ),
                    ));
                }
            }
        }
        let list: Vec<String> = columns.iter().map(|column| identifier(&column.name)).collect();
        steps.push(format!(
            "CREATE VIEW {} ({}) AS {} {}",
            identifier(&name),
            list.join(", "),
            marked_view_text(&view.query.to_string()),
            compiled.sql
        ));
        Ok(steps)
    }

    fn drop(&mut self, kind: &ObjectType, if_exists: bool, names: &[ObjectName], cascade: bool) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        for name in names {
            let spelled = match plain_name(name) {
                Ok(spelled) => spelled,
                Err(_) if if_exists => {
                    self.notice = Some(format!(
                        "{} \"{name}\" does not exist, skipping",
                        kind.to_string().to_lowercase()
                    ));
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
                    self.notice = Some(format!("{word} \"{spelled}\" does not exist, skipping"));
                    continue;
                }
                None => {
                    let state = if word == "index" { "42704" } else { "42P01" };
                    return Err(Fault::new(state, format!("{word} \"{spelled}\" does not exist")));
                }
                Some(other) => {
                    let article = if word == "index" { "an" } else { "a" };
                    return Err(
                        Fault::new("42809", format!("\"{spelled}\" is not {article} {word}")).with_hint(format!(
                            "Use DROP {} to remove {} {other}.",
                            other.to_uppercase(),
                            if other == "index" { "an" } else { "a" }
                        )),
                    );
                }
            }
            match word {
                "table" => steps.extend(self.drop_table(&spelled, names, cascade)?),
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
                    self.refuse_dependent_views(&spelled, names, cascade)?;
                    steps.push(format!("DROP VIEW {}", identifier(&spelled)).into());
                }
            }
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
        let default = format!("nextval({})", quoted(&identifier_if_needed(name)));
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
            .is_some_and(|definition| definition.indexed_keys().any(|key| key.name == index));
        Ok(carries.then_some(table))
    }

    fn drop_table(&mut self, name: &str, together: &[ObjectName], cascade: bool) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        self.refuse_dependent_views(name, together, cascade)?;
        let gone: Vec<String> = together.iter().filter_map(|name| plain_name(name).ok()).collect();
        let mut referring = referring_tables(self.schema.connection(), name).map_err(unreadable)?;
        referring.retain(|other| other != name && !gone.contains(other));
        if !referring.is_empty() {
            let mut keys = self.foreign_keys_to(name)?;
            keys.retain(|(other, _)| referring.contains(other));
            let dependents: Vec<String> = keys
                .iter()
                .map(|(other, key)| format!("constraint {} on table {other}", key.name))
                .collect();
            if !cascade {
                let lines: Vec<String> = dependents
                    .iter()
                    .map(|dependent| format!("{dependent} depends on table {name}"))
                    .collect();
                return Err(Fault::new(
                    "2BP01",
                    format!("cannot drop table {name} because other objects depend on it"),
                )
                .with_detail(lines.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            self.tell_cascade(&dependents);
        }
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

    /// Views read tables by their text: one that is left behind would be broken.
    fn refuse_dependent_views(&mut self, name: &str, together: &[ObjectName], cascade: bool) -> Result<()> {
        let views: Vec<String> = (|| -> rusqlite::Result<Vec<String>> {
            let mut statement = self.schema.connection().prepare_cached(
                "SELECT name FROM sqlite_schema WHERE type = 'view' AND name <> ?1 AND instr(sql, '\"' || ?1 || '\" AS') > 0",
            )?;
            statement.query_map([name], |row| row.get(0))?.collect()
        })()
        .map_err(unreadable)?;
        let gone: Vec<String> = together.iter().filter_map(|name| plain_name(name).ok()).collect();
        match views.iter().find(|view| !gone.contains(view)) {
            None => Ok(()),
            Some(view) if cascade => {
                Err(Fault::unsupported(format!("CASCADE to the view \"{view}\"")).with_hint("Drop the view first."))
            }
            Some(view) => Err(Fault::new(
                "2BP01",
                format!("cannot drop table {name} because other objects depend on it"),
            )
            .with_detail(format!("view {view} depends on table {name}"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")),
        }
    }

    pub(super) fn kind_of(&mut self, name: &str) -> Result<Option<String>> {
        let connection = self.schema.connection();
        let found: Option<String> = connection
            .query_row("SELECT type FROM sqlite_schema WHERE name = ?1", [name], |row| {
                row.get(0)
            })
            .ok();
        if found.is_some() {
            return Ok(found);
        }
        let sequence = connection
            .query_row("SELECT 1 FROM forebay_sequence WHERE name = ?1", [name], |row| {
                row.get::<_, i64>(0)
            })
            .is_ok();
        Ok(sequence.then(|| "sequence".to_owned()))
    }

    fn truncate(&mut self, truncate: &Truncate) -> Result<Vec<Step>> {
        let restart = matches!(truncate.identity, Some(sqlparser::ast::TruncateIdentityOption::Restart));
        let cascade = matches!(truncate.cascade, Some(sqlparser::ast::CascadeOption::Cascade));
        let mut names = Vec::new();
        for target in &truncate.table_names {
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
                names.push(other);
            }
            place += 1;
        }
        let mut steps = vec![Step::DeferForeignKeys];
        for name in names.iter().rev() {
            steps.push(format!("DELETE FROM {}", identifier(name)).into());
            if restart {
                for sequence in owned_sequences(self.schema.connection(), name).map_err(unreadable)? {
                    steps.push(
                        format!(
                            "UPDATE \"forebay_sequence\" SET last = start, called = 0 WHERE name = {}",
                            quoted(&sequence)
                        )
                        .into(),
                    );
                    steps.push(format!("SELECT \"forebay_forget_sequence\"({})", quoted(&sequence)).into());
                }
            }
        }
        Ok(steps)
    }
}

/// The steps that make a sequence.
pub(super) struct SequenceSteps(Sequence);

impl SequenceSteps {
    pub(super) fn steps(self) -> Result<Vec<String>> {
        self.0.steps()
    }
}

impl Sequence {
    fn steps(self) -> Result<Vec<String>> {
        let (low, high) = match self.kind {
            oid::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            oid::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            oid::INT8 => (i64::MIN, i64::MAX),
            _ => {
                return Err(Fault::new(
                    "22023",
                    "sequence type must be smallint, integer, or bigint",
                ));
            }
        };
        let ascending = self.increment > 0;
        let minimum = self.minimum.unwrap_or(if ascending { 1 } else { low });
        let maximum = self.maximum.unwrap_or(if ascending { high } else { -1 });
        if minimum < low || maximum > high || minimum >= maximum {
            return Err(Fault::new(
                "22023",
                format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"),
            ));
        }
        let start = self.start.unwrap_or(if ascending { minimum } else { maximum });
        if start < minimum {
            return Err(Fault::new(
                "22023",
                format!("START value ({start}) cannot be less than MINVALUE ({minimum})"),
            ));
        }
        if start > maximum {
            return Err(Fault::new(
                "22023",
                format!("START value ({start}) cannot be greater than MAXVALUE ({maximum})"),
            ));
        }
        let (table, column) = match &self.owner {
            Some((table, column)) => (quoted(table), quoted(column)),
            None => ("NULL".to_owned(), "NULL".to_owned()),
        };
        let number = |number: i64| super::scalar::literal(&forebay_pg_values::Owned::Integer(number), oid::INT8);
        Ok(vec![
            SEQUENCES.to_owned(),
            format!(
                "INSERT INTO \"forebay_sequence\" VALUES ({}, {}, {}, {}, {}, {}, {}, {}, 0, {table}, {column})",
                quoted(&self.name),
                quoted(&facts::display_name(self.kind)),
                number(start),
                number(self.increment),
                number(minimum),
                number(maximum),
                i64::from(self.cycle),
                number(start)
            ),
            format!("SELECT \"forebay_forget_sequence\"({})", quoted(&self.name)),
        ])
    }
}

fn steps_of(statements: Vec<String>) -> Vec<Step> {
    statements.into_iter().map(Step::from).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn unreadable(error: rusqlite::Error) -> Fault {
    Fault::new("XX000", format!("the schema cannot be read: {error}"))
}

pub(super) fn parsed(text: &str) -> Result<Expr> {
    crate::sql::grammar::expression(text)
        .ok_or_else(|| Fault::new("42601", format!("syntax error in the expression {text}")))
}

pub(super) fn is_sequence_call(expression: &Expr) -> bool {
    matches!(super::expression::unnested(expression), Expr::Function(function)
        if types::object_name(&function.name).is_ok_and(|name| name == "nextval"))
}

fn refuse_session(sql: &str, what: &str) -> Result<()> {
    if sql.contains(super::scalar::ENVIRONMENT) {
        return Err(Fault::unsupported(format!(
            "an expression that depends on the session or the moment in {what}"
        )));
    }
    Ok(())
}

fn refuse_deferrable(characteristics: Option<&ConstraintCharacteristics>) -> Result<()> {
    if characteristics.is_some_and(|its| its.deferrable == Some(true)) {
        return Err(Fault::unsupported("a DEFERRABLE unique constraint"));
    }
    Ok(())
}

/// The type behind `serial` and its like.
fn serial(name: &str) -> Option<Oid> {
    match name.to_ascii_lowercase().as_str() {
        "serial" | "serial4" => Some(oid::INT4),
        "bigserial" | "serial8" => Some(oid::INT8),
        "smallserial" | "serial2" => Some(oid::INT2),
        _ => None,
    }
}

/// A name in `public`.
pub(super) fn plain_name(name: &ObjectName) -> Result<String> {
    let spelled = types::object_name(name)?;
    let plain = match spelled.strip_prefix("public.") {
        Some(plain) if name.0.len() > 1 => plain.to_owned(),
        _ if name.0.len() > 1 => {
            let schema = spelled.split('.').next().unwrap_or("").to_owned();
            return Err(Fault::new("3F000", format!("schema \"{schema}\" does not exist")));
        }
        _ => spelled,
    };
    let lower = plain.to_ascii_lowercase();
    if lower.starts_with("sqlite_") || lower.starts_with("forebay_") {
        return Err(Fault::new("42939", format!("the name \"{plain}\" is reserved")));
    }
    Ok(plain)
}

pub(super) fn identifier_if_needed(name: &str) -> String {
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain { name.to_owned() } else { identifier(name) }
}

fn owner_of(owner: &ObjectName) -> Option<(String, String)> {
    let parts: Vec<String> = owner
        .0
        .iter()
        .filter_map(|part| match part {
            sqlparser::ast::ObjectNamePart::Identifier(name) => Some(folded(name)),
            sqlparser::ast::ObjectNamePart::Function(_) => None,
        })
        .collect();
    match parts.as_slice() {
        [.., table, column] => Some((table.clone(), column.clone())),
        _ => None,
    }
}

pub(super) fn taken(name: &str, definition: &Definition) -> bool {
    definition.primary_key.iter().any(|key| key.name == name)
        || definition.uniques.iter().any(|key| key.name == name)
        || definition.checks.iter().any(|check| check.name == name)
        || definition.foreign_keys.iter().any(|key| key.name == name)
}

pub(super) fn unused(base: &str, definition: &Definition) -> String {
    let mut name = base.to_owned();
    let mut number = 0;
    while taken(&name, definition) {
        number += 1;
        name = format!("{base}{number}");
    }
    name
}

/// PostgreSQL's limits, which are narrower than SQLite's.
pub(super) fn check_column_count(count: usize) -> Result<()> {
    if count > 1_600 {
        return Err(Fault::new("54011", "tables can have at most 1600 columns"));
    }
    Ok(())
}

fn check_key_count(count: usize) -> Result<()> {
    if count > 32 {
        return Err(Fault::new("54011", "cannot use more than 32 columns in an index"));
    }
    Ok(())
}

pub(super) fn set_primary_key(
    table: &str,
    definition: &mut Definition,
    name: Option<String>,
    columns: Vec<String>,
) -> Result<()> {
    check_key_count(columns.len())?;
    if definition.primary_key.is_some() {
        return Err(Fault::new(
            "42P16",
            format!("multiple primary keys for table \"{table}\" are not allowed"),
        ));
    }
    for name in &columns {
        if let Some(place) = definition.column(name) {
            definition.columns[place].not_null = true;
        }
    }
    definition.primary_key = Some(Key {
        name: name.unwrap_or_else(|| format!("{table}_pkey")),
        columns,
        indexed: false,
    });
    Ok(())
}

fn add_unique(table: &str, definition: &mut Definition, name: Option<String>, columns: Vec<String>) -> Result<()> {
    check_key_count(columns.len())?;
    let name = name.unwrap_or_else(|| unused(&format!("{table}_{}_key", columns.join("_")), definition));
    if taken(&name, definition) {
        return Err(Fault::new("42P07", format!("relation \"{name}\" already exists")));
    }
    definition.uniques.push(Key {
        name,
        columns,
        indexed: false,
    });
    Ok(())
}

fn key_columns(definition: &Definition, columns: &[IndexColumn]) -> Result<Vec<String>> {
    columns
        .iter()
        .map(|column| match &column.column.expr {
            Expr::Identifier(name) => {
                let folded = folded(name);
                if definition.column(&folded).is_none() {
                    return Err(
                        Fault::new("42703", format!("column \"{folded}\" named in key does not exist")).at(name),
                    );
                }
                Ok(folded)
            }
            other => Err(Fault::unsupported(format!("{other} in a key"))),
        })
        .collect()
}

/// The only column that an expression mentions.
fn only_column(expression: &Expr, definition: &Definition) -> Option<String> {
    use std::ops::ControlFlow;
    let mut found: Vec<String> = Vec::new();
    let _ = sqlparser::ast::visit_expressions(expression, |inner| {
        if let Expr::Identifier(name) = inner {
            let name: String = folded(name);
            if definition.column(&name).is_some() && !found.contains(&name) {
                found.push(name);
            }
        }
        ControlFlow::<()>::Continue(())
    });
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Unique indexes of a table: name and columns.
pub(super) fn unique_keys(
    connection: &rusqlite::Connection,
    table: &str,
) -> rusqlite::Result<Vec<(String, Vec<String>)>> {
    let mut statement =
        connection.prepare_cached("SELECT name FROM pragma_index_list(?1) WHERE \"unique\" = 1 AND partial = 0")?;
    let names: Vec<String> = statement
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut keys = Vec::new();
    for name in names {
        let mut statement = connection.prepare_cached("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
        let columns: rusqlite::Result<Vec<Option<String>>> = statement.query_map([&name], |row| row.get(0))?.collect();
        if let Some(columns) = columns?.into_iter().collect::<Option<Vec<String>>>() {
            keys.push((name, columns));
        }
    }
    Ok(keys)
}

/// The places of the columns of a named key of a table.
pub(super) fn constraint_columns(
    connection: &rusqlite::Connection,
    table: &Table,
    name: &str,
) -> Result<Option<Vec<usize>>> {
    let definition = Definition::read(&table.definition);
    let key_name = definition
        .as_ref()
        .and_then(|definition| definition.primary_key.as_ref())
        .map_or_else(|| format!("{}_pkey", table.name), |key| key.name.clone());
    if name == key_name && !table.primary_key.is_empty() {
        return Ok(Some(table.primary_key.clone()));
    }
    let keys = unique_keys(connection, &table.name).map_err(unreadable)?;
    Ok(keys
        .into_iter()
        .find(|(known, _)| known == name)
        .map(|(_, columns)| columns.iter().filter_map(|column| table.column(column)).collect()))
}

/// Tables with a foreign key to this one.
pub(super) fn referring_tables(connection: &rusqlite::Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT s.name FROM sqlite_schema AS s, pragma_foreign_key_list(s.name) AS f \
         WHERE s.type = 'table' AND f.\"table\" = ?1 COLLATE NOCASE",
    )?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// Sequences that go with a table.
pub(super) fn owned_sequences(connection: &rusqlite::Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let there: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence')",
        [],
        |row| row.get(0),
    )?;
    if !there {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT name FROM forebay_sequence WHERE owner_table = ?1")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}
