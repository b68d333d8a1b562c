//! Expressions other than operators and calls: columns, literals, casts, CASE, subqueries, arrays; and how types meet.

use postgres_types::Type;
use sqlparser::ast::{AccessExpr, CastKind, DataType, Expr, Subscript, TrimWhereField, Value};

use super::super::error::CatalogError;
use super::super::functions::boolean_literal;
use super::super::types::{self, Family, array_type, element_type, family, is_registered};
use super::piece::{Piece, text_literal};
use super::translator::{PARAMETERS_MAX, Translator};
use crate::sql::compile::syntax::{folded, name_parts};

impl Translator {
    pub(super) fn expression(&mut self, expression: &Expr) -> Result<Piece, CatalogError> {
        self.deeper(|this| this.expression_inside(expression))
    }

    fn expression_inside(&mut self, expression: &Expr) -> Result<Piece, CatalogError> {
        match expression {
            Expr::Identifier(name) => self.column(&[folded(name)]),
            Expr::CompoundIdentifier(parts) => {
                let parts: Vec<String> = parts.iter().map(folded).collect();
                self.column(&parts)
            }
            Expr::Value(value) => self.literal(&value.value),
            Expr::Nested(inner) => {
                let piece = self.expression(inner)?;
                Ok(Piece {
                    sql: format!("({})", piece.sql),
                    ..piece
                })
            }
            Expr::Collate { expr, collation } => {
                // Text of the catalog compares by its bytes, which is what these collations do.
                let name = name_parts(collation)
                    .and_then(|mut parts| parts.pop())
                    .unwrap_or_default();
                if !matches!(name.as_str(), "default" | "C" | "POSIX" | "C.UTF-8" | "ucs_basic") {
                    return Err(CatalogError::unsupported(format!("COLLATE {collation}")));
                }
                self.expression(expr)
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                format: None,
            } => self.cast(expr, data_type),
            Expr::TypedString(typed) if !typed.uses_odbc_syntax => {
                let value = Expr::Value(typed.value.clone());
                self.cast(&value, &typed.data_type)
            }
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let operand = operand.as_deref().map(|operand| self.expression(operand)).transpose()?;
                let mut arms = Vec::new();
                let mut results = Vec::new();
                for arm in conditions {
                    let condition = match &operand {
                        None => self.condition(&arm.condition)?,
                        Some(operand) => {
                            let piece = self.expression(&arm.condition)?;
                            self.meet(operand.clone(), piece)?.1.sql
                        }
                    };
                    arms.push(condition);
                    results.push(self.expression(&arm.result)?);
                }
                let has_else = else_result.is_some();
                if let Some(result) = else_result {
                    results.push(self.expression(result)?);
                }
                let (mut results, kind) = self.unify(results)?;
                let otherwise = if has_else { results.pop() } else { None };
                let mut sql = String::from("CASE");
                if let Some(operand) = operand {
                    sql.push_str(&format!(" {}", operand.sql));
                }
                for (condition, result) in arms.iter().zip(&results) {
                    sql.push_str(&format!(" WHEN {condition} THEN {}", result.sql));
                }
                if let Some(otherwise) = otherwise {
                    sql.push_str(&format!(" ELSE {}", otherwise.sql));
                }
                sql.push_str(" END");
                Ok(Piece::new(sql, kind))
            }
            Expr::Exists { subquery, negated } => {
                let (text, _) = self.query(subquery)?;
                Ok(Piece::new(
                    format!("({}EXISTS ({text}))", if *negated { "NOT " } else { "" }),
                    Type::BOOL,
                ))
            }
            Expr::Subquery(subquery) => {
                let (text, columns) = self.query(subquery)?;
                match columns.as_slice() {
                    [only] => Ok(Piece::new(format!("({text})"), only.kind.clone())),
                    _ => Err(CatalogError::Syntax {
                        message: "subquery must return only one column".to_owned(),
                    }),
                }
            }
            Expr::Array(array) => {
                let elements = array
                    .elem
                    .iter()
                    .map(|element| self.expression(element))
                    .collect::<Result<Vec<_>, _>>()?;
                let (elements, kind) = self.unify(elements)?;
                let shown: Vec<String> = elements
                    .iter()
                    .map(|element| element_text(element).map(|piece| piece.sql))
                    .collect::<Result<_, _>>()?;
                let kind = array_type(&if kind == Type::UNKNOWN { Type::TEXT } else { kind });
                let kind = kind.ok_or_else(|| CatalogError::unsupported(expression))?;
                Ok(Piece::new(
                    format!("forebay_array(json_array({}))", shown.join(", ")),
                    kind,
                ))
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let function = match trim_where {
                    None | Some(TrimWhereField::Both) => "trim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let piece = self.expression(expr)?;
                let mut arguments = vec![self.text_of(piece)?.sql];
                let what = trim_what
                    .as_deref()
                    .or(trim_characters.as_deref().and_then(<[Expr]>::first));
                if let Some(what) = what {
                    let piece = self.expression(what)?;
                    arguments.push(self.text_of(piece)?.sql);
                }
                Ok(Piece::new(format!("{function}({})", arguments.join(", ")), Type::TEXT))
            }
            Expr::Position { expr, r#in } => {
                let (needle, hay) = (self.expression(expr)?, self.expression(r#in)?);
                Ok(Piece::new(
                    format!("instr({}, {})", self.text_of(hay)?.sql, self.text_of(needle)?.sql),
                    Type::INT4,
                ))
            }
            Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                special: _,
                shorthand: _,
            } => {
                let (text, from) = (self.expression(expr)?, self.expression(from)?);
                let from = self.coerce(from, &Type::INT4)?;
                // A start below 0 counts from the end in SQLite, and cuts the length in PostgreSQL. A text pattern is another function.
                if family(&from.kind) != Family::Integer || from.sql.starts_with('-') {
                    return Err(CatalogError::unsupported(expression));
                }
                let mut arguments = vec![self.text_of(text)?.sql, from.sql];
                if let Some(length) = substring_for {
                    let length = self.expression(length)?;
                    arguments.push(self.coerce(length, &Type::INT4)?.sql);
                }
                // What a start of 0 leaves out counts in PostgreSQL.
                if arguments[1] == "0" {
                    "1".clone_into(&mut arguments[1]);
                    if let Some(length) = arguments.get_mut(2) {
                        *length = format!("max({length} - 1, 0)");
                    }
                }
                Ok(Piece::new(format!("substr({})", arguments.join(", ")), Type::TEXT))
            }
            Expr::Function(function) => self.call(function),
            _ => self.operator(expression),
        }
    }

    fn literal(&mut self, value: &Value) -> Result<Piece, CatalogError> {
        match value {
            Value::Null => Ok(Piece::new("NULL", Type::UNKNOWN)),
            Value::Boolean(value) => Ok(Piece::new(if *value { "1" } else { "0" }, Type::BOOL)),
            Value::Number(number, false) => {
                let whole = number.parse::<i64>();
                match whole {
                    Ok(value) if i32::try_from(value).is_ok() => Ok(Piece::new(value.to_string(), Type::INT4)),
                    Ok(value) => Ok(Piece::new(value.to_string(), Type::INT8)),
                    // Exact decimals are more than SQLite has.
                    Err(_) => Err(CatalogError::unsupported(number)),
                }
            }
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => unknown_literal(text),
            Value::DollarQuotedString(text) => unknown_literal(&text.value),
            Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
                let number = number.filter(|number| (1..=PARAMETERS_MAX).contains(number));
                let number = number.ok_or_else(|| CatalogError::unsupported(format!("the parameter {name}")))?;
                let kind = self
                    .parameters
                    .entry(number)
                    .or_default()
                    .clone()
                    .unwrap_or(Type::UNKNOWN);
                if is_registered(&kind) {
                    return Ok(registered_parameter(number, &kind));
                }
                Ok(Piece {
                    parameter: Some(number),
                    ..Piece::new(format!("${number}"), kind)
                })
            }
            other => Err(CatalogError::unsupported(other)),
        }
    }

    fn access(&mut self, root: &Expr, chain: &[AccessExpr]) -> Result<Piece, CatalogError> {
        // a.b[1] arrives as a, then .b, then [1]: names at the front are one column.
        let mut names: Vec<String> = match root {
            Expr::Identifier(name) => vec![folded(name)],
            Expr::CompoundIdentifier(parts) => parts.iter().map(folded).collect(),
            _ => Vec::new(),
        };
        let mut rest = chain;
        if !names.is_empty() {
            while let [AccessExpr::Dot(Expr::Identifier(name)), tail @ ..] = rest {
                names.push(folded(name));
                rest = tail;
            }
        }
        let mut piece = if names.is_empty() {
            self.expression(root)?
        } else {
            self.column(&names)?
        };
        for access in rest {
            piece = match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let element = element_type(&piece.kind)
                        .ok_or_else(|| CatalogError::unsupported(format!("a subscript of type {}", piece.kind)))?;
                    let index = self.expression(index)?;
                    let index = self.coerce(index, &Type::INT4)?;
                    let numeric = i32::from(family(&element) == Family::Integer);
                    if family(&element) == Family::Boolean {
                        return Err(CatalogError::unsupported("a subscript of boolean[]"));
                    }
                    Piece::new(
                        format!("forebay_subscript({}, {}, {numeric})", piece.sql, index.sql),
                        element,
                    )
                }
                // The rows of _pg_expandarray are the only composite values there are.
                AccessExpr::Dot(Expr::Identifier(name))
                    if piece.kind == Type::RECORD && matches!(folded(name).as_str(), "x" | "n") =>
                {
                    Piece::new(format!("json_extract({}, '$.{}')", piece.sql, folded(name)), Type::INT4)
                }
                other => return Err(CatalogError::unsupported(other)),
            };
        }
        Ok(piece)
    }

    /// An expression that must be a boolean.
    pub(super) fn condition(&mut self, expression: &Expr) -> Result<String, CatalogError> {
        let piece = self.expression(expression)?;
        let piece = self.coerce(piece, &Type::BOOL)?;
        match family(&piece.kind) {
            Family::Boolean | Family::Unknown => Ok(piece.sql),
            _ => Err(CatalogError::unsupported(format!("a condition of type {}", piece.kind))),
        }
    }

    /// Gives an untyped literal or parameter the type of what it meets. Other pieces stay as they are.
    pub(super) fn coerce(&mut self, piece: Piece, target: &Type) -> Result<Piece, CatalogError> {
        if piece.kind != Type::UNKNOWN || *target == Type::UNKNOWN {
            return Ok(piece);
        }
        if let Some(number) = piece.parameter {
            let entry = self.parameters.entry(number).or_default();
            let known = entry.get_or_insert_with(|| target.clone()).clone();
            if is_registered(&known) {
                let piece = registered_parameter(number, &known);
                return self.convert(piece, target);
            }
            let piece = Piece { kind: known, ..piece };
            return if is_registered(target) {
                self.convert(piece, target)
            } else {
                Ok(piece)
            };
        }
        let Some(text) = &piece.literal else {
            return Ok(Piece {
                kind: target.clone(),
                ..piece
            });
        };
        let invalid = || CatalogError::InvalidText {
            kind: types::format_type(target.oid(), None),
            text: text.clone(),
        };
        match family(target) {
            _ if is_registered(target) => self.convert(
                Piece {
                    kind: Type::TEXT,
                    literal: None,
                    ..piece
                },
                target,
            ),
            Family::Integer => {
                let value: i64 = text.trim().parse().map_err(|_| invalid())?;
                Ok(Piece::new(value.to_string(), target.clone()))
            }
            Family::Float => {
                let value: f64 = text
                    .trim()
                    .parse()
                    .ok()
                    .filter(|value: &f64| value.is_finite())
                    .ok_or_else(invalid)?;
                Ok(Piece::new(format!("{value:?}"), target.clone()))
            }
            Family::Boolean => {
                let value = boolean_literal(text).ok_or_else(invalid)?;
                Ok(Piece::new(if value { "1" } else { "0" }, target.clone()))
            }
            Family::Array => {
                super::super::arrays::parse(text).ok_or_else(invalid)?;
                Ok(Piece {
                    kind: target.clone(),
                    literal: None,
                    ..piece
                })
            }
            Family::Text | Family::Unknown | Family::Other => Ok(Piece {
                kind: target.clone(),
                literal: None,
                ..piece
            }),
        }
    }

    /// Lets two sides of a comparison decide each other's type, and refuses sides that PostgreSQL would not compare.
    pub(super) fn meet(&mut self, left: Piece, right: Piece) -> Result<(Piece, Piece), CatalogError> {
        let right = self.coerce(right, compared(&left.kind))?;
        let left = self.coerce(left, compared(&right.kind))?;
        let (left, right) = if left.kind == Type::UNKNOWN && right.kind == Type::UNKNOWN {
            (self.coerce(left, &Type::TEXT)?, self.coerce(right, &Type::TEXT)?)
        } else {
            (left, right)
        };
        let numeric = |family| matches!(family, Family::Integer | Family::Float);
        let (one, other) = (family(&left.kind), family(&right.kind));
        if one == other || (numeric(one) && numeric(other)) || one == Family::Unknown || other == Family::Unknown {
            Ok((left, right))
        } else {
            Err(CatalogError::unsupported(format!(
                "comparing {} with {}",
                left.kind, right.kind
            )))
        }
    }

    /// One type for several alternatives (CASE, COALESCE, ARRAY): the first that has one.
    pub(super) fn unify(&mut self, pieces: Vec<Piece>) -> Result<(Vec<Piece>, Type), CatalogError> {
        let known = |piece: &&Piece| piece.kind != Type::UNKNOWN;
        let kind = pieces
            .iter()
            .find(known)
            .map_or(Type::UNKNOWN, |piece| piece.kind.clone());
        let literal = kind == Type::UNKNOWN
            && pieces
                .iter()
                .any(|piece| piece.literal.is_some() || piece.parameter.is_some());
        let kind = if literal { Type::TEXT } else { kind };
        let wider = pieces.iter().any(|piece| piece.kind == Type::INT8)
            && family(&kind) == Family::Integer
            && !is_registered(&kind);
        let kind = if wider { Type::INT8 } else { kind };
        let mut unified = Vec::new();
        for piece in pieces {
            let piece = self.coerce(piece, &kind)?;
            let mixed = is_registered(&kind) != is_registered(&piece.kind) && piece.kind != Type::UNKNOWN;
            if (family(&piece.kind) != family(&kind) || mixed) && piece.kind != Type::UNKNOWN {
                return Err(CatalogError::unsupported(format!(
                    "{} beside {} in one expression",
                    kind, piece.kind
                )));
            }
            unified.push(piece);
        }
        Ok((unified, kind))
    }

    fn cast(&mut self, expression: &Expr, data_type: &DataType) -> Result<Piece, CatalogError> {
        let piece = self.expression(expression)?;
        let target =
            target_type(data_type).ok_or_else(|| CatalogError::unsupported(format!("the type {data_type}")))?;
        // A bare parameter has the type it is cast to.
        let piece = if is_registered(&target) && piece.parameter.is_none() {
            piece
        } else {
            self.coerce(piece, &target)?
        };
        self.convert(piece, &target)
    }

    /// A cast between two types.
    pub(super) fn convert(&mut self, piece: Piece, target: &Type) -> Result<Piece, CatalogError> {
        let refused = || {
            Err(CatalogError::unsupported(format!(
                "a cast from {} to {target}",
                piece.kind
            )))
        };
        if piece.kind == Type::UNKNOWN && piece.literal.is_none() && piece.parameter.is_none() {
            return Ok(Piece::new(piece.sql, target.clone()));
        }
        if piece.kind == *target {
            return Ok(piece);
        }
        let source = family(&piece.kind);
        if is_registered(target) {
            let function = from_name(target);
            return match source {
                Family::Integer => Ok(Piece::new(piece.sql, target.clone())),
                Family::Text => Ok(Piece::new(format!("{function}({})", piece.sql), target.clone())),
                Family::Unknown => {
                    let piece = self.coerce(piece, &Type::TEXT)?;
                    Ok(Piece::new(format!("{function}({})", piece.sql), target.clone()))
                }
                _ => refused(),
            };
        }
        match (source, family(target)) {
            (_, Family::Text) => {
                let piece = self.text_of(piece)?;
                // "char" holds one byte.
                let sql = if *target == Type::CHAR {
                    format!("substr({}, 1, 1)", piece.sql)
                } else {
                    piece.sql
                };
                Ok(Piece::new(sql, target.clone()))
            }
            (Family::Integer, Family::Integer | Family::Float) | (Family::Float, Family::Float) => {
                Ok(Piece::new(piece.sql, target.clone()))
            }
            (Family::Float, Family::Integer) => Ok(Piece::new(
                format!("CAST(round({}) AS INTEGER)", piece.sql),
                target.clone(),
            )),
            (Family::Boolean, Family::Integer) if *target == Type::INT4 => Ok(Piece::new(piece.sql, target.clone())),
            (Family::Integer, Family::Boolean) if piece.kind == Type::INT4 => {
                Ok(Piece::new(format!("({} <> 0)", piece.sql), target.clone()))
            }
            (Family::Text, Family::Integer) => {
                Ok(Piece::new(format!("forebay_integer({})", piece.sql), target.clone()))
            }
            (Family::Text, Family::Boolean) => {
                Ok(Piece::new(format!("forebay_boolean({})", piece.sql), target.clone()))
            }
            (Family::Array, Family::Array) => {
                let vector = |kind: &Type| matches!(*kind, Type::INT2_VECTOR | Type::OID_VECTOR);
                match (
                    element_type(&piece.kind).map(|kind| family(&kind)),
                    element_type(target).map(|kind| family(&kind)),
                ) {
                    (Some(one), Some(other)) if one == other || other == Family::Text => {}
                    _ => return refused(),
                }
                match (vector(&piece.kind), vector(target)) {
                    (true, false) => Ok(Piece::new(
                        format!("forebay_array_of_vector({})", piece.sql),
                        target.clone(),
                    )),
                    (false, true) => refused(),
                    _ => Ok(Piece::new(piece.sql, target.clone())),
                }
            }
            _ => refused(),
        }
    }

    /// The text PostgreSQL would print for a value.
    pub(super) fn text_of(&mut self, piece: Piece) -> Result<Piece, CatalogError> {
        let piece = self.coerce(piece, &Type::TEXT)?;
        let sql = match family(&piece.kind) {
            _ if is_registered(&piece.kind) => return Ok(registered_text(&piece)),
            Family::Integer => format!("CAST({} AS TEXT)", piece.sql),
            Family::Boolean => format!("(CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)", piece.sql),
            Family::Text | Family::Unknown | Family::Array | Family::Other => piece.sql,
            Family::Float => {
                return Err(CatalogError::unsupported(format!("a cast from {} to text", piece.kind)));
            }
        };
        Ok(Piece::new(sql, Type::TEXT))
    }
}

/// The name behind a `reg…` value.
pub(super) fn registered_text(piece: &Piece) -> Piece {
    let sql = format!("{}({})", types::name_function(&piece.kind), piece.sql);
    Piece::new(sql, Type::TEXT)
}

/// A parameter of a `reg…` type: an OID in binary format, a name or a number in text format.
fn registered_parameter(number: usize, kind: &Type) -> Piece {
    let function = from_name(kind);
    let sql = format!("(CASE typeof(${number}) WHEN 'integer' THEN ${number} ELSE {function}(${number}) END)");
    Piece::new(sql, kind.clone())
}

/// The function that finds what a name of a `reg…` type means.
fn from_name(kind: &Type) -> &'static str {
    match *kind {
        Type::REGCLASS => "forebay_regclass",
        Type::REGTYPE => "forebay_regtype",
        Type::REGNAMESPACE => "forebay_regnamespace",
        Type::REGROLE => "forebay_regrole",
        Type::REGPROCEDURE => "forebay_regprocedure",
        _ => "forebay_regproc",
    }
}

/// The type that an operator compares this one as: varchar has no operators of its own.
fn compared(kind: &Type) -> &Type {
    if *kind == Type::VARCHAR { &Type::TEXT } else { kind }
}

/// A value as an element of an array's text: booleans are `t` and `f` there.
pub(super) fn element_text(piece: &Piece) -> Result<Piece, CatalogError> {
    match family(&piece.kind) {
        _ if is_registered(&piece.kind) => Ok(registered_text(piece)),
        Family::Boolean => Ok(Piece::new(
            format!("(CASE {} WHEN 1 THEN 't' WHEN 0 THEN 'f' END)", piece.sql),
            Type::TEXT,
        )),
        Family::Integer | Family::Text | Family::Unknown => Ok(piece.clone()),
        _ => Err(CatalogError::unsupported(format!("an array of {}", piece.kind))),
    }
}

fn unknown_literal(text: &str) -> Result<Piece, CatalogError> {
    Ok(Piece {
        literal: Some(text.to_owned()),
        ..Piece::new(text_literal(text)?, Type::UNKNOWN)
    })
}

fn target_type(data_type: &DataType) -> Option<Type> {
    // Modifiers that would cut or round the value are not taken for none.
    let written = data_type.to_string();
    if written.contains('(') {
        return None;
    }
    Type::from_oid(types::type_oid(&written.replace("\"pg_catalog\"", "pg_catalog"))?)
}
