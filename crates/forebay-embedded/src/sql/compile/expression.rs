//! Expressions: from the syntax tree to SQLite's text with PostgreSQL's type.
//!
//! Promises: each construct means what it means to PostgreSQL, or is refused by name. Nothing is passed through that was not
//! understood.

use forebay_pg_values::Owned;
use sqlparser::ast::{
    BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr, Ident, TrimWhereField, TypedString,
};

use super::compiler::Compiler;
use super::fault::{Fault, Result};
use super::scalar::Scalar;
use super::scope::Scope;
use super::syntax::{all_of, folded, unnested};
use super::types;
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
            Expr::Interval(interval) => self.interval(interval),
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
                let timestamp = self.expression(timestamp, scope)?;
                let zone = self.expression(time_zone, scope)?;
                self.call("timezone", vec![zone, timestamp])
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
                let letters = facts::element_of(scalar.oid).unwrap_or(scalar.oid);
                if letters != oid::UNKNOWN && facts::category(letters) != b'S' {
                    let message = format!(
                        "collations are not supported by type {}",
                        facts::display_name(scalar.oid)
                    );
                    return Err(Fault::new("42804", message));
                }
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

    fn name(&mut self, parts: &[Ident], scope: &Scope<'_>) -> Result<Scalar> {
        if let Some(scalar) = scope.column(parts)? {
            return Ok(scalar);
        }
        if let [name] = parts {
            if name.quote_style.is_none()
                && is_session_word(&folded(name))
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
}

fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.to_ascii_lowercase(),
        other => other.to_string().trim_matches('\'').to_ascii_lowercase(),
    }
}

/// Whether a word says something of the session without being called: PostgreSQL's grammar has these.
fn is_session_word(word: &str) -> bool {
    matches!(
        word,
        "current_catalog"
            | "current_date"
            | "current_role"
            | "current_schema"
            | "current_time"
            | "current_timestamp"
            | "current_user"
            | "localtime"
            | "localtimestamp"
            | "session_user"
            | "user"
    )
}
