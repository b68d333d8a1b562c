//! Constraints of a table: PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY.
//!
//! Promises: a constraint without a name gets the one that PostgreSQL would choose; one that PostgreSQL would not take is its error.

use sqlparser::ast::{
    CheckConstraint, ColumnOption, ConstraintCharacteristics, DeferrableInitial, Expr, ForeignKeyConstraint,
    IndexColumn, ReferentialAction, TableConstraint,
};

use super::compiler::Compiler;
use super::definition::{Check, Definition, ForeignKey, Key, Lowered};
use super::fault::{Fault, Result, unreadable};
use super::namespace::{refuse_separator, shown};
use super::schema::Table;
use super::syntax::folded;
use super::types;
use crate::sql::facts::{self, oid};
use crate::sql::identifier::made_of;
use crate::sql::walk::walk_expressions;

impl Compiler<'_> {
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
            ColumnOption::Check(check) => add_check(table, definition, name, check),
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
                add_check(table, definition, name, check)
            }
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(folded).collect();
                let name = key.name.as_ref().map(folded);
                self.add_foreign_key(table, definition, name, key, columns)
            }
            other => Err(Fault::unsupported(format!("the constraint {other}"))),
        }
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
        let referred_table = self.name_of(&key.foreign_table)?;
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
                    format!(
                        "there is no primary key for referenced table \"{}\"",
                        shown(&referred_table)
                    ),
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
                Some(other) => other.column(column).map(|place| other.columns[place].kind),
                None => definition.column(column).map(|place| definition.columns[place].kind()),
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
            if !types::may_refer(own_kind, kind.oid)? {
                let constraint = name.clone().unwrap_or_else(|| made_of(shown(table), own, "fkey"));
                return Err(Fault::new(
                    "42804",
                    format!("foreign key constraint \"{constraint}\" cannot be implemented"),
                )
                .with_detail(format!(
                    "Key columns \"{own}\" and \"{column}\" are of incompatible types: {} and {}.",
                    facts::display_name(own_kind),
                    facts::display_name(kind.oid)
                )));
            }
            // PostgreSQL follows a key that looks different and is equal; SQLite sees no change.
            if types::has_equal_variants(kind)
                && let Some(action) = key
                    .on_update
                    .filter(|action| !matches!(action, ReferentialAction::NoAction))
            {
                return Err(Fault::unsupported(format!(
                    "ON UPDATE {action} of a key of type {}",
                    facts::display_name(kind.oid)
                )));
            }
        }
        if !self.is_key(other.as_deref(), definition, &referred)? {
            return Err(Fault::new(
                "42830",
                format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    shown(&referred_table)
                ),
            ));
        }
        let name = name
            .or_else(|| key.name.as_ref().map(folded))
            .unwrap_or_else(|| unused(table, &columns.join("_"), "fkey", definition));
        if taken(&name, definition) {
            return Err(Fault::new(
                "42710",
                format!("constraint \"{name}\" for relation \"{}\" already exists", shown(table)),
            ));
        }
        let action = |action: Option<ReferentialAction>| {
            action
                .filter(|action| !matches!(action, ReferentialAction::NoAction))
                .map(|action| action.to_string())
        };
        let generated = columns.iter().any(|name| {
            definition
                .column(name)
                .is_some_and(|place| definition.columns[place].generated.is_some())
        });
        let sets = |action: Option<ReferentialAction>| {
            matches!(action, Some(ReferentialAction::SetNull | ReferentialAction::SetDefault))
        };
        let cascades = matches!(key.on_update, Some(ReferentialAction::Cascade));
        for (word, refused) in [
            ("UPDATE", cascades || sets(key.on_update)),
            ("DELETE", sets(key.on_delete)),
        ] {
            if generated && refused {
                return Err(Fault::new(
                    "42601",
                    format!("invalid ON {word} action for foreign key constraint containing generated column"),
                ));
            }
        }
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
}

/// PostgreSQL looks at once whether the default is the key that has just gone; SQLite looks when the transaction commits.
pub(super) fn refuse_deferred_defaults(definition: &Definition) -> Result<()> {
    let sets = |action: &Option<String>| action.as_deref() == Some("SET DEFAULT");
    let has_default = |name: &String| {
        let column = definition.column(name).map(|place| &definition.columns[place]);
        column.is_some_and(|column| column.default.is_some())
    };
    let mut keys = definition.foreign_keys.iter();
    if keys.any(|key| {
        key.deferred && (sets(&key.on_delete) || sets(&key.on_update)) && key.columns.iter().any(has_default)
    }) {
        return Err(Fault::unsupported(
            "SET DEFAULT of a foreign key that is INITIALLY DEFERRED",
        ));
    }
    Ok(())
}

fn refuse_deferrable(characteristics: Option<&ConstraintCharacteristics>) -> Result<()> {
    if characteristics.is_some_and(|its| its.deferrable == Some(true)) {
        return Err(Fault::unsupported("a DEFERRABLE unique constraint"));
    }
    Ok(())
}

pub(super) fn taken(name: &str, definition: &Definition) -> bool {
    definition.primary_key.iter().any(|key| key.name == name)
        || definition.uniques.iter().any(|key| key.name == name)
        || definition.checks.iter().any(|check| check.name == name)
        || definition.foreign_keys.iter().any(|key| key.name == name)
}

/// PostgreSQL's name for a constraint that is given none.
fn unused(table: &str, columns: &str, kind: &str, definition: &Definition) -> String {
    let mut name = made_of(shown(table), columns, kind);
    let mut number = 0;
    while taken(&name, definition) {
        number += 1;
        name = made_of(shown(table), columns, &format!("{kind}{number}"));
    }
    name
}

pub(super) fn check_key_count(count: usize) -> Result<()> {
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
    refuse_separator(name.as_deref().unwrap_or_default())?;
    if definition.primary_key.is_some() {
        return Err(Fault::new(
            "42P16",
            format!("multiple primary keys for table \"{}\" are not allowed", shown(table)),
        ));
    }
    for name in &columns {
        if let Some(place) = definition.column(name) {
            types::check_key(definition.columns[place].oid)?;
            definition.columns[place].not_null = true;
        }
    }
    let generated = |name: &String| {
        definition
            .column(name)
            .is_some_and(|place| definition.columns[place].generated.is_some())
    };
    definition.primary_key = Some(Key {
        name: name.unwrap_or_else(|| made_of(shown(table), "", "pkey")),
        indexed: columns.iter().any(generated),
        columns,
    });
    Ok(())
}

fn add_unique(table: &str, definition: &mut Definition, name: Option<String>, columns: Vec<String>) -> Result<()> {
    check_key_count(columns.len())?;
    for place in columns.iter().filter_map(|name| definition.column(name)) {
        types::check_key(definition.columns[place].oid)?;
    }
    let name = name.unwrap_or_else(|| unused(table, &columns.join("_"), "key", definition));
    refuse_separator(&name)?;
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

/// A check without a name gets that of the one column it speaks of, wherever it stands.
fn add_check(table: &str, definition: &mut Definition, name: Option<String>, check: &CheckConstraint) -> Result<()> {
    let name = match name.or_else(|| check.name.as_ref().map(folded)) {
        Some(name) => name,
        None => {
            let column = only_column(&check.expr, definition).unwrap_or_default();
            unused(table, &column, "check", definition)
        }
    };
    if taken(&name, definition) {
        return Err(Fault::new(
            "42710",
            format!("constraint \"{name}\" for relation \"{}\" already exists", shown(table)),
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

/// The only column that an expression mentions.
fn only_column(expression: &Expr, definition: &Definition) -> Option<String> {
    use std::ops::ControlFlow;
    let mut found: Vec<String> = Vec::new();
    let _ = walk_expressions(expression, |inner| {
        let name = match inner {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if let Some(name) = name {
            let name = folded(name);
            if definition.column(&name).is_some() && !found.contains(&name) {
                found.push(name);
            }
        }
        ControlFlow::Continue(())
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
        .map_or_else(|| made_of(table.shown(), "", "pkey"), |key| key.name.clone());
    if name == key_name && !table.primary_key.is_empty() {
        return Ok(Some(table.primary_key.clone()));
    }
    let keys = unique_keys(connection, &table.name).map_err(unreadable)?;
    Ok(keys
        .into_iter()
        .find(|(known, _)| shown(known) == name)
        .map(|(_, columns)| columns.iter().filter_map(|column| table.column(column)).collect()))
}

/// Whether these columns of a table, and no fewer, are one of its keys.
pub(super) fn is_unique(connection: &rusqlite::Connection, table: &Table, places: &[usize]) -> Result<bool> {
    let is_key = |key: &[usize]| key.len() == places.len() && key.iter().all(|place| places.contains(place));
    if is_key(&table.primary_key) {
        return Ok(true);
    }
    let keys = unique_keys(connection, &table.name).map_err(unreadable)?;
    Ok(keys.iter().any(|(_, columns)| {
        let key: Vec<usize> = columns.iter().filter_map(|column| table.column(column)).collect();
        key.len() == columns.len() && is_key(&key)
    }))
}

/// Tables with a foreign key to this one.
pub(super) fn referring_tables(connection: &rusqlite::Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT s.name FROM sqlite_schema AS s, pragma_foreign_key_list(s.name) AS f \
         WHERE s.type = 'table' AND f.\"table\" = ?1 COLLATE NOCASE",
    )?;
    statement.query_map([table], |row| row.get(0))?.collect()
}
