//! Tables that clients made, by their definitions in PostgreSQL's terms; and sequences.
//!
//! Promises: what PostgreSQL would show of a table that was declared so. Reads definitions, and the rows of `forebay_sequence`; indexes that
//! belong to no constraint are read by [`source`](super::source), as for every table.

use postgres_types::Type;
use rusqlite::Connection;

use super::definition::is_string_literal;
use super::oids::Names;
use super::schema::{
    Column, Constraint, ConstraintKind, Index, Namespace, Owner, Sequence, Table, Timing, action, column_list,
    plain_key,
};
use super::types;
use crate::sql::compile::definition::{ColumnDefinition, Definition, Identity, Key};
use crate::sql::compile::namespace::quote_relation;
use crate::sql::compile::namespace::{parted, shown, stored};
use crate::sql::facts::oid;

/// Columns and checks.
pub(super) fn describe(names: &mut Names, table: &mut Table, own: &Definition) {
    table.columns = own.columns.iter().map(|column| described(own, column)).collect();
    for check in &own.checks {
        let text = &check.condition.text;
        let columns = own
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| crate::sql::compile::mentions(text, &column.name))
            .map(|(place, _)| place + 1)
            .collect();
        table.constraints.push(Constraint {
            oid: names.oid("constraint", &table.name, &check.name),
            name: check.name.clone(),
            columns,
            definition: String::new(),
            timing: Timing {
                not_valid: check.not_valid,
                ..Timing::default()
            },
            kind: ConstraintKind::Check {
                expression: text.clone(),
            },
        });
    }
}

fn described(own: &Definition, column: &ColumnDefinition) -> Column {
    let in_key = own
        .primary_key
        .as_ref()
        .is_some_and(|key| key.columns.contains(&column.name));
    let generated = column.generated.as_ref();
    let default = column.default.as_ref().filter(|_| column.identity.is_none());
    Column {
        name: column.name.clone(),
        kind: Type::from_oid(column.oid).unwrap_or(Type::TEXT),
        modifier: column.typmod,
        not_null: column.not_null || in_key,
        expression: match generated {
            Some(generated) => Some(parenthesized(&generated.text)),
            None => default.and_then(|text| default_text(text, column)),
        },
        identity: match column.identity {
            None => "",
            Some(Identity::Always) => "a",
            Some(Identity::ByDefault) => "d",
        },
        generated: generated.is_some(),
        comment: column.comment.clone(),
    }
}

/// A default as PostgreSQL prints it back: constants that are not of their own type carry it.
fn default_text(text: &str, column: &ColumnDefinition) -> Option<String> {
    let kind = types::format_type(column.oid, Some(-1));
    if let Some(sequence) = text.strip_prefix("nextval('").and_then(|rest| rest.strip_suffix("')")) {
        return Some(format!("nextval('{sequence}'::regclass)"));
    }
    if text.eq_ignore_ascii_case("null") {
        // Only where a modifier makes it more than a constant does PostgreSQL keep it.
        return (column.typmod >= 0).then(|| format!("NULL::{kind}"));
    }
    if is_string_literal(text) {
        return Some(match column.oid {
            oid::BOOL => match text.trim_matches('\'').to_ascii_lowercase().as_str() {
                "t" | "true" | "yes" | "on" | "y" | "1" => "true".to_owned(),
                _ => "false".to_owned(),
            },
            oid::INT2 | oid::INT4 | oid::INT8
                if text[1..].trim_matches('\'').bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                let digits = text.trim_matches('\'');
                if column.oid == oid::INT4 {
                    digits.to_owned()
                } else {
                    format!("'{digits}'::{kind}")
                }
            }
            _ => format!("{text}::{kind}"),
        });
    }
    let lower = text.to_ascii_lowercase();
    Some(match lower.as_str() {
        "true" | "false" => lower,
        "current_timestamp" | "current_date" | "current_time" | "localtimestamp" | "localtime" | "current_user"
        | "session_user" => lower.to_ascii_uppercase(),
        "now()" | "gen_random_uuid()" | "random()" | "clock_timestamp()" => lower,
        _ if text
            .strip_prefix('-')
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) =>
        {
            format!("'{text}'::integer")
        }
        _ => parenthesized(text),
    })
}

/// PostgreSQL prints an operator with what it is applied to in parentheses.
fn parenthesized(text: &str) -> String {
    match crate::sql::compile::is_operation(text) {
        true => format!("({text})"),
        false => text.to_owned(),
    }
}

fn numbers(table: &Table, names: &[String]) -> Vec<usize> {
    names
        .iter()
        .filter_map(|name| table.columns.iter().position(|column| column.name == *name))
        .map(|place| place + 1)
        .collect()
}

/// The primary key and the UNIQUE constraints. Their indexes are in the file under their names, but for a key that was declared with
/// the table.
pub(super) fn add_keys(names: &mut Names, table: &mut Table, own: &Definition) {
    if let Some(key) = &own.primary_key {
        let columns = numbers(table, &key.columns);
        let index = match table.indexes.iter_mut().find(|index| shown(&index.name) == key.name) {
            Some(index) => {
                index.primary = true;
                index.oid
            }
            None => {
                let oid = names.oid("relation", "", &stored(parted(&table.name).0, &key.name));
                let keys = columns.iter().map(|number| plain_key(table, *number)).collect();
                table.indexes.insert(
                    0,
                    Index {
                        oid,
                        name: key.name.clone(),
                        unique: true,
                        primary: true,
                        keys,
                        predicate: None,
                    },
                );
                oid
            }
        };
        add_key(
            names,
            table,
            key,
            ConstraintKind::Primary { index },
            "PRIMARY KEY",
            columns,
        );
    }
    for key in &own.uniques {
        let columns = numbers(table, &key.columns);
        let Some(index) = table
            .indexes
            .iter()
            .find(|index| shown(&index.name) == key.name)
            .map(|index| index.oid)
        else {
            continue;
        };
        add_key(names, table, key, ConstraintKind::Unique { index }, "UNIQUE", columns);
    }
}

fn add_key(names: &mut Names, table: &mut Table, key: &Key, kind: ConstraintKind, words: &str, columns: Vec<usize>) {
    table.constraints.push(Constraint {
        oid: names.oid("constraint", &table.name, &key.name),
        name: key.name.clone(),
        kind,
        definition: format!("{words} ({})", column_list(table, &columns)),
        columns,
        timing: Timing::default(),
    });
}

/// The foreign keys of a table.
pub(super) fn foreign_keys(names: &mut Names, tables: &[Table], index: usize, own: &Definition) -> Vec<Constraint> {
    let table = &tables[index];
    let mut found = Vec::new();
    for key in &own.foreign_keys {
        let Some(parent) = tables.iter().find(|table| table.name == key.table) else {
            continue;
        };
        let (columns, targets) = (numbers(table, &key.columns), numbers(parent, &key.referred));
        let (update, update_words) = action(&key.on_update.as_deref().unwrap_or("").to_ascii_uppercase());
        let (delete, delete_words) = action(&key.on_delete.as_deref().unwrap_or("").to_ascii_uppercase());
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {}({})",
            column_list(table, &columns),
            quote_relation(&parent.name),
            column_list(parent, &targets)
        );
        for (clause, words) in [(" ON UPDATE ", update_words), (" ON DELETE ", delete_words)] {
            if !words.is_empty() {
                text.push_str(clause);
                text.push_str(words);
            }
        }
        let words = [
            (key.deferrable || key.deferred, " DEFERRABLE"),
            (key.deferred, " INITIALLY DEFERRED"),
            (key.not_valid, " NOT VALID"),
        ];
        text.extend(words.iter().filter(|(holds, _)| *holds).map(|(_, words)| *words));
        let matching = parent
            .indexes
            .iter()
            .find(|index| index.unique && index.keys.iter().map(|key| key.number).eq(targets.iter().copied()));
        found.push(Constraint {
            oid: names.oid("constraint", &table.name, &key.name),
            name: key.name.clone(),
            columns,
            definition: text,
            timing: Timing {
                deferrable: key.deferrable || key.deferred,
                deferred: key.deferred,
                not_valid: key.not_valid,
            },
            kind: ConstraintKind::Foreign {
                table: parent.oid,
                columns: targets,
                index: matching.map_or(0, |index| index.oid),
                on_update: update,
                on_delete: delete,
            },
        });
    }
    found
}

fn has_sequences(source: &Connection) -> rusqlite::Result<bool> {
    source
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'forebay_sequence')",
        )?
        .query_row([], |row| row.get(0))
}

/// All that is shown of sequences and schemas, to see whether it has changed.
pub(super) fn rows_text(source: &Connection) -> rusqlite::Result<String> {
    let schemas = crate::sql::compile::namespace::schemas(source)?;
    Ok(format!("{schemas:?} {}", sequences_text(source)?))
}

fn sequences_text(source: &Connection) -> rusqlite::Result<String> {
    if !has_sequences(source)? {
        return Ok(String::new());
    }
    source
        .prepare_cached(
            "SELECT coalesce(group_concat(json_array(name, kind, start, increment, minimum, maximum, cycle, owner_table, owner_column)), '') \
             FROM main.forebay_sequence",
        )?
        .query_row([], |row| row.get(0))
}

pub(super) fn sequences(source: &Connection, names: &mut Names, tables: &[Table]) -> rusqlite::Result<Vec<Sequence>> {
    if !has_sequences(source)? {
        return Ok(Vec::new());
    }
    let mut statement = source.prepare(
        "SELECT name, kind, start, increment, minimum, maximum, cycle, owner_table, owner_column FROM main.forebay_sequence ORDER BY name",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let kind: String = row.get(1)?;
        let (table, column): (Option<String>, Option<String>) = (row.get(7)?, row.get(8)?);
        let owner = table.zip(column).and_then(|(table, column)| {
            let table = tables.iter().find(|known| known.name == table)?;
            let place = table.columns.iter().position(|known| known.name == column)?;
            Some(Owner {
                table: table.oid,
                column: place + 1,
                column_name: column,
                identity: !table.columns[place].identity.is_empty(),
            })
        });
        found.push(Sequence {
            namespace: Namespace::public(),
            oid: names.oid("relation", "", &name),
            name,
            kind: types::type_oid(&kind).unwrap_or(oid::INT8),
            start: row.get(2)?,
            increment: row.get(3)?,
            minimum: row.get(4)?,
            maximum: row.get(5)?,
            cycle: row.get(6)?,
            owner,
        });
    }
    Ok(found)
}
