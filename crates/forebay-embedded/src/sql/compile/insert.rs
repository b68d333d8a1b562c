//! INSERT and ON CONFLICT.
//!
//! Promises: columns that are not named get PostgreSQL's defaults; that ON CONFLICT DO UPDATE meets a row twice is PostgreSQL's error (21000).

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Expr, Insert, ObjectName, ObjectNamePart, OnConflict,
    OnConflictAction, OnInsert, Query, SetExpr, TableObject,
};

use super::change::{column_place, is_default, says_itself, set_list};
use super::compiler::Compiler;
use super::constraint::{constraint_columns, is_unique};
use super::definition::Identity;
use super::fault::{Fault, Result};
use super::plan::ResultColumn;
use super::scalar::Scalar;
use super::schema::{Column, Default, Table};
use super::scope::Scope;
use super::sqlite_text::{identifier, moves, quoted};
use super::syntax::{folded, is_plain, unnested};
use super::types::{self, TypeName};
use crate::sql::facts::Oid;

/// What an INSERT stores.
pub(super) struct NewRows {
    /// The places of the columns it gives values to.
    pub(super) places: Vec<usize>,
    /// SQLite's text of the rows: VALUES or SELECT.
    pub(super) rows: String,
    /// How many they are, where the statement lists them.
    pub(super) count: Option<usize>,
    /// The places of the columns that a sequence numbers; told only where a failure is explained.
    pub(super) numbered: Vec<usize>,
    /// The places of the columns whose values are others each time; told only where a failure is explained.
    pub(super) moving: Vec<usize>,
}

impl NewRows {
    /// The names of the columns, as a list.
    pub(super) fn names(&self, table: &Table) -> String {
        let names: Vec<String> = self
            .places
            .iter()
            .map(|place| identifier(&table.columns[*place].name))
            .collect();
        names.join(", ")
    }
}

/// An INSERT, understood up to what it stores.
pub(super) struct Inserting<'i> {
    pub(super) table: std::rc::Rc<Table>,
    own: String,
    pub(super) conflict: Option<&'i OnConflict>,
    /// The places of the columns that ON CONFLICT names.
    target: Option<Vec<usize>>,
    pub(super) new: NewRows,
}

impl Compiler<'_> {
    pub(super) fn insert(&mut self, insert: &Insert, with: &str) -> Result<(String, Vec<ResultColumn>)> {
        let Inserting {
            table,
            own,
            conflict,
            target,
            new,
        } = self.inserting(insert)?;
        let mut sql = format!("{with}INSERT INTO {} AS {own} ", identifier(&table.name));
        if new.places.is_empty() {
            sql.push_str("DEFAULT VALUES");
        } else {
            sql.push_str(&format!("({}) {}", new.names(&table), new.rows));
        }
        let alias = insert.table_alias.as_ref().map(|alias| folded(&alias.alias));
        if let Some(conflict) = conflict {
            sql.push_str(&self.on_conflict(conflict, target.as_deref(), &table, &own, alias.as_deref())?);
        }
        let columns = self.returning(insert.returning.as_deref(), &table, alias.as_deref(), false, &mut sql)?;
        Ok((sql, columns))
    }

    /// An INSERT up to what it stores.
    pub(super) fn inserting<'i>(&mut self, insert: &'i Insert) -> Result<Inserting<'i>> {
        refuse_foreign(insert)?;
        self.overriding = insert.overwrite;
        let TableObject::TableName(name) = &insert.table else {
            return Err(Fault::unsupported("INSERT into something that is no table"));
        };
        let table = self.changed_table(name, "INSERT into")?;
        let mut places = Vec::new();
        for column in &insert.columns {
            let place = column_place(&table, column)?;
            if places.contains(&place) {
                return Err(Fault::new(
                    "42701",
                    format!("column \"{}\" specified more than once", table.columns[place].name),
                ));
            }
            places.push(place);
        }
        let listed = !insert.columns.is_empty();
        if !listed {
            places = (0..table.columns.len()).collect();
        }
        let conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => Some(conflict),
            Some(_) => return Err(Fault::new("42601", "syntax error at or near \"DUPLICATE\"")),
        };
        self.names += 1;
        let own = format!("\"r{}\"", self.names);
        let target = conflict
            .map(|conflict| self.conflict_columns(conflict, &table))
            .transpose()?
            .flatten();
        let may_collide = matches!(
            conflict,
            Some(OnConflict {
                action: OnConflictAction::DoUpdate(_),
                ..
            })
        );
        // With a condition, whether a row is met twice depends on the rows that are there.
        let once_word = match conflict.map(|conflict| &conflict.action) {
            Some(OnConflictAction::DoUpdate(update))
                if target
                    .as_deref()
                    .is_some_and(|target| changes_key(&update.assignments, &table, target)) =>
            {
                "rekeys"
            }
            Some(OnConflictAction::DoUpdate(update)) if update.selection.is_some() => "perhaps",
            _ => "",
        };
        let once = may_collide.then_some(target.as_deref()).flatten();
        let mut new = match insert.source.as_deref() {
            None => self.insert_defaults(&table)?,
            Some(source) => match plain_values(source) {
                Some(rows) => self.insert_rows(&table, &places, listed, rows, once)?,
                None => self.insert_query(&table, &places, listed, source, once)?,
            },
        };
        new.rows = new.rows.replace(
            "\"forebay_once\"(''",
            &format!("\"forebay_once\"({}", quoted(once_word)),
        );
        Ok(Inserting {
            table,
            own,
            conflict,
            target,
            new,
        })
    }

    fn refuse_explicit(&self, column: &Column) -> Result<()> {
        if column.generated {
            return Err(Fault::new(
                "428C9",
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
            )
            .with_detail(says_itself(column)));
        }
        if column.identity == Some(Identity::Always) && !self.overriding {
            return Err(Fault::new(
                "428C9",
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
            )
            .with_detail(says_itself(column))
            .with_hint("Use OVERRIDING SYSTEM VALUE to override."));
        }
        Ok(())
    }

    fn insert_defaults(&mut self, table: &Table) -> Result<NewRows> {
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for place in 0..table.columns.len() {
            if let Some(value) = self.default_value(table, place)? {
                places.push(place);
                values.push(value.sql);
            }
        }
        let moving = self.moving(&values, &places);
        let values_word = if draws_in_turn(&values) { "SELECT" } else { "VALUES" };
        let values = values.join(", ");
        Ok(NewRows {
            places,
            rows: match values_word {
                "SELECT" => format!("SELECT {values} WHERE 1"),
                _ => format!("VALUES ({values})"),
            },
            count: Some(1),
            numbered: Vec::new(),
            moving,
        })
    }

    fn moving(&self, values: &[String], places: &[usize]) -> Vec<usize> {
        let pairs = values.iter().zip(places).filter(|_| self.explains);
        pairs.filter(|(sql, _)| moves(sql)).map(|(_, place)| *place).collect()
    }

    fn insert_rows(
        &mut self,
        table: &Table,
        places: &[usize],
        listed: bool,
        rows: &[sqlparser::ast::Parens<Vec<Expr>>],
        once: Option<&[usize]>,
    ) -> Result<NewRows> {
        let width = rows.first().map_or(0, |row| row.len());
        check_width(places, listed, width)?;
        let places = &places[..width];
        let scope = Scope::new(None);
        scope.no_aggregates.set(Some("VALUES"));
        scope.no_windows.set(Some("VALUES"));
        let omitted = self.omitted(table, places)?;
        // A column that no row says anything about is left to its default.
        let explicit: Vec<bool> = (0..width)
            .map(|cell| {
                rows.iter()
                    .any(|row| row.get(cell).is_some_and(|value| !is_default(value)))
            })
            .collect();
        let mut columns = Vec::new();
        for (cell, place) in places.iter().enumerate() {
            let column = &table.columns[*place];
            if explicit[cell] {
                self.refuse_explicit(column)?;
            }
            if explicit[cell] || !column.generated {
                columns.push((Some(cell), *place));
            }
        }
        let given = columns.len();
        columns.extend(omitted.iter().map(|(place, _)| (None, *place)));
        let mut lists: Vec<Vec<String>> = Vec::with_capacity(rows.len());
        // The numbers of the parameters that are the whole of a value.
        let mut bare: Vec<Vec<Option<usize>>> = Vec::with_capacity(rows.len());
        let (mut numbered, mut moving) = (Vec::new(), Vec::new());
        for row in rows {
            if row.len() != width {
                return Err(Fault::new("42601", "VALUES lists must all be the same length"));
            }
            let mut values = Vec::with_capacity(columns.len());
            let mut numbers = vec![None; given];
            for (at, (cell, place)) in columns.iter().enumerate() {
                values.push(match cell.map(|cell| &row[cell]) {
                    Some(value) if is_default(value) => self.written_default(table, *place)?.sql,
                    Some(value) => {
                        let scalar = self.expression(value, &scope)?;
                        numbers[at] = scalar.sql.strip_prefix('?').and_then(|number| number.parse().ok());
                        self.assigned(scalar, table, *place)?.sql
                    }
                    None => omitted
                        .iter()
                        .find(|(omitted, _)| omitted == place)
                        .map(|(_, scalar)| scalar.sql.clone())
                        .unwrap_or_default(),
                });
            }
            if self.explains {
                let asks = values
                    .iter()
                    .zip(&columns)
                    .filter(|(sql, _)| sql.contains("\"forebay_nextval\""));
                numbered.extend(asks.map(|(_, (_, place))| *place));
                let places: Vec<usize> = columns.iter().map(|(_, place)| *place).collect();
                moving.extend(self.moving(&values, &places));
            }
            lists.push(values);
            bare.push(numbers);
        }
        // Of one row, numbers are drawn and asked for in the order of the table's columns; SQLite evaluates the row's key last where the list
        // is not a query's. Of several, as of a query, what is listed comes first, row by row.
        if let [only] = &mut lists[..]
            && draws_in_turn(only)
        {
            let mut order: Vec<usize> = (0..columns.len()).collect();
            order.sort_by_key(|at| columns[*at].1);
            let values: Vec<String> = order.iter().map(|at| std::mem::take(&mut only[*at])).collect();
            return Ok(NewRows {
                places: order.iter().map(|at| columns[*at].1).collect(),
                rows: format!("SELECT {} WHERE 1", values.join(", ")),
                count: Some(1),
                numbered,
                moving,
            });
        }
        // What is the same for each row is said once, about the rows: SQLite looks for each constant among all that it has seen.
        let said_once = if rows.len() > 1 && given > 0 && once.is_none() {
            let mut stored = Vec::with_capacity(columns.len());
            for (at, (_, place)) in columns[..given].iter().enumerate() {
                let from = format!("column{}", at + 1);
                let value = match self.one_type(bare.iter().map(|numbers| numbers[at])) {
                    Some(oid) => self.assigned(Scalar::new(from.as_str(), oid), table, *place)?.sql,
                    None => from.clone(),
                };
                if value != from {
                    for (list, numbers) in lists.iter_mut().zip(&bare) {
                        list[at] = numbers[at].map(|number| format!("?{number}")).unwrap_or_default();
                    }
                }
                stored.push(value);
            }
            stored.extend(omitted.iter().map(|(_, scalar)| scalar.sql.clone()));
            lists.iter_mut().for_each(|list| list.truncate(given));
            Some(stored.join(", "))
        } else {
            None
        };
        let lists: Vec<String> = lists.iter().map(|list| format!("({})", list.join(", "))).collect();
        let made = |sql: String| NewRows {
            places: columns.iter().map(|(_, place)| *place).collect(),
            rows: sql,
            count: Some(rows.len()),
            numbered: numbered.clone(),
            moving: moving.clone(),
        };
        if let (Some(target), true) = (once, rows.len() > 1) {
            let keys: Option<Vec<String>> = target
                .iter()
                .map(|wanted| {
                    let at = columns.iter().position(|(_, place)| place == wanted)?;
                    Some(key_part(&table.columns[*wanted], &format!("column{}", at + 1)))
                })
                .collect();
            if let Some(keys) = keys {
                return Ok(made(format!(
                    "SELECT * FROM (VALUES {}) WHERE \"forebay_once\"('', {})",
                    lists.join(", "),
                    keys.join(", ")
                )));
            }
        }
        let rows = lists.join(", ");
        Ok(made(match said_once {
            Some(stored) => format!("SELECT {stored} FROM (VALUES {rows}) WHERE 1"),
            None => format!("VALUES {rows}"),
        }))
    }

    /// The type of parameters that are all of one.
    fn one_type(&self, mut numbers: impl Iterator<Item = Option<usize>>) -> Option<Oid> {
        let known = |number: Option<usize>| self.parameters.get(number?.checked_sub(1)?).copied().flatten();
        let first = known(numbers.next()?)?;
        numbers.all(|number| known(number) == Some(first)).then_some(first)
    }

    fn insert_query(
        &mut self,
        table: &Table,
        places: &[usize],
        listed: bool,
        source: &Query,
        once: Option<&[usize]>,
    ) -> Result<NewRows> {
        let expected: Vec<TypeName> = places.iter().map(|place| table.columns[*place].kind).collect();
        let compiled = self.query(source, None, Some(&expected))?;
        let width = compiled.columns.len();
        check_width(places, listed, width)?;
        let places = &places[..width];
        let omitted = self.omitted(table, places)?;
        let (mut stored, mut values, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (place, column)) in places.iter().zip(&compiled.columns).enumerate() {
            self.refuse_explicit(&table.columns[*place])?;
            let scalar = Scalar {
                typmod: column.kind.typmod,
                not_null: column.not_null,
                ..Scalar::new(format!("s.\"c{}\"", at + 1), column.kind.oid)
            };
            let value = self.assigned(scalar, table, *place)?;
            if once.is_some_and(|target| target.contains(place)) {
                keys.push(key_part(&table.columns[*place], &value.sql));
            }
            stored.push(*place);
            values.push(value.sql);
        }
        for (place, scalar) in omitted {
            // A number of a sequence is nobody else's, and must not be asked for twice.
            if once.is_some_and(|target| target.contains(&place)) && !scalar.sql.contains("\"forebay_nextval\"") {
                keys.push(key_part(&table.columns[place], &scalar.sql));
            }
            stored.push(place);
            values.push(scalar.sql);
        }
        let known_to_sqlite = once.unwrap_or_default().iter().filter(|place| !stored.contains(*place));
        for column in known_to_sqlite.map(|place| &table.columns[*place]) {
            if let Some(Default::Stored(literal)) = &column.default {
                keys.push(key_part(column, literal));
            }
        }
        let values = values.join(", ");
        let rows = match once {
            // The LIMIT keeps the query whole: every one of its rows comes by, each once.
            Some(target) if keys.len() == target.len() => format!(
                "SELECT {values} FROM (SELECT * FROM ({}) LIMIT -1) AS s WHERE \"forebay_once\"('', {})",
                compiled.sql,
                keys.join(", ")
            ),
            _ => format!("SELECT {values} FROM ({}) AS s WHERE 1", compiled.sql),
        };
        Ok(NewRows {
            places: stored,
            rows,
            count: None,
            numbered: Vec::new(),
            moving: Vec::new(),
        })
    }

    /// The columns that are not given, and have a default that SQLite does not know.
    fn omitted(&mut self, table: &Table, given: &[usize]) -> Result<Vec<(usize, Scalar)>> {
        let mut omitted = Vec::new();
        for place in 0..table.columns.len() {
            if !given.contains(&place)
                && !table.columns[place].generated
                && let Some(scalar) = self.default_value(table, place)?
            {
                omitted.push((place, scalar));
            }
        }
        Ok(omitted)
    }

    /// The columns of ON CONFLICT's target; `None` if it names none.
    fn conflict_columns(&mut self, conflict: &OnConflict, table: &Table) -> Result<Option<Vec<usize>>> {
        match &conflict.conflict_target {
            None => {
                if matches!(conflict.action, OnConflictAction::DoUpdate(_)) {
                    return Err(Fault::new(
                        "42601",
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    )
                    .with_hint("For example, ON CONFLICT (column_name)."));
                }
                Ok(None)
            }
            Some(ConflictTarget::Columns(names)) => {
                let mut places = Vec::new();
                for name in names {
                    let folded = folded(name);
                    let place = table
                        .column(&folded)
                        .ok_or_else(|| Fault::new("42703", format!("column \"{folded}\" does not exist")).at(name))?;
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                if !is_unique(self.schema.connection(), table, &places)? {
                    return Err(Fault::new(
                        "42P10",
                        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    ));
                }
                Ok(Some(places))
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = types::object_name(name)?;
                let columns = constraint_columns(self.schema.connection(), table, &name)?;
                columns.map(Some).ok_or_else(|| {
                    Fault::new(
                        "42704",
                        format!("constraint \"{name}\" for table \"{}\" does not exist", table.shown()),
                    )
                })
            }
        }
    }

    fn on_conflict(
        &mut self,
        conflict: &OnConflict,
        target: Option<&[usize]>,
        table: &Table,
        own: &str,
        alias: Option<&str>,
    ) -> Result<String> {
        let target = target.map_or_else(String::new, |places| {
            let names: Vec<String> = places
                .iter()
                .map(|place| identifier(&table.columns[*place].name))
                .collect();
            format!(" ({})", names.join(", "))
        });
        let update = match &conflict.action {
            OnConflictAction::DoNothing => return Ok(format!(" ON CONFLICT{target} DO NOTHING")),
            OnConflictAction::DoUpdate(update) => update,
        };
        let mut scope = Scope::new(None);
        scope.no_aggregates.set(Some("UPDATE"));
        scope.no_windows.set(Some("UPDATE"));
        let mut relation = self.base_relation(table, own, None)?;
        if let Some(alias) = alias {
            relation.name = Some(alias.to_owned());
        }
        scope.relations.push(relation);
        let mut excluded = self.base_relation(table, "excluded", None)?;
        excluded.name = Some("excluded".to_owned());
        scope.relations.push(excluded);
        let known = self.read.len();
        let assignments = self.assignments(&update.assignments, table, &scope)?;
        let mut sql = format!(" ON CONFLICT{target} DO UPDATE SET {}", set_list(&assignments, table));
        if let Some(selection) = &update.selection {
            let condition = self.filter_condition(selection, &scope, "WHERE")?;
            sql.push_str(&format!(" WHERE {}", condition.sql));
        }
        self.refuse_reading_changes(known, table, "ON CONFLICT DO UPDATE")?;
        Ok(sql)
    }
}

/// A column of a key as `forebay_once` is told of it: its value, and the collation by which it is equal to another.
fn key_part(column: &Column, sql: &str) -> String {
    format!("{sql}, '{}'", types::collation(column.kind.oid).unwrap_or_default())
}

/// Whether an upsert gives a row that is there another key: what is set is neither the key it has nor the one that met it.
fn changes_key(assignments: &[Assignment], table: &Table, target: &[usize]) -> bool {
    let is_key = |name: &ObjectName| column_place(table, name).is_ok_and(|place| target.contains(&place));
    assignments.iter().any(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => {
            let same = match (unnested(&assignment.value), name.0.last()) {
                (Expr::Identifier(value), Some(ObjectNamePart::Identifier(name))) => folded(value) == folded(name),
                (Expr::CompoundIdentifier(parts), Some(ObjectNamePart::Identifier(name))) => {
                    parts.last().is_some_and(|value| folded(value) == folded(name))
                }
                _ => false,
            };
            is_key(name) && !same
        }
        AssignmentTarget::Tuple(names) => names.iter().any(is_key),
    })
}

fn check_width(places: &[usize], listed: bool, width: usize) -> Result<()> {
    if width > places.len() {
        return Err(Fault::new("42601", "INSERT has more expressions than target columns"));
    }
    if listed && width < places.len() {
        return Err(Fault::new("42601", "INSERT has more target columns than expressions"));
    }
    Ok(())
}

/// The rows of a source that is nothing but VALUES.
fn plain_values(source: &Query) -> Option<&[sqlparser::ast::Parens<Vec<Expr>>]> {
    match &*source.body {
        SetExpr::Values(values) if is_plain(source) => Some(&values.rows),
        _ => None,
    }
}

fn refuse_foreign(insert: &Insert) -> Result<()> {
    let foreign = [
        (insert.or.is_some(), "INSERT OR …"),
        (insert.ignore, "INSERT IGNORE"),
        (insert.replace_into, "REPLACE"),
        (insert.partitioned.is_some(), "PARTITION"),
        (!insert.after_columns.is_empty(), "columns behind PARTITION"),
        (insert.output.is_some(), "OUTPUT"),
        (insert.insert_alias.is_some(), "an alias behind VALUES"),
        (!insert.assignments.is_empty(), "INSERT … SET"),
        (insert.priority.is_some(), "a priority"),
    ];
    if !insert.into {
        return Err(Fault::new(
            "42601",
            format!("syntax error at or near \"{}\"", insert.table),
        ));
    }
    match foreign.iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(Fault::unsupported(what).with_hint("PostgreSQL's spelling is INSERT … ON CONFLICT.")),
        None => Ok(()),
    }
}

/// Whether several of these values draw numbers of sequences, or ask for those that were drawn.
fn draws_in_turn(values: &[String]) -> bool {
    const FUNCTIONS: [&str; 4] = [
        "\"forebay_nextval\"",
        "\"forebay_currval\"",
        "\"forebay_lastval\"",
        "\"forebay_setval\"",
    ];
    let asks = |value: &&String| FUNCTIONS.iter().any(|function| value.contains(function));
    values.iter().filter(asks).count() > 1
}
