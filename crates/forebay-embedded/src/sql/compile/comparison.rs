//! Comparisons that are not plain operators: IS, BETWEEN, OVERLAPS, and comparisons of rows.
//!
//! Promises: PostgreSQL's three-valued answers. What PostgreSQL's planner leaves out, because a constant decides, does not fail here either.

use sqlparser::ast::{Expr, Value};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scalar::{Scalar, decides, may_be_left_out};
use super::scope::Scope;
use super::sqlite_text::has_column;
use super::syntax::unnested;
use super::{resolve, types};
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    pub(super) fn is_null(&mut self, inner: &Expr, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
        if let Expr::Tuple(items) = unnested(inner) {
            // A row is null if all of it is, and not null if none of it is.
            let mut parts = Vec::new();
            for item in items {
                let scalar = self.is_null(item, operator, scope)?;
                parts.push(scalar);
            }
            let sql: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
            return Ok(Scalar::truth(format!("({})", sql.join(" AND "))).with_parts(&parts));
        }
        let scalar = self.expression(inner, scope)?;
        let scalar = beside_null(self.or_text(scalar)?);
        Ok(Scalar {
            not_null: true,
            ..Scalar::truth(format!("({} {operator})", scalar.sql))
        }
        .with_parts([&scalar]))
    }

    pub(super) fn is_truth(&mut self, inner: &Expr, clause: &str, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
        let scalar = beside_null(self.condition(inner, scope, clause)?);
        Ok(Scalar {
            not_null: true,
            ..Scalar::truth(format!("({} {operator})", scalar.sql))
        }
        .with_parts([&scalar]))
    }

    pub(super) fn distinct(&mut self, left: &Expr, right: &Expr, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
        if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (unnested(left), unnested(right)) {
            same_length(lefts, rights)?;
            let mut parts = Vec::new();
            for (left, right) in lefts.iter().zip(rights) {
                parts.push(self.distinct(left, right, operator, scope)?);
            }
            let sql: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
            let joiner = if operator == "IS" { " AND " } else { " OR " };
            return Ok(Scalar::truth(format!("({})", sql.join(joiner))).with_parts(&parts));
        }
        // PostgreSQL's parser makes another question of it, which needs no equality.
        let null_test = if operator == "IS" { "IS NULL" } else { "IS NOT NULL" };
        match (is_null_literal(left), is_null_literal(right)) {
            (_, true) => return self.is_null(left, null_test, scope),
            (true, _) => return self.is_null(right, null_test, scope),
            _ => {}
        }
        let left = self.expression(left, scope)?;
        let right = self.expression(right, scope)?;
        let (left, right) = self.comparable("=", left, right)?;
        let (left, right) = (beside_null(left), beside_null(right));
        Ok(Scalar {
            not_null: true,
            ..Scalar::truth(format!("({} {operator} {})", left.compared(), right.compared()))
        }
        .with_parts([&left, &right]))
    }

    /// Both sides of an equality, converted so that SQLite's own comparison decides it.
    pub(super) fn comparable(&mut self, name: &str, left: Scalar, right: Scalar) -> Result<(Scalar, Scalar)> {
        let operator = resolve::operator(name, Some(left.oid), right.oid)?;
        let polymorphism = resolve::polymorphism(&[left.oid, right.oid], &[operator.left, operator.right]);
        let actual = |declared: Oid| {
            polymorphism
                .and_then(|found| found.actual(declared))
                .unwrap_or(declared)
        };
        let (left_type, right_type) = (actual(operator.left), actual(operator.right));
        let left = self.convert_type(left, left_type, Context::Implicit)?;
        let right = self.convert_type(right, right_type, Context::Implicit)?;
        if facts::category(left_type) == b'D' && left_type != right_type {
            // date and timestamp, timestamp and timestamptz: one form for both.
            let common = if left_type == oid::TIMESTAMPTZ || right_type == oid::TIMESTAMPTZ {
                oid::TIMESTAMPTZ
            } else {
                oid::TIMESTAMP
            };
            let left = self.convert_type(left, common, Context::Implicit)?;
            let right = self.convert_type(right, common, Context::Implicit)?;
            return Ok((left, right));
        }
        if !types::is_ordered(left.oid) || !types::is_ordered(right.oid) {
            return Err(Fault::unsupported(format!(
                "a comparison of {} here",
                facts::display_name(left.oid)
            )));
        }
        Ok((left, right))
    }

    pub(super) fn between(
        &mut self,
        value: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let value = self.expression(value, scope)?;
        let low = self.expression(low, scope)?;
        let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
        let lower = self.binary(first, value.clone(), low)?;
        let is_decided = decides(&lower, negated);
        let upper = self.leniently(is_decided, |compiler| {
            let high = compiler.expression(high, scope)?;
            compiler.binary(second, value, high)
        })?;
        if is_decided && may_be_left_out([&upper]) {
            return Ok(lower);
        }
        let joiner = if negated { "OR" } else { "AND" };
        Ok(Scalar::truth(format!("({} {joiner} {})", lower.sql, upper.sql)).with_parts([&lower, &upper]))
    }

    /// `(a, b) < (c, d)`, column by column.
    pub(super) fn rows(&mut self, name: &str, lefts: &[Expr], rights: &[Expr], scope: &Scope<'_>) -> Result<Scalar> {
        same_length(lefts, rights)?;
        let pairs = lefts.iter().zip(rights);
        let mut parts = Vec::with_capacity(lefts.len());
        match name {
            "=" | "<>" => {
                let all = name == "=";
                for (left, right) in pairs {
                    let is_decided = parts.iter().any(|part| decides(part, !all));
                    parts.push(self.leniently(is_decided, |compiler| {
                        let (left, right) = (compiler.expression(left, scope)?, compiler.expression(right, scope)?);
                        compiler.binary(name, left, right)
                    })?);
                }
                if let Some(decisive) = parts.iter().find(|part| decides(part, !all))
                    && may_be_left_out(&parts)
                {
                    return Ok(decisive.clone());
                }
                let joiner = if all { " AND " } else { " OR " };
                let sql: Vec<&str> = parts.iter().map(|part| part.sql.as_str()).collect();
                Ok(Scalar::truth(format!("({})", sql.join(joiner))).with_parts(&parts))
            }
            "<" | "<=" | ">" | ">=" => {
                let strict = &name[..1];
                let last = pairs.len() - 1;
                let mut sql = String::new();
                for (index, (left, right)) in pairs.enumerate() {
                    let (left, right) = (self.expression(left, scope)?, self.expression(right, scope)?);
                    if index == last {
                        let part = self.binary(name, left, right)?;
                        sql.push_str(&part.sql);
                        parts.push(part);
                    } else {
                        let less = self.binary(strict, left.clone(), right.clone())?;
                        let equal = self.binary("=", left, right)?;
                        sql.push_str(&format!("({} OR ({} AND ", less.sql, equal.sql));
                        parts.push(less);
                        parts.push(equal);
                    }
                }
                sql.push_str(&"))".repeat(last));
                Ok(Scalar::truth(format!("({sql})")).with_parts(&parts))
            }
            _ => Err(Fault::unsupported(format!("the operator {name} between rows"))),
        }
    }

    pub(super) fn overlaps(&mut self, left: &Expr, right: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        let (Expr::Tuple(left), Expr::Tuple(right)) = (unnested(left), unnested(right)) else {
            return Err(Fault::new(
                "42601",
                "wrong number of parameters on the sides of OVERLAPS expression",
            ));
        };
        let mut arguments = Vec::new();
        for expression in left.iter().chain(right) {
            arguments.push(self.expression(expression, scope)?);
        }
        self.call("overlaps", arguments)
    }
}

/// What is known to be NULL once a parameter is, so that nothing else in it is evaluated then: PostgreSQL's planner sees to that.
fn beside_null(scalar: Scalar) -> Scalar {
    if scalar.null_with.is_empty() || !has_column(&scalar.sql) || !scalar.sql.contains("\"pg:") {
        return scalar;
    }
    let nulls: Vec<String> = scalar
        .null_with
        .iter()
        .map(|number| format!("?{number} IS NULL"))
        .collect();
    Scalar {
        sql: format!("(CASE WHEN {} THEN NULL ELSE {} END)", nulls.join(" OR "), scalar.sql),
        ..scalar
    }
}

fn is_null_literal(expression: &Expr) -> bool {
    matches!(unnested(expression), Expr::Value(value) if value.value == Value::Null)
}

pub(super) fn same_length(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() == right.len() {
        Ok(())
    } else {
        Err(Fault::new("42601", "unequal number of entries in row expressions"))
    }
}
