//! INSERT, UPDATE, DELETE.
//!
//! Contract: what is stored fits the type its column was declared with, or the statement fails as PostgreSQL's would. Defaults are
//! PostgreSQL's. Rows are changed, counted and returned as PostgreSQL does.

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, Ident, Insert, ObjectName, ObjectNamePart,
    OnConflict, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Statement as Tree, TableFactor, TableObject,
    TableWithJoins, Update, UpdateTableFromKind,
};

use super::expression::unnested;
use super::fault::{Fault, Result};
use super::query::ResultColumn;
use super::scalar::{Scalar, identifier, quoted};
use super::schema::{Column, Default, Identity, Table};
use super::scope::{Relation, RelationColumn, Scope};
use super::types::{self, TypeName};
use super::{Compiler, Step, folded};
use crate::sql::facts::{self, Context, oid};
use crate::sql::grammar;

impl Compiler<'_> {
    /// `WITH … INSERT`, `WITH … UPDATE`, `WITH … DELETE`.
    pub(super) fn change_with(&mut self, query: &Query, inner: &Tree) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        let known = self.ctes.len();
        self.writes = true;
        let with = match &query.with {
            Some(with) => self.with_clause(with)?,
            None => String::new(),
        };
        let changed = match inner {
            Tree::Insert(insert) => self.insert(insert, &with),
            Tree::Update(update) => self.update(update, &with),
            Tree::Delete(delete) => self.delete(delete, &with),
            _ => Err(Fault::unsupported("this statement behind WITH")),
        };
        self.ctes.truncate(known);
        let (sql, columns) = changed?;
        Ok((vec![sql.into()], columns))
    }

    fn changed_table(&mut self, name: &ObjectName, verb: &str) -> Result<std::rc::Rc<Table>> {
        let table = self.table(name)?;
        if table.view.is_some() || table.foreign_view {
            return Err(Fault::unsupported(format!("{verb} of the view \"{}\"", table.shown())));
        }
        Ok(table)
    }

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

    /// The value a column gets when nothing is said, unless SQLite knows it by itself.
    fn default_value(&mut self, table: &Table, place: usize) -> Result<Option<Scalar>> {
        let column = &table.columns[place];
        match &column.default {
            Some(Default::Stored(_)) => Ok(None),
            Some(Default::Expression(text)) => {
                let expression = grammar::expression(text).ok_or_else(|| {
                    Fault::new(
                        "XX001",
                        format!("the default of column \"{}\" cannot be read", column.name),
                    )
                })?;
                let scope = Scope::new(None);
                let fixed = std::mem::replace(&mut self.fixed_parameters, true);
                let public_only = std::mem::replace(&mut self.public_only, true);
                let scalar = self.expression(&expression, &scope);
                self.public_only = public_only;
                self.fixed_parameters = fixed;
                self.assigned(scalar?, table, place).map(Some)
            }
            None if table.is_key_of_rows(place) && !self.explains => Ok(Some(Scalar::new(
                format!(
                    "\"forebay_not_null\"(NULL, {}, {})",
                    quoted(table.shown()),
                    quoted(&column.name)
                ),
                column.kind.oid,
            ))),
            None => Ok(None),
        }
    }

    /// DEFAULT written where a value stands.
    fn written_default(&mut self, table: &Table, place: usize) -> Result<Scalar> {
        if let Some(scalar) = self.default_value(table, place)? {
            return Ok(scalar);
        }
        let column = &table.columns[place];
        Ok(match &column.default {
            Some(Default::Stored(literal)) => Scalar::new(format!("({literal})"), column.kind.oid),
            _ => Scalar::new("NULL", column.kind.oid),
        })
    }

    /// A value on its way into a column.
    fn assigned(&mut self, scalar: Scalar, table: &Table, place: usize) -> Result<Scalar> {
        let column = &table.columns[place];
        let from = scalar.oid;
        let converted = self
            .convert(scalar, column.kind, Context::Assignment)
            .map_err(|fault| {
                if fault.sqlstate == "42846" {
                    Fault::new(
                        "42804",
                        format!(
                            "column \"{}\" is of type {} but expression is of type {}",
                            column.name,
                            facts::display_name(column.kind.oid),
                            facts::display_name(from)
                        ),
                    )
                    .with_hint("You will need to rewrite or cast the expression.")
                } else {
                    fault
                }
            })?;
        if table.is_key_of_rows(place) && !converted.not_null && !self.explains {
            return Ok(Scalar {
                sql: format!(
                    "\"forebay_not_null\"({}, {}, {})",
                    converted.sql,
                    quoted(table.shown()),
                    quoted(&column.name)
                ),
                not_null: true,
                ..converted
            });
        }
        Ok(converted)
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
        Ok(NewRows {
            places,
            rows: format!("VALUES ({})", values.join(", ")),
            count: Some(1),
            numbered: Vec::new(),
        })
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
        columns.extend(omitted.iter().map(|(place, _)| (None, *place)));
        let mut lists = Vec::with_capacity(rows.len());
        let mut numbered = Vec::new();
        for row in rows {
            if row.len() != width {
                return Err(Fault::new("42601", "VALUES lists must all be the same length"));
            }
            let mut values = Vec::with_capacity(columns.len());
            for (cell, place) in &columns {
                values.push(match cell.map(|cell| &row[cell]) {
                    Some(value) if is_default(value) => self.written_default(table, *place)?.sql,
                    Some(value) => {
                        let scalar = self.expression(value, &scope)?;
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
            }
            lists.push(format!("({})", values.join(", ")));
        }
        let made = |sql: String| NewRows {
            places: columns.iter().map(|(_, place)| *place).collect(),
            rows: sql,
            count: Some(rows.len()),
            numbered: numbered.clone(),
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
        Ok(made(format!("VALUES {}", lists.join(", "))))
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
                    places.push(
                        table.column(&folded).ok_or_else(|| {
                            Fault::new("42703", format!("column \"{folded}\" does not exist")).at(name)
                        })?,
                    );
                }
                Ok(Some(places))
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = types::object_name(name)?;
                let columns = super::constraint::constraint_columns(self.schema.connection(), table, &name)?;
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
        // A bare name means the row that is there.
        excluded.merged = (0..table.columns.len()).collect();
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

    /// The places of the columns that SET names, with SQLite's texts of their values.
    fn assignments(
        &mut self,
        assignments: &[Assignment],
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<Vec<(usize, String)>> {
        let mut parts: Vec<(usize, String)> = Vec::new();
        for assignment in assignments {
            let pairs: Vec<(&ObjectName, &Expr)> = match (&assignment.target, unnested(&assignment.value)) {
                (AssignmentTarget::ColumnName(name), _) => vec![(name, &assignment.value)],
                (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                    names.iter().zip(values).collect()
                }
                (AssignmentTarget::Tuple(names), value) if names.len() == 1 => vec![(&names[0], value)],
                (AssignmentTarget::Tuple(_), Expr::Tuple(_)) => {
                    return Err(Fault::new("42601", "number of columns does not match number of values"));
                }
                (AssignmentTarget::Tuple(_), _) => {
                    return Err(Fault::unsupported("SET (…) = (SELECT …)")
                        .with_hint("Use UPDATE … FROM, or one subquery for each column."));
                }
            };
            for (name, value) in pairs {
                let place = column_place(table, name)?;
                let column = &table.columns[place];
                if parts.iter().any(|(known, _)| *known == place) {
                    return Err(Fault::new(
                        "42601",
                        format!("multiple assignments to same column \"{}\"", column.name),
                    ));
                }
                let default = is_default(value);
                if !default && (column.generated || column.identity == Some(Identity::Always)) {
                    return Err(Fault::new(
                        "428C9",
                        format!("column \"{}\" can only be updated to DEFAULT", column.name),
                    )
                    .with_detail(says_itself(column)));
                }
                let scalar = if default {
                    if column.generated {
                        continue;
                    }
                    self.written_default(table, place)?
                } else {
                    let scalar = self.expression(value, scope)?;
                    self.assigned(scalar, table, place)?
                };
                parts.push((place, scalar.sql));
            }
        }
        Ok(parts)
    }

    pub(super) fn update(&mut self, update: &Update, with: &str) -> Result<(String, Vec<ResultColumn>)> {
        let Changing {
            table,
            alias,
            own,
            values,
            others,
            condition,
        } = self.updating(update)?;
        let mut sql = format!(
            "{with}UPDATE {} AS {own} SET {}",
            identifier(&table.name),
            set_list(&values, &table)
        );
        // SQLite looks for all new values before it changes the first row only where there is a FROM.
        let asks = values.iter().any(|(_, sql)| super::has_query(sql));
        if let Some(others) = others.or_else(|| asks.then(|| "(SELECT 1)".to_owned())) {
            sql.push_str(&format!(" FROM {others}"));
        }
        if let Some(condition) = condition {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        let columns = self.returning(
            update.returning.as_deref(),
            &table,
            alias.as_deref(),
            update.from.is_some(),
            &mut sql,
        )?;
        Ok((sql, columns))
    }

    /// An UPDATE up to its RETURNING.
    pub(super) fn updating(&mut self, update: &Update) -> Result<Changing> {
        if update.or.is_some() || update.limit.is_some() || !update.order_by.is_empty() || update.output.is_some() {
            return Err(Fault::unsupported("UPDATE with OR, ORDER BY or LIMIT"));
        }
        let (name, alias) = plain_table(&update.table, "UPDATE")?;
        let table = self.changed_table(name, "UPDATE of")?;
        self.names += 1;
        let own = format!("\"r{}\"", self.names);
        let mut scope = Scope::new(None);
        let mut relation = self.base_relation(&table, &own, None)?;
        if let Some(alias) = &alias {
            relation.name = Some(alias.clone());
        }
        scope.relations.push(relation);
        let others = match &update.from {
            None => None,
            Some(UpdateTableFromKind::AfterSet(items)) => Some(self.from(items, &mut scope)?),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(Fault::unsupported("FROM before SET")),
        };
        scope.no_aggregates.set(Some("UPDATE"));
        scope.no_windows.set(Some("UPDATE"));
        let values = self.assignments(&update.assignments, &table, &scope)?;
        let condition = match &update.selection {
            None => None,
            Some(selection) => {
                scope.no_aggregates.set(Some("WHERE"));
                Some(self.filter_condition(selection, &scope, "WHERE")?.sql)
            }
        };
        if values.is_empty() {
            return Err(Fault::unsupported("an UPDATE of generated columns alone"));
        }
        Ok(Changing {
            table,
            alias,
            own,
            values,
            others,
            condition,
        })
    }

    pub(super) fn delete(&mut self, delete: &Delete, with: &str) -> Result<(String, Vec<ResultColumn>)> {
        let deleting = self.deleting(delete)?;
        let Changing { table, alias, own, .. } = &deleting;
        let mut sql = format!("{with}DELETE FROM {} AS {own}", identifier(&table.name));
        if let Some(condition) = deleting.meant() {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        let columns = self.returning(
            delete.returning.as_deref(),
            table,
            alias.as_deref(),
            delete.using.is_some(),
            &mut sql,
        )?;
        Ok((sql, columns))
    }

    /// A DELETE up to its RETURNING.
    pub(super) fn deleting(&mut self, delete: &Delete) -> Result<Changing> {
        if !delete.tables.is_empty() || delete.limit.is_some() || !delete.order_by.is_empty() || delete.output.is_some()
        {
            return Err(Fault::unsupported("DELETE with ORDER BY or LIMIT"));
        }
        let FromTable::WithFromKeyword(tables) = &delete.from else {
            return Err(Fault::new("42601", "DELETE needs FROM"));
        };
        let [table] = tables.as_slice() else {
            return Err(Fault::new("42601", "DELETE takes one table"));
        };
        let (name, alias) = plain_table(table, "DELETE")?;
        let table = self.changed_table(name, "DELETE from")?;
        self.names += 1;
        let own = format!("\"r{}\"", self.names);
        let mut scope = Scope::new(None);
        let mut relation = self.base_relation(&table, &own, None)?;
        if let Some(alias) = &alias {
            relation.name = Some(alias.clone());
        }
        scope.relations.push(relation);
        let others = match &delete.using {
            None => None,
            Some(items) => Some(self.from(items, &mut scope)?),
        };
        scope.no_aggregates.set(Some("WHERE"));
        scope.no_windows.set(Some("WHERE"));
        let condition = match &delete.selection {
            None => None,
            Some(selection) => Some(self.filter_condition(selection, &scope, "WHERE")?.sql),
        };
        Ok(Changing {
            table,
            alias,
            own,
            values: Vec::new(),
            others,
            condition,
        })
    }

    /// What has been read from since then in a clause that SQLite carries out row by row, while it changes them, must not be what
    /// the statement changes: PostgreSQL shows a query the rows as they were before.
    fn refuse_reading_changes(&self, known: usize, table: &Table, clause: &str) -> Result<()> {
        for read in &self.read[known..] {
            // By a key that follows another table its rows may be changed along with that one's.
            let follows = self
                .schema
                .connection()
                .prepare_cached(
                    "SELECT 1 FROM pragma_foreign_key_list(?) WHERE on_update || on_delete <> 'NO ACTIONNO ACTION'",
                )
                .and_then(|mut statement| statement.exists([read]))
                .map_err(|error| Fault::new("XX000", format!("the schema cannot be read: {error}")))?;
            let is_cte = self.ctes.iter().any(|cte| cte.sql == *read);
            if follows || is_cte || *read == table.name {
                return Err(
                    Fault::unsupported(format!("a query in {clause} of what the statement may change"))
                        .with_hint("Ask in a statement of its own, before or after."),
                );
            }
        }
        Ok(())
    }

    /// RETURNING, where SQLite knows the table's columns by their names alone, and no others: whether there are some is `beside`.
    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        table: &Table,
        alias: Option<&str>,
        beside: bool,
        sql: &mut String,
    ) -> Result<Vec<ResultColumn>> {
        let Some(items) = items else {
            return Ok(Vec::new());
        };
        let of_others = || {
            Fault::unsupported("RETURNING of what is not a column of the changed table")
                .with_hint("Write the columns that are wanted, of that table alone.")
        };
        if beside && items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
            return Err(of_others());
        }
        let mut scope = Scope::new(None);
        scope.no_aggregates.set(Some("RETURNING"));
        scope.no_windows.set(Some("RETURNING"));
        scope.relations.push(Relation {
            name: Some(alias.unwrap_or(table.shown()).to_owned()),
            schema: alias.is_none().then(|| table.schema().to_owned()),
            table: Some(table.name.as_str().into()),
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
        let known = self.read.len();
        let mut items = self.select_items(items, &scope).map_err(|fault| match fault.sqlstate {
            "42P01" | "42703" if beside => of_others(),
            _ => fault,
        })?;
        self.refuse_reading_changes(known, table, "RETURNING")?;
        for item in &mut items {
            if item.scalar.oid == oid::UNKNOWN {
                item.scalar = self.convert_type(item.scalar.clone(), oid::TEXT, Context::Implicit)?;
            }
        }
        let list: Vec<String> = items
            .iter()
            .enumerate()
            .map(|(place, item)| format!("{} AS \"c{}\"", item.scalar.sql, place + 1))
            .collect();
        sql.push_str(&format!(" RETURNING {}", list.join(", ")));
        Ok(items
            .into_iter()
            .map(|item| ResultColumn {
                kind: item.scalar.type_name(),
                not_null: item.scalar.not_null,
                origin: item.origin,
                name: item.name,
            })
            .collect())
    }
}

/// An UPDATE or DELETE, understood up to its RETURNING.
pub(super) struct Changing {
    pub(super) table: std::rc::Rc<Table>,
    alias: Option<String>,
    /// The table's name in SQLite's text.
    pub(super) own: String,
    /// The places of the columns that are set, with their values.
    pub(super) values: Vec<(usize, String)>,
    /// The other relations.
    pub(super) others: Option<String>,
    condition: Option<String>,
}

impl Changing {
    /// What follows the table where an UPDATE's rows are read: the other relations, and the condition.
    pub(super) fn met(&self) -> String {
        let others = self.others.as_ref().map(|others| format!(", {others}"));
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE {condition}"));
        format!("{}{}", others.unwrap_or_default(), condition.unwrap_or_default())
    }

    /// The condition of a DELETE's rows, which are the table's alone.
    pub(super) fn meant(&self) -> Option<String> {
        match (&self.others, &self.condition) {
            (None, condition) => condition.clone(),
            (Some(others), condition) => Some(format!(
                "EXISTS (SELECT 1 FROM {others} WHERE {})",
                condition.as_deref().unwrap_or("1")
            )),
        }
    }
}

fn set_list(values: &[(usize, String)], table: &Table) -> String {
    let parts: Vec<String> = values
        .iter()
        .map(|(place, sql)| format!("{} = {sql}", identifier(&table.columns[*place].name)))
        .collect();
    parts.join(", ")
}

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

impl Table {
    /// Whether the column is SQLite's own row number, and must be given a value all the same.
    fn is_key_of_rows(&self, place: usize) -> bool {
        self.columns[place].row_number
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

/// Why a client has no say in a column.
fn says_itself(column: &Column) -> String {
    if column.generated {
        return format!("Column \"{}\" is a generated column.", column.name);
    }
    format!(
        "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
        column.name
    )
}

fn is_default(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
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
    let plain = source.with.is_none()
        && source.order_by.is_none()
        && source.limit_clause.is_none()
        && source.fetch.is_none()
        && source.locks.is_empty();
    match &*source.body {
        SetExpr::Values(values) if plain => Some(&values.rows),
        _ => None,
    }
}

fn plain_table<'a>(table: &'a TableWithJoins, verb: &str) -> Result<(&'a ObjectName, Option<String>)> {
    match &table.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            version: None,
            with_ordinality: false,
            json_path: None,
            sample: None,
            ..
        } if table.joins.is_empty() => {
            if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                return Err(Fault::new("42601", "a target's alias has no columns"));
            }
            Ok((name, alias.as_ref().map(|alias| folded(&alias.name))))
        }
        other => Err(Fault::unsupported(format!("{verb} of {other}"))),
    }
}

fn column_place(table: &Table, name: &ObjectName) -> Result<usize> {
    let Some(ObjectNamePart::Identifier(last)) = name.0.last() else {
        return Err(Fault::unsupported(format!("the column {name}")));
    };
    if name.0.len() > 1 {
        return Err(Fault::new(
            "42703",
            format!("column \"{name}\" of relation \"{}\" does not exist", table.shown()),
        ));
    }
    let folded = folded(last);
    table.column(&folded).ok_or_else(|| {
        Fault::new(
            "42703",
            format!("column \"{folded}\" of relation \"{}\" does not exist", table.shown()),
        )
        .at(last)
    })
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
    match foreign.iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(Fault::unsupported(what).with_hint("PostgreSQL's spelling is INSERT … ON CONFLICT.")),
        None => Ok(()),
    }
}
