//! ORDER BY and DISTINCT ON.
//!
//! Promises: PostgreSQL's order, with NULL last where it ascends and first where it descends; of each group DISTINCT ON keeps the first row in it.

use std::borrow::Cow;

use sqlparser::ast::{Expr, OrderByExpr, OrderByOptions, OrderBySort, UnaryOperator, Value};

use super::body::Leaf;
use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::plan::ResultColumn;
use super::scalar::{Form, Scalar, refuse_ungrouped};
use super::scope::Scope;
use super::syntax::{folded, unnested};
use super::types;
use crate::sql::facts::{self, Context, oid};

/// A key of ORDER BY.
pub(super) struct OrderKey {
    /// As it stands behind the list, where it may be a place in it.
    pub(super) written: String,
    /// As it stands in a window, where a place means nothing.
    spelled_out: String,
    /// Its expression.
    sql: String,
    /// It has a window of its own.
    window: bool,
}

impl Compiler<'_> {
    /// The keys of ORDER BY.
    pub(super) fn select_order(
        &mut self,
        leaf: &mut Leaf,
        order: &[OrderByExpr],
        scope: &Scope<'_>,
    ) -> Result<Vec<OrderKey>> {
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
                constant => position(constant, "ORDER BY", leaf.items.len())?,
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
                    // SQLite might fold it to a number, and take that for a column's place. It orders no rows.
                    if is_the_same_for_all(&scalar) {
                        continue;
                    }
                    (scalar, text)
                }
            };
            keys.push(OrderKey {
                written: order_key(&scalar, text, &key.options)?,
                spelled_out: order_key(&scalar, scalar.compared(), &key.options)?,
                sql: scalar.sql,
                window: scalar.window,
            });
        }
        // PostgreSQL draws behind the sort, and only for rows that are given; SQLite before it.
        let draws = |sql: &str| sql.contains("\"forebay_nextval\"") || sql.contains("\"forebay_setval\"");
        if !keys.is_empty() && leaf.items.iter().any(|item| draws(&item.scalar.sql)) {
            return Err(
                Fault::unsupported("nextval or setval in the list of a query with ORDER BY")
                    .with_hint("Order in a subquery: SELECT nextval(…), … FROM (SELECT … ORDER BY …) AS ordered."),
            );
        }
        Ok(keys)
    }

    pub(super) fn distinct_on(
        &mut self,
        leaf: &mut Leaf,
        on: &[Expr],
        keys: Vec<OrderKey>,
        scope: &Scope<'_>,
    ) -> Result<()> {
        let mut on_keys = Vec::new();
        for expression in on {
            let place = match unnested(expression) {
                Expr::Identifier(name) => {
                    let name = folded(name);
                    leaf.items.iter().position(|item| item.name == name)
                }
                constant => position(constant, "DISTINCT ON", leaf.items.len())?,
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
        // What is the same for all rows orders none, and is no key.
        let is_key = |key: &&Scalar| !matches!(key.form, Form::Constant(_)) && !is_the_same_for_all(key);
        let mut leading = keys.iter().take(on_keys.iter().filter(is_key).count());
        if !leading.all(|leading| on_keys.iter().any(|key| key.sql == leading.sql)) {
            return Err(Fault::new(
                "42P10",
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            ));
        }
        if keys.iter().any(|key| key.window) || on_keys.iter().any(|key| key.window) {
            return Err(Fault::unsupported("DISTINCT ON by a window function")
                .with_hint("Compute it in a subquery: SELECT DISTINCT ON … FROM (SELECT …) AS computed ORDER BY …."));
        }
        let order = keys.into_iter().map(|key| key.spelled_out).collect();
        leaf.first_of = Some((on_keys.iter().map(Scalar::compared).collect(), order));
        Ok(())
    }
}

/// The place in a select list of `count` items that a constant in a clause stands for; nothing for what is no constant.
pub(super) fn position(expression: &Expr, clause: &str, count: usize) -> Result<Option<usize>> {
    let Some(constant) = constant(expression) else {
        return Ok(None);
    };
    let Ok(number) = constant.parse::<i32>() else {
        return Err(Fault::new("42601", format!("non-integer constant in {clause}")));
    };
    usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1))
        .filter(|place| *place < count)
        .map(Some)
        .ok_or_else(|| {
            let message = format!("{clause} position {number} is not in select list");
            Fault::new("42P10", message)
        })
}

/// A literal as it is written, with the minus before it: to PostgreSQL's grammar they are one.
fn constant(expression: &Expr) -> Option<Cow<'_, str>> {
    match unnested(expression) {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(_) => None,
            Value::Number(digits, _) => Some(digits.into()),
            _ => Some("".into()),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let number = constant(expr).filter(|number| !number.is_empty())?;
            Some(match number.strip_prefix('-') {
                Some(number) => number.to_owned().into(),
                None => format!("-{number}").into(),
            })
        }
        _ => None,
    }
}

/// Whether it is made of constants and operators alone. Whatever has a name, a column or a function, has it in quotes.
fn is_the_same_for_all(scalar: &Scalar) -> bool {
    !scalar.volatile && !scalar.aggregate && !scalar.window && !scalar.sql.contains('"')
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
pub(super) fn output_key(key: &OrderByExpr, columns: &[ResultColumn]) -> Result<String> {
    let place = match unnested(&key.expr) {
        Expr::Identifier(name) => columns.iter().position(|column| column.name == folded(name)),
        constant => position(constant, "ORDER BY", columns.len())?,
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
