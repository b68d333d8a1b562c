//! ALTER TABLE, and its like for indexes and views.
//!
//! Promises: the definition is changed in PostgreSQL's terms, all of a statement's operations at once and in PostgreSQL's order; SQLite's text
//! of the table follows from it. Where the rows stay as they are stored, the text alone is replaced; otherwise the rows are copied into a table
//! of the new text, which then takes the old one's place ([`carry_out`](super::carry_out)). Nothing that a view reads is changed under it.
//!
//! Renaming, which SQLite does itself, is in [`rename`](super::rename).

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, DataType, DropBehavior, Expr,
    GeneratedAs, Ident, TableConstraint,
};

use super::alter_constraint::{key_names, validate_constraint};
use super::alteration::Alteration;
use super::compiler::Compiler;
use super::declared::declared;
use super::definition::{ColumnDefinition, Definition, Identity};
use super::expression_text::{mentions, parsed};
use super::fault::{Fault, Result, unreadable};
use super::lookup::alike_but_for_case;
use super::plan::Step;
use super::resolve::converts;
use super::scalar::Scalar;
use super::schema::Table;
use super::scope::{Relation, RelationColumn, Scope};
use super::sequence::owned_sequences;
use super::sqlite_text::{identifier, quoted};
use super::syntax::folded;
use super::table::{check_column_count, is_sequence_call};
use super::types;
use super::view::{Dependent, drop_view};
use crate::sql::facts::{self, Context, Oid, oid};
use crate::sql::identifier::quote_identifier;

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

fn is_text(oid: Oid) -> bool {
    matches!(oid, oid::TEXT | oid::VARCHAR)
}

/// Whether a condition on a column means the same when the column gets another type. Literals, operators and casts were bound by the
/// type it had, and PostgreSQL keeps what that came to; a cast to the column's own type, which did nothing, would do something now.
fn means_the_same(condition: &str, from: Oid, to: Oid) -> bool {
    let is_integer = |oid: Oid| matches!(oid, oid::INT2 | oid::INT4 | oid::INT8);
    let casts = condition.to_lowercase().replace("::text", "");
    if casts.contains("::") || casts.contains("cast") {
        return false;
    }
    from == to
        || (is_text(from) && is_text(to))
        || (is_integer(from) && is_integer(to))
        || (is_integer(from) && matches!(to, oid::NUMERIC | oid::FLOAT8) && is_bound(condition))
}

/// Whether a condition compares a column with a small integer, and does nothing else.
fn is_bound(condition: &str) -> bool {
    use sqlparser::ast::{BinaryOperator as Operator, Value};
    let Ok(Expr::BinaryOp { left, op, right }) = parsed(condition) else {
        return false;
    };
    let compares = matches!(
        op,
        Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq | Operator::Eq | Operator::NotEq
    );
    let is_small = |value: &Value| matches!(value, Value::Number(digits, _) if digits.len() < 10 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    compares && matches!(*left, Expr::Identifier(_)) && matches!(&*right, Expr::Value(value) if is_small(&value.value))
}

fn is_cascade(behavior: Option<DropBehavior>) -> bool {
    matches!(behavior, Some(DropBehavior::Cascade))
}

impl Compiler<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<Vec<Step>> {
        use AlterTableOperation as Operation;
        let owner_only = |operation: &Operation| matches!(operation, Operation::OwnerTo { .. });
        if alter.operations.iter().all(owner_only) {
            let name = self.name_of(&alter.name)?;
            // Of a view or a sequence, too: all that is here is every user's.
            if self.kind_of(&name)?.is_some() {
                return Ok(Vec::new());
            }
        }
        let Some(table) = self.altered(alter)? else {
            return Ok(Vec::new());
        };
        if let [operation] = alter.operations.as_slice() {
            let renames = matches!(
                operation,
                Operation::RenameTable { .. } | Operation::RenameColumn { .. } | Operation::RenameConstraint { .. }
            );
            if renames && table.schema() != "public" {
                return Err(Fault::unsupported("ALTER TABLE … RENAME in a schema beside public"));
            }
            match operation {
                Operation::RenameTable { table_name } => {
                    let (sqlparser::ast::RenameTableNameKind::As(to) | sqlparser::ast::RenameTableNameKind::To(to)) =
                        table_name;
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
            return Err(Fault::new(
                "42809",
                format!("ALTER action cannot be performed on relation \"{}\"", table.name),
            )
            .with_detail("This operation is not supported for views."));
        }
        let mut operations: Vec<&Operation> = alter.operations.iter().collect();
        operations.retain(|operation| !matches!(operation, Operation::OwnerTo { .. }));
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        operations.sort_by_key(|operation| pass(operation));
        self.reshapes.push(table.name.clone());
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
        let name = self.name_of(&alter.name)?;
        match self.kind_of(&name)?.as_deref() {
            Some("table" | "view") => {
                let found = self.schema.table(&name).map_err(unreadable)?;
                found
                    .map(Some)
                    .ok_or_else(|| Fault::new("42P01", format!("relation \"{name}\" does not exist")))
            }
            Some(other) => Err(Fault::unsupported(format!("ALTER TABLE of the {other} \"{name}\""))),
            None if alter.if_exists => {
                self.notices
                    .push(format!("relation \"{name}\" does not exist, skipping"));
                Ok(None)
            }
            None => Err(Fault::new("42P01", format!("relation \"{name}\" does not exist"))),
        }
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
            Operation::AddConstraint { constraint, not_valid } => {
                self.add_constraint(alteration, constraint, *not_valid)
            }
            Operation::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => self.drop_constraint(alteration, name, *if_exists, is_cascade(*drop_behavior)),
            Operation::ValidateConstraint { name } => validate_constraint(alteration, &folded(name)),
            other => Err(Fault::unsupported(format!("ALTER TABLE … {other}"))),
        }
    }

    fn add_column(&mut self, alteration: &mut Alteration, column: &ColumnDef, if_not_exists: bool) -> Result<()> {
        let name = folded(&column.name);
        let table = alteration.table.clone();
        if alteration.new.column(&name).is_some() {
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if if_not_exists {
                self.notices.push(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Fault::new("42701", message).at(&column.name));
        }
        if let Some(known) = alteration.new.alike_but_for_case(&name) {
            return Err(alike_but_for_case(known, &name).at(&column.name));
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
        check_column_count(alteration.new.columns.len())?;
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
    fn value_of_default(&mut self, text: &str, column: &ColumnDefinition) -> Result<String> {
        let scope = Scope::new(None);
        scope.no_aggregates.set(Some("DEFAULT expressions"));
        scope.no_windows.set(Some("DEFAULT expressions"));
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        let scalar = self.expression(&parsed(text)?, &scope);
        self.fixed_parameters = fixed;
        Ok(self.default_for(scalar?, column)?.sql)
    }

    fn drop_column(&mut self, alteration: &mut Alteration, name: &Ident, if_exists: bool, cascade: bool) -> Result<()> {
        let column = folded(name);
        let table = alteration.table.clone();
        let Some(place) = alteration.new.column(&column) else {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            if if_exists {
                self.notices.push(format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Fault::new("42703", message).at(name));
        };
        let mut dependents = Vec::new();
        let generated: Vec<String> = alteration
            .new
            .columns
            .iter()
            .filter(|other| {
                other.name != column && other.generated.as_ref().is_some_and(|its| mentions(&its.text, &column))
            })
            .map(|other| other.name.clone())
            .collect();
        let on = format!("column {column} of table {table}");
        let depends_on_column = |what: String| Dependent { what, on: on.clone() };
        dependents.extend(
            generated
                .iter()
                .map(|other| depends_on_column(format!("column {other} of table {table}"))),
        );
        let mut foreign = self.foreign_keys_to(&table)?;
        foreign.retain(|(other, key)| key.referred.contains(&column) && *other != table);
        dependents.extend(
            foreign
                .iter()
                .map(|(other, key)| depends_on_column(format!("constraint {} on table {other}", key.name))),
        );
        let views = self.dependent_views(&table, Some(&column), &alteration.views_gone)?;
        alteration
            .views_gone
            .extend(views.iter().filter_map(|dependent| dependent.view().map(str::to_owned)));
        alteration.first.extend(views.iter().map(drop_view));
        dependents.extend(views);
        self.take_along(&on, &dependents, cascade)?;
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
            .retain(|key| !(key.columns.contains(&column) || key.table == table && key.referred.contains(&column)));
        let owned = self.sequences_of_column(&table, &column)?;
        for sequence in owned {
            alteration.last.extend(drop_sequence(&sequence));
        }
        alteration.copies = true;
        Ok(())
    }

    fn alter_column(
        &mut self,
        alteration: &mut Alteration,
        name: &Ident,
        operation: &AlterColumnOperation,
    ) -> Result<()> {
        let column = folded(name);
        let table = alteration.table.clone();
        let missing = || {
            Fault::new(
                "42703",
                format!("column \"{column}\" of relation \"{table}\" does not exist"),
            )
            .at(name)
        };
        let place = alteration.new.column(&column).ok_or_else(missing)?;
        let described = &mut alteration.new.columns[place];
        let is_identity = || {
            Fault::new(
                "42601",
                format!("column \"{column}\" of relation \"{table}\" is an identity column"),
            )
        };
        let is_generated = || {
            Fault::new(
                "42601",
                format!("column \"{column}\" of relation \"{table}\" is a generated column"),
            )
        };
        match operation {
            AlterColumnOperation::SetNotNull => described.not_null = true,
            AlterColumnOperation::DropNotNull => {
                let identity = described.identity.is_some();
                if alteration
                    .new
                    .primary_key
                    .as_ref()
                    .is_some_and(|key| key.columns.contains(&column))
                {
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
                let state =
                    |what: &str| Fault::new("55000", format!("column \"{column}\" of relation \"{table}\" {what}"));
                if !matches!(described.oid, oid::INT2 | oid::INT4 | oid::INT8) {
                    return Err(Fault::new(
                        "22023",
                        "identity column type must be smallint, integer, or bigint",
                    ));
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
        if alteration.retyped.contains(&column) {
            let message = format!("cannot alter type of column \"{column}\" twice");
            return Err(Fault::new("0A000", message));
        }
        let kind = types::resolve(data_type)?;
        if !types::has_values(kind.oid) || kind.oid == oid::UNKNOWN {
            return Err(Fault::unsupported(format!("a column of type {}", facts::display_name(kind.oid))).at(name));
        }
        let views = self.dependent_views(&table, Some(&column), &[])?;
        if let Some(view) = views.first() {
            return Err(
                Fault::new("0A000", "cannot alter type of a column used by a view or rule")
                    .with_detail(format!("rule _RETURN on {} depends on column \"{column}\"", view.what)),
            );
        }
        if before.generated.is_some() {
            return Err(Fault::unsupported("ALTER COLUMN … TYPE of a generated column"));
        }
        let used = |other: &ColumnDefinition| other.generated.as_ref().is_some_and(|its| mentions(&its.text, &column));
        if let Some(other) = alteration.new.columns.iter().find(|other| used(other)) {
            return Err(
                Fault::new("0A000", "cannot alter type of a column used by a generated column").with_detail(format!(
                    "Column \"{column}\" is used by generated column \"{}\".",
                    other.name
                )),
            );
        }
        if before.identity.is_some() && !matches!(kind.oid, oid::INT2 | oid::INT4 | oid::INT8) {
            return Err(Fault::new(
                "22023",
                "identity column type must be smallint, integer, or bigint",
            ));
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
            self.convert(source, kind, Context::Assignment)
                .map_err(|fault| match (fault.sqlstate, using) {
                    ("42846", None) => Fault::new(
                        "42804",
                        format!(
                            "column \"{column}\" cannot be cast automatically to type {}",
                            facts::display_name(kind.oid)
                        ),
                    )
                    .with_hint(format!(
                        "You might need to specify \"USING {}::{}\".",
                        quote_identifier(&column),
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
        if before.default.is_some() && !converts(before.oid, kind.oid, Context::Assignment) && before.oid != kind.oid {
            return Err(Fault::new(
                "42804",
                format!(
                    "default for column \"{column}\" cannot be cast automatically to type {}",
                    facts::display_name(kind.oid)
                ),
            ));
        }
        let keeps = converted.sql == plain
            && affinity(&declared(before.kind())) == affinity(&declared(kind))
            && types::collation(before.oid) == types::collation(kind.oid);
        if !keeps {
            alteration.copies = true;
            alteration.values.insert(column.clone(), converted.sql);
        }
        let mut keys = alteration.new.primary_key.iter().chain(&alteration.new.uniques);
        if keys.any(|key| key.columns.contains(&column)) {
            types::check_key(kind.oid)?;
        }
        for check in &alteration.new.checks {
            let text = &check.condition.text;
            if mentions(text, &column) && !means_the_same(text, before.oid, kind.oid) {
                return Err(Fault::unsupported(format!(
                    "another type for the column \"{column}\", by whose type the constraint \"{}\" is read,",
                    check.name
                ))
                .with_hint("Drop the constraint first, and add it again."));
            }
        }
        let default = match &before.default {
            Some(text) => Some(self.default_of_type(text, &before, kind.oid)?),
            None => None,
        };
        let described = &mut alteration.new.columns[place];
        described.oid = kind.oid;
        described.typmod = kind.typmod;
        described.default = default;
        described.default_stored = None;
        alteration.retyped.push(column);
        Ok(())
    }

    /// A default, as it stays when its column gets another type. A literal without a type was read as one of the column's, and its
    /// value is cast anew wherever it is used; whatever else has a type of its own keeps that.
    fn default_of_type(&mut self, text: &str, before: &ColumnDefinition, to: Oid) -> Result<String> {
        let expression = parsed(text)?;
        if is_sequence_call(&expression) || (is_text(before.oid) && is_text(to)) {
            return Ok(text.to_owned());
        }
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        let scalar = self.expression(&expression, &Scope::new(None));
        self.fixed_parameters = fixed;
        if scalar?.oid != oid::UNKNOWN {
            return Ok(text.to_owned());
        }
        // Its length was the column's, not the literal's.
        let kind = match before.oid {
            oid::BPCHAR => "bpchar".to_owned(),
            // It is rounded when it is read.
            oid::INTERVAL if before.typmod != -1 => {
                return Err(
                    Fault::unsupported("another type for a column whose default is a rounded interval")
                        .with_hint("Drop the default first, and set it again."),
                );
            }
            other => types::format_type(other, -1),
        };
        Ok(format!("CAST({text} AS {kind})"))
    }

    /// What PostgreSQL tells of what goes with what is dropped.
    pub(super) fn tell_cascade(&mut self, dependents: &[String]) {
        match dependents {
            [] => {}
            [only] => self.notices.push(format!("drop cascades to {only}")),
            several => self
                .notices
                .push(format!("drop cascades to {} other objects", several.len())),
        }
    }

    fn sequences_of_column(&mut self, table: &str, column: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for sequence in owned_sequences(self.schema.connection(), table).map_err(unreadable)? {
            let owner: Option<String> = self
                .schema
                .connection()
                .query_row(
                    "SELECT owner_column FROM forebay_sequence WHERE name = ?1",
                    [&sequence],
                    |row| row.get(0),
                )
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

pub(super) fn scope_of(table: &str, definition: &Definition) -> Scope<'static> {
    let mut scope = Scope::new(None);
    scope.relations.push(Relation {
        name: Some(table.to_owned()),
        schema: None,
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
