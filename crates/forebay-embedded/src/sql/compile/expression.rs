//! Expressions: from the syntax tree to SQLite's text with PostgreSQL's type.
//!
//! Contract: each construct means what it means to PostgreSQL, or is refused by name. Nothing is passed through that was not
//! understood.

use forebay_pg_values::{Kind, Owned, Type, text_form};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, Expr, Ident, Interval,
    Subscript, TrimWhereField, TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::fault::{Fault, Result};
use super::resolve::{self, common_type};
use super::scalar::{CONSTANT_BYTES_MAX, Form, Scalar, quoted, type_label};
use super::scope::Scope;
use super::subquery::all_of;
use super::types::{self, TypeName};
use super::{Compiler, folded};
use crate::sql::facts::{self, Context, Oid, oid};

impl Compiler<'_> {
    /// An expression of any type.
    pub(super) fn expression(&mut self, expression: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        // Only where nothing stands between it and the clause is a NULL as good as a false.
        let before = self.null_is_false;
        self.null_is_false &= matches!(
            unnested(expression),
            Expr::AnyOp { .. }
                | Expr::BinaryOp {
                    op: BinaryOperator::And | BinaryOperator::Or,
                    ..
                }
        );
        let scalar = self.any_expression(expression, scope);
        self.null_is_false = before;
        let mut scalar = scalar?;
        if scalar.ungrouped.is_some()
            && let Some(grouping) = &scope.grouping
            && grouping.keys.contains(&scalar.sql)
        {
            scalar.ungrouped = None;
        }
        Ok(scalar)
    }

    /// An expression of a known type.
    pub(super) fn expression_as(
        &mut self,
        expression: &Expr,
        scope: &Scope<'_>,
        to: Oid,
        context: Context,
    ) -> Result<Scalar> {
        let scalar = self.expression(expression, scope)?;
        self.convert_type(scalar, to, context)
    }

    /// A condition.
    pub(super) fn condition(&mut self, expression: &Expr, scope: &Scope<'_>, clause: &str) -> Result<Scalar> {
        let scalar = self.expression(expression, scope)?;
        self.as_condition(scalar, clause)
    }

    pub(super) fn as_condition(&mut self, scalar: Scalar, clause: &str) -> Result<Scalar> {
        if !matches!(scalar.oid, oid::BOOL | oid::UNKNOWN) {
            return Err(Fault::new(
                "42804",
                format!(
                    "argument of {clause} must be type boolean, not type {}",
                    facts::display_name(scalar.oid)
                ),
            ));
        }
        self.convert_type(scalar, oid::BOOL, Context::Implicit)
    }

    fn any_expression(&mut self, expression: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
        match expression {
            Expr::Nested(inner) => self.any_expression(inner, scope),
            Expr::Value(value) => self.value(value),
            Expr::Identifier(name) => self.name(std::slice::from_ref(name), scope),
            Expr::CompoundIdentifier(parts) => self.name(parts, scope),
            Expr::BinaryOp { left, op, right } => self.binary_expression(left, op, right, scope),
            Expr::UnaryOp { op, expr } => self.unary_expression(*op, expr, scope),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                format: None,
                ..
            } => {
                if let Expr::Array(array) = unnested(expr)
                    && let Ok(to) = types::resolve(data_type)
                    && let Some(element) = facts::element_of(to.oid)
                {
                    return self.array_as(&array.elem, element, to, scope);
                }
                let scalar = self.expression(expr, scope)?;
                self.cast(scalar, data_type)
            }
            Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax: false,
            }) => {
                let scalar = self.value(value)?;
                self.cast(scalar, data_type)
            }
            Expr::Interval(interval) => self.interval(interval, scope),
            Expr::IsNull(inner) => self.is_null(inner, "IS NULL", scope),
            Expr::IsNotNull(inner) => self.is_null(inner, "IS NOT NULL", scope),
            Expr::IsTrue(inner) => self.is_truth(inner, "IS TRUE", "IS 1", scope),
            Expr::IsNotTrue(inner) => self.is_truth(inner, "IS NOT TRUE", "IS NOT 1", scope),
            Expr::IsFalse(inner) => self.is_truth(inner, "IS FALSE", "IS 0", scope),
            Expr::IsNotFalse(inner) => self.is_truth(inner, "IS NOT FALSE", "IS NOT 0", scope),
            Expr::IsUnknown(inner) => self.is_truth(inner, "IS UNKNOWN", "IS NULL", scope),
            Expr::IsNotUnknown(inner) => self.is_truth(inner, "IS NOT UNKNOWN", "IS NOT NULL", scope),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, "IS NOT", scope),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, "IS", scope),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, *negated, low, high, scope),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => self.in_subquery(expr, subquery, *negated, scope),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated, scope),
            Expr::Subquery(query) => self.scalar_subquery(query, scope),
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, true, scope),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, false, scope),
            Expr::Like {
                negated,
                any,
                expr,
                pattern,
                escape_char: None,
            } if *any || all_of(pattern).is_some() => {
                let operator = if *negated {
                    BinaryOperator::PGNotLikeMatch
                } else {
                    BinaryOperator::PGLikeMatch
                };
                self.quantified(expr, &operator, all_of(pattern).unwrap_or(pattern), *any, scope)
            }
            Expr::ILike {
                negated,
                any,
                expr,
                pattern,
                escape_char: None,
            } if *any || all_of(pattern).is_some() => {
                let operator = if *negated {
                    BinaryOperator::PGNotILikeMatch
                } else {
                    BinaryOperator::PGILikeMatch
                };
                self.quantified(expr, &operator, all_of(pattern).unwrap_or(pattern), *any, scope)
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(
                if *negated { "!~~" } else { "~~" },
                expr,
                pattern,
                escape_char.as_deref(),
                scope,
            ),
            Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(
                if *negated { "!~~*" } else { "~~*" },
                expr,
                pattern,
                escape_char.as_deref(),
                scope,
            ),
            Expr::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => self.similar(*negated, expr, pattern, escape_char.as_deref(), scope),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref(), scope),
            Expr::AtTimeZone { timestamp, time_zone } => {
                let moment = self.expression(timestamp, scope)?;
                let zone = self.expression(time_zone, scope)?;
                self.call("timezone", vec![zone, moment])
            }
            Expr::Extract { field, expr, .. } => {
                let field = Scalar::constant(Owned::Text(field_name(field)), oid::TEXT);
                let from = self.expression(expr, scope)?;
                self.call("extract", vec![field, from])
            }
            Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => {
                let argument = self.expression(expr, scope)?;
                self.call("ceil", vec![argument])
            }
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => {
                let argument = self.expression(expr, scope)?;
                self.call("floor", vec![argument])
            }
            Expr::Position { expr, r#in } => {
                let wanted = self.expression(expr, scope)?;
                let text = self.expression(r#in, scope)?;
                self.call("position", vec![text, wanted])
            }
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                shorthand,
                ..
            } => {
                let arguments = self.substring(expr, substring_from.as_deref(), substring_for.as_deref(), scope)?;
                // Not the same function: one takes a pattern, too.
                self.call(if *shorthand { "substr" } else { "substring" }, arguments)
            }
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments = vec![self.expression(expr, scope)?];
                if let Some(what) = trim_what {
                    arguments.push(self.expression(what, scope)?);
                }
                for characters in trim_characters.iter().flatten() {
                    arguments.push(self.expression(characters, scope)?);
                }
                self.call(name, arguments)
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut arguments = vec![
                    self.expression(expr, scope)?,
                    self.expression(overlay_what, scope)?,
                    self.expression(overlay_from, scope)?,
                ];
                if let Some(length) = overlay_for {
                    arguments.push(self.expression(length, scope)?);
                }
                self.call("overlay", arguments)
            }
            Expr::Collate { expr, collation } => {
                let scalar = self.expression(expr, scope)?;
                let name = types::object_name(collation)?;
                match name.as_str() {
                    "C" | "POSIX" | "default" | "ucs_basic" | "C.UTF-8" | "C.utf8" => {
                        // Texts are ordered by their bytes in any case.
                        let plain_letters = matches!(name.as_str(), "C" | "POSIX" | "ucs_basic");
                        Ok(Scalar {
                            plain_letters: scalar.plain_letters || plain_letters,
                            ..scalar
                        })
                    }
                    _ => Err(Fault::unsupported(format!("the collation \"{name}\""))
                        .with_hint("Texts are ordered by their bytes, as with collation \"C\".")),
                }
            }
            Expr::Function(function) => self.function_call(function, scope),
            Expr::Array(array) => self.array(&array.elem, scope),
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain, scope),
            Expr::Tuple(_) => Err(Fault::unsupported("a row as a value")),
            Expr::IsNormalized { .. } => Err(Fault::unsupported("IS NORMALIZED")),
            Expr::GroupingSets(_) => Err(Fault::unsupported("GROUPING SETS")),
            Expr::Cube(_) => Err(Fault::unsupported("CUBE")),
            Expr::Rollup(_) => Err(Fault::unsupported("ROLLUP")),
            other => Err(Fault::unsupported(format!("the expression {other}"))),
        }
    }

    fn value(&mut self, value: &ValueWithSpan) -> Result<Scalar> {
        let scalar = self.value_anywhere(&value.value)?;
        Ok(Scalar {
            location: Some(value.span.start),
            ..scalar
        })
    }

    fn value_anywhere(&mut self, value: &Value) -> Result<Scalar> {
        match value {
            Value::Number(digits, false) => self.number(digits),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
                Ok(Scalar::unknown(text.clone()))
            }
            Value::DollarQuotedString(quoted) => Ok(Scalar::unknown(quoted.value.clone())),
            Value::Boolean(truth) => Ok(Scalar::constant((*truth).into(), oid::BOOL)),
            Value::Null => Ok(Scalar::null()),
            Value::Placeholder(name) => self.parameter(name),
            Value::HexStringLiteral(_) => Err(Fault::unsupported("a bit string literal")),
            other => Err(Fault::unsupported(format!("the literal {other}"))),
        }
    }

    /// A number as the client wrote it, with a sign that stood right before it: `int4`, `int8`, or `numeric`.
    pub(super) fn number(&mut self, digits: &str) -> Result<Scalar> {
        if let Ok(integer) = digits.parse::<i64>() {
            let kind = if i32::try_from(integer).is_ok() {
                oid::INT4
            } else {
                oid::INT8
            };
            return Ok(Scalar::constant(Owned::Integer(integer), kind));
        }
        let value = text_form::parse(Kind::Numeric, -1, digits, self.values).map_err(|_| {
            Fault::new(
                "42601",
                format!("trailing junk after numeric literal at or near \"{digits}\""),
            )
        })?;
        Ok(Scalar::constant(value, oid::NUMERIC))
    }

    fn parameter(&mut self, name: &str) -> Result<Scalar> {
        let number: usize = name
            .strip_prefix('$')
            .and_then(|number| number.parse().ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| Fault::new("42P02", format!("there is no parameter {name}")))?;
        if number > super::PARAMETERS_MAX {
            return Err(Fault::new("42P02", format!("there is no parameter {name}")));
        }
        if self.parameters.len() < number {
            if self.fixed_parameters {
                return Err(Fault::new("42P02", format!("there is no parameter {name}")));
            }
            self.parameters.resize(number, None);
        }
        let known = self.parameters[number - 1];
        if let Some(oid) = known.filter(|oid| !types::has_values(*oid)) {
            return Err(Fault::unsupported(format!(
                "a parameter of type {}",
                facts::display_name(oid)
            )));
        }
        Ok(Scalar {
            form: if known.is_some() {
                Form::Any
            } else {
                Form::Parameter(number)
            },
            null_with: vec![number],
            ..Scalar::new(format!("?{number}"), known.unwrap_or(oid::UNKNOWN))
        })
    }

    fn name(&mut self, parts: &[Ident], scope: &Scope<'_>) -> Result<Scalar> {
        if let Some(scalar) = scope.column(parts)? {
            return Ok(scalar);
        }
        if let [name] = parts {
            if name.quote_style.is_none()
                && let Some(scalar) = self.session_word(&folded(name))?
            {
                return Ok(scalar);
            }
            if scope.has_relation(&folded(name)) {
                return Err(Fault::unsupported(format!("the whole row {} as a value", folded(name))));
            }
            let name_of = folded(name);
            return Err(Fault::new("42703", format!("column \"{name_of}\" does not exist")).at(name));
        }
        Err(Fault::unsupported(format!(
            "the name {}",
            parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
        )))
    }

    /// A cast that the client wrote.
    pub(super) fn cast(&mut self, scalar: Scalar, data_type: &DataType) -> Result<Scalar> {
        let to = types::resolve(data_type)?;
        self.cast_to(scalar, to)
    }

    pub(super) fn cast_to(&mut self, scalar: Scalar, to: TypeName) -> Result<Scalar> {
        if scalar.oid == oid::UNKNOWN
            && to.oid == oid::INTERVAL
            && to.typmod >= 0
            && let Some(text) = scalar.unknown_text()
        {
            let value = text_form::parse(Kind::Interval, to.typmod, text, self.values)?;
            return Ok(Scalar {
                typmod: to.typmod,
                ..Scalar::constant(value, oid::INTERVAL)
            });
        }
        if !types::has_values(to.oid) {
            return Err(Fault::unsupported(format!("a cast to {}", facts::display_name(to.oid))));
        }
        let converted = self.convert(scalar, to, Context::Explicit)?;
        // A cast to a type without a modifier takes one away.
        Ok(Scalar {
            typmod: to.typmod,
            ..converted
        })
    }

    fn interval(&mut self, interval: &Interval, scope: &Scope<'_>) -> Result<Scalar> {
        if interval.leading_precision.is_some() {
            return Err(Fault::unsupported("a precision in this interval"));
        }
        let text = match &*interval.value {
            Expr::Value(value) => self.value(value)?,
            other => return Err(Fault::new("42601", format!("syntax error at or near \"{other}\""))),
        };
        let _ = scope;
        let fields = match (&interval.leading_field, &interval.last_field) {
            (None, None) => None,
            (Some(leading), last) => Some(interval_fields(leading, last.as_ref())?),
            (None, Some(_)) => return Err(Fault::unsupported("these fields of an interval")),
        };
        let to = types::resolve(&DataType::Interval {
            fields,
            precision: interval.fractional_seconds_precision,
        })?;
        self.cast_to(text, to)
    }

    fn is_null(&mut self, inner: &Expr, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
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

    fn is_truth(&mut self, inner: &Expr, clause: &str, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
        let scalar = beside_null(self.condition(inner, scope, clause)?);
        Ok(Scalar {
            not_null: true,
            ..Scalar::truth(format!("({} {operator})", scalar.sql))
        }
        .with_parts([&scalar]))
    }

    /// What nothing has given a type is text.
    pub(super) fn or_text(&mut self, scalar: Scalar) -> Result<Scalar> {
        if scalar.oid == oid::UNKNOWN {
            self.convert_type(scalar, oid::TEXT, Context::Implicit)
        } else {
            Ok(scalar)
        }
    }

    fn distinct(&mut self, left: &Expr, right: &Expr, operator: &str, scope: &Scope<'_>) -> Result<Scalar> {
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

    fn between(&mut self, value: &Expr, negated: bool, low: &Expr, high: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
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

    fn binary_expression(
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

    /// `(a, b) < (c, d)`, column by column.
    fn rows(&mut self, name: &str, lefts: &[Expr], rights: &[Expr], scope: &Scope<'_>) -> Result<Scalar> {
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

    fn overlaps(&mut self, left: &Expr, right: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
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

    fn unary_expression(&mut self, op: UnaryOperator, inner: &Expr, scope: &Scope<'_>) -> Result<Scalar> {
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

    fn like(
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

    fn similar(
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

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Scalar> {
        let mut whens: Vec<Scalar> = Vec::new();
        let mut may_be_decided = false;
        for when in conditions {
            let condition = self.leniently(may_be_decided, |compiler| match operand {
                None => compiler.condition(&when.condition, scope, "CASE/WHEN"),
                Some(operand) => {
                    let operand = compiler.expression(operand, scope)?;
                    let operand = compiler.or_text(operand)?;
                    let value = compiler.expression(&when.condition, scope)?;
                    compiler.binary("=", operand, value)
                }
            })?;
            may_be_decided |= may_be_planned(&condition.sql);
            whens.push(condition);
        }
        // PostgreSQL looks at ELSE first when it settles the type.
        let results = self.leniently(may_be_decided, |compiler| {
            let results = compiler.case_results(conditions, otherwise, scope)?;
            compiler.unify(results, "CASE")
        })?;
        let kind = common_kind(&results);
        if let Some(decided) = decided(&whens, &results)
            && may_be_left_out(whens.iter().chain(&results))
        {
            return Ok(Scalar {
                typmod: kind.typmod,
                ..decided.clone()
            });
        }
        let mut sql = "CASE".to_owned();
        for (when, result) in whens.iter().zip(&results[1..]) {
            sql.push_str(&format!(" WHEN {} THEN {}", when.sql, result.sql));
        }
        sql.push_str(&format!(" ELSE {} END", results[0].sql));
        Ok(Scalar {
            typmod: kind.typmod,
            not_null: results.iter().all(|result| result.not_null),
            ..Scalar::new(format!("({sql})"), kind.oid)
        }
        .with_parts(whens.iter().chain(&results)))
    }

    /// Compiles what may never be evaluated, if it is so: see [`Compiler::lenient`].
    pub(super) fn leniently<T>(&mut self, is_so: bool, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.lenient;
        self.lenient |= is_so;
        let compiled = compile(self);
        self.lenient = before;
        compiled
    }

    /// What ELSE gives, then what the branches give.
    fn case_results(
        &mut self,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Vec<Scalar>> {
        let mut results = vec![match otherwise {
            Some(otherwise) => self.expression(otherwise, scope)?,
            None => Scalar::null(),
        }];
        for when in conditions {
            results.push(self.expression(&when.result, scope)?);
        }
        Ok(results)
    }

    /// Converts all to the type that all can be.
    pub(super) fn unify(&mut self, scalars: Vec<Scalar>, what: &str) -> Result<Vec<Scalar>> {
        let types: Vec<Oid> = scalars.iter().map(|scalar| scalar.oid).collect();
        let common = common_type(&types, what)?;
        scalars
            .into_iter()
            .map(|scalar| {
                let from = scalar.oid;
                self.convert_type(scalar, common, Context::Implicit).map_err(|fault| {
                    if fault.sqlstate == "42846" {
                        Fault::new(
                            "42846",
                            format!(
                                "{what} could not convert type {} to {}",
                                facts::display_name(from),
                                facts::display_name(common)
                            ),
                        )
                    } else {
                        fault
                    }
                })
            })
            .collect()
    }

    fn substring(
        &mut self,
        text: &Expr,
        from: Option<&Expr>,
        length: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Vec<Scalar>> {
        let mut arguments = vec![self.expression(text, scope)?];
        match (from, length) {
            (Some(from), length) => {
                arguments.push(self.expression(from, scope)?);
                if let Some(length) = length {
                    arguments.push(self.expression(length, scope)?);
                }
            }
            (None, Some(length)) => {
                arguments.push(Scalar::constant(Owned::Integer(1), oid::INT4));
                arguments.push(self.expression(length, scope)?);
            }
            (None, None) => {}
        }
        Ok(arguments)
    }

    fn array(&mut self, elements: &[Expr], scope: &Scope<'_>) -> Result<Scalar> {
        if elements.is_empty() {
            return Err(Fault::new("42P18", "cannot determine type of empty array")
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let mut scalars = Vec::new();
        for element in elements {
            scalars.push(self.expression(element, scope)?);
        }
        let scalars = self.unify(scalars, "ARRAY")?;
        let element = scalars[0].oid;
        let (array, kind) = if facts::element_of(element).is_some() {
            (element, None)
        } else {
            let array = facts::array_of(element)
                .filter(|array| types::has_values(*array))
                .ok_or_else(|| Fault::unsupported(format!("an array of {}", facts::display_name(element))))?;
            (array, Type::from_oid(element))
        };
        let typmod = common_kind(&scalars).typmod;
        array_of(&scalars, kind, TypeName { oid: array, typmod })
    }

    /// `ARRAY[…]::type[]`: the cast is each element's own.
    fn array_as(&mut self, elements: &[Expr], element: Oid, to: TypeName, scope: &Scope<'_>) -> Result<Scalar> {
        let nested = elements.iter().any(|inner| matches!(unnested(inner), Expr::Array(_)));
        let mut scalars = Vec::new();
        for inner in elements {
            let kind = if nested {
                to
            } else {
                TypeName {
                    oid: element,
                    typmod: to.typmod,
                }
            };
            let scalar = match unnested(inner) {
                Expr::Array(array) => self.array_as(&array.elem, element, to, scope)?,
                other => self.expression(other, scope)?,
            };
            scalars.push(self.cast_to(scalar, kind)?);
        }
        if !types::has_values(to.oid) {
            return Err(Fault::unsupported(format!(
                "an array of {}",
                facts::display_name(element)
            )));
        }
        let kind = if nested { None } else { Type::from_oid(element) };
        array_of(&scalars, kind, to)
    }

    fn access(&mut self, root: &Expr, chain: &[AccessExpr], scope: &Scope<'_>) -> Result<Scalar> {
        let array = self.expression(root, scope)?;
        if array.oid == oid::JSONB {
            // What `#>` does: `->` takes a scalar for an array of one.
            let mut path = Vec::with_capacity(chain.len());
            for step in chain {
                let AccessExpr::Subscript(Subscript::Index { index }) = step else {
                    return Err(Fault::unsupported("this access to a part of a jsonb"));
                };
                let index = self.expression(index, scope)?;
                path.push(match index.constant_value() {
                    Some(Owned::Text(key)) => key,
                    Some(Owned::Integer(place)) => place.to_string(),
                    _ => {
                        return Err(Fault::unsupported("a subscript of jsonb that is no constant")
                            .with_hint("Use the operator ->."));
                    }
                });
            }
            let escaped = |part: &String| format!("\"{}\"", part.replace('\\', "\\\\").replace('"', "\\\""));
            let path: Vec<String> = path.iter().map(escaped).collect();
            let path = Scalar::constant(Owned::Text(format!("{{{}}}", path.join(","))), oid::UNKNOWN);
            return self.binary("#>", array, path);
        }
        let Some(element) = facts::element_of(array.oid) else {
            return Err(Fault::new(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    facts::display_name(array.oid)
                ),
            ));
        };
        let mut indexes = Vec::new();
        for step in chain {
            let AccessExpr::Subscript(Subscript::Index { index }) = step else {
                return Err(Fault::unsupported("a slice of an array"));
            };
            indexes.push(self.expression_as(index, scope, oid::INT4, Context::Assignment)?);
        }
        let constants: Option<Vec<i64>> = indexes
            .iter()
            .map(|index| match &index.form {
                Form::Constant(Owned::Integer(index)) => Some(*index),
                _ => None,
            })
            .collect();
        if let (Form::Constant(Owned::Text(stored)), Some(constants), Some(kind)) =
            (&array.form, constants, Type::from_oid(element))
        {
            let value = forebay_pg_values::array::subscript(kind.kind(), stored, &constants)?;
            return Ok(Scalar {
                typmod: array.typmod,
                ..Scalar::constant(value, element)
            });
        }
        let list: Vec<&str> = indexes.iter().map(|index| index.sql.as_str()).collect();
        let label = Type::from_oid(element).map_or_else(String::new, type_label);
        let sql = format!(
            "\"forebay_subscript\"({}, {}, {})",
            quoted(&label),
            array.sql,
            list.join(", ")
        );
        Ok(Scalar {
            typmod: array.typmod,
            ..Scalar::new(sql, element)
        }
        .with_parts(indexes.iter().chain([&array])))
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

/// Whether PostgreSQL's planner may know the value of what SQLite has this text for: what has no column, parameters among it, and
/// what a part decides that has none. Which branch is met is then known before any is evaluated.
fn may_be_planned(sql: &str) -> bool {
    !has_column(sql)
        || [" AND ", " OR ", "CASE ", "coalesce("]
            .iter()
            .any(|word| sql.contains(word))
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

/// The constant that a CASE comes to, if its conditions are known; of the results ELSE's is the first.
fn decided<'a>(whens: &[Scalar], results: &'a [Scalar]) -> Option<&'a Scalar> {
    let mut met = &results[0];
    for (when, result) in whens.iter().zip(&results[1..]) {
        match &when.form {
            Form::Constant(Owned::Null | Owned::Integer(0)) => {}
            Form::Constant(_) => {
                met = result;
                break;
            }
            Form::Any | Form::Parameter(_) => return None,
        }
    }
    matches!(met.form, Form::Constant(_)).then_some(met)
}

/// Whether a part is known to be that truth value, which decides an AND or an OR alone: all that PostgreSQL's planner leaves of it.
fn decides(part: &Scalar, truth: bool) -> bool {
    part.form == Form::Constant(truth.into())
}

/// Whether a query is the same without these.
fn may_be_left_out<'a>(scalars: impl IntoIterator<Item = &'a Scalar>) -> bool {
    scalars
        .into_iter()
        .all(|scalar| !scalar.aggregate && !scalar.window && scalar.ungrouped.is_none())
}

/// Whether a column stands in a text of SQLite's.
pub(super) fn has_column(sql: &str) -> bool {
    let bytes = sql.as_bytes();
    bytes
        .windows(3)
        .any(|three| three[0] == b'"' && matches!(three[1], b'r' | b'w') && three[2].is_ascii_digit())
}

/// The type of what has been unified, with its modifier if all agree on it.
pub(super) fn common_kind(scalars: &[Scalar]) -> TypeName {
    let Some(first) = scalars.first() else {
        return TypeName::plain(oid::TEXT);
    };
    let typmod = first.typmod;
    let agreed = scalars.iter().all(|scalar| scalar.typmod == typmod);
    TypeName {
        oid: first.oid,
        typmod: if agreed { typmod } else { -1 },
    }
}

fn is_null_literal(expression: &Expr) -> bool {
    matches!(unnested(expression), Expr::Value(value) if value.value == Value::Null)
}

/// The expression inside any parentheses.
pub(super) fn unnested(mut expression: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expression {
        expression = inner;
    }
    expression
}

pub(super) fn same_length(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() == right.len() {
        Ok(())
    } else {
        Err(Fault::new("42601", "unequal number of entries in row expressions"))
    }
}

fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.to_ascii_lowercase(),
        other => other.to_string().trim_matches('\'').to_ascii_lowercase(),
    }
}

fn interval_fields(leading: &DateTimeField, last: Option<&DateTimeField>) -> Result<sqlparser::ast::IntervalFields> {
    use DateTimeField as F;
    use sqlparser::ast::IntervalFields as I;
    Ok(match (leading, last) {
        (F::Year, None) => I::Year,
        (F::Month, None) => I::Month,
        (F::Day, None) => I::Day,
        (F::Hour, None) => I::Hour,
        (F::Minute, None) => I::Minute,
        (F::Second, None) => I::Second,
        (F::Year, Some(F::Month)) => I::YearToMonth,
        (F::Day, Some(F::Hour)) => I::DayToHour,
        (F::Day, Some(F::Minute)) => I::DayToMinute,
        (F::Day, Some(F::Second)) => I::DayToSecond,
        (F::Hour, Some(F::Minute)) => I::HourToMinute,
        (F::Hour, Some(F::Second)) => I::HourToSecond,
        (F::Minute, Some(F::Second)) => I::MinuteToSecond,
        _ => return Err(Fault::unsupported("these fields of an interval")),
    })
}

/// An array of elements of one type; of none, they are arrays themselves. Constants make a constant, unless it is long.
fn array_of(elements: &[Scalar], kind: Option<Type>, array: TypeName) -> Result<Scalar> {
    let mut whole = Scalar {
        typmod: array.typmod,
        not_null: true,
        ..Scalar::new("", array.oid)
    }
    .with_parts(elements);
    let constants: Option<Vec<Owned>> = elements.iter().map(Scalar::constant_value).collect();
    if let (Some(Type::Scalar(kind)), Some(constants)) = (kind, constants) {
        let stored = forebay_pg_values::array::Array::of_elements(constants).into_stored(kind)?;
        if !matches!(&stored, Owned::Text(text) if text.len() > CONSTANT_BYTES_MAX) {
            return Ok(Scalar {
                typmod: array.typmod,
                ..Scalar::constant(stored, array.oid)
            }
            .with_parts(elements));
        }
    }
    let label = kind.map_or_else(|| "array".to_owned(), type_label);
    whole.sql = format!("\"forebay_array\"({}", quoted(&label));
    for element in elements {
        whole.sql.push_str(", ");
        whole.sql.push_str(&element.sql);
    }
    whole.sql.push(')');
    Ok(whole)
}
