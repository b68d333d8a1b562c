//! Operators: between two expressions, and before one.
//!
//! Promises: the operator that PostgreSQL would choose by the types of its operands ([`resolve`]), or PostgreSQL's error.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::resolve;
use super::scalar::{Form, Scalar};
use super::scope::Scope;
use super::syntax::unnested;
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    pub(super) fn binary_expression(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let name = if *op == BinaryOperator::And { "AND" } else { "OR" };
                // A chain leans to the left: walked without recursion, so that a long one is no deep one.
                let mut parts = vec![right];
                let mut rest = left;
                while let Expr::BinaryOp { left, op: next, right } = rest
                    && next == op
                {
                    parts.push(right);
                    rest = left;
                }
                parts.push(rest);
                let mut conditions = Vec::with_capacity(parts.len());
                for part in parts.into_iter().rev() {
                    conditions.push(self.leniently(true, |compiler| compiler.condition(part, scope, name))?);
                }
                let mut sql =
                    String::with_capacity(conditions.iter().map(|part| part.sql.len() + 5).sum::<usize>() + 2);
                balanced(&conditions, name, &mut sql);
                let not_null = conditions.iter().all(|part| part.not_null);
                Ok(Scalar {
                    not_null,
                    ..Scalar::truth(sql)
                }
                .with_parts(&conditions))
            }
            BinaryOperator::Overlaps => self.overlaps(left, right, scope),
            BinaryOperator::Xor
            | BinaryOperator::Spaceship
            | BinaryOperator::DuckIntegerDivide
            | BinaryOperator::MyIntegerDivide
            | BinaryOperator::Match
            | BinaryOperator::Regexp
            | BinaryOperator::Glob
            | BinaryOperator::Assignment => Err(Fault::new("42601", format!("syntax error at or near \"{op}\""))),
            BinaryOperator::PGCustomBinaryOperator(parts) => {
                let name = parts.last().map_or("", String::as_str);
                let (left, right) = (self.expression(left, scope)?, self.expression(right, scope)?);
                self.binary(name, left, right)
            }
            _ => {
                let name = op.to_string();
                match (unnested(left), unnested(right)) {
                    (Expr::Tuple(lefts), Expr::Tuple(rights)) => self.rows(&name, lefts, rights, scope),
                    (Expr::Tuple(_), Expr::Subquery(_)) => {
                        Err(Fault::unsupported("a comparison of a row with a subquery"))
                    }
                    _ => {
                        let (left, right) = (self.expression(left, scope)?, self.expression(right, scope)?);
                        self.binary(&name, left, right)
                    }
                }
            }
        }
    }

    /// An operator between two expressions.
    pub(super) fn binary(&mut self, name: &str, left: Scalar, right: Scalar) -> Result<Scalar> {
        let name = if name == "!=" { "<>" } else { name };
        let (left, right) = (self.refreshed(left), self.refreshed(right));
        let operator = resolve::operator(name, Some(left.oid), right.oid)?;
        if operator.volatility != b'i' {
            self.zone_bound = true;
        }
        let given = [left.oid, right.oid];
        let polymorphism = resolve::polymorphism(&given, &[operator.left, operator.right]);
        let actual = |declared: Oid| {
            polymorphism
                .and_then(|found| found.actual(declared))
                .unwrap_or(declared)
        };
        let (left_type, right_type, result) = (actual(operator.left), actual(operator.right), actual(operator.result));
        match operator.symbol {
            "textanycat(text,anynonarray)" | "anytextcat(anynonarray,text)" => {
                let left = self.convert_type(left, oid::TEXT, Context::Explicit)?;
                let right = self.convert_type(right, oid::TEXT, Context::Explicit)?;
                return self.call_symbol("textcat", vec![left, right], oid::TEXT);
            }
            _ => {}
        }
        let left = self.convert_type(left, left_type, Context::Implicit)?;
        let right = self.convert_type(right, right_type, Context::Implicit)?;
        if (left.oid != left_type || right.oid != right_type)
            && (resolve::is_polymorphic(left_type) || resolve::is_polymorphic(right_type))
        {
            return Err(Fault::unsupported(format!(
                "the operator {} {name} {}",
                facts::display_name(given[0]),
                facts::display_name(given[1])
            )));
        }
        self.call_symbol(operator.symbol, vec![left, right], result)
            .map_err(|fault| {
                if fault.sqlstate == "0A000" && fault.message.starts_with("the function") {
                    Fault::unsupported(format!(
                        "the operator {} {name} {}",
                        facts::display_name(left_type),
                        facts::display_name(right_type)
                    ))
                } else {
                    fault
                }
            })
    }

    /// A parameter whose type has been found since the expression was compiled.
    fn refreshed(&self, scalar: Scalar) -> Scalar {
        match scalar.form {
            Form::Parameter(number) => match self.parameters[number - 1] {
                Some(known) => Scalar {
                    oid: known,
                    form: Form::Any,
                    ..scalar
                },
                None => scalar,
            },
            _ => scalar,
        }
    }

    pub(super) fn unary_expression(&mut self, op: UnaryOperator, inner: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        match op {
            UnaryOperator::Not => {
                let scalar = self.condition(inner, scope, "NOT")?;
                Ok(Scalar {
                    not_null: scalar.not_null,
                    ..Scalar::truth(format!("(NOT {})", scalar.sql))
                }
                .with_parts([&scalar]))
            }
            UnaryOperator::Minus | UnaryOperator::Plus => self.signed(op, inner, scope),
            UnaryOperator::BitwiseNot => self.prefix("~", inner, scope),
            UnaryOperator::PGAbs => self.prefix("@", inner, scope),
            UnaryOperator::PGSquareRoot => self.prefix("|/", inner, scope),
            UnaryOperator::PGCubeRoot => self.prefix("||/", inner, scope),
            other => Err(Fault::unsupported(format!("the operator {other}"))),
        }
    }

    /// A sign; one right before a number is part of the number.
    fn signed(&mut self, op: UnaryOperator, inner: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        let (mut sign, mut rest) = (op == UnaryOperator::Minus, unnested(inner));
        while let Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } = rest
            && op == UnaryOperator::Minus
        {
            sign = !sign;
            rest = unnested(expr);
        }
        if op == UnaryOperator::Minus
            && let Expr::Value(value) = rest
            && let Value::Number(digits, false) = &value.value
        {
            let minus = if sign { "-" } else { "" };
            return self.number(&format!("{minus}{digits}"));
        }
        self.prefix(if op == UnaryOperator::Minus { "-" } else { "+" }, inner, scope)
    }

    fn prefix(&mut self, name: &str, inner: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        let scalar = self.expression(inner, scope)?;
        let operator = resolve::operator(name, None, scalar.oid)?;
        let scalar = self.convert_type(scalar, operator.right, Context::Implicit)?;
        self.call_symbol(operator.symbol, vec![scalar], operator.result)
    }

    pub(super) fn like(
        &mut self,
        name: &str,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let text = self.expression(text, scope)?;
        let mut pattern = self.expression(pattern, scope)?;
        if let Some(escape) = escape {
            let escape = self.expression(escape, scope)?;
            pattern = self.call("like_escape", vec![pattern, escape])?;
        }
        self.binary(name, text, pattern)
    }

    pub(super) fn similar(
        &mut self,
        negated: bool,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let text = self.expression(text, scope)?;
        let mut arguments = vec![self.expression(pattern, scope)?];
        if let Some(escape) = escape {
            arguments.push(self.expression(escape, scope)?);
        }
        let pattern = self.call("similar_to_escape", arguments)?;
        self.binary(if negated { "!~" } else { "~" }, text, pattern)
    }
}

/// `a AND b AND c …` as a tree that is no deeper than it must be: SQLite bounds the depth.
fn balanced(parts: &[Scalar], operator: &str, out: &mut String) {
    match parts {
        [] => {}
        [only] => out.push_str(&only.sql),
        _ => {
            let (left, right) = parts.split_at(parts.len() / 2);
            out.push('(');
            balanced(left, operator, out);
            out.push(' ');
            out.push_str(operator);
            out.push(' ');
            balanced(right, operator, out);
            out.push(')');
        }
    }
}
