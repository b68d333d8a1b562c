//! FROM: tables, views, subqueries, and joins between them. Functions that give rows are in [`table_function`](super::table_function).
//!
//! Promises: columns and their order as PostgreSQL has them, those of USING and NATURAL once. Every relation gets a name of its own
//! inside SQLite, so that a client's names can neither clash nor mean something else there.

use forebay_pg_values::Type;
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, TableAlias, TableFactor, TableWithJoins,
};

use super::body::rename;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::lateral::lateral;
use super::plan::ResultColumn;
use super::scalar::Scalar;
use super::schema::Table;
use super::scope::{Merged, Relation, RelationColumn, Scope};
use super::sqlite_text::{identifier, quoted, relation_name, type_label};
use super::syntax::{folded, unnested};
use super::types;

impl Compiler<'_> {
    /// The whole clause; its relations are entered into the scope.
    pub(super) fn from(&mut self, items: &[TableWithJoins], scope: &mut Scope<'_>) -> Result<String> {
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            let outer_joins = item.joins.iter().any(|join| {
                matches!(
                    join.join_operator,
                    JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
                )
            });
            // The parentheses around a join are not in its text.
            let is_grouped = outer_joins || matches!(item.relation, TableFactor::NestedJoin { .. });
            let sql = self.joined(item, false, scope)?;
            parts.push(if is_grouped && items.len() > 1 {
                format!("({sql})")
            } else {
                sql
            });
        }
        if items.len() > 1 && !scope.merged.is_empty() {
            // Where merged columns stand in `*` is settled for one join tree only.
            scope.star_is_unsettled = true;
        }
        Ok(parts.join(" CROSS JOIN "))
    }

    fn joined(&mut self, item: &TableWithJoins, is_nested: bool, scope: &mut Scope<'_>) -> Result<String> {
        let start = scope.relations.len();
        let mut sql = self.factor(&item.relation, scope)?;
        for (place, join) in item.joins.iter().enumerate() {
            if let Some((subquery, alias)) = lateral(join) {
                if is_nested {
                    return Err(Fault::unsupported("LATERAL inside a join in parentheses"));
                }
                sql.push_str(&self.lateral_join(&item.joins, place, subquery, alias, scope)?);
                continue;
            }
            if join.global {
                return Err(Fault::unsupported("GLOBAL JOIN"));
            }
            let (kind, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("JOIN", constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("LEFT JOIN", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT JOIN", constraint),
                JoinOperator::FullOuter(constraint) => ("FULL JOIN", constraint),
                JoinOperator::CrossJoin(JoinConstraint::None) => ("CROSS JOIN", &JoinConstraint::None),
                other => return Err(Fault::unsupported(format!("the join {other:?}"))),
            };
            let middle = scope.relations.len();
            let merged = scope.merged.len();
            let right = self.factor(&join.relation, scope)?;
            let right = if matches!(join.relation, TableFactor::NestedJoin { .. }) {
                // `*` has its merged columns in their own place, which is not known here.
                scope.star_is_unsettled |= scope.merged.len() > merged;
                format!("({right})")
            } else {
                right
            };
            let lacks_rows = |relation: &mut Relation| {
                for column in &mut relation.columns {
                    column.not_null = false;
                }
            };
            let condition = match constraint {
                JoinConstraint::None if kind == "CROSS JOIN" => None,
                JoinConstraint::None => {
                    return Err(Fault::new("42601", "a join needs ON or USING, or to be a CROSS JOIN"));
                }
                JoinConstraint::On(condition) if kind == "FULL JOIN" && !is_of_equalities(condition) => {
                    return Err(Fault::new(
                        "0A000",
                        "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
                    ));
                }
                JoinConstraint::On(condition) => {
                    scope.no_aggregates.set(Some("JOIN conditions"));
                    scope.no_windows.set(Some("JOIN conditions"));
                    let condition = self.filter_condition(condition, scope, "JOIN/ON")?;
                    scope.no_aggregates.set(None);
                    scope.no_windows.set(None);
                    Some(condition.sql)
                }
                JoinConstraint::Using(names) => {
                    let names: Vec<(String, Option<&Ident>)> = names
                        .iter()
                        .map(|name| match name.0.last() {
                            Some(ObjectNamePart::Identifier(name)) => (folded(name), Some(name)),
                            _ => (name.to_string(), None),
                        })
                        .collect();
                    Some(self.merge(kind, &names, scope, start, middle)?)
                }
                JoinConstraint::Natural => {
                    let left = self.visible(scope, start, middle);
                    let right = self.visible(scope, middle, scope.relations.len());
                    let common: Vec<(String, Option<&Ident>)> = left
                        .into_iter()
                        .filter(|name| right.contains(name))
                        .map(|name| (name, None))
                        .collect();
                    Some(self.merge(kind, &common, scope, start, middle)?)
                }
            };
            match kind {
                "LEFT JOIN" => scope.relations[middle..].iter_mut().for_each(lacks_rows),
                "RIGHT JOIN" => scope.relations[start..middle].iter_mut().for_each(lacks_rows),
                "FULL JOIN" => scope.relations[start..].iter_mut().for_each(lacks_rows),
                _ => {}
            }
            sql = match condition {
                Some(condition) if condition.is_empty() => format!("{sql} {kind} {right} ON 1"),
                Some(condition) => format!("{sql} {kind} {right} ON {condition}"),
                None => format!("{sql} CROSS JOIN {right}"),
            };
        }
        Ok(sql)
    }

    #[allow(
        clippy::unused_self,
        reason = "one of the questions asked while a FROM clause is built"
    )]
    fn visible(&self, scope: &Scope<'_>, from: usize, to: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for relation in &scope.relations[from..to] {
            for (place, column) in relation.columns.iter().enumerate() {
                if !relation.merged.contains(&place) || !names.contains(&column.name) {
                    if names.contains(&column.name) {
                        continue;
                    }
                    names.push(column.name.clone());
                }
            }
        }
        names
    }

    /// Makes one column of two for each name; gives the condition.
    fn merge(
        &mut self,
        kind: &str,
        names: &[(String, Option<&Ident>)],
        scope: &mut Scope<'_>,
        start: usize,
        middle: usize,
    ) -> Result<String> {
        let mut conditions = Vec::new();
        let mut merged_now = Vec::new();
        for (name, written) in names {
            let fail = |fault: Fault| match written {
                Some(written) => fault.at(written),
                None => fault,
            };
            let find = |range: std::ops::Range<usize>, scope: &Scope<'_>| -> Result<Option<(usize, usize)>> {
                let mut found = None;
                for place in range {
                    let relation = &scope.relations[place];
                    for (column, described) in relation.columns.iter().enumerate() {
                        if described.name == *name && !relation.merged.contains(&column) {
                            if found.is_some() {
                                return Err(fail(Fault::new(
                                    "42702",
                                    format!("common column name \"{name}\" appears more than once in left table"),
                                )));
                            }
                            found = Some((place, column));
                        }
                    }
                }
                Ok(found)
            };
            let scalar_of = |scope: &Scope<'_>, (relation, column): (usize, usize)| {
                let column = &scope.relations[relation].columns[column];
                Scalar {
                    typmod: column.kind.typmod,
                    ..Scalar::new(column.sql.clone(), column.kind.oid)
                }
            };
            let earlier = scope.merged.iter().position(|merged| merged.name == *name);
            let (left, left_place) = match (earlier, find(start..middle, scope)?) {
                (Some(earlier), _) => (scope.merged.remove(earlier).scalar, None),
                (None, Some(place)) => (scalar_of(scope, place), Some(place)),
                (None, None) => {
                    return Err(fail(Fault::new(
                        "42703",
                        format!("column \"{name}\" specified in USING clause does not exist in left table"),
                    )));
                }
            };
            let Some(right_place) = find(middle..scope.relations.len(), scope)? else {
                return Err(fail(Fault::new(
                    "42703",
                    format!("column \"{name}\" specified in USING clause does not exist in right table"),
                )));
            };
            let right = scalar_of(scope, right_place);
            conditions.push(self.binary("=", left.clone(), right.clone())?.sql);
            let typmod = if left.oid == right.oid && left.typmod == right.typmod {
                left.typmod
            } else {
                -1
            };
            let before = [&left, &right].map(|side| (side.oid, side.typmod));
            let both = self.unify(vec![left, right], "JOIN/USING")?;
            // Of an inner join the side that needs no cast, so that 1.00 stays what it is beside 1.
            let is_as_it_was = |side: usize| before[side] == (both[side].oid, typmod);
            let prefers_right = kind == "JOIN" && !is_as_it_was(0) && is_as_it_was(1);
            let scalar = match kind {
                "RIGHT JOIN" => both[1].clone(),
                _ if prefers_right => both[1].clone(),
                "FULL JOIN" => Scalar {
                    typmod,
                    ..Scalar::new(format!("coalesce({}, {})", both[0].sql, both[1].sql), both[0].oid)
                },
                _ => both[0].clone(),
            };
            if let Some((relation, column)) = left_place {
                scope.relations[relation].merged.push(column);
            }
            scope.relations[right_place.0].merged.push(right_place.1);
            merged_now.push(Merged {
                name: name.clone(),
                scalar: Scalar {
                    not_null: false,
                    typmod,
                    ..scalar
                },
            });
        }
        merged_now.append(&mut scope.merged);
        scope.merged = merged_now;
        Ok(conditions.join(" AND "))
    }

    fn factor(&mut self, factor: &TableFactor, scope: &mut Scope<'_>) -> Result<String> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version: None,
                with_ordinality,
                partitions,
                json_path: None,
                sample: None,
                index_hints,
            } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => match args {
                Some(args) => {
                    if args.settings.is_some() {
                        return Err(Fault::unsupported("SETTINGS of a function"));
                    }
                    self.table_function(name, &args.args, *with_ordinality, alias.as_ref(), scope)
                }
                None => self.named_relation(name, alias.as_ref(), scope),
            },
            TableFactor::Function {
                name,
                args,
                with_ordinality,
                alias,
                ..
            } => self.table_function(name, args, *with_ordinality, alias.as_ref(), scope),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality,
            } => {
                let arguments: Vec<&Expr> = array_exprs.iter().collect();
                self.rows_of("unnest", &arguments, *with_ordinality, alias.as_ref(), scope)
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample: None,
            } => {
                if *lateral {
                    return Err(
                        Fault::unsupported("LATERAL before a subquery but in LEFT JOIN LATERAL … ON true")
                            .with_hint("Join with the subquery, or put it into the select list."),
                    );
                }
                let compiled = self.query(subquery, scope.outer, None)?;
                let columns = compiled.columns;
                self.enter(&format!("({})", compiled.sql), &columns, alias.as_ref(), None, scope)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.joined(table_with_joins, true, scope),
            other => Err(Fault::unsupported(format!("{other} in FROM"))),
        }
    }

    /// Enters a relation whose columns are `c1`, `c2`, … in SQLite.
    fn enter(
        &mut self,
        sql: &str,
        columns: &[ResultColumn],
        alias: Option<&TableAlias>,
        name: Option<String>,
        scope: &mut Scope<'_>,
    ) -> Result<String> {
        self.names += 1;
        let own = relation_name(self.names);
        let described = columns
            .iter()
            .enumerate()
            .map(|(place, column)| RelationColumn {
                name: column.name.clone(),
                kind: column.kind,
                sql: format!("{own}.\"c{}\"", place + 1),
                not_null: column.not_null,
            })
            .collect();
        let mut relation = Relation {
            schema: None,
            name,
            table: None,
            columns: described,
            key: Vec::new(),
            merged: Vec::new(),
            is_value: false,
        };
        relation.apply_alias(alias)?;
        scope.add(relation)?;
        Ok(format!("{sql} AS {own}"))
    }

    fn named_relation(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Result<String> {
        let spelled = types::object_name(name)?;
        if name.0.len() == 1
            && let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == spelled)
        {
            let (sql, columns) = (identifier(&cte.sql), cte.columns.clone());
            self.read.push(cte.sql.clone());
            return self.enter(&sql, &columns, alias, Some(spelled), scope);
        }
        let table = self.table(name)?;
        if let Some(text) = &table.view {
            let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
            let compiled = self.view(text)?;
            let mut described = compiled.columns;
            rename(&mut described, &columns, table.shown())?;
            let sql = self.enter(
                &format!("({})", compiled.sql),
                &described,
                alias,
                Some(table.shown().to_owned()),
                scope,
            )?;
            let held: Vec<String> = (1..=columns.len()).map(|place| format!("\"c{place}\"")).collect();
            self.record_read(&table, &held);
            if alias.is_none()
                && let Some(relation) = scope.relations.last_mut()
            {
                relation.schema = Some(table.schema().to_owned());
            }
            return Ok(sql);
        }
        self.names += 1;
        self.read.push(table.name.clone());
        if !self.tables_read.contains(&table.name) {
            self.tables_read.push(table.name.clone());
        }
        let own = relation_name(self.names);
        let relation = self.base_relation(&table, &own, alias)?;
        scope.add(relation)?;
        let held: Vec<String> = table.columns.iter().map(|column| identifier(&column.name)).collect();
        self.record_read(&table, &held);
        Ok(format!("{} AS {own}", identifier(&table.name)))
    }

    /// A table's columns under the name that it has in SQLite's text.
    pub(super) fn base_relation(&mut self, table: &Table, own: &str, alias: Option<&TableAlias>) -> Result<Relation> {
        let columns = table
            .columns
            .iter()
            .map(|column| {
                let sql = format!("{own}.{}", identifier(&column.name));
                let sql = if column.foreign {
                    let label = Type::from_oid(column.kind.oid).map_or_else(String::new, type_label);
                    format!("\"forebay_stored\"({sql}, {})", quoted(&label))
                } else {
                    sql
                };
                RelationColumn {
                    name: column.name.clone(),
                    kind: column.kind,
                    sql,
                    not_null: column.not_null,
                }
            })
            .collect();
        let mut relation = Relation {
            name: Some(table.shown().to_owned()),
            schema: Some(table.schema().to_owned()),
            table: Some(table.name.as_str().into()),
            columns,
            key: table.primary_key.clone(),
            merged: Vec::new(),
            is_value: false,
        };
        relation.apply_alias(alias)?;
        Ok(relation)
    }
}

/// Whether a condition is nothing but equalities, all of which have to hold.
fn is_of_equalities(condition: &Expr) -> bool {
    match unnested(condition) {
        Expr::BinaryOp {
            left,
            op: sqlparser::ast::BinaryOperator::And,
            right,
        } => is_of_equalities(left) && is_of_equalities(right),
        Expr::BinaryOp {
            op: sqlparser::ast::BinaryOperator::Eq,
            ..
        } => true,
        Expr::Value(value) => matches!(value.value, sqlparser::ast::Value::Boolean(true)),
        _ => false,
    }
}
