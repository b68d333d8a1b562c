//! CREATE TABLE, and CREATE TABLE AS.
//!
//! Promises: each column is kept with PostgreSQL's type, default and options; what SQLite cannot keep is refused by name.

use std::ops::ControlFlow;

use sqlparser::ast::{ColumnDef, ColumnOption, CreateTable, Expr, GeneratedAs, GeneratedExpressionMode};

use super::body::rename;
use super::compiler::Compiler;
use super::constraint::refuse_deferred_defaults;
use super::definition::{ColumnDefinition, Definition, Identity, Lowered};
use super::expression_text::parsed;
use super::fault::{Fault, Result};
use super::frozen::freeze;
use super::lookup::alike_but_for_case;
use super::namespace::{parted, quote_relation, shown};
use super::scalar::Form;
use super::scope::{Relation, RelationColumn, Scope};
use super::sequence::Sequence;
use super::sqlite_text::{ENVIRONMENT, identifier, quoted, refuse_session};
use super::syntax::{folded, unnested};
use super::types::{self, TypeName};
use crate::sql::facts::{self, Context, Oid, oid};
use crate::sql::walk::walk_expressions;

impl Compiler<'_> {
    pub(super) fn create_table(&mut self, table: &CreateTable) -> Result<Vec<String>> {
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
        let name = self.name_to_create(&table.name)?;
        if let Some(steps) = self.exists_already(&name, table.if_not_exists)? {
            return Ok(steps);
        }
        self.empties.push(name.clone());
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
            comment: None,
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
            if let Some(known) = definition.alike_but_for_case(&folded) {
                return Err(alike_but_for_case(known, &folded).at(&column.name));
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
        rename(&mut columns, &names, name)?;
        check_column_count(columns.len())?;
        let mut definition = Definition {
            columns: Vec::new(),
            primary_key: None,
            uniques: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            comment: None,
        };
        for column in &columns {
            if definition.column(&column.name).is_some() {
                return Err(Fault::new(
                    "42701",
                    format!("column \"{}\" specified more than once", column.name),
                ));
            }
            if let Some(known) = definition.alike_but_for_case(&column.name) {
                return Err(alike_but_for_case(known, &column.name));
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
                comment: None,
            });
        }
        let mut steps = vec![definition.create(name)];
        if table.with_data.as_ref().is_none_or(|with| with.data) {
            steps.push(format!("INSERT INTO {} {}", identifier(name), compiled.sql));
        }
        Ok(steps)
    }

    /// A column's own part of its definition; its constraints, with their names, are left to be seen to.
    #[allow(clippy::type_complexity, reason = "the parts of one declaration")]
    pub(super) fn column<'c>(
        &mut self,
        table: &str,
        column: &'c ColumnDef,
    ) -> Result<(
        ColumnDefinition,
        Option<Sequence>,
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
            && (kind.typmod >= 0 || element == oid::BYTEA)
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
            comment: None,
        };
        let mut sequence = None;
        if serial.is_some() {
            let made = self.owned_sequence(table, &name, kind.oid, &[])?;
            described.default = Some(format!("nextval({})", quoted(&quote_relation(&made.name))));
            sequence = Some(made);
        }
        let mut constraints = Vec::new();
        let mut written_default = false;
        for option in &column.options {
            let constraint_name = option.name.as_ref().map(folded);
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => described.not_null = true,
                ColumnOption::Default(expression) => {
                    written_default = true;
                    described.default = Some(expression.to_string());
                }
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
                    described.default = Some(format!("nextval({})", quoted(&quote_relation(&made.name))));
                    sequence = Some(made);
                }
                constraint @ (ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::Check(_)
                | ColumnOption::ForeignKey(_)) => constraints.push((constraint_name, constraint)),
                other => return Err(Fault::unsupported(format!("{other} of a column"))),
            }
        }
        let twice = match (written_default, &described.identity, &described.generated) {
            (true, Some(_), _) => Some("default and identity"),
            (true, _, Some(_)) => Some("default and generation expression"),
            (_, Some(_), Some(_)) => Some("identity and generation expression"),
            _ => None,
        };
        if let Some(twice) = twice {
            return Err(Fault::new(
                "42601",
                format!("both {twice} specified for column \"{name}\" of table \"{table}\""),
            ));
        }
        Ok((described, sequence, constraints))
    }

    /// Lowers the expressions of a definition: checks, generated columns, defaults.
    pub(super) fn settle_expressions(&mut self, table: &str, definition: &mut Definition) -> Result<()> {
        refuse_deferred_defaults(definition)?;
        let mut scope = Scope::new(None);
        scope.relations.push(Relation {
            name: Some(shown(table).to_owned()),
            schema: Some(parted(table).0.to_owned()),
            table: None,
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
            is_value: false,
        });
        scope.no_windows.set(Some("a definition"));
        self.fixed_parameters = true;
        self.kept = true;
        for check in &mut definition.checks {
            scope.no_aggregates.set(Some("check constraints"));
            let mut expression = parsed(&check.condition.text)?;
            let (condition, literals) =
                self.with_literals(|compiler| compiler.condition(&expression, &scope, "CHECK"))?;
            refuse_session(&condition.sql, "a CHECK constraint")?;
            if freeze(&mut expression, &literals) {
                check.condition.text = expression.to_string();
            }
            check.condition.sql = condition.sql;
        }
        for place in 0..definition.columns.len() {
            let column = definition.columns[place].clone();
            if let Some(generated) = &column.generated {
                scope.no_aggregates.set(Some("column generation expressions"));
                let mut expression = parsed(&generated.text)?;
                refuse_generated(&expression, definition)?;
                let (scalar, literals) = self.with_literals(|compiler| {
                    let scalar = compiler.expression(&expression, &scope)?;
                    compiler.convert(scalar, column.kind(), Context::Assignment)
                })?;
                if scalar.volatile || scalar.sql.contains(ENVIRONMENT) {
                    return Err(Fault::new("42P17", "generation expression is not immutable"));
                }
                let frozen = freeze(&mut expression, &literals);
                definition.columns[place].generated = Some(Lowered {
                    text: if frozen {
                        expression.to_string()
                    } else {
                        generated.text.clone()
                    },
                    sql: scalar.sql,
                });
            }
            if let Some(text) = &column.default {
                let mut expression = parsed(text)?;
                let empty = Scope::new(None);
                empty.no_aggregates.set(Some("DEFAULT expressions"));
                empty.no_windows.set(Some("DEFAULT expressions"));
                if is_sequence_call(&expression) {
                    continue;
                }
                // It is compiled anew wherever it is needed.
                self.kept = false;
                let (scalar, literals) = self.with_literals(|compiler| {
                    let scalar = compiler.expression(&expression, &empty)?;
                    compiler.default_for(scalar, &column)
                })?;
                self.kept = true;
                if freeze(&mut expression, &literals) {
                    definition.columns[place].default = Some(expression.to_string());
                }
                definition.columns[place].default_stored =
                    matches!(scalar.form, Form::Constant(_)).then_some(scalar.sql);
            }
        }
        self.kept = false;
        self.fixed_parameters = false;
        // A default that is looked at when the table is made is read anew for each row.
        self.session_bound = true;
        Ok(())
    }
}

pub(super) fn is_sequence_call(expression: &Expr) -> bool {
    matches!(unnested(expression), Expr::Function(function)
        if types::object_name(&function.name).is_ok_and(|name| name == "nextval"))
}

/// What a generated column may not be made of.
fn refuse_generated(expression: &Expr, definition: &Definition) -> Result<()> {
    let mut refused = None;
    let _ = walk_expressions(expression, |inner| {
        let name = match inner {
            Expr::Identifier(name) => folded(name),
            Expr::CompoundIdentifier(parts) => parts.last().map(folded).unwrap_or_default(),
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                refused = Some(Fault::new(
                    "0A000",
                    "cannot use subquery in column generation expression",
                ));
                return ControlFlow::Break(());
            }
            _ => return ControlFlow::Continue(()),
        };
        let column = definition.column(&name).map(|place| &definition.columns[place]);
        if column.is_some_and(|column| column.generated.is_some()) {
            let message = format!("cannot use generated column \"{name}\" in column generation expression");
            refused = Some(
                Fault::new("42P17", message)
                    .with_detail("A generated column cannot reference another generated column."),
            );
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    refused.map_or(Ok(()), Err)
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

/// PostgreSQL's limits, which are narrower than SQLite's.
pub(super) fn check_column_count(count: usize) -> Result<()> {
    if count > 1_600 {
        return Err(Fault::new("54011", "tables can have at most 1600 columns"));
    }
    Ok(())
}
