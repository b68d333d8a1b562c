//! Queries: SELECT, VALUES, set operations, WITH.
//!
//! Contract: as many columns, of the types and under the names that PostgreSQL gives them; rows in PostgreSQL's order where the query
//! asks for one. Every query's columns are called `c1`, `c2`, … inside SQLite: names there mean nothing to clients.

use forebay_pg_values::Owned;
use std::sync::Arc;

use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Values, With,
};

use super::expression::unnested;
use super::fault::{Fault, Result};
use super::naming::column_name;
use super::resolve::common_type;
use super::scalar::{Form, Scalar, identifier};
use super::scope::{Grouping, Scope, Starred};
use super::types::{self, TypeName};
use super::{Compiler, KnownCte, folded};
use crate::sql::facts::{self, Context, Oid, oid};

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultColumn {
    pub(crate) name: String,
    pub(crate) kind: TypeName,
    pub(crate) not_null: bool,
    pub(crate) origin: Option<Origin>,
}

/// The column of a table that a column of a result is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    pub(crate) table: Arc<str>,
    /// Counted from 1.
    pub(crate) number: usize,
}

impl ResultColumn {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// PostgreSQL's number for its type.
    pub fn type_oid(&self) -> u32 {
        self.kind.oid
    }

    /// The modifier of its type, -1 for none.
    pub fn typmod(&self) -> i32 {
        self.kind.typmod
    }
}

/// A query, compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) sql: String,
    pub(super) columns: Vec<ResultColumn>,
}

/// An expression of a select list under its name.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) scalar: Scalar,
    pub(super) origin: Option<Origin>,
}

impl From<Starred> for Item {
    fn from(column: Starred) -> Self {
        Self {
            name: column.name,
            scalar: column.scalar,
            origin: None,
        }
    }
}

/// DISTINCT ON: its keys, and the keys of the order with the text of each one's expression.
type FirstOf = (Vec<String>, Vec<(String, String)>);

/// One SELECT before its list is written out, so that its columns can still be converted.
#[derive(Debug)]
struct Leaf {
    distinct: bool,
    items: Vec<Item>,
    /// From FROM to HAVING.
    rest: String,
    order: Option<String>,
    /// DISTINCT ON: its keys and the order that decides which row stays.
    first_of: Option<FirstOf>,
}

enum Body {
    Leaf(Leaf),
    Set { sql: String, columns: Vec<ResultColumn> },
}

impl Body {
    fn columns(&self) -> Vec<ResultColumn> {
        match self {
            Self::Leaf(leaf) => leaf
                .items
                .iter()
                .map(|item| ResultColumn {
                    name: item.name.clone(),
                    kind: item.scalar.type_name(),
                    not_null: item.scalar.not_null,
                    origin: item.origin.clone(),
                })
                .collect(),
            Self::Set { columns, .. } => columns.clone(),
        }
    }
}

impl Compiler<'_> {
    /// A query. Columns whose type nothing says get the `expected` one, or become text.
    pub(super) fn query(
        &mut self,
        query: &Query,
        outer: Option<&Scope<'_>>,
        expected: Option<&[TypeName]>,
    ) -> Result<Compiled> {
        self.depth += 1;
        if self.depth > super::NESTING_MAX {
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
    fn settle(&mut self, body: Body, expected: Option<&[TypeName]>) -> Result<Body> {
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

    /// A WITH clause before a statement that writes.
    pub(super) fn with_clause(&mut self, with: &With) -> Result<String> {
        self.with(with, None)
    }

    fn with(&mut self, with: &With, outer: Option<&Scope<'_>>) -> Result<String> {
        let mut parts = Vec::new();
        for cte in &with.cte_tables {
            parts.push(self.cte(cte, with.recursive, outer)?);
        }
        let recursive = if with.recursive { "RECURSIVE " } else { "" };
        Ok(format!("WITH {recursive}{} ", parts.join(", ")))
    }

    fn cte(&mut self, cte: &Cte, recursive: bool, outer: Option<&Scope<'_>>) -> Result<String> {
        if cte.from.is_some() {
            return Err(Fault::unsupported("this form of WITH"));
        }
        if matches!(
            &*cte.query.body,
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        ) {
            return Err(Fault::unsupported("a statement that writes inside WITH")
                .with_hint("Run it as a statement of its own, with RETURNING, in the same transaction."));
        }
        let name = folded(&cte.alias.name);
        let renamed: Vec<String> = cte.alias.columns.iter().map(|column| folded(&column.name)).collect();
        self.names += 1;
        let inner = format!("w{}", self.names);
        let own = if recursive {
            recursive_parts(&cte.query, &name)
        } else {
            None
        };
        let (sql, mut columns) = match own {
            Some((base, distinct, step)) => {
                let base = self.body(base, outer, &[], None)?;
                let base = self.settle(base, None)?;
                let mut columns = base.columns();
                rename(&mut columns, &renamed, &name)?;
                for column in &mut columns {
                    column.not_null = false;
                }
                self.ctes.push(KnownCte {
                    name: name.clone(),
                    sql: inner.clone(),
                    columns: columns.clone(),
                });
                let expected: Vec<TypeName> = columns.iter().map(|column| column.kind).collect();
                let step = self.body(step, outer, &[], Some(&expected))?;
                let step = self.settle(step, Some(&expected))?;
                self.ctes.pop();
                let given = step.columns();
                if given.len() != columns.len() {
                    return Err(Fault::new(
                        "42601",
                        "each UNION query must have the same number of columns",
                    ));
                }
                let mut wanted = Vec::new();
                for (place, (column, given)) in columns.iter().zip(&given).enumerate() {
                    let common = common_type(&[column.kind.oid, given.kind.oid], "UNION")?;
                    if common != column.kind.oid {
                        return Err(Fault::new(
                            "42804",
                            format!(
                                "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                                place + 1,
                                facts::display_name(column.kind.oid),
                                facts::display_name(common)
                            ),
                        )
                        .with_hint("Cast the output of the non-recursive term to the correct type."));
                    }
                    wanted.push(common);
                }
                let step = self.converted(step, &wanted)?;
                let operator = if distinct { "UNION" } else { "UNION ALL" };
                (
                    format!(
                        "{} {operator} {}",
                        render_compared(&base, distinct),
                        render_compared(&step, distinct)
                    ),
                    columns,
                )
            }
            None => {
                let compiled = self.query(&cte.query, outer, None)?;
                (compiled.sql, compiled.columns)
            }
        };
        rename(&mut columns, &renamed, &name)?;
        let list: Vec<String> = (1..=columns.len()).map(|number| format!("\"c{number}\"")).collect();
        self.ctes.push(KnownCte {
            name,
            sql: inner.clone(),
            columns,
        });
        Ok(format!("\"{inner}\"({}) AS ({sql})", list.join(", ")))
    }

    fn body(
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
                let plain = query.with.is_none()
                    && query.order_by.is_none()
                    && query.limit_clause.is_none()
                    && query.fetch.is_none()
                    && query.locks.is_empty();
                if plain && !matches!(&*query.body, SetExpr::Select(_)) {
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
            } => self.set_operation(left, *op, *set_quantifier, right, outer, expected),
            SetExpr::Table(_) => Err(Fault::unsupported("TABLE name").with_hint("Write SELECT * FROM name.")),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(Fault::unsupported("WITH before a statement that writes"))
            }
        }
    }

    /// A query as a SELECT of its columns.
    fn wrapped(&mut self, sql: &str, columns: &[ResultColumn]) -> Body {
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
    fn converted(&mut self, body: Body, wanted: &[Oid]) -> Result<Body> {
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

    fn set_operation(
        &mut self,
        left: &SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        outer: Option<&Scope<'_>>,
        expected: Option<&[TypeName]>,
    ) -> Result<Body> {
        let (name, operator) = match (op, quantifier) {
            (SetOperator::Union, SetQuantifier::All) => ("UNION", "UNION ALL"),
            (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => ("UNION", "UNION"),
            (SetOperator::Intersect, SetQuantifier::None | SetQuantifier::Distinct | SetQuantifier::All) => {
                ("INTERSECT", "INTERSECT")
            }
            (SetOperator::Except, SetQuantifier::None | SetQuantifier::Distinct | SetQuantifier::All) => {
                ("EXCEPT", "EXCEPT")
            }
            _ => return Err(Fault::unsupported(format!("{op} {quantifier}"))),
        };
        let left = self.body(left, outer, &[], None)?;
        let right = self.body(right, outer, &[], None)?;
        let (left_columns, right_columns) = (left.columns(), right.columns());
        if left_columns.len() != right_columns.len() {
            return Err(Fault::new(
                "42601",
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let _ = expected;
        let mut wanted = Vec::with_capacity(left_columns.len());
        for (left, right) in left_columns.iter().zip(&right_columns) {
            wanted.push(common_type(&[left.kind.oid, right.kind.oid], name)?);
        }
        let left = self.converted(left, &wanted)?;
        let right = self.converted(right, &wanted)?;
        let distinct = operator != "UNION ALL";
        if distinct && let Some(unordered) = wanted.iter().find(|oid| !types::is_ordered(**oid)) {
            return Err(types::without_operator(*unordered, "equality"));
        }
        // SQLite groups set operations from the left, whatever they are: what stands right is put into a SELECT of its own.
        let right = match right {
            set @ Body::Set { .. } => {
                let columns = set.columns();
                self.wrapped(&render(&set), &columns)
            }
            leaf => leaf,
        };
        let (left_kinds, right_kinds) = (left.columns(), right.columns());
        let columns: Vec<ResultColumn> = left_columns
            .iter()
            .zip(left_kinds.iter().zip(&right_kinds))
            .zip(&wanted)
            .map(|((named, (left, right)), wanted)| ResultColumn {
                name: named.name.clone(),
                kind: TypeName {
                    oid: *wanted,
                    typmod: if left.kind.typmod == right.kind.typmod {
                        left.kind.typmod
                    } else {
                        -1
                    },
                },
                not_null: left.not_null && right.not_null,
                origin: None,
            })
            .collect();
        if operator == "UNION" && wanted.iter().any(|oid| types::equals_may_look_different(*oid)) {
            // Of rows that are equal PostgreSQL shows the first, as SQLite's DISTINCT does; its UNION shows the last.
            let all = format!("{} UNION ALL {}", render(&left), render(&right));
            let mut whole = self.wrapped(&all, &columns);
            if let Body::Leaf(leaf) = &mut whole {
                leaf.distinct = true;
            }
            let sql = render(&whole);
            return Ok(Body::Set { sql, columns });
        }
        let (left, right) = (render_compared(&left, distinct), render_compared(&right, distinct));
        let sql = if distinct && quantifier == SetQuantifier::All {
            // Equal rows, numbered, are told apart: so each meets one of the other side. What is left of them looks like their first.
            let names: Vec<String> = (1..=columns.len()).map(|place| format!("\"c{place}\"")).collect();
            let firsts: Vec<String> = names
                .iter()
                .zip(&wanted)
                .map(|(name, oid)| types::compared(&format!("first_value({name}) OVER equal"), *oid))
                .zip(&names)
                .map(|(first, name)| format!("{first} AS {name}"))
                .collect();
            let (names, firsts) = (names.join(", "), firsts.join(", "));
            let numbered = |rows: &str| {
                format!("SELECT {firsts}, row_number() OVER equal FROM ({rows}) WINDOW equal AS (PARTITION BY {names})")
            };
            format!(
                "SELECT {names} FROM ({} {operator} {})",
                numbered(&left),
                numbered(&right)
            )
        } else {
            format!("{left} {operator} {right}")
        };
        Ok(Body::Set { sql, columns })
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

    fn select(&mut self, select: &Select, outer: Option<&Scope<'_>>, order: &[OrderByExpr]) -> Result<Leaf> {
        refuse_foreign_clauses(select)?;
        let mut scope = Scope::new(outer);
        let mut rest = String::new();
        let from = self.from(&select.from, &mut scope)?;
        if !from.is_empty() {
            rest = format!(" FROM {from}");
        }
        if let Some(selection) = &select.selection {
            scope.no_aggregates.set(Some("WHERE"));
            scope.no_windows.set(Some("WHERE"));
            let condition = self.filter_condition(selection, &scope, "WHERE")?;
            rest.push_str(&format!(" WHERE {}", condition.sql));
        }
        for definition in &select.named_window {
            let spec = match &definition.1 {
                sqlparser::ast::NamedWindowExpr::WindowSpec(spec) => spec.clone(),
                sqlparser::ast::NamedWindowExpr::NamedWindow(_) => {
                    return Err(Fault::unsupported("a window that is another one"));
                }
            };
            scope.windows.push((folded(&definition.0), spec));
        }
        scope.no_windows.set(None);
        self.group(select, order, &mut scope, &mut rest)?;
        let mut items = self.select_items(&select.projection, &scope)?;
        if let Some(having) = &select.having {
            scope.no_windows.set(Some("HAVING"));
            let condition = self.condition(having, &scope, "HAVING")?;
            refuse_ungrouped(&condition)?;
            scope.no_windows.set(None);
            rest.push_str(&format!(" HAVING {}", condition.sql));
            // HAVING alone makes one group of all rows, which SQLite knows by an aggregate in the list.
            let ungrouped = scope.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
            if let (true, Some(first)) = (ungrouped, items.first_mut()) {
                if first.scalar.oid == oid::UNKNOWN {
                    first.scalar = self.convert_type(first.scalar.clone(), oid::TEXT, Context::Implicit)?;
                }
                first.scalar.form = Form::Any;
                first.scalar.sql = format!("CASE WHEN count(*) >= 0 THEN {} END", first.scalar.sql);
            }
        }
        let mut leaf = Leaf {
            distinct: matches!(select.distinct, Some(Distinct::Distinct)),
            items,
            rest,
            order: None,
            first_of: None,
        };
        if leaf.distinct
            && let Some(item) = leaf.items.iter().find(|item| !types::is_ordered(item.scalar.oid))
        {
            return Err(types::without_operator(item.scalar.oid, "equality"));
        }
        let keys = self.select_order(&mut leaf, order, &scope)?;
        if let Some(Distinct::On(on)) = &select.distinct {
            self.distinct_on(&mut leaf, on, &keys, &scope)?;
        } else if !keys.is_empty() {
            let keys: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
            leaf.order = Some(keys.join(", "));
        }
        Ok(leaf)
    }

    /// GROUP BY, and what follows from it.
    fn group(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        scope: &mut Scope<'_>,
        rest: &mut String,
    ) -> Result<()> {
        let keys = match &select.group_by {
            GroupByExpr::Expressions(keys, modifiers) if modifiers.is_empty() => keys.as_slice(),
            _ => return Err(Fault::unsupported("GROUP BY ALL, ROLLUP, CUBE and GROUPING SETS")),
        };
        scope.no_aggregates.set(Some("GROUP BY"));
        let mut texts = Vec::new();
        let mut grouping = Grouping::default();
        for key in keys {
            if matches!(unnested(key), Expr::Tuple(items) if items.is_empty()) {
                continue;
            }
            let before = scope.no_windows.replace(Some("GROUP BY"));
            let scalar = self.group_key(key, select, scope);
            scope.no_windows.set(before);
            let scalar = scalar?;
            let scalar = self.or_text(scalar)?;
            if !types::is_ordered(scalar.oid) {
                return Err(types::without_operator(scalar.oid, "equality"));
            }
            if !matches!(scalar.form, Form::Constant(_)) {
                texts.push(scalar.compared());
            }
            grouping.keys.push(scalar.sql);
        }
        scope.no_aggregates.set(None);
        if !keys.is_empty() {
            if texts.is_empty() {
                // One group, but none if there are no rows.
                rest.push_str(" GROUP BY NULL");
            } else {
                rest.push_str(&format!(" GROUP BY {}", texts.join(", ")));
            }
        } else if select.having.is_none() && !uses_aggregates(select, order) {
            return Ok(());
        }
        for (place, relation) in scope.relations.iter().enumerate() {
            if !relation.key.is_empty()
                && relation
                    .key
                    .iter()
                    .all(|column| grouping.keys.contains(&relation.columns[*column].sql))
            {
                grouping.determined.push(place);
            }
        }
        scope.grouping = Some(grouping);
        Ok(())
    }

    /// A key of GROUP BY: a column of the tables first, then a name or number of the select list, else an expression.
    fn group_key(&mut self, key: &Expr, select: &Select, scope: &Scope<'_>) -> Result<Scalar> {
        let item = |place: usize| match select.projection.get(place) {
            Some(SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) => {
                Some(expression)
            }
            _ => None,
        };
        if let Expr::Value(value) = unnested(key)
            && let sqlparser::ast::Value::Number(digits, _) = &value.value
            && let Ok(number) = digits.parse::<usize>()
        {
            let starred = select
                .projection
                .iter()
                .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
            if starred {
                return Err(Fault::unsupported("GROUP BY a number beside *"));
            }
            let expression = number
                .checked_sub(1)
                .and_then(item)
                .ok_or_else(|| Fault::new("42P10", format!("GROUP BY position {number} is not in select list")))?;
            return self.expression(expression, scope);
        }
        if let Expr::Identifier(name) = key {
            if let Some(scalar) = scope.column(std::slice::from_ref(name))? {
                return Ok(scalar);
            }
            for item in &select.projection {
                if let SelectItem::ExprWithAlias { expr, alias } = item
                    && folded(alias) == folded(name)
                {
                    return self.expression(expr, scope);
                }
            }
        }
        self.expression(key, scope)
    }

    /// A select list, with `*` written out.
    pub(super) fn select_items(&mut self, projection: &[SelectItem], scope: &Scope<'_>) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expression) => items.push(Item {
                    name: column_name(expression),
                    scalar: self.expression(expression, scope)?,
                    origin: None,
                }),
                SelectItem::ExprWithAlias { expr, alias } => items.push(Item {
                    name: folded(alias),
                    scalar: self.expression(expr, scope)?,
                    origin: None,
                }),
                SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                    if scope.star_is_unsettled {
                        return Err(
                            Fault::unsupported("* over a join with USING or NATURAL beside other tables")
                                .with_hint("Name the columns."),
                        );
                    }
                    let all = scope.starred(None).unwrap_or_default();
                    if scope.relations.is_empty() {
                        return Err(Fault::new("42601", "SELECT * with no tables specified is not valid"));
                    }
                    self.record_star(options, &all);
                    items.extend(all.into_iter().map(Item::from));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if options.to_string().is_empty() =>
                {
                    let (schema, table) = super::namespace::written(name)?;
                    let all = scope.starred(Some((schema.as_deref(), &table))).ok_or_else(|| {
                        Fault::new("42P01", format!("missing FROM-clause entry for table \"{table}\""))
                    })?;
                    self.record_star(options, &all);
                    items.extend(all.into_iter().map(Item::from));
                }
                other => return Err(Fault::unsupported(format!("{other} in a select list"))),
            }
        }
        for item in &mut items {
            refuse_ungrouped(&item.scalar)?;
            item.origin = scope.origin(&item.scalar.sql);
        }
        if items.len() > 1664 {
            return Err(Fault::new("54011", "target lists can have at most 1664 entries"));
        }
        Ok(items)
    }

    /// The keys of ORDER BY, each with the text of its expression.
    fn select_order(
        &mut self,
        leaf: &mut Leaf,
        order: &[OrderByExpr],
        scope: &Scope<'_>,
    ) -> Result<Vec<(String, String)>> {
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            if key.with_fill.is_some() {
                return Err(Fault::unsupported("WITH FILL"));
            }
            let place = match unnested(&key.expr) {
                Expr::Identifier(name) => {
                    let name = folded(name);
                    let mut named = leaf.items.iter().enumerate().filter(|(_, item)| item.name == name);
                    let first = named.next().map(|(place, item)| (place, item.scalar.sql.clone()));
                    if let Some((_, sql)) = &first
                        && named.any(|(_, other)| other.scalar.sql != *sql)
                    {
                        return Err(Fault::new("42702", format!("ORDER BY \"{name}\" is ambiguous")));
                    }
                    first.map(|(place, _)| place)
                }
                Expr::Value(value) => match &value.value {
                    sqlparser::ast::Value::Number(digits, _) => {
                        let number: usize = digits
                            .parse()
                            .map_err(|_| Fault::new("42601", "non-integer constant in ORDER BY"))?;
                        if number == 0 || number > leaf.items.len() {
                            return Err(Fault::new(
                                "42P10",
                                format!("ORDER BY position {number} is not in select list"),
                            ));
                        }
                        Some(number - 1)
                    }
                    sqlparser::ast::Value::Placeholder(_) => None,
                    _ => return Err(Fault::new("42601", "non-integer constant in ORDER BY")),
                },
                _ => None,
            };
            let (scalar, text) = match place {
                Some(place) => {
                    let item = &mut leaf.items[place];
                    if item.scalar.oid == oid::UNKNOWN {
                        item.scalar = self.convert_type(item.scalar.clone(), oid::TEXT, Context::Implicit)?;
                    }
                    let scalar = item.scalar.clone();
                    let text = match types::collation(scalar.oid) {
                        Some(collation) => format!("{} COLLATE \"{collation}\"", place + 1),
                        None if scalar.has_collation() => format!("{} COLLATE BINARY", place + 1),
                        None => (place + 1).to_string(),
                    };
                    (scalar, text)
                }
                None => {
                    let scalar = self.expression(&key.expr, scope)?;
                    refuse_ungrouped(&scalar)?;
                    let scalar = self.or_text(scalar)?;
                    if leaf.distinct && !leaf.items.iter().any(|item| item.scalar.sql == scalar.sql) {
                        return Err(Fault::new(
                            "42P10",
                            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                        ));
                    }
                    if matches!(scalar.form, Form::Constant(_)) {
                        continue;
                    }
                    let text = scalar.compared();
                    (scalar, text)
                }
            };
            let written = order_key(&scalar, text, &key.options)?;
            keys.push((written, scalar.sql));
        }
        Ok(keys)
    }

    fn distinct_on(
        &mut self,
        leaf: &mut Leaf,
        on: &[Expr],
        keys: &[(String, String)],
        scope: &Scope<'_>,
    ) -> Result<()> {
        let mut on_keys = Vec::new();
        for expression in on {
            let place = match unnested(expression) {
                Expr::Value(value) => match &value.value {
                    sqlparser::ast::Value::Number(digits, _) => {
                        digits.parse::<usize>().ok().and_then(|n| n.checked_sub(1))
                    }
                    _ => None,
                },
                Expr::Identifier(name) => {
                    let name = folded(name);
                    leaf.items.iter().position(|item| item.name == name)
                }
                _ => None,
            };
            let scalar = match place.and_then(|place| leaf.items.get(place)) {
                Some(item) => item.scalar.clone(),
                None => self.expression(expression, scope)?,
            };
            let scalar = self.or_text(scalar)?;
            if !types::is_ordered(scalar.oid) {
                return Err(Fault::unsupported(format!(
                    "DISTINCT ON a {}",
                    facts::display_name(scalar.oid)
                )));
            }
            on_keys.push(scalar);
        }
        let leading = keys.iter().take(on_keys.len());
        if !leading
            .clone()
            .all(|(_, sql)| on_keys.iter().any(|key| key.sql == *sql))
        {
            return Err(Fault::new(
                "42P10",
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            ));
        }
        // A key given by its place in the list means nothing inside a window: its expression does.
        let order: Vec<(String, String)> = keys
            .iter()
            .map(|(written, sql)| {
                let direction = written.find(" ASC").or_else(|| written.find(" DESC"));
                let suffix = direction.map_or("", |at| &written[at..]);
                let collation = leaf
                    .items
                    .iter()
                    .map(|item| &item.scalar)
                    .chain(&on_keys)
                    .find(|scalar| scalar.sql == *sql)
                    .and_then(|scalar| types::collation(scalar.oid));
                let text = match collation {
                    Some(collation) => format!("{sql} COLLATE \"{collation}\""),
                    None => sql.clone(),
                };
                (format!("{text}{suffix}"), sql.clone())
            })
            .collect();
        leaf.first_of = Some((on_keys.iter().map(Scalar::compared).collect(), order));
        Ok(())
    }
}

/// One key of an order: PostgreSQL puts NULL last, or first where the order descends.
#[allow(clippy::needless_pass_by_value, reason = "the text is made for this key")]
pub(super) fn order_key(scalar: &Scalar, text: String, options: &OrderByOptions) -> Result<String> {
    let descending = match &options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        #[allow(unreachable_patterns, reason = "the grammar may learn other orders")]
        Some(_) => return Err(Fault::unsupported("ORDER BY … USING")),
    };
    if !types::is_ordered(scalar.oid) {
        return Err(types::without_operator(scalar.oid, "ordering"));
    }
    let nulls_first = options.nulls_first.unwrap_or(descending);
    let direction = if descending { " DESC" } else { " ASC" };
    // Said only where it can matter, so that an index can give the order.
    let nulls = match (scalar.not_null, nulls_first, descending) {
        (true, ..) | (false, true, false) | (false, false, true) => "",
        (false, true, true) => " NULLS FIRST",
        (false, false, false) => " NULLS LAST",
    };
    Ok(format!("{text}{direction}{nulls}"))
}

/// A key of an order over a set operation: a column of the result, by name or number.
fn output_key(key: &OrderByExpr, columns: &[ResultColumn]) -> Result<String> {
    let place = match unnested(&key.expr) {
        Expr::Identifier(name) => columns.iter().position(|column| column.name == folded(name)),
        Expr::Value(value) => match &value.value {
            sqlparser::ast::Value::Number(digits, _) => digits
                .parse::<usize>()
                .ok()
                .filter(|number| (1..=columns.len()).contains(number))
                .map(|number| number - 1),
            _ => None,
        },
        _ => None,
    };
    let Some(place) = place else {
        if let Expr::Identifier(name) = unnested(&key.expr) {
            return Err(Fault::new("42703", format!("column \"{}\" does not exist", folded(name))).at(name));
        }
        return Err(Fault::new("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
            .with_detail("Only result column names can be used, not expressions or functions."));
    };
    let column = &columns[place];
    let scalar = Scalar {
        not_null: column.not_null,
        ..Scalar::new("", column.kind.oid)
    };
    let text = match types::collation(column.kind.oid) {
        Some(collation) => format!("{} COLLATE \"{collation}\"", place + 1),
        None => format!("{} COLLATE BINARY", place + 1),
    };
    order_key(&scalar, text, &key.options)
}

fn render(body: &Body) -> String {
    match body {
        Body::Leaf(leaf) => render_leaf(leaf, leaf.distinct),
        Body::Set { sql, .. } => sql.clone(),
    }
}

/// As a side of a set operation, whose rows may be told apart.
fn render_compared(body: &Body, distinct: bool) -> String {
    match body {
        Body::Leaf(leaf) => render_leaf(leaf, distinct || leaf.distinct),
        Body::Set { sql, .. } => sql.clone(),
    }
}

fn render_leaf(leaf: &Leaf, compared: bool) -> String {
    let mut list = Vec::with_capacity(leaf.items.len());
    for (place, item) in leaf.items.iter().enumerate() {
        // A column of a subquery takes its collation from what it is made of.
        let text = if compared || item.scalar.has_collation() {
            item.scalar.compared()
        } else {
            item.scalar.sql.clone()
        };
        list.push(format!("{text} AS \"c{}\"", place + 1));
    }
    if list.is_empty() {
        // PostgreSQL has rows without columns; SQLite needs one, which nobody is shown.
        list.push("NULL AS \"c0\"".to_owned());
    }
    if let Some((on, order)) = &leaf.first_of {
        let keys: Vec<&str> = order.iter().map(|(key, _)| key.as_str()).collect();
        let window_order = if keys.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", keys.join(", "))
        };
        let row = format!(
            "row_number() OVER (PARTITION BY {}{window_order}) AS \"row\"",
            on.join(", ")
        );
        let place = if keys.is_empty() {
            format!("row_number() OVER (ORDER BY {}) AS \"place\"", on.join(", "))
        } else {
            format!("row_number() OVER (ORDER BY {}) AS \"place\"", keys.join(", "))
        };
        let outer: Vec<String> = (1..=leaf.items.len()).map(|number| format!("\"c{number}\"")).collect();
        return format!(
            "SELECT {} FROM (SELECT {}, {row}, {place}{}) WHERE \"row\" = 1 ORDER BY \"place\"",
            outer.join(", "),
            list.join(", "),
            leaf.rest
        );
    }
    let distinct = if leaf.distinct { "DISTINCT " } else { "" };
    format!("SELECT {distinct}{}{}", list.join(", "), leaf.rest)
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

/// The parts of a recursive query: its first term, whether rows are to differ, and the term that goes on.
fn recursive_parts<'a>(query: &'a Query, name: &str) -> Option<(&'a SetExpr, bool, &'a SetExpr)> {
    if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
        return None;
    }
    let SetExpr::SetOperation {
        left,
        op: SetOperator::Union,
        set_quantifier,
        right,
    } = &*query.body
    else {
        return None;
    };
    let mentions = format!("{right}")
        .to_ascii_lowercase()
        .contains(&name.to_ascii_lowercase());
    mentions.then_some((left, !matches!(set_quantifier, SetQuantifier::All), right))
}

pub(super) fn rename(columns: &mut [ResultColumn], names: &[String], table: &str) -> Result<()> {
    if names.len() > columns.len() {
        return Err(Fault::new(
            "42P10",
            format!(
                "table \"{table}\" has {} columns available but {} columns specified",
                columns.len(),
                names.len()
            ),
        ));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    Ok(())
}

/// A column outside of GROUP BY and aggregates, where the query is grouped.
pub(super) fn refuse_ungrouped(scalar: &Scalar) -> Result<()> {
    match &scalar.ungrouped {
        None => Ok(()),
        Some(ungrouped) => {
            let mut fault = Fault::new(
                "42803",
                format!(
                    "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                    ungrouped.name
                ),
            );
            fault.location = ungrouped.location;
            Err(fault)
        }
    }
}

fn refuse_foreign_clauses(select: &Select) -> Result<()> {
    let foreign = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.value_table_mode.is_some(), "SELECT AS VALUE"),
        (select.exclude.is_some(), "EXCLUDE"),
        (select.select_modifiers.is_some(), "a modifier of SELECT"),
    ];
    match foreign.iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(Fault::unsupported(what)),
        None => Ok(()),
    }
}

/// Whether aggregates of this query's own stand in its list, or its order.
fn uses_aggregates(select: &Select, order: &[OrderByExpr]) -> bool {
    use std::ops::ControlFlow;

    use crate::sql::walk::{Look, walk};

    struct Finder {
        depth: usize,
    }
    impl Look for Finder {
        fn query(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn query_end(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }

        fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
            if self.depth == 0
                && let Expr::Function(function) = expression
                && function.over.is_none()
                && let Ok(name) = types::object_name(&function.name)
                && facts::functions(&name).first().is_some_and(|fact| fact.kind == b'a')
            {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    let mut finder = Finder { depth: 0 };
    walk(&select.projection, &mut finder).is_break() || order.iter().any(|key| walk(key, &mut finder).is_break())
}

/// The name of a relation as SQLite is given it.
pub(super) fn relation_name(number: usize) -> String {
    identifier(&format!("r{number}"))
}
