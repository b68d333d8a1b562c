//! Queries as a whole, and VALUES.
//!
//! Promises: as many columns, of the types and under the names that PostgreSQL gives them; rows in PostgreSQL's order where the query asks for
//! one. Every query's columns are called `c1`, `c2`, … inside SQLite: the client's names mean nothing there.

use forebay_pg_values::Owned;
use sqlparser::ast::{Expr, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, SetExpr, Values};

use super::body::{Body, Compiled, Item, Leaf, render};
use super::compiler::{Compiler, NESTING_MAX};
use super::fault::{Fault, Result};
use super::order::output_key;
use super::plan::ResultColumn;
use super::resolve::common_type;
use super::scalar::{Form, Scalar};
use super::scope::Scope;
use super::select::uses_aggregates;
use super::syntax::is_plain;
use super::types::TypeName;
use crate::sql::facts::{Context, Oid, oid};

impl Compiler<'_> {
    /// A query. Columns whose type nothing says get the `expected` one, or become text.
    pub(super) fn query(
        &mut self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        expected: Option<&[TypeName]>,
    ) -> Result<Compiled> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(Fault::new("54001", "the statement nests too many queries"));
        }
        let known = self.ctes.len();
        let compiled = self.query_with(query, outer, expected);
        self.ctes.truncate(known);
        self.depth -= 1;
        compiled
    }

    fn query_with(
        &mut self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        expected: Option<&[TypeName]>,
    ) -> Result<Compiled> {
        if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return Err(Fault::unsupported("this form of a query"));
        }
        if let Some(lock) = query.locks.first() {
            refuse_lock(query, &lock.lock_type)?;
        }
        let mut sql = String::new();
        if let Some(with) = &query.with {
            sql = self.with(with, outer)?;
        }
        let order = match &query.order_by {
            None => &[][..],
            Some(OrderBy {
                kind: OrderByKind::Expressions(keys),
                interpolate: None,
            }) => keys.as_slice(),
            Some(_) => return Err(Fault::unsupported("ORDER BY ALL")),
        };
        let body = self.body(&query.body, outer, order, expected)?;
        let (body, order_sql) = match body {
            Body::Leaf(leaf) if matches!(&*query.body, SetExpr::Select(_)) => (Body::Leaf(leaf), None),
            other => {
                let columns = other.columns();
                let keys = order
                    .iter()
                    .map(|key| output_key(key, &columns))
                    .collect::<Result<Vec<_>>>()?;
                (other, (!keys.is_empty()).then(|| keys.join(", ")))
            }
        };
        let body = self.settle(body, expected)?;
        let columns = body.columns();
        let order_sql = order_sql.or_else(|| match &body {
            Body::Leaf(leaf) => leaf.order.clone(),
            Body::Set { .. } => None,
        });
        sql.push_str(&render(&body));
        if let Some(order) = order_sql {
            sql.push_str(" ORDER BY ");
            sql.push_str(&order);
        }
        self.limit(query, outer, &mut sql)?;
        self.lock_rows(query);
        Ok(Compiled { sql, columns })
    }

    /// Gives a type to every column that has none yet.
    pub(super) fn settle(&mut self, body: Body, expected: Option<&[TypeName]>) -> Result<Body> {
        match body {
            Body::Leaf(mut leaf) => {
                for (place, item) in leaf.items.iter_mut().enumerate() {
                    if item.scalar.oid == oid::UNKNOWN {
                        let to = expected
                            .and_then(|expected| expected.get(place))
                            .map_or(oid::TEXT, |kind| kind.oid);
                        item.scalar = self.convert_type(item.scalar.clone(), to, Context::Assignment)?;
                    }
                }
                Ok(Body::Leaf(leaf))
            }
            set @ Body::Set { .. } => Ok(set),
        }
    }

    fn limit(&mut self, query: &Query, outer: Option<&Scope<'_>>, sql: &mut String) -> Result<()> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit: wanted,
                offset: skipped,
                limit_by,
            }) if limit_by.is_empty() => {
                limit = wanted.as_ref();
                offset = skipped.as_ref().map(|offset| &offset.value);
            }
            Some(_) => {
                return Err(Fault::new("42601", "LIMIT #,# syntax is not supported")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        let one = Expr::value(sqlparser::ast::Value::Number("1".to_owned(), false));
        if let Some(fetch) = &query.fetch {
            if fetch.with_ties || fetch.percent {
                return Err(Fault::unsupported("FETCH FIRST … WITH TIES"));
            }
            limit = Some(fetch.quantity.as_ref().unwrap_or(&one));
        }
        let empty = Scope::new(outer);
        empty.no_aggregates.set(Some("LIMIT"));
        let mut bound = |expression: &Expr, function: &str| -> Result<String> {
            let scalar = self.expression(expression, &empty)?;
            let scalar = self.convert_type(scalar, oid::INT8, Context::Assignment)?;
            Ok(match &scalar.form {
                Form::Constant(Owned::Integer(count)) if *count >= 0 => count.to_string(),
                _ => format!("\"{function}\"({})", scalar.sql),
            })
        };
        match (limit, offset) {
            (None, None) => {}
            (Some(limit), None) => sql.push_str(&format!(" LIMIT {}", bound(limit, "forebay_limit")?)),
            (limit, Some(offset)) => {
                let limit = match limit {
                    Some(limit) => bound(limit, "forebay_limit")?,
                    None => "-1".to_owned(),
                };
                sql.push_str(&format!(" LIMIT {limit} OFFSET {}", bound(offset, "forebay_offset")?));
            }
        }
        Ok(())
    }

    pub(super) fn body(
        &mut self,
        body: &SetExpr,
        outer: Option<&Scope<'_>>,
        order: &[OrderByExpr],
        expected: Option<&[TypeName]>,
    ) -> Result<Body> {
        match body {
            SetExpr::Select(select) => Ok(Body::Leaf(self.select(select, outer, order)?)),
            SetExpr::Values(values) => self.values_body(values, outer, expected),
            SetExpr::Query(query) => {
                if is_plain(query) && !matches!(&*query.body, SetExpr::Select(_)) {
                    return self.body(&query.body, outer, &[], expected);
                }
                let compiled = self.query(query, outer, expected)?;
                Ok(self.wrapped(&compiled.sql, &compiled.columns))
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => self.set_operation(left, *op, *set_quantifier, right, outer),
            SetExpr::Table(_) => Err(Fault::unsupported("TABLE name").with_hint("Write SELECT * FROM name.")),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(Fault::unsupported("WITH before a statement that writes"))
            }
        }
    }

    /// A query as a SELECT of its columns.
    pub(super) fn wrapped(&mut self, sql: &str, columns: &[ResultColumn]) -> Body {
        self.names += 1;
        let name = format!("r{}", self.names);
        let items = columns
            .iter()
            .enumerate()
            .map(|(place, column)| Item {
                origin: None,
                name: column.name.clone(),
                scalar: Scalar {
                    typmod: column.kind.typmod,
                    not_null: column.not_null,
                    ..Scalar::new(format!("\"{name}\".\"c{}\"", place + 1), column.kind.oid)
                },
            })
            .collect();
        Body::Leaf(Leaf {
            distinct: false,
            items,
            rest: format!(" FROM ({sql}) AS \"{name}\""),
            order: None,
            first_of: None,
        })
    }

    /// A body whose columns have these types.
    pub(super) fn converted(&mut self, body: Body, wanted: &[Oid]) -> Result<Body> {
        match body {
            Body::Leaf(mut leaf) if leaf.order.is_none() => {
                for (item, wanted) in leaf.items.iter_mut().zip(wanted) {
                    item.scalar = self.convert_type(item.scalar.clone(), *wanted, Context::Implicit)?;
                }
                Ok(Body::Leaf(leaf))
            }
            other => {
                let columns = other.columns();
                if columns
                    .iter()
                    .zip(wanted)
                    .all(|(column, wanted)| column.kind.oid == *wanted)
                {
                    return Ok(other);
                }
                let body = self.wrapped(&render(&other), &columns);
                self.converted(body, wanted)
            }
        }
    }

    fn values_body(
        &mut self,
        values: &Values,
        outer: Option<&Scope<'_>>,
        expected: Option<&[TypeName]>,
    ) -> Result<Body> {
        let scope = Scope::new(outer);
        scope.no_aggregates.set(Some("VALUES"));
        let mut rows: Vec<Vec<Scalar>> = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let mut cells = Vec::with_capacity(row.len());
            for cell in row.iter() {
                cells.push(self.expression(cell, &scope)?);
            }
            if rows.first().is_some_and(|first| first.len() != cells.len()) {
                return Err(Fault::new("42601", "VALUES lists must all be the same length"));
            }
            rows.push(cells);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut kinds = Vec::with_capacity(width);
        for column in 0..width {
            let types: Vec<Oid> = rows.iter().map(|row| row[column].oid).collect();
            let all_unknown = types.iter().all(|oid| *oid == oid::UNKNOWN);
            let common = match expected.and_then(|expected| expected.get(column)) {
                Some(expected) if all_unknown => expected.oid,
                _ => common_type(&types, "VALUES")?,
            };
            let mut typmod = None;
            let mut not_null = true;
            for row in &mut rows {
                row[column] = self.convert_type(row[column].clone(), common, Context::Assignment)?;
                not_null &= row[column].not_null;
                let own = row[column].typmod;
                typmod = Some(typmod.map_or(own, |known| if known == own { own } else { -1 }));
            }
            kinds.push((
                TypeName {
                    oid: common,
                    typmod: typmod.unwrap_or(-1),
                },
                not_null,
            ));
        }
        let lists: Vec<String> = rows
            .iter()
            .map(|row| {
                let cells: Vec<&str> = row.iter().map(|cell| cell.sql.as_str()).collect();
                format!("({})", cells.join(", "))
            })
            .collect();
        self.names += 1;
        let name = format!("r{}", self.names);
        let items = kinds
            .iter()
            .enumerate()
            .map(|(place, (kind, not_null))| Item {
                origin: None,
                name: format!("column{}", place + 1),
                scalar: Scalar {
                    typmod: kind.typmod,
                    not_null: *not_null,
                    ..Scalar::new(format!("\"{name}\".\"column{}\"", place + 1), kind.oid)
                },
            })
            .collect();
        Ok(Body::Leaf(Leaf {
            distinct: false,
            items,
            rest: format!(" FROM (VALUES {}) AS \"{name}\"", lists.join(", ")),
            order: None,
            first_of: None,
        }))
    }
}

/// Rows that are made of several cannot be locked.
fn refuse_lock(query: &Query, lock: &sqlparser::ast::LockType) -> Result<()> {
    let order = match &query.order_by {
        Some(OrderBy {
            kind: OrderByKind::Expressions(keys),
            ..
        }) => keys.as_slice(),
        _ => &[],
    };
    let what = match &*query.body {
        SetExpr::SetOperation { .. } => "UNION/INTERSECT/EXCEPT",
        SetExpr::Select(select) if select.distinct.is_some() => "DISTINCT clause",
        SetExpr::Select(select) if !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()) => {
            "GROUP BY clause"
        }
        SetExpr::Select(select) if select.having.is_some() => "HAVING clause",
        SetExpr::Select(select) if uses_aggregates(select, order) => "aggregate functions",
        _ => return Ok(()),
    };
    Err(Fault::new("0A000", format!("FOR {lock} is not allowed with {what}")))
}
