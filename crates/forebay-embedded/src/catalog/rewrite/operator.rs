//! Operators: logic, comparison, patterns, membership, arithmetic, concatenation.

use postgres_types::Type;
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use super::super::error::CatalogError;
use super::super::types::{Family, array_type, element_type, family, is_registered};
use super::piece::{Piece, text_literal};
use super::translator::Translator;

/// What an operator comes down to.
enum Operator {
    Logic(&'static str),
    Compare(&'static str),
    Arithmetic(&'static str),
    Bits(&'static str),
    Concatenate,
    Regex { insensitive: bool, negated: bool },
    Like { insensitive: bool, negated: bool },
}

fn known(operator: &BinaryOperator) -> Option<Operator> {
    Some(match operator {
        BinaryOperator::And => Operator::Logic("AND"),
        BinaryOperator::Or => Operator::Logic("OR"),
        BinaryOperator::Eq => Operator::Compare("="),
        BinaryOperator::NotEq => Operator::Compare("<>"),
        BinaryOperator::Lt => Operator::Compare("<"),
        BinaryOperator::LtEq => Operator::Compare("<="),
        BinaryOperator::Gt => Operator::Compare(">"),
        BinaryOperator::GtEq => Operator::Compare(">="),
        BinaryOperator::Plus => Operator::Arithmetic("+"),
        BinaryOperator::Minus => Operator::Arithmetic("-"),
        BinaryOperator::Multiply => Operator::Arithmetic("*"),
        BinaryOperator::Divide => Operator::Arithmetic("/"),
        BinaryOperator::Modulo => Operator::Arithmetic("%"),
        BinaryOperator::BitwiseAnd => Operator::Bits("&"),
        BinaryOperator::BitwiseOr => Operator::Bits("|"),
        BinaryOperator::StringConcat => Operator::Concatenate,
        BinaryOperator::PGRegexMatch => Operator::Regex {
            insensitive: false,
            negated: false,
        },
        BinaryOperator::PGRegexIMatch => Operator::Regex {
            insensitive: true,
            negated: false,
        },
        BinaryOperator::PGRegexNotMatch => Operator::Regex {
            insensitive: false,
            negated: true,
        },
        BinaryOperator::PGRegexNotIMatch => Operator::Regex {
            insensitive: true,
            negated: true,
        },
        BinaryOperator::PGLikeMatch => Operator::Like {
            insensitive: false,
            negated: false,
        },
        BinaryOperator::PGILikeMatch => Operator::Like {
            insensitive: true,
            negated: false,
        },
        BinaryOperator::PGNotLikeMatch => Operator::Like {
            insensitive: false,
            negated: true,
        },
        BinaryOperator::PGNotILikeMatch => Operator::Like {
            insensitive: true,
            negated: true,
        },
        BinaryOperator::PGCustomBinaryOperator(parts) => {
            let plain = match parts.last()?.as_str() {
                "=" => BinaryOperator::Eq,
                "<>" | "!=" => BinaryOperator::NotEq,
                "<" => BinaryOperator::Lt,
                "<=" => BinaryOperator::LtEq,
                ">" => BinaryOperator::Gt,
                ">=" => BinaryOperator::GtEq,
                "||" => BinaryOperator::StringConcat,
                "~" => BinaryOperator::PGRegexMatch,
                "~*" => BinaryOperator::PGRegexIMatch,
                "!~" => BinaryOperator::PGRegexNotMatch,
                "!~*" => BinaryOperator::PGRegexNotIMatch,
                "~~" => BinaryOperator::PGLikeMatch,
                "~~*" => BinaryOperator::PGILikeMatch,
                "!~~" => BinaryOperator::PGNotLikeMatch,
                "!~~*" => BinaryOperator::PGNotILikeMatch,
                _ => return None,
            };
            return known(&plain);
        }
        _ => return None,
    })
}

impl Translator {
    pub(super) fn operator(&mut self, expression: &Expr) -> Result<Piece, CatalogError> {
        match expression {
            Expr::BinaryOp { .. } => self.chain(expression),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => Ok(Piece::new(format!("(NOT {})", self.condition(expr)?), Type::BOOL)),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => {
                let piece = self.expression(expr)?;
                match family(&piece.kind) {
                    Family::Integer | Family::Float if !is_registered(&piece.kind) => {
                        Ok(Piece::new(format!("(-{})", piece.sql), piece.kind))
                    }
                    _ => Err(CatalogError::unsupported(expression)),
                }
            }
            Expr::IsNull(inner) => self.is_null(inner, "IS NULL"),
            Expr::IsNotNull(inner) => self.is_null(inner, "IS NOT NULL"),
            Expr::IsTrue(inner) => Ok(Piece::new(format!("({} IS 1)", self.condition(inner)?), Type::BOOL)),
            Expr::IsFalse(inner) => Ok(Piece::new(format!("({} IS 0)", self.condition(inner)?), Type::BOOL)),
            Expr::IsNotTrue(inner) => Ok(Piece::new(format!("({} IS NOT 1)", self.condition(inner)?), Type::BOOL)),
            Expr::IsNotFalse(inner) => Ok(Piece::new(format!("({} IS NOT 0)", self.condition(inner)?), Type::BOOL)),
            Expr::IsUnknown(inner) => Ok(Piece::new(format!("({} IS NULL)", self.condition(inner)?), Type::BOOL)),
            Expr::IsNotUnknown(inner) => Ok(Piece::new(
                format!("({} IS NOT NULL)", self.condition(inner)?),
                Type::BOOL,
            )),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, "IS NOT"),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, "IS"),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => self.in_subquery(expr, &Expr::Subquery(subquery.clone()), *negated),
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } if is(compare_op, "=") => self.any(left, right, false),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } if is(compare_op, "<>") => self.any(left, right, true),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let (piece, low, high) = (self.expression(expr)?, self.expression(low)?, self.expression(high)?);
                let (piece, low) = self.meet(piece, low)?;
                let (piece, high) = self.meet(piece, high)?;
                let not = if *negated { "NOT " } else { "" };
                Ok(Piece::new(
                    format!("({} {not}BETWEEN {} AND {})", piece.sql, low.sql, high.sql),
                    Type::BOOL,
                ))
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_deref(), false, *negated),
            Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_deref(), true, *negated),
            other => Err(CatalogError::unsupported(other)),
        }
    }

    fn is_null(&mut self, inner: &Expr, test: &str) -> Result<Piece, CatalogError> {
        let piece = self.expression(inner)?;
        let piece = self.coerce(piece, &Type::TEXT)?;
        Ok(Piece::new(format!("({} {test})", piece.sql), Type::BOOL))
    }

    fn distinct(&mut self, left: &Expr, right: &Expr, operator: &str) -> Result<Piece, CatalogError> {
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        let (left, right) = self.meet(left, right)?;
        Ok(Piece::new(
            format!("({} {operator} {})", left.sql, right.sql),
            Type::BOOL,
        ))
    }

    /// A chain `a AND b AND c` is as deep as it is long: its left spine is walked in a loop.
    fn chain(&mut self, expression: &Expr) -> Result<Piece, CatalogError> {
        let mut spine = Vec::new();
        let mut innermost = expression;
        while let Expr::BinaryOp { left, op, right } = innermost {
            spine.push((op, right.as_ref()));
            innermost = left;
        }
        let mut piece = self.expression(innermost)?;
        for (operator, right) in spine.into_iter().rev() {
            let right = self.expression(right)?;
            piece = self.binary(piece, operator, right)?;
        }
        Ok(piece)
    }

    fn binary(&mut self, left: Piece, operator: &BinaryOperator, right: Piece) -> Result<Piece, CatalogError> {
        let refused = || CatalogError::unsupported(format!("the operator {operator}"));
        match known(operator).ok_or_else(refused)? {
            Operator::Logic(word) => {
                let (left, right) = (self.coerce(left, &Type::BOOL)?, self.coerce(right, &Type::BOOL)?);
                if [&left, &right]
                    .iter()
                    .any(|piece| !matches!(family(&piece.kind), Family::Boolean | Family::Unknown))
                {
                    return Err(CatalogError::unsupported(format!(
                        "{word} of {} and {}",
                        left.kind, right.kind
                    )));
                }
                Ok(Piece::new(format!("({} {word} {})", left.sql, right.sql), Type::BOOL))
            }
            Operator::Compare(word) => {
                let (left, right) = self.meet(left, right)?;
                // How values of other types sort is not what their text says.
                let ordered = !matches!(word, "=" | "<>");
                if ordered && matches!(family(&left.kind), Family::Other | Family::Array) {
                    return Err(CatalogError::unsupported(format!(
                        "{} {word} {}",
                        left.kind, right.kind
                    )));
                }
                Ok(Piece::new(format!("({} {word} {})", left.sql, right.sql), Type::BOOL))
            }
            Operator::Arithmetic(word) => {
                let (left, right) = self.meet(left, right)?;
                // There is no arithmetic of OIDs.
                let number = |piece: &Piece| {
                    let kind = &piece.kind;
                    matches!(family(kind), Family::Integer | Family::Float)
                        && *kind != Type::OID
                        && !is_registered(kind)
                };
                if !number(&left) || !number(&right) {
                    return Err(CatalogError::unsupported(format!(
                        "{} {word} {}",
                        left.kind, right.kind
                    )));
                }
                // By zero SQLite says NULL, PostgreSQL an error: only a divisor that is plainly something else passes.
                if matches!(word, "/" | "%") && !right.sql.parse::<f64>().is_ok_and(|divisor| divisor != 0.0) {
                    return Err(CatalogError::unsupported(format!("{word} by anything but a number")));
                }
                let kind = arithmetic_kind(&left.kind, &right.kind);
                if kind == Type::NUMERIC {
                    return Err(CatalogError::unsupported(format!("numeric {word} numeric")));
                }
                Ok(Piece::new(format!("({} {word} {})", left.sql, right.sql), kind))
            }
            Operator::Bits(word) => {
                let (left, right) = self.meet(left, right)?;
                if family(&left.kind) != Family::Integer || family(&right.kind) != Family::Integer {
                    return Err(CatalogError::unsupported(format!(
                        "{} {word} {}",
                        left.kind, right.kind
                    )));
                }
                let kind = arithmetic_kind(&left.kind, &right.kind);
                Ok(Piece::new(format!("({} {word} {})", left.sql, right.sql), kind))
            }
            Operator::Concatenate => {
                if family(&left.kind) == Family::Array || family(&right.kind) == Family::Array {
                    let kind = if family(&left.kind) == Family::Array {
                        left.kind.clone()
                    } else {
                        right.kind.clone()
                    };
                    let (left, right) = (self.coerce(left, &kind)?, self.coerce(right, &kind)?);
                    // An element beside an array is appended in PostgreSQL; that is not worth guessing at.
                    if family(&left.kind) != Family::Array || family(&right.kind) != Family::Array {
                        return Err(CatalogError::unsupported("|| of an array and an element"));
                    }
                    return Ok(Piece::new(
                        format!("forebay_array_concat({}, {})", left.sql, right.sql),
                        kind,
                    ));
                }
                let (left, right) = (self.text_of(left)?, self.text_of(right)?);
                Ok(Piece::new(format!("({} || {})", left.sql, right.sql), Type::TEXT))
            }
            Operator::Regex { insensitive, negated } => {
                let (left, right) = (self.plain_text(left)?, self.plain_text(right)?);
                let function = if insensitive {
                    "forebay_regexp_insensitive"
                } else {
                    "forebay_regexp"
                };
                let not = if negated { "NOT " } else { "" };
                Ok(Piece::new(
                    format!("({not}{function}({}, {}))", right.sql, left.sql),
                    Type::BOOL,
                ))
            }
            Operator::Like { insensitive, negated } => self.like_pieces(left, right, "'\\'", insensitive, negated),
        }
    }

    /// A side of a pattern: text already, or an untyped literal.
    fn plain_text(&mut self, piece: Piece) -> Result<Piece, CatalogError> {
        let piece = self.coerce(piece, &Type::TEXT)?;
        match family(&piece.kind) {
            Family::Text | Family::Unknown => Ok(piece),
            _ => Err(CatalogError::unsupported(format!("a pattern over {}", piece.kind))),
        }
    }

    fn like(
        &mut self,
        expression: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        insensitive: bool,
        negated: bool,
    ) -> Result<Piece, CatalogError> {
        let escape = match escape {
            None => "'\\'".to_owned(),
            Some(Expr::Value(value)) => match &value.value {
                Value::SingleQuotedString(text) if text.chars().count() == 1 => text_literal(text)?,
                other => return Err(CatalogError::unsupported(format!("ESCAPE {other}"))),
            },
            Some(other) => return Err(CatalogError::unsupported(format!("ESCAPE {other}"))),
        };
        let (piece, pattern) = (self.expression(expression)?, self.expression(pattern)?);
        self.like_pieces(piece, pattern, &escape, insensitive, negated)
    }

    fn like_pieces(
        &mut self,
        piece: Piece,
        pattern: Piece,
        escape: &str,
        insensitive: bool,
        negated: bool,
    ) -> Result<Piece, CatalogError> {
        let (piece, pattern) = (self.plain_text(piece)?, self.plain_text(pattern)?);
        let not = if negated { "NOT " } else { "" };
        let side = |sql: String| {
            if insensitive { format!("lower({sql})") } else { sql }
        };
        Ok(Piece::new(
            format!("({} {not}LIKE {} ESCAPE {escape})", side(piece.sql), side(pattern.sql)),
            Type::BOOL,
        ))
    }

    fn in_list(&mut self, expression: &Expr, list: &[Expr], negated: bool) -> Result<Piece, CatalogError> {
        let not = if negated { "NOT " } else { "" };
        if let Expr::Tuple(columns) = expression {
            let columns = columns
                .iter()
                .map(|column| self.expression(column))
                .collect::<Result<Vec<_>, _>>()?;
            let mut rows = Vec::new();
            for item in list {
                let Expr::Tuple(values) = item else {
                    return Err(CatalogError::unsupported(item));
                };
                if values.len() != columns.len() {
                    return Err(CatalogError::Syntax {
                        message: "unequal number of entries in row expressions".to_owned(),
                    });
                }
                let mut row = Vec::new();
                for (column, value) in columns.iter().zip(values) {
                    let value = self.expression(value)?;
                    row.push(self.meet(column.clone(), value)?.1.sql);
                }
                rows.push(format!("({})", row.join(", ")));
            }
            let columns: Vec<String> = columns.into_iter().map(|column| column.sql).collect();
            return Ok(Piece::new(
                format!("(({}) {not}IN (VALUES {}))", columns.join(", "), rows.join(", ")),
                Type::BOOL,
            ));
        }
        let mut piece = self.expression(expression)?;
        let mut items = Vec::new();
        for item in list {
            let item = self.expression(item)?;
            let (known, item) = self.meet(piece, item)?;
            piece = known;
            items.push(item.sql);
        }
        Ok(Piece::new(
            format!("({} {not}IN ({}))", piece.sql, items.join(", ")),
            Type::BOOL,
        ))
    }

    fn in_subquery(&mut self, expression: &Expr, subquery: &Expr, negated: bool) -> Result<Piece, CatalogError> {
        let Expr::Subquery(query) = subquery else {
            return Err(CatalogError::unsupported(subquery));
        };
        let not = if negated { "NOT " } else { "" };
        let (text, columns) = self.query(query)?;
        let pieces = match expression {
            Expr::Tuple(columns) => columns
                .iter()
                .map(|column| self.expression(column))
                .collect::<Result<Vec<_>, _>>()?,
            one => vec![self.expression(one)?],
        };
        if pieces.len() != columns.len() {
            return Err(CatalogError::Syntax {
                message: "subquery has another number of columns than the expression beside IN".to_owned(),
            });
        }
        let mut sides = Vec::new();
        for (piece, column) in pieces.into_iter().zip(&columns) {
            let (piece, _) = self.meet(piece, Piece::new("", column.kind.clone()))?;
            sides.push(piece.sql);
        }
        let side = if sides.len() == 1 {
            sides.remove(0)
        } else {
            format!("({})", sides.join(", "))
        };
        Ok(Piece::new(format!("({side} {not}IN ({text}))"), Type::BOOL))
    }

    /// `left = ANY (right)`, or with `negated` `left <> ALL (right)`: both are about membership.
    fn any(&mut self, left: &Expr, right: &Expr, negated: bool) -> Result<Piece, CatalogError> {
        let mut right = right;
        while let Expr::Nested(inner) = right {
            right = inner;
        }
        match right {
            Expr::Subquery(_) => return self.in_subquery(left, right, negated),
            Expr::Array(array) if !array.elem.is_empty() => {
                return self.in_list(left, &array.elem, negated);
            }
            _ => {}
        }
        let left = self.expression(left)?;
        let array = self.expression(right)?;
        let (left, array) = match element_type(&array.kind) {
            Some(element) => (self.coerce(left, &element)?, array),
            None => {
                let left = self.coerce(left, &Type::TEXT)?;
                let kind = array_type(&left.kind)
                    .ok_or_else(|| CatalogError::unsupported(format!("ANY over {}", left.kind)))?;
                let array = self.coerce(array, &kind)?;
                (left, array)
            }
        };
        let element =
            element_type(&array.kind).ok_or_else(|| CatalogError::unsupported(format!("ANY over {}", array.kind)))?;
        let (left, _) = self.meet(left, Piece::new("", element.clone()))?;
        let numeric = match family(&element) {
            Family::Integer => 1,
            Family::Text => 0,
            _ => {
                return Err(CatalogError::unsupported(format!("ANY over {}", array.kind)));
            }
        };
        let not = if negated { "NOT " } else { "" };
        Ok(Piece::new(
            format!(
                "(CASE WHEN {1} IS NOT NULL THEN {0} {not}IN (SELECT value FROM json_each(forebay_elements({1}, {numeric}))) END)",
                left.sql, array.sql
            ),
            Type::BOOL,
        ))
    }
}

fn is(operator: &BinaryOperator, wanted: &str) -> bool {
    matches!(known(operator), Some(Operator::Compare(word)) if word == wanted)
}

fn arithmetic_kind(left: &Type, right: &Type) -> Type {
    let either = |kind: Type| *left == kind || *right == kind;
    match (family(left), family(right)) {
        (Family::Integer, Family::Integer) if either(Type::INT8) || either(Type::OID) => Type::INT8,
        (Family::Integer, Family::Integer) => Type::INT4,
        _ if either(Type::FLOAT8) || either(Type::FLOAT4) => Type::FLOAT8,
        _ => Type::NUMERIC,
    }
}
