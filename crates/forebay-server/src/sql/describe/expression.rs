//! The types of expressions, and what they say about the parameters in them.
//!
//! Contract: the type of every value the expression can have in SQLite, or `None` if there is more than one or it cannot be known.
//! Knows nothing of FROM clauses.

use postgres_types::Type;
use sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, Value, ValueWithSpan};

use super::infer::{Inference, STACK_GROWTH, STACK_LEFT_MIN, is_null, is_row_id};
use super::types;

impl Inference<'_> {
    /// The expression's type. `expected` is what a parameter in its place is taken for.
    pub(super) fn infer(&mut self, expression: &Expr, expected: Option<&Type>) -> Option<Type> {
        if self.work_left == 0 {
            return None;
        }
        self.work_left -= 1;
        stacker::maybe_grow(STACK_LEFT_MIN, STACK_GROWTH, || self.infer_here(expression, expected))
    }

    fn infer_here(&mut self, expression: &Expr, expected: Option<&Type>) -> Option<Type> {
        match expression {
            Expr::Value(value) => {
                self.note_literal(value, expected);
                self.literal(&value.value, expected)
            }
            Expr::Identifier(name) => self.named(name),
            Expr::CompoundIdentifier(parts) => self.qualified(parts),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.infer(inner, expected),
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Not => self.truth(expr),
                UnaryOperator::BitwiseNot => {
                    self.infer(expr, Some(&Type::INT8));
                    Some(Type::INT8)
                }
                _ => {
                    let kind = self.infer(expr, expected.filter(|kind| is_number(kind)));
                    as_number(kind.as_ref())
                }
            },
            Expr::BinaryOp { left, op, right } => self.operation(left, op, right, expected),
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => {
                self.infer(inner, None);
                Some(Type::BOOL)
            }
            Expr::IsTrue(inner) | Expr::IsNotTrue(inner) | Expr::IsFalse(inner) | Expr::IsNotFalse(inner) => {
                self.truth(inner)
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => self.compared(left, right),
            Expr::Between { expr, low, high, .. } => {
                self.compared(expr, low);
                self.compared(expr, high)
            }
            Expr::InList { expr, list, .. } => {
                let mut kind = self.infer(expr, None);
                if is_string(expr) {
                    // It is what the list is of.
                    kind = None;
                }
                for item in list {
                    self.compare_rows(expr, item);
                    let other = self.infer(item, kind.as_ref());
                    if kind.is_none() {
                        kind = other;
                        self.suggest(expr, kind.as_ref());
                    }
                }
                Some(Type::BOOL)
            }
            Expr::InSubquery { expr, subquery, .. } => {
                let parts: &[Expr] = if let Expr::Tuple(parts) = expr.as_ref() {
                    parts
                } else {
                    std::slice::from_ref(expr)
                };
                let expected: Vec<Option<Type>> = parts.iter().map(|part| self.infer(part, None)).collect();
                let columns = self.query(subquery, &expected);
                for (part, column) in parts.iter().zip(columns) {
                    self.suggest(part, column.kind.as_ref());
                }
                Some(Type::BOOL)
            }
            Expr::Like {
                expr,
                pattern,
                escape_char,
                ..
            }
            | Expr::ILike {
                expr,
                pattern,
                escape_char,
                ..
            }
            | Expr::SimilarTo {
                expr,
                pattern,
                escape_char,
                ..
            } => {
                for text in [Some(expr), Some(pattern), escape_char.as_ref()].into_iter().flatten() {
                    self.infer(text, Some(&Type::TEXT));
                }
                Some(Type::BOOL)
            }
            Expr::Exists { subquery, .. } => {
                self.query(subquery, &[]);
                Some(Type::BOOL)
            }
            Expr::Subquery(query) => {
                let columns = self.query(query, &[expected.cloned()]);
                columns.into_iter().next().and_then(|column| column.kind)
            }
            Expr::Cast { expr, data_type, .. } => {
                let kind = types::of_declared(&data_type.to_string());
                self.infer(expr, if is_parameter(expr) { kind.as_ref() } else { None });
                kind
            }
            Expr::TypedString(typed) => types::of_declared(&typed.data_type.to_string()),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                for case in conditions {
                    match operand {
                        Some(operand) => self.compared(operand, &case.condition),
                        None => self.truth(&case.condition),
                    };
                }
                let arms: Vec<&Expr> = conditions
                    .iter()
                    .map(|case| &case.result)
                    .chain(else_result.as_deref())
                    .collect();
                self.alternatives(&arms, expected)
            }
            Expr::Function(function) => self.function(function, expected),
            Expr::Tuple(parts) => {
                for part in parts {
                    self.infer(part, None);
                }
                None
            }
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let kind = self.infer(expr, Some(&Type::TEXT));
                for count in [substring_from, substring_for].into_iter().flatten() {
                    self.infer(count, Some(&Type::INT8));
                }
                Some(if kind == Some(Type::BYTEA) {
                    Type::BYTEA
                } else {
                    Type::TEXT
                })
            }
            Expr::Trim {
                expr,
                trim_what,
                trim_characters,
                ..
            } => {
                let more = trim_what
                    .iter()
                    .map(AsRef::as_ref)
                    .chain(trim_characters.iter().flatten());
                for text in std::iter::once(expr.as_ref()).chain(more) {
                    self.infer(text, Some(&Type::TEXT));
                }
                Some(Type::TEXT)
            }
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => {
                let kind = self.infer(expr, Some(&Type::FLOAT8));
                as_number(kind.as_ref())
            }
            _ => None,
        }
    }

    /// A string literal is what it meets first that is no text.
    fn note_literal(&mut self, value: &ValueWithSpan, expected: Option<&Type>) {
        if let (Some(literals), Some(kind), Value::SingleQuotedString(_)) = (&mut self.literals, expected, &value.value)
            && has_stored_form(kind)
        {
            let start = value.span.start;
            literals
                .entry((start.line, start.column))
                .or_insert_with(|| kind.clone());
        }
    }

    fn literal(&mut self, value: &Value, expected: Option<&Type>) -> Option<Type> {
        match value {
            Value::Number(digits, _) if digits.replace('_', "").parse::<i64>().is_ok() => Some(Type::INT8),
            Value::Number(..) => Some(Type::FLOAT8),
            Value::SingleQuotedString(_) => Some(Type::TEXT),
            Value::HexStringLiteral(_) => Some(Type::BYTEA),
            Value::Boolean(_) => Some(Type::BOOL),
            Value::Placeholder(name) => {
                let number: usize = name.strip_prefix(['$', '?'])?.parse().ok()?;
                let place = self.parameters.get_mut(number.checked_sub(1)?)?;
                if place.is_none() {
                    *place = expected.cloned();
                }
                place.clone()
            }
            _ => None,
        }
    }

    fn named(&mut self, name: &Ident) -> Option<Type> {
        for scope in self.scopes.iter().rev() {
            let columns = scope
                .relations
                .iter()
                .flat_map(|relation| &relation.columns)
                .chain(&scope.aliases);
            if let Some(column) = columns
                .into_iter()
                .find(|column| column.name.eq_ignore_ascii_case(&name.value))
            {
                return column.kind.clone();
            }
            if is_row_id(&name.value) && scope.relations.iter().any(|relation| relation.has_row_id) {
                return Some(Type::INT8);
            }
        }
        if name.quote_style.is_some() {
            // A quoted name that names nothing is a string to SQLite.
            return (name.quote_style == Some('"')).then_some(Type::TEXT);
        }
        match name.value.to_ascii_lowercase().as_str() {
            "localtimestamp" => Some(Type::TIMESTAMP),
            _ => None,
        }
    }

    fn qualified(&mut self, parts: &[Ident]) -> Option<Type> {
        let [.., relation, column] = parts else {
            return None;
        };
        for scope in self.scopes.iter().rev() {
            for candidate in &scope.relations {
                if candidate
                    .name
                    .as_deref()
                    .is_some_and(|name| name.eq_ignore_ascii_case(&relation.value))
                {
                    let found = candidate
                        .columns
                        .iter()
                        .find(|found| found.name.eq_ignore_ascii_case(&column.value));
                    if let Some(found) = found {
                        return found.kind.clone();
                    }
                    return (candidate.has_row_id && is_row_id(&column.value)).then_some(Type::INT8);
                }
            }
        }
        None
    }

    /// Something that is true or false.
    pub(super) fn truth(&mut self, expression: &Expr) -> Option<Type> {
        // Text as a condition is SQLite's own: nothing says what it was meant to be.
        self.infer(expression, if is_string(expression) { None } else { Some(&Type::BOOL) });
        Some(Type::BOOL)
    }

    fn operation(
        &mut self,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
        expected: Option<&Type>,
    ) -> Option<Type> {
        use BinaryOperator as Op;
        match operator {
            Op::And | Op::Or | Op::Xor => {
                self.truth(left);
                self.truth(right)
            }
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::Spaceship => self.compared(left, right),
            Op::Custom(word) if word == "IS" || word == "IS NOT" => self.compared(left, right),
            Op::Glob | Op::Match | Op::Regexp => {
                self.infer(left, Some(&Type::TEXT));
                self.infer(right, Some(&Type::TEXT));
                Some(Type::BOOL)
            }
            Op::StringConcat => {
                self.infer(left, Some(&Type::TEXT));
                self.infer(right, Some(&Type::TEXT));
                Some(Type::TEXT)
            }
            Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo => {
                let wanted = expected.filter(|kind| is_number(kind));
                let mut left_kind = self.infer(left, None);
                let beside = left_kind.as_ref().filter(|kind| is_number(kind)).or(wanted);
                // Arithmetic with text is SQLite's.
                let right_kind = self.infer(right, if is_string(right) { None } else { beside });
                if left_kind.is_none() {
                    self.suggest(left, right_kind.as_ref().filter(|kind| is_number(kind)).or(wanted));
                    left_kind = self.parameter_type(left);
                }
                Some(arithmetic(left_kind.as_ref(), right_kind.as_ref()))
            }
            Op::BitwiseAnd | Op::BitwiseOr | Op::PGBitwiseShiftLeft | Op::PGBitwiseShiftRight => {
                self.infer(left, Some(&Type::INT8));
                self.infer(right, Some(&Type::INT8));
                Some(Type::INT8)
            }
            Op::Arrow => {
                self.infer(left, Some(&Type::JSON));
                self.infer(right, Some(&Type::TEXT));
                Some(Type::JSON)
            }
            Op::LongArrow => {
                self.infer(left, Some(&Type::JSON));
                self.infer(right, Some(&Type::TEXT));
                Some(Type::TEXT)
            }
            _ => {
                self.infer(left, None);
                self.infer(right, None);
                None
            }
        }
    }

    /// Two sides of a comparison: a parameter on either is of the other's type.
    pub(super) fn compared(&mut self, left: &Expr, right: &Expr) -> Option<Type> {
        if is_string(left) && !is_string(right) && !is_parameter(right) {
            return self.compared(right, left);
        }
        self.compare_rows(left, right);
        let left_kind = self.infer(left, None);
        let right_kind = self.infer(right, left_kind.as_ref());
        if left_kind.is_none() {
            self.suggest(left, right_kind.as_ref());
        }
        Some(Type::BOOL)
    }

    /// Row values are compared part by part.
    fn compare_rows(&mut self, left: &Expr, right: &Expr) {
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) {
            for (left, right) in left.iter().zip(right) {
                self.compared(left, right);
            }
        }
    }

    /// Gives a type to the open parameters that stand for the expression's value, and looks no further.
    pub(super) fn suggest(&mut self, expression: &Expr, kind: Option<&Type>) {
        if kind.is_none() || self.work_left == 0 {
            return;
        }
        self.work_left -= 1;
        stacker::maybe_grow(STACK_LEFT_MIN, STACK_GROWTH, || match expression {
            Expr::Value(value) => {
                self.note_literal(value, kind);
                self.literal(&value.value, kind);
            }
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.suggest(inner, kind),
            Expr::UnaryOp {
                op: UnaryOperator::Minus | UnaryOperator::Plus,
                expr,
            } => {
                self.suggest(expr, kind.filter(|kind| is_number(kind)));
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply | BinaryOperator::Divide,
                right,
            } => {
                let number = kind.filter(|kind| is_number(kind));
                self.suggest(left, number);
                self.suggest(right, number);
            }
            Expr::Case {
                conditions,
                else_result,
                ..
            } => {
                for result in conditions.iter().map(|case| &case.result).chain(else_result.as_deref()) {
                    self.suggest(result, kind);
                }
            }
            _ => {}
        });
    }

    fn parameter_type(&mut self, expression: &Expr) -> Option<Type> {
        match expression {
            Expr::Value(value) => self.literal(&value.value, None),
            Expr::Nested(inner) => self.parameter_type(inner),
            _ => None,
        }
    }

    /// What stands for one of several values: the arms of CASE, the arguments of coalesce().
    pub(super) fn alternatives(&mut self, arms: &[&Expr], expected: Option<&Type>) -> Option<Type> {
        let mut kinds: Vec<Option<Type>> = Vec::with_capacity(arms.len());
        let mut common: Option<Type> = expected.cloned();
        for arm in arms {
            // A column that is written to says what a literal is; another arm does not, for SQLite lets them differ.
            let wanted = if is_string(arm) { expected } else { common.as_ref() };
            let kind = self.infer(arm, wanted);
            if common.is_none() {
                common.clone_from(&kind);
            }
            kinds.push(kind);
        }
        for (arm, kind) in arms.iter().zip(&mut kinds) {
            if kind.is_none() {
                self.suggest(arm, common.as_ref());
                *kind = self.parameter_type(arm);
            }
        }
        let mut result: Option<Type> = None;
        let mut first = true;
        for (arm, kind) in arms.iter().zip(kinds) {
            if is_null(arm) {
                continue;
            }
            let kind = match (&result, kind) {
                // PostgreSQL reads a literal as what it stands beside; so it is only where the literal can be nothing else.
                (Some(other), Some(Type::TEXT)) if is_string(arm) && reads_strings(other) => Some(other.clone()),
                (_, kind) => kind,
            };
            result = if first { kind } else { self.both(result, kind) };
            first = false;
        }
        result
    }

    /// The one type that holds values of either.
    pub(super) fn both(&self, left: Option<Type>, right: Option<Type>) -> Option<Type> {
        let (left, right) = (left?, right?);
        if left == right {
            return Some(left);
        }
        let either = |kind: &Type| left == *kind || right == *kind;
        if is_number(&left) && is_number(&right) {
            return Some(if either(&Type::FLOAT8) {
                Type::FLOAT8
            } else {
                Type::NUMERIC
            });
        }
        if either(&Type::BOOL) && either(&Type::INT8) {
            return Some(Type::INT8);
        }
        if either(&Type::TIMESTAMP) && either(&Type::TIMESTAMPTZ) {
            return Some(Type::TIMESTAMPTZ);
        }
        if either(&Type::JSON) && either(&Type::JSONB) {
            return Some(Type::JSON);
        }
        None
    }
}

/// What SQLite computes with.
pub(super) fn is_number(kind: &Type) -> bool {
    matches!(
        *kind,
        Type::INT2 | Type::INT4 | Type::INT8 | Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC
    )
}

fn reads_strings(kind: &Type) -> bool {
    matches!(
        *kind,
        Type::DATE | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::UUID | Type::JSON | Type::JSONB
    )
}

/// The types whose values are not stored as any text they are written in.
fn has_stored_form(kind: &Type) -> bool {
    is_number(kind) || reads_strings(kind) || matches!(*kind, Type::BOOL | Type::BYTEA | Type::OID)
}

pub(super) fn is_string(expression: &Expr) -> bool {
    match expression {
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        Expr::Nested(inner) => is_string(inner),
        _ => false,
    }
}

pub(super) fn is_parameter(expression: &Expr) -> bool {
    match expression {
        Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
        Expr::Nested(inner) => is_parameter(inner),
        _ => false,
    }
}

/// A number of unknown kind is numeric, which holds both.
pub(super) fn as_number(kind: Option<&Type>) -> Option<Type> {
    Some(match kind {
        Some(kind) if matches!(*kind, Type::INT2 | Type::INT4 | Type::INT8 | Type::BOOL) => Type::INT8,
        Some(kind) if matches!(*kind, Type::FLOAT4 | Type::FLOAT8) => Type::FLOAT8,
        _ => Type::NUMERIC,
    })
}

fn arithmetic(left: Option<&Type>, right: Option<&Type>) -> Type {
    match (as_number(left), as_number(right)) {
        (Some(Type::INT8), Some(Type::INT8)) => Type::INT8,
        (Some(Type::FLOAT8), _) | (_, Some(Type::FLOAT8)) => Type::FLOAT8,
        _ => Type::NUMERIC,
    }
}
