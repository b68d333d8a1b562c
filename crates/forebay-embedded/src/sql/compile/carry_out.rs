//! The steps of an [`Alteration`]: what SQLite is to do to get from a table's old definition to its new one.
//!
//! Promises: rows are checked for whatever holds from now on and did not before; indexes that stay are unchanged. Knows no syntax.

use forebay_sqlite::connection::SchemaEdit;

use super::alteration::{Alteration, COPY, OLD};
use super::compiler::Compiler;
use super::definition::{ColumnDefinition, Definition};
use super::fault::{Fault, Result, unreadable};
use super::namespace::shown as shown_name;
use super::plan::Step;
use super::scalar::Scalar;
use super::sqlite_text::{identifier, quoted, text_names};
use super::types;
use crate::sql::facts::{self, oid};
use crate::sql::functions::About;

impl Compiler<'_> {
    /// The steps of an alteration.
    pub(super) fn carry_out(&mut self, mut alteration: Alteration) -> Result<Vec<Step>> {
        if alteration.old == alteration.new && !alteration.copies {
            return Ok(alteration.first.into_iter().chain(alteration.last).collect());
        }
        self.settle_expressions(&alteration.table, &mut alteration.new)?;
        self.check_references(&alteration)?;
        self.refuse_other_meaning(&alteration.table, &alteration.new, &alteration.views_gone)?;
        // A key whose values have changed is looked at as any key that is added.
        let was_number = |name: &String| alteration.old.is_row_number(name);
        if let Some(key) = &alteration.new.primary_key
            && alteration.copies
            && key.columns.iter().any(|name| alteration.retyped.contains(name))
            && !key.columns.iter().all(|name| {
                was_number(name) && alteration.new.is_row_number(name) && !alteration.values.contains_key(name)
            })
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
            let changed_default = |column: &&ColumnDefinition| {
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
            steps.push(Step::Edit(SchemaEdit::TableText {
                table: table.clone(),
                sql,
            }));
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
            if let Some(key) = alteration.old.indexed_keys().find(|key| key.name == shown_name(&name)) {
                let stays = alteration.new.indexed_keys().any(|new| new == key);
                if !stays || alteration.copies {
                    gone.push((name, sql));
                }
                continue;
            }
            let keys = sql
                .split_once(&format!(" ON {} (", identifier(&alteration.table)))
                .map_or(sql.as_str(), |(_, keys)| keys);
            if dropped.iter().any(|column| text_names(keys, column)) {
                gone.push((name, sql));
                continue;
            }
            for column in alteration.retyped.iter().filter(|column| text_names(keys, column)) {
                let kind =
                    |definition: &Definition| definition.column(column).map(|place| definition.columns[place].oid);
                let (before, after) = (kind(&alteration.old), kind(&alteration.new));
                let is_plain = keys
                    .trim_end_matches(')')
                    .split(", ")
                    .any(|key| key.trim_end_matches(" DESC") == identifier(column))
                    && !keys.contains(" WHERE ");
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
                let mine = alteration
                    .new
                    .column(own)
                    .map(|place| alteration.new.columns[place].oid);
                let theirs = if key.table == alteration.table {
                    alteration
                        .new
                        .column(other)
                        .map(|place| alteration.new.columns[place].oid)
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
                let mine = table
                    .as_ref()
                    .and_then(|table| table.column(own).map(|place| table.columns[place].kind.oid));
                let theirs = alteration
                    .new
                    .column(referred)
                    .map(|place| alteration.new.columns[place].oid);
                pairs.push((key.name.clone(), own.clone(), referred.clone(), mine, theirs));
            }
        }
        for (name, own, other, mine, theirs) in pairs {
            let (Some(mine), Some(theirs)) = (mine, theirs) else {
                continue;
            };
            if !types::may_refer(mine, theirs)? {
                return Err(Fault::new(
                    "42804",
                    format!("foreign key constraint \"{name}\" cannot be implemented"),
                )
                .with_detail(format!(
                    "Key columns \"{own}\" and \"{other}\" are of incompatible types: {} and {}.",
                    facts::display_name(mine),
                    facts::display_name(theirs)
                )));
            }
        }
        Ok(())
    }

    /// Looks for NULL where none may be from now on, while SQLite does not know that yet: it would not look.
    fn no_nulls(alteration: &Alteration) -> Vec<Step> {
        let (old, new, table) = (&alteration.old, &alteration.new, &alteration.table);
        let relation = shown_name(table);
        let mut steps = Vec::new();
        for column in &new.columns {
            let never = |definition: &Definition| {
                definition
                    .column(&column.name)
                    .is_some_and(|place| definition.columns[place].not_null)
                    || definition
                        .primary_key
                        .as_ref()
                        .is_some_and(|key| key.columns.contains(&column.name))
            };
            let changed = alteration.values.contains_key(&column.name);
            if !never(new) || never(old) && !changed || new.is_row_number(&column.name) {
                continue;
            }
            let message = format!(
                "column \"{}\" of relation \"{relation}\" contains null values",
                column.name
            );
            let there = alteration.copies || old.column(&column.name).is_some();
            let condition = if there {
                format!(" WHERE {} IS NULL", identifier(&column.name))
            } else {
                String::new()
            };
            let rows = identifier(if alteration.copies { COPY } else { table });
            let about = About {
                table: Some(table.clone()),
                column: Some(column.name.clone()),
                constraint: None,
            };
            steps.push(fail("23502", &message, None, &about, &format!("{rows}{condition}")));
        }
        steps
    }

    /// Looks at the rows for what holds from now on.
    fn validation(&mut self, alteration: &Alteration) -> Result<Vec<Step>> {
        let (old, new, table) = (&alteration.old, &alteration.new, &alteration.table);
        let (own, relation) = (identifier(table), shown_name(table));
        let mut steps = Vec::new();
        for check in new.checks.iter().filter(|check| !check.not_valid) {
            let known = old.checks.iter().any(|before| before == check);
            if known && alteration.retyped.is_empty() {
                continue;
            }
            let message = format!(
                "check constraint \"{}\" of relation \"{relation}\" is violated by some row",
                check.name
            );
            steps.push(fail(
                "23514",
                &message,
                None,
                &about_constraint(table, &check.name),
                &format!("{own} WHERE NOT ({})", check.condition.sql),
            ));
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
            let values: Vec<String> = columns
                .iter()
                .map(|(name, kind)| types::compared(name, *kind))
                .collect();
            let given: Vec<String> = columns.iter().map(|(name, _)| format!("{name} IS NOT NULL")).collect();
            let shown = self.shown(&key.columns, new, "")?;
            let detail = format!(
                "'Key ({})=(' || {shown} || ') is duplicated.'",
                key.columns.join(", ").replace('\'', "''")
            );
            let message = format!("could not create unique index \"{}\"", key.name);
            let rows = format!(
                "{own} WHERE {} GROUP BY {} HAVING count(*) > 1",
                given.join(" AND "),
                values.join(", ")
            );
            steps.push(fail(
                "23505",
                &message,
                Some(&detail),
                &about_constraint(table, &key.name),
                &rows,
            ));
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
                shown_name(&key.table).replace('\'', "''")
            );
            let message = format!(
                "insert or update on table \"{relation}\" violates foreign key constraint \"{}\"",
                key.name
            );
            let rows = format!(
                "{own} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
                given.join(" AND "),
                identifier(&key.table),
                conditions.join(" AND ")
            );
            steps.push(fail(
                "23503",
                &message,
                Some(&detail),
                &about_constraint(table, &key.name),
                &rows,
            ));
        }
        Ok(steps)
    }

    /// SQLite's expression of the values of some columns, as PostgreSQL's messages show a key.
    pub(super) fn shown(&mut self, columns: &[String], definition: &Definition, prefix: &str) -> Result<String> {
        let mut parts = Vec::new();
        for name in columns {
            let kind = definition
                .column(name)
                .map_or(oid::TEXT, |place| definition.columns[place].oid);
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
fn fail(sqlstate: &str, message: &str, detail: Option<&str>, about: &About, rows: &str) -> Step {
    let given = |name: &Option<String>| name.as_deref().map_or_else(|| "NULL".to_owned(), quoted);
    format!(
        "SELECT \"forebay_fail\"('{sqlstate}', {}, {}, {}, {}, {}) FROM {rows} LIMIT 1",
        quoted(message),
        detail.unwrap_or("NULL"),
        given(&about.table),
        given(&about.column),
        given(&about.constraint)
    )
    .into()
}

fn about_constraint(table: &str, name: &str) -> About {
    About {
        table: Some(table.to_owned()),
        constraint: Some(name.to_owned()),
        column: None,
    }
}

fn copy_rows(alteration: &Alteration) -> String {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for column in alteration
        .new
        .columns
        .iter()
        .filter(|column| column.generated.is_none())
    {
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
        let filler = if alteration.new.columns.is_empty() {
            "\"forebay_no_column\""
        } else {
            "rowid"
        };
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
